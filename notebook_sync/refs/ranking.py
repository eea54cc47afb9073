"""What recall answers: the one order of entries and refs for every hot memory. Pure.

A candidate is worth the share of the query's words that it has, the rare ones counting more, halved by each thirty
days of its age; of those, maximal marginal relevance (Carbonell and Goldstein, 1998) takes one after the other, so that
the second does not say what the first said. What a store calls a match only says which candidates come here.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import log

from notebook_sync.refs.base import Entry

POOL = 200
"""How many candidates of a kind a store brings."""

# Of how many the best are chosen, where fewer are asked for: what comes later fits too little to stand in for them.
_WEIGHED = 50
_HALF_LIFE_DAYS = 30.0
_LAMBDA = 0.7
_CONTENT, _SOURCE = 1.0, 0.5
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


def rank(
    candidates: Iterable[Entry],
    query: str,
    *,
    tags: Sequence[str] = (),
    since: datetime | None = None,
    limit: int,
    now: datetime,
) -> list[Entry]:
    """The best of the candidates, each with its `relevance`; one that shares no word with the query is none of them."""
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
    worth = _worth(pool, texts, roots, now)
    return _diverse(_best(worth)[: max(limit, _WEIGHED)], texts, limit)


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


def _worth(
    pool: Sequence[Entry], texts: dict[int, _Words], asked: set[str], now: datetime
) -> list[tuple[float, Entry]]:
    """Each entry that has one of the words, with what it is worth."""
    found: list[tuple[Entry, dict[str, float]]] = []
    for entry in pool:
        source = "" if "ref" in entry else entry["source"]  # of a note it says nothing
        hits = dict.fromkeys(asked & roots_of(source), _SOURCE) if source else {}
        hits |= dict.fromkeys(asked & texts[id(entry)], _CONTENT)
        if hits:
            found.append((entry, hits))
    having = Counter(word for _, hits in found for word in hits)
    rarity = {word: log(1 + (len(found) + 1) / (having[word] + 0.5)) for word in asked}
    whole = sum(rarity.values())
    return [
        (sum(rarity[word] * hit for word, hit in hits.items()) / whole * _decay(entry, now), entry)
        for entry, hits in found
    ]


def _decay(entry: Entry, now: datetime) -> float:
    age = (now - datetime.fromisoformat(entry["timestamp"])).total_seconds() / 86_400
    return float(2.0 ** (-max(age, 0.0) / _HALF_LIFE_DAYS))


def _best(worth: list[tuple[float, Entry]]) -> list[tuple[float, Entry]]:
    return sorted(worth, key=lambda one: (-one[0], _newest_first(one[1]), one[1]["id"]))


def _newest_first(entry: Entry) -> float:
    return -datetime.fromisoformat(entry["timestamp"]).timestamp()


def _diverse(worth: list[tuple[float, Entry]], texts: dict[int, _Words], limit: int) -> list[Entry]:
    """Best first, each weighed against its likeness to those before it."""
    highest = max((value for value, _ in worth), default=0.0) or 1.0
    left = [(value / highest, texts[id(entry)], _with(entry, value)) for value, entry in worth]
    alike = [0.0] * len(left)
    chosen: list[Entry] = []
    while left and len(chosen) < limit:
        at = max(range(len(left)), key=lambda n: _LAMBDA * left[n][0] - (1 - _LAMBDA) * alike[n])
        _, said, entry = left.pop(at)
        alike.pop(at)
        chosen.append(entry)
        alike = [max(before, _overlap(said, one[1])) for before, one in zip(alike, left, strict=True)]
    return chosen


def _overlap(one: _Words, other: _Words) -> float:
    """The share of their words that both have."""
    return len(one & other) / len(one | other) if one or other else 0.0


def _with(entry: Entry, relevance: float) -> Entry:
    return {**entry, "relevance": round(relevance, 6)}


def _once_each(candidates: Iterable[Entry]) -> list[Entry]:
    """What was both logged and kept once; a note and an entry may have one id."""
    return list({(entry["id"], "ref" in entry): entry for entry in candidates}.values())
