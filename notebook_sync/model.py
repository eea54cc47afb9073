"""What one Markdown file says, as values. Nothing here reads a disk or knows a database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec

COLLECTIONS = ("runtime", "pages", "code_snippets", "research_notes", "channels", "facts", "memories")
STATUSES = ("draft", "in_progress", "complete", "archived")
RUNTIME_FILES = (
    "runtime/external-communications.md",
    "runtime/reminders.md",
    "runtime/standing-orders.md",
)
CORE_FACTS = "facts/core.md"
SETTINGS_FILE = "notebook.toml"
HISTORY_LIMIT = 50
# The counter that there is once every file was looked at.
ADOPTED = "adopted"

# Raised when the same bytes would be parsed into another Note or other rows; older rows are parsed again.
PARSER = 2


class Stamp(NamedTuple):
    """What `stat` says of a file, clamped to signed 64 bits. Times are ns since the epoch.

    A read that cannot prove that the file is at rest returns `UNSETTLED`, which equals no stamp of a scan, so the next
    look reads the file again.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


UNSETTLED = Stamp(-1, 0, 0, 0)

# What an edit of a note does: see `files.edits.Edit`.
Action = Literal[
    "append_to_section",
    "replace_section",
    "remove_entry",
    "toggle_checkbox",
    "add_section",
    "move_entry",
    "set_frontmatter",
    "write",
]


class Section(NamedTuple):
    """A heading and what belongs to it, its subsections included.

    `line` is the heading's 1-based line in the file. `start` and `end` are character offsets into `Note.content`:
    `content[start:end]` is the section with its heading. `anchor` is unique in the note, in GitHub's style.
    """

    heading: str
    level: int
    anchor: str
    line: int
    start: int
    end: int


class Link(NamedTuple):
    """A link to another note or file, as written: `target` without label, heading and block.

    `fragment` is "" or the part behind `#` (`^name` for a block). `line` is 1-based in the file.
    """

    target: str
    fragment: str
    line: int
    kind: Literal["wiki", "embed", "markdown"] = "wiki"


class FactLine(NamedTuple):
    """One fact as a file states it: a top-level list item below `section`. `line` is 1-based in the file.

    `id` is the first 16 hex digits of SHA-256 of the text. `pin` is the importance its trailing comment sets, 0 to 1,
    None without one. `archived` is what the comment of an archived fact says: `{date, reason, from}`.
    """

    id: str
    text: str
    section: str
    line: int
    pin: float | None = None
    archived: Mapping[str, str] | None = None


class Problem(msgspec.Struct, frozen=True):
    """Something wrong with a file that does not keep it out of the index. `line` is 1-based, 0 for the whole file.

    `severe`: what the file means is in doubt (undecodable bytes, broken frontmatter), so that the last good row is
    kept. A problem that is not severe is a warning.
    """

    line: int
    message: str
    severe: bool = False

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


class Note(msgspec.Struct, frozen=True):
    """One Markdown file, parsed. Equal bytes at an equal path give equal notes, on any machine.

    `wanted_id` is frontmatter `id`, else the path without `.md`; `has_own_id` says which. `created_at` is what
    frontmatter names: aware UTC, or None. `fields` holds what its collection adds (language, source_url, topic,
    priority, relations …), `extra` all other frontmatter, safe for JSON and BSON: str, bool, int within 64 bits,
    finite float, None, aware UTC datetime, date, and lists and str-keyed dicts of these. `aliases` and `tags` are as
    written (without `#`). `provenance` is "external" for text that others wrote, else "". `valid_until` is the last
    moment at which the note holds, None for no end.
    """

    path: str
    collection: str
    wanted_id: str
    has_own_id: bool
    digest: str
    title: str
    summary: str
    content: str
    sections: tuple[Section, ...] = ()
    code: str | None = None
    fields: Mapping[str, Any] = msgspec.field(default_factory=dict)
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict)
    created_by: str = "owner"
    created_at: datetime | None = None
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    status: str = "draft"
    word_count: int = 0
    links: tuple[Link, ...] = ()
    facts: tuple[FactLine, ...] = ()
    problems: tuple[Problem, ...] = ()
    provenance: str = ""
    valid_until: datetime | None = None

    @property
    def broken(self) -> bool:
        """Whether what the file means is in doubt."""
        return any(problem.severe for problem in self.problems)


def is_current(superseded_by: str | None, valid_until: datetime | None, now: datetime) -> bool:
    """Whether a note still holds: nothing replaces it, and its time is not over."""
    return not superseded_by and (valid_until is None or now <= valid_until)


def collection_of(path: str) -> str:
    """The collection of a relative path: its first folder where that is a known one, else `pages`."""
    head, slash, _ = path.partition("/")
    return head if slash and head in COLLECTIONS else "pages"


def id_from_path(path: str) -> str:
    """`pages/plan.md` → `pages/plan`. Only an exact `.md` is dropped, so that `plan.MD` keeps an id of its own."""
    return path.removesuffix(".md")
