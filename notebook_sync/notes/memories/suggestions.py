"""Links that somebody suggests, as any JSON, read one by one. Pure; what is none is told, and stops no other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.files.frontmatter import storable
from notebook_sync.mirror.memories import RELATIONS, Link

# Of somebody who suggests a link and does not say how sure that is.
UNSURE = 0.5
MOST_LINKS = 1_000
LONGEST_REASONING, LONGEST_SOURCE = 500, 200
_LONGEST_TOLD = 200
_MOST_TOLD = 20
_BITS = 64

Row = dict[str, Any]
Rows = list[Row]
# A link, and the id it starts from.
Said = tuple[str, Link]


def suggested_in(links: object, dropped: Rows) -> list[Said]:
    """The links of a JSON value, each once. What is none goes to `dropped`, as `{link, reason}`."""
    if isinstance(links, Mapping):
        links = links.get("links", [links])
    if isinstance(links, str) or not isinstance(links, Sequence):
        dropped.append({"link": shown(links), "reason": "these are no links: give a list of them"})
        return []
    found: list[Said] = []
    seen: set[tuple[str, str, str]] = set()
    for one in links[:MOST_LINKS]:
        try:
            start, link = _said(one)
        except UsageError as error:
            dropped.append({"link": shown(one), "reason": str(error)})
            continue
        if (start, link.type, link.to) in seen:
            dropped.append({"link": row_of(start, link), "reason": "it is said twice"})
            continue
        seen.add((start, link.type, link.to))
        found.append((start, link))
    reason = f"no more than {MOST_LINKS:,} links are taken in at once"
    dropped += [{"link": shown(one), "reason": reason} for one in links[MOST_LINKS:]]
    return found


def _said(one: object) -> Said:
    if not isinstance(one, Mapping):
        raise UsageError("a link is an object with from, to and type")
    start, end = one.get("from"), one.get("to")
    if not isinstance(start, str) or not isinstance(end, str) or not start.strip() or not end.strip():
        raise UsageError("a link names the ids of two memories, from and to")
    confidence = one.get("confidence")
    confidence = UNSURE if confidence is None else confidence
    more = (one.get(name) for name in ("reasoning", "source", "synthesis_id"))
    link = link_of(one.get("type"), end.strip(), confidence, *more)
    must_lead_on(start.strip(), link)
    return start.strip(), link


def link_of(
    type: object,  # noqa: A002 - so it is called in the file, too
    to: str,
    confidence: object,
    reasoning: object,
    source: object,
    synthesis_id: object,
) -> Link:
    """A link, its confidence from 0 to 1, its texts on a line each. Raises UsageError for a type there is not, and a
    confidence that is no number."""
    relation = type.strip().casefold() if isinstance(type, str) else ""
    if relation not in RELATIONS:
        raise UsageError(f"there is no relation {short(type)!r}; use one of {', '.join(RELATIONS)}")
    return Link(
        relation,
        to,
        _share(confidence),
        _line(reasoning, LONGEST_REASONING),
        _line(source, LONGEST_SOURCE),
        _line(synthesis_id, LONGEST_SOURCE),
    )


def _share(confidence: object) -> float:
    """The nearest from 0 to 1, to four decimals. Raises UsageError."""
    if isinstance(confidence, int | float) and not isinstance(confidence, bool):
        share = min(max(confidence, 0), 1)  # first: an integer may be too large for a float
        if not math.isnan(share):
            return round(float(share), 4)
    raise UsageError("the confidence is a number from 0 to 1")


def must_lead_on(start: str, link: Link) -> None:
    """Raises UsageError for a link to where it starts."""
    if start == link.to:
        raise UsageError("a memory is not linked to itself; name two")


def row_of(start: str, link: Link) -> Row:
    """A link as it is told."""
    return {
        "from": start,
        "to": link.to,
        "type": link.type,
        "confidence": link.confidence,
        "reasoning": link.reasoning,
        "source": link.source,
        "synthesis_id": link.synthesis_id,
    }


def _line(value: object, longest: int) -> str:
    """A text on one line, cut to what fits; "" for what is no text."""
    text = storable(value) if isinstance(value, str) else ""
    line = " ".join("".join(each if each.isprintable() else " " for each in text[: longest * 8]).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def short(value: object) -> str:
    """What was given in place of a name, no longer than it can be told."""
    try:
        told = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or a list in a list in a list
        told = "what is too much to be told"
    return _line(told, _LONGEST_TOLD)


def shown(value: object) -> object:
    """What was given in place of a link, no longer than it can be told."""
    if isinstance(value, Mapping):
        told = [*value.items()][:_MOST_TOLD]
        return {short(name): one if _is_plain_number(one) else short(one) for name, one in told}
    return short(value)


def _is_plain_number(value: object) -> bool:
    """Whether any reader of JSON can take it."""
    return isinstance(value, float) or (isinstance(value, int) and value.bit_length() < _BITS)
