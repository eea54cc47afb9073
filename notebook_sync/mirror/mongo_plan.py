"""What each write means for the rows that were read: which steps to take, or that it lost. Pure.

A step names the serial of the row it was decided for, so that it fails rather than overwrite somebody else's write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from notebook_sync.files.note import Stamp
from notebook_sync.mirror.base import MarkStale, Put, Remove, Touch, Write
from notebook_sync.mirror.document import document_of, moment, signed
from notebook_sync.mirror.mongo_rows import PLAIN, Row, encodable, event_of, to_bson
from notebook_sync.mirror.mongo_words import words_beside
from notebook_sync.mirror.past import first_version, may_put, next_version, untold
from notebook_sync.permissions import is_private


@dataclass(frozen=True, slots=True)
class Step:
    """One change to one row, made only if the row still has `serial`; None: only if there is no such row.

    `row` replaces the whole row, `changes` sets fields; with neither, the row is dropped.
    """

    collection: str
    id: str
    serial: int | None
    row: Row | None = None
    changes: Row | None = None

    @property
    def is_new(self) -> bool:
        """Whether it makes a row that was not there."""
        return self.serial is None


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of one write. `main` waits for `before`, `after` for `main`; broken off anywhere, no note is lost."""

    before: tuple[Step, ...] = ()
    main: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()


STAGES = ("before", "main", "after")


class Seen:
    """The rows that were read for a batch of writes, and where that batch moves them."""

    def __init__(self, rows: Iterable[Row], writes: Iterable[Write]) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._at: dict[str, Row] = {}
        for row in sorted(rows, key=lambda row: -row["serial"]):
            self._rows.setdefault(row["_id"], []).append(row)
            if row["path"]:
                self._at.setdefault(row["path"], row)
        self._bound_for: dict[str, str] = {}
        for write in writes:
            match write:
                case Put():
                    self._bound_for |= dict.fromkeys((write.id, write.replaces or write.id), write.note.path)
                case Remove():
                    self._bound_for[write.id] = ""

    def row(self, note_id: str | None) -> Row | None:
        """The latest row of one id, tombstone or not."""
        return next(iter(self._rows.get(note_id or "", [])), None)

    def leftovers(self, note_id: str) -> list[Row]:
        """Older rows of one id, in other collections: what a move that was broken off left behind."""
        return self._rows.get(note_id, [])[1:]

    def holder(self, put: Put) -> Row | None:
        """The row of another note at the Put's path."""
        row = self._at.get(put.note.path)
        return row if row is not None and row["_id"] != put.id else None

    def leaves(self, row: Row) -> bool:
        """Whether this batch takes the row away from its path: two notes may have swapped names."""
        path: str = row["path"]
        return self._bound_for.get(row["_id"], path) != path


def plan(write: Write, seen: Seen, now: int) -> Plan | None:
    """What to do for one write; None when it lost. `now`, in microseconds, is where a new row's serial starts."""
    row = seen.row(write.id)
    if isinstance(write, Put):
        return _plan_put(write, row, seen, now)
    if row is None or row["gone"]:
        return Plan() if isinstance(write, Remove) else None
    if row["source"]["digest"] != write.base:
        return None
    match write:
        case Remove():
            step = _replace(row, _tombstone(row, "deleted"))
        case MarkStale():
            step = _change(row, {"stale": encodable(write.reason)})
        case Touch():
            step = _change(row, _touched(row, write.stamp))
    return Plan(main=(step,))


def _plan_put(put: Put, row: Row | None, seen: Seen, now: int) -> Plan | None:
    if row is not None and not row["gone"] and not _may_put(put, row):
        return None
    holder, carried = seen.holder(put), seen.row(put.replaces)
    if holder is not None and holder["_id"] != put.replaces and not seen.leaves(holder):
        return None
    before = [Step(holder["collection"], holder["_id"], holder["serial"], changes={"path": ""})] if holder else []
    after = [Step(old["collection"], old["_id"], old["serial"]) for old in seen.leftovers(put.id)]
    serial = now if row is None else row["serial"] + 1
    home = put.note.collection
    expected = row["serial"] if row is not None else None
    if row is not None and row["collection"] != home:
        # Hidden first: nobody sees the note twice, and of two who move it one fails here.
        before.append(_change(row, {"gone": True, "awaits_ref": False, "path": ""}))
        after.append(Step(row["collection"], put.id, serial))
        serial += 1
        expected = next((old["serial"] for old in seen.leftovers(put.id) if old["collection"] == home), None)
        after = [step for step in after if step.collection != home]
    if carried is not None and not carried["gone"]:
        after.append(_replace(carried, _tombstone(carried, "deleted" if is_private(put.note.path) else "")))
    # A row that is there although none was expected is this note: its tombstone, or written by another process.
    new = _row_of(put, row, past=row if row is not None else carried)
    event = _event_after(put, row, serial)
    made = Step(home, put.id, expected, row={**new, "serial": serial, "event": event, "written": now})
    return Plan(tuple(before), (made,), tuple(after))


def _may_put(put: Put, row: Row) -> bool:
    return may_put(put, row["source"]["digest"], row["path"], row["metadata"]["version"])


def _event_after(put: Put, row: Row | None, serial: int) -> int:
    return event_of(row) if row is not None and _says(row, put) else serial


def _says(row: Row, put: Put) -> bool:
    """Whether the row says already what `put` wants: another writer was faster, and tells what happened."""
    return not row["gone"] and row["path"] == put.note.path and row["source"]["digest"] == put.note.digest


def _row_of(put: Put, row: Row | None, past: Row | None) -> Row:
    """The Put's row, with what is operational carried over from `past`."""
    note, document = put.note, document_of(put)
    del document["id"]
    metadata = document["metadata"]
    if past is None:
        version, history = first_version(put)
    else:
        version, history = past["metadata"]["version"], past["history"]
        if past["source"]["digest"] != put.note.digest:
            version, history = next_version(put, version, history)
        if metadata["created_from"] != "frontmatter" and past["metadata"]["created_from"] != "frontmatter":
            metadata |= {key: past["metadata"][key] for key in ("created_at", "created_from")}
    kept = {"usage": past["usage"]} if past is not None and "usage" in past else {}
    document["source"]["inode"] = signed(put.stamp.inode)
    metadata["version"] = version
    metadata["extra"] = to_bson(metadata["extra"])
    fields = {key: to_bson(value) for key, value in document.items() if key not in PLAIN}
    return {
        "_id": put.id,
        **document,
        **fields,
        **kept,
        "history": history,
        "words": words_beside([note.title, note.summary, note.content, note.code or ""]),
        "pending": _untold(row, "touched" if row is not None and _says(row, put) else put.action),
        "awaits_ref": True,
        "gone": False,
    }


def _untold(row: Row | None, action: str) -> str:
    return untold("" if row is None or row["gone"] else str(row["pending"]), action)


def _touched(row: Row, stamp: Stamp) -> Row:
    return {
        "source.size": stamp.size,
        "source.mtime_ns": stamp.mtime_ns,
        "source.ctime_ns": stamp.ctime_ns,
        "source.inode": signed(stamp.inode),
        "metadata.updated_at": moment(stamp.mtime_ns),
        "stale": None,
        "pending": _untold(row, "touched"),
        "awaits_ref": True,
    }


def _tombstone(row: Row, action: str) -> Row:
    """Its version and history stay, should the note come back."""
    return {**row, "path": "", "gone": True, "pending": action, "awaits_ref": True, "event": row["serial"] + 1}


def _replace(row: Row, new: Row) -> Step:
    return Step(row["collection"], row["_id"], row["serial"], row={**new, "serial": row["serial"] + 1})


def _change(row: Row, changes: Row) -> Step:
    return Step(row["collection"], row["_id"], row["serial"], changes={**changes, "serial": row["serial"] + 1})
