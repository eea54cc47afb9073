"""Every collection of the index, declared. What a row holds is decided here and nowhere else."""

from __future__ import annotations

from notebook_sync.store.rows import CollectionSpec, Column

DOCUMENTS = CollectionSpec(
    "documents",
    (
        Column("path", indexed=True),
        Column("folder"),
        Column("copy_of"),  # the path of the note that it is a conflict copy of, "" for none
        Column("wanted_id"),
        Column("collection"),
        Column("kind"),  # of a memory: decision, problem, pattern, insight; else ""
        Column("audience"),
        Column("title", indexed=True),
        Column("summary"),
        Column("status"),
        Column("topic"),
        Column("session_id"),
        Column("domain"),
        Column("needs_review", "int", default=0),
        Column("created_by"),
        Column("language"),
        Column("provenance"),
        Column("superseded_by"),
        Column("valid_until", "time"),
        Column("word_count", "int"),
        Column("updated_at", "time", indexed=True, observed=True),  # the file's mtime
        Column("digest"),
        Column("stamp", "json", observed=True),
        Column("parser", "int"),
        Column("stale", observed=True),  # why the row is not what the file says now, "" where it is
        Column("words_digest"),  # of title, summary and content: what a vector depends on
        Column("fields", "json"),  # what the collection adds to a note
        Column("problems", "json"),  # [[line, message, severe]]
        # kept
        Column("version", "int", kept=True, default=1),
        Column("created_at", "time", kept=True),
        Column("access_count", "int", kept=True, default=0),
        Column("last_accessed", "time", kept=True),
        Column("score", "real", kept=True),
        # heavy
        Column("terms", heavy=True),  # of title, summary and passages: see search.terms
        Column("content", heavy=True),
        Column("code", heavy=True),
        Column("sections", "json", heavy=True),  # model.Section as lists
        Column("extra", "json", heavy=True),
    ),
    many=("tags", "links", "aliases", "relations", "linked", "names"),
    text=(("title", 8.0), ("summary", 2.0), ("content", 1.0), ("code", 1.0)),
    unique="path",
    versioned_by="digest",
    feed=True,
    dumped=True,
    # What a query reads in order, or needs nothing else of (`ended_at` is part of each query); and of a few rows.
    indexes=(
        "(collection, updated_at, ended_at) WHERE ended_at IS NULL",
        "(word_count, audience, ended_at) WHERE ended_at IS NULL",
        "(folder, collection, status, ended_at) WHERE ended_at IS NULL",
        "(audience) WHERE audience > ''",
        "(provenance) WHERE provenance > ''",
        "(copy_of) WHERE copy_of > ''",
    ),
)

# Breadcrumbs of documents: at most model.HISTORY_LIMIT a note. `id` is "NOTE@VERSION".
HISTORY = CollectionSpec(
    "history",
    (
        Column("note", indexed=True),
        Column("version", "int"),
        Column("at", "time"),
        Column("summary"),
        Column("changed_by"),
    ),
    dumped=True,
)

# Published as the MongoDB collection `notes`; the id is `note_id`.
FACTS = CollectionSpec(
    "facts",
    (
        Column("content"),
        Column("section"),
        Column("path", indexed=True),
        Column("audience"),
        Column("provenance"),
        Column("pin", "real"),
        Column("terms", heavy=True),
        Column("base", "real", kept=True, default=0.5),
        Column("decay_rate", "real", kept=True, default=0.01),
        Column("importance", "real", kept=True),  # with use and age, as of the last upkeep: for programs that read it
        Column("access_count", "int", kept=True, default=0),
        Column("created_at", "time", kept=True),
        Column("updated_at", "time", kept=True),
        Column("last_accessed", "time", kept=True),
        Column("source_history", "json", kept=True),
        Column("metadata", "json", kept=True),
        Column("not_same", "json", kept=True),
    ),
    text=(("content", 1.0),),
    feed=True,
    dumped=True,
)

# Where each fact is stated. `id` is "PATH:LINE"; apply replaces its own file's rows.
FACT_PLACES = CollectionSpec(
    "fact_places",
    (
        Column("path", indexed=True),
        Column("fact", indexed=True),
        Column("section"),
        Column("line", "int"),
        Column("pin", "real"),
        Column("audience"),
    ),
)

_ENTRY = (
    Column("day", indexed=True),
    Column("at", "time", indexed=True),
    Column("content"),
    Column("source"),
    Column("score", "real"),
    Column("agent"),
    Column("action"),
    Column("note", indexed=True),  # the id of the note that it names, or ""
    Column("path"),
    Column("provenance"),
    Column("ref", "json"),  # title, summary, collection, status, updated_at, version of that note
)

STREAM = CollectionSpec("stream", _ENTRY, many=("tags",), text=(("content", 1.0),), feed=True, dumped=True)
LONGTERM = CollectionSpec("longterm", _ENTRY, many=("tags",), text=(("content", 1.0),), feed=True, dumped=True)
CHECKPOINTS = CollectionSpec(
    "checkpoints",
    (
        Column("name"),
        Column("at", "time", indexed=True),
        Column("created_by"),
        Column("commit"),
        Column("body", "json", heavy=True),
    ),
    feed=True,
    dumped=True,
)

CACHE = CollectionSpec(
    "cache",
    (
        Column("kind", indexed=True),
        Column("value", "json", heavy=True),
        Column("made_at", "time"),
        Column("expires_at", "time"),
        Column("hits", "int", default=0),
        Column("last_hit", "time"),
    ),
)
COUNTERS = CollectionSpec("counters", (Column("value", "int", default=0),))
# What the product did, for people: the newest 50,000. `key` is unique, so that an event happens once.
EVENTS = CollectionSpec(
    "events",
    (
        Column("key"),
        Column("at", "time", indexed=True),
        Column("kind", indexed=True),
        Column("session"),
        Column("agent"),
        Column("path"),
        Column("fields", "json"),
    ),
    unique="key",
    dumped=True,
    first_wins=True,
)
# A tool's write, recorded before the files are exchanged; open until it is committed.
INTENTS = CollectionSpec(
    "intents",
    (
        Column("path", indexed=True),
        Column("batch", indexed=True),  # one for all files of one call
        Column("base"),
        Column("digest"),  # "" for a delete
        Column("moved_from"),
        Column("session"),
        Column("agent"),
        Column("action"),
        Column("section"),
        Column("reason"),
        Column("at", "time"),
        Column("applied", "int", default=0),  # the index has it
        Column("committed", "int", default=0),
        Column("announced", "int", default=0),
        Column("new", "bytes", heavy=True),
        Column("old", "bytes", heavy=True),
    ),
    dumped=True,
)
# Files that are not notes, so that links to them can be checked. `id` is the path.
ATTACHMENTS = CollectionSpec("attachments", (Column("size", "int"), Column("mtime_ns", "int")))
# Vectors of passages. `id` is "COLLECTION:ID", or "2:COLLECTION:ID" for the second stage of search; `places` are the
# passages' spans.
VECTORS = CollectionSpec(
    "vectors",
    (
        Column("model", indexed=True),
        Column("digest"),  # the words_digest that they were made of
        Column("audience"),
        Column("places", "json", heavy=True),
        Column("size", "int"),  # numbers of a vector
        Column("codes", "blob", heavy=True),  # the vectors of the passages, which follow one another
    ),
)
# Single rows that a target refuses. `id` is "TARGET:COLLECTION:ID".
REFUSED = CollectionSpec(
    "refused",
    (Column("target", indexed=True), Column("row"), Column("row_rev", "int"), Column("code"), Column("reason")),
)
# What is known of each server: its cursor as it was last written, trouble, doubt. `id` is "mongodb" or "redis".
TARGETS = CollectionSpec("targets", (Column("state", "json"),))

COLLECTIONS = (
    DOCUMENTS,
    HISTORY,
    FACTS,
    FACT_PLACES,
    STREAM,
    LONGTERM,
    CHECKPOINTS,
    CACHE,
    COUNTERS,
    EVENTS,
    INTENTS,
    ATTACHMENTS,
    VECTORS,
    REFUSED,
    TARGETS,
)
