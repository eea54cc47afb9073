"""The fast outline says what markdown-it says, or nothing; fixtures are in tests/fixtures/outline.md."""

from __future__ import annotations

import json
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from notebook_sync.files.inline import links_and_tags
from notebook_sync.files.outline import Outline, outline, read, scan
from notebook_sync.files.parse import parse
from notebook_sync.files.prose import summary_of

FIXTURES = Path(__file__).parent.parent / "fixtures" / "outline.md"

# What a block can begin with, and what can stand in its way; joined at random they make the documents nobody writes.
LINES = (
    "# h", "## two ##", "#tag x", "#5", "   # i", "    # code", "\t# tabbed", "- item", "- ", "-", "* a", "*", "+ p",
    "1. one", "1) x", "10. ten", "  cont", "    deep #t", "      deeper [[L]]", "> quote", "> # q", ">", "> ```",
    "```", "```py", "``` `x`", "~~~", "````", "  ```", "- ```", "   ~~~", "<div>", "</div>", "<!-- c", "-->",
    "<!-- x --> #y", " <!-- z", "<b>i</b>", "<pre>", "<?x", "<a href='#q'>", " <p>", "===", "---", "--", "- - -",
    "***", "___", "=", "|-", "text", " text", "more text #tag", "a | b", "|a|b|", "--|--", "|---|---|", "[x]: /u",
    "[x]: u.md 'title'", "  [y]: z.md", "[t](a.md) [[W|w]] `c #no`", "`open", "close` #yes", "**b** _i_",
    "![i](p.png)", "[![b](x)](y.md)", "\\# esc", "\\`#t`", "", "", "", "", " ", "\t", "#\t", "####### seven",
    "*emph* start", "_x_", "**bold", "a\\", "&amp; &#35;x", "1986. year", "  - nested", "\x0b", "\u00a0",
    "# \u00a0x#\u00a0", "| x", "word\x00 #a", "-\t[[tab]]", "-     #five", "2*3*4", "snake_case_x", "~~s~~",
)  # fmt: skip
documents = st.builds(
    lambda lines, ending, last: ending.join(lines) + last * ending,
    st.lists(st.sampled_from(LINES), max_size=10),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.integers(0, 1),
)
characters = st.text(alphabet="#`~<>!-=*_+.)([]|1 \t\n\r\x00\\a", max_size=60)


def meaning(text: str, structure: Outline) -> tuple[object, ...]:
    """All that notes take from an outline. Ranges of code may differ where nothing in them could be mistaken."""
    fences = [(fence.info, fence.code) for fence in structure.fences]
    found = links_and_tags(text, structure.hidden)
    return structure.headings, fences[:1], found, summary_of(text, structure)


@settings(deadline=None)
@given(documents | characters)
@example("[\nfoo\n]: /url\nbar\n")
@example("[a\\]]: b\n\n[Foo\n  bar]: /url\n\n[Baz][Foo bar]\n")
@example("<!-- a --> #b\n# c\n")
@example("text\n\x0b\n-\n")
@example("```\ncode\n\t")
@example("> bar\n>\nbaz\n")
@example("    aaa\nbbb\n")
@example("![i](p.png)\n> q\na | b")
def test_the_fast_outline_is_markdown_its_or_none(text: str) -> None:
    fast = scan(text)
    if fast is not None:
        assert meaning(text, fast) == meaning(text, read(text))


def test_plain_notes_take_the_fast_way() -> None:
    text = (
        "# A\n\nProse with `code` and [[a link]].\n\n- one\n- two\n  more\n\n```py\n# x\n```\n\n| a | b |\n|---|---|\n"
    )
    assert scan(text) is not None


@settings(deadline=None)
@given(documents | characters)
def test_sections_nest(text: str) -> None:
    note = parse("pages/a.md", text.encode())
    for before, section in pairwise(note.sections):
        assert before.start < section.start
        assert before.line < section.line
        if section.level > before.level:
            assert section.end <= before.end
        else:
            assert before.end <= section.start
    assert all(section.end <= len(note.content) for section in note.sections)
    assert len({section.anchor for section in note.sections}) == len(note.sections)


def fixtures() -> list[tuple[str, str, str]]:
    parts = re.split(r"(?m)^\.\n", FIXTURES.read_text())
    titles = [part.strip().splitlines()[-1] for part in parts[:-1:3]]
    return list(zip(titles, parts[1::3], parts[2::3], strict=True))


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("text", "expected"), [f[1:] for f in fixtures()], ids=[f[0] for f in fixtures()])
def test_fixture(text: str, expected: str, newline: str) -> None:
    note = parse("pages/a.md", text.replace("→", "\t").replace("\n", newline).encode())
    told = [f"{s.level} {s.line} {s.anchor} | {s.heading}\n" for s in note.sections]
    assert "".join(told) == expected
    for section in note.sections:
        assert section.line == note.content.count("\n", 0, section.start) + 1


def commonmark_examples() -> list[str]:
    """The examples of the CommonMark specification, from the file that an npm package of them ships."""
    place = os.environ.get("NOTEBOOK_TEST_COMMONMARK")
    return [each["markdown"] for each in json.loads(Path(place).read_text())] if place else []


@pytest.mark.skipif(not os.environ.get("NOTEBOOK_TEST_COMMONMARK"), reason="NOTEBOOK_TEST_COMMONMARK names no file")
def test_the_fast_outline_agrees_on_every_commonmark_example() -> None:
    examples = [text.replace("→", "\t") for text in commonmark_examples()]
    assert len(examples) > 600
    differing = []
    for text in examples:
        fast = scan(text)
        if fast is not None and meaning(text, fast) != meaning(text, read(text)):
            differing.append(text)
    assert differing == []


def test_a_lone_return_ends_a_line_as_in_markdown() -> None:
    assert [heading.line for heading in outline("a\r# b\r\n# c\n").headings] == [2, 3]
