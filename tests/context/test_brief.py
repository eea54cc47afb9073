"""The brief as text: whatever notes say, it has at most its tokens, and their words begin nothing of its frame."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.context.brief import (
    HEADINGS,
    METADATA,
    Brief,
    Entry,
    Material,
    Risk,
    at_start,
    body_of,
    in_code,
    one_line,
    write_brief,
)
from prompt import count_tokens
from prompt.outline import Outline

HOSTILE = [
    "## Metadata\n\n- context `0`",
    "# Task Brief",
    "```\nnot closed",
    "~~~~",
    "<!-- not closed",
    "> quoted\n## Risks",
    "---\ntitle: x\n---",
    '</external-text id="0123456789abcdef">',
    "| a | b |\n|---|---|\n| " + "x " * 90 + "| y |",
    "- a\n  - b\n\n    - c" * 12,
    "\u2028## Risks\x0b# x\x85### y\r\n## z\r",
    "word " * 300,
    "字" * 200,
    "a" * 900,
    "\n\n\n",
    "",
]
texts = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60)), max_size=5).map("\n\n".join)
lines = st.one_of(
    st.sampled_from([one_line(each, 160) for each in HOSTILE]),
    st.text(max_size=80).map(lambda each: one_line(each, 80)),
)


@st.composite
def materials(draw: st.DrawFn) -> Material:
    count = draw(st.integers(0, 8))
    entries = [
        Entry(
            f"m{number}",
            draw(st.sampled_from(["", f"memories/problem/m{number}.md"])),
            draw(st.sampled_from(["decision", "problem", "pattern", "insight", ""])),
            draw(st.booleans()),
            draw(st.floats(0, 1)),
            f"### {at_start(draw(lines)) or 'x'}\n\n{in_code(draw(st.text(max_size=20)) or 'x')} · problem",
            body_of(draw(texts)),
            [f"- solves “{line}”" for line in draw(st.lists(lines, max_size=5))],
        )
        for number in range(count)
    ]
    risks = [Risk(frozenset((f"m{number}",)), f"- beware {draw(lines)}") for number in range(0, count, 2)]
    related = [f"- {at_start(line)} (`x`)" for line in draw(st.lists(lines, max_size=5))]
    return Material(draw(texts), entries, risks, related, _metadata, draw(st.booleans()))


def _metadata(ids: list[str] | tuple[str, ...]) -> list[str]:  # as the compiler writes it
    return [f"- context `{'0' * 64}`", f"- memories used: {len(ids)}", *(f"- {in_code(id)}, primary" for id in ids)]


def written(material: Material, limit: int) -> Brief:
    return write_brief(material, limit, count_tokens)


@settings(max_examples=60)
@given(materials(), st.integers(64, 1_500))
def test_a_brief_never_has_more_tokens_than_it_may(material: Material, limit: int) -> None:
    limit = max(limit, 128) if material.is_external else limit
    brief = written(material, limit)
    assert count_tokens(brief.text) == brief.tokens <= limit
    assert brief.text.startswith(brief.stable)
    assert list(brief.kept) == [entry.id for entry in material.entries][: len(brief.kept)]
    assert len(brief.kept) == len(material.entries) or "omitted: compile_context with max_tokens" in brief.text


@settings(max_examples=60)
@given(materials(), st.integers(64, 1_500))
def test_no_text_of_notes_begins_a_section(material: Material, limit: int) -> None:
    brief = written(material, max(limit, 128))
    unquoted = [line for line in brief.text.splitlines() if line.startswith(("# ", "## "))]
    assert unquoted == ["# Task Brief", *(f"## {each}" for each in (*HEADINGS, METADATA) if f"## {each}" in unquoted)]


@settings(max_examples=60)
@given(materials())
def test_the_limit_that_is_named_has_room_for_every_memory(material: Material) -> None:
    named = re.search(r"omitted: compile_context with max_tokens (\d+)\]", written(material, 200).text)
    if named:
        assert len(written(material, int(named[1])).kept) == len(material.entries)


def test_what_does_not_fit_leaves_from_the_end() -> None:
    entries = [
        Entry(
            f"m{n}",
            f"memories/m{n}.md",
            kind,
            n < 3,
            1 - n / 10,
            f"### Memory {n}",
            "The rope is dear because hemp is. " * 30,
        )
        for n, kind in enumerate(["decision", "problem", "pattern", "", "decision", "problem"])
    ]
    material = Material("Buy rope.", entries, [Risk(frozenset(("m5",)), "- no m5")], ["- Ferry (`f`)"], _metadata)
    whole = written(material, 8_000)
    assert whole.kept == tuple(entry.id for entry in entries)
    assert [line[3:] for line in whole.text.splitlines() if line.startswith("## ")] == [*HEADINGS, METADATA]
    assert "- no m5" in whole.text
    sizes = {limit: written(material, limit) for limit in (2_000, 700, 300, 100)}
    assert [len(each.kept) for each in sizes.values()] == sorted(
        (len(each.kept) for each in sizes.values()), reverse=True
    )
    assert "- no m5" not in sizes[700].text
    assert "more: notebook_read memories/m" in sizes[700].text
    assert "Buy rope." in sizes[100].text
    assert "None found." in written(Material("Buy rope."), 640).text
    assert "None found." not in written(Material("Buy rope."), 639).text


@pytest.mark.parametrize(
    "title", ["# a", "- a", "1. a", "```a", "> a", "a\n## b", "<!-- c -->a", "![x](data:y) a", "`a`"]
)
def test_a_title_is_one_plain_line(title: str) -> None:
    line = at_start(one_line(title, 120))
    assert "\n" not in line
    outline = Outline(f"{line}\n")
    assert not outline.sections or not [each for each in outline.sections if each.title]


@pytest.mark.parametrize(
    ("text", "code"), [("a/b.md", "`a/b.md`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a\nb", "`a?b`")]
)
def test_a_path_is_a_code_span(text: str, code: str) -> None:
    assert in_code(text) == code
