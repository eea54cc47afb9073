"""The brief as text: its sections in at most so many tokens, cut without breaking anything. Pure.

All text of notes is quoted, so that nothing in it begins a section, a fence or a list of the brief. What is where
depends on the material alone, never on a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import NamedTuple

from notebook_sync.files.page import plain, shorten, without_comments
from prompt import Count, fence_external, quote, trim, visible

TASK, CONTEXT, DECISIONS, PROBLEMS = "Task", "Relevant Context", "Decisions", "Known Problems"
PATTERNS, RISKS, RELATED, METADATA = "Patterns", "Risks", "Related Notes", "Metadata"
HEADINGS = (TASK, CONTEXT, DECISIONS, PROBLEMS, PATTERNS, RISKS, RELATED)
# The least that a brief may have, in tokens; the fence around an external task takes up to half of the second.
LEAST_TOKENS, LEAST_FENCED_TOKENS = 64, 128
_OF_KIND = {"decision": DECISIONS, "problem": PROBLEMS, "pattern": PATTERNS}
_TITLE, _NOTHING = "# Task Brief", "None found."
# The parts of the brief that risks, related notes, metadata and the task have at most.
_OF_RISKS, _OF_RELATED, _OF_METADATA, _OF_TASK = 6, 8, 5, 3
# The parts that the best memory, other primary ones and supporting ones have at most, or the tokens, if more.
_CAP_OF_BEST, _CAP_OF_PRIMARY, _CAP_OF_OTHERS = (3, 400), (5, 200), (10, 100)
# Tokens of a heading, of what separates two texts, and the least of a memory that is worth showing.
_HEADING, _SEAM, _WORTH_SHOWING = 8, 2, 40
# Empty sections are shown where all headings are a tenth of the brief.
_ROOM_FOR_HEADINGS = 10 * _HEADING * (len(HEADINGS) + 1)
# At the start of a line, what makes a block of Markdown of it.
_BLOCK = re.compile(r"\A(\d{0,9})(#{1,6}(?=\s|\Z)|[-+*>](?=\s|\Z)|>|[.)](?<=\d.)(?=\s|\Z)|`{3}|~{3})")
_TICKS = re.compile(r"`+")


class Entry(NamedTuple):
    """A memory in a brief: `head` names it, `links` are lines, `body` is its text. `path` names it where it is cut."""

    id: str
    path: str
    kind: str
    is_primary: bool
    similarity: float
    head: str
    body: str
    links: Sequence[str] = ()


class Risk(NamedTuple):
    """A line about the memories with these ids, left out where one of them is not in the brief."""

    about: frozenset[str]
    line: str


@dataclass(frozen=True, slots=True)
class Material:
    """What a brief is made of: the task, entries with those first that matter most, risks, lines that name related
    notes, and the lines of metadata for the ids of the entries in it. An external task is fenced."""

    task: str
    entries: Sequence[Entry] = ()
    risks: Sequence[Risk] = ()
    related: Sequence[str] = ()
    metadata: Callable[[Sequence[str]], Sequence[str]] = lambda _: ()
    is_external: bool = False


class Brief(NamedTuple):
    """A brief of `tokens` tokens. `stable` is the same without its metadata. `kept` are the ids of the entries in it;
    `related` is how many of the lines of related notes are."""

    text: str
    stable: str
    tokens: int
    kept: tuple[str, ...]
    related: int


def write_brief(material: Material, max_tokens: int, count: Count) -> Brief:
    """The brief in at most `max_tokens` tokens.

    Each entry is cut to its cap. What does not fit is left out in this order: the last entries, related notes,
    metadata, the end of the task.
    """
    fitting = _Fitting(material, max_tokens, count)
    target = max_tokens
    while (brief := fitting.brief(target)).tokens > max_tokens and target > 0:
        target -= brief.tokens - max_tokens  # the counts of the parts are nearly the count of the whole
    return brief


class _Fitting:
    """One material in one limit. Each part is counted once, and each layout as a whole."""

    def __init__(self, material: Material, limit: int, count: Count) -> None:
        self._material, self._limit, self._count = material, limit, count
        self._shows_empty = limit >= _ROOM_FOR_HEADINGS
        self._show_task = fence_task if material.is_external else quote
        self._texts = [self._capped(place, entry) for place, entry in enumerate(material.entries)]
        self._sizes = [count(text) + _SEAM for text in self._texts]
        self._task = count(self._show_task(material.task)) + _SEAM

    def brief(self, target: int) -> Brief:
        """The brief in about `target` tokens."""
        material, limit = self._material, self._limit
        room = target - _HEADING * (len(HEADINGS) if self._shows_empty else 2)
        of_risks, of_metadata = limit // _OF_RISKS, min(limit // _OF_METADATA, room // 2)
        related = self._first(material.related, min(limit // _OF_RELATED, room // 2))
        metadata = self._first(material.metadata([entry.id for entry in material.entries]), of_metadata)
        risks = self._first([risk.line for risk in material.risks], of_risks)
        room -= sum(map(self._size, (related, metadata, risks)))
        task = min(self._task, max(room // _OF_TASK, room - sum(self._sizes)))
        texts, left = self._entries(room - task)
        kept = material.entries[: len(texts)]
        ids = tuple(entry.id for entry in kept)
        risks = self._first([risk.line for risk in material.risks if risk.about.issubset(ids)], of_risks)
        shown = {
            TASK: self._trimmed(material.task, task + max(left, 0), self._show_task),
            RISKS: "\n".join(risks),
            RELATED: "\n".join(related),
            **_by_heading(kept, texts),
        }
        headings = [heading for heading in HEADINGS if shown.get(heading) or self._shows_empty]
        blocks = [f"## {heading}\n\n{shown.get(heading) or _NOTHING}\n" for heading in headings]
        omission = self._omission(len(material.entries) - len(kept))
        stable = "\n".join([f"{_TITLE}\n", *([f"{omission}\n"] if omission else []), *blocks])
        about = "\n".join(self._first(material.metadata(ids), of_metadata))
        text = f"{stable}\n## {METADATA}\n\n{about}\n" if about else stable
        return Brief(text, stable, self._count(text), ids, len(related))

    def _entries(self, room: int) -> tuple[list[str], int]:
        """The first entries with room for them, a part of the next, and what room is left; where some are left out,
        with room for the line that says so."""
        if sum(self._sizes) <= room:
            return self._texts, room - sum(self._sizes)
        room -= self._count(self._omission(len(self._texts))) + _SEAM
        texts: list[str] = []
        for entry, text, size in zip(self._material.entries, self._texts, self._sizes, strict=True):
            if size > room:
                cap = room - self._count(entry.head) - 2 * _SEAM - _HEADING
                if cap < _WORTH_SHOWING:
                    break
                text, size = _joined(entry.head, self._trimmed(entry.body, cap, quote, entry.path)), room
            texts.append(text)
            room -= size
        return texts, room

    def _capped(self, place: int, entry: Entry) -> str:
        """An entry as it is shown: its links and its text have at most its cap."""
        part, least = _CAP_OF_BEST if not place else _CAP_OF_PRIMARY if entry.is_primary else _CAP_OF_OTHERS
        cap = max(self._limit // part, least)
        links = self._first(entry.links, cap // 2)
        body = self._trimmed(entry.body, cap - self._size(links), quote, entry.path)
        return _joined(entry.head, "\n".join(links), body)

    def _trimmed(self, text: str, cap: int, show: Callable[[str], str], path: str = "") -> str:
        """A text as it is shown, in at most so many tokens."""
        shown = show(text)
        if self._count(shown) <= cap:
            return shown
        return show(trim(text, cap, lambda each: self._count(show(each)), path=path).text.strip("\r\n"))

    def _first(self, lines: Sequence[str], room: int) -> list[str]:
        """The first lines with room for them and a heading."""
        sizes = accumulate((self._count(line) + 1 for line in lines), initial=_HEADING)
        return [line for line, size in zip(lines, islice(sizes, 1, None), strict=False) if size <= room]

    def _size(self, lines: Sequence[str]) -> int:
        return sum(self._count(line) + 1 for line in lines) + (_HEADING if lines else 0)

    def _omission(self, entries: int) -> str:
        """The line that replaces so many entries, with a call that has room for all; "" for none."""
        if not entries:
            return ""
        every = self._material.entries
        lines = [*self._material.related, *(risk.line for risk in self._material.risks)]
        lines += [
            *self._material.metadata([each.id for each in every]),
            *(line for each in every for line in each.links),
        ]
        whole = sum(self._count(quote(each.body)) + self._count(each.head) + 2 * _SEAM for each in every)
        enough = max(self._limit, (self._task + whole + 2 * self._size(lines) + _ROOM_FOR_HEADINGS) * 11 // 10)
        omitted = "1 memory" if entries == 1 else f"{entries} memories"
        return f"[… {omitted} omitted: compile_context with max_tokens {(enough // 100 + 1) * 100}]"


def fence_task(text: str) -> str:
    """The task of an external session, which is not the owner's word."""
    return fence_external(text, "the task of an external session")


def body_of(text: str, title: str = "") -> str:
    """What a reader sees of a note, without a heading at its top that repeats the title. Dated items stay: a brief says
    the same on every day."""
    shown = visible(text, now=None).text.strip("\r\n").rstrip()
    return shown.removeprefix(f"# {title}\n").lstrip("\r\n") if title else shown


def one_line(text: str, length: int) -> str:
    """Words of a title, a summary or a reason, on one line, without marks."""
    return shorten(plain(without_comments(text)), length)


def at_start(line: str) -> str:
    """The same text, also where a line or the item of a list begins with it."""
    return _BLOCK.sub(r"\1\\\2", line)


def in_code(text: str) -> str:
    """A path or an id, to the letter, on one line."""
    inside = text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)
    if "`" not in inside:
        return f"`{inside}`"
    mark = "`" * (1 + max(map(len, _TICKS.findall(inside))))
    space = " " if inside.startswith("`") or inside.endswith("`") else ""
    return f"{mark}{space}{inside}{space}{mark}"


def _by_heading(entries: Sequence[Entry], texts: Sequence[str]) -> dict[str, str]:
    """The entries by the heading for their kind, those first that have most to do with the task."""
    pairs = zip(entries, texts, strict=True)
    found: dict[str, str] = {}
    for entry, text in sorted(pairs, key=lambda pair: (not pair[0].is_primary, -pair[0].similarity, pair[0].id)):
        heading = _OF_KIND.get(entry.kind, CONTEXT)
        found[heading] = _joined(found.get(heading, ""), text)
    return found


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))
