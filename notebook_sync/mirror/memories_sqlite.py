"""What is known of memories in the embedded file: rows that are written with those of their notes, and their usage."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from notebook_sync.embedded import NAME, Embedded, from_ms, to_ms
from notebook_sync.mirror.memories import Link, Memory, Sought
from notebook_sync.mirror.memory_search import best
from notebook_sync.mirror.sqlite_rows import from_json
from notebook_sync.mirror.sqlite_schema import ADDED, LATER, SCHEMA
from notebook_sync.mirror.sqlite_sought import SqliteStandings

_NOTE = """memory.id, path, title, summary, memory.kind, memory.domain, tags, memory.agent, memory.priority,
    memory.needs_review, provenance, status, created_at, created_from, updated_at, version, digest, memory.relations,
    coalesce(accesses, 0), last_accessed, score, missing"""
_FROM = "FROM memory_note AS memory JOIN note USING (n) LEFT JOIN memory_use ON memory_use.id = memory.id"
# A path is lacking while another note takes it over.
_ALIVE = "NOT deleted AND path IS NOT NULL"
_PAGE = 500
# Written at a time: nobody else waits for longer.
_BULK = 5_000
_KEPT = timedelta(days=365)


class SqliteMemories:
    """`MemoryRows` over the file of an embedded mirror."""

    name = NAME

    def __init__(self, path: Path) -> None:
        self._db = Embedded(path, SCHEMA, ADDED, LATER)

    def of(self, ids: Collection[str]) -> dict[str, Memory]:
        found = self._db.rows_in(f"SELECT {_NOTE} {_FROM} WHERE memory.id IN ({{marks}}) AND {_ALIVE}", list(ids))
        return {row[0]: _memory(row) for row in found}

    def sought(self, sought: Sought, limit: int) -> list[Memory]:
        numbers = best(SqliteStandings(self._db), sought, limit)
        asked = f"SELECT memory.n, {_NOTE} {_FROM} WHERE memory.n IN (SELECT value FROM json_each(?)) AND {_ALIVE}"
        found = {n: row for n, *row in self._db.rows(asked, (json.dumps(numbers),))}
        return [_memory(found[n]) for n in numbers if n in found]

    def all(self) -> Iterator[Memory]:
        return self._streamed(_FROM, _ALIVE)

    def for_review(self) -> Iterator[Memory]:
        by_index = _FROM.replace("AS memory", "AS memory INDEXED BY memory_review", 1)
        return self._streamed(by_index, f"memory.needs_review = 1 AND {_ALIVE}")

    def linking_to(self, ids: Collection[str]) -> dict[str, list[tuple[str, Link]]]:
        asked = f"""SELECT target, memory.id, relations FROM memory_link JOIN memory_note AS memory USING (n)
            JOIN note USING (n) WHERE target IN ({{marks}}) AND {_ALIVE} ORDER BY memory.id"""
        found: dict[str, list[tuple[str, Link]]] = {}
        for target, note_id, relations in self._db.rows_in(asked, list(dict.fromkeys(ids))):
            found.setdefault(target, []).extend((note_id, link) for link in _links(relations) if link.to == target)
        return found

    def used(self, ids: Collection[str], at: datetime) -> None:
        with self._db.writing() as connection:
            connection.executemany(
                """INSERT INTO memory_use (id, accesses, last_accessed)
                SELECT id, 1, ?1 FROM memory_note WHERE id = ?2
                ON CONFLICT (id) DO UPDATE SET accesses = accesses + 1,
                last_accessed = max(coalesce(last_accessed, ?1), ?1)""",
                [(to_ms(at), _known(note_id)) for note_id in dict.fromkeys(ids)],
            )

    def put_scores(self, scores: Mapping[str, float], at: datetime) -> None:
        told = [(_known(note_id), float(score)) for note_id, score in scores.items()]
        for start in range(0, len(told), _BULK):
            with self._db.writing() as connection:
                connection.executemany(
                    """INSERT INTO memory_use (id, score)
                    SELECT id, ?2 FROM memory_note WHERE id = ?1
                    ON CONFLICT (id) DO UPDATE SET score = excluded.score""",
                    told[start : start + _BULK],
                )
                connection.executemany(
                    "UPDATE memory_note SET standing = ?2 WHERE id = ?1 AND standing <> ?2",
                    told[start : start + _BULK],
                )
        with self._db.writing() as connection:
            alive = "id IN (SELECT id FROM memory_note)"
            connection.execute(f"UPDATE memory_use SET gone_at = NULL WHERE gone_at IS NOT NULL AND {alive}")
            connection.execute(
                f"UPDATE memory_use SET gone_at = ? WHERE gone_at IS NULL AND NOT ({alive})", (to_ms(at),)
            )
            connection.execute("DELETE FROM memory_use WHERE gone_at <= ?", (to_ms(at - _KEPT),))

    def restore_usage(self, usage: Sequence[tuple[str, int, datetime | None]]) -> None:
        told = [(_known(note_id), max(accesses, 0), to_ms(used) if used else None) for note_id, accesses, used in usage]
        for start in range(0, len(told), _BULK):
            with self._db.writing() as connection:
                connection.executemany(
                    """INSERT INTO memory_use (id, accesses, last_accessed) VALUES (?, ?, ?)
                    ON CONFLICT (id) DO UPDATE SET accesses = excluded.accesses, last_accessed = excluded.last_accessed
                    WHERE accesses = 0 AND last_accessed IS NULL""",
                    told[start : start + _BULK],
                )

    def close(self) -> None:
        self._db.close()

    def _streamed(self, among: str, condition: str) -> Iterator[Memory]:
        last = ""
        asked = f"SELECT {_NOTE} {among} WHERE {condition} AND memory.id > ? ORDER BY memory.id LIMIT {_PAGE}"
        while page := self._db.rows(asked, (last,)):
            yield from map(_memory, page)
            last = page[-1][0]


def _known(note_id: str) -> str:
    """An id as it can be asked for: none that a row has holds half a character."""
    return note_id.encode(errors="replace").decode()


def _memory(row: Any) -> Memory:
    note_id, path, title, summary, kind, domain, tags, agent, priority, needs_review, provenance, status, *more = row
    created_at, created_from, updated_at, version, digest, relations, accesses, used, score, missing = more
    return Memory(
        note_id,
        path,
        title,
        summary,
        kind,
        domain,
        tuple(from_json(tags)),
        agent,
        priority,
        bool(needs_review),
        provenance or None,
        status,
        from_ms(created_at),
        created_from,
        from_ms(updated_at),
        version,
        digest,
        tuple(_links(relations)),
        accesses,
        None if used is None else from_ms(used),
        score,
        tuple(missing.split()),
    )


def _links(relations: str) -> list[Link]:
    return [Link(**link) for link in from_json(relations)] if relations != "[]" else []
