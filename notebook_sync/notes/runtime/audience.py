"""Who is told of which event. Pure: of another's notes an event tells no more than the notes themselves would."""

from __future__ import annotations

from collections.abc import Callable

from notebook_sync.events import CHANGED, Event
from notebook_sync.notes.runtime import reminders
from notebook_sync.sessions import Session

_OF_ALL = ("id", "at", "kind", "session", "agent")
_OF_NOTES = frozenset({"edit", "undo", "rollback"})


def told_to(session: Session, event: Event, may_read: Callable[[str], bool]) -> Event | None:
    """What of the event the session is told; None for nothing.

    The owner is told everything. An agent is told what it did itself, and of others' doings that a note which it may
    read was changed, not why; whoever acts on someone else's message is told nothing.
    """
    if session.kind == "owner":
        return event
    if session.kind == "external":
        return None
    if session.agent and (event.get("session"), event.get("agent")) == (session.kind, session.agent):
        return event
    kind = event.get("kind")
    if kind == "reminder_due":
        return event if may_read(reminders.PATH) else None
    if kind == CHANGED:
        paths = [path for path in event.get("paths", ()) if may_read(path)]
        return {**{key: event.get(key) for key in _OF_ALL}, "paths": paths} if paths else None
    if kind in _OF_NOTES and event.get("path") and may_read(event["path"]):
        return {key: value for key, value in event.items() if key != "reason"}
    return None
