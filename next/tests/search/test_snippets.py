"""What a search quotes of a note."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.search.terms import LONGEST_SNIPPET, Passage, Snippet, best_passage, passages_of, snippet_of
from tests.search.notes import ANALYZER, sections_of


def quote(content: str, query: str, near: int | None = None) -> Snippet | None:
    asked = set(ANALYZER.query_terms(query))
    passages = passages_of(content, sections_of(content))
    counted = [(each, len(asked & set(ANALYZER.terms(each.text)))) for each in passages]
    chosen = best_passage(counted, near)
    return chosen and snippet_of(chosen, lambda text: ANALYZER.first_place(text, asked))


CONTENT = "# Pier\n\nThe ferry.\n\n## Winter\n\nNo ice, and\nthe *ferry* sails.\n\n## Empty\n"


def test_the_passage_with_most_words_is_quoted_with_its_line_and_section() -> None:
    assert quote(CONTENT, "ferry ice") == Snippet("No ice, and the *ferry* sails.", "winter", 7)
    assert quote(CONTENT, "ferry") == Snippet("The ferry.", "pier", 3)
    assert quote("", "ferry") is None
    assert quote("# Only a title\n", "title") == Snippet("Only a title", "only-a-title", 1)


def test_the_nearest_passage_is_quoted_unless_another_one_has_the_words() -> None:
    winter, empty = CONTENT.index("No ice"), CONTENT.index("## Empty")
    found = [quote(CONTENT, *asked) for asked in (("vessel", winter), ("ferry", winter), ("ice", 0), ("vessel", empty))]
    assert [each and each.section for each in found] == ["winter", "winter", "winter", "pier"]


@pytest.mark.parametrize(
    ("before", "word", "query"),
    [
        ("All the boats lie in the harbour. " * 9, "winch", "winches"),
        ("渡船早上九点开。票价十二克朗。" * 20, "声呐", "声呐"),
        ("é" * 330 + " ", "ferry", "ferry"),
    ],
)
def test_a_quotation_is_short_and_has_what_was_asked_for(before: str, word: str, query: str) -> None:
    content = f"{before}{word} {before}"
    passage = Passage("", "", 1, 0, content.strip(), "")
    asked = set(ANALYZER.query_terms(query))
    found = snippet_of(passage, lambda text: ANALYZER.first_place(text, asked))
    assert word in found.text
    assert len(found.text) <= LONGEST_SNIPPET
    assert found.text.startswith("… ")
    assert found.text.endswith(" …")


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
    found = quote(content, "before")
    assert found
    assert found.text == seen
