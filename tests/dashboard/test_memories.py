"""Memories in a browser: their list, their graph, what they lack, and the figures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.mirror.syntheses import Rested, Synthesis, Timing
from notebook_sync.operations.registry import plain
from notebook_sync.settings import Tier2Settings
from notebook_sync.surfaces.dashboard.memory import memories_page
from notebook_sync.surfaces.dashboard.memory.figures_page import budget_of, groups_of, reasoner_of
from tests.dashboard.browsing import Browsing, browsing, text_of
from tests.scripted_llm import ScriptedServer, chat
from tests.search.hashing import Hashing

OWNER = Session.owner()
WHEN = "agent: scribe\ncreated_at: 2026-02-16T09:00:00Z\n"
COINS = "Nobody has the right coins at the gate"
CARDS = "Take cards at the gate from spring on"
TEXTS = {
    "problem/coins": f"id: coins\ntitle: {COINS}\nkind: problem\ndomain: tickets\ntags: [gate]\n{WHEN}",
    "decision/cards": f"id: cards\ntitle: {CARDS}\nkind: decision\ndomain: tickets\ntags: [gate]\n{WHEN}"
    "relations: [{type: solves, to: coins, confidence: 0.9}]\n",
    "insight/mast": f"id: mast\ntitle: The mast <b>hums</b>\nkind: insight\ndomain: radio\nneeds_review: true\n{WHEN}",
    "insight/heard": f"id: heard\ntitle: The slip is closed\nkind: insight\nprovenance: external\n{WHEN}",
}


PARTS = "## Context\nFog.\n## Reasoning\nIt is near.\n## Outcome\nIt holds.\n"


def remember(root: Path, texts: dict[str, str] = TEXTS) -> None:
    for name, front in texts.items():
        file = root / f"memories/{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\n{front}---\nAs Odile says at the ferry gate.\n{PARTS}")
    with Notebook.open(root) as notebook:
        notebook.sync()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browsing]:
    """A notebook whose memories no test changes."""
    root = tmp_path_factory.mktemp("gate") / "notebook"
    Notebook.init(root, git=False)
    remember(root)
    with browsing(root) as found:
        yield found


def titles_in(page: str) -> list[str]:
    return [unescape(title) for title in re.findall(r"<strong>(.*?)</strong>", page.partition('id="memories"')[2])]


def picture_of(browser: Browsing, page: str) -> str:
    source = re.search(r'<img src="([^"]+)"', page)
    assert source is not None
    return browser.get(source[1]).text


def test_memories_are_listed_with_what_they_are(shared: Browsing) -> None:
    page = shared.get("/memory/memories").text
    assert set(titles_in(page)) == {COINS, CARDS, "The mast <b>hums</b>", "The slip is closed"}
    assert "<b>hums" not in page
    assert "1 to 4 of 4" in text_of(page)
    for said in ("The mast <b>hums</b> insight to review", "The slip is closed insight from outside", "1 link of"):
        assert said in text_of(page)
    assert 'href="/notes/memories/problem/coins.md"' in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kind=problem", {COINS}),
        ("domain=radio", {"The mast <b>hums</b>"}),
        ("tags=gate", {COINS, CARDS}),
        ("tags=%23gate,nothing&kind=decision", {CARDS}),
        ("review=yes", {"The mast <b>hums</b>"}),
        ("review=no&domain=tickets", {COINS, CARDS}),
        ("domain=nowhere", set()),
    ],
)
def test_the_list_is_narrowed(shared: Browsing, query: str, found: set[str]) -> None:
    page = shared.get(f"/memory/memories?{query}").text
    assert set(titles_in(page)) == found
    assert ("No memory is like that" in text_of(page)) == (not found)


def test_a_search_finds_and_uses_nothing(shared: Browsing) -> None:
    page = shared.get("/memory/memories?query=coins+at+the+gate").text
    assert titles_in(page)[0] == COINS
    assert "alike" in text_of(page)
    with Notebook.open(shared.root) as notebook:
        assert {row.accesses for row in notebook.memories.list(OWNER).results} == {0}


def test_many_memories_come_a_page_at_a_time(shared: Browsing) -> None:
    with patch.object(memories_page, "PAGE", 3):
        first = shared.get("/memory/memories").text
        more = re.search(r'rel="next" href="([^"]+)"', first)
        assert more is not None
        second = shared.get(unescape(more[1])).text
    assert "there are more" in text_of(first)
    assert "4 to 4 of 4" in text_of(second)
    assert len({*titles_in(first), *titles_in(second)}) == 4
    assert "There are no more" in text_of(shared.get("/memory/memories?page=9").text)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("memories?kind=dream", 422),
        ("memories?query=gate&review=yes", 422),
        ("memories?page=0", 422),
        ("memories?query=%00%ED%A0%80%F0%9F%A6%AD", 200),
        ("memories?tags=%2C%2C%23", 200),
        ("memories?domain=%3Cscript%3Ex", 200),
        ("graph?kind=dream", 422),
        ("graph?limit=100000", 422),
        ("graph?around=nowhere", 404),
        ("graph?around=%ED%A0%80", 404),
        ("graph?domain=%3Cscript%3Ex", 200),
    ],
)
def test_anything_may_be_asked_for(shared: Browsing, path: str, status: int) -> None:
    page = shared.get(f"/memory/{path}")
    assert page.status_code == status
    assert ('role="alert"' in page.text) == (status != 200)
    assert "<script>x" not in page.text


def test_the_graph_is_a_picture_that_is_told_in_words_too(shared: Browsing) -> None:
    page = shared.get("/memory/graph").text
    assert f"{CARDS} solves {COINS}" in text_of(page)
    assert "<b>" not in page
    picture = picture_of(shared, page)
    assert "<svg" in picture
    assert CARDS in picture
    assert COINS not in picture_of(shared, shared.get("/memory/graph?domain=radio").text)
    assert "The mast" not in picture_of(shared, shared.get("/memory/graph?around=cards").text)


def test_what_memories_lack_is_listed_with_what_to_do(shared: Browsing) -> None:
    said = text_of(shared.get("/memory/review").text)
    assert "memories/insight/mast.md , line 6" in said
    assert "it is marked for review" in said
    assert "Links to nowhere 0 of 1" in said
    assert "Next: see that it is right, then take out needs_review" in said
    assert "Nothing of it can be proved" in text_of(shared.get("/memory/review/mend").text)


def test_what_a_command_mends_a_button_of_the_review_mends(root: Path) -> None:
    remember(root, {"insight/lamp": "id: lamp\ntitle: The lamp\nkind: insight\nagent: scribe\n"})
    with browsing(root) as browser:
        page = browser.get("/memory/review").text
    assert "it does not say when it was made Next: see above what can be mended by itself" in text_of(page)
    assert "--fix" not in page
    assert 'href="/memory/review/mend"' in page


def test_what_can_be_proved_is_shown_before_it_is_written(root: Path) -> None:
    remember(
        root,
        {
            "insight/lamp": "id: lamp\ntitle: The lamp\nkind: insight\nagent: unknown\ntags: ['agent:scribe']\n"
            + WHEN[14:]
        },
    )
    file = root / "memories/insight/lamp.md"
    before = file.read_text()
    with browsing(root) as browser:
        page = text_of(browser.get("/memory/review/mend").text)
        assert "memories/insight/lamp.md agent unknown scribe" in page
        assert file.read_text() == before
        done = browser.follow(browser.post("/memory/review/mend"))
    assert "Mended, as far as it can be proved" in text_of(done.text)
    assert "agent: scribe" in file.read_text()


def test_figures_tell_of_memories_and_the_days_budget(shared: Browsing) -> None:
    said = text_of(shared.get("/memory/figures").text)
    assert "0 of 50 that the day has" in said
    assert "Nobody is asked: syntheses are off. Next: set enabled = true" in said
    assert "Structured of a kind, with context, reasoning and outcome, and not waiting for a review 75.0%" in said
    assert "Links that say why all but those that only say similar 1" in said


def test_figures_follow_what_was_done(root: Path) -> None:
    (root / "notebook.toml").write_text("[tier2]\nenabled = true\ndaily_limit = 2\n")
    remember(root)
    with browsing(root) as browser:
        notebook: Notebook = browser.served.app.state.notebook
        told = "The <b>ferry</b> waits for the coins."
        coins = notebook.file("memories/problem/coins.md", OWNER)
        rests_on = (Rested("coins", coins.path, coins.digest),)
        now = datetime.now(UTC)
        for key, rests in (("k1", rests_on), ("k2", (Rested("coins", coins.path, "another"),))):
            kept = Synthesis(key, key, "s", key, told, "llm", "c", now, rests)
            notebook.syntheses.put(kept, entries=9, since=now - timedelta(days=1))
        notebook.syntheses.timed("compile", Timing("compiled", 1234.0))
        notebook.syntheses.timed("synthesis", Timing("hit", 4.2))
        notebook.syntheses.timed("synthesis", Timing("answered", 52.0))
        page = browser.follow(browser.post("/memory/figures/scores"))
        scored = text_of(page.text)
        assert all(row.score != 0.5 for row in notebook.memories.list(OWNER).results)
    assert "All memories are scored anew" in scored
    assert "<b>" not in page.text
    assert 'href="/notes/memories/problem/coins.md"' in page.text
    for said in (told, "holds from llm", "is not given again from llm", "2 of at most 100"):
        assert said in scored
    for said in ("the model of [llm] is asked", "1.2 s", "4.2 ms", "52 ms", "Share of kept answers 50.0%"):
        assert said in scored


@pytest.mark.parametrize(
    ("spent", "limit", "tone"), [(0, 50, "good"), (40, 50, "warn"), (50, 50, "bad"), (0, 0, "bad")]
)
def test_a_budget_says_when_it_is_spent(spent: int, limit: int, tone: str) -> None:
    found = budget_of({"today": spent, "daily_limit": limit})
    assert (found.tone, 0 <= found.share <= 100) == (tone, True)


def test_who_is_asked_is_named() -> None:
    assert reasoner_of(Tier2Settings()) == ""
    assert reasoner_of(Tier2Settings(enabled=True)) == "the model of [llm]"
    assert "'seer'" in reasoner_of(Tier2Settings(enabled=True, command=("seer", "--quiet")))


def test_figures_of_nothing_are_dashes(root: Path) -> None:
    with Notebook.open(root) as notebook:
        groups = groups_of(plain(notebook.context.figures(OWNER)))
    assert all(group.lacks for group in groups)
    values = {name: value for group in groups for name, value, _ in group.rows}
    assert (values["Memories"], values["Structured"], values["Score"], values["Usually within"]) == ("0", "–", "–", "–")


def test_pages_of_nothing_say_what_to_do_first(browser: Browsing) -> None:
    for path in ("memories", "review"):
        assert "No memories yet. Next:" in text_of(browser.get(f"/memory/{path}").text)
    assert "There are no memories yet" in picture_of(browser, browser.get("/memory/graph").text)


def test_a_dead_store_costs_its_part_of_each_page(root: Path) -> None:
    (root / "notebook.toml").write_text('[mirror]\nurl = "mongodb://127.0.0.1:1"\ntimeout_seconds = 0.1\n')
    with browsing(root) as browser:
        for path in ("memories", "review", "graph", "figures", "facts/fading", "facts/alike"):
            page = browser.get(f"/memory/{path}")
            assert (path, page.status_code) == (path, 200)
            assert "cannot be shown" in text_of(page.text)
            assert "Next:" in text_of(page.text)
            assert 'aria-label="Parts of the memory"' in page.text


def test_two_memories_are_linked_by_hand(root: Path) -> None:
    remember(root)
    fields = {"from": "mast", "type": "causes", "to": "memories/problem/coins.md", "why": "It <b>hums</b>"}
    with browsing(root) as browser:
        assert 'name="from" value="mast"' in browser.get("/memory/graph?around=mast").text
        wrong = browser.post("/memory/graph/by-hand", {**fields, "to": "nowhere"})
        assert (wrong.status_code, 'role="alert"' in wrong.text) == (404, True)
        assert 'value="It &lt;b&gt;hums&lt;/b&gt;"' in wrong.text
        assert browser.post("/memory/graph/by-hand", {**fields, "type": "likes"}).status_code == 422
        assert browser.post("/memory/graph/by-hand").status_code in (404, 422)
        assert "relations" not in (root / "memories/insight/mast.md").read_text()
        done = browser.follow(browser.post("/memory/graph/by-hand", fields))
        assert f"The mast <b>hums</b> causes {COINS}" in text_of(done.text)
    assert "to: coins" in (root / "memories/insight/mast.md").read_text()


# Links that a language model suggests.


@pytest.fixture
def model(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A language model, and two memories that are alike."""
    monkeypatch.setattr(Notebook, "embedder", Hashing())
    with ScriptedServer() as server:
        (root / "notebook.toml").write_text(
            f'[llm]\nmodel = "small"\nbase_url = "{server.url}"\ntimeout_seconds = 5.0\n'
        )
        remember(
            root, {f"insight/{name}": f"id: {name}\ntitle: Fog at the {name}\nkind: insight\n{WHEN}" for name in "ab"}
        )
        yield server


def suggestion(**more: Any) -> str:
    return json.dumps({"links": [{"pair": 1, "type": "causes", "confidence": 0.8, "reasoning": "<i>so</i>", **more}]})


def test_a_suggestion_is_written_only_if_it_is_taken(root: Path, model: ScriptedServer) -> None:
    model.say(chat(suggestion()))
    with browsing(root) as browser:
        assert "Ask for suggestions" in browser.get("/memory/graph").text
        page = browser.post("/memory/graph/suggest")
        assert "Fog at the a causes Fog at the b" in text_of(page.text)
        assert "<i>" not in page.text
        sent = re.search(r'name="link-1" value="([^"]*)"', page.text)
        assert sent is not None
        fields = {"link-1": unescape(sent[1])}
        none = browser.post("/memory/graph/link", fields)
        assert (none.status_code, "suggestion was taken" in text_of(none.text)) == (422, True)
        assert "relations" not in (root / "memories/insight/a.md").read_text()
        done = browser.follow(browser.post("/memory/graph/link", {**fields, "take-1": "1"}))
    assert "Written into the memories" in text_of(done.text)
    assert "to: b" in (root / "memories/insight/a.md").read_text()


@pytest.mark.parametrize("sent", ["", "{", "[" * 5000, '{"from": "mast", "to": "x", "type": "causes"}', '"x"', "7"])
def test_a_link_that_nobody_suggested_is_refused(shared: Browsing, sent: str) -> None:
    page = shared.post("/memory/graph/link", {"link-1": sent, "take-1": "1"})
    assert page.status_code == 422
    assert 'role="alert"' in page.text


def test_without_a_model_the_page_says_what_is_missing(browser: Browsing) -> None:
    graph = browser.get("/memory/graph").text
    assert "No language model is set" in text_of(graph)
    assert "Ask for suggestions" not in graph
    page = browser.post("/memory/graph/suggest")
    assert "tell the owner" not in page.text
    assert "Next: change notebook.toml, start notebook-sync serve again" in text_of(page.text)
    assert page.status_code == 422
    assert "Suggestions cannot be shown" in text_of(page.text)
    assert "Next:" in text_of(page.text)


def test_a_model_that_is_away_is_told(root: Path, model: ScriptedServer) -> None:
    with browsing(root) as browser:
        page = browser.post("/memory/graph/suggest")
    assert page.status_code == 503
    assert "Next:" in text_of(page.text)


# What time does to facts, and facts that are said twice.


def facts(root: Path, text: str) -> None:
    (root / "facts/notes.md").write_text(text)
    with Notebook.open(root) as notebook:
        notebook.sync()


def test_what_faded_is_shown_before_it_is_archived(root: Path) -> None:
    facts(root, "## Harbour\n\n- The crane is out of use <!-- importance: 0.01 -->\n- The ferry leaves at eight\n")
    with browsing(root) as browser:
        page = text_of(browser.get("/memory/facts/fading").text)
        assert "These go to the archive 1" in page
        assert "The crane is out of use" in page
        assert "The ferry" not in page
        assert "crane" in (root / "facts/notes.md").read_text()
        done = text_of(browser.follow(browser.post("/memory/facts/fading")).text)
    assert "Done." in done
    assert "Nothing is due" in done
    assert "crane" in (root / "facts/archive.md").read_text()


def test_facts_that_are_said_twice_are_merged(root: Path) -> None:
    facts(root, "## Harbour\n\n- The lamp burns whale oil\n- The harbour lamp burns whale oil\n")
    with browsing(root) as browser:
        page = text_of(browser.get("/memory/facts/alike").text)
        assert "1 pair." in page
        assert (root / "facts/notes.md").read_text().count("lamp") == 2
        done = text_of(browser.follow(browser.post("/memory/facts/alike")).text)
    assert "Merged." in done
    assert "No two facts were found that say the same" in done
    assert (root / "facts/notes.md").read_text().count("lamp") == 1
    assert "lamp" in (root / "facts/archive.md").read_text()
