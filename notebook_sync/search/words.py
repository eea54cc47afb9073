"""The one tokenizer: cuts text into the terms that the index stores, the statistics count, and a query asks for.

A term consists of a-z, 0-9 and characters beyond ASCII, without white space. Equal text gives equal terms on any
machine; a change of what is cut raises `WordAnalyzer.version`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Set
from functools import cached_property
from itertools import pairwise

# Terms of a query that are asked for, and characters of a word that count.
MOST_ASKED = 64
_LONGEST_WORD = 64
# Words remembered with their terms: about 10 MB.
_REMEMBERED = 50_000

STOP_WORDS = """
a about after all also am an and any are as at be because been being but by can could did do does for from had has have
he her here hers him his how i if in into is it its just like may me might more most much must my no not of on one only
or other our ours out over own please s same shall she should so some such t than that the their theirs them then there
these they this those to too up us very was we were what when where which while who whom whose why will with would you
your yours
"""

# ASCII letters and digits with whatever is beyond ASCII, so that one pass finds all words. Negated, since a class that
# names what is beyond ASCII takes milliseconds to compile; so do the texts below, which wait for the first word that
# needs them. What follows a word may make another one of it: C++, C#, 1,000.
_PART = r"[^\0-/:-@\[-`{-\x7f]"
_RAW = re.compile(rf"{_PART}+(?:\+\+|#|(?:,[0-9]{{3}})+(?![0-9A-Za-z]))?")
_ASCII_WORD = re.compile(r"[0-9A-Za-z]+")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
_LATIN = re.compile(r"[a-z]+")
# Scripts that put no spaces between words, and Korean, which puts endings behind them: kana, Han and Hangul, in which
# a single character may be a word, too; and Thai, Lao, Myanmar, Khmer.
_WORD_ALONE = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_NEVER_ALONE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
_UNSPACED = f"[{_WORD_ALONE}{_NEVER_ALONE}]"
_ALONE = f"[{_WORD_ALONE}]"
# Where a word begins, or in scripts without spaces each pair of characters.
_PLACE = f"(?=({_UNSPACED}{{1,2}})){_UNSPACED}|(?:(?!{_UNSPACED}){_PART})+"
_UMLAUTS = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"}
_UMLAUT = "(?i)[äöüøå]"


class WordAnalyzer:
    """A `notebook_sync.store.rows.Analyzer`. One may serve any number of threads.

    Folded away are case, accents, compatibility forms (ligatures, full width), points of Arabic and Hebrew, final
    forms, format characters. English words are stemmed. Scripts without spaces become all pairs of neighbours; kana,
    Han and Hangul single characters as well, which a query asks for only where it has one alone.
    """

    version = 1

    def __init__(self) -> None:
        self._indexed = _Terms(alone=True)
        self._asked = _Terms(alone=False)

    def terms(self, text: str) -> list[str]:
        """The terms of a text in order, with repeats."""
        return self.joined(text).split()

    def joined(self, text: str) -> str:
        """The same, separated by single spaces: what a row's `words` holds."""
        return self._indexed.of(text)

    def query_terms(self, query: str) -> list[str]:
        """The terms to ask for, in order, with repeats, at most 64: without stop words, unless nothing else is left."""
        return (self.content_terms(query) or self._asked.of(query).split())[:MOST_ASKED]

    def content_terms(self, text: str) -> list[str]:
        """All terms to ask for, in order, with repeats, without stop words."""
        return [term for term in self._asked.of(text).split() if term not in self._stop_words]

    def first_place(self, text: str, terms: Set[str]) -> int:
        """Where the first word of a text begins that has one of these terms; 0 where none has."""
        words = re.finditer(f"({_PART}+)" if text.isascii() else _PLACE, text)
        return next((word.start() for word in words if not terms.isdisjoint(self.terms(word[1] or word[0]))), 0)

    @cached_property
    def _stop_words(self) -> frozenset[str]:
        return frozenset(self.terms(STOP_WORDS))


class _Terms(dict[str, str]):
    """The terms of what is between white space, separated by spaces; "" where it has no word. Remembers what it cut,
    since a notebook has few words, each many times."""

    def __init__(self, *, alone: bool) -> None:
        super().__init__()
        self._alone = alone

    def of(self, text: str) -> str:
        return " ".join(filter(None, map(self.__getitem__, text.split())))

    def __missing__(self, part: str) -> str:
        raws = _RAW.findall(part)
        if raws != [part]:
            terms = " ".join(filter(None, map(self.__getitem__, raws)))
        else:
            terms = " ".join(filter(None, self._cut_ascii(part.lower()) if part.isascii() else self._cut(part)))
        if len(part) <= _LONGEST_WORD:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[part] = terms
        return terms

    def _cut_ascii(self, raw: str) -> Iterator[str]:
        yield from map(_term, _ASCII_WORD.findall(raw))
        if raw.endswith("++"):
            yield _term(f"{raw[:-2]}plusplus")
        elif raw.endswith("#") and len(raw) == len("c#"):
            yield f"{raw[0]}sharp"
        elif _THOUSANDS.fullmatch(raw):
            yield _term(raw.replace(",", ""))

    def _cut(self, raw: str) -> Iterator[str]:
        composed = unicodedata.normalize("NFKC", raw)
        words = composed.translate(_FOLDED).split()
        for word in words:
            end = 0
            for run in re.finditer(f"{_UNSPACED}+", word):
                yield _term(word[end : run.start()])
                yield from self._pairs(run[0])
                end = run.end()
            yield _term(word[end:])
        if re.search(_UMLAUT, composed):  # Müller is written Mueller, too
            spelled = re.sub(_UMLAUT, lambda match: _UMLAUTS[match[0].lower()], composed)
            yield from (_term(word) for word in spelled.translate(_FOLDED).split() if word not in words)

    def _pairs(self, run: str) -> Iterator[str]:
        for first, second in pairwise(run):
            if self._alone and re.match(_ALONE, first):
                yield first
            yield first + second
        if len(run) == 1 or (self._alone and re.match(_ALONE, run[-1])):
            yield run[-1]


def _term(word: str) -> str:
    return stem(word) if len(word) <= _LONGEST_WORD and _LATIN.fullmatch(word) else word[:_LONGEST_WORD]


class _Folded(dict[int, str]):
    """What each character becomes, for `str.translate`: a space where it separates words."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold(chr(code))
        return folded


def _fold(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cf":
        return " " if character in _BREAKS else ""
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category[0] not in "LNM":
        return f" {character} " if re.match(_SIGN, character) else " "
    parts = unicodedata.normalize("NFD", character.casefold())
    return unicodedata.normalize(
        "NFC", "".join(_LETTERS.get(part, part) for part in parts if not re.match(_MARK, part))
    )


_FOLDED = _Folded()
# Zero width space and non-joiner, which are between two words.
_BREAKS = "\u200b\u200c"
# Currencies, pictographs and emoji: each is a term.
_SIGN = "[\u20a0-\u20cf\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
# Accents of Latin, Greek and Cyrillic, points of Hebrew and Arabic, variation selectors. Marks of other scripts are
# letters to their readers.
_MARK = (
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
    "\U000e0100-\U000e01ef]"
)
# Letters that no normalization folds: Latin, final forms of Hebrew, Arabic and Persian letters written for each other.
_LETTERS = {
    "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ł": "l", "ŋ": "n", "ŧ": "t", "þ": "th",
    "ך": "כ", "ם": "מ", "ן": "נ", "ף": "פ", "ץ": "צ",
    "ة": "ه", "ى": "ي", "ی": "ي", "ک": "ك", "ـ": "",
}  # fmt: skip


# Porter's stemmer for English: "retries", "retried" and "retry" become "retri". The terms of FTS5's `porter`.
# M. F. Porter (1980), An algorithm for suffix stripping, with the changes of his own later programs (bli, logi). From
# longer to shorter endings, so that the first that fits is the longest.
_STEP_1 = [("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")]
# The endings of the later steps, and the least measure of what is before them.
_STEPS = [
    (1, [
        ("ational", "ate"), ("ization", "ize"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
        ("tional", "tion"), ("biliti", "ble"), ("entli", "ent"), ("ousli", "ous"), ("ation", "ate"), ("alism", "al"),
        ("aliti", "al"), ("iviti", "ive"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("alli", "al"),
        ("ator", "ate"), ("logi", "log"), ("bli", "ble"), ("eli", "e"),
    ]),
    (1, [
        ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ness", ""), ("ful", ""),
    ]),
    (2, [
        ("ement", ""), ("ance", ""), ("ence", ""), ("able", ""), ("ible", ""), ("ment", ""), ("ant", ""), ("ent", ""),
        ("ion", ""), ("ism", ""), ("ate", ""), ("iti", ""), ("ous", ""), ("ive", ""), ("ize", ""), ("al", ""),
        ("er", ""), ("ic", ""), ("ou", ""),
    ]),
]  # fmt: skip


def stem(word: str) -> str:
    """The stem of an English word, of the letters a to z."""
    if len(word) < 3:
        return word
    word = _without_past(_replace(word, _STEP_1, 0))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    for least, endings in _STEPS:
        word = _replace(word, endings, least)
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _is_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _shape(word: str) -> str:
    """The word as c and v, consonants and vowels; y behind a consonant is a vowel."""
    shape = ""
    for letter in word:
        shape += "v" if letter in "aeiou" or (letter == "y" and shape.endswith("c")) else "c"
    return shape


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Whether it ends as "hop" does: with consonant, vowel, consonant."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _without_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    stripped = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if "v" not in _shape(stripped):
        return word
    if stripped.endswith(("at", "bl", "iz")) or (_measure(stripped) == 1 and _is_short(stripped)):
        return stripped + "e"
    is_doubled = stripped[-1] == stripped[-2:-1] and stripped[-1] not in "aeioulsz"
    return stripped[:-1] if is_doubled else stripped


def _replace(word: str, endings: Iterable[tuple[str, str]], least: int) -> str:
    """Replace the longest ending that fits, if the measure of what is before it is at least `least`."""
    for ending, other in endings:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            fits = ending != "ion" or rest.endswith(("s", "t"))
            return rest + other if fits and _measure(rest) >= least else word
    return word
