"""Which rule holds for somebody: the specific, the temporary, the channel's, the last; never one past its day."""

from __future__ import annotations

from datetime import date, datetime, time

import pytest

from notebook_sync.errors import UsageError
from notebook_sync.notes.runtime.answers import Standing
from notebook_sync.notes.runtime.entries import contents_of
from notebook_sync.notes.runtime.rules import PATH, read_rules
from notebook_sync.notes.runtime.standing import in_force, plain_identity, standing_of
from prompt.hidden import visible

TODAY = date(2026, 3, 6)
RULES = """\
## Permanent Rules
- **Odile** (odile@ferry.example): always respond
- **Harbour office** (+00 555 0142): draft only
- **Everyone** (*): observe only
- **Ines** (ines@ferry.example, +49 30 555 01): respond by noon
- **Odile** (odile@ferry.example): block [until 2026-03-05]

## Temporary Instructions
- **Harbour office** (+00 555 0142): never respond [until 2026-03-06]

## Channel-Specific
### deck-crew
- **Everyone** (deck-crew): draft only
- **Odile** (odile@ferry.example): respond in two lines
### bridge
- **Odile** (odile@ferry.example): observe only
"""


def standing(identity: str, channel: str = "", text: str = RULES, today: date = TODAY) -> Standing:
    rules, malformed = read_rules(contents_of(text), today)
    now = datetime.combine(today, time(12))
    return standing_of(identity, rules, now, channel=channel, malformed=malformed)


def action(identity: str, channel: str = "", text: str = RULES, today: date = TODAY) -> str:
    rule = standing(identity, channel, text, today).rule
    return rule.action if rule else ""


@pytest.mark.parametrize(
    ("identity", "channel", "expected"),
    [
        ("odile@ferry.example", "", "always respond"),
        ("Odile@Ferry.Example", "", "always respond"),
        ("mailto:ODILE@ferry.example", "", "always respond"),
        ("<odile@ferry.example>", "", "always respond"),
        ("odile@ferry.example.org", "", "observe only"),
        ("odile@ferry", "", "observe only"),
        ("+00 555 0142", "", "never respond"),
        ("+00-555-0142", "", "never respond"),
        ("tel:+005550142", "", "never respond"),
        ("00 00 555 0142", "", "never respond"),
        ("555 0142", "", "observe only"),
        ("+49305550 1", "", "respond by noon"),
        ("ines@ferry.example", "", "respond by noon"),
        ("piotr@ferry.example", "", "observe only"),
        ("odile@ferry.example", "deck-crew", "respond in two lines"),
        ("odile@ferry.example", "Deck-Crew", "respond in two lines"),
        ("odile@ferry.example", "bridge", "observe only"),
        ("odile@ferry.example", "galley", "always respond"),
        ("piotr@ferry.example", "deck-crew", "draft only"),
        ("piotr@ferry.example", "bridge", "observe only"),
        ("+00 555 0142", "deck-crew", "never respond"),
    ],
)
def test_the_rule_that_holds(identity: str, channel: str, expected: str) -> None:
    assert action(identity, channel) == expected


def test_a_rule_holds_on_its_last_day_and_never_after_it() -> None:
    assert action("+00 555 0142", today=date(2026, 3, 6)) == "never respond"
    assert action("+00 555 0142", today=date(2026, 3, 7)) == "draft only"
    assert action("odile@ferry.example", today=date(2026, 3, 5)) == "block"


def test_of_two_alike_the_later_line_holds() -> None:
    text = "## Temporary Instructions\n- **O** (o@x): block\n- **O** (o@x): draft only\n"
    assert action("o@x", text=text) == "draft only"
    (other,) = standing("o@x", text=text).others
    assert (other.action, other.reason) == ("block", "it is above line 3")


def test_of_each_rule_that_is_not_the_one_it_says_why() -> None:
    def others(identity: str, channel: str = "") -> list[tuple[int, str]]:
        return [(other.line, other.reason) for other in standing(identity, channel).others]

    assert others("odile@ferry.example", "deck-crew") == [
        (2, "it is for every channel, and line 14 for this one"),
        (13, "it is for everyone, and line 14 names this identity"),
        (4, "it is for everyone, and line 14 names this identity"),
        (16, "it is for bridge only"),
        (6, "it ended on 2026-03-05"),
    ]
    assert others("+00 555 0142") == [
        (3, "it is permanent, and line 9 is temporary"),
        (4, "it is for everyone, and line 9 names this identity"),
    ]


def test_the_reason_names_the_line_and_what_it_comes_before() -> None:
    found = standing("+00 555 0142")
    assert found.reason == (
        "line 9 of runtime/external-communications.md names this identity, temporary until 2026-03-06; "
        "it comes before lines 3, 4"
    )


def test_without_a_rule_the_one_that_ended_is_named() -> None:
    text = "## Temporary Instructions\n- **Odile** (odile@ferry.example): block [until 2026-03-05]\n"
    found = standing("odile@ferry.example", text=text)
    assert found.rule is None
    assert "the rule in line 2 ended on 2026-03-05" in found.reason
    assert standing("odile@ferry.example", text="").rule is None


def test_a_rule_for_a_channel_as_a_whole_holds_for_all_in_it_alone() -> None:
    text = "## Permanent Rules\n- **Deck crew** (deck-crew): observe only\n"
    assert action("odile@ferry.example", "deck-crew", text) == "observe only"
    assert action("deck-crew", "", text) == "observe only"
    assert action("odile@ferry.example", "", text) == ""


def test_a_rule_whose_last_day_cannot_be_read_holds_on_as_the_prompt_shows_it() -> None:
    for day in ("Friday", "2026-02-30"):
        dated = f"- **Kim** (kim@x.example): block [until {day}]"
        text = f"## Permanent Rules\n{dated}\n- **Kim** (kim@x.example): draft only\n"
        found = standing("kim@x.example", text=text)
        assert found.rule is not None
        assert (found.rule.line, found.rule.action, found.unread) == (2, "block", [])
        assert f"without end: [until {day}] is not a date" in found.reason
        assert day in visible(text, now=datetime.combine(TODAY, time())).text


UNREAD = """\
## Permanent Rules
- Odile odile@ferry.example: block
- Harbour office, +00-555-0142: block
- **Everyone** (*): observe only
"""


@pytest.mark.parametrize(
    ("identity", "line"), [("Odile@ferry.example", 2), ("mailto:odile@ferry.example", 2), ("00 00 555 0142", 3)]
)
def test_a_line_that_names_the_identity_and_is_no_rule_is_told_of_first(identity: str, line: int) -> None:
    found = standing(identity, text=UNREAD)
    assert found.unread == [line]
    assert found.reason.startswith(f"line {line} seems to be about this identity, but cannot be read as a rule")
    assert "line 4 of" in found.reason


@pytest.mark.parametrize(
    "identity", ["ines@ferry.example", "dile@ferry.example", "odile@ferry.example.org", "odile@ferry", "+00 555 01421"]
)
def test_a_line_that_does_not_name_the_identity_is_not_told_of(identity: str) -> None:
    assert standing(identity, text=UNREAD).unread == []


def test_for_a_name_it_says_which_identity_to_ask_for() -> None:
    assert standing("odile").reason.endswith("; Odile is a name; ask for odile@ferry.example")
    assert "is a name" not in standing("odile@ferry.example").reason
    ended = "## Permanent Rules\n- **Odile** (odile@ferry.example): block [until 2026-03-05]\n"
    assert "odile@ferry.example" not in standing("Odile", text=ended).reason


@pytest.mark.parametrize("identity", ["", "  ", "<>", "mailto:"])
def test_a_blank_identity_is_a_usage_error(identity: str) -> None:
    with pytest.raises(UsageError, match="whose rule"):
        standing(identity)


def test_without_an_identity_all_rules_in_force_are_listed() -> None:
    rules, malformed = read_rules(contents_of(RULES + "- Ann: block\n"), TODAY)
    now = datetime.combine(TODAY, time(12))
    every, decks = (in_force("", rules, now, channel=channel, malformed=malformed) for channel in ("", "deck-crew"))
    assert (every.rule, every.unread, every.reason) == (None, [17], f"8 rules of {PATH} in force")
    assert [one.line for one in every.results or ()] == [2, 3, 4, 5, 9, 13, 14, 16]
    assert [one.line for one in decks.results or ()] == [2, 3, 4, 5, 9, 13, 14]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("+1 (555) 010-0142", "+15550100142"),
        ("001 555 010 0142", "+15550100142"),
        ("5550142", "5550142"),
        ("42", "42"),
        ("deck-crew 7", "deck-crew 7"),
        ("\uff0b\uff11\uff15\uff15\uff15\uff10", "+15550"),
        ("", ""),
    ],
)
def test_identities_as_they_are_compared(text: str, plain: str) -> None:
    assert plain_identity(text) == plain
