"""What of a note a session is shown: of what stands in the prompt, no more than the prompt shows. Pure.

Who may change such a file sees all of it; nobody else sees its comments, its frontmatter and the rules that expired.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from notebook_sync.mirror.base import Document
from notebook_sync.mirror.document import section_fields
from notebook_sync.permissions import may, resources_of
from notebook_sync.sessions import Session
from notebook_sync.settings import PromptSettings
from prompt import Prompt
from prompt.hidden import visible

if TYPE_CHECKING:
    from notebook_sync.files.note import Note
    from prompt import Part


def shown_to(session: Session, path: str, text: str, settings: PromptSettings, now: datetime) -> str:
    """What of a note's text the session is shown."""
    if sees_all(session, path, settings):
        return text
    return visible(text, now=now).text


def document_shown_to(session: Session, document: Document, settings: PromptSettings, now: datetime) -> Document:
    """The document as its file would make it if it held no more than the session is shown.

    The sections' offsets are those in the content that is shown; their lines stay the file's.
    """
    if sees_all(session, document["path"], settings):
        return document
    note = note_shown(document["path"], document["content"], settings, now)
    lines = {section["anchor"]: section["line"] for section in document["sections"]}
    shown = {
        **row_shown(document, note),
        "content": note.content,
        "sections": [
            {**section_fields(section, note.content), "line": lines.get(section.anchor, section.line)}
            for section in note.sections
        ],
        **note.fields,
        # That of the file would confirm a guess at what it hides.
        "source": {**document["source"], "digest": note.digest, "size": len(note.content.encode())},
        "metadata": {
            **document["metadata"],
            "tags": list(note.tags),
            "links": list(note.links),
            "word_count": note.word_count,
            "token_count": note.token_count,
            "extra": {},
        },
        "problems": [],
    }
    return shown if note.code is None else {**shown, "code": note.code}


def note_shown(path: str, text: str, settings: PromptSettings, now: datetime) -> Note:
    """The note that a file of the prompt is to who may not change it."""
    from notebook_sync.files.parse import parse  # no prompt needs YAML

    shown = visible(text, now=now).text
    return parse(path, shown.encode(), encoding=settings.encoding)


def row_shown(row: Document, note: Note) -> Document:
    """Light fields with what `note` says in place of what the file does."""
    told = {"title": note.title, "summary": note.summary, "tags": list(note.tags), "word_count": note.word_count}
    return {**row, **{name: value for name, value in told.items() if name in row}}


def prompt_shown_to(session: Session, prompt: Prompt, settings: PromptSettings) -> Prompt:
    """The prompt; of what expired in a file that the session may not change, only where and since when, and of the file
    itself neither digest nor length: they would confirm a guess at what it hides."""

    def shown(part: Part) -> Part:
        expired = tuple(replace(one, text="") for one in part.expired)
        return replace(part, expired=expired, digest="", tokens_raw=part.tokens_whole)

    parts = (part if sees_all(session, part.path, settings) else shown(part) for part in prompt.parts)
    return replace(prompt, parts=tuple(parts))


def sees_all(session: Session, path: str, settings: PromptSettings) -> bool:
    """Whether the session is shown the whole file: it is none of the prompt's, or the session may change it."""
    in_prompt = resources_of(path, session, settings) & {"runtime", "in the prompt", "core facts"}
    return not in_prompt or may(session, "write", path, settings)
