"""How the memories of the embedded file stand, as what seeks among them asks for it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from notebook_sync.embedded import Embedded
from notebook_sync.mirror.memory_search import Standing, Where

_ANY = "(SELECT value FROM json_each(?))"
_ORDER = "ORDER BY standing DESC, id LIMIT ?"


class SqliteStandings:
    """`Standings` over the file; a memory is known by the number of its row."""

    def __init__(self, db: Embedded) -> None:
        self._db = db

    def marked(self, marks: Sequence[str]) -> list[list[int]]:
        """In one text for each, which is read several times as fast as rows are."""
        asked = f"SELECT json_group_array(n) FROM memory_mark WHERE mark IN {_ANY} GROUP BY mark"
        return [json.loads(numbers) for (numbers,) in self._db.rows(asked, (_list_of(marks),))] if marks else []

    def domains(self, among: Sequence[str]) -> list[str]:
        there = "EXISTS (SELECT 1 FROM memory_note INDEXED BY memory_domain WHERE folded_domain = value)"
        found = self._db.rows(f"SELECT value FROM json_each(?) WHERE {there}", (_list_of(among),)) if among else []
        return [domain for (domain,) in found]

    def first(self, among: Collection[int], where: Where, limit: int) -> list[Standing[int]]:
        is_so, values = _condition(where)
        asked = f"SELECT -standing, id, n FROM memory_note NOT INDEXED WHERE n IN {_ANY} AND {is_so} {_ORDER}"
        return self._db.rows(asked, (json.dumps(list(among)), *values, limit))

    def down(self, where: Where, start: int, limit: int) -> list[Standing[int]]:
        is_so, values = _condition(where)
        index = "memory_domain" if where.of_domains else "memory_order"
        asked = f"SELECT -standing, id, n FROM memory_note INDEXED BY {index} WHERE {is_so} {_ORDER} OFFSET ?"
        return self._db.rows(asked, (*values, limit, start))


def _list_of(texts: Sequence[str]) -> str:
    """Those that a row can have: SQLite reads a text in JSON no further than to its first NUL."""
    return json.dumps([text for text in texts if "\0" not in text])


def _condition(where: Where) -> tuple[str, list[Any]]:
    if where.of_domains and len(where.domains) == 1:
        conditions, values = ["folded_domain = ?"], [where.domains[0]]
    else:
        conditions = [f"folded_domain {'' if where.of_domains else 'NOT '}IN {_ANY}"]
        values = [json.dumps(where.domains)]
    if where.kinds:
        conditions.append(f"kind {'' if where.of_kinds else 'NOT '}IN {_ANY}")
        values.append(json.dumps(where.kinds))
    return " AND ".join(conditions), values
