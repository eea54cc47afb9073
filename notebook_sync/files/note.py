"""What a file says, as values. Nothing here reads a disk or knows a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

COLLECTIONS = ("runtime", "pages", "code_snippets", "research_notes", "channels", "facts", "memories")
# What agents keep for all to find.
SHARED_COLLECTIONS = ("pages", "code_snippets", "research_notes")
STATUSES = ("draft", "in_progress", "complete", "archived")
RUNTIME_FILES = ("external-communications.md", "reminders.md", "standing-orders.md")
HISTORY_LIMIT = 50

# Raised when the same bytes would be parsed into another Note; rows with an older revision are parsed again.
PARSER_REVISION = 6


class Stamp(NamedTuple):
    """What `stat` says of a file: enough to tell, nearly always, that it is unchanged. Times in ns since the epoch.

    A named tuple, as `Known` and `Section` are: there are too many of them for anything dearer.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Section(NamedTuple):
    """A heading and what it heads, its child headings included.

    `line` is the heading's 1-based line in the file. `start` and `end` are offsets into `Note.content`, so that
    `content[start:end]` is the section with its heading. `token_count` covers the same span.
    """

    heading: str
    level: int
    anchor: str
    line: int
    start: int
    end: int
    token_count: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a file that did not stop it from being mirrored. `line` is 1-based, 0 for the whole file.

    `severe`: what the file means is in doubt (bad bytes, broken frontmatter), so an older good note is kept instead.
    """

    line: int
    message: str
    severe: bool = False

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


@dataclass(frozen=True, slots=True)
class Note:
    """One Markdown file, parsed. Equal bytes under an equal path give equal notes, on any machine.

    `wants` is the id the file asks for: frontmatter `id`, else the path without `.md`.
    `has_own_id` tells which of the two it was. `fields` holds what its collection adds (language, source_url, …).
    `created_at` is None unless frontmatter names it. `extra` keeps unknown frontmatter, safe for JSON and BSON:
    str, bool, int within 64 bits, finite float, None, aware UTC datetime, and lists and str-keyed dicts of these.
    `provenance` is "external" where somebody else's words stand in it, else None.
    """

    path: str
    collection: str
    wants: str
    has_own_id: bool
    digest: str
    title: str
    summary: str
    content: str
    sections: tuple[Section, ...] = ()
    code: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    created_by: str = "owner"
    created_at: datetime | None = None
    tags: tuple[str, ...] = ()
    status: str = "draft"
    word_count: int = 0
    token_count: int = 0
    links: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    provenance: str | None = None

    @property
    def broken(self) -> bool:
        """Whether what the file means is in doubt."""
        return any(problem.severe for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Ref:
    """What hot memory holds of a note: enough to know that it exists and what it is about, never its content.

    `action` is what happened since the ref was last written (created, updated, moved, touched, deleted; "" for
    nothing). `serial` grows with every write to the note's row, so that a late writer notices that it is late; `event`
    is the serial of the write that last changed text or path, or made or ended the row. `deleted` asks for the ref to
    be removed. `provenance` is as a Note's: title and summary are then somebody else's.
    """

    id: str
    title: str
    summary: str
    collection: str
    updated_at: datetime
    status: str
    version: int
    digest: str
    agent: str
    path: str
    action: str = ""
    serial: int = 0
    event: int = 0
    deleted: bool = False
    provenance: str | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """What git or an archive knows of a file's past, for a row that the store has never held.

    `history` is oldest first, at most HISTORY_LIMIT of `{version, timestamp, summary, changed_by}`. `created_from` is
    what `created_at` was taken from: git, or the file.
    """

    version: int
    created_at: datetime
    history: tuple[dict[str, Any], ...]
    created_from: str = "git"


def collection_of(path: str) -> str:
    """The collection a relative path belongs to: its first folder when that is a known one, else `pages`."""
    head, slash, _ = path.partition("/")
    return head if slash and head in COLLECTIONS else "pages"


def id_from_path(path: str) -> str:
    """`pages/plan.md` → `pages/plan`. Only an exact `.md` is dropped, so `plan.MD` beside it keeps an id of its own."""
    return path[:-3] if path.endswith(".md") else path
