"""Whether two texts say the same fact: what decides between them is compared apart from how similar they sound. Pure.

Vectors hardly see a "not", another number, or who does what to whom. Where something that decides differs, or the newer
text says more, two texts are never taken for one fact: a fact that is kept twice is found again, a lost one is not.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from notebook_sync.services.sameness_words import (
    BE,
    CHOICES,
    DENIALS,
    FLOATING,
    NUMBERS,
    OF_TIME,
    OPENERS,
    SMALL,
    STRICT,
    SYNONYMS,
    UNSAID,
)

# Two texts of which one only says less are one fact if the shorter has so many words.
_FEWEST_WORDS = 2


def difference(a: str, b: str) -> str:
    """What keeps the newer text `b` from being the fact that `a` is: numbers, denial, dates, choice, names, order, or
    words; "" where it is that fact, and says no more."""
    older, newer = _read(a), _read(b)
    return _contradiction(older, newer) or ("words" if _added(older, newer) else "")


def contradicts(a: str, b: str) -> bool:
    """Whether something that decides differs between two texts: numbers, a denial, a choice, names, order."""
    return bool(_contradiction(_read(a), _read(b)))


def says_same(a: str, b: str) -> bool:
    """Whether one of two texts is the same fact as the other, or says less of it."""
    older, newer = _read(a), _read(b)
    if min(len(set(older.all)), len(set(newer.all))) < _FEWEST_WORDS:
        return older.all == newer.all and bool(older.all)
    return not (_added(older, newer) and _added(newer, older)) and not _contradiction(older, newer)


def words_of(text: str) -> frozenset[str]:
    """The words that carry what a text says, folded: small words left out, numbers as digits, synonyms as one."""
    return frozenset(_read(text).all)


def decided_by(text: str) -> tuple[tuple[str, ...], int]:
    """What two texts must share to say the same: their numbers, and how often they deny."""
    read = _read(text)
    return tuple(sorted(read.numbers)), len(read.not_what)


class _Read(NamedTuple):
    """What a text says. `all`: each word that is not a small one, folded, in order; `words`: those of them that are no
    numbers and no denials. `names`: words with a capital or digits; `openings`: words whose capital may only come from
    their place. `not_what`: the word behind each denial. `denied`: what is left of words such as unreliable.
    `has_opener`: it begins with a phrase that may be at its end. `doer_at`: where in `all` the words behind a "done by"
    begin, 0 for nowhere. `owned`: what belongs to somebody, as the dog in Odile's dog, the dog of Odile."""

    all: tuple[str, ...]
    words: frozenset[str]
    numbers: tuple[str, ...]
    names: frozenset[str]
    openings: frozenset[str]
    not_what: tuple[str, ...]
    denied: frozenset[str]
    choices: frozenset[tuple[str, str]]
    has_opener: bool
    doer_at: int
    owned: frozenset[str]


def _contradiction(one: _Read, other: _Read) -> str:
    if sorted(one.numbers) != sorted(other.numbers):
        return "numbers"
    if len(one.not_what) != len(other.not_what) or one.denied & other.words or other.denied & one.words:
        return "denial"
    if families := _other_choices(one, other):
        return "dates" if families & OF_TIME else "choice"
    if one.owned - other.words or other.owned - one.words:
        return "words"
    if _has_other_names(one, other) or _has_other_names(other, one):
        return "names"
    return "" if _is_same_order(one, other) else "order"


def _other_choices(one: _Read, other: _Read) -> set[str]:
    """The families of which the texts choose different things; of some, one text may choose nothing, or less."""
    here, there = (
        {family for family, _ in each} for each in (one.choices - other.choices, other.choices - one.choices)
    )
    return here & there | (here | there) & STRICT


def _has_other_names(one: _Read, other: _Read) -> bool:
    """The first word of a sentence has its capital by its place: it is a name unless the other text has it too."""
    unknown = (one.names | one.openings) - other.words
    return any(not any(_is_form_of(name, word) for word in other.words) for name in unknown)


def _is_same_order(one: _Read, other: _Read) -> bool:
    """Whether both say what they share in one order: the cat sees the dog, the dog sees the cat. Only the order among
    names, numbers, choices of one family and other words counts, and a phrase may be at either end of a sentence."""
    if one.not_what != other.not_what or (one.all[:1] == ("only",)) != (other.all[:1] == ("only",)):
        return False
    shared, names = set(one.all) & set(other.all), one.names | other.names
    before, after = (
        [word for word in dict.fromkeys(_in_active(each, shared)) if word in shared] for each in (one, other)
    )
    if one.has_opener != other.has_opener and any(before[at:] + before[:at] == after for at in range(len(before))):
        return True
    kinds = {word: _kind_of(word, names) for word in shared}
    return sorted(before, key=kinds.__getitem__) == sorted(after, key=kinds.__getitem__)


def _in_active(read: _Read, shared: set[str]) -> tuple[str, ...]:
    """The words of a text in order; what is done by somebody is what somebody does, where the other text names them."""
    at = read.doer_at
    if not at or shared.isdisjoint(read.all[at:]):
        return read.all
    return (*read.all[at:], read.all[at - 1], *read.all[: at - 1])


def _kind_of(word: str, names: frozenset[str]) -> str:
    if word in names:
        return "name"
    family = CHOICES.get(word, ("", ""))[0]
    return family if family in FLOATING else "word" if word[0].isalpha() else "number"


def _added(older: _Read, newer: _Read) -> set[str]:
    """The words that only the newer text has."""
    lost = older.words - newer.words
    return {word for word in newer.words - older.words if not any(_is_form_of(word, each) for each in lost)}


_SHORTEST_STEM = 4
# What two forms of one word may end in. A past says something else.
_ENDINGS = frozenset(("", "s", "es", "e", "ing", "ings", "ment", "ments", "ly", "y", "ies", "ion", "ions"))


def _is_form_of(word: str, other: str) -> bool:
    if f"{word}s" == other or f"{other}s" == word:
        return True
    stem = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False))))
    if stem < max(_SHORTEST_STEM, min(len(word), len(other)) - 2):
        return False
    return {word[stem:], other[stem:]} <= _ENDINGS


# Addresses, paths and identifiers are one word each; then numbers as people write them; then words.
_TOKEN = re.compile(
    r"(?P<name>(?:https?://|www\.)\S+|[\w.+-]+@[\w.-]+\w|(?:[\w.-]+/)+[\w.-]*\w|[^\W\d]\w*[_\d]\w*|\d+[a-z]\w*)"
    r"|(?P<number>(?:(?<=\s)[-+]|\A[-+])?\d+(?:[.,:'/-]?\d+)*%?)"
    r"|(?P<word>[^\W\d_]+(?:['-][^\W\d_]+)*)"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:[,']\d{3})+")
_SENTENCE_BEGINS = re.compile(r"(?:\A|[.!?:;]\s+|\n)\W*\Z")
_HAVE_TO = re.compile(r"\b(?:have|has) to\b")
_PAST = re.compile(r"(\w{3,}?)(?:(?<=(\w))\2)?ed")
_POSSESSIVE = re.compile(r"'s?\Z")
_ELIDED = re.compile(r"\A(?:[ldjmtscn]|qu|un|dell|all|nell|sull)'(?=\w)")
_LOOK_BACK = 8


# A text is compared with many others, one after the other.
@lru_cache(maxsize=65_536)
def _read(text: str) -> _Read:
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2212", "-")
    text = _HAVE_TO.sub("must", text)
    every: list[str] = []
    words, names, openings, numbers = set[str](), set[str](), set[str](), list[str]()
    choices, is_owned, doer_at = set[tuple[str, str]](), False, 0
    passive = before = ""
    owned, owner = set[str](), ""
    for token in _TOKEN.finditer(text):
        source = token[0]
        word = source if token["name"] else _ELIDED.sub("", _POSSESSIVE.sub("", source))
        plain = _folded(word)
        if token["number"] or plain in NUMBERS:
            numbers.append(NUMBERS.get(plain) or _number(source))
            said = numbers[-1]
        elif plain in DENIALS or source.endswith("n't"):
            said = "not"
        elif plain in CHOICES and word != "may":
            family, said = CHOICES[plain]
            choices.add((family, said))
            if family not in UNSAID:
                words.add(said)
        elif not plain or (plain in SMALL and not (before and word.isupper() and len(word) == 1)):
            is_owned = is_owned or (plain == "of" and bool(every))
            owned |= set(every[-1:]) if plain == "of" else set()
            doer_at = len(every) if plain == "by" and every[-1:] == [passive] else doer_at
            before = plain
            continue
        else:
            done = _PAST.fullmatch(plain) if before in BE else None
            is_spelled = token["name"] or (word[1:] != word[1:].lower() and word != word.upper())
            said = SYNONYMS.get(plain) or (word if is_spelled else done[1] if done else plain)
            words.add(said)
            begins = _SENTENCE_BEGINS.search(text[max(0, token.start() - _LOOK_BACK) : token.start()]) is not None
            if token["name"] or any(letter.isupper() for letter in (word[1:] if begins else word)):
                names.add(said)
            elif word[0].isupper():
                openings.add(said)
        # The key of the shed is the shed key.
        every.insert(len(every) - is_owned, said)
        owned |= {said} if owner else set()
        owner = plain if source.endswith("'s") else ""
        is_owned, passive, before = False, said if before in BE else "", plain
    denied = frozenset(bare for word in words for bare in _without_denial(word))
    return _Read(
        tuple(every),
        frozenset(words),
        tuple(numbers),
        frozenset(names),
        frozenset(openings),
        tuple(behind for word, behind in pairwise([*every, ""]) if word == "not"),
        denied,
        frozenset(choices),
        text.partition(" ")[0].casefold() in OPENERS,
        doer_at,
        frozenset(owned) & words,
    )


def _number(source: str) -> str:
    """09:00, 9:00 and 9 are one number; so are 1,000 and 1000."""
    source = source.lstrip("+")
    if _THOUSANDS.fullmatch(source):
        return re.sub(r"\D", "", source)
    return re.sub(r"(?<![\d.,:])0+(?=\d)", "", source).removesuffix(":00")


def _folded(word: str) -> str:
    apart = unicodedata.normalize("NFD", word.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


def _without_denial(word: str) -> list[str]:
    """What a word may deny: reliable, of unreliable. Also what is left of a word that only looks so, which no other
    text has."""
    return [word[len(no) :] for no in ("un", "dis", "non", "in", "im", "ir") if word.startswith(no)]
