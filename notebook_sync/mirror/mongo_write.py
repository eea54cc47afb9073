"""How writes reach MongoDB: read the rows, decide, and change a row only if it is still the one that was read.

There is no transaction over two rows. A bulk that somebody else's write came in between of is decided again, which
does no harm: whatever was already made is found made.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import bson
from bson.errors import BSONError
from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne
from pymongo.errors import BulkWriteError, OperationFailure

from notebook_sync.errors import BackendDown, UnreadableFile
from notebook_sync.mirror import mongo_plan as planning
from notebook_sync.mirror import mongo_rows as rows
from notebook_sync.mirror import mongo_use as use
from notebook_sync.mirror.base import Put, Write
from notebook_sync.mirror.mongo_connection import Connection

# After so many rounds in which somebody else was faster, the write has lost.
_ROUNDS = 20
_ROW_BYTES = 16 * 1024 * 1024
# A bulk of this size is taken and indexed well within a request's deadline; the text index is what takes long.
_BULK_BYTES = 1024 * 1024
_DUPLICATE_KEY = 11000
# What a server says of one write that no other server would take either: a value, depth, size, key, or reference that
# cannot be stored, or a row the validator refuses. A full disk or a quota is not the note's fault.
_NOTES_FAULT = frozenset({2, 15, 22, 52, 55, 57, 121, 171, 10334, 17280, 17419, 17420})

_Operation = InsertOne[Any] | ReplaceOne[Any] | UpdateOne | DeleteOne


def apply(connection: Connection, writes: Sequence[Write]) -> list[Write]:
    """`Mirror.apply`."""
    outcome = _Outcome()
    use.mark(connection, writes)
    for wave in _waves(writes):
        left = wave
        for _ in range(_ROUNDS):
            left = _attempt(connection, left, writes, outcome)
            if not left:
                break
        outcome.lost += left
    if outcome.refused:
        raise outcome.refused[0]
    made = (write for write in writes if isinstance(write, Put) and write not in outcome.lost)
    memories = (put for put in made if put.note.collection == "memories")
    use.carry(connection, {put.replaces: put.id for put in memories if put.replaces is not None})
    return outcome.lost


@dataclass(slots=True)
class _Outcome:
    lost: list[Write] = field(default_factory=list)
    refused: list[UnreadableFile] = field(default_factory=list)


@dataclass(slots=True)
class _Bulk:
    """Operations on one collection. `owners` are the writes they belong to, by number."""

    collection: str
    operations: list[_Operation] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    size: int = 0


def _waves(writes: Sequence[Write]) -> Iterator[list[Write]]:
    """The writes in order, cut where an id comes again: a write must see what an earlier one made of its row."""
    wave: list[Write] = []
    ids: set[str] = set()
    for write in writes:
        touched = {write.id} if not isinstance(write, Put) or write.replaces is None else {write.id, write.replaces}
        if touched & ids:
            yield wave
            wave, ids = [], set()
        wave.append(write)
        ids |= touched
    if wave:
        yield wave


def _attempt(connection: Connection, writes: Sequence[Write], batch: Sequence[Write], outcome: _Outcome) -> list[Write]:
    """One round of read, decide, write; returns what has to be decided again."""
    seen = planning.Seen(_rows_for(connection, writes), batch)
    now = time.time_ns() // 1000  # beyond any serial that an earlier row of the same id had
    plans: dict[int, planning.Plan] = {}
    for n, write in enumerate(writes):
        plan = planning.plan(write, seen, now)
        if plan is None:
            outcome.lost.append(write)
        else:
            plans[n] = plan
    raced: set[int] = set()
    for stage in planning.STAGES:
        steps = [(n, step) for n, plan in plans.items() if n not in raced for step in getattr(plan, stage)]
        refused: dict[int, str] = {}
        for bulk in _bulks(steps, refused):
            raced |= _send(connection, bulk, refused)
        for n, reason in refused.items():
            write = writes[n]
            if not isinstance(write, Put):
                raise BackendDown(connection.name, f"cannot change the row of {write.id}: {reason}")
            del plans[n]
            outcome.refused.append(UnreadableFile(write.note.path, reason))
    new = {writes[n].id: n for n, plan in plans.items() if n not in raced and any(step.is_new for step in plan.main)}
    raced |= {new[note_id] for note_id in _twins(connection, new)}
    return [writes[n] for n in plans if n in raced]


def _twins(connection: Connection, ids: Iterable[str]) -> set[str]:
    """Those of the ids that have rows in two collections. Two writers who both saw no row may have made one each, for
    no reading of several collections is of one moment. Each looks after it has written, so that one of them sees it.
    """
    seen: set[str] = set()
    twins: set[str] = set()
    for piece in rows.askable(ids):
        for row in connection.found({"_id": {"$in": piece}}, ["_id"]):
            (twins if row["_id"] in seen else seen).add(row["_id"])
    return twins


def _rows_for(connection: Connection, writes: Sequence[Write]) -> list[rows.Row]:
    """The rows that the writes are about, in whatever collection they are, and those at their paths."""
    ids = {write.id for write in writes}
    ids |= {write.replaces for write in writes if isinstance(write, Put) and write.replaces is not None}
    paths = {write.note.path for write in writes if isinstance(write, Put)}
    found: dict[tuple[str, str], rows.Row] = {}
    for field_name, values in (("_id", ids), ("path", paths)):
        for piece in rows.askable(values):
            for row in connection.found({field_name: {"$in": piece}}, rows.HEAD):
                found[row["collection"], row["_id"]] = row
    return list(found.values())


def _bulks(steps: Iterable[tuple[int, planning.Step]], refused: dict[int, str]) -> Iterator[_Bulk]:
    """The steps as bulks of bounded size; what BSON cannot hold goes to `refused`, with the reason."""
    open_bulks: dict[str, _Bulk] = {}
    for n, step in steps:
        try:
            operation, size = _operation(step)
        except (BSONError, ValueError, OverflowError) as error:
            refused[n] = f"MongoDB cannot hold it: {rows.encodable(str(error))}"
            continue
        bulk = open_bulks.setdefault(step.collection, _Bulk(step.collection))
        if bulk.operations and bulk.size + size > _BULK_BYTES:
            yield open_bulks.pop(step.collection)
            bulk = open_bulks.setdefault(step.collection, _Bulk(step.collection))
        bulk.operations.append(operation)
        bulk.owners.append(n)
        bulk.size += size
    yield from open_bulks.values()


def _operation(step: planning.Step) -> tuple[_Operation, int]:
    """The driver's operation for a step, and its size in bytes. Raises what the encoder raises, and ValueError."""
    same = {"_id": step.id, "serial": step.serial}
    if step.changes is not None:
        return UpdateOne(same, {"$set": step.changes}), len(bson.encode(step.changes))
    if step.row is None:
        return DeleteOne(same), 0
    size = len(bson.encode(step.row))
    if size > _ROW_BYTES:
        raise ValueError(f"its document has {size:,} bytes, the limit is {_ROW_BYTES:,}")
    return InsertOne(step.row) if step.serial is None else ReplaceOne(same, step.row), size


def _send(connection: Connection, bulk: _Bulk, refused: dict[int, str]) -> set[int]:
    """Make one bulk; returns the writes whose steps may not have been made because a row was no longer the same."""
    raced: set[int] = set()
    with connection.telling() as database:
        try:
            result = dict(database[bulk.collection].bulk_write(bulk.operations, ordered=False).bulk_api_result)
        except BulkWriteError as error:
            result = dict(error.details)
            trouble = [one for one in result["writeErrors"] if one["code"] not in {_DUPLICATE_KEY, *_NOTES_FAULT}]
            for failure in trouble + result["writeConcernErrors"]:
                raise OperationFailure(failure["errmsg"], failure["code"]) from None
    for failure in result["writeErrors"]:
        owner = bulk.owners[failure["index"]]
        if failure["code"] == _DUPLICATE_KEY:
            raced.add(owner)
        else:
            refused[owner] = f"MongoDB refused it: {failure['errmsg']}"
    made = result["nInserted"] + result["nMatched"] + result["nRemoved"]
    if made + len(result["writeErrors"]) < len(bulk.operations):
        pairs = zip(bulk.operations, bulk.owners, strict=True)
        raced |= {owner for operation, owner in pairs if not isinstance(operation, InsertOne)}
    return raced - refused.keys()
