"""The embedded store's tables, and what brings a file of an earlier version up to them. Constants only."""

from __future__ import annotations

# Collections of which not every session may read all. Their words stand in an index of their own, so that no score
# depends on a note that the session may not read.
GUARDED = ("runtime", "channels")
# Title, summary, content, code: a word in a title tells most about what a note is for.
WEIGHTS = (8.0, 2.0, 1.0, 1.0)

_IS_GUARDED = f"collection IN {GUARDED}"
_INDEX = """USING fts5 (
    title, summary, content, code, content = '', tokenize = 'porter unicode61 remove_diacritics 2')"""
_TAGS = "(tag TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (tag, n)) WITHOUT ROWID"
_TAG_NEW = "INSERT OR IGNORE INTO note_tag SELECT value, new.n FROM json_each(new.tags);"
_UNTAG_OLD = "DELETE FROM note_tag WHERE n = old.n AND tag IN (SELECT value FROM json_each(old.tags));"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS note (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, wants TEXT NOT NULL, has_own_id INTEGER NOT NULL,
    path TEXT UNIQUE, was_at TEXT, collection TEXT NOT NULL, title TEXT NOT NULL, summary TEXT NOT NULL,
    tags TEXT NOT NULL, status TEXT NOT NULL, created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL, created_from TEXT NOT NULL, updated_at INTEGER NOT NULL,
    word_count INTEGER NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, revision INTEGER NOT NULL, version INTEGER NOT NULL,
    problems INTEGER NOT NULL, broken INTEGER NOT NULL, stale TEXT NOT NULL DEFAULT '',
    provenance TEXT NOT NULL DEFAULT '', beside TEXT NOT NULL DEFAULT '{{}}',
    pending TEXT NOT NULL DEFAULT '', deleted INTEGER NOT NULL DEFAULT 0,
    serial INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)));
CREATE INDEX IF NOT EXISTS note_pending ON note (id) WHERE pending <> '' OR deleted;
CREATE INDEX IF NOT EXISTS note_contended ON note (wants) WHERE wants <> id;
DROP INDEX IF EXISTS note_updated;
CREATE INDEX IF NOT EXISTS note_newest ON note (updated_at DESC, id);
CREATE INDEX IF NOT EXISTS note_collection ON note (collection, updated_at, deleted);
CREATE INDEX IF NOT EXISTS note_created_by ON note (created_by, updated_at, deleted);
CREATE INDEX IF NOT EXISTS note_status ON note (status, updated_at, deleted);
CREATE TABLE IF NOT EXISTS note_tag {_TAGS};
CREATE TRIGGER IF NOT EXISTS note_tags_new AFTER INSERT ON note BEGIN {_TAG_NEW} END;
CREATE TRIGGER IF NOT EXISTS note_tags_other AFTER UPDATE OF tags ON note WHEN new.tags <> old.tags
    BEGIN {_UNTAG_OLD} {_TAG_NEW} END;
CREATE TRIGGER IF NOT EXISTS note_tags_gone AFTER DELETE ON note BEGIN {_UNTAG_OLD} END;
CREATE TABLE IF NOT EXISTS body (n INTEGER PRIMARY KEY, content TEXT NOT NULL, code TEXT NOT NULL,
    rest TEXT NOT NULL, history TEXT NOT NULL);
DELETE FROM body WHERE n NOT IN (SELECT n FROM note);
CREATE VIRTUAL TABLE IF NOT EXISTS words {_INDEX};
CREATE VIRTUAL TABLE IF NOT EXISTS guarded_words {_INDEX};
"""

_TEXTS = f"n, title, summary, content, code FROM note JOIN body USING (n) WHERE {_IS_GUARDED} AND NOT deleted"
# By the table that a file of an earlier version lacks: one that it has, and what makes and fills the table.
LATER = (
    (
        "note_tag",
        "note",
        (
            f"CREATE TABLE note_tag {_TAGS}",
            "INSERT OR IGNORE INTO note_tag SELECT value, note.n FROM note, json_each(note.tags)",
        ),
    ),
    (
        "guarded_words",
        "note",
        (
            f"CREATE VIRTUAL TABLE guarded_words {_INDEX}",
            f"INSERT INTO guarded_words (rowid, title, summary, content, code) SELECT {_TEXTS}",
            f"INSERT INTO words (words, rowid, title, summary, content, code) SELECT 'delete', {_TEXTS}",
        ),
    ),
)


def _in_rest(name: str, *types: str) -> str:
    place = f"'$.{name}'"
    return f"CASE WHEN json_type(rest, {place}) IN {types} THEN nullif(rest ->> {place}, '') END"


# What `beside_light` makes of a document, made of what its row was before there was a column for it.
_LINE, _NUMBER = ("text", "integer", "real"), ("integer", "real")
_BESIDE = f"""coalesce((SELECT json_patch('{{}}', CASE collection
    WHEN 'channels' THEN json_object(
        'topic', CAST({_in_rest("metadata.extra.topic", *_LINE)} AS TEXT),
        'session_id', CAST({_in_rest("metadata.extra.session_id", *_LINE)} AS TEXT),
        'confidence', min(1.0, max(0.0, {_in_rest("metadata.extra.confidence", *_NUMBER)})))
    WHEN 'code_snippets' THEN json_object('language', {_in_rest("fields.language", *_LINE)})
    WHEN 'research_notes' THEN json_object('source_url', {_in_rest("fields.source_url", *_LINE)})
    END) FROM body WHERE body.n = note.n), '{{}}')"""
# Columns that a file of an earlier version may lack, and what its rows get there.
ADDED = (
    ("note", "provenance", "TEXT NOT NULL DEFAULT ''", ""),
    ("note", "beside", "TEXT NOT NULL DEFAULT '{}'", _BESIDE),
)
