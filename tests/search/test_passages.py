"""A note as passages: where each is, what a model is given and a search quotes of it, and that nothing is lost or shown
that is hidden."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from notebook_sync.search.terms import (
    LONGEST,
    LONGEST_SNIPPET,
    MOST_EMBEDDED,
    Passage,
    Snippet,
    best_passage,
    passages_of,
    plain,
    shown,
    snippet_of,
    texts_to_embed,
)
from prompt.outline import Outline
from tests.search.conftest import ANALYZER, sections_of


def own_words(content: str) -> list[str]:
    return [each.text for each in passages_of(content, sections_of(content))]


def given_to_model(content: str, title: str = "Harbour") -> list[str]:
    return [text for _, text in texts_to_embed(title, content, sections_of(content))]


def test_a_model_is_given_title_heading_and_what_is_below() -> None:
    content = """Two boats.

# Ferry *office*

Open all year.

## Fares

Ines pays half.

### Children

Odile's go free.
"""
    assert [
        (text, each.anchor, each.line) for each, text in texts_to_embed("Ferry office", content, sections_of(content))
    ] == [
        ("Ferry office\nTwo boats.", "", 1),
        ("Ferry office\nOpen all year.", "ferry-office", 5),
        ("Ferry office\nFares. Ines pays half.", "fares", 9),
        ("Ferry office\nChildren. Odile's go free.", "children", 13),
    ]


def test_a_passage_begins_below_its_heading_and_knows_it_as_written() -> None:
    content = "# Pier\n\n  Boards **creak**\n\nUnderlined\n----------\nRopes\n  hang.\n"
    assert own_words(content) == ["Boards **creak**", "Ropes\n  hang."]
    found = list(passages_of(content, sections_of(content)))
    assert [(each.opens, each.line) for each in found] == [("# Pier\n", 3), ("Underlined\n----------\n", 7)]


def test_lines_are_those_of_the_file_where_a_section_tells() -> None:
    content = "Above.\n\n# Pier\n\nBoards.\n"
    sections = [[*each[:3], each[3] + 4, *each[4:]] for each in sections_of(content)]
    assert [each.line for each in passages_of(content, sections)] == [5, 9]


def test_a_section_without_words_has_an_empty_passage_and_no_vector() -> None:
    content = "# Boats\n\n![](https://badges.example/x.svg)\n\n## Empty\n\n## Fleet\n\nThree.\n"
    assert own_words(content) == ["![](https://badges.example/x.svg)", "", "Three."]
    assert given_to_model(content, "Boats") == ["Boats\nFleet. Three."]
    assert given_to_model("# Tide tables\n", "Tide tables") == ["Tide tables"]
    assert given_to_model("", "") == []


HIDDEN = {
    "comment": "Calm <!-- secret --> sea.",
    "block": "Fog.\n\n<!-- secret\n\n## Secret -->\n\nRain.",
    "in a heading": "# Log <!-- secret -->\n\nCalm.",
    "in a list": "- one\n <!-- secret -->\n- two",
    "percent": "Calm %%secret%% sea.",
    "percent block": "Fog.\n\n%%\nsecret\n%%\n\nRain.",
    "picture": f"Before ![scan](data:image/png;base64,{'secret' * 2_000}) after.",
    "picture in code": f"Before `data:image/png;base64,{'secret' * 2_000}` after.",
    "payload": f"Drawing:\n\n```compressed-json\n{'secret' * 200}\n```\n",
    "blob": f"Key {'secret' * 40} end.",
}


@pytest.mark.parametrize("content", HIDDEN.values(), ids=HIDDEN)
def test_what_a_model_is_never_shown_is_in_no_passage(content: str) -> None:
    found = list(passages_of(content, sections_of(content)))
    texts = [*own_words(content), *(each.opens + each.heading for each in found), *given_to_model(content)]
    assert "secret" not in " ".join([*texts, shown(content)]).lower()
    assert len(found) <= 3


def test_a_comment_in_code_is_code_and_one_never_closed_is_text() -> None:
    words = " ".join(own_words("# Page\n\n```html\n<!-- shown -->\n```\n\nAfter.\n\n<!-- half-typed\n"))
    assert all(word in words for word in ("shown", "half-typed", "After."))


def test_what_looks_like_frontmatter_in_the_content_is_text() -> None:
    content = "---\ntide: high\n---\n\nMore <!-- x --> text.\n"
    assert "tide" in own_words(content)[0] + "".join(each.opens for each in passages_of(content, sections_of(content)))


@pytest.mark.parametrize(
    ("markdown", "heard"),
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
    ],
)
def test_a_model_is_given_what_a_reader_hears(markdown: str, heard: str) -> None:
    assert plain(markdown) == heard


def test_a_long_paragraph_is_cut_between_words_and_code_between_lines() -> None:
    sentence = "The ferry leaves the pier when the tide has turned and the lamps are lit "
    code = "".join(f"berth({number:03}, 'harbour')\n" for number in range(100))
    content = f"# Long\n\n{sentence * 40}\n\n## Code\n\n```python\n{code}```\n"
    found = list(passages_of(content, sections_of(content)))
    prose = [each.text for each in found if each.anchor == "long"]
    lines = [each.text for each in found if each.anchor == "code"]
    assert max(map(len, [*prose, *lines])) <= LONGEST
    assert " ".join(prose) == (sentence * 40).strip()
    assert "\n".join(lines) == f"```python\n{code}```"
    assert own_words("fé" * 1_000) == ["fé" * 200] * 5
    assert len(own_words("Fog.\n\n" + sentence * 6)[0]) > LONGEST // 2


def test_a_huge_note_has_longer_passages_and_all_of_its_words() -> None:
    words = [f"word{number}" for number in range(150_000)]
    content = "# Huge\n\n" + " ".join(words)
    assert len(own_words(content)) <= MOST_EMBEDDED
    assert " ".join(own_words(content)).split() == words


def test_of_more_sections_than_get_vectors_the_first_do() -> None:
    content = "".join(f"## Berth {number}\n\nFree.\n\n" for number in range(MOST_EMBEDDED + 50))
    assert len(list(passages_of(content, sections_of(content)))) == MOST_EMBEDDED + 50
    assert given_to_model(content)[-1] == f"Harbour\nBerth {MOST_EMBEDDED - 1}. Free."


def test_a_huge_title_or_heading_is_not_repeated_whole() -> None:
    content = f"# {'pier ' * 5_000}\n\n" + "Rope. " * 1_000
    assert max(map(len, given_to_model(content, "title " * 5_000))) <= 3 * LONGEST + 10


LINES = st.lists(
    st.sampled_from(
        [
            *("# Harbour", "## Pier", "###", "Tides", "=====", "-----", "```", "~~~", "```py", "    code"),
            *("<!-- hidden", "hidden -->", "<!-- hidden -->", "word <!-- hidden --> word", "`<!--`", "-->", "<!-->"),
            *("", "", "- one", "  two", "> quote", "| a | b |", "<div>", "</div>", "[a](b)", "![c](d)", "word " * 120),
            *("fé" * 250, "渡船", "🛥️", "\t", "\0", "a\rb", "\u2028", "---", "&amp;", "%% hidden %%", "%%"),
        ]
    ),
    max_size=25,
).map("\n".join)


@given(st.one_of(LINES, st.text(max_size=2_000)))
@example("- <!--\n\n# A\n\n-->\n")
def test_passages_are_in_order_on_their_lines_and_cover_what_is_shown(content: str) -> None:
    sections = sections_of(content)
    below_headings = list(content)
    for each in Outline(content).sections:
        below_headings[each.start : each.body] = " " * (each.body - each.start)
    end, outside = 0, ""
    for passage in passages_of(content, sections):
        own = passage.text
        assert end <= passage.start <= passage.start + len(own) <= len(content)
        assert own == own.strip()
        assert len(own) <= LONGEST
        above = [anchor for _, _, anchor, _, start, _ in sections if start <= passage.start]
        place = (above[-1] if above else "", 1 + content.count("\n", 0, passage.start))
        assert (passage.anchor, passage.line) == place
        outside += "".join(below_headings[end : passage.start])
        end = passage.start + len(own)
    outside += "".join(below_headings[end:])
    assert not re.search("word|fé|渡船|code", re.sub("<!--.*?-->", "", outside, flags=re.DOTALL))


@pytest.mark.parametrize("before", range(0, 90, 7))
def test_a_long_word_of_data_is_hidden_wherever_it_begins(before: int) -> None:
    above = "a " * before
    assert (shown(above + "Q" * 160), shown(above + "Q" * 159)) == (above + " " * 160, above + "Q" * 159)


# What a search quotes of it.


def quote(content: str, query: str, near: int | None = None) -> Snippet | None:
    asked = set(ANALYZER.query_terms(query))
    passages = list(passages_of(content, sections_of(content)))
    counted = [(each, len(asked & set(ANALYZER.terms(each.text)))) for each in passages]
    chosen = best_passage(counted, near)
    return chosen and snippet_of(chosen, lambda text: ANALYZER.first_place(text, asked))


PIER = "# Pier\n\nThe ferry.\n\n## Winter\n\nNo ice, and\nthe *ferry* sails.\n\n## Empty\n"


def test_the_passage_with_most_words_is_quoted_with_its_line_and_section() -> None:
    for content, query, expected in (
        (PIER, "ferry ice", Snippet("No ice, and the *ferry* sails.", "winter", 7)),
        (PIER, "ferry", Snippet("The ferry.", "pier", 3)),
        ("# Only a title\n", "title", Snippet("Only a title", "only-a-title", 1)),
        ("", "ferry", None),
    ):
        assert quote(content, query) == expected


def test_the_nearest_passage_is_quoted_unless_another_one_has_the_words() -> None:
    winter, empty = PIER.index("No ice"), PIER.index("## Empty")
    found = [quote(PIER, *asked) for asked in (("vessel", winter), ("ferry", winter), ("ice", 0), ("vessel", empty))]
    assert [each and each.section for each in found] == ["winter", "winter", "winter", "pier"]


@pytest.mark.parametrize(
    ("before", "word", "query", "begins"),
    [
        ("All the boats lie in the harbour. " * 9, "winch", "winches", "… lie in the harbour. "),
        ("渡船早上九点开。票价十二克朗。" * 20, "声呐", "声呐", "… 渡船"),
        ("é" * 330 + " ", "ferry", "ferry", "… ferry"),
    ],
)
def test_a_quotation_is_short_and_has_what_was_asked_for_and_some_of_what_is_before_it(
    before: str, word: str, query: str, begins: str
) -> None:
    content = f"{before}{word} {before}"
    passage = Passage("", "", 1, 0, content.strip(), "")
    asked = set(ANALYZER.query_terms(query))
    found = snippet_of(passage, lambda text: ANALYZER.first_place(text, asked))
    assert (found.text.startswith(begins), word in found.text, found.text[-2:]) == (True, True, " …")
    assert len(found.text) <= LONGEST_SNIPPET


@given(st.text(st.sampled_from("ab 船é🛥\n."), max_size=2_000), st.text(max_size=5))
def test_any_text_is_quoted_on_one_short_line(content: str, query: str) -> None:
    found = quote(content, query)
    assert found is None or (len(found.text) <= LONGEST_SNIPPET and "\n" not in found.text and found.line >= 1)


@pytest.mark.parametrize(
    ("picture", "seen"),
    [
        ("![scan](data:image/png;base64,{data})", "Before scan"),
        ('![the *scan*](<data:image/png;base64,{data}> "a (title)', "Before the *scan*"),
        ("![](data:image/png;base64,{data})", "Before"),
        ("`data:image/png;base64,{data}`", "Before `"),
    ],
)
def test_of_a_picture_in_the_text_only_its_name_is_quoted(picture: str, seen: str) -> None:
    content = f"Before {picture.format(data='QUJD' * 99)} after.\n"
    assert quote(content, "before") == Snippet(seen, "", 1)
