"""Which notes match a text query, the best first, by indexes alone: no note's text is read.

The answer is a function of the notes, never of the order in which they came. How rare a word is, the notes that
everybody may read decide, and they have an index of their own, as has each channel: no score depends on a note that the
session may not read, and no search reads the index of a channel that it may not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from notebook_sync.embedded import Embedded
from notebook_sync.mirror.base import ALL, WEIGHTS, Filter
from notebook_sync.mirror.sqlite_parts import Part, Word, any_of, parts_of, whole
from notebook_sync.mirror.sqlite_queries import admitting, in_channels, is_private_alone, words_of

# Of a part with more notes than the first, the newest of them are scored, and all with a word in the title; where more
# than the newest are asked for, so many times as many.
_MOST, _NEWEST, _TIMES = 3000, 500, 4
# So many more than asked for are looked at, lest one that is even with the last is missed.
_SPARE = 50
# A filter that admits no more notes than these is asked first; and so few that match are scored at once.
_FEW = 1000
# BM25's own: what an occurrence more adds to a score falls off by this.
_SATURATION = 1.2
# What FTS5 gives a word that half of the notes have.
_LEAST = 1e-6
# No word adds more to a score than its rarity, so many times. A little more, for sums are rounded.
_AT_MOST = (_SATURATION + 1) * (1 + 1e-9)
_PARTS = (("title", WEIGHTS[0]), ("summary", WEIGHTS[1]), ("content code", WEIGHTS[2]))
_BM25 = f"-bm25(open_words, {', '.join(map(str, WEIGHTS))})"

_OPEN = "open_words"

# Score, id and number of a note.
_Hit = tuple[float, str, int]
# A statement, or a piece of one, and the values in it.
_Asked = tuple[str, list[Any]]


@dataclass(frozen=True, slots=True)
class _Narrowing:
    """What a statement over an index of words has beside the words it matches, and the values; whether that leaves few
    notes. `of_note` is the same of the columns of a note, "" where that is no quicker to ask."""

    condition: str = ""
    values: Sequence[Any] = ()
    is_few: bool = False
    of_note: str = ""


_EVERYTHING = _Narrowing()


def best(db: Embedded, query: str, limit: int, filter: Filter) -> list[tuple[int, float]]:
    """The numbers of the notes that match any word of the query, and their scores, the best first.

    A word that half of the notes have tells nothing of a note: such words are looked for only where the notes that have
    another one leave room, and behind these.
    """
    words = words_of(query)
    if not words or limit <= 0:
        return []
    known = counted(db, words)
    telling = [word for word in known if word.rarity > _LEAST]
    found = _ranked(db, telling, (), limit, filter) if telling else []
    if len(found) < limit and len(telling) < len(known):
        others = [word for word in known if word.rarity <= _LEAST]
        behind = found[-1][0] if found else math.inf
        more = _ranked(db, others, [word.text for word in telling], limit - len(found), filter)
        found += [(min(score, behind), note_id, n) for score, note_id, n in more]
    return [(n, score) for score, _, n in found]


def _ranked(db: Embedded, words: Sequence[Word], without: Sequence[str], limit: int, filter: Filter) -> list[_Hit]:
    """The best of the notes that have one of these words, and none of the others."""
    found: list[_Hit] = []
    if filter.collections != ("channels",) and not is_private_alone(filter):
        of_open = replace(filter, of_channels=None, not_at=())
        if of_open != ALL and filter.of_channels is not None:
            of_open = replace(of_open, of_channels=())
        found += _found_in(db, _OPEN, words, without, limit, of_open)
    is_of_all = filter.of_channels is None and not is_private_alone(filter)
    for of_room, bounds in [("", ())] if is_of_all else in_channels(filter):
        for (n,) in db.rows(f"SELECT n FROM room WHERE {of_room}true ORDER BY n", bounds):
            found += _found_in(db, f"words_{n}", words, without, limit, filter)
    return sorted(found, key=lambda hit: (-hit[0], hit[1]))[:limit]


def _found_in(
    db: Embedded, index: str, words: Sequence[Word], without: Sequence[str], limit: int, filter: Filter
) -> list[_Hit]:
    """The best that one index knows, and more that are not needed."""
    everything = whole(words, without)
    matched = _count(db, index, everything.expression, _EVERYTHING, _FEW)
    if not matched:
        return []
    narrowing = _narrowing(db, filter, index)
    most, newest = _MOST, _NEWEST
    while newest < limit:
        most, newest = most * _TIMES, newest * _TIMES
    if matched <= _FEW or narrowing.is_few:
        parts = [replace(everything, notes=_FEW)]
    else:
        if index != _OPEN:
            words = [replace(word, notes=_count(db, index, word.text, _EVERYTHING, most)) for word in words]
        parts = parts_of([word for word in words if word.notes], without)
    found: list[_Hit] = []
    for part in parts:
        if len(found) >= limit and part.rarity * _AT_MOST < sorted(score for score, _, _ in found)[-limit]:
            break
        score = _by_bm25 if index == _OPEN else partial(_by_presence, index)
        is_small = part.notes <= most or _count(db, index, part.expression, _EVERYTHING, most) <= most
        if not is_small and narrowing.condition:
            is_small = _count(db, index, part.expression, narrowing, most) <= most
        if is_small and narrowing.of_note:
            foremost = _admitted_first(db, score(part, _EVERYTHING), narrowing, limit)
            if foremost is not None:
                found += foremost
                continue
            narrowing = replace(narrowing, of_note="")  # it leaves out too many: the other parts are not asked so
        scored = narrowing if is_small else _some_of(index, part, narrowing, newest)
        found += _first(db, *score(part, scored), limit)
    return found


def _admitted_first(db: Embedded, scored: _Asked, narrowing: _Narrowing, limit: int) -> list[_Hit] | None:
    """The best of what is admitted, where they are among the very best of all: to look at each note that matches takes
    longer than to score them. None where they are not."""
    statement, values = scored
    asked = limit + max(_SPARE, limit)
    found = db.rows(
        f"""SELECT score, id, n, {narrowing.of_note} FROM ({statement} ORDER BY score DESC LIMIT ?)
        JOIN note USING (n)""",
        (*narrowing.values, *values, asked),
    )
    admitted = [(score, note_id, n) for score, note_id, n, is_admitted in found if is_admitted]
    if len(found) < asked:
        return admitted
    scores = sorted((score for score, _, _ in admitted), reverse=True)
    return admitted if len(scores) >= limit and min(row[0] for row in found) < scores[limit - 1] else None


def _by_bm25(part: Part, narrowing: _Narrowing) -> _Asked:
    """As FTS5 has it, which counts by itself how rare words are."""
    matched = f"SELECT rowid AS n, {_BM25} AS score FROM open_words WHERE open_words MATCH ? {narrowing.condition}"
    return matched, [part.expression, *narrowing.values]


def _by_presence(index: str, part: Part, narrowing: _Narrowing) -> _Asked:
    """As BM25 does with one occurrence in each part of a note that has any, and words as rare as in the open notes."""
    selects, asked = list[str](), list[Any]()
    for word in part.words:
        for columns, weight in _PARTS:
            selects.append(
                f"SELECT rowid AS n, ? AS word, ? AS rarity, ? AS weight FROM {index}"
                f" WHERE {index} MATCH ? AND +rowid IN scored"
            )
            asked += [word.text, word.rarity, weight, f"{{{columns}}} : {word.text}"]
    scored = f"SELECT rowid FROM {index} WHERE {index} MATCH ? {narrowing.condition}"
    statement = f"""WITH scored AS MATERIALIZED ({scored}) SELECT n, sum(of_word) AS score FROM (
        SELECT n, rarity * sum(weight) * {_SATURATION + 1} / (sum(weight) + {_SATURATION}) AS of_word
        FROM ({" UNION ALL ".join(selects)}) GROUP BY n, word) GROUP BY n"""
    return statement, [part.expression, *narrowing.values, *asked]


def _first(db: Embedded, scored: str, values: Sequence[Any], limit: int) -> list[_Hit]:
    """The best of what is scored, and all that are even with the last of them: their ids tell those apart."""
    asked = limit + _SPARE
    while True:
        found = db.rows(
            f"SELECT score, id, n FROM ({scored} ORDER BY score DESC LIMIT ?) JOIN note USING (n)", (*values, asked)
        )
        scores = sorted((score for score, _, _ in found), reverse=True)
        if len(scores) < asked or scores[-1] < scores[limit - 1]:
            return found
        asked *= 10


def _some_of(index: str, part: Part, narrowing: _Narrowing, newest: int) -> _Narrowing:
    """Of very many notes a choice: the newest, and those with a word in the title."""
    condition = f"""{narrowing.condition} AND +rowid IN (SELECT rowid FROM {index} WHERE {index} MATCH ?
        UNION ALL SELECT n FROM (SELECT n FROM note
            WHERE +n IN (SELECT rowid FROM {index} WHERE {index} MATCH ? {narrowing.condition})
            ORDER BY updated_at DESC, id LIMIT ?))"""
    in_title = f"{{title}} : ({any_of(word.text for word in part.words)})"
    return _Narrowing(condition, [*narrowing.values, in_title, part.expression, *narrowing.values, newest])


def _narrowing(db: Embedded, filter: Filter, index: str) -> _Narrowing:
    """How to ask this index of words for no more than the filter admits: by a list of notes where those are few and
    found by an index of their own, else by a look at each note that matches."""
    if filter == ALL:
        return _EVERYTHING  # what is indexed is no tombstone
    admitted, values = admitting(filter)
    condition = f"AND EXISTS (SELECT 1 FROM note WHERE note.n = {index}.rowid AND {admitted})"
    if index != _OPEN or filter.of_channels is not None:  # to list what is admitted would read what is not
        return _Narrowing(condition, values)
    few = f"SELECT n FROM note WHERE {admitted} LIMIT ?"
    count, numbers = db.rows(f"SELECT count(*), json_group_array(n) FROM ({few})", (*values, _FEW + 1))[0]
    if count <= _FEW:
        return _Narrowing("AND +rowid IN (SELECT value FROM json_each(?))", [numbers], is_few=True)
    return _Narrowing(condition, values, of_note=admitted)


def counted(db: Embedded, words: Sequence[str]) -> list[Word]:
    """The words, as rare as FTS5 has them: next to nothing is one that half of the notes have."""
    notes = int(db.rows(f"SELECT count(*) FROM {_OPEN}_docsize")[0][0])
    matched = f"SELECT 1 FROM {_OPEN} WHERE {_OPEN} MATCH value LIMIT ?"
    asked = f"SELECT (SELECT count(*) FROM ({matched})) FROM json_each(?) ORDER BY key"
    counts = [n for (n,) in db.rows(asked, (notes // 2 + 1, json.dumps(words)))]
    rarities = [max(math.log((notes - n + 0.5) / (n + 0.5)), _LEAST) for n in counts]
    return list(map(Word, words, rarities, counts))


def _count(db: Embedded, index: str, expression: str, narrowing: _Narrowing, most: int) -> int:
    """How many notes match; of more than `most`, only that there are more."""
    matched = f"SELECT 1 FROM {index} WHERE {index} MATCH ? {narrowing.condition} LIMIT ?"
    return int(db.rows(f"SELECT count(*) FROM ({matched})", (expression, *narrowing.values, most + 1))[0][0])
