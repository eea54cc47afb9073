"""What a reasoner answers, read: the five parts of a synthesis and the links that it suggests. Pure.

What it says is data: it leaves here without comments, quoted below headings of ours.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notebook_sync.context.quoting import body_of, one_line
from notebook_sync.mirror.memories import RELATIONS
from prompt import quote

SUMMARY, GUARDRAILS, HISTORY = "Executive Summary", "Guardrails", "Historical Context and Lessons"
RISKS, LINKS = "Risks and Open Questions", "Suggested Causal Links"
HEADINGS = (SUMMARY, GUARDRAILS, HISTORY, RISKS, LINKS)
MOST_CHARACTERS = 100_000
MOST_LINKS = 50
LONGEST_REASONING = 300
# Of a link that does not say how sure it is.
UNSURE = 0.5
_MOST_VALUES = 100
_MOST_FIELDS = 10
_LONGEST_SHOWN = 200
_LONGEST_HEADING = 100
# No number that a link means is larger, and many a reader of JSON takes none that is.
_LARGEST_SHOWN = 1e15
_WORDS_OF = {
    SUMMARY: ("executive summary",),
    GUARDRAILS: ("guardrails", "guard rails", "guardrails and constraints"),
    HISTORY: ("historical context and lessons", "historical context and lessons learned", "historical context"),
    RISKS: ("risks and open questions", "open questions and risks"),
    LINKS: ("suggested causal links", "causal links", "suggested links"),
}
_NAMED = {words: heading for heading, names in _WORDS_OF.items() for words in names}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NAMES_OF_WRAPPER, _SHORTEST_FENCE = ("", "markdown", "md"), 3
_FRAME = re.compile(r"\A {0,3}(#{1,6}[ \t]+)?([*_]{1,3})?(?:(?:part )?\d{1,2}[.):][ \t]*)?([*_]{1,3})?")
_IN_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]{1,20}[)\]]\s*\Z")
_OPENING = re.compile(r"[\[{]")
_FROM, _TO = ("from", "source", "from_id", "source_id"), ("to", "target", "to_id", "target_id")
_TYPE, _REASONING = ("type", "relation", "relation_type"), ("reasoning", "reason", "rationale", "explanation")
_WITHIN = ("links", "causal_links", "suggested_causal_links", "relations", "relationships")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Truth:
    """The parts of an answer, by HEADINGS, but for the links: `suggested` is what it gives as such, as it came; `odd`
    is why nothing could be read there, where something stands. `trouble` is why the answer is none, "" for a good
    one."""

    parts: Mapping[str, str]
    suggested: Sequence[Row] = ()
    odd: str = ""
    trouble: str = ""

    def markdown(self, links: Sequence[Row]) -> str:
        """The synthesis, with these links below the last heading."""
        told = [f"## {heading}\n\n{quote(self.parts[heading])}" for heading in HEADINGS[:-1]]
        return "\n\n".join([*told, f"## {LINKS}\n\n{links_as_text(links)}"]) + "\n"


@dataclass(frozen=True, slots=True)
class Weighed:
    """The links that may be written down, and those that may not: `{link, reason}` each."""

    links: Sequence[Row]
    dropped: Sequence[Row]


def read_truth(answer: str) -> Truth:
    """The parts of an answer, however their headings are marked and numbered, and in whatever order they come."""
    if len(answer) > MOST_CHARACTERS:
        return Truth({}, trouble=f"its answer has more than {MOST_CHARACTERS:,} characters")
    text = _unwrapped(answer.replace("\r\n", "\n").replace("\0", "\ufffd").encode(errors="replace").decode())
    found = _parts(text, heed_fences=True)
    if len(found) < len(HEADINGS):  # a fence that is never closed would hide all that comes after it
        found = max(found, _parts(text, heed_fences=False), key=len)
    parts = {heading: body_of(part) for heading, part in found.items()}
    missing = [heading for heading in HEADINGS if heading not in parts]
    if missing:
        return Truth(parts, trouble=f"its answer has no part {', '.join(missing)}")
    if empty := [heading for heading in HEADINGS[:-1] if not parts[heading]]:
        return Truth(parts, trouble=f"its answer says nothing below {', '.join(empty)}")
    values = list(_values(found[LINKS]))
    suggested = [link for value in values for link in _links_in(value)]
    is_odd = not values and "{" in found[LINKS]
    return Truth(parts, suggested, "what stands there is no JSON" if is_odd else "")


def weigh(truth: Truth, known: Mapping[str, str], source: str, synthesis_id: str) -> Weighed:
    """Which of the suggested links hold: from one memory that was told of to another, by a relation that there is.

    `known` are the memories that were told of: the id by each of their names. `source` and `synthesis_id` go into each
    link.
    """
    links: list[Row] = []
    dropped: list[Row] = []
    seen: set[tuple[str, str, str]] = set()
    if truth.odd:
        dropped.append({"link": one_line(truth.parts[LINKS], _LONGEST_SHOWN), "reason": truth.odd})
    for suggested in truth.suggested:
        ends = [_id_in(suggested, names, known) for names in (_FROM, _TO)]
        relation = _word_in(suggested, _TYPE).casefold()
        if reason := _against(ends, relation, seen, len(links)):
            dropped.append({"link": _shown(suggested), "reason": reason})
            continue
        seen.add((ends[0], relation, ends[1]))
        links.append(
            {
                "from": ends[0],
                "to": ends[1],
                "type": relation,
                "confidence": _confidence_in(suggested),
                "reasoning": one_line(_word_in(suggested, _REASONING), LONGEST_REASONING),
                "source": source,
                "synthesis_id": synthesis_id,
            }
        )
    return Weighed(links, dropped)


def links_as_text(links: Sequence[Row]) -> str:
    """Links as the last part of a synthesis shows them."""
    told = [{name: link[name] for name in ("from", "type", "to", "confidence", "reasoning")} for link in links]
    lines = ",\n".join(f"  {json.dumps(each, ensure_ascii=False)}" for each in told)
    return f"```json\n[\n{lines}\n]\n```" if lines else "```json\n[]\n```"


def _unwrapped(text: str) -> str:
    """What stands in the fence that a whole answer may be put in."""
    first, _, rest = text.strip().partition("\n")
    inside, _, last = rest.rpartition("\n")
    named = first.rstrip()
    is_named = any(named == f"{last}{name}" for name in _NAMES_OF_WRAPPER)
    return inside if is_named and len(last) >= _SHORTEST_FENCE and last[0] in "`~" and not last.strip(last[0]) else text


def _parts(text: str, *, heed_fences: bool) -> dict[str, str]:
    """What stands below each heading; twice the same heading, one after the other."""
    found: dict[str, list[str]] = {}
    at: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if heed_fences and (mark := _FENCE.match(line)):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line.strip(" \t`~"):
                fence = ""
        named = None if fence else _heading_in(line)
        if named is None:
            at.append(line)
            continue
        heading, rest = named
        at = found.setdefault(heading, [])
        at.append(rest)
    return {heading: "\n".join(lines).strip("\n") for heading, lines in found.items()}


def _heading_in(line: str) -> tuple[str, str] | None:
    """The heading that a line is, and what stands behind it on the same line."""
    frame = _FRAME.match(line)
    rest = line[frame.end() :] if frame else line
    whole = _NAMED.get(_words(rest))
    if whole is not None:
        return whole, ""
    name, colon, behind = rest.partition(":")
    # A name of one word before a colon begins many a sentence.
    heading = _NAMED.get(_words(name)) if colon and (" " in name.strip() or (frame and any(frame.groups()))) else None
    return None if heading is None else (heading, behind.strip().removeprefix("**").removeprefix("__").strip())


def _words(text: str) -> str:
    """A heading as it is compared: without marks, signs and what stands in brackets."""
    if len(text) > _LONGEST_HEADING:
        return ""
    plain = "".join(" " if unicodedata.category(each)[0] in "SZ" else each for each in text)
    bare = _IN_BRACKETS.sub("", plain.strip("#*_: \t")).strip("*_: \t")
    return " ".join(bare.replace("&", "and").casefold().split())


def _values(text: str) -> Iterator[Any]:
    """Objects, and lists of objects, in the text."""
    at, left = 0, _MOST_VALUES
    while left and (start := _OPENING.search(text, at)):
        left -= 1
        at = start.start() + 1
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) or (isinstance(value, list) and (not value or isinstance(value[0], dict))):
            yield value
            at = end


def _links_in(value: Any) -> list[Row]:
    if isinstance(value, list):
        return [each for each in value if isinstance(each, dict)]
    within = next((value[name] for name in _WITHIN if isinstance(value.get(name), list)), None)
    return [value] if within is None else _links_in(within)


def _id_in(link: Row, names: Sequence[str], known: Mapping[str, str]) -> str:
    """The memory that is named there, "" for none that was told of."""
    name = _word_in(link, names).strip("`[]<>\"' ")
    return known.get(name) or known.get(name.removesuffix(".md"), "")


def _against(ends: Sequence[str], relation: str, seen: set[tuple[str, str, str]], count: int) -> str:
    """Why a link is not written down; "" for one that is."""
    if not all(ends):
        return "it names a memory that the brief does not rest on"
    if relation not in RELATIONS:
        return f"its type is none of {', '.join(RELATIONS)}"
    if ends[0] == ends[1]:
        return "it links a memory to itself"
    if (ends[0], relation, ends[1]) in seen:
        return "it is there twice"
    return f"more than {MOST_LINKS} links are not taken from one answer" if count == MOST_LINKS else ""


def _word_in(link: Row, names: Sequence[str]) -> str:
    """The first of these fields that is a text."""
    return next((value.strip() for name in names if isinstance(value := link.get(name), str)), "")


def _confidence_in(link: Row) -> float:
    value = link.get("confidence")
    try:
        number = UNSURE if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return UNSURE
    return round(min(max(number, 0.0), 1.0), 3) if math.isfinite(number) else UNSURE


def _shown(link: Row) -> Row:
    """What is told of a link that is dropped: its texts and numbers, on one line each."""
    told: Row = {}
    for name, value in list(link.items())[:_MOST_FIELDS]:
        if isinstance(value, str):
            told[one_line(name, _LONGEST_HEADING)] = one_line(value, _LONGEST_SHOWN)
        elif isinstance(value, (int, float)) and abs(value) < _LARGEST_SHOWN:
            told[one_line(name, _LONGEST_HEADING)] = value
    return told


_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
