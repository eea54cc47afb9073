"""Reminders as people and other programs write them, and when they fall due, also where clocks change."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync import Notebook, Session
from notebook_sync.services.grammar import Malformed
from notebook_sync.services.reminders import (
    Due,
    announce_due,
    in_zone,
    read_reminders,
    seconds_until_next,
)
from tests.services.conftest import STRANGER, write_files

LISBON, BERLIN = ZoneInfo("Europe/Lisbon"), ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 2, 26, 12, tzinfo=LISBON)
SECTION = {"task": "Today", "recurring": "Recurring", "waiting": "Waiting For"}
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


def read(kind: str, text: str) -> Due | Malformed:
    found, malformed = read_reminders(f"## {SECTION[kind]}\n- {text}\n", NOW)
    assert len(found) + len(malformed) == 1
    return found[0] if found else malformed[0]


def at(now: datetime, text: str = FILE, zone: ZoneInfo = LISBON) -> list[Due]:
    return read_reminders(text, now.astimezone(zone))[0]


@pytest.mark.parametrize(
    ("kind", "text", "said", "done", "when", "every"),
    [
        ("task", "[ ] Call [due: 2026-03-01 09:00]", "Call", False, "2026-03-01 09:00", ""),
        ("task", "[ ] Pay 📅 2026-11-20", "Pay", False, "2026-11-20", ""),
        ("task", "[ ] Pay ⏳ 2026-11-19", "Pay", False, "2026-11-19", ""),
        ("task", "[ ] Invoice (due: 2026-11-20)", "Invoice", False, "2026-11-20", ""),
        ("task", "[ ] Invoice (due:: 2026-11-20)", "Invoice", False, "2026-11-20", ""),
        ("task", "[ ] Call [due: 2026-11-20 6pm]", "Call", False, "2026-11-20 18:00", ""),
        ("task", "[ ] Oil [due: 2026\u201111\u201120]", "Oil", False, "2026-11-20", ""),
        ("task", "[x] Call", "Call", True, None, ""),
        ("task", "[-] Cancelled", "Cancelled", True, None, ""),
        ("task", "[>] Forwarded", "Forwarded", True, None, ""),
        ("task", "[/] Half done", "Half done", False, None, ""),
        ("recurring", "Every Monday: Weekly status", "Weekly status", False, None, "Monday"),
        ("recurring", "every Monday, Tuesday and Friday at 9:30: Stand up", "Stand up", False, None,
         "Monday, Tuesday and Friday at 9:30"),
        ("recurring", "Every month on the 1st at 6pm: Pay", "Pay", False, None, "month on the 1st at 6pm"),
        ("recurring", "Daily at 09:00: Brush", "Brush", False, None, "day at 09:00"),
        ("waiting", "Parcel [expected: Feb 28]", "Parcel", False, "2026-02-28", ""),
        ("waiting", "Parcel (expected: 2026-11-20)", "Parcel", False, "2026-11-20", ""),
        ("waiting", "[ ] Parcel", "Parcel", False, None, ""),
    ],
)  # fmt: skip
def test_what_is_a_reminder(kind: str, text: str, said: str, done: bool, when: str | None, every: str) -> None:
    found = read(kind, text)
    assert isinstance(found, Due)
    assert (found.kind, found.text, found.state == "done", found.every) == (kind, said, done, every)
    assert every or (found.when or "").replace("T", " ")[:16] == (when or "")


@pytest.mark.parametrize(
    ("kind", "text", "write"),
    [
        ("task", "Call", "- [ ] Task [due: 2026-03-12 09:00]"),
        ("task", "[] Call", "- [ ] Task"),
        ("task", "[ ] Call [due: sometime]", "[due: 2026-03-12]"),
        ("task", "[ ] Call [due: 2026-02-30]", "[due: 2026-02-28]"),
        ("task", "[ ] Call [due: 9999-12-31]", "[due: 9999-12-31]"),
        ("task", "[ ] [due: 2026-03-01]", "- [ ] Task"),
        ("recurring", "Every other Thursday: Bins", "- Every Monday at 09:00"),
        ("recurring", "Every Monday at 25:00: Sleep", "- Every Monday at 09:00"),
        ("waiting", "Parcel [expected: soonish]", "[expected: 2026-03-12]"),
    ],
)
def test_what_cannot_be_read_comes_with_a_correction(kind: str, text: str, write: str) -> None:
    found = read(kind, text)
    assert isinstance(found, Malformed)
    assert f"; write: {write}" in found.message


def test_headings_of_any_level_and_nested_tasks_count_and_attempts_elsewhere_are_reported() -> None:
    text = (
        "# Reminders\n# 📅 Today\n- [ ] A\n  - [ ] B [due: 2026-03-01]\n  - a remark\n### Morning\n- [ ] C\n"
        "# Later\n- [ ] D\n- prose\n- E (due: 2026-03-01)\n"
    )
    found, malformed = read_reminders(text, NOW)
    assert sorted(each.text for each in found) == ["A", "B", "C"]
    assert [each.line for each in malformed] == [9, 11]
    assert "is under `Later`" in malformed[0].message


def test_what_does_not_hold_is_left_out() -> None:
    text = "## Today\n- [ ] A [until 2026-02-25]\n  - [ ] A1\n- [ ] B [from 2026-02-27]\n- [ ] C [until 2026-02-26]\n"
    assert [each.text for each in read_reminders(text, NOW)[0]] == ["C [until 2026-02-26]"]


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
    assert found[2].when == "2026-03-01"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Call Odile", ["upcoming", "due", "overdue", "overdue", "overdue"]),
        ("Paint the hull", ["due", "due", "due", "due", "overdue"]),
        ("Wind the tower clock", ["due", "due", "due", "due", "upcoming"]),
    ],
    ids=["with a time", "with a day alone", "a recurring one"],
)
def test_a_reminder_is_overdue_once_its_time_or_its_day_is_over(text: str, expected: list[str]) -> None:
    moments = [(1, 8, 59), (1, 9, 0), (1, 9, 1), (1, 23, 59), (2, 0, 0)]
    states = [{each.text: each.state for each in at(datetime(2026, 3, *one, tzinfo=LISBON))}[text] for one in moments]
    assert states == expected


def test_the_day_is_that_of_the_notebook() -> None:
    text = "## Today\n- [ ] Call Odile [due: 2026-03-01 09:00]\n"
    zones = ("America/New_York", "Asia/Tokyo", "Pacific/Kiritimati")
    found = [at(datetime(2026, 3, 1, 9, tzinfo=UTC), text, ZoneInfo(zone))[0].state for zone in zones]
    assert found == ["upcoming", "overdue", "overdue"]


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        ("day", "2026-02-28T00:00"),
        ("weekday", "2026-03-02T00:00"),
        ("week", "2026-03-02T00:00"),
        ("Saturday at 23:00", "2026-02-28T23:00"),
        ("Tuesday, Thursday and Friday", "2026-03-03T00:00"),
        ("month", "2026-03-01T00:00"),
        ("month on the 31st at 07:00", "2026-02-28T07:00"),
        ("year", "2027-01-01T00:00"),
    ],
)
def test_the_occurrence_of_a_recurrence(every: str, expected: str) -> None:
    [due] = at(datetime(2026, 2, 28, 12, tzinfo=LISBON), f"## Recurring\n- Every {every}: Look\n")
    assert f"{due.when}"[:16] == expected


def test_an_hour_that_the_clock_skips_is_the_next_and_one_shown_twice_is_the_first() -> None:
    text = "## Recurring\n- Every day at 02:30: Look\n"
    skipped = [at(datetime(2026, 3, 29, hour, 59, tzinfo=UTC), text, BERLIN)[0] for hour in (0, 1)]
    assert {due.when for due in skipped} == {"2026-03-29T03:30:00+02:00"}
    assert [due.state for due in skipped] == ["upcoming", "due"]
    twice = [at(datetime(2026, 10, 25, tzinfo=UTC) + timedelta(minutes=30 * n), text, BERLIN)[0] for n in range(6)]
    assert [due.state for due in twice] == ["upcoming", "due", "due", "due", "due", "due"]
    assert len({due.occurrence for due in twice}) == 1


@given(
    st.datetimes(datetime.fromisoformat("2025-01-01"), datetime.fromisoformat("2027-12-31")),
    st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo"]),
)
def test_a_daily_reminder_occurs_once_a_day_whatever_the_clocks_do(local: datetime, name: str) -> None:
    zone, found = ZoneInfo(name), set()
    for n in range(4):
        evening = in_zone(datetime.combine(local.date() + timedelta(n), datetime.max.time()), zone)
        [due] = at(evening, f"## Recurring\n- Every day at {local:%H:%M}: Look\n", zone)
        assert due.state == "due"
        found.add((f"{due.when}"[:10], due.occurrence))
    assert {day for day, _ in found} == {f"{local.date() + timedelta(n)}" for n in range(4)}


@given(st.datetimes(datetime(2026, 3, 27), datetime(2026, 4, 1)), st.floats(0, 0.999))
def test_nothing_falls_due_before_the_next_moment(moment: datetime, share: float) -> None:
    now = moment.replace(tzinfo=UTC)
    wait = timedelta(seconds=seconds_until_next(now.astimezone(LISBON), at(now)))
    assert timedelta() < wait <= timedelta(days=1, hours=1)
    due = [{one.occurrence for one in at(when) if one.is_due} for when in (now, now + wait * share)]
    assert due[1] <= due[0]


def test_an_occurrence_keeps_its_name_when_its_line_moves() -> None:
    now = datetime(2026, 3, 1, 10, tzinfo=LISBON)
    before = {due.text: due.occurrence for due in at(now)}
    moved = {due.text: due.occurrence for due in at(now, FILE.replace("## Today\n", "## Today\n\n- [ ] New\n"))}
    assert {**before, "New": moved["New"]} == moved
    assert len(set(moved.values())) == len(moved)


@given(st.text(alphabet="-*+ []()#<!>:|📅\n\r\t`ax1d:ue\u2028é", max_size=80))
def test_any_text_has_reminders(text: str) -> None:
    found, malformed = read_reminders(f"{text}\n## Today\n- {text}", NOW)
    assert all(each.line > 0 for each in (*found, *malformed))


def test_each_is_announced_once_over_all_processes(notebook: Notebook, root: Path) -> None:
    write_files(root, {"runtime/reminders.md": "## Today\n- [ ] Pay [due: 2026-01-01]\n- [ ] Open\n"})
    due, seconds = announce_due(notebook.core)
    with Notebook.open(root) as other:
        again, _ = announce_due(other.core)
    assert ([one.text for one in due], again, 0 < seconds <= 60) == (["Pay"], [], True)
    events = [event for event in notebook.admin.events().results if event["kind"] == "reminder_due"]
    assert [event["occurrence"] for event in events] == [due[0].occurrence]
    assert "Pay" not in str(events)


def test_an_answer_without_reminders_says_that_a_line_cannot_be_read(notebook: Notebook, root: Path) -> None:
    write_files(root, {"runtime/reminders.md": "## Recurring\n- Every other Thursday: Bins out\n"})
    found = notebook.prompts.reminders(STRANGER, due=True)
    assert (found.results, found.unread) == ([], [2])
    assert found.degraded == "line 2 of runtime/reminders.md cannot be read, and may be due"
    write_files(root, {"runtime/reminders.md": ""})
    assert notebook.prompts.reminders(Session.task()).unread == [2]


def test_of_many_lines_that_cannot_be_read_the_first_are_named(notebook: Notebook) -> None:
    write_files(notebook.root, {"runtime/reminders.md": "## Today\n" + "- Call\n" * 5_000})
    found = notebook.prompts.reminders()
    assert (len(found.unread), len(found.problems)) == (5_000, 20)
    assert found.degraded == (
        f"line {', '.join(map(str, range(2, 22)))}, … of runtime/reminders.md cannot be read, and may be due"
    )
