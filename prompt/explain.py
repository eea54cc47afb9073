"""Did this text reach the model, and if not, what took it out? Answers from the prompt's own account."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from prompt.gaps import Positions, first_touching, without
from prompt.hidden import end_of_frontmatter, visible
from prompt.outline import Lines, Outline
from prompt.values import FileText, Part, Prompt


@dataclass(frozen=True, slots=True)
class Found:
    """One place of the text: its 1-based line, and the heading above it ("" before the first) with its anchor. With
    `last_good` it is a place of the file's last good version: what is there now could not be used.

    `reason` is "" when it is in the prompt, else `cap`, `comment`, `expired`, `upcoming` (a rule that has not begun),
    `frontmatter`, `session filter`, `quarantined` (the owner did not write it), `not yet parsed` (the file as it is now
    could not be used, and its last good version, which the prompt shows, does not have it), `waiting for trust` (the
    notebook says so of what is there now and not trusted), or `not a prompt file`.
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

    Case and the kind of white space do not matter, and the text may run over several lines, and over a comment that
    the prompt leaves out. It counts as shown when all of it is; shown in part, it is not, for the reason of the first
    part that is missing. Where it begins twice on a line, one place that is shown is enough. What only the layout says
    (the directive, a heading of the prompt, an omission line) is in no file and is not found. Raises ValueError for a
    text without words.
    """
    pattern = _pattern(text)
    parts = {part.path: part for part in prompt.parts}
    found: dict[tuple[str, int], Found] = {}
    for source in sources:
        places = _found_in(source, pattern, parts.get(source.path), prompt)
        for each in sorted(places, key=lambda each: (each.line, not each.in_prompt)):
            found.setdefault((each.path, each.line), each)
    return list(found.values())


def _pattern(text: str) -> re.Pattern[str]:
    words = text.split()
    if not words:
        raise ValueError("there is nothing to look for; give some words of the line that you want explained")
    return re.compile(r"\s+".join(re.escape(word) for word in words), re.IGNORECASE)


def _found_in(source: FileText, pattern: re.Pattern[str], part: Part | None, prompt: Prompt) -> Iterator[Found]:
    content = _decoded(source.content)
    if places := list(_with_reasons(pattern, content, source, part, prompt)):
        last_good = bool(source.problem) and source.content != source.found
        for each in _located(source.path, content, places):
            yield replace(each, last_good=last_good)
    elif source.found is not None:
        newer = _decoded(source.found)
        yield from _located(source.path, newer, [(start, "not yet parsed") for start, _ in _places(pattern, newer)])


def _decoded(content: bytes | None) -> str:
    return (content or b"").decode(errors="replace")


def _located(path: str, content: str, places: Sequence[tuple[int, str]]) -> Iterator[Found]:
    begin = end_of_frontmatter(content)
    lines, outline = Lines(content), Outline(content[begin:])
    for start, reason in places:
        section = outline.section_at(start - begin)
        yield Found(path, lines.at(start) + 1, section.title, not reason, reason, section.anchor)


def _with_reasons(
    pattern: re.Pattern[str], content: str, source: FileText, part: Part | None, prompt: Prompt
) -> Iterator[tuple[int, str]]:
    """Where each place begins, and what took it out of the prompt, "" where nothing did."""
    gaps = part.gaps if part else visible(content, now=None).gaps
    hidden = [gap for gap in gaps if gap.reason != "cap"]
    cut = [gap for gap in gaps if gap.reason == "cap"]
    before = Positions(hidden).before
    places = [(start, end, (hidden, cut)) for start, end in _places(pattern, content)]
    # What reads on across a comment is in no one place of the file.
    shown = _places(pattern, without(content, hidden))
    for start, end, groups in [*places, *((before(start), before(end - 1) + 1, (cut,)) for start, end in shown)]:
        if source.external:
            # No setting shows what somebody else wrote: it says more than that this one does not.
            yield start, "quarantined"
        elif source.path in prompt.filtered or part is None:
            yield start, "session filter" if source.path in prompt.filtered else "not a prompt file"
        else:
            # What hides a line is named rather than what cuts it.
            touched = [gap for gaps in groups if (gap := first_touching(gaps, start, end))]
            yield start, min(touched, key=lambda gap: max(gap.start, start)).reason if touched else ""


def _places(pattern: re.Pattern[str], content: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in pattern.finditer(content))
