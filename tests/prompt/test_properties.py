"""What holds for every text and every cap: of generated Markdown, and of what others wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompt import Cutting, Trimmed, count_tokens
from prompt.outline import Outline
from tests.prompt import corpora
from tests.prompt.block_tree import (
    OMISSION,
    Node,
    is_left_of,
    omissions_in,
    tree_of,
    without_omissions,
)

PATH = "runtime/log.md"
CAPS = (0, 20, 60, 61, 200, 700)
BLANK_IN_QUOTE = re.compile(r"^[ \t>]+(?=\r?$)", re.MULTILINE)
Property = Callable[[str, int], None]
# Each text is tried at every cap before the next one.
remembered = lru_cache(maxsize=32)


@remembered
def cutting(text: str) -> Cutting:
    return Cutting(text, count_tokens(text), count_tokens, path=PATH)


@remembered
def cut(text: str, cap: int) -> Trimmed:
    return cutting(text).at(cap)


@remembered
def blocks_of(text: str) -> Node:
    return tree_of(text)


def no_more_than_the_cap_is_shown(text: str, cap: int) -> None:
    result = cut(text, cap)
    assert count_tokens(result.text) == result.tokens <= cap


def a_text_within_its_cap_is_unchanged(text: str, cap: int) -> None:
    if count_tokens(text) <= cap:
        assert cut(text, cap) == Trimmed(text, count_tokens(text))


def what_is_shown_are_blocks_of_the_source_in_their_order(text: str, cap: int) -> None:
    """Nothing has become another block, left the one it was in, or taken in what was outside; what is a beginning reads
    as one: no link, emphasis or code in it is broken."""
    shown = without_omissions(blocks_of(cut(text, cap).text))
    assert is_left_of(shown, blocks_of(text))


def what_is_left_out_is_said_in_lines_that_are_read_as_such(text: str, cap: int) -> None:
    result = cut(text, cap)
    if result.text == text or not result.text:
        return
    read = omissions_in(blocks_of(result.text))
    written = [match[0] for match in OMISSION.finditer(result.text)]
    assert [line for line in written if line not in text] == [line for line in read if line not in text]
    assert read or not result.cut or result.cut[0][0] == 0


def an_omission_line_names_a_section_that_has_what_is_left_out(text: str, cap: int) -> None:
    result = cut(text, cap)
    lines = [match for match in OMISSION.finditer(result.text) if match[0] not in text and match[0] != "[…]"]
    calls = [line for line in lines if line[2]]
    if not lines:
        return
    if not calls:
        assert result.text == lines[0][0], "without room for a call, one line and nothing else"
        return
    assert len(calls) == len(lines) or (calls == lines[-1:] and not calls[0][3])
    sections = ranges_of(text)
    assert len({call[3] for call in calls}) == len(calls), "one line a section"
    assert {call[2] for call in calls} == {PATH}
    named = [sections[call[3]] if call[3] else (0, len(text)) for call in calls]
    for start, end in result.cut:
        assert any(first <= start and end <= last for first, last in named), text[start:end]
    assert sum(int(call[1] or 0) for call in calls) == sum(omission.entries for omission in result.omitted)


def ranges_of(text: str) -> dict[str, tuple[int, int]]:
    sections = Outline(text).sections
    ends = [
        next((below.start for below in sections[number + 1 :] if below.level <= section.level), len(text))
        for number, section in enumerate(sections)
    ]
    return {section.anchor: (section.start, end) for section, end in zip(sections, ends, strict=True)}


def a_larger_cap_never_shows_less(text: str, cap: int) -> None:
    shown = shown_places(text, cap)
    for larger in (each for each in CAPS if each > cap):
        gone = shown - shown_places(text, larger)
        assert not gone, f"{''.join(text[at] for at in sorted(gone))!r} is shown in {cap} tokens and not in {larger}"


@remembered
def shown_places(text: str, cap: int) -> set[int]:
    """Which of `places_of` the text are in the result."""
    result = cut(text, cap)
    return places_of(text).difference(*(range(start, end) for start, end in result.cut)) if result.text else set()


@remembered
def places_of(text: str) -> set[int]:
    """The characters of a text, but for white space and the marks of blank lines in quotes."""
    blank = {at for line in BLANK_IN_QUOTE.finditer(text) for at in range(*line.span())}
    return {at for at, character in enumerate(text) if not character.isspace() and at not in blank}


def what_is_said_to_be_shown_is_what_is_shown(text: str, cap: int) -> None:
    """The source less `cut` is the result less its omission lines, but for marks that close what the cut left open."""
    result = cut(text, cap)
    shown = iter(re.sub(r"\s", "", OMISSION.sub("", result.text)))
    added = []
    for character in (text[at] for at in sorted(shown_places(text, cap))):
        for other in shown:
            if other == character:
                break
            added.append(other)
        else:
            pytest.fail(f"{character!r} is not shown where the account has it")
    assert set(added).union(shown) <= set("…~`>")


def cut_again_it_stays(text: str, cap: int) -> None:
    result = cut(text, cap)
    assert cut(result.text, cap).text == result.text


PROPERTIES: list[Property] = [
    no_more_than_the_cap_is_shown,
    a_text_within_its_cap_is_unchanged,
    what_is_shown_are_blocks_of_the_source_in_their_order,
    what_is_left_out_is_said_in_lines_that_are_read_as_such,
    an_omission_line_names_a_section_that_has_what_is_left_out,
    what_is_said_to_be_shown_is_what_is_shown,
    a_larger_cap_never_shows_less,
    cut_again_it_stays,
]


def try_it(text: str, cap: int, *properties: Property) -> None:
    for holds in properties or PROPERTIES:
        try:
            holds(text, cap)
        except AssertionError as error:
            error.add_note(f"{holds.__name__} at {cap} tokens of {text[:2000]!r}")
            raise


@pytest.mark.parametrize("corpus", corpora.names())
def test_of_what_others_wrote(corpus: str) -> None:
    for text, cap in product(corpora.texts(corpus), CAPS):
        try_it(text, cap)


@settings(max_examples=80)
@given(text=st.one_of(corpora.DOCUMENTS, corpora.ODD_DOCUMENTS), cap=st.integers(0, 300))
def test_of_generated_documents(text: str, cap: int) -> None:
    try_it(text, cap)


def test_each_cap_shows_all_that_the_one_below_it_does() -> None:
    text = "".join(f"## Pier {pier}\n\n" + f"- boat {pier} of many\n" * pier + "\n" for pier in range(1, 9))
    for cap in range(count_tokens(text)):
        assert shown_places(text, cap) <= shown_places(text, cap + 1), cap


@pytest.mark.parametrize("margin", ["", "- ", "> "])
@pytest.mark.parametrize("last", ["```", "     ```", "````", "```py", "~~~", ""])
def test_a_fence_stays_or_leaves_whole_whatever_its_last_line_looks_like(margin: str, last: str) -> None:
    inside = margin if margin == "> " else " " * len(margin)
    lines = ["```py", *(f"boat = {number}" for number in range(12)), last]
    text = margin + f"\n{inside}".join(lines) + "\n\n## Below\n\nwords\n" + "- more words\n" * 20
    for cap in range(20, 150, 5):
        try_it(text, cap)


def test_no_tag_no_link_and_no_entity_is_broken_at_any_cap() -> None:
    text = 'the <a title="a < b" id=x>pier</a> &middot; [tide](tide.md) ![map](map.png) <https://harbour.example> ' * 9
    link = "Ask [the office](https://harbour.example/" + "tides/" * 200 + ") when in doubt. " + "Ines knows. " * 40
    for cap in range(20, 140, 2):
        try_it(text, cap, what_is_shown_are_blocks_of_the_source_in_their_order)
        try_it(link, 5 * cap, what_is_shown_are_blocks_of_the_source_in_their_order)
