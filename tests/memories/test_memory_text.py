"""What memories say in their files, whatever the texts are that they are made of."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.errors import UsageError
from notebook_sync.files.parse import parse
from notebook_sync.notes.memories.template import Told, read_memory
from notebook_sync.notes.memories.text import (
    UNTITLED,
    MemoryDraft,
    body_of,
    contained,
    fenced,
    reads_as_meant,
    title_of,
)
from prompt.outline import Block, Outline

MADE = datetime(2026, 2, 16, 23, 30, tzinfo=UTC)
TOLD = Told("decision", "Lamps at six", "It is dark.", "Nobody finds the pier.", "They are lit.", ("lamps",))
DRAFT = MemoryDraft(
    id="lampsatsixxx",
    title="Lamps at six",
    kind="decision",
    domain="harbour",
    tags=("lamps", "pier"),
    created_at=MADE,
    agent="scribe",
    priority=8,
    created_by="agent:scribe",
    told=TOLD,
)

FILE = """\
---
id: lampsatsixxx
title: Lamps at six
kind: decision
domain: harbour
tags: [lamps, pier]
created_at: 2026-02-16T23:30:00.000Z
agent: scribe
priority: 8
created_by: "agent:scribe"
---
# Lamps at six

## Context

It is dark.

## Reasoning

Nobody finds the pier.

## Outcome

They are lit.
"""
# What could be taken for a part of the file that it is not.
HOSTILE = [
    "# A title\n\n## Outcome\n\nforged",
    "Outcome\n=======\n\nand\n\nReasoning\n---",
    "```\nnever closed",
    "~~~~ py\nnever closed",
    "<!-- never closed",
    "<script>\nnever closed",
    "---\nid: other\nkind: pattern\n---\n",
    "- one\n\n  ## Context\n\n  ```\n  open in a list",
    "> # quoted\n> ```",
    "#\n##\n###### deep\n# #",
    "text\r# Return\r\r```\r",
    "\ufeff# BOM",
    "🏮" * 2000 + "灯\n\n## 灯",
    "[ref]: http://pier\n\n    # in code",
    "|a|\n|-|\n|# x|",
    "\\# no heading\n***\n___",
]


def test_a_memory_is_a_file_that_people_can_read() -> None:
    assert DRAFT.raw().decode() == FILE


def test_what_says_nothing_is_left_out_and_every_field_has_its_line() -> None:
    bare = replace(DRAFT, kind="", domain="", tags=(), agent="", created_by="owner", told=None, text="Lamps.\n")
    head = (
        "id: lampsatsixxx\ntitle: Lamps at six\ncreated_at: 2026-02-16T23:30:00.000Z\npriority: 8\ncreated_by: owner\n"
    )
    assert bare.raw().decode() == f"---\n{head}---\nLamps.\n"


def test_a_reader_finds_in_it_what_was_meant() -> None:
    note = parse(
        "memories/decision/lamps.md",
        replace(DRAFT, needs_review=True).raw(),
    )
    assert (note.wants, note.title, note.tags, note.created_at, note.created_by) == (
        "lampsatsixxx",
        "Lamps at six",
        ("lamps", "pier"),
        MADE,
        "agent:scribe",
    )
    assert note.fields == {
        "kind": "decision",
        "domain": "harbour",
        "agent": "scribe",
        "priority": 8,
        "needs_review": True,
        "missing": [],
        "relations": [],
    }
    assert (note.extra, note.problems) == ({}, ())


def test_its_path_tells_kind_day_and_title() -> None:
    assert DRAFT.path(ZoneInfo("UTC")) == "memories/decision/2026-02-16-lamps-at-six.md"
    assert DRAFT.path(ZoneInfo("Asia/Tokyo"), 2) == "memories/decision/2026-02-17-lamps-at-six-2.md"
    assert replace(DRAFT, kind="", title="灯 / ../..").path(UTC) == "memories/unstructured/2026-02-16-灯.md"
    assert replace(DRAFT, title="🏮").path(UTC) == "memories/decision/2026-02-16-memory.md"
    first = datetime(1, 1, 1, tzinfo=UTC)
    assert (
        replace(DRAFT, created_at=first).path(ZoneInfo("America/New_York")).startswith("memories/decision/0001-01-01")
    )


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_makes_another_part_or_ends_its_own(hostile: str) -> None:
    told = replace(TOLD, context=hostile, reasoning=hostile, outcome=hostile)
    assert reads_as_meant("Lamps", told, hostile)
    note = parse("memories/decision/lamps.md", replace(DRAFT, told=told, text=hostile).raw())
    assert [one.heading for one in note.sections if one.level <= 2] == [
        "Lamps at six",
        "Context",
        "Reasoning",
        "Outcome",
    ]
    assert (note.wants, note.fields["kind"], note.problems) == ("lampsatsixxx", "decision", ())


def fences_of(text: str) -> list[Block]:
    return [block for block in Outline(text).root.walk() if block.type == "fence"]


@pytest.mark.parametrize("hostile", [*HOSTILE, "```` four", "``", "ends\n", "\n\n", "`" * 50], ids=range(21))
def test_the_original_stands_below_to_the_character_and_nothing_in_it_ends_it(hostile: str) -> None:
    body = body_of("Lamps", TOLD, hostile)
    (fence,) = fences_of(body)
    end = "" if hostile.endswith(("\n", "\r")) else "\n"
    assert fence.content == hostile.replace("\r\n", "\n").replace("\r", "\n") + end
    assert f"\n---\n\n{fenced(hostile)}" in body
    assert hostile in body
    assert body.endswith(fenced(hostile))


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_a_text_that_is_kept_as_it_is_stays_that_to_the_byte(hostile: str) -> None:
    raw = replace(DRAFT, told=None, text=hostile, needs_review=True).raw()
    assert raw.endswith(b"---\n" + hostile.encode())
    note = parse("memories/decision/lamps.md", raw)
    assert (note.content, note.wants, note.fields["kind"]) == (hostile, "lampsatsixxx", "decision")


def test_headings_of_a_part_keep_their_order_below_it() -> None:
    text = "# One\n\nUnder\n-----\n\ntext\n\n### Three\n"
    assert contained(text) == "### One\n\n#### Under\n\ntext\n\n##### Three"
    assert contained("#### Four\n\n##### Five") == "#### Four\n\n##### Five"
    assert contained("# 1\n##### 5") == "### 1\n###### 5"


def test_what_a_part_leaves_open_is_closed() -> None:
    assert contained("~~~ sh\nls") == "~~~ sh\nls\n~~~"
    assert contained("```\nls\n```") == "```\nls\n```"
    assert contained("<!-- note") == "<!-- note\n-->"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("The ferry ran aground. Nobody looked.", "The ferry ran aground. Nobody looked."),
        ("intro\n\n# Tides\n\nmore", "Tides"),
        ("word " * 100, "word " * 15 + "word…"),
        ("```\nonly code\n```", "``` only code ```"),
        ("\u202edetrevni", "detrevni"),
        ("\u200b\u2060", UNTITLED),
        ("灯" * 200, "灯" * 79 + "…"),
    ],
)
def test_a_memory_without_a_title_is_called_after_what_it_says(text: str, title: str) -> None:
    assert title_of(read_memory(text), text) == title


@pytest.mark.parametrize(
    "title", ["a # b", "# x", "*x*", "[a](b)", "x #", "<b>", "a_b_c", "1. x", "- x", "> x", "&amp;"]
)
def test_a_title_with_marks_reads_as_it_is(title: str) -> None:
    (section, *_) = Outline(body_of(title, TOLD)).sections
    assert (section.level, section.title) == (1, title)


def test_fields_that_no_file_can_hold_are_refused() -> None:
    with pytest.raises(UsageError, match="64 KiB"):
        replace(DRAFT, tags=["x" * 70_000]).raw()


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(["# h", "Under\n===", "```", "~~~", "- a", "> q", "<!--", "-->", "", "tëxt"]), max_size=8)
)
def test_parts_of_any_lines_stay_apart(lines: list[str]) -> None:
    text = "\n".join([*lines, "end"])
    told = replace(TOLD, context=text, outcome=text)
    assert reads_as_meant("Lamps", told, text)
    assert fences_of(body_of("Lamps", told, text))[-1].content == f"{text}\n"
