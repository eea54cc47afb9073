"""Opening below a folder: links lead nowhere and a held file keeps nobody waiting, with one system call or without."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync.errors import UnreadableFile
from notebook_sync.files import beneath
from notebook_sync.files.vault import Vault


@pytest.fixture(params=["openat2", "components"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "components":
        monkeypatch.setattr(beneath, "_openat2", None)


@pytest.fixture
def root_fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_a_linked_folder_on_the_way_is_told_as_a_link(tmp_path: Path, root_fd: int) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("x")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match="symbolic links") as refused:
        beneath.open_beneath(root_fd, "link/a.md", os.O_RDONLY)
    assert refused.value.errno == errno.ELOOP


def test_a_file_on_the_way_is_no_folder(tmp_path: Path, root_fd: int) -> None:
    (tmp_path / "a.md").write_text("x")
    with pytest.raises(NotADirectoryError):
        beneath.open_beneath(root_fd, "a.md/b.md", os.O_RDONLY)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has leases")
def test_a_file_that_another_program_has_for_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "held.md").write_text("x")
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # how the holder is asked to let go
    fd = os.open(tmp_path / "held.md", os.O_RDWR)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with pytest.raises(UnreadableFile, match="for itself"):
            Vault(tmp_path).read("held.md")
    finally:
        os.close(fd)
        signal.signal(signal.SIGIO, before)
    assert Vault(tmp_path).read("held.md")[0] == b"x"
