"""Texts in pictures: of what a note says, as much as there is room for. Pure; it is escaped by whoever writes it into
markup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

# What XML cannot hold, and what turns the direction of all that follows.
_UNWANTED = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
# Widths of letters as shares of the font's size, in DejaVu Sans, rounded up: the widest of the fonts that systems show.
_LETTERS = {
    0.34: " ijlIJ.,:;'|!/\\",
    0.42: "frt()[]{}-",
    0.56: 'szcL"*^_',
    0.64: "abdeghknopquvxyzEFPTY0123456789?$",
    0.7: "ABCKRSVXZ",
    0.79: "DGHNOQU&",
    0.84: "w+=<>#~",
    0.87: "M",
    1.0: "mW@%…—",
}
_WIDTHS = {letter: width for width, letters in _LETTERS.items() for letter in letters}
_OTHER, _IDEOGRAPH, _EMOJI = 0.8, 1.0, 1.3
_ELLIPSIS = "…"

_Measure = Callable[[str], float]


def short(text: str, room: int) -> str:
    """The beginning of a text on one line of so many letters; wide ones count for two."""
    line = _one_line(text)
    kept = _that_fits(line, room, _columns)
    return line if kept == len(line) else f"{line[: max(kept - 1, 1)].rstrip()}{_ELLIPSIS}"


def fitted(text: str, width: float) -> str:
    """The beginning of a text on one line that is no wider than so many times the font's size."""
    line = _one_line(text)
    if _that_fits(line, width, _width) == len(line):
        return line
    return f"{line[: _that_fits(line, width - _WIDTHS[_ELLIPSIS], _width)].rstrip()}{_ELLIPSIS}"


def two_lines(text: str, width: float) -> tuple[str, str]:
    """As `fitted`, on two lines, the first of which ends between words where it can; the second is "" for none."""
    line = _one_line(text)
    kept = _that_fits(line, width, _width)
    if kept == len(line):
        return line, ""
    between = line.rfind(" ", 0, kept + 1)
    at = between if between > kept // 2 else kept
    return line[:at], fitted(line[at:], width)


def _one_line(text: str) -> str:
    return " ".join(_UNWANTED.sub(" ", text).split())


def _that_fits(line: str, room: float, measure: _Measure) -> int:
    """How many characters of the line there is room for."""
    for at, letter in enumerate(line):
        room -= measure(letter)
        if room < 0:
            return at
    return len(line)


def _columns(letter: str) -> int:
    return 2 if _is_wide(letter) else 1


def _width(letter: str) -> float:
    known = _WIDTHS.get(letter)
    if known is not None:
        return known
    category = unicodedata.category(letter)
    if category in ("Mn", "Me", "Cf"):  # it stands over another, or nowhere
        return 0.0
    if not _is_wide(letter):
        return _OTHER
    return _EMOJI if category == "So" else _IDEOGRAPH


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"
