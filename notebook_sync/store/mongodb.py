"""MongoDB as a mirror: documents and facts in the collections and fields that programs of the original design read.

Documents of other programs, and our own that others changed, are never overwritten or deleted. pymongo is imported when
the first request is made.
"""

from __future__ import annotations

import math
import re
import threading
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from itertools import accumulate, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from notebook_sync.errors import BackendDown
from notebook_sync.model import HISTORY_LIMIT
from notebook_sync.settings import MirrorTable
from notebook_sync.store.index import Index
from notebook_sync.store.owner import FOREIGN, Mark, Refusals, Revs, name_of, without_secrets
from notebook_sync.store.rows import Change, Is, Row
from notebook_sync.store.tables import as_json

if TYPE_CHECKING:
    from pymongo.collection import Collection
    from pymongo.database import Database

META, OWNER, FACTS, OTHERS = "meta", "owner", "notes", "documents"
SHAPES = ("pages", "code_snippets", "research_notes", OTHERS)
# The collections there, and the collection of the index that each is of.
_PLACES: Final = {**dict.fromkeys(SHAPES, "documents"), FACTS: "facts"}
# Codes with which the server refuses one document, not every one.
_ROW_CODES = frozenset({2, 15, 22, 52, 55, 57, 121, 171, 10334, 17262, 17280, 17419, 17420})
_DUPLICATE, _CONFLICTS = 11000, frozenset({85, 86})
_BULK, _LARGEST, _DEEPEST, _BATCH = 1 << 20, 16 << 20, 100, 500

Document = dict[str, Any]
# (key of the row, request, its size in bytes)
Work = list[tuple[str, Any, int]]


class MongoTarget:
    """One database of one server."""

    kind = "mongodb"
    collections = frozenset(("documents", "facts"))
    needs_text = True

    def __init__(self, settings: MirrorTable, notebook: str, index: Index) -> None:
        self.name = f"{name_of(settings.url, 'MongoDB')}/{settings.database}"
        self._settings = settings
        self._notebook = notebook
        self._index = index
        self._client: Any = None
        self._lock = threading.Lock()
        self._has_indexes = False

    def read_mark(self) -> Mark | None:
        """The owner's mark. Raises BackendDown, as every method that asks the server does."""
        with self._asking() as database:
            found = database[META].find_one({"_id": OWNER})
        if found is None:  # an emptied database has lost its indexes
            self._has_indexes = False
        return Mark.read(found) if found else None

    def write_mark(self, mark: Mark) -> None:
        """Record owner and cursor."""
        with self._asking() as database:
            database[META].replace_one({"_id": OWNER}, asdict(mark), upsert=True)

    def write(self, changes: Sequence[Change], mark: Mark, *, claim: bool = False) -> Refusals:
        """Write a batch; by "COLLECTION:ID", why a row was refused. `claim`: also over what others wrote."""
        refused: Refusals = {}
        history = _history_of(self._index, [each.id for each in changes if each.collection == "documents"])
        vectors = _vectors_of(self._index, [each.id for each in changes if each.collection == "facts"])
        with self._asking() as database:
            if not self._has_indexes:
                _make_indexes(database)
                self._has_indexes = True
            for place, name in _PLACES.items():
                if some := [each for each in changes if each.collection == name]:
                    work = self._work(database[place], some, history, vectors, refused, claim=claim)
                    _run(database[place], work, refused)
        return refused

    def known(self) -> Revs:
        """By collection of the index, id → rev of every row of ours; -1 for one that is there twice."""
        known: Revs = {"documents": {}, "facts": {}}
        with self._asking() as database:
            for place, name in _PLACES.items():
                documents = database[place].find({"notebook": self._notebook}, {"rev": 1})
                found = {each["_id"]: each.get("rev", -1) for each in documents}
                known[name] |= {**found, **dict.fromkeys(found.keys() & known[name].keys(), -1)}
        return known

    def publishes(self, row: Row) -> bool:
        """Whether a document belongs on this server: every one but private notes, unless the settings add them."""
        is_private = row["collection"] == "channels" or str(row["audience"] or "").startswith("channels")
        return bool(row["path"]) and (self._settings.private or not is_private)

    def take_over(self) -> None:
        """Fetch what the database keeps of notes and facts: versions, history, use, importance."""
        for place, name in _PLACES.items():
            with self._asking() as database:
                ours = [{"$match": {"notebook": self._notebook}}, {"$project": _KEPT[name]}]
                found = database[place].aggregate(ours, batchSize=_BATCH)
                while batch := list(islice(found, _BATCH)):
                    self._index.load([as_json({"in": at, "row": row}) for at, row in self._kept(name, batch)])

    def close(self) -> None:
        """Close the connection without waiting for a server that hangs."""
        if self._client is not None:
            import pymongo

            with pymongo.timeout(0.5):
                self._client.close()

    def _work(
        self,
        collection: Collection[Document],
        changes: Sequence[Change],
        history: Mapping[str, list[Document]],
        vectors: Mapping[str, Document],
        refused: Refusals,
        *,
        claim: bool,
    ) -> Work:
        """What brings one collection to what the changes say; what others wrote is refused.

        A document is ours where it has our notebook, and its version is the one that we published. What changes
        between look and write is another's work as well: a request names what was seen, and else meets the id.
        """
        from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne

        work: Work = []
        seen = {"notebook": 1, "published": 1, "metadata.version": 1}
        there = {each["_id"]: each for each in collection.find({"_id": {"$in": [each.id for each in changes]}}, seen)}
        for change in changes:
            found = there.get(change.id, {"notebook": self._notebook})
            metadata = found.get("metadata")
            version = metadata.get("version") if isinstance(metadata, dict) else None
            is_ours = (found.get("notebook"), found.get("published")) == (self._notebook, version)
            as_seen = {"_id": change.id, "notebook": found.get("notebook"), "metadata.version": version}
            if change.row is None or self._place_of(change.collection, change.row) != collection.name:
                if change.id in there and is_ours:
                    work.append((change.key, DeleteOne(as_seen), 100))
                continue
            if not (is_ours or claim):
                refused[change.key] = FOREIGN
                continue
            if change.collection == "facts":
                vector = vectors.get(change.id)
                fields, greatest = fact_of(change.row, vector, self._notebook, change.rev)
                first: Document = {} if vector else {"$setOnInsert": {"embedding": []}}
                request: Any = UpdateOne(as_seen, {"$set": fields, "$max": greatest, **first}, upsert=True)
                raw = _encoded({**fields, **greatest}, change.key, refused)
            else:
                document = document_of(change.row, history.get(change.id, []), self._notebook, change.rev)
                raw = _encoded(document, change.key, refused)
                request = ReplaceOne(as_seen, raw, upsert=True) if change.id in there else InsertOne(raw)
            if raw is not None:
                work.append((change.key, request, len(raw.raw)))
        return work

    def _place_of(self, collection: str, row: Row) -> str:
        """The collection there that a row belongs to, "" for none."""
        return FACTS if collection == "facts" else shape_of(row) if self.publishes(row) else ""

    def _kept(self, name: str, batch: Sequence[Document]) -> Iterator[tuple[str, Row]]:
        """What the index takes of documents, named by column: their kept columns, the greater of counts that both
        sides have, and the breadcrumbs of versions that we wrote."""
        collection, ids = self._index.collections[name], [each["_id"] for each in batch]
        own = {row["id"]: row for row in collection.ended(Is("id", "in", ids))} | collection.get(ids, heavy=False)
        for each in batch:
            id, history = each.pop("_id"), each.pop("history", None) or ()
            row = own.get(id, {})
            found = {column: value for column, value in each.items() if value is not None}
            for column in {"version", "access_count", "last_accessed"} & found.keys():
                if isinstance(found[column], type(row.get(column))):
                    found[column] = max(found[column], row[column])
            yield name, {**{column: row.get(column) for column in collection.table.kept}, **found, "id": id}
            for crumb in history:
                if isinstance(crumb, dict) and crumb.get("version") in range(1, found.get("version", 0) + 1):
                    about = {"note": id, "version": crumb["version"], "at": crumb.get("timestamp")}
                    texts = {column: str(crumb.get(column) or "") for column in ("summary", "changed_by")}
                    yield "history", {"id": f"{id}@{crumb['version']}", **about, **texts}

    # ---- the server

    @contextmanager
    def _asking(self) -> Iterator[Database[Document]]:
        """The database, each request with a deadline. Raises BackendDown with the driver's reason, without secrets."""
        import pymongo.errors

        waits = ("serverSelectionTimeoutMS", "connectTimeoutMS", "socketTimeoutMS", "waitQueueTimeoutMS")
        options: dict[str, Any] = dict.fromkeys(waits, int(self._settings.timeout_seconds * 1000))
        options |= {"tz_aware": True, "retryWrites": False, "retryReads": False}
        try:
            with self._lock:
                self._client = self._client or pymongo.MongoClient(self._settings.url, **options)
            yield self._client.get_database(self._settings.database)
        except (pymongo.errors.PyMongoError, ValueError) as error:  # ValueError: an address that is none
            raise BackendDown(self.name, without_secrets(str(error), self._settings.url)) from None


# ---- the shape of documents

# Columns that are fields of a document, and of its `metadata`; what of its own fields `metadata` repeats.
_AT_THE_TOP = (
    "title",
    "summary",
    "collection",
    "path",
    "aliases",
    "links",
    "audience",
    "provenance",
    "stale",
    "digest",
)
_IN_METADATA = (
    *("created_by", "created_at", "updated_at", "version", "tags", "word_count", "status"),
    *("access_count", "last_accessed"),
)
_REPEATED = ("language", "source_url", "confidence", "related_page", "related_pages", "domain", "priority")
_OF_FACTS = ("content", "section", "path", "decay_rate", "created_at", "updated_at", "audience", "provenance")
# What a document keeps for the index, by column.
_KEPT: Final[dict[str, Document]] = {
    "documents": {
        **dict.fromkeys(("path", "digest", "history"), 1),
        "version": "$published",
        **{name: f"$metadata.{name}" for name in ("created_at", "access_count", "last_accessed")},
    },
    "facts": {
        **dict.fromkeys(("metadata", "access_count", "last_accessed", "path", "decay_rate"), 1),
        **dict.fromkeys(("created_at", "updated_at"), 1),
        "base": "$metadata.base",
    },
}


def shape_of(row: Row) -> str:
    """The MongoDB collection of a document."""
    return row["collection"] if row["collection"] in SHAPES else OTHERS


def document_of(row: Row, history: Sequence[Document], notebook: str, rev: int) -> Document:
    """A row of `documents` in the original's shape, with what this product adds."""
    fields, content = dict(row["fields"] or {}), row["content"] or ""
    metadata = {name: row[name] for name in _IN_METADATA}
    metadata |= {name: fields[name] for name in _REPEATED if name in fields} | {"extra": row["extra"] or {}}
    metadata["tags"] = fields.pop("tags", None) or row["tags"]
    if shape_of(row) == "pages":  # whose text index takes it for the language of the prose
        fields.pop("language", None)
    return {
        **_safe(fields),
        "_id": row["id"],
        "content": content,
        **({"code": row["code"]} if row["code"] is not None else {}),
        "sections": [
            {"heading": heading, "content": content[start:end]}
            for heading, _, _, _, start, end in row["sections"] or ()
        ],
        **{name: row[name] for name in _AT_THE_TOP},
        "collection_type": row["collection"],
        "metadata": _safe(metadata),
        "history": list(history),
        "notebook": notebook,
        "rev": rev,
        "published": row["version"],
    }


def fact_of(row: Row, vector: Document | None, notebook: str, rev: int) -> tuple[Document, Document]:
    """A row of `facts`, and the vector of its text, as (fields to set, fields of which the greater value wins)."""
    model, embedding = (vector["model"], {"embedding": vector["embedding"]}) if vector else (None, {})
    metadata = _safe({**(row["metadata"] or {}), "base": row["base"], "pin": row["pin"], "embedding_model": model})
    weights = (row["importance"], row["pin"], row["base"])
    fields = {
        "note_id": row["id"],
        "importance": next((each for each in weights if each is not None), None),
        **embedding,
        "metadata": metadata,
        **{name: row[name] for name in _OF_FACTS},
        "notebook": notebook,
        "rev": rev,
        "published": metadata.get("version"),
    }
    greatest: Document = {"access_count": row["access_count"] or 0}
    if row["last_accessed"] is not None:
        greatest["last_accessed"] = row["last_accessed"]
    return fields, greatest


def _safe(value: Any, depth: int = 0) -> Any:
    """A value that BSON can hold: dates without a time as text, keys without a leading $ or NUL, nothing too deep for
    the server, which would refuse every document that is sent along."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {re.sub(r"^\$|\0", "_", str(name)): _safe(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(each, depth + 1) for each in value]
    if hasattr(value, "isoformat") and not isinstance(value, datetime):
        return value.isoformat()
    return value


def _history_of(index: Index, ids: Sequence[str]) -> dict[str, list[Document]]:
    rows = index.history.find(Is("note", "in", ids), order=("note", "version", "at")) if ids else ()
    names = {"version": "version", "at": "timestamp", "summary": "summary", "changed_by": "changed_by"}
    return {
        note: [{name: crumb[column] for column, name in names.items()} for crumb in crumbs][-HISTORY_LIMIT:]
        for note, crumbs in groupby(rows, itemgetter("note"))
    }


def _vectors_of(index: Index, facts: Sequence[str]) -> dict[str, Document]:
    """The vectors of facts as floats, each with its model; of a long fact, that of its first passage."""
    asked = Is("id", "in", [f"facts:{id}" for id in facts])
    found: dict[str, Document] = {}
    for key, model, size, codes in index.vectors.tuples(("id", "model", "size", "codes"), asked) if facts else ():
        if size:
            numbers = array("b", codes[:size])
            length = math.hypot(*numbers) or 1.0
            found[key.partition(":")[2]] = {"model": model, "embedding": [number / length for number in numbers]}
    return found


# ---- requests


def _encoded(document: Document, key: str, refused: Refusals) -> Any:
    """The document as BSON; None where there is no such BSON, or none that a server takes."""
    import bson.raw_bson

    try:
        raw = bson.encode(document)
    except (bson.errors.BSONError, OverflowError, ValueError, RecursionError) as error:
        refused[key] = (type(error).__name__, str(error))
        return None
    if len(raw) > _LARGEST:
        refused[key] = ("too large", f"{len(raw):,} bytes, {_LARGEST:,} at most")
        return None
    return bson.raw_bson.RawBSONDocument(raw)


def _run(collection: Collection[Document], work: Work, refused: Refusals) -> None:
    """Send requests in bulks of about a mebibyte. What the server says of one document refuses it; the rest raises."""
    from pymongo.errors import BulkWriteError

    bulk_of = (size // _BULK for size in accumulate(size for *_, size in work))
    for _, numbered in groupby(zip(bulk_of, work, strict=True), itemgetter(0)):
        bulk = [each for _, each in numbered]
        try:
            collection.bulk_write([request for _, request, _ in bulk], ordered=False)
        except BulkWriteError as error:
            errors = error.details["writeErrors"]
            if error.details["writeConcernErrors"] or {each["code"] for each in errors} - _ROW_CODES - {_DUPLICATE}:
                raise
            for each in errors:
                reason = (str(each["code"]), str(each["errmsg"]))
                refused[bulk[each["index"]][0]] = FOREIGN if each["code"] == _DUPLICATE else reason


_OWN_TEXT_INDEX: Final[dict[str, Any]] = {"name": "words", "language_override": "prose_language"}
_USUAL = ("metadata.created_by", "metadata.tags", "-metadata.updated_at")
_INDEXES: Final[dict[str, tuple[str, ...]]] = {
    "pages": (*_USUAL, "title content"),
    "code_snippets": (*_USUAL, "metadata.language", "title content code"),
    "research_notes": (*_USUAL, "metadata.source_url", "title content code"),
    OTHERS: (*_USUAL, "title content code"),
    FACTS: ("section", "-importance", "-last_accessed", "-updated_at"),
}


def _make_indexes(database: Database[Document]) -> None:
    """The original's indexes, exactly as its programs make them at every start, since these fail where another has the
    same name. An index of others that serves the same stays. There is one text index a collection; ours leaves
    `language` to the code, but for pages. `note_id` has none: whether theirs is unique is their affair."""
    import pymongo.errors

    for place, names in _INDEXES.items():
        for name in names:
            is_text, order = " " in name, pymongo.DESCENDING if name.startswith("-") else pymongo.ASCENDING
            keys = [(field.lstrip("-"), pymongo.TEXT if is_text else order) for field in name.split()]
            ours = _OWN_TEXT_INDEX if is_text and place != "pages" else {}
            try:
                database[place].create_index(keys, **ours)
            except pymongo.errors.OperationFailure as error:
                if error.code not in _CONFLICTS:
                    raise
