"""When reminders fall due, in the notebook's timezone, also on the days on which its clocks change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.notes.runtime.due import Due, in_zone, standing_at
from notebook_sync.notes.runtime.entries import contents_of
from notebook_sync.notes.runtime.reminders import read_reminders

LISBON = ZoneInfo("Europe/Lisbon")
BERLIN = ZoneInfo("Europe/Berlin")
FILE = """\
## Today
- [ ] Oil the lamp
- [ ] Call Odile [due: 2026-03-01 09:00]
- [x] Coil the ropes [due: 2026-02-27]

## This Week
- [ ] Paint the hull [due: 2026-03-01]
- [ ] Buy tar [due: 2026-02-28 23:30]
- [ ] Sort charts

## Recurring
- Every Sunday at 08:30: Wind the tower clock
- Every Monday at 09:00: Weekly status
- Every day at 18:00: Light the lantern

## Waiting For
- Answer of the glazier [expected: Feb 28]
"""


def at(now: datetime, text: str = FILE, zone: ZoneInfo = LISBON) -> list[Due]:
    local = now.astimezone(zone)
    return standing_at(now, read_reminders(contents_of(text), local.date())[0], zone)


def states(found: list[Due]) -> dict[str, str]:
    return {due.text: due.state for due in found}


def test_what_is_overdue_due_and_upcoming() -> None:
    found = at(datetime(2026, 3, 1, 8, 45, tzinfo=LISBON))  # a Sunday
    assert [(due.text, due.state) for due in found] == [
        ("Answer of the glazier", "overdue"),
        ("Buy tar", "overdue"),
        ("Paint the hull", "due"),
        ("Wind the tower clock", "due"),
        ("Oil the lamp", "due"),
        ("Call Odile", "upcoming"),
        ("Light the lantern", "upcoming"),
        ("Weekly status", "upcoming"),
        ("Sort charts", "open"),
        ("Coil the ropes", "done"),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Call Odile", ["upcoming", "due", "overdue", "overdue", "overdue"]),
        ("Paint the hull", ["due", "due", "due", "due", "overdue"]),
        ("Wind the tower clock", ["due", "due", "due", "due", "upcoming"]),
    ],
    ids=["with a time", "with a day alone", "a recurring one"],
)
def test_a_reminder_is_overdue_once_the_time_or_the_day_that_it_names_is_over(text: str, told: list[str]) -> None:
    moments = [(1, 8, 59), (1, 9, 0), (1, 9, 1), (1, 23, 59), (2, 0, 0)]
    assert [states(at(datetime(2026, 3, *moment, tzinfo=LISBON)))[text] for moment in moments] == told


def test_the_day_is_that_of_the_notebook_not_of_the_machine() -> None:
    moment = datetime(2026, 3, 1, 9, tzinfo=UTC)
    text = "## Today\n- [ ] Call Odile [due: 2026-03-01 09:00]\n"
    assert [due.state for due in at(moment, text, ZoneInfo("America/New_York"))] == ["upcoming"]
    assert [due.state for due in at(moment, text, ZoneInfo("Asia/Tokyo"))] == ["overdue"]
    assert [due.state for due in at(moment, text, ZoneInfo("Pacific/Kiritimati"))] == ["overdue"]


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        ("day", "2026-02-28T00:00"),
        ("weekday", "2026-03-02T00:00"),
        ("week", "2026-03-02T00:00"),
        ("Saturday", "2026-02-28T00:00"),
        ("Saturday at 23:00", "2026-02-28T23:00"),
        ("friday at 9:05", "2026-03-06T09:05"),
        ("Tuesday, Thursday and Friday", "2026-03-03T00:00"),
        ("month", "2026-03-01T00:00"),
        ("month on the 31st at 07:00", "2026-02-28T07:00"),
        ("month on the 15th", "2026-03-15T00:00"),
        ("year", "2027-01-01T00:00"),
    ],
)
def test_the_occurrence_of_a_recurrence(every: str, expected: str) -> None:
    [due] = at(datetime(2026, 2, 28, 12, tzinfo=LISBON), f"## Recurring\n- Every {every}: Look\n")
    assert due.when is not None
    assert due.when.isoformat(timespec="minutes")[:16] == expected


def test_an_hour_that_the_clock_skips_is_the_hour_after_it() -> None:
    text = "## Recurring\n- Every day at 02:30: Look\n"
    [before] = at(datetime(2026, 3, 29, 0, 59, tzinfo=UTC), text, BERLIN)
    [later] = at(datetime(2026, 3, 29, 1, 30, tzinfo=UTC), text, BERLIN)
    assert before.when == later.when == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert (before.state, later.state) == ("upcoming", "due")
    assert later.when.isoformat() == "2026-03-29T03:30:00+02:00"


def test_an_hour_that_the_clock_shows_twice_falls_due_once() -> None:
    text = "## Recurring\n- Every day at 02:30: Look\n"
    hours = [datetime(2026, 10, 25, tzinfo=UTC) + timedelta(minutes=30 * n) for n in range(6)]
    found = [at(hour, text, BERLIN)[0] for hour in hours]
    assert [due.state for due in found] == ["upcoming", "due", "due", "due", "due", "due"]
    assert len({due.occurrence for due in found}) == 1


@given(
    st.datetimes(datetime.fromisoformat("2025-01-01"), datetime.fromisoformat("2027-12-31")),
    st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo"]),
)
def test_a_daily_reminder_occurs_once_a_day_whatever_the_clocks_do(local: datetime, name: str) -> None:
    zone = ZoneInfo(name)
    text = f"## Recurring\n- Every day at {local:%H:%M}: Look\n"
    found = set()
    for n in range(4):
        evening = in_zone(datetime.combine(local.date() + timedelta(n), datetime.max.time()), zone)
        [due] = at(evening, text, zone)
        assert due.state == "due"
        assert due.when is not None
        found.add((due.when.date(), due.occurrence))
    assert {day for day, _ in found} == {local.date() + timedelta(n) for n in range(4)}
    assert len(found) == 4


def test_an_occurrence_keeps_its_name_when_its_line_moves_and_no_other_has_it() -> None:
    now = datetime(2026, 3, 1, 10, tzinfo=LISBON)
    before = {due.text: due.occurrence for due in at(now)}
    moved = {due.text: due.occurrence for due in at(now, FILE.replace("## Today\n", "## Today\n\n- [ ] New\n"))}
    assert {**before, "New": moved["New"]} == moved
    assert len(set(moved.values())) == len(moved)
    tomorrow = {due.text: due.occurrence for due in at(now + timedelta(days=1))}
    assert tomorrow["Light the lantern"] != before["Light the lantern"]
    assert tomorrow["Call Odile"] == before["Call Odile"]


def test_every_recurrence_has_a_next_time() -> None:
    for day in range(0, 1500, 17):
        now = datetime.combine(date(2024, 1, 1) + timedelta(day), datetime.min.time(), LISBON)
        for every in ("year", "month on the 31st", "month", "week", "sunday", "weekday"):
            [due] = at(now, f"## Recurring\n- Every {every}: Look\n")
            assert due.when is not None
            assert due.when >= now
