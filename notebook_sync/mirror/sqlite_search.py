"""Which notes match a text query, the best first, by indexes alone: no note's text is read.

The answer is a function of the notes, never of the order in which they came. How rare a word is, the notes that
everybody may read decide, and they have an index of their own: no score tells anything of what stands in a guarded note
that a session may not read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from notebook_sync.embedded import Embedded
from notebook_sync.mirror.base import ALL, Filter
from notebook_sync.mirror.sqlite_queries import admitting, any_of, rarest, words_of
from notebook_sync.mirror.sqlite_schema import GUARDED, WEIGHTS

# Where more notes match than the first, the newest of them are scored, and all with a word in the title or a rare word.
_MOST, _NEWEST = 10_000, 5_000
# So many more than asked for are looked at, lest one that is even with the last is missed.
_SPARE = 50
# A filter that admits no more notes than these is asked first.
_FEW = 1000
# BM25's own: what an occurrence more adds to a score falls off by this.
_SATURATION = 1.2
_PARTS = (("title", WEIGHTS[0]), ("summary", WEIGHTS[1]), ("content code", WEIGHTS[2]))
_BM25 = f"-bm25(words, {', '.join(map(str, WEIGHTS))})"

# Score, id and number of a note.
_Hit = tuple[float, str, int]
# What a statement over an index of words has beside the words it matches, and the values.
_Narrowing = tuple[str, list[Any]]


def best(db: Embedded, query: str, limit: int, filter: Filter) -> list[tuple[int, float]]:
    """The numbers of the notes that match any word of the query, and their scores, the best first."""
    words = words_of(query)
    if not words or limit <= 0:
        return []
    found: list[_Hit] = []
    if _may_admit(filter, guarded=False):
        found += _open(db, words, limit, replace(filter, of_channels=None))
    if _may_admit(filter, guarded=True):
        guarded = filter if filter.collections or filter == ALL else replace(filter, collections=GUARDED)
        found += _guarded(db, words, limit, guarded)
    ranked = sorted(found, key=lambda hit: (-hit[0], hit[1]))
    return [(n, score) for score, _, n in ranked[:limit]]


def _may_admit(filter: Filter, *, guarded: bool) -> bool:
    """Whether the filter may admit any note of the guarded collections, or any of the others."""
    tops = {folder.split("/")[0] for folder in filter.below}
    return all(not names or any((name in GUARDED) is guarded for name in names) for names in (filter.collections, tops))


def _open(db: Embedded, words: Sequence[str], limit: int, filter: Filter) -> list[_Hit]:
    """The best of the notes that everybody may read."""
    condition, values = _scored(db, "words", words, filter)
    matched = f"SELECT rowid AS n, {_BM25} AS score FROM words WHERE words MATCH ? {condition}"
    return _first(db, matched, [any_of(words), *values], limit)


def _guarded(db: Embedded, words: Sequence[str], limit: int, filter: Filter) -> list[_Hit]:
    """The best of the guarded notes, scored as BM25 does with one occurrence in each part of a note that has any."""
    condition, values = _scored(db, "guarded_words", words, filter)
    notes = _notes_in(db, "words")
    parts, asked = list[str](), list[Any]()
    for word in words:
        rarity = _rarity(_count(db, "words", word, ("", []), notes), notes)
        for part, weight in _PARTS:
            parts.append(
                "SELECT rowid AS n, ? AS word, ? AS rarity, ? AS weight FROM guarded_words"
                " WHERE guarded_words MATCH ? AND +rowid IN scored"
            )
            asked += [word, rarity, weight, f"{{{part}}} : {word}"]
    matched = f"""SELECT n, sum(of_word) AS score FROM (
        SELECT n, rarity * sum(weight) * {_SATURATION + 1} / (sum(weight) + {_SATURATION}) AS of_word
        FROM ({" UNION ALL ".join(parts)}) GROUP BY n, word) GROUP BY n"""
    scored = f"SELECT rowid FROM guarded_words WHERE guarded_words MATCH ? {condition}"
    matched = f"WITH scored AS MATERIALIZED ({scored}) {matched}"
    return _first(db, matched, [any_of(words), *values, *asked], limit)


def _first(db: Embedded, matched: str, values: Sequence[Any], limit: int) -> list[_Hit]:
    """The best of what is matched, and all that are even with the last of them: their ids tell those apart."""
    asked = limit + _SPARE
    while True:
        found = db.rows(
            f"SELECT score, id, n FROM ({matched} ORDER BY score DESC LIMIT ?) JOIN note USING (n)", (*values, asked)
        )
        scores = sorted((score for score, _, _ in found), reverse=True)
        if len(scores) < asked or scores[-1] < scores[limit - 1]:
            return found
        asked *= 10


def _scored(db: Embedded, index: str, words: Sequence[str], filter: Filter) -> _Narrowing:
    """Which of the notes that match and that the filter admits are scored: all, or of very many a choice."""
    narrowing = _narrowing(db, filter, index)
    if _notes_in(db, index) <= _MOST or _count(db, index, any_of(words), narrowing, _MOST) <= _MOST:
        return narrowing
    rare = rarest({word: _count(db, index, word, narrowing, _NEWEST) for word in words}, _NEWEST)
    condition, values = narrowing
    chosen = f"""{condition} AND +rowid IN (SELECT rowid FROM {index} WHERE {index} MATCH ?
        UNION ALL SELECT n FROM (SELECT n FROM note
            WHERE +n IN (SELECT rowid FROM {index} WHERE {index} MATCH ? {condition})
            ORDER BY updated_at DESC, id LIMIT ?))"""
    sure = any_of([f"{{title}} : ({any_of(words)})", *rare])
    return chosen, [*values, sure, any_of(words), *values, _NEWEST]


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


def _notes_in(db: Embedded, index: str) -> int:
    return int(db.rows(f"SELECT count(*) FROM {index}_docsize")[0][0])


def _count(db: Embedded, index: str, expression: str, narrowing: _Narrowing, most: int) -> int:
    """How many notes match; of more than `most`, only that there are more."""
    condition, values = narrowing
    matched = f"SELECT 1 FROM {index} WHERE {index} MATCH ? {condition} LIMIT ?"
    return int(db.rows(f"SELECT count(*) FROM ({matched})", (expression, *values, most + 1))[0][0])


def _rarity(count: int, notes: int) -> float:
    """As FTS5 has it: next to nothing for a word that half of the notes have."""
    return max(math.log((notes - count + 0.5) / (count + 0.5)), 1e-6)
