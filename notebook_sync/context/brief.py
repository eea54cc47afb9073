"""The brief as text: its sections in at most so many tokens, cut without breaking anything. Pure.

All text of notes is quoted, so that nothing in it begins a section, a fence or a list of the brief. What is where
depends on the material alone, never on a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from notebook_sync.context.candidates import Choice, Link
from notebook_sync.files.page import plain, shorten, without_comments
from notebook_sync.store.rows import Row
from prompt import Count, fence_external, omission_line, quote, trim, visible

HEADINGS = ("Task", "Relevant Context", "Decisions", "Known Problems", "Patterns", "Risks", "Related Notes")
METADATA = "Metadata"
# The least that a brief may have, in tokens; the fence around an external task takes up to half of the second.
LEAST_TOKENS, LEAST_FENCED_TOKENS = 64, 128
_TASK, _OTHERS, *_, _RISKS, _RELATED = HEADINGS
_OF_KIND = {"decision": HEADINGS[2], "problem": HEADINGS[3], "pattern": HEADINGS[4]}
_TITLE, _NOTHING, _NO_TITLE = "# Task Brief", "None found.", "(no title)"
# The parts of the brief that risks, related notes, metadata and the task have at most.
_OF_RISKS, _OF_RELATED, _OF_METADATA, _OF_TASK = 6, 8, 5, 3
# The parts that the best memory, other primary ones and supporting ones have at most, or the tokens, if more.
_CAP_OF_BEST, _CAP_OF_PRIMARY, _CAP_OF_OTHERS = (3, 400), (5, 200), (10, 100)
# Tokens of a heading, of what separates two texts, and the least of a memory that is worth showing.
_HEADING, _SEAM, _WORTH_SHOWING = 8, 2, 40
# Empty sections are shown where all headings are a tenth of the brief.
_ROOM_FOR_HEADINGS = 10 * _HEADING * (len(HEADINGS) + 1)
# Characters of a memory that a brief may show, since to cut more of them would take seconds; of a title, and of the
# words of a link or a summary; and the links of one memory.
_LONGEST_BODY, _LONGEST_TITLE, _LONGEST_REASON, _LONGEST_SUMMARY, _MOST_LINKS = 100_000, 120, 160, 200, 5
# How a link reads from the memory where it begins, and from the one where it ends.
_VERBS = {
    "causes": ("causes", "is caused by"),
    "solves": ("solves", "is solved by"),
    "contradicts": ("contradicts", "is contradicted by"),
    "expands": ("expands on", "is expanded on by"),
    "supersedes": ("supersedes", "is superseded by"),
    "similar": ("is like", "is like"),
}
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
        # The task of an external session is not the owner's word.
        fenced = partial(fence_external, source="the task of an external session")
        self._show_task: Callable[[str], str] = fenced if material.is_external else quote
        parts = [self._capped(place, entry) for place, entry in enumerate(material.entries)]
        self._texts = [_joined(*each) for each in parts]
        self._sizes = [sum(count(part) + _SEAM for part in each if part) for each in parts]
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
            _TASK: self._trimmed(material.task, task + max(left, 0), self._show_task),
            _RISKS: "\n".join(risks),
            _RELATED: "\n".join(related),
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

    def _capped(self, place: int, entry: Entry) -> tuple[str, str, str]:
        """An entry as it is shown: its head, and its links and its text, which have at most its cap."""
        part, least = _CAP_OF_BEST if not place else _CAP_OF_PRIMARY if entry.is_primary else _CAP_OF_OTHERS
        cap = max(self._limit // part, least)
        links = self._first(entry.links, cap // 2)
        body = self._trimmed(entry.body, cap - self._size(links), quote, entry.path)
        return entry.head, "\n".join(links), body

    def _trimmed(self, text: str, cap: int, show: Callable[[str], str], path: str = "") -> str:
        """A text as it is shown, in at most so many tokens."""
        shown = show(text)
        if self._count(shown) <= cap:
            return shown
        return show(trim(text, cap, lambda each: self._count(show(each)), path=path).text.strip("\r\n"))

    def _first(self, lines: Sequence[str], room: int) -> list[str]:
        """The first lines with room for them and a heading."""
        sizes = accumulate(self._count(line) + 1 for line in lines)
        return [line for line, size in zip(lines, sizes, strict=True) if size + _HEADING <= room]

    def _size(self, lines: Sequence[str]) -> int:
        return sum(self._count(line) + 1 for line in lines) + (_HEADING if lines else 0)

    def _omission(self, entries: int) -> str:
        """The line that replaces so many entries, with a call that has room for all; "" for none."""
        if not entries:
            return ""
        material, every = self._material, self._material.entries
        lines = [*material.related, *(risk.line for risk in material.risks)]
        lines += [*material.metadata([each.id for each in every]), *(line for each in every for line in each.links)]
        whole = sum(self._count(quote(each.body)) + self._count(each.head) + 2 * _SEAM for each in every)
        enough = max(self._limit, (self._task + whole + 2 * self._size(lines) + _ROOM_FOR_HEADINGS) * 11 // 10)
        omitted = "1 memory" if entries == 1 else f"{entries} memories"
        return f"[… {omitted} omitted: compile_context with max_tokens {(enough // 100 + 1) * 100}]"


# ---- what a brief says of memories and notes


def entries_of(choice: Choice, texts: Mapping[str, str]) -> list[Entry]:
    """The chosen memories, with the texts of their files by id."""
    return [_entry(choice, id, texts[id]) for id in choice.chosen]


def _entry(choice: Choice, id: str, text: str) -> Entry:
    row = choice.rows[id]
    path, domain, made = row["path"], one_line(row["domain"], _LONGEST_TITLE), row["created_at"]
    about = [in_code(path), row["kind"] or "no kind", domain, f"{made:%Y-%m-%d}" if made else ""]
    about.append("needs review" if row["needs_review"] else "")
    head = f"### {_title(row)}\n\n{' · '.join(filter(None, about))}"
    body = body_of(text, row["title"])
    if len(body) > _LONGEST_BODY:
        body = f"{body[:_LONGEST_BODY]}…\n\n{omission_line(0, path)}"
    read = [(_VERBS[link.type][0], link.to, link) for link in choice.links if link.source == id]
    read += [(_VERBS[link.type][1], link.source, link) for link in choice.links if link.to == id]
    read.sort(key=lambda each: (each[0], -each[2].confidence, each[1], each[2].reasoning))
    links = [f"- {verb} {_named(choice, end)}{_reason(link)}" for verb, end, link in read[:_MOST_LINKS]]
    shown_path, similarity = path if path.isprintable() else "", choice.ranked[id].similarity
    return Entry(id, shown_path, row["kind"], id in choice.primary, similarity, head, body, links)


def risks_of(choice: Choice) -> Iterator[Risk]:
    """What to beware of: contradictions, what is out of date, problems that nothing solves."""
    for link in sorted(link for link in choice.links if link.type in ("contradicts", "supersedes")):
        about = frozenset((link.source, link.to)).intersection(choice.chosen)
        start, end = _named(choice, link.source), _named(choice, link.to)
        if link.type == "contradicts" and about:
            yield Risk(about, f"- {start} contradicts {end}{_reason(link)}")
        elif link.type == "supersedes" and link.to in about:
            yield Risk(frozenset((link.to,)), f"- {end} is out of date: {start} supersedes it{_reason(link)}")
    for id in sorted(choice.chosen):
        if choice.rows[id]["kind"] == "problem" and id not in choice.solved:
            yield Risk(frozenset((id,)), f"- No memory says what solves {_named(choice, id)}.")


def related_line(title: str, path: str, summary: str) -> str:
    """The line of a note that is no memory."""
    shown = one_line(summary, _LONGEST_SUMMARY)
    return f"- {at_start(one_line(title, _LONGEST_TITLE) or _NO_TITLE)} ({in_code(path)}){': ' if shown else ''}{shown}"


def _named(choice: Choice, id: str) -> str:
    return f"“{_title(choice.rows[id])}” ({in_code(id)})"


def _title(row: Row) -> str:
    return one_line(row["title"], _LONGEST_TITLE) or _NO_TITLE


def _reason(link: Link) -> str:
    reason = one_line(link.reasoning, _LONGEST_REASON)
    return f": {reason}" if reason else ""


# ---- text of notes as a part of Markdown


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
        heading = _OF_KIND.get(entry.kind, _OTHERS)
        found[heading] = _joined(found.get(heading, ""), text)
    return found


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))
