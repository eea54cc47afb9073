"""What may differ at each call, in the room the stable part leaves it. Never touches the stable part.

A fence around external text is kept as a whole: what is cut is cut inside of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prompt.budget import Claim, Count, share
from prompt.fence import FENCED
from prompt.layout import volatile_text
from prompt.shown import omission_line
from prompt.trim import trim
from prompt.values import Volatile

# What a heading and the lines around it may cost.
FRAME = 8
RESERVE = 120


@dataclass(frozen=True, slots=True)
class Fitted:
    """The volatile part as it stands in the prompt, and the headings for which there was no room."""

    text: str
    left_out: tuple[str, ...] = ()


def fitted(volatile: Volatile, stable: str, limit: int, count: Count) -> Fitted:
    """The volatile texts after `stable`, all together in at most `limit` tokens.

    They share the room alike. Where there is none even for what says that they are cut, they are left out: the task
    brief last.
    """
    sections = [(heading, text) for heading, text in _sections(volatile) if text.strip()]
    whole = volatile_text(sections, after=stable)
    if not whole or count(stable + whole) <= limit:
        return Fitted(whole)
    room = limit - count(stable)
    needs = {heading: count(text) for heading, text in sections}
    kept = list(sections)
    while kept:
        if cut := _cut_to(kept, needs, room, count):
            text = volatile_text(cut, after=stable)
            tokens = count(stable + text)
            if tokens <= limit:
                names = {heading for heading, _ in kept}
                return Fitted(text, tuple(heading for heading, _ in sections if heading not in names))
            room -= tokens - limit
        else:
            kept.pop(0)
    return Fitted("", tuple(heading for heading, _ in sections))


def _cut_to(
    sections: Sequence[tuple[str, str]], needs: Mapping[str, int], room: int, count: Count
) -> list[tuple[str, str]]:
    """The sections in about `room` tokens; none where one of them could not even say that it is cut."""
    claims = [
        Claim(needs[heading], reserve=RESERVE, floor=count(omission_line(0, needs[heading]))) for heading, _ in sections
    ]
    if sum(min(claim.need, claim.floor) for claim in claims) + FRAME * len(claims) > room:
        return []
    granted = share(room - FRAME * len(sections), claims)
    cut = [(heading, within(text, cap, count)) for (heading, text), cap in zip(sections, granted, strict=True)]
    return cut if all(text for _, text in cut) else []


def within(text: str, cap: int, count: Count) -> str:
    """`text` in at most `cap` tokens, each fence around external text closed as it was."""
    if count(text) <= cap:
        return text
    pieces = _pieces(text)
    if len(pieces) == 1 and not FENCED.fullmatch(pieces[0]):
        return trim(text, cap, count).text
    room = cap
    while room > 0:
        shown = _beginning_of(pieces, room, count)
        tokens = count(shown)
        if tokens <= cap:
            return shown
        room -= tokens - cap
    return ""


def _beginning_of(pieces: Sequence[str], room: int, count: Count) -> str:
    """The first pieces, the one at the border cut, and one line for the rest."""
    rest = sum(count(piece) for piece in pieces)
    room -= count(omission_line(0, rest))
    shown: list[str] = []
    for piece in pieces:
        tokens = count(piece)
        if tokens > room:
            if beginning := _cut(piece, room, count):
                shown.append(beginning)
                rest -= tokens
            break
        shown.append(piece)
        room -= tokens
        rest -= tokens
    if rest > 0:
        shown.append(omission_line(0, rest))
    return "\n\n".join(piece.strip("\r\n") for piece in shown)


def _cut(piece: str, room: int, count: Count) -> str:
    fence = FENCED.fullmatch(piece)
    if not fence:
        return trim(piece, room, count).text
    opening, inside, closing = fence.group("opening", "inside", "closing")
    cut = trim(inside, room - count(opening) - count(closing), count).text
    return f"{opening}{cut}\n{closing}" if cut else ""


def _pieces(text: str) -> list[str]:
    """`text` in order: fenced texts, and what stands between them."""
    pieces, position = [], 0
    for fence in FENCED.finditer(text):
        pieces += [text[position : fence.start()], fence[0]]
        position = fence.end()
    return [piece for piece in (*pieces, text[position:]) if piece.strip()]


def _sections(volatile: Volatile) -> tuple[tuple[str, str], ...]:
    return (
        ("Notebook", volatile.refs),
        ("Facts", volatile.facts),
        ("Recent Notes", volatile.notes),
        ("Task Brief", volatile.brief),
    )
