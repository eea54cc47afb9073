"""Lists and searches of notes, with everything that a session may not see left out before anything is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from notebook_sync.dates import moment
from notebook_sync.errors import UsageError
from notebook_sync.model import id_from_path
from notebook_sync.registry import Results
from notebook_sync.services.core import Core
from notebook_sync.services.results import FoundNote, NoteRow, Snippet, row_fields
from notebook_sync.services.view import View
from notebook_sync.sessions import Session
from notebook_sync.store.rows import NOTHING, Has, Is, Row, Where, both
from notebook_sync.sync.project import fold_tags

if TYPE_CHECKING:
    from notebook_sync.search.query import Mode
    from notebook_sync.search.snippets import Snippet as Quote

_ORDER = ("-updated_at", "path")
# A result that scores less than this part of the best one is left out.
_CUT_OFF = 0.5


def list_notes(core: Core, session: Session, *, limit: int, after: str = "", **filters: Any) -> Results[NoteRow]:
    """Notes that the session may read, the latest change first; `after` is the `next` of the page before."""
    view = View(core, session)
    cursor = _read_cursor(after) if after else None
    where = filters_of(core, view, **filters)
    rows = core.index.documents.find(where, order=_ORDER, limit=limit + 1, after=cursor)
    page = [NoteRow(**row_fields(shown_row(core, view, row))) for row in rows[:limit]]
    return Results(page, core.behind() or None, _cursor(rows[limit - 1]) if len(rows) > limit else None)


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
    view = View(core, session)
    if not query.strip():
        if not any(filters.values()):
            raise UsageError("there is nothing to search for", next="give words, or a filter such as tags")
        listed = core.index.documents.find(filters_of(core, view, **filters), order=_ORDER, limit=limit)
        rows = [shown_row(core, view, row) for row in listed]
        return Results([FoundNote(**row_fields(row), score=0.0, snippet=None, explain=None) for row in rows])
    where = filters_of(core, view, **filters)
    found = core.searcher.search(
        query, where=both(view.whole, where), mode=mode, limit=limit, explain=explain, section=section
    )
    by_id = core.index.documents.get([hit.id for hit in found.hits], heavy=False)
    results = [_found(by_id[hit.id], hit.score, hit.snippet, hit.parts) for hit in found.hits if hit.id in by_id]
    results += _found_in_part(core, view, query, where, section, mode)
    results.sort(key=lambda row: (-row.score, row.path))
    kept = [row for row in results[:limit] if row.score >= _CUT_OFF * results[0].score]
    return Results(kept, found.degraded or core.behind() or None)


def filters_of(
    core: Core,
    view: View,
    *,
    collection: str | None = None,
    tags: list[str] | None = None,
    status: str | None = None,
    author: str = "",
    since: str = "",
    until: str = "",
) -> Where:
    """The rows that the session may read and a caller names. Tags match their descendants, `a` matches `a/b`.

    Notes that are shown in part do not answer to what their frontmatter says. Raises UsageError.
    """
    of_file: list[Where] = [Is("path", "!=", None), *([Is("collection", "=", collection)] if collection else [])]
    zone, now = core.settings.timezone, core.now()
    if since:
        of_file.append(Is("updated_at", ">=", moment(since, zone, now)))
    if until:
        of_file.append(Is("updated_at", "<", moment(until, zone, now)))
    said: list[Where] = [Is("status", "=", status)] if status else []
    if author:
        said.append(Is("created_by", "=", author if author == "owner" or ":" in author else f"agent:{author}"))
    if tags:
        said.append(Has("tags", tuple(folded[-1] for tag in tags if (folded := fold_tags([tag])))))
    return both(*of_file, both(view.whole, *said) if said else view.where)


def shown_row(core: Core, view: View, row: Row) -> Row:
    """The row as the session may see it: of a file that is shown in part, what its visible text says."""
    path = row["path"] or ""
    if not view.sees_in_part(path):
        return row
    from notebook_sync.services.reading import shown_note  # loads the parser, which rows of whole notes do not need

    note = shown_note(core, view, path)
    plain: Row = {
        "id": id_from_path(path),
        "title": path,
        "summary": "",
        "tags": [],
        "status": "draft",
        "fields": {},
        "created_by": "owner",
        "word_count": 0,
        "stale": "",
    }
    said = {name: getattr(note, name) for name in ("title", "summary", "word_count")} if note else {}
    return {**row, **plain, **said, "tags": list(note.tags) if note else []}


def _found(row: Row, score: float, quoted: Quote | None, parts: dict[str, Any] | None = None) -> FoundNote:
    snippet = quoted and Snippet(text=quoted.text, section=quoted.section, line=quoted.line)
    return FoundNote(**row_fields(row), score=round(score, 4), snippet=snippet or None, explain=parts)


def _found_in_part(core: Core, view: View, query: str, where: Where, section: str, mode: Mode) -> list[FoundNote]:
    """Prompt files that the session sees in part, found by the words of what it sees."""
    if view.in_part == NOTHING:
        return []
    from notebook_sync.services.reading import shown_note  # as above

    found = []
    wanted = section.lstrip("#").strip().casefold()
    for row in core.index.documents.find(both(view.in_part, where)):
        note = shown_note(core, view, row["path"])
        if note is None:
            continue
        content, sections = note.content, note.sections
        if wanted:
            named = [each for each in sections if wanted in (each.anchor, each.heading.casefold())]
            content, sections = "\n\n".join(content[each.start : each.end] for each in named), ()
        score, quoted = core.searcher.score_text(query, note.title, note.summary, content, sections, mode=mode)
        if score > 0 and content:
            shown = quoted and replace(quoted, line=0)  # lines of what is shown are none of the file
            found.append(_found(shown_row(core, view, row), score, shown))
    return found


def _cursor(last: Row) -> str:
    """Where the next page begins: the position of the last row, as text that says nothing else."""
    return msgspec.json.encode([last["updated_at"], last["path"]]).decode()


def _read_cursor(text: str) -> tuple[datetime, str]:
    try:
        return msgspec.json.decode(text, type=tuple[datetime, str])
    except msgspec.DecodeError:
        raise UsageError("`after` is not a cursor of this list", next="give the `next` of the last page") from None
