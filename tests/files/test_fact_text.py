"""What is read as a fact, how a text becomes one, and how facts are put into files and taken out."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from notebook_sync.errors import EditFailed, UsageError
from notebook_sync.files.fact_text import (
    ARCHIVE,
    LONGEST,
    as_bullet,
    fact_id,
    fact_text,
    facts_in,
    order_of,
    with_facts,
    without_facts,
)
from notebook_sync.model import FactLine

NOTES = "facts/notes.md"
FADED = {"date": "2026-03-01", "reason": "faded", "from": NOTES}


def contents(text: str) -> list[str]:
    return [fact.text for fact in facts_in(NOTES, text)]


def only(text: str, path: str = NOTES) -> FactLine:
    (fact,) = facts_in(path, text)
    return fact


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
        *((text, []) for text in (
            "", "prose\n", "-no space\n", "> - in a quote\n", "```\n- in code\n```\n", "    - in indented code\n",
            "<!--\n- in a comment\n-->\n", "<!-- never closed\n\n- below it\n", "-\n", "- <!-- only a comment -->\n",
            "- <!-- half typed\n", "---\ntags:\n- in frontmatter\n---\n", "- - -\n", "* * *\n",
        )),
    ],
)  # fmt: skip
def test_each_item_of_a_list_at_top_level_is_a_fact(text: str, expected: list[str]) -> None:
    assert contents(text) == expected


def test_a_fact_knows_its_line_and_the_nearest_heading_above_it() -> None:
    text = "- above all\n\n# Harbour\n- one\n\n## *Key* Topics\n\n- two\n### Berths\n- three\n\nHull\n----\n- four\n"
    for head in ("", "---\r\nid: x\r\n---\r\n"):
        found = [(fact.section, fact.line - head.count("\n")) for fact in facts_in(NOTES, head + text)]
        assert found == [("", 1), ("Harbour", 4), ("Key Topics", 8), ("Berths", 10), ("Hull", 14)]


def test_the_id_is_of_the_text_alone() -> None:
    written = ("- Odile runs the ferry\n", "* Odile runs the ferry", "3.  Odile runs the ferry <!-- importance: 1 -->")
    assert {only(text).id for text in written} == {fact_id("  Odile runs the ferry\n")} == {"bf362394cb40c741"}


@pytest.mark.parametrize(
    ("comment", "pin"),
    [
        ("<!-- importance: 0.9 -->", 0.9),
        ("<!--importance:1-->", 1.0),
        ("<!-- Importance: HIGH -->", 0.7),
        ("<!-- importance: 0 -->", 0.0),
        ("<!-- importance: 1.5 -->", None),
        ("<!-- importance: nan -->", None),
        ("<!-- importance: soon -->", None),
        ("<!-- ask Ines -->", None),
        ("<!-- importance: 0.9 --> <!-- ask Ines -->", 0.9),
        ("\n  <!-- importance: 0.9 -->", 0.9),
        ("<!-- ask Ines -->\n  <!-- importance: 0.9 -->", 0.9),
        ("\n\n  <!-- importance: 0.9 -->\n  <!-- ask Ines -->", 0.9),
    ],
)
def test_a_comment_at_the_end_pins_and_is_no_part_of_the_text(comment: str, pin: float | None) -> None:
    fact = only(f"- the ferry is late {comment}")
    assert (fact.text, fact.pin) == ("the ferry is late", pin)


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
    fact = only("- " + text.replace("\n", "\n  ") + "\n")
    assert (fact.text, fact.pin) == (text, None)


def test_an_archived_fact_says_when_why_and_from_where() -> None:
    line = "- the old pier <!-- archived: 2026-03-01; reason: faded; from: facts/notes.md -->\n"
    assert (only(line, ARCHIVE).archived, only(line, NOTES).archived) == (FADED, None)
    assert only("- the old pier <!-- archived: some day -->\n", ARCHIVE).archived is None
    assert sorted([ARCHIVE, "facts/b.md", "facts/core.md", NOTES], key=order_of) == [
        "facts/core.md",
        "facts/b.md",
        NOTES,
        ARCHIVE,
    ]


_PIECES = st.sampled_from(
    ["- ", "* ", "+ ", "1. ", "#", "# ", "---", "===", "***", "```", "~~~", "<!--", "-->", ">", "<div>", "</div>", "`",
     "\\", "[ ] ", "[a]: /b", "|", "    ", "\t", "\n", "\n\n", "\r\n", " ", "a", "Odile", "é", "\u3000", "<script>",
     "<?", "--"]
)  # fmt: skip
TEXTS = st.one_of(st.lists(_PIECES, max_size=12).map("".join), st.text(max_size=40))


@settings(max_examples=300)
@given(text=TEXTS, pin=st.sampled_from([None, 0.0, 0.9]), is_archived=st.booleans())
@example(text="- - -", pin=None, is_archived=False)
@example(text="a\n---\nb", pin=0.9, is_archived=True)
@example(text="\tfoo\n\tbar", pin=None, is_archived=False)
@example(text="# Important Facts\n- another", pin=None, is_archived=False)
def test_a_text_comes_back_as_one_fact_or_is_refused(text: str, pin: float | None, is_archived: bool) -> None:
    archived = FADED if is_archived else None
    try:
        bullet = as_bullet(fact_text(text), pin=pin, archived=archived)
    except UsageError:
        return
    found = facts_in(ARCHIVE if is_archived else NOTES, f"# A\n\n- above\n{bullet}\n- below\n\n## B\n\n- last\n")
    expected = [("A", "above"), ("A", fact_text(text)), ("A", "below"), ("B", "last")]
    assert [(fact.section, fact.text) for fact in found] == expected
    assert (found[1].pin, found[1].archived) == (pin, archived)


@pytest.mark.parametrize(
    "text",
    ["# Standing orders", "one\n- two\n- three", "a --> b", "> quoted", "[x] done",
     "1. first", "<b>", "- one\n- two"],
)  # fmt: skip
def test_marks_in_a_text_stay_text(text: str) -> None:
    assert only(as_bullet(text)).text == text


@pytest.mark.parametrize(
    "text", ["- The boat is red", "*  The boat is red\n", "+ The boat is red", " - The boat is red"]
)
def test_a_fact_given_as_an_item_is_stored_once(text: str) -> None:
    assert as_bullet(fact_text(text)) == as_bullet("The boat is red") == "- The boat is red"
    assert only(as_bullet(f"- {fact_text(text)}")).text == "- The boat is red"
    assert fact_text("- one\n  goes on") == "one\ngoes on"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "needs a text"),
        (" \n\t ", "needs a text"),
        ("a\0b", "control character"),
        ("a\x1bb", "control character"),
        ("a\ud800b", "control character"),
        ("Odile <!-- importance: 1.0 -->", "comment"),
        ("<!-- hidden --> Odile", "comment"),
        ("Odile <!-- never closed", "comment"),
        ("`<!-- pin -->`", "comment"),
        ("---", "would say something else"),
        ("x" * (LONGEST + 1), "at most 10,000 characters"),
    ],
)
def test_a_text_that_no_fact_can_hold_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        as_bullet(text)


@pytest.mark.parametrize("pin", [-0.1, 1.1, float("nan"), float("inf")])
def test_an_importance_beyond_its_range_is_refused(pin: float) -> None:
    with pytest.raises(UsageError, match="from 0 to 1"):
        as_bullet("Odile", pin=pin)


@given(reason=st.text(max_size=30), source=st.text(max_size=30))
@example(reason="faded; from: facts/core.md --> # A heading", source="a;b-->.md")
@example(reason="100%3B", source="%25")
def test_a_reason_cannot_end_its_comment(reason: str, source: str) -> None:
    archived = {"date": "2026-03-01", "reason": " ".join(reason.split()), "from": " ".join(source.split())}
    try:
        bullet = as_bullet("the old pier", archived=archived)
    except UsageError:
        return
    assert only(bullet, ARCHIVE).archived == archived


_LINES = st.sampled_from(
    ["- one", "* two", "+ three", "- - -", "---", "# A", "## B", "", "- [a]: /b", "- ```", "- <!-- x", "- <div>",
     "- # h", "text", "- four <!-- importance: 0.9 -->", "- `five` <!-- a -->", "  more", "- > q", "-", "- \tsix",
     "1. n", "    code", "* * x"]
)  # fmt: skip


@given(st.lists(_LINES, max_size=10).map(lambda lines: "\n".join(["# Top", *lines, ""])))
def test_the_facts_are_the_top_level_items_that_markdown_it_finds(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    opened = [token.map[0] + 1 for token in tokens if token.type == "list_item_open" and token.level == 1 and token.map]
    lines = [fact.line for fact in facts_in(NOTES, text)]
    assert [line for line in opened if line in lines] == lines
    assert {text.split("\n")[line - 1] for line in opened if line not in lines} <= {"-", "- <!-- x"}


@pytest.mark.usefixtures("cpu_limit")
@pytest.mark.parametrize("said", ["Odile", "Odile `", "Odile \\", "Odile `ferry`"])
@pytest.mark.parametrize("comments", ["<!-- a -->", "<!-- a --> ", "<!-- a ", "<!-- a -->\n  b "])
def test_any_number_of_comments_is_read_in_linear_time(said: str, comments: str) -> None:
    many = 200_000 // len(comments) if "\n" not in comments else 5_000
    assert len(facts_in(NOTES, f"- {said} {comments * many}")) == 1


PIECES = [
    "## Key Topics", "### Quay", "Tides\n-----", "", "- the lamp is lit at six",
    "- the ferry leaves at nine <!-- importance: 0.9 -->", "* ropes hang in the shed",
    "- the toll\n  is twelve crowns\n\n  - more on Sundays\n  - less at night", "3. the third buoy is red",
    "- [ ] grease the winch", "  - indented by two", "- ```\n  code\n  ```", "Some words between.", "> - quoted",
    "<!-- a comment -->", "---",
]  # fmt: skip
files = st.builds(
    lambda pieces, eol, end: "\n".join(pieces).replace("\n", eol) + end * eol,
    st.lists(st.sampled_from(PIECES), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)


def placed(text: str) -> list[tuple[str, str]]:
    return [(fact.section, fact.text) for fact in facts_in(NOTES, text)]


@settings(max_examples=80)
@given(files, st.data())
def test_what_is_taken_out_is_gone_and_all_else_stays(text: str, data: st.DataObject) -> None:
    facts = facts_in(NOTES, text)
    gone = data.draw(st.lists(st.sampled_from(facts), unique=True)) if facts else []
    try:
        after = without_facts(NOTES, text, {fact.line for fact in gone})
    except EditFailed:
        assert gone
        return
    assert placed(after) == [(fact.section, fact.text) for fact in facts if fact not in gone]
    lines = text.splitlines(keepends=True)
    ends = {"\n", "\r\n", *(line.rstrip("\r\n") for line in lines)}  # a last line, whose end may go
    assert set(after.splitlines(keepends=True)) <= {*lines, *ends}


@settings(max_examples=80)
@given(files, st.sampled_from(["Quay", "tides", "Key Topics", "", "New"]))
def test_what_is_put_in_is_the_last_of_its_section_and_all_else_stays(text: str, section: str) -> None:
    try:
        after = with_facts(NOTES, text, section, ["- the new one\n  in two lines", "- and another"])
    except EditFailed:
        return
    found = [each for each in placed(after) if each not in placed(text)]
    assert [each for _, each in found] == ["the new one\nin two lines", "and another"]
    assert {name.casefold() for name, _ in found} == {section.casefold()}
    assert len(facts_in(NOTES, after)) == len(facts_in(NOTES, text)) + 2
    rest = iter(after)
    assert all(letter in rest for letter in text.rstrip("\r\n"))


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_a_file_keeps_its_mark_its_gaps_and_its_end(eol: str) -> None:
    text = "## Quay\n\n* one\n\n* two\n\n* three".replace("\n", eol)
    assert with_facts(NOTES, text, "quay", ["- four"]) == f"{text}{eol}{eol}* four"
    for lines, left in (((5, 7), "\n\n* one"), ((3, 5, 7), ""), ((3,), "\n\n* two\n\n* three")):
        assert without_facts(NOTES, text, lines) == f"## Quay{left}".replace("\n", eol)


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        ((3, 4, 5), "## A\n\n## B\n\n- four\n"),
        ((4, 5), "## A\n\n- one\n\n## B\n\n- four\n"),
        ((3, 5), "## A\n\n- two\n\n## B\n\n- four\n"),
        ((3, 4, 5, 9), "## A\n\n## B\n"),
        ((), "## A\n\n- one\n- two\n- three\n\n## B\n\n- four\n"),
    ],
)
def test_facts_of_several_sections_are_taken_out_at_once(lines: tuple[int, ...], after: str) -> None:
    assert without_facts(NOTES, "## A\n\n- one\n- two\n- three\n\n## B\n\n- four\n", lines) == after


def test_a_line_without_a_fact_is_an_error() -> None:
    with pytest.raises(EditFailed, match=r"notes\.md:2: no fact begins"):
        without_facts(NOTES, "- one\n  more\n", [2])


@pytest.mark.parametrize("name", ["**Trips**", "`Trips`", "[Trips](pages/trips.md)", "Trips", "_Trips_ by `boat`"])
def test_a_section_is_found_again_by_the_name_it_was_made_with(name: str) -> None:
    once = with_facts(NOTES, "## Key Topics\n", name, ["- the first"])
    twice = with_facts(NOTES, once, name, ["- the second"])
    assert contents(twice) == ["the first", "the second"]
    (section,) = {section for section, _ in placed(twice)}
    assert with_facts(NOTES, twice, section, ["- the third"]) == twice + "- the third\n"


def test_a_name_is_that_of_the_heading_with_these_marks_first() -> None:
    text = "## Trips\n\n- one\n\n## \\*Trips\\*\n\n- two\n"
    assert with_facts(NOTES, text, "*Trips*", ["- three"]) == text + "- three\n"
