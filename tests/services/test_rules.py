"""Which rule applies to somebody: the specific, the temporary, the channel's, the last; never one past its day."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync import Notebook, Session
from notebook_sync.errors import NoSuchNote, UsageError
from notebook_sync.services.grammar import Contents
from notebook_sync.services.rules import GRAMMAR, Standing, choose_rule, lines_naming, plain_identity
from tests.services.conftest import FILES, OWNER, STRANGER, assert_raises, write_files

PATH = "runtime/external-communications.md"
ODILE = FILES[PATH].partition("(")[2].partition(")")[0]
NOON = datetime(2026, 3, 6, 12, tzinfo=UTC)
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
AS_CLIENTS_WRITE = """\
# Permanent Rules
- **Tove** ([tove@mole.example](mailto:tove@mole.example)): block
- **Ana** (<ana@mole.example>): block
- **Omar** (+1 202 555 0144): draft only
- **Spammers** (*@spam.example): block
- **Sarah** (sarah@x.example): always respond

| who | identity | action |
|---|---|---|
| **Eva** | eva@mole.example | block |

## Temporary Instructions
- **Sarah** [until 2027-02-25]: Ignore her messages
"""


def read_rules(text: str, now: datetime = NOON, *, is_all: bool = False) -> Contents:
    return GRAMMAR.contents(text, now, is_all=is_all)


def standing(identity: str, channel: str = "", text: str = RULES, now: datetime = NOON) -> Standing:
    rules, _, lines = read_rules(text, now, is_all=True)
    return choose_rule(identity, rules, channel, unread=lines_naming(identity, text, lines, now))


def action(*args: str, now: datetime = NOON) -> str:
    rule = standing(*args, now=now).rule
    return rule.action if rule else ""


@pytest.mark.parametrize(
    ("identity", "channel", "expected", "text"),
    [
        ("odile@ferry.example", "", "always respond", RULES),
        ("mailto:ODILE@ferry.example?subject=x", "", "always respond", RULES),
        ("Odile M. <odile@ferry.example>", "", "always respond", RULES),
        ("odile@ferry.example.org", "", "observe only", RULES),
        ("odile@ferry", "", "observe only", RULES),
        ("Odile", "", "observe only", RULES),
        ("+00-555-0142", "", "never respond", RULES),
        ("tel:+005550142", "", "never respond", RULES),
        ("00 00 555 0142", "", "never respond", RULES),
        ("555 0142", "", "observe only", RULES),
        ("+49305550 1", "", "respond by noon", RULES),
        ("piotr@ferry.example", "", "observe only", RULES),
        ("odile@ferry.example", "Deck-Crew", "respond in two lines", RULES),
        ("odile@ferry.example", "bridge", "observe only", RULES),
        ("odile@ferry.example", "galley", "always respond", RULES),
        ("piotr@ferry.example", "deck-crew", "draft only", RULES),
        ("+00 555 0142", "deck-crew", "never respond", RULES),
        ("tove@mole.example", "", "block", AS_CLIENTS_WRITE),
        ("Ana <ana@mole.example>", "", "block", AS_CLIENTS_WRITE),
        ("12025550144", "", "draft only", AS_CLIENTS_WRITE),
        ("whatsapp:+12025550144", "", "draft only", AS_CLIENTS_WRITE),
        ("x@spam.example", "", "block", AS_CLIENTS_WRITE),
        ("x@spam.example.org", "", "", AS_CLIENTS_WRITE),
        ("sarah@x.example", "", "Ignore her messages", AS_CLIENTS_WRITE),
        ("Sarah", "", "Ignore her messages", AS_CLIENTS_WRITE),
    ],
)
def test_the_rule_that_applies(identity: str, channel: str, expected: str, text: str) -> None:
    assert action(identity, channel, text) == expected


def test_a_rule_holds_on_its_last_day_and_never_after_it() -> None:
    assert action("+00 555 0142", now=datetime(2026, 3, 6, 23, 59, tzinfo=UTC)) == "never respond"
    assert action("+00 555 0142", now=datetime(2026, 3, 7, tzinfo=UTC)) == "draft only"
    assert action("odile@ferry.example", now=datetime(2026, 3, 5, tzinfo=UTC)) == "block"


def test_the_answer_says_why_and_what_the_others_are() -> None:
    found = standing("odile@ferry.example", "deck-crew")
    assert found.reason == f"line 14 of {PATH} names this identity, permanent for deck-crew"
    assert [(rule.line, rule.state) for rule in found.results] == [
        (14, "applies"),
        (2, "ranked lower"),
        (13, "ranked lower"),
        (4, "ranked lower"),
        (6, "ended"),
        (16, "other channel"),
    ]
    found = standing("Odile")
    assert "other identity" in {rule.state for rule in found.results}


def test_a_date_that_cannot_be_read_never_ends_a_rule() -> None:
    text = (
        "## Permanent Rules\n- **Kim** (kim@x.example): block [until Friday]\n- **Kim** (kim@x.example): draft only\n"
    )
    rules, malformed, _ = read_rules(text)
    assert (action("kim@x.example", "", text), rules[0].until) == ("block", "Friday")
    assert malformed[0].message == "[until Friday] is not a date, so it is ignored; write: [until 2026-03-20]"


@pytest.mark.parametrize(
    ("identity", "text", "lines"),
    [
        ("eva@mole.example", AS_CLIENTS_WRITE, [10]),
        ("odile@x", "## Permanent Rules\n- Odile odile@x: block\n", [2]),
        ("+00 555 0142", "## Permanent Rules\n\nHarbour office, +00-555-0142: block\n", [3]),
        ("a@x", "## Rules\n- **A** (a@x): block\n", [2]),
        ("a@x", "- **A** (a@x): block\n", [1]),
        ("a@x", "## Permanent Rules\n> - **A** (a@x): block\n", [2]),
        ("a@x", "---\nx: a@x\n---\n<!-- a@x -->\n# Channel-Specific\n## a@x\n- **B** (b@x): tell a@x\n  - a@x\n", []),
        ("a@x.example", "## Permanent Rules\n- Ana a@x.example.org, aa@x.example: block\n", []),
    ],
)
def test_a_line_that_names_the_identity_and_is_no_rule_is_never_silence(
    identity: str, text: str, lines: list[int]
) -> None:
    found = standing(identity, text=text)
    assert found.unread == lines
    assert ("ask the owner" in found.reason) == bool(lines)


def test_entries_in_wrong_places_are_reported_with_a_correction() -> None:
    text = (
        "# Contacts\n- **A** (a@x): block\n## Permanent rules:\n-**B** (b@x): block\n- Carla c@x: block\n"
        "- **Crew**\n  - **D** (d@x): draft only\n  - and be kind\n\n```\n- **E** (e@x): no\n```\n"
    )
    rules, malformed, _ = read_rules(text)
    assert [rule.name for rule in rules] == ["D"]
    assert [one.line for one in malformed] == [2, 4, 5, 6]
    assert "is under `Contacts`" in malformed[0].message
    assert malformed[1].message.endswith("write: - **Name** (identity): action [until 2026-03-20]")


def test_without_an_identity_all_rules_in_force_are_listed() -> None:
    every, deck = (choose_rule("", read_rules(RULES, is_all=True).found, channel) for channel in ("", "deck-crew"))
    assert [rule.line for rule in every.results] == [2, 3, 4, 5, 9, 13, 14, 16]
    assert [rule.line for rule in deck.results] == [2, 3, 4, 5, 9, 13, 14]
    assert every.reason == f"8 rules of {PATH} in force"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("+1 (555) 010-0142", "15550100142"),
        ("001 555 010 0142", "15550100142"),
        ("42", "42"),
        ("Deck-Crew  7", "deck-crew 7"),
        ("\uff0b\uff11\uff15\uff15\uff15\uff10", "15550"),
        ("[a@b](mailto:a@b)", "a@b"),
        ("", ""),
    ],
)
def test_identities_as_they_are_compared(text: str, plain: str) -> None:
    assert plain_identity(text) == plain


@given(st.text(alphabet="-*+ []()#<!>:|@\n\r\t`aZ1\u2028é", max_size=80))
def test_any_text_can_be_asked_about(text: str) -> None:
    found = (
        standing(text or "a", text=text + "\n## Permanent Rules\n- " + text) if plain_identity(text or "a") else None
    )
    assert found is None or all(line > 0 for line in found.unread)


def test_sessions_get_the_rules_in_force_and_the_owner_all(notebook: Notebook) -> None:
    write_files(notebook.root, {PATH: "## Permanent Rules\n- **A** (a@x): block [until 2020-01-01]\n- A a@x\n"})
    owners, others = (notebook.prompts.rules("a@x", session) for session in (OWNER, STRANGER))
    assert [rule.state for rule in owners.results] == ["ended"]
    assert (others.results, others.unread) == ([], [3])
    assert_raises(UsageError, notebook.prompts.rules, "<>")


def test_what_the_prompt_hides_is_no_rule_and_no_part_of_one(notebook: Notebook) -> None:
    hidden = "%%\n- **B** (b@x): block\n%%\n<!--\n- **C** (c@x): block\n-->\n"
    rules = f"---\nx: y\n---\n# Permanent Rules\n- **A** (a@x): block %%since he lied%% <!-- twice -->\n\n{hidden}"
    write_files(notebook.root, {PATH: rules})
    for session in (OWNER, STRANGER):
        (rule,) = notebook.prompts.rules("", session).results
        assert (rule.line, rule.action) == (5, "block")
        assert notebook.prompts.rules("b@x", session).unread == []


def test_a_conflict_and_a_file_of_others_are_said(notebook: Notebook) -> None:
    notebook.prompts.rules(ODILE)
    ours = (notebook.root / PATH).read_text()
    write_files(notebook.root, {PATH: f"<<<<<<< HEAD\n{ours}=======\n>>>>>>> b\n"})
    found = notebook.prompts.rules(ODILE)
    assert found.rule is not None
    assert found.rule.action == "draft only"
    assert any("line 1: a mark of a merge conflict" in problem for problem in found.problems)
    write_files(notebook.root, {PATH: f"---\nprovenance: external\n---\n{ours}"})
    assert notebook.prompts.rules(ODILE).rule is None


def test_rules_that_a_session_may_not_see_do_not_exist_for_it(notebook: Notebook) -> None:
    toml = f'[[prompt.files]]\npath = "{PATH}"\nsessions = ["owner", "task"]\n[search]\nembeddings = "off"\n'
    write_files(notebook.root, {"notebook.toml": toml})
    assert notebook.prompts.rules(ODILE, Session.task()).rule is not None
    assert_raises(NoSuchNote, notebook.prompts.rules, ODILE, STRANGER)
