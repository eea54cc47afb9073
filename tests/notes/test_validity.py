"""Each spelling of a date in a rule: when it holds, and that `rules`, `check`, `reminders` and the prompt agree."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from notebook_sync.notebook import Notebook
from notebook_sync.notes.runtime.entries import contents_of
from notebook_sync.notes.runtime.grammar import check_runtime
from notebook_sync.notes.runtime.reminders import read_reminders
from notebook_sync.notes.runtime.rules import PATH, read_rules
from notebook_sync.notes.runtime.standing import standing_of
from notebook_sync.sessions import Session
from prompt.hidden import visible

FRIDAY, SATURDAY, MONDAY = (datetime(2026, 2, day, 19) for day in (20, 21, 23))
ALL, UP_TO_SATURDAY, SATURDAY_ONLY = (FRIDAY, SATURDAY, MONDAY), (FRIDAY, SATURDAY), (SATURDAY,)

# What is written, its beginning and end, when it holds, and what `check` proposes.
GOLDEN = [
    ("[until 2026-02-21]", None, "2026-02-22", UP_TO_SATURDAY, ""),
    ("(until 2026-02-21)", None, "2026-02-22", UP_TO_SATURDAY, ""),
    ("[ until 2026-02-21 ]", None, "2026-02-22", UP_TO_SATURDAY, ""),
    ("[until: 2026-02-21]", None, "2026-02-22", UP_TO_SATURDAY, ""),
    ("[UNTIL 21.02.2026]", None, "2026-02-22", UP_TO_SATURDAY, ""),
    ("[until 21 February 2026]", None, "2026-02-22", UP_TO_SATURDAY, ""),
    ("[until February 21, 2026]", None, "2026-02-22", UP_TO_SATURDAY, ""),
    ("(until Feb 21 2026)", None, "2026-02-22", UP_TO_SATURDAY, ""),
    ("[until 2026-02-21 18:00]", None, "2026-02-21 18:00", (FRIDAY,), ""),
    ("[until 2026-02-21 at 20:00]", None, "2026-02-21 20:00", UP_TO_SATURDAY, ""),
    ("[from 2026-02-21 until 2026-02-22]", "2026-02-21", "2026-02-23", SATURDAY_ONLY, ""),
    ("(from 21.02.2026 to 22.02.2026)", "2026-02-21", "2026-02-23", SATURDAY_ONLY, ""),
    ("[from 2026-02-21 20:00 until 2026-03-01]", "2026-02-21 20:00", "2026-03-02", (MONDAY,), ""),
    ("[from 2026-02-21]", "2026-02-21", None, (SATURDAY, MONDAY), ""),
    ("[until 2026-02-30]", None, None, ALL, "[until 2026-02-28]"),
    ("(until 2026-02-30)", None, None, ALL, "[until 2026-02-28]"),
    ("[until Friday]", None, None, ALL, "[until 2026-02-27]"),
    ("[until 02/21/2026]", None, None, ALL, "[until 2026-02-21]"),
    ("[from 2026-02-22 until 2026-02-21]", None, None, ALL, "[from 2026-02-21 until 2026-02-22]"),
    ("(until further notice)", "prose", None, ALL, ""),
    ("`[until 2026-02-20]`", "prose", None, ALL, ""),
]
PLACES = (
    "- **Sarah** (+15550100): block {}",
    "- **Sarah** (+15550100) {}: block",
    "- **Sarah** (+15550100): {} block",
)
spellings = pytest.mark.parametrize(("written", "begins", "ends", "held", "corrected"), GOLDEN)


def warnings(path: str, text: str, now: datetime = MONDAY) -> list[str]:
    return [one.message for one in check_runtime(path, text, now) if one.severity == "warning"]


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


# Prose before the colon makes it another line.
@pytest.mark.parametrize(
    ("written", "begins", "ends", "held", "corrected", "place"),
    [(*row, place) for row in GOLDEN for place in PLACES if not (row[1] == "prose" and place == PLACES[1])],
)
def test_rules_hold_as_they_are_written(
    written: str, begins: str | None, ends: str | None, held: tuple[datetime, ...], corrected: str, place: str
) -> None:
    contents = contents_of(f"## Permanent Rules\n\n{place.format(written)}\n")
    (rule,), _ = read_rules(contents, MONDAY.date())
    if begins == "prose":
        assert rule.validity is None
    else:
        assert rule.validity is not None
        assert (rule.validity.begins, rule.validity.ends) == (moment(begins), moment(ends))
        assert rule.action == "block"
    for now in ALL:
        assert (standing_of("+15550100", [rule], now).rule is not None) == (now in held)
        assert bool(contents.holding_at(now).entries) == (now in held)


@spellings
def test_check_proposes_the_date_that_was_meant(
    written: str, begins: str | None, ends: str | None, held: tuple[datetime, ...], corrected: str
) -> None:
    text = f"## Permanent Rules\n\n- **Sarah** (+15550100): block {written}\n"
    messages = warnings(PATH, text)
    assert [message.partition("; write: ")[2] for message in messages] == ([corrected] if corrected else [])
    orders = warnings("runtime/standing-orders.md", f"## Orders\n\n- Sail {written}\n")
    assert orders == messages


@spellings
def test_the_prompt_shows_a_rule_while_it_holds(
    written: str, begins: str | None, ends: str | None, held: tuple[datetime, ...], corrected: str
) -> None:
    text = f"## Permanent Rules\n\n- **Sarah** (+15550100): block {written}\n"
    for now in ALL:
        assert ("Sarah" in visible(text, now=now).text) == (now in held)


@spellings
def test_reminders_are_listed_while_they_hold(
    written: str, begins: str | None, ends: str | None, held: tuple[datetime, ...], corrected: str
) -> None:
    contents = contents_of(f"## Today\n\n- [ ] Oil the lamp {written}\n")
    for now in ALL:
        assert bool(read_reminders(contents.holding_at(now), now.date())[0]) == (now in held)


SARAH = """\
## Permanent Rules
- **Sarah** (+15550100): always respond
- **Sarah** [until 2026-02-21]: Ignore her messages
- **Everyone** (*): draft only

## Temporary Instructions
- **Sarah** (+15550100): observe only
"""


@pytest.mark.parametrize("identity", ["Sarah", "sarah", "+15550100", "+1 555 0100"])
@pytest.mark.parametrize(("now", "action"), [(SATURDAY, "Ignore her messages"), (MONDAY, "observe only")])
def test_a_dated_rule_for_a_name_wins_for_the_identity_of_that_name(identity: str, now: datetime, action: str) -> None:
    rules, malformed = read_rules(contents_of(SARAH), now.date())
    assert malformed == []
    found = standing_of(identity, rules, now)
    assert found.rule is not None
    assert found.rule.action == action
    reasons = {other.line: other.reason for other in found.others}
    assert reasons[2].startswith("it is permanent, and line")
    if now == SATURDAY:
        assert reasons[7] == "it has no date, and line 3 has one"
    else:
        assert reasons[3] == "it ended on 2026-02-21"


def test_a_rule_for_a_name_is_for_nobody_else() -> None:
    rules, _ = read_rules(contents_of(SARAH), SATURDAY.date())
    found = standing_of("+15550199", rules, SATURDAY)
    assert found.rule is not None
    assert found.rule.action == "draft only"


def test_a_rule_without_an_identity_needs_a_date() -> None:
    rules, (malformed,) = read_rules(contents_of("## Permanent Rules\n- **Sarah**: block\n"), SATURDAY.date())
    assert rules == []
    assert malformed.reason == "is not a rule"


def test_a_rule_that_has_not_begun_says_when_it_does() -> None:
    text = "## Permanent Rules\n- **Sarah** (+15550100): block [from 1 March 2026 until 2 March 2026]\n"
    rules, _ = read_rules(contents_of(text), SATURDAY.date())
    found = standing_of("+15550100", rules, SATURDAY)
    assert found.reason.endswith("; the rule in line 2 begins on 2026-03-01")


@pytest.mark.parametrize("days", range(40))
def test_a_weekday_means_the_next_one(days: int) -> None:
    today = datetime(2026, 2, 1) + timedelta(days)
    (message,) = warnings(PATH, "## Permanent Rules\n- **S** (a@b): c [until Friday]\n", today)
    meant = date.fromisoformat(message[-11:-1])
    assert meant.weekday() == 4
    assert 1 <= (meant - today.date()).days <= 7


def test_no_session_is_reminded_of_what_has_expired_or_not_begun(tmp_path: Path) -> None:
    (tmp_path / "runtime").mkdir()
    text = (
        "## Today\n- [ ] Tar [until 2001-02-03]\n- [ ] Ropes [from 2999-01-01]\n- Oil [until 2001-02-03]\n- [ ] Call\n"
    )
    (tmp_path / "runtime/reminders.md").write_text(text)
    with Notebook.open(tmp_path) as notebook:
        for session in (Session.owner(), Session.task("scribe")):
            assert [one.text for one in notebook.prompts.reminders(session).results] == ["Call"]
            assert notebook.prompts.unread_reminders(session) == []
