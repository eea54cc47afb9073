"""Disks that fail, that tell what they did, and that lack what older systems lack. They stand before the real one."""

from __future__ import annotations

import os
from typing import Any, cast

from notebook_sync.files.disk import Disk, Unsupported
from tests.sync.faults import Fuse


class _Fused:
    def __init__(self, fuse: Fuse) -> None:
        self._disk = Disk()
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        step = getattr(self._disk, name)
        return lambda *args: self._fuse.around(lambda: step(*args))


def fused_disk(fuse: Fuse) -> Disk:
    """The real disk, every step of which goes through the fuse."""
    return cast("Disk", _Fused(fuse))


class TellingDisk(Disk):
    """Tells the order of what makes a write durable: which file was synced, and which names changed hands."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def sync(self, fd: int) -> None:
        found = os.fstat(fd)
        self.told.append("sync folder" if os.path.isdir(f"/proc/self/fd/{fd}") else f"sync {found.st_size} bytes")  # noqa: PTH112 - a descriptor
        super().sync(fd)

    def sync_all(self, fd: int) -> None:
        self.told.append("sync all")
        super().sync_all(fd)

    def exchange(self, folder: int, one: str, other: str) -> None:
        self.told.append("exchange")
        super().exchange(folder, one, other)

    def move(self, folder: int, name: str, to_folder: int, to: str) -> None:
        if not to.startswith("."):
            self.told.append("name")
        elif not name.startswith("."):
            self.told.append("unname")
        super().move(folder, name, to_folder, to)

    def remove(self, folder: int, name: str) -> None:
        self.told.append("remove")
        super().remove(folder, name)


class OldDisk(Disk):
    """A system without exchange and without leases."""

    def exchange(self, folder: int, one: str, other: str) -> None:
        raise Unsupported

    def lease(self, fd: int) -> bool | None:
        return None


class UnsyncedDisk(Disk):
    """Syncs nothing: for tests that race, and that pull no plug."""

    def sync(self, fd: int) -> None:
        pass
