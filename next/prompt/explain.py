"""Whether a text reaches the model, and if not, what takes it out; and what a change does to the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, NamedTuple

from prompt.budget import encoding_named
from prompt.hidden import end_of_frontmatter, first_touching, visible
from prompt.outline import Lines, Outline
from prompt.values import FileText, Omission, Part, Prompt


@dataclass(frozen=True, slots=True)
class Found:
    """One place of the text: its 1-based line, and the heading above it ("" above the first) with its anchor.

    `last_good` marks a place in the file's last good version: what is there now could not be used. `reason` is "" if it
    is in the prompt, else `cap`, `comment`, `payload`, `expired`, `upcoming`, `frontmatter`, `session filter`,
    `quarantined` (the owner did not write it), `not yet parsed` (only the unusable bytes have it), `waiting for trust`
    (set by the notebook), or `not a prompt file`.
    """

    path: str
    line: int
    section: str
    in_prompt: bool
    reason: str = ""
    anchor: str = ""
    last_good: bool = False


def explain(text: str, prompt: Prompt, sources: Sequence[FileText]) -> list[Found]:
    """Every line in `sources` where `text` begins, and whether `prompt`, assembled from them, shows it.

    Case and the kind of white space do not matter, and the text may run over several lines. It counts as shown if all
    of it is; otherwise the reason is that of the first part that is missing. If it begins twice on a line, one place
    that is shown is enough. What only the layout says (the directive, an omission line) is not found. Raises ValueError
    for a text without words.
    """
    words = text.split()
    if not words:
        raise ValueError("there is nothing to look for; give some words of the line that you want explained")
    pattern = re.compile(r"\s+".join(re.escape(word) for word in words), re.IGNORECASE)
    parts = {part.path: part for part in prompt.parts}
    found: dict[tuple[str, int], Found] = {}
    for source in sources:
        places = _found_in(source, pattern, parts.get(source.path), prompt)
        for each in sorted(places, key=lambda each: (each.line, not each.in_prompt)):
            found.setdefault((each.path, each.line), each)
    return list(found.values())


def _found_in(source: FileText, pattern: re.Pattern[str], part: Part | None, prompt: Prompt) -> Iterator[Found]:
    content = source.text
    if places := list(_with_reasons(pattern, content, source, part, prompt)):
        last_good = bool(source.problem) and source.content != source.found
        for each in _located(source.path, content, places):
            yield replace(each, last_good=last_good)
    elif source.found is not None:
        newer = source.found.decode(errors="replace")
        yield from _located(
            source.path, newer, [(place.start(), "not yet parsed") for place in pattern.finditer(newer)]
        )


def _located(path: str, content: str, places: Sequence[tuple[int, str]]) -> Iterator[Found]:
    begin = end_of_frontmatter(content)
    lines, outline = Lines(content), Outline(content[begin:])
    for start, reason in places:
        section = outline.section_at(start - begin)
        yield Found(path, lines.at(start) + 1, section.title, not reason, reason, section.anchor)


def _with_reasons(
    pattern: re.Pattern[str], content: str, source: FileText, part: Part | None, prompt: Prompt
) -> Iterator[tuple[int, str]]:
    """Where each place begins, and what takes it out of the prompt, "" for nothing."""
    gaps = part.gaps if part else visible(content, now=None).gaps
    # What hides a line is named before what cuts it.
    groups = [[gap for gap in gaps if (gap.reason == "cap") == is_cap] for is_cap in (False, True)]
    for place in pattern.finditer(content):
        start, end = place.span()
        touched = [gap for group in groups if (gap := first_touching(group, start, end))]
        reason = min(touched, key=lambda gap: max(gap.start, start)).reason if touched else ""
        if source.external:
            # No setting shows what somebody else wrote: this says more than that the present ones do not.
            yield start, "quarantined"
        elif source.path in prompt.filtered:
            yield start, "session filter"
        else:
            yield start, reason if part else "not a prompt file"


class Passage(NamedTuple):
    """What one section of a file lacks more than before, in tokens. The anchor is "" above the first heading."""

    path: str
    anchor: str
    heading: str
    tokens: int


class Change(NamedTuple):
    """From one prompt to another.

    `fell_out` are the sections of which more is left out, `came_back` those of which less is. `kept_prefix_tokens` is
    how much of the stable part a provider's prefix cache can keep.
    """

    tokens_before: int
    tokens_after: int
    fell_out: tuple[Passage, ...]
    came_back: tuple[Passage, ...]
    stable_changes: bool
    kept_prefix_tokens: int

    def as_json(self) -> dict[str, Any]:
        """The stable JSON shape of a change."""
        passages = {name: [each._asdict() for each in getattr(self, name)] for name in ("fell_out", "came_back")}
        return self._asdict() | passages


def compare(before: Prompt, after: Prompt) -> Change:
    """What `after` leaves out of its files that `before` did not, and the other way round."""
    one, other = (encoding_named(after.encoding).encode_ordinary(prompt.stable) for prompt in (before, after))
    kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    lost, back = tuple(_more_in(before, after)), tuple(_more_in(after, before))
    return Change(before.tokens, after.tokens, lost, back, before.stable != after.stable, kept)


def _more_in(before: Prompt, after: Prompt) -> Iterator[Passage]:
    known = _omitted(before)
    for (path, anchor), one in _omitted(after).items():
        more = one.tokens - (known[path, anchor].tokens if (path, anchor) in known else 0)
        if more > 0:
            yield Passage(path, anchor, one.heading, more)


def _omitted(prompt: Prompt) -> dict[tuple[str, str], Omission]:
    return {(part.path, one.anchor): one for part in prompt.parts for one in part.omitted}
