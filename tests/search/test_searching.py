"""Searches by words, by meaning and by both, through the notebook's own face: what is found, quoted, explained, and
what answers where there is no meaning to be had."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import BackendDown, UsageError
from notebook_sync.operations.admin import SearchState
from notebook_sync.operations.registry import plain
from notebook_sync.search.searching import MODES
from notebook_sync.surfaces.cli.text.notebook import of_status
from tests.scripted_llm import Asked, Reply, ScriptedServer, embeddings, failure
from tests.waiting import eventually

NOTES = {
    "pages/ferry.md": "---\ntags: [boats]\ncreated_by: agent:scribe\n---\n# Crossing\n\nThe ferry to the island "
    "leaves at nine.\n\n"
    "## Winter\n\nOne sailing a day, when the harbour has no ice.\n\n### Dogs\n\nThey sail for half.\n",
    "pages/lamp.md": "---\nstatus: complete\ntags: [light]\n---\n# The lamp\n\nOdile cleans the lens with vinegar.\n\n"
    "## Winter\n\nThe keeper lights the lamp at four.\n",
    "research_notes/soup.md": "---\ntags: [kitchen]\n---\n# Soup\n\nBoil leeks and potatoes, then salt.\n",
}
OWNER, PILOT = Session.owner(), Session.task("pilot")
Opened = Callable[..., Notebook]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens a notebook with these notes and these lines below [search]."""
    with ExitStack() as stack:

        def made(notes: Mapping[str, str] = NOTES, search: str = "") -> Notebook:
            root = tmp_path / "notebook"
            for number, (path, text) in enumerate(notes.items()):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
                os.utime(root / path, (1_780_000_000 + number,) * 2)
            (root / "notebook.toml").write_text(f"[search]\n{search}\n")
            notebook = stack.enter_context(Notebook.open(root))
            notebook.sync()
            return notebook

        yield made


@pytest.fixture
def notebook(opened: Opened) -> Notebook:
    return opened()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.say(by_topic)
        yield server


def by_topic(asked: Asked) -> Reply:
    """Vectors of three dimensions: boats, light, and a little of everything."""
    topics = (("ferry", "sail", "vessel"), ("lamp", "light", "lantern"))
    return embeddings(
        [[*(sum(text.lower().count(word) for word in topic) for topic in topics), 0.1] for text in asked.body["input"]]
    )


def remote(server: ScriptedServer, timeout: float = 60.0) -> str:
    return f'embeddings = "openai:small"\nbase_url = "{server.url}"\ntimeout_seconds = {timeout}\n'


def search_state(notebook: Notebook) -> SearchState:
    return notebook.admin.status().search or pytest.fail("off")


def paths(rows: Any) -> list[str]:
    return [row["path"] for row in rows]


class TestMeaning:
    def test_what_says_the_same_in_other_words_is_found(self, notebook: Notebook) -> None:
        assert notebook.search("boat departure time", mode="keyword") == []
        for mode in ("", "hybrid", "semantic"):
            assert paths(notebook.search("boat departure time", mode=mode))[0] == "pages/ferry.md"

    def test_what_has_nothing_to_do_with_a_query_is_not_found(self, notebook: Notebook) -> None:
        assert notebook.search("corporate income taxes") == []
        assert notebook.search("corporate income taxes", mode="semantic")

    def test_the_mode_that_was_used_is_told(self, notebook: Notebook) -> None:
        for mode in MODES:
            told = notebook.search_report("ferry", mode=mode)
            assert (told.mode, told.degraded, told.behind) == (mode, "", 0)
        assert notebook.search_report("ferry").mode == "hybrid"

    def test_the_best_by_words_and_meaning_has_a_score_of_one(self, notebook: Notebook) -> None:
        found = notebook.search("ferry to the island")
        assert found[0]["path"] == "pages/ferry.md"
        assert found[0]["score"] == pytest.approx(1)
        assert all(0 <= row["score"] <= 1 for row in found)
        assert [row["score"] for row in found] == sorted((row["score"] for row in found), reverse=True)

    def test_fewer_are_the_first_of_more(self, notebook: Notebook) -> None:
        for mode in MODES:
            most = notebook.search("winter ferry lamp", 10, mode=mode, explain=True)
            for limit in range(4):
                assert notebook.search("winter ferry lamp", limit, mode=mode, explain=True) == most[:limit]

    def test_filters_hold_in_every_mode(self, notebook: Notebook) -> None:
        second = datetime.fromtimestamp(1_780_000_001, UTC)
        narrowed: tuple[tuple[dict[str, Any], set[str]], ...] = (
            ({"collection": "research_notes"}, {"research_notes/soup.md"}),
            ({"status": "complete"}, {"pages/lamp.md"}),
            ({"tags": ["boats", "kitchen"]}, {"pages/ferry.md", "research_notes/soup.md"}),
            ({"created_by": "agent:scribe"}, {"pages/ferry.md"}),
            ({"until": second}, {"pages/ferry.md"}),
            ({"since": second, "collection": "pages"}, {"pages/lamp.md"}),
            ({"tags": ["rope"]}, set()),
        )
        for mode in MODES:
            for filter, admitted in narrowed:
                found = set(paths(notebook.search("ferry sailing lamp vinegar soup leeks", 50, mode=mode, **filter)))
                assert found == admitted, (mode, filter)

    @pytest.mark.parametrize("named", ["since", "until"])
    @pytest.mark.parametrize("when", ["2030-01-01", 1_780_000_000, date(2030, 1, 1)])
    def test_a_time_is_no_text_and_no_number(self, notebook: Notebook, named: str, when: Any) -> None:
        for ask in (lambda **at: notebook.search("ferry", **at), notebook.list):
            with pytest.raises(UsageError, match=f"{named} is a datetime"):
                ask(**{named: when})

    def test_a_section_narrows_by_its_heading_or_its_anchor(self, notebook: Notebook) -> None:
        for section in ("Winter", "winter", "#winter"):
            words = notebook.search("ferry sailing lamp", mode="keyword", section=section, snippet=True)
            assert {row["path"]: row["snippet"]["section"] for row in words} == {
                "pages/ferry.md": "winter",
                "pages/lamp.md": "winter",
            }
            meant = notebook.search("when the lamp is lit", mode="semantic", section=section, explain=True)
            assert {row["explain"]["passage"]["section"] for row in meant} == {"winter"}
        assert paths(notebook.search("ferry sailing", mode="keyword", section="Winter")) == ["pages/ferry.md"]
        assert paths(notebook.search("dogs", mode="keyword", section="Winter")) == ["pages/ferry.md"]
        assert paths(notebook.search("dogs", section="Winter"))[0] == "pages/ferry.md"
        for mode in MODES:
            assert notebook.search("ferry", mode=mode, section="Summer") == []

    @pytest.mark.parametrize(
        "query", ["", " ", "\0", "\ud800", "'\"*()-^:~", "🛥️", "渡し船", "x" * 100_000, "ferry " * 5_000, "a-b:c*"]
    )
    def test_any_query_is_a_text(self, notebook: Notebook, query: str) -> None:
        for mode in MODES:
            found = notebook.search(query, mode=mode, section="\ud800\0", snippet=True, explain=True)
            assert found == []
            json.dumps(notebook.search(query, mode=mode, snippet=True, explain=True), default=str)

    def test_there_is_no_other_mode(self, notebook: Notebook) -> None:
        with pytest.raises(UsageError, match="there is no mode 'luck'; use one of keyword, semantic, hybrid"):
            notebook.search("ferry", mode="luck")


class TestQuoting:
    def test_nothing_is_quoted_that_was_not_asked_for(self, notebook: Notebook) -> None:
        for mode in MODES:
            for row in notebook.search("ferry", mode=mode):
                assert not row.keys() & {"content", "snippet", "explain", "sections"}

    def test_words_are_quoted_with_the_line_where_they_stand(self, notebook: Notebook) -> None:
        (row,) = notebook.search("ice", mode="keyword", snippet=True)
        quoted = "One sailing a day, when the harbour has no ice."
        assert row["snippet"] == {"text": quoted, "section": "winter", "line": 11}
        lines = (notebook.root / row["path"]).read_text().splitlines()
        assert lines[10] == quoted

    def test_the_nearest_passage_is_quoted(self, notebook: Notebook) -> None:
        row = notebook.search("boat departure time", mode="semantic", snippet=True, explain=True)[0]
        assert "ferry to the island" in row["snippet"]["text"]
        place = {"section": row["snippet"]["section"], "line": row["snippet"]["line"]}
        assert row["explain"]["passage"] == place == {"section": "crossing", "line": 7}

    def test_lines_are_those_of_the_file_where_there_is_no_heading(self, opened: Opened) -> None:
        notebook = opened({"pages/tide.md": "---\ntags: [tide]\n---\n\nThe ferry waits.\n\n" + "High at nine. " * 40})
        for mode in MODES:
            (row,) = notebook.search("ferry", mode=mode, snippet=True, explain=True)
            assert row["snippet"]["line"] == 5
            assert mode == "keyword" or row["explain"]["passage"] == {"section": "", "line": 5}

    def test_a_quotation_is_short_and_holds_what_was_looked_for(self, opened: Opened) -> None:
        filling = "All the boats lie in the harbour and wait for the tide to turn. " * 5
        notebook = opened({"pages/long.md": f"# Long\n\n{filling}\n{filling}The winch squeaks. {filling}\n{filling}\n"})
        for mode in MODES:
            (row,) = notebook.search("squeaking winch", mode=mode, snippet=True)
            assert "winch squeaks" in row["snippet"]["text"]
            assert len(row["snippet"]["text"]) <= 300
            lines = (notebook.root / "pages/long.md").read_text().splitlines()
            assert "winch squeaks" in lines[row["snippet"]["line"] - 1]

    @pytest.mark.parametrize("letter", ["x", "船", "é", "🛥"])
    def test_a_line_without_spaces_is_cut_all_the_same(self, opened: Opened, letter: str) -> None:
        notebook = opened({"pages/long.md": f"{letter * 5_000} ferry {letter * 5_000}\n"})
        (row,) = notebook.search("ferry", mode="keyword", snippet=True)
        assert len(row["snippet"]["text"]) <= 300

    def test_comments_are_not_quoted(self, opened: Opened) -> None:
        notebook = opened({"pages/rope.md": "# Rope\n\n<!-- rope of canary -->\n\nRope is dear.\n"})
        for mode in MODES:
            assert notebook.search("rope canary", mode=mode, snippet=True)[0]["snippet"]["text"] == "Rope is dear."

    def test_a_note_that_says_nothing_has_nothing_to_quote(self, opened: Opened) -> None:
        notebook = opened({"pages/empty.md": "---\ntitle: Rope\n---\n"})
        for mode in MODES:
            assert [row["snippet"] for row in notebook.search("rope", mode=mode, snippet=True)] == [None]

    def test_a_note_that_changed_is_quoted_as_it_is_now(self, opened: Opened, server: ScriptedServer) -> None:
        notebook = opened(search=remote(server))
        notebook.admin.embed()
        (notebook.root / "pages/ferry.md").write_text("Gone to the yard.\n\nIts paint was old. Ask Ines.\n")
        notebook.sync()
        told = notebook.search_report("vessel", mode="semantic", snippet=True)
        assert (told.results[0]["path"], told.behind) == ("pages/ferry.md", 1)
        assert told.results[0]["snippet"]["text"].startswith("Gone to the yard.")


class TestExplaining:
    def test_the_score_is_made_of_what_is_told(self, notebook: Notebook) -> None:
        rows = notebook.search("winter lamp", explain=True)
        ranks = []
        for row in rows:
            told = row["explain"]
            words, meaning = told["words"], told["meaning"]
            parts = [
                (1 - told["share"]) * words["part"] if words else 0,
                told["share"] * meaning["part"] if meaning else 0,
            ]
            assert told["score"] == row["score"] == pytest.approx(sum(parts))
            assert told["share"] == notebook.settings.search.meaning
            ranks += [words["rank"]] if words else []
        assert sorted(ranks) == [1, 2]
        assert (rows[0]["path"], rows[0]["explain"]["words"]["part"]) == ("pages/lamp.md", 1)

    def test_the_share_of_meaning_is_a_setting(self, opened: Opened) -> None:
        found = opened(search="meaning = 1.0").search("winter lamp", explain=True)
        assert [row["explain"]["share"] for row in found] == [1.0] * len(found)

    def test_of_one_kind_alone_the_score_is_its_own(self, notebook: Notebook) -> None:
        for row in notebook.search("winter lamp", mode="keyword", explain=True):
            assert row["score"] == row["explain"]["score"] == row["explain"]["words"]["score"]
            assert (row["explain"]["meaning"], row["explain"]["passage"], row["explain"]["share"]) == (None, None, 0)
        for row in notebook.search("winter lamp", mode="semantic", explain=True):
            assert row["score"] == row["explain"]["score"] == row["explain"]["meaning"]["similarity"]
            assert (row["explain"]["words"], row["explain"]["share"]) == (None, 1)


class TestBehind:
    def test_few_are_embedded_by_the_search_itself(self, notebook: Notebook) -> None:
        state = search_state(notebook)
        assert (state.embedded, state.behind) == (0, 3)
        notebook.search("ferry", mode="keyword")
        assert search_state(notebook).behind == 3
        assert notebook.search_report("ferry").behind == 0
        state = search_state(notebook)
        counts = {"embedded": 3, "behind": 0, "facts_behind": 0, "facts_refused": 0}
        assert plain(state) == {"model": "wordllama-256", **counts, "trouble": ""}

    def test_many_are_found_by_words_until_they_are_embedded(self, opened: Opened) -> None:
        notebook = opened({f"pages/{number}.md": f"# Rope {number}\n\nThe ferry leaves.\n" for number in range(201)})
        told = notebook.search_report("ferry", 300)
        assert (told.mode, told.behind, len(told.results)) == ("keyword", 201, 201)
        assert told.degraded == "201 notes have no vectors yet"
        told = notebook.search_report("departing vessels", mode="semantic")
        assert (told.mode, told.degraded, told.results) == ("keyword", "201 notes have no vectors yet", [])
        counted: list[tuple[int, int]] = []
        done = notebook.admin.embed(progress=lambda *count: counted.append(count), limit=1)
        assert (done.model, done.embedded, done.behind, done.failed) == ("wordllama-256", 1, 200, 0)
        assert counted[-1] == (1, 1)
        told = notebook.search_report("departing vessels", 300, mode="semantic")
        assert (told.mode, told.behind, len(told.results)) == ("semantic", 0, 201)

    def test_a_search_asks_no_server_to_embed(self, opened: Opened, server: ScriptedServer) -> None:
        notebook = opened(search=remote(server))
        told = notebook.search_report("vessel lamp")
        assert (told.mode, told.behind, paths(told.results)) == ("keyword", 3, ["pages/lamp.md"])
        assert [one.body["input"] for one in server.asked] == [["vessel lamp"]]
        assert notebook.admin.embed().embedded == 3
        assert paths(notebook.search("vessel"))[0] == "pages/ferry.md"

    def test_a_session_is_told_of_no_note_that_it_may_not_read(self, opened: Opened, server: ScriptedServer) -> None:
        private = {"channels/scribe/global/own.md": "---\ntype: note\n---\n# Ferry\n\nMine.\n"}
        notebook = opened({**NOTES, **private}, search=remote(server))
        assert notebook.search_report("ferry", session=OWNER).behind == 4
        assert notebook.search_report("ferry", session=PILOT).behind == 3
        assert notebook.search_report("ferry", session=Session.task("scribe")).behind == 4

    def test_another_model_starts_anew(self, opened: Opened, server: ScriptedServer) -> None:
        opened().search("vessel")
        notebook = opened(search=remote(server))
        told = notebook.search_report("vessel", mode="semantic")
        assert (told.mode, told.results, told.behind) == ("keyword", [], 3)
        assert told.degraded == "3 notes have no vectors yet"
        notebook.admin.embed()
        assert paths(notebook.search("vessel", mode="semantic"))[0] == "pages/ferry.md"

    def test_a_server_whose_model_has_other_dimensions_by_now_starts_anew(
        self, opened: Opened, server: ScriptedServer
    ) -> None:
        opened(search=remote(server)).admin.embed()
        server.say(lambda asked: embeddings([[0.1, 0.2, 0.3, 0.4]] * len(asked.body["input"])))
        told = opened(search=remote(server)).search_report("vessel", mode="semantic")
        assert (told.mode, told.degraded, told.behind) == ("keyword", "3 notes have no vectors yet", 3)
        server.say(by_topic)
        assert opened(search=remote(server)).admin.embed().embedded == 0
        server.say(lambda asked: embeddings([[0.1, 0.2, 0.3, 0.4]] * len(asked.body["input"])))
        notebook = opened(search=remote(server))
        assert notebook.admin.embed().embedded == 3
        told = notebook.search_report("vessel", mode="semantic")
        assert (told.mode, told.degraded, told.behind, len(told.results)) == ("semantic", "", 0, 3)
        server.say(by_topic)
        notebook = opened(search=remote(server))
        with closing(notebook.admin.embed_meanwhile() or pytest.fail("off")):
            eventually(lambda: len(server.asked[-1].body["input"]) > 1, "begun anew")
            eventually(lambda: len(notebook.search("vessel", mode="semantic")) == 3, "embedded anew")

    def test_facts_are_embedded_as_notes_are(self, opened: Opened, server: ScriptedServer) -> None:
        def behind(notebook: Notebook) -> int | None:
            return search_state(notebook).facts_behind

        notebook = opened({"facts/notes.md": "- The ferry leaves at nine\n- The lamp is lit at six\n"})
        assert behind(notebook) == 2
        assert (notebook.admin.embed(limit=1).facts, behind(notebook)) == (1, 1)
        assert (notebook.admin.embed().facts, notebook.admin.embed().facts, behind(notebook)) == (1, 0, 0)
        notebook = opened(search=remote(server))
        assert behind(notebook) == 2
        with closing(notebook.admin.embed_meanwhile() or pytest.fail("off")):
            eventually(lambda: behind(notebook) == 0, "embedded by the other model")

    def test_facts_that_the_server_refuses_are_told_as_such_and_not_as_behind(
        self, opened: Opened, server: ScriptedServer
    ) -> None:
        def but_of_lamps(asked: Asked) -> Reply:
            return failure(400) if any("lamp" in text for text in asked.body["input"]) else by_topic(asked)

        server.say(but_of_lamps)
        facts = "- The ferry leaves at nine\n- The lamp is lit at six\n"
        notebook = opened({"facts/notes.md": facts}, search=remote(server))
        assert notebook.admin.embed().facts == 1
        state = search_state(notebook)
        assert (state.facts_behind, state.facts_refused) == (0, 1)
        told = of_status(plain(notebook.admin.status()), "notebook-sync")
        assert told.count("1 fact refused and found by words alone") == 1
        asked = len(server.asked)
        assert (notebook.admin.embed().facts, len(server.asked)) == (0, asked)
        assert notebook.facts.search("lit at six", OWNER).results[0].content == "The lamp is lit at six"
        assert notebook.facts.verify("Is lit at six", OWNER).similarity > 0.5


class TestWithoutMeaning:
    def test_off_is_by_words(self, opened: Opened) -> None:
        notebook = opened(search='embeddings = "off"')
        told = notebook.search_report("ferry", snippet=True)
        assert (told.mode, told.degraded, told.behind, paths(told.results)) == ("keyword", "", 0, ["pages/ferry.md"])
        asked = notebook.search_report("ferry", mode="hybrid")
        assert (asked.mode, paths(asked.results)) == ("keyword", ["pages/ferry.md"])
        assert 'embeddings = "wordllama" below [search] in notebook.toml' in asked.degraded
        for call in (lambda: notebook.search("ferry", mode="semantic"), notebook.admin.embed):
            with pytest.raises(UsageError, match=r'say embeddings = "wordllama" below \[search\] in notebook.toml'):
                call()
        assert notebook.admin.status().search is None
        assert notebook.admin.embed_meanwhile() is None

    def test_a_query_that_means_nothing_is_by_words(self, notebook: Notebook) -> None:
        told = notebook.search_report("!!", mode="semantic")
        assert (told.mode, told.results) == ("keyword", [])
        assert told.degraded == "the model of embeddings knows no word of this query"

    @pytest.mark.parametrize("reply", [failure(500), Reply(b"no JSON"), Reply(hold=True), Reply(b"x" * 99, cut=True)])
    def test_a_dead_embedder_leaves_words_and_is_left_alone(
        self, opened: Opened, server: ScriptedServer, reply: Reply
    ) -> None:
        opened(search=remote(server)).admin.embed()
        server.say(reply)
        notebook = opened(search=remote(server, 0.3))
        asked: list[int] = []
        for mode in ("", "hybrid", "semantic"):
            told = notebook.search_report("ferry lantern", mode=mode, snippet=True, explain=True)
            assert (told.mode, paths(told.results)) == ("keyword", ["pages/ferry.md"])
            assert told.degraded.startswith(f"The embedding server at {server.url}")
            assert told.results[0]["explain"]["meaning"] is None
            asked.append(len(server.asked))
        assert asked == asked[:1] * 3

    def test_no_word_of_a_dead_embedder_is_lost(self, opened: Opened, server: ScriptedServer) -> None:
        notebook = opened(search=remote(server))
        server.say(failure(503))
        with pytest.raises(BackendDown):
            notebook.admin.embed()
        state = search_state(notebook)
        assert (state.embedded, state.behind) == (0, 3)
        assert state.trouble.startswith("The embedding server at")
        server.say(by_topic)
        notebook.admin.embed()
        assert search_state(notebook).trouble == ""

    def test_dead_vectors_leave_words(self, notebook: Notebook) -> None:
        notebook.search("ferry")
        with closing(sqlite3.connect(notebook.folder / "mirror.db", isolation_level=None)) as other:
            other.execute("ALTER TABLE vector RENAME TO lost")
        for mode in ("hybrid", "semantic"):
            told = notebook.search_report("ferry", mode=mode)
            assert (told.mode, paths(told.results)) == ("keyword", ["pages/ferry.md"])
            assert "SQLite" in told.degraded
