"""Going back in time: what hot memory held and what the notes said at a checkpoint, and bringing that back.

A checkpoint in hot memory names no private note. Before anything is brought back, now is kept in the same way, so that
a rollback is taken back by another.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from notebook_sync.errors import BackendDown, Conflict, GitFailed, NoSuchCheckpoint, Refused, UsageError
from notebook_sync.events import Events
from notebook_sync.mirror.base import Mirror
from notebook_sync.notes.editing.door import Door, Entered, Text, digest_of
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.stream.kept_notes import KeptNotes
from notebook_sync.notes.stream.rolled_back import (
    BEFORE,
    Checkpoint,
    FileChange,
    Foreseen,
    RolledBack,
    changes_between,
    checkpoint_of,
    exchange_of,
    foreseen_digest,
)
from notebook_sync.notes.stream.stream import Stream
from notebook_sync.refs.base import Entry, Refs, Swap
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

CHECKPOINT, ROLLBACK = "checkpoint", "rollback"
DAYS = 7
_LONGEST_NAME = 200
_SHORTEST_START = 4
_MOST_NAMED = 5
_ONE_DAY = timedelta(days=1)
_MILLISECOND = timedelta(milliseconds=1)

_Kept = dict[str, Any]
# `list` names a method here, so the types need names of their own.
_Checkpoints = list[Checkpoint]
_Days = dict[str, list[Entry]]


class Checkpoints:
    """The checkpoints of one notebook. Every method raises NotPermitted, and BackendDown where a store is away."""

    def __init__(
        self,
        notes: KeptNotes,
        settings: Settings,
        guard: Guard,
        events: Events,
        stream: Stream,
        door: Door,
        mirror: Callable[[], Mirror],
        refs: Callable[[], Refs],
    ) -> None:
        self._notes = notes
        self._settings = settings
        self._guard = guard
        self._events = events
        self._stream = stream
        self._door = door
        self._mirror = mirror
        self._refs = refs

    def take(self, session: Session, name: str = "") -> Checkpoint:
        """Keep what is now; where there is git, the files too, as they are, committed or not. Raises UsageError."""
        self._guard.require_in_stream(session, "add", CHECKPOINT)
        kept, trouble = self._keep(_checked_name(name), session)
        self._events.record(CHECKPOINT, session, checkpoint=kept["id"])
        return replace(self._told(kept, session), warnings=(trouble,) if trouble else ())

    def list(self, session: Session) -> _Checkpoints:
        """The checkpoints, the latest first."""
        self._guard.require_in_stream(session, "read", CHECKPOINT)
        refs = self._refs()
        light = refs.checkpoints()
        if not self._withholds_from(session):
            return [checkpoint_of(one) for one in light]
        return [self._told(kept, session) for one in light if (kept := refs.checkpoint(one["id"])) is not None]

    def lost(self, session: Session) -> str:
        """Why older checkpoints are lost; "" if none are."""
        self._guard.require_in_stream(session, "read", CHECKPOINT)
        emptied = self._stream.lost_at(self._refs())
        if emptied is None:
            return ""
        moment = emptied.astimezone(self._settings.timezone).strftime("%Y-%m-%d %H:%M")
        return f"checkpoints of before {moment} are gone: hot memory was emptied"

    def rollback(
        self, checkpoint_id: str, session: Session, *, files: bool = False, foreseen: str | None = None
    ) -> RolledBack:
        """Bring back the stream and long-term memory of a checkpoint, and with `files` what the notes said, all of
        them or none. Its id may be cut after four characters where no other begins so. `foreseen` is the digest of
        what is to be done, and of nothing else.

        Raises NoSuchCheckpoint; UsageError where it has no files; Refused where something else would be done than
        was foreseen; Conflict where a note was changed meanwhile, and as `Door.enter`: nothing was brought back then.
        """
        self._guard.require_in_stream(session, "write", ROLLBACK)
        target = self._find(checkpoint_id, session)
        texts, left = self._texts(target, files=files)
        if foreseen is not None and foreseen != self._foreseen(target, session, texts, left).digest:
            raise Refused("Nothing was brought back: something changed meanwhile. Look again at what it would do now.")
        name = _name_of(target)
        before, trouble = self._keep(f"{BEFORE}{name}"[:_LONGEST_NAME], session, target)
        warnings: tuple[str, ...] = (trouble,) if trouble else ()
        entered = Entered()
        if files:
            if not before["commit"]:
                raise GitFailed(f"nothing was brought back, for what is now could not be kept. {trouble}")
            entered = self._enter(texts, session)
            warnings += (*left, *entered.warnings)
        self._restore(target, before, files=files)
        self._events.record(ROLLBACK, session, checkpoint=target["id"], before=before["id"])
        return RolledBack(
            id=target["id"],
            before=before["id"],
            entries=sum(map(len, target["days"].values())),
            longterm=len(target["longterm"]),
            changed=changes_between(target["notebook"], before["notebook"]),
            restored=tuple(sorted(text.path for text in texts)),
            commit=entered.commit or "",
            warnings=warnings,
        )

    def foresee(self, checkpoint_id: str, session: Session, *, files: bool = False) -> Foreseen:
        """What `rollback` would do now; nothing is changed. Raises as that, but no Conflict."""
        self._guard.require_in_stream(session, "write", ROLLBACK)
        target = self._find(checkpoint_id, session)
        return self._foreseen(target, session, *self._texts(target, files=files))

    def _texts(self, target: _Kept, *, files: bool) -> tuple[Sequence[Text], Sequence[str]]:
        """What is to be written, and what cannot be; neither, where the notes are left as they are."""
        if not files:
            return (), ()
        snapshot = self._notes.snapshot_of(target["id"], target["commit"])
        return self._notes.texts_of(snapshot, f"to the checkpoint {_name_of(target)}")

    def _foreseen(self, target: _Kept, session: Session, texts: Sequence[Text], left: Sequence[str]) -> Foreseen:
        refs = self._refs()
        first = _first_day(target)
        days = self._days(refs, datetime.now(UTC), first)
        now = [entry for day, entries in days.items() if day >= first for entry in entries]
        stream = exchange_of([entry for entries in target["days"].values() for entry in entries], now)
        longterm = exchange_of(target["longterm"], refs.longterm())
        return Foreseen(
            checkpoint=self._told(target, session),
            latest=refs.checkpoints()[0]["id"],
            stream=stream,
            longterm=longterm,
            digest=foreseen_digest(stream, longterm, map(_digests_of, texts)),
            changed=changes_between(target["notebook"], self._notes.listed(self._mirror().known())),
            files=tuple(sorted(map(_change_of, texts), key=lambda change: change.path)),
            warnings=tuple(left),
        )

    def _keep(self, name: str, session: Session, target: _Kept | None = None) -> tuple[_Kept, str]:
        """Keep what is now, with the stream of the last days and of all from the first of `target`, which stays kept
        too; and why it lacks the files."""
        refs = self._refs()
        now = datetime.now(UTC)
        lights = refs.checkpoints()
        earlier = {one["id"] for one in lights}
        kept: _Kept = {
            "id": str(uuid.uuid4()),
            "name": name,
            "at": _after(lights, now).isoformat(timespec="milliseconds"),
            "created_by": "owner" if session.kind == "owner" else session.changed_by,
            "days": self._days(refs, now, _first_day(target) if target else ""),
            "longterm": refs.longterm(),
            "notebook": self._notes.listed(self._mirror().known()),
        }
        kept["commit"], trouble = self._notes.keep(kept["id"], name)
        try:
            refs.put_checkpoint(kept, spare=[kept["id"], *([target["id"]] if target else ())])
        except BackendDown:
            self._notes.drop([kept["id"]])
            raise
        self._notes.drop(earlier - {one["id"] for one in refs.checkpoints()})
        return kept, trouble

    def _days(self, refs: Refs, now: datetime, since: str) -> _Days:
        """The stream of the last days, and of all from the day `since`."""
        told = set(refs.days())
        days = _days_until(now.astimezone(self._settings.timezone).date(), since)
        return {day: refs.day(day) if day in told else [] for day in days}

    def _find(self, checkpoint_id: str, session: Session) -> _Kept:
        refs = self._refs()
        asked = checkpoint_id.strip().lower()
        ids = [one["id"] for one in refs.checkpoints()] if len(asked) >= _SHORTEST_START else []
        found = [one for one in ids if one == asked] or [one for one in ids if one.startswith(asked)]
        if len(found) > 1:
            raise UsageError(f"several checkpoints begin with {asked!r}; name one in full: {', '.join(found)}")
        kept = refs.checkpoint(found[0]) if found else None
        if kept is None:
            unknown = f"there is no checkpoint {checkpoint_id[:60]!r}" if asked else "name the checkpoint to go back to"
            latest = (f"{one['id']} {one['at']} {one['name']}".rstrip() for one in refs.checkpoints()[:_MOST_NAMED])
            raise NoSuchCheckpoint("; ".join(filter(None, [unknown, self.lost(session)])), tuple(latest))
        return kept

    def _enter(self, texts: Sequence[Text], session: Session) -> Entered:
        try:
            return self._door.enter(texts, session, ROLLBACK)
        except Conflict as conflict:
            advice = "nothing was brought back: roll back again"
            raise Conflict(conflict.path, conflict.base, conflict.current, conflict.text, advice=advice) from None

    def _restore(self, target: _Kept, before: _Kept, *, files: bool) -> None:
        """What was told since `before` was kept stays: by others, or of the notes that were just brought back."""
        refs = self._refs()
        first = _first_day(target)
        try:
            days = {
                day: Swap(target["days"].get(day, ()), _ids(before["days"].get(day, ())))
                for day in sorted(target["days"].keys() | before["days"].keys())
                if day >= first
            }
            refs.restore(days, Swap(target["longterm"], _ids(before["longterm"])))
        except BackendDown as down:
            if not files:
                raise
            advice = "the notes were brought back, the stream and long-term memory were not: roll back again"
            raise BackendDown(down.backend, f"{down.reason}; {advice}") from None

    def _told(self, kept: _Kept, session: Session) -> Checkpoint:
        """How much is in it, counting only what the session may read."""
        paths = (one["path"] for one in kept["notebook"])
        entries = (entry for day in kept["days"].values() for entry in day)
        counts = {
            "notes": sum(session.kind == "owner" or self._guard.may(session, "read", path) for path in paths),
            "entries": sum(self._stream.is_told(entry, session) for entry in entries),
            "longterm": sum(self._stream.is_told(entry, session) for entry in kept["longterm"]),
        }
        return checkpoint_of({**kept, **counts})

    def _withholds_from(self, session: Session) -> bool:
        """Whether checkpoints may hold what the session does not read: what the settings show to others only."""
        return session.kind != "owner" and any(
            session.kind not in file.sessions for file in self._settings.prompt.files
        )


def _change_of(text: Text) -> FileChange:
    if text.before is None:
        return FileChange(text.path, "created")
    return FileChange(text.path, "deleted" if text.after is None else "updated")


def _digests_of(text: Text) -> tuple[str, str, str]:
    return text.path, digest_of(text.before), digest_of(text.after)


def _after(lights: Iterable[Mapping[str, Any]], now: datetime) -> datetime:
    """Now, or what comes next to the last checkpoint, where the clock went back since: the last that is made is the
    last in every list, and is not the one to go."""
    last = max((datetime.fromisoformat(light["at"]) for light in lights), default=now)
    return max(now, last + _MILLISECOND)


def _ids(entries: Iterable[Entry]) -> frozenset[str]:
    return frozenset(entry["id"] for entry in entries)


def _name_of(kept: Mapping[str, Any]) -> str:
    """What a person knows it by; of one that a rollback made, the id: names would grow with each."""
    name = str(kept["name"])
    return str(kept["id"]) if not name or name.startswith(BEFORE) else name


def _first_day(kept: Mapping[str, Any]) -> str:
    return min(kept["days"], default="")


def _days_until(today: date, since: str) -> Sequence[str]:
    first = today - (DAYS - 1) * _ONE_DAY
    if since:
        first = min(first, date.fromisoformat(since))
    return [(first + number * _ONE_DAY).isoformat() for number in range((today - first).days + 1)]


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise UsageError(f"a checkpoint's name is one line of at most {_LONGEST_NAME} characters")
    return name
