"""What a brief says of the memories that were chosen: a head for each, its links, risks, metadata. Pure.

Titles, reasons and names are somebody's text: each is one line, without marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from notebook_sync.context.brief import Entry, Risk
from notebook_sync.context.candidates import Gathered
from notebook_sync.context.choosing import Choice
from notebook_sync.context.quoting import at_start, body_of, in_code, one_line
from notebook_sync.mirror.base import Document
from notebook_sync.mirror.memories import Link, Memory

if TYPE_CHECKING:
    from notebook_sync.context.related import Related

_LONGEST_TITLE, _LONGEST_REASON, _LONGEST_SUMMARY = 120, 160, 200
_MOST_LINKS = 5
# How a link reads from the memory where it begins, and from the one where it ends.
_OUTWARD = {
    "causes": "causes",
    "solves": "solves",
    "contradicts": "contradicts",
    "expands": "expands on",
    "supersedes": "supersedes",
    "similar": "is like",
}
_INWARD = {
    "causes": "is caused by",
    "solves": "is solved by",
    "contradicts": "is contradicted by",
    "expands": "is expanded on by",
    "supersedes": "is superseded by",
    "similar": "is like",
}


@dataclass(frozen=True, slots=True)
class Used:
    """A memory that a brief rests on. `score` is what it was chosen by, `contribution` primary or supporting."""

    id: str
    path: str
    title: str
    kind: str
    digest: str
    score: float
    contribution: str

    def as_dict(self) -> dict[str, Any]:
        """The shape that answers have."""
        told = {"id": self.id, "path": self.path, "title": self.title}
        return {**told, "score": round(self.score, 4), "contribution": self.contribution}


def entries_of(gathered: Gathered, choice: Choice, documents: Mapping[str, Document]) -> list[Entry]:
    """The memories that were taken, in that order, without those that say something else by now."""
    taken = (one.note_id for one in choice.taken if one.note_id in documents)
    return [_entry(gathered, choice, documents[note_id]) for note_id in taken]


def risks_of(gathered: Gathered, choice: Choice) -> list[Risk]:
    """What to beware of: memories that contradict each other, what is out of date, problems that nothing solves."""
    taken = [one.note_id for one in choice.taken]
    known = {**gathered.others, **gathered.memories}
    risks = [*_contradictions(gathered, known, taken), *_outdated(gathered, known, taken)]
    for note_id in sorted(taken):
        memory = known[note_id]
        if memory.kind == "problem" and note_id not in gathered.solved:
            risks.append(Risk(frozenset({note_id}), f"- No memory tells what solves {_named(memory)}."))
    return risks


def metadata_of(context_hash: str, used: Sequence[Used]) -> list[str]:
    """Lines of what a brief rests on."""
    told = (f"- {in_code(one.id)}, {one.contribution}: {in_code(one.path)}" for one in used)
    return [f"- context {in_code(context_hash)}", f"- memories used: {len(used)}", *told]


def related_line(note: Related) -> str:
    """A note that is no memory, on one line."""
    summary = one_line(note.summary, _LONGEST_SUMMARY)
    return f"- {at_start(_title(note.title))} ({in_code(note.path)}){': ' if summary else ''}{summary}"


def _entry(gathered: Gathered, choice: Choice, document: Document) -> Entry:
    note_id = document["id"]
    memory = gathered.memories[note_id]
    about = [
        in_code(memory.path),
        memory.kind or "no kind",
        *([one_line(memory.domain, _LONGEST_TITLE)] if memory.domain else []),
    ]
    if memory.created_from == "frontmatter":  # of others, files and stores tell different times
        about.append(f"{memory.created_at:%Y-%m-%d}")
    if memory.needs_review:
        about.append("needs review")
    links = tuple(_links(gathered, note_id))[:_MOST_LINKS]
    head = f"### {_title(memory.title)}\n\n{' · '.join(about)}"
    ranked = choice.ranked[note_id]
    body = body_of(document["content"], memory.title)
    path = memory.path if memory.path.isprintable() else ""  # no call could name it on one line
    return Entry(note_id, path, memory.kind, note_id in choice.primary, ranked.similarity, head, body, links)


def _links(gathered: Gathered, note_id: str) -> Iterator[str]:
    known = {**gathered.others, **gathered.memories}
    outward = ((_OUTWARD[link.type], link.to, link) for source, link in gathered.links if source == note_id)
    inward = ((_INWARD[link.type], source, link) for source, link in gathered.links if link.to == note_id != source)
    told = sorted(chain(outward, inward), key=lambda one: (one[0], -one[2].confidence, one[1], one[2].reasoning))
    for verb, end, link in told:
        yield f"- {verb} {_named(known[end])}{_reason(link)}"


def _contradictions(gathered: Gathered, known: Mapping[str, Memory], taken: Sequence[str]) -> Iterator[Risk]:
    for source, link in sorted(gathered.links, key=lambda one: (one[0], one[1].to, one[1].reasoning)):
        about = frozenset({source, link.to}) & frozenset(taken)
        if link.type == "contradicts" and about and source != link.to:
            yield Risk(about, f"- {_named(known[source])} contradicts {_named(known[link.to])}{_reason(link)}")


def _outdated(gathered: Gathered, known: Mapping[str, Memory], taken: Sequence[str]) -> Iterator[Risk]:
    for source, link in sorted(gathered.links, key=lambda one: (one[0], one[1].to, one[1].reasoning)):
        if link.type == "supersedes" and link.to in taken and source != link.to:
            line = f"- {_named(known[link.to])} is out of date: {_named(known[source])} supersedes it{_reason(link)}"
            yield Risk(frozenset({link.to}), line)


def _named(memory: Memory) -> str:
    return f"“{_title(memory.title)}” ({in_code(memory.id)})"


def _title(title: str) -> str:
    return one_line(title, _LONGEST_TITLE) or "(no title)"


def _reason(link: Link) -> str:
    reason = one_line(link.reasoning, _LONGEST_REASON)
    return f": {reason}" if reason else ""
