"""What the frontmatter of a memory says beside that of every note: of which kind it is, who said it, how it is linked.

What is malformed is left out and told as a problem with its line; it is never lost from the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from prompt.outline import Outline

KINDS = ("pattern", "decision", "problem", "insight")
PARTS = ("context", "reasoning", "outcome")
RELATIONS = ("causes", "solves", "contradicts", "expands", "supersedes", "similar")
DEFAULT_PRIORITY = 7
HIGHEST_PRIORITY = 10
_AGENT = "agent:"
_TEXTS = ("reasoning", "source", "synthesis_id")


class Relations(NamedTuple):
    """`read` is what documents hold; `malformed` what stands there instead, each with its index and what is wrong."""

    read: list[dict[str, Any]]
    malformed: list[tuple[int, Any, str]]


def kind_from(text: str) -> str:
    """One of KINDS. Raises ValueError."""
    kind = text.strip().casefold()
    if kind not in KINDS:
        raise ValueError(f"{text!r} is not one of {', '.join(KINDS)}")
    return kind


def kind_said(text: str) -> str | None:
    """One of KINDS, as somebody names it who writes no frontmatter: also as the template has it, [DECISION]. None for
    what is no kind."""
    kind = text.strip(" []").casefold()
    return kind if kind in KINDS else None


def kind_of_folder(path: str) -> str | None:
    """The kind that `memories/KIND/` gives the notes in it."""
    parts = PurePosixPath(path).parts
    return parts[1] if len(parts) > 2 and parts[1] in KINDS else None


def parts_missing(outline: Outline) -> list[str]:
    """Which of PARTS no heading names, or only one with nothing below it. A heading's children are below it."""
    sections = outline.sections
    present = set()
    for section, after in zip(sections, (*sections[1:], None), strict=False):  # nothing follows where nothing is
        has_child = after is not None and after.level > section.level
        if has_child or outline.text[section.body : after.start if after else len(outline.text)].strip():
            present.add(section.title.strip(" :").casefold())
    return [part for part in PARTS if part not in present]


def priority_from(value: Any) -> int:
    """From 1 to 10; what is beyond becomes the nearest of them. Raises ValueError."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, int | float | str) else float(value)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise ValueError("must be a number from 1 to 10")
    return round(min(max(number, 1), HIGHEST_PRIORITY))


def agent_from(text: str) -> str | None:
    """`agent:scribe` and `scribe` are the same agent; None for an empty name."""
    return text.strip().removeprefix(_AGENT).strip() or None


def agent_of(named: str | None, tags: Iterable[str], created_by: str) -> str | None:
    """Who said it: whom the field names, else the first tag that names an agent, else the agent that made the file."""
    return named or next(agents_in((*tags, created_by)), None)


def agents_in(tags: Iterable[str]) -> Iterator[str]:
    """The agents that tags name, in order."""
    return filter(None, (agent_from(tag) for tag in tags if tag.startswith(_AGENT)))


def relations_from(value: Any) -> Relations:
    """The links in a field `relations`. Raises ValueError where it is no list."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError("must be a list of links, each with a type and to")  # noqa: TRY004 - as for every field
    relations = Relations([], [])
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(value):
        try:
            link = _link_from(entry)
        except ValueError as error:
            relations.malformed.append((index, entry, str(error)))
            continue
        if (link["type"], link["to"]) in seen:
            relations.malformed.append((index, entry, f"{link['type']} {link['to']!r} is there twice"))
            continue
        seen.add((link["type"], link["to"]))
        relations.read.append(link)
    return relations


def _link_from(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise ValueError("a link must name its type and to")  # noqa: TRY004 - as for every field
    kind, to = entry.get("type"), entry.get("to")
    relation = kind.strip().casefold() if isinstance(kind, str) else ""
    if relation not in RELATIONS:
        raise ValueError(f"the type {kind!r} is not one of {', '.join(RELATIONS)}")
    if not isinstance(to, str) or not to.strip():
        raise ValueError("to must be the id of a memory, as text")
    return {
        "type": relation,
        "to": to.strip(),
        "confidence": _confidence(entry.get("confidence")),
        **{name: _text(name, entry.get(name)) for name in _TEXTS},
    }


def _confidence(value: Any) -> float:
    if value is None:
        return 1.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("confidence must be a number from 0 to 1")  # noqa: TRY004 - as for every field
    return float(min(max(value, 0), 1))


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{name} must be text")  # noqa: TRY004 - as for every field
    return str(value).strip()
