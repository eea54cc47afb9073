"""A notebook that is watched from a thread, and a reader that polls its mirror meanwhile."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from notebook_sync import Notebook
from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.sync.watch import Batch, Event, Ready, Recovered, Trouble
from tests.waiting import eventually


class Following:
    """A running watch. Its timer is far away: what it finds, it finds by file events or by a doubt about them."""

    def __init__(self, root: Path, settings: str = "") -> None:
        self.root = root
        (root / "notebook.toml").write_text(settings + "[sync]\nreconcile_seconds = 3600\nsettle_ms = 300\n")
        self.notebook = Notebook.open(root)
        self.notebook.folder  # noqa: B018 - made by the first to ask
        self._watch = self.notebook.watch()
        self.events: list[Event] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        eventually(lambda: self._error or any(isinstance(event, Ready) for event in self.events), "ready")
        assert self._error is None, self._error

    def stop(self) -> None:
        self._watch.stop()
        self._thread.join(30)
        assert not self._thread.is_alive()
        self.notebook.close()
        assert self._error is None, self._error

    def texts(self) -> dict[str, str]:
        """Path → text of everything in the mirror."""
        return {document["path"]: document["content"] for document in self.notebook.mirror.documents()}

    def becomes(self, expected: dict[str, str]) -> None:
        """The mirror holds exactly this, after a while."""
        try:
            eventually(lambda: self.texts() == expected, "the mirror follows")
        except AssertionError:
            assert self.texts() == expected

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def troubles(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Trouble)]

    def recoveries(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Recovered)]

    def failures(self) -> dict[str, str]:
        """What batches told of files that could not be taken."""
        found: dict[str, str] = {}
        for event in self.events:
            if isinstance(event, Batch):
                found |= event.report.failed
        return found

    def deleted(self) -> int:
        return sum(event.report.deleted for event in self.events if isinstance(event, Batch))

    def _run(self) -> None:
        try:
            for event in self._watch.events():
                self.events.append(event)
        except BaseException as error:
            self._error = error


@contextlib.contextmanager
def following(root: Path, settings: str = "") -> Iterator[Following]:
    """A watch over `root` that is ready, and has ended well afterwards."""
    found = Following(root, settings)
    try:
        yield found
    finally:
        found.stop()


@contextlib.contextmanager
def every_state_of(root: Path, path: str) -> Iterator[set[str | None]]:
    """All texts that a reader of the mirror saw at `path` meanwhile; None is: no such note."""
    mirror = SqliteMirror(root / ".notebook" / "mirror.db")
    seen: set[str | None] = set()
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            found = [document["content"] for document in mirror.documents() if document["path"] == path]
            seen.add(found[0] if found else None)

    reader = threading.Thread(target=poll, daemon=True)
    reader.start()
    try:
        yield seen
    finally:
        done.set()
        reader.join()
        mirror.close()
