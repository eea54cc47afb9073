"""Who is told of which event. Pure: of another's notes an event tells no more than the notes themselves would."""

from __future__ import annotations

from collections.abc import Callable

from notebook_sync.events import Event
from notebook_sync.notes import reminders
from notebook_sync.sessions import Session

CHANGED = "changed"
_OF_ALL = ("id", "at", "kind", "session", "agent")
_OF_NOTES = frozenset({"edit", "undo"})


def told_to(session: Session, event: Event, may_read: Callable[[str], bool]) -> Event | None:
    """What of the event the session is told; None for nothing.

    The owner is told everything. An agent is told what it did itself, and of others' doings that a note which it may
    read was changed, not why; whoever acts on someone else's message is told nothing.
    """
    if session.kind == "owner":
        return event
    if session.kind == "external":
        return None
    if session.agent and (event["session"], event["agent"]) == (session.kind, session.agent):
        return event
    if event["kind"] == "reminder_due":
        return event if may_read(reminders.PATH) else None
    if event["kind"] == CHANGED:
        paths = [path for path in event["paths"] if may_read(path)]
        return (
            {**{key: event[key] for key in ("id", "at", "kind", "session", "agent")}, "paths": paths} if paths else None
        )
    if event["kind"] in _OF_NOTES and may_read(event["path"]):
        return {key: value for key, value in event.items() if key != "reason"}
    return None
