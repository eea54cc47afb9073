"""What a change of the files or of the settings does to the prompt, seen from two prompts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any

from prompt.budget import encoding_named
from prompt.values import Omission, Prompt


@dataclass(frozen=True, slots=True)
class Passage:
    """What one section of a file lacks more than before, in tokens. The anchor is "" above the first heading."""

    path: str
    anchor: str
    heading: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Change:
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
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


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
