"""What is read as a moment, and what teaches instead."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from notebook_sync.errors import UsageError
from notebook_sync.moments import moment

HELSINKI = ZoneInfo("Europe/Helsinki")
NOW = datetime(2026, 2, 18, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-02-18", "2026-02-17T22:00:00+00:00"),
        ("2026-07-18", "2026-07-17T21:00:00+00:00"),
        ("2026-02-18T09:30", "2026-02-18T07:30:00+00:00"),
        (" 2026-02-18 09:30:15 ", "2026-02-18T07:30:15+00:00"),
        ("2026-02-18T09:30Z", "2026-02-18T09:30:00+00:00"),
        ("2026-02-18T09:30-05:00", "2026-02-18T14:30:00+00:00"),
        ("12h", "2026-02-18T00:30:00+00:00"),
        ("7d", "2026-02-11T12:30:00+00:00"),
        ("2w", "2026-02-04T12:30:00+00:00"),
        ("0d", "2026-02-18T12:30:00+00:00"),
        ("yesterday", "2026-02-16T22:00:00+00:00"),
        ("Today", "2026-02-17T22:00:00+00:00"),
    ],
)
def test_days_moments_and_how_long_ago(text: str, read: str) -> None:
    found = moment(text, HELSINKI, NOW)
    assert found.isoformat() == read
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        *("", "tomorrow", "18.2.2026", "2026-02-30", "7", "7 d", "-7d", "7D", "999999w", "٧d", "0001-01-01"),
        *("2026-02-18T25:00", "9999-12-31T23:59-12:00", "\0", "\udcff", '{"$gt": 1}'),
    ],
)
def test_anything_else_says_what_to_write(text: str) -> None:
    with pytest.raises(UsageError, match="is not a date; write a day like 2026-02-18") as found:
        moment(text, HELSINKI, NOW)
    assert repr(text.strip()) in str(found.value)
