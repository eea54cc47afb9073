"""What a text says of a memory by the template, what a memory's file says, and the metadata it gets. Pure.

The template is `[DECISION] title` with CONTEXT, REASONING, OUTCOME and TAGS. Nothing that a text says is lost: what is
in no part goes with one, a label in code is text, and no text can look like another part of the file, or end its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import MAXYEAR, MINYEAR, date, datetime, tzinfo
from typing import Any, NamedTuple

from notebook_sync.errors import UsageError
from notebook_sync.files.compose import code_block
from notebook_sync.files.fields import AGENT, DEFAULT_PRIORITY, HIGHEST_PRIORITY, KINDS
from notebook_sync.files.frontmatter import as_utc, read_time
from notebook_sync.files.page import shorten
from notebook_sync.files.parse import PARTS
from notebook_sync.permissions import is_ignorable
from notebook_sync.sessions import Session
from prompt.ends import closing_line
from prompt.outline import Outline, plain_text

# What a memory cannot do without to be structured, besides its kind.
NEEDED = ("context", "reasoning")
UNKNOWN = "unknown"
# What is longer, or more, is prose in the wrong place.
LONGEST_TITLE, LONGEST_TAG, MOST_TAGS = 200, 100, 50
_SHORT_TITLE = 80
_LEVEL, _DEEPEST = 2, 6  # of the headings of parts
_TAGS, _AFTER = "tags", "after"
# CONTEXT: …   **Context:** …   - Context: …   ## Context   ## CONTEXT: …
_LABEL = re.compile(
    rf"[ ]{{0,3}}(?:(?P<heading>\#{{1,6}})[ \t]+|[-*+][ \t]+)?[*_]{{0,3}}(?P<name>{'|'.join((*PARTS, _TAGS))})"
    r"[*_]{0,3}[ \t]*(?P<colon>[:\uff1a])?[*_]{0,3}[ \t]*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_KIND = re.compile(
    rf"[ ]{{0,3}}(?:\#{{1,6}}[ \t]+)?(?P<marks>[*_]{{0,3}})\[[ \t]*(?P<kind>{'|'.join(KINDS)})[ \t]*\][*_]{{0,3}}"
    r"[ \t]*[:\uff1a-]?[ \t]*(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_LIST_MARK = re.compile(r"[ ]{0,3}[-*+][ \t]+")
_CLOSING_MARKS = re.compile(r"(^|[ \t])#+[ \t]*\Z")
_ATX = re.compile(r"( {0,3})#{1,6}")
_MARK = re.compile(r"([\\`*_\[\]<>#!&~])")
_GO_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) ([+-]\d{4})(?: .*)?")


class Template(NamedTuple):
    """What a text says by the template, "" and () for what it leaves out. `parts` has those of PARTS that say
    something, as Markdown."""

    kind: str = ""
    title: str = ""
    parts: Mapping[str, str] = {}
    tags: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """What the text needs to be structured, and does not say."""
        return [*(["kind"] if not self.kind else []), *(name for name in NEEDED if name not in self.parts)]

    def named(self, title: str, kind: str, tags: Iterable[str]) -> Template:
        """With what a caller says, "" for nothing; another kind or title that the text gives goes with its first
        part."""
        title, kind = plain_title(title)[:LONGEST_TITLE] or self.title, kind or self.kind
        is_same = self.title in ("", title) and self.kind in ("", kind)
        opening = "" if is_same else f"[{self.kind.upper()}] {self.title}".removeprefix("[] ")
        every = tuple(dict.fromkeys((*plain_tags(tags), *self.tags)))
        return Template(kind, title, _joined_to(self.parts, opening, at=0), every)


def read_template(text: str) -> Template:
    """What `text` says. Labels are at the beginning of a line, in any case and order, also as headings; of two with one
    name, the second is text."""
    kind = title = part = ""
    lines: dict[str, list[str]] = {"": []}
    for line, is_hidden in _lines(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")):
        label = None if is_hidden else _label(line)
        opening = None if is_hidden or kind or part else _KIND.fullmatch(line)
        if label and label[0] not in lines:
            part, rest = label
            lines[part] = [rest]
        elif opening:
            said = opening["title"].rstrip().removesuffix(opening["marks"])
            kind, title = opening["kind"].casefold(), plain_title(_CLOSING_MARKS.sub("", said))
            if len(title) > LONGEST_TITLE:
                title = ""
                lines[part].append(said)
        else:
            if part == _TAGS and not _continues_tags(lines[_TAGS], line):
                part = _AFTER
            lines.setdefault(part, []).append(line)
    said_by = {name: "\n".join(found).strip("\n").rstrip() for name, found in lines.items()}
    heading, preamble = ("", said_by[""].strip()) if title else _split_heading(said_by[""])
    tags = tags_in(said_by.get(_TAGS, ""))
    no_tags = f"TAGS: {said_by[_TAGS]}" if said_by.get(_TAGS) and not tags else ""
    parts = _joined_to({name: said_by[name] for name in PARTS if said_by.get(name)}, preamble, at=0)
    parts = _joined_to(parts, _joined(no_tags, said_by.get(_AFTER, "")), at=-1)
    return Template(kind, title or heading, parts, tags)


def tags_in(text: str) -> tuple[str, ...]:
    """The tags of a line or a list, between commas or lines, or spaces where each has its #. None of what is too long
    or too much for tags."""
    pieces = (_LIST_MARK.sub("", piece).strip(" \t\"'`[]") for piece in re.split(r"[,;\n]|\s(?=#)", text))
    tags = plain_tags(pieces)
    return tags if len(tags) <= MOST_TAGS and all(len(tag) <= LONGEST_TAG for tag in tags) else ()


def plain_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags, each once, without their # and on one line."""
    return tuple(dict.fromkeys(filter(None, (plain_title(tag).lstrip("# ") for tag in tags))))


def plain_title(text: str) -> str:
    """One line of what can be seen, in the order it is written; "" where there is nothing."""
    seen = (each for each in text if each.isspace() or (each.isprintable() and not is_ignorable(each)))
    return " ".join("".join(seen).split())


def title_of(read: Template, text: str) -> str:
    """The title of a memory: its own, else the beginning of what it says."""
    said = read.title or plain_text(next(iter(read.parts.values()), text)) or " ".join(text.split())
    return read.title or plain_title(shorten(said[: 4 * _SHORT_TITLE], _SHORT_TITLE)) or "Memory"


# ---- the file


def body_of(title: str, parts: Mapping[str, str], original: str = "") -> str:
    """The Markdown of a memory with its parts; below a rule, in a fence, the text that they were made of."""
    sections = "".join(f"\n## {name.capitalize()}\n\n{contained(text)}\n" for name, text in parts.items())
    below = f"\n---\n\n{code_block(original, 'text')}" if original else ""
    heading = title if plain_text(f"# {title}") == title else _MARK.sub(r"\\\1", title)
    return f"# {heading}\n{sections}{below}"


def contained(text: str) -> str:
    """A part's text so that nothing in it ends the part: its headings are below the part's own, what it opens is
    closed."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    sections = Outline(text).sections
    deeper = max(_LEVEL + 1 - min((each.level for each in sections), default=_DEEPEST), 0)
    pieces, done = list[str](), 0
    for each in sections:
        pieces += [text[done : each.start], _heading(text[each.start : each.body], min(each.level + deeper, _DEEPEST))]
        done = each.body
    text = "".join(pieces) + text[done:]
    closing = closing_line(text)
    return f"{text}\n{closing}" if closing else text


# ---- metadata


def guarded(
    *, created_at: object, agent: str, priority: float | None, now: datetime, zone: tzinfo, strict: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields created_at, agent and priority of a memory: the time in ISO 8601, else `now`; the agent, else
    "unknown"; the nearest priority from 1 to 10, by default 7. And by field, a warning where that is not what was said.
    `strict`: raises UsageError instead of assuming anything."""
    moment, warnings = moment_of(created_at, zone), dict[str, str]()
    rank = DEFAULT_PRIORITY if priority is None else min(max(priority, 1), HIGHEST_PRIORITY)
    rank = round(rank) if math.isfinite(rank) else DEFAULT_PRIORITY
    if moment is None:
        said = "missing" if created_at in (None, "") else repr(str(created_at)[:40])
        warnings["created_at"] = f"created_at is {said}, not an ISO 8601 date or time: now counts"
    if not agent:
        warnings["agent"] = "no agent is named: it is unknown; give an agent, or a tag like agent:scribe"
    if priority is not None and not 1 <= priority <= HIGHEST_PRIORITY:
        warnings["priority"] = f"the priority is a number from 1 to {HIGHEST_PRIORITY}: {rank} counts"
    if strict and warnings:
        raise UsageError(next(iter(warnings.values())).partition(": ")[0], next="correct it, or leave out strict")
    return {"created_at": moment or now, "agent": agent or UNKNOWN, "priority": rank}, warnings


def moment_of(value: object, zone: tzinfo) -> datetime | None:
    """What frontmatter reads as a date or time, in UTC, one without a zone in `zone`; None for anything else, and at
    either end of the calendar, where another zone has no such time."""
    moment = read_time(value.strip(), zone) if isinstance(value, str) else value
    utc = as_utc(moment, zone) if isinstance(moment, date) else None
    return utc if utc and MINYEAR < utc.year < MAXYEAR else None


def go_moment(value: object, zone: tzinfo) -> datetime | None:
    """A time as Go prints it, in UTC; None for anything else."""
    found = _GO_TIME.fullmatch(str(value).strip())
    return moment_of(f"{found[1]}{found[2]}", zone) if found else None


def agent_of(agent: object, tags: Iterable[str]) -> str:
    """The name of the agent: the one that is given, else that of the first tag that names one; "" without any. Nobody
    is `unknown`, and an agent by the name of the program is none."""
    named = [agent] if isinstance(agent, str) else []
    for each in (*named, *(tag for tag in tags if tag.startswith(AGENT))):
        with suppress(UsageError):
            if name := each.removeprefix(AGENT).strip():
                return Session.task(name).agent
    return ""


# ---- helpers


def _lines(text: str) -> list[tuple[str, bool]]:
    """Each line of a text whose lines end in LF alone, and whether it is in code or in a comment."""
    hidden = {
        number
        for block in Outline(text).root.walk()
        if block.type in ("fence", "code_block") or (block.type == "html_block" and block.content.startswith("<!--"))
        for number in range(block.first, block.last)
    }
    return [(line, number in hidden) for number, line in enumerate(text.split("\n"))]


def _label(line: str) -> tuple[str, str] | None:
    """The part that a line begins, and what it says of it."""
    found = _LABEL.fullmatch(line)
    if found is None:
        return None
    rest = _CLOSING_MARKS.sub("", found["rest"]).rstrip() if found["heading"] else found["rest"]
    is_label = found["colon"] or (found["heading"] and not rest)
    return (found["name"].casefold(), rest) if is_label else None


def _continues_tags(tags: Sequence[str], line: str) -> bool:
    """Whether a line below the label is one more of its tags, or separates them from their label."""
    return not line.strip() or not any(each.strip() for each in tags) or _LIST_MARK.match(line) is not None


def _split_heading(text: str) -> tuple[str, str]:
    """The title that a heading above all parts gives, and what else is there."""
    first = next(iter(Outline(text).sections), None)
    if first is None or first.level != 1:
        return "", text.strip()
    written = _heading(text[first.start : first.body].strip(), 1).strip().removeprefix("#")
    title = plain_title(_CLOSING_MARKS.sub("", written))
    if not 0 < len(title) <= LONGEST_TITLE:
        return "", text.strip()
    return title, _joined(text[: first.start].strip(), text[first.body :].strip())


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def _joined_to(parts: Mapping[str, str], text: str, *, at: int) -> Mapping[str, str]:
    """The parts with more text above the first (`at` 0) or below the last (-1)."""
    if not parts or not text:
        return parts
    name = list(parts)[at]
    return {**parts, name: _joined(parts[name], text) if at else _joined(text, parts[name])}


def _heading(source: str, level: int) -> str:
    """A heading of another level; one that is underlined becomes one with marks."""
    atx = _ATX.match(source)
    if atx:
        return f"{atx[1]}{'#' * level}{source[atx.end() :]}"
    end = "\n" if source.endswith("\n") else ""
    return f"{'#' * level} {' '.join(source.rstrip().split(chr(10))[:-1])}{end}"
