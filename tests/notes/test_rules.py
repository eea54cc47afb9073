"""Reading runtime/external-communications.md and runtime/reminders.md."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.files.note import RUNTIME_FILES
from notebook_sync.initialize import template
from notebook_sync.notes.runtime.entries import Entry, Malformed, contents_of
from notebook_sync.notes.runtime.reminders import Reminder, read_reminder, read_reminders
from notebook_sync.notes.runtime.rules import Rule, read_rule, read_rules
from prompt.dates import read_moment
from prompt.hidden import visible

TODAY = date(2026, 2, 26)


def rule(text: str) -> Rule | Malformed | None:
    return read_rule(Entry(1, ("Permanent Rules", ""), text), TODAY)


def test_rules_have_their_line_section_and_channel() -> None:
    rules, malformed = read_rules(
        contents_of(
            "---\ntitle: Rules\n---\n<!--\n- **No** (one): sees this\n-->\n"
            "## Permanent Rules\n\n- **Odile** (odile@ferry.example): always respond,\n  within the hour\n"
            "## temporary instructions\n* **Piotr** (+00 555 0142): draft only [until 2026-02-25] <!-- holiday -->\n"
            "## Channel-Specific\n### deck-crew\n- **Everyone** (deck-crew): observe only\n  - and be quiet\n"
            "## Notes\n- no rule\n"
        ),
        TODAY,
    )
    assert malformed == []
    read = [(one.line, one.section, one.channel, one.name, one.identity, one.action, one.until) for one in rules]
    assert read == [
        (9, "Permanent Rules", "", "Odile", "odile@ferry.example", "always respond, within the hour", ""),
        (12, "temporary instructions", "", "Piotr", "+00 555 0142", "draft only", "2026-02-25"),
        (15, "Channel-Specific", "deck-crew", "Everyone", "deck-crew", "observe only", ""),
    ]


def test_code_quotes_and_comments_hold_no_rules() -> None:
    text = (
        "## Permanent Rules\n\n```\n- **A** (a): b\n```\n\n> - **A** (a): b\n\n<!-- - **A** (a): b -->\n\n"
        "1. > **A** (a): b\n"
    )
    rules, malformed = read_rules(contents_of(text), TODAY)
    assert rules == []
    assert [one.line for one in malformed] == [11]


@pytest.mark.parametrize(
    "text",
    [
        "Odile: always respond",
        "**Odile**: respond",
        "**Odile** (a@b)",
        "**Odile** (): respond",
        "",
        "**O** (a): [until 2026-01-01]",
    ],
)
def test_what_is_no_rule(text: str) -> None:
    assert isinstance(rule(text), Malformed)


@pytest.mark.parametrize(
    ("text", "write"),
    [
        ("- **O** (a@b): respond [until Friday]", "[until 2026-02-27]"),
        ("- **O** (a@b): respond [until thurs]", "[until 2026-03-05]"),
        ("- **O** (a@b): respond [until tomorrow]", "[until 2026-02-27]"),
        ("- **O** (a@b): respond [until 2026-02-30]", "[until 2026-02-28]"),
        ("- **O** (a@b): respond [until the sunrise]", "[until 2026-03-12]"),
    ],
)
def test_a_date_that_cannot_be_read_is_reported_with_its_correction_and_the_rule_never_ends(
    text: str, write: str
) -> None:
    ((read,), (malformed,)) = read_rules(contents_of(f"## Permanent Rules\n{text}\n"), TODAY)
    assert (read.action, read.until) == ("respond", "")
    assert malformed.message.endswith(f", so it is ignored; write: {write}")


def test_the_date_that_a_name_means_is_proposed_for_a_reminder() -> None:
    malformed = reminder("task", "[ ] Ropes [due: Monday at 9]")
    assert isinstance(malformed, Malformed)
    assert malformed.message == "[due: Monday at 9] is not a date; write: [due: 2026-03-02]"


@given(st.dates(date(1900, 1, 1), date(2200, 1, 1)), st.dates(date(1900, 1, 1), date(2200, 1, 1)))
def test_a_rule_holds_until_the_prompt_drops_it(until: date, today: date) -> None:
    line = f"- **Odile** (a@b): respond [until {until}]\n"
    read = rule(line[2:-1])
    assert isinstance(read, Rule)
    dropped = visible(f"## Permanent Rules\n\n{line}", now=datetime.combine(today, time())).expired
    assert read.until == f"{until}"
    assert (until < today) == bool(dropped)


def test_lines_that_only_look_like_entries_are_told_apart() -> None:
    text = (
        "## Permanent Rules\n-**A** (a): b\n**B** (b): c\n\n- **C** (c): d\n-**D** (d): e\n\n"
        "Some text.\n\n    - **E** (e): f\n"
    )
    entries = contents_of(text).entries
    assert [(entry.line, entry.in_list) for entry in entries] == [
        *((2, False), (3, False), (5, True), (6, False), (10, False)),
    ]


def test_an_unclosed_comment_is_found_and_hides_nothing_else() -> None:
    assert contents_of("## A\n- x\n\n<!-- oh\n- y\n").unclosed == 4
    assert contents_of("<!-- a -->\n- x\n").unclosed == 0


@given(st.text(alphabet="-*+ []()#<!>:\n\r\t`aZ1\u2028é", max_size=80))
def test_any_text_has_contents(text: str) -> None:
    lines = text.count("\n") + text.count("\r") + 1
    contents = contents_of(text)
    assert all(1 <= entry.line <= lines for entry in contents.entries)
    assert all(1 <= entry.line <= lines for entry in contents.hidden)
    read_rules(contents, TODAY)
    read_reminders(contents, TODAY)


SECTION = {"task": "Today", "recurring": "Recurring", "waiting": "Waiting For"}


def reminder(kind: str, text: str) -> Reminder | Malformed:
    read, malformed = read_reminders(contents_of(f"## {SECTION[kind]}\n- {text}\n"), TODAY)
    assert len(read) + len(malformed) == 1
    return read[0] if read else malformed[0]


@pytest.mark.parametrize(
    ("kind", "text", "told", "done", "when", "every"),
    [
        ("task", "[ ] Call [due: 2026-03-01 09:00]", "Call", False, "2026-03-01 09:00", ""),
        ("task", "[x] Call", "Call", True, None, ""),
        ("recurring", "Every Monday: Weekly status", "Weekly status", False, None, "Monday"),
        ("recurring", "every Monday, Tuesday and Friday at 9:30: Stand up", "Stand up", False, None,
         "Monday, Tuesday and Friday at 9:30"),
        ("recurring", "Every month on the 1st: Pay", "Pay", False, None, "month on the 1st"),
        ("recurring", "Every Weekday: Breathe", "Breathe", False, None, "Weekday"),
        ("waiting", "Parcel [expected: Feb 28]", "Parcel", False, "2026-02-28", ""),
        ("waiting", "[ ] Parcel", "Parcel", False, None, ""),
    ],
)  # fmt: skip
def test_reminders(kind: str, text: str, told: str, done: bool, when: str | None, every: str) -> None:
    read = reminder(kind, text)
    assert isinstance(read, Reminder)
    assert (read.kind, read.text, read.done, read.every) == (kind, told, done, every)
    assert read.when == (datetime.fromisoformat(when) if when else None)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("task", "Call"),
        ("task", "[] Call"),
        ("task", "[ ] Call [due: sometime]"),
        ("task", "[ ] Call [due: 2026-02-30]"),
        ("task", "[ ] [due: 2026-03-01]"),
        ("recurring", "Monday: status"),
        ("recurring", "Every blue moon: Dance"),
        ("recurring", "Every Monday at 25:00: Sleep"),
        ("waiting", "Parcel [expected: soonish]"),
    ],
)
def test_what_is_no_reminder(kind: str, text: str) -> None:
    read = reminder(kind, text)
    assert isinstance(read, Malformed)
    assert "; write: " in read.message


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-03-01", "2026-03-01"),
        ("2026-03-01T09:05", "2026-03-01 09:05"),
        ("28 February 2027", "2027-02-28"),
        ("Feb 28, 2027 at 9:00", "2027-02-28 09:00"),
        ("Dec 31", "2025-12-31"),
        ("Aug 1", "2026-08-01"),
        ("2026-03-01 24:00", None),
        ("", None),
    ],
)
def test_days_as_people_write_them(text: str, when: str | None) -> None:
    assert read_moment(text, TODAY) == (datetime.fromisoformat(when) if when else None)


def test_a_leap_day_without_a_year_is_one_that_there_is() -> None:
    assert read_moment("Feb 29", date(2024, 3, 1)) == datetime.fromisoformat("2024-02-29")
    assert read_moment("Feb 29", date(2026, 3, 1)) is None


@pytest.mark.parametrize("name", RUNTIME_FILES)
def test_the_templates_say_nothing_that_is_wrong(name: str) -> None:
    contents = contents_of(template(name))
    assert not contents.entries
    assert not contents.hidden
    assert contents.unclosed == 0


def test_the_examples_in_the_templates_follow_their_grammar() -> None:
    """What a grammar comment shows as an example must be read as what it is an example of."""
    rules = [line.strip()[2:] for line in template("external-communications.md").splitlines() if "** (" in line]
    concrete = [line for line in rules if "YYYY" not in line]
    assert concrete
    assert all(isinstance(rule(line), Rule) for line in concrete)
    lines = [line.strip()[2:] for line in template("reminders.md").splitlines() if line.startswith("    - ")]
    entries = [
        Entry(1, ("", ""), line)
        for line in lines
        if "YYYY" not in line and "Mon DD" not in line and ": Task" not in line
    ]
    assert entries
    for entry in entries:
        kind = "task" if "[due" in entry.text else "waiting" if "[expected" in entry.text else "recurring"
        assert isinstance(read_reminder(replace(entry, headings=(SECTION[kind], "")), TODAY), Reminder)


@pytest.mark.parametrize("opening", ["[due: ", "[expected ", "[until: "])
def test_a_line_of_nothing_but_openings_is_read_at_once(opening: str) -> None:
    text = opening * 20_000  # half an hour, if each were searched to the end of the line
    reminder = read_reminder(Entry(1, ("Today", ""), f"[ ] Oil the lamp {text}"), TODAY)
    assert isinstance(reminder, Reminder)
    assert reminder.when is None
    read = rule(f"**Odile** (odile@ferry.example): respond {text}")
    assert isinstance(read, Rule)
    assert read.until == ""


def test_comments_that_are_never_closed_stay_in_their_entry() -> None:
    text = "<!-- " * 3000
    (entry,) = contents_of(f"- one <!-- gone --> two {text}\n").entries
    assert entry.text == f"one two {text}".strip()


@pytest.mark.parametrize(("text", "told"), [("[dueling]", "[dueling]"), ("[due 2026-03-01]", "")])
def test_only_a_whole_word_tells_a_day(text: str, told: str) -> None:
    reminder = read_reminder(Entry(1, ("Today", ""), f"[ ] Practise {text}"), TODAY)
    assert isinstance(reminder, Reminder)
    assert reminder.text == f"Practise {told}".strip()
