"""What only the index knows, as JSON lines: for damage, upgrades, export and import.

A line is `{"in": COLLECTION, "row": {…}}`: the kept columns of documents and facts, those that wait for an ended row
(with `ended_at`) included; whole rows of the other dumped collections. Times are ISO 8601.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from notebook_sync.store.cells import CODECS
from notebook_sync.store.collections import COLLECTIONS
from notebook_sync.store.tables import Table

_TABLES = {spec.name: Table(spec) for spec in COLLECTIONS if spec.dumped}


def dump_lines(db: sqlite3.Connection) -> Iterator[bytes]:
    """The lines of an index; of an older version's, what its tables have."""
    for name, table in _TABLES.items():
        heavy = f"{name}_heavy"
        asked = "SELECT name FROM pragma_table_info(?) UNION SELECT name FROM pragma_table_info(?)"
        there = [column for (column,) in db.execute(asked, (name, heavy))]
        wanted = ["id", "ended_at", *table.known_by, *table.kept] if table.kept else [*table.light, *table.heavy]
        fields = {each: CODECS[table.columns[each].type][1] for each in wanted if each in there}
        columns = ", ".join(map(table.sql, fields))
        alive = "coalesce(ended_at, 1) > 0" if table.kept else "ended_at IS NULL"
        rows = f"SELECT {columns} FROM {name} LEFT JOIN {heavy} USING (n) WHERE {alive} ORDER BY n"
        for cells in db.execute(rows) if fields else ():
            read = zip(fields.items(), cells, strict=True)
            row = {each: decode(cell) if decode else cell for (each, decode), cell in read if cell is not None}
            yield msgspec.json.encode({"in": name, "row": row}) + b"\n"


def write_lines(lines: Iterable[bytes], path: Path) -> None:
    """Write a file for its owner only, and exchange it for the earlier one."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
