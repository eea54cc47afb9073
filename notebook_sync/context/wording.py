"""The words of a text as ranking counts them: without case, accents and endings, and no small ones. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from notebook_sync.notes.facts.words import SMALL

# Scripts that part no words: there a letter is one.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]{{1,40}}")
_ASCII_WORD = re.compile(r"[a-z0-9]{1,40}")  # the same, found in half the time
_MODAL = ("can", "cannot", "from", "if", "may", "might", "must", "not", "should", "then", "to", "was", "were", "will")
_SMALL = SMALL.union(_MODAL, ("we", "when", "you"))
_SHORTEST = 4
# The longest first: of several that a word ends in, it loses one.
_ENDINGS = ("ments", "ings", "ment", "ions", "ing", "ies", "ion", "ed", "es", "ly", "s", "e", "y")


def words_in(text: str) -> list[str]:
    """The words in order, folded, with their endings."""
    return (_ASCII_WORD if text.isascii() else _WORD).findall(folded(text))


def stems_in(text: str) -> Counter[str]:
    """How often the text has each word, whatever its ending; small words are left out."""
    stems = Counter(map(_counted_as, words_in(text)))
    del stems[""]
    return stems


def is_small(word: str) -> bool:
    """Whether a folded word tells nothing of what a text is about."""
    return word in _SMALL


@lru_cache(maxsize=10_000)
def stem(word: str) -> str:
    """A folded word without its ending, where enough of it is left to know it by."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=50_000)
def _counted_as(word: str) -> str:
    """A folded word without its ending; "" for a small one."""
    return "" if word in _SMALL else stem(word)


def folded(text: str) -> str:
    """The text without case and accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text)
    return "".join(each for each in apart if not unicodedata.combining(each)).casefold()
