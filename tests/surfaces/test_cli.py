"""The command line as its users meet it: real processes in a real folder."""

import io
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from notebook_sync.__main__ import main
from notebook_sync.surfaces.cli.index import NAMES
from notebook_sync.surfaces.cli.main import arranged, run
from tests.processes import command, run_command, start_command
from tests.services.conftest import FILES, add_settings, write_files
from tests.waiting import eventually


@pytest.fixture
def root(folder: Path) -> Path:
    return write_files(folder, FILES)


def test_a_first_hour_in_a_folder_of_markdown(root: Path) -> None:
    done = run_command("-C", root, "sync", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["added"], report["failed"]) == (0, len(FILES) - 1, [])
    assert report.keys() >= {"added", "updated", "moved", "deleted", "unchanged", "failed", "warnings", "seconds"}
    assert "Never pay" in run_command("-C", root, "prompt").stdout
    assert "pages/ferry.md" in run_command("-C", root, "search", "rope").stdout
    assert run_command("-C", root, "search", "zzzz").returncode == 1
    made = json.loads(run_command("-C", root, "create", "Fog", "--content", "In May.", "--json").stdout)
    edited = run_command(
        *("-C", root, "edit", made["path"], "write", "--content", "-", "--session", "owner"),
        stdin="# Fog\r\n\r\nJune.\r\n",
    )
    assert edited.returncode == 0
    assert (root / made["path"]).read_bytes() == b"# Fog\r\n\r\nJune.\r\n"
    assert "June" in run_command("-C", root, "diff", made["path"]).stdout
    assert run_command("-C", root, "undo", made["path"], "--session", "owner").returncode == 0
    assert "In May." in (root / made["path"]).read_text()
    assert run_command("-C", root, "check").returncode in (0, 1)
    assert json.loads(run_command("-C", root, "verify", "--json").stdout)["consistent"]
    assert json.loads(run_command("-C", root, "status", "--json").stdout)["facts"] == 1


def test_init_adds_only_its_own_files_to_a_folder_of_notes(root: Path) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert run_command("init", root, "--no-git").returncode == 0
    assert all(path.read_bytes() == raw for path, raw in before.items())
    assert run_command("init", root, "--no-git").returncode == 0


def test_watch_prints_one_object_a_line_until_it_is_stopped(root: Path) -> None:
    process = start_command("-C", root, "watch", "--json")
    assert process.stdout is not None
    lines = (json.loads(line) for line in process.stdout)
    first = next(event for event in lines if event["event"] == "batch")  # what was there before
    assert next(event for event in lines if event["event"] == "ready")["file_events"] in (True, False)
    (root / "pages/fog.md").write_text("# Fog\n")
    batch = next(event for event in lines if event["event"] == "batch")
    assert (first["added"], batch["added"], batch["paths"]) == (len(FILES) - 1, 1, ["pages/fog.md"])
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.communicate()


def test_the_first_process_of_a_container_ends_at_sigterm_whatever_it_does(root: Path) -> None:
    namespace = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("the system allows no process namespaces")
    with subprocess.Popen([*namespace, *command(), "-C", str(root), "events", "--follow"]) as process:
        first = eventually(lambda: psutil.Process(process.pid).children(), "it has started")[0]

        def has_ended() -> bool:
            with suppress(psutil.NoSuchProcess):
                first.terminate()
            return process.poll() is not None

        try:
            eventually(has_ended, "it has ended")
        finally:
            process.kill()
    assert process.returncode == 143


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    assert capsys.readouterr().out
    assert run(["help", name]) == 0


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["serch", "x"], 2, "did you mean search?"),
        (["search", "x", "--limt", "3"], 2, "did you mean --limit?"),
        (["search", "x", "--limit", "many"], 2, "limit"),
        (["list", "--collection", "boats"], 2, "pages"),
        (["read", "no/such"], 1, "no note"),
        (["token", "shw"], 2, "did you mean token show?"),
        (["edit", "ferry", "write", "--content", "x", "--session", "task"], 3, "owner"),
        (["edit", "ferry", "write", "--content-file", "/nowhere"], 2, "/nowhere"),
        (["list", "--session", "boss"], 2, "owner, task, external"),
        (["read", "\udcff"], 2, "not valid Unicode text"),
        (["memory", "graph", "/dev/null"], 2, "File exists"),
        (["events", "--follow", "-n", "3"], 2, "leave --limit out"),
    ],
)
def test_an_error_says_what_to_do_and_has_its_exit_code(
    root: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, said: str
) -> None:
    run(["-C", str(root), "sync"])
    capsys.readouterr()
    assert run(["-C", str(root), *argv]) == code
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    if argv[0] in NAMES:
        assert run(["-C", str(root), *argv, "--json"]) == code
        shown = capsys.readouterr()
        assert json.loads(shown.out)["error"].keys() >= {"type", "message", "next"}
        assert shown.err == ""


def test_an_encoding_that_is_not_there_is_an_error_with_advice(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toml = root / "notebook.toml"
    toml.write_text(f'{toml.read_text()}\n[prompt]\nencoding = "quipu"\n')
    assert run(["-C", str(root), "read", "pages/ferry.md", "--max-tokens", "5"]) == 2
    assert "'quipu' is not available offline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["-C", "a", "ls"], ("a", ["list"])),
        (["ls", "-Ca"], ("a", ["list"])),
        (["--json", "ls", "-C", "a"], ("a", ["list", "--json"])),
        (["--session", "task", "rm", "x"], (None, ["delete", "x", "--session", "task"])),
        (["find", "--", "-C"], (None, ["search", "--", "-C"])),
        ([], (None, [])),
    ],
)
def test_options_are_taken_before_and_after_the_command(
    argv: list[str], expected: tuple[str | None, list[str]]
) -> None:
    assert arranged(argv) == expected


def test_who_asks_is_the_owner_on_a_terminal_and_a_task_session_elsewhere(root: Path) -> None:
    run_command("-C", root, "sync")
    refused = run_command("-C", root, "edit", "ferry", "write", "--content", "x")
    assert (refused.returncode, "owner" in refused.stderr) == (3, True)
    leader, follower = pty.openpty()
    done = subprocess.run(
        [*command(), "-C", str(root), "edit", "ferry", "write", "--content", "# New\n"],
        stdin=follower,
        capture_output=True,
        check=False,
    )
    os.close(leader)
    os.close(follower)
    assert done.returncode == 0
    assert run_command("-C", root, "list", env={**os.environ, "NOTEBOOK_SESSION": "external"}).returncode == 0


def test_control_characters_are_escaped_on_a_terminal_and_raw_in_a_pipe(root: Path) -> None:
    (root / "pages/bell.md").write_bytes(b"# Bell\n\n\x1b[31mred\n")
    run_command("-C", root, "sync")
    assert "\x1b[31m" in run_command("-C", root, "read", "bell").stdout
    leader, follower = pty.openpty()
    subprocess.run([*command(), "-C", str(root), "read", "bell"], stdout=follower, check=True, stdin=follower)
    os.close(follower)
    shown = os.read(leader, 65536)
    os.close(leader)
    assert b"\x1b" not in shown
    assert b"\\x1b[31mred" in shown


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["sync"], 4, "Connection refused"),
        (["memory", "add", "Fog"], 0, "marked for review"),
        (["check"], 0, "is missing"),
    ],
)
def test_what_is_wrong_is_printed_once(
    root: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, said: str
) -> None:
    (root / "runtime/reminders.md").unlink()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and nothing listens there
        add_settings(root, f'[refs]\nurl = "redis://127.0.0.1:{silent.getsockname()[1]}"\n')
        assert run(["-C", str(root), *argv]) == code
    shown = capsys.readouterr()
    assert (shown.out + shown.err).count(said) == 1


def test_a_closed_pipe_and_a_full_disk_end_in_order(root: Path) -> None:
    run_command("-C", root, "sync")
    for options in ("| true", "> /dev/full", ">&-"):
        shell = f"set -o pipefail; {' '.join(command())} -C {root} config {options}"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        assert done.returncode in (0, 1, 141)


def test_the_demo_shows_a_prompt_with_content(tmp_path: Path) -> None:
    done = run_command("demo", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    for part in ("always respond, within the hour", "Mira Holt", "No evening boat in winter", "agent:scribe"):
        assert part in done.stdout


@pytest.mark.parametrize(
    ("argv", "unneeded"),
    [
        (["--version"], {"argparse", "json", "msgspec", "dataclasses"}),
        (["--help"], {"argparse", "dataclasses", "msgspec", "inspect"}),
        (["prompt"], {"sqlite3", "yaml", "numpy", "pymongo", "redis", "jinja2", "tiktoken", "notebook_sync.store"}),
        (["read", "ferry"], {"numpy", "pymongo", "redis", "jinja2", "tiktoken", "watchfiles", "tqdm", "mcp"}),
        (["search", "rope", "--mode", "keyword"], {"numpy", "wordllama", "pymongo", "redis", "jinja2", "tiktoken"}),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_command_imports_only_what_it_needs(root: Path, argv: list[str], unneeded: set[str]) -> None:
    run_command("-C", root, "sync")
    place = [] if argv[0].startswith("-") else ["-C", str(root)]
    run_command(*place, *argv)  # which counts tokens, that are known from then on
    shell = [sys.executable, "-X", "importtime", *command()[1:], *place, *argv]
    done = subprocess.run(shell, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "notebook_sync" in imported
    assert imported & unneeded == set()


def test_an_interrupt_ends_a_command_without_a_traceback(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin = Mock(buffer=Mock(read=Mock(side_effect=KeyboardInterrupt)))
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(sys, "argv", ["", "-C", str(root), "update", "ferry", "--content", "-"])
    assert main() == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in NAMES)
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=printed, text=True, check=True)


@pytest.mark.parametrize(("typed", "is_done"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_what_cannot_be_taken_back_is_asked_for(
    root: Path, monkeypatch: pytest.MonkeyPatch, typed: str, is_done: bool
) -> None:
    run(["-C", str(root), "sync"])
    monkeypatch.setattr(sys, "stdin", Mock(isatty=lambda: True, readline=io.StringIO(typed).readline))
    assert run(["-C", str(root), "purge", "pages/idea"]) == 0
    assert (root / "pages/idea.md").exists() != is_done


def test_connect_never_takes_the_folder_of_a_project_for_a_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["connect", "claude", "--write", "--yes"]) == 2
    assert "-C DIR" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_follows_two_dashes_is_no_option(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "-n.md").write_text("# Dash\n")
    assert run(["-C", str(root), "sync"]) == 0
    for words in (["read", "--", "-n.md"], ["search", "--limit", "1", "--", "-n dash"], ["--json", "read", "--", "-n"]):
        capsys.readouterr()
        assert run(["-C", str(root), *words]) == 0
        assert "Dash" in capsys.readouterr().out


def test_connect_merges_one_entry_and_nothing_else(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bin/notebook-sync"])  # another program may not have it on its PATH
    assert run(["-C", str(root), "connect", "claude", "--agent", "scribe"]) == 0
    assert '"mcpServers"' in capsys.readouterr().out
    other = ["-C", str(root), "connect", "other"]
    assert (run(other), run([*other, "--write"])) == (0, 2)
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}, "kept": 1}')
    (tmp_path / ".mcp.json").chmod(0o600)
    for _ in range(2):
        assert run(["-C", str(root), "connect", "claude", "--write", "--yes"]) == 0
    merged = json.loads((tmp_path / ".mcp.json").read_text())
    assert (merged["kept"], (tmp_path / ".mcp.json").stat().st_mode & 0o777) == (1, 0o600)
    assert merged["mcpServers"].keys() == {"other", "notebook"}
    assert merged["mcpServers"]["notebook"]["command"] == str(tmp_path / "bin/notebook-sync")
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text("{ // mine\n}")
    assert run(["-C", str(root), "connect", "cursor", "--write", "--yes"]) == 2
    assert (tmp_path / ".cursor/mcp.json").read_text() == "{ // mine\n}"
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_bytes(b"# mine\r\nmodel = 'x'\r\n")
    assert run(["-C", str(root), "connect", "codex", "--write", "--yes"]) == 0
    written = (tmp_path / ".codex/config.toml").read_bytes()
    assert written.startswith(b"# mine\r\nmodel = 'x'\r\n")
    assert "notebook" in tomllib.loads(written.decode())["mcp_servers"]
