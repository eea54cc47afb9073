"""Taking a memory in: the guardians look at it, and what it says becomes a file, whatever they find.

The text that was given is kept as it is, or stands below what a model made of it; nothing is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import Conflict, UsageError
from notebook_sync.files.edit_shape import characters_refused
from notebook_sync.files.new_note import new_id
from notebook_sync.files.parse import parse
from notebook_sync.files.vault import Vault
from notebook_sync.notes.channels.private_note import line_of, tags_of
from notebook_sync.notes.editing.door import Door, Entered, Text, digest_of
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.memories.metadata import agent_of, guarded
from notebook_sync.notes.memories.restructure import restructured
from notebook_sync.notes.memories.template import Told, kind_named, read_memory
from notebook_sync.notes.memories.text import FOLDER, MemoryDraft, plain_title, reads_as_meant, title_of
from notebook_sync.notes.page_text import checked_title
from notebook_sync.notes.showing import sees_all
from notebook_sync.permissions import is_ignorable
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

if TYPE_CHECKING:
    from notebook_sync.llm import Llm

ADD = "memory_add"
GIVEN, BY_MODEL, NONE = "given", "model", "none"
_OWNER = "owner"
_MOST_TRIES = 1000

Row = dict[str, Any]


class MemoryIntake:
    """For one notebook. `llm` is asked where a text does not follow the template."""

    def __init__(self, vault: Vault, settings: Settings, guard: Guard, door: Door, llm: Llm) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._door = door
        self._llm = llm

    def add(
        self,
        text: str,
        session: Session,
        *,
        title: str,
        kind: str,
        domain: str,
        tags: Sequence[str],
        agent: str,
        priority: object,
        created_at: str,
        strict: bool,
    ) -> Row:
        """Keep a memory. Raises NotPermitted; UsageError for what is no text, no kind, or with `strict` no metadata;
        and as an edit."""
        self._guard.require(session, "write", f"{FOLDER}/memory.md", ADD)
        text = _must_say_something(text)
        told = read_memory(text)
        title = checked_title(title) if title else plain_title(told.title)
        told = _given(told, title, kind_named(kind), tags_of(tags))
        now = datetime.now(UTC).replace(microsecond=0)
        metadata = guarded(
            created_at=created_at or now,
            agent=_who(session, agent, told.tags, strict=strict),
            tags=told.tags,
            priority=priority,
            now=now,
            strict=strict,
        )
        warnings = [_ASSUMED[name] for name in metadata.assumed]
        if metadata.is_clamped:
            warnings.append(f"a priority is a number from 1 to 10: it has the nearest, {metadata.priority}")
        draft = MemoryDraft(
            id=new_id(),
            title=told.title,
            kind=told.kind,
            domain=line_of("domain", domain),
            tags=told.tags,
            created_at=metadata.created_at,
            agent=metadata.agent,
            priority=metadata.priority,
            created_by=session.changed_by,
            needs_review=bool(metadata.assumed),
        )
        draft, structured, trouble = self._structured(draft, told, text)
        path, raw, entered = self._entered(draft, session)
        first = draft.path(self._settings.timezone, 1)
        if path != first and self._is_told(first, session):
            warnings.append(f"{first} has another memory of this day and title; is it the same?")
        note = parse(path, raw)
        return {
            "notebook_id": note.wants,
            "path": path,
            "title": note.title,
            "kind": draft.kind,
            "domain": draft.domain,
            "tags": list(note.tags),
            "agent": draft.agent,
            "priority": draft.priority,
            "version": entered.versions.get(path),
            "status": note.status,
            "needs_review": draft.needs_review,
            "structured": structured,
            "warnings": [*warnings, *trouble, *entered.warnings],
        }

    def _structured(self, draft: MemoryDraft, told: Told, text: str) -> tuple[MemoryDraft, str, list[str]]:
        """The draft with its parts, those that were given or a model's; else with the text alone, to be reviewed."""
        title = plain_title(told.title) or title_of(told, text)
        if not told.missing and reads_as_meant(title, told):
            return replace(draft, title=title, told=told), GIVEN, [_of_repeated(name) for name in told.repeated]
        why = f"the text has no {', no '.join(told.missing)}" if told.missing else "its parts cannot be told apart"
        made, trouble = restructured(text, self._llm)
        if made is not None:
            made = _given(made, told.title, told.kind, told.tags)
            title = plain_title(made.title) or title
            if reads_as_meant(title, made, text):
                tags = made.tags if not told.tags else told.tags
                return replace(draft, title=title, kind=made.kind, tags=tags, told=made, text=text), BY_MODEL, []
            trouble = "the model's parts cannot be told apart"
        kept = f"{why}; it is kept as it is, to be reviewed: {trouble}"
        return replace(draft, title=title, text=text, needs_review=True), NONE, [kept]

    def _is_told(self, path: str, session: Session) -> bool:
        return self._guard.may(session, "read", path) and sees_all(session, path, self._settings.prompt)

    def _entered(self, draft: MemoryDraft, session: Session) -> tuple[str, bytes, Entered]:
        """Memories of one day and title are numbered, whoever else keeps some at the same moment."""
        raw = draft.raw()
        for number in range(1, _MOST_TRIES + 1):
            path = draft.path(self._settings.timezone, number)
            if self._vault.stamp(path) is not None:
                continue
            try:
                with self._guard.telling(session, ADD):
                    return path, raw, self._door.enter([Text(path, None, raw, "create", told="Keep a memory")], session)
            except Conflict:
                continue
        raise Conflict(path, "", digest_of(raw))


_ASSUMED = {
    "created_at": "created_at is no ISO 8601 date or time: it counts as made now, and is marked for review",
    "agent": "nobody is named who says this: the agent is unknown, and it is marked for review",
    "priority": "the priority is no number from 1 to 10: it has the usual one, and is marked for review",
}


def _of_repeated(name: str) -> str:
    return f"there is more than one {name.upper()}: the first counts, and what follows it stands there as text"


def _must_say_something(text: object) -> str:
    if not isinstance(text, str):
        raise UsageError("a memory is a text, as in: [DECISION] Lamps are lit at six")
    if refused := characters_refused(text):
        raise UsageError(f"the text cannot be written: {refused}")
    if all(each.isspace() or is_ignorable(each) for each in text):
        raise UsageError("the memory is empty; say what is to be kept")
    return text


def _given(told: Told, title: str, kind: str, tags: Sequence[str]) -> Told:
    """What a text tells, with what the caller said beside it."""
    return replace(told.named(title, kind), tags=tuple(dict.fromkeys((*tags, *told.tags))))


def _who(session: Session, agent: str, tags: Sequence[str], *, strict: bool) -> str:
    """Who says it: an agent for itself; for the owner, whom they or the tags name, else the owner; strictly, nobody."""
    if session.agent or agent:
        return session.agent or agent
    return _OWNER if session.kind == "owner" and not strict and not agent_of("", tags) else ""
