"""What an export of memories holds before anything is made of it: its columns, and the ids of its records.
Of the notebook, only what has these ids already is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from notebook_sync.errors import UsageError
from notebook_sync.notes.memories.importing.columns import COLUMNS, KNOWN, Record
from notebook_sync.notes.memories.importing.lines import Found
from notebook_sync.notes.memories.importing.record import Mark, id_in, mark_of, require_text
from notebook_sync.notes.memories.importing.values import as_links

(_VECTOR,) = COLUMNS["vector"]
# What a value that nobody thought of may bring about: it costs its own record alone.
ODD = (ValueError, OverflowError, RecursionError)

# By id, of those ids that notes of this notebook have, of which record it was made.
Claimed = Callable[[Collection[str]], Mapping[str, Mark]]


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
    """`count` records with these `columns`, in the order in which they came. `first` is, by id, the first record that
    has it. `vectors` counts the records that have any; `linked` are the ids that records link to and memories have, of
    the export or of the notebook."""

    count: int
    columns: Collection[str]
    first: Mapping[str, str]
    there: There
    vectors: int
    linked: Collection[str]

    def id_for(self, own_id: str, record: str) -> str:
        """The id of a memory that is to be made of a record."""
        is_free = own_id not in self.there.taken and self.first.get(own_id) == record
        return own_id if own_id and is_free else record

    def taken(self) -> dict[str, str]:
        """By field of a memory, the first column of the export that is read for it. Vectors are not read."""
        found = {role: [name for name in names if name in self.columns] for role, names in COLUMNS.items()}
        return {role: names[0] for role, names in found.items() if names and role != "vector"}

    def untaken(self) -> list[str]:
        """The columns that no field is read from."""
        return [name for name in self.columns if name not in KNOWN]

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
    count, vectors, error, readable = 0, 0, "", False
    columns: dict[str, None] = {}
    for found in records():
        count += 1
        error = error or found.error
        if found.fields is not None:
            readable = True
            columns |= dict.fromkeys(found.fields)
            vectors += found.fields.get(_VECTOR) is not None
    if count and not readable:
        raise UsageError(f"the file is no export of memories: {error}; give JSON lines, a list, or SQLite")
    first: dict[str, Mark] = {}
    ids: dict[str, str] = {}
    targets, whole = set(linked), set[str]()
    for found in records():
        if found.fields is not None:
            with suppress(UsageError, *ODD):  # it fails when its turn comes
                record = found.fields
                mark = mark_of(record)
                targets |= _targets_in(record)
                if own_id := ids.setdefault(mark.record, id_in(record)):
                    first.setdefault(own_id, mark)
                    require_text(record)
                    whole.add(mark.record)
    there = _there(ids, first, claimed, frozenset(unclaimed()))
    becoming = (whole - set(away)) | there.made.keys()
    led_on = {to for to in targets & first.keys() if first[to].record in becoming}
    led_on |= {*memories(targets - first.keys())}
    return Survey(
        count, columns.keys(), {own_id: mark.record for own_id, mark in first.items()}, there, vectors, led_on
    )


def _targets_in(record: Record) -> set[str]:
    """The ids that a record links to."""
    values = (record[name] for name in COLUMNS["relations"] if name in record)
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
