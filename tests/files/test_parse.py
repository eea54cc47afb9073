"""Bytes → Note, field by field as the notebook's format describes them, and whatever the bytes."""

import json
import re
from datetime import UTC, date, datetime
from hashlib import sha256
from itertools import pairwise
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from notebook_sync.files.fields import KINDS, RelationType
from notebook_sync.files.page import shorten
from notebook_sync.files.parse import parse
from notebook_sync.model import FactLine, Link, Note, Section

LINES = (
    "# Harbour", "## Today", "Setext", "======", "---", "- one", "  continued", "1. first", "> quote", "```", "~~~",
    "<!-- a -->", "<!-- open", "-->", "<div>", "%%", "%% x %%", "| a | b |", "|---|---|", "[x]: /u", "[[Link#a|b]]",
    "text #tag", "`code` \\n- x", "é 漢字 👩‍🚀", "\ufeff", "\x0b", "\0", "    code", "", "", "", "\t", "key: value",
)  # fmt: skip
documents = st.lists(st.sampled_from(LINES), max_size=14).map("\n".join)


def note(text: str, path: str = "pages/plan.md") -> Note:
    return parse(path, text.encode(), timezone=UTC)


def with_fields(*lines: str, path: str = "pages/plan.md", body: str = "# Ferry\n") -> Note:
    return note("\n".join(("---", *lines, "---", "")) + body, path)


def problems(read: Note) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in read.problems]


def test_a_whole_note() -> None:
    raw = (
        b"---\r\nid: plan-7\r\ntitle: The plan\r\ntags: [alpha, '#beta', 1.10]\r\nstatus: in_progress\r\n"
        b"created_by: agent:scribe\r\ncreated_at: 2026-02-18T10:30:00Z\r\npriority: 3\r\naliases: [P, Plan B]\r\n"
        b"---\r\n"
        b"# Heading\r\n\r\nFirst *paragraph*\r\nof prose.\r\n\r\n## Part\r\n\r\nSee [[Other#part|it]] #gamma #alpha\r\n"
    )
    read = parse("pages/plan.md", raw, timezone=UTC)
    content = raw.partition(b"---\r\n")[2].partition(b"---\r\n")[2].decode()
    assert read == Note(
        path="pages/plan.md",
        collection="pages",
        wanted_id="plan-7",
        has_own_id=True,
        digest=sha256(raw).hexdigest(),
        title="The plan",
        summary="First paragraph of prose.",
        content=content,
        sections=(
            Section("Heading", 1, "heading", 11, 0, len(content)),
            Section("Part", 2, "part", 16, content.index("## Part"), len(content)),
        ),
        extra={"priority": 3},
        created_by="agent:scribe",
        created_at=datetime(2026, 2, 18, 10, 30, tzinfo=UTC),
        tags=("alpha", "beta", "1.10", "gamma"),
        aliases=("P", "Plan B"),
        status="in_progress",
        word_count=12,
        links=(Link("Other", "part", 18),),
    )


def test_defaults() -> None:
    read = note("", "notes/2026 plan.md")
    assert (read.wanted_id, read.has_own_id, read.title, read.summary) == ("notes/2026 plan", False, "2026 plan", "")
    assert (read.created_by, read.created_at, read.status, read.tags) == ("owner", None, "draft", ())
    assert (read.word_count, read.sections, read.collection, read.fields) == (0, (), "pages", {})


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: 1984\n---\n# H", "1984"),
        ("---\ntitle: 2026-02-18 10:30\n---\n", "2026-02-18 10:30"),
        ("---\nTitle: Winter Plan\n---\n", "Winter Plan"),
        ('+++\ntitle = "Boat storage"\n+++\n\n# The boats', "The boats"),
        ("---\ntitle:\n---\n# H", "H"),
        ("---\ntitle: |\n  two\n  lines\n---\n", "two lines"),
        ("# is-map [![Version Badge][1]][2]\n\n[1]: v.svg\n[2]: there.md\n", "is-map"),
        ("# [![Logo][1]][2]\n\n[1]: l.svg\n[2]: there.md\n", "Logo"),
        ("## Two\n\n# *One*\n", "One"),
        ("# \n\nOne\n===\n", "One"),
        ("\ufeff# One\n", "One"),
        ("# Plan %% of mine %%\n", "Plan"),
        ("## Two\n", "plan"),
    ],
)
def test_title(text: str, title: str) -> None:
    assert note(text).title == title


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("---\nsummary: Given\n---\ntext", "Given"),
        ("[![npm][a]][b] [![x](y)](z)\n![p][a]\n\nWhat it is.\n\n[a]: a.svg\n[b]: there.md\n", "What it is."),
        ("[not a link] and ![not a picture]\n", "[not a link] and ![not a picture]"),
        (
            "# H\n- list\n\n> quote\n\n```\ncode\n```\n<div>html</div>\n\n| a |\n|---|\n\n---\nProse\nhere.\n\nMore",
            "Prose here.",
        ),
        ("![logo](x.png)\n\n![s](data:image/png;base64,AAAA)\n\nProse", "Prose"),
        (
            "**Bold** [link](x.md), [[Wiki|shown]], `a*b`, <b>tag</b>, snake_case &amp; \\*",
            "Bold link, shown, a*b, tag, snake_case & *",
        ),
        ("%% hidden %%\n\nShown %% hidden %% too.", "Shown too."),
        ("Intro:\n- one\n- two", "Intro:"),
        ("- list only", ""),
        ("    code\n\n<!-- comment -->\n", ""),
        ("word " * 100, "word " * 39 + "word…"),
    ],
)
def test_summary(text: str, summary: str) -> None:
    assert note(text).summary == summary


@pytest.mark.parametrize(
    ("words", "limit", "short"),
    [("x" * 300, 200, "x" * 199 + "…"), ("ab cd, efgh", 8, "ab cd…"), ("ab cd efgh", 6, "ab cd…"), ("ab", 2, "ab")],
)
def test_a_text_is_cut_at_a_word(words: str, limit: int, short: str) -> None:
    assert shorten(words, limit) == short


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("tags: a, b,,#c a", ("a", "b", "c a")),
        ("tags: [a, b, '#c a', ~, a]", ("a", "b", "c a")),
        ("tags:\n- a\n- b\n- c  a", ("a", "b", "c a")),
        ("tags: ferry winter", ("ferry", "winter")),
        ("Tags: '#ferry #winter'", ("ferry", "winter")),
        ("tag: ferry", ("ferry",)),
        ("tags: [a]\ntag: b", ("a",)),
        ("tags:", ()),
    ],
)
def test_tags_as_other_tools_write_them(line: str, tags: tuple[str, ...]) -> None:
    read = with_fields(line)
    assert (read.tags, read.problems) == (tags, ())


def test_a_notebook_of_other_tools_has_no_false_findings() -> None:
    read = with_fields(
        "aliases: [Plan B, '#7']", "cssclasses: wide", "status: Seedling", "id: 202605241530", "date: 2026-05-24",
        "rating: 1.50", "up: '[[Home]]'", "publish: true", "status2: [a]", "kind: idea",
        body="> [!note] Callout ^b1\n\n[[#Own]] ![[scan.png]] %%\n[[no]]\n%%\n- [-] x [due:: 2026-01-01]\n\n$\\nu$\n",
    )  # fmt: skip
    assert problems(read) == []
    assert (read.status, read.wanted_id, read.aliases) == ("Seedling", "202605241530", ("Plan B", "#7"))
    assert (read.extra["date"], read.extra["rating"], read.extra["publish"]) == (date(2026, 5, 24), "1.50", True)
    assert [(link.target, link.fragment, link.kind) for link in read.links] == [
        ("", "Own", "wiki"),
        ("scan.png", "", "embed"),
    ]


@pytest.mark.parametrize(("given", "status"), [("Draft", "draft"), ("In progress", "in_progress"), ("done", "done")])
def test_a_status_is_read_however_it_is_written(given: str, status: str) -> None:
    assert with_fields(f"status: {given}").status == status


@pytest.mark.parametrize(
    ("line", "path", "reason"),
    [
        ("tags: {a: b}", "pages/a.md", "tags: must be a list"),
        ("tags: [a, [b]]", "pages/a.md", "tags: must be a list"),
        ("Title: [a]", "pages/a.md", "Title: must be text"),
        ("id: ' '", "pages/a.md", "id: must have 1 to 512"),
        (f"id: {'x' * 513}", "pages/a.md", "id: must have 1 to 512"),
        ('id: "a\\nb"', "pages/a.md", "id: must have 1 to 512"),
        ("id: plan.md", "pages/a.md", "id: .* not end in .md"),
        ("id: runtime/reminders", "pages/a.md", "id: must not be that of one of the owner's files"),
        ("created_at: yesterday", "pages/a.md", "created_at: must be a date"),
        ("created_at: 2026-02-30", "pages/a.md", "created_at: must be a date"),
        ("created_at: 1234567890", "pages/a.md", "created_at: must be a date"),
        ("created_at: []", "pages/a.md", "created_at: must be a date"),
        ("confidence: high", "research_notes/a.md", "confidence: must be a number from 0 to 1"),
        ("confidence: 1.5", "research_notes/a.md", "confidence: must be a number from 0 to 1"),
        ("confidence: true", "research_notes/a.md", "confidence: must be a number from 0 to 1"),
        ("key_findings: [a: b]", "research_notes/a.md", "key_findings: must be a list"),
        ("priority: high", "memories/a.md", "priority: must be a number from 1 to 10"),
        ("priority: nan", "memories/a.md", "priority: must be a number from 1 to 10"),
        ("priority: [1]", "memories/a.md", "priority: must be a number from 1 to 10"),
        ("kind: hunch", "memories/a.md", f"kind: must be one of {', '.join(KINDS)}"),
        ("domain: {a: b}", "memories/a.md", "domain: must be text"),
        ("needs_review: maybe", "memories/a.md", "needs_review: must be true or false"),
        ("relations: pier", "memories/a.md", "relations: must be a list of links"),
    ],
)
def test_a_wrong_field_is_a_problem_with_its_line_and_is_kept(line: str, path: str, reason: str) -> None:
    read, plain = (with_fields("other: 1", *lines, path=path, body="Text.\n") for lines in ([line], []))
    ((number, message),) = problems(read)
    assert number == 3
    assert re.match(reason, message)
    assert set(read.extra) == {"other", line.partition(":")[0]}
    differing = {"digest", "problems", "extra"}
    assert {k: v for k, v in asdict(read).items() if k not in differing} == {
        k: v for k, v in asdict(plain).items() if k not in differing
    }


@pytest.mark.parametrize(
    ("given", "hour"),
    [("2026-05-24 09:30", 16), ("2026-05-24", 7), ("'2026-05-24T09:30:00Z'", 9), ("2026-05-24T09:30:00+02:00", 7)],
)
def test_created_at_is_in_the_time_of_the_notebook(given: str, hour: int) -> None:
    raw = f"---\ncreated_at: {given}\n---\n".encode()
    created = parse("pages/a.md", raw, timezone=ZoneInfo("America/Los_Angeles")).created_at
    assert created is not None
    assert (created.date(), created.hour) == (date(2026, 5, 24), hour)


@pytest.mark.parametrize(
    ("text", "code", "summary", "fields"),
    [
        ("# H\n\n```py title=x\r\nprint(1)\n\n```\n~~~sh\nno\n~~~\n", "print(1)\n\n", "print(1)", {"language": "py"}),
        (
            "---\nlanguage: Python\ndescription: Says 1\nrelated_page: pages/x\n---\n- ~~~\n  a\n  ~~~\n",
            "a\n",
            "Says 1",
            {"language": "Python", "description": "Says 1", "related_page": "pages/x"},
        ),
        ("no code", None, "no code", {}),
        (
            "# H\n\n```py\ndef load():\n    pass\n```\n",
            "def load():\n    pass\n",
            "def load(): pass",
            {"language": "py"},
        ),
        ("It loads.\n\n```py\n1\n```\n", "1\n", "It loads.", {"language": "py"}),
    ],
)
def test_code_snippets(text: str, code: str | None, summary: str, fields: dict[str, str]) -> None:
    read = note(text, "code_snippets/a.md")
    assert (read.code, read.summary) == (code, summary)
    assert read.fields == {"language": None, "description": None, "related_page": None, **fields}


def test_code_is_cut_in_a_summary_and_is_none_of_other_notes() -> None:
    assert len(note(f"```py\n{'load ' * 99}\n```\n", "code_snippets/a.md").summary) <= 200
    assert note("```py\n1\n```\n").code is None
    assert with_fields("language: de").extra == {"language": "de"}


def test_research_notes() -> None:
    given = ("source_url: https://x.y", "key_findings: [one, 2.50]", "confidence: .5", "related_pages: pages/x")
    assert with_fields(*given, path="research_notes/a.md", body="## Key findings\n- no\n").fields == {
        "source_url": "https://x.y",
        "key_findings": ["one", "2.50"],
        "confidence": 0.5,
        "related_pages": ["pages/x"],
    }
    text = (
        "- no\n\n## KEY Findings\n\nIntro\n\n- **one**\n  goes on\n\n  - nested\n\n  second paragraph\n* [two](x)\n"
        "\n## Else\n\n- no\n"
    )
    assert note(text, "research_notes/a.md").fields["key_findings"] == ["one goes on", "two"]


def test_private_notes() -> None:
    fields = ("topic: gate", "session_id: s1", "provenance: task", "confidence: 0.8")
    read = with_fields(*fields, path="channels/scribe/global/a.md")
    assert read.fields == {"topic": "gate", "session_id": "s1", "confidence": 0.8}
    assert read.extra == {"provenance": "task"}


LINK = {"type": "causes", "to": "pier", "confidence": 1.0, "reasoning": "", "source": "", "synthesis_id": ""}


def memory(*lines: str, path: str = "memories/ferry.md", body: str = "# Ferry\n") -> Note:
    return with_fields(*lines, path=path, body=body)


def test_a_memory() -> None:
    bare = {"kind": None, "domain": None, "agent": None, "priority": 7, "relations": [], "needs_review": False}
    assert memory().fields == {**bare, "missing": ["context", "reasoning", "outcome"]}
    assert memory("kind:", "priority:", "relations:").fields == memory().fields
    read = memory(
        "kind: Decision", "domain: harbour  tides", "agent: agent:odile", "priority: 3", "needs_review: true",
        "relations:",
        "  - {type: Causes, to: pier, confidence: 0.5, reasoning: 'So: it was full.', source: ines, synthesis_id: s1}",
        "  - type: similar", "    to: 12",
    )  # fmt: skip
    assert read.fields == {
        "kind": "decision",
        "domain": "harbour tides",
        "agent": "odile",
        "priority": 3,
        "needs_review": True,
        "missing": ["context", "reasoning", "outcome"],
        "relations": [
            {**LINK, "confidence": 0.5, "reasoning": "So: it was full.", "source": "ines", "synthesis_id": "s1"},
            {**LINK, "type": "similar", "to": "12"},
        ],
    }
    assert (read.problems, read.extra) == ((), {})


@pytest.mark.parametrize(
    ("path", "kind"),
    [("memories/decision/2026/a.md", "decision"), ("memories/decision.md", None), ("memories/x/decision/a.md", None)],
)
def test_the_folder_of_a_memory_gives_its_kind(path: str, kind: str | None) -> None:
    assert memory(path=path).fields["kind"] == kind
    assert memory("kind: insight", path=path).fields["kind"] == "insight"


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
def test_the_agent_of_a_memory(lines: tuple[str, ...], agent: str | None) -> None:
    assert memory(*lines).fields["agent"] == agent


@pytest.mark.parametrize(
    ("given", "priority"), [("1", 1), ("10", 10), ("0", 1), ("-3", 1), ("11", 10), ("7.6", 8), ("'4'", 4)]
)
def test_a_priority_is_held_between_1_and_10(given: str, priority: int) -> None:
    read = memory(f"priority: {given}")
    assert (read.fields["priority"], read.problems) == (priority, ())


@pytest.mark.parametrize("relation", get_args(RelationType))
def test_every_relation_is_read(relation: str) -> None:
    assert memory(f"relations: [{{type: {relation}, to: pier}}]").fields["relations"] == [{**LINK, "type": relation}]


@pytest.mark.parametrize(
    "entry",
    ["pier", "[causes, pier]", "~", "{to: pier}", "{type: knows, to: pier}", "{type: causes}",
     "{type: causes, to: ' '}", "{type: causes, to: pier, confidence: sure}", "{type: causes, to: pier, confidence: 2}",
     "{type: SIMILAR, to: buoy}"],
)  # fmt: skip
def test_a_link_that_is_wrong_is_left_out_with_a_problem(entry: str) -> None:
    read = memory("relations:", "  - {type: similar, to: buoy}", f"  - {entry}", "  - {type: causes, to: x}")
    assert [(link["type"], link["to"]) for link in read.fields["relations"]] == [("similar", "buoy"), ("causes", "x")]
    ((line, message),) = problems(read)
    assert (line, message[:20], len(read.extra["relations"])) == (2, "relations: entry 2: ", 1)


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ("## Context\nFog.\n## Reasoning\nNear.\n## Outcome\nIt holds.\n", []),
        ("# REASONING:\nNear.\n\nContext\n-------\nFog.\n", ["outcome"]),
        ("## Context\n### Why\nFog.\n## Reasoning\n## Outcome\n\n", ["reasoning", "outcome"]),
        ("## Context\n## Context\nFog.\n", ["reasoning", "outcome"]),
        ("```\n## Context\nFog.\n```\n## Contexts\nFog.\n", ["context", "reasoning", "outcome"]),
        ("# harbour tides\n" * 15_000 + "# Outcome\nIt holds.\n", ["context", "reasoning"]),
    ],
)
def test_the_parts_of_a_memory_that_no_heading_with_a_text_has(body: str, missing: list[str]) -> None:
    assert memory(body=body).fields["missing"] == missing


@pytest.mark.parametrize("value", ["ф" * 5_000, "🛶", "{{7*7}}", "'; DROP TABLE note; --", "a: [b]", "$ne"])
def test_any_text_is_data(value: str) -> None:
    quoted = json.dumps(value, ensure_ascii=False)
    read = memory(f"domain: {quoted}", f"agent: {quoted}", f"relations: [{{type: causes, to: {quoted}}}]")
    assert (read.fields["domain"], read.fields["agent"], read.fields["relations"][0]["to"]) == (value, value, value)


def test_facts_are_read_from_their_folder_and_not_from_copies() -> None:
    text = "## Key Topics\n\n- The toll is ten crowns <!-- importance: high -->\n"
    fact = FactLine("6f2e5c1a", "The toll is ten crowns", "Key Topics", 3, 0.7)
    (read,) = note(text, "facts/notes.md").facts
    assert read._replace(id=fact.id) == fact
    for path in ("pages/a.md", "facts/notes.sync-conflict-20261120-093012-ABCD123.md"):
        assert note(text, path).facts == ()


def test_broken_frontmatter_does_not_hide_the_text() -> None:
    read = note("---\ntitle: [\n---\n# Still here\n")
    assert (read.title, read.content, read.broken) == ("Still here", "# Still here\n", True)
    assert ([problem.line for problem in read.problems], read.sections[0].line) == ([3], 4)
    read = note("---\ntitle: x\n\n# Still here\n")
    assert (read.content, read.title) == ("---\ntitle: x\n\n# Still here\n", "Still here")


@pytest.mark.parametrize(
    ("raw", "line", "severe", "reason"),
    [
        (b"# A\n\nok\nbad \xff here\n", 4, True, "not UTF-8"),
        (b"# A\n\n\0\n", 3, True, "a NUL byte"),
        (b"---\ntitle: {{title}}\n---\n# {{title}}\n", 2, False, "frontmatter is not read: it is a template"),
        (b"# Plan\\n\\n- one\\n- two", 1, False, "it says \\n"),
        (b"---\na: 1\n---\nOne\\n- two\n\n`\\n- x`\n", 4, False, "it says \\n"),
        (b"## A\n\n<<<<<<< HEAD\n", 3, False, "a mark of a merge conflict"),
        (b"---\na: 1\ntags: #ferry #winter\n---\n", 3, False, "tags: what follows # is a comment"),
    ],
)
def test_what_is_hardly_meant_so_is_reported(raw: bytes, line: int, severe: bool, reason: str) -> None:
    (problem,) = parse("pages/a.md", raw, timezone=UTC).problems
    assert (problem.line, problem.severe, problem.message[: len(reason)]) == (line, severe, reason)


def test_invalid_utf_8_is_kept_with_replacement_characters() -> None:
    read = parse("pages/a.md", b"# A\n\nbad \xff here\n\n## B \xc3\n", timezone=UTC)
    assert read.content == "# A\n\nbad \ufffd here\n\n## B \ufffd\n"


@pytest.mark.parametrize("text", ["```\n\\n- x\n```\n", "$\\nabla$ C:\\notes\\new", "`a\\n\\nb`", "tags: # sorted\n"])
def test_a_backslash_before_an_n_is_often_meant(text: str) -> None:
    assert note(text).problems == ()


def test_words_are_counted_in_every_script() -> None:
    assert note("Don't count 3 words – über 東京 twice").word_count == 9


@given(documents)
def test_sections_nest(text: str) -> None:
    read = note(text)
    for before, section in pairwise(read.sections):
        assert before.start < section.start
        assert before.line < section.line
        assert section.end <= before.end if section.level > before.level else before.end <= section.start
    assert all(section.end <= len(read.content) for section in read.sections)
    assert len({section.anchor for section in read.sections}) == len(read.sections)


@given(
    st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | documents.map(str.encode),
    st.sampled_from(["pages", "research_notes", "code_snippets", "memories", "facts", "channels", ""]),
)
def test_no_bytes_make_it_raise(raw: bytes, collection: str) -> None:
    for whole in (raw, b"---\n" + raw + b"\n---\n# h\n"):
        read = parse(f"{collection}/a.md".lstrip("/"), whole, timezone=UTC)
        assert read == parse(read.path, whole, timezone=UTC)
        json.dumps({**asdict(read), "problems": []}, default=date.isoformat, allow_nan=False).encode()


# Each of these makes some reader of Markdown or YAML quadratic, recurse, or worse; here they are just read.
HOSTILE: dict[str, Any] = {
    "open links": "[[" * 100_000,
    "brackets": "[" * 200_000,
    "half links": "[a](" * 50_000,
    "half titles": '[a](b "' * 30_000,
    "images": "![" * 100_000,
    "definitions": "[a]: <" * 30_000,
    "backticks": "`" * 200_000,
    "growing backticks": " ".join("`" * n for n in range(600)),
    "html lines": "<a\n" * 15_000,
    "comments": "<!--" * 50_000,
    "comment lines": "<!-- x -->\n" * 10_000,
    "percent comments": "%% [[a]] %% #b\n" * 10_000,
    "stars": "*" * 200_000,
    "emphasis": "*a **a " * 30_000,
    "heading of stars": "# " + "*a" * 50_000,
    "headings": "# a\n" * 15_000,
    "hashes": "#" * 200_000,
    "setext": "a\n---\n" * 10_000,
    "open fences": "".join(f"{'`' * (n % 50 + 3)}\n" for n in range(25_000)),
    "quotes": ">" * 50_000,
    "deep list": "\n".join("  " * n + "- a" for n in range(500)),
    "deep list above blank lines": "\n".join("  " * n + "- a" for n in range(500)) + "\n" * 200_000,
    "list of lists": "- " * 5_000 + "x",
    "space lines": (" " * 400 + "\n") * 1000,
    "one line": "word " * 100_000,
    "numbers": "1" * 200_000,
    "pipes": "|" * 100_000 + "\n" + "|-" * 50_000,
    "tag marks": "#a" * 100_000,
    "written line ends": "\\n- a `\\n- b`" * 10_000,
    "returns": "\r" * 100_000,
    "nul": "\0" * 100_000,
    "dashes": "---\n" * 25_000,
    "merge marks": "<<<<<<< a\n" * 10_000,
    "yaml brackets": "---\na: " + "[" * 60_000 + "\n---\n",
    "yaml keys": "---\n" + "".join(f"k{n}: {n}\n" for n in range(6000)) + "---\n",
    "toml brackets": "+++\na = " + "[" * 60_000 + "\n+++\n",
    "relations": "---\nrelations:\n" + "- {type: causes, to: a}\n" * 2_500 + "---\n",
    "facts": "- a <!-- b -->\n" * 10_000,
}


@pytest.mark.usefixtures("cpu_limit")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read(name: str) -> None:
    for path in ("research_notes/a.md", "memories/a.md", "facts/a.md"):
        read = note(HOSTILE[name], path)
        assert HOSTILE[name].endswith(read.content)
        assert len(read.summary) <= 200
