"""The prompt: its order, its limits, who sees what, and what never changes it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

import pytest

from prompt import (
    SESSIONS,
    Assembler,
    FileText,
    Prompt,
    PromptFile,
    PromptSettings,
    Volatile,
    assemble,
    count_tokens,
)

NOW = datetime(2026, 3, 1)
RULES = FileText(
    "runtime/external-communications.md",
    b"<!-- grammar of the rules -->\n\n## Permanent Rules\n\n- **Ines** (ines@x.example): always respond\n"
    b"- **Bruno** (bruno@x.example): draft only [until 2026-02-28]\n",
)
REMINDERS = FileText("runtime/reminders.md", b"<!-- grammar of the reminders -->\n\n## Today\n\n- [ ] wind the clock\n")
ORDERS = FileText("runtime/standing-orders.md", b"# Orders\n\n## Preferences\n\n- tea\n\n<!-- ask her again -->\n")
RUNTIME = [RULES, REMINDERS, ORDERS]
SETTINGS = PromptSettings(directive="## Your Notebook\n\nThe files below, in a session of kind {{ session }}.")


def made(
    sources: list[FileText] | None = None, session: str = "task", settings: PromptSettings = SETTINGS, **more: object
) -> Prompt:
    return assemble(RUNTIME if sources is None else sources, session, settings, **{"now": NOW, **more})  # type: ignore[arg-type]


def test_the_parts_stand_in_their_order_stable_ones_first() -> None:
    layout = replace(
        SETTINGS, system_files=("AGENT.md",), files=(PromptFile("pages/glossary.md", "Glossary", priority=0),)
    )
    sources = [
        *RUNTIME,
        FileText("facts/core.md", b"- the lamp is older than the tower\n"),
        FileText("pages/glossary.md", b"- oil: lamp oil\n"),
        FileText("AGENT.md", b"You are the keeper's hand.\n"),
    ]
    prompt = made(sources, settings=layout, volatile=Volatile("- a ref", "- a fact", "- a note", "the brief"))
    order = [
        "You are the keeper's hand.",
        "## Your Notebook",
        "## External Communications Rules",
        "## Reminders",
        "## Standing Orders",
        "## Glossary",
        "## Core Facts",
        "## Notebook",
        "## Facts",
        "## Recent Notes",
        "## Task Brief",
    ]
    places = [prompt.text.index(each) for each in order]
    assert places == sorted(places)
    assert prompt.text.startswith(prompt.stable)
    assert "## Notebook" not in prompt.stable
    assert prompt.tokens == count_tokens(prompt.text)


def test_the_order_moves_files_before_the_others_and_system_files_stay_first() -> None:
    layout = replace(
        SETTINGS,
        system_files=("AGENT.md",),
        files=(PromptFile("pages/glossary.md", "Glossary"),),
        order=("pages/glossary.md", ORDERS.path, "pages/unknown.md"),
    )
    paths = [part.path for part in made(settings=layout).parts]
    assert paths == ["AGENT.md", "pages/glossary.md", ORDERS.path, RULES.path, REMINDERS.path]


def test_the_directive_is_a_template_that_gets_the_session_and_the_files_that_no_tag_names() -> None:
    layout = replace(
        SETTINGS,
        directive="{{ session }}: {{ paths | join(', ') }}",
        files=(PromptFile("pages/glossary.md", "Glossary"), PromptFile("pages/tides.md")),
    )
    text = made(session="external", settings=layout).text
    named = [RULES.path, REMINDERS.path, ORDERS.path, "pages/glossary.md"]
    assert text.startswith(f"external: {', '.join(named)}\n")
    assert [path for path in (*named, "pages/tides.md") if f'path="{path}"' in text] == ["pages/tides.md"]


def test_the_day_comes_first_after_the_stable_part_and_never_in_it() -> None:
    day = Volatile(brief="the brief", today="Sunday, 2026-03-01")
    prompt = made(volatile=day)
    assert prompt.stable == made().text
    assert prompt.text == prompt.stable + "\nToday is Sunday, 2026-03-01.\n\n## Task Brief\n\n> the brief\n"


def test_a_day_that_has_no_room_is_reported() -> None:
    layout = replace(SETTINGS, runtime_files=(), directive="", max_tokens=5)
    prompt = made([], settings=layout, volatile=Volatile(today="Sunday, 2026-03-01"))
    assert prompt.text == ""
    assert prompt.problems == ('prompt.max_tokens = 5 leaves no room for "Today"',)


def test_json_has_the_documented_shape() -> None:
    answer = json.loads(json.dumps(made([RULES, REMINDERS, FileText(ORDERS.path, b"- order\n" * 2000)]).as_json()))
    assert set(answer) == {"text", "tokens", "revision", "session", "parts"}
    for part in answer["parts"]:
        assert set(part) == {"name", "path", "digest", "tokens_raw", "tokens", "cap", "omitted", "expired"}
    rules, _, orders = answer["parts"]
    assert rules["digest"] == sha256(RULES.content or b"").hexdigest()
    assert rules["expired"] == [
        {"line": 6, "text": "- **Bruno** (bruno@x.example): draft only [until 2026-02-28]", "until": "2026-02-28"}
    ]
    assert orders["tokens_raw"] == count_tokens("- order\n" * 2000)
    assert orders["tokens"] <= orders["cap"] == 2000
    assert set(orders["omitted"][0]) == {"anchor", "heading", "tokens"}


@pytest.mark.parametrize("session", SESSIONS)
def test_no_session_sees_a_comment_or_an_expired_rule(session: str) -> None:
    text = made(session=session).text
    assert "grammar of the rules" not in text
    assert "ask her again" not in text
    assert "Bruno" not in text


def test_a_file_within_its_cap_is_byte_identical() -> None:
    source = "# T  \r\n\r\n\r\n*  odd\tspacing \r\n\r\n\r\n"
    assert f">\n\n{source}</file>" in made([FileText(ORDERS.path, source.encode())]).text


def test_a_missing_file_is_one_line() -> None:
    prompt = made([RULES, FileText(REMINDERS.path, None), ORDERS])
    assert prompt.text.count("[runtime/reminders.md is missing]\n") == 1
    assert (prompt.parts[1].digest, prompt.parts[1].tokens_raw) == ("", 0)
    assert made([RULES, ORDERS]).text == prompt.text


def test_missing_core_facts_leave_no_trace() -> None:
    assert "Core Facts" not in made().text


def test_the_last_good_version_is_shown_and_its_problem_reported_but_not_to_the_model() -> None:
    prompt = made([RULES, replace(REMINDERS, problem="the file ends inside a character"), ORDERS])
    assert prompt.text == made().text
    assert prompt.problems == ("runtime/reminders.md: the file ends inside a character",)


def test_bytes_that_are_not_utf8_are_shown_as_far_as_they_are_and_reported() -> None:
    prompt = made([RULES, REMINDERS, FileText(ORDERS.path, b"- tea \xff\xfe\n- milk\n")])
    assert "- tea \ufffd\ufffd\n- milk\n" in prompt.text
    assert "not UTF-8 at byte 6" in prompt.problems[0]


def test_a_file_is_only_for_its_sessions() -> None:
    layout = replace(SETTINGS, files=(PromptFile("pages/private.md", "Private", sessions=("owner",)),))
    sources = [*RUNTIME, FileText("pages/private.md", b"the key is under the mat\n")]
    assert "the mat" in made(sources, "owner", layout).text
    prompt = made(sources, "external", layout)
    assert "Private" not in prompt.text
    assert prompt.filtered == ("pages/private.md",)


def test_an_expired_rule_leaves_on_its_day_even_from_a_warm_assembler() -> None:
    assembler = Assembler(SETTINGS)
    days = [assembler.assemble(RUNTIME, "task", now=datetime(2026, 2, day)).text for day in (27, 28)]
    assert all("Bruno" in text for text in days)
    assert "Bruno" not in assembler.assemble(RUNTIME, "task", now=datetime(2026, 3, 1)).text


def test_an_edit_shows_at_once_in_a_warm_assembler() -> None:
    assembler = Assembler(SETTINGS)
    for drink in ("tea", "rum", "milk", "tea"):
        sources = [RULES, REMINDERS, FileText(ORDERS.path, f"- {drink}\n".encode())]
        assert f"- {drink}\n" in assembler.assemble(sources, "task", now=NOW).text


def test_nothing_changed_is_the_same_prompt_again() -> None:
    assembler = Assembler(SETTINGS)
    assert assembler.assemble(RUNTIME, "task", now=NOW) is assembler.assemble(list(RUNTIME), "task", now=NOW)


def test_the_stable_part_depends_on_files_and_session_alone() -> None:
    one, other = (
        made(volatile=Volatile("refs")),
        made(volatile=Volatile(notes="notes", brief="brief"), now=datetime(2031, 5, 6)),
    )
    assert one.stable == other.stable == made().text
    assert one.revision == other.revision == sha256(one.stable.encode()).hexdigest()
    assert made(session="owner").revision != one.revision
    assert made([RULES, REMINDERS, FileText(ORDERS.path, b"- milk\n")]).revision != one.revision


def test_a_comment_or_an_expired_rule_that_changes_does_not_change_the_revision() -> None:
    changed = (RULES.content or b"").replace(b"grammar of", b"all about").replace(b"draft only", b"block")
    assert made([FileText(RULES.path, changed), REMINDERS, ORDERS]).revision == made().revision


def test_a_cap_that_is_crossed_changes_nothing_above_its_file() -> None:
    few, many = (made([RULES, FileText(REMINDERS.path, b"- x\n" * n), ORDERS]) for n in (300, 30_000))
    above = few.text.partition("- x\n")[0]
    assert not few.parts[1].omitted
    assert many.parts[1].omitted
    assert many.text.startswith(above)


FULL = [FileText(source.path, b"## Entries\n\n" + b"- an entry of this file\n" * 800) for source in RUNTIME]


def test_no_file_silently_drops_to_nothing() -> None:
    prompt = made(FULL, settings=replace(SETTINGS, max_tokens=700), volatile=Volatile("- a ref\n" * 4000))
    for part in prompt.parts:
        assert f"notebook_read {part.path}" in part.text
        assert "- an entry of this file" in part.text


def test_volatile_text_is_cut_before_the_files_are() -> None:
    sources = [RULES, REMINDERS, FileText(ORDERS.path, b"- an order\n" * 100)]
    alone = made(sources)
    prompt = made(
        sources, settings=replace(SETTINGS, max_tokens=alone.tokens + 200), volatile=Volatile("- ref\n" * 900)
    )
    assert prompt.stable == alone.stable
    assert prompt.tokens > alone.tokens + 150


def test_a_higher_priority_is_cut_later() -> None:
    runtime = tuple(replace(rule, priority=9 if "orders" in rule.path else 1) for rule in SETTINGS.runtime_files)
    prompt = made(FULL, settings=replace(SETTINGS, runtime_files=runtime, max_tokens=2800))
    rules, reminders, orders = (part.tokens for part in prompt.parts)
    assert orders > 3 * rules
    assert abs(rules - reminders) < 20
