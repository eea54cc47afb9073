"""Syntheses made ahead beside a watch and a server: what starts them, and that nothing waits for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import ConfigError
from notebook_sync.surfaces.beside import following, prefetching_process
from notebook_sync.surfaces.beside import process as process_beside
from notebook_sync.surfaces.beside.prefetching_process import Branches, prefetching
from notebook_sync.surfaces.beside.process import ProcessBeside
from notebook_sync.surfaces.cli.main import run
from tests.waiting import eventually

ON = '[tier2]\nenabled = true\nspecs = ["specs/"]\n'


class Commands:
    """Stands where processes are started; each takes as long as it is held."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []
        self.held = threading.Event()
        self.held.set()
        self.codes: list[int] = []

    def run(self, *arguments: str) -> int:
        self.ran.append(arguments)
        self.held.wait()
        return self.codes.pop() if self.codes else 0

    def close(self) -> None:
        self.held.set()


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    commands = Commands()
    monkeypatch.setattr(prefetching_process, "ProcessBeside", lambda _: commands)
    monkeypatch.setattr(prefetching_process, "_QUIET_SECONDS", 0.02)
    return commands


@pytest.fixture
def specs(root: Path) -> Path:
    """A notebook with syntheses, and two specs, the second of which was changed last."""
    (root / "notebook.toml").write_text(ON)
    (root / "specs").mkdir()
    for number, name in enumerate(("pier", "ferry")):
        spec = root / f"specs/{name}.md"
        spec.write_text(f"# {name.title()}\n")
        time = 1_700_000_000 + number
        os.utime(spec, (time, time))
    return root


def git(root: Path, *arguments: str) -> None:
    author = ("-c", "user.name=Ines", "-c", "user.email=ines@ferry.example")
    subprocess.run(["git", "-C", str(root), *author, *arguments], check=True, capture_output=True)


class TestSaved:
    def test_a_spec_that_was_saved_is_prefetched_and_no_other_note_is(self, specs: Path, commands: Commands) -> None:
        with Notebook.open(specs) as notebook, prefetching(notebook) as saved:
            saved(["pages/plan.md"])
            saved({"specs/pier.md", "pages/plan.md", "specs/gone.md"})
            eventually(lambda: commands.ran, "it was prefetched")
        assert commands.ran == [("context", "prefetch", "--", "specs/pier.md")]

    def test_what_is_saved_meanwhile_is_prefetched_next(self, specs: Path, commands: Commands) -> None:
        commands.held.clear()
        with Notebook.open(specs) as notebook, prefetching(notebook) as saved:
            saved(["specs/pier.md"])
            eventually(lambda: len(commands.ran) == 1, "the first began")
            for _ in range(3):
                saved(["specs/pier.md"])
            saved(["specs/ferry.md"])
            commands.held.set()
            eventually(lambda: len(commands.ran) == 2, "the next began")
        assert commands.ran[1] == ("context", "prefetch", "--", "specs/ferry.md", "specs/pier.md")

    def test_of_a_whole_checkout_few_are_prefetched_those_that_were_saved_last(
        self, specs: Path, commands: Commands
    ) -> None:
        names = [f"specs/{number:02}.md" for number in range(60)]
        for number, name in enumerate(names):
            (specs / name).write_text("# Tide\n")
            os.utime(specs / name, (1_800_000_000 + number, 1_800_000_000 + number))
        with Notebook.open(specs) as notebook, prefetching(notebook) as saved:
            saved(names)
            eventually(lambda: commands.ran, "some were prefetched")
        assert commands.ran == [("context", "prefetch", "--", *names[:-6:-1])]

    def test_what_fails_is_tried_again_twice(
        self, specs: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(prefetching_process, "_AGAIN_SECONDS", (0.0, 0.0))
        commands.codes = [1, 1, 1]
        with Notebook.open(specs) as notebook, prefetching(notebook) as saved:
            saved(["specs/pier.md"])
            eventually(lambda: len(commands.ran) == 3, "it was tried three times")
            saved(["specs/ferry.md"])
            eventually(lambda: len(commands.ran) == 4, "the next one was tried")
        assert [ran[3:] for ran in commands.ran] == [("specs/pier.md",)] * 3 + [("specs/ferry.md",)]
        assert "prefetch ended with exit code 1; see notebook-sync context prefetch specs/pier.md" in caplog.text

    def test_what_cannot_be_looked_for_is_told_and_holds_up_nothing_else(
        self, specs: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        heads = iter(["winter"])
        monkeypatch.setattr(Branches, "new", lambda _: next(heads, ""))
        with Notebook.open(specs) as notebook:
            monkeypatch.setattr(notebook.vault, "scan", lambda: (specs / "gone").stat())
            with prefetching(notebook) as saved:
                eventually(lambda: "could not be looked for" in caplog.text, "it was told")
                saved(["specs/pier.md"])
                eventually(lambda: commands.ran, "the spec was prefetched")

    @pytest.mark.parametrize("settings", ["", '[tier2]\nspecs = ["specs/"]\n', "[tier2]\nenabled = true\n"])
    def test_nothing_is_started_where_nobody_asked_for_it(
        self, specs: Path, monkeypatch: pytest.MonkeyPatch, settings: str
    ) -> None:
        monkeypatch.setattr(prefetching_process, "PrefetchingProcess", None)
        (specs / "notebook.toml").write_text(settings)
        with Notebook.open(specs) as notebook, prefetching(notebook) as saved:
            saved(["specs/pier.md"])

    def test_specs_that_are_no_patterns_are_told(self, specs: Path) -> None:
        (specs / "notebook.toml").write_text('[tier2]\nenabled = true\nspecs = ["[z-a]"]\n')
        with (
            Notebook.open(specs) as notebook,
            pytest.raises(ConfigError, match=r"tier2\.specs"),
            prefetching(notebook),
        ):
            pass


class TestBranches:
    def test_a_new_branch_has_its_specs_prefetched(self, specs: Path, commands: Commands) -> None:
        git(specs, "init", "-b", "main")
        git(specs, "add", ".")
        git(specs, "commit", "-m", "Begin")
        with Notebook.open(specs) as notebook, prefetching(notebook) as saved:
            saved(["specs/pier.md"])
            eventually(lambda: commands.ran, "it has looked at the branches that there are")
            git(specs, "checkout", "-b", "fix/pier-lights")
            eventually(lambda: len(commands.ran) == 2, "the spec that it names")
            git(specs, "checkout", "-b", "winter")
            eventually(lambda: len(commands.ran) == 3, "the latest spec")
        assert [ran[3:] for ran in commands.ran] == [("specs/pier.md",), ("specs/pier.md",), ("specs/ferry.md",)]

    def test_a_branch_is_new_once(self, specs: Path) -> None:
        git(specs, "init", "-b", "main")
        git(specs, "add", ".")
        git(specs, "commit", "-m", "Begin")
        git(specs, "branch", "old")
        branches = Branches(specs / "pages")
        assert branches.new() == ""
        git(specs, "checkout", "-b", "häfen/süd")
        assert (branches.new(), branches.new()) == ("häfen/süd", "")
        for known in ("old", "häfen/süd", "main"):
            git(specs, "checkout", known)
            assert branches.new() == ""
        git(specs, "checkout", "--detach")
        assert branches.new() == ""

    def test_without_a_repository_there_are_none(self, root: Path) -> None:
        assert Branches(root).new() == ""


class TestBeside:
    def test_a_watch_tells_what_was_saved(self, specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        told: list[str] = []

        @contextmanager
        def fake(_: Notebook) -> Iterator[Callable[[Collection[str]], None]]:
            def saved(paths: Collection[str]) -> None:
                told.extend(paths)
                if "specs/pier.md" in paths:
                    signal.raise_signal(signal.SIGTERM)

            yield saved

        monkeypatch.setattr(prefetching_process, "prefetching", fake)
        (specs / "notebook.toml").write_text(f'{ON}[search]\nembeddings = "off"\n')
        assert run(["-C", str(specs), "watch"]) == 0
        assert "specs/pier.md" in told

    def test_a_server_tells_what_was_saved(self, specs: Path) -> None:
        told: list[str] = []
        with Notebook.open(specs) as notebook:
            begun = following.Following(notebook, watch=True, changed=told.extend)
            with begun.running():
                eventually(lambda: "specs/pier.md" in told, "it was told")


class TestProcess:
    @pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN])
    def test_a_command_that_never_ends_is_broken_off(self, root: Path, before: Any) -> None:
        """Also beside a program that ignores SIGINT, as a shell has those do that it starts with `&`."""
        (root / "notebook.toml").write_text('[search]\nembeddings = "off"\n')
        beside = ProcessBeside(root)
        thread = threading.Thread(target=beside.run, args=("watch",))
        usual = signal.signal(signal.SIGINT, before)
        try:
            thread.start()
            eventually((root / ".notebook/watch.lock").exists, "it has begun")
        finally:
            signal.signal(signal.SIGINT, usual)
        beside.close()
        thread.join(30)
        assert not thread.is_alive()
        assert beside.run("--version") == -1

    def test_a_command_that_will_not_end_is_ended(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process_beside, "_GRACE_SECONDS", 0.1)
        deaf = root / "deaf"
        deaf.write_text(f'#!/bin/sh\ntrap "" TERM INT; : > "{root}/begun"; while :; do sleep 600; done\n')
        deaf.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(deaf))
        beside, codes = ProcessBeside(root), list[int]()
        thread = threading.Thread(target=lambda: codes.append(beside.run("watch")))
        thread.start()
        eventually((root / "begun").exists, "it has begun")
        beside.close()
        thread.join(30)
        assert codes == [-signal.SIGKILL]

    def test_one_that_cannot_be_started_is_told(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(sys, "executable", str(root / "nowhere"))
        assert ProcessBeside(root).run("context", "prefetch") == -1
        assert "context prefetch could not be started: No such file" in caplog.text
