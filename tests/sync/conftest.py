"""Fixtures: `world`, a notebook with one note `good.md`; `root`, an empty folder, and `watch`, which follows it.

A notebook is followed from a thread, and a reader may poll its index meanwhile.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.files.locks import FollowLock
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is
from notebook_sync.sync.engine import Engine
from notebook_sync.sync.watch import Watcher, WatchEvent
from tests.processes import repeating
from tests.sync.world import World
from tests.waiting import eventually


class Following:
    """A running watcher. Its timer is far away: what it finds, it finds by file events or by a doubt about them."""

    def __init__(self, folder: Path, *, settle_ms: int = 300, **options: Any) -> None:
        self.world = World(folder, settle_ms=settle_ms)
        self.root = self.world.root
        self.engine = self.world.other
        self.lock = FollowLock(self.world.place)
        self.watcher = Watcher(self._engine, self.lock, **options)
        self.events: list[WatchEvent] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        eventually(lambda: self._error or self.of("ready"), "ready")
        assert self._error is None, self._error

    def close(self) -> None:
        self.watcher.stop()
        self._thread.join(30)
        assert not self._thread.is_alive()
        self.world.close()
        assert self._error is None, self._error

    def follows(self, files: dict[str, str]) -> None:
        """Write these files, in folders that are there: the index comes to have what it had, and them."""
        expected = {**self.world.texts(), **files}
        for path, text in files.items():
            (self.root / path).write_text(text)
        self.becomes(expected)

    def becomes(self, expected: dict[str, str]) -> None:
        """The index has exactly these texts, after a while."""
        try:
            eventually(lambda: self.world.texts() == expected, "the index follows")
        except AssertionError:
            assert self.world.texts() == expected

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind, as `--json` prints them."""
        return [event.as_json() for event in list(self.events) if event.kind == kind]

    def failures(self) -> dict[str, str]:
        return {each["path"]: each["error"] for batch in self.of("batch") for each in batch["failed"]}

    def deleted(self) -> int:
        return sum(int(batch["deleted"]) for batch in self.of("batch"))

    def _engine(self) -> Engine:
        return self.engine

    def _run(self) -> None:
        try:
            for event in self.watcher.events():
                self.events.append(event)
        except BaseException as error:
            self._error = error


Follow = Callable[..., AbstractContextManager[Following]]


@contextlib.contextmanager
def every_state_of(world: World, path: str) -> Iterator[set[str | None]]:
    """All texts that a reader of the index saw at `path` meanwhile; None: no such note."""
    seen: set[str | None] = set()

    def poll() -> None:
        rows = index.documents.find(Is("path", "=", path), fields=("content",))
        seen.add(rows[0]["content"] if rows else None)

    with contextlib.closing(Index(world.place.index_path, world.analyzer)) as index, repeating(poll):
        yield seen


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with contextlib.closing(World(tmp_path)) as made:
        made.write("good.md", "good")
        yield made


@pytest.fixture
def root(folder: Path) -> Path:
    return folder


@pytest.fixture
def following(tmp_path: Path) -> Follow:
    """`with following() as watch`: a watcher that is ready, over `tmp_path/notebook`, and has ended well afterwards."""
    return lambda folder=tmp_path, **options: contextlib.closing(Following(folder, **options))


@pytest.fixture
def watch(root: Path, following: Follow) -> Iterator[Following]:
    """The watcher of `root`, which has what the fixtures before it have written."""
    with following() as found:
        yield found
