"""The commands that edit and ask: what they take, the shapes of their JSON, exit codes, what reaches a terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.files.edits import ACTIONS
from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.cli.main import make_parser, run
from notebook_sync.surfaces.cli.reference.editing import EDIT_ACTIONS
from notebook_sync.surfaces.cli.text.notebook import on_terminal
from tests import forked
from tests.surfaces.test_watch_command import watching

Answer = Callable[..., Any]
REMINDERS = "## Today\n\n- [ ] Grease the winch\n- [ ] Oil the winch\n\n## This Week\n"
CALL = "- [ ] Call Odile [due: 2026-03-01 09:00]\n"


@pytest.fixture
def reminders(root: Path) -> Path:
    path = root / "runtime/reminders.md"
    path.write_text(REMINDERS)
    return path


@pytest.fixture
def answer(root: Path, capsys: pytest.CaptureFixture[str]) -> Answer:
    """Runs a command on the notebook with --json, as its owner; its value, after a look at the exit code."""

    def ask(command: str, *arguments: str, code: int = 0, session: str = "owner") -> Any:
        as_session = ["--session", session] if command in ("edit", "undo", "delete", "rename") else []
        assert run(["-C", str(root), command, *arguments, *as_session, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return ask


def refusals(root: Path) -> list[tuple[str, str]]:
    with Notebook.open(root) as notebook:
        return [(event["session"], event["tool"]) for event in notebook.events.read() if event["kind"] == "refused"]


def test_every_action_is_taught_and_its_example_parses() -> None:
    assert tuple(action.name for action in EDIT_ACTIONS) == ACTIONS
    for action in EDIT_ACTIONS:
        assert set(action.needs) <= set(action.takes)
        assert f" {action.name} " in action.example


def test_an_edit_s_json(answer: Answer, reminders: Path) -> None:
    told = answer("edit", "reminders.md", "append_to_section", "--section", "this-week", "--content", "- [ ] Coil")
    assert told.keys() == {
        *("success", "path", "digest", "version", "tokens_before", "tokens", "cap", "omitted", "changed", "change"),
        *("diff", "commit", "warnings"),
    }
    assert reminders.read_text() == REMINDERS + "\n- [ ] Coil\n"
    assert told["digest"] == sha256(reminders.read_bytes()).hexdigest()
    assert told["tokens"] > told["tokens_before"] > 0
    assert (told["cap"], told["change"]["stable_changes"]) == (2000, True)


def test_each_action_of_the_command_is_that_of_the_edit(answer: Answer, reminders: Path) -> None:
    answer("edit", "reminders.md", "toggle_checkbox", "--entry-match", "grease")
    answer("edit", "reminders.md", "move_entry", "--entry-match", "oil", "--to", "This Week")
    answer("edit", "reminders.md", "add_section", "--section", "Someday", "--content", "- Paint", "--to", "Today")
    assert reminders.read_text() == (
        "## Today\n\n- [x] Grease the winch\n\n## Someday\n\n- Paint\n\n## This Week\n\n- [ ] Oil the winch\n"
    )
    answer("edit", "reminders.md", "remove_entry", "--entry-match", "paint", "--section", "Someday")
    answer("edit", "reminders.md", "replace_section", "--section", "Today", "--content", "")
    answer("edit", "reminders.md", "set_frontmatter", "--content", "status: draft")
    assert reminders.read_text().startswith("---\nstatus: draft\n---\n## Today\n")
    assert "Paint" not in reminders.read_text()


@pytest.mark.parametrize("as_file", [True, False])
def test_content_from_a_file_and_from_standard_input_is_written_to_the_byte(
    answer: Answer, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_file: bool
) -> None:
    raw = "\ufeff# Café\r\n\r\n- tea\r\n\u2028 no end".encode()
    given = tmp_path / "given"
    given.write_bytes(raw)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="latin-1"))
    source = ["--content-file", str(given)] if as_file else ["--content", "-"]
    answer("edit", "pages/cafe.md", "write", *source)
    assert (root / "pages/cafe.md").read_bytes() == raw


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["append_to_section", "--section", "Today"], "append_to_section needs --content, as in: notebook-sync edit"),
        (["write"], "write needs --content"),
        (["remove_entry"], "remove_entry needs --entry-match"),
        (["move_entry", "--entry-match", "oil"], "move_entry needs --to"),
        (["toggle_checkbox", "--entry-match", "oil", "--content", "x"], "toggle_checkbox takes no --content"),
        (["write", "--content", "x", "--content-file", "y"], "give it once"),
        (["write", "--content-file", "/nowhere/x"], "--content-file /nowhere/x cannot be read"),
        (["read"], "notebook-sync read reminders.md"),
        (["toggel_checkbox"], "did you mean 'toggle_checkbox'?"),
        (["remove_entry", "--entry-match", "winch"], "Grease the winch"),
        (["remove_entry", "--entry-match", ""], "runtime/reminders.md"),
        ([], "notebook-sync edit reminders.md toggle_checkbox --entry-match winch"),
    ],
)
def test_a_call_that_cannot_be_meant_teaches_and_changes_nothing(
    root: Path, reminders: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    assert run(["-C", str(root), "edit", "reminders.md", *arguments, "--session", "owner"]) == 2
    told = capsys.readouterr()
    assert (told.out, complaint in told.err) == ("", True), told.err
    assert reminders.read_text() == REMINDERS


@pytest.mark.parametrize("session", ["task", "external"])
@pytest.mark.parametrize(
    "call",
    [
        ["edit", "reminders.md", "remove_entry", "--entry-match", "oil"],
        ["edit", "pages/../runtime/reminders.md", "write", "--content", "x"],
        ["delete", "reminders.md"],
        ["rename", "runtime/reminders.md", "pages/mine.md"],
        ["rename", "pages/plan.md", "runtime/Standing-Orders.md"],
        ["undo", "reminders.md"],
    ],
)
def test_what_is_refused_ends_with_3_and_leaves_one_event_and_the_file(
    answer: Answer, root: Path, reminders: Path, session: str, call: list[str]
) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*.md")}
    told = answer(*call, code=3, session=session)["error"]
    assert told["type"] == "not_permitted"
    assert told["message"] == "Notebook editing is only available in owner conversations"
    assert {path: path.read_bytes() for path in root.rglob("*.md")} == before
    assert [kind for kind, _ in refusals(root)] == [session]


def test_only_who_did_not_say_who_asks_is_told_how(
    root: Path, reminders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    call = ["-C", str(root), "edit", "reminders.md", "remove_entry", "--entry-match", "oil"]
    assert run(call) == 3
    assert "an owner says so with --session owner (this gate protects tools, not the shell)" in capsys.readouterr().err
    assert run([*call, "--session", "task"]) == 3
    assert "--session" not in capsys.readouterr().err
    monkeypatch.setenv("NOTEBOOK_SESSION", "task")
    assert run(call) == 3
    assert "--session" not in capsys.readouterr().err


def test_a_conflict_tells_the_digest_to_repeat_the_edit_with(answer: Answer, reminders: Path) -> None:
    call = ["reminders.md", "remove_entry", "--entry-match", "oil", "--expected-digest"]
    told = answer("edit", *call, "0" * 64, code=3)["error"]
    assert (told["type"], told["path"], told["current_text"]) == ("conflict", "runtime/reminders.md", REMINDERS)
    answer("edit", *call, told["current_digest"])
    assert "Oil" not in reminders.read_text()


def test_an_edit_that_changes_nothing_says_so(root: Path, reminders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["-C", str(root), "edit", "reminders.md", "write", "--content", REMINDERS, "--session", "owner"]
    assert run(call) == 0
    assert capsys.readouterr().out == "runtime/reminders.md says so already: nothing is changed\n"


def test_what_would_steer_a_terminal_is_shown_and_colour_is_for_terminals(
    root: Path, shell_environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "pages/plan.md").write_text("- \x1b]0;title\x07 old\n")
    call = ["-C", str(root), "edit", "pages/plan", "append_to_section", "--content", "- new", "--session", "owner"]
    assert run([*call, "--preview"]) == 0
    told = capsys.readouterr().out
    assert " - \\x1b]0;title\\x07 old\n+- new\n" in told
    assert "\x1b" not in told
    seen = at_a_terminal([*call, "--preview"], shell_environment)
    assert b"\x1b[32m+- new\x1b[0m" in seen
    assert b"\x1b]0;" not in seen
    assert b"\x1b" not in at_a_terminal([*call, "--preview"], {**shell_environment, "NO_COLOR": "1"})


def test_what_others_wrote_goes_to_a_file_as_it_is_and_steers_no_terminal(
    root: Path, shell_environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "runtime/reminders.md").write_text("## Today\n\n- [ ] \x1b]52;c;aGk=\x07\tnow \u200f\n")
    for call in (["read", "runtime/reminders"], ["prompt"]):
        assert run(["-C", str(root), *call]) == 0
        assert "\x1b]52;c;aGk=\x07\tnow \u200f" in capsys.readouterr().out
        seen = at_a_terminal(["-C", str(root), *call], shell_environment)
        assert b"\\x1b]52;c;aGk=\\x07\tnow \\u200f" in seen
        assert b"\x1b" not in seen


def test_a_terminal_shows_carriage_returns_but_not_those_that_end_lines() -> None:
    assert on_terminal("## Today\r\n\r\nover\rwritten\r\nend\r") == "## Today\n\nover\\rwritten\nend\\r"


def test_at_a_terminal_the_owner_edits_without_saying_who_they_are(
    root: Path, reminders: Path, shell_environment: dict[str, str]
) -> None:
    at_a_terminal(["-C", str(root), "edit", "reminders.md", "remove_entry", "--entry-match", "oil"], shell_environment)
    assert "Oil" not in reminders.read_text()


def test_a_diff_in_a_pipe_can_be_applied(root: Path, shell_environment: dict[str, str], answer: Answer) -> None:
    page = root / "pages/plan.md"
    page.write_bytes(b"# Plan\r\n\r\n- \x1b[1mone\r\n")
    answer("edit", "pages/plan", "append_to_section", "--section", "Plan", "--content", "- two")
    (rev,) = [one["rev"] for one in answer("history", "pages/plan") if one["summary"].startswith("changed by hand")]
    patch = subprocess.run(
        [*forked.command(), "-C", str(root), "diff", "pages/plan", rev],
        env=shell_environment,
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(["git", "apply", "--reverse", "-"], cwd=root, input=patch, check=True, env=shell_environment)
    assert page.read_bytes() == b"# Plan\r\n\r\n- \x1b[1mone\r\n"


def test_what_made_a_note_or_moved_it_names_the_way_back_that_there_is(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def way_back(*call: str) -> list[str]:
        assert run(["-C", str(root), *call]) == 0
        *_, last = capsys.readouterr().out.splitlines()
        label, program, *words = shlex.split(last)
        assert (label, program) == ("undo", "notebook-sync")
        return words

    page = root / "pages/new.md"
    delete = way_back("edit", "pages/new.md", "write", "--content", "New.")
    assert run(["-C", str(root), "undo", "pages/new.md"]) == 2
    complaint = capsys.readouterr().err
    assert "take it away with: notebook-sync " in complaint
    assert complaint.endswith(" delete pages/new.md\n")
    back = way_back("rename", "pages/new.md", "pages/newer.md")
    assert not page.exists()
    assert run(back) == 0
    assert page.exists()
    assert run(delete) == 0
    assert not page.exists()


def test_no_undo_is_named_where_nothing_is_kept_to_undo_with(
    root: Path, reminders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".notebook/past").write_text("no folder")
    add = ["append_to_section", "--section", "Today", "--content", CALL]
    for call in (["update", "runtime/reminders.md", "--content", "# Anew"], ["edit", "runtime/reminders.md", *add]):
        reminders.write_text(REMINDERS)
        assert run(["-C", str(root), *call, "--session", "owner"]) == 0
    told = capsys.readouterr().out
    assert told.count("no copy of what was there before is kept") == 2
    assert "undo  " not in told


def test_the_json_of_a_rename_and_of_a_deletion(answer: Answer) -> None:
    told = answer("rename", "pages/plan", "pages/winter.md")
    assert (told["path"], told["renamed_from"]) == ("pages/winter.md", "pages/plan.md")
    gone = {"success": True, "path": "pages/winter.md", "commit": None, "warnings": []}
    assert answer("delete", "pages/winter") == gone


def test_reminders_in_the_notebook_s_timezone(answer: Answer, root: Path, reminders: Path) -> None:
    (root / "notebook.toml").write_text('[notebook]\ntimezone = "Asia/Tokyo"\n')
    reminders.write_text(f"## Today\n{CALL}- [ ] Oil the lamp\n## This Week\n- [ ] Paint [due: 2199-03-01]\n")
    states = [(one["text"], one["state"], one["when"]) for one in answer("reminders")["results"]]
    assert states == [
        ("Call Odile", "overdue", "2026-03-01T09:00:00+09:00"),
        ("Oil the lamp", "due", None),
        ("Paint", "upcoming", "2199-03-01T00:00:00+09:00"),
    ]


def test_which_rule_holds_and_why_not_the_others(
    answer: Answer, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "runtime/external-communications.md").write_text(
        "## Permanent Rules\n- **Odile** (odile@ferry.example): always respond\n- **Everyone** (*): observe only\n"
        "- Ines: never respond\n"
    )
    told = answer("rules", "Odile@ferry.example")
    assert told["rule"]["action"] == "always respond"
    assert told["others"][0]["reason"] == "it is for everyone, and line 2 names this identity"
    assert run(["-C", str(root), "rules", "<odile@ferry.example>"]) == 0
    path = "runtime/external-communications.md"
    assert capsys.readouterr().out.splitlines() == [
        f"{path}:2: Odile (odile@ferry.example): always respond",
        f"  holds: line 2 of {path} names this identity, permanent; it comes before line 3",
        f"{path}:3: Everyone (*): observe only",
        "  does not: it is for everyone, and line 2 names this identity",
    ]
    assert run(["-C", str(root), "rules", "Ines"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("line 4 seems to be about this identity, but cannot be read as a rule; ")
    assert f"{path}:3: Everyone (*): observe only\n" in told


def test_an_event_that_is_not_there_is_said_so(
    answer: Answer, root: Path, reminders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer("edit", "reminders.md", "remove_entry", "--entry-match", "oil")
    (event,) = answer("events")["results"]
    assert run(["-C", str(root), "events", "--since", event["id"]]) == 0
    assert capsys.readouterr().err == "notebook-sync: no events\n"
    assert run(["-C", str(root), "events", "--since", "0" * 24]) == 0
    told = capsys.readouterr()
    assert "edit" in told.out
    assert f"no event has the id '{'0' * 24}'" in told.err


def test_events_since_one_and_as_they_happen(
    answer: Answer, root: Path, reminders: Path, shell_environment: dict[str, str]
) -> None:
    answer("edit", "reminders.md", "remove_entry", "--entry-match", "oil")
    answer("undo", "reminders.md")
    first, second = answer("events")["results"]
    assert [first["kind"], second["kind"]] == ["edit", "undo"]
    latest = answer("events", "--limit", "1")
    assert latest == answer("events", "--since", first["id"])
    assert latest["results"] == [second]
    command = [*forked.command(), "-C", str(root), "events", "--follow", "--json"]
    with subprocess.Popen(
        [*command, "--since", first["id"]], env=shell_environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == second
        answer("edit", "reminders.md", "toggle_checkbox", "--entry-match", "oil")
        assert json.loads(process.stdout.readline())["action"] == "toggle_checkbox"
        process.terminate()


def test_a_watch_tells_what_is_due_once_though_it_is_killed_and_started_again(
    answer: Answer, root: Path, reminders: Path, shell_environment: dict[str, str]
) -> None:
    reminders.write_text(f"## Today\n{CALL}")
    with watching(root, shell_environment) as watcher:
        told = watcher.until("reminder_due")
        assert (told["text"], told["state"]) == ("Call Odile", "overdue")
    with watching(root, shell_environment) as watcher:
        watcher.until("ready")
        reminders.write_text(f"## Today\n{CALL}{CALL.replace('Odile', 'Ines')}")
        assert watcher.until("reminder_due")["text"] == "Call Ines"
    assert [event["kind"] for event in answer("events")["results"]].count("reminder_due") == 2


def test_a_runtime_file_that_a_folder_lacks_is_named_with_what_makes_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*arguments: str) -> str:
        run(["-C", str(root), *arguments])
        return "".join(capsys.readouterr())

    lack = "{} is not there; make it with: notebook-sync init DIR\n"
    for path in (root / "runtime").glob("*.md"):
        path.unlink()
    for name in ("standing-orders.md", "runtime/standing-orders.md", "standing-orders"):
        made = printed("edit", name, "set_frontmatter", "--content", "a: b", "--session", "owner")
        assert lack.format("runtime/standing-orders.md") in made
    assert printed("reminders") == lack.format("runtime/reminders.md")
    assert printed("rules", "odile@ferry.example") == lack.format("runtime/external-communications.md")
    assert "no note has the id or path 'orders'" in printed("read", "orders")


def test_lines_that_are_not_read_as_reminders_are_told(
    answer: Answer, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "runtime/reminders.md").write_text("## Today\n- [ ] Pay [due: 25:00]\n- milk\n- [x] Oil the lamp\n")
    told = answer("reminders", "--due")
    assert (told["results"], told["unread"]) == ([], [2, 3])
    assert run(["-C", str(root), "reminders"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert last == f"2 lines are not read as reminders: 2, 3; see: notebook-sync -C {root} check"


@pytest.mark.parametrize(("name", "meant"), [("edti", "edit"), ("remind", "reminders"), ("qqq", "")])
def test_a_command_that_there_is_not_names_the_one_it_is_like(
    capsys: pytest.CaptureFixture[str], name: str, meant: str
) -> None:
    assert run([name]) == 2
    guess = f" (did you mean {meant!r}?)" if meant else ""
    assert capsys.readouterr().err == f"notebook-sync: there is no command {name!r}{guess}; see: notebook-sync --help\n"


def test_the_parser_keeps_a_content_that_looks_like_an_option() -> None:
    call = ["edit", "x.md", "append_to_section", "--content=--- rule", "--section=-a"]
    arguments = make_parser().parse_args(call)
    assert (arguments.content, arguments.section) == ("--- rule", "-a")


def at_a_terminal(arguments: list[str], environment: dict[str, str]) -> bytes:
    """What the command shows where its input and its output are a terminal."""
    ours, theirs = pty.openpty()
    command = [*forked.command(), *arguments]
    with subprocess.Popen(
        command, env={**environment, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    assert process.returncode == 0, shown
    return shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # how Linux tells that the other end is closed
        return b""


def test_a_note_that_is_in_the_way_is_told_without_an_option_that_renaming_lacks(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "pages/there.md").write_text("Here already.\n")
    assert run(["-C", str(root), "rename", "pages/plan", "pages/there.md", "--session", "owner"]) == 3
    told = capsys.readouterr().err
    assert "--expected-digest" not in told
    assert "nothing was renamed; choose another path" in told


@pytest.mark.parametrize("place", ["../plan.md", "/plan.md"])
def test_a_new_path_outside_of_the_notebook_is_told_as_that(
    root: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    assert run(["-C", str(root), "rename", "pages/plan", place, "--session", "owner"]) == 3
    assert "leads out of the notebook; name a note by its path in it" in capsys.readouterr().err
    assert refusals(root) == [("owner", "memory")]


def test_the_way_back_names_the_session_that_the_edit_was_made_in(
    root: Path, reminders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit = ["edit", str(reminders), "append_to_section", "--section", "Today", "--content", "- [ ] Coil"]
    assert run(["-C", str(root), *edit, "--session", "owner"]) == 0
    *_, undo = capsys.readouterr().out.splitlines()
    words = shlex.split(undo)
    assert run(words[words.index("-C") :]) == 0
    assert reminders.read_text() == REMINDERS


@pytest.mark.parametrize(
    ("settings", "why"),
    [("", "the folder is in no git repository"), ('[git]\ncommit = "off"\n', "git.commit is off in notebook.toml")],
)
def test_an_edit_that_is_not_committed_says_why(
    root: Path, capsys: pytest.CaptureFixture[str], settings: str, why: str
) -> None:
    (root / "notebook.toml").write_text(settings)
    assert (
        run(["-C", str(root), "edit", "pages/plan.md", "append_to_section", "--content", "200", "--section", "Budget"])
        == 0
    )
    assert f"commit   none: {why}" in capsys.readouterr().out
