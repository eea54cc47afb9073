"""One file as the prompt shows it: all that a model may see of it, in at most so many tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from sys import maxsize

from prompt.budget import Count
from prompt.ends import closing_line, omission_line
from prompt.gaps import Positions
from prompt.hidden import visible
from prompt.trim import Cutting
from prompt.values import FileText, Gap, Omission, Part, PromptFile


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, so that it is a cheap key of a cache
class View:
    """All that a model may see of a file, uncut. `pinned` are where, in its text, pinned headings begin.

    `line` replaces the file where there is no room for more; "" for an empty file, which needs none.
    """

    whole: Part
    line: str
    line_tokens: int
    pinned: frozenset[int] = frozenset()


def view_of(rule: PromptFile, source: FileText, now: datetime, count: Count) -> View:
    """All that a model may see of the file that `rule` asks for; a line that says so for one that it may not see."""
    content = source.content or b""
    text = content.decode(errors="replace")
    digest = "" if source.content is None else sha256(content).hexdigest()
    part = Part(rule.heading or rule.path, rule.path, digest, count(text), 0, 0, "", problem=source.problem)
    if source.content is None:
        return _replaced(part, f"[{rule.path} is missing]", count)
    if source.external:
        line = f"[{rule.path} was not written by the owner and is not shown here: notebook_read {rule.path}]"
        problem = source.problem or "not written by the owner, so it is not shown among the rules"
        return _replaced(replace(part, gaps=(Gap(0, len(text), "quarantined"),), problem=problem), line, count)
    shown = visible(text, now=now)
    tokens = part.tokens_raw if shown.text == text else count(shown.text)
    line = omission_line(0, rule.path) if tokens else ""
    part = replace(
        part,
        text=shown.text,
        tokens=tokens,
        whole=shown.text,
        tokens_whole=tokens,
        gaps=shown.gaps,
        expired=shown.expired,
        problem=part.problem or _undecoded(content),
    )
    return View(part, line, count(line), shown.pinned)


def cutting_of(view: View, count: Count) -> Cutting:
    """The text of `view`, ready to be cut to one cap after another."""
    part = view.whole
    return Cutting(part.whole, part.tokens_whole, count, path=part.path, pinned=view.pinned)


def part_of(view: View, cap: int, cutting: Callable[[View], Cutting]) -> Part:
    """What `view` shows within `cap` tokens. `cutting` is `cutting_of`, from a cache."""
    part = replace(view.whole, cap=cap)
    if part.tokens <= cap:
        return replace(part, closing=closing_line(part.text))
    if not part.whole:
        return replace(part, text="", tokens=0)
    cut = cutting(view).at(cap)
    before = Positions(part.gaps).before
    gaps = [Gap(before(start), before(end - 1) + 1, "cap") for start, end in cut.cut if start < end]
    return replace(
        part,
        text=cut.text,
        tokens=cut.tokens,
        omitted=cut.omitted,
        gaps=(*part.gaps, *gaps),
        cut=cut.cut,
        closing=closing_line(cut.text),
    )


def line_of(view: View, *, fits: bool) -> Part:
    """Only the line that replaces the file, and not even that unless it `fits`."""
    tokens = view.line_tokens if fits else 0
    part = replace(view.whole, cap=tokens, tokens=tokens, text=view.line if fits else "", closing="")
    if not part.whole:
        return part
    omitted = (Omission("", part.name, 0, part.tokens_whole),)
    return replace(part, omitted=omitted, gaps=(*part.gaps, Gap(0, maxsize, "cap")), cut=((0, len(part.whole)),))


def _replaced(part: Part, line: str, count: Count) -> View:
    tokens = count(line)
    return View(replace(part, text=line, tokens=tokens), line, tokens)


def _undecoded(content: bytes) -> str:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}; what could not be read is shown as \ufffd"
    return ""
