"""Ranking, by the letter of its formula: features, score, neighbours, cut-off."""

import math
import random
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.search.ranking import (
    Features,
    Question,
    best_of,
    bm25,
    decay,
    fuse,
    mmr,
    natural_order,
    passage_rarity,
    rarity_of,
    score_of,
    shares_of,
    with_neighbours,
)
from notebook_sync.search.terms import NO_TERMS, search_columns
from tests.search.conftest import ANALYZER, sections_of

WORDS = st.lists(st.sampled_from("abcde"), max_size=8)
PASSAGES = st.lists(st.tuples(WORDS, WORDS), max_size=4)


def packed(title: list[str], summary: list[str], passages: list[tuple[list[str], list[str]]]) -> str:
    lines = [title, summary]
    for heading, words in passages:
        lines += [["#", *heading], words] if heading else [words]
    return "\n".join(f" {' '.join(line)} ".replace(" # ", "# ") if line else " " for line in lines)


def by_the_formula(
    query: list[str], title: list[str], summary: list[str], passages: list[tuple[list[str], list[str]]], average: float
) -> Features:
    """As the documentation states it, term by term. 10 notes, of which `having` have a term."""
    having = {"a": 1, "b": 3, "c": 5, "d": 9, "e": 10}
    idf = {term: math.log(1 + (10 - having[term] + 0.5) / (having[term] + 0.5)) for term in query}
    body = [word for heading, words in passages for word in [*heading, *words]]
    length = len(title) + len(summary) + len(body)
    total = sum(idf.values())
    bm25 = 0.0
    for term in idf:
        frequency = 8 * title.count(term) + 2 * summary.count(term) + body.count(term)
        bm25 += idf[term] * 3 * frequency / (frequency + 2 * (0.1 + 0.9 * length / average))
    wanted = {(a, b): min(idf[a], idf[b]) for a, b in pairwise(query) if a != b}

    def near(words: list[str]) -> set[tuple[str, str]]:
        return {(a, b) for at, a in enumerate(words) for b in words[at + 1 : at + 4] if (a, b) in wanted}

    cover, pairs = 0.0, 0.0
    inherited: list[str] = []
    for heading, words in [([], []), *passages]:
        inherited = heading or inherited
        cover = max(cover, sum(idf[term] for term in idf if term in [*title, *inherited, *words]))
        found = near(title) | near(inherited) | near(words)
        pairs = max(pairs, sum(wanted[pair] for pair in found))
    return Features(bm25 / total, cover / total, pairs / (sum(wanted.values()) or 1))


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=6), WORDS, WORDS, PASSAGES, st.integers(1, 40))
def test_features_are_those_of_the_formula(
    query: list[str], title: list[str], summary: list[str], passages: list[tuple[list[str], list[str]]], average: int
) -> None:
    question = Question.of(query, 10, {"a": 1, "b": 3, "c": 5, "d": 9, "e": 10}, average)
    found = question.features(packed(title, summary, passages))
    assert found == pytest.approx(by_the_formula(query, title, summary, passages, average))
    assert 0 <= found.bm25 < 3
    assert 0 <= found.pairs <= 1 + 1e-9
    assert question.kinds(packed(title, summary, passages)) == [len({*words} & {*query}) for _, words in passages]


def test_the_packed_text_of_a_note_says_title_summary_headings_and_passages() -> None:
    content = "Ferries.\n\n# Two *piers*\n\n" + "Rope. " * 100 + "\n\n## Empty\n"
    found = search_columns(ANALYZER, content, title="Two piers", summary="Boats", sections=sections_of(content))
    rope = found["terms"].split("\n")[4:-2]
    assert found["terms"].split("\n")[:4] == [" two pier ", " boat ", " ferri ", "# two pier "]
    assert ("".join(rope).split(), len(rope)) == (["rope"] * 100, 2)
    assert found["terms"].split("\n")[-2:] == ["# empti ", " "]
    assert found["words"]["content"].split() == ["ferri", "two", "pier", *["rope"] * 100, "empti"]
    assert search_columns(ANALYZER, "")["terms"].startswith(NO_TERMS)


def test_the_digest_of_words_depends_on_each_text_that_a_vector_does() -> None:
    same = search_columns(ANALYZER, "content", title="title")["words_digest"]
    assert same == search_columns(ANALYZER, "content", title="title", sections=[])["words_digest"]
    for other in ("content ", "\ud800"):
        assert search_columns(ANALYZER, other, title="title")["words_digest"] != same
    assert search_columns(ANALYZER, "content", summary="title")["words_digest"] != same


@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1e5))
def test_a_rarer_word_weighs_more_and_none_less_than_nothing(total: int, share: float, average: float) -> None:
    having = int(total * share)
    for rarity in (rarity_of(total, having), passage_rarity(total, having, average)):
        assert 0 < rarity < 40
    if having:
        assert rarity_of(total, having) < rarity_of(total, having - 1)
        assert passage_rarity(total, having, average) <= passage_rarity(total, having - 1, average)


def test_the_score_is_absolute() -> None:
    assert score_of(Features(1, 1, 1), 1) == pytest.approx(1)
    assert score_of(Features(0.5, 0.2, 0.4), 0.1) == pytest.approx(0.1 + 0.02 + 0.06 + 0.055)
    assert score_of(Features(0, 0, 0), -0.5) == 0


def test_neighbours_raise_each_other_by_their_own_scores() -> None:
    scores = {"a": 1.0, "b": 0.2, "c": 0.4, "x": 0.5}
    raised = with_neighbours(scores, [["a", "b", "-", "c"], ["x"]])
    assert raised == pytest.approx({"a": 1 + 0.06, "b": 0.2 + 0.3 + 0.06, "c": 0.4 + 0.03, "x": 0.5})


def test_numbers_in_paths_are_in_order() -> None:
    paths = ["a/2.md", "a/10.md", "a/1b.md", "a/x.md", "b/1.md", "a/²³.md", "a/" + "9" * 5_000]
    assert sorted(paths, key=natural_order)[:3] == ["a/1b.md", "a/2.md", "a/10.md"]


def test_less_than_half_of_the_best_is_left_out_and_ties_are_in_order_of_id() -> None:
    assert best_of({"c": 0.4, "b": 0.8, "d": 0.39, "a": 0.8}) == [("a", 0.8), ("b", 0.8), ("c", 0.4)]
    assert best_of({}) == []


def test_worth_halves_with_each_half_life() -> None:
    month, ages = timedelta(days=30), (-1, 0, 30, 60, 10**6)
    assert [decay(timedelta(days=days), month) for days in ages] == [1.0, 1.0, 0.5, 0.25, 0.0]


def test_a_share_is_that_of_the_rarity_of_the_words_that_a_text_has() -> None:
    texts = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "x": 1.0}, {"b": 0.5}, {"x": 1.0}]
    rarity = {word: math.log(1 + (3 + 1) / (n + 0.5)) for word, n in (("a", 2), ("b", 2), ("c", 0))}
    whole = sum(rarity.values())
    wanted = [rarity["a"] + rarity["b"], rarity["a"], 0.5 * rarity["b"], 0.0]
    assert shares_of(["c", "a", "b", "a"], texts) == pytest.approx([each / whole for each in wanted])
    assert shares_of([], texts) == [0.0] * 4


def test_what_repeats_the_first_comes_after_what_does_not() -> None:
    scores = {"a": 1.0, "b": 0.9, "c": 0.6}
    alike = {frozenset("ab"): 1.0, frozenset("ac"): 0.0, frozenset("bc"): 0.0}
    assert mmr(scores, lambda one, other: alike[frozenset((one, other))], 0.7, 3) == ["a", "c", "b"]
    assert mmr(scores, lambda *_: 1.0, 1.0, 3) == ["a", "b", "c"]


@given(
    st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=12),
    st.floats(0, 1),
    st.integers(0, 14),
    st.randoms(),
)
def test_each_choice_has_the_greatest_margin_then_the_first_id(
    scores: dict[str, float], share: float, limit: int, chance: random.Random
) -> None:
    alike = {(one, other): chance.choice((0.0, 0.5, chance.random())) for one in scores for other in scores}

    def similarity(one: str, other: str) -> float:
        return alike[min(one, other), max(one, other)]

    chosen = mmr(scores, similarity, share, limit)
    assert len(chosen) == len(set(chosen)) == min(limit, len(scores))
    for place, id in enumerate(chosen):
        margins = {
            each: (1 - share) * max((similarity(each, one) for one in chosen[:place]), default=0.0)
            - share * scores[each]
            for each in scores.keys() - chosen[:place]
        }
        assert (margins[id], id) == min((margin, each) for each, margin in margins.items())


def test_two_scores_are_fused_relative_to_the_best() -> None:
    assert fuse({"a": 4.0, "b": 2.0}, {"a": 0.2, "b": 0.6, "c": 0.4}, 0.4) == pytest.approx(
        {"a": 0.6, "b": 0.7, "c": 0.2}
    )
    assert fuse({}, {"a": 0.3, "b": -0.1}, 0.4) == pytest.approx({"a": 0.3, "b": 0.0})
    assert (fuse({"a": 3.0}, {}, 0.4), fuse({}, {}, 0.4)) == ({"a": 1.0}, {})


def test_a_rare_word_counts_more_and_a_long_text_less() -> None:
    texts = {"a": {"rope": 1, "ferry": 1}, "b": {"ferry": 1, "x": 1}, "c": {"ferry": 1, "x": 40}, "d": {"x": 1}}
    scores = bm25({"rope": 1.0, "ferry": 1.0}, texts)
    assert sorted(scores, key=scores.__getitem__) == ["c", "b", "a"]
    assert bm25({"rope": 1.0}, {}) == {}
