"""The commands of facts: what they take, the shapes of their JSON, exit codes, what people read."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
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


@pytest.mark.parametrize(
    ("call", "keys"),
    [
        (["list"], ROW),
        (["search", "when does the ferry leave"], ROW | {"similarity"}),
        (["verify", "The ferry leaves at eight"], {"verdict", "similarity", "matches", "degraded"}),
        (["reinforce", "The ferry leaves at eight"], ROW | {"action", "warnings"}),
        (["decay", "--dry-run", *OWNER], {"archived", "promoted", "proposed"}),
        (["dedupe", *OWNER], {"pairs", "merged", "warnings"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_shapes_of_json(answer: Answer, call: list[str], keys: set[str]) -> None:
    told = answer(*call)
    assert all(row.keys() == keys for row in (told if isinstance(told, list) else [told]))


def test_a_look_for_pairs_says_how_they_are_merged(answer: Answer, told: Told, root: Path) -> None:
    assert told("dedupe", *OWNER) == (0, "", "notebook-sync: no two facts say the same\n")
    with (root / "facts/notes.md").open("a") as notes:
        notes.write("- the ferry leaves at eight.\n")
    assert answer("dedupe", *OWNER)["pairs"][0].keys() == {"keep", "drop", "similarity", "how"}
    assert told("dedupe", *OWNER)[2] == "notebook-sync: nothing is changed; --apply merges them\n"


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


def test_where_words_alone_decide_a_line_says_why(told: Told, root: Path) -> None:
    with ScriptedServer() as server:
        (root / "notebook.toml").write_text(f'[search]\nembeddings = "openai:small"\nbase_url = "{server.url}"\n')
        for command in ("search", "verify"):
            assert f"found by words alone: The embedding server at {server.url}" in told(command, "The ferry leaves")[2]
        assert "by words alone: The embedding server at" in told("add", "Ines keeps the key")[1]


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
    would = answer("extract", str(tmp_path / "talk.json"), "--dry-run")
    assert would.keys() >= {"additions", "removals", "skipped", "summary", "error", "applied"}
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
        (["list", "--scope", "core", "--session", "external"], 3, ""),
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


def test_a_terminal_is_neither_overrun_nor_steered() -> None:
    fact = {"note_id": "9f86d081884c7d65", "importance": 0.04, "section": "", "content": "\x1b[2J 港" + "港" * 60}
    shown = of_facts([fact], 80)
    assert columns(shown) <= 80
    assert shown.startswith("0.04 ▯▯▯▯▯  9f86d081  -  \\x1b[2J 港港")
    assert of_facts([{**fact, "provenance": "external"}]).split("  ")[3].startswith("(external) ")
