"""What is amiss with one memory, where in its file, and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from notebook_sync.files.fields import read_fields
from notebook_sync.files.frontmatter import Frontmatter, read_frontmatter
from notebook_sync.files.memories import relations_from
from notebook_sync.files.note import Problem
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.mirror.memories import KINDS, Link, Memory
from notebook_sync.notes.memories.importing.record import IMPORTED
from notebook_sync.notes.memories.metadata import UNKNOWN
from notebook_sync.notes.memories.text import FOLDER
from notebook_sync.notes.picture_text import short

About = Literal["missing", "unparsable", "agent", "kind", "parts", "needs_review", "link", "field"]
CREATED_AT, AGENT, KIND, RELATIONS = "created_at", "agent", "kind", "relations"
REPAIR = "notebook-sync memory fix takes it from git where git knows it"
NO_PROOF = "no commit tells when it was made, as it was imported: write it by hand"
_ROOM = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """`line` is 1-based in the file, that of the frontmatter's beginning for what is not there. `external`: `what` may
    quote somebody else's words. `link` is the type of a link that leads nowhere, and where to."""

    path: str
    line: int
    what: str
    fix: str
    about: About
    external: bool = False
    link: tuple[str, str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "path": self.path,
            "line": self.line,
            "what": short(self.what, _ROOM),
            "fix": self.fix,
            **({"provenance": EXTERNAL} if self.external else {}),
        }


def has_known_agent(memory: Memory) -> bool:
    """Whether anybody is known to have said it."""
    return memory.agent.casefold() not in ("", UNKNOWN)


def is_sound(memory: Memory, ids: Collection[str]) -> bool:
    """Whether nothing is amiss that the row of a memory shows; `ids` are those of all memories."""
    is_dated = memory.created_from == "frontmatter"
    leads_on = all(link.to in ids for link in memory.relations)
    return is_dated and has_known_agent(memory) and memory.is_structured and not memory.needs_review and leads_on


def findings_in(memory: Memory, raw: bytes, ids: Collection[str]) -> list[Finding]:
    """All that is amiss with a memory whose file says `raw`, by line."""
    front = read_frontmatter(raw.decode(errors="replace"))
    found = [
        Finding(memory.path, line, what, fix, about, bool(memory.provenance), link)
        for line, what, fix, about, link in _amiss(memory, front, ids)
    ]
    return sorted(found, key=lambda one: one.line)


# Line, what, fix, about, link.
_Amiss = tuple[int, str, str, About, tuple[str, str] | None]


def _amiss(memory: Memory, front: Frontmatter, ids: Collection[str]) -> Iterator[_Amiss]:
    if front.problem is not None:
        yield front.problem.line, front.problem.message, "mend the YAML between the lines of ---", "field", None
    lines = front.metadata.lines
    problems = list(read_fields(front.metadata, FOLDER).problems)
    if memory.created_from != "frontmatter":
        line = lines.get(CREATED_AT, 1)
        proof = REPAIR if front.metadata.get(IMPORTED) is None else NO_PROOF
        if front.metadata.get(CREATED_AT) is None:
            yield line, "it does not say when it was made", proof, "missing", None
        else:
            told = _told_at(line, problems) or f"{CREATED_AT} cannot be read"
            yield line, told, f"write an ISO 8601 date or time; {proof}", "unparsable", None
    if not has_known_agent(memory):
        advice = "write agent: NAME, or tag it agent:NAME"
        yield lines.get(AGENT, 1), "nobody is known to have said it", advice, "agent", None
    if not memory.kind:
        line = lines.get(KIND, 1)
        told = _told_at(line, problems) if KIND in lines else ""
        yield (
            line,
            told or "it is of no kind",
            f"write kind: {', '.join(KINDS[:-1])} or {KINDS[-1]}",
            "kind",
            None,
        )
    if memory.missing:
        advice = f"write below a heading of its own: {', '.join(f'## {part.title()}' for part in memory.missing)}"
        yield 1, f"it does not tell its {_listed(memory.missing)}", advice, "parts", None
    if memory.needs_review:
        advice = "see that it is right, then take out needs_review"
        yield lines.get("needs_review", 1), "it is marked for review", advice, "needs_review", None
    for link in memory.relations:
        if link.to not in ids:
            told = f"it {link.type} {link.to!r}, which is no memory"
            advice = "name the id of a memory, or take the link out"
            yield _line_of_link(front, link), told, advice, "link", (link.type, link.to)
    for problem in problems:
        yield problem.line, problem.message, "write it as the documentation of memories tells", "field", None


def _listed(parts: Sequence[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def _told_at(line: int, problems: list[Problem]) -> str:
    """What is wrong with the field on a line, which is told then; "" for nothing."""
    found = next((problem for problem in problems if problem.line == line), None)
    if found is None:
        return ""
    problems.remove(found)
    return found.message


def _line_of_link(front: Frontmatter, link: Link) -> int:
    entries = front.metadata.get(RELATIONS)
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        if any((read["type"], read["to"]) == (link.type, link.to) for read in relations_from([entry]).read):
            return front.metadata.line_in(RELATIONS, number)
    return front.metadata.lines.get(RELATIONS, 1)
