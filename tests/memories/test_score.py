"""What memories count for, against a table worked by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.mirror.memories import UNSCORED, Memory
from notebook_sync.notes.memories.score import known_score, score_of
from notebook_sync.settings import Fraction, MemorySettings

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
USUAL = MemorySettings()


def memory(
    made: float = 0, used: float | None = None, accesses: int = 0, priority: int = 7, score: float | None = None
) -> Memory:
    """A memory that was made, and used last, so many days ago."""
    created = NOW - made * DAY
    return Memory(
        "lampsatsix", "memories/decision/lamps.md", "Lamps at six", "", "decision", "harbour", (), "scribe", priority,
        False, None, "draft", created, "frontmatter", created, 1, "", (), accesses,
        None if used is None else NOW - used * DAY, score,
    )  # fmt: skip


# .30 · min(1, ln(1 + n) / 5) + .35 · 2^(-days since use / 7) + .25 · p / 10 - .10 · (1 - 2^(-days since made / 30))
TABLE = [
    # made, used, accesses, priority, worked out
    (0, None, 0, 7, 0.525),  # 0 + .35 + .175 - 0
    (7, None, 0, 7, 0.335066),  # 0 + .175 + .175 - .1 · (1 - .850662)
    (30, None, 0, 7, 0.142944),  # 0 + .35 · .051268 + .175 - .05
    (30, 0, 1, 7, 0.516589),  # .3 · .138629 + .35 + .175 - .05
    (30, 7, 9, 10, 0.513155),  # .3 · .460517 + .175 + .25 - .05
    (60, 14, 147, 1, 0.337333),  # .3 · .999442 + .0875 + .025 - .075
    (60, 0, 148, 10, 0.825),  # .3 · 1 + .35 + .25 - .075
    (60, 0, 10**9, 10, 0.825),  # usage counts in full, and no more
    (3650, None, 0, 1, 0.0),  # 0 + 0 + .025 - .1, which is below nothing
    (-5, None, 0, 7, 0.525),  # dated later: as of now
    (0, -5, 0, 10, 0.6),  # 0 + .35 + .25 - 0
]


@pytest.mark.parametrize(("made", "used", "accesses", "priority", "expected"), TABLE)
def test_the_score_is_what_the_formula_says(
    made: float, used: float | None, accesses: int, priority: int, expected: float
) -> None:
    assert score_of(memory(made, used, accesses, priority), NOW, USUAL) == pytest.approx(expected, abs=1e-5)


def test_weights_and_half_lives_are_settings() -> None:
    only = MemorySettings(
        usage=Fraction(0.0), recency=Fraction(1.0), priority=Fraction(0.0), age=Fraction(0.0), recency_half_life_days=2
    )
    assert score_of(memory(4), NOW, only) == pytest.approx(0.25)
    aged = MemorySettings(
        usage=Fraction(0.0), recency=Fraction(0.0), priority=Fraction(1.0), age=Fraction(1.0), age_half_life_days=10
    )
    assert score_of(memory(10, priority=10), NOW, aged) == pytest.approx(0.5)


def test_with_no_half_life_only_the_present_moment_counts() -> None:
    sudden = MemorySettings(recency_half_life_days=0.0, age_half_life_days=0.0)
    assert score_of(memory(0), NOW, sudden) == pytest.approx(0.525)
    assert score_of(memory(1), NOW, sudden) == pytest.approx(0.075)


def test_between_two_computations_a_score_stays_what_it_is() -> None:
    assert known_score(memory(100, score=0.9)) == 0.9
    assert known_score(memory(100, score=0.0)) == 0.0
    assert known_score(memory(100)) == UNSCORED


days = st.floats(0, 1e5)


@settings(max_examples=80)
@given(days, days, st.integers(0, 10**6), st.integers(1, 10))
def test_a_score_is_from_0_to_1_and_use_or_a_higher_priority_never_lowers_it(
    made: float, used: float, accesses: int, priority: int
) -> None:
    score = score_of(memory(made, used, accesses, priority), NOW, USUAL)
    assert 0 <= score <= 1
    assert score_of(memory(made, used / 2, accesses + 1, priority), NOW, USUAL) >= score
    assert score_of(memory(made, used, accesses, min(priority + 1, 10)), NOW, USUAL) >= score
