"""A snapshot holds what it was given, byte for byte, and the person's branch, index and files know nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_sync.errors import GitFailed
from notebook_sync.files import snapshots
from notebook_sync.files.snapshots import Snapshot
from tests.repositories import git

pytestmark = pytest.mark.usefixtures("no_git_settings")

NOTES = {
    "ferry.md": b"# Ferry\r\n\r\nNine and noon",
    "pages/empty.md": b"",
    "pages/blob.md": b"\x00\xff\ndone\ncommit refs/heads/main\n",
    'pages/a "line\nbreak\\".md': b"quoted",
    "pages/\u00e9t\u00e9 \U0001f40b.md": "café".encode(),
    "CON.md": b"a device elsewhere",
    "pages\\plan.md": b"a folder elsewhere",
}


@pytest.fixture(params=["sha1", "sha256"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch=main", f"--object-format={request.param}")
    return tmp_path


def taken(root: Path, name: str = "one", notes: dict[str, bytes] = NOTES, left_out: tuple[str, ...] = ()) -> Snapshot:
    found = snapshots.read(root, snapshots.take(root, name, notes.items(), "A name", left_out))
    assert found is not None
    return found


def test_what_was_given_comes_back(repository: Path) -> None:
    snapshot = taken(repository)
    assert dict(snapshots.contents(repository, snapshot, reversed(NOTES))) == NOTES
    assert all(snapshot.holds(path, raw) for path, raw in NOTES.items())
    assert not snapshot.holds("ferry.md", b"# Ferry\n")
    assert not snapshot.holds("pages/other.md", b"")
    git(repository, "fsck", "--strict")


def test_a_notebook_without_a_note_has_a_snapshot_too(repository: Path) -> None:
    assert taken(repository, notes={}).blobs == {}


def test_a_notebook_below_the_top_keeps_its_own_paths(repository: Path) -> None:
    notebook = repository / "notes" / "ferry"
    notebook.mkdir(parents=True)
    assert taken(notebook).blobs.keys() == NOTES.keys()


def test_what_could_not_be_read_is_remembered(repository: Path) -> None:
    snapshot = taken(repository, left_out=("pages/locked", 'pages/a\n"b\\.md', "caf\udce9.md"))
    assert snapshot.left_out == {"pages/locked", 'pages/a\n"b\\.md', "caf\udce9.md"}
    assert snapshot.is_silent_about("pages/locked/deep/plan.md")
    assert not snapshot.is_silent_about("pages/locked.md")
    assert taken(repository, "two", left_out=("",)).is_silent_about("anything.md")


@pytest.mark.parametrize("subject", ["", "two\nlines\n\nLeft-Out: ferry.md", "\0\ud800", "é" * 5000])
def test_a_name_is_one_line_and_tells_nothing_else(repository: Path, subject: str) -> None:
    snapshot = snapshots.read(repository, snapshots.take(repository, "one", NOTES.items(), subject, ()))
    assert snapshot is not None
    assert not snapshot.left_out


def test_branch_index_and_files_stay_as_they_are(repository: Path) -> None:
    (repository / "ferry.md").write_text("committed")
    git(repository, "add", "ferry.md")
    git(repository, "commit", "--quiet", "-m", "Begin")
    (repository / "ferry.md").write_text("staged")
    git(repository, "add", "ferry.md")
    (repository / "ferry.md").write_text("edited")
    (repository / "new.md").write_text("new")
    before = git(repository, "status", "--porcelain"), git(repository, "log", "--oneline", "HEAD", "--branches")
    index = (repository / ".git" / "index").read_bytes()
    taken(repository)
    assert (git(repository, "status", "--porcelain"), git(repository, "log", "--oneline", "--branches")) == before
    assert (repository / ".git" / "index").read_bytes() == index


def test_no_hook_or_filter_of_the_repository_runs(repository: Path, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    hook = repository / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
    hook.chmod(0o755)
    git(repository, "config", "filter.shout.clean", f"touch {witness}; tr a-z A-Z")
    (repository / ".gitattributes").write_text("*.md filter=shout text eol=lf\n")
    assert dict(snapshots.contents(repository, taken(repository), ["ferry.md"])) == {"ferry.md": NOTES["ferry.md"]}
    assert not witness.exists()


def test_git_keeps_a_snapshot_until_it_is_dropped(repository: Path) -> None:
    first, second = taken(repository, "one"), taken(repository, "two", {"ferry.md": b"other"})
    snapshots.drop(repository, ["one", "never-taken"])
    git(repository, "reflog", "expire", "--expire=now", "--all")
    git(repository, "gc", "--quiet", "--prune=now")
    assert snapshots.read(repository, first.commit) is None
    assert dict(snapshots.contents(repository, second, ["ferry.md"])) == {"ferry.md": b"other"}


def test_a_snapshot_is_never_replaced_by_another(repository: Path) -> None:
    first = taken(repository)
    with pytest.raises(GitFailed):
        snapshots.take(repository, "one", [("ferry.md", b"other")], "Again", ())
    assert git(repository, "rev-parse", f"{snapshots.REFS}/one").strip() == first.commit


def test_without_a_repository_there_is_none(tmp_path: Path) -> None:
    assert snapshots.take(tmp_path, "one", NOTES.items(), "A name", ()) == ""
    assert snapshots.read(tmp_path, "0" * 40) is None
    snapshots.drop(tmp_path, ["one"])


@pytest.mark.parametrize("commit", ["0" * 40, "", "HEAD", "--help", "f" * 64, "0" * 41])
def test_a_commit_that_is_not_there_is_no_snapshot(repository: Path, commit: str) -> None:
    taken(repository)
    assert snapshots.read(repository, commit) is None


@pytest.mark.parametrize("name", ["", "../heads/main", "a b", "-d", "a\n", "x" * 65])
def test_a_name_leads_to_no_other_ref(repository: Path, name: str) -> None:
    with pytest.raises(GitFailed):
        snapshots.take(repository, name, NOTES.items(), "A name", ())
    with pytest.raises(GitFailed):
        snapshots.drop(repository, [name])


def test_a_repository_that_git_does_not_open_is_told(repository: Path) -> None:
    (repository / ".git" / "config").write_text("[core\n")
    with pytest.raises(GitFailed):
        snapshots.take(repository, "one", NOTES.items(), "A name", ())
