"""What a prompt shows on request after its files: recent notes, facts, an agent's own notes, the task.

The index says only which notes are recent and which facts count for most; what they say is read from their files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from notebook_sync.errors import NoAgentNamed, NoSuchNote, NotebookError, UnreadableFile, UnsafePath, UsageError
from notebook_sync.files.frontmatter import is_external
from notebook_sync.files.parse import parse
from notebook_sync.sessions import Session
from prompt import Count, Entry, VolatileSection, quote, trim, visible

if TYPE_CHECKING:
    from notebook_sync.services.core import Core

INCLUDES = ("refs", "facts", "notes")
FACTS = "facts/notes.md"
# The importance of a fact that the index does not know.
_START = 0.5
_REFS, _NOTES, _NOTE_TOKENS = 12, 5, 400
_ID, _TITLE, _SUMMARY = 512, 120, 200


def sections_of(
    core: Core, session: Session, include: Sequence[str], task: str, count: Count, problems: list[str]
) -> tuple[VolatileSection, ...]:
    """The sections that a caller asks for, as far as the session may see them. What is left out, and why, is added to
    `problems`. Raises UsageError for an unknown part, NoAgentNamed for the notes of nobody."""
    if unknown := set(include) - set(INCLUDES):
        raise UsageError(f"there is no part {min(unknown)!r} to include", next=f"use {', '.join(INCLUDES)}")
    if "notes" in include and not session.agent:
        raise NoAgentNamed("notes are those of one agent, and none is named", next="name it with --agent NAME")
    # Of the prompt's own files, the settings say who sees them.
    elsewhere, now = core.prompt_files.paths, core.settings.local_now()
    found: list[VolatileSection] = []
    if "refs" in include:
        try:
            found.append(VolatileSection("Notebook", tuple(_refs(core, session, elsewhere)), 0))
            problems += [f"refs: {reason}"] if (reason := core.behind()) else []
        except NotebookError as error:
            problems.append(f"refs: left out: {error}")
    if "facts" in include and FACTS not in elsewhere:
        found.append(VolatileSection("Facts", tuple(_facts(core, now, problems)), 2))
    if "notes" in include and session.kind == "external":
        problems.append("notes: left out, since an external session reads no channel")
    elif "notes" in include:
        found.append(VolatileSection("Recent Notes", tuple(islice(_notes(core, session, now, count), _NOTES)), 1))
    if task.strip():
        source = "the task of an external session" if session.kind == "external" else ""
        found.append(VolatileSection("Task Brief", (Entry(task, source),), 3))
    return tuple(found)


def _refs(core: Core, session: Session, elsewhere: Sequence[str]) -> list[Entry]:
    """The notes that were changed last, one line each: enough to know that they exist and what they are about."""
    from notebook_sync.services.view import View  # the parts of the index, which no other part of a prompt needs
    from notebook_sync.store.rows import Is, Not, both

    others = Not(Is("path", "in", tuple(elsewhere))), Not(Is("path", "under", "channels")), Is("path", "!=", None)
    where = both(View(core, session).whole, *others)
    entries = []
    for row in core.index.documents.find(where, order=("-updated_at", "path"), limit=_REFS):
        line = f"- {_bounded(row['title'], _TITLE)} (`{_bounded(row['id'], _ID)}`, {row['status']})"
        line += f": {_bounded(row['summary'], _SUMMARY)}" if row["summary"] else ""
        entries.append(Entry(line, "external" if row["provenance"] else ""))
    return entries


def _facts(core: Core, now: datetime, problems: list[str]) -> list[Entry]:
    """The facts of facts/notes.md, those that count for most before the others."""
    source = core.prompt_files.shown.read(FACTS)
    if source.problem:
        problems.append(f"{FACTS}: {source.problem}")
    text = visible((source.content or b"").decode(errors="replace"), now=now).text
    facts = parse(FACTS, text.encode(errors="replace"), timezone=core.settings.timezone).facts
    known: dict[str, float] = {}
    try:
        rows = core.index.facts.get([fact.id for fact in facts], heavy=False)
        known = {id: row["base"] if row["pin"] is None else row["pin"] for id, row in rows.items()}
    except NotebookError as error:
        problems.append(f"facts: in the order of their file: {error}")
    origin = "external" if source.external else ""
    return [
        Entry(f"- {' '.join(fact.text.split())}", origin, rank=-known.get(fact.id, _START))
        for fact in {fact.id: fact for fact in facts}.values()
    ]


def _notes(core: Core, session: Session, now: datetime, count: Count) -> Iterator[Entry]:
    """The agent's private notes, the newest first, each under its path."""
    stamps = core.tree.scan([f"channels/{session.agent}"]).seen
    for path in sorted(stamps, key=lambda path: (-stamps[path].mtime_ns, path)):
        with suppress(NoSuchNote, UnreadableFile, UnsafePath):
            raw = core.tree.read(path).raw
            text = visible(raw.decode(errors="replace"), now=now).text.strip()
            shown = trim(text, _NOTE_TOKENS, lambda each: count(quote(each)), path=path).text
            if shown and is_external(raw):
                yield Entry(shown, path)
            elif shown:  # quoted, so that nothing in it looks like the path of another note
                yield Entry(f"`{path}`\n\n{quote(shown)}")


def _bounded(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
