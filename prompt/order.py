"""The order in which the pieces of a text stay.

It depends on the text alone, never on a cap, so that a larger cap shows all that a smaller one does:

1. What is pinned, before all else.
2. Open tasks and rules before done ones.
3. Each section's first entry, then its next eight, then the rest, from the top of the file down.
4. In a dated log the newest first: where most entries, or most subheadings, of a section have a date.
5. A very long block loses its end early, and what frames something stays as long as any of it does.
6. A piece larger than all that is shown before it waits for smaller ones, so that no table empties the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from heapq import heappop, heappush
from operator import itemgetter

from prompt.dates import date_in
from prompt.pieces import SMALL, Chapter, Piece

# How many entries each section keeps before any keeps more.
FAIR_SHARE = 9
# In characters: a pinned piece up to this size waits for nothing.
PINNED = 8000


def staying_groups(chapters: Sequence[Chapter]) -> Iterator[list[Piece]]:
    """Groups of pieces in the order in which they are kept, each with what has to be shown with it."""
    kept: set[Piece] = set()
    waiting: list[tuple[int, int, Piece]] = []
    shown = 0
    order = _staying_order(chapters)
    for number, piece in enumerate(order):
        needed = piece.weight - (PINNED if piece.chapter.pinned else SMALL)
        heappush(waiting, (needed if needed > shown else 0, number, piece))
        while waiting and (waiting[0][0] <= shown or number + 1 == len(order)):
            group = []
            wanted = [heappop(waiting)[2]]
            while wanted:
                if (one := wanted.pop()) not in kept:
                    kept.add(one)
                    group.append(one)
                    wanted += [*one.notes, one.frame] if one.frame else one.notes
            if group:
                shown += sum(one.end - one.start for one in group)
                yield group


def _staying_order(chapters: Sequence[Chapter]) -> list[Piece]:
    """The pieces in the order in which they are kept, without those that only frame others; footnotes last, since they
    come with what refers to them."""
    ranked = []
    notes = {note.block for chapter in chapters for piece in chapter.pieces for note in piece.notes}
    for number, chapter in enumerate(_newest_first(chapters[0])):
        own = [piece for piece in chapter.pieces if piece.top >= 0]
        if own:
            places = _places(chapter.dates) or range(len(chapter.dates))
            own.sort(key=lambda piece: (piece.done, piece.late, places[piece.top], piece.start))
        elif not chapter.chapters and chapter.heading:
            own = [chapter.heading]
        for position, piece in enumerate(own):
            wave = 2 if position >= FAIR_SHARE else 1 if position or chapter.is_dated else 0
            key = (piece.block in notes, not chapter.pinned, piece.done, piece.late, wave, number, position)
            ranked.append((key, piece))
    return [piece for _, piece in sorted(ranked, key=itemgetter(0))]


def _newest_first(chapter: Chapter) -> Iterator[Chapter]:
    """A chapter and all below it from the top of the file down; chapters that are a log, the newest first."""
    yield chapter
    below = chapter.chapters
    places = _places([date_in(one.section.title) for one in below])
    for _, one in sorted(zip(places or range(len(below)), below, strict=True), key=itemgetter(0)):
        one.is_dated = bool(places)
        yield from _newest_first(one)


def _places(dates: Sequence[date | None]) -> list[int]:
    """The place of each entry of a log among its siblings, the newest first; [] if most of them have no date.

    One without a date belongs to the dated one above it; what is above all of them introduces them.
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
