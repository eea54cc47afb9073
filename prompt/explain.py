"""Did this text reach the model, and if not, what took it out? Answers from the prompt's own account, no guess."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from prompt.blocks import Lines
from prompt.comments import end_of_frontmatter
from prompt.gaps import first_touching
from prompt.outline import Outline
from prompt.values import Part, Prompt, Source


@dataclass(frozen=True, slots=True)
class Found:
    """One place where the text stands: its 1-based line, and the heading above it ("" before the first) with its
    anchor. With `last_good` it is a place of the file's last good version: what is there now could not be used.

    `reason` is "" when it is in the prompt, else `cap`, `comment`, `expired`, `frontmatter`, `session filter`,
    `quarantined` (the owner did not write it), `not yet parsed` (the file as it is now could not be used, and its last
    good version, which the prompt shows, does not have it), or `not a prompt file`.
    """

    path: str
    line: int
    section: str
    in_prompt: bool
    reason: str = ""
    anchor: str = ""
    last_good: bool = False


def explain(text: str, prompt: Prompt, sources: Sequence[Source]) -> list[Found]:
    """Every line in `sources` where `text` begins, and whether `prompt`, assembled from them, shows it.

    Case and the kind of white space do not matter, and the text may run over several lines. It counts as shown when
    all of it is; shown in part, it is not, for the reason of the first part that is missing. Where it begins twice on
    a line, one place that is shown is enough. What only the layout says (the directive, a heading of the prompt, a
    line on what is left out) stands in no file and is not found. Raises ValueError for a text without words.
    """
    pattern = _pattern(text)
    parts = {part.path: part for part in prompt.parts}
    found: dict[tuple[str, int], Found] = {}
    for source in sources:
        for each in _found_in(source, pattern, parts.get(source.path), prompt):
            key = each.path, each.line
            if key not in found or each.in_prompt > found[key].in_prompt:
                found[key] = each
    return list(found.values())


def _pattern(text: str) -> re.Pattern[str]:
    words = text.casefold().split()
    if not words:
        raise ValueError("there is nothing to look for; give some words of the line that you want explained")
    return re.compile(r"\s+".join(re.escape(word) for word in words))


def _found_in(source: Source, pattern: re.Pattern[str], part: Part | None, prompt: Prompt) -> Iterator[Found]:
    content = _decoded(source.content)
    if places := list(_places(pattern, content)):
        last_good = bool(source.problem) and source.content != source.found
        for each in _told(source.path, content, list(_with_reasons(places, source, part, prompt))):
            yield replace(each, last_good=last_good)
    elif source.found is not None:
        newer = _decoded(source.found)
        yield from _told(source.path, newer, [(start, "not yet parsed") for start, _ in _places(pattern, newer)])


def _decoded(content: bytes | None) -> str:
    return (content or b"").decode(errors="replace")


def _told(path: str, content: str, places: Sequence[tuple[int, str]]) -> Iterator[Found]:
    if not places:
        return
    begin = end_of_frontmatter(content)
    lines, outline = Lines(content), Outline(content[begin:])
    for start, reason in places:
        heading = outline.at(start - begin)
        yield Found(path, lines.at(start) + 1, heading.text, not reason, reason, heading.anchor)


def _with_reasons(
    places: Sequence[tuple[int, int]], source: Source, part: Part | None, prompt: Prompt
) -> Iterator[tuple[int, str]]:
    """Where each place begins, and what took it out of the prompt, "" where nothing did."""
    if source.path in prompt.filtered or part is None:
        elsewhere = "session filter" if source.path in prompt.filtered else "not a prompt file"
        # No setting shows what somebody else wrote: it says more than that this one does not.
        reason = "quarantined" if source.external else elsewhere
        yield from ((start, reason) for start, _ in places)
        return
    hidden = [gap for gap in part.gaps if gap.reason != "cap"]
    cut = [gap for gap in part.gaps if gap.reason == "cap"]
    for start, end in places:
        # What hides a line stands before what cuts it.
        touched = [gap for gaps in (hidden, cut) if (gap := first_touching(gaps, start, end))]
        yield start, min(touched, key=lambda gap: max(gap.start, start)).reason if touched else ""


def _places(pattern: re.Pattern[str], content: str) -> Iterator[tuple[int, int]]:
    """Where the pattern stands in `content`, as characters of it; each place once, none inside another."""
    folded = content.casefold()
    if len(folded) == len(content):
        yield from (match.span() for match in pattern.finditer(folded))
        return
    # Where each character that grew begins in `folded`, and by how much all after it are shifted.
    at, shifts, shift = [-1], [0], 0
    for grown in _growing().finditer(content):
        at.append(grown.start() + shift)
        shift += len(grown[0].casefold()) - 1
        shifts.append(shift)
    for match in pattern.finditer(folded):
        yield _unfolded(match.start(), at, shifts), _unfolded(match.end() - 1, at, shifts) + 1


def _unfolded(position: int, at: Sequence[int], shifts: Sequence[int]) -> int:
    """The character of the text to which the one at `position` of the folded text belongs."""
    index = bisect_right(at, position) - 1
    return max(position - shifts[index], at[index] - shifts[index - 1] if index else 0)


@cache
def _growing() -> re.Pattern[str]:
    """Characters that are several when case is folded: ß, İ, ligatures. There are none beyond the first plane."""
    return re.compile("[" + "".join(chr(code) for code in range(0x10000) if len(chr(code).casefold()) > 1) + "]")
