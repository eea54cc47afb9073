"""Which pieces of a text stay longest. The order depends on the text alone, never on a cap, so that a larger cap shows
all that a smaller one does.

1. What is pinned, before all else.
2. Open tasks and rules before ticked ones.
3. Each section's first entry, then its next eight, then the rest, from the top of the file down.
4. In a dated log the newest first: where most entries, or most subheadings, of a section carry a date.
5. What introduces something stays as long as any of it does; a very long block loses its end early.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import product

from prompt.dates import date_in
from prompt.pieces import Chapter, Piece

# How many entries each section keeps before any keeps more.
FAIR_SHARE = 9


# What of a chapter stays together: whether it is done, whether it is late, and in which wave it comes.
_Rank = tuple[bool, bool, int]


def staying_order(root: Chapter) -> Iterator[list[Piece]]:
    """The pieces in the order in which they are kept: each with what frames it and is not kept yet.

    A chapter is divided into pieces when its first one comes.
    """
    chapters = list(_chapters(root))
    ranked: dict[Chapter, dict[_Rank, list[Piece]]] = {}
    kept: set[Piece] = set()
    for pinned, done, late, wave in product((True, False), (False, True), (False, True), (0, 1, 2)):
        for chapter in chapters:
            if chapter.pinned is not pinned:
                continue
            if chapter not in ranked:
                ranked[chapter] = _ranked(chapter)
            for piece in ranked[chapter].get((done, late, wave), ()):
                if group := _with_frames(piece, kept):
                    yield group


def _ranked(chapter: Chapter) -> dict[_Rank, list[Piece]]:
    """A chapter's own pieces by rank, those that stay longer first."""
    places = _newest_first(chapter.dates) or range(len(chapter.dates))
    own = [piece for piece in chapter.pieces if piece.top >= 0]
    own.sort(key=lambda piece: (piece.done, piece.late, places[piece.top], piece.start))
    if not own and not chapter.chapters and chapter.heading:
        own = [chapter.heading]
    ranked: dict[_Rank, list[Piece]] = {}
    for position, piece in enumerate(own):
        wave = 2 if position >= FAIR_SHARE else 1 if position or chapter.is_dated else 0
        ranked.setdefault((piece.done, piece.late, wave), []).append(piece)
    return ranked


def _with_frames(piece: Piece, kept: set[Piece]) -> list[Piece]:
    """A piece and what frames it, as far as they are not kept yet."""
    group: list[Piece] = []
    wanted: Piece | None = piece
    while wanted is not None and wanted not in kept:
        kept.add(wanted)
        group.append(wanted)
        wanted = wanted.frame
    return group


def _chapters(chapter: Chapter) -> Iterator[Chapter]:
    """A chapter and all below it from the top of the file down; chapters that are a log, the newest first."""
    yield chapter
    below = chapter.chapters
    places = _newest_first([date_in(one.section.title) for one in below])
    for _, one in sorted(zip(places or range(len(below)), below, strict=True), key=lambda pair: pair[0]):
        one.is_dated = bool(places)
        yield from _chapters(one)


def _newest_first(dates: Sequence[date | None]) -> list[int]:
    """The place of each entry of a log among its siblings, the newest first; [] where most of them carry no date.

    One without a date belongs to the dated one above it; what stands above all of them introduces them.
    """
    known = [day for day in dates if day]
    if len(known) < 2 or 2 * len(known) <= len(dates):
        return []
    is_ascending = known[0] < known[-1]
    day = date.max
    keys = []
    for index, own in enumerate(dates):
        day = own or day
        keys.append((-day.toordinal(), -index if is_ascending and day < date.max else index, index))
    places = [0] * len(dates)
    for place, (*_, index) in enumerate(sorted(keys)):
        places[index] = place
    return places
