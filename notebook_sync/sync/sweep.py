"""One look at some places, or at all: scan, read, plan and write batch by batch, then delete what is gone.

Each batch is one transaction, in which the rows are read, the plan is made and the rows are written; every path is then
looked at once more, since it may have changed meanwhile. Deletions come last, and need proof that the disk is there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct, field

from notebook_sync.errors import GitFailed, WouldDeleteEverything
from notebook_sync.files.tree import Scan
from notebook_sync.model import PARSER, UNSETTLED, Stamp, id_from_path
from notebook_sync.permissions import is_private
from notebook_sync.store.collection import Collection as Rows
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Has, Is, Where, both
from notebook_sync.store.tables import as_json
from notebook_sync.sync.apply import Applier
from notebook_sync.sync.diff import (
    Change,
    Delete,
    Known,
    Look,
    Put,
    Settled,
    Stale,
    Touch,
    Wait,
    contested,
    deletions,
    diff,
    fault_of,
)
from notebook_sync.sync.losses import suspect_losses
from notebook_sync.sync.readers import Order, Reader

# When the first commits were made of files at these paths.
CreatedAt = Callable[[list[str]], dict[str, datetime]]
# The same bytes at another path are a move of a note that ended within this time.
_REMEMBERED = timedelta(hours=24)
# What is found at a path that has to be looked at again: at once, or, after a read right behind a write, so much later.
_AGAIN: tuple[float, Stamp | None] = (0.0, UNSETTLED)
_RACY: tuple[float, Stamp | None] = (0.02, UNSETTLED)
_UNSTORABLE = (TypeError, ValueError, OverflowError, RecursionError)


class Report(Struct):
    """What looks did: counts of notes; `paths` are those whose rows were written or ended, in order.

    `faults` maps a path to why its row is not what the file says. `warnings` are about the run, not about one note.
    """

    added: int = 0
    updated: int = 0
    moved: int = 0
    deleted: int = 0
    unchanged: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    paths: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[dict[str, str]]:
        """The faults as `{path, error}`, by path."""
        return [{"path": path, "error": error} for path, error in sorted(self.faults.items())]

    def as_dict(self) -> dict[str, Any]:
        """The shape that `sync --json` prints."""
        counts = {name: getattr(self, name) for name in ("added", "updated", "moved", "deleted", "unchanged")}
        return {**counts, "failed": self.failed, "warnings": self.warnings, "seconds": round(self.seconds, 3)}

    def note_fault(self, path: str, fault: str) -> None:
        """Note why the row at `path` is not what the file says; "" where it is."""
        self.faults.pop(path, None)
        if fault:
            self.faults[path] = fault


class Sweep(Struct):
    """One look. `places` are paths of files and folders, None for all.

    `settled` is what an earlier look found at paths that had to wait. `rehash` reads files whose stamp is unchanged,
    too; `force` writes equal rows again. `is_first`: the folder was never looked at whole, so its notes are no news.
    `is_last`: no look follows by itself, as in a command.

    Afterwards `waiting` has the paths to look at again: after how many seconds, and what was found now (`UNSETTLED`:
    something that proves nothing).
    """

    reader: Reader
    applier: Applier
    created_at: CreatedAt | None
    report: Report
    places: set[str] | None = None
    settled: Settled = field(default_factory=dict)
    allow_empty: bool = False
    rehash: bool = False
    force: bool = False
    is_first: bool = False
    is_last: bool = False
    progress: Callable[[int, int], None] | None = None
    scan: Scan = field(default_factory=Scan)
    waiting: dict[str, tuple[float, Stamp | None]] = field(default_factory=dict)
    _known: dict[str, Known] = field(default_factory=dict)
    _unread: dict[str, Stamp] = field(default_factory=dict)
    _vanished: dict[str, Known] = field(default_factory=dict)
    _by_tools: set[str] = field(default_factory=set)
    _released: set[str] = field(default_factory=set)
    _created: dict[str, datetime] = field(default_factory=dict)

    @property
    def index(self) -> Index:
        return self.applier.index

    def run(self) -> None:
        """Carry it out. Raises RootLost, WouldDeleteEverything and errors of the index."""
        self._begin()
        if self._is_doubtful():
            if self.places is None:
                raise _would_delete(len(self._vanished))
            self.places = None
            self.run()
            return
        self._apply([Look(path, fault=reason) for path, reason in self.scan.refused.items()])
        orders = self._orders()
        if self.is_first and self.created_at is not None:
            with suppress(GitFailed):
                self._created = self.created_at([path for path, _ in orders])
        done = len(self.scan.seen) - len(orders)
        for looks in self.reader.looks(orders):
            self._apply(looks)
            done += len(looks)
            if self.progress is not None:
                self.progress(done, len(self.scan.seen))
        self._delete()
        self._update_attachments()
        if self._released:  # files that want an id which is free now, or whose holder moved
            from notebook_sync.sync.project import name_keys  # not loaded for a look that finds nothing new

            of_these = Is("wanted_id", "in", list(self._released))
            wanting = self._rows(both(Has("names", tuple(name_keys(self._released))), of_these))
            self.waiting |= {row.path: _AGAIN for row in wanting if row.path and row.id != row.wanted_id}

    def _begin(self) -> None:
        """Scan, and read what the index has for the same places."""
        self.scan = self.reader.tree.scan(None if self.places is None else sorted(self.places))
        self._unread = dict(self.scan.seen)
        if self.places is None and not (self.force or self.rehash):
            rows = self._rows(Is("id", "in", [*self._unproven()]))
        else:
            rows = _known(self._at_places(self.index.documents, Known._fields, "path"))
        self._known = {row.path: row for row in rows if row.path}
        seen = self.scan.seen
        self._vanished = {row.id: row for row in rows if row.path not in seen and not self._is_there(row.path)}
        for row in rows:
            if (row.stale or row.problems) and row.id not in self._vanished:
                self.report.note_fault(row.path, row.stale or fault_of(row.problems))
        intents = self.index.intents.tuples(("path", "digest", "moved_from"), Is("committed", "=", 0))
        self._by_tools = {moved_from if digest else path for path, digest, moved_from in intents} - {"", None}
        self.settled = {**dict.fromkeys(self._by_tools), **self.settled}

    def _unproven(self) -> Iterator[str]:
        """The ids of the rows that the scan does not prove to be what their files say. All others, mostly, stay out of
        memory, and their files need no look."""
        fields = ("id", "wanted_id", "path", "stamp", "parser", "stale", "problems")
        for id, wanted_id, path, stamp, *rest in self.index.documents.stored(fields):
            found = self._unread.get(path)
            if found is not None and [wanted_id, stamp, *rest] == [id, as_json(found), PARSER, "", "[]"]:
                del self._unread[path]
            else:
                yield id

    def _is_doubtful(self) -> bool:
        """Whether no known note is on disk: this may be an empty mount point, and new files there prove nothing, unless
        one of them is a known note."""
        is_proven = len(self._unread) < len(self.scan.seen)
        if self.allow_empty or is_proven or any(self._is_there(path) for path in self._known):
            return False
        if self.places is not None:
            rows = self.index.documents.find(fields=("id",), limit=len(self._known) + 1) if self.scan.seen else ()
            return len(rows) > len(self._known) and not self._others_exist(())
        known = {name for row in self._known.values() for name in (row.id, row.digest)}
        looks = (self.reader.look(path).projection for path in self.scan.seen)
        found = (projection.document for projection in looks if projection is not None)
        return bool(known) and not any(each["digest"] in known or each["wanted_id"] in known for each in found)

    def _orders(self) -> list[Order]:
        """Files whose stamp does not prove their row; shortest path first, which of two that want one id gets it."""
        others = [row.wanted_id for row in self._known.values() if row.id != row.wanted_id]
        held = {row.id: row.path for row in self._rows(Is("id", "in", others)) if row.id not in self._vanished}
        orders = []
        for path, stamp in self._unread.items():
            row = self._known.get(path)
            is_current = row is not None and not self.force and row.parser == PARSER and _has_its_id(row, held)
            if row is None or not is_current or row.stamp != stamp or row.stale or self.rehash:
                orders.append((path, row.digest if row is not None and is_current else ""))
        return sorted(orders, key=lambda order: (len(order[0]), order[0]))

    def _apply(self, looks: Sequence[Look]) -> None:
        """Plan and write one batch. A note that the index cannot hold fails alone."""
        if not looks:
            return
        try:
            with self.index.write():
                changes = self._plan(looks)
                self.applier.apply(changes, created=self._created, is_quiet=self.force or self.is_first)
        except _UNSTORABLE as error:
            if len(looks) == 1 and looks[0].projection is None:
                raise
            reason = f"cannot be stored: {type(error).__name__}: {error}"
            for look in looks:
                self._apply([look] if len(looks) > 1 else [Look(look.path, fault=reason)])
            return
        self._count(changes)
        for look in looks:
            if look.stamp == UNSETTLED:
                self.waiting[look.path] = _RACY
            elif look.stamp not in (None, self.reader.tree.stat(look.path)) or not (look.stamp or look.fault):
                self.waiting[look.path] = _AGAIN  # the disk has the last word

    def _plan(self, looks: Sequence[Look]) -> list[Change]:
        """The changes, from rows as they are in this transaction. What another process wrote since the scan is looked
        at again: it may have read a newer text than this look did."""
        documents = {look.path: look.projection.document for look in looks if look.projection is not None}
        ids = {each for path, row in documents.items() for each in (row["wanted_id"], id_from_path(path), path)}
        digests = {row["digest"] for row in documents.values()}
        alike = {row.id for row in self._vanished.values() if row.digest in digests}
        paths = {look.path for look in looks}
        rows = {row.path: row for row in self._rows(Is("path", "in", list(paths)))}
        elsewhere = [row for row in self._rows(Is("id", "in", list(ids | alike))) if row.path not in paths]
        missing = self._missing([row.path for row in elsewhere])
        changed = {path for path in paths if rows.get(path) != self._known.get(path)}
        self.waiting |= dict.fromkeys(changed, _AGAIN)
        fresh = [row["digest"] for path, row in documents.items() if path not in rows and not is_private(path)]
        return diff(
            [look for look in looks if look.path not in changed],
            rows,
            [*(row for row in elsewhere if row.path in missing), *self._ended(fresh, ids)],
            [row for row in elsewhere if row.path not in missing],
            settled=self.settled,
            force=self.force,
        )

    def _ended(self, digests: Sequence[str], ids: Collection[str]) -> list[Known]:
        """Notes without an id of their own that ended lately: the same bytes at another path are a move."""
        lately = both(Is("digest", "in", digests), Is("ended_at", ">=", datetime.now(UTC) - _REMEMBERED))
        rows = self.index.documents.ended(lately) if digests else []
        return [
            Known(row["id"], "", "", row["digest"], UNSETTLED, 0, "", (), 0)
            for row in rows
            if row["id"] == id_from_path(row["path"] or "") not in ids and not is_private(row["path"])
        ]

    def _count(self, changes: Iterable[Change]) -> None:
        """Note in the report what was written, and what has to wait."""
        report = self.report
        for change in changes:
            match change:
                case Wait(path, found) if found != UNSETTLED:
                    self.waiting[path] = (self.applier.settings.sync.settle_ms / 1000, found)
                case Stale(path, reason):
                    report.note_fault(path, reason)
                case Touch(known):
                    report.note_fault(known.path, fault_of(known.problems))
                case Put(note_id, look, projection, onto, was):
                    report.added += change.past is None
                    report.moved += change.is_moved
                    report.updated += change.past is not None and not change.is_moved
                    report.paths.append(look.path)
                    report.note_fault(look.path, fault_of(projection.document["problems"]))
                    ends = {row.id for row in (onto, was) if row is not None and (row is was or row.path != look.path)}
                    self._released |= ends
                    for id in (note_id, *ends):
                        self._vanished.pop(id, None)
                case Delete(known):
                    report.deleted += 1
                    report.paths += [known.path] if known.path else []
                    report.note_fault(known.path, "")
                    self._released.add(known.id)

    def _delete(self) -> None:
        """Delete what is still not there, where that is certain. Raises WouldDeleteEverything."""
        if not self._vanished and self.places is not None:
            return
        planned = deletions(self._vanished.values(), self.settled)
        self._count([change for change in planned if isinstance(change, Wait)])
        ends = [change.known for change in planned if isinstance(change, Delete)]
        missing = self._missing([row.path for row in ends])
        by_hand = missing - self._by_tools - {""} if not self.allow_empty else set()
        if by_hand and not self.report.moved and not self._others_exist(missing):
            raise _would_delete(len(by_hand))
        gone = [row.path for row in self._vanished.values()] if self.places is None else None
        held, warnings = suspect_losses(self.index, by_hand, gone, is_last=self.is_last)
        self.report.warnings += warnings
        if expected := {row.id: row for row in ends if row.path in missing - held}:
            with self.index.write():
                current = self._rows(Is("id", "in", list(expected)))
                certain = [Delete(row) for row in current if row == expected[row.id]]
                self.applier.apply(certain, is_quiet=self.force)
            self._count(certain)
        there = {row.path for row in ends if row.path not in missing or self.reader.tree.stat(row.path) is not None}
        self.waiting |= dict.fromkeys(there - held - {""}, _AGAIN)

    def _others_exist(self, paths: Collection[str]) -> bool:
        """Whether a note of the index other than these is on disk."""
        others = (path for (path,) in self.index.documents.stored(("path",)) if path and path not in paths)
        return any(self.reader.tree.stat(path) is not None for path in others)

    def _update_attachments(self) -> None:
        """Bring the list of other files in step with the scan."""
        attachments, found = self.index.attachments, self.scan.attachments
        stored = self._at_places(attachments, ("id", "size", "mtime_ns"), "id")
        known = {path: (size, mtime_ns) for path, size, mtime_ns in stored}
        gone = [path for path in known.keys() - found.keys() if not self.scan.is_blind_to(path)]
        new = [path for path, values in found.items() if known.get(path) != values]
        attachments.delete(gone)
        attachments.put([{"id": path, "size": found[path][0], "mtime_ns": found[path][1]} for path in new])

    def _rows(self, where: Where) -> list[Known]:
        return _known(self.index.documents.tuples(Known._fields, where))

    def _at_places(self, rows: Rows, fields: Sequence[str], path: str) -> list[tuple[Any, ...]]:
        """The rows at the places and below; `path` is the field that has their path."""
        if self.places is None:
            return rows.tuples(fields)
        found = rows.tuples(fields, Is(path, "in", list(self.places)))
        # One question each: SQLite answers `or` by reading every row.
        for place in self.places - self.scan.seen.keys():
            found += rows.tuples(fields, Is(path, "under", place))
        return found

    def _is_there(self, path: str) -> bool:
        """Whether the file of a row is on disk, or may be: a place that nobody could look at proves nothing."""
        return path in self.scan.seen or path in self.scan.refused or (bool(path) and self.scan.is_blind_to(path))

    def _missing(self, paths: Collection[str]) -> set[str]:
        """Those of the paths where no note is, looked at now: not there, left out by a rule, or behind a link."""
        asked = [path for path in paths if path]
        scan = self.reader.tree.scan(asked) if asked else Scan()
        there = {*scan.seen, *scan.refused}
        return {path for path in paths if not path or (path not in there and not scan.is_blind_to(path))}


def _has_its_id(row: Known, held: Mapping[str, str]) -> bool:
    """Whether the row has the id that its file wants, or says which file has it now."""
    return row.id == row.wanted_id or (
        row.wanted_id in held and contested(row.wanted_id, held[row.wanted_id]) in row.problems
    )


def _would_delete(known: int) -> WouldDeleteEverything:
    return WouldDeleteEverything(f"none of the {known} indexed notes is on disk; nothing was deleted", known)


def _known(rows: Iterable[Sequence[Any]]) -> list[Known]:
    return [
        Known(id, path or "", wanted_id, digest, Stamp(*stamp), parser, stale, problems, words)
        for id, path, wanted_id, digest, stamp, parser, stale, problems, words in rows
    ]
