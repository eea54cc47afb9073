"""The cut: what stays, what leaves, and what no text and no cap can make it do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from notebook_sync.files.parse import parse
from prompt import Trimmed, count_tokens, trim
from prompt.comments import without_hidden
from prompt.trim import Cutting

PATH = "runtime/log.md"
FIXTURES = Path(__file__).parent / "fixtures" / "trim.md"
CAPS = st.sampled_from([0, 1, 5, 20, 33, 60, 120, 400])
MARKER = regex.compile(
    r"\[…(?: (?:\d+ entr(?:y|ies), )?\d+ tokens? omitted(?:: notebook_read runtime/log\.md(?:#[^\s\]]+)?)?)?\]"
)


def cut(text: str, cap: int) -> Trimmed:
    shown = without_hidden(text, keep_grammar=True, today=date(2026, 3, 1))
    return trim(shown.text, cap, count_tokens, path=PATH, pinned=shown.pinned)


def golden() -> list[tuple[str, int, str, str]]:
    """`title . cap . text . result .`, the dots on lines of their own, after one line of introduction."""
    with FIXTURES.open(encoding="utf-8", newline="") as file:
        body = file.read().partition("\n\n")[2].replace("␍\n", "\r\n")
    fields = regex.split(r"(?m)^\.\n", body)[:-1]
    quartets = zip(*(iter(fields),) * 4, strict=True)
    return [(title.strip(), int(cap), text, result) for title, cap, text, result in quartets]


@pytest.mark.parametrize(("cap", "text", "expected"), [pytest.param(*case, id=title) for title, *case in golden()])
def test_golden(cap: int, text: str, expected: str) -> None:
    result = cut(text, cap)
    assert result.text.rstrip("\r\n") == expected.rstrip("\r\n")
    assert result.tokens <= cap


def blocks() -> st.SearchStrategy[str]:
    words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)
    prose = st.one_of(
        words,
        st.sampled_from(
            ["**bold words** and `code`", "*a **b** c*", "漢字かな交じり文", "👩‍👩‍👧‍👦🏴‍☠️", "e\u0301" * 20, "{{7*7}}"]
        ),
    )
    fences = st.tuples(
        st.sampled_from(["```", "~~~~", "````"]), st.lists(words.filter(lambda w: w[0] not in "`~ \t"), max_size=30)
    ).map(lambda pair: "\n".join([pair[0] + "py", *pair[1], pair[0]]))
    return st.one_of(
        prose,
        st.builds(lambda level, text: "#" * level + " " + text, st.integers(1, 4), prose),
        st.lists(prose, min_size=1, max_size=25).map(lambda items: "\n".join("- " + item for item in items)),
        st.lists(prose, min_size=1, max_size=8).map(lambda items: "1. top\n" + "\n".join("   - " + i for i in items)),
        st.lists(words, max_size=15).map(
            lambda rows: "| a | b |\n|---|---|\n" + "\n".join(f"| {row.replace('|', '')} | x |" for row in rows)
        ),
        st.lists(prose, min_size=1, max_size=6).map(lambda lines: "\n".join("> " + line for line in lines)),
        fences,
        prose.map(lambda text: " ".join([text] * 40)),
    )


DOCUMENTS = st.one_of(
    st.lists(blocks(), max_size=14).map("\n\n".join),
    st.lists(blocks(), max_size=14).map("\n".join),
    st.text(max_size=2000),
    st.text("#-*`~>| \t\r\n1.[]()<!a_=\\", max_size=600),
)


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS, CAPS)
@example("\n" * 5000, 20)
@example("a" * 20_000, 20)
@example("e" + "\u0301" * 5000, 60)
@example("# " + "heading " * 3000, 60)
@example("```" * 2000, 60)
@example("- " * 3000 + "x", 60)
@example("> " * 3000 + "x", 60)
@example("|" * 3000 + "\n|-|\n|x|", 60)
@example("\x00\x01\ufffe" * 900, 20)
def test_no_text_exceeds_its_cap(text: str, cap: int) -> None:
    result = trim(text, cap, count_tokens, path=PATH)
    assert result.tokens == count_tokens(result.text) <= cap


@settings(max_examples=50, deadline=None)
@given(DOCUMENTS)
def test_a_text_within_its_cap_is_byte_identical(text: str) -> None:
    result = trim(text, count_tokens(text), count_tokens, path=PATH)
    assert result == Trimmed(text, count_tokens(text))


@pytest.mark.parametrize("text", ["", "- a\n" * 100, "<!-- how to write -->\n\n- a\n", " \n"])
def test_a_cap_below_nothing_shows_nothing(text: str) -> None:
    assert trim(text, -7, count_tokens) == trim(text, 0, count_tokens)
    assert trim(text, -7, count_tokens).text == ""


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.lists(CAPS, max_size=4), st.booleans())
def test_a_text_that_is_cut_to_several_caps_is_cut_to_each_as_if_to_it_alone(
    text: str, caps: list[int], opens_with_grammar: bool
) -> None:
    text = "<!-- how to write -->\n\n" * opens_with_grammar + text
    cutting = Cutting(text, count_tokens(text), count_tokens, path=PATH)
    assert [cutting.at(cap) for cap in caps] == [trim(text, cap, count_tokens, path=PATH) for cap in caps]


@settings(max_examples=50, deadline=None)
@given(DOCUMENTS, CAPS)
def test_the_same_text_is_cut_the_same_way(text: str, cap: int) -> None:
    assert trim(text, cap, count_tokens, path=PATH) == trim(text, cap, count_tokens, path=PATH)


@settings(max_examples=100, deadline=None)
@given(st.lists(blocks(), min_size=1, max_size=14).map("\n\n".join), CAPS)
def test_what_is_shown_is_the_text_less_what_is_accounted_for(text: str, cap: int) -> None:
    result = trim(text, cap, count_tokens, path=PATH)
    if not result.text:
        return
    shown, position = [], 0
    for start, end in result.cut:
        assert position <= start <= end <= len(text)
        shown.append(text[position:start])
        position = end
    shown.append(text[position:])
    left = iter(line for line in MARKER.sub("", result.text).split("\n") if line.strip())
    expected = [line for piece in shown for line in piece.split("\n") if line.strip()]
    # Lines that frame what left (a heading, a fence, a table's head) may be gone; every other one is there, in order.
    for line in left:
        assert any(line.rstrip("*`_~ …").strip() in each for each in expected), line


@settings(max_examples=100, deadline=None)
@given(st.lists(blocks(), min_size=1, max_size=14).map("\n\n".join), CAPS)
def test_what_is_a_fence_or_a_table_in_the_result_was_one_and_every_fence_is_closed(text: str, cap: int) -> None:
    parser = MarkdownIt("commonmark").enable("table")
    result = trim(text, cap, count_tokens, path=PATH)
    if result.text == text:
        return
    tokens = parser.parse(result.text)
    lines = result.text.split("\n")
    for token in tokens:
        if token.type == "fence" and token.level == 0 and token.map:
            closing = lines[token.map[1] - 1].strip()
            assert set(closing) == {token.markup[0]}
            assert len(closing) >= len(token.markup)
    # A marker is a paragraph of its own, at top level: inside a fence, a list or a table nobody would read it as one.
    markers = [token.content for token in tokens if token.type == "inline" and token.level == 1]
    assert [m for m in MARKER.findall(result.text) if m not in markers] == []


def shown_places(text: str, cap: int, path: str = PATH, pinned: frozenset[int] = frozenset()) -> set[int]:
    """Which characters of `text` are shown, white space apart."""
    result = trim(text, cap, count_tokens, path=path, pinned=pinned)
    places = {at for at, character in enumerate(text) if not character.isspace()}
    return places.difference(*(range(start, end) for start, end in result.cut))


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS, st.integers(0, 500), st.integers(0, 500), st.sampled_from(["", PATH]), st.booleans())
@example(
    "".join(f"## Day {day}\n\n" + "- an entry of that day\n" * 6 + "\n" for day in range(20)), 60, 120, PATH, False
)
@example("**words** " * 900 + "\n\n- [x] done\n- [ ] open\n", 50, 60, PATH, True)
@example("> " + "verse of the song\n> " * 200, 40, 90, PATH, True)
@example("- a\n  - b b b b\n  - [x] c c c c\n  - d d d d\n" * 30, 40, 41, PATH, True)
def test_a_larger_cap_shows_all_that_a_smaller_one_does(text: str, cap: int, other: int, path: str, pin: bool) -> None:
    pinned = frozenset(at for at in (0, text.find("\n#") + 1) if pin)
    small, large = sorted((cap, other))
    assert shown_places(text, small, path, pinned) <= shown_places(text, large, path, pinned)


@pytest.mark.parametrize(
    "count",
    [len, lambda text: len(text.encode()), lambda text: len(text.split()), lambda text: len(text) * 7 % 101],
    ids=["characters", "bytes", "words", "nonsense"],
)
@settings(max_examples=60, deadline=None)
@given(text=DOCUMENTS, cap=st.integers(0, 1000), other=st.integers(0, 1000))
def test_whatever_counts_the_cap_and_the_order_hold(
    count: Callable[[str], int], text: str, cap: int, other: int
) -> None:
    small, large = (trim(text, each, count, path=PATH) for each in sorted((cap, other)))
    assert small.tokens == count(small.text) <= min(cap, other) or not small.text
    gone_from_small = {at for start, end in small.cut for at in range(start, end)}
    assert {at for start, end in large.cut for at in range(start, end)} <= gone_from_small


@settings(max_examples=50, deadline=None)
@given(DOCUMENTS, st.integers(0, 300))
def test_cutting_again_changes_nothing(text: str, cap: int) -> None:
    once = trim(text, cap, count_tokens, path=PATH)
    assert trim(once.text, cap, count_tokens, path=PATH).text == once.text


@settings(max_examples=50, deadline=None)
@given(st.lists(blocks(), min_size=1, max_size=14).map("\n\n".join), CAPS)
def test_the_account_is_what_the_lines_say(text: str, cap: int) -> None:
    result = trim(text, cap, count_tokens, path=PATH)
    lines = regex.findall(r"\[… (?:(\d+) entr(?:y|ies), )?(\d+) tokens? omitted: notebook_read", result.text)
    if lines and "omitted: notebook_read" not in text:
        assert sum(int(entries or 0) for entries, _ in lines) == sum(one.entries for one in result.omitted)
        assert sum(int(tokens) for _, tokens in lines) == sum(one.tokens for one in result.omitted)


def test_one_line_tells_what_left_together_and_names_the_smallest_section_that_has_it() -> None:
    winter, summer = (f"## {name}\n\n" + "- a crossing at high water\n" * 12 + "\n" for name in ("Winter", "Summer"))
    ferry = "# Ferry\n\n" + "- the rules of the ferry\n" * 20 + "\n" + winter + summer
    harbour = "# Harbour\n\n" + "- closed on Mondays\n" * 10
    for text, cap, anchor in [
        (ferry + harbour, 340, "#harbour"),
        (ferry + harbour, 250, ""),
        (ferry, 170, "#ferry"),
        (ferry, 250, "#summer"),
    ]:
        assert regex.findall(r"notebook_read runtime/log\.md([^\]]*)\]", cut(text, cap).text) == [anchor]


def test_the_cap_is_used_rather_than_wasted() -> None:
    text = "".join(f"- entry number {number} of a long list\n" for number in range(500))
    assert trim(text, 1000, count_tokens, path=PATH).tokens > 980


def test_a_paragraph_of_ordinary_length_is_cut_at_the_end_of_a_sentence() -> None:
    sentence = "The ferry waits for Odile (at the pier), unless the fog is on the water and Ines has gone home."
    text = "".join(f"## Day {day}\n\n" + " ".join([sentence] * 12) + "\n\n" for day in range(9))
    for cap in range(150, 700, 50):
        shown = trim(text, cap, count_tokens, path=PATH)
        assert shown.tokens > cap - 70
        prose = [line for line in shown.text.split("\n") if line.startswith("The")]
        assert {line.removesuffix("…").replace(sentence, "").strip() for line in prose} == {""}


def test_an_item_of_a_list_of_ordinary_length_stays_or_leaves_whole() -> None:
    item = "- " + "The ferry waits for Odile, unless the fog is on the water. " * 20
    for cap in range(400, 1500, 100):
        assert "…" not in MARKER.sub("", trim((item + "\n") * 9, cap, count_tokens, path=PATH).text)


def test_a_grapheme_is_never_broken() -> None:
    family = "👩‍👩‍👧‍👦"
    for cap in range(30, 130, 7):
        shown = trim(family * 200, cap, count_tokens, path=PATH).text.partition("\n")[0]
        assert set(regex.findall(r"\X", shown)) <= {family, "…"} or MARKER.fullmatch(shown)


def test_open_emphasis_is_closed_and_a_code_span_too() -> None:
    render = MarkdownIt("commonmark").render
    for mark, tag in (("**", "strong"), ("_", "em"), ("`", "code"), ("***", "strong")):
        for cap in range(40, 60):
            shown = trim(f"{mark}{'words ' * 200}end{mark}\n", cap, count_tokens, path=PATH).text.split("\n")[0]
            assert f"<{tag}>words" in render(shown)
            assert mark not in render(shown)


def test_a_paragraph_cut_short_does_not_become_another_block() -> None:
    opens_a_fence = "``` that goes on " + "and on " * 60 + "until it `closes`"
    for cap in range(15, 60):
        shown = trim(f"A paragraph\n{opens_a_fence}", cap, count_tokens).text
        assert "A paragraph" in shown
        assert "fence" not in {token.type for token in MarkdownIt().parse(shown)}


def test_the_anchors_in_the_markers_are_those_of_the_notebook() -> None:
    headings = [
        "Plain",
        "Plain",
        "**Bold** & `code`",
        "[Link](x.md) here",
        "[[Wiki|shown]]",
        "¿Qué? Ünï—x",
        "A_b *c*",
        "!!!",
    ]
    text = (
        "## First\n\n" + "- a rule\n" * 50 + "".join(f"## {heading} ##\n\nfiller {heading}\n\n" for heading in headings)
    )
    omitted = [omission.anchor for omission in trim(text, 222, count_tokens, path=PATH).omitted]
    assert omitted == [section.anchor for section in parse(PATH, text.encode()).sections][1:]


def test_without_a_path_the_marker_names_no_call() -> None:
    assert "omitted]" in trim("- entry\n" * 100, 40, count_tokens).text


def test_a_number_without_end_is_cut_like_anything_else() -> None:
    text = "1" * 2_000_000  # to read all of it again at each place where it may end would take a quarter of an hour
    assert count_tokens(trim(text, 100, count_tokens).text) <= 100


def test_two_megabytes_are_cut_like_anything_else() -> None:
    text = "".join(f"- entry {number} is here, with some words to it\n" for number in range(40_000))
    result = trim(text, 2000, count_tokens, path=PATH)
    assert 1950 < result.tokens <= 2000
    assert "entry 39999 is here" in result.text
