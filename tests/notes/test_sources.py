"""Files for the prompt: what a save in progress leaves on disk for a moment is not what a model gets to read."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from notebook_sync.files.vault import Vault
from notebook_sync.notes.prompting.sources import PromptFiles
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
    assert list(copies.iterdir()) == []
    files.read(_PATH)
    assert [copy.read_bytes() for copy in copies.iterdir()] == [_RULES]


def _refuse(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")
