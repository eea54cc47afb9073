"""What a private note says in its file: its text, and above it fields that no caller can set or forge. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.files.frontmatter import storable
from notebook_sync.files.new_note import note_text, slug_of
from notebook_sync.files.outline import outline
from notebook_sync.files.prose import shorten, summary_of

GENERAL = "general"

# Fields that the program sets, or that a reader of a document takes for what it says of itself.
RESERVED = {
    *("id", "title", "summary", "created_by", "created_at", "tags", "status"),
    *("type", "topic", "session_id", "provenance", "notebook_id", "wants", "path", "collection", "content", "code"),
    *("sections", "metadata", "extra", "created_from", "updated_at", "version", "history", "source", "digest"),
    *("word_count", "token_count", "links", "problems", "stale", "usage", "score"),
}
_LONGEST_LINE = 200
_LONGEST_TITLE = 80
_WORDS_OF_A_NAME = 6


@dataclass(frozen=True, slots=True)
class Draft:
    """A note that is to be written. `provenance` is the kind of the session that it comes from; `id` is "" for a note
    that has its path's."""

    content: str
    topic: str
    tags: tuple[str, ...]
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
    structure = outline(content)
    if any(heading.level == 1 and heading.text for heading in structure.headings):
        return None
    return shorten(summary_of(content, structure), _LONGEST_TITLE) or None


def line_of(name: str, text: str) -> str:
    """A topic, or a session's id, as it is written and asked for: one line. Raises UsageError for what is too long."""
    line = " ".join(storable(text).replace("\0", " ").split())
    if len(line) > _LONGEST_LINE:
        raise UsageError(f"the {name} has {len(line)} characters; use at most {_LONGEST_LINE}")
    return line


def tags_of(tags: Sequence[str]) -> list[str]:
    """Tags as they are written: each once, without what a reader would drop."""
    lines = (line_of("tag", tag).lstrip("# ") for tag in tags)
    return list(dict.fromkeys(line for line in lines if line))


def checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's own fields. Raises UsageError for a name that is reserved, or that looks like one."""
    for key in metadata:
        if not isinstance(key, str) or not key.strip():
            raise UsageError("a name in the metadata is empty, or no text; name each value")
        if is_reserved(key):
            raise UsageError(f"the metadata cannot set {key!r}, which is the notebook's own; use another name")
    confidence = metadata.get("confidence")
    if confidence is not None and not is_share(confidence):
        raise UsageError("confidence is a number from 0 to 1")
    return dict(metadata)


def is_reserved(key: str) -> bool:
    """Whether the name is one of RESERVED, in any spelling that a person takes for it."""
    return unicodedata.normalize("NFKC", key).strip().casefold() in RESERVED


def is_share(value: Any) -> bool:
    """Whether it is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
