"""MongoDB as a mirror: documents and facts in the collections and fields that programs of the original design read.

Documents of other programs, and our own that others changed, are never overwritten or deleted. pymongo is imported when
the first request is made.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import BackendDown
from notebook_sync.model import HISTORY_LIMIT
from notebook_sync.settings import MirrorTable
from notebook_sync.store.index import Index
from notebook_sync.store.owner import Mark, name_of, without_secrets
from notebook_sync.store.publish import FOREIGN, Key, Refusals
from notebook_sync.store.rows import Change, Is, Row

if TYPE_CHECKING:
    from pymongo.database import Database

META, OWNER, FACTS, OTHERS = "meta", "owner", "notes", "documents"
SHAPES = ("pages", "code_snippets", "research_notes", OTHERS)
_IN_METADATA = ("language", "source_url", "confidence", "related_page", "related_pages", "domain", "priority")
# Codes with which the server refuses one document, not every one.
_ROW_CODES = frozenset({2, 15, 22, 52, 55, 57, 121, 171, 10334, 17262, 17280, 17419, 17420})
_DUPLICATE, _CONFLICTS = 11000, frozenset({85, 86})
_LARGEST_BULK, _LARGEST, _DEEPEST, _BATCH = 1 << 20, 16 << 20, 100, 500
# What pymongo appends to the first cause: all that it knows of every server.
_APPENDIX = re.compile(r"( \(configured timeouts:|, Timeout: |, full error: ).*", re.DOTALL)

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
        # Collections whose text index takes `language` for the language of the prose; None before they are known.
        self._speaking: set[str] | None = None

    def read_mark(self) -> Mark | None:
        """The owner's mark. Raises BackendDown, as every method that asks the server does."""
        with self._asking() as database:
            found = database[META].find_one({"_id": OWNER})
        if found is None:  # an emptied database has lost its indexes
            self._speaking = None
        return Mark.read(found) if found else None

    def write_mark(self, mark: Mark) -> None:
        """Record owner and cursor."""
        with self._asking() as database:
            database[META].replace_one({"_id": OWNER}, {"_id": OWNER, **mark.as_json()}, upsert=True)

    def prepare(self) -> None:
        """Make the collections' indexes, once. An index of others that serves the same stays."""
        if self._speaking is None:
            with self._asking() as database:
                self._speaking = _make_indexes(database)

    def write(self, changes: Sequence[Change], mark: Mark, *, claim: bool = False) -> Refusals:
        """Write a batch; by "COLLECTION:ID", why a row was refused. `claim`: also over what others wrote."""
        refused: Refusals = {}
        documents = [each for each in changes if each.collection == "documents"]
        facts = [each for each in changes if each.collection == "facts"]
        with self._asking() as database:
            work = self._work_on_documents(database, documents, refused, claim=claim) if documents else {}
            if facts:
                work[FACTS] = self._work_on_facts(database, facts, refused, claim=claim)
            for name, requests in work.items():
                _run(database, name, requests, refused)
        return refused

    def known(self) -> dict[Key, int]:
        """(collection of the index, id) → rev of every row of ours; -1 for one that is there twice."""
        found: dict[Key, int] = {}
        with self._asking() as database:
            for name in (*SHAPES, FACTS):
                collection = "facts" if name == FACTS else "documents"
                for each in database[name].find({"notebook": self._notebook}, {"rev": 1}):
                    key = (collection, each["_id"])
                    found[key] = -1 if key in found else each.get("rev", -1)
        return found

    def publishes(self, collection: str, row: Row) -> bool:
        """Whether a row belongs on this server."""
        return collection == "facts" or (bool(row["path"]) and (self._settings.private or not _is_private(row)))

    def take_over(self) -> None:
        """Fetch what the database keeps of notes and facts: versions, history, use, importance."""
        with self._asking() as database:
            for shape in SHAPES:
                found = database[shape].find({"notebook": self._notebook}, _KEPT).batch_size(_BATCH)
                while batch := list(islice(found, _BATCH)):
                    self._take_documents(batch)
            found = database[FACTS].find({"notebook": self._notebook}, {"embedding": 0}).batch_size(_BATCH)
            while batch := list(islice(found, _BATCH)):
                self._take_facts(batch)

    def close(self) -> None:
        """Close the connection without waiting for a server that hangs."""
        if self._client is not None:
            import pymongo

            with pymongo.timeout(0.5):
                self._client.close()

    # ---- writing

    def _work_on_documents(
        self, database: Database[Document], changes: Sequence[Change], refused: Refusals, *, claim: bool
    ) -> dict[str, Work]:
        """What brings the documents to what the changes say, by collection; what others wrote is refused."""
        from pymongo import DeleteOne, InsertOne, ReplaceOne

        work: defaultdict[str, Work] = defaultdict(list)
        ids = [each.id for each in changes]
        history = _history_of(self._index, ids)
        for shape in SHAPES:
            there = {each["_id"]: each for each in database[shape].find({"_id": {"$in": ids}}, _SEEN)}
            for change in changes:
                key, row, found = f"documents:{change.id}", change.row, there.get(change.id)
                is_wanted = row is not None and self.publishes("documents", row) and shape_of(row) == shape
                version = _version_of(found)
                is_ours = found is None or (found.get("notebook"), found.get("published")) == (self._notebook, version)
                # What changes between look and write is another's work as well: the request then meets its id.
                as_seen = {"_id": change.id, "metadata.version": version}
                if is_wanted and row is not None and (is_ours or claim):
                    document = document_of(row, history.get(change.id, []), self._notebook, change.rev)
                    if shape in (self._speaking or ()):
                        document.pop("language", None)
                    if (raw := _encoded(document, key, refused)) is not None:
                        request = InsertOne(raw) if found is None else ReplaceOne(as_seen, raw, upsert=True)
                        work[shape].append((key, request, len(raw.raw)))
                elif is_wanted:
                    refused[key] = FOREIGN
                elif found is not None and is_ours:
                    work[shape].append((key, DeleteOne({**as_seen, "notebook": self._notebook}), 100))
        return work

    def _work_on_facts(
        self, database: Database[Document], changes: Sequence[Change], refused: Refusals, *, claim: bool
    ) -> Work:
        """The same for facts, whose counters programs may raise."""
        from pymongo import DeleteOne, UpdateOne

        work: Work = []
        ids = [each.id for each in changes]
        there = {each["_id"]: each.get("notebook") for each in database[FACTS].find({"_id": {"$in": ids}}, _SEEN)}
        for change in changes:
            key, row, owner = f"facts:{change.id}", change.row, there.get(change.id, self._notebook)
            if row is None:
                work.append((key, DeleteOne({"_id": change.id, "notebook": self._notebook}), 100))
            elif owner != self._notebook and not claim:
                refused[key] = FOREIGN
            else:
                fields, greatest = fact_of(row, self._notebook, change.rev)
                if (raw := _encoded({**fields, **greatest}, key, refused)) is not None:
                    update = {"$set": fields, "$max": greatest}
                    work.append(
                        (key, UpdateOne({"_id": change.id, "notebook": owner}, update, upsert=True), len(raw.raw))
                    )
        return work

    # ---- taking over

    def _take_documents(self, batch: Sequence[Document]) -> None:
        """Versions and use, greater ones first; of documents that others changed, as they were when we wrote them."""
        documents, history = self._index.documents, self._index.history
        ids = [each["_id"] for each in batch]
        rows = {row["id"]: row for row in self._index.gone(ids)} | documents.get(ids, heavy=False)
        with self._index.write():
            for each in batch:
                row, metadata = rows.get(each["_id"], {}), each.get("metadata") or {}
                version = each.get("published") or 1
                kept = {
                    "version": max(version, row.get("version") or 1),
                    "created_at": min(_moments(metadata.get("created_at"), row.get("created_at")), default=None),
                    "access_count": max(metadata.get("access_count") or 0, row.get("access_count") or 0),
                    "last_accessed": max(
                        _moments(metadata.get("last_accessed"), row.get("last_accessed")), default=None
                    ),
                    "score": row.get("score"),
                }
                documents.load({"id": each["_id"], "path": each.get("path"), "digest": each.get("digest"), **kept})
                crumbs = [crumb for crumb in each.get("history") or () if _is_crumb(crumb, version)]
                history.put([_crumb_of(each["_id"], crumb) for crumb in crumbs])

    def _take_facts(self, batch: Sequence[Document]) -> None:
        facts = self._index.facts
        ids = [each["_id"] for each in batch]
        rows = {row["id"]: row for row in self._index.gone(ids, collection="facts")} | facts.get(ids, heavy=False)
        with self._index.write():
            for each in batch:
                row, metadata = rows.get(each["_id"], {}), each.get("metadata") or {}
                if row and (row["access_count"] or 0) > (each.get("access_count") or 0):
                    continue
                kept = {name: row.get(name) for name in facts.table.kept}
                kept |= {"base": metadata.pop("base", None), "metadata": metadata, "path": each.get("path")}
                kept |= {name: each[name] for name in ("access_count", "decay_rate") if name in each}
                kept |= {name: each[name] for name in _FACT_TIMES if isinstance(each.get(name), datetime)}
                facts.load({"id": each["_id"], **kept})

    # ---- the server

    @contextmanager
    def _asking(self) -> Iterator[Database[Document]]:
        """The database, each request with a deadline. Raises BackendDown with the driver's reason, without secrets."""
        from pymongo.errors import PyMongoError

        try:
            yield self._connected().get_database(self._settings.database)
        except (PyMongoError, ValueError) as error:  # ValueError: an address that is none
            reason = _APPENDIX.sub("", without_secrets(str(error), self._settings.url))
            raise BackendDown(self.name, reason) from None

    def _connected(self) -> Any:
        from pymongo import MongoClient

        with self._lock:
            if self._client is None:
                waits = ("serverSelectionTimeoutMS", "connectTimeoutMS", "socketTimeoutMS", "waitQueueTimeoutMS")
                timeouts: dict[str, Any] = dict.fromkeys(waits, int(self._settings.timeout_seconds * 1000))
                self._client = MongoClient(
                    self._settings.url, tz_aware=True, retryWrites=False, retryReads=False, **timeouts
                )
            return self._client


_SEEN = {"notebook": 1, "published": 1, "metadata.version": 1}
_KEPT = {"path": 1, "digest": 1, "published": 1, "metadata": 1, "history": 1}
_FACT_TIMES = ("created_at", "updated_at", "last_accessed")


def shape_of(row: Row) -> str:
    """The MongoDB collection of a document."""
    return row["collection"] if row["collection"] in SHAPES else OTHERS


def document_of(row: Row, history: Sequence[Document], notebook: str, rev: int) -> Document:
    """A row of `documents` in the original's shape, with what this product adds."""
    fields, content = dict(row["fields"] or {}), row["content"] or ""
    metadata = {
        "created_by": row["created_by"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "version": row["version"],
        "tags": fields.pop("tags", None) or row["tags"],
        "word_count": row["word_count"],
        "status": row["status"],
        "access_count": row["access_count"],
        "last_accessed": row["last_accessed"],
        **{name: fields[name] for name in _IN_METADATA if name in fields},
        "extra": row["extra"] or {},
    }
    return {
        **_safe(fields),
        "_id": row["id"],
        "title": row["title"],
        "content": content,
        "summary": row["summary"],
        "sections": [
            {"heading": heading, "content": content[start:end]}
            for heading, _, _, _, start, end in row["sections"] or ()
        ],
        **({"code": row["code"]} if row["code"] is not None else {}),
        "metadata": _safe(metadata),
        "history": list(history),
        "collection_type": row["collection"],
        **{name: row[name] for name in _AS_THEY_ARE},
        "notebook": notebook,
        "rev": rev,
        "published": row["version"],
    }


def fact_of(row: Row, notebook: str, rev: int) -> tuple[Document, Document]:
    """A row of `facts` as (fields to set, fields of which the greater value wins)."""
    metadata = {**(row["metadata"] or {}), "base": row["base"], "pin": row["pin"]}
    fields = {
        "note_id": row["id"],
        "importance": row["base"] if row["pin"] is None else row["pin"],
        "metadata": _safe(metadata),
        **{name: row[name] for name in _OF_FACTS},
        "notebook": notebook,
        "rev": rev,
    }
    greatest: Document = {"access_count": row["access_count"] or 0}
    if row["last_accessed"] is not None:
        greatest["last_accessed"] = row["last_accessed"]
    return fields, greatest


_AS_THEY_ARE = ("collection", "path", "aliases", "links", "audience", "provenance", "stale", "digest")
_OF_FACTS = ("content", "section", "path", "decay_rate", "created_at", "updated_at", "audience", "provenance")


def _is_private(row: Row) -> bool:
    return row["collection"] == "channels" or (row["audience"] or "").startswith("channels")


def _version_of(found: Document | None) -> Any:
    metadata = (found or {}).get("metadata")
    return metadata.get("version") if isinstance(metadata, dict) else None


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
    found: defaultdict[str, list[Document]] = defaultdict(list)
    for crumb in index.history.find(Is("note", "in", ids), order=("version", "at")):
        entry = {"version": crumb["version"], "timestamp": crumb["at"]}
        found[crumb["note"]].append({**entry, "summary": crumb["summary"], "changed_by": crumb["changed_by"]})
    return {note: crumbs[-HISTORY_LIMIT:] for note, crumbs in found.items()}


def _is_crumb(crumb: Any, version: int) -> bool:
    if not isinstance(crumb, dict) or not isinstance(crumb.get("timestamp"), datetime):
        return False
    return isinstance(crumb.get("version"), int) and crumb["version"] <= version


def _crumb_of(note: str, crumb: Document) -> Row:
    texts = {name: str(crumb.get(name) or "") for name in ("summary", "changed_by")}
    version = crumb["version"]
    return {"id": f"{note}@{version}", "note": note, "version": version, "at": crumb["timestamp"], **texts}


def _moments(*values: Any) -> list[datetime]:
    return [value for value in values if isinstance(value, datetime)]


def _encoded(document: Document, key: str, refused: Refusals) -> Any:
    """The document as BSON; None where there is no such BSON, or none that a server takes."""
    import bson
    from bson.raw_bson import RawBSONDocument

    try:
        raw = bson.encode(document)
    except (bson.errors.BSONError, OverflowError, ValueError, RecursionError) as error:
        refused[key] = (type(error).__name__, str(error))
        return None
    if len(raw) > _LARGEST:
        refused[key] = ("too large", f"{len(raw):,} bytes, {_LARGEST:,} at most")
        return None
    return RawBSONDocument(raw)


def _run(database: Database[Document], name: str, work: Work, refused: Refusals) -> None:
    """Send requests in bulks of about a mebibyte. What the server says of one document refuses it; the rest raises."""
    from pymongo.errors import BulkWriteError

    while work:
        size, count = work[0][2], 1
        while count < len(work) and size + work[count][2] <= _LARGEST_BULK:
            size, count = size + work[count][2], count + 1
        bulk, work = work[:count], work[count:]
        try:
            database[name].bulk_write([request for _, request, _ in bulk], ordered=False)
        except BulkWriteError as error:
            if error.details["writeConcernErrors"]:
                raise
            for each in error.details["writeErrors"]:
                if each["code"] not in _ROW_CODES and each["code"] != _DUPLICATE:
                    raise
                reason = (str(each["code"]), str(each["errmsg"]))
                refused[bulk[each["index"]][0]] = FOREIGN if each["code"] == _DUPLICATE else reason


def _make_indexes(database: Database[Document]) -> set[str]:
    """The original's indexes, exactly as its programs make them at every start, since these fail where another has the
    same name. There is one text index a collection; where none is, ours leaves `language` to the code. Returns the
    collections whose text index reads `language`. `note_id` has none: whether theirs is unique is their affair."""
    from pymongo import ASCENDING, DESCENDING, TEXT, IndexModel
    from pymongo.errors import OperationFailure

    usual = [
        [("metadata.created_by", ASCENDING)],
        [("metadata.tags", ASCENDING)],
        [("metadata.updated_at", DESCENDING)],
    ]
    plain = {name: list(usual) for name in SHAPES}
    plain["code_snippets"].append([("metadata.language", ASCENDING)])
    plain["research_notes"].append([("metadata.source_url", ASCENDING)])
    plain[FACTS] = [
        [("section", ASCENDING)],
        *([(name, DESCENDING)] for name in ("importance", "last_accessed", "updated_at")),
    ]
    speaking: set[str] = set()
    for name, wanted in plain.items():
        existing = database[name].index_information().values()
        keys = [list(each["key"]) for each in existing]
        words = [each for each in existing if "textIndexVersion" in each]
        indexes = [IndexModel(each) for each in wanted if each not in keys]
        if name == "pages" and not words:
            indexes.append(IndexModel([("title", TEXT), ("content", TEXT)]))
        elif name != FACTS and not words:
            fields = [(field, TEXT) for field in ("title", "content", "code")]
            indexes.append(IndexModel(fields, name="words", language_override="prose_language"))
        for index in indexes:
            try:
                database[name].create_indexes([index])
            except OperationFailure as error:
                if error.code not in _CONFLICTS:
                    raise
        if any(each.get("language_override") == "language" for each in words) or (name == "pages" and not words):
            speaking.add(name)
    return speaking
