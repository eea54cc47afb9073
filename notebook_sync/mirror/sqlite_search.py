"""Which notes match a text query, the best first, by indexes alone: no note's text is read.

How rare a word is, the notes that everybody may read decide, and they have an index of their own: no score tells
anything of what stands in a guarded note that a session may not read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from notebook_sync.embedded import Embedded
from notebook_sync.mirror.base import ALL, Filter
from notebook_sync.mirror.sqlite_queries import Stage, admitting, stages, words_of
from notebook_sync.mirror.sqlite_schema import GUARDED, WEIGHTS

# How many notes a search scores, and the share of all notes that it scores where that is more.
_BUDGET, _SHARE = 2500, 1 / 16
# BM25's own: what an occurrence more adds to a score falls off by this.
_SATURATION = 1.2
_PARTS = (("title", WEIGHTS[0]), ("summary", WEIGHTS[1]), ("content code", WEIGHTS[2]))
_BM25 = f"-bm25(words, {', '.join(map(str, WEIGHTS))})"

# By the number of a note.
Scores = Mapping[int, float]


def best(db: Embedded, query: str, limit: int, filter: Filter) -> list[tuple[int, float]]:
    """The numbers of the notes that match any word of the query, and their scores, the best first."""
    words = words_of(query)
    if not words or limit <= 0:
        return []
    (notes,) = db.rows("SELECT count(*) FROM words_docsize")[0]
    budget = max(_BUDGET, int(notes * _SHARE))
    counts = {word: _count(db, word, budget) for word in words}
    found: dict[int, float] = {}
    if _may_admit(filter, guarded=False):
        found |= _open(db, stages(counts, budget), limit, filter)
    if _may_admit(filter, guarded=True):
        found |= _guarded(db, {word: _rarity(count, notes) for word, count in counts.items()}, filter)
    return sorted(found.items(), key=lambda one: (-one[1], one[0]))[:limit]


def _count(db: Embedded, word: str, most: int) -> int:
    """How many notes that everybody may read have a word; of more than `most`, only that there are more."""
    found = db.rows("SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)", (word, most + 1))
    return int(found[0][0])


def _rarity(count: int, notes: int) -> float:
    return math.log(1 + (notes - count + 0.5) / (count + 0.5))


def _may_admit(filter: Filter, *, guarded: bool) -> bool:
    """Whether the filter may admit any note of the guarded collections, or any of the others."""
    tops = {folder.split("/")[0] for folder in filter.below}
    return all(not names or any((name in GUARDED) is guarded for name in names) for names in (filter.collections, tops))


def _open(db: Embedded, plan: Sequence[Stage], limit: int, filter: Filter) -> Scores:
    """The best of the notes that everybody may read; no note of a later stage has a better score than an earlier's."""
    found: dict[int, float] = {}
    for stage in plan:
        if len(found) >= limit:
            break
        of_stage: dict[int, float] = defaultdict(float)
        for expression in stage.expressions:
            for n, score in _scored(db, expression, stage.newest, limit, replace(filter, of_channels=None)):
                of_stage[n] = max(of_stage[n], score)
        least = min(found.values(), default=math.inf)
        found |= {n: min(score, least) for n, score in of_stage.items() if n not in found}
    return found


def _scored(db: Embedded, expression: str, newest: int | None, limit: int, filter: Filter) -> list[tuple[int, float]]:
    admitted, values = admitting(filter)
    # What is indexed is no tombstone, so that without a filter no row has to be looked at.
    narrowed = f"CROSS JOIN note ON note.n = words.rowid WHERE {admitted} AND" if filter != ALL else "WHERE"
    values = values if filter != ALL else []
    bounded = "" if newest is None else "ORDER BY words.rowid DESC LIMIT ?"
    return db.rows(
        f"""SELECT n, score FROM (SELECT words.rowid AS n, {_BM25} AS score FROM words {narrowed} words MATCH ?
        {bounded}) ORDER BY score DESC, n LIMIT ?""",
        (*values, expression, *([] if newest is None else [newest]), limit),
    )


def _guarded(db: Embedded, rarities: Mapping[str, float], filter: Filter) -> Scores:
    """Every guarded note that matches, scored as BM25 does with one occurrence in each part of a note that has any."""
    admitted, values = admitting(filter)
    statement = f"""SELECT guarded_words.rowid FROM guarded_words CROSS JOIN note ON note.n = guarded_words.rowid
        WHERE {admitted} AND guarded_words MATCH ?"""
    found: dict[int, float] = defaultdict(float)
    for word, rarity in rarities.items():
        weights: dict[int, float] = defaultdict(float)
        for part, weight in _PARTS:
            for (n,) in db.rows(statement, (*values, f"{{{part}}} : {word}")):
                weights[n] += weight
        for n, weight in weights.items():
            found[n] += rarity * weight * (_SATURATION + 1) / (weight + _SATURATION)
    return found
