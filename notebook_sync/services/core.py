"""What the services of one notebook share: its folder, index, history and settings, each made when first used.

Nothing here is an operation. Parts that depend on the settings are made again when notebook.toml changes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from notebook_sync import services
from notebook_sync.errors import ConfigError, NotebookError
from notebook_sync.files.state import Place
from notebook_sync.files.tree import Tree
from notebook_sync.model import ADOPTED, SETTINGS_FILE
from notebook_sync.permissions import guarded_paths
from notebook_sync.registry import Service
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings, load_settings

if TYPE_CHECKING:
    from notebook_sync.files.history import History, Snapshots
    from notebook_sync.files.save import Saver
    from notebook_sync.search.query import Searcher
    from notebook_sync.search.words import WordAnalyzer
    from notebook_sync.store.index import Index
    from notebook_sync.store.publish import Publisher
    from notebook_sync.sync.engine import Engine

_Value = TypeVar("_Value")
# What the cache holds of the files that the index does not have as they are, each `{path, error}`, as the last looks
# found them.
FAULTS = "faults"
# The row of the cache that holds what the last look by the clock proposed for facts, and the event of a proposal.
PROPOSALS, PROPOSED = "facts:proposals", "fact_proposed"
_LONGEST_IN_EVENT = 300
_SHOWN_OF_EVENT = ("id", "at", "kind", "session", "agent", "path")
_POLL_SECONDS, _PUBLISH_SECONDS = 0.2, 1.0


class part(Generic[_Value]):  # noqa: N801 - used as a decorator, like property
    """A property that is made once, under the core's lock, and again after `Core.forget`."""

    def __init__(self, make: Callable[[Any], _Value]) -> None:
        self._make = make
        self._name = make.__name__

    def __get__(self, core: Core, kind: type) -> _Value:
        if self._name not in core.parts:
            with core.lock:
                if self._name not in core.parts:
                    core.parts[self._name] = self._make(core)
        value: _Value = core.parts[self._name]
        return value


class Core:
    """The parts of one notebook below its services.

    `last_good`: what to use while notebook.toml has an error; without it the error is raised. `lag`: why the index is
    not what the files say, set by a server during its first look; "" at other times.
    """

    def __init__(self, root: Path, *, last_good: Settings | None = None) -> None:
        self.root = root
        self.lock = threading.RLock()
        self.parts: dict[str, Any] = {}
        self.settings_problem = ""
        self.lag = ""
        # What was done and refused, for the owner.
        self.events = EventLog(self)
        self.last_good = last_good
        # The chores of what is built on the services.
        self.more_chores: list[services.upkeep.Chore] = []
        # What the index says of files and notes that are not for all: see `View`.
        self.restricted: tuple[object, tuple[list[str], set[str]]] | None = None
        self._stamp: tuple[int, ...] | None = None
        self._settings: Settings | None = None

    @property
    def settings(self) -> Settings:
        """The settings as notebook.toml states them now. Raises ConfigError, unless an earlier state was good."""
        stamp = self._settings_stamp()
        if self._settings is None or stamp != self._stamp:
            with self.lock:
                self._load_settings(stamp)
        assert self._settings is not None  # noqa: S101 - loaded above, or raised
        return self._settings

    @part
    def place(self) -> Place:
        """Where the notebook and its state are."""
        return Place.open(self.root)

    @part
    def tree(self) -> Tree:
        """The notebook's files. Files that the prompt shows are read even if git ignores them."""
        always = guarded_paths(self.settings.prompt)
        mounts = Place.find(self.root).findings().get("mounts", ())
        return Tree(self.root, self.settings.notebook, always=always, mounts=mounts)

    @part
    def saver(self) -> Saver:
        """Writes notes, each against the digest that it is based on."""
        from notebook_sync.files.save import Saver

        return Saver(self.tree, self.place)

    @part
    def history(self) -> History:
        """The versions of notes, in git."""
        from notebook_sync.files.history import History

        return History(self.place, self.tree, self.settings.git)

    @part
    def snapshots(self) -> Snapshots:
        """What all notes said at each checkpoint, in the private repository."""
        from notebook_sync.files.history import PRIVATE, Snapshots

        return Snapshots(self.place.state / PRIVATE)

    @part
    def analyzer(self) -> WordAnalyzer:
        """Cuts text into the terms that are indexed and searched."""
        from notebook_sync.search.words import WordAnalyzer

        return WordAnalyzer()

    @part
    def index(self) -> Index:
        """The index, with what a dump holds where it had to be made again. Raises ReadOnly where the state folder
        cannot be written."""
        from notebook_sync.store.index import Index

        index = Index(self.place.index_path, self.analyzer)
        if index.needs_restore():
            index.load_dump(self.place.state / "dump")
        return index

    @part
    def searcher(self) -> Searcher:
        """Search by words and meaning."""
        from notebook_sync.search.embed import embedder_of, second_stage_of
        from notebook_sync.search.query import Searcher

        search = self.settings.search
        return Searcher(self.index, self.analyzer, embedder_of(search), second_stage_of(search, self.root))

    @part
    def publisher(self) -> Publisher:
        """Feeds the servers that are set."""
        from notebook_sync.store.publish import Publisher, targets_of

        return Publisher(self.index, targets_of(self.settings, self.place, self.index), self.place)

    @part
    def engine(self) -> Engine:
        """Brings the index to what the files say."""
        return self._new_engine()

    @part
    def writer(self) -> Engine:
        """An engine for the rows of what is written; the write lock lets one thread use it at a time."""
        return self._new_engine()

    @part
    def prompt_files(self) -> services.assembling.PromptFiles:
        """What prompts are made of. Ask `assembling.files_of`, which knows what to do without good settings."""
        return services.assembling.PromptFiles(self)

    @property
    def has_targets(self) -> bool:
        """Whether a server is set that changes are published to."""
        return bool(self.settings.mirror.url or self.settings.refs.url)

    def noted(self, name: str) -> list[Any]:
        """What the cache holds under this name; [] where nothing was noted."""
        held = self.index.cache.one(name)
        return list(held["value"]) if held else []

    def now(self) -> datetime:
        """The moment, aware UTC."""
        return datetime.now(UTC)

    def behind(self) -> str:
        """Why the index is known not to be what the files say; "" where that is not known."""
        try:
            is_new = self.index.counters.one(ADOPTED) is None
        except NotebookError:
            is_new = False
        return self.lag or ("the notes are not indexed yet; run: notebook-sync sync" if is_new else "")

    def count_uses(self, collection: str, ids: Sequence[str]) -> None:
        """Count one use of each of these facts or documents. An index that cannot be written is no reason to fail what
        was asked."""
        from notebook_sync.store.rows import Is  # as for events

        if ids:
            with suppress(NotebookError):
                self.index.collections[collection].update(
                    Is("id", "in", ids), set={"last_accessed": self.now()}, inc={"access_count": 1}
                )

    def forget(self, *keep: str) -> None:
        """Make the parts again when they are next used, except those named."""
        with self.lock:
            for name in sorted(self.parts.keys() - set(keep), reverse=True):  # the publisher before the index
                part = self.parts.pop(name)
                if name in ("publisher", "index"):
                    part.close()

    def close(self) -> None:
        """Close files and connections."""
        self.forget()

    def _new_engine(self) -> Engine:
        from notebook_sync.sync.engine import Engine

        return Engine(self.tree, self.place, self.index, self.settings, self._created_at, self.analyzer)

    def _created_at(self, paths: list[str]) -> dict[str, datetime]:
        return self.history.created_at(paths)

    def _settings_stamp(self) -> tuple[int, ...]:
        try:
            found = os.stat(f"{self.root}/{SETTINGS_FILE}")  # noqa: PTH116 - at each use; pathlib takes four times as long
        except OSError:
            return ()
        return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)

    def _load_settings(self, stamp: tuple[int, ...]) -> None:
        try:
            settings = load_settings(self.root)
        except ConfigError as error:
            if self._settings is None and self.last_good is None:
                raise
            self.settings_problem = f"{error}; the last good settings are in use"
            self._settings = self._settings or self.last_good
        else:
            self.settings_problem = ""
            if self._settings not in (None, settings):
                self.forget("place", "index", "analyzer")
            self._settings = settings
        self._stamp = stamp


def publish_now(core: Core) -> None:
    """Publish for at most a second before a write returns, unless another process follows the notebook."""
    if core.has_targets:
        core.publisher.publish_inline(_PUBLISH_SECONDS)


class EventLog:
    """What the product did and refused, for the notebook's owner: never the text of a note, and never an error. Oldest
    first; the index keeps the newest 50,000."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def record(self, kind: str, session: Session, *, path: str = "", key: str = "", **fields: Any) -> None:
        """Record an event; one with the `key` of an earlier event is dropped. A log that cannot be written is no
        reason to fail what was done."""
        longest = _LONGEST_IN_EVENT
        row = {
            "at": datetime.now(UTC),
            "kind": kind,
            "session": session.kind,
            "agent": session.agent,
            "path": path[:longest],
            "fields": {name: each[:longest] if isinstance(each, str) else each for name, each in fields.items()},
        }
        with suppress(NotebookError):
            id = self._core.index.new_event_id()
            self._core.index.events.put([{**row, "id": id, "key": key or id}])

    def read(self, since: str = "", limit: int = 50) -> list[dict[str, Any]]:
        """The newest `limit` events after the one with the id `since`, oldest first."""
        from notebook_sync.store.rows import Is  # for this alone, and prompts do without

        rows = self._core.index.events.find(Is("id", ">", since), order=("-id",), limit=limit)
        return [{**(row["fields"] or {}), **{name: row[name] for name in _SHOWN_OF_EVENT}} for row in reversed(rows)]

    def newest(self) -> str:
        """The id of the newest event; "0" where there is none."""
        return next((row["id"] for row in self._core.index.events.find(order=("-id",), limit=1)), "0")

    def follow(self, stop: threading.Event, since: str = "") -> Iterator[dict[str, Any]]:
        """Events as any process records them, from now on or after `since`, until `stop` is set."""
        last = since or self.newest()
        while not stop.is_set():
            for event in self.read(last, 50_000):
                last = event["id"]
                yield event
            stop.wait(_POLL_SECONDS)


class NotebookService(Service):
    """A service on one notebook's core."""

    def __init__(self, core: Core) -> None:
        self.core = core

    @property
    def settings(self) -> Settings:
        """The notebook's settings as they are now."""
        return self.core.settings

    def refused(self, session: Session, operation: str, id: str) -> None:
        """Record the refusal as an event."""
        self.core.events.record("refused", session, path=id, operation=operation)
