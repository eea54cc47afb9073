"""What must change in the mirror, given what was found on disk and what the mirror knows. Pure: no I/O, no clock.

One row per path, read from the top; the first that fits decides:

    on disk               in the mirror     settled   change
    ────────────────────  ────────────────  ────────  ──────────────────────────────────────────────
    nothing               nothing           —         none
    nothing               a row             no        Wait: an editor may be putting it back
    nothing               a row             yes       Delete, unless a new file is this note (Move)
    refused               nothing           —         Fail
    refused               a row             —         Fail, and the row is marked stale
    unfinished            not this digest   no        Wait: empty, or cut off inside frontmatter
    broken                a good row        —         Fail, and the row is marked stale
    same digest           a row             —         Keep, or Touch where the stamp moved or stale is to be cleared
    other digest          a row             —         Store
    a note                nothing           —         Store; Wait where it may be a note that is vanishing

"Settled" means: an earlier look, at least the settle time ago, found the very same (the same stamp, or nothing).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from notebook_sync.files.note import PARSER_REVISION, Note, Problem, Stamp, id_from_path
from notebook_sync.mirror.base import Known


@dataclass(frozen=True, slots=True)
class Look:
    """What one path holds now. No stamp: nothing is there, or `refusal` says why it was not taken.

    A stamp without a note: the bytes have the digest of the row, which needs no other id. racy: written so lately that
    a further write may leave the same stamp.
    """

    path: str
    stamp: Stamp | None = None
    note: Note | None = None
    refusal: str = ""
    unfinished: bool = False
    racy: bool = False


@dataclass(frozen=True, slots=True)
class Keep:
    path: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is to be done before the settle time; `path` is then looked at again. `found` is what is there now."""

    path: str
    found: Stamp | None


@dataclass(frozen=True, slots=True)
class Fail:
    """The file cannot be taken. `known` is its last good row, if there is one."""

    path: str
    reason: str
    known: Known | None


@dataclass(frozen=True, slots=True)
class Refresh:
    """The bytes are as known; the stamp is not, or the row was stale."""

    known: Known
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Store:
    """The mirror's row `id` shall say what `note` says.

    `onto` is the row that has this id now, `was` the row this file had under another id, which ends.
    """

    id: str
    note: Note
    stamp: Stamp
    onto: Known | None = None
    was: Known | None = None

    @property
    def is_new(self) -> bool:
        """Whether the mirror has no row that this note goes on from."""
        return self.onto is None and self.was is None

    @property
    def moved(self) -> bool:
        """Whether a note that was known elsewhere is now here."""
        past = self.onto or self.was
        return past is not None and past.path != self.note.path


@dataclass(frozen=True, slots=True)
class Delete:
    known: Known


Change = Keep | Wait | Fail | Refresh | Store | Delete

# What an earlier look, at least the settle time ago, found at some paths.
Settled = Mapping[str, Stamp | None]
_NOTHING_SETTLED: Settled = MappingProxyType({})


class Vanished:
    """Rows whose file was not found, and which no new file has turned out to be yet."""

    def __init__(self, rows: Iterable[Known] = ()) -> None:
        self._by_id: dict[str, Known] = {}
        self._by_digest: dict[str, list[Known]] = {}
        for row in rows:
            self.add(row)

    def __contains__(self, note_id: str) -> bool:
        return note_id in self._by_id

    def __iter__(self) -> Iterator[Known]:
        return iter(list(self._by_id.values()))

    def add(self, row: Known) -> None:
        """One more row whose file is not there."""
        if row.id not in self._by_id:
            self._by_id[row.id] = row
            self._by_digest.setdefault(row.digest, []).append(row)

    def get(self, note_id: str) -> Known | None:
        """The row with this id."""
        return self._by_id.get(note_id)

    def twin(self, note: Note) -> Known | None:
        """The row that this new file is, by its bytes; of several, the one whose file has the same name."""
        if note.has_own_id:
            return None
        twins = [row for row in self._by_digest.get(note.digest, ()) if row.id in self._by_id and not row.has_own_id]
        name = note.path.rpartition("/")[2]
        return min(twins, key=lambda row: (row.path.rpartition("/")[2] != name, row.path), default=None)

    def found(self, row: Known) -> None:
        """The row's note is elsewhere now."""
        del self._by_id[row.id]


def must_read(path: str, stamp: Stamp, known: Mapping[str, Known]) -> bool:
    """Whether the stamp alone cannot vouch for the row: it is new, differs, is stale, or an older parser made it."""
    row = known.get(path)
    return row is None or row.stamp != stamp or row.revision != PARSER_REVISION or bool(row.stale)


def diff(
    looks: Iterable[Look],
    known: Mapping[str, Known],
    vanished: Vanished,
    outside: Collection[Known] = (),
    *,
    settled: Settled = _NOTHING_SETTLED,
    force: bool = False,
) -> list[Change]:
    """The changes that `looks` call for, deletions excepted: those come last, by `deletions`.

    known: rows by path, of the looked-at paths. vanished: rows whose file was not found; those that turn out to have
    moved are taken from it. outside: rows that have or want an id of these looks, whose files stand elsewhere.
    force: rewrite equal rows.
    """
    looks = list(looks)
    changes: list[Change] = []
    storing: list[Look] = []
    for look in looks:
        row = known.get(look.path)
        early = _decide_alone(look, row, settled=_is_settled(look.path, look.stamp, settled))
        if early is None:
            storing.append(look)
        else:
            changes.append(early)
    ids = _assign_ids(storing, known, vanished, outside)
    by_id = {row.id: row for row in (*known.values(), *outside)}
    taken = set(ids.values())
    for look in storing:
        changes.append(_place(look, ids[look.path], known.get(look.path), by_id, taken, vanished, settled, force=force))
    return changes


def deletions(vanished: Vanished, settled: Settled) -> list[Change]:
    """What becomes of the rows that no new file turned out to be."""
    return [Delete(row) if _is_settled(row.path, None, settled) else Wait(row.path, None) for row in vanished]


def _is_settled(path: str, stamp: Stamp | None, settled: Settled) -> bool:
    """Whether the path has been like this for the settle time. No path: a row that lost its place to another file."""
    return not path or (path in settled and settled[path] == stamp)


def _decide_alone(look: Look, row: Known | None, *, settled: bool) -> Change | None:
    """The change that one path decides for itself, or None: a note to be stored."""
    if look.refusal:
        return Fail(look.path, look.refusal, row)
    if look.note is None or look.stamp is None:
        return _keep(look, row)
    same = row is not None and row.digest == look.note.digest
    if look.unfinished and not settled and not same:
        return Wait(look.path, look.stamp)
    if look.note.broken and row is not None and not row.broken and not same:
        first = next(problem for problem in look.note.problems if problem.severe)
        return Fail(look.path, str(first), row)
    return None


def _keep(look: Look, row: Known | None) -> Change:
    """Nothing to store; perhaps the stamp."""
    if row is not None and look.stamp is not None and (row.stamp != look.stamp or row.stale):
        return Refresh(row, look.stamp)
    return Keep(look.path)


def _place(
    look: Look,
    note_id: str,
    row: Known | None,
    by_id: Mapping[str, Known],
    taken: Collection[str],
    vanished: Vanished,
    settled: Settled,
    *,
    force: bool,
) -> Change:
    """The change that stores one note under the id it was given. `taken` are the ids given out beside it."""
    if look.note is None or look.stamp is None:
        return _keep(look, row)
    note = look.note if note_id == look.note.wants else refused_its_id(look.note)
    if row is not None and row.id == note_id:
        current = row.revision == PARSER_REVISION and row.digest == note.digest and row.problems == len(note.problems)
        if not current or force:
            return Store(note_id, note, look.stamp, onto=row)
        return _keep(look, row)
    onto = by_id.get(note_id)
    source = vanished.get(note_id)
    if source is None and row is None:
        source = vanished.twin(note)
    if source is not None:
        if not _is_settled(source.path, None, settled):
            return Wait(look.path, look.stamp)
        vanished.found(source)
    if onto is None and source is not None and source.id == note_id:
        onto = source
    was = source if source is not None and source.id != note_id else row
    if was is not None and was.id in taken:
        was = None  # another file takes that row over
    return Store(note_id, note, look.stamp, onto=onto, was=was)


def _assign_ids(
    storing: Iterable[Look], known: Mapping[str, Known], vanished: Vanished, outside: Collection[Known]
) -> dict[str, str]:
    """An id for each path. Who has an id and still wants it keeps it; else the shortest path has it, then the first."""
    notes = {look.path: look.note for look in storing if look.note is not None}
    holders = {row.id: row.path for row in outside if row.path not in notes}
    holders |= {row.id: path for path, row in known.items() if path not in notes or row.id == notes[path].wants}
    in_turn = sorted(notes, key=lambda path: (len(path), path))
    for path in in_turn:
        gone = vanished.get(notes[path].wants)
        if gone is not None and gone.digest == notes[path].digest:
            holders.setdefault(gone.id, path)
    for path in in_turn:
        holders.setdefault(notes[path].wants, path)
    ids: dict[str, str] = {}
    for path in in_turn:
        wanted = notes[path].wants
        candidates = [wanted] if holders[wanted] == path else _own_ids(path, known.get(path))
        ids[path] = next(note_id for note_id in candidates if holders.setdefault(note_id, path) == path)
    return ids


def _own_ids(path: str, row: Known | None) -> Iterable[str]:
    """Ids for a note that cannot have the one it wants: from its path, which no other file has; first the present."""
    if row is not None and row.id.startswith(f"{path}#"):
        yield row.id
    yield id_from_path(path)
    yield path
    number = 2
    while True:
        yield f"{path}#{number}"
        number += 1


def refused_its_id(note: Note) -> Note:
    """The note with the remark that it is mirrored under another id than it wants."""
    message = f"id `{note.wants}` belongs to another file, which keeps it; give one of them another id"
    return replace(note, problems=(*note.problems, Problem(0, message, severe=True)))
