"""Finding and reading notes, as far as the session sees them: the rest is left out before anything is counted.

A list comes from the index. A note that is read, or that is shown in part, is its file as it is now.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from notebook_sync.dates import moment
from notebook_sync.errors import NotebookError, NotFound, UnreadableFile, UsageError
from notebook_sync.model import HISTORY_LIMIT, Note, Section, is_current
from notebook_sync.registry import Results, as_json
from notebook_sync.services.core import Core
from notebook_sync.services.results import COLUMNS, FoundNote, NoteRow, NoteText, SectionRow, Snippet, row_fields
from notebook_sync.services.view import LATEST_FIRST, View, linking, resolve, shown_names
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Has, Is, Row, Where, both
from notebook_sync.sync.project import fold_tags

if TYPE_CHECKING:
    from notebook_sync.search.query import Mode
    from notebook_sync.search.terms import Snippet as Quote

# A result that scores less than this part of the best one is left out.
_CUT_OFF = 0.5
_MOST_CANDIDATES, _MOST_LINKED = 20, 10
# What a quote has of a picture, whose data is not quoted: its text and a bracket before it, a bracket behind it.
_HALF_PICTURE = re.compile(r'!\[([^\]]*)\]\($|^(?:"[^"]*")?\)\s*')
# Characters that are counted for one page: more than any text has in so many tokens, on average.
_CHARACTERS_A_TOKEN = 8


def list_notes(core: Core, session: Session, *, limit: int, after: str = "", **filters: Any) -> Results[NoteRow]:
    """Notes that the session may read, the latest change first; `after` is the `next` of the page before."""
    view = View(core, session)
    cursor = _read_cursor(after) if after else None
    where = _filters(core, view, **filters)
    rows = core.index.documents.find(where, order=LATEST_FIRST, limit=limit + 1, after=cursor, fields=COLUMNS)
    page = [NoteRow(**_shown_fields(core, view, row)) for row in rows[:limit]]
    following = None
    if len(rows) > limit:  # the position of the last row, as text that says nothing else
        following = msgspec.json.encode([rows[limit - 1][name] for name in ("updated_at", "path")]).decode()
    return Results(page, core.behind() or None, following)


def search_notes(
    core: Core,
    session: Session,
    query: str,
    *,
    mode: Mode,
    limit: int,
    explain: bool,
    section: str = "",
    **filters: Any,
) -> Results[FoundNote]:
    """Notes that fit a query, the best first. An empty query with a filter lists the latest. Raises UsageError."""
    if not query.strip():
        if not any(filters.values()):
            raise UsageError("there is nothing to search for", next="give words, or a filter such as tags")
        listed = list_notes(core, session, limit=limit, **filters)
        return Results([_found(msgspec.structs.asdict(row)) for row in listed.results], listed.degraded)
    view = View(core, session)
    where = _filters(core, view, **filters)
    found = core.searcher.search(
        query, where=both(view.whole, where), mode=mode, limit=limit, explain=explain, section=section
    )
    ids = [hit.id for hit in found.hits]
    rows = {row["id"]: row for row in core.index.documents.find(Is("id", "in", ids), fields=COLUMNS)}
    results = [
        _found(row_fields(rows[hit.id]), hit.score, hit.snippet, hit.parts) for hit in found.hits if hit.id in rows
    ]
    for row in core.index.documents.find(both(view.in_part, where), fields=COLUMNS):
        fields, note = row_fields(row), _shown_note(core, view, row["path"])
        content, sections = note.content, note.sections
        if section:
            named = _sections_named(note, section)
            content, sections = "\n\n".join(content[each.start : each.end] for each in named), ()
        score, quote = core.searcher.score_text(query, note.title, note.summary, content, sections, mode=mode)
        if score > 0 and content:
            # Lines of what is shown are none of the file.
            results.append(_found(fields | _words_of(note), score, quote and quote._replace(line=0)))
    results.sort(key=lambda row: (-row.score, row.path))
    kept = [row for row in results[:limit] if row.score >= _CUT_OFF * results[0].score]
    return Results(kept, found.degraded or core.behind() or None)


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
    row = _row_at(core, path)
    text, note, stale = _text_of(core, view, path, row)
    own = None if view.sees_in_part(path) else row  # what the index says of the whole note
    changes = _changes(core, view, own["id"]) if own and history else []
    wanted = section or ("" if fragment.startswith("^") else fragment)
    if wanted:
        found = _section_of(note, wanted)
        text, wanted = note.content[found.start : found.end], found.anchor
    encoding = core.settings.prompt.encoding
    from prompt import count_tokens, visible
    from prompt.hidden import without

    if max_tokens:
        text = without(text, [gap for gap in visible(text, now=None).gaps if gap.reason == "payload"])
    page, following = cut_page(text, offset, max_tokens, encoding)
    fields = _words_of(note) | ({"id": own["id"]} if own else {})
    return NoteText(
        **fields,
        updated_at=core.tree.modified_at(path) or (row["updated_at"] if row else core.now()),
        version=row["version"] if row else 1,
        stale=stale,
        digest="" if view.sees_in_part(path) else note.digest,
        text=page,
        tokens=count_tokens(page, encoding) if max_tokens else None,
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
        created_at=note.created_at or (own["created_at"] if own else None),
        aliases=list(note.aliases),
        links=list(dict.fromkeys(link.target for link in note.links if link.target)),
        linked_from=shown_names(core, [*islice(linking(core, view, path), _MOST_LINKED)]) if row else [],
        extra=as_json(dict(note.extra)),
        history=[
            {
                "timestamp": each["at"],
                "version": each["version"],
                "summary": each["summary"],
                "changed_by": each["changed_by"],
            }
            for each in changes
        ],
    )


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
    from prompt import count_tokens

    fits = min(len(text), offset + max_tokens * _CHARACTERS_A_TOKEN)
    if count_tokens(text[offset:fits], encoding) > max_tokens:
        places = range(offset, fits)
        fits = places[bisect_right(places, max_tokens, key=lambda at: count_tokens(text[offset:at], encoding)) - 1]
    if fits < len(text):
        line_end = text.rfind("\n", offset + (fits - offset) // 2, fits) + 1
        fits = max(line_end or fits, offset + 1)
    return text[offset:fits], fits if fits < len(text) else None


# ---- which notes


def _filters(
    core: Core,
    view: View,
    *,
    collection: str | None = None,
    tags: list[str] | None = None,
    status: str | None = None,
    author: str = "",
    since: str = "",
    until: str = "",
    linked_to: str = "",
    folder: str = "",
) -> Where:
    """The rows that the session may read and a caller names. Tags match their descendants, `a` matches `a/b`.

    Notes that are shown in part do not answer to what their frontmatter says. Raises UsageError.
    """
    of_file: list[Where] = [Is("path", "!=", None)]
    if collection:
        of_file.append(Is("collection", "=", collection))
    if folder:
        of_file.append(Is("path", "under", folder))
    of_file += within(core, "updated_at", since, until)
    if linked_to:
        path, _ = resolve(core, view, linked_to)
        of_file.append(Is("path", "in", [*linking(core, view, path)]))
    said: list[Where] = [Is("status", "=", status)] if status else []
    if author:
        said.append(Is("created_by", "=", author if author == "owner" or ":" in author else f"agent:{author}"))
    if tags:
        said.append(any_tag(tags))
    return both(*of_file, *said, view.whole if said else view.where)


def within(core: Core, column: str, since: str, until: str) -> list[Where]:
    """The rows whose moment is not before `since`, and before `until`; "" for no bound. Raises UsageError."""
    zone, now = core.settings.timezone, core.now()
    found: list[Where] = [Is(column, ">=", moment(since, zone, now))] if since else []
    return found + ([Is(column, "<", moment(until, zone, now))] if until else [])


def any_tag(tags: Iterable[str]) -> Has:
    """The rows with any of these tags or their descendants: `a` matches `a/b`."""
    return Has("tags", tuple(folded[-1] for tag in tags if (folded := fold_tags([tag]))))


def _read_cursor(text: str) -> tuple[datetime, str]:
    try:
        return msgspec.json.decode(text, type=tuple[datetime, str])
    except ValueError:
        raise UsageError("`after` is not a cursor of this list", next="give the `next` of the last page") from None


# ---- what the session sees of a note


def _found(
    fields: dict[str, Any], score: float = 0.0, quote: Quote | None = None, parts: dict[str, float] | None = None
) -> FoundNote:
    text = _HALF_PICTURE.sub(r"\1", quote.text) if quote else ""
    snippet = quote and Snippet(text=text, section=quote.section, line=quote.line)
    return FoundNote(**fields, score=round(score, 4), snippet=snippet, explain=parts)


def _shown_fields(core: Core, view: View, row: Row) -> dict[str, Any]:
    """The fields of a row: of a file that is shown in part, what its visible text says."""
    fields, path = row_fields(row), row["path"] or ""
    return fields | _words_of(_shown_note(core, view, path)) if view.sees_in_part(path) else fields


def _words_of(note: Note) -> dict[str, Any]:
    """What a note itself says of the fields that every shape of a note has."""
    names = ("path", "collection", "title", "summary", "status", "created_by", "word_count", "provenance")
    said = {name: getattr(note, name) for name in names}
    said["current"] = is_current(note.fields.get("superseded_by"), note.valid_until, datetime.now(UTC))
    return said | {"id": note.wanted_id, "tags": list(note.tags), "fields": as_json(dict(note.fields))}


def _shown_note(core: Core, view: View, path: str) -> Note:
    """A note that is shown in part, as what the session sees of it says; an empty one where it cannot be read."""
    try:
        return _text_of(core, view, path, None)[1]
    except NotebookError:
        return _parsed(path, b"", core.settings.timezone)


def _text_of(core: Core, view: View, path: str, row: Row | None) -> tuple[str, Note, str]:
    """The text of a note as the session sees it, the note that this text is, and why it is not the file's now, "" where
    it is: the last good row replaces a file that cannot be read."""
    zone = core.settings.timezone
    try:
        raw = core.tree.read(path).raw
    except UnreadableFile as error:
        if row is None or view.sees_in_part(path):
            raise
        content = core.index.documents.find(Is("id", "=", row["id"]), fields=("content",))[0]["content"]
        kept = {name: row[name] for name in ("title", "summary", "provenance", "status", "created_by", "digest")}
        kept |= {"fields": row["fields"] or {}, "tags": tuple(row["tags"])}
        return content, replace(_parsed(path, content.encode(), zone), **kept), str(error)
    text = raw.decode(errors="replace")
    if not view.sees_in_part(path):
        return text, _parsed(path, raw, zone), (row["stale"] if row else "") or ""
    from notebook_sync.files.frontmatter import EXTERNAL, is_external  # here, as the parser

    text = view.shown(path, text)
    provenance = EXTERNAL if is_external(raw) else ""
    return text, replace(_kept_parsed(path, text.encode(), zone), provenance=provenance), ""


def _parsed(path: str, raw: bytes, zone: tzinfo) -> Note:
    from notebook_sync.files.parse import parse  # loads the prompt's parts, which lists and searches do without

    return parse(path, raw, timezone=zone)


# Each search of an agent asks for all files of the prompt.
_kept_parsed = lru_cache(maxsize=8)(_parsed)


def _row_at(core: Core, path: str) -> Row | None:
    try:
        found = core.index.documents.find(Is("path", "=", path), limit=1)
    except NotebookError:  # no state folder: the file alone answers
        return None
    return found[0] if found else None


def _sections_named(note: Note, name: str) -> list[Section]:
    """The section with this anchor, else those with this heading."""
    wanted = name.strip().lstrip("#").strip()
    exact = [each for each in note.sections if each.anchor == wanted]
    return exact or [each for each in note.sections if each.heading.casefold() == wanted.casefold()]


def _section_of(note: Note, name: str) -> Section:
    """The one section with this name. Raises NotFound with the anchors that exist."""
    found = _sections_named(note, name)
    if len(found) == 1:
        return found[0]
    anchors = () if note.provenance else tuple(each.anchor for each in found or note.sections)[:_MOST_CANDIDATES]
    advice = f"use one of: {', '.join(anchors)}" if anchors else "read the whole note"
    raise NotFound("single section" if found else "section", name, candidates=anchors, next=advice)


def _changes(core: Core, view: View, id: str) -> list[Row]:
    """What the index recorded of a note's changes, the newest first; to others than the owner, from where the note left
    a channel on."""
    from notebook_sync.sync.apply import MOVED_OUT  # loads the index, which is asked only here

    rows = core.index.history.find(Is("note", "=", id), order=("-version", "-at"), limit=HISTORY_LIMIT)
    left = next((at for at, row in enumerate(rows) if row["summary"].startswith(MOVED_OUT)), len(rows))
    return rows if view.session.kind == "owner" else rows[: left + 1]
