"""One look at some places, or at all: scan, read, decide, write, and say what has to be looked at again.

A sweep's deletions come last and each is looked at once more; a folder that could not be listed deletes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from notebook_sync.errors import BackendDown, UnreadableFile, WouldDeleteEverything
from notebook_sync.files.history import GitHistory, git_history
from notebook_sync.files.note import Seed, Stamp, id_from_path
from notebook_sync.files.vault import Scan, Vault
from notebook_sync.mirror.base import Document, Known, Mirror, Put, Write
from notebook_sync.sync.diff import (
    Change,
    Delete,
    Fail,
    Keep,
    Look,
    Refresh,
    Settled,
    Store,
    Vanished,
    Wait,
    deletions,
    diff,
    must_read,
)
from notebook_sync.sync.reading import looks
from notebook_sync.sync.report import Report
from notebook_sync.sync.writes import write_for

# What no file ever has: a path that was found like this is never settled.
UNSETTLED = Stamp(-1, -1, -1, -1)

# Deletions of fewer than one note in so many are not asked whether they would be all.
_FEW = 100
_OWNER = "owner"

Progress = Callable[[int, int], None]
# Path and digest of a text → who wrote it, "" where that is not known.
Author = Callable[[str, str], str]
_Planned = tuple[Change, Write | None]


@dataclass(frozen=True, slots=True)
class Task:
    """What to look at, and how.

    places: paths of files or folders, None for all. settled: what an earlier look, a settle time ago, found at paths
    that had to wait. removed: paths of files that whoever asks has taken away himself, so that no disk is missing.
    rehash: read files whose stamp is unchanged too. force: write equal rows anew. authors: by path and digest, who
    wrote a text that whoever wrote others does not tell.
    past: what is known of a file that never had a row, by its path; of one it knows nothing of, git is asked.
    """

    places: frozenset[str] | None = None
    settled: Settled = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    authors: Mapping[tuple[str, str], str] = field(default_factory=dict)
    allow_empty: bool = False
    rehash: bool = False
    force: bool = False
    past: Callable[[str], Seed | None] | None = None
    progress: Progress | None = None


@dataclass(slots=True)
class Outcome:
    """What sweeps did, and what the last one left. One outcome may be handed from sweep to sweep.

    seen: paths of the files that were there. stored: paths whose note was written. again: changed under its hands.
    waiting: to be looked at after the settle time, with what was found. racy: written so lately that the stamp may
    not show a further write; to be read once more after `RACY_SECONDS`. faulty: ids whose row told of a fault when a
    sweep began. survivors: whether any note that the mirror knew still stands; None before a look at everything.
    """

    report: Report = field(default_factory=Report)
    seen: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)
    waiting: dict[str, Stamp | None] = field(default_factory=dict)
    racy: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    faulty: set[str] = field(default_factory=set)
    survivors: bool | None = None


class Sweep:
    """One task carried out over one vault and one mirror."""

    def __init__(
        self,
        vault: Vault,
        mirror: Mirror,
        task: Task,
        outcome: Outcome,
        *,
        batch: int,
        encoding: str,
        author: Author,
    ) -> None:
        self._vault = vault
        self._mirror = mirror
        self._task = task
        self._outcome = outcome
        self._batch = batch
        self._encoding = encoding
        self._author = author
        self._past: GitHistory | None = None
        self._released: set[str] = set()

    def batches(self) -> Iterator[set[str]]:
        """Carry the task out; yields the ids whose rows were written, a batch at a time.

        Raises RootLost, WouldDeleteEverything, and BackendDown of the mirror.
        """
        task = self._task
        scan = self._vault.scan(task.places)
        rows = self._mirror.known(task.places)
        known = {row.path: row for row in rows if row.path}
        vanished = Vanished(row for row in rows if not row.path or not _stands(row.path, scan))
        if task.places is None:
            self._outcome.survivors = not known
            if known and not scan.seen and not scan.refused and not task.allow_empty:
                raise _would_delete_everything(len(known))
        if any(_stands(path, scan) for path in known):
            self._outcome.survivors = True
        self._outcome.faulty |= {row.id for row in known.values() if row.stale or row.broken or row.id != row.wants}
        self._outcome.seen |= scan.seen.keys()
        yield self._apply([Fail(path, reason, known.get(path)) for path, reason in scan.refused.items()])
        reading = self._to_read(scan, known)
        done = len(scan.seen) - len(reading)
        for batch in looks(self._vault, reading, known, encoding=self._encoding, batch=self._batch, force=task.force):
            self._outcome.racy |= {look.path for look in batch if look.racy}
            self._outcome.again |= {look.path for look in batch if look.stamp is None and not look.refusal}
            yield self._apply(self._held_back(self._decide(batch, known, vanished, scan)))
            done += len(batch)
            if task.progress is not None:
                task.progress(done, len(scan.seen))
        yield self._delete(vanished)
        self._wake_contenders()

    def _to_read(self, scan: Scan, known: Mapping[str, Known]) -> list[str]:
        """Paths whose stamp does not vouch for their row, shortest first: of two that want one id, the first has it."""
        wanting = {path for path, row in known.items() if row.id != row.wants}
        held = {row.id for row in known.values() if _stands(row.path, scan)} if wanting else set()
        reading = [
            path
            for path, stamp in scan.seen.items()
            if self._task.rehash or must_read(path, stamp, known) or (path in wanting and known[path].wants not in held)
        ]
        return sorted(reading, key=lambda path: (len(path), path))

    def _decide(
        self, batch: Sequence[Look], known: Mapping[str, Known], vanished: Vanished, scan: Scan
    ) -> list[Change]:
        rows = {look.path: known[look.path] for look in batch if look.path in known}
        ids = {row.id for row in rows.values()}
        for look in batch:
            if look.note is not None:
                ids |= {look.note.wants, id_from_path(look.path), look.path}
        looked_at = {look.path for look in batch}
        others = [row for row in self._mirror.claimants(ids) if row.path not in looked_at and row.id not in vanished]
        gone = self._gone([row.path for row in others if not _stands(row.path, scan)])
        for row in others:
            if row.path in gone:
                vanished.add(row)
        outside = [row for row in others if row.path not in gone]
        return diff(batch, rows, vanished, outside, settled=self._task.settled, force=self._task.force)

    def _held_back(self, changes: list[Change]) -> list[Change]:
        """While none of the known notes stands, new ones wait: they may lie on an empty mount point, and once they
        were mirrored, the others would seem to have been deleted one by one."""
        found = any(isinstance(change, Store) and not change.is_new for change in changes)
        if self._task.allow_empty or self._outcome.survivors is not False or self._outcome.report.moved or found:
            return changes
        return [Wait(change.note.path, change.stamp) if isinstance(change, Store) else change for change in changes]

    def _gone(self, paths: Sequence[str]) -> set[str]:
        """Those of the paths where no note is, looked at now: not there, or ignored, or behind a link."""
        scan = self._vault.scan(path for path in paths if path) if paths else Scan()
        return {path for path in paths if not path or not _stands(path, scan)}

    def _apply(self, changes: Sequence[Change]) -> set[str]:
        """Write the changes, count them, and return the ids written. What another writer was faster with, and what
        changed on disk meanwhile, is looked at again."""
        written = set()
        before = self._documents_before(changes)
        authors = {_path_of(change): author for change in changes if (author := self._author_of(change))}
        planned = []
        for change in changes:
            path = _path_of(change)
            write = write_for(change, authors.get(path, _OWNER), before.get(path), self._seed_for(change))
            planned.append((change, write))
        planned, lost = self._write(planned)
        for change, write in planned:
            path = _path_of(change)
            if write is not None and id(write) in lost:
                self._outcome.again.add(path)
                continue
            self._count(change, by_hand=path not in authors)
            if write is not None and not isinstance(change, Fail):
                written.add(write.id)
                if isinstance(write, Put) and write.replaces is not None:
                    written.add(write.replaces)
            if path and _is_outdated(change, self._vault.stamp(path)):
                self._outcome.again.add(path)
        return written

    def _write(self, planned: list[_Planned]) -> tuple[list[_Planned], set[int]]:
        """Apply; returns what was carried out, and the `id()` of each write that lost.

        A note that the store cannot hold fails like a file that cannot be read, and the others are written.
        """
        while True:
            writes = [write for _, write in planned if write is not None]
            try:
                return planned, {id(write) for write in self._mirror.apply(writes)} if writes else set()
            except UnreadableFile as error:
                if not any(_puts(write, error.path) for write in writes):
                    raise BackendDown(self._mirror.name, error.reason) from error
                planned = [_refused(*one, error.reason) if _puts(one[1], error.path) else one for one in planned]

    def _documents_before(self, changes: Sequence[Change]) -> dict[str, Document]:
        """By path, the documents that are about to be replaced by other text: the breadcrumb tells the difference."""
        ending = {
            change.onto.id: change.note.path
            for change in changes
            if isinstance(change, Store) and change.onto is not None and change.onto.digest != change.note.digest
        }
        found = self._mirror.get_many(list(ending)) if ending else {}
        return {ending[note_id]: document for note_id, document in found.items()}

    def _author_of(self, change: Change) -> str:
        """Who made this change by a tool, as that has told; "" for what a person did without one."""
        match change:
            case Store(_, note):
                return self._task.authors.get((note.path, note.digest)) or self._author(note.path, note.digest)
            case Delete(known) if known.path:
                return self._author(known.path, "")
            case _:
                return ""

    def _seed_for(self, change: Change) -> Seed | None:
        """What is known of a file without a row. Git is asked once a sweep, and only by one that looks at everything:
        when a store was lost, or when filling it was broken off."""
        if not isinstance(change, Store) or not change.is_new:
            return None
        seed = self._task.past(change.note.path) if self._task.past is not None else None
        if seed is not None or self._task.places is not None:
            return seed
        if self._past is None:
            self._past = git_history(self._vault.root)
        return self._past.seed_of(change.note.path)

    def _count(self, change: Change, *, by_hand: bool) -> None:
        report = self._outcome.report
        tallies = (report, report.by_hand) if by_hand else (report,)
        match change:
            case Wait(path, found):
                self._outcome.waiting[path] = found
            case Fail(path, reason):
                report.failed[path] = reason
            case Keep(path):
                report.failed.pop(path, None)
            case Refresh(known):
                report.failed.pop(known.path, None)
            case Delete(known):
                for tally in tallies:
                    tally.deleted += 1
                    tally.paths |= {known.path} - {""}
                report.failed.pop(known.path, None)
                self._released.add(known.id)
            case Store(_, note, _, onto, was):
                past = onto or was
                if change.moved and past is not None and past.path:
                    report.left.add(past.path)
                for tally in tallies:
                    tally.added += change.is_new
                    tally.moved += change.moved
                    tally.updated += not change.is_new and not change.moved
                    tally.paths.add(note.path)
                self._outcome.stored.add(note.path)
                report.failed.pop(note.path, None)
                severe = [problem for problem in note.problems if problem.severe]
                if severe:
                    report.failed[note.path] = str(severe[0])
                if was is not None:
                    self._released.add(was.id)

    def _delete(self, vanished: Vanished) -> set[str]:
        """Delete what is still not there, unless that would be everything and nobody says to have done it."""
        changes = deletions(vanished, self._task.settled)
        gone = self._gone([change.known.path for change in changes if isinstance(change, Delete)])
        certain = [change for change in changes if not isinstance(change, Delete) or change.known.path in gone]
        self._outcome.again |= {_path_of(change) for change in changes} - {_path_of(change) for change in certain}
        found_gone = (change.known.path for change in certain if isinstance(change, Delete))
        deletes = sum(path not in self._task.removed for path in found_gone)
        if deletes and not self._task.allow_empty and not self._others_stand(gone):
            raise _would_delete_everything(deletes)
        return self._apply(certain)

    def _others_stand(self, gone: Collection[str]) -> bool:
        """Whether another note that the mirror knows still stands, or was found elsewhere."""
        if self._outcome.report.moved or self._outcome.survivors is not None:
            return bool(self._outcome.report.moved or self._outcome.survivors)
        if len(gone) * _FEW < self._mirror.note_count():
            return True
        rows = (row.path for row in self._mirror.known() if row.path not in gone)
        return any(path and self._vault.stamp(path) is not None for path in rows)

    def _wake_contenders(self) -> None:
        """Files that want an id which this sweep set free are looked at again."""
        if self._released:
            rows = self._mirror.claimants(self._released)
            self._outcome.again |= {row.path for row in rows if row.wants in self._released and row.id != row.wants}


def _is_outdated(change: Change, now: Stamp | None) -> bool:
    """Whether the file is no longer what was written of it."""
    match change:
        case Store(_, _, stamp) | Refresh(_, stamp):
            return now != stamp
        case Delete():
            return now is not None
        case _:
            return False


def _stands(path: str, scan: Scan) -> bool:
    """Whether the file of a row is there, or may be there: a refused or unseen place proves nothing."""
    return path in scan.seen or path in scan.refused or scan.is_blind_to(path)


def _path_of(change: Change) -> str:
    match change:
        case Store(_, note):
            return note.path
        case Refresh(known) | Delete(known):
            return known.path
        case Keep(path) | Wait(path, _) | Fail(path):
            return path


def _puts(write: Write | None, path: str) -> bool:
    return isinstance(write, Put) and write.note.path == path


def _refused(change: Change, _: Write | None, reason: str) -> _Planned:
    """What becomes of a note that the store would not hold: the row its file has had stays, and is marked stale."""
    path = _path_of(change)
    rows = (change.onto, change.was) if isinstance(change, Store) else ()
    fail = Fail(path, reason, next((row for row in rows if row is not None and row.path == path), None))
    return fail, write_for(fail, "")


def _would_delete_everything(known: int) -> WouldDeleteEverything:
    return WouldDeleteEverything(
        f"none of the {known} mirrored notes is on disk; nothing was deleted. "
        "If that is meant, run: notebook-sync sync --allow-empty",
        known,
    )
