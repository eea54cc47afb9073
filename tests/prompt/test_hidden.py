"""Comments, expired rules and frontmatter never reach a model; code and everything else does, unchanged."""

from datetime import datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from prompt.hidden import Positions, visible, without

NOW = datetime(2026, 2, 26, 9)


def shown(text: str, now: datetime = NOW) -> str:
    return visible(text, now=now).text


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
        ("- lamp %% of Ines %%\n- oil\n", "- lamp\n- oil\n"),
        ("| a |\n|---|\n| b %%c%% |\n", "| a |\n|---|\n| b  |\n"),
        ("prose %% one\ntwo %% goes on\n", "prose  goes on\n"),
        ("%%\n- gone\n\n## Gone\n\n```\ngone\n```\n%%\n\n- lamp\n", "- lamp\n"),
        ("- lamp\n  - oil\n    > %% gone %%\n    > wick\n", "- lamp\n  - oil\n    >\n    > wick\n"),
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
        "- 100%% sure\n",
        "100%% sure, and 50%% sure\n",
        "prose `%% code %%` prose\n",
        "```\n%% code %%\n```\n",
        "    %% indented code %%\n",
        "```\n## Rules\n<!-- pin -->\n```\n",
        "prose %% that never ends\n\n## Rules\n\n- stay\n",
    ],
)
def test_code_and_what_only_looks_like_a_comment_stays(text: str) -> None:
    assert shown("intro\n\n" + text) == "intro\n\n" + text


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("[until 2026-02-26]", ""),
        ("[until 2026-02-25]", "expired"),
        ("( until 25 February 2026 )", "expired"),
        ("[until 26.02.2026 09:00]", "expired"),
        ("[until 2026-02-26 at 9:01]", ""),
        ("[from 2026-02-01 until 2026-02-25]", "expired"),
        ("[from 2026-02-27]", "upcoming"),
        ("(from Feb 26, 2026 09:00 to 2026-03-01)", ""),
        ("[until 2026-02-30]", ""),
        ("(until further notice)", ""),
    ],
)
def test_a_rule_is_shown_while_it_holds(written: str, reason: str) -> None:
    result = visible(f"- **Ines** (i@x.example): draft only {written}\n- tea\n", now=NOW)
    assert [gap.reason for gap in result.gaps] == [reason] * bool(reason)
    assert ("Ines" in result.text, len(result.expired)) == (not reason, reason == "expired")
    assert result.text.endswith("- tea\n")


def test_without_a_time_what_is_dated_is_shown() -> None:
    assert visible("- tea [until 2020-01-01]\n", now=None).text == "- tea [until 2020-01-01]\n"


def test_an_expired_item_takes_its_own_lines_along_and_is_reported() -> None:
    text = "## Temporary\n\n- a [until 2026-02-01]\n  more of a\n  - below a\n- b\n  - c [until 2026-01-01]\n"
    result = visible("---\ntitle: x\n---\n" + text, now=NOW)
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
    assert visible(text, now=NOW).expired == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\ntitle: x\ntags: [a]\n---\n# T\n", "# T\n"),
        ("\ufeff---\r\na: b\r\n---\r\ntext\r\n", "text\r\n"),
        ("\ufefftext\n", "text\n"),
        ("---\n---\ntext\n", "text\n"),
        ("---\nBe kind, always.\n---\ntext\n", "---\nBe kind, always.\n---\ntext\n"),
        ("---\ntitle: never closed\n", "---\ntitle: never closed\n"),
        ("\n---\ntitle: x\n---\ntext\n", "text\n"),
        ("---\ntitle: x\n...\n\ntext\n", "\ntext\n"),
        ('+++\n# by Hugo\ntitle = "x"\n\n[params]\n+++\ntext\n', "text\n"),
        ("+++\nMore, always.\n+++\ntext\n", "+++\nMore, always.\n+++\ntext\n"),
        (f"---\ntitle: {'x' * 70_000}\n---\ntext\n", f"---\ntitle: {'x' * 70_000}\n---\ntext\n"),
        (
            "<!--\nA rule a line:\n\n    - **Name** (id): action [until 2020-01-01]\n-->\n\n## A\n\n- a\n",
            "## A\n\n- a\n",
        ),
    ],
)
def test_frontmatter_and_an_opening_comment_are_not_shown(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "## Rules\n<!-- pin -->\n- a\n",
        "## Rules\n\n<!-- pin -->\n\n- a\n",
        "<!-- pin -->\n## Rules\n\n- a\n",
        "<!-- pin -->\n\n## Rules\n\n- a\n",
        "- above\n<!-- pin -->\n## Rules\n",
        "## Rules <!-- pin -->\n\n- a\n",
        "## <!-- pin --> Rules\n\n- a\n",
        "## Rules\n   <!--PIN-->\n\n- a\n",
        "Rules\n-----\n\n<!-- pin -->\n",
        "<!-- pin -->\nRules\n-----\n",
        "## Rules\r\n\r\n<!-- pin -->\r\n\r\n- a\r\n",
        "## Rules\n<!-- pin -->\n## Below\n",
    ],
)
def test_a_pin_in_any_spelling_pins_its_heading(text: str) -> None:
    result = visible("---\ntitle: x\n---\nwords\n\n" + text, now=NOW)
    [at] = result.pinned
    assert result.text[at:].lstrip("# ").startswith("Rules")
    assert result.lost_pins == ()


@pytest.mark.parametrize(
    "text",
    [
        "## Rules\n\n\n<!-- pin -->\n",
        "## Rules\n\n- a\n<!-- pin -->\n",
        "## Rules\n- a <!-- pin -->\n",
        "## Rules\n<!-- ask Ines --> <!-- pin -->\n",
        "> ## Rules\n> <!-- pin -->\n",
    ],
)
def test_a_pin_that_pins_nothing_is_named_by_its_line(text: str) -> None:
    result = visible("---\ntitle: x\n---\n" + text, now=NOW)
    assert result.pinned == frozenset()
    assert result.lost_pins == (4 + text[: text.index("<!-- pin")].count("\n"),)


PICTURE = "data:image/png;base64," + "iVBORw0KGgo=" * 400


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"- one\n\n![a map]({PICTURE})\n\n- two\n", "- one\n\n![a map](…)\n\n- two\n"),
        (f"![a](<{PICTURE}> 'title') [b]({PICTURE}), c\n", "![a](<…> 'title') [b](…), c\n"),
        (f"[![a]({PICTURE})](x.md) and {PICTURE} alone\n", "[![a](…)](x.md) and … alone\n"),
        (f"[a]: {PICTURE}\n\n![a]\n", "[a]: …\n\n![a]\n"),
        (f'<img src="{PICTURE}">\n', '<img src="…">\n'),
        (f"| a |\n|---|\n| ![b]({PICTURE}) |\n", "| a |\n|---|\n| ![b](…) |\n"),
        (f"`{PICTURE}`\n\n```\n{PICTURE}\n```\n", f"`{PICTURE}`\n\n```\n{PICTURE}\n```\n"),
        ("all data: text/plain, or data:,\n", "all data: text/plain, or data:,\n"),
        ("# Drawing\n\n```compressed-json\nN4KAkARA\n```\n\n- one\n", "# Drawing\n\n- one\n"),
        (f"<!-- pin -->\n# Map\n\n![a]({PICTURE}) <!-- b -->\n", "# Map\n\n![a](…)\n"),
    ],
)
def test_a_payload_costs_little_and_hides_nothing_behind_it(text: str, expected: str) -> None:
    result = visible(text, now=None)
    assert result.text == expected == without(text, result.gaps)
    assert {gap.reason for gap in result.gaps} <= {"payload", "comment"}
    for gap in result.gaps:
        start = Positions(result.gaps).after(gap.end) - len(gap.shown)
        assert result.text[start : start + len(gap.shown)] == gap.shown


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
        "%%",
        "<b>",
        "|",
        "\r\n",
    ]
)


@settings(max_examples=250)
@given(st.lists(PIECES, max_size=30).map("".join))
@example("> - <!--```\n> ")
@example("--><!--\\```\n")
def test_the_text_less_its_gaps_is_what_is_shown_and_code_is_never_touched(text: str) -> None:
    result = visible(text, now=NOW)
    assert without(text, result.gaps) == result.text
    positions = Positions(result.gaps)
    for position, character in enumerate(result.text):
        assert text[positions.before(position)] == character
        assert positions.after(positions.before(position)) == position
    for gap in result.gaps:
        assert "-->" in text[gap.start : gap.end] or text[gap.start : gap.end].count("%%") > 1
    # The added line end keeps markdown-it-py from reading past an open comment.
    tokens = MarkdownIt("commonmark").enable("table").parse(text + "\n")
    starts = [0]
    for line in text.replace("\r\n", "\0\n").split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for token in tokens:
        if token.type in ("fence", "code_block") and token.map:
            first, last = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
            assert not [gap for gap in result.gaps if first < gap.start < first + len(text[first:last].rstrip())]


@pytest.mark.parametrize("depth", [*range(1, 16, 2), 20, 21, 60])
@pytest.mark.parametrize("indent", ["  ", "> "])
def test_at_any_depth_nothing_hidden_is_shown(depth: int, indent: str) -> None:
    levels = [indent * level + f"- level {level}" for level in range(depth)]
    hiding = ("- gone [until 2026-02-01]", "- kept <!-- gone -->", "- low %% gone %%")
    below = "\n- gone <!-- gone --> [until 2026-02-01]\n- last\n\n## Next\n\n- own <!-- gone -->\n"
    text = shown("\n".join(["## Nest\n", *levels, *(indent * depth + line for line in hiding), below]))
    entries = [line.strip("> ") for line in text.splitlines() if "-" in line]
    assert entries == [*(line.strip("> ") for line in levels), "- kept", "- low", "- last", "- own"]


@pytest.mark.parametrize(
    "part", ["- item <!-- note -->\n<!-- alone -->\n", "x <!-- a --> ", "`a` %% b %% ", "- a <!-- pin --> "]
)
@pytest.mark.usefixtures("cpu_limit")
def test_thousands_of_comments_are_taken(part: str) -> None:
    text = shown("intro\n\n" + part * 10_000)
    assert not {"note", "alone", "b", "pin"} & set(text.split())


@pytest.mark.parametrize("part", ["<!--", "\n\n<!--", "a%%b ", "data:x, ", "---\n", "[until ", "![a](data:x, "])
@pytest.mark.usefixtures("cpu_limit")
def test_thousands_of_marks_that_open_nothing_are_left(part: str) -> None:
    assert shown("intro " + part * 50_000) == "intro " + part * 50_000
