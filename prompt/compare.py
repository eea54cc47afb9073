"""What a change of the files, or of the settings, does to the prompt: told from two prompts, without reading again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any

from prompt.budget import count_tokens, encoding_named
from prompt.outline import Outline, Section
from prompt.values import Part, Prompt


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of one section of a file, and how many tokens they are. The anchor is "" before the first heading."""

    path: str
    anchor: str
    heading: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Change:
    """From one prompt to another.

    `fell_out` is what stands in a file before and after, and the prompt no longer shows; `came_back` is what it shows
    again. What the files themselves gained or lost is neither. `kept_prefix_tokens` is how much of the stable part
    a provider's prefix cache can keep; after `stable_changes` the rest of it is read anew.
    """

    tokens_before: int
    tokens_after: int
    fell_out: tuple[Passage, ...]
    came_back: tuple[Passage, ...]
    stable_changes: bool
    kept_prefix_tokens: int

    def as_json(self) -> dict[str, Any]:
        """The change's stable JSON shape."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def compare(before: Prompt, after: Prompt) -> Change:
    """What `after` shows otherwise than `before`, in whole lines: one that is shown in part is not shown.

    A session's view counts: what is hidden from it on both sides (a comment, an expired rule) neither falls out nor
    comes back.
    """
    return Change(
        tokens_before=before.tokens,
        tokens_after=after.tokens,
        fell_out=tuple(_only_in_the_first(before, after)),
        came_back=tuple(_only_in_the_first(after, before)),
        stable_changes=before.stable != after.stable,
        kept_prefix_tokens=_common_tokens(before.stable, after.stable, after.encoding),
    )


def _only_in_the_first(showing: Prompt, hiding: Prompt) -> Iterator[Passage]:
    """What the first shows and the second has but cuts, section by section of the second's files."""
    showing_parts = {part.path: part for part in showing.parts}
    for part in hiding.parts:
        other = showing_parts.get(part.path)
        if other is None or not part.cut or (other.whole, other.cut) == (part.whole, part.cut):
            continue
        missed = _shown_lines(other)
        missed.subtract(_shown_lines(part))
        taken: dict[Section, list[str]] = {}
        outline = Outline(part.whole)
        for start, line, is_shown in _lines(part):
            if not is_shown and missed[line] > 0:
                missed[line] -= 1
                taken.setdefault(outline.section_at(start), []).append(line)
        for section, lines in taken.items():
            tokens = count_tokens("\n".join(lines), hiding.encoding)
            yield Passage(part.path, section.anchor, section.title, tokens)


def _shown_lines(part: Part) -> Counter[str]:
    return Counter(line for _, line, is_shown in _lines(part) if is_shown)


def _lines(part: Part) -> Iterator[tuple[int, str, bool]]:
    """The lines of what the session may see, blank ones apart: where each begins, and whether all of it is shown."""
    cuts = iter(part.cut)
    cut = next(cuts, None)
    start = 0
    for line in part.whole.splitlines(keepends=True):
        text = line.strip()
        end = start + len(line.rstrip())
        while cut and cut[1] <= start:
            cut = next(cuts, None)
        if text:
            yield start, text, cut is None or cut[0] >= end
        start += len(line)


def _common_tokens(one: str, other: str, encoding: str) -> int:
    """How many tokens the two texts begin with alike."""
    if one == other:
        return count_tokens(one, encoding)
    tokenizer = encoding_named(encoding)
    pairs = zip(tokenizer.encode_ordinary(one), tokenizer.encode_ordinary(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
