"""Files = index = servers? Reads every file again, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is, Row
from notebook_sync.store.tables import as_json
from notebook_sync.sync.diff import contested
from notebook_sync.sync.readers import Reader

_BATCH = 500
# What the bytes of a file do not determine: when and how it was seen, and what `put` only inserts.
_SEEN = frozenset(("words", "stamp", "updated_at", "created_at"))
_PLACE = ("id", "fact", "section", "pin", "audience")


@dataclass(frozen=True, slots=True)
class Verified:
    """Files, index and servers compared: how many notes each has (None: not set, or not asked), and every difference as
    `{path, what, detail}`. `what`: missing, stale, differs, facts, orphan; of a server, what its publisher says."""

    files: int
    index: int
    mongodb: int | None
    redis: int | None
    differences: list[dict[str, str]]


def verify(reader: Reader, index: Index, compare_servers: Callable[[], Any] | None = None) -> Verified:
    """Compare a fresh parse of every file with its rows. `compare_servers` returns how many notes MongoDB and Redis
    have (None where one is not set) and the differences, each `{path, what, detail}`."""
    scan = reader.tree.scan()
    missing = dict.fromkeys(scan.seen, "no look has found it yet") | scan.refused
    ids = [id for (id,) in index.documents.tuples(("id",))]
    found: list[tuple[str, str, str]] = []
    for start in range(0, len(ids), _BATCH):
        for row in index.documents.get(ids[start : start + _BATCH]).values():
            path = row["path"] or ""
            reason = missing.pop(path, "its folder cannot be read")
            if path in scan.seen:
                found += [(path, *difference) for difference in _compare(reader, index, row)]
            elif path in scan.refused or scan.is_blind_to(path):
                found.append((path, "stale", reason))
            else:
                found.append((path, "orphan", "the file is not there"))
    found += [(path, "missing", reason) for path, reason in missing.items()]
    mongodb, redis, others = compare_servers() if compare_servers is not None else (None, None, ())
    differences = [{"path": path, "what": what, "detail": detail} for path, what, detail in sorted(found)]
    return Verified(len(scan.seen), len(ids), mongodb, redis, [*differences, *others])


def _compare(reader: Reader, index: Index, row: Row) -> Iterator[tuple[str, str]]:
    look = reader.look(row["path"])
    if row["stale"] or look.projection is None:
        yield "stale", row["stale"] or look.fault or "it vanished"
        return
    projection, facts = look.projection, [fact["id"] for fact in look.projection.facts]
    if row["id"] != row["wanted_id"]:
        holder = index.documents.one(row["wanted_id"], heavy=False) or {"path": ""}
        projection = projection.with_problem(contested(row["wanted_id"], holder["path"]))
    # As the index can hold it: no value has a NUL.
    values = {name: as_json(value).replace("\\u0000", "\ufffd") for name, value in projection.document.items()}
    wrong = [name for name in values.keys() - _SEEN if values[name] != as_json(row[name]).replace("\\u0000", "\ufffd")]
    if wrong:
        yield "differs", f"in {', '.join(sorted(wrong))}"
    places = index.fact_places.find(Is("path", "=", row["path"]))
    stated, held = ({tuple(place[name] for name in _PLACE) for place in each} for each in (projection.places, places))
    if stated != held or index.facts.count(Is("id", "in", facts)) != len(facts):
        yield "facts", "the rows of its facts are not what it says"
