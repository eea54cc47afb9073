"""The MongoDB store's collections, validator and indexes. Making them twice changes nothing.

All of it can live on collections sharded by `_id`, but for the unique index on `path`: where the server refuses that
one, a plain index takes its place and only speed is the same.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pymongo import ASCENDING, DESCENDING, TEXT, IndexModel
from pymongo.database import Database
from pymongo.errors import CollectionInvalid, OperationFailure

from notebook_sync.files.note import COLLECTIONS

META = "meta"
# A word in a title tells most about what a note is for.
_WEIGHTS = {"title": 8, "summary": 2, "content": 1, "code": 1}
# Two rows are at one path, the collection is sharded by something else, or a plain index is there already.
_UNIQUE_REFUSED = frozenset({11000, 67, 85, 86})
_OF_ONE_COLLECTION = {"code_snippets": "language", "research_notes": "source_url"}
_STRING, _DATE, _WHOLE = {"bsonType": "string"}, {"bsonType": "date"}, {"bsonType": ["int", "long"]}
_VALIDATOR = {
    "$jsonSchema": {
        "bsonType": "object",
        "required": ["_id", "collection", "metadata", "source", "serial", "pending", "gone"],
        "properties": {
            "_id": _STRING,
            "path": _STRING,
            "collection": {"enum": list(COLLECTIONS)},
            "metadata": {
                "bsonType": "object",
                "required": ["created_at", "updated_at", "version", "status"],
                "properties": {"created_at": _DATE, "updated_at": _DATE, "version": _WHOLE, "status": _STRING},
            },
            "source": {"bsonType": "object", "required": ["path", "digest"], "properties": {"digest": _STRING}},
            "serial": _WHOLE,
            "pending": _STRING,
            "gone": {"bsonType": "bool"},
        },
    }
}


def make_schema(database: Database[dict[str, Any]]) -> None:
    """Make what is missing of the collections and their indexes."""
    present = set(database.list_collection_names())
    for name in COLLECTIONS:
        if name not in present:
            with contextlib.suppress(CollectionInvalid):  # another process was faster
                database.create_collection(name, validator=_VALIDATOR, validationLevel="moderate")
        collection = database[name]
        try:
            collection.create_indexes([*indexes_of(name), _path_index(unique=True)])
        except OperationFailure as error:
            if error.code not in _UNIQUE_REFUSED:
                raise
            collection.create_indexes([*indexes_of(name), _path_index(unique=False)])


def indexes_of(collection: str) -> list[IndexModel]:
    """Every index of a collection but the one on `path`."""
    single = ["metadata.created_by", "metadata.tags", "wants"]
    if collection in _OF_ONE_COLLECTION:
        single.append(_OF_ONE_COLLECTION[collection])
    return [
        *(IndexModel([(field, ASCENDING)]) for field in single),
        IndexModel([("metadata.updated_at", DESCENDING), ("_id", ASCENDING)]),
        # Without language_override, a snippet's `language: python` would be taken for the language of its prose.
        IndexModel(
            [(field, TEXT) for field in _WEIGHTS], name="words", weights=_WEIGHTS, language_override="prose_language"
        ),
        # Small ones over the few rows that need attention: they cost the others nothing. None on `awaits_ref`, which
        # each ref that is told changes: a change to any index has the server cut the row into words again (0.7 ms). In
        # exchange, asking for all that is pending reads every row (2 ms for a thousand).
        _partial("gone", {"gone": True}),
        _partial("stale", {"stale": {"$gt": ""}}),
        _partial("problems.line", {"problems.line": {"$gte": 0}}),
    ]


def _partial(field: str, rows: dict[str, Any]) -> IndexModel:
    return IndexModel([(field, ASCENDING)], name=f"{field}_only", partialFilterExpression=rows)


def _path_index(*, unique: bool) -> IndexModel:
    """Rows without a path, tombstones among them, keep "" there: any number of them may."""
    name = "path_unique" if unique else "path_plain"
    return IndexModel([("path", ASCENDING)], name=name, unique=unique, partialFilterExpression={"path": {"$gt": ""}})
