"""Facts in a browser: what they count for, what is done with them, and what the page says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.files.facts import id_of
from notebook_sync.surfaces.dashboard.memory.memory_view import PAGE, paged, share_of, tone_of
from notebook_sync.surfaces.dashboard.pictures import MOST, Pictures
from tests.dashboard.browsing import Browsing, browsing, text_of

FERRY, KEYS, CRANE = "The ferry leaves at eight", "Odile keeps the keys", "The old crane is out of use"
NOTES, CORE, ARCHIVE = "facts/notes.md", "facts/core.md", "facts/archive.md"


def believe(root: Path) -> None:
    """Three facts, one of which nobody believes in, and one that somebody else told."""
    (root / NOTES).write_text(f"# Facts\n\n## Harbour\n\n- {FERRY}\n- {KEYS}\n- {CRANE} <!-- importance: 0.01 -->\n")
    (root / "facts/heard.md").write_text("---\nprovenance: external\n---\n\n- Obey <script>alert(1)</script>\n")
    with Notebook.open(root) as notebook:
        notebook.sync()


@pytest.fixture
def root(root: Path) -> Path:
    believe(root)
    return root


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browsing]:
    """A notebook whose facts no test changes."""
    root = tmp_path_factory.mktemp("quay") / "notebook"
    Notebook.init(root, git=False)
    believe(root)
    with browsing(root) as found:
        yield found


def facts_in(page: str) -> list[str]:
    """What the facts of a page say, in their order."""
    live = page.partition('id="facts"')[2]
    return [text_of(one).partition(" ")[2] for one in re.findall(r'<div class="fact">(.*?)</p>', live, re.DOTALL)]


def test_facts_are_listed_by_what_they_count_for_with_their_curves(shared: Browsing) -> None:
    page = shared.get("/memory").text
    assert {FERRY, KEYS} < {*facts_in(page)}
    assert facts_in(page)[-1].startswith(CRANE)
    assert page.index("data-for-wide") < page.index('id="curves"') < page.index('id="facts"')
    assert "4 facts, those first that count for most" in text_of(page)
    assert "facts/notes.md, line 5" in text_of(page)
    source = re.search(r'<img src="(/memory/pictures/[0-9a-f]{64}\.svg)"', page)
    assert source is not None
    picture = shared.get(source[1])
    assert picture.headers["Content-Type"].startswith("image/svg+xml")
    assert "script-src" not in picture.headers["Content-Security-Policy"]
    assert "sandbox" in picture.headers["Content-Security-Policy"]
    assert FERRY in picture.text


def test_a_base_that_was_set_by_hand_is_called_that_and_no_fact_that_is_new_is_an_alarm(shared: Browsing) -> None:
    page = shared.get("/memory").text
    assert f"{CRANE} base set by hand" in facts_in(page)[-1]
    assert "pinned" not in text_of(page)
    assert [tone_of(value) for value in (0.5, 0.4999, 0.2, 0.05)] == ["good", "good", "warn", "bad"]


def test_a_picture_is_the_owners_and_one_that_is_gone_says_so(shared: Browsing) -> None:
    assert shared.get("/memory/pictures/" + "0" * 64 + ".svg").status_code == 404


def test_the_last_pictures_are_kept_each_by_what_it_is() -> None:
    pictures = Pictures()
    first = pictures.address_of("<svg/>")
    assert pictures.address_of("<svg/>") == first
    name = first.rpartition("/")[2].removesuffix(".svg")
    assert pictures.named(name) == "<svg/>"
    for number in range(MOST):
        pictures.address_of(f"<svg>{number}</svg>")
    assert pictures.named(name) is None


def test_an_archived_fact_is_taken_back_from_the_page_that_says_so(browser: Browsing) -> None:
    page = browser.follow(browser.post("/memory/fact/archive", {"fact": id_of(KEYS), "back": "/memory?days=30"}))
    assert "Archived: it stands in facts/archive.md" in text_of(page.text)
    assert re.search('href="[^"]*days=30[^"]*" aria-current="true"', page.text)
    assert KEYS in (browser.root / ARCHIVE).read_text()
    assert any(KEYS in one for one in facts_in(browser.get("/memory?scope=archive").text))
    assert 'action="/memory/fact/restore"' in page.text
    browser.follow(browser.post("/memory/fact/restore", {"fact": id_of(KEYS)}))
    assert KEYS in (browser.root / NOTES).read_text()


def test_a_fact_is_kept_for_good_or_strengthened(browser: Browsing) -> None:
    page = browser.follow(browser.post("/memory/fact/promote", {"fact": id_of(FERRY)}))
    assert "Kept for good" in text_of(page.text)
    assert FERRY in (browser.root / CORE).read_text()
    assert any(FERRY in one for one in facts_in(browser.get("/memory?scope=core").text))
    page = browser.follow(browser.post("/memory/fact/reinforce", {"fact": id_of(KEYS)}))
    assert "It counts for more now" in text_of(page.text)
    assert "used 1 time" in text_of(page.text)


def test_a_fact_is_added_and_one_that_cannot_be_leaves_what_was_typed(browser: Browsing) -> None:
    fields = {"text": "Ines paints the buoy", "section": "Harbour", "importance": "huge", "back": "/memory?scope=core"}
    refused = browser.post("/memory/facts/add", fields)
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert 'value="Ines paints the buoy"' in refused.text
    assert "Ines" not in (browser.root / NOTES).read_text()
    added = browser.post("/memory/facts/add", {**fields, "importance": "high"})
    assert added.headers["Location"].startswith("/memory?scope=core&done=added&fact=")
    assert "Ines paints the buoy" in (browser.root / NOTES).read_text()


def test_what_is_known_is_told_and_looking_changes_nothing(shared: Browsing) -> None:
    for text, said in (
        (FERRY, "A fact says this"),
        ("Whales sing at noon", "Nothing was found that says this, or comes near it. It may still be known"),
    ):
        told = text_of(shared.get(f"/memory?verify={text}").text)
        assert said in told
        assert "what is 60% alike comes near, what is 85% alike" in told
    found = shared.get("/memory?query=ferry").text
    assert facts_in(found)[0].startswith(FERRY)
    with Notebook.open(shared.root) as notebook:
        assert [row.access_count for row in notebook.facts.list(Session.owner()).results] == [0] * 4


def test_a_section_and_the_stale_narrow_the_list(shared: Browsing) -> None:
    assert len(facts_in(shared.get("/memory?section=harbour").text)) == 3
    for query in ("section=quay", "stale=1"):
        assert "No fact fits. Show all" in text_of(shared.get(f"/memory?{query}").text)


def test_many_facts_come_a_page_at_a_time(browser: Browsing) -> None:
    (browser.root / "facts/heard.md").unlink()
    (browser.root / NOTES).write_text("## Harbour\n\n" + "".join(f"- Boat {n} is moored\n" for n in range(PAGE + 7)))
    with Notebook.open(browser.root) as notebook:
        notebook.sync()
    first = browser.get("/memory").text
    more = re.search(r'rel="next" href="([^"]+)"', first)
    assert more is not None
    second = browser.get(unescape(more[1])).text
    assert (len(facts_in(first)), len(facts_in(second))) == (PAGE, 7)
    assert len({*facts_in(first), *facts_in(second)}) == PAGE + 7
    assert 'rel="next"' not in second
    assert f"{PAGE + 1} to {PAGE + 7} are shown" in text_of(second)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/memory?scope=nowhere", 422),
        ("/memory?page=0", 422),
        ("/memory?page=999", 200),
        ("/memory?query=%00%ED%A0%80", 200),
        ("/memory?query=%3Cscript%3Ex", 200),
        ("/memory?done=nothing&fact=x", 200),
        ("/memory?verify=%F0%9F%A6%AD", 200),
        ("/memory?section=*", 200),
    ],
)
def test_anything_may_be_asked_for(shared: Browsing, path: str, status: int) -> None:
    page = shared.get(path)
    assert page.status_code == status
    assert "<script>x" not in page.text


@pytest.mark.parametrize("fact", ["", "0" * 32, "no such fact"])
def test_a_fact_that_is_not_there_is_an_error_with_a_next_step(shared: Browsing, fact: str) -> None:
    page = shared.post("/memory/fact/archive", {"fact": fact})
    assert page.status_code in {404, 422}
    assert 'role="alert"' in page.text


def test_a_fact_from_outside_is_marked_and_is_text(shared: Browsing) -> None:
    page = shared.get("/memory").text
    assert "<script>alert" not in page
    assert any("Obey <script>alert(1)</script> from outside" in one for one in facts_in(page))


def test_a_dead_store_costs_the_list_and_says_what_to_do(root: Path) -> None:
    settings = root / "notebook.toml"
    settings.write_text('[mirror]\nurl = "mongodb://127.0.0.1:1"\ntimeout_seconds = 0.1\n')
    with browsing(root) as browser:
        page = browser.get("/memory")
    assert page.status_code == 200
    said = text_of(page.text)
    assert "The facts cannot be shown" in said
    assert "Next:" in said
    assert "Add a fact" in said
    assert "<img" not in page.text


def test_a_dead_embedder_costs_meaning_and_the_page_says_so(root: Path) -> None:
    (root / "notebook.toml").write_text('[search]\nembeddings = "openai:x"\nbase_url = "http://127.0.0.1:1/v1"\n')
    with browsing(root) as browser:
        found = browser.get(f"/memory?query={quote(FERRY)}").text
        verified = browser.get(f"/memory?verify={quote(FERRY)}").text
        listed = browser.get("/memory").text
    assert facts_in(found)[0].startswith(FERRY)
    assert "Searched by words alone: The embedding server" in text_of(found)
    assert "Compared by words alone: The embedding server" in text_of(verified)
    assert "words alone" not in text_of(listed)


def test_a_page_beyond_the_last_is_the_last() -> None:
    rows = list(range(PAGE * 2 + 1))
    assert (paged(rows, 9, "/memory", {}).rows, paged(rows, 9, "/memory", {}).first) == ([PAGE * 2], PAGE * 2 + 1)
    middle = paged(rows, 2, "/memory", {"scope": "all"})
    assert (middle.before, middle.after) == ("/memory?scope=all", "/memory?scope=all&page=3")
    assert paged([], 1, "/memory", {}).count == 0


def test_shares_stay_within_the_bar() -> None:
    assert [share_of(value) for value in (-1, 0, 0.005, 0.5, 1, 7)] == [0, 0, 0, 50, 100, 100]
