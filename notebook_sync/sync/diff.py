"""What must change in the index, given what was found on disk and what the index holds. Pure: no I/O, no clock.

The first line that fits a path decides:

    on disk             in the index      settled   change
    ──────────────────  ────────────────  ────────  ───────────────────────────────────────────────────
    nothing             nothing           –         none
    nothing             a row             no        Wait: an editor may be about to write it again
    nothing             a row             yes       Delete, unless a new file is this note (a move)
    refused             any               –         Stale: reported; a row is kept and marked
    unfinished          not this digest   no        Wait: empty, or cut off inside the frontmatter
    damaged             a good row        –         Stale: the good row is kept and marked
    the same digest     a row             –         Touch where the stamp moved or the row was stale, else none
    another digest      a row             –         Put
    a note              nothing           –         Put; Wait while the note that it was may still be vanishing

"Settled": an earlier look, at least `settle_ms` ago, found the same stamp, or nothing. "Damaged": bytes that no person
meant (not UTF-8, NULs, broken frontmatter, an emptied file of rules or facts). A row of an older parser, and each row
of a forced look, is put again where the digest is the same, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from notebook_sync.model import PARSER, Stamp, id_from_path
from notebook_sync.store.rows import EPOCH, Row

# What an earlier look, at least the settle time ago, found at some paths.
Settled = Mapping[str, Stamp | None]
_EMPTIED = "the file is empty, and it held text: the last good version is used"


class Known(NamedTuple):
    """One row of `documents`, as far as decisions depend on it. `path` is "" for a row that lost it to another file, or
    that ended."""

    id: str
    path: str
    wanted_id: str
    digest: str
    stamp: Stamp
    parser: int
    stale: str
    problems: Sequence[Sequence[Any]]
    word_count: int

    @property
    def is_good(self) -> bool:
        """Whether the row was made of a file in order, but for an id that another file has."""
        return sum(bool(severe) for _, _, severe in self.problems) == (self.id != self.wanted_id)


class Projection(msgspec.Struct, frozen=True):
    """The rows of one file: see `notebook_sync.sync.project`. `document` has no `id` yet; `facts` have initial values
    of kept columns; `places` say where the facts are, one row for each line."""

    document: Row
    facts: tuple[Row, ...] = ()
    places: tuple[Row, ...] = ()

    def with_problem(self, problem: list[Any]) -> Projection:
        """The same with one more problem of the file."""
        document = {**self.document, "problems": [*self.document["problems"], problem]}
        return Projection(document, self.facts, self.places)


class Look(msgspec.Struct, frozen=True):
    """What one path holds now.

    `stamp` is what the row gets, None where there is no file, `UNSETTLED` where the read proves nothing yet. `fault`
    says why the file was not read, or, with a projection, why a good row is better than these bytes. Without both the
    bytes are those of the row. `is_emptied`: these bytes are only a fault where the row held text.
    """

    path: str
    stamp: Stamp | None = None
    mtime: datetime = EPOCH
    projection: Projection | None = None
    fault: str = ""
    is_emptied: bool = False
    is_unfinished: bool = False


class Wait(msgspec.Struct, frozen=True):
    """Nothing is to be done before the settle time has passed; `found` is what is there now."""

    path: str
    found: Stamp | None


class Stale(msgspec.Struct, frozen=True):
    """The file cannot be taken as it is; `known` is its last good row, if there is one."""

    path: str
    reason: str
    known: Known | None


class Touch(msgspec.Struct, frozen=True):
    """The bytes are those of the row; its stamp and time are not, or it was stale."""

    known: Known
    stamp: Stamp
    mtime: datetime


class Put(msgspec.Struct, frozen=True):
    """The row `id` becomes what `projection` says.

    `onto` is the row that has this id now. `was` is the row that the file had under another id, or an ended one; it is
    no more, and its kept columns go along unless `onto` has its own.
    """

    id: str
    look: Look
    projection: Projection
    onto: Known | None = None
    was: Known | None = None

    @property
    def past(self) -> Known | None:
        """The row that this note continues, None for a new note."""
        return self.onto or self.was

    @property
    def is_same(self) -> bool:
        """Whether the text of the row stays."""
        return self.past is not None and self.past.digest == self.projection.document["digest"]

    @property
    def is_moved(self) -> bool:
        return self.past is not None and self.past.path != self.look.path


class Delete(msgspec.Struct, frozen=True):
    """The row ends: its file is gone."""

    known: Known


Change = Wait | Stale | Touch | Put | Delete


def diff(
    looks: Sequence[Look],
    rows: Mapping[str, Known],
    vanished: Collection[Known] = (),
    others: Collection[Known] = (),
    *,
    settled: Settled = MappingProxyType({}),
    force: bool = False,
) -> list[Change]:
    """The changes that `looks` call for, deletions excepted: see `deletions`.

    `rows` are the rows of the looked-at paths. `vanished` and `others` have an id or the bytes of these looks; the
    files of `others` exist elsewhere. `force` writes equal rows again.
    """
    decided = {look.path: _decide_alone(look, rows.get(look.path), settled) for look in looks}
    notes = [(look, look.projection) for look in looks if decided[look.path] is None and look.projection is not None]
    ids, holders = _assign_ids(notes, rows, vanished, others)
    given = set(ids.values())
    by_id = {row.id: row for row in chain(others, rows.values(), vanished)}
    lost = {row.id: row for row in vanished}
    nameless: defaultdict[str, list[Known]] = defaultdict(list)
    for row in vanished:
        if row.wanted_id == id_from_path(row.path):  # others would be found by the id they name
            nameless[row.digest].append(row)
    for look, projection in notes:
        note_id, known = ids[look.path], rows.get(look.path)
        wanted_id, digest = projection.document["wanted_id"], projection.document["digest"]
        if note_id != wanted_id:
            projection = projection.with_problem(contested(wanted_id, holders[wanted_id]))
        onto, was, source = by_id.get(note_id), known, lost.get(note_id)
        if known is not None and known.id == note_id:
            was = None
            is_same = known.digest == digest and list(known.problems) == projection.document["problems"]
            if is_same and known.parser == PARSER and not force:
                decided[look.path] = _touch(look, known)
                continue
        elif known is None and source is None and wanted_id == id_from_path(look.path):
            alike = [each for each in nameless[digest] if each.id in lost and each.id not in given]
            was = source = min(alike, key=lambda each: _unlikeness(each.path, look.path), default=None)
        if source is not None:
            if not _is_settled(source.path, None, settled):
                decided[look.path] = Wait(look.path, look.stamp)
                continue
            del lost[source.id]
        if was is not None and was.id in given:
            was = None  # another file gets that row
        decided[look.path] = Put(note_id, look, projection, onto, was)
    return [change for change in decided.values() if change is not None]


def deletions(vanished: Iterable[Known], settled: Settled) -> list[Wait | Delete]:
    """What happens to the rows that no new file turned out to be."""
    return [Delete(row) if _is_settled(row.path, None, settled) else Wait(row.path, None) for row in vanished]


def fault_of(problems: Iterable[Sequence[Any]]) -> str:
    """The first problem that makes it doubtful what a file means, "" for none."""
    severe = ((line, message) for line, message, is_severe in problems if is_severe)
    return next((f"line {line}: {message}" if line else message for line, message in severe), "")


def contested(wanted_id: str, holder: str) -> list[Any]:
    """The problem of a file that names an id which the file at `holder` has."""
    return [0, f"id `{wanted_id}` belongs to {holder}; give one of the two files another id", True]


def _is_settled(path: str, found: Stamp | None, settled: Settled) -> bool:
    return not path or (path in settled and settled[path] == found)


def _decide_alone(look: Look, row: Known | None, settled: Settled) -> Change | None:
    """The change that a path decides for itself; None for a note that needs an id, and for no change."""
    if look.projection is None:
        return Stale(look.path, look.fault, row) if look.fault else _touch(look, row)
    is_same = row is not None and row.digest == look.projection.document["digest"]
    if look.is_unfinished and not is_same and not _is_settled(look.path, look.stamp, settled):
        return Wait(look.path, look.stamp)
    if row is None or is_same or not row.is_good:
        return None
    fault = look.fault or (_EMPTIED if look.is_emptied and row.word_count else "")
    return Stale(look.path, fault, row) if fault else None


def _touch(look: Look, row: Known | None) -> Touch | None:
    if row is None or look.stamp is None or (row.stamp == look.stamp and not row.stale):
        return None
    return Touch(row, look.stamp, look.mtime)


def _unlikeness(old: str, new: str) -> tuple[bool, bool, str]:
    """Of several notes with the same bytes, the one with the least has moved: rather one with the same file name."""
    return not old, old.rpartition("/")[2] != new.rpartition("/")[2], old


def _assign_ids(
    notes: Sequence[tuple[Look, Projection]],
    rows: Mapping[str, Known],
    vanished: Collection[Known],
    others: Collection[Known],
) -> tuple[dict[str, str], dict[str, str]]:
    """An id for each path, and the path of each id's holder. A file that has an id and still wants it keeps it; else
    the shortest path gets it, then the first by name."""
    wants = {look.path: projection.document["wanted_id"] for look, projection in notes}
    digests = {look.path: projection.document["digest"] for look, projection in notes}
    holders = {row.id: row.path for row in others if row.path not in wants}
    holders |= {row.id: path for path, row in rows.items() if path not in wants or row.id == wants[path]}
    in_turn = sorted(wants, key=lambda path: (len(path), path))
    gone = {(row.id, row.digest) for row in vanished}
    for path in sorted(in_turn, key=lambda path: (wants[path], digests[path]) not in gone):
        holders.setdefault(wants[path], path)
    ids: dict[str, str] = {}
    for path in in_turn:
        # No file may name an id that ends in .md: a path is its file's own.
        candidates = (wants[path], id_from_path(path), path)
        ids[path] = next(each for each in candidates if each == path or holders.setdefault(each, path) == path)
    return ids, holders
