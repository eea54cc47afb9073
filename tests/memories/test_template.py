"""What a text tells of a memory by the template, and what of it is no template."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.errors import UsageError
from notebook_sync.mirror.memories import KINDS
from notebook_sync.notes.memories.template import LONGEST_TAG, LONGEST_TITLE, MOST_TAGS, Told, kind_named, read_memory

WHOLE = """[DECISION] Light the lamps at six

CONTEXT: The ferry comes in at half past six,
and in winter it is dark by then.

REASONING:
Nobody finds the pier in the dark.

OUTCOME: Ines lights them at six.
TAGS: lamps, pier
"""
TOLD = Told(
    "decision",
    "Light the lamps at six",
    "The ferry comes in at half past six,\nand in winter it is dark by then.",
    "Nobody finds the pier in the dark.",
    "Ines lights them at six.",
    ("lamps", "pier"),
)


def test_a_whole_memory_lacks_nothing() -> None:
    assert read_memory(WHOLE) == TOLD
    assert TOLD.missing == ()


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_four_kinds_in_any_case(kind: str) -> None:
    for spelt in (kind.upper(), kind, kind.capitalize()):
        assert read_memory(WHOLE.replace("DECISION", spelt)).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        WHOLE.replace("CONTEXT", "context").replace("TAGS", "Tags"),
        WHOLE.replace("\n", "\r\n"),
        "\ufeff" + WHOLE,
        WHOLE.replace("[DECISION] Light the lamps at six", "# [DECISION] Light the lamps at six #"),
        WHOLE.replace("[DECISION] Light the lamps at six", "**[Decision]: Light the lamps at six**"),
        WHOLE.replace("[DECISION] Light the lamps at six", "# Light the lamps at six\n\n[decision]"),
        WHOLE.replace("CONTEXT:", "**CONTEXT:**").replace("OUTCOME:", "__Outcome__:"),
        WHOLE.replace("CONTEXT:", "- Context:").replace("OUTCOME:", "## Outcome:"),
        WHOLE.replace("CONTEXT: ", "## Context\n\n").replace("REASONING:", "## REASONING ##"),
        WHOLE.replace("TAGS: lamps, pier", "TAGS:\n\n- lamps\n- pier"),
        WHOLE.replace("TAGS: lamps, pier", "## Tags\n#lamps #pier"),
        WHOLE.replace("TAGS: lamps, pier", 'TAGS: ["lamps", "pier"]'),
    ],
)
def test_other_ways_to_write_it_say_the_same(text: str) -> None:
    assert read_memory(text) == TOLD


def test_the_parts_may_come_in_any_order() -> None:
    assert read_memory("TAGS: a\nOUTCOME: o\nREASONING: r\nCONTEXT: c\n") == Told("", "", "c", "r", "o", ("a",))


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("[DECISION] Light the lamps at six", "kind"),
        ("REASONING:\nNobody finds the pier in the dark.", "reasoning"),
        ("OUTCOME: Ines lights them at six.", "outcome"),
        ("TAGS: lamps, pier", "tags"),
    ],
)
def test_what_is_left_out_is_missing(line: str, missing: str) -> None:
    assert read_memory(WHOLE.replace(line, "")).missing == (missing,)


def test_a_part_that_says_nothing_is_missing() -> None:
    assert read_memory(WHOLE.replace("Ines lights them at six.", " \t")).missing == ("outcome",)
    assert read_memory("").missing == ("kind", "context", "reasoning", "outcome", "tags")


def test_a_label_in_code_or_in_a_comment_is_none() -> None:
    code = "```yaml\nOUTCOME: in code\n[PROBLEM] in code\n```"
    told = read_memory(f"[INSIGHT] One\n{code}\nCONTEXT: c\n\n{code}\n\n<!-- TAGS: hidden -->\nREASONING: r")
    assert told.missing == ("outcome", "tags")
    assert (told.kind, told.context.count(code)) == ("insight", 2)
    assert "TAGS: hidden" in told.context


def test_code_that_is_never_closed_takes_in_what_follows() -> None:
    told = read_memory(WHOLE.replace("and in winter", "```\nand in winter"))
    assert told.missing == ("reasoning", "outcome", "tags")
    assert "Ines lights them" in told.context


def test_of_a_label_that_stands_there_twice_the_second_is_text() -> None:
    told = read_memory(WHOLE.replace("Ines lights", "They are lit.\nContext: Ines lights"))
    assert told.outcome == "They are lit.\nContext: Ines lights them at six."
    assert told.context == TOLD.context


@pytest.mark.parametrize("line", ["Contextual", "Context matters", "Outcomes: none", "x CONTEXT: y", "CONTEXT - y"])
def test_a_line_that_only_begins_like_a_label_is_text(line: str) -> None:
    assert line in read_memory(WHOLE.replace("Nobody finds", f"{line}\nNobody finds")).reasoning


def test_what_stands_before_the_parts_and_after_the_tags_is_not_lost() -> None:
    told = read_memory(WHOLE.replace("CONTEXT:", "Odile saw it first.\n\nCONTEXT:") + "\nSeen again in May.\n")
    assert told.context == f"Odile saw it first.\n\n{TOLD.context}"
    assert told.outcome == f"{TOLD.outcome}\n\nSeen again in May."
    assert told.tags == TOLD.tags


def test_a_title_that_is_prose_is_no_title_and_not_lost() -> None:
    long = "lamps " * 100
    told = read_memory(WHOLE.replace("Light the lamps at six", long))
    assert (told.kind, told.title) == ("decision", "")
    assert told.context == f"{long.rstrip()}\n\n{TOLD.context}"
    told = read_memory(WHOLE.replace("[DECISION] Light the lamps at six", f"# {long}\n[DECISION]"))
    assert (told.title, long.strip() in told.context) == ("", True)
    assert len(long) > LONGEST_TITLE


def test_what_is_too_long_or_too_much_for_tags_is_none() -> None:
    for prose in ("x" * (LONGEST_TAG + 1), ",".join(f"t{number}" for number in range(MOST_TAGS + 1))):
        assert read_memory(WHOLE.replace("lamps, pier", prose)).missing == ("tags",)


def test_a_caller_may_name_the_kind_as_the_template_does() -> None:
    assert [kind_named(kind) for kind in ("", " ", "problem", "[Problem]", "PROBLEM ")] == ["", "", *["problem"] * 3]
    with pytest.raises(UsageError, match="pattern, decision, problem, insight"):
        kind_named("rumour")


# Long texts of what regular expressions and parsers stumble over end as soon as others do: the suite has a limit.
@pytest.mark.parametrize(
    "text",
    [
        "[DECISION] " + " " * 200_000 + "#",
        "# " + "# " * 100_000 + "x",
        "CONTEXT:" + "\t" * 200_000,
        "*_" * 100_000,
        "[" * 100_000,
        "TAGS:" + " #" * 100_000,
        "TAGS: " + ",".join("灯" * 50_000),
        "🏮" * 200_000,
        "CONTEXT: 灯\n" * 10_000,
        "```\n" * 20_001,
    ],
    ids=range(10),
)
def test_huge_and_odd_texts_are_read(text: str) -> None:
    assert read_memory(text).missing


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            [
                "[PROBLEM] p",
                "CONTEXT: c",
                "## Reasoning",
                "OUTCOME:",
                "TAGS: t",
                "- u",
                "```",
                "# h",
                "",
                "wörd",
                "a\rb",
            ]
        ),
        max_size=12,
    )
)
def test_no_word_of_a_text_is_lost(lines: list[str]) -> None:
    told = read_memory("\n".join(lines))
    everything = " ".join([f"[{told.kind}]", told.title, *told.parts.values(), *told.tags])
    labels = {"CONTEXT: c": "c", "TAGS: t": "t", "[PROBLEM] p": "p", "# h": "h", "- u": "u"}
    for line in lines:
        word = labels.get(line, line if line in ("wörd", "a\rb") else "")
        assert word in everything
