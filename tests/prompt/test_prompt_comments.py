"""Comments, expired rules and frontmatter never reach a model; code and everything else does, unchanged."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from prompt.comments import without_hidden
from prompt.gaps import Positions, without

TODAY = date(2026, 2, 26)


def shown(text: str, *, owner: bool = False, today: date = TODAY) -> str:
    return without_hidden(text, keep_grammar=owner, today=today).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## A\n\nprose <!-- a note --> goes on\n", "## A\n\nprose  goes on\n"),
        ("prose\n\n<!-- alone\non its lines -->\n\nprose\n", "prose\n\nprose\n"),
        ("one\n<!-- between -->\ntwo\n", "one\n\ntwo\n"),
        ("- fact <!-- importance: 0.9 -->\n- fact\n", "- fact\n- fact\n"),
        ("## A\n<!-- pin -->\n- a\n", "## A\n- a\n"),
        ("> quote <!-- x -->\n> more\n", "> quote\n> more\n"),
        ("- item\n\n  <!-- in an item -->\n\n  more\n", "- item\n\n  more\n"),
        ("<div>\n<!-- in HTML -->\ntext\n</div>\n", "<div>\n\ntext\n</div>\n"),
        ("| a |\n|---|\n| b <!-- c --> |\n", "| a |\n|---|\n| b  |\n"),
        ("| ` | b |\n|---|---|\n| ` | <!-- c --> ` |\n", "| ` | b |\n|---|---|\n| ` |  ` |\n"),
        ("<https://harbour.example/`tide> <!-- c --> `\n", "<https://harbour.example/`tide>  `\n"),
        ('<b title="`"> <!-- c --> <i class=`>\n', '<b title="`">  <i class=`>\n'),
        ("<ines`s@harbour.example> <!-- c --> `\n", "<ines`s@harbour.example>  `\n"),
        ("one\r\n\r\n<!-- c -->\r\n\r\ntwo\r\n", "one\r\n\r\ntwo\r\n"),
    ],
)
def test_a_comment_is_gone_and_nothing_else(text: str, expected: str) -> None:
    assert shown("intro\n\n" + text) == "intro\n\n" + expected


@pytest.mark.parametrize(
    "text",
    [
        "```html\n<!-- code -->\n```\n",
        "~~~\n<!-- code -->\n~~~\n",
        "~~~\n<!-- code\n~~~\n-->\n",
        "    <!-- indented code -->\n",
        "prose `<!-- code -->` prose\n",
        "prose ``a ` <!-- code -->`` prose\n",
        "- item\n\n  ```\n  <!-- code -->\n  ```\n",
        "| a |\n|---|\n| `x <!-- code -->` |\n",
        "no tag <b `> <!-- code --> `\n",
        '<b title="<!-- a value -->">bold</b>\n',
        "prose \\<!-- not a comment --> prose\n",
        "a comment <!-- that never ends\n\n## Rules\n\n- stay\n",
        "{{7*7}} and {% for x in y %}\n",
    ],
)
def test_code_and_what_only_looks_like_a_comment_stays(text: str) -> None:
    assert shown("intro\n\n" + text) == "intro\n\n" + text


GRAMMAR = "<!--\nOne rule a line:\n\n    - **Name** (id): action [until 2020-01-01]\n-->\n\n"


def test_only_the_owner_sees_the_opening_comment() -> None:
    text = GRAMMAR + "## Rules\n\n<!-- my own note -->\n\n- one\n"
    assert shown(text) == "## Rules\n\n- one\n"
    assert shown(text, owner=True) == GRAMMAR + "## Rules\n\n- one\n"


def test_a_comment_below_a_heading_is_no_grammar() -> None:
    assert shown("# Title\n\n<!-- note -->\n", owner=True) == "# Title\n\n"


@pytest.mark.parametrize(("today", "is_shown"), [(date(2026, 2, 25), True), (date(2026, 2, 26), False)])
def test_a_rule_holds_through_its_until_day(today: date, is_shown: bool) -> None:
    assert ("Ines" in shown("- **Ines** (i@x.example): draft only [until 2026-02-25]\n", today=today)) == is_shown


def test_an_expired_item_takes_its_own_lines_along_and_is_reported() -> None:
    text = "## Temporary\n\n- a [until 2026-02-01]\n  more of a\n  - below a\n- b\n  - c [until 2026-01-01]\n"
    result = without_hidden("---\ntitle: x\n---\n" + text, keep_grammar=False, today=TODAY)
    assert result.text == "## Temporary\n\n- b\n"
    assert [(entry.line, entry.text, entry.until) for entry in result.expired] == [
        (6, "- a [until 2026-02-01]", "2026-02-01"),
        (10, "- c [until 2026-01-01]", "2026-01-01"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "- `[until 2020-01-01]` is how a rule ends\n",
        "No list item [until 2020-01-01]\n",
        "- [until 2020-13-45]\n",
        "```\n- code [until 2020-01-01]\n```\n",
        "- a <!-- [until 2020-01-01] -->b\n",
    ],
)
def test_what_does_not_match_the_grammar_does_not_expire(text: str) -> None:
    assert without_hidden(text, keep_grammar=False, today=TODAY).expired == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\ntitle: x\ntags: [a]\n---\n# T\n", "# T\n"),
        ("\ufeff---\r\na: b\r\n---\r\ntext\r\n", "text\r\n"),
        ("\ufefftext\n", "text\n"),
        ("---\n---\ntext\n", "text\n"),
        ("---\nBe kind, always.\n---\ntext\n", "---\nBe kind, always.\n---\ntext\n"),
        ("---\ntitle: never closed\n", "---\ntitle: never closed\n"),
    ],
)
def test_frontmatter_is_not_shown(text: str, expected: str) -> None:
    assert shown(text) == expected


PIECES = st.sampled_from(
    [
        "<!--",
        "-->",
        "`",
        "```\n",
        "\n",
        "\n\n",
        "- ",
        "  ",
        "    ",
        "> ",
        "word",
        " ",
        "\\",
        "# ",
        "<!-- c -->",
        "<b>",
        "|",
        "\r\n",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join), st.booleans())
@example("> - <!--```\n> ", False)
@example("--><!--\\```\n", False)
def test_the_text_less_its_gaps_is_what_is_shown_and_code_is_never_touched(text: str, owner: bool) -> None:
    result = without_hidden(text, keep_grammar=owner, today=TODAY)
    assert without(text, result.gaps) == result.text
    positions = Positions(result.gaps)
    for position, character in enumerate(result.text):
        assert text[positions.before(position)] == character
        assert positions.after(positions.before(position)) == position
    for gap in result.gaps:
        assert "-->" in text[gap.start : gap.end]
    # The added line end keeps markdown-it-py from reading past an open comment; see `parse_blocks`.
    tokens = MarkdownIt("commonmark").enable("table").parse(text + "\n")
    starts = [0]
    for line in text.replace("\r\n", "\0\n").split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for token in tokens:
        if token.type in ("fence", "code_block") and token.map:
            first, last = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
            assert not [gap for gap in result.gaps if first < gap.start < first + len(text[first:last].rstrip())]


def test_thousands_of_comments_are_taken_and_thousands_never_closed_are_left() -> None:
    text = "intro\n\n" + "- item <!-- note -->\n<!-- alone -->\n" * 8000
    assert "<!--" not in shown(text)
    assert shown("intro " + "<!--" * 100_000) == "intro " + "<!--" * 100_000
