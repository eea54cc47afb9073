"""Ranking, by the letter of its formula: features, score, neighbours, cut-off."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.search.ranking import (
    Features,
    Question,
    best_of,
    natural_order,
    passage_rarity,
    rarity_of,
    score_of,
    with_neighbours,
)
from notebook_sync.search.terms import NO_TERMS, search_columns
from tests.search.notes import ANALYZER, sections_of

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
    rope = found.terms.split("\n")[4:-2]
    assert found.terms.split("\n")[:4] == [" two pier ", " boat ", " ferri ", "# two pier "]
    assert "".join(rope).split() == ["rope"] * 100
    assert len(rope) == 2
    assert found.terms.split("\n")[-2:] == ["# empti ", " "]
    assert found.words["content"].split() == ["ferri", "two", "pier", *["rope"] * 100, "empti"]
    assert search_columns(ANALYZER, "").terms.startswith(NO_TERMS)


def test_the_digest_of_words_depends_on_each_text_that_a_vector_does() -> None:
    same = search_columns(ANALYZER, "content", title="title").words_digest
    assert same == search_columns(ANALYZER, "content", title="title", sections=[]).words_digest
    for other in ("content ", "\ud800"):
        assert search_columns(ANALYZER, other, title="title").words_digest != same
    assert search_columns(ANALYZER, "content", summary="title").words_digest != same


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
