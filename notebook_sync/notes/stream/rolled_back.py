"""What is told of checkpoints and of going back to one, as values, and what differs between two. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from notebook_sync.refs.base import Entry

# How the name of a checkpoint begins that was made so that a rollback can be taken back.
BEFORE = "before rollback to "


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint, as the session is told of it: how many notes, entries of the stream and long-term memories are
    in it that it may read. `commit` has the files; "" where there is no git."""

    id: str
    name: str
    at: datetime
    notes: int
    entries: int
    longterm: int
    commit: str
    warnings: tuple[str, ...] = ()

    @property
    def is_before_rollback(self) -> bool:
        """Whether a rollback made it, which going back to it takes back."""
        return self.name.startswith(BEFORE)


@dataclass(frozen=True, slots=True)
class NoteChange:
    """What became of a note since a checkpoint. `change` is created, updated (moved too) or deleted."""

    id: str
    path: str
    collection: str
    change: str


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback to the checkpoint `id` did; rolling back to `before` takes it back. `restored` are the paths of
    the notes that were written or taken away, in the commit `commit`, "" for none."""

    id: str
    before: str
    entries: int
    longterm: int
    changed: tuple[NoteChange, ...]
    restored: tuple[str, ...] = ()
    commit: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a rollback does to the stream, or to long-term memory: the entries that come back, those that go, and how
    many stay. One that says something else than then does both."""

    back: tuple[Entry, ...]
    gone: tuple[Entry, ...]
    stay: int


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a rollback does to a file: it is created, updated or deleted."""

    path: str
    change: str


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a rollback to `checkpoint` would do now. `changed` is what became of notes since then, `files` what would be
    done to them. `latest` is the id of the latest checkpoint, which a rollback makes another. `digest` is another one
    as soon as anything else would be done."""

    checkpoint: Checkpoint
    latest: str
    stream: Exchange
    longterm: Exchange
    digest: str
    changed: tuple[NoteChange, ...]
    files: tuple[FileChange, ...] = ()
    warnings: tuple[str, ...] = ()


def checkpoint_of(light: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint that a row of a list tells of."""
    return Checkpoint(
        id=light["id"],
        name=light["name"],
        at=datetime.fromisoformat(light["at"]),
        notes=light["notes"],
        entries=light["entries"],
        longterm=light["longterm"],
        commit=light["commit"],
    )


def changes_between(then: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> tuple[NoteChange, ...]:
    """What became of the notes of one checkpoint until another, by path."""
    before, after = {one["id"]: one for one in then}, {one["id"]: one for one in now}
    changes = [_change(one, "created") for note_id, one in after.items() if note_id not in before]
    changes += [_change(one, "deleted") for note_id, one in before.items() if note_id not in after]
    changes += [
        _change(after[note_id], "updated")
        for note_id, one in before.items()
        if note_id in after and _text_of(one) != _text_of(after[note_id])
    ]
    return tuple(sorted(changes, key=lambda change: (change.path, change.change)))


def exchange_of(then: Sequence[Entry], now: Sequence[Entry]) -> Exchange:
    """What becomes of the entries that are there now, where those of then are to be."""
    before, after = {one["id"]: one for one in now}, {one["id"]: one for one in then}
    back = tuple(one for entry_id, one in after.items() if before.get(entry_id) != one)
    gone = tuple(one for entry_id, one in before.items() if after.get(entry_id) != one)
    return Exchange(back, gone, len(before) - len(gone))


def foreseen_digest(stream: Exchange, longterm: Exchange, files: Iterable[tuple[str, str, str]]) -> str:
    """A digest of all that would be done: what goes and comes back, and of each file its path and the digests of what
    it says and is to say."""
    told = [stream.gone, stream.back, longterm.gone, longterm.back, sorted(files)]
    return sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def _text_of(listed: Mapping[str, Any]) -> tuple[str, str]:
    return listed["path"], listed["digest"]


def _change(listed: Mapping[str, Any], change: str) -> NoteChange:
    return NoteChange(listed["id"], listed["path"], listed["collection"], change)
