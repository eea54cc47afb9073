"""How the command line renders the result of an operation: its text, what goes to standard error, the exit code."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """Where a result is shown. `width` is that of the terminal, None for a file or a pipe. `program` begins a command
    of this notebook, and `who` ends it with the session that was named. `kept(commit, *paths)` is the commit in words,
    or why there is none. `colour`: it is a terminal that shows colours."""

    width: int | None
    zone: tzinfo
    program: str
    who: str
    kept: Callable[..., str]
    colour: bool = False

    def command(self, words: str, *arguments: str) -> str:
        """A command that the same session can run next."""
        return " ".join([self.program, words, *map(shlex.quote, arguments)]) + self.who


def common_complaints(answer: Told) -> Iterator[str]:
    """What an answer says it lacks."""
    if degraded := answer.get("degraded"):
        yield f"found by words alone: {degraded}"
    yield from (answer[name] for name in ("error", "partial", "trouble") if answer.get(name))


@dataclass(frozen=True, slots=True)
class Rendering:
    """`text` is written by `Notebook`'s own words; where `is_quoted`, by others', which are printed to the letter.
    `complaints` are lines for standard error; `exit_code` is that of an answer. An operation that a person confirms is
    first shown as a dry run, by `preview`, with the `question`."""

    text: Callable[[Any, Shown], str]
    complaints: Callable[[Any], Iterable[str]] = common_complaints
    exit_code: Callable[[Any], int] = lambda _: 0
    is_quoted: bool = False
    preview: Callable[[Any, Shown], str] = lambda *_: ""
    question: str = "Go on?"


def by_width(text: Callable[[Any, int | None], str], exit_code: Callable[[Any], int] = lambda _: 0) -> Rendering:
    """A rendering that needs the terminal's width alone."""
    return Rendering(lambda told, shown: text(told, shown.width), exit_code=exit_code)
