"""The embedded store's tables, and what brings a file of an earlier version up to them. Constants only."""

from __future__ import annotations

from notebook_sync.mirror.memories import DEFAULT_PRIORITY, KINDS, UNSCORED

# `room` of a note whose words are in no index yet. Else it is what `permissions.room_of` says: the words of open notes
# are in `open_words`, those of each other room in an index of its own, `words_N`, made with its first note.
UNINDEXED = "-"
INDEX = """USING fts5 (
    title, summary, content, code, content = '', tokenize = 'porter unicode61 remove_diacritics 2')"""
_TAGS = "(tag TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (tag, n)) WITHOUT ROWID"
_TAG_NEW = "INSERT OR IGNORE INTO note_tag SELECT value, new.n FROM json_each(new.tags);"
_UNTAG_OLD = "DELETE FROM note_tag WHERE n = old.n AND tag IN (SELECT value FROM json_each(old.tags));"
# `standing` is the score of `memory_use`, or what counts until there is one, kept here for the order of what is sought.
_MEMORY = f"""(
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, domain TEXT NOT NULL,
    folded_domain TEXT NOT NULL, agent TEXT NOT NULL, priority INTEGER NOT NULL, needs_review INTEGER NOT NULL,
    relations TEXT NOT NULL,
    standing REAL NOT NULL DEFAULT {UNSCORED}, missing TEXT NOT NULL DEFAULT '')"""
_MARKS = "(mark TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (mark, n)) WITHOUT ROWID"
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
    event INTEGER NOT NULL DEFAULT 0, room TEXT NOT NULL DEFAULT '{UNINDEXED}',
    serial INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)));
CREATE INDEX IF NOT EXISTS note_pending ON note (id) WHERE pending <> '' OR deleted;
CREATE INDEX IF NOT EXISTS note_contended ON note (wants) WHERE wants <> id;
DROP INDEX IF EXISTS note_updated;
CREATE INDEX IF NOT EXISTS note_newest ON note (updated_at DESC, id);
CREATE INDEX IF NOT EXISTS note_changed_in_room
    ON note (room, updated_at DESC, id, collection, status, created_by, tags, deleted);
DROP INDEX IF EXISTS note_made;
CREATE INDEX IF NOT EXISTS note_made_in_room ON note (room, created_at DESC, updated_at DESC, id)
    WHERE collection = 'channels' AND NOT deleted;
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
CREATE TABLE IF NOT EXISTS memory_note {_MEMORY};
CREATE INDEX IF NOT EXISTS memory_order ON memory_note (standing DESC, id, folded_domain, kind);
CREATE INDEX IF NOT EXISTS memory_domain ON memory_note (folded_domain, standing DESC, id, kind);
CREATE INDEX IF NOT EXISTS memory_review ON memory_note (id) WHERE needs_review = 1;
CREATE TABLE IF NOT EXISTS memory_mark {_MARKS};
CREATE INDEX IF NOT EXISTS memory_mark_of ON memory_mark (n);
CREATE TABLE IF NOT EXISTS memory_link (target TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (target, n))
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS memory_link_of ON memory_link (n);
CREATE TRIGGER IF NOT EXISTS memory_gone AFTER DELETE ON memory_note BEGIN
    DELETE FROM memory_mark WHERE n = old.n; DELETE FROM memory_link WHERE n = old.n; END;
CREATE TABLE IF NOT EXISTS memory_use (id TEXT PRIMARY KEY, accesses INTEGER NOT NULL DEFAULT 0,
    last_accessed INTEGER, score REAL, gone_at INTEGER) WITHOUT ROWID;
DROP TABLE IF EXISTS words;
DROP TABLE IF EXISTS guarded_words;
CREATE VIRTUAL TABLE IF NOT EXISTS open_words {INDEX};
CREATE TABLE IF NOT EXISTS room (n INTEGER PRIMARY KEY, room TEXT NOT NULL UNIQUE);
"""

# What the path tells, until the file is read anew.
_KIND = "CASE WHEN instr(substr(path, 10), '/') THEN substr(path, 10, instr(substr(path, 10), '/') - 1) ELSE '' END"
# By the table that a file of an earlier version lacks: one that it has, and what makes and fills the table.
LATER = (
    ("open_words", "note", (f"ALTER TABLE note ADD COLUMN room TEXT NOT NULL DEFAULT '{UNINDEXED}'",)),
    (
        "note_tag",
        "note",
        (
            f"CREATE TABLE note_tag {_TAGS}",
            "INSERT OR IGNORE INTO note_tag SELECT value, note.n FROM note, json_each(note.tags)",
        ),
    ),
    (
        "memory_note",
        "note",
        (
            f"CREATE TABLE memory_note {_MEMORY}",
            f"""INSERT INTO memory_note
            SELECT n, id, iif({_KIND} IN {KINDS}, {_KIND}, ''), '', '', '', {DEFAULT_PRIORITY}, 0, '[]', {UNSCORED}, ''
            FROM note WHERE collection = 'memories' AND path IS NOT NULL AND NOT deleted""",
            f"CREATE TABLE memory_mark {_MARKS}",
            """INSERT OR IGNORE INTO memory_mark
            SELECT 't:' || lower(tag), n FROM note_tag JOIN memory_note USING (n)
            UNION ALL SELECT 'p:' || provenance, n FROM memory_note JOIN note USING (n) WHERE provenance <> ''""",
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
    ("note", "event", "INTEGER NOT NULL DEFAULT 0", "serial"),
    ("memory_note", "missing", "TEXT NOT NULL DEFAULT ''", ""),
)
