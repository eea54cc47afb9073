"""What an export of memories holds before anything is made of it: its columns, its scales, and the ids of its records.
Of the notebook, only what has these ids already is read."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from notebook_sync.errors import UsageError
from notebook_sync.notes.memories.importing.columns import Columns, Record, Seen, flat, role_of
from notebook_sync.notes.memories.importing.lines import Found
from notebook_sync.notes.memories.importing.record import Mark, id_in, mark_of, require_text
from notebook_sync.notes.memories.importing.values import HUNDREDTHS, RANKS, SCALES, SHARES, as_links, as_number

_PRIORITY = "prio"
# What a value that nobody thought of may bring about: it costs its own record alone.
ODD = (ValueError, OverflowError, RecursionError)

# By id, of those ids that notes of this notebook have, of which record it was made.
Claimed = Callable[[Collection[str]], Mapping[str, Mark]]


@dataclass(frozen=True, slots=True)
class Table:
    """One table of an export, or all of one that has none. `scales` is, by column, that of the priorities in it, one of
    SCALES; `untaken` are the columns that tell nothing known."""

    columns: Columns
    scales: Mapping[str, int]
    untaken: Sequence[str]


@dataclass(frozen=True, slots=True)
class There:
    """What a notebook has of an export: `taken` are those of its ids that notes have, `renamed` what such an id is here
    where it is another note's. `made` is, by record, the id of the memory that was made of it: for those in `changed`,
    with the same text and other values."""

    taken: frozenset[str]
    renamed: Mapping[str, str]
    made: Mapping[str, str]
    changed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Survey:
    """`count` records, in tables by name. `first` is, by id, the first record that has it. `vectors` counts the records
    that have any; `linked` are the ids that records link to and memories have, of the export or of the notebook."""

    count: int
    tables: Mapping[str, Table]
    first: Mapping[str, str]
    there: There
    vectors: int
    linked: Collection[str]

    def id_for(self, own_id: str, record: str) -> str:
        """The id of a memory that is to be made of a record."""
        is_free = own_id not in self.there.taken and self.first.get(own_id) == record
        return own_id if own_id and is_free else record

    def taken(self) -> dict[str, str]:
        """By what it is taken for, the likeliest column, in the first table that has one. Vectors are not taken."""
        found: dict[str, str] = {}
        for table in self.tables.values():
            for role, columns in table.columns.items():
                if columns and role != "vector":
                    found.setdefault(role, columns[0])
        return found

    def scales(self) -> dict[str, str]:
        """By the columns that priorities are taken from, the scale of each, in the first table that has it."""
        found: dict[str, str] = {}
        for table in self.tables.values():
            for column in table.columns["priority"]:
                if column in table.scales:
                    found.setdefault(column, SCALES[table.scales[column]])
        return found

    def untaken(self) -> list[str]:
        """The columns that are taken for nothing, in any table."""
        return list(dict.fromkeys(name for table in self.tables.values() for name in table.untaken))

    def leads_on(self, to: str) -> bool:
        """Whether a link to this leads to a memory, once all records are in."""
        return to in self.linked

    def link_for(self, to: str) -> str:
        """The id here of what a record links to, where the export has it."""
        return self.there.renamed.get(to, to)


def surveyed(
    records: Callable[[], Iterable[Found]],
    linked: Iterable[str],
    away: Collection[str],
    claimed: Claimed,
    unclaimed: Callable[[], Iterable[str]],
    memories: Callable[[Collection[str]], Collection[str]],
) -> Survey:
    """Reads the records twice. `linked` are ids that the export links to beside them, `away` the records that no
    memory is made of any more, `unclaimed` those that files were made of whose frontmatter is broken; `memories` tells
    which ids memories of this notebook have. Raises UsageError where nothing can be read, and as `claimed`."""
    count, error = 0, ""
    seen: dict[str, _Seen] = defaultdict(_Seen)
    for found in records():
        count += 1
        error = error or found.error
        if found.fields is not None:
            seen[found.table].add(flat(found.fields))
    if count and not seen:
        raise UsageError(f"the file is no export of memories: {error}; give JSON lines, a list, or SQLite")
    tables = {name: one.table() for name, one in seen.items()}
    first: dict[str, Mark] = {}
    ids: dict[str, str] = {}
    targets, whole = set(linked), set[str]()
    for found in records():
        if found.fields is not None:
            with suppress(UsageError, *ODD):  # it fails when its turn comes
                record, columns = flat(found.fields), tables[found.table].columns
                mark = mark_of(record, columns)
                targets |= _targets_in(record, columns)
                if own_id := ids.setdefault(mark.record, id_in(record, columns)):
                    first.setdefault(own_id, mark)
                    require_text(record, columns)
                    whole.add(mark.record)
    there = _there(ids, first, claimed, frozenset(unclaimed()))
    vectors = sum(one.vectors for one in seen.values())
    becoming = (whole - set(away)) | there.made.keys()
    led_on = {to for to in targets & first.keys() if first[to].record in becoming}
    led_on |= {*memories(targets - first.keys())}
    return Survey(count, tables, {own_id: mark.record for own_id, mark in first.items()}, there, vectors, led_on)


def _targets_in(record: Record, columns: Columns) -> set[str]:
    """The ids that a record links to."""
    values = (record[name] for name in columns["relations"] if name in record)
    return {link.to for value in values for link in as_links(value, lambda _: True)[0]}


def _there(ids: Mapping[str, str], first: Mapping[str, Mark], claimed: Claimed, unclaimed: frozenset[str]) -> There:
    """`ids` are the ids of records, "" for none."""
    known = claimed(first)
    made = {record: own_id for record, own_id in ids.items() if own_id in known and known[own_id].record == record}
    matched = set(made.values())
    others = [
        record
        for record, own_id in ids.items()
        if record not in made and (not own_id or own_id in known or first[own_id].record != record)
    ]
    made |= {record: record for record in claimed(others)}
    made |= {record: ids[record] or record for record in unclaimed & ids.keys() if record not in made}
    changed = {
        mark.record: own_id
        for own_id, mark in first.items()
        if own_id in known and own_id not in matched and mark.record not in made and known[own_id].text == mark.text
    }
    matched |= set(changed.values())
    renamed = {own_id: mark.record for own_id, mark in first.items() if own_id in known and own_id not in matched}
    return There(frozenset(known), renamed, made | changed, frozenset(changed))


class _Seen:
    """What is seen of a table."""

    def __init__(self) -> None:
        self._columns = Seen()
        self._numbers: dict[str, _Numbers] = {}
        self.vectors = 0

    def add(self, record: Record) -> None:
        self._columns.add(record)
        roles = {name: known[0] for name in record if (known := role_of(name)) is not None}
        for name, role in roles.items():
            if role == "priority" and (number := as_number(record[name])) is not None:
                self._numbers.setdefault(name, _Numbers()).add(number)
        self.vectors += any(role == "vector" and record[name] is not None for name, role in roles.items())

    def table(self) -> Table:
        return Table(
            self._columns.columns(),
            {column: numbers.scale_of(column) for column, numbers in self._numbers.items()},
            self._columns.untaken(),
        )


@dataclass(slots=True)
class _Numbers:
    """The numbers of a column, as far as they tell its scale: a few that are beyond all others tell nothing."""

    count: int = 0
    shares: int = 0
    hundredths: int = 0
    largest: float = -math.inf

    def add(self, number: float) -> None:
        """Count one more."""
        self.count += 1
        self.shares += 0 < number < SHARES
        self.hundredths += number > RANKS
        self.largest = max(self.largest, number)

    def scale_of(self, column: str) -> int:
        """What is called a priority is one, from 1 to 10, whatever it says."""
        if _PRIORITY in column.casefold():
            return RANKS
        if self.largest <= SHARES or 2 * self.shares > self.count:
            return SHARES
        return HUNDREDTHS if 2 * self.hundredths > self.count else RANKS
