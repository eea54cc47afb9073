"""The metadata guardian, against tables: what is taken, what is replaced and marked, what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from notebook_sync.errors import UsageError
from notebook_sync.notes.memories.metadata import UNKNOWN, Metadata, guarded

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MADE = datetime(2026, 2, 16, 9, 30, tzinfo=UTC)
GOOD: dict[str, Any] = {"created_at": "2026-02-16T09:30:00Z", "agent": "scribe", "tags": (), "priority": 4, "now": NOW}


def look(*, strict: bool = False, **changed: Any) -> Metadata:
    return guarded(**{**GOOD, **changed}, strict=strict)


@pytest.mark.parametrize("strict", [True, False])
def test_what_is_whole_is_taken(strict: bool) -> None:
    assert look(strict=strict) == Metadata(MADE, "scribe", 4)


@pytest.mark.parametrize(
    ("created_at", "moment"),
    [
        ("2026-02-16T09:30:00Z", MADE),
        ("2026-02-16T10:30:00+01:00", MADE),
        ("2026-02-16 09:30", MADE),
        (" 20260216T093000Z ", MADE),
        ("2026-02-16", datetime(2026, 2, 16, tzinfo=UTC)),
        (MADE, MADE),
        (MADE.replace(tzinfo=None), MADE),
        (MADE.astimezone(timezone(timedelta(hours=-5))), MADE),
    ],
)
def test_iso_8601_is_a_time(created_at: object, moment: datetime) -> None:
    assert look(created_at=created_at, strict=True).created_at == moment


@pytest.mark.parametrize(
    "created_at",
    [None, "", "yesterday", "16.02.2026", "2026-02-30", "2026-02-16T25:00", 1771234200, 0.0, True, [], "9" * 5000,
     "0001-01-01T00:00:00+14:00", "2026-02-16T09:30:00Z; DROP", "\ud800", date(2026, 2, 16)],
)  # fmt: skip
def test_any_other_time_is_now_or_refused(created_at: object) -> None:
    assert look(created_at=created_at) == Metadata(NOW, "scribe", 4, ("created_at",))
    with pytest.raises(UsageError, match=r"created_at is .*ISO 8601"):
        look(created_at=created_at, strict=True)


@pytest.mark.parametrize(
    ("agent", "tags", "name"),
    [
        ("scribe", ("agent:pilot",), "scribe"),
        ("agent:scribe", (), "scribe"),
        ("", ("lamps", "agent:pilot", "agent:scribe"), "pilot"),
        (None, ("agent: pilot",), "pilot"),
        (7, ("agent:", "agent:/etc", "agent:pilot"), "pilot"),
        ("unknown", ("agent:pilot",), "pilot"),
        ("a/b", ("agent:pilot",), "pilot"),
    ],
)
def test_the_field_names_the_agent_or_else_the_first_tag_that_does(
    agent: object, tags: tuple[str, ...], name: str
) -> None:
    assert look(agent=agent, tags=tags, strict=True).agent == name


@pytest.mark.parametrize(
    ("agent", "tags"),
    [(None, ()), ("", ("lamps",)), ("agent:", ("agent:",)), ("agent:unknown", ()), ("x\ny", ()), (["scribe"], ())],
)
def test_nobody_who_is_named_is_unknown_or_refused(agent: object, tags: tuple[str, ...]) -> None:
    assert look(agent=agent, tags=tags) == Metadata(MADE, UNKNOWN, 4, ("agent",))
    with pytest.raises(UsageError, match="agent:scribe"):
        look(agent=agent, tags=tags, strict=True)


@pytest.mark.parametrize(
    ("priority", "rank"),
    [(None, 7), ("", 7), (1, 1), (10, 10), (0, 1), (-3, 1), (11, 10), (10**30, 10), (6.6, 7), ("8", 8),
     (float("inf"), 10)],
)  # fmt: skip
def test_a_priority_is_the_nearest_from_1_to_10(priority: object, rank: int) -> None:
    found = look(priority=priority)
    assert (found.priority, found.assumed) == (rank, ())


@pytest.mark.parametrize("priority", [0, -3, 0.9, 10.4, 99, "11", 10**30, float("inf")])
def test_a_priority_beyond_the_scale_is_told_or_refused(priority: object) -> None:
    assert look(priority=priority).is_clamped
    with pytest.raises(UsageError, match="from 1 to 10"):
        look(priority=priority, strict=True)


@pytest.mark.parametrize("priority", [None, "", 1, 10, 6.6, "8"])
def test_a_priority_of_the_scale_is_taken_strictly(priority: object) -> None:
    assert not look(priority=priority, strict=True).is_clamped


@pytest.mark.parametrize("priority", ["high", float("nan"), True, [7], "7 of 10", 10**400])
def test_a_priority_that_is_no_number_is_the_usual_one_or_refused(priority: object) -> None:
    assert look(priority=priority) == Metadata(MADE, "scribe", 7, ("priority",))
    with pytest.raises(UsageError, match="from 1 to 10"):
        look(priority=priority, strict=True)


def test_all_that_was_assumed_is_told() -> None:
    found = look(created_at=None, agent=None, priority="?")
    assert found == Metadata(NOW, UNKNOWN, 7, ("created_at", "agent", "priority"))
