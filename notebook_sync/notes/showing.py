"""What of a note a session is shown: of what stands in the prompt, no more than the prompt shows. Pure.

Who may change such a file sees all of it; nobody else sees its comments, its frontmatter and the rules that expired.
"""

from __future__ import annotations

from datetime import date

from notebook_sync.config import PromptSettings
from notebook_sync.files.outline import outline
from notebook_sync.files.sections import sections_of
from notebook_sync.mirror.base import Document
from notebook_sync.mirror.document import section_fields
from notebook_sync.permissions import may, resources_of
from notebook_sync.sessions import Session
from prompt.comments import without_hidden


def shown_to(session: Session, path: str, text: str, settings: PromptSettings, today: date) -> str:
    """What of a note's text the session is shown."""
    if _sees_all(session, path, settings):
        return text
    return without_hidden(text, keep_grammar=False, today=today).text


def document_shown_to(session: Session, document: Document, settings: PromptSettings, today: date) -> Document:
    """The document, its content and its sections as the session is shown them.

    The sections' offsets are those in the content that is shown; their lines stay the file's.
    """
    if _sees_all(session, document["path"], settings):
        return document
    content = without_hidden(document["content"], keep_grammar=False, today=today).text
    sections, tokens = sections_of(content, outline(content).headings, encoding=settings.encoding)
    lines = {section["anchor"]: section["line"] for section in document["sections"]}
    return {
        **document,
        "content": content,
        "sections": [
            {**section_fields(section, content), "line": lines.get(section.anchor, section.line)}
            for section in sections
        ],
        "metadata": {**document["metadata"], "token_count": tokens, "extra": {}},
    }


def _sees_all(session: Session, path: str, settings: PromptSettings) -> bool:
    in_prompt = resources_of(path, session, settings) & {"runtime", "in the prompt", "core facts"}
    return not in_prompt or may(session, "write", path, settings)
