"""A notebook on disk, an index and two engines, and everything that can happen to them, as methods.

Tests call the methods in any order; `check` proves that the index is what the files say once all is quiet.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec

from notebook_sync.errors import WouldDeleteEverything
from notebook_sync.files.beneath import why_not_text
from notebook_sync.files.parse import parse
from notebook_sync.files.state import Place
from notebook_sync.files.tree import Tree
from notebook_sync.model import CORE_FACTS, RUNTIME_FILES
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.settings import Settings, SyncTable, load_settings
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Row
from notebook_sync.sync.engine import Engine, Report

_GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


def git(root: Path, *arguments: str) -> None:
    subprocess.run((*_GIT, "-C", str(root), *arguments), check=True, capture_output=True)


class Crash(BaseException):
    """The process was killed at this point."""


_CHANGES = frozenset({"put", "delete", "rename", "update", "write"})
_LOOKS = frozenset({"get", "find", "tuples", "read", "scan", "stat"})


class Fuse:
    """Counts operations, or `only_changes`; when the count runs out, `act` is called once, before the operation or
    after it. What another process does to the index (`is_outside`) waits for the end of an open transaction, as it does
    in SQLite."""

    def __init__(self) -> None:
        self.open = 0
        self._left = 0
        self._is_after = self._is_outside = self._only_changes = False
        self._act: Callable[[], object] | None = None

    def set(
        self,
        act: Callable[[], object] | None,
        *,
        at: int = 0,
        is_after: bool = False,
        is_outside: bool = False,
        only_changes: bool = False,
    ) -> None:
        self._act, self._left, self._is_after, self._is_outside = act, at, is_after, is_outside
        self._only_changes = only_changes

    @contextlib.contextmanager
    def around(self, name: str) -> Iterator[None]:
        if self._only_changes and name in _LOOKS:
            yield
            return
        self._left -= 1
        if not self._is_after:
            self._burn()
        yield
        self._burn()

    def _burn(self) -> None:
        if self._act is not None and self._left <= 0 and not (self.open and self._is_outside):
            act, self._act = self._act, None
            act()


class Fused:
    """An object whose methods go through a fuse; its collections, too."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in {"documents", "facts", "fact_places", "history", "stream", "events", "intents"}:
            return Fused(found, self._fuse)
        if name not in _CHANGES | _LOOKS:
            return found
        return self._write if name == "write" else lambda *args, **more: self._call(found, *args, **more)

    def _call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        with self._fuse.around(method.__name__):
            return method(*args, **more)

    @contextlib.contextmanager
    def _write(self, **more: Any) -> Iterator[None]:
        with self._fuse.around("write"), self._inner.write(**more):
            self._fuse.open += 1
            try:
                yield
                with self._fuse.around("write"):  # before the commit
                    pass
            finally:
                self._fuse.open -= 1


class World:
    """One folder and one index; `engine` is the program, `other` a second process at the same work."""

    def __init__(self, folder: Path, *, batch: int = 500, settle_ms: int = 0) -> None:
        self.root = folder / "notebook"
        self.root.mkdir(parents=True, exist_ok=True)
        self.fuse = Fuse()
        self.sync_table = SyncTable(batch=batch, settle_ms=settle_ms)
        self.place = Place.open(self.root)
        self.analyzer = WordAnalyzer()
        self.index = Index(self.place.index_path, self.analyzer)
        self.engine = self.restarted()
        self._other_index = Index(self.place.index_path, self.analyzer)
        self.other = self.restarted(self._other_index)

    def settings(self) -> Settings:
        return msgspec.structs.replace(load_settings(self.root, {}), sync=self.sync_table)

    def restarted(self, other_index: Index | None = None) -> Engine:
        settings = self.settings()
        always = (*RUNTIME_FILES, CORE_FACTS, *(file.path for file in settings.prompt.files))
        tree: Any = Tree(self.root, settings.notebook, always)
        index: Any = other_index
        if other_index is None:
            tree, index = Fused(tree, self.fuse), Fused(self.index, self.fuse)
        return Engine(tree, self.place, index, settings, None, self.analyzer)

    def close(self) -> None:
        self.index.close()
        self._other_index.close()

    # What people, editors and git do. What the file system refuses does not happen.

    def write(self, path: str, raw: bytes | str) -> None:
        """In place, as `echo >` does."""
        with contextlib.suppress(OSError):
            self._room_for(path).write_bytes(raw.encode() if isinstance(raw, str) else raw)

    def replace(self, path: str, raw: bytes) -> None:
        """Through a temporary file, as most editors do."""
        with contextlib.suppress(OSError):
            place = self._room_for(path)
            temporary = place.with_name(f".{place.name}.tmp")
            temporary.write_bytes(raw)
            temporary.replace(place)

    def rename(self, old: str, new: str) -> None:
        """A file or a folder, over whatever file is there."""
        if os.path.lexists(self.root / old):
            with contextlib.suppress(OSError):
                (self.root / old).replace(self._room_for(new))

    def swap(self, one: str, two: str) -> None:
        """Two files exchange their names."""
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

    def ignore(self, rules: str) -> None:
        (self.root / ".gitignore").write_text(rules)

    def commit(self) -> None:
        if not (self.root / ".git").exists():
            git(self.root, "init", "-q")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--allow-empty", "-m", "state")

    def checkout(self, back: int) -> None:
        """Put the files back to an earlier commit, if there is one so far back."""
        if (self.root / ".git").exists():
            with contextlib.suppress(subprocess.CalledProcessError):
                git(self.root, "checkout", "-q", "-f", f"HEAD~{back}")

    # What the program does, and what goes wrong for it.

    def sync(self, **options: Any) -> Report:
        return self.engine.sync(**{"allow_empty": True, **options})

    def move(self, old: str, new: str) -> Report:
        """Rename a file or a folder, and sync."""
        self.rename(old, new)
        return self.sync()

    def configure(self, toml: str) -> None:
        """Write notebook.toml; the program is started again with it."""
        self.write("notebook.toml", toml)
        self.engine = self.restarted()

    def save(self, files: Mapping[str, bytes | str | None], **options: Any) -> Report:
        """Write these files, delete those with None, and sync."""
        for path, raw in files.items():
            if raw is None:
                self.delete(path)
            else:
                self.write(path, raw)
        return self.sync(**options)

    def survive(self, work: Callable[[], object]) -> None:
        """Do this; let the fuse burn. A program that crashed is started again."""
        try:
            work()
        except WouldDeleteEverything:
            pass
        except Crash:
            self.engine = self.restarted()
        finally:
            self.fuse.set(None)

    def look(self, places: Iterable[str]) -> None:
        """As after file events, some of which may be missing."""
        self.survive(lambda: self.engine.look(list(places)))

    def other_looks(self, places: Iterable[str]) -> None:
        """The second process looks at some places."""
        with contextlib.suppress(WouldDeleteEverything):
            self.other.look(list(places))

    def crash(self, at: int, *, is_after: bool) -> None:
        """The process ends at the `at`th operation on index or disk."""

        def end() -> None:
            raise Crash

        self.fuse.set(end, at=at, is_after=is_after)

    # What the index holds.

    def rows(self) -> dict[str, Row]:
        """Whole rows by path."""
        return {row["path"]: row for row in self.index.documents.find(heavy=True)}

    def texts(self) -> dict[str, str]:
        return {path: row["content"] for path, row in self.rows().items()}

    def facts(self) -> dict[str, Row]:
        return {row["content"]: row for row in self.index.facts.find()}

    def actions(self) -> list[tuple[str, str]]:
        """Action and path of the stream's lines, oldest first."""
        return [(row["action"], row["path"]) for row in self.index.stream.find(order=("at",))]

    # What must hold.

    def check(self) -> None:
        """Files = index after one sync, and the next one writes nothing."""
        self.fuse.set(None)
        first = self.sync()
        self._check_agreement()
        rev, history = self.index.rev(), self.index.history.count()
        second = self.sync()
        assert not second.paths, second
        assert (self.index.rev(), self.index.history.count(), second.faults) == (rev, history, first.faults)
        assert second.unchanged == len(self.engine.tree.scan().seen.keys() - second.faults.keys())

    def _check_agreement(self) -> None:
        scan = Tree(self.root, self.settings().notebook).scan()
        broken = {path for path in scan.seen if self._is_broken(path)}
        differences = self.engine.verify().differences
        unexplained = [
            each
            for each in differences
            if not (each["what"] in {"missing", "stale"} and each["path"] in scan.refused)
            and not (each["what"] == "stale" and each["path"] in broken)
        ]
        assert unexplained == [], unexplained
        rows = {row["id"]: row for row in self.index.documents.find()}
        for row in rows.values():
            assert row["path"], row
            assert row["id"] == row["wanted_id"] or row["stale"] or row["wanted_id"] in rows, ("nobody has the id", row)
        contested = {row["path"] for row in rows.values() if row["id"] != row["wanted_id"]}
        assert self.sync().faults.keys() == broken | contested | scan.refused.keys()

    def _is_broken(self, path: str) -> bool:
        raw = (self.root / path).read_bytes()
        if path.startswith("facts/") and not raw.strip():
            return bool(self.rows()[path]["stale"])  # where it held text before
        return parse(path, raw, timezone=UTC).broken or bool(why_not_text(raw))

    def _room_for(self, path: str) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place
