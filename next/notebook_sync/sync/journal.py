"""What is recorded of a change: a breadcrumb in the note's history and a line in the daily stream. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, tzinfo

from notebook_sync.permissions import is_private
from notebook_sync.sessions import maker_of
from notebook_sync.store.rows import Row, to_milliseconds
from notebook_sync.sync.diff import Put

# Headings that a breadcrumb names of a kind, and characters of a summary in a stream line.
_NAMED = 3
_SUMMARY = 200
_SCORE = 0.8
# What is read from the text where the frontmatter does not name it.
_DERIVED = frozenset(("summary", "language", "key_findings"))


def changed_by(intent: Row | None) -> str:
    """Who made a change, as `Session.changed_by` names it: the session of a tool's intent; without one the owner."""
    agent = agent_of(intent)
    return maker_of(agent) if agent or intent is None or intent["session"] == "owner" else "agent:unknown"


def agent_of(intent: Row | None) -> str:
    """The agent that made a change, "" for a person."""
    return (intent["agent"] or "") if intent is not None else ""


def crumb(note: Row, summary: str, at: datetime, intent: Row | None) -> Row:
    """The history row of the version that a note has now."""
    reason = f": {intent['reason']}" if intent is not None and intent["reason"] else ""
    return {
        "id": f"{note['id']}@{note['version']}",
        "note": note["id"],
        "version": note["version"],
        "at": at,
        "summary": summary + reason,
        "changed_by": changed_by(intent),
    }


def what_happened(put: Put, was: Row | None) -> tuple[str, str]:
    """The breadcrumb's summary, and the action that the stream names. `was` is the row before."""
    if was is None:
        return "Created", "created"
    if not put.is_moved:
        return describe_change(was, put.projection.document) if "content" in was else "Changed the id", "updated"
    old, new = was["path"] or "", put.look.path
    if is_private(old) == is_private(new):
        return f"Moved from {old}", "moved"
    return ("Moved out of a channel", "created") if is_private(old) else (f"Moved from {old}", "deleted")


def stream_entry(note: Row, action: str, at: datetime, zone: tzinfo, agent: str = "") -> Row:
    """The stream line of what happened to a note, a light row of `documents`.

    The text of a note that some session sees in part may be what it must not see, so its line has the title alone.
    """
    summary = "" if note["audience"] else note["summary"][:_SUMMARY]
    identity = (note["id"], to_milliseconds(at), note["version"], action, note["digest"], note["path"])
    ref = {name: note[name] for name in ("title", "collection", "status", "version")}
    return {
        "id": hashlib.sha256("\n".join(map(str, identity)).encode()).hexdigest()[:16],
        "day": at.astimezone(zone).date().isoformat(),
        "at": at,
        "content": f"[Notebook {action.upper()}] {note['title']}" + (f": {summary}" if summary else ""),
        "source": "notebook",
        "score": _SCORE,
        "agent": agent,
        "action": action,
        "note": note["id"],
        "path": note["path"],
        "provenance": note["provenance"],
        "ref": {**ref, "summary": summary, "updated_at": note["updated_at"].isoformat()},
        "tags": [note["collection"]],
    }


def describe_change(before: Row, after: Row) -> str:
    """One line on what differs between two rows with their text: "Changed title, tags; changed Budget; added Risks"."""
    is_same_text = before["content"] == after["content"]
    old, new = _own_texts(before), _own_texts(after)
    sections = (
        _listed("changed", [new[anchor][0] for anchor in new if anchor in old and new[anchor] != old[anchor]]),
        _listed("added", [heading for anchor, (heading, _) in new.items() if anchor not in old]),
        _listed("removed", [heading for anchor, (heading, _) in old.items() if anchor not in new]),
    )
    text = "" if is_same_text else "; ".join(filter(None, sections)) or "changed the text"
    fields = _listed("changed", _changed_fields(before, after, is_same_text=is_same_text))
    summary = "; ".join(filter(None, (fields, text))) or "changed the frontmatter"
    return summary[0].upper() + summary[1:]


def _changed_fields(before: Row, after: Row, *, is_same_text: bool) -> list[str]:
    old, new = before["fields"] or {}, after["fields"] or {}
    pairs = {name: (before[name], after[name]) for name in ("title", "summary", "tags", "status", "provenance")}
    pairs |= {name: (old.get(name), new.get(name)) for name in sorted({*old, *new} - {"tags"})}
    return [name for name, (was, now) in pairs.items() if was != now and (is_same_text or name not in _DERIVED)]


def _own_texts(row: Row) -> dict[str, tuple[str, str]]:
    """Heading and text by anchor; the text ends at the next heading of any level, so that a change is named once."""
    sections = row["sections"] or ()
    ends = [*(section[4] for section in sections), len(row["content"])][1:]
    return {
        anchor: (heading, row["content"][start:end].rstrip())
        for (heading, _, anchor, _, start, _), end in zip(sections, ends, strict=True)
    }


def _listed(verb: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{verb} {', '.join(names[:_NAMED])}{more}"
