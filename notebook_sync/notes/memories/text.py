"""What a memory says in its file: fields that a reader of the notebook knows, above its parts or the text itself. Pure.

No text in it can look like another part of it, or like the original of itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from notebook_sync.files.excerpt import shorten, summary_of
from notebook_sync.files.frontmatter import storable
from notebook_sync.files.names import TURNING
from notebook_sync.files.new_note import note_text, slug_of
from notebook_sync.mirror.memories import Link
from notebook_sync.notes.memories.template import Told
from notebook_sync.permissions import is_ignorable
from prompt.ends import closing_line
from prompt.outline import Outline, plain_text

FOLDER = "memories"
# Where memories lie that are of no kind.
UNSTRUCTURED = "unstructured"
# What a memory is called that says nothing that could be read.
UNTITLED = "Memory"
# The level of the headings of parts; those in a part's own text are below it.
_LEVEL = 2
_DEEPEST = 6
_LONGEST_TITLE = 80
_MARK = re.compile(r"([\\`*_\[\]<>#!&~])")
_ATX = re.compile(r"( {0,3})(#{1,6})")


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory that is to be written. `told` are its parts, None where it has none; `text` is then all it says, and
    otherwise what they were made of, "" where they are as they were given."""

    id: str
    title: str
    kind: str
    domain: str
    tags: Sequence[str]
    created_at: datetime
    agent: str
    priority: int
    created_by: str
    needs_review: bool = False
    told: Told | None = None
    text: str = ""

    def raw(self) -> bytes:
        """The bytes of its file. Raises UsageError for what a file cannot hold."""
        fields = {
            "id": self.id,
            "title": self.title,
            "kind": self.kind or None,
            "domain": self.domain or None,
            "tags": list(self.tags) or None,
            "created_at": self.created_at,
            "agent": self.agent or None,
            "priority": self.priority,
            "created_by": self.created_by,
            "needs_review": True if self.needs_review else None,
        }
        content = storable(self.text) if self.told is None else body_of(self.title, self.told, storable(self.text))
        return note_text(fields, content).encode()

    def path(self, timezone: tzinfo, number: int = 1) -> str:
        """Where it is to lie: by its kind, its day and its title; `number` tells several apart."""
        name = f"{day_of(self.created_at, timezone)}-{slug_of(self.title, 'memory')}"
        return f"{FOLDER}/{self.kind or UNSTRUCTURED}/{name}{'' if number == 1 else f'-{number}'}.md"


def body_of(title: str, told: Told, original: str = "") -> str:
    """The Markdown of a memory with its parts; below a rule, in a fence, the text that they were made of."""
    parts = "".join(f"\n## {name.capitalize()}\n\n{contained(text)}\n" for name, text in told.parts.items())
    below = f"\n---\n\n{fenced(original)}" if original else ""
    return f"# {_as_heading(title)}\n{parts}{below}"


def reads_as_meant(title: str, told: Told, original: str = "") -> bool:
    """Whether the Markdown of this memory has its parts where they are to be, and none more."""
    titles = [one.title for one in Outline(body_of(title, told, original)).sections if one.level <= _LEVEL]
    return titles[1:] == [name.capitalize() for name in told.parts]


def contained(text: str) -> str:
    """A part's text so that nothing in it ends the part: its headings are below the part's own, what it opens is
    closed."""
    text = storable(text).replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    sections = Outline(text).sections
    least = min((section.level for section in sections), default=_DEEPEST)
    pieces, done = [], 0
    for section in sections:
        level = min(section.level + max(_LEVEL + 1 - least, 0), _DEEPEST)
        pieces += [text[done : section.start], _heading(text[section.start : section.body], level)]
        done = section.body
    text = "".join(pieces) + text[done:]
    closing = closing_line(text)
    return f"{text}\n{closing}" if closing else text


def fenced(text: str) -> str:
    """The text to the character in a code block that nothing in it ends, on lines of its own."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}\n"


def title_of(told: Told, text: str) -> str:
    """What a memory is called that has no title: its first heading, else the beginning of what it says."""
    heading = next((one.title for one in Outline(text).sections if one.level == 1 and one.title), "")
    said = heading or next(filter(None, told.parts.values()), "") or text
    words = heading or summary_of(Outline(said)) or " ".join(said.split())
    return plain_title(shorten(words[: _LONGEST_TITLE * 4], _LONGEST_TITLE)) or UNTITLED


def plain_title(text: str) -> str:
    """One line of what can be seen, and reads the way it is written; "" where there is nothing of that."""
    line = " ".join("".join(each for each in text if each.isprintable() and each not in TURNING).split())
    return "" if all(is_ignorable(each) for each in line) else line


def day_of(moment: datetime, timezone: tzinfo) -> str:
    """The day of a moment, as the name of a file has it."""
    try:
        return moment.astimezone(timezone).date().isoformat()
    except OverflowError:  # at either end of the calendar
        return moment.date().isoformat()


def fields_of(link: Link) -> dict[str, Any]:
    """A link as frontmatter has it: what says nothing is left out."""
    fields = {"type": link.type, "to": link.to, "confidence": link.confidence}
    more = {"reasoning": link.reasoning, "source": link.source, "synthesis_id": link.synthesis_id}
    return {**fields, **{name: value for name, value in more.items() if value}}


def _heading(source: str, level: int) -> str:
    """A heading of another level; one that is underlined becomes one with marks."""
    end = "\n" if source.endswith("\n") else ""
    atx = _ATX.match(source)
    if atx is None:
        return f"{'#' * level} {' '.join(source.rstrip().split(chr(10))[:-1])}{end}"
    return f"{atx[1]}{'#' * level}{source[atx.end() :]}"


def _as_heading(title: str) -> str:
    """The title so that it reads as it is."""
    return title if plain_text(f"# {title}") == title else _MARK.sub(r"\\\1", title)
