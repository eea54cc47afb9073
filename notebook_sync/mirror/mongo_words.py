"""What MongoDB's text index leaves out of a text, as words that it does take, and a query in the same terms. Pure.

The server leaves out common English words, takes `max_retries` and `l'eau` for one word each, and finds `résumé` only
as it is spelled. So that every store finds the same, such words stand once more beside the texts.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from notebook_sync.mirror.document import MOST_WORDS, askable

# What the server drops in English, as a server was asked: 174 words.
_ENGLISH: Final = """
    a about above after again against all am an and any are aren't as at be because been before being below between
    both but by can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
    further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his
    how how's i i'd i'll i'm i've if in into is isn't it it's its itself let's me more most mustn't my myself no nor
    not of off on once only or other ought our ours ourselves out over own same shan't she she'd she'll she's should
    shouldn't so some such than that that's the their theirs them themselves then there there's these they they'd
    they'll they're they've this those through to too under until up very was wasn't we we'd we'll we're we've were
    weren't what what's when when's where where's which while who who's whom why why's with won't would wouldn't you
    you'd you'll you're you've your yours yourself yourselves
"""
_LEFT_OUT: Final = frozenset(_ENGLISH.split())
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_PARTS = re.compile(r"[_'\u2019]")
# What ends a word for the server as well, but for the apostrophe: without it `don't` is no word to leave out.
_MARKS = {0: " ", **{ord(mark): " " for mark in string.punctuation if mark not in "_'"}}


def words_beside(texts: Iterable[str]) -> str:
    """The words of the texts that the server would not find in them, each once, in order."""
    found = set(_WORD.findall(unicodedata.normalize("NFC", "\n".join(texts)).lower()))
    return " ".join(sorted({beside for word in found for beside in _beside(word)}))


def as_words(query: str) -> str:
    """The query for `$text`, which knows two operators: a quoted phrase and a leading minus. Any word may match. Common
    words are looked for where there are no others: the server does not know how rare a word is."""
    composed = unicodedata.normalize("NFC", askable(query))  # else a word would end at an accent that stands for itself
    once = {word.casefold(): word for word in composed.translate(_MARKS).split()}
    asked = list(once.values())[:MOST_WORDS]
    telling = [word for word in asked if word.lower() not in _LEFT_OUT]
    telling += [beside for word in telling for beside in _beside(word.lower()) if not beside.startswith("_")]
    return " ".join(dict.fromkeys(telling or [beside for word in asked for beside in _beside(word.lower())]))


def _beside(word: str) -> Iterator[str]:
    """What stands beside the texts for a word in them. A word that the server would drop begins with `_` there."""
    for each in {word, _without_accents(word)}:
        if each in _LEFT_OUT:
            yield "_" + each.replace("'", "")
        elif each != word:
            yield each
        parts = _PARTS.split(each)
        if len(parts) > 1:
            yield from (f"_{part}" if part in _LEFT_OUT else part for part in parts if part)


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    return "".join(sign for sign in unicodedata.normalize("NFKD", word) if not unicodedata.combining(sign)).casefold()
