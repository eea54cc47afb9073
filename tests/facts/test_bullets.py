"""What is read as a fact, from where to where, and how a text becomes one."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from notebook_sync.errors import UsageError
from notebook_sync.files.fact_comment import Archived
from notebook_sync.files.facts import ARCHIVE, LONGEST, Bullet, as_bullet, fact_text, facts_in, id_of

NOTES = "facts/notes.md"
FADED = Archived(date(2026, 3, 1), "faded", NOTES)


def contents(text: str, path: str = NOTES) -> list[str]:
    return [bullet.content for bullet in facts_in(path, text)]


def only(text: str, path: str = NOTES) -> Bullet:
    (bullet,) = facts_in(path, text)
    return bullet


# What a fact is.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- Odile runs the ferry\n", ["Odile runs the ferry"]),
        ("* one\n+ two\n- three\n", ["one", "two", "three"]),
        ("1. one\n2) two\n", ["one", "two"]),
        ("- [ ] ask Ines\n- [x] paint the hull\n", ["[ ] ask Ines", "[x] paint the hull"]),
        ("- one\n  goes on\n- two\ngoes on lazily\n", ["one\ngoes on", "two\ngoes on lazily"]),
        ("- one\n\n  another paragraph\n\n- two\n", ["one\n\nanother paragraph", "two"]),
        ("- one\n  - of one\n    - of that\n- two\n", ["one\n- of one\n  - of that", "two"]),
        ("-\tone\n\tgoes on\n", ["one\ngoes on"]),
        ("- one\n\t- of one\n", ["one\n  - of one"]),
        ("10. one\n    goes on\n", ["one\ngoes on"]),
        ("- one  \n  two\t\n", ["one\ntwo"]),
        ("- same\n- same\n", ["same", "same"]),
        ("\ufeff- after a mark\n", ["after a mark"]),
        ("---\ntags:\n- no fact\n---\n- a fact\n", ["a fact"]),
        ("- no end of line", ["no end of line"]),
        ("prose\n- below prose\n", ["below prose"]),
        ("- one\r\n  goes on\r\n- two\r\n", ["one\ngoes on", "two"]),
        ("- one\r- two\r", ["one", "two"]),
    ],
)
def test_each_item_of_a_list_at_top_level_is_a_fact(text: str, expected: list[str]) -> None:
    assert contents(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "prose\n",
        "-no space\n",
        "> - in a quote\n",
        "```\n- in code\n```\n",
        "    - in indented code\n",
        "<!--\n- in a comment\n-->\n",
        "<!-- never closed\n\n- below it\n",
        "-\n",
        "- <!-- nothing but a comment -->\n",
        "- <!-- half typed\n",
        "---\ntags:\n- in frontmatter\n---\n",
        "- - -\n",
        "* * *\n",
    ],
)
def test_what_is_in_code_in_a_quote_or_in_a_comment_is_none(text: str) -> None:
    assert contents(text) == []


def test_a_fact_knows_the_nearest_heading_above_it() -> None:
    text = "- above all\n\n# Harbour\n- one\n\n## *Key* Topics\n\n- two\n### Berths\n- three\n\nHull\n----\n- four\n"
    assert [(bullet.section, bullet.line) for bullet in facts_in(NOTES, text)] == [
        ("", 1),
        ("Harbour", 4),
        ("Key Topics", 8),
        ("Berths", 10),
        ("Hull", 14),
    ]


def test_a_fact_knows_its_lines_to_the_character() -> None:
    text = "\ufeff---\nid: x\n---\n# A\n- one\n\n- two\n  more <!-- importance: 0.9 -->  \n\nprose\n- three"
    for text_as_kept in (text, text.replace("\n", "\r\n")):
        eol = "\r\n" if "\r\n" in text_as_kept else "\n"
        found = facts_in(NOTES, text_as_kept)
        assert [text_as_kept[bullet.start : bullet.end] for bullet in found] == [
            f"- one{eol}",
            f"- two{eol}  more <!-- importance: 0.9 -->  {eol}",
            "- three",
        ]
        assert [bullet.line for bullet in found] == [5, 7, 11]
        assert found[1].comment is not None
        assert text_as_kept[slice(*found[1].comment)] == " <!-- importance: 0.9 -->"


def test_the_id_is_of_the_text_alone() -> None:
    plain = only("- Odile runs the ferry\n").note_id
    assert plain == "bf362394cb40c741"
    assert plain == id_of("  Odile runs the ferry\n")
    assert {
        only(text).note_id for text in ("* Odile runs the ferry", "3.  Odile runs the ferry <!-- importance: 1 -->")
    } == {plain}


# The comments that end a fact.


@pytest.mark.parametrize(
    ("comment", "importance"),
    [
        ("<!-- importance: 0.9 -->", 0.9),
        ("<!--importance:1-->", 1.0),
        ("<!-- Importance: HIGH -->", 0.7),
        ("<!-- importance: 0 -->", 0.0),
        ("<!-- importance: 1.5 -->", None),
        ("<!-- importance: -1 -->", None),
        ("<!-- importance: nan -->", None),
        ("<!-- importance: soon -->", None),
        ("<!-- ask Ines -->", None),
        ("<!-- importance: 0.9 --> <!-- ask Ines -->", 0.9),
        ("\n  <!-- importance: 0.9 -->", 0.9),
    ],
)
def test_a_comment_at_the_end_pins_and_is_no_part_of_the_text(comment: str, importance: float | None) -> None:
    bullet = only(f"- the ferry is late {comment}\n- another\n".partition("- another")[0])
    assert (bullet.content, bullet.importance) == ("the ferry is late", importance)


@pytest.mark.parametrize(
    "text",
    [
        "the ferry is late `<!-- importance: 0.9 -->`",
        "the ferry is late \\<!-- importance: 0.9 -->",
        "the ferry is late <!-- importance: 0.9",
        "the <!-- importance: 0.9 --> ferry is late",
        "code:\n```\n<!-- importance: 0.9 -->\n```",
        "code:\n```\n<!-- importance: 0.9 -->",
        "code:\n\n    <!-- importance: 0.9 -->",
    ],
)
def test_what_is_no_comment_at_the_end_stays_text_and_pins_nothing(text: str) -> None:
    bullet = only("- " + text.replace("\n", "\n  ") + "\n")
    assert (bullet.content, bullet.importance, bullet.comment) == (text, None, None)


def test_of_archived_facts_it_is_told_when_and_why_and_from_where() -> None:
    line = "- the old pier <!-- archived: 2026-03-01; reason: faded; from: facts/notes.md -->\n"
    assert only(line, ARCHIVE).archived == FADED
    assert only(line, NOTES).archived is None
    assert only("- the old pier <!-- archived: some day -->\n", ARCHIVE).archived is None
    assert only("- the old pier <!-- archived: 2026-03-01 -->\n", ARCHIVE).archived == Archived(date(2026, 3, 1))


# A text as a fact.

_MARKS = st.sampled_from(
    [
        "- ",
        "* ",
        "+ ",
        "1. ",
        "#",
        "# ",
        "---",
        "===",
        "***",
        "```",
        "~~~",
        "<!--",
        "-->",
        ">",
        "<div>",
        "</div>",
        "`",
        "\\",
        "[ ] ",
        "[a]: /b",
        "|",
        "    ",
        "\t",
        "\n",
        "\n\n",
        "\r\n",
        " ",
        "a",
        "Odile",
        "é",
        "\u3000",
        "<script>",
        "<?",
        "--",
    ]
)
TEXTS = st.one_of(st.lists(_MARKS, max_size=12).map("".join), st.text(max_size=40))


@given(text=TEXTS, pin=st.sampled_from([None, 0.0, 0.9]), is_archived=st.booleans())
@example(text="- - -", pin=None, is_archived=False)
@example(text="a\n---\nb", pin=0.9, is_archived=True)
@example(text="\tfoo\n\tbar", pin=None, is_archived=False)
@example(text="# Important Facts\n- another", pin=None, is_archived=False)
def test_a_text_comes_back_as_one_fact_or_is_refused(text: str, pin: float | None, is_archived: bool) -> None:
    archived = FADED if is_archived else None
    try:
        bullet = as_bullet(text, pin, archived)
    except UsageError:
        return
    path = ARCHIVE if is_archived else NOTES
    found = facts_in(path, f"# A\n\n- above\n{bullet}\n- below\n\n## B\n\n- last\n")
    assert [fact.content for fact in found] == ["above", fact_text(text), "below", "last"]
    assert [fact.section for fact in found] == ["A", "A", "A", "B"]
    assert (found[1].importance, found[1].archived) == (pin, archived)


@pytest.mark.parametrize(
    "text",
    [
        "# Standing orders",
        "one\n- two\n- three",
        "a --> b",
        "> quoted",
        "[x] done",
        "---",
        "`<!-- pin -->`",
        "1. first",
        "<b>",
    ],
)
def test_marks_in_a_text_stay_text(text: str) -> None:
    assert only(as_bullet(text)).content == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "needs a text"),
        (" \n\t ", "needs a text"),
        ("a\0b", "control character"),
        ("a\x1bb", "control character"),
        ("a\ud800b", "half a character"),
        ("Odile <!-- importance: 1.0 -->", "comment"),
        ("<!-- hidden --> Odile", "comment"),
        ("Odile <!-- never closed", "comment"),
        ("x" * (LONGEST + 1), "at most 10,000 characters"),
    ],
)
def test_a_text_that_no_fact_can_hold_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        as_bullet(text)


@pytest.mark.parametrize("importance", [-0.1, 1.1, float("nan"), float("inf")])
def test_an_importance_that_is_none_is_refused(importance: float) -> None:
    with pytest.raises(UsageError, match="from 0 to 1"):
        as_bullet("Odile", importance)


@given(reason=st.text(max_size=30), came_from=st.text(max_size=30))
@example(reason="faded; from: facts/core.md --> # A heading", came_from="a;b-->.md")
@example(reason="100%3B", came_from="%25")
def test_a_reason_cannot_end_its_comment(reason: str, came_from: str) -> None:
    archived = Archived(date(2026, 3, 1), " ".join(reason.split()), " ".join(came_from.split()))
    try:
        bullet = as_bullet("the old pier", None, archived)
    except UsageError:
        return
    assert only(bullet, ARCHIVE).archived == archived


# The quick way and the sure one.

_LINES = st.sampled_from(
    [
        "- one",
        "* two",
        "+ three",
        "- - -",
        "---",
        "# A",
        "## B",
        "",
        "- [a]: /b",
        "- ```",
        "- <!-- x",
        "- <div>",
        "- # h",
        "text",
        "- four <!-- importance: 0.9 -->",
        "- `five` <!-- a -->",
        "  more",
        "- > q",
        "-",
        "- \tsix",
        "1. n",
        "    code",
        "* * x",
    ]
)


@given(st.lists(_LINES, max_size=10).map(lambda lines: "\n".join(["# Top", *lines, ""])))
def test_the_facts_are_the_top_level_items_that_markdown_it_finds(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    opened = [token.map[0] + 1 for token in tokens if token.type == "list_item_open" and token.level == 1 and token.map]
    lines = [bullet.line for bullet in facts_in(NOTES, text)]
    assert [line for line in opened if line in lines] == lines
    says_nothing = {"-", "- <!-- x"}
    skipped = {text.split("\n")[line - 1] for line in opened if line not in lines}
    assert skipped <= says_nothing


# What nobody means to write.


@pytest.mark.parametrize("said", ["Odile", "Odile `", "Odile \\", "Odile `ferry`"])
@pytest.mark.parametrize("comments", ["<!-- a -->", "<!-- a --> ", "<!-- a ", "<!-- a -->\n  b "])
def test_any_number_of_comments_is_read_in_time_that_grows_with_their_number_alone(said: str, comments: str) -> None:
    many = 400_000 // len(comments) if "\n" not in comments else 5_000
    (read,) = facts_in(NOTES, f"- {said} {comments * many}\n")
    assert read.content.startswith(said)


def test_a_comment_that_ends_a_fact_of_any_length_is_none_of_its_text() -> None:
    read = only(f"- Odile keeps `the key` {'x' * 1_000_000} <!-- importance: 0.9 -->\n")
    assert (read.content[-2:], read.importance) == ("xx", 0.9)
