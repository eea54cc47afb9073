"""Syntheses in the embedded file, beside the mirror's tables. Triggers count the changes of notes, exactly."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from notebook_sync.embedded import NAME, Embedded, from_ms, to_ms
from notebook_sync.mirror.sqlite_schema import ADDED, LATER
from notebook_sync.mirror.sqlite_schema import SCHEMA as MIRROR_SCHEMA
from notebook_sync.mirror.syntheses import TIMINGS_KEPT, Rested, Synthesis, Timing, What

_COUNT = "BEGIN UPDATE note_changes SET n = n + 1; END"
# A store that was made anew begins with another number: what was counted before tells nothing of it.
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS synthesis (
    key TEXT PRIMARY KEY, asked TEXT NOT NULL, state TEXT NOT NULL, synthesis_id TEXT NOT NULL,
    synthesis_md TEXT NOT NULL, source TEXT NOT NULL, context_hash TEXT NOT NULL, made_at INTEGER NOT NULL,
    rests_on TEXT NOT NULL, memories_used TEXT NOT NULL, links TEXT NOT NULL, hits INTEGER NOT NULL,
    used_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS synthesis_asked ON synthesis (asked, used_at);
CREATE TABLE IF NOT EXISTS synthesis_day (day TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS synthesis_lease (
    one INTEGER PRIMARY KEY CHECK (one = 1), holder TEXT NOT NULL, until INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS timing (
    n INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, outcome TEXT NOT NULL, milliseconds REAL NOT NULL);
CREATE INDEX IF NOT EXISTS timing_of ON timing (what, n);
CREATE TABLE IF NOT EXISTS note_changes (n INTEGER NOT NULL);
INSERT INTO note_changes SELECT abs(random() / 2) WHERE (SELECT count(*) FROM note_changes) = 0;
CREATE TRIGGER IF NOT EXISTS note_changes_new AFTER INSERT ON note {_COUNT};
CREATE TRIGGER IF NOT EXISTS note_changes_other AFTER UPDATE OF digest, path, deleted ON note
    WHEN new.digest <> old.digest OR new.path IS NOT old.path OR new.deleted <> old.deleted {_COUNT};
CREATE TRIGGER IF NOT EXISTS note_changes_gone AFTER DELETE ON note {_COUNT};
"""
_ROW = """key, asked, state, synthesis_id, synthesis_md, source, context_hash, made_at, rests_on, memories_used, links,
    hits"""
_SPEND = """INSERT INTO synthesis_day SELECT ?1, 1 WHERE ?2 > 0
    ON CONFLICT (day) DO UPDATE SET n = n + 1 WHERE n < ?2"""
_LEASE = """INSERT INTO synthesis_lease VALUES (1, ?1, ?2)
    ON CONFLICT (one) DO UPDATE SET holder = ?1, until = ?2 WHERE holder = ?1 OR until <= ?3"""
_TOO_MANY = "SELECT key FROM synthesis ORDER BY used_at DESC, key LIMIT -1 OFFSET ?"
_TOO_OLD = "SELECT n FROM timing WHERE what = ?1 ORDER BY n DESC LIMIT 1 OFFSET ?2"
_RESTS_ON = """EXISTS (SELECT 1 FROM json_each(rests_on) AS one
    WHERE one.value ->> 0 IN (SELECT value FROM json_each(?)))"""


class SqliteSyntheses:
    """`Syntheses` over one SQLite file, shared by any number of threads and processes."""

    name = NAME

    def __init__(self, path: Path) -> None:
        self._db = Embedded(path, MIRROR_SCHEMA + _SCHEMA, ADDED, LATER)

    def get(self, key: str) -> Synthesis | None:
        return _first(self._db.rows(f"SELECT {_ROW} FROM synthesis WHERE key = ?", (key,)))

    def asked_for(self, asked: str) -> Synthesis | None:
        last = f"SELECT {_ROW} FROM synthesis WHERE asked = ? ORDER BY used_at DESC, key LIMIT 1"
        return _first(self._db.rows(last, (asked,)))

    def latest(self, limit: int) -> list[Synthesis]:
        last = f"SELECT {_ROW} FROM synthesis ORDER BY used_at DESC, key LIMIT ?"
        return [_synthesis(row) for row in self._db.rows(last, (max(limit, 0),))]

    def put(self, synthesis: Synthesis, *, entries: int, since: datetime) -> None:
        made = to_ms(synthesis.made_at)
        rests_on = [(one.id, one.path, one.digest) for one in synthesis.rests_on]
        told = [_json(each) for each in (rests_on, [dict(one) for one in synthesis.memories_used], synthesis.links)]
        texts = (synthesis.synthesis_id, synthesis.synthesis_md, synthesis.source, synthesis.context_hash)
        row = (synthesis.key, synthesis.asked, synthesis.state, *map(_whole, texts), made, *told, synthesis.hits, made)
        with self._db.writing() as connection:
            connection.execute(f"INSERT OR REPLACE INTO synthesis VALUES ({', '.join('?' * len(row))})", row)
            connection.execute("DELETE FROM synthesis WHERE made_at < ?", (to_ms(since),))
            connection.execute(f"DELETE FROM synthesis WHERE key IN ({_TOO_MANY})", (max(entries, 0),))

    def used(self, key: str, asked: str, state: str, at: datetime) -> None:
        with self._db.writing() as connection:
            connection.execute(
                "UPDATE synthesis SET hits = hits + 1, asked = ?, state = ?, used_at = max(used_at, ?) WHERE key = ?",
                (asked, state, to_ms(at), key),
            )

    def forget(self, memory_ids: Collection[str]) -> int:
        with self._db.writing() as connection:
            wanted = json.dumps([_whole(each) for each in memory_ids])
            return connection.execute(f"DELETE FROM synthesis WHERE {_RESTS_ON}", (wanted,)).rowcount

    def state(self) -> str:
        return str(self._db.rows("SELECT n FROM note_changes")[0][0])

    def spend(self, day: str, limit: int) -> bool:
        with self._db.writing() as connection:
            connection.execute("DELETE FROM synthesis_day WHERE day < ?", (day,))
            return connection.execute(_SPEND, (day, limit)).rowcount > 0

    def spent(self, day: str) -> int:
        found = self._db.rows("SELECT n FROM synthesis_day WHERE day = ?", (day,))
        return int(found[0][0]) if found else 0

    def lease(self, holder: str, seconds: float) -> bool:
        with self._db.writing() as connection:
            now = to_ms(datetime.now(UTC))
            return connection.execute(_LEASE, (_whole(holder), now + round(seconds * 1000), now)).rowcount > 0

    def release(self, holder: str) -> None:
        with self._db.writing() as connection:
            connection.execute("DELETE FROM synthesis_lease WHERE holder = ?", (_whole(holder),))

    def timed(self, what: What, timing: Timing) -> None:
        with self._db.writing() as connection:
            values = (what, timing.outcome, timing.milliseconds)
            connection.execute("INSERT INTO timing (what, outcome, milliseconds) VALUES (?, ?, ?)", values)
            connection.execute(f"DELETE FROM timing WHERE what = ?1 AND n <= ({_TOO_OLD})", (what, TIMINGS_KEPT))

    def timings(self, what: What) -> Sequence[Timing]:
        found = self._db.rows("SELECT outcome, milliseconds FROM timing WHERE what = ? ORDER BY n", (what,))
        return [Timing(*row) for row in found]

    def close(self) -> None:
        self._db.close()


def _first(rows: Sequence[Any]) -> Synthesis | None:
    return _synthesis(rows[0]) if rows else None


def _synthesis(row: Any) -> Synthesis:
    *texts, made, rests_on, memories_used, links, hits = row
    told = {
        "made_at": from_ms(made),
        "rests_on": tuple(Rested(*each) for each in json.loads(rests_on)),
        "memories_used": tuple(json.loads(memories_used)),
        "links": json.loads(links),
        "hits": hits,
    }
    return Synthesis(*texts, **told)


def _json(value: Any) -> str:
    return _whole(json.dumps(value, ensure_ascii=False))


def _whole(text: str) -> str:
    """As UTF-8 can hold it: what a reasoner says may have half a character in it."""
    return text.encode(errors="replace").decode()
