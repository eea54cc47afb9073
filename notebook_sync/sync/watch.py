"""Following a notebook: events say where to look, the engine says what is there, timers find what events missed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from notebook_sync.errors import BackendDown, RootLost, WouldDeleteEverything
from notebook_sync.events import CHANGED, Events
from notebook_sync.files.note import Stamp
from notebook_sync.files.stamped import RACY_SECONDS
from notebook_sync.files.vault import Vault
from notebook_sync.sessions import Session
from notebook_sync.sync.engine import Engine
from notebook_sync.sync.events import EventSource
from notebook_sync.sync.lock import WatchNote, watch_lock
from notebook_sync.sync.report import Report, Tally
from notebook_sync.sync.sweep import Outcome, Task

# The root is looked at this often, because a replaced folder sends no event. One `stat` each time.
_TICK_SECONDS = 2.0
_NEW_SETTINGS = "notebook.toml was changed; this watch goes on with the settings it began with: start it again"
_BACKOFF_SECONDS = (0.5, 30.0)
# What an event names of a batch; a checkout touches thousands of notes.
_MOST_PATHS = 100


@dataclass(frozen=True, slots=True)
class Ready:
    """The first reconcile is done, and later changes will be seen. `events`: by file events, else by the timer only."""

    events: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes that are in the mirror and, unless `report.refs_trouble`, in hot memory."""

    report: Report


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something keeps the mirror or the refs from following. Nothing is lost; it is tried again by itself."""

    message: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """The last trouble is over."""

    message: str


@dataclass(frozen=True, slots=True)
class ReminderDue:
    """A reminder has fallen due, in the shape that `Due.as_dict` gives. Nobody else tells of this occurrence."""

    reminder: Mapping[str, Any]


Event = Ready | Batch | Trouble | Recovered | ReminderDue


class Reminder(Protocol):
    """What fell due, in the shape that `--json` prints."""

    def as_dict(self) -> dict[str, Any]: ...


class Alarm(Protocol):
    """`ring` gives what has fallen due since the last time, and in how many seconds to ring again.

    After a change of the file at `path` it is rung at once.
    """

    path: str

    def ring(self) -> tuple[Sequence[Reminder], float]: ...


class Commits(Protocol):
    """Commits notes that were changed by hand. `changed` and `troubles` return at once; `close` when all is done."""

    def changed(self, paths: Collection[str]) -> None: ...
    def troubles(self) -> Sequence[str]: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class _Backoff:
    """When to try again something that failed: later each time, and not all processes at once."""

    reason: str = ""
    due: float = float("inf")
    _what: str = ""
    _pause: float = field(default=_BACKOFF_SECONDS[0])

    def failed(self, reason: str, what: str = "") -> bool:
        """Note a failure of `what`; whether it worked before. The reason may be worded anew at each try."""
        news = not self.reason or what != self._what
        self.reason, self._what = reason, what
        self.due = time.monotonic() + self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
        self._pause = min(self._pause * 2, _BACKOFF_SECONDS[1])
        return news

    def hurry(self) -> None:
        """What made it fail may be over: try at once."""
        if self.reason:
            self.due = 0.0

    def worked(self) -> str:
        """Note a success; the reason of the failure it ends, or ""."""
        ended = self.reason
        self.reason, self.due, self._pause = "", float("inf"), _BACKOFF_SECONDS[0]
        return ended


class Watch:
    """Follows one notebook. Iterate over `events()`; call `stop()` from anywhere, a signal handler included."""

    def __init__(
        self,
        vault: Vault,
        engine: Engine,
        folder: Path,
        *,
        settle_seconds: float,
        reconcile_seconds: float,
        full_hash_seconds: float,
        has_new_settings: Callable[[], bool],
        alarm: Alarm,
        commits: Commits | None,
        log: Events,
    ) -> None:
        self._vault = vault
        self._engine = engine
        self._folder = folder
        self._settle_seconds = settle_seconds
        self._reconcile_seconds = reconcile_seconds
        self._full_hash_seconds = full_hash_seconds
        self._has_new_settings = has_new_settings
        self._alarm = alarm
        self._commits = commits
        self._log = log
        self._source = EventSource(vault.root)
        self._is_ready = False
        self._stopping = False
        # When to look again, and what was found the last time.
        self._waiting: dict[str, tuple[float, Stamp | None]] = {}
        self._racy: dict[str, float] = {}
        self._mirror = _Backoff()
        self._refs = _Backoff()
        self._suspended = ""
        self._told_trouble = ""
        self._told_failures: dict[str, str] = {}
        self._next_reconcile = 0.0
        self._next_full_hash = time.monotonic() + full_hash_seconds
        self._next_ring = 0.0

    def stop(self) -> None:
        """End `events()` after the batch in hand."""
        self._stopping = True
        self._source.wake()

    def events(self) -> Generator[Event, None, None]:
        """What happens, until `stop`. Raises WatchLocked when another process watches this notebook."""
        try:
            while not self._stopping:
                with watch_lock(self._folder) as note:
                    yield from self._follow_root(note)
        finally:
            if self._commits is not None:
                self._commits.close()

    def _follow_root(self, note: WatchNote) -> Iterator[Event]:
        """Follow the folder that is now at the root's path; returns when it, or its lock file, is another one."""
        followed = self._vault.identity()
        present = True
        self._source = EventSource(self._vault.root)
        try:
            self._source.start()
            if self._source.shortfall:
                note.write(trouble=self._source.shortfall)
                yield Trouble(self._source.shortfall)
            yield from self._reconcile(note)
            if not self._is_ready:
                self._engine.warm_up()
                self._is_ready = True
                yield Ready(self._source.armed)
            while not self._stopping:
                places = self._source.wait(self._seconds_to_wait())
                found = self._identity()
                if self._stopping or found not in {None, followed} or (found is not None and not note.holds):
                    return
                if places.new_settings and self._has_new_settings():
                    yield Trouble(_NEW_SETTINGS)
                if present != (found is not None):
                    present = found is not None
                    self._mirror.hurry()
                    places.doubt = "the notebook's folder went away, or is back"
                yield from self._follow(places.paths, bool(places.doubt), note)
                if self._alarm.path in places.paths or time.monotonic() >= self._next_ring:
                    yield from self._ring()
                if self._commits is not None:
                    yield from map(Trouble, self._commits.troubles())
        finally:
            self._source.close()

    def _ring(self) -> Iterator[Event]:
        """Asks files alone, so that a database that is away keeps no reminder back."""
        fell_due, seconds = self._alarm.ring()
        self._next_ring = time.monotonic() + seconds
        yield from (ReminderDue(reminder.as_dict()) for reminder in fell_due)

    def _follow(self, paths: set[str], doubt: bool, note: WatchNote) -> Iterator[Event]:
        now = time.monotonic()
        if self._mirror.reason:
            if now >= self._mirror.due:
                yield from self._reconcile(note)
            return
        if doubt or now >= self._next_reconcile:
            yield from self._reconcile(note)
            return
        settled = {path: found for path, (due, found) in self._waiting.items() if due <= now and path not in paths}
        racy = frozenset(path for path, due in self._racy.items() if due <= now)
        for path in settled:
            del self._waiting[path]
        for path in racy:
            del self._racy[path]
        if now >= self._refs.due:
            yield from self._try(lambda outcome: self._engine.announce(outcome), note, tries_refs=True)
        # With what waits: a file that is new here may be a note that vanished there, told of in another batch.
        if paths:
            vanishing = {path for path, (_, found) in self._waiting.items() if found is None}
            yield from self._look(Task(frozenset(paths | vanishing)), note)
        if settled:
            yield from self._look(Task(frozenset(settled.keys() | self._waiting.keys()), settled), note)
        if racy:
            yield from self._look(Task(racy, rehash=True), note)

    def _look(self, task: Task, note: WatchNote) -> Iterator[Event]:
        yield from self._try(lambda outcome: self._engine.look(task, outcome), note)

    def _reconcile(self, note: WatchNote) -> Iterator[Event]:
        """A full look. Its settling is left to the loop, so that saves made meanwhile do not wait for it."""
        now = time.monotonic()
        rehash = now >= self._next_full_hash
        self._next_reconcile = now + self._reconcile_seconds

        def everything(outcome: Outcome) -> None:
            self._engine.announce(outcome)
            self._engine.look(Task(rehash=rehash), outcome)

        if (yield from self._try(everything, note, tries_refs=True)):
            note.reconciled()
            if rehash:
                self._next_full_hash = now + self._full_hash_seconds
            if self._suspended:
                ended, self._suspended = self._suspended, ""
                self._tell_trouble(note)
                yield Recovered(ended)

    def _try(
        self, work: Callable[[Outcome], object], note: WatchNote, *, tries_refs: bool = False
    ) -> Generator[Event, None, bool]:
        """Do one piece of work; whether it was done. Trouble is told once, tried again later, and its end is told."""
        outcome = Outcome(Report(refs_trouble="" if tries_refs else self._refs.reason))
        begun = time.monotonic()
        news: list[Event] = []
        done = False
        try:
            work(outcome)
            done = True
            news += self._work_done(outcome.report.refs_trouble, tries_refs=tries_refs)
        except (BackendDown, RootLost) as error:
            outcome.report.refs_trouble = str(error)
            if self._mirror.failed(str(error), error.backend if isinstance(error, BackendDown) else ""):
                news.append(Trouble(str(error)))
        except WouldDeleteEverything as error:
            # Following goes on: only these deletions wait, for a file to come back or for the owner to allow them.
            news += self._work_done(outcome.report.refs_trouble, tries_refs=tries_refs)
            if str(error) != self._suspended:
                self._suspended = str(error)
                news.append(Trouble(str(error)))
        outcome.report.seconds = time.monotonic() - begun
        self._look_later(outcome)
        self._tell_trouble(note)
        yield from news
        yield from self._batch(outcome)
        return done

    def _work_done(self, refs_trouble: str, *, tries_refs: bool) -> Iterator[Event]:
        """The mirror answers; hot memory may not."""
        ended = self._mirror.worked()
        if not refs_trouble:
            ended = self._refs.worked() or ended
        elif (tries_refs or refs_trouble != self._refs.reason) and self._refs.failed(refs_trouble):
            yield Trouble(refs_trouble)
        if ended:
            yield Recovered(ended)

    def _look_later(self, outcome: Outcome) -> None:
        now = time.monotonic()
        for path in outcome.seen - outcome.waiting.keys():
            self._waiting.pop(path, None)
        for path, found in outcome.waiting.items():
            held = self._waiting.get(path)
            if held is None or held[1] != found:
                self._waiting[path] = (now + self._settle_seconds, found)
        # What waits is read then; looked at by itself, a renamed file would be a new note.
        self._racy |= dict.fromkeys(outcome.racy - self._waiting.keys(), now + RACY_SECONDS)

    def _tell_trouble(self, note: WatchNote) -> None:
        """Let `status` see what is wrong, or that nothing is."""
        trouble = self._mirror.reason or self._suspended or self._refs.reason
        if trouble != self._told_trouble:
            note.write(trouble=trouble)
            self._told_trouble = trouble

    def _batch(self, outcome: Outcome) -> Iterator[Event]:
        """The batch, if there is anything in it that was not told."""
        failed = outcome.report.failed
        if self._commits is not None:
            self._commits.changed(outcome.report.paths | outcome.report.left)
        if outcome.report.by_hand.wrote:
            self._record(outcome.report.by_hand)
        if outcome.report.wrote or failed.items() - self._told_failures.items():
            yield Batch(outcome.report)
        for path in outcome.seen:
            self._told_failures.pop(path, None)
        self._told_failures |= failed

    def _record(self, by_hand: Tally) -> None:
        """Tell those, too, who look at another process, or later. What a tool wrote, it tells of itself."""
        paths = sorted(by_hand.paths)
        self._log.record(
            CHANGED,
            Session.owner(),
            paths=paths[:_MOST_PATHS],
            more=max(0, len(paths) - _MOST_PATHS),
            added=by_hand.added,
            updated=by_hand.updated,
            moved=by_hand.moved,
            deleted=by_hand.deleted,
        )

    def _identity(self) -> tuple[int, int] | None:
        try:
            return self._vault.identity()
        except RootLost:
            return None

    def _seconds_to_wait(self) -> float:
        settled = (due for due, _ in self._waiting.values())
        deadlines = [self._next_reconcile, self._refs.due, *settled, *self._racy.values()]
        if self._mirror.reason:
            deadlines = [self._mirror.due]
        return min(max(0.0, min(*deadlines, self._next_ring) - time.monotonic()), _TICK_SECONDS)
