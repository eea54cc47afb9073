"""Which notes match a text query, the best first, by indexes alone: no note's text is read.

How rare a word is, the notes that everybody may read decide, and they have an index of their own: no score tells
anything of what stands in a guarded note that a session may not read.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from notebook_sync.embedded import Embedded
from notebook_sync.mirror.base import ALL, Filter
from notebook_sync.mirror.sqlite_queries import Stage, admitting, stages, words_of
from notebook_sync.mirror.sqlite_schema import GUARDED, WEIGHTS

# How many notes a search scores, and the share of all notes that it scores where that is more.
_BUDGET, _SHARE = 1500, 1 / 16
# BM25's own: what an occurrence more adds to a score falls off by this.
_SATURATION = 1.2
_PARTS = (("title", WEIGHTS[0]), ("summary", WEIGHTS[1]), ("content code", WEIGHTS[2]))
_BM25 = f"-bm25(words, {', '.join(map(str, WEIGHTS))})"

# A filter that admits no more notes than these is asked first.
_FEW = 1000

# By the number of a note.
Scores = Mapping[int, float]
# What a statement over an index of words has beside the words it matches, and the values.
_Narrowing = tuple[str, list[Any]]


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
        narrowing = _narrowing(db, replace(filter, of_channels=None), "words")
        found |= _open(db, stages(counts, budget), limit, narrowing)
    if _may_admit(filter, guarded=True):
        guarded = filter if filter.collections or filter == ALL else replace(filter, collections=GUARDED)
        found |= _guarded(db, counts, notes, _narrowing(db, guarded, "guarded_words"))
    return sorted(found.items(), key=lambda one: -one[1])[:limit]


def _narrowing(db: Embedded, filter: Filter, index: str) -> _Narrowing:
    """How to ask this index of words for no more than the filter admits: by a list of notes where those are few and
    found by an index of their own, else by a look at each note that matches."""
    if filter == ALL:
        return "", []  # what is indexed is no tombstone
    admitted, values = admitting(filter)
    few = db.rows(f"SELECT n FROM note WHERE {admitted} LIMIT ?", (*values, _FEW + 1))
    if len(few) <= _FEW:
        return "AND +rowid IN (SELECT value FROM json_each(?))", [json.dumps([n for (n,) in few])]
    return f"AND EXISTS (SELECT 1 FROM note WHERE note.n = {index}.rowid AND {admitted})", values


def _count(db: Embedded, word: str, most: int) -> int:
    """How many notes that everybody may read have a word; of more than `most`, only that there are more."""
    found = db.rows("SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)", (word, most + 1))
    return int(found[0][0])


def _may_admit(filter: Filter, *, guarded: bool) -> bool:
    """Whether the filter may admit any note of the guarded collections, or any of the others."""
    tops = {folder.split("/")[0] for folder in filter.below}
    return all(not names or any((name in GUARDED) is guarded for name in names) for names in (filter.collections, tops))


def _open(db: Embedded, plan: Sequence[Stage], limit: int, narrowing: _Narrowing) -> Scores:
    """The best of the notes that everybody may read; no note of a later stage has a better score than an earlier's."""
    found: dict[int, float] = {}
    for stage in plan:
        if len(found) >= limit:
            break
        of_stage: dict[int, float] = defaultdict(float)
        for expression, share in stage.expressions:
            for n, score in _scored(db, expression, stage.newest, limit, narrowing):
                of_stage[n] = max(of_stage[n], score * share)
        least = min(found.values(), default=math.inf)
        ranked = sorted(of_stage.items(), key=lambda one: (-one[1], one[0]))
        found |= {n: min(score, least) for n, score in ranked if n not in found}
    return found


def _scored(
    db: Embedded, expression: str, newest: int | None, limit: int, narrowing: _Narrowing
) -> list[tuple[int, float]]:
    condition, values = narrowing
    bounded, count = ("", []) if newest is None else ("ORDER BY rowid DESC LIMIT ?", [newest])
    return db.rows(
        f"""SELECT n, score FROM (SELECT rowid AS n, {_BM25} AS score FROM words WHERE words MATCH ? {condition}
        {bounded}) ORDER BY score DESC, n LIMIT ?""",
        (expression, *values, *count, limit),
    )


def _guarded(db: Embedded, counts: Mapping[str, int], notes: int, narrowing: _Narrowing) -> Scores:
    """Every guarded note that matches, scored as BM25 does with one occurrence in each part of a note that has any."""
    condition, values = narrowing
    statement = f"SELECT rowid FROM guarded_words WHERE guarded_words MATCH ? {condition}"
    found: dict[int, float] = defaultdict(float)
    for word in counts:
        weights: dict[int, float] = defaultdict(float)
        for part, weight in _PARTS:
            for (n,) in db.rows(statement, (f"{{{part}}} : {word}", *values)):
                weights[n] += weight
        rarity = _rarity(_count(db, word, notes), notes) if weights else 0.0
        for n, weight in weights.items():
            found[n] += rarity * weight * (_SATURATION + 1) / (weight + _SATURATION)
    return found


def _rarity(count: int, notes: int) -> float:
    """As FTS5 has it: next to nothing for a word that half of the notes have."""
    return max(math.log((notes - count + 0.5) / (count + 0.5)), 1e-6)
