"""Porter's stemmer for English: "retries", "retried" and "retry" become "retri". The terms of FTS5's `porter`."""

from __future__ import annotations

from collections.abc import Iterable

# M. F. Porter (1980), An algorithm for suffix stripping, with the changes of his own later programs (bli, logi). From
# longer to shorter endings, so that the first that fits is the longest.
_STEP_1 = [("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")]
_STEP_2 = [
    ("ational", "ate"), ("ization", "ize"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("tional", "tion"), ("biliti", "ble"), ("entli", "ent"), ("ousli", "ous"), ("ation", "ate"), ("alism", "al"),
    ("aliti", "al"), ("iviti", "ive"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("alli", "al"),
    ("ator", "ate"), ("logi", "log"), ("bli", "ble"), ("eli", "e"),
]  # fmt: skip
_STEP_3 = [("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ness", ""), ("ful", "")]
_STEP_4 = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive", "ize",
    "al", "er", "ic", "ou",
]  # fmt: skip


def stem(word: str) -> str:
    """The stem of a word of the letters a to z."""
    if len(word) < 3:
        return word
    word = _without_past(_replace(word, _STEP_1, 0))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replace(word, _STEP_2, 1)
    word = _replace(word, _STEP_3, 1)
    word = _replace(word, ((ending, "") for ending in _STEP_4), 2)
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
