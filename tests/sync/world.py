"""A notebook on disk with engines over real embedded stores, and everything that can happen to it, as methods.

Random tests call the methods in any order; `check` proves that files, mirror and refs agree once all is quiet.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from datetime import UTC
from pathlib import Path
from typing import Any, cast

from notebook_sync.errors import BackendDown, WouldDeleteEverything
from notebook_sync.files.parse import parse
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.refs.base import Refs
from notebook_sync.refs.sqlite import SqliteRefs
from notebook_sync.sync.engine import Engine
from notebook_sync.sync.report import Report
from notebook_sync.sync.sweep import Task
from notebook_sync.sync.verify import verify
from tests.sync.faults import Crash, Fuse, WatchedMirror, WatchedRefs, fused_mirror, fused_refs, raising

ENCODING = "cl100k_base"
_GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


class World:
    """One folder and one pair of stores; `engine` is the program, `other` a second process at the same work."""

    def __init__(self, folder: Path, *, batch: int = 500) -> None:
        self.root = folder / "notebook"
        self.root.mkdir()
        self.fuse = Fuse()
        self.vault = Vault(self.root)
        self.store_path = folder / "mirror.db"
        self._batch = batch
        self.mirror = WatchedMirror(SqliteMirror(self.store_path))
        self.refs = WatchedRefs(SqliteRefs(self.store_path, UTC))
        self.engine = self.restarted()
        self.other = self.restarted(fused=False)

    def close(self) -> None:
        self.mirror.close()
        self.refs.close()

    # What people, editors and git do. What the file system refuses (a file where a folder is to be) does not happen.

    def write(self, path: str, raw: bytes) -> None:
        """In place, as `echo >` does."""
        with contextlib.suppress(OSError):
            self._room_for(path).write_bytes(raw)

    def replace(self, path: str, raw: bytes) -> None:
        """Through a temporary file, as most editors do."""
        with contextlib.suppress(OSError):
            place = self._room_for(path)
            beside = place.with_name("." + place.name + ".tmp")
            beside.write_bytes(raw)
            beside.replace(place)

    def rename(self, old: str, new: str) -> None:
        """A file or a folder, over whatever file is there."""
        if os.path.lexists(self.root / old):
            with contextlib.suppress(OSError):
                (self.root / old).replace(self._room_for(new))

    def swap(self, one: str, two: str) -> None:
        """Two files trade names."""
        between = self.root / ".between"
        if one != two and (self.root / one).is_file() and (self.root / two).is_file():
            with contextlib.suppress(OSError):
                (self.root / one).replace(between)
                (self.root / two).replace(self.root / one)
                between.replace(self.root / two)

    def delete(self, path: str) -> None:
        """A file, or a folder with all in it."""
        place = self.root / path
        with contextlib.suppress(OSError):
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)

    def link(self, path: str, target: str) -> None:
        """A symbolic link."""
        with contextlib.suppress(OSError):
            place = self._room_for(path)
            place.unlink(missing_ok=True)
            place.symlink_to(target)

    def touch(self, path: str, mtime_ns: int) -> None:
        """Only the times change."""
        if (self.root / path).is_file():
            os.utime(self.root / path, ns=(mtime_ns, mtime_ns))

    def chmod(self, path: str, mode: int) -> None:
        """A file nobody may read, or that may be read again."""
        with contextlib.suppress(OSError):
            (self.root / path).chmod(mode, follow_symlinks=False)

    def ignore(self, rules: str) -> None:
        """Write the notebook's .gitignore."""
        (self.root / ".gitignore").write_text(rules)

    def commit(self) -> None:
        """Commit everything there is."""
        if not (self.root / ".git").exists():
            self._git("init", "-q")
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", "state")

    def checkout(self, back: int) -> None:
        """Put the files back to an earlier commit, if there is one so far back."""
        if (self.root / ".git").exists():
            with contextlib.suppress(subprocess.CalledProcessError):
                self._git("checkout", "-q", "-f", f"HEAD~{back}")

    # What the program does, and what goes wrong for it.

    def reconcile(self) -> None:
        self._survive(lambda: self.engine.reconcile(Task(allow_empty=True)))

    def reconcile_cautiously(self) -> None:
        """Without leave to delete everything."""
        with contextlib.suppress(WouldDeleteEverything):
            self._survive(lambda: self.engine.reconcile())

    def look(self, places: Iterable[str]) -> None:
        """As after file events, some of which may be missing."""
        with contextlib.suppress(WouldDeleteEverything):
            self._survive(lambda: self.engine.look(Task(frozenset(places))))

    def rebuild(self) -> None:
        self._survive(lambda: self.engine.reconcile(Task(rehash=True, force=True, allow_empty=True)))

    def lose_refs(self) -> None:
        """Hot memory is restarted empty."""
        self.refs._refs._db.rows("DELETE FROM ref")
        self.refs._refs._db.rows("DELETE FROM meta WHERE name = 'refs_owner'")

    def break_down(self, at: int, *, after: bool, whose: str) -> None:
        """The `at`th store operation finds a store that does not answer."""
        self.fuse.set(raising(BackendDown(whose, "it was told to")), at=at, after=after)

    def crash(self, at: int, *, after: bool) -> None:
        """The process ends at the `at`th store operation."""
        self.fuse.set(raising(Crash()), at=at, after=after)

    def meanwhile(self, act: Callable[[], object], at: int) -> None:
        """Something happens right before the `at`th store operation."""
        self.fuse.set(act, at=at)

    def other_reconciles(self) -> None:
        """The second process does a full pass."""
        self.other.reconcile(Task(allow_empty=True))

    def other_looks(self, places: Iterable[str]) -> None:
        """The second process looks at some places."""
        with contextlib.suppress(WouldDeleteEverything):
            self.other.look(Task(frozenset(places)))

    # What must hold.

    def check(self) -> None:
        """Files = mirror = refs after one reconcile, and the next one writes nothing."""
        self.fuse.clear()
        first = self.engine.reconcile(Task(allow_empty=True))
        self._check_agreement()
        self._check_ids()
        self._check_failures(first)
        assert self.mirror.pending() == []
        written = (self.mirror.writes, self.refs.writes)
        second = self.engine.reconcile(Task(allow_empty=True))
        assert (self.mirror.writes, self.refs.writes) == written, second
        assert not second.wrote
        self._check_failures(second)
        assert second.unchanged == len(self.vault.scan().seen.keys() - second.failed.keys())

    def _check_agreement(self) -> None:
        verdict = verify(self.vault, cast("Mirror", self.mirror), cast("Refs", self.refs), encoding=ENCODING)
        refused = self.vault.scan().refused
        unexplained = [
            difference
            for difference in verdict.differences
            if not (difference.what in {"unmirrored", "stale"} and difference.path in refused)
            and not (difference.what == "stale" and self._is_broken(difference.path))
        ]
        assert unexplained == []

    def _check_ids(self) -> None:
        rows = {row.id: row for row in self.mirror.known()}
        for row in rows.values():
            assert row.path, row
            if row.id != row.wants and not row.stale:
                assert row.wants in rows, ("nobody has the id it was refused", row, rows)

    def _check_failures(self, report: Report) -> None:
        contended = {row.path for row in self.mirror.known() if row.id != row.wants}
        seen = self.vault.scan()
        expected = {path for path in seen.seen if self._is_broken(path)} | contended | seen.refused.keys()
        assert report.failed.keys() == expected, (report.failed, expected)

    def _is_broken(self, path: str) -> bool:
        return parse(path, (self.root / path).read_bytes(), encoding=ENCODING).broken

    def restarted(self, *, fused: bool = True) -> Engine:
        mirror, refs = cast("Mirror", self.mirror), cast("Refs", self.refs)
        if fused:
            mirror, refs = fused_mirror(mirror, self.fuse), fused_refs(refs, self.fuse)
        return Engine(self.vault, mirror, refs, settle_seconds=0.0, batch=self._batch, encoding=ENCODING)

    def _survive(self, work: Callable[[], Any]) -> None:
        """Let the fuse burn; a crashed program is started again."""
        try:
            work()
        except BackendDown:
            pass
        except Crash:
            self.engine = self.restarted()
        finally:
            self.fuse.clear()

    def _room_for(self, path: str) -> Path:
        """The place of `path`, with the folders above it made."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def _git(self, *arguments: str) -> None:
        subprocess.run((*_GIT, "-C", str(self.root), *arguments), check=True, capture_output=True)
