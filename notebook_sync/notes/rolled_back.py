"""What is told of checkpoints and of going back to one, as values, and what became of notes between two. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


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

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "id": self.id,
            "name": self.name,
            "at": self.at.isoformat(),
            "notes": self.notes,
            "entries": self.entries,
            "longterm": self.longterm,
            "commit": self.commit,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class NoteChange:
    """What became of a note since a checkpoint. `change` is created, updated (moved too) or deleted."""

    id: str
    path: str
    collection: str
    change: str

    def as_dict(self) -> dict[str, str]:
        """The shape that `--json` prints."""
        return {"id": self.id, "path": self.path, "collection": self.collection, "change": self.change}


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

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "id": self.id,
            "before": self.before,
            "entries": self.entries,
            "longterm": self.longterm,
            "changed": [change.as_dict() for change in self.changed],
            "restored": list(self.restored),
            "commit": self.commit,
            "warnings": list(self.warnings),
        }


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


def _text_of(listed: Mapping[str, Any]) -> tuple[str, str]:
    return listed["path"], listed["digest"]


def _change(listed: Mapping[str, Any], change: str) -> NoteChange:
    return NoteChange(listed["id"], listed["path"], listed["collection"], change)
