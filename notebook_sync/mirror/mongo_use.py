"""Documents of `memory_use`, one a memory: how it is used, and the marks that it is sought by.

Marks are written before the row that they are of: who is stopped in between has marked what the next comparison of
files writes. What is sought by them is looked at in the rows themselves, so that no mark tells what no row does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from notebook_sync.mirror import mongo_rows as rows
from notebook_sync.mirror.base import Put, Write
from notebook_sync.mirror.memories import UNSCORED, marks
from notebook_sync.mirror.mongo_connection import Connection
from notebook_sync.mirror.mongo_schema import USE

NEW = {"$setOnInsert": {"standing": UNSCORED}}
"""What a document is made with: how its memory stands among others, until it has a score."""
_BULK = 500
_DUPLICATE_KEY = 11000


def mark(connection: Connection, writes: Iterable[Write]) -> None:
    """Mark the memories that are about to be put."""
    puts = [write for write in writes if isinstance(write, Put) and write.note.collection == "memories"]
    marked = {put.id: marks_of({**put.note.fields, "metadata": _metadata(put)}) for put in puts}
    told = [
        ({"_id": note_id}, {"$set": {"marks": of}, **NEW})
        for note_id, of in marked.items()
        if rows.is_storable(note_id)
    ]
    send(connection, [UpdateOne(same, change, upsert=True) for same, change in told])


def marks_of(row: rows.Row) -> list[str]:
    """All that the memory of a row can be sought by."""
    metadata = row["metadata"]
    named = {"d": row.get("domain"), "k": row.get("kind"), "p": metadata.get("provenance")}
    return [*marks("t", metadata["tags"]), *(one for of, text in named.items() for one in marks(of, [text or ""]))]


def carry(connection: Connection, moved: Mapping[str, str]) -> None:
    """How a memory was used goes with it to its new id; whoever is stopped in between loses that, and no note."""
    for piece in rows.askable(moved):
        with connection.asking() as database:
            used = list(database[USE].find({"_id": {"$in": piece}}, {"marks": 0}))
        goes = [({"_id": moved[use.pop("_id")]}, use) for use in used]
        unused = {"accesses": None, "score": None}
        send(connection, [UpdateOne({**same, **unused}, {"$set": use}) for same, use in goes if use])
        with connection.telling() as database:
            database[USE].delete_many({"_id": {"$in": piece}})


def send(connection: Connection, operations: Sequence[UpdateOne]) -> None:
    """Make the changes; those again that another process hindered, which made the same document at once."""
    for start in range(0, len(operations), _BULK):
        bulk = list(operations[start : start + _BULK])
        while bulk:
            bulk = _sent(connection, bulk)


def _sent(connection: Connection, bulk: Sequence[UpdateOne]) -> list[UpdateOne]:
    with connection.telling() as database:
        try:
            database[USE].bulk_write(bulk, ordered=False)
        except BulkWriteError as error:
            failed = error.details["writeErrors"]
            if error.details["writeConcernErrors"] or any(one["code"] != _DUPLICATE_KEY for one in failed):
                raise
            return [bulk[one["index"]] for one in failed]
    return []


def _metadata(put: Put) -> rows.Row:
    return {"tags": put.note.tags, "provenance": put.note.provenance}
