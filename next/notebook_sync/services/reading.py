"""Reading a note as its file is now, and only as far as the session sees it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from notebook_sync.errors import NotebookError, NotFound, UnreadableFile, UsageError
from notebook_sync.files.parse import parse
from notebook_sync.model import HISTORY_LIMIT, Note, Section
from notebook_sync.registry import as_json
from notebook_sync.services.core import Core
from notebook_sync.services.lookup import resolve
from notebook_sync.services.results import NoteText, SectionRow
from notebook_sync.services.view import View
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Is, Row
from prompt import count_tokens, visible
from prompt.gaps import without

_MOST_CANDIDATES = 20
# What is shown of a change, in addition to its time.
_CHANGE = ("version", "summary", "changed_by")
# Characters that are counted for one page: more than any text has in so many tokens, on average.
_CHARACTERS_A_TOKEN = 8
# How `sync.apply` words the change of a note that left a channel: what was before is not for all who may read it now.
_MOVED_OUT = "Moved out of a channel"


def read_note(
    core: Core,
    session: Session,
    name: str,
    *,
    section: str = "",
    collection: str = "",
    history: bool = False,
    max_tokens: int = 0,
    offset: int = 0,
) -> NoteText:
    """The note that `name` means, or one section of it, from character `offset` on in at most `max_tokens` tokens.

    With a limit, pictures and files that are written as data: addresses are shown as `…`.
    Raises NoSuchNote, UnreadableFile, and NotFound for a section that does not exist, with the anchors.
    """
    view = View(core, session)
    path, fragment = resolve(core, view, name, collection=collection)
    is_part = view.sees_in_part(path)
    row = _row_at(core, path)
    text, note, stale = _text_of(core, view, path, row)
    changes = recorded_changes(core, view, row["id"]) if row and history and not is_part else []
    wanted = section or ("" if fragment.startswith("^") else fragment)
    if wanted:
        found = section_of(note, wanted)
        text, wanted = note.content[found.start : found.end], found.anchor
    if max_tokens:
        text = without(text, [gap for gap in visible(text, now=None).gaps if gap.reason == "payload"])
    page, following = cut_page(text, offset, max_tokens, core.settings.prompt.encoding)
    return NoteText(
        id=row["id"] if row and not is_part else note.wanted_id,
        path=path,
        collection=note.collection,
        title=note.title,
        summary=note.summary,
        tags=list(note.tags),
        updated_at=core.tree.modified_at(path) or (row["updated_at"] if row else core.now()),
        status=note.status,
        created_by=note.created_by,
        word_count=note.word_count,
        version=row["version"] if row else 1,
        fields=as_json(dict(note.fields)),
        provenance=note.provenance,
        stale=stale,
        digest="" if is_part else note.digest,
        text=page,
        tokens=count_tokens(page, core.settings.prompt.encoding) if max_tokens else None,
        next=following,
        section=wanted,
        sections=[
            SectionRow(
                heading=each.heading,
                level=each.level,
                anchor=each.anchor,
                line=each.line,
                words=len(note.content[each.start : each.end].split()),
            )
            for each in note.sections
        ],
        created_at=note.created_at or (row["created_at"] if row and not is_part else None),
        aliases=list(note.aliases),
        links=list(dict.fromkeys(link.target for link in note.links if link.target)),
        extra=as_json(dict(note.extra)),
        history=[{"timestamp": each["at"], **{name: each[name] for name in _CHANGE}} for each in changes],
    )


def shown_note(core: Core, view: View, path: str) -> Note | None:
    """A note that is shown in part, as what the session sees of it says; None where it cannot be read."""
    try:
        return _text_of(core, view, path, None)[1]
    except NotebookError:
        return None


def cut_page(text: str, offset: int, max_tokens: int, encoding: str) -> tuple[str, int | None]:
    """The page that begins at character `offset` and has at most `max_tokens` tokens (0: no limit), and the offset of
    the next page, None at the end.

    A page ends with a line where one ends in its latter half, and has at least one character. Raises UsageError for an
    offset beyond the text.
    """
    if offset > len(text):
        raise UsageError(
            f"offset {offset} is beyond the end of the text, which has {len(text)} characters",
            next="give the `next` of the page before",
        )
    if not max_tokens:
        return text[offset:], None
    end = min(len(text), offset + max_tokens * _CHARACTERS_A_TOKEN)
    fits = end
    if count_tokens(text[offset:end], encoding) > max_tokens:
        places = range(offset, end)
        fits = places[bisect_right(places, max_tokens, key=lambda at: count_tokens(text[offset:at], encoding)) - 1]
    if fits < len(text):
        line_end = text.rfind("\n", offset + (fits - offset) // 2, fits) + 1
        fits = max(line_end or fits, offset + 1)
    return text[offset:fits], fits if fits < len(text) else None


def section_of(note: Note, name: str) -> Section:
    """The section with this anchor or heading. Raises NotFound with the anchors that exist."""
    wanted = name.strip().lstrip("#").strip()
    found = [each for each in note.sections if each.anchor == wanted]
    found = found or [each for each in note.sections if each.heading.casefold() == wanted.casefold()]
    if len(found) == 1:
        return found[0]
    anchors = () if note.provenance else tuple(each.anchor for each in found or note.sections)[:_MOST_CANDIDATES]
    advice = f"use one of: {', '.join(anchors)}" if anchors else "read the whole note"
    raise NotFound("section" if not found else "single section", name, candidates=anchors, next=advice)


def _text_of(core: Core, view: View, path: str, row: Row | None) -> tuple[str, Note, str]:
    """The text of a note as the session sees it, the note that this text is, and why it is not the file's now, "" where
    it is: the last good row replaces a file that cannot be read."""
    zone = core.settings.timezone
    try:
        raw = core.tree.read(path).raw
    except UnreadableFile as error:
        if row is None:
            raise
        content = core.index.documents.find(Is("id", "=", row["id"]), fields=("content",))[0]["content"]
        names = ("title", "summary", "provenance", "status", "created_by", "digest")
        kept = {name: row[name] for name in names} | {"fields": row["fields"] or {}, "tags": tuple(row["tags"])}
        text, note = content, replace(parse(path, content.encode(), timezone=zone), **kept)
        stale = str(error)
    else:
        text, note = raw.decode(errors="replace"), parse(path, raw, timezone=zone)
        stale = (row["stale"] if row else "") or ""
    if not view.sees_in_part(path):
        return text, note, stale
    text = view.shown(path, text)
    return text, replace(parse(path, text.encode(), timezone=zone), provenance=note.provenance), ""


def _row_at(core: Core, path: str) -> Row | None:
    try:
        found = core.index.documents.find(Is("path", "=", path), limit=1)
    except NotebookError:  # no state folder: the file alone answers
        return None
    return found[0] if found else None


def recorded_changes(core: Core, view: View, id: str, limit: int = HISTORY_LIMIT) -> list[Row]:
    """What the index recorded of a note's changes, the newest first; to others than the owner, from where the note left
    a channel on."""
    rows = core.index.history.find(Is("note", "=", id), order=("-version", "-at"), limit=limit)
    left = next((at for at, row in enumerate(rows) if row["summary"].startswith(_MOVED_OUT)), len(rows))
    return rows if view.session.kind == "owner" else rows[: left + 1]
