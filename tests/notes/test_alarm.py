"""For how long no reminder can fall due, so that nobody has to look meanwhile; also where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.notes.runtime.due import Due, seconds_until_next, standing_at
from notebook_sync.notes.runtime.entries import contents_of
from notebook_sync.notes.runtime.reminders import read_reminders

ZONE = ZoneInfo("Europe/Lisbon")
TEXT = """\
## Today
- [ ] Oil the lamp
- [ ] Call Odile [due: 2026-03-29 09:00]
- [x] Coil the ropes [due: 2026-03-29 08:00]

## Recurring
- Every day at 01:30: Light the lantern
- Every Monday: Weekly status
"""


def at(now: datetime, text: str = TEXT) -> list[Due]:
    return standing_at(now, read_reminders(contents_of(text), now.astimezone(ZONE).date())[0], ZONE)


def next_after(now: datetime, text: str = TEXT) -> datetime:
    seconds = seconds_until_next(now, at(now, text), ZONE)
    return (now.astimezone(UTC) + timedelta(seconds=seconds)).astimezone(ZONE)


def local(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=ZONE)


def test_the_next_is_the_first_that_is_still_to_come() -> None:
    assert next_after(local(29, 8)) == local(29, 9)


def test_what_recurs_comes_round_when_the_day_ends() -> None:
    assert next_after(local(29, 9)) == next_after(local(29, 23, 59)) == local(30, 0)


def test_a_file_without_reminders_is_looked_at_again_when_the_day_ends() -> None:
    assert next_after(local(29, 9), "") == local(30, 0)


def test_what_falls_into_an_hour_that_clocks_skip_is_waited_for_an_hour_and_a_half_of_real_time() -> None:
    assert next_after(local(29, 0)) == local(29, 2, 30)
    assert seconds_until_next(local(29, 0), at(local(29, 0)), ZONE) == 5400


@given(st.datetimes(datetime(2026, 3, 27), datetime(2026, 4, 1)), st.floats(0, 0.999))
def test_nothing_falls_due_before_it_and_it_never_is_now(moment: datetime, share: float) -> None:
    now = moment.replace(tzinfo=UTC)
    wait = next_after(now).astimezone(UTC) - now

    def due(when: datetime) -> set[str]:
        return {one.occurrence for one in at(when) if one.is_due}

    assert timedelta() < wait <= timedelta(days=1, hours=1)
    assert due(now + wait * share) <= due(now)
