"""What recall answers: the one order of entries and refs for every hot memory. Pure.

A candidate is worth the share of the query's words that it has, the rare ones counting more; where it has a vector, 0.3
of that and 0.7 of its likeness to the query; halved by each thirty days of its age. Of those, maximal marginal
relevance (Carbonell and Goldstein, 1998) takes one after the other, so that the second does not say what the first
said. What a store calls a match only says which candidates come here.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import log
from typing import TYPE_CHECKING, Protocol

from notebook_sync.refs.base import Entry, Meaning, Told

if TYPE_CHECKING:
    from notebook_sync.refs.base import Vector
    from notebook_sync.refs.likeness import Key

POOL = 200
"""How many candidates of a kind a store brings."""
NEAREST = 100
"""How many more for their meaning."""

# Of how many the best are chosen, where fewer are asked for: what comes later fits too little to stand in for them.
_WEIGHED = 50
_HALF_LIFE_DAYS = 30.0
_LAMBDA = 0.7
_CONTENT, _SOURCE = 1.0, 0.5
_OF_WORDS, _OF_MEANING = 0.3, 0.7
# What is only so much as like the query as the likest would fill up short answers.
_FAR = 0.5
_WORD = re.compile(r"\w+")
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
# A query is a question, not a document.
_MOST_WORDS = 50
# They are in nearly every text: looked for only by a query that has no other word.
_COMMON = frozenset(
    _WORD.findall(
        "a an and are as at be but by for from had has have he her his i if in into is it its me my no not of on or "
        "our she so such that the their then there these they this to was we were what when where which who will with "
        "you your"
    )
)
_Words = frozenset[str]


class Likeness(Protocol):
    """How like entries are, by what they mean: cosines, None where one has no vector."""

    unrelated: float
    """What is no more like the query than that has nothing to do with it."""

    def to_query(self, entries: Sequence[Entry]) -> Sequence[float | None]:
        """Of each to the query."""

    def between(self, entry: Entry, others: Sequence[Entry]) -> Sequence[float | None]:
        """Of one to each of the others."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a store found, and the vectors of those that have one, by `likeness.key_of`."""

    entries: Sequence[Entry] = ()
    vectors: Mapping[Key, Vector] = field(default_factory=dict)

    def __add__(self, others: Candidates) -> Candidates:
        return Candidates([*self.entries, *others.entries], {**self.vectors, **others.vectors})


def best_of(
    found: Candidates,
    query: str,
    *,
    tags: Sequence[str],
    since: datetime | None,
    limit: int,
    now: datetime,
    meaning: Meaning | None,
    told: Told | None,
) -> list[Entry]:
    """As `rank`, of what may be told of the candidates. One that is told as something else than it says is found by its
    words alone."""
    entries = told(found.entries) if told else found.entries
    likeness: Likeness | None = None
    if meaning is not None:
        from notebook_sync.refs.likeness import EntryLikeness  # which imports arrays

        likeness = EntryLikeness(meaning, found.vectors)
    return rank(entries, query, tags=tags, since=since, limit=limit, now=now, likeness=likeness)


def rank(
    candidates: Iterable[Entry],
    query: str,
    *,
    tags: Sequence[str] = (),
    since: datetime | None = None,
    limit: int,
    now: datetime,
    likeness: Likeness | None = None,
) -> list[Entry]:
    """The best of the candidates, each with its `relevance`; one that shares no word with the query, and means nothing
    like it, is none of them."""
    wanted = asked_tags(tags)
    pool = [
        entry
        for entry in _once_each(candidates)
        if (not wanted or not set(asked_tags(entry["tags"])).isdisjoint(wanted))
        and (since is None or datetime.fromisoformat(entry["timestamp"]) >= since)
    ]
    asked = asked_words(query)
    if not asked:
        worth = [(entry["score"] * _decay(entry, now), entry) for entry in pool]
        return [_with(entry, value) for value, entry in _best(worth)[: max(limit, 0)]]
    roots = {root(word) for word in asked}
    texts = {id(entry): roots_of(entry["content"]) for entry in pool}
    shares = _shares(pool, texts, roots)
    if likeness is None:
        worth = [(share * _decay(entry, now), entry) for share, entry in zip(shares, pool, strict=True) if share]
    else:
        worth = _meant(pool, shares, likeness, now)
    return _diverse(_best(worth)[: max(limit, _WEIGHED)], _Alike(texts, likeness), limit)


def far_from(cosines: Iterable[float], unrelated: float) -> float:
    """What is no more like a query than this is found by its words alone, given how like it all are."""
    return max(unrelated, _FAR * max(cosines, default=0.0))


def behind_told(count: int) -> str:
    """What recall says of entries without vectors, "" of none."""
    if not count:
        return ""
    return f"{count:,} entries and notes have no vectors yet and are found by their words alone: notebook-sync sync"


def asked_words(query: str) -> list[str]:
    """The words that a query looks for, each once, folded."""
    every = list(dict.fromkeys(words(query)))
    return ([word for word in every if word not in _COMMON] or every)[:_MOST_WORDS]


def asked_tags(tags: Iterable[str]) -> list[str]:
    """Tags as they are compared: a comma parts two, and a to z are A to Z, which is what every store knows of case."""
    every = ",".join(tags).replace("\0", "").translate(_LOWER).split(",")
    return [tag.strip() for tag in every if tag.strip()]


def words(text: str) -> list[str]:
    """The words of a text, folded, in order. No mark but the underscore is part of one."""
    return _WORD.findall(fold(text))


def fold(text: str) -> str:
    """Text without what people leave out when they search: case, accents and typographic forms."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(mark for mark in apart if not unicodedata.combining(mark))


def root(word: str) -> str:
    """An English plural without its ending (Harman's S stemmer, 1991). A store may go further."""
    if len(word) > 3 and word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("us", "ss", "aes", "ees", "oes")):
        return word[:-1]
    return word


def roots_of(text: str) -> _Words:
    """The roots of the words of a text."""
    return frozenset([word if word[-1] != "s" else root(word) for word in words(text)])


def _shares(pool: Sequence[Entry], texts: dict[int, _Words], asked: set[str]) -> list[float]:
    """Of each entry, the share of the words that it has; 0 for none of them."""
    found: list[dict[str, float]] = []
    for entry in pool:
        source = "" if "ref" in entry else entry["source"]  # of a note it says nothing
        hits = dict.fromkeys(asked & roots_of(source), _SOURCE) if source else {}
        found.append(hits | dict.fromkeys(asked & texts[id(entry)], _CONTENT))
    having = Counter(word for hits in found for word in hits)
    matches = sum(map(bool, found))
    rarity = {word: log(1 + (matches + 1) / (having[word] + 0.5)) for word in asked}
    whole = sum(rarity.values())
    return [sum(rarity[word] * hit for word, hit in hits.items()) / whole for hits in found]


def _meant(
    pool: Sequence[Entry], shares: Sequence[float], likeness: Likeness, now: datetime
) -> list[tuple[float, Entry]]:
    """Each entry that has one of the words, or is near to them, with what it is worth: what its words are where it has
    no vector."""
    cosines = likeness.to_query(pool)
    far = far_from((cosine for cosine in cosines if cosine is not None), likeness.unrelated)
    worth = []
    for entry, share, cosine in zip(pool, shares, cosines, strict=True):
        if share or (cosine is not None and cosine > far):
            value = share if cosine is None else _OF_WORDS * share + _OF_MEANING * max(cosine, 0.0)
            worth.append((value * _decay(entry, now), entry))
    return worth


def _decay(entry: Entry, now: datetime) -> float:
    age = (now - datetime.fromisoformat(entry["timestamp"])).total_seconds() / 86_400
    return float(2.0 ** (-max(age, 0.0) / _HALF_LIFE_DAYS))


def _best(worth: list[tuple[float, Entry]]) -> list[tuple[float, Entry]]:
    return sorted(worth, key=lambda one: (-one[0], _newest_first(one[1]), one[1]["id"]))


def _newest_first(entry: Entry) -> float:
    return -datetime.fromisoformat(entry["timestamp"]).timestamp()


@dataclass(frozen=True, slots=True)
class _Alike:
    """How much entries say the same: by their vectors where both have one, else by their words."""

    texts: dict[int, _Words]
    likeness: Likeness | None

    def between(self, one: Entry, others: Sequence[Entry]) -> list[float]:
        meant = self.likeness.between(one, others) if self.likeness else [None] * len(others)
        said = self.texts[id(one)]
        return [
            _overlap(said, self.texts[id(other)]) if cosine is None else max(cosine, 0.0)
            for other, cosine in zip(others, meant, strict=True)
        ]


def _diverse(worth: list[tuple[float, Entry]], alike: _Alike, limit: int) -> list[Entry]:
    """Best first, each weighed against its likeness to those before it."""
    highest = max((value for value, _ in worth), default=0.0) or 1.0
    left = list(worth)
    likest = [0.0] * len(left)
    chosen: list[Entry] = []
    while left and len(chosen) < limit:
        at = max(range(len(left)), key=lambda n: _LAMBDA * left[n][0] / highest - (1 - _LAMBDA) * likest[n])
        value, entry = left.pop(at)
        likest.pop(at)
        chosen.append(_with(entry, value))
        if len(chosen) < limit:
            now_alike = alike.between(entry, [other for _, other in left])
            likest = [max(before, now) for before, now in zip(likest, now_alike, strict=True)]
    return chosen


def _overlap(one: _Words, other: _Words) -> float:
    """The share of their words that both have."""
    return len(one & other) / len(one | other) if one or other else 0.0


def _with(entry: Entry, relevance: float) -> Entry:
    return {**entry, "relevance": round(relevance, 6)}


def _once_each(candidates: Iterable[Entry]) -> list[Entry]:
    """What was both logged and kept once; a note and an entry may have one id."""
    return list({(entry["id"], "ref" in entry): entry for entry in candidates}.values())
