"""What facts count for, against tables worked by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.errors import UsageError
from notebook_sync.files.facts import ARCHIVE, CORE
from notebook_sync.mirror.facts import Fact
from notebook_sync.notes.fact_life import (
    clamp,
    deserves_core,
    effective,
    importance_of,
    is_spent,
    is_stale,
    suggested_rate,
)
from notebook_sync.settings import MemorySettings

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SETTINGS = MemorySettings()
DAY = timedelta(days=1)


def fact(
    base: float = 0.5,
    made: float = 0,
    used: float | None = None,
    accesses: int = 0,
    rate: float = 0.01,
    path: str = "facts/notes.md",
) -> Fact:
    """A fact that was made, and used last, so many days ago."""
    return Fact(
        "0123456789abcdef",
        "Odile runs the ferry",
        NOW - made * DAY,
        NOW,
        path=path,
        importance=base,
        unpinned=base,
        decay_rate=rate,
        access_count=accesses,
        last_accessed=None if used is None else NOW - used * DAY,
    )


# (base - days since access · rate + min(.5, .05 · accesses)) / (1 + .01 · days since creation)
TABLE = [
    # base, made, used, accesses, rate, worked out
    (0.5, 0, None, 0, 0.01, 0.5),  # (.5 - 0 + 0) / 1
    (0.5, 10, None, 0, 0.01, 0.4 / 1.1),  # (.5 - .1) / 1.1 = .3636
    (0.5, 40, None, 0, 0.01, 0.1 / 1.4),  # (.5 - .4) / 1.4 = .0714
    (0.5, 44, None, 0, 0.01, 0.06 / 1.44),  # (.5 - .44) / 1.44 = .0417
    (0.5, 60, None, 0, 0.01, 0.0),  # (.5 - .6) < 0
    (0.5, 10, 0, 1, 0.01, 0.55 / 1.1),  # (.5 - 0 + .05) / 1.1 = .5
    (0.5, 100, 20, 6, 0.01, 0.6 / 2.0),  # (.5 - .2 + .3) / 2 = .3
    (0.5, 0, 0, 10, 0.01, 1.0),  # (.5 + .5) / 1
    (0.5, 0, 0, 1000, 0.01, 1.0),  # no more than .5 by use
    (0.9, 25, 5, 40, 0.02, 1.0),  # (.9 - .1 + .5) / 1.25 = 1.04
    (1.0, 0.5, None, 0, 0.01, 0.995 / 1.005),  # half a day
    (0.2, 2, None, 0, 0.05, 0.1 / 1.02),  # (.2 - .1) / 1.02 = .098
    (0.0, 0, None, 0, 0.01, 0.0),
    (0.7, 300, 0, 4, 0.01, 0.9 / 4.0),  # (.7 + .2) / 4 = .225
    (0.5, -3, None, 0, 0.01, 0.5),  # made in three days from now, by a clock that is fast
    (0.5, 10, -5, 2, 0.01, 0.6 / 1.1),  # used in five days from now: (.5 + .1) / 1.1
]


@pytest.mark.parametrize(("base", "made", "used", "accesses", "rate", "expected"), TABLE)
def test_a_fact_counts_for_what_its_use_and_its_age_make_of_its_base(
    base: float, made: float, used: float | None, accesses: int, rate: float, expected: float
) -> None:
    assert effective(fact(base, made, used, accesses, rate), NOW) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("base", "made", "accesses", "expected"),
    [(1.0, 900, 0, 1.0), (0.5, 900, 0, 0.5), (0.5, 900, 4, 0.7), (0.8, 0, 10, 1.0)],
)
def test_a_core_fact_loses_nothing(base: float, made: float, accesses: int, expected: float) -> None:
    assert effective(fact(base, made, made, accesses, path=CORE), NOW) == pytest.approx(expected)


def test_asking_twice_changes_nothing() -> None:
    one = fact(0.5, 30, 10, 2)
    assert effective(one, NOW) == effective(one, NOW)
    assert effective(replace(one, access_count=3), NOW) > effective(one, NOW) > effective(one, NOW + DAY)


@given(
    st.floats(0, 1),
    st.integers(-(10**6), 10**6),
    st.none() | st.integers(-(10**6), 10**6),
    st.integers(0, 2**62),
    st.floats(0, 1e300),
)
def test_whatever_is_known_it_counts_for_something_from_0_to_1(
    base: float, made: int, used: int | None, accesses: int, rate: float
) -> None:
    hours = timedelta(hours=1)
    one = replace(
        fact(base, accesses=accesses, rate=rate),
        created_at=NOW - made * hours,
        last_accessed=None if used is None else NOW - used * hours,
    )
    assert 0 <= effective(one, NOW) <= 1


@pytest.mark.parametrize(
    ("hint", "expected"),
    [("core", 1.0), ("high", 0.7), ("medium", 0.4), ("low", 0.2), (" High ", 0.7), ("0.9", 0.9), (0, 0.0), (1.0, 1.0)],
)
def test_a_hint_or_a_number_is_an_importance(hint: str | float, expected: float) -> None:
    assert importance_of(hint) == expected


@pytest.mark.parametrize("hint", ["", "highest", "-0.1", 1.01, float("nan"), float("inf"), True, "nan"])
def test_anything_else_is_none(hint: str | float) -> None:
    with pytest.raises(UsageError, match="core, high, medium, low or a number from 0 to 1"):
        importance_of(hint)


@pytest.mark.parametrize(
    ("importance", "rate"),
    [(1.0, 0.005), (0.8, 0.005), (0.79, 0.01), (0.5, 0.01), (0.49, 0.02), (0.3, 0.02), (0.29, 0.05), (0.0, 0.05)],
)
def test_what_matters_more_should_fade_more_slowly(importance: float, rate: float) -> None:
    assert suggested_rate(importance) == rate


@pytest.mark.parametrize(
    ("value", "expected"), [(-1, 0.0), (0.3, 0.3), (2, 1.0), (float("nan"), 0.0), (float("inf"), 1.0)]
)
def test_a_value_is_brought_within_its_bounds(value: float, expected: float) -> None:
    assert clamp(value) == expected


@pytest.mark.parametrize(
    ("made", "used", "stale"),
    [(30, None, True), (29.9, None, False), (90, 30, True), (90, 29.9, False), (-5, None, False)],
)
def test_a_fact_is_stale_after_thirty_days_without_use(made: float, used: float | None, stale: bool) -> None:
    assert is_stale(fact(made=made, used=used), NOW, SETTINGS) is stale


@pytest.mark.parametrize(
    ("made", "spent"),
    [
        (42, False),  # (.5 - .42) / 1.42 = .0563
        (43, True),  # (.5 - .43) / 1.43 = .0490
    ],
)
def test_a_fact_is_spent_below_a_twentieth(made: float, spent: bool) -> None:
    assert is_spent(fact(0.5, made), NOW, SETTINGS) is spent


def test_only_what_stands_in_notes_is_spent() -> None:
    assert is_spent(fact(0.01), NOW, SETTINGS)
    for path in (CORE, ARCHIVE):
        assert not is_spent(fact(0.01, path=path), NOW, SETTINGS)
    assert not is_spent(replace(fact(0.01), gone_at=NOW), NOW, SETTINGS)


@pytest.mark.parametrize(
    ("one", "deserves"),
    [
        (fact(0.7, 0, 0, 3), True),  # .85
        (fact(0.7, 0, 0, 2), False),  # .8, and used twice
        (fact(0.65, 0, 0, 3), False),  # .8 is not more than .8
        (fact(0.9, 0, 0, 0), False),
        (fact(0.9, 0, 0, 3, path=CORE), False),
        (fact(0.9, 0, 0, 3, path=ARCHIVE), False),
        (replace(fact(0.9, 0, 0, 3), gone_at=NOW), False),
    ],
)
def test_a_fact_deserves_core_that_was_used_and_counts_for_much(one: Fact, deserves: bool) -> None:
    assert deserves_core(one, NOW, SETTINGS) is deserves
