"""An analyzer that anybody can follow, and rows as a sync would put them."""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from notebook_sync.store.index import Index
from notebook_sync.store.rows import Row

T0 = datetime(2026, 3, 1, 9, 0, 0, 123000, tzinfo=UTC)


class Splitter:
    """Terms are what is between spaces, in lower case."""

    def __init__(self, version: int = 1) -> None:
        self.version = version

    def terms(self, text: str) -> list[str]:
        return text.lower().split()


def open_index(folder: Path, *, version: int = 1, read_only: bool = False) -> Index:
    return Index(folder / "index.db", Splitter(version), read_only=read_only)


def document(name: str = "plan", content: str = "first text", **fields: Any) -> Row:
    """A page; `day` moves its time."""
    day = fields.pop("day", 0)
    return {
        "id": f"pages/{name}",
        "path": f"pages/{name}.md",
        "collection": "pages",
        "audience": "",
        "title": name,
        "updated_at": T0 + timedelta(days=day),
        "created_at": T0,
        "digest": hashlib.sha256(content.encode(errors="replace")).hexdigest(),
        "stamp": [len(content), 1, 2, 3],
        "content": content,
        **fields,
    }


def private(name: str, content: str, agent: str = "scribe") -> Row:
    """A note in a channel."""
    path = f"channels/{agent}/global/{name}"
    return document(
        name, content, id=path, path=f"{path}.md", collection="channels", audience=f"channels/{agent}/global"
    )


def fact(name: str = "f1", content: str = "the sea is wide", **fields: Any) -> Row:
    return {"id": name, "content": content, "path": "facts/notes.md", "audience": "", "base": 0.5, **fields}


def entry(name: str, content: str, **fields: Any) -> Row:
    return {"id": name, "day": "2026-03-01", "at": T0, "content": content, "source": "test", "tags": ["log"], **fields}
