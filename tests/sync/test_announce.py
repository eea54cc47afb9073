"""Two processes tell hot memory of the same note at once: whoever is last, it ends with what the mirror has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from notebook_sync.files.note import Ref, Stamp
from notebook_sync.files.parse import parse
from notebook_sync.mirror.base import Breadcrumb, Mirror, Put, Remove
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.refs.base import Refs
from notebook_sync.refs.redis import RedisRefs
from notebook_sync.refs.sqlite import SqliteRefs
from notebook_sync.sync.announce import adopt, announce

Stores = tuple[Mirror, Refs]
NOW = datetime(2026, 2, 18, tzinfo=UTC)


@pytest.fixture(params=["embedded", "servers"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    mirror: Mirror
    refs: Refs
    if request.param == "embedded":
        mirror, refs = SqliteMirror(tmp_path / "mirror.db"), SqliteRefs(tmp_path / "mirror.db", UTC)
    else:
        ask = request.getfixturevalue
        mirror = MongoMirror(ask("mongodb_url"), ask("mongo_database"))
        refs = RedisRefs(ask("redis_url"), ask("redis_prefix"), timezone=UTC, timeout_seconds=5.0)
    yield mirror, refs
    mirror.close()
    refs.close()


class Overtaken:
    """Hot memory, as a process sees it that is overtaken by another between reading a row and telling it."""

    def __init__(self, refs: Refs, overtake: Callable[[], object]) -> None:
        self._refs = refs
        self._overtake = [overtake]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._refs, name)

    def write(self, refs: Sequence[Ref], *, announce: bool = True) -> None:
        if self._overtake:
            self._overtake.pop()()
        self._refs.write(refs, announce=announce)


def put(text: str, base: str | None = None, path: str = "pages/a.md") -> Put:
    note = parse(path, f"---\nid: a\n---\n{text}".encode())
    return Put("a", note, Stamp(1, 1, 1, 1), base, "updated" if base else "created", Breadcrumb(NOW, "Changed"))


FIRST, SECOND = put("first"), put("second")


def edited(mirror: Mirror) -> None:
    assert mirror.apply([put("second", FIRST.note.digest)]) == []


def moved_to_another_collection(mirror: Mirror) -> None:
    assert mirror.apply([put("second", FIRST.note.digest, "facts/a.md")]) == []


def deleted(mirror: Mirror) -> None:
    assert mirror.apply([Remove("a", FIRST.note.digest)]) == []


def deleted_and_made_again(mirror: Mirror) -> None:
    deleted(mirror)
    announce(mirror, cast("Refs", _Nowhere()))
    assert mirror.apply([SECOND]) == []


class _Nowhere:
    def write(self, refs: Sequence[Ref], *, announce: bool = True) -> None:
        """The tombstone's ref is told to nobody: only that the tombstone goes is wanted."""


@pytest.mark.parametrize("change", [edited, moved_to_another_collection, deleted, deleted_and_made_again])
def test_the_last_to_write_a_ref_looks_at_its_row_afterwards(stores: Stores, change: Callable[[Mirror], None]) -> None:
    mirror, refs = stores
    mirror.apply([FIRST])

    def overtake() -> None:
        change(mirror)
        announce(mirror, refs)

    announce(mirror, cast("Refs", Overtaken(refs, overtake)))
    assert mirror.pending() == []
    assert list(refs.digests()) == [(row.id, row.digest, row.version) for row in mirror.known()]


def test_who_adopts_hot_memory_keeps_what_another_writes_meanwhile(stores: Stores) -> None:
    mirror, refs = stores
    adopt(mirror, cast("Refs", _AdoptedLate(refs, lambda: (mirror.apply([FIRST]), announce(mirror, refs)))))
    assert refs.owner() == mirror.store_id()
    assert [note_id for note_id, _, _ in refs.digests()] == ["a"]


class _AdoptedLate(Overtaken):
    def adopt(self, store_id: str, keep: Any) -> None:
        self._overtake.pop()()
        self._refs.adopt(store_id, keep)


def test_who_adopts_hot_memory_removes_what_is_of_another_mirror(stores: Stores) -> None:
    mirror, refs = stores
    mirror.apply([FIRST])
    announce(mirror, refs)
    mirror.apply([Remove("a", FIRST.note.digest)])
    mirror.refs_written(mirror.pending())
    adopt(mirror, refs, anew=True)
    assert list(refs.digests()) == []
