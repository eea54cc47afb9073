"""The MongoDB store's collections, validator and indexes. Making them twice changes nothing.

All of it can live on collections sharded by `_id`, but for the unique index on `path`: where the server refuses that
one, a plain index takes its place and only speed is the same.
"""

from __future__ import annotations

from typing import Any

from pymongo import ASCENDING, DESCENDING, TEXT, IndexModel
from pymongo.database import Database
from pymongo.errors import CollectionInvalid, OperationFailure

from notebook_sync.files.note import COLLECTIONS

META = "meta"
# How memories are used and what they are sought by, a document each.
USE = "memory_use"
# A word in a title tells most about what a note is for.
_WEIGHTS = {"title": 8, "summary": 2, "content": 1, "code": 1, "words": 1}
# Two rows are at one path, the collection is sharded by something else, or a plain index is there already.
_UNIQUE_REFUSED = frozenset({11000, 67, 85, 86})
_NEWEST = [("metadata.updated_at", DESCENDING), ("_id", ASCENDING)]
_IS_THERE, _IS_GONE = 48, 27
_OF_ONE_COLLECTION = {
    "code_snippets": [[("language", ASCENDING)]],
    "research_notes": [[("source_url", ASCENDING)]],
    "channels": [[("metadata.created_at", DESCENDING), *_NEWEST]],
    "memories": [[("relations.to", ASCENDING)]],
}
_FOR_REVIEW = IndexModel(
    [("needs_review", ASCENDING), ("_id", ASCENDING)],
    name="needs_review_only",
    partialFilterExpression={"needs_review": True},
)
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
            try:
                database.create_collection(name, validator=_VALIDATOR, validationLevel="moderate")
            except CollectionInvalid:
                pass  # another process was faster
            except OperationFailure as error:
                if error.code != _IS_THERE:  # another was faster still: between the driver's look and the server's
                    raise
        collection = database[name]
        if name in present and collection.index_information().get("words", {}).get("weights", _WEIGHTS) != _WEIGHTS:
            try:
                collection.drop_index("words")  # that of an earlier version: the server takes one index of texts alone
            except OperationFailure as error:
                if error.code != _IS_GONE:  # another process was faster
                    raise
        try:
            collection.create_indexes([*indexes_of(name), _path_index(unique=True)])
        except OperationFailure as error:
            if error.code not in _UNIQUE_REFUSED:
                raise
            collection.create_indexes([*indexes_of(name), _path_index(unique=False)])
    database[USE].create_indexes(indexes_of(USE))


def indexes_of(collection: str) -> list[IndexModel]:
    """Every index of a collection but the one on `path`."""
    if collection == USE:
        order = [("standing", DESCENDING), ("_id", ASCENDING)]
        indexes = {"order": order, "marks_order": [("marks", ASCENDING), *order]}
        return [IndexModel(fields, name=name) for name, fields in indexes.items()]
    single = ["metadata.created_by", "metadata.tags", "wants"]
    return [
        *(IndexModel(keys) for keys in _OF_ONE_COLLECTION.get(collection, ())),
        *(IndexModel([(field, ASCENDING)]) for field in single),
        IndexModel(_NEWEST),
        # What was put since the vectors were complete. No other write changes it.
        IndexModel([("written", ASCENDING)]),
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
        *([_FOR_REVIEW] if collection == "memories" else []),
    ]


def _partial(field: str, rows: dict[str, Any]) -> IndexModel:
    return IndexModel([(field, ASCENDING)], name=f"{field}_only", partialFilterExpression=rows)


def _path_index(*, unique: bool) -> IndexModel:
    """Rows without a path, tombstones among them, keep "" there: any number of them may."""
    name = "path_unique" if unique else "path_plain"
    return IndexModel([("path", ASCENDING)], name=name, unique=unique, partialFilterExpression={"path": {"$gt": ""}})
