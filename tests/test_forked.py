"""What is forked answers as what is started does, and ends with whoever started it."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from notebook_sync import Notebook, Session
from tests import forked
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(forked.is_real(), reason="nothing is to be forked")


@dataclass(frozen=True)
class Told:
    """What a command told."""

    code: int
    out: bytes
    err: bytes


@dataclass(frozen=True)
class Commands:
    """Runs the same script with the command of either kind in front of its PATH, in a new notebook each time."""

    folder: Path

    def told(self, script: str, environment: Mapping[str, str] | None = None, *, real: bool) -> Told:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        Notebook.init(folder / "ferry", git=False)
        (folder / "ferry/pages/plan.md").write_text("# Plan\n\nStart small.\n")
        (forked.write_real_command if real else forked.write_command)(folder)
        own = {"HOME": str(folder), "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(forked.REPOSITORY)}
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder / "ferry",
            env={**own, "LC_ALL": "C.UTF-8", **(environment or {})},
            capture_output=True,
            check=False,
            timeout=60,
        )
        out, err = (
            re.sub(rb"\d+\.\d s\b", b"0.1 s", printed.replace(os.fsencode(folder), b"/here"))
            for printed in (done.stdout, done.stderr)
        )
        return Told(done.returncode, out, err)

    def same(self, script: str, environment: Mapping[str, str] | None = None) -> Told:
        """What both told, which is the same."""
        told = self.told(script, environment, real=False)
        assert told == self.told(script, environment, real=True)
        return told


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(forked.REPOSITORY), "LC_ALL": "C.UTF-8"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A notebook in which two things were done."""
    root = tmp_path / "root"
    Notebook.init(root, git=False)
    with Notebook.open(root) as notebook:
        for path in ("pages/plan.md", "pages/crew.md"):
            notebook.events.record("changed", Session.owner(), paths=[path])
    return root


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


def test_it_prints_the_same_and_leaves_the_same(commands: Commands) -> None:
    told = commands.same("umask 077; notebook-sync sync; stat -c %a .notebook/*")
    assert (told.code, told.err) == (0, b"")
    assert told.out.startswith(b"4 added")


def test_it_complains_the_same(commands: Commands) -> None:
    assert commands.same("notebook-sync lst").code == 2
    assert commands.same("notebook-sync -C /nowhere list --json").code == 2


def test_it_reads_what_is_piped(commands: Commands) -> None:
    script = "printf 'Ahoy \\303\\274\\n' | notebook-sync create pages --title Ahoy --content - | cut -d' ' -f1"
    assert commands.same(f"{script}; cat pages/*hoy*.md | tail -n 1").out.endswith("Ahoy ü\n".encode())


def test_it_ends_the_same_where_nobody_reads_it_or_nothing_can_be_read(commands: Commands) -> None:
    nobody = 'mkfifo pipe; cat pipe >read & exec 3>pipe; kill %1; wait; notebook-sync config >&3; echo "$?"'
    assert commands.same(nobody).out == b"141\n"
    assert commands.same("notebook-sync --help >&-").code == 0
    assert commands.same("notebook-sync config >/dev/full").code == 1
    assert commands.same("notebook-sync mcp <&-").code == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_it_the_same(root: Path, number: signal.Signals) -> None:
    with Notebook.open(root) as notebook:
        first, _ = notebook.events.read()
    ends = set()
    for command in (forked.command(), forked.real_command()):
        following = [*command, "-C", str(root), "events", "--follow", "--since", first["id"]]
        with subprocess.Popen(following, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert b"changed" in process.stdout.readline()
            process.send_signal(number)
            ends.add((*process.communicate(timeout=60), process.returncode))
    ((_, _, code),) = ends
    assert code == (130 if number == signal.SIGINT else -number)


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "", "LANG": ""},
        {"LC_ALL": "POSIX"},
        {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "latin-1"},
        {"PYTHONUNBUFFERED": "1", "TZ": "Asia/Tokyo", "COLUMNS": "40"},
    ],
    ids=lambda environment: "-".join(f"{name}={value}" for name, value in environment.items()),
)
def test_the_environment_is_its_own(commands: Commands, environment: dict[str, str]) -> None:
    told = commands.same("notebook-sync create --help; notebook-sync $'F\\303\\244hre\\xff'", environment)
    assert (told.code, told.out[:6]) == (2, b"usage:")


def test_where_its_folder_has_gone_it_says_the_same(commands: Commands) -> None:
    assert commands.same("mkdir gone; cd gone; rmdir ../gone; notebook-sync -C ~/ferry config").code == 0


def test_called_from_here_it_answers_as_from_a_shell(commands: Commands, tmp_path: Path) -> None:
    root = tmp_path / "ferry"
    forked.run(["init", "--no-git", str(root)], env=ENVIRONMENT).check_returncode()
    made = forked.run(
        ["create", "pages", "--title", "Ahoy", "--content", "-"], env=ENVIRONMENT, cwd=root, text="Hi ü\n"
    )
    assert (made.returncode, made.stderr) == (0, "")
    (listed,) = json.loads(forked.run(["list", "--json"], env=ENVIRONMENT, cwd=root).stdout)
    assert listed["title"] == "Ahoy"
    assert forked.run(["list", "--no"], env=ENVIRONMENT, cwd=root).returncode == 2


def test_killed_it_takes_the_command_with_it(root: Path) -> None:
    watching = [*forked.command(), "-C", str(root), "watch", "--json"]
    with subprocess.Popen(watching, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert "ready" in (json.loads(line)["event"] for line in watch.stdout)
        status = forked.run(["-C", str(root), "status", "--json"], env=ENVIRONMENT)
        pid = json.loads(status.stdout)["watcher"]["pid"]
        assert pid != watch.pid
        watch.kill()
        eventually(lambda: not psutil.pid_exists(pid), "the command has ended")


def test_a_command_that_ends_in_the_moment_in_which_it_is_killed_ends_no_other(root: Path) -> None:
    watching = [*forked.command(), "-C", str(root), "watch", "--json"]
    with subprocess.Popen(watching, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert "ready" in (json.loads(line)["event"] for line in watch.stdout)
        status = forked.run(["-C", str(root), "status", "--json"], env=ENVIRONMENT)
        running = psutil.Process(json.loads(status.stdout)["watcher"]["pid"])
        server = running.parent()
        assert server is not None
        server.suspend()
        running.kill()
        end = os.pidfd_open(running.pid)
        assert select.select([end], [], [], 30)[0]
        os.close(end)
        watch.kill()
        watch.wait()
        server.resume()
    assert forked.run(["--version"], env=ENVIRONMENT).returncode == 0
