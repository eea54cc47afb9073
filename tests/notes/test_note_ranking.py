"""What private notes are ranked by, against tables that were worked out by hand."""

from __future__ import annotations

import math

import pytest

from notebook_sync.notes.channels.ranking import PROFILES, decay_of, score, similarities


@pytest.mark.parametrize(
    ("profile", "similarity", "confidence", "age_hours", "expected"),
    [
        # (decay·.6 + similarity·.3 + confidence·.1) / 1
        ("recent", 0.8, 0.5, 0, 0.89),
        ("recent", 0.8, 0.5, 24, 0.59),
        ("recent", 0.8, 0.9, 48, 0.48),
        ("recent", None, 0.9, 24, 0.39 / 0.7),
        # (decay·.1 + similarity·.4 + confidence·.5) / 1
        ("quality", 0.8, 0.5, 720, 0.62),
        ("quality", 0.0, 1.0, 0, 0.6),
        ("quality", None, 0.9, 720, 0.5 / 0.6),
        # (decay·.33 + similarity·.34 + confidence·.33) / 1
        ("balanced", 0.8, 0.5, 168, 0.602),
        ("balanced", 1.0, 1.0, 0, 1.0),
        ("balanced", None, 0.9, 168, 0.7),
        # similarity alone; without a query, age alone
        ("similarity", 0.8, 0.1, 100_000, 0.8),
        ("similarity", 0.0, 1.0, 0, 0.0),
        ("similarity", None, 0.1, 8760, 0.5),
    ],
)
def test_a_score_is_the_weighted_mean_that_its_profile_names(
    profile: str, similarity: float | None, confidence: float, age_hours: float, expected: float
) -> None:
    assert score(PROFILES[profile], similarity, confidence, age_hours) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("age_hours", "half_life", "expected"), [(0, 24, 1), (24, 24, 0.5), (72, 24, 0.125), (-5, 24, 1), (1e9, 24, 0)]
)
def test_age_halves_a_note_again_and_again(age_hours: float, half_life: float, expected: float) -> None:
    assert decay_of(age_hours, half_life) == pytest.approx(expected)


def test_one_word_that_stands_once_in_a_note_of_the_usual_length() -> None:
    assert similarities("rope", ["the rope is worn"]) == [pytest.approx(1 / 2.2)]


def test_a_missing_word_weighs_as_much_as_it_is_rare() -> None:
    there, missing = math.log(4 / 3), math.log(4)
    assert similarities("rope buoy", ["the rope is worn"]) == [pytest.approx(there / 2.2 / (there + missing))]


def test_more_of_the_query_is_more_alike_and_no_word_of_it_is_nothing() -> None:
    both, one, none = similarities("rope buoy", ["rope and buoy here", "rope and sail here", "lamp and sail here"])
    assert 1 > both > one > none == 0


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("ropes", "a rope"),
        ("racing", "the race"),
        ("planned", "our plan"),
        ("berths", "one berth"),
        ("FERRY", "ferries"),
        ("Inés", "ines"),
        ("ﬁn", "fin"),
    ],
)
def test_a_word_is_found_in_its_other_forms(query: str, text: str) -> None:
    assert similarities(query, [text])[0] > 0


@pytest.mark.parametrize("query", ["", "!?", "“”", "🚢", "_"])
def test_a_query_without_words_is_like_nothing(query: str) -> None:
    assert similarities(query, ["rope", ""]) == [0.0, 0.0]


def test_other_notes_change_a_likeness_only_when_they_are_compared() -> None:
    assert similarities("rope", []) == []
    assert similarities("rope", [""]) == [0.0]
