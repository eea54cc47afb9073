"""What holds for every text and every cap: for generated Markdown, for the examples of CommonMark, for strings that
break programs, and for READMEs that people published. Each property stands once and is tried on all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.files.parse import parse
from prompt import Trimmed, count_tokens, trim
from tests.prompt import corpora
from tests.prompt.block_tree import (
    OMISSION,
    Node,
    first_stranger,
    is_left_of,
    omissions_in,
    tree_of,
    without_omissions,
)
from tests.prompt.markdown_texts import DOCUMENTS, ODD_DOCUMENTS

PATH = "runtime/log.md"
CAPS = (0, 20, 60, 61, 200, 700)
Property = Callable[[str, int], None]


@cache
def cut(text: str, cap: int) -> Trimmed:
    return trim(text, cap, count_tokens, path=PATH)


@cache
def blocks_of(text: str) -> Node:
    return tree_of(text)


def no_more_than_the_cap_is_shown(text: str, cap: int) -> None:
    result = cut(text, cap)
    assert count_tokens(result.text) == result.tokens <= cap


def a_text_within_its_cap_is_as_it_was(text: str, cap: int) -> None:
    if count_tokens(text) <= cap:
        assert cut(text, cap) == Trimmed(text, count_tokens(text))


def what_is_shown_are_blocks_of_the_source_in_their_order(text: str, cap: int) -> None:
    """Nothing in the result has become another block, has left the one it stood in, or has taken in what stood outside;
    what is a beginning reads as one: no link, no emphasis and no code in it is broken."""
    shown = without_omissions(tree_of(cut(text, cap).text))
    assert is_left_of(shown, blocks_of(text)), first_stranger(shown, blocks_of(text))


def what_is_left_out_is_told_in_lines_that_are_read_as_such(text: str, cap: int) -> None:
    result = cut(text, cap)
    if result.text == text or not result.text:
        return
    told = omissions_in(tree_of(result.text))
    written = [match[0] for match in OMISSION.finditer(result.text)]
    assert [line for line in written if line not in text] == [line for line in told if line not in text]
    assert told or not result.cut or result.cut[0][0] == 0


def an_omission_line_names_a_section_that_has_what_is_left_out(text: str, cap: int) -> None:
    result = cut(text, cap)
    note = parse(PATH, text.encode("utf-8", "replace"))
    calls = [match for match in OMISSION.finditer(result.text) if match[0] not in text]
    if note.content != text or not calls:
        return
    if not calls[0][3]:
        # No room for a call: one line, and nothing else, says how much there is.
        assert result.text == calls[0][0]
        assert calls[0][2] in (None, str(count_tokens(text)))
        return
    sections = {section.anchor: (section.start, section.end) for section in note.sections}
    named = [sections[call[4]] if call[4] else (0, len(text)) for call in calls]
    assert {call[3] for call in calls} == {PATH}
    for start, end in result.cut:
        if not text[start:end].strip().startswith("<!--"):
            assert any(first <= start and end <= last for first, last in named), text[start:end]
    assert sum(int(call[2]) for call in calls) == sum(omission.tokens for omission in result.omitted)


def a_larger_cap_never_shows_less(text: str, cap: int) -> None:
    shown = shown_places(text, cut(text, cap))
    for larger in (each for each in CAPS if each > cap):
        gone = shown - shown_places(text, cut(text, larger))
        assert not gone, f"{''.join(text[at] for at in sorted(gone))!r} is shown in {cap} tokens and not in {larger}"


def shown_places(text: str, result: Trimmed) -> set[int]:
    """Which characters of `text` stand in the result, white space apart."""
    if not result.text:
        return set()
    places = {at for at, character in enumerate(text) if not character.isspace()}
    return places.difference(*(range(start, end) for start, end in result.cut))


def what_is_said_to_be_shown_is_what_is_shown(text: str, cap: int) -> None:
    """The account of the cut holds: the source less `cut` is the result less its omission lines, but for marks that
    close what the cut left open."""
    result = cut(text, cap)
    shown = iter(solid(OMISSION.sub("", result.text)))
    added = []
    for character in (text[at] for at in sorted(shown_places(text, result))):
        for other in shown:
            if other == character:
                break
            added.append(other)
        else:
            pytest.fail(f"{character!r} is not shown where the account has it")
    assert set(added).union(shown) <= set("…*_~`>")


def solid(text: str) -> str:
    return re.sub(r"\s", "", text)


def cut_again_it_stays(text: str, cap: int) -> None:
    result = cut(text, cap)
    assert cut(result.text, cap).text == result.text


PROPERTIES: list[Property] = [
    no_more_than_the_cap_is_shown,
    a_text_within_its_cap_is_as_it_was,
    what_is_shown_are_blocks_of_the_source_in_their_order,
    what_is_left_out_is_told_in_lines_that_are_read_as_such,
    an_omission_line_names_a_section_that_has_what_is_left_out,
    what_is_said_to_be_shown_is_what_is_shown,
    a_larger_cap_never_shows_less,
    cut_again_it_stays,
]


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
@pytest.mark.parametrize("corpus", ["commonmark", "naughty", "readmes"])
def test_of_what_others_wrote(corpus: str, holds: Property) -> None:
    for text in corpora.texts(corpus):
        for cap in CAPS:
            try_it(holds, text, cap)


@settings(max_examples=40, deadline=None)
@given(text=DOCUMENTS, cap=st.integers(0, 300))
def test_of_documents_as_people_write_them(text: str, cap: int) -> None:
    for holds in PROPERTIES:
        try_it(holds, text, cap)


@settings(max_examples=40, deadline=None)
@given(text=ODD_DOCUMENTS, cap=st.integers(0, 150))
def test_of_documents_that_nobody_would_write(text: str, cap: int) -> None:
    for holds in PROPERTIES:
        try_it(holds, text, cap)


def test_each_cap_shows_all_that_the_one_below_it_does() -> None:
    text = "".join(f"## Pier {pier}\n\n" + f"- boat {pier} of many\n" * pier + "\n" for pier in range(1, 9))
    for cap in range(count_tokens(text)):
        assert shown_places(text, cut(text, cap)) <= shown_places(text, cut(text, cap + 1)), cap


@pytest.mark.parametrize("margin", ["", "- ", "> "])
@pytest.mark.parametrize("last", ["```", "     ```", "````", "```py", "~~~", ""])
def test_a_cut_fence_is_closed_whatever_its_last_line_looks_like(margin: str, last: str) -> None:
    inside = margin if margin == "> " else " " * len(margin)
    lines = ["```py", *(f"boat = {number}" for number in range(40)), last]
    text = margin + f"\n{inside}".join(lines) + "\n\n## Below\n\nwords\n"
    for cap in range(20, 250):
        try_it(what_is_shown_are_blocks_of_the_source_in_their_order, text, cap)
        try_it(what_is_left_out_is_told_in_lines_that_are_read_as_such, text, cap)


def test_no_tag_no_link_and_no_entity_is_broken_at_any_cap() -> None:
    text = 'the <a title="a < b" id=x>pier</a> &middot; [tide](tide.md) ![map](map.png) <https://harbour.example> ' * 9
    for cap in range(20, 140):
        try_it(what_is_shown_are_blocks_of_the_source_in_their_order, text, cap)


def try_it(holds: Property, text: str, cap: int) -> None:
    try:
        holds(text, cap)
    except AssertionError as error:
        error.add_note(f"at {cap} tokens of {text[:2000]!r}")
        raise
