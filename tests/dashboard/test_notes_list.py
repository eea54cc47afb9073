"""All notes in a browser: their folders, those that changed last, and those that a search finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from unittest.mock import patch

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import BackendDown
from notebook_sync.notes.shelf import MOST as MOST_OF_A_FOLDER
from notebook_sync.search.searching import Searched
from notebook_sync.surfaces.dashboard.notes import notes_page
from notebook_sync.surfaces.dashboard.notes.notes_view import marked, place_after, place_in
from tests.dashboard.browsing import Browsing, browsing, text_of


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook whose notes no test changes."""
    root = tmp_path_factory.mktemp("harbour") / "notebook"
    Notebook.init(root, git=False)
    (root / "pages/harbour/old").mkdir(parents=True)
    (root / "pages/harbour/quay.md").write_text(
        "---\ntags: [ferry]\nstatus: complete\n---\n# The quay\n\nOdile waits.\n\n"
        "## Depth\n\nFour <b>metres</b> at ebb.\n"
    )
    (root / "pages/harbour/old/wreck.md").write_text("# The wreck\n\nBelow the ebb line.\n")
    note = root / "channels/scribe/global/2026-02-18T103000Z-oars.md"
    note.parent.mkdir(parents=True)
    note.write_text("---\ntype: note\ntopic: oars\nprovenance: external\n---\nThe oars are wet.\n")
    for number in range(notes_page.PAGE + 10):
        (root / f"research_notes/n{number:03}.md").write_text(f"# Tide {number}\n\nHigh at six.\n")
    with Notebook.open(root) as notebook:
        notebook.sync()
    return root


@pytest.fixture(scope="module")
def shared(harbour: Path) -> Iterator[Browsing]:
    with browsing(harbour) as found:
        yield found


def titles_in(page: str) -> list[str]:
    return [unescape(title) for title in re.findall(r"<strong>(.*?)</strong>", page)]


def more_of(page: str) -> str:
    found = re.search(r'rel="next" href="([^"]+)"', page)
    return unescape(found[1]) if found else ""


def test_all_notes_are_listed_a_page_at_a_time(shared: Browsing) -> None:
    found, address = [], "/notes"
    while address:
        page = shared.get(address).text
        assert len(titles_in(page)) <= notes_page.PAGE
        found += titles_in(page)
        address = more_of(page)
    assert len(found) == len(set(found)) == notes_page.PAGE + 10 + 3 + 3


def test_a_folder_shows_the_notes_below_it_and_is_open_in_the_tree(shared: Browsing) -> None:
    page = shared.get("/notes?folder=pages/harbour").text
    assert sorted(titles_in(page)) == ["The quay", "The wreck"]
    assert 'href="/notes?folder=pages%2Fharbour" class="folder" aria-current="page"' in page
    assert 'href="/notes?folder=pages%2Fharbour%2Fold"' in page
    assert 'href="/notes/pages/harbour/quay.md"' in page
    assert 'href="/notes?folder=research_notes"' in page


@pytest.mark.parametrize("folder", ["pages/harbour/", "/pages//harbour", "./pages/./harbour"])
def test_a_folder_is_the_same_however_it_is_spelled(shared: Browsing, folder: str) -> None:
    page = shared.get(f"/notes?folder={folder}").text
    assert sorted(titles_in(page)) == ["The quay", "The wreck"]


def test_a_folder_of_many_notes_is_shown_in_parts(root: Path) -> None:
    for number in range(MOST_OF_A_FOLDER + 1):
        (root / f"pages/n{number:03}.md").write_text("x\n")
    with browsing(root) as browser:
        page = browser.get("/notes?folder=pages").text
        assert page.count('href="/notes/pages/n') == MOST_OF_A_FOLDER
        more = re.search(r'href="([^"]+)">More of 202 files', page)
        assert more
        assert "/notes/pages/n200.md" in browser.get(unescape(more[1])).text


def test_a_folder_that_is_not_there_is_said_to_be_none(shared: Browsing) -> None:
    for folder in ("nowhere", "../..", "%00", "%F0%9F%9A%A2", "pages/harbour/quay.md", "x" * 4000):
        page = shared.get(f"/notes?folder={folder}")
        assert page.status_code == 404
        assert 'role="alert"' in page.text
        assert "All notes" in text_of(page.text)


def test_a_search_finds_notes_and_marks_where(shared: Browsing) -> None:
    page = shared.get("/notes?query=metres+ebb&mode=keyword").text
    assert titles_in(page)[0] == "The quay"
    assert "<mark>ebb</mark>" in page
    assert "Four <mark>metres</mark> at" in page
    assert 'href="/notes/pages/harbour/quay.md#at-depth"' in page


@pytest.mark.parametrize(
    ("narrowed", "titles"),
    [
        ("tags=%23ferry,boats", ["The quay"]),
        ("status=complete", ["The quay"]),
        ("collection=channels", ["oars"]),
        ("query=ebb&mode=keyword&folder=pages/harbour/old", ["The wreck"]),
        ("query=ebb&mode=keyword&status=complete", ["The quay"]),
        ("until=2000-01-01", []),
        ("folder=pages&since=1d&status=complete", ["The quay"]),
        ("query=zeppelin&mode=keyword", []),
    ],
)
def test_a_list_is_narrowed(shared: Browsing, narrowed: str, titles: list[str]) -> None:
    page = shared.get(f"/notes?{narrowed}")
    assert page.status_code == 200
    found = titles_in(page.text)
    assert found == titles or (narrowed == "collection=channels" and len(found) == 1)
    assert ("No note fits" in page.text) == (not titles)


def test_words_from_outside_and_private_notes_are_marked(shared: Browsing) -> None:
    said = text_of(shared.get("/notes?collection=channels").text)
    assert "from outside" in said
    assert "private" in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("since=tomorrow", "is not a date"),
        ("collection=boats", "there is no collection"),
        ("status=sunk", "there is no status"),
        ("query=x&mode=telepathy", "telepathy"),
        ("after=nowhere", "begin again at its first page"),
        ("after=2026-02-18~x", "begin again at its first page"),
        ("after=0001-01-01T00:00:00%2B23:59~x", "begin again at its first page"),
        ("after=2026-02-18T00:00:00Z~%00", ""),
    ],
)
def test_what_cannot_be_asked_for_keeps_what_was_typed(shared: Browsing, wrong: str, said: str) -> None:
    page = shared.get(f"/notes?{wrong}&tags=ferry")
    assert page.status_code == (422 if said else 200)
    assert said in text_of(page.text)
    assert 'value="ferry"' in page.text


@pytest.mark.parametrize("query", ["'", '"', "%3Cscript%3E", "$ne", "%ED%A0%80", "%00", "*", "a" * 4096, "🚢"])
def test_any_words_can_be_searched_for(shared: Browsing, query: str) -> None:
    page = shared.get(f"/notes?query={query}&mode=keyword")
    assert page.status_code == 200
    assert "<script>" not in page.text


def test_a_search_that_is_less_than_asked_for_says_so(shared: Browsing) -> None:
    report = Searched([], "keyword", "embeddings are off", 7)
    with patch.object(Notebook, "search_report", return_value=report):
        said = text_of(shared.get("/notes?query=ebb").text)
    assert "Searched by words alone: embeddings are off" in said
    assert "7 notes are not found by their meaning yet" in said


@pytest.mark.parametrize("asked", ["", "?query=ebb"])
def test_the_folders_are_shown_while_the_mirror_is_away(shared: Browsing, asked: str) -> None:
    down = BackendDown("MongoDB at harbour.example", "it does not listen")
    with patch.object(Notebook, "list", side_effect=down), patch.object(Notebook, "search_report", side_effect=down):
        page = shared.get(f"/notes{asked}")
    assert page.status_code == 200
    assert "MongoDB at harbour.example does not answer" in text_of(page.text)
    assert 'href="/notes?folder=pages"' in page.text


def test_an_empty_notebook_says_what_to_do_first(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").write_text("")
    with browsing(tmp_path) as browser:
        said = text_of(browser.get("/notes").text)
    assert "There are no notes here yet" in said
    assert "Write the first one" in said


def test_a_place_in_a_list_stands_in_an_address_as_it_is() -> None:
    when = datetime(2026, 2, 18, 9, 30, 0, 5000, tzinfo=UTC)
    assert place_in(place_after({"updated_at": when, "id": "pages/a~b"})) == (when, "pages/a~b")
    assert place_in("") is None


def test_words_are_marked_and_nothing_else_is_markup() -> None:
    assert marked("Ebb & <flood>, ebbing", {"ebb"}) == "<mark>Ebb</mark> &amp; &lt;flood&gt;, ebbing"
