"""Which version of a prompt file is shown: what a save leaves on disk for a moment is not what a model reads."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.services.assembling import CountFile, files_of
from tests.services.conftest import make_repository, write_files
from tests.waiting import eventually

PATH = "runtime/standing-orders.md"
RULES = b"- **Mira** (mira@example.org): draft only\n"
CONFLICT = b"<<<<<<< HEAD\n- one\n=======\n- other\n>>>>>>> branch\n"
UNUSABLE = {
    "NUL": (b"- a\n- b\x00\n", "line 2: a NUL byte"),
    "UTF-16": ("- rule\n".encode("utf-16"), "line 1: it is UTF-16"),
    "Latin-1": (b"- a\n- caf\xe9 au lait\n", "line 2: not UTF-8"),
    "merge marks": (b"## Rules\n\n" + CONFLICT, "line 3: a mark of a merge conflict"),
    "empty": (b" \n", "it is empty"),
}


@pytest.fixture
def file(folder: Path) -> Path:
    write_files(folder, {PATH: RULES.decode(), "notebook.toml": "[sync]\nsettle_ms = 0\n"})
    return folder / PATH


def read(root: Path) -> tuple[bytes | None, str]:
    """What is shown, and why, to a process that has just started."""
    with Notebook.open(root) as notebook:
        found = files_of(notebook.core).shown.read(PATH)
    return found.content, found.problem


def settle(root: Path, milliseconds: int) -> None:
    write_files(root, {"notebook.toml": f"[sync]\nsettle_ms = {milliseconds}\n"})


@pytest.mark.parametrize(("raw", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_the_last_good_version_stands_in(folder: Path, file: Path, raw: bytes, reason: str) -> None:
    read(folder)
    file.write_bytes(raw)
    content, problem = read(folder)
    assert content == RULES
    assert problem.startswith(reason)
    assert "its last good version is shown" in problem


@pytest.mark.parametrize(("raw", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_without_a_copy_the_last_commit_gives_one(folder: Path, file: Path, raw: bytes, reason: str) -> None:
    make_repository(folder)
    file.write_bytes(raw)
    content, problem = read(folder)
    assert (content, problem.startswith(reason)) == (RULES, True)


def test_without_any_good_version_one_line_says_so_and_an_empty_file_is_empty(folder: Path, file: Path) -> None:
    file.write_bytes(CONFLICT)
    assert read(folder)[0] == f"[{PATH} cannot be read and is not shown]\n".encode()
    file.write_bytes(b"")
    eventually(lambda: read(folder) == (b"", ""), "a file that never said anything is empty")


def test_a_copy_that_somebody_spoiled_is_not_good(folder: Path, file: Path) -> None:
    read(folder)
    (copy,) = (folder / ".notebook/good").glob("*.md")
    assert copy.stat().st_mode & 0o777 == 0o600
    copy.write_bytes(CONFLICT)
    file.write_bytes(CONFLICT)
    assert (read(folder)[0] or b"").startswith(b"[runtime/")


@pytest.mark.parametrize("raw", [b"", b"---\ntitle: Ru", "- Café".encode()[:-1], None])
def test_a_file_that_is_being_written_shows_what_it_was(folder: Path, file: Path, raw: bytes | None) -> None:
    settle(folder, 30_000)
    read(folder)
    if raw is None:
        file.rename(file.with_name("rules.md~"))
    else:
        file.write_bytes(raw)
    content, problem = read(folder)
    assert (content, problem) == (RULES, "it is being written; its last good version is shown")


def test_after_the_settle_time_what_is_there_counts_whatever_its_mtime_says(folder: Path, file: Path) -> None:
    settle(folder, 50)
    read(folder)
    os.utime(file, (time.time() + 10**8, time.time() + 10**8))
    file.unlink()
    eventually(lambda: read(folder) == (None, ""), "the file is gone")


def test_a_deleted_file_is_missing_and_its_copy_forgotten(folder: Path, file: Path) -> None:
    read(folder)
    file.unlink()
    assert read(folder) == (None, "")
    file.write_bytes(CONFLICT)
    assert (read(folder)[0] or b"").startswith(b"[runtime/")


def test_links_and_large_files_are_not_shown(folder: Path, file: Path) -> None:
    read(folder)
    write_files(folder, {"notebook.toml": "[notebook]\nmax_file_bytes = 50\n[sync]\nsettle_ms = 0\n"})
    file.write_bytes(b"- rule\n" * 20)
    assert "more than notebook.max_file_bytes" in read(folder)[1]
    file.unlink()
    file.symlink_to("/etc/hostname")
    content, problem = read(folder)
    assert (content, "symbolic link" in problem) == (RULES, True)


def test_a_disk_that_takes_no_copy_costs_nothing(folder: Path, file: Path) -> None:
    with Notebook.open(folder) as notebook:
        shown = files_of(notebook.core).shown
        shutil.rmtree(folder / ".notebook/good")
        (folder / ".notebook/good").write_text("in the way")
        assert shown.read(PATH).content == RULES
        file.write_bytes(CONFLICT)
        assert shown.read(PATH).content == RULES  # this process remembers


@pytest.mark.parametrize("text", ["", "[]", '{"a": -1, "b": true, "c": 1.5}', "{" * 10_000])
def test_counts_that_cannot_be_read_are_counted_again(tmp_path: Path, text: str) -> None:
    path = tmp_path / "counts.json"
    path.write_text(text)
    counts = CountFile(path)
    assert (counts.get("a"), counts.get("b")) == (None, None)
    for number in range(5_000):
        counts.put(f"{number}", number)
    counts.save()
    kept = CountFile(path)
    assert (kept.get("0"), kept.get("4999")) == (None, 4999)
