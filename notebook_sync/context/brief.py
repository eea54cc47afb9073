"""The brief as text: its sections, in at most so many tokens, cut without breaking anything. Pure.

What stands where depends on what is told alone, never on scores or a clock, so that one task has one text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from prompt.budget import Claim, Count, share
from prompt.fence import quote
from prompt.trim import Cutting, trim

TASK, CONTEXT, DECISIONS, PROBLEMS = "Task", "Relevant Context", "Decisions", "Known Problems"
PATTERNS, RISKS, RELATED, METADATA = "Patterns", "Risks", "Related Notes", "Metadata"
HEADINGS = (TASK, CONTEXT, DECISIONS, PROBLEMS, PATTERNS, RISKS, RELATED, METADATA)
LEAST_TOKENS = 64
"""No brief says anything in fewer."""
TITLE = "# Task Brief"
_OF_KIND = {"decision": DECISIONS, "problem": PROBLEMS, "pattern": PATTERNS}
NOTHING = "None found."
# The parts that risks, related notes and metadata are at the most.
_PART_OF_RISKS, _PART_OF_RELATED, _PART_OF_METADATA = 6, 8, 5
# Those that the best entry, each other primary one and each supporting one is at the most, unless that is too little.
_PART_OF_BEST, _PART_OF_PRIMARY, _PART_OF_OTHERS = 3, 5, 10
_LEAST_OF_BEST, _LEAST_OF_PRIMARY, _LEAST_OF_OTHERS = 400, 200, 100
# A heading and the lines around it; a brief with room for so many times all of them shows those with nothing below.
_HEADING, _TIMES_HEADINGS = 8, 10
# What an entry is granted before others get more; what the line says that tells what was cut of it; a seam; and what
# a limit is rounded up to that is named.
_RESERVE, _CUT_LINE, _SEAM, _ROUND = 100, 40, 2, 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory in a brief: `head` names it, `links` are lines, `body` is its text, and `path` what to read the
    rest by, "" for nothing. `similarity` alone orders it among others of its section; where there is room for fewer,
    the first entries that are given stay."""

    id: str
    path: str
    kind: str
    is_primary: bool
    similarity: float
    head: str
    body: str
    links: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """What stands below a heading of a brief; `text` is "" where nothing does."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Risk:
    """A line on the entries with these ids, which says nothing where one of them is not in the brief."""

    about: frozenset[str]
    line: str


@dataclass(frozen=True, slots=True)
class Material:
    """What a brief is made of: the task; entries and risks, those first that matter most; lines that name
    related notes; and the lines of metadata for the ids of the entries that are in it. `wrap` quotes the task, and may
    add a fence, of which nothing is cut."""

    task: str
    entries: Sequence[Entry] = ()
    risks: Sequence[Risk] = ()
    related: Sequence[str] = ()
    metadata: Callable[[Sequence[str]], Sequence[str]] = lambda _: ()
    wrap: Callable[[str], str] = quote


@dataclass(frozen=True, slots=True)
class Brief:
    """A brief of `tokens` tokens. `stable` is the same without its metadata, and so are its sections. `kept` are the
    ids of the entries in it; `cut` is why others are not, or not whole; `related` tells how many of the lines of
    related notes are in it."""

    text: str
    stable: str
    tokens: int
    sections: tuple[Section, ...]
    kept: tuple[str, ...]
    cut: Mapping[str, str]
    related: int


def written(material: Material, max_tokens: int, count: Count) -> Brief:
    """The brief. No entry has more than its part. What does not fit leaves, the last first: entries, of those that stay
    the ends of the longest, risks, related notes, metadata; and the end of the task."""
    return _Writing(material, max_tokens, count).brief()


class _Writing:
    """One brief. Each piece is counted once, and what only a cut needs, where something is cut."""

    def __init__(self, material: Material, max_tokens: int, count: Count) -> None:
        self._material = material
        self._count = count
        self._limit = max_tokens
        self._shows_nothing = _shows_nothing(max_tokens)
        self._heads = {entry.id: count(entry.head) + _SEAM for entry in material.entries}
        self._links = {entry.id: [count(line) + 1 for line in entry.links] for entry in material.entries}
        self._bodies = {entry.id: self._quoted(entry.body) + _SEAM if entry.body else 0 for entry in material.entries}
        self._needs = {
            entry.id: min(sum(self._links[entry.id]) + self._bodies[entry.id], self._most_of(place, entry))
            for place, entry in enumerate(material.entries)
        }
        self._task = self._quoted(material.task)

    def _quoted(self, text: str) -> int:
        """The tokens of a text as a brief shows it."""
        return self._count(quote(text))

    def brief(self) -> Brief:
        return self._whole() or self._cut_to_fit()

    def _whole(self) -> Brief | None:
        """The brief with everything in it, where that fits."""
        entries, kept = self._material.entries, tuple(entry.id for entry in self._material.entries)
        wanted = sum(sum(self._links[each]) + self._bodies[each] for each in kept)
        size = self._task + wanted + sum(self._heads[each] for each in kept)
        if not self._shows_nothing or wanted > sum(self._needs.values()) or size > self._limit:
            return None
        texts = _by_heading([(entry, _joined_parts("\n".join(entry.links), quote(entry.body))) for entry in entries])
        risks = [risk.line for risk in self._material.risks if risk.about <= frozenset(kept)]
        sections = _sections(self._material.wrap(self._material.task), texts, risks, self._material.related)
        stable = _joined(sections, shows_nothing=True)
        text = f"{stable}{_metadata(self._material.metadata(kept))}"
        tokens = self._count(text)
        related = len(self._material.related)
        return Brief(text, stable, tokens, sections, kept, {}, related) if tokens <= self._limit else None

    def _cut_to_fit(self) -> Brief:
        of_task, beginning = self._of_task(), Cutting(self._material.task, self._task, self._quoted)
        while True:
            told = self._material.wrap(beginning.at(of_task).text)
            sections = _sections(told, {}, [], [])
            room = self._limit - self._count(_joined(sections, shows_nothing=self._shows_nothing))
            while (brief := self._in(told, room)).tokens > self._limit and room > 0:
                room -= brief.tokens - self._limit
            if brief.tokens <= self._limit or of_task <= 0:
                return brief
            of_task -= brief.tokens - self._limit

    def _most_of(self, place: int, entry: Entry) -> int:
        """What the links and the text of an entry may take."""
        if not place:
            return max(self._limit // _PART_OF_BEST, _LEAST_OF_BEST)
        part, least = (_PART_OF_PRIMARY, _LEAST_OF_PRIMARY) if entry.is_primary else (_PART_OF_OTHERS, _LEAST_OF_OTHERS)
        return max(self._limit // part, least)

    def _of_task(self) -> int:
        """What of the task is shown: what is left where the entries have two thirds, or all that they need where that
        is less. It never falls where the limit rises, as neither needs nor parts rise faster."""
        headings = min(max(2 * _HEADING, self._limit // _TIMES_HEADINGS), _HEADING * len(HEADINGS))
        left = self._limit - headings - self._around - self._line
        needs = self._limit // _PART_OF_METADATA
        needs += sum(self._needs[entry.id] + self._heads[entry.id] + _HEADING for entry in self._material.entries)
        needs += self._tokens_of(self._material.related)
        needs += self._tokens_of([risk.line for risk in self._material.risks])
        return max(left - min(needs, 2 * left // 3), min(_CUT_LINE, left))

    @cached_property
    def _ids(self) -> list[str]:
        return [entry.id for entry in self._material.entries]

    @cached_property
    def _metadata(self) -> int:
        return self._tokens_of(self._metadata_of(self._ids))

    @cached_property
    def _around(self) -> int:
        return self._count(self._material.wrap(""))

    @cached_property
    def _line(self) -> int:
        """What the line takes that says that entries left."""
        return self._count(_omission(len(self._ids), self._enough)) + _SEAM if self._ids else 0

    @cached_property
    def _enough(self) -> int:
        """A limit at which no entry leaves."""
        metadata = self._tokens_of(self._material.metadata(self._ids))
        floors = sum(self._heads[entry.id] + self._cut_floor(entry) + _HEADING for entry in self._material.entries)
        enough = self._around + self._task + _HEADING * len(HEADINGS) + floors + metadata
        return -(-max(enough * 11 // 10, self._limit + 1) // _ROUND) * _ROUND

    def _in(self, told: str, room: int) -> Brief:
        """A brief with about `room` tokens below its task: what pieces are together, their counts only nearly tell."""
        of_metadata = self._metadata
        entries, left = self._that_fit(room - of_metadata)
        if not entries:  # a memory says more than what a brief rests on
            of_metadata, (entries, left) = 0, self._that_fit(room)
        ids = frozenset(entry.id for entry in entries)
        risks = [risk.line for risk in self._material.risks if risk.about <= ids]
        risks = self._lines(risks, min(left, self._limit // _PART_OF_RISKS))
        left -= self._tokens_of(risks)
        related = self._lines(self._material.related, min(left, self._limit // _PART_OF_RELATED))
        left -= self._tokens_of(related)
        texts, cut = self._texts(entries, self._granted(entries, left + sum(map(self._cut_floor, entries))))
        sections = _sections(told, texts, risks, related)
        gone = {entry.id: "no room for it" for entry in self._material.entries if entry.id not in ids}
        omission = _omission(len(gone), self._enough) if gone else ""
        stable = _joined(sections, shows_nothing=self._shows_nothing, omission=omission)
        kept = tuple(entry.id for entry in entries)
        text = f"{stable}{_metadata(self._metadata_of(kept) if of_metadata else [])}"
        return Brief(text, stable, self._count(text), sections, kept, {**cut, **gone}, len(related))

    def _that_fit(self, room: int) -> tuple[list[Entry], int]:
        """The first entries, as long as there is room for a little of each, and what is left; where others leave, with
        room for the line that says so."""
        entries = self._material.entries
        left = room - sum(self._floor(entry) for entry in entries)
        if left >= 0:
            return list(entries), left
        kept: list[Entry] = []
        room -= self._line
        for entry in entries[:-1]:
            if room < self._floor(entry):
                break
            room -= self._floor(entry)
            kept.append(entry)
        return kept, room

    def _floor(self, entry: Entry) -> int:
        """What an entry takes at the least. Where few headings are shown, it may bring one along."""
        return self._heads[entry.id] + self._cut_floor(entry) + (0 if self._shows_nothing else _HEADING)

    def _cut_floor(self, entry: Entry) -> int:
        return min(self._needs[entry.id], _CUT_LINE)

    def _granted(self, entries: Sequence[Entry], room: int) -> list[int]:
        """What the links and the body of each entry may take."""
        claims = [
            Claim(self._needs[entry.id], int(entry.is_primary), _RESERVE, self._cut_floor(entry)) for entry in entries
        ]
        return share(room, claims)

    def _texts(self, entries: Sequence[Entry], granted: Sequence[int]) -> tuple[dict[str, str], dict[str, str]]:
        """The entries by heading, and which were cut."""
        told: list[tuple[Entry, str]] = []
        cut: dict[str, str] = {}
        for entry, cap in zip(entries, granted, strict=True):
            tokens = sum(self._links[entry.id]) + self._bodies[entry.id]
            links, taken = self._links_in(entry, cap)
            body = self._cut(entry.body, self._bodies[entry.id], cap - taken, entry.path)
            if cap < tokens:
                cut[entry.id] = f"cut to {cap:,} of {tokens:,} tokens"
            told.append((entry, _joined_parts("\n".join(links), body)))
        return _by_heading(told), cut

    def _links_in(self, entry: Entry, cap: int) -> tuple[list[str], int]:
        """The first links in what the body leaves of so many tokens, or in a third of them where it still says much."""
        room = max(cap - self._bodies[entry.id], min(cap // 3, cap - 2 * _CUT_LINE))
        kept, taken = list[str](), 0
        for line, tokens in zip(entry.links, self._links[entry.id], strict=True):
            if taken + tokens > room:
                break
            kept.append(line)
            taken += tokens
        return kept, taken

    def _cut(self, text: str, tokens: int, cap: int, path: str) -> str:
        return quote(text if tokens <= cap else trim(text, cap, self._quoted, path=path).text.strip("\r\n"))

    def _metadata_of(self, ids: Sequence[str]) -> list[str]:
        """The lines of metadata that a fifth of the brief has room for."""
        return self._lines(self._material.metadata(ids), self._limit // _PART_OF_METADATA - _HEADING)

    def _lines(self, lines: Sequence[str], room: int) -> list[str]:
        """The first lines, as long as there is room, with that for a heading."""
        kept: list[str] = []
        room -= 0 if self._shows_nothing else _HEADING
        for line in lines:
            room -= self._count(line) + 1
            if room < 0:
                break
            kept.append(line)
        return kept

    def _tokens_of(self, lines: Sequence[str]) -> int:
        return sum(self._count(line) + 1 for line in lines) + (_HEADING if lines else 0)


def _shows_nothing(max_tokens: int) -> bool:
    """Whether there is room for headings with nothing below."""
    return max_tokens >= _TIMES_HEADINGS * _HEADING * len(HEADINGS)


def _by_heading(bodies: Sequence[tuple[Entry, str]]) -> dict[str, str]:
    """The entries with these bodies, by heading, those first that the task has most to do with."""
    texts: dict[str, str] = {}
    for entry, body in sorted(bodies, key=lambda one: (not one[0].is_primary, -one[0].similarity, one[0].id)):
        heading = _OF_KIND.get(entry.kind, CONTEXT)
        text = f"{entry.head}\n\n{body}" if body else entry.head
        texts[heading] = f"{texts[heading]}\n\n{text}" if heading in texts else text
    return texts


def _joined_parts(links: str, body: str) -> str:
    return "\n\n".join(text for text in (links, body) if text)


def _sections(task: str, texts: Mapping[str, str], risks: Sequence[str], related: Sequence[str]) -> tuple[Section, ...]:
    told = {TASK: task, **texts, RISKS: "\n".join(risks), RELATED: "\n".join(related)}
    return tuple(Section(heading, told.get(heading, "")) for heading in HEADINGS if heading != METADATA)


def _joined(sections: Sequence[Section], *, shows_nothing: bool, omission: str = "") -> str:
    shown = (section for section in sections if section.text or shows_nothing)
    told = (f"## {section.heading}\n\n{section.text or NOTHING}\n" for section in shown)
    return "\n".join([f"{TITLE}\n", *([f"{omission}\n"] if omission else []), *told])


def _omission(entries: int, limit: int) -> str:
    """The line that stands for so many entries, with a call that shows them."""
    omitted = "1 memory" if entries == 1 else f"{entries} memories"
    return f"[… {omitted} omitted: compile_context with max_tokens {limit}]"


def _metadata(lines: Sequence[str]) -> str:
    return f"\n## {METADATA}\n\n{chr(10).join(lines)}\n" if lines else ""
