"""`[git] commit = "all"`: the watch process commits what people change by hand, and nothing else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.files.edits import Edit
from tests.surfaces.test_watch_command import Watcher, watching
from tests.waiting import eventually

SETTINGS = '[git]\ncommit = "all"\n\n[sync]\nsettle_ms = 100\n'


class Repository:
    """A notebook in git that is watched by a process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.watcher: Watcher | None = None

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=Odile", "-c", "user.email=odile@harbour.example")
        return subprocess.run(
            ["git", "-C", self.root, *identity, *arguments], check=True, capture_output=True, text=True
        ).stdout

    def write(self, **notes: str) -> None:
        for name, text in notes.items():
            (self.root / f"pages/{name}.md").write_text(text)

    def mirrored(self, *paths: str) -> None:
        """Wait until batches have told of these paths."""
        assert self.watcher is not None
        waiting = set(paths)
        while waiting:
            waiting -= set(self.watcher.until("batch")["paths"])

    def subjects(self) -> list[str]:
        return self.git("log", "--format=%s").splitlines()

    def becomes(self, *subjects: str) -> None:
        eventually(lambda: self.subjects() == [*subjects, "Begin"], f"the log is {subjects}")

    def left_open(self, *lines: str) -> None:
        """Only this is to be seen in the work tree and the index; git's own, too, has let go of them."""
        eventually(lambda: self.git("status", "--porcelain").splitlines() == list(lines), f"git shows {lines}")

    def in_head(self, path: str) -> str:
        return self.git("show", f"HEAD:{path}")

    def trouble(self) -> str:
        """What `status` says of the watch."""
        with Notebook.open(self.root) as notebook:
            return str((notebook.admin.status().watcher or {})["trouble"])

    def end(self) -> None:
        """Stop the watch, which commits what waits before it ends."""
        assert self.watcher is not None
        self.watcher.process.send_signal(signal.SIGTERM)
        _, complaints = self.watcher.process.communicate()
        assert (self.watcher.process.returncode, complaints) == (0, "")


@pytest.fixture
def unwatched(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "notebook")
    (repository.root / "pages").mkdir(parents=True)
    (repository.root / "notebook.toml").write_text(SETTINGS)
    (repository.root / ".gitignore").write_text(".notebook/\n")
    repository.write(
        ferry="# Ferry\n\nIt leaves at six.\n", crew="# Crew\n\nInes.\n", tides="# Tides\n\nHigh at nine.\n"
    )
    repository.git("init", "-q", "-b", "main")
    repository.git("config", "user.name", "Odile")
    repository.git("config", "user.email", "odile@harbour.example")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "Begin")
    return repository


@pytest.fixture
def repository(unwatched: Repository, shell_environment: dict[str, str]) -> Iterator[Repository]:
    with watching(unwatched.root, shell_environment) as watcher:
        watcher.until("ready")
        unwatched.watcher = watcher
        yield unwatched


def test_a_save_is_one_commit_of_that_note_that_says_so(repository: Repository) -> None:
    (repository.root / "list.txt").write_text("ropes\n")
    repository.git("add", "list.txt")
    (repository.root / "draft.txt").write_text("no note\n")
    repository.write(ferry="# Ferry\n\nIt leaves at seven.\n")
    repository.becomes("Change pages/ferry.md by hand")
    assert repository.in_head("pages/ferry.md") == "# Ferry\n\nIt leaves at seven.\n"
    assert repository.git("show", "--format=", "--name-status", "HEAD") == "M\tpages/ferry.md\n"
    assert repository.git("log", "-1", "--format=%an %(trailers:key=Changed-By,valueonly)").strip() == "Odile hand"
    repository.left_open("A  list.txt", "?? draft.txt")


def test_saves_deletions_and_moves_are_committed(repository: Repository) -> None:
    (repository.root / "pages/tides.md").rename(repository.root / "pages/water.md")
    (repository.root / "pages/crew.md").unlink()
    repository.write(ferry="# Ferry\n", lamps="# Lamps\n")
    repository.mirrored("pages/water.md", "pages/crew.md", "pages/ferry.md", "pages/lamps.md")
    repository.end()
    repository.left_open()
    assert set(repository.git("ls-tree", "-r", "--name-only", "HEAD", "pages").split()) == {
        "pages/ferry.md",
        "pages/lamps.md",
        "pages/water.md",
    }


def test_what_was_saved_last_is_committed_before_the_watch_ends(repository: Repository) -> None:
    repository.write(ferry="# Ferry\n")
    repository.mirrored("pages/ferry.md")
    repository.end()
    assert repository.subjects() == ["Change pages/ferry.md by hand", "Begin"]


def test_what_a_tool_changes_is_committed_by_the_tool_alone(repository: Repository) -> None:
    with Notebook.open(repository.root) as notebook:
        for number in range(5):
            edit = Edit("append_to_section", section="Crew", content=f"- {number}", reason="asked")
            assert notebook.edit("pages/crew.md", edit, Session.task("scribe")).commit
    repository.write(ferry="# Ferry\n")
    repository.mirrored("pages/ferry.md")
    repository.end()
    by_tools = ["Append to section in Crew: pages/crew.md"] * 5
    assert repository.subjects() == ["Change pages/ferry.md by hand", *by_tools, "Begin"]


def test_while_a_merge_stands_open_nothing_is_committed(repository: Repository) -> None:
    head = repository.git("rev-parse", "HEAD").strip()
    (repository.root / ".git/MERGE_HEAD").write_text(head + "\n")
    repository.write(ferry="# Ferry\n")
    repository.mirrored("pages/ferry.md")
    repository.write(crew="# Crew\n")
    repository.mirrored("pages/crew.md")
    repository.end()
    assert repository.subjects() == ["Begin"]


def test_on_no_branch_nothing_is_committed(repository: Repository) -> None:
    repository.git("checkout", "-q", "--detach")
    repository.write(ferry="# Ferry\n")
    repository.mirrored("pages/ferry.md")
    repository.end()
    assert repository.subjects() == ["Begin"]


@pytest.mark.parametrize("is_merge", [True, False])
def test_how_many_notes_wait_why_and_what_to_do_is_told_until_it_is_over(
    repository: Repository, is_merge: bool
) -> None:
    merge, watcher = repository.root / ".git/MERGE_HEAD", repository.watcher
    assert watcher is not None
    if is_merge:
        merge.write_text(repository.git("rev-parse", "HEAD"))
        why = "a merge stands open; end it, and what it leaves uncommitted is committed"
    else:
        repository.git("checkout", "-q", "--detach")
        why = "no branch is checked out; check one out, as with: git switch -c NAME"
    repository.write(ferry="# Ferry\n")
    one = f"1 note waits for its commit: {why}"
    assert watcher.until("trouble")["message"] == one
    eventually(lambda: repository.trouble() == one, "status tells of one note")
    repository.write(crew="# Crew\n")
    two = f"2 notes wait for their commit: {why}"
    eventually(lambda: repository.trouble() == two, "status tells of both")
    if is_merge:
        merge.unlink()
    else:
        repository.git("checkout", "-q", "main")
    assert watcher.until("recovered")["message"] == two
    eventually(lambda: repository.trouble() == "", "status tells of nothing")
    assert set(repository.git("show", "--format=", "--name-only").split()) == {"pages/crew.md", "pages/ferry.md"}


def test_on_no_branch_what_no_commit_lacks_waits_for_none(repository: Repository) -> None:
    assert repository.watcher is not None
    repository.write(ferry="# Ferry\n\nIt leaves at eight.\n")
    repository.becomes("Change pages/ferry.md by hand")
    repository.left_open()
    repository.git("checkout", "-q", "HEAD~1")
    repository.mirrored("pages/ferry.md")
    repository.write(crew="# Crew\n")
    assert repository.watcher.until("trouble")["message"].startswith("1 note waits for its commit")


def test_what_waited_for_a_merge_is_committed_after_it(repository: Repository) -> None:
    merge = repository.root / ".git/MERGE_HEAD"
    merge.write_text(repository.git("rev-parse", "HEAD"))
    repository.write(ferry="# Ferry\n")
    repository.mirrored("pages/ferry.md")
    merge.unlink()
    repository.becomes("Change pages/ferry.md by hand")


def test_a_checkout_of_another_branch_is_nobodys_change(repository: Repository) -> None:
    repository.write(ferry="# Ferry\n\nIt leaves at eight.\n")
    repository.becomes("Change pages/ferry.md by hand")
    repository.left_open()
    repository.git("checkout", "-q", "-b", "winter", "HEAD~1")
    repository.mirrored("pages/ferry.md")
    repository.end()
    assert repository.subjects() == ["Begin"]
    assert repository.git("log", "--format=%s", "main").splitlines() == ["Change pages/ferry.md by hand", "Begin"]


def test_where_git_fails_a_warning_is_told_and_the_commit_is_made_later(repository: Repository) -> None:
    assert repository.watcher is not None
    lock = repository.root / ".git/refs/heads/main.lock"
    lock.touch()
    repository.write(ferry="# Ferry\n")
    repository.mirrored("pages/ferry.md")
    assert "not committed" in repository.watcher.until("trouble")["message"]
    repository.write(crew="# Crew\n")
    repository.mirrored("pages/crew.md")
    lock.unlink()
    repository.left_open()


def test_a_git_that_hangs_holds_up_no_batch(
    unwatched: Repository, shell_environment: dict[str, str], tmp_path: Path
) -> None:
    hold, asked, real = tmp_path / "hold", tmp_path / "asked", shutil.which("git")
    wrapper = tmp_path / "slow/git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nwhile [ -e "{hold}" ]; do touch "{asked}"; sleep 0.05; done\nexec "{real}" "$@"\n')
    wrapper.chmod(0o755)
    environment = {**shell_environment, "PATH": f"{wrapper.parent}{os.pathsep}{shell_environment['PATH']}"}
    with watching(unwatched.root, environment) as watcher:
        unwatched.watcher = watcher
        watcher.until("ready")
        hold.touch()
        unwatched.write(ferry="# Ferry\n")
        unwatched.mirrored("pages/ferry.md")
        eventually(asked.exists, "git is asked")
        unwatched.write(crew="# Crew\n")
        unwatched.mirrored("pages/crew.md")
        hold.unlink()
        unwatched.left_open()


@pytest.mark.parametrize("commit", ["tools", "off"])
def test_where_it_is_not_asked_for_nothing_is_committed(
    unwatched: Repository, shell_environment: dict[str, str], commit: str
) -> None:
    (unwatched.root / "notebook.toml").write_text(SETTINGS.replace("all", commit))
    with watching(unwatched.root, shell_environment) as unwatched.watcher:
        unwatched.watcher.until("ready")
        unwatched.write(ferry="# Ferry\n")
        unwatched.mirrored("pages/ferry.md")
        unwatched.end()
    assert unwatched.subjects() == ["Begin"]


def test_without_a_repository_the_watch_goes_on(unwatched: Repository, shell_environment: dict[str, str]) -> None:
    shutil.rmtree(unwatched.root / ".git")
    with watching(unwatched.root, shell_environment) as unwatched.watcher:
        unwatched.watcher.until("ready")
        unwatched.write(ferry="# Ferry\n")
        unwatched.mirrored("pages/ferry.md")
        unwatched.end()


def test_files_of_the_prompt_wait_for_a_person_where_only_what_is_committed_is_trusted(
    unwatched: Repository, shell_environment: dict[str, str]
) -> None:
    (unwatched.root / "notebook.toml").write_text(f'{SETTINGS}\n[prompt]\ntrust = "committed"\n')
    (unwatched.root / "runtime").mkdir()
    with watching(unwatched.root, shell_environment) as watcher:
        watcher.until("ready")
        unwatched.watcher = watcher
        (unwatched.root / "runtime/reminders.md").write_text("- [ ] Send the list\n")
        unwatched.mirrored("runtime/reminders.md")
        unwatched.write(ferry="# Ferry\n\nIt leaves at seven.\n")
        unwatched.becomes("Change pages/ferry.md by hand")
        unwatched.end()
    unwatched.left_open(" M notebook.toml", "?? runtime/")
