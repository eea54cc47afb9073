"""What a private note says in its file: its text, and above it fields that no caller can set or forge. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.files.excerpt import shorten, summary_of
from notebook_sync.files.fields import plain_tags
from notebook_sync.files.frontmatter import storable
from notebook_sync.files.new_note import note_text, slug_of
from notebook_sync.permissions import is_ignorable
from prompt.outline import Outline

GENERAL = "general"

# Fields that the program sets, or that a reader of a document takes for what it says of itself.
RESERVED = (
    *("id", "title", "summary", "created_by", "created_at", "tags", "status"),
    *("type", "topic", "session_id", "provenance", "notebook_id", "wants", "path", "collection", "content", "code"),
    *("sections", "metadata", "extra", "created_from", "updated_at", "version", "history", "source", "digest"),
    *("word_count", "token_count", "links", "problems", "stale", "usage", "score"),
)
_SEPARATORS = re.compile(r"[\s._-]+")
_LONGEST_LINE = 200
_LONGEST_TITLE = 80
_WORDS_OF_A_NAME = 6


@dataclass(frozen=True, slots=True)
class Draft:
    """A note that is to be written. `provenance` is the kind of the session that it comes from; `id` is "" for a note
    that has its path's."""

    content: str
    topic: str
    tags: Sequence[str]
    session_id: str
    provenance: str
    created_by: str
    created_at: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""

    def raw(self) -> bytes:
        """The bytes of its file. Raises UsageError for what a file cannot hold."""
        content = storable(self.content)
        if not content.strip():
            raise UsageError("the note is empty; say what is to be kept")
        fields = {
            "id": self.id or None,
            "title": _title_for(content),
            "type": "note",
            "topic": line_of("topic", self.topic) or GENERAL,
            "tags": tags_of(self.tags) or None,
            "session_id": line_of("session_id", self.session_id) or None,
            "provenance": self.provenance,
            "created_by": self.created_by,
            "created_at": self.created_at,
        }
        return note_text(fields | checked_metadata(self.metadata), content).encode()

    def name(self) -> str:
        """The name of its file, without `.md`: when it was made, and its first words."""
        words = " ".join(self.content.split()[:_WORDS_OF_A_NAME])
        return f"{self.created_at.astimezone(UTC):%Y-%m-%dT%H%M%SZ}-{slug_of(words)}"


def _title_for(content: str) -> str | None:
    """Its first words, where no heading of its own gives it a title; else it would be called as its file is."""
    outline = Outline(content)
    if any(section.level == 1 and section.title for section in outline.sections):
        return None
    return shorten(summary_of(outline), _LONGEST_TITLE) or None


def line_of(name: str, text: str) -> str:
    """A topic, or a session's id, as it is written and asked for: one line. Raises UsageError for what is too long."""
    line = " ".join(storable(text).replace("\0", " ").split())
    if len(line) > _LONGEST_LINE:
        raise UsageError(f"the {name} has {len(line)} characters; use at most {_LONGEST_LINE}")
    return line


def tags_of(tags: Sequence[str]) -> list[str]:
    """Tags as they are written, as those of a page. Raises UsageError for what is no list of texts."""
    if isinstance(tags, str):
        tags = tags.split(",")
    if not isinstance(tags, Sequence) or not all(isinstance(tag, str) for tag in tags):
        raise UsageError("tags must be a list of texts, as in ['keys', 'pier']")
    return list(plain_tags(line_of("tag", tag) for tag in tags))


def checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's own fields. Raises UsageError for a name that is reserved, or that looks like one."""
    if not isinstance(metadata, Mapping):
        raise UsageError(
            f"metadata is {type(metadata).__name__}; give values by their names, as in {{'confidence': 0.9}}"
        )
    for key in metadata:
        if reason := reason_against(key):
            raise UsageError(reason)
    confidence = metadata.get("confidence")
    if confidence is not None and not is_share(confidence):
        raise UsageError("confidence is a number from 0 to 1")
    return dict(metadata)


def reason_against(key: Any) -> str:
    """Why no metadata may have this name; "" for one that it may. None of RESERVED may it be, in any spelling that a
    person takes for it."""
    if not isinstance(key, str) or not key.strip():
        return "a name in the metadata is empty, or no text; name each value"
    if any(is_ignorable(each) or not each.isprintable() for each in key):
        return (
            f"the name {key!r} in the metadata has characters that nobody sees; use letters, digits, and _ between them"
        )
    if _folded(key) in _FOLDED:
        return f"the metadata cannot set {key!r}, which is the notebook's own; use another name"
    return ""


def is_share(value: Any) -> bool:
    """Whether it is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _folded(name: str) -> str:
    """What is left of a name when case, typographic forms and what parts its words do not count."""
    return _SEPARATORS.sub("", unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).casefold())


_FOLDED = frozenset(map(_folded, RESERVED))
