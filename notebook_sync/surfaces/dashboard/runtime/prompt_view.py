"""A prompt as its page shows it: how full it is, and each file with what does not get through, in its place. Pure.

Nothing is left out without a word: a long stretch that no model sees is shortened, and says by how much.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from prompt import Expired, Omission, Part, Prompt
from prompt.hidden import visible
from prompt.values import Gap

Count = Callable[[str], int]
Tone = Literal["good", "warn", "bad"]
# Of a stretch that no model sees, as much as tells what it is.
LONGEST_HIDDEN: Final = 4_000
_NEARLY_FULL: Final = 90
_PIN = re.compile(r"\s*<!--\s*pin\s*-->\s*", re.IGNORECASE)
_OMISSION = re.compile(r"^(\[… .*\])$", re.MULTILINE)
_LABELS: Mapping[str, str] = {
    "comment": "comment, not shown",
    "expired": "expired, not shown",
    "upcoming": "has not begun, not shown",
    "frontmatter": "frontmatter, not shown",
    "quarantined": "from outside, not shown",
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some of a file. `kind` is "" for what the model sees, `pin` for a mark, else what took it out; `label` says so in
    words. `more` counts the characters that follow and are not in `text`."""

    text: str
    kind: str = ""
    label: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the bar of the whole prompt, from `start` on, `width` wide; in hundredths of it."""

    name: str
    tokens: int
    start: float
    width: float
    kind: Literal["file", "layout", "volatile"]


@dataclass(frozen=True, slots=True)
class Shown:
    """One file: how much of its share it uses, in hundredths, and all it says. `is_missing` where there is none."""

    name: str
    path: str
    tokens: int
    tokens_raw: int
    cap: int
    share: float
    tone: Tone
    said: str
    stretches: tuple[Stretch, ...]
    omitted: tuple[Omission, ...]
    expired: tuple[Expired, ...]
    pins: int
    problem: str
    is_missing: bool


@dataclass(frozen=True, slots=True)
class View:
    """A whole prompt. `stable` and `volatile` are its text, in pieces: what the model is told, and whether that is a
    line on what was left out."""

    tokens: int
    max_tokens: int
    share: float
    tone: Tone
    segments: tuple[Segment, ...]
    files: tuple[Shown, ...]
    stable: tuple[tuple[str, bool], ...]
    volatile: tuple[tuple[str, bool], ...]
    stable_tokens: int
    revision: str
    filtered: tuple[str, ...]
    problems: tuple[str, ...]


def view_of(prompt: Prompt, max_tokens: int, texts: Mapping[str, str], count: Count) -> View:
    """The prompt for its page. `texts` are the files that still are what the prompt was made of, by path."""
    volatile = prompt.text[len(prompt.stable) :]
    stable_tokens = count(prompt.stable) if volatile else prompt.tokens
    return View(
        tokens=prompt.tokens,
        max_tokens=max_tokens,
        share=_share(prompt.tokens, max_tokens),
        tone=_tone(prompt.tokens, max_tokens, is_cut=any(part.omitted for part in prompt.parts)),
        segments=tuple(_segments(prompt, stable_tokens, max_tokens)),
        files=tuple(shown_of(part, texts.get(part.path), count) for part in prompt.parts),
        stable=_pieces(prompt.stable),
        volatile=_pieces(volatile),
        stable_tokens=stable_tokens,
        revision=prompt.revision[:12],
        filtered=prompt.filtered,
        problems=prompt.problems,
    )


def shown_of(part: Part, text: str | None, count: Count) -> Shown:
    """One file. Without its text, what the session would see of it stands in place of that."""
    cut = [Gap(start, end, "cap") for start, end in part.cut]
    stretches = tuple(_stretches(part.whole, cut, count) if text is None else _stretches(text, part.gaps, count))
    left_out = sum(one.tokens for one in part.omitted)
    is_missing = not part.digest and not part.whole
    return Shown(
        name=part.name,
        path=part.path,
        tokens=part.tokens,
        tokens_raw=part.tokens_raw,
        cap=part.cap,
        share=_share(part.tokens, part.cap),
        tone="bad" if is_missing or part.problem else _tone(part.tokens, part.cap, is_cut=bool(part.omitted)),
        said=_said(part, left_out, is_missing=is_missing),
        stretches=stretches,
        omitted=part.omitted,
        expired=part.expired,
        pins=sum(one.kind == "pin" for one in stretches),
        problem=part.problem,
        is_missing=is_missing,
    )


def _said(part: Part, left_out: int, *, is_missing: bool) -> str:
    if is_missing:
        return "There is no such file."
    if left_out:
        return f"{left_out:,} tokens of it do not get through."
    return "All that is for a model gets through." if part.gaps else "All of it gets through."


def _tone(tokens: int, cap: int, *, is_cut: bool) -> Tone:
    if is_cut:
        return "bad"
    return "warn" if _share(tokens, cap) >= _NEARLY_FULL else "good"


def _share(tokens: int, cap: int) -> float:
    return round(min(100.0, 100 * tokens / cap), 2) if cap else 100.0 if tokens else 0.0


def _segments(prompt: Prompt, stable_tokens: int, max_tokens: int) -> Iterator[Segment]:
    start = 0.0
    own = sum(part.tokens for part in prompt.parts)
    told: list[tuple[str, int, Literal["file", "layout", "volatile"]]] = [
        *((part.name, part.tokens, "file") for part in prompt.parts),
        ("what the notebook is, and headings", max(stable_tokens - own, 0), "layout"),
        ("what may differ at each call", max(prompt.tokens - stable_tokens, 0), "volatile"),
    ]
    for name, tokens, kind in told:
        width = min(_share(tokens, max_tokens), 100 - start)
        if width > 0:
            yield Segment(name, tokens, round(start, 2), round(width, 2), kind)
        start += width


def _pieces(text: str) -> tuple[tuple[str, bool], ...]:
    split = _OMISSION.split(text)
    return tuple((piece, bool(index % 2)) for index, piece in enumerate(split) if piece)


def _stretches(text: str, gaps: Sequence[Gap], count: Count) -> Iterator[Stretch]:
    lost = visible(text, now=None).lost_pins
    for start, end, reason in _spans(text, gaps):
        said = text[start:end]
        if not reason:
            yield Stretch(said)
        elif reason == "comment" and _PIN.fullmatch(said):
            is_lost = text.count("\n", 0, text.index("<", start)) + 1 in lost
            yield Stretch(said, reason, "pins nothing") if is_lost else Stretch(said, "pin", "pinned: stays longest")
        else:
            label = _LABELS[reason] if reason != "cap" else f"{_tokens(count(said))}, left out for lack of room"
            yield Stretch(said[:LONGEST_HIDDEN], reason, label, max(len(said) - LONGEST_HIDDEN, 0))


def _tokens(number: int) -> str:
    return f"{number:,} token{'s' * (number != 1)}"


def _spans(text: str, gaps: Sequence[Gap]) -> Iterator[tuple[int, int, str]]:
    """The whole of a text in stretches, each with what took it out. What hides a line stands before what cuts it."""
    hidden = [gap for gap in gaps if gap.reason != "cap"]
    cut = _joined(text, sorted((gap for gap in gaps if gap.reason == "cap"), key=lambda gap: gap.start))
    edges = {0, len(text), *(min(edge, len(text)) for gap in (*hidden, *cut) for edge in (gap.start, gap.end))}
    for start, end in pairwise(sorted(edges)):
        yield start, end, _reason_at(hidden, start) or _reason_at(cut, start)


def _joined(text: str, gaps: Sequence[Gap]) -> list[Gap]:
    """Gaps with nothing but white space between them as one: what is cut entry by entry reads as one stretch."""
    joined: list[Gap] = []
    for gap in gaps:
        if joined and not text[joined[-1].end : gap.start].strip():
            joined[-1] = replace(joined[-1], end=gap.end)
        else:
            joined.append(gap)
    return joined


def _reason_at(gaps: Sequence[Gap], position: int) -> str:
    index = bisect_right(gaps, position, key=lambda gap: gap.start) - 1
    return gaps[index].reason if index >= 0 and position < gaps[index].end else ""
