"""The commands of facts: what they take, the shapes of their JSON, exit codes, what people read."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.surfaces.cli.main import run
from notebook_sync.surfaces.cli.text.facts import of_facts
from notebook_sync.surfaces.cli.text.rows import columns
from tests.scripted_llm import ScriptedServer, chat

Answer = Callable[..., Any]
Told = Callable[..., tuple[int, str, str]]

NOTES = "## Important Facts\n\n- The ferry leaves at eight\n- The pier was painted in May <!-- importance: 0.9 -->\n"
ROW = {
    *("note_id", "content", "section", "path", "line", "importance", "base", "access_count"),
    *("created_at", "last_accessed", "pinned", "core"),
}
OWNER = ("--session", "owner")


@pytest.fixture
def root(root: Path) -> Path:
    (root / "facts").mkdir(exist_ok=True)
    (root / "facts/notes.md").write_text(NOTES)
    return root


@pytest.fixture
def told(told: Told) -> Told:
    """Runs a command of the group."""
    return partial(told, "fact")


@pytest.fixture
def model(root: Path) -> Iterator[ScriptedServer]:
    """A language model that the notebook asks."""
    with ScriptedServer() as server:
        (root / "notebook.toml").write_text(f'[llm]\nbase_url = "{server.url}"\nmodel = "small"\n')
        yield server


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return [row["content"] for row in rows]


def test_a_move_names_the_way_back_and_what_moved_nothing_names_none(root: Path, told: Told) -> None:
    for command in ("archive", "promote"):
        _, printed, _ = told(command, "The ferry leaves at eight", *OWNER)
        path = {"archive": "archive", "promote": "core"}[command]
        *_, undo = printed.splitlines()
        assert undo.startswith("undo        notebook-sync")
        assert undo.endswith(f" undo facts/{path}.md --session owner")
        assert "undo" not in told(command, "The ferry leaves at eight", *OWNER)[1]
        assert run(["-C", str(root), "undo", f"facts/{path}.md", *OWNER]) == 0
        assert (root / "facts/notes.md").read_text() == NOTES


def test_the_first_fact_of_a_notebook_is_taken_back_by_taking_its_file_away(root: Path, told: Told) -> None:
    (root / "facts/notes.md").unlink()
    assert told("add", "Odile runs the ferry")[1].splitlines()[-1].endswith(" delete facts/notes.md")
    assert told("add", "Bosun barks")[1].splitlines()[-1].endswith(" undo facts/notes.md")


def test_the_way_back_from_a_move_that_makes_a_file_keeps_the_fact(
    root: Path, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    told("archive", "The ferry leaves at eight", *OWNER)
    for _ in ("away", "there again"):
        assert run(["-C", str(root), "undo", "facts/archive.md", *OWNER]) == 0
    assert capsys.readouterr().out.endswith(" undo facts/archive.md --session owner\n")
    (root / "facts/notes.md").unlink()
    *_, back = told("add", "The ferry leaves at eight", *OWNER)[1].splitlines()
    assert back.endswith(" undo facts/notes.md --session owner")
    assert run(shlex.split(back)[2:]) == 0
    assert not (root / "facts/notes.md").exists()
    assert "The ferry leaves at eight" in (root / "facts/archive.md").read_text()


def test_a_move_names_no_undo_where_nothing_is_kept_to_undo_with(root: Path, told: Told) -> None:
    (root / ".notebook/past").write_text("no folder")
    for call in (["add", "Odile runs the ferry"], ["archive", "The ferry leaves at eight"]):
        _, printed, _ = told(*call)
        assert "no copy of what was there before is kept" in printed
        assert "undo  " not in printed


def test_bullets_are_listed_the_most_important_first(answer: Answer, told: Told) -> None:
    rows = answer("list")
    assert texts(rows) == ["The pier was painted in May", "The ferry leaves at eight"]
    assert all(row.keys() == ROW for row in rows)
    assert (rows[0]["importance"], rows[0]["pinned"], rows[0]["line"]) == (pytest.approx(0.9, abs=0.01), True, 4)
    code, printed, complaint = told("list")
    assert (code, complaint) == (0, "")
    first, second = printed.splitlines()
    assert first.startswith("0.90 ▮▮▮▮▮  ")
    assert first.endswith("  Important Facts  The pier was painted in May")
    assert second.startswith("0.50 ▮▮▮▯▯  ")
    assert f"  {rows[1]['note_id'][:8]}  " in second


def test_lists_are_narrowed(answer: Answer, told: Told) -> None:
    answer("add", "Odile runs the ferry", "--section", "People & Entities")
    assert texts(answer("list", "--section", "People & Entities")) == ["Odile runs the ferry"]
    assert len(answer("list", "--limit", "2")) == 2
    assert answer("list", "--scope", "archive") == answer("list", "--stale") == []
    assert len(answer("list", "--scope", "all")) == 3
    assert told("list", "--scope", "core", "--stale", *OWNER) == (
        *(0, ""),
        "notebook-sync: no facts with this --stale and --scope\n",
    )


def test_a_notebook_without_facts_says_how_one_is_made(told: Told, root: Path) -> None:
    (root / "facts/notes.md").unlink()
    how = f"no facts; one is written with: notebook-sync -C {root} fact add TEXT"
    assert told("list") == (0, "", f"notebook-sync: {how}\n")
    code, printed, complaint = told("search", "ferry")
    assert (code, printed) == (0, "")
    assert "no fact comes near" in complaint


def test_what_is_added_is_a_bullet_and_twice_is_once(answer: Answer, told: Told, root: Path) -> None:
    added = answer("add", "Odile runs the ferry", "--section", "People & Entities", "--importance", "high")
    assert added.keys() >= {"note_id", "section", "importance", "action", "content", "path"}
    assert (added["action"], added["importance"]) == ("added", 0.7)
    assert "## People & Entities\n\n- Odile runs the ferry" in (root / "facts/notes.md").read_text()
    again = answer("add", "Odile runs the ferry")
    assert (again["action"], again["note_id"], again["section"]) == (
        "reinforced",
        added["note_id"],
        "People & Entities",
    )
    assert (root / "facts/notes.md").read_text().count("Odile") == 1
    code, printed, _ = told("add", "Ines keeps the key")
    assert code == 0
    assert printed.startswith("added to facts/notes.md, Important Facts\nfact        Ines keeps the key\nid          ")
    assert "\nimportance  0.50 ▮▮▮▯▯\nundo        notebook-sync -C " in printed
    assert told("add", "Ines keeps the key")[1].startswith("strengthened, in facts/notes.md, Important Facts\n")


def test_a_fact_comes_from_an_argument_a_file_or_standard_input(
    answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fact.txt").write_text("From a file\nof two lines\n")
    assert answer("add", "--content-file", str(tmp_path / "fact.txt"))["content"] == "From a file\nof two lines"
    monkeypatch.setattr("sys.stdin", io.StringIO("From standard input\n"))
    assert answer("add", "-")["content"] == "From standard input"
    assert {"From a file\nof two lines", "From standard input"} < set(texts(answer("list")))


def test_facts_are_found_and_verified(answer: Answer, told: Told) -> None:
    (row,) = answer("search", "when does the ferry leave", "--limit", "1")
    assert row.keys() == ROW | {"similarity"}
    assert row["content"] == "The ferry leaves at eight"
    assert told("search", "when does the ferry leave", "--limit", "1")[1].endswith(
        f"%  {row['note_id'][:8]}  Important Facts  The ferry leaves at eight\n"
    )
    found = answer("verify", "The ferry leaves at eight")
    assert found.keys() == {"verdict", "similarity", "matches", "degraded"}
    assert (found["verdict"], found["matches"][0]["content"]) == ("CONFIRMED", "The ferry leaves at eight")
    assert answer("verify", "The ferry leaves at nine")["verdict"] == "RELATED"
    assert told("verify", "The ferry leaves at eight")[1].startswith("CONFIRMED, 100% alike\n100%  ")
    assert told("verify", "Squid soup tastes of copper wire")[1] == "NEW\n"


def test_where_words_alone_decide_a_line_says_why(told: Told, root: Path) -> None:
    with ScriptedServer() as server:
        (root / "notebook.toml").write_text(f'[search]\nembeddings = "openai:small"\nbase_url = "{server.url}"\n')
        for command in ("search", "verify"):
            assert f"found by words alone: The embedding server at {server.url}" in told(command, "The ferry leaves")[2]
        assert "by words alone: The embedding server at" in told("add", "Ines keeps the key")[1]


def test_a_fact_is_strengthened_put_aside_and_brought_back(answer: Answer, told: Told, root: Path) -> None:
    row = answer("list")[1]
    stronger = answer("reinforce", row["note_id"])
    assert stronger.keys() == ROW | {"action", "warnings"}
    assert (stronger["action"], stronger["access_count"]) == ("reinforced", row["access_count"] + 1)
    assert stronger["importance"] > row["importance"]
    aside = answer("archive", row["note_id"][:8], "--reason", "the timetable changed")
    assert (aside["action"], aside["path"]) == ("archived", "facts/archive.md")
    assert "reason: the timetable changed" in (root / "facts/archive.md").read_text()
    assert texts(answer("list")) == ["The pier was painted in May"]
    assert texts(answer("list", "--scope", "archive")) == ["The ferry leaves at eight"]
    code, printed, _ = told("restore", "The ferry leaves at eight")
    assert (code, printed.splitlines()[:2]) == (
        0,
        ["brought back to facts/notes.md, Important Facts", "fact        The ferry leaves at eight"],
    )
    assert "ferry" not in (root / "facts/archive.md").read_text()
    assert answer("list", "--scope", "all")[1]["access_count"] >= stronger["access_count"]


def test_the_owner_promotes_and_an_agent_proposes(answer: Answer, told: Told, root: Path) -> None:
    proposed = answer("promote", "The ferry leaves at eight", "--session", "task", "--agent", "scribe")
    assert proposed["action"] == "proposed"
    assert not (root / "facts/core.md").exists()
    promoted = answer("promote", "The ferry leaves at eight", "--section", "Projects", *OWNER)
    assert (promoted["action"], promoted["path"], promoted["section"], promoted["core"]) == (
        *("promoted", "facts/core.md", "Projects"),
        True,
    )
    assert "- The ferry leaves at eight" in (root / "facts/core.md").read_text()
    code, printed, complaint = told("list", "--scope", "core", "--session", "external")
    assert (code, printed) == (3, "")
    assert complaint


def test_decay_moves_what_is_spent_once(answer: Answer, told: Told, root: Path) -> None:
    (root / "facts/notes.md").write_text(NOTES + "- The buoy was red once <!-- importance: 0.01 -->\n")
    would = answer("decay", "--dry-run", *OWNER)
    assert would.keys() == {"archived", "promoted", "proposed"}
    assert texts(would["archived"]) == ["The buoy was red once"]
    assert told("decay", "--dry-run", *OWNER)[1].startswith("would be archived  ")
    assert not (root / "facts/archive.md").exists()
    assert texts(answer("decay", *OWNER)["archived"]) == ["The buoy was red once"]
    assert "- The buoy was red once" in (root / "facts/archive.md").read_text()
    assert answer("decay", *OWNER) == {"archived": [], "promoted": [], "proposed": []}
    assert told("decay", *OWNER)[1] == "nothing has faded, nothing has proved itself: all stays as it is\n"


def test_facts_that_say_the_same_are_shown_and_merged(answer: Answer, told: Told, root: Path) -> None:
    with (root / "facts/notes.md").open("a") as notes:
        notes.write("- the ferry leaves at eight.\n")
    found = answer("dedupe", *OWNER)
    (pair,) = found["pairs"]
    assert pair.keys() == {"keep", "drop", "similarity", "how"}
    assert found["merged"] == 0
    code, printed, complaint = told("dedupe", *OWNER)
    assert (code, complaint) == (0, "notebook-sync: nothing is changed; --apply merges them\n")
    assert [line.split()[0] for line in printed.splitlines()] == ["keep", "drop"]
    assert answer("dedupe", "--apply", *OWNER)["merged"] == 1
    assert told("dedupe", *OWNER) == (0, "", "notebook-sync: no two facts say the same\n")


CONVERSATION = [
    {"role": "user", "content": "The ferry leaves at eight no longer holds; Ines keeps the key now."},
    {"role": "assistant", "content": "Noted."},
]
DRAWN = {
    "additions": [{"section": "People & Entities", "item": "Ines keeps the key", "importance": 0.6}],
    "removals": ["The ferry leaves at eight"],
    "summary": "Who has the key.",
}


def test_facts_are_drawn_from_a_conversation(
    answer: Answer, told: Told, root: Path, tmp_path: Path, model: ScriptedServer
) -> None:
    (tmp_path / "talk.json").write_text("\ufeff" + json.dumps(CONVERSATION))
    model.say(chat(json.dumps(DRAWN)))
    before = (root / "facts/notes.md").read_bytes()
    would = answer("extract", str(tmp_path / "talk.json"), "--dry-run")
    assert would.keys() >= {"additions", "removals", "skipped", "summary", "error", "applied"}
    assert (would["applied"], would["error"]) == (False, "")
    assert (root / "facts/notes.md").read_bytes() == before
    code, printed, complaint = told("extract", str(tmp_path / "talk.json"))
    assert (code, complaint) == (0, "")
    lines = printed.splitlines()
    assert lines[0] == "Who has the key."
    assert lines[1].split(maxsplit=1)[0] == "added"
    assert lines[2].endswith("The ferry leaves at eight")
    assert texts(answer("list", "--section", "People & Entities")) == ["Ines keeps the key"]
    assert texts(answer("list", "--scope", "archive")) == ["The ferry leaves at eight"]


def test_an_answer_that_cannot_be_used_ends_with_1_and_changes_nothing(
    told: Told, root: Path, monkeypatch: pytest.MonkeyPatch, model: ScriptedServer
) -> None:
    model.say(chat("I would rather not."))
    before = (root / "facts/notes.md").read_bytes()
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(CONVERSATION)))
    code, printed, complaint = told("extract", "-", "--json")
    assert (code, json.loads(printed)["applied"]) == (1, False)
    assert json.loads(printed)["error"] in complaint
    assert (root / "facts/notes.md").read_bytes() == before


def test_a_model_that_is_away_ends_with_4(told: Told, root: Path, tmp_path: Path) -> None:
    (root / "notebook.toml").write_text(
        '[llm]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "x"\ntimeout_seconds = 0.2\n'
    )
    (tmp_path / "talk.json").write_text(json.dumps(CONVERSATION))
    code, printed, complaint = told("extract", str(tmp_path / "talk.json"))
    assert (code, printed) == (4, "")
    assert "does not answer" in complaint


def test_a_picture_is_written_where_it_is_asked_for(answer: Answer, told: Told, tmp_path: Path) -> None:
    picture = tmp_path / "facts.svg"
    drawn = answer("plot", str(picture))
    assert drawn == {"path": str(picture), "bytes": picture.stat().st_size}
    assert picture.read_text(encoding="utf-8").startswith("<svg ")
    assert told("plot", str(picture), "--days", "7", "--limit", "1")[1].startswith(f"{picture} is drawn: ")
    picture.write_text("<svg ><!-- by Odile --></svg>\n")
    code, _, complaint = told("plot", str(picture))
    assert (code, "name another file" in complaint) == (2, True)
    assert picture.read_text() == "<svg ><!-- by Odile --></svg>\n"
    code, printed, _ = told("plot", "-")
    assert (code, printed[:5], printed.rstrip()[-6:]) == (0, "<svg ", "</svg>")


@pytest.mark.parametrize(
    ("call", "code", "told_what"),
    [
        (["add"], 2, "notebook fact add 'The ferry leaves at eight'"),
        (["add", " "], 2, "a fact needs a text"),
        (["add", "x", "--content-file", "y"], 2, "give the fact once"),
        (["add", "--content-file", "nowhere"], 2, "--content-file nowhere cannot be read"),
        (["add", "x", "--importance", "grave"], 2, "importance is core, high, medium, low or a number from 0 to 1"),
        (["add", "a <!-- b"], 2, "comment"),
        (["add", "\udcff"], 2, "cannot be"),
        (["add", "x", "--session", "external"], 3, "only available in owner conversations"),
        (["list", "--scope", "attic"], 2, "facts have no scope 'attic'; use one of notes, core, archive, all"),
        (["search", " "], 2, "say what to look for"),
        (["verify", ""], 2, "say what is to be verified"),
        (["reinforce", "Nobody ever said a thing like this"], 1, "there is no fact"),
        (["restore", "The ferry leaves at eight"], 2, "not archived"),
        (["archive", "0123456789abcdef"], 1, "there is no fact '0123456789abcdef'"),
        (["extract", "nowhere.json"], 2, "nowhere.json cannot be read"),
        (["plot", "facts/notes.md"], 2, "name a file that ends in .svg"),
        (["plot", "nowhere/facts.svg"], 1, "nowhere/facts.svg cannot be written: No such file or directory"),
        (["plot", "x.svg", "--days", "0"], 2, "a picture shows 1 to"),
        (["plot", "-", "--json"], 2, "- prints the picture itself"),
        (["forget"], 2, "there is no command 'fact forget'"),
    ],
)
def test_a_call_that_cannot_be_done_teaches_and_writes_nothing(
    told: Told, root: Path, call: list[str], code: int, told_what: str
) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*.md")}
    found, _, complaint = told(*call)
    assert found == code
    assert told_what in complaint
    assert {path: path.read_bytes() for path in root.rglob("*.md")} == before


@pytest.mark.parametrize("text", ["not json", '{"role": "user"}', "[" * 100_000, "[]", '[{"role": "user"}]'])
def test_what_is_no_conversation_is_refused(
    told: Told, text: str, monkeypatch: pytest.MonkeyPatch, model: ScriptedServer
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert told("extract", "-")[0] == 2
    assert model.asked == []


def test_no_model_is_told_with_the_setting_to_make(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(CONVERSATION)))
    code, _, complaint = told("extract", "-")
    assert code == 2
    assert "[llm]" in complaint


def test_a_terminal_is_neither_overrun_nor_steered() -> None:
    fact = {"note_id": "9f86d081884c7d65", "importance": 0.04, "section": "", "content": "\x1b[2J 港" + "港" * 60}
    shown = of_facts([fact], 80)
    assert columns(shown) <= 80
    assert shown.startswith("0.04 ▯▯▯▯▯  9f86d081  -  \\x1b[2J 港港")
    assert of_facts([{**fact, "provenance": "external"}]).split("  ")[3].startswith("(external) ")
