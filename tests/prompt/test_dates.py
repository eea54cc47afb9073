"""Dates as people write them: which are read, when what carries them holds, and what is suggested for the others."""

from datetime import date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompt.dates import Validity, date_in, read_moment, suggested_moment, task_dates, validity_of

TODAY = date(2026, 2, 26)  # a Thursday
DAYS = st.dates(date(1000, 1, 1), date(9998, 12, 31))
SPELLINGS = (
    "{:%Y-%m-%d}",
    "{:%d.%m.%Y}",
    "{0.day} {0:%B} {0.year}",
    "{0:%B} {0.day}, {0.year}",
    "{0:%b} {0.day} {0.year}",
)
BRACKETS = (
    "[until {}]",
    "(until {})",
    "[ until {} ]",
    "[until: {}]",
    "[Until {}]",
    "[until\n{}]",
    "[from 1 May 0999 until {}]",
)


def valid(text: str) -> Validity:
    return validity_of(text) or pytest.fail(f"no validity in {text!r}")


@given(DAYS, st.sampled_from(SPELLINGS), st.sampled_from(BRACKETS))
def test_a_day_in_any_spelling_includes_its_last_minute(day: date, spelling: str, bracket: str) -> None:
    text = f"block {bracket.format(spelling.format(day))}: now"
    found = valid(text)
    assert (found.problem, text[found.start : found.end]) == ("", text[6:-5])
    midnight = datetime.combine(day + timedelta(1), datetime.min.time())
    assert (found.holds_at(midnight - timedelta(minutes=1)), found.is_past(midnight)) == (True, True)


@given(DAYS, st.times(), st.sampled_from(SPELLINGS), st.sampled_from((" ", " at ", "T")))
def test_a_time_is_itself_the_end(day: date, clock: time, spelling: str, between: str) -> None:
    moment = datetime.combine(day, clock).replace(second=0, microsecond=0)
    found = valid(f"[until {spelling.format(day)}{between}{moment:%H:%M}]")
    assert (found.ends, found.holds_at(moment)) == (moment, False)


@pytest.mark.parametrize("separator", [" until ", " to ", " – ", " until: ", " - "])
def test_an_entry_holds_from_its_first_day_through_its_last(separator: str) -> None:
    found = valid(f"[from 2026-03-01{separator}3 March 2026]")
    days = [datetime(2026, 2, 28, 23, 59), *(datetime(2026, 2, 27, 12) + timedelta(day) for day in range(6))]
    assert [found.holds_at(day) for day in days] == [False, False, False, True, True, True, False]


@pytest.mark.parametrize(
    ("bracket", "begins", "ends"),
    [
        ("[from 2026-03-01]", datetime(2026, 3, 1), None),
        ("[until 9999-12-31]", None, datetime(9999, 12, 31, 23, 59, 59, 999_999)),
    ],
)
def test_a_beginning_alone_has_no_end_and_the_last_day_has_one(
    bracket: str, begins: datetime | None, ends: datetime | None
) -> None:
    found = valid(bracket)
    assert (found.begins, found.ends) == (begins, ends)


@pytest.mark.parametrize(
    ("bracket", "corrected"),
    [
        ("[until 2026-02-30]", "[until 2026-02-28]"),
        ("(until 2026-02-30)", "[until 2026-02-28]"),
        ("[until 30 Feb 2026 18:00]", "[until 2026-02-28 18:00]"),
        ("[until 2026-02-26 24:00]", "[until 2026-02-26]"),
        ("[until 02/28/2026]", "[until 2026-02-28]"),
        ("[until 28/02/2026]", "[until 2026-02-28]"),
        ("[until 31.04.26]", "[until 2026-04-30]"),
        ("[until 2027/01/15]", "[until 2027-01-15]"),
        ("[until 15 Jan 27]", "[until 2027-01-15]"),
        ("[until the sunrise]", "[until 2026-03-12]"),
        ("[until]", "[until 2026-03-12]"),
        ("[from 2026-02-30 until 2026-03-02]", "[from 2026-02-28 until 2026-03-02]"),
        ("[from 2026-03-02 until 2026-03-01]", "[from 2026-03-01 until 2026-03-02]"),
    ],
)
def test_what_cannot_be_read_never_ends_and_comes_with_its_correction(bracket: str, corrected: str) -> None:
    found = valid(f"block {bracket}")
    assert found.problem.startswith(bracket)
    assert (found.begins, found.ends, found.corrected(TODAY)) == (None, None, corrected)
    assert valid(found.corrected(TODAY)).problem == ""


@pytest.mark.parametrize(
    "text",
    ["(until further notice)", "[from Anna]", "(from the harbour)", "(until 5 pm)", "until 2026-01-01", "[untilled 1]",
     "[until 2026-01-01)", "[due 2026-01-01]", f"[until {'x' * 100}]"],
)  # fmt: skip
def test_prose_has_no_validity(text: str) -> None:
    assert validity_of(text) is None


def test_the_last_bracket_that_can_be_read_counts() -> None:
    assert valid("[until 2026-01-01] [until 2026-01-02] [until we meet]").until == "2026-01-02"


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted).map(tuple), max_size=5))
def test_a_bracket_in_a_skipped_span_is_text(spans: list[tuple[int, int]]) -> None:
    text = "block [until 2026-01-01] and wait"
    found = validity_of(text, spans)
    touched = any(start < 24 and end > 6 for start, end in spans)
    assert touched or (found is not None and (found.start, found.end) == (6, 24))
    assert validity_of(text, [*spans, (6, 24)]) is None


@pytest.mark.parametrize(
    ("line", "day"),
    [
        ("## 2026-03-01", "2026-03-01"),
        ("- 1 March 2026: sailed", "2026-03-01"),
        ("- **March 1, 2026**: sailed", "2026-03-01"),
        ("- 01.03.2026 sailed", "2026-03-01"),
        ("- 2026-03-01T09:00 sailed, 2026-03-02 back", "2026-03-01"),
        ("- 2026-02-30 and 2026-03-01", "2026-03-01"),
        ("- (from 2026-03-01) sailed", "2026-03-01"),
        (
            "- ropes [due: 2026-03-01] [until 1 March 2026] (until 2026-03-01) [from 2026-03-01] [expected 2026-03-01]",
            "",
        ),
        ("- ropes 📅 2026-03-01 ⏳2026-03-02 (due:: 2026-03-03)", ""),
        ("- version 10.02.2026.1, 12026-03-01, 1 March, March 2026", ""),
    ],
)
def test_the_date_that_a_line_carries(line: str, day: str) -> None:
    assert date_in(line) == (date.fromisoformat(day) if day else None)


@given(DAYS, st.sampled_from(SPELLINGS))
def test_a_moment_reads_as_it_was_written(day: date, spelling: str) -> None:
    assert read_moment(spelling.format(day)) == datetime.combine(day, datetime.min.time())
    assert date_in(f"- {spelling.format(day)}: sailed") == day
    assert suggested_moment(spelling.format(day), TODAY) == f"{day}"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-20 6pm", datetime(2026, 11, 20, 18)),
        ("2026-11-20 6:30 p.m.", datetime(2026, 11, 20, 18, 30)),
        ("20 Nov 2026 at 12am", datetime(2026, 11, 20)),
        ("2026-11-20T09:00:00", datetime(2026, 11, 20, 9)),
        ("2026\u201111\u201120", datetime(2026, 11, 20)),
        ("Feb 28", datetime(2026, 2, 28)),
        ("28 December 9:00", datetime(2025, 12, 28, 9)),
        ("2026-11-20 24:00", None),
        ("2026-11-20 13pm", None),
        ("2026-11-20 9", None),
        ("30 February", None),
    ],
)
def test_a_time_is_read_in_both_clocks_and_a_year_is_the_nearest(text: str, moment: datetime | None) -> None:
    assert read_moment(text, TODAY) == moment


def test_the_dates_of_a_task_are_read_as_plugins_write_them() -> None:
    task = "Pay 📅 2026-11-20 ⏳\ufe0f 2026-11-19 🛫 2026-11-18 [completion:: 2026-11-21] (Expected: Feb 28) `[due]`"
    assert task_dates(task) == {
        "due": "2026-11-20",
        "scheduled": "2026-11-19",
        "start": "2026-11-18",
        "completion": "2026-11-21",
        "expected": "Feb 28",
    }
    assert task_dates("[due: 2026-11-20, 6pm] [due:: 1 Dec]") == {"due": "1 Dec"}


@given(st.text(max_size=100) | st.text("[](){}untilfrom 0123456789.-/:,", max_size=100), DAYS)
def test_any_text_can_be_asked(text: str, today: date) -> None:
    date_in(text)
    task_dates(text)
    read_moment(text, today)
    assert read_moment(suggested_moment(text, today)) is not None
    found = validity_of(text)
    assert found is None or (validity_of(found.corrected(today)) or found).problem == ""


@pytest.mark.parametrize(
    "part",
    ["[until ", "(until ", "[until (until ", "(until until ", "(from [from ", "[from a until ", "[until 2026-02-30",
     "1 March ", "March 1, 20", "2026-02-3", "`[", " ", "9", "📅", "[due: ", "(due::"],
)  # fmt: skip
@pytest.mark.usefixtures("cpu_limit")
def test_hostile_text_takes_linear_time(part: str) -> None:
    text = part * (600_000 // len(part))
    found = validity_of(text)
    assert found is None or found.ends is None
    assert (date_in(text), read_moment(text, TODAY), task_dates(text)) == (None, None, {})
    assert suggested_moment(text, TODAY)
