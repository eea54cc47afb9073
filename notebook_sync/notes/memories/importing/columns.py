"""What the columns of another program's memories hold, by their names and, where those say nothing, by what stands in
them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from notebook_sync.notes.memories.importing.values import as_time, decoded

Record = Mapping[str, Any]
# By what a memory knows of itself, the columns that may tell it, the likeliest first.
Columns = Mapping[str, Sequence[str]]

# What says nothing.
EMPTY: tuple[Any, ...] = (None, "", [], {})
# As they are compared: small letters and digits only.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "uuid", "memoryid", "uid", "key"),
    "text": ("content", "text", "body", "memory", "note", "document", "value", "message"),
    "title": ("title", "name", "heading", "subject"),
    "summary": ("summary", "abstract"),
    "context": ("context",),
    "reasoning": ("reasoning", "rationale"),
    "outcome": ("outcome", "result"),
    "created_at": ("createdat", "created", "timestamp", "ts", "datetime", "date", "time", "createdon", "addedat"),
    "agent": ("agent", "agentid", "agentname", "author", "createdby", "sourceagent", "who"),
    "tags": ("tags", "labels", "keywords"),
    "priority": ("priority", "importance", "importancescore", "salience", "significance", "prio"),
    "domain": ("domain", "category", "area"),
    "kind": ("kind", "type", "memorytype"),
    "status": ("status",),
    "provenance": ("provenance",),
    "needs_review": ("needsreview",),
    "relations": ("relations", "relationships", "links", "edges"),
    "accesses": ("accesscount", "accesses", "usecount", "usagecount", "hits"),
    "last_accessed": ("lastaccessed", "lastaccessedat", "lastused", "lastusedat"),
    "vector": ("embedding", "embeddings", "vector", "vectors"),
}
_METADATA = ("metadata", "meta", "attributes", "properties")
# What another table has in its columns that tells of links, and of tags.
LINK_NAMES: Mapping[str, tuple[str, ...]] = {
    "from": ("from", "fromid", "source", "sourceid", "frommemoryid", "sourcememoryid", "src", "memoryid"),
    "to": ("to", "toid", "target", "targetid", "tomemoryid", "targetmemoryid", "dst", "relatedid", "relatedmemoryid"),
    "type": ("type", "relation", "relationtype", "relationship", "relationshiptype", "kind", "label"),
    "confidence": ("confidence", "weight", "strength", "score"),
    "reasoning": ("reasoning", "reason", "rationale", "description"),
    "source": ("origin", "createdby", "sourcename"),
}
TAG_NAMES: Mapping[str, tuple[str, ...]] = {
    "from": ("memoryid", "id", "noteid", "entryid"),
    "tag": ("tag", "label", "keyword", "name", "value"),
}
_PLAIN = re.compile(r"[^a-z0-9]")
_SHORTEST_TEXT = 20
_LONGEST_WORD = 100
# What is counted and worked out anew wherever memories are used.
_PASSING_ROLES = ("accesses", "last_accessed", "vector")
_PASSING_NAMES = ("score", "dynamicscore", "memoryscore", "relevancescore")


def flat(record: Record) -> Record:
    """The record with what stands in its metadata beside the rest; of two of a name, that of the metadata is marked."""
    nested = {name: value for name in by_name(record, _METADATA) if isinstance(value := decoded(record[name]), dict)}
    if not nested:
        return record
    plain = {name: value for name, value in record.items() if name not in nested}
    for outer, inner in nested.items():
        for name, value in inner.items():
            if plain.get(name) is None:
                plain[name] = value
            elif plain[name] != value:
                plain[f"{name} ({outer})"] = value
    return plain


def columns_of(sample: Iterable[Record]) -> Columns:
    """The columns of such records. One without a column for its text is found by what the others hold."""
    seen = Seen()
    for record in sample:
        seen.add(record)
    return seen.columns()


class Seen:
    """What stands in the columns of the records that were seen so far."""

    def __init__(self) -> None:
        self._count = 0
        self._names: dict[str, None] = {}
        self._free: dict[str, _Held] = {}

    def add(self, record: Record) -> None:
        """See one more."""
        self._count += 1
        for name, value in record.items():
            if name not in self._names:
                self._names[name] = None
                if not role_of(name):
                    self._free[name] = _Held()
            if value is not None and name in self._free:
                self._free[name].add(value)

    def columns(self) -> Columns:
        """The columns, as `columns_of`."""
        found = {role: by_name(self._names, names) for role, names in _NAMES.items()}
        free = {name: held for name, held in self._free.items() if held.count}
        for role in _HOLDS:
            if not found[role]:
                found[role] = [name for name, held in free.items() if role in held.may_be][:1]
                free = {name: held for name, held in free.items() if name not in found[role]}
        if not found["text"]:
            longest = max(free, key=lambda name: free[name].mean_length, default="")
            found["text"] = [longest] if longest and free[longest].mean_length >= _SHORTEST_TEXT else []
        if not found["id"]:
            one_each = [name for name, held in free.items() if self._count > 1 and held.tells_apart(self._count)]
            found["id"] = [name for name in one_each if name not in found["text"]][:1]
        return found

    def untaken(self) -> Sequence[str]:
        """The columns that tell nothing known."""
        taken = {name for names in self.columns().values() for name in names}
        return [name for name in self._names if name not in taken]


class _Held:
    """What stands in one column that no name tells of."""

    def __init__(self) -> None:
        self.count = 0
        self.may_be = set(_HOLDS)
        self._characters: int | None = 0
        self._apart: set[str] | None = set()

    def add(self, value: Any) -> None:
        self.count += 1
        self.may_be = {role for role in self.may_be if _HOLDS[role](value)}
        if self._characters is not None:
            self._characters = self._characters + len(value) if isinstance(value, str) else None
        if self._apart is not None:
            plain = str(value) if isinstance(value, str | int) else None
            if plain is None or len(plain) > _LONGEST_WORD or plain in self._apart:
                self._apart = None
            else:
                self._apart.add(plain)

    @property
    def mean_length(self) -> float:
        """Of its texts; 0 where it holds anything else."""
        return (self._characters or 0) / self.count

    def tells_apart(self, records: int) -> bool:
        """Whether each of so many records has one of these, short, and no two have the same."""
        return self.count == records and self._apart is not None


def meant(record: Record) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a record says whatever its columns are called: by what they tell, and by their own names those that tell
    what another tells already, or nothing known. Without what is empty, and without its use, scores and vectors."""
    told: dict[str, tuple[int, str]] = {}
    said = {name: value for name, value in record.items() if value not in EMPTY and not _is_passing(name)}
    for name in said:
        if (known := role_of(name)) is not None:
            role, rank = known
            told[role] = min(told.get(role, (rank, name)), (rank, name))
    names = {name for _, name in told.values()}
    by_role = {role: decoded(said[name]) for role, (_, name) in told.items()}
    return by_role, {name: decoded(value) for name, value in said.items() if name not in names}


@lru_cache(maxsize=1024)
def role_of(name: str) -> tuple[str, int] | None:
    """What a column of this name tells, and how likely: the lower, the likelier. None for a name that tells nothing."""
    plain = _PLAIN.sub("", name.casefold())
    return next(((role, names.index(plain)) for role, names in _NAMES.items() if plain in names), None)


def _is_passing(name: str) -> bool:
    known = role_of(name)
    return known[0] in _PASSING_ROLES if known else _PLAIN.sub("", name.casefold()) in _PASSING_NAMES


def by_name(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    """Those of the columns that are called so, in the order of the names."""
    plain = {name: _PLAIN.sub("", name.casefold()) for name in columns}
    return [column for name in names for column in plain if plain[column] == name]


def _is_time(value: Any) -> bool:
    return as_time(value) is not None


def _is_list_of_words(value: Any) -> bool:
    found = decoded(value)
    return isinstance(found, list) and all(isinstance(one, str) and len(one) <= _LONGEST_WORD for one in found)


_HOLDS = {"created_at": _is_time, "tags": _is_list_of_words}
