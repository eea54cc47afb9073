"""What the command line promises beyond the words it prints: exit codes, shapes of JSON, who asks, what it loads."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.__main__ import main
from notebook_sync.errors import BackendDown, NoSuchNote, NotebookError, Refused, UsageError, WatchLocked
from notebook_sync.sessions import Session
from notebook_sync.surfaces.cli.answers import asking
from notebook_sync.surfaces.cli.commands import run as cli_commands
from notebook_sync.surfaces.cli.main import arranged, run
from notebook_sync.surfaces.cli.reference.commands import ALIASES, COMMANDS, GROUPS
from notebook_sync.surfaces.cli.text.notebook import of_event, of_report, of_status
from notebook_sync.surfaces.cli.text.notes import of_notes
from prompt.errors import VocabularyMissing
from tests import forked

Answer = Callable[..., Any]


@pytest.fixture
def answer(root: Path, capsys: pytest.CaptureFixture[str]) -> Answer:
    """Runs a command on the notebook with --json; its value, after a look at the exit code."""

    def ask(*arguments: str, code: int = 0) -> Any:
        assert run(["-C", str(root), *arguments, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return ask


def test_json_shapes_of_reports(answer: Answer, root: Path) -> None:
    (root / "pages/bad.md").write_bytes(b"---\ntitle: [\n---\nBad.\n")
    report = answer("sync", "--no-embed", code=1)
    assert report.keys() == {"added", "updated", "moved", "deleted", "unchanged", "failed", "seconds"}
    assert report["added"] == 5
    assert [one["path"] for one in report["failed"]] == ["pages/bad.md"]
    assert answer("rebuild", code=1).keys() == report.keys()
    (root / "pages/bad.md").unlink()
    assert answer("sync").keys() == {*report, "embedded"}
    assert answer("verify") == {"consistent": True, "files": 4, "mirror": 4, "refs": 4, "differences": []}


def test_people_are_told_how_many_notes_moved(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = root / "pages/plan.md"
    assert run(["-C", str(root), "sync"]) == 0
    for command, name in (("sync", "winter.md"), ("rebuild", "summer.md"), ("sync", "Summer.md")):
        at = at.rename(at.with_name(name))
        capsys.readouterr()
        assert run(["-C", str(root), command]) == 0
        printed = capsys.readouterr()
        assert "1 moved" in printed.out
        assert "undo" not in printed.out
        assert printed.err == ""


def test_a_report_says_why_the_refs_could_not_be_told(answer: Answer, root: Path) -> None:
    (root / "notebook.toml").write_text('[refs]\nurl = "redis://127.0.0.1:1"\n')
    assert "Redis at 127.0.0.1:1" in answer("sync", code=4)["refs_trouble"]


def test_a_command_that_is_named_is_one_about_the_same_notebook(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = root.rename(root.with_name("the owner's notes"))

    def printed(*arguments: str) -> str:
        run(arguments)
        return "".join(capsys.readouterr())

    here = ("-C", str(moved))
    begins = f"notebook-sync -C {shlex.quote(str(moved))}"
    assert f"start one with: {begins} watch\n" in printed(*here, "status")
    assert f"repair it with: {begins} verify --repair\n" in printed(*here, "verify")
    assert "see: notebook-sync list\n" in printed(*here, "read", "nothing")
    assert json.loads(printed(*here, "read", "nothing", "--json"))["error"]["next"] == "see: notebook-sync list"


def test_verify_ends_with_1_until_it_has_repaired(answer: Answer, root: Path) -> None:
    answer("sync")
    (root / "pages/new.md").write_text("New.\n")
    verdict = answer("verify", code=1)
    assert verdict["differences"] == [{"path": "pages/new.md", "what": "unmirrored", "detail": ""}]
    assert answer("verify", "--repair")["consistent"] is True


def test_times_in_json_are_utc(answer: Answer) -> None:
    answer("sync")
    (note,) = answer("list", "pages")
    assert "content" not in note
    assert datetime.fromisoformat(note["updated_at"]).utcoffset() == timedelta(0)
    document = answer("read", "pages/plan")
    assert datetime.fromisoformat(document["metadata"]["created_at"]).utcoffset() == timedelta(0)
    assert datetime.fromisoformat(document["history"][0]["timestamp"]).utcoffset() == timedelta(0)


def test_read_takes_a_path_an_id_and_a_bare_runtime_name(answer: Answer) -> None:
    assert answer("read", "pages/plan")["id"] == answer("read", "pages/plan.md")["id"] == "pages/plan"
    assert answer("read", "reminders.md")["path"] == "runtime/reminders.md"
    assert answer("read", "pages/plan", "--section", "budget")["content"] == "## Budget\n\n100\n"
    assert answer("read", "pages/plan.md#budget")["content"] == "## Budget\n\n100\n"


@pytest.mark.parametrize(("charset", "is_ascii"), [("ascii", True), ("latin-1", True), ("UTF8", False)])
def test_json_is_valid_on_an_output_of_any_encoding(
    root: Path, shell_environment: dict[str, str], charset: str, is_ascii: bool
) -> None:
    (root / "pages/plan.md").write_text("# Café ☕\n", encoding="utf-8")
    printed = subprocess.run(
        [sys.executable, "-m", "notebook_sync", "-C", str(root), "read", "pages/plan", "--json"],
        env={**shell_environment, "PYTHONIOENCODING": charset},
        capture_output=True,
        check=True,
    ).stdout
    assert json.loads(printed)["title"] == "Café ☕"
    assert printed.isascii() == is_ascii


def test_a_demonstration_in_a_file_is_a_wrong_call(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", str(root / "notebook.toml")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_prompt_prints_its_text_and_nothing_else(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(root), "prompt", "--session", "external"]) == 0
    text = capsys.readouterr().out
    assert run(["-C", str(root), "prompt", "--session", "external", "--json"]) == 0
    prompt = json.loads(capsys.readouterr().out)
    assert prompt["text"].rstrip("\n") == text.rstrip("\n")
    assert prompt["session"] == "external"
    assert prompt.keys() == {"text", "tokens", "revision", "session", "parts"}


def test_explain_tells_what_each_session_sees(answer: Answer, root: Path) -> None:
    (root / "runtime/standing-orders.md").write_text("## Preferences\n\nTea, please.\n\n<!-- Coffee never. -->\n")
    (tea,) = answer("explain", "tea", "--session", "task")["found"]
    assert tea == {
        "path": "runtime/standing-orders.md",
        "line": 3,
        "section": "Preferences",
        "in_prompt": True,
        "reason": "",
        "anchor": "preferences",
        "last_good": False,
    }
    (coffee,) = answer("explain", "coffee", "--session", "owner")["found"]
    assert (coffee["in_prompt"], coffee["reason"]) == (False, "comment")


def test_explain_says_what_to_do(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "runtime/standing-orders.md").write_text("## Preferences\n\n<!-- Coffee, coffee never. -->\n")
    assert run(["-C", str(root), "explain", "coffee", "--session", "owner"]) == 0
    assert capsys.readouterr().out == (
        "runtime/standing-orders.md:3: not in the prompt: comment (section Preferences)\n"
        "comment: take it out of the comment; agents are shown no comments\n"
    )


@pytest.mark.parametrize(
    ("path", "content", "session", "step"),
    [
        (
            "runtime/reminders.md",
            "## Recurring\n\n" + "- oil the lantern at dusk\n" * 2000 + "- the winch\n",
            "task",
            "notebook_read runtime/reminders.md#recurring",
        ),
        ("pages/winch.md", "# A winch\n\n## Oil\n\nthe winch\n", "task", "notebook_read pages/winch.md#oil"),
        ("pages/mail.md", "---\nprovenance: external\n---\nthe winch\n", "owner", "somebody else wrote pages/mail.md"),
        ("channels/scribe/global/a.md", "the winch\n", "task", "--include notes --agent scribe"),
    ],
)
def test_explain_names_a_step_that_helps(
    root: Path, capsys: pytest.CaptureFixture[str], path: str, content: str, session: str, step: str
) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(content)
    assert run(["-C", str(root), "explain", "the winch", "--session", session, "--agent", "scribe"]) == 0
    place, remedy = capsys.readouterr().out.splitlines()
    assert "not in the prompt" in place
    assert step in remedy
    wrong = {"pages/mail.md": "name", "channels/scribe/global/a.md": "[["}
    assert path not in wrong or wrong[path] not in remedy


def test_explain_of_what_is_nowhere_is_a_failure(
    answer: Answer, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer("explain", "no such words", code=1) == {"found": []}
    assert run(["-C", str(root), "explain", "no such words"]) == 1
    assert capsys.readouterr().out.startswith("nowhere in the notebook: ")


@pytest.mark.parametrize(
    ("now", "reason"),
    [(b"---\ntitle: half of a", "not yet parsed"), (b"## Preferences\n\nhalf of a caf\xc3", "not yet parsed")],
)
def test_what_is_being_written_is_not_yet_in_the_prompt(
    answer: Answer, root: Path, capsys: pytest.CaptureFixture[str], now: bytes, reason: str
) -> None:
    (root / "notebook.toml").write_text("[sync]\nsettle_ms = 600000\n")
    orders = root / "runtime/standing-orders.md"
    orders.write_text("## Preferences\n\nTea, please.\n")
    good = answer("prompt")["text"]
    orders.write_bytes(now)
    assert answer("prompt")["text"] == good
    (half,) = answer("explain", "half of a")["found"]
    assert (half["in_prompt"], half["reason"]) == (False, reason)
    (tea,) = answer("explain", "tea, please")["found"]
    assert tea["in_prompt"]
    assert (tea["last_good"], half["last_good"]) == (True, False)
    assert run(["-C", str(root), "explain", "tea, please"]) == 0
    assert "an earlier version is shown" in capsys.readouterr().out
    assert run(["-C", str(root), "prompt"]) == 0
    assert "runtime/standing-orders.md: it is being written" in capsys.readouterr().err


def test_a_prompt_ends_with_one_newline(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--task", "Write.\n\n")):
        assert run(["-C", str(root), "prompt", *more]) == 0
        out, err = capsys.readouterr()
        assert out.endswith("\n")
        assert not out.endswith("\n\n")
        assert err == ""


def test_a_task_comes_from_an_argument_a_file_or_standard_input(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "task.md").write_text("Paint the café.\n", encoding="utf-8")
    for arguments in (["--task", "Paint the café."], ["--task", "-"], ["--task-file", str(tmp_path / "task.md")]):
        monkeypatch.setattr("sys.stdin", io.StringIO("Paint the café.\n"))
        assert run(["-C", str(root), "prompt", "--session", "task", *arguments]) == 0
        assert capsys.readouterr().out.endswith("\n\n> Paint the café.\n")
    assert run(["-C", str(root), "prompt", "--task", "a", "--task-file", "b"]) == 2
    assert run(["-C", str(root), "prompt", "--task-file", str(tmp_path / "nowhere.md")]) == 2


def test_an_agent_of_the_prompt_is_one_whose_notes_are_shown(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for agent in ("scribe", "pilot"):
        (root / f"channels/{agent}").mkdir(parents=True)
        (root / f"channels/{agent}/a.md").write_text(f"Kept by {agent}.\n")
    prompt = ["-C", str(root), "prompt", "--session", "task", "--include", "notes, facts"]
    assert run([*prompt, "--agent", "scribe"]) == 0
    out = capsys.readouterr().out
    assert "Kept by scribe." in out
    assert "pilot" not in out
    for wrong, told in (([], "--agent"), (["--agent", "../pilot"], "no agent's name")):
        assert run([*prompt, *wrong]) == 2
        assert told in capsys.readouterr().err
    assert run([*prompt[:-1], "everything", "--agent", "scribe"]) == 2


def test_what_is_left_out_of_a_prompt_is_told_and_no_failure(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "notebook.toml").write_text('[mirror]\nurl = "mongodb://127.0.0.1:1/"\ntimeout_seconds = 0.2\n')
    assert run(["-C", str(root), "prompt", "--include", "refs"]) == 0
    out, err = capsys.readouterr()
    assert "## Your Notebook" in out
    assert err.startswith("notebook-sync: refs: left out, for ")


def test_config_masks_passwords_and_names_sources(answer: Answer, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "notebook.toml").write_text('[mirror]\nurl = "mongodb://me:s3cr/et@db/"\n[sync]\nbatch = 7\n')
    monkeypatch.setenv("REDIS_URL", "redis://cache/0?password=s3cret")
    resolved = answer("config")
    told = {one["key"]: (one["value"], one["source"]) for one in resolved["settings"]}
    assert told["mirror.url"] == ("mongodb://***@db", "notebook.toml")
    assert told["refs.url"] == ("redis://cache/0?password=***", "REDIS_URL")
    assert told["sync.batch"] == (7, "notebook.toml")
    assert told["prompt.max_tokens"] == (16000, "default")
    assert resolved["root"] == str(root)


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (NotebookError("a"), 1, "failed"),
        (NoSuchNote("a"), 1, "no_such_note"),
        (VocabularyMissing("a", "b"), 1, "prompt_failed"),
        (UsageError("a"), 2, "invalid_arguments"),
        (Refused("a"), 3, "refused"),
        (WatchLocked("a", "b"), 3, "refused"),
        (BackendDown("a", "b"), 4, "backend_down"),
    ],
)
def test_an_error_is_printed_once_as_text_or_as_json(
    error: Exception, code: int, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr(cli_commands, "RUN", {"list": fail})
    assert run(["list"]) == code
    assert capsys.readouterr() == ("", f"notebook-sync: {error}\n")
    assert run(["list", "--json"]) == code
    out, err = capsys.readouterr()
    found = json.loads(out)["error"]
    assert (found["type"], found["message"], bool(found["next"]), err) == (kind, str(error), True, "")


@pytest.mark.parametrize(
    ("given", "arranged_as"),
    [
        ("", "--help"),
        ("help", "--help"),
        ("help fact add", "fact add --help"),
        ("ls -n 2", "list -n 2"),
        ("find ferry -C nb", "-C nb search ferry"),
        ("-Cnb rm a.md", "-Cnb delete a.md"),
        ("--json --session task -C nb mv a b", "-C nb rename a b --json --session task"),
        ("--json search -- -C nb", "search --json -- -C nb"),
        ("--version", "--version"),
    ],
)
def test_options_stand_before_or_after_the_command(given: str, arranged_as: str) -> None:
    assert arranged(given.split()) == arranged_as.split()


def test_every_command_is_in_one_group_of_the_help() -> None:
    assert sorted(name for _, names in GROUPS for name in names) == sorted(command.name for command in COMMANDS)
    assert not ALIASES.keys() & {command.name for command in COMMANDS}


def test_what_nobody_foresaw_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(cli_commands, "RUN", {"list": fail})
    with pytest.raises(ZeroDivisionError):
        run(["list"])


def test_interrupted_it_ends_with_130_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_commands, "RUN", {"list": interrupt})
    assert run(["list"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_goes_away_is_no_error(root: Path, shell_environment: dict[str, str]) -> None:
    # More than a pipe holds, so that the program is still writing when nobody reads any more.
    (root / "pages/long.md").write_text("A line of a long page.\n" * 20_000)
    command = [*forked.command(), "-C", str(root), "read", "pages/long"]
    with subprocess.Popen(
        command, env=shell_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "A line of a long page.\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


@pytest.mark.parametrize(
    ("named", "environ", "at_terminal", "kind"),
    [
        ("external", {"NOTEBOOK_SESSION": "owner"}, True, "external"),
        (None, {"NOTEBOOK_SESSION": "external"}, True, "external"),
        (None, {"NOTEBOOK_SESSION": ""}, True, "owner"),
        (None, {}, True, "owner"),
        (None, {}, False, "task"),
    ],
)
def test_who_asks(named: str | None, environ: dict[str, str], at_terminal: bool, kind: str) -> None:
    session = asking(named, "scribe", environ, at_terminal=at_terminal)
    assert session == Session.named(kind, "scribe")


def test_version_loads_nothing(shell_environment: dict[str, str]) -> None:
    script = (
        "import sys; sys.argv = ['notebook-sync', '--version'];"
        "from notebook_sync.__main__ import main; code = main();"
        "loaded = {name for name in sys.modules if name.startswith('notebook_sync')};"
        "assert loaded == {'notebook_sync', 'notebook_sync.__main__', 'notebook_sync.version'}, loaded;"
        "assert 'argparse' not in sys.modules; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=shell_environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("notebook-sync ")


def test_version_takes_it_that_nobody_hears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["notebook-sync", "--version"])
    monkeypatch.setattr(sys, "stdout", None)
    assert main() == 0


def test_a_prompt_loads_no_driver(root: Path, shell_environment: dict[str, str]) -> None:
    script = (
        f"import sys; from notebook_sync.surfaces.cli.main import run; code = run(['-C', {str(root)!r}, 'prompt']);"
        "heavy = {'pymongo', 'redis', 'watchfiles', 'tqdm', 'sqlite3', 'notebook_sync.sync.engine'};"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys(); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=shell_environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_would_steer_a_terminal_is_shown() -> None:
    note = {
        "updated_at": datetime.fromisoformat("2026-03-01T09:00:00+00:00"),
        "status": "draft",
        "path": "pages/x.md",
        "title": "\x1b]0;owned\x07 \u202egnp",
    }
    assert of_notes([note], UTC).endswith(r"\x1b]0;owned\x07 \u202egnp")


def test_nothing_in_a_status_steers_a_terminal() -> None:
    esc = "\x1b[2J"
    down = {"name": f"Redis at {esc}", "ok": False, "error": esc}
    watcher = {"pid": 1, "host": esc, "since": esc, "trouble": esc}
    fell_out = [{"path": esc, "anchor": esc, "heading": esc, "tokens": 1}]
    change = {
        "tokens_before": 1,
        "tokens_after": 1,
        "fell_out": fell_out,
        "came_back": [],
        "stable_changes": True,
        "kept_prefix_tokens": 0,
    }
    told = of_status(
        {
            "name": esc,
            "root": f"/home/{esc}",
            "mirror": down,
            "refs": down,
            "search": {
                "model": esc,
                "embedded": None,
                "behind": None,
                "facts_behind": None,
                "facts_refused": None,
                "trouble": esc,
            },
            "watcher": watcher,
            "stale": [{"path": esc, "error": esc}],
            "prompt": {esc: {"tokens": 1, "cap": 2, "omitted": 1, "left_out": [esc], "problem": esc}},
            "waiting": [{"path": esc, "line": 1, "text": esc, "removed": False}],
            "sessions": {"owner": {"tokens": 1, "max_tokens": 2, "revision": "", "since_commit": change}},
        },
        "notebook-sync",
    )
    assert "\x1b" not in told
    assert told.count(r"\x1b[2J") == 21


def test_people_see_the_first_twenty_failures() -> None:
    failed = [{"path": f"{number}.md", "error": "line 3: broken"} for number in range(25)]
    counts = dict.fromkeys(("added", "updated", "moved", "deleted", "unchanged"), 0)
    lines = of_report({**counts, "failed": failed, "seconds": 0.0}).splitlines()
    assert lines[1] == "  0.md:3: broken"
    assert lines[21:] == ["  … and 5 more failed; --json lists all"]


def test_a_note_that_is_shown_as_it_was_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "z.md"
    path.write_text("---\ntags: [a]\n---\n# Good\n")
    assert run(["-C", str(tmp_path), "sync"]) == 0
    path.write_text("---\ntags: [a\n---\n# Broken\n")
    assert run(["-C", str(tmp_path), "sync"]) == 1
    capsys.readouterr()
    assert run(["-C", str(tmp_path), "read", "z"]) == 0
    out, complaint = capsys.readouterr()
    assert "# Good" in out
    assert "z.md is shown as it was; its file: line 3" in complaint


@pytest.mark.parametrize(("redirection", "code"), [(">/dev/full", 1), (">&-", 0)])
def test_an_output_that_takes_nothing_is_no_traceback(
    tmp_path: Path, shell_environment: dict[str, str], redirection: str, code: int
) -> None:
    (tmp_path / "a.md").write_text("# A\n")
    command = f'{shlex.join(forked.command())} -C "{tmp_path}" sync {redirection}'
    done = subprocess.run(command, shell=True, env=shell_environment, capture_output=True, text=True)  # noqa: S602 - a shell redirects
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_settings_are_shown_as_they_are_written(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = '[[prompt.files]]\npath = "pages/größe.md"\nsessions = ["owner"]\n[notebook]\nexclude = ["*.tmp.md"]\n'
    (root / "notebook.toml").write_text(block, encoding="utf-8")
    assert run(["-C", str(root), "config"]) == 0
    shown = tomllib.loads(capsys.readouterr().out)
    assert shown["notebook"]["exclude"] == ["*.tmp.md"]
    assert [(file["path"], file["sessions"]) for file in shown["prompt"]["files"]] == [("pages/größe.md", ["owner"])]


def test_the_next_step_after_init_can_be_run_whatever_the_folder_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--no-git", str(tmp_path / "Odile's notes")]) == 0
    *_, step = capsys.readouterr().out.splitlines()
    assert run(shlex.split(step)[2:]) == 0


def test_a_file_that_failed_is_named_once_in_a_batch() -> None:
    failed = [{"path": "pages/bad.md", "error": "line 2: no mapping"}]
    batch = {"event": "batch", "added": 1, "updated": 0, "moved": 0, "deleted": 0, "failed": failed}
    told = of_event({**batch, "paths": ["pages/bad.md"]})
    assert told == "1 added, 1 failed: pages/bad.md (line 2: no mapping)"


@pytest.mark.parametrize("broken", [b"[prompt]\nmax_tokens = 'many'\n", b"\xff\xfe"])
def test_a_slip_in_the_settings_leaves_an_agent_its_rules(
    root: Path, capsys: pytest.CaptureFixture[str], broken: bytes
) -> None:
    settings = root / "notebook.toml"
    settings.write_text("[[prompt.files]]\npath = 'pages/plan.md'\nsessions = ['owner']\n")
    calls = [["-C", str(root), "prompt", "--session", kind] for kind in ("owner", "task")]
    before = [(run(call), capsys.readouterr().out) for call in calls]
    settings.write_bytes(broken)
    for call, (code, shown) in zip(calls, before, strict=True):
        assert (run(call), code) == (0, 0)
        told = capsys.readouterr()
        assert told.out == shown
        assert "notebook.toml: " in told.err
        assert "as they last were good" in told.err
    assert "Start small." in before[0][1]
    assert "Start small." not in before[1][1]


def test_without_a_copy_of_good_settings_an_error_in_them_stands(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["-C", str(root), "prompt"])
    (root / "notebook.toml").unlink()
    assert run(["-C", str(root), "prompt"]) == 0  # which forgets the copy
    (root / "notebook.toml").write_text("[prompt\n")
    capsys.readouterr()
    assert run(["-C", str(root), "prompt"]) == 2
    told = capsys.readouterr()
    assert (told.out, "notebook.toml" in told.err) == ("", True)


def test_a_file_in_place_of_the_notebook_is_told_as_that(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(root / "pages/plan.md"), "list"]) == 2
    told = capsys.readouterr().err
    assert "plan.md is a file; name the notebook's folder" in told
    assert "init" not in told
