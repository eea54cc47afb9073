"""Following a notebook: events say where to look, the engine says what is there, timers find what events missed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from notebook_sync.errors import BackendDown, RootLost, WouldDeleteEverything
from notebook_sync.events import CHANGED, Events
from notebook_sync.files.note import Stamp
from notebook_sync.files.stamped import RACY_SECONDS
from notebook_sync.files.vault import Vault
from notebook_sync.sessions import Session
from notebook_sync.sync.backoff import Backoff
from notebook_sync.sync.engine import Engine
from notebook_sync.sync.events import EventSource
from notebook_sync.sync.lock import WatchNote, watch_lock
from notebook_sync.sync.report import Report, Tally
from notebook_sync.sync.sweep import Outcome, Task
from notebook_sync.sync.upkeep import kept_up

# The root is looked at this often, because a replaced folder sends no event. One `stat` each time.
_TICK_SECONDS = 2.0
_NEW_SETTINGS = "notebook.toml was changed; this watch goes on with the settings it began with: start it again"
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
    """Commits notes that were changed by hand. `changed` and `trouble` return at once; `close` when all is done.

    `trouble` is why notes wait for their commit, and the same as it is told now; both "" where none does.
    """

    def changed(self, paths: Collection[str]) -> None: ...
    @property
    def trouble(self) -> tuple[str, str]: ...
    def close(self) -> None: ...


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
        upkeep: Callable[[], float],
        commits: Commits | None,
        log: Events,
    ) -> None:
        """`upkeep` is what is done now and then, in a thread, and tells in how many seconds again."""
        self._vault = vault
        self._engine = engine
        self._folder = folder
        self._settle_seconds = settle_seconds
        self._reconcile_seconds = reconcile_seconds
        self._full_hash_seconds = full_hash_seconds
        self._has_new_settings = has_new_settings
        self._alarm = alarm
        self._upkeep = upkeep
        self._commits = commits
        self._log = log
        self._source = EventSource(vault.root)
        self._is_ready = False
        self._stopping = False
        # When to look again, and what was found the last time.
        self._waiting: dict[str, tuple[float, Stamp | None]] = {}
        self._racy: dict[str, float] = {}
        self._mirror = Backoff()
        self._refs = Backoff()
        self._facts = Backoff()
        self._uncommitted = Backoff()
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
                try:
                    with watch_lock(self._folder) as note:
                        yield from self._follow_root(note)
                except RootLost as lost:
                    if not self._is_ready:
                        raise
                    # It went away between the last look at it and the lock for the next one.
                    yield from self._mirror_failed(str(lost))
                    self._source.wait(_TICK_SECONDS)
        finally:
            if self._commits is not None:
                self._commits.close()

    def _follow_root(self, note: WatchNote) -> Iterator[Event]:
        """Follow the folder that is now at the root's path; returns when it, or its lock file, is another one."""
        followed = self._vault.identity()
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
            with kept_up(self._keep_up):
                yield from self._follow_changes(followed, note)
        finally:
            self._source.close()

    def _follow_changes(self, followed: tuple[int, int], note: WatchNote) -> Iterator[Event]:
        present = True
        while not self._stopping:
            places = self._source.wait(self._seconds_to_wait())
            # Asked first: of a folder that goes away in between, the lock is not lost but away too.
            holds = note.holds
            found = self._identity()
            if self._stopping or found not in {None, followed} or (found is not None and not holds):
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
                yield from self._look_at_commits(*self._commits.trouble, note)

    def _look_at_commits(self, reason: str, told: str, note: WatchNote) -> Iterator[Event]:
        """Whoever commits tries again by itself: here it is only told."""
        if told and self._uncommitted.failed(told, reason):
            yield Trouble(told)
        elif not told and (ended := self._uncommitted.worked()):
            yield Recovered(ended)
        self._tell_trouble(note)

    def _keep_up(self) -> float:
        """In a thread of its own."""
        return _TICK_SECONDS if self._mirror.reason else self._upkeep()

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
        if now >= self._facts.due:
            yield from self._try(self._engine.follow_facts, note, tries_facts=True)
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
        self, work: Callable[[Outcome], object], note: WatchNote, *, tries_refs: bool = False, tries_facts: bool = False
    ) -> Generator[Event, None, bool]:
        """Do one piece of work; whether it was done. Trouble is told once, tried again later, and its end is told."""
        outcome = Outcome(
            Report(
                refs_trouble="" if tries_refs else self._refs.reason,
                facts_trouble="" if tries_facts else self._facts.reason,
            )
        )
        begun = time.monotonic()
        news: list[Event] = []
        done = False
        try:
            work(outcome)
            done = True
            news += self._work_done(outcome.report, tries_refs=tries_refs, tries_facts=tries_facts)
        except (BackendDown, RootLost) as error:
            outcome.report.refs_trouble = str(error)
            news += self._mirror_failed(str(error), error.backend if isinstance(error, BackendDown) else "")
        except WouldDeleteEverything as error:
            # Following goes on: only these deletions wait, for a file to come back or for the owner to allow them.
            news += self._work_done(outcome.report, tries_refs=tries_refs, tries_facts=tries_facts)
            if str(error) != self._suspended:
                self._suspended = str(error)
                news.append(Trouble(str(error)))
        outcome.report.seconds = time.monotonic() - begun
        self._look_later(outcome)
        self._tell_trouble(note)
        yield from news
        yield from self._batch(outcome)
        return done

    def _mirror_failed(self, reason: str, what: str = "") -> Iterator[Event]:
        if self._mirror.failed(reason, what):
            yield Trouble(reason)

    def _work_done(self, report: Report, *, tries_refs: bool, tries_facts: bool) -> Iterator[Event]:
        """The mirror answers; hot memory, and rows of facts, may not."""
        ended = self._mirror.worked()
        refs_trouble, facts_trouble = report.refs_trouble, report.facts_trouble
        if not refs_trouble:
            ended = self._refs.worked() or ended
        elif (tries_refs or refs_trouble != self._refs.reason) and self._refs.failed(refs_trouble):
            yield Trouble(refs_trouble)
        if not facts_trouble:
            ended = self._facts.worked() or ended
        elif (tries_facts or facts_trouble != self._facts.reason) and self._facts.failed(facts_trouble):
            yield Trouble(facts_trouble)
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
        troubles = (
            self._mirror.reason,
            self._suspended,
            self._refs.reason,
            self._facts.reason,
            self._uncommitted.reason,
        )
        trouble = next(filter(None, troubles), "")
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
        deadlines = [self._next_reconcile, self._refs.due, self._facts.due, *settled, *self._racy.values()]
        if self._mirror.reason:
            deadlines = [self._mirror.due]
        return min(max(0.0, min(*deadlines, self._next_ring) - time.monotonic()), _TICK_SECONDS)
