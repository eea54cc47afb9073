"""What is particular to one surface of facts: the texts at a terminal, files and standard input, and safe pictures."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from notebook_sync import Session
from notebook_sync.surfaces.cli.main import run
from notebook_sync.surfaces.cli.text.facts import of_facts
from notebook_sync.surfaces.cli.text.rows import columns
from tests.scripted_llm import ScriptedServer, chat
from tests.surfaces.http_clients import served

Told = Callable[..., tuple[int, str, str]]

EIGHT = "The ferry leaves at eight"
NOTES = f"## Important Facts\n\n- {EIGHT}\n- The pier was painted in May <!-- importance: 0.9 -->\n"
OWNER = ("--session", "owner")
TALK = json.dumps([{"role": "user", "content": f"{EIGHT} no longer holds; Ines keeps the key now."}])
DRAWN = {
    "additions": [{"section": "People & Entities", "item": "Ines keeps the key", "importance": 0.6}],
    "removals": [EIGHT],
    "summary": "Who has the key.",
}


@pytest.fixture
def root(root: Path) -> Path:
    (root / "facts").mkdir(exist_ok=True)
    (root / "facts/notes.md").write_text(NOTES)
    return root


@pytest.fixture
def told(told: Told) -> Told:
    """Runs a command of the group."""
    return partial(told, "fact")


def test_a_move_names_the_way_back_and_what_moved_nothing_names_none(root: Path, told: Told) -> None:
    for command in ("archive", "promote"):
        _, printed, _ = told(command, EIGHT, *OWNER)
        path = {"archive": "archive", "promote": "core"}[command]
        *_, undo = printed.splitlines()
        assert undo.startswith("undo        notebook-sync")
        assert undo.endswith(f" undo facts/{path}.md --session owner")
        assert "undo" not in told(command, EIGHT, *OWNER)[1]
        assert run(["-C", str(root), "undo", f"facts/{path}.md", *OWNER]) == 0
        assert (root / "facts/notes.md").read_text() == NOTES


def test_the_first_fact_of_a_notebook_is_taken_back_by_taking_its_file_away(root: Path, told: Told) -> None:
    (root / "facts/notes.md").unlink()
    assert told("add", "Odile runs the ferry")[1].splitlines()[-1].endswith(" delete facts/notes.md")
    assert told("add", "Bosun barks")[1].splitlines()[-1].endswith(" undo facts/notes.md")


def test_the_way_back_from_a_move_that_makes_a_file_keeps_the_fact(
    root: Path, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    told("archive", EIGHT, *OWNER)
    for _ in ("away", "there again"):
        assert run(["-C", str(root), "undo", "facts/archive.md", *OWNER]) == 0
    assert capsys.readouterr().out.endswith(" undo facts/archive.md --session owner\n")
    (root / "facts/notes.md").unlink()
    *_, back = told("add", EIGHT, *OWNER)[1].splitlines()
    assert back.endswith(" undo facts/notes.md --session owner")
    assert run(shlex.split(back)[2:]) == 0
    assert not (root / "facts/notes.md").exists()
    assert EIGHT in (root / "facts/archive.md").read_text()


def test_a_move_names_no_undo_where_nothing_is_kept_to_undo_with(root: Path, told: Told) -> None:
    (root / ".notebook/past").write_text("no folder")
    for call in (["add", "Odile runs the ferry"], ["archive", EIGHT]):
        _, printed, _ = told(*call)
        assert "no copy of what was there before is kept" in printed
        assert "undo  " not in printed


def test_nothing_found_says_what_to_do_and_a_search_exits_with_1(told: Told, root: Path) -> None:
    (root / "facts/notes.md").unlink()
    add = "no facts match; add one with: notebook-sync fact add TEXT"
    assert told("list") == (0, "", f"notebook-sync: {add}\n")
    code, printed, complaint = told("search", "ferry")
    assert (code, printed, "--scope all also searches" in complaint) == (1, "", True)


def test_a_pair_is_shown_as_what_stays_and_what_goes(told: Told, root: Path) -> None:
    assert told("dedupe", *OWNER)[1] == "no two facts say the same\n"
    with (root / "facts/notes.md").open("a") as notes:
        notes.write("- the ferry leaves at eight.\n")
    keep, drop = told("dedupe", "--dry-run", *OWNER)[1].splitlines()
    assert (keep.split()[0], drop.split()[0]) == ("keep", "drop")
    assert told("dedupe", *OWNER)[1].splitlines()[2] == "1 fact merged"


def test_where_words_alone_decide_a_line_says_why(told: Told, root: Path) -> None:
    with ScriptedServer() as server:
        (root / "notebook.toml").write_text(f'[search]\nembeddings = "openai:small"\nbase_url = "{server.url}"\n')
        for command in ("search", "verify"):
            assert f"found by words alone: The embedding server at {server.url}" in told(command, "The ferry leaves")[2]
        assert "by words alone: The embedding server at" in told("add", "Ines keeps the key")[1]


def test_facts_are_extracted_from_a_file(told: Told, tmp_path: Path, model: ScriptedServer) -> None:
    (tmp_path / "talk.json").write_text("\ufeff" + TALK)
    model.say(chat(json.dumps(DRAWN)))
    code, printed, complaint = told("extract", str(tmp_path / "talk.json"))
    assert (code, complaint) == (0, "")
    summary, added, archived = printed.splitlines()
    assert (summary, added.split()[0], archived.split()[0]) == ("Who has the key.", "added", "archived")


def test_an_answer_that_cannot_be_used_ends_with_1_and_changes_nothing(
    told: Told, root: Path, monkeypatch: pytest.MonkeyPatch, model: ScriptedServer
) -> None:
    model.say(chat("I would rather not."))
    monkeypatch.setattr("sys.stdin", io.StringIO(TALK))
    code, printed, complaint = told("extract", "-", "--json")
    assert (code, json.loads(printed)["applied"]) == (1, False)
    assert complaint == ""
    assert (root / "facts/notes.md").read_text() == NOTES


def test_a_picture_is_written_where_it_is_asked_for(told: Told, tmp_path: Path) -> None:
    picture = tmp_path / "facts.svg"
    assert told("plot", str(picture))[1].startswith(f"{picture} is drawn: ")
    assert picture.read_text(encoding="utf-8").startswith("<svg ")
    picture.write_text("<svg ><!-- by Odile --></svg>\n")
    code, _, complaint = told("plot", str(picture))
    assert (code, "name another file" in complaint) == (2, True)
    assert picture.read_text() == "<svg ><!-- by Odile --></svg>\n"
    code, printed, _ = told("plot", "-")
    assert (code, printed[:5], printed.rstrip()[-6:]) == (0, "<svg ", "</svg>")


def test_what_is_posted_stands_in_the_body_alone(root: Path) -> None:
    with served(root) as server:
        answer = server.ask("POST", "/facts?section=Ropes", Session.owner(), json={"content": "Ropes are dear"})
    assert (answer.status_code, (root / "facts/notes.md").read_text()) == (422, NOTES)


@pytest.mark.parametrize(
    ("call", "code", "told_what"),
    [
        (["add"], 2, "notebook-sync fact add 'The ferry leaves at eight'"),
        (["add", "x", "--content-file", "y"], 2, "give it once"),
        (["add", "--content-file", "nowhere"], 2, "--content-file nowhere cannot be read"),
        (["add", "\udcff"], 2, "cannot be"),
        (["add", "x", "--session", "external"], 3, "Facts are not changed in this conversation"),
        (["list", "--scope", "attic"], 2, "there is no 'attic'; use one of notes, core, archive, all"),
        (["reinforce", "Nobody ever said a thing like this"], 1, "there is no fact"),
        (["extract", "nowhere.json"], 2, "nowhere.json cannot be read"),
        (["plot", "facts/notes.md"], 2, "name a file that ends in .svg"),
        (["plot", "nowhere/facts.svg"], 1, "nowhere/facts.svg cannot be written: No such file or directory"),
        (["forget"], 2, "there is no command 'fact forget'"),
    ],
)
def test_a_command_that_cannot_be_run_says_why(
    told: Told, root: Path, call: list[str], code: int, told_what: str
) -> None:
    found, _, complaint = told(*call)
    assert (found, told_what in complaint) == (code, True), complaint
    assert (root / "facts/notes.md").read_text() == NOTES


@pytest.mark.parametrize("text", ["not json", '{"role": "user"}', "[" * 100_000, "[]", '[{"role": "user"}]'])
def test_what_is_no_conversation_is_refused(
    told: Told, text: str, monkeypatch: pytest.MonkeyPatch, model: ScriptedServer
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert told("extract", "-")[0] == 2
    assert model.asked == []


def test_a_terminal_is_neither_overrun_nor_steered() -> None:
    fact = {"note_id": "9f86d081884c7d65", "importance": 0.04, "section": "", "content": "\x1b[2J 港" + "港" * 60}
    shown = of_facts({"results": [fact]}, 80)
    assert columns(shown) <= 80
    assert shown.startswith("0.04 ▯▯▯▯▯  9f86d081  -  \\x1b[2J 港港")
    assert of_facts({"results": [{**fact, "provenance": "external"}]}).split("  ")[3].startswith("(external) ")
