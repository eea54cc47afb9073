"""The formulas that choose memories, against tables that were worked by hand."""

from __future__ import annotations

from collections import Counter
from math import log

import pytest

from notebook_sync.context.ranking import bm25, by_turns, combined, diversified, in_common, lifted


@pytest.mark.parametrize(
    ("similarity", "score", "share", "expected"),
    [
        (1.0, 1.0, 0.6, 1.0),
        (0.5, 0.5, 0.6, 0.5),
        (1.0, 0.0, 0.6, 0.6),
        (0.0, 1.0, 0.6, 0.4),
        (0.8, 0.3, 0.6, 0.60),
        (0.25, 0.75, 0.6, 0.45),
        (0.8, 0.3, 1.0, 0.8),
        (0.8, 0.3, 0.0, 0.3),
    ],
)
def test_similarity_and_score_are_combined(similarity: float, score: float, share: float, expected: float) -> None:
    assert combined(similarity, score, share) == pytest.approx(expected)


def test_bm25_by_hand() -> None:
    texts = {"a": Counter(ferry=2, pier=2), "b": Counter(ferry=1, lamp=3), "c": Counter(rope=4)}
    # All have four words, so that length counts for nothing: tf x 2.2 / (tf + 1.2).
    # ferry stands in two of three: ln(1 + 1.5 / 2.5); lamp in one: ln(1 + 2.5 / 1.5).
    of_ferry, of_lamp = log(1 + 1.5 / 2.5), log(1 + 2.5 / 1.5)
    scores = bm25({"ferry": 1.0, "lamp": 0.5, "moon": 1.0}, texts)
    assert scores == {
        "a": pytest.approx(of_ferry * 2 * 2.2 / 3.2),
        "b": pytest.approx(of_ferry * 1 * 2.2 / 2.2 + 0.5 * of_lamp * 3 * 2.2 / 4.2),
    }


def test_bm25_holds_length_against_a_text() -> None:
    scores = bm25({"ferry": 1.0}, {"short": Counter(ferry=1), "long": Counter(ferry=1, other=99)})
    assert scores["short"] > scores["long"] > 0


def test_bm25_of_nothing_is_nothing() -> None:
    assert bm25({"ferry": 1.0}, {}) == {}
    assert bm25({}, {"a": Counter(ferry=1)}) == {}
    assert bm25({"ferry": 1.0}, {"empty": Counter()}) == {}


def test_the_order_in_which_words_and_texts_come_changes_no_score() -> None:
    words = {word: weight / 7 for weight, word in enumerate("abcdefg", start=1)}
    texts = {str(n): Counter("abcdefg"[: n + 1] * 3) for n in range(7)}
    turned = bm25(dict(reversed(words.items())), dict(reversed(texts.items())))
    assert turned == bm25(words, texts)


def test_marginal_relevance_by_hand() -> None:
    near = {
        "a": {"a": 1.0, "b": 0.9, "c": 0.1},
        "b": {"a": 0.9, "b": 1.0, "c": 0.2},
        "c": {"a": 0.1, "b": 0.2, "c": 1.0},
    }
    taken = diversified({"a": 0.9, "b": 0.8, "c": 0.5}, near.__getitem__, 0.7, 3)
    # a: .7 x .9 = .63.  Then b: .56 - .3 x .9 = .29, c: .35 - .3 x .1 = .32.  Then b: .56 - .3 x max(.9, .2) = .29.
    assert [(one.note_id, pytest.approx(one.margin), one.redundancy) for one in taken] == [
        ("a", 0.63, 0.0),
        ("c", 0.32, 0.1),
        ("b", 0.29, 0.9),
    ]


def test_with_a_diversity_of_one_relevance_alone_counts() -> None:
    same = {one: dict.fromkeys("abc", 1.0) for one in "abc"}
    taken = diversified({"a": 0.5, "b": 0.9, "c": 0.7}, same.__getitem__, 1.0, 2)
    assert [one.note_id for one in taken] == ["b", "c"]


def test_of_even_ones_the_first_id_is_taken() -> None:
    none = {one: dict.fromkeys("abc", 0.0) for one in "abc"}
    assert [one.note_id for one in diversified(dict.fromkeys("cab", 0.5), none.__getitem__, 0.7, 9)] == ["a", "b", "c"]
    assert diversified({"a": 1.0}, none.__getitem__, 0.7, 0) == []


def test_a_link_lends_half_of_what_it_leads_from() -> None:
    similarity = {"a": 0.8, "b": 0.0, "c": 0.5, "d": 0.0}
    links = [("a", "b", 1.0), ("c", "a", 0.5), ("a", "gone", 1.0), ("b", "d", 1.0)]
    assert lifted(similarity, links) == {"a": 0.8, "b": 0.4, "c": 0.5, "d": 0.0}
    assert lifted(similarity, [("d", "a", 0.5)])["d"] == pytest.approx(0.2)


def test_candidates_come_by_turns() -> None:
    assert by_turns(["a", "b", "c"], ["b", "x"], [], limit=9) == ["a", "b", "x", "c"]
    assert by_turns(["a", "b", "c"], ["x", "y"], limit=3) == ["a", "x", "b"]
    assert by_turns(limit=3) == []


def test_what_texts_have_in_common() -> None:
    assert in_common("abc", "bcd") == 0.5
    assert in_common("ab", "ab") == 1.0
    assert in_common("", "") == 0.0
