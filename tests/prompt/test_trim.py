"""The cut: what stays, what leaves, and what no text and no cap can make it do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from sys import maxsize

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from notebook_sync.files.parse import parse
from prompt import Trimmed, count_tokens, trim
from prompt.hidden import visible
from prompt.trim import Cutting
from tests.prompt.markdown_texts import DOCUMENTS, ODD_DOCUMENTS

PATH = "runtime/log.md"
FIXTURES = Path(__file__).parent / "fixtures" / "trim.md"
CAPS = st.sampled_from([0, 1, 5, 20, 33, 60, 120, 400])
MARKER = regex.compile(r"\[…(?: (?:\d+ )?more(?:: notebook_read runtime/log\.md(?:#[^\s\]]+)?)?)?\]")


def cut(text: str, cap: int) -> Trimmed:
    shown = visible(text, now=datetime(2026, 3, 1))
    return trim(shown.text, cap, count_tokens, path=PATH, pinned=shown.pinned)


def golden() -> list[tuple[str, int, str, str]]:
    """`title . cap . text . result .`, the dots on lines of their own, below an introduction."""
    with FIXTURES.open(encoding="utf-8", newline="") as file:
        body = file.read().partition("\n\n")[2].replace("␍\n", "\r\n")
    fields = regex.split(r"(?m)^\.\n", body)[:-1]
    quartets = zip(*(iter(fields),) * 4, strict=True)
    return [(title.strip(), int(cap), text, result) for title, cap, text, result in quartets]


@pytest.mark.parametrize(("cap", "text", "expected"), [pytest.param(*case, id=title) for title, *case in golden()])
def test_golden(cap: int, text: str, expected: str) -> None:
    limit = cap if cap >= 0 else cut(text, maxsize).tokens + cap
    result = cut(text, limit)
    assert result.text.rstrip("\r\n") == expected.rstrip("\r\n")
    assert result.tokens == count_tokens(result.text) <= limit


@pytest.mark.parametrize("text", ["", "- a\n" * 100, "<!-- how to write -->\n\n- a\n", " \n"])
def test_a_cap_below_nothing_shows_nothing(text: str) -> None:
    assert trim(text, -7, count_tokens) == trim(text, 0, count_tokens)
    assert trim(text, -7, count_tokens).text == ""


@settings(max_examples=60)
@given(DOCUMENTS | ODD_DOCUMENTS, st.lists(CAPS, max_size=4))
def test_a_text_that_is_cut_to_several_caps_is_cut_to_each_as_if_to_it_alone(text: str, caps: list[int]) -> None:
    cutting = Cutting(text, count_tokens(text), count_tokens, path=PATH)
    assert [cutting.at(cap) for cap in caps] == [trim(text, cap, count_tokens, path=PATH) for cap in caps]


@pytest.mark.parametrize(
    "count",
    [count_tokens, len, lambda text: len(text.split()), lambda text: len(text) * 7 % 101],
    ids=["tokens", "characters", "words", "nonsense"],
)
@settings(max_examples=80)
@given(text=DOCUMENTS | ODD_DOCUMENTS, cap=st.integers(0, 500), other=st.integers(0, 500), pin=st.booleans())
@example(text="**words** " * 900 + "\n\n- [x] done\n- [ ] open\n", cap=50, other=60, pin=True)
@example(text="> " + "verse of the song\n> " * 200, cap=40, other=90, pin=True)
@example(text="- a\n  - b b b b\n  - [x] c c c c\n  - d d d d\n" * 30, cap=40, other=41, pin=True)
def test_whatever_counts_and_is_pinned_a_larger_cap_shows_all_that_a_smaller_one_does(
    count: Callable[[str], int], text: str, cap: int, other: int, pin: bool
) -> None:
    pinned = frozenset(at for at in (0, text.find("\n#") + 1) if pin)
    small, large = (trim(text, each, count, path=PATH, pinned=pinned) for each in sorted((cap, other)))
    assert small.tokens == count(small.text) <= min(cap, other) or not small.text
    gone_from_small = {at for start, end in small.cut for at in range(start, end)}
    assert {at for start, end in large.cut for at in range(start, end)} <= gone_from_small


@pytest.mark.parametrize("heading", ["", "## Pier {}\n\n"])
@pytest.mark.parametrize("entries", [1, 2, 3, 12])
def test_the_cap_is_used_rather_than_wasted(heading: str, entries: int) -> None:
    text = "".join(heading.format(pier) + "- a boat with a lamp\n" * entries + "\n" for pier in range(200))
    for cap in range(300, 1000, 100):
        assert cap - 30 < cut(text, cap).tokens <= cap


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
    opens_a_fence = "``` that goes on " + "and on " * 120 + "until it `closes`"
    shown = [trim(f"A paragraph\n{opens_a_fence}", cap, count_tokens).text for cap in range(15, 200)]
    for one in shown:
        assert "fence" not in {token.type for token in MarkdownIt().parse(one)}


@pytest.mark.parametrize("levels", ["12", "123", "1212", "2343", "123456", "312"])
@pytest.mark.parametrize("long", ["01", "1", "12", "3"])
@pytest.mark.parametrize("pin", [False, True])
def test_a_heading_too_long_to_introduce_anything_is_cut_like_a_paragraph(levels: str, long: str, pin: bool) -> None:
    text = ""
    for place, level in enumerate(levels):
        title = "Quay" + ", where the ferry leaves" * 30 if str(place) in long else f"Pier {place}"
        text += f"{'#' * int(level)} {title}\n\n" + f"- a boat at {title[:6]}\n" * 30 + "\n"
    pinned = frozenset([text.rindex("\n#") + 1] * pin)
    gone_from_small = set(range(len(text)))
    for cap in range(40, count_tokens(text), 23):
        result = trim(text, cap, count_tokens, path=PATH, pinned=pinned)
        assert result.tokens == count_tokens(result.text) <= cap
        gone = {at for start, end in result.cut for at in range(start, end)}
        assert gone <= gone_from_small
        gone_from_small = gone
        for boat in regex.finditer(r"- a boat at (Pier \d)", result.text):
            assert f"# {boat[1]}\n" in result.text[: boat.start()]
    assert len(gone_from_small) < len(text) // 4


def test_the_anchors_in_the_omission_lines_are_those_of_the_notebook() -> None:
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
    entry = "- filler" + ", and more filler" * 8 + "\n"
    text = "".join(f"## {heading} ##\n\n" + entry * 20 + "\n" for heading in headings)
    result = trim(text, count_tokens(text) // 2, count_tokens, path=PATH)
    anchors = ["plain", "plain-1", "bold--code", "link-here", "shown", "qué-ünïx", "a_b-c", "section"]
    assert anchors == [section.anchor for section in parse(PATH, text.encode()).sections]
    assert [omission.anchor for omission in result.omitted] == anchors
    assert regex.findall(r"#([^#\]]+)\]\n", result.text) == anchors


def test_without_a_path_the_omission_line_names_no_call() -> None:
    assert regex.search(r"\[… \d+ more\]", trim("- entry\n" * 100, 40, count_tokens).text)


def test_a_number_without_end_is_cut_like_anything_else() -> None:
    text = "1" * 2_000_000  # to read all of it again at each place where it may end would take a quarter of an hour
    assert count_tokens(trim(text, 100, count_tokens).text) <= 100


def test_all_open_tasks_are_shown_while_only_done_ones_have_to_leave() -> None:
    boxes = ["[ ]", "[x]"] * 30
    text = "## Today\n\n" + "".join(f"- {box} task number {number} of today\n" for number, box in enumerate(boxes))
    result = trim(text, count_tokens(text) - 1, count_tokens, path=PATH)
    assert result.text.count("[ ]") == 30
    assert 27 <= result.text.count("[x]") < 30
    assert result.text.count("[…") == 1


def test_a_section_stays_when_the_one_above_it_is_a_long_list() -> None:
    text = "# Rules\n\n" + "- never sail in fog\n" * 400 + "\n# Boundaries\n\n- never promise a refund\n" * 3
    assert cut(text, 300).text.count("- never promise a refund") == 3
