"""From a change to the write that carries it out, with the breadcrumb that tells what changed. Pure."""

from __future__ import annotations

from notebook_sync.files.note import Note, Seed
from notebook_sync.mirror.base import Breadcrumb, Document, MarkStale, Put, Remove, Touch, Write
from notebook_sync.mirror.document import moment
from notebook_sync.permissions import is_private
from notebook_sync.sync.diff import Change, Delete, Fail, Refresh, Store

_NAMED = 3


def write_for(
    change: Change, changed_by: str, before: Document | None = None, seed: Seed | None = None
) -> Write | None:
    """The write for one change, or None where nothing is to be written. `before` is the document that ends."""
    match change:
        case Store(note_id, note, stamp, onto, was):
            summary, action = _what_happened(change, before)
            crumb = Breadcrumb(moment(stamp.mtime_ns), summary, changed_by)
            replaces = was.id if was is not None else None
            if onto is None:
                return Put(note_id, note, stamp, None, action, crumb, replaces, seed)
            return Put(note_id, note, stamp, onto.digest, action, crumb, replaces, seed, onto.version)
        case Refresh(known, stamp):
            return Touch(known.id, known.digest, stamp)
        case Fail(_, reason, known) if known is not None and known.stale != reason:
            return MarkStale(known.id, known.digest, reason)
        case Delete(known):
            return Remove(known.id, known.digest)
        case _:
            return None


def _what_happened(store: Store, before: Document | None) -> tuple[str, str]:
    """The breadcrumb's summary, and the action that hot memory is told."""
    past = store.onto or store.was
    if past is None:
        return "Created", "created"
    if store.moved and is_private(past.path) and not is_private(store.note.path):
        return "Moved out of a channel", "created"
    if store.moved:
        return f"Moved from {past.path}", "moved"
    if past.digest == store.note.digest:
        return "Parsed again", "touched"
    return (describe_change(before, store.note) if before is not None else "Changed"), "updated"


def describe_change(before: Document, note: Note) -> str:
    """One line on what differs: "Changed title, tags; changed Budget; added Risks; removed Old plan"."""
    spans = [(section["anchor"], section["heading"], section["start"]) for section in before["sections"]]
    old = _own_texts(spans, before["content"])
    new = _own_texts([(section.anchor, section.heading, section.start) for section in note.sections], note.content)
    sections = (
        _listed("changed", [new[anchor][0] for anchor in new if anchor in old and new[anchor] != old[anchor]]),
        _listed("added", [heading for anchor, (heading, _) in new.items() if anchor not in old]),
        _listed("removed", [heading for anchor, (heading, _) in old.items() if anchor not in new]),
    )
    is_same_text = before["content"] == note.content
    text = "" if is_same_text else "; ".join(filter(None, sections)) or "changed the text"
    fields = _listed("changed", _fields_changed(before, note, is_same_text=is_same_text))
    told = "; ".join(filter(None, (fields, text))) or "changed the frontmatter"
    return told[0].upper() + told[1:]


# What is read from the text where frontmatter leaves it out.
_DERIVED = frozenset(("summary", "language", "key_findings"))


def _fields_changed(before: Document, note: Note, *, is_same_text: bool) -> list[str]:
    metadata = before["metadata"]
    pairs = {
        "title": (before["title"], note.title),
        "summary": (before["summary"], note.summary),
        "tags": (metadata["tags"], list(note.tags)),
        "status": (metadata["status"], note.status),
        "provenance": (metadata["provenance"], note.provenance),
        **{name: (before.get(name), value) for name, value in note.fields.items()},
    }
    return [name for name, (old, new) in pairs.items() if old != new and (is_same_text or name not in _DERIVED)]


def _own_texts(spans: list[tuple[str, str, int]], content: str) -> dict[str, tuple[str, str]]:
    """Heading and text by anchor. The text ends at the next heading of any level, so a change is told where it is."""
    ends = [*(start for _, _, start in spans), len(content)][1:]
    return {
        anchor: (heading, content[start:end].rstrip())
        for (anchor, heading, start), end in zip(spans, ends, strict=True)
    }


def _listed(verb: str, headings: list[str]) -> str:
    if not headings:
        return ""
    more = f" and {len(headings) - _NAMED} more" if len(headings) > _NAMED else ""
    return f"{verb} {', '.join(headings[:_NAMED])}{more}"
