"""What the frontmatter of a memory says."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from notebook_sync.files.memories import HIGHEST_PRIORITY, KINDS, RELATIONS, parts_missing
from notebook_sync.files.note import Note
from notebook_sync.files.parse import parse
from prompt.outline import Outline

LINK = {"type": "causes", "to": "pier", "confidence": 1.0, "reasoning": "", "source": "", "synthesis_id": ""}


def read(*lines: str, path: str = "memories/ferry.md", body: str = "# Ferry\n") -> Note:
    frontmatter = "\n".join(("---", *lines, "---", "")) if lines else ""
    return parse(path, (frontmatter + body).encode())


def problems(note: Note) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in note.problems]


def test_a_memory_that_says_nothing_of_itself_has_what_every_memory_has() -> None:
    note = read()
    assert note.fields == {
        "kind": None,
        "domain": None,
        "agent": None,
        "priority": 7,
        "relations": [],
        "needs_review": False,
        "missing": ["context", "reasoning", "outcome"],
    }
    assert note.problems == ()


def test_what_it_says_is_read() -> None:
    note = read(
        "kind: Decision",
        "domain: harbour  tides",
        "agent: agent:odile",
        "priority: 3",
        "needs_review: true",
        "relations:",
        "  - {type: Causes, to: pier, confidence: 0.5, reasoning: 'So: it was full.', source: ines, synthesis_id: s1}",
        "  - type: similar",
        "    to: buoy",
    )
    assert note.fields == {
        "kind": "decision",
        "domain": "harbour tides",
        "agent": "odile",
        "priority": 3,
        "needs_review": True,
        "missing": ["context", "reasoning", "outcome"],
        "relations": [
            {**LINK, "confidence": 0.5, "reasoning": "So: it was full.", "source": "ines", "synthesis_id": "s1"},
            {**LINK, "type": "similar", "to": "buoy"},
        ],
    }
    assert (note.problems, note.extra) == ((), {})


def test_these_are_fields_of_memories_alone() -> None:
    note = read("priority: 3", "kind: decision", path="pages/ferry.md")
    assert (note.fields, note.extra) == ({}, {"priority": 3, "kind": "decision"})


@pytest.mark.parametrize("kind", KINDS)
def test_the_folder_tells_the_kind_where_the_field_does_not(kind: str) -> None:
    assert read(path=f"memories/{kind}/ferry.md").fields["kind"] == kind
    assert read(path=f"memories/{kind}/2026/ferry.md").fields["kind"] == kind
    assert read("kind: insight", path=f"memories/{kind}/ferry.md").fields["kind"] == "insight"


@pytest.mark.parametrize("path", ["memories/decision.md", "memories/unstructured/a.md", "memories/x/decision/a.md"])
def test_no_other_folder_tells_a_kind(path: str) -> None:
    assert read(path=path).fields["kind"] is None


@pytest.mark.parametrize(
    ("lines", "agent"),
    [
        (("agent: odile", "tags: [agent:ines]", "created_by: agent:scribe"), "odile"),
        (("tags: [tides, 'agent:', agent:ines, agent:odile]", "created_by: agent:scribe"), "ines"),
        (("created_by: agent:scribe",), "scribe"),
        (("created_by: owner", "agent: ' '"), None),
        (("agent: 7",), "7"),
    ],
)
def test_who_said_it_is_named_by_the_field_else_a_tag_else_who_made_the_file(
    lines: tuple[str, ...], agent: str | None
) -> None:
    assert read(*lines).fields["agent"] == agent


@pytest.mark.parametrize(
    ("written", "priority"),
    [("1", 1), ("10", 10), ("0", 1), ("-3", 1), ("11", HIGHEST_PRIORITY), ("7.6", 8), ("'4'", 4)],
)
def test_a_priority_is_held_between_1_and_10(written: str, priority: int) -> None:
    note = read(f"priority: {written}")
    assert (note.fields["priority"], note.problems) == (priority, ())


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("priority: high", "priority: must be a number from 1 to 10"),
        ("priority: .nan", "priority: must be a number from 1 to 10"),
        ("priority: .inf", "priority: must be a number from 1 to 10"),
        ("priority: true", "priority: must be a number from 1 to 10"),
        ("priority: [1]", "priority: must be a number from 1 to 10"),
        ("kind: hunch", f"kind: 'hunch' is not one of {', '.join(KINDS)}"),
        ("kind: [decision]", "kind: must be text"),
        ("domain: {a: b}", "domain: must be text"),
        ("needs_review: maybe", "needs_review: must be true or false"),
        ("needs_review: 1", "needs_review: must be true or false"),
        ("relations: pier", "relations: must be a list of links, each with a type and to"),
        ("relations: {type: causes, to: pier}", "relations: must be a list of links, each with a type and to"),
        ("created_at: soon", "created_at: must be a date or time like 2026-02-18 or 2026-02-18T10:30:00Z"),
        ("created_at: 1234567890", "created_at: must be a date or time like 2026-02-18 or 2026-02-18T10:30:00Z"),
        ("created_at: 2026-02-31", "created_at: must be a date or time like 2026-02-18 or 2026-02-18T10:30:00Z"),
        ("created_at: []", "created_at: must be a date or time like 2026-02-18 or 2026-02-18T10:30:00Z"),
    ],
)
def test_a_field_that_is_wrong_is_a_problem_and_what_stands_there_is_kept(line: str, problem: str) -> None:
    note, plain = read("title: Ferry", line), read("title: Ferry")
    assert problems(note) == [(3, problem)]
    assert (note.fields, note.created_at) == (plain.fields, None)
    assert list(note.extra) == [line.partition(":")[0]]


def test_a_field_left_empty_is_as_good_as_none() -> None:
    names = ("kind", "domain", "agent", "priority", "relations", "needs_review", "created_at")
    note = read(*(f"{name}:" for name in names))
    assert (note.fields, note.created_at, note.problems) == (read().fields, None, ())


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_is_read(relation: str) -> None:
    assert read(f"relations: [{{type: {relation}, to: pier}}]").fields["relations"] == [{**LINK, "type": relation}]


@pytest.mark.parametrize(("written", "confidence"), [("2", 1.0), ("-1", 0.0), ("0.25", 0.25), ("", 1.0)])
def test_confidence_is_held_between_0_and_1(written: str, confidence: float) -> None:
    (link,) = read(f"relations: [{{type: causes, to: pier, confidence: {written}}}]").fields["relations"]
    assert link["confidence"] == confidence


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("pier", "a link must name its type and to"),
        ("[causes, pier]", "a link must name its type and to"),
        ("~", "a link must name its type and to"),
        ("{to: pier}", f"the type None is not one of {', '.join(RELATIONS)}"),
        ("{type: knows, to: pier}", f"the type 'knows' is not one of {', '.join(RELATIONS)}"),
        ("{type: causes}", "to must be the id of a memory, as text"),
        ("{type: causes, to: 7}", "to must be the id of a memory, as text"),
        ("{type: causes, to: ' '}", "to must be the id of a memory, as text"),
        ("{type: causes, to: pier, confidence: sure}", "confidence must be a number from 0 to 1"),
        ("{type: causes, to: pier, confidence: true}", "confidence must be a number from 0 to 1"),
        ("{type: causes, to: pier, reasoning: [a]}", "reasoning must be text"),
        ("{type: SIMILAR, to: buoy}", "similar 'buoy' is there twice"),
    ],
)
def test_a_link_that_is_wrong_is_left_out_and_told_with_its_line(entry: str, reason: str) -> None:
    note = read(
        "title: Ferry", "relations:", "  - {type: similar, to: buoy}", f"  - {entry}", "  - {type: causes, to: x}"
    )
    assert [(link["type"], link["to"]) for link in note.fields["relations"]] == [("similar", "buoy"), ("causes", "x")]
    assert problems(note) == [(5, f"relations: {reason}")]
    assert len(note.extra["relations"]) == 1


@pytest.mark.parametrize("value", ["ф" * 5_000, "🛶", "{{7*7}}", "'; DROP TABLE note; --", "a: [b]", "$ne"])
def test_any_text_is_data(value: str) -> None:
    quoted = json.dumps(value, ensure_ascii=False)
    note = read(f"domain: {quoted}", f"agent: {quoted}", f"relations: [{{type: causes, to: {quoted}}}]")
    (link,) = note.fields["relations"]
    assert (note.fields["domain"], note.fields["agent"], link["to"]) == (value, value, value)


def test_its_time_is_read_like_that_of_any_note() -> None:
    assert read("created_at: 2026-02-18").created_at == datetime(2026, 2, 18, tzinfo=UTC)


BODIES = [
    ("## Context\nFog.\n## Reasoning\nNear.\n## Outcome\nIt holds.\n", []),
    ("# REASONING:\nNear.\n\nContext\n-------\nFog.\n", ["outcome"]),
    ("## Context\n### Why\nFog.\n## Reasoning\n## Outcome\n\n", ["reasoning", "outcome"]),
    ("## Context\n## Context\nFog.\n", ["reasoning", "outcome"]),
    ("```\n## Context\nFog.\n```\n## Contexts\nFog.\n", ["context", "reasoning", "outcome"]),
    ("## 灯\n", ["context", "reasoning", "outcome"]),
]


@pytest.mark.parametrize(("body", "missing"), BODIES)
def test_parts_that_it_lacks_are_those_that_no_heading_with_a_text_has(body: str, missing: list[str]) -> None:
    assert read(body=body).fields["missing"] == missing


def test_half_a_million_headings_are_looked_at_once_each() -> None:
    """A file may hold as many. Looked at for each other, they would take longer than a test may."""
    outline = Outline("# a\n" * 500_000 + "# Outcome\nIt holds.\n")
    assert parts_missing(outline) == ["context", "reasoning"]
