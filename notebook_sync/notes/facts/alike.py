"""Whether two texts say the same fact: what decides between them is compared apart from how alike they sound. Pure.

Vectors of texts hardly see a "not", another number, or who does what to whom. Where something that decides differs, or
the newer text says more, the two are never taken for one: a fact kept twice is found again, one that is lost is not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from notebook_sync.notes.facts.words import DENIALS, FAMILIES, NUMBERS, OF_TIME, SMALL

# Whether a word that the newer text has says what some word does that only the older has.
Means = Callable[[str, Sequence[str]], bool]


def difference(older: str, newer: str, means: Means | None = None) -> str:
    """What keeps `newer` from being the fact that `older` is, in one word; "" where it is, and says no more.

    `means` knows what words mean; without it, only forms of one word mean the same.
    """
    before, after = _read(older), _read(newer)
    if decided := _decided(before, after):
        return decided
    lost = [word for word in before.words if word not in after.forms]
    for word in after.words:
        if word in before.forms or any(_is_form_of(word, other) for other in lost):
            continue
        if means is None or not lost or any(_stem_of(word, other) for other in lost) or not means(word, lost):
            return "words"
    return ""


def contradiction(one: str, other: str) -> str:
    """What of that which decides differs between two texts, in one word: numbers, denial, dates, choice, names or
    order; "" for nothing."""
    return _decided(_read(one), _read(other))


def decided_by(text: str) -> tuple[tuple[str, ...], int, frozenset[tuple[str, str]]]:
    """Of what decides, what two texts must have alike to say the same: numbers, denials, choices."""
    read = _read(text)
    return tuple(sorted(read.numbers)), read.denials, read.choices


def folded(text: str) -> str:
    """What a text says, without case, accents and small words, and with numbers as digits."""
    return " ".join(_read(text).all)


def words_of(text: str) -> frozenset[str]:
    """The words that carry what a text says, folded, with what decides among them."""
    return frozenset(_read(text).all)


@dataclass(frozen=True, slots=True)
class _Read:
    """What a text says. `all` is everything that is not a small word, folded, in order; `words` what of it decides
    nothing by its kind, `forms` these as a set. `openings`: words with a capital that their place may have given them.
    `denied`: what is left of words such as unreliable."""

    all: tuple[str, ...]
    words: tuple[str, ...]
    forms: frozenset[str]
    numbers: tuple[str, ...]
    names: frozenset[str]
    openings: frozenset[str]
    denials: int
    denied: frozenset[str]
    choices: frozenset[tuple[str, str]]


def _decided(one: _Read, other: _Read) -> str:
    if sorted(one.numbers) != sorted(other.numbers):
        return "numbers"
    if one.denials != other.denials or one.denied & other.forms or other.denied & one.forms:
        return "denial"
    if one.choices != other.choices:
        return "dates" if {family for family, _ in one.choices ^ other.choices} & OF_TIME else "choice"
    if _has_other_names(one, other) or _has_other_names(other, one):
        return "names"
    return "order" if _in_common(one, other) != _in_common(other, one) else ""


def _has_other_names(one: _Read, other: _Read) -> bool:
    """A sentence's first word has its capital by its place: it is a name unless the other text knows a form of it."""
    unknown = one.openings - other.forms
    return not one.names <= other.forms or any(
        not any(_is_form_of(word, form) for form in other.forms) for word in unknown
    )


def _in_common(one: _Read, other: _Read) -> list[str]:
    """What both say, in the order of the one: `the cat sees the dog` is not `the dog sees the cat`."""
    known = frozenset(other.all)
    return [word for word in one.all if word in known]


_SHORTEST_STEM = 4
# What two forms of a word may end in where they say the same. A past says something else.
_ENDINGS = frozenset(("", "s", "es", "e", "ing", "ings", "ment", "ments", "ly", "y", "ies", "ion", "ions"))


def _stem_of(word: str, other: str) -> str:
    stem = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    return stem if len(stem) >= _SHORTEST_STEM and len(stem) >= min(len(word), len(other)) - 2 else ""


def _is_form_of(word: str, other: str) -> bool:
    stem = _stem_of(word, other)
    return bool(stem) and {word[len(stem) :], other[len(stem) :]} <= _ENDINGS


# Addresses, paths and identifiers are one word each; then numbers as people write them; then words.
_TOKEN = re.compile(
    r"(?P<name>(?:https?://|www\.)\S+|[\w.+-]+@[\w.-]+\w|(?:[\w.-]+/)+[\w.-]*\w|[^\W\d]\w*[_\d]\w*)"
    r"|(?P<number>(?:(?<=\s)[-+]|\A[-+])?\d+(?:[.,:'/-]?\d+)*%?)"
    r"|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)*)"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:[,']\d{3})+")
_SENTENCE_BEGINS = re.compile(r"(?:\A|[.!?:;]\s+|\n)\W*\Z")
_POSSESSIVE = re.compile(r"'s?\Z")
_ELIDED = re.compile(r"\A(?:[ldjmtscn]|qu|un|dell|all|nell|sull)'(?=\w)")
_LOOK_BACK = 8


# A text is compared with many others, one after the other.
@lru_cache(maxsize=16_384)
def _read(text: str) -> _Read:
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2212", "-")
    every: list[str] = []
    words: list[str] = []
    numbers: list[str] = []
    names: set[str] = set()
    openings: set[str] = set()
    choices: set[tuple[str, str]] = set()
    denials = 0
    for token in _TOKEN.finditer(text):
        source = token[0]
        if token.lastgroup == "number":
            numbers.append(_number(source))
            every.append(numbers[-1])
            continue
        word = source if token.lastgroup == "name" else _ELIDED.sub("", _POSSESSIVE.sub("", source))
        plain = _folded(word)
        if plain in DENIALS or source.endswith("n't"):
            denials += 1
            every.append("not")
        elif plain in NUMBERS:
            numbers.append(NUMBERS[plain])
            every.append(numbers[-1])
        elif plain in FAMILIES:
            choices.add(FAMILIES[plain])
            every.append(FAMILIES[plain][1])
        elif plain and plain not in SMALL:
            every.append(plain)
            words.append(plain)
            begins = _SENTENCE_BEGINS.search(text[max(0, token.start() - _LOOK_BACK) : token.start()]) is not None
            if token.lastgroup == "name" or any(letter.isupper() for letter in (word[1:] if begins else word)):
                names.add(plain)
            elif word[0].isupper():
                openings.add(plain)
    return _Read(
        tuple(every),
        tuple(words),
        frozenset(words),
        tuple(numbers),
        frozenset(names),
        frozenset(openings),
        denials,
        frozenset(bare for word in words for bare in _without_denial(word)),
        frozenset(choices),
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
