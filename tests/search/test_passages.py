"""A note as passages: where each stands, what it says, and that nothing of the note is lost or shown that is hidden."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from notebook_sync.files.note import Stamp
from notebook_sync.files.parse import parse
from notebook_sync.mirror.base import Breadcrumb, Document, Put
from notebook_sync.mirror.document import document_of, moment
from notebook_sync.search.base import Passage
from notebook_sync.search.passages import LONGEST, MOST, passages_of, said
from prompt.outline import Outline

_STAMP = Stamp(1, 1, 1, 1)


def document(text: str, path: str = "pages/harbour.md") -> Document:
    note = parse(path, text.encode(errors="surrogatepass"))
    return document_of(Put(note.wants, note, _STAMP, None, "created", Breadcrumb(moment(1), "Created")))


def cut(text: str) -> list[tuple[str, str, int]]:
    """Of each passage: its text, its anchor, its line."""
    return [(each.text, each.place.anchor, each.place.line) for each in passages_of(document(text))]


def own_words(found: Document, passages: list[Passage]) -> list[str]:
    return [found["content"][each.place.start : each.place.end] for each in passages]


def test_a_passage_says_the_title_the_heading_and_what_stands_below_it() -> None:
    text = """---
title: Ferry office
---

Two boats.

# Ferry office

Open all year.

## Fares

Ines pays half.

### Children

Odile's go free.
"""
    assert cut(text) == [
        ("Ferry office\nTwo boats.", "", 5),
        ("Ferry office\nOpen all year.", "ferry-office", 9),
        ("Ferry office\nFares. Ines pays half.", "fares", 13),
        ("Ferry office\nChildren. Odile's go free.", "children", 17),
    ]


def test_a_place_is_where_the_passage_s_own_words_stand() -> None:
    found = document("# Pier\n\n  Boards **creak**\n\nUnderlined\n----------\nRopes\n  hang.\n")

    passages = passages_of(found)

    assert own_words(found, passages) == ["Boards **creak**", "Ropes\n  hang."]
    assert [each.text for each in passages] == ["Pier\nBoards creak", "Pier\nUnderlined. Ropes hang."]
    assert [each.place.line for each in passages] == [3, 7]


def test_a_note_of_a_title_alone_has_one_passage() -> None:
    assert cut("# Tide tables\n") == [("Tide tables", "", 1)]
    assert cut("") == [("harbour", "", 1)]


def test_comments_are_in_no_passage_and_split_what_stands_around_them() -> None:
    found = document(
        "# Log\n\nCalm <!-- secret --> sea.\n\n<!-- secret\n\n## Secret -->\n\nFog.\n\n- one\n <!-- secret -->\n- two\n"
    )

    passages = passages_of(found)

    assert own_words(found, passages) == ["Calm", "sea.", "Fog.\n\n- one", "- two"]
    assert "secret" not in "".join(each.text for each in passages).lower()


def test_a_comment_in_code_is_code_and_one_never_closed_is_text() -> None:
    text = "# Page\n\n```html\n<!-- shown -->\n```\n\nAfter.\n\n<!-- half-typed\n"
    words = " ".join(own_words(document(text), passages_of(document(text))))

    assert "shown" in words
    assert "half-typed" in words
    assert "After." in words


@pytest.mark.parametrize(
    ("markdown", "spoken"),
    [
        ("See [the *tide* table](https://tides.example/a?b=c).", "See the tide table ."),
        ("![a badge](https://badges.example/x.svg) Sails at noon", "Sails at noon"),
        ("[![built](https://ci.example/b.svg)](https://ci.example) Boats", "Boats"),
        ("<p align='center'><b>Quay</b> nine</p>", "Quay nine"),
        ("Ask at https://harbour.example/desk or www.harbour.example now", "Ask at or now"),
        ("[tides]: https://tides.example 'Tides'", "tides"),
        ("```python\nsail(north)\n```", "sail(north)"),
        ("| pier | fare |\n|---|---|\n| one | 2 |", "pier fare --- --- one 2"),
        ("### Fares &amp; _tolls_", "Fares _tolls_"),
        ("2 < 3 and 4 > 3, snake_case", "2 < 3 and 4 3, snake_case"),
        ("rope<!-- frayed -->", "rope"),
    ],
)
def test_what_is_no_word_for_a_reader_is_not_said(markdown: str, spoken: str) -> None:
    assert said(markdown) == spoken


def test_a_passage_of_links_and_badges_alone_is_none() -> None:
    assert cut("# Boats\n\n![](https://badges.example/x.svg)\n\n## Fleet\n\nThree.\n") == [
        ("Boats\nFleet. Three.", "fleet", 7)
    ]


def test_a_long_paragraph_is_cut_between_words_and_code_between_lines() -> None:
    sentence = "The ferry leaves the pier when the tide has turned and the lamps are lit "
    code = "".join(f"berth({number:03}, 'harbour')\n" for number in range(100))
    found = document(f"# Long\n\n{sentence * 40}\n\n## Code\n\n```python\n{code}```\n")

    passages = passages_of(found)
    prose = [
        words for words, each in zip(own_words(found, passages), passages, strict=True) if each.place.anchor != "code"
    ]
    lines = [
        words for words, each in zip(own_words(found, passages), passages, strict=True) if each.place.anchor == "code"
    ]

    assert max(map(len, [*prose, *lines])) <= LONGEST
    assert " ".join(prose) == (sentence * 40).strip()
    assert "\n".join(lines) == f"```python\n{code}```"
    assert len(prose) > 5
    assert len(lines) > 5


def test_a_word_longer_than_a_passage_is_cut_all_the_same() -> None:
    found = document("f" * 1_000)

    assert "".join(own_words(found, passages_of(found))) == "f" * 1_000


def test_a_huge_note_has_longer_passages_and_all_of_its_words() -> None:
    words = [f"word{number}" for number in range(150_000)]
    found = document("# Huge\n\n" + " ".join(words))

    passages = passages_of(found)

    assert len(passages) <= MOST
    assert " ".join(own_words(found, passages)).split() == words


def test_of_more_sections_than_there_may_be_passages_the_first_count() -> None:
    found = document("".join(f"## Berth {number}\n\nFree.\n\n" for number in range(MOST + 50)))

    assert [each.place.anchor for each in passages_of(found)] == [f"berth-{number}" for number in range(MOST)]


_LINES = st.lists(
    st.sampled_from(
        [
            *("# Harbour", "## Pier", "###", "Tides", "=====", "-----", "```", "~~~", "```py", "    code"),
            *("<!-- hidden", "hidden -->", "<!-- hidden -->", "word <!-- hidden --> word", "`<!--`", "-->", "<!-->"),
            *("", "", "- one", "  two", "> quote", "| a | b |", "<div>", "</div>", "[a](b)", "![c](d)", "word " * 120),
            *("f" * 500, "渡船", "🛥️", "\t", "\0", "a\rb", "\u2028", "---", "&amp;", "\ufeff"),
        ]
    ),
    max_size=25,
).map("\n".join)


@settings(max_examples=150)
@given(st.one_of(_LINES, st.text(max_size=2_000)))
@example("- <!--\n\n# A\n\n-->\n")
@example("---\nid: ferry\n---\n\n# A\n\nword\n")
def test_places_are_in_order_and_apart_and_on_their_lines_and_cover_what_is_shown(text: str) -> None:
    found = document(text)
    content = found["content"]

    passages = passages_of(found)

    end = 0
    outside = []
    untitled = _without_headings(content)
    for each in [one for one in passages if one.place.end]:
        place = each.place
        assert end <= place.start < place.end <= len(content)
        own = content[place.start : place.end]
        assert own == own.strip()
        assert len(own) <= LONGEST
        assert each.text.partition("\n")[2].endswith(said(own))
        outside.append(untitled[end : place.start])
        end = place.end
    outside.append(untitled[end:])
    for gap in outside:
        assert not re.search(r"word|fff|渡船|code", re.sub(r"<!--.*?-->", "", gap, flags=re.DOTALL))
    _are_on_their_lines(found, passages)


def _are_on_their_lines(found: Document, passages: list[Passage]) -> None:
    """The lines of the file, where a heading tells how many stand before the content."""
    content, sections = found["content"], found["sections"]
    above = sections[0]["line"] - 1 - content.count("\n", 0, sections[0]["start"]) if sections else 0
    for each in passages:
        if each.place.end:
            assert each.place.line == above + 1 + content.count("\n", 0, each.place.start)
            below = [one["anchor"] for one in sections if one["start"] <= each.place.start]
            assert each.place.anchor == (below[-1] if below else "")


def _without_headings(content: str) -> str:
    """As long as it was."""
    for section in Outline(content).sections:
        content = f"{content[: section.start]}{' ' * (section.body - section.start)}{content[section.body :]}"
    return content
