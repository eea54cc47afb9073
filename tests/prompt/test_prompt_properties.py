"""What holds for every text and every cap: for generated Markdown, for the examples of CommonMark, for strings that
break programs, and for READMEs that people published. Each property stands once and is tried on all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.files.parse import parse
from prompt import Trimmed, count_tokens, trim
from prompt.hidden import visible
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
BLANK_IN_QUOTE = re.compile(r"^[ \t>]+(?=\r?$)", re.MULTILINE)
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
    lines = [match for match in OMISSION.finditer(result.text) if match[0] not in text]
    calls = [line for line in lines if line[2]]
    if note.content != text or not lines:
        return
    if not calls:
        # No room for a call: one line, and nothing else, says that there is more.
        assert result.text == lines[0][0]
        return
    # Where sections have marks, one line at the end has the call for all of them.
    assert len(calls) == len(lines) or (calls == lines[-1:] and not calls[0][3])
    sections = {section.anchor: (section.start, section.end) for section in note.sections}
    assert len({call[3] for call in calls}) == len(calls), "one line a section"
    assert {call[2] for call in calls} == {PATH}
    named = [sections[call[3]] if call[3] else (0, len(text)) for call in calls]
    for start, end in result.cut:
        assert any(first <= start and end <= last for first, last in named), text[start:end]
    assert sum(int(call[1] or 0) for call in calls) == sum(omission.entries for omission in result.omitted)


def no_omission_line_costs_more_than_what_it_replaces(text: str, cap: int) -> None:
    result = cut(text, cap)
    if "[…" in text or not result.text:
        return
    left_out = count_tokens("\n".join(text[start:end] for start, end in result.cut))
    assert sum(count_tokens(match[0]) for match in OMISSION.finditer(result.text)) <= left_out


def a_larger_cap_never_shows_less(text: str, cap: int) -> None:
    shown = shown_places(text, cut(text, cap))
    for larger in (each for each in CAPS if each > cap):
        gone = shown - shown_places(text, cut(text, larger))
        assert not gone, f"{''.join(text[at] for at in sorted(gone))!r} is shown in {cap} tokens and not in {larger}"


def shown_places(text: str, result: Trimmed) -> set[int]:
    """Which characters of `text` stand in the result, white space and the marks of blank lines in quotes apart."""
    if not result.text:
        return set()
    blank = {at for line in BLANK_IN_QUOTE.finditer(text) for at in range(*line.span())}
    places = {at for at, character in enumerate(text) if not character.isspace() and at not in blank}
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
    no_omission_line_costs_more_than_what_it_replaces,
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


@settings(max_examples=40)
@given(text=DOCUMENTS, cap=st.integers(0, 300))
def test_of_documents_as_people_write_them(text: str, cap: int) -> None:
    for holds in PROPERTIES:
        try_it(holds, text, cap)


@settings(max_examples=40)
@given(text=ODD_DOCUMENTS, cap=st.integers(0, 150))
def test_of_documents_that_nobody_would_write(text: str, cap: int) -> None:
    for holds in PROPERTIES:
        try_it(holds, text, cap)


NOW = datetime(2026, 3, 1)


def nested(depth: int, kind: str) -> tuple[str, list[str]]:
    """A nest with something hidden at its bottom and below it, and the entries that are to be seen, in order."""
    indent = "  " if kind == "list" else "> "
    levels = [indent * level + f"- level {level}" for level in range(depth)]
    hiding = ("- gone [until 2026-02-01]", "- kept <!-- gone -->", "- low %% gone %%")
    below = (
        "\n- first below\n- gone <!-- gone --> [until 2026-02-01]\n- second below\n\n## Next\n\n- own <!-- gone -->\n"
    )
    text = "\n".join(["## Nest\n", *levels, *(indent * depth + line for line in hiding), below])
    return text, [*(line.strip("> ") for line in levels), "- kept", "- low", "- first below", "- second below", "- own"]


@pytest.mark.parametrize("kind", ["list", "quote"])
@pytest.mark.parametrize("depth", [*range(1, 16), 20, 21, 40, 60])
def test_at_any_depth_nothing_hidden_is_shown_and_what_follows_is_an_entry_of_its_own(depth: int, kind: str) -> None:
    source, entries = nested(depth, kind)
    text = visible(source, now=NOW).text
    assert [line.strip("> ") for line in text.splitlines() if "-" in line] == entries
    whole = count_tokens(text)
    for cap in (whole // 3, whole // 2, whole - 1):
        for holds in PROPERTIES:
            try_it(holds, text, cap)
    longer = text.replace("- second below\n", "- second below\n" * 30)
    assert 0 < cut(longer, count_tokens(longer) - 1).omitted[0].entries < 30


@pytest.mark.parametrize("mark", ["- ", "> ", "1. ", "* > "])
def test_a_nest_without_end_is_cut(mark: str) -> None:
    text = visible(mark * (2**17 // len(mark)) + "x <!-- gone -->\n\n## Next\n\n- own\n", now=NOW).text
    assert "gone" not in text
    no_more_than_the_cap_is_shown(text, 60)


HOSTILE = {
    "flags": "🇳🇴🇸🇪" * 6000,
    "one line": "word " * 200_000,
    "angles": "<" * 10**6,
    "wiki links": "[[" * 20_000,
    "lone surrogates": "- a \ud800 b\n" * 300,
    "NUL": "- a \x00 b\n" * 300,
    "percent": "x %% " * 20_001,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_of_hostile_text(text: str) -> None:
    assert visible(text, now=NOW).text == text or "%%" in text
    for cap in (0, 20, 60, 61):
        no_more_than_the_cap_is_shown(text, cap)
        what_is_said_to_be_shown_is_what_is_shown(text, cap)
    assert shown_places(text, cut(text, 20)) <= shown_places(text, cut(text, 60))


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


def test_a_link_longer_than_a_stretch_is_shown_whole_or_not_at_all() -> None:
    text = "Ask [the office](https://harbour.example/" + "tides/" * 200 + ") when in doubt. " + "Ines knows. " * 40
    for cap in range(20, 700, 20):
        try_it(what_is_shown_are_blocks_of_the_source_in_their_order, text, cap)


def try_it(holds: Property, text: str, cap: int) -> None:
    try:
        holds(text, cap)
    except AssertionError as error:
        error.add_note(f"at {cap} tokens of {text[:2000]!r}")
        raise
