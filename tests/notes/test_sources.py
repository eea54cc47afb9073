"""Files for the prompt: what a save in progress leaves on disk for a moment is not what a model gets to read."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from notebook_sync.files.vault import Vault
from notebook_sync.notes.prompting.sources import PromptFiles
from tests.repositories import commit_all
from tests.waiting import eventually

_PATH = "runtime/rules.md"
_RULES = b"- **Mira** (mira@example.org): draft only\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / _PATH
    file.parent.mkdir()
    file.write_bytes(_RULES)
    return file


def reading(root: Path, *, settle_seconds: float = 30.0) -> PromptFiles:
    return PromptFiles(Vault(root), root / ".notebook", settle_seconds)


def test_a_file_that_an_editor_is_about_to_replace_shows_its_last_good_version(tmp_path: Path, file: Path) -> None:
    files = reading(tmp_path)
    files.read(_PATH)
    file.rename(file.with_name("rules.md~"))
    for each in (files, reading(tmp_path)):
        found = each.read(_PATH)
        assert (found.content, found.problem) == (_RULES, "it is being written")


def test_a_file_that_was_removed_a_while_ago_is_gone(tmp_path: Path, file: Path) -> None:
    files = reading(tmp_path, settle_seconds=0.0)
    files.read(_PATH)
    file.unlink()
    assert files.read(_PATH).content is None
    file.with_name("other.md").write_text("x")
    assert reading(tmp_path).read(_PATH).content is None


def test_a_file_that_never_was_is_missing_and_no_trouble(tmp_path: Path, file: Path) -> None:
    found = reading(tmp_path).read("runtime/reminders.md")
    assert (found.content, found.problem) == (None, "")


def test_an_emptied_file_dated_in_the_future_is_taken_after_the_settle_time(tmp_path: Path, file: Path) -> None:
    files = reading(tmp_path, settle_seconds=0.05)
    files.read(_PATH)
    file.write_bytes(b"")
    os.utime(file, (time.time() + 10**8, time.time() + 10**8))
    eventually(lambda: files.read(_PATH).content == b"", "the empty file is what the prompt has")


def test_a_copy_that_could_not_be_written_leaves_nothing_and_is_tried_again(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = reading(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(Path, "replace", _refuse)
        assert files.read(_PATH).content == _RULES
    copies = tmp_path / ".notebook" / "good"
    assert list(copies.glob("*")) == []
    files.read(_PATH)
    assert [copy.read_bytes() for copy in copies.iterdir()] == [_RULES]


def _refuse(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


CONFLICT = b"<<<<<<< HEAD\n- one\n=======\n- other\n>>>>>>> branch\n"
UNUSABLE = {
    "binary": (b"\x89PNG\r\n\x1a\n\x00\x00", "line 3: a NUL byte"),
    "NUL": (b"- a\n- b\x00\n", "line 2: a NUL byte"),
    "UTF-16": ("- rule\n".encode("utf-16"), "it is UTF-16"),
    "UTF-16 without a mark": ("- rule\n".encode("utf-16-le"), "line 1: a NUL byte"),
    "Latin-1": (b"- a\n- caf\xe9 au lait\n", "line 2: not UTF-8"),
    "merge marks": (b"## Rules\n\n" + CONFLICT, "line 3: a mark of a merge conflict"),
}


@pytest.mark.parametrize(("raw", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_bytes_that_are_no_good_text_never_replace_the_last_good_copy(
    tmp_path: Path, file: Path, raw: bytes, reason: str
) -> None:
    files = reading(tmp_path, settle_seconds=0.0)
    files.read(_PATH)
    file.write_bytes(raw)
    for each in (files, reading(tmp_path, settle_seconds=0.0)):
        found = each.read(_PATH)
        assert (found.content, found.found) == (_RULES, raw)
        assert found.problem.startswith(reason)


@pytest.mark.parametrize(("raw", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_without_a_good_copy_the_last_commit_gives_one(tmp_path: Path, file: Path, raw: bytes, reason: str) -> None:
    commit_all(tmp_path)
    file.write_bytes(raw)
    found = reading(tmp_path, settle_seconds=0.0).read(_PATH)
    assert (found.content, found.problem.startswith(reason)) == (_RULES, True)


@pytest.mark.parametrize(("raw", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_without_any_good_version_there_is_no_content(tmp_path: Path, file: Path, raw: bytes, reason: str) -> None:
    file.write_bytes(raw)
    found = reading(tmp_path, settle_seconds=0.0).read(_PATH)
    assert (found.content, found.found, found.problem.startswith(reason)) == (None, raw, True)


def test_a_copy_of_an_unusable_file_is_not_taken_for_a_good_one(tmp_path: Path, file: Path) -> None:
    reading(tmp_path).read(_PATH)
    (copy,) = (tmp_path / ".notebook" / "good").iterdir()
    copy.write_bytes(CONFLICT)
    file.write_bytes(CONFLICT)
    assert reading(tmp_path, settle_seconds=0.0).read(_PATH).content is None


def test_marks_in_code_and_a_setext_heading_are_text(tmp_path: Path, file: Path) -> None:
    raw = b"Title\n=======\n\n```\n" + CONFLICT + b"```\n"
    file.write_bytes(raw)
    assert reading(tmp_path, settle_seconds=0.0).read(_PATH).content == raw
