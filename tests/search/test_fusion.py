"""How what words found and what meaning found become one order, and how that is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.search.fusion import Fused, fuse

_IDS = st.sampled_from(["pages/berth", "pages/ferry", "pages/pier", "pages/tide", "pages/weir"])
_SCORES = st.dictionaries(_IDS, st.floats(-50, 50))
_SIMILARITIES = st.dictionaries(_IDS, st.floats(-1, 1))
_SHARES = st.floats(0, 1)


def ids(fused: list[Fused]) -> list[str]:
    return [one.note_id for one in fused]


def test_a_table_worked_by_hand() -> None:
    found = fuse({"a": 8.0, "b": 6.0, "c": 2.0}, {"b": 0.7, "c": 0.5, "d": 0.6, "a": 0.3}, 0.4)

    assert ids(found) == ["b", "a", "c", "d"]
    assert [one.words for one in found] == [0.75, 1.0, 0.25, 0.0]
    assert [one.meaning for one in found] == pytest.approx([1.0, 0.0, 0.5, 0.75])
    assert [one.score for one in found] == pytest.approx([0.85, 0.6, 0.35, 0.3])
    assert {one.share for one in found} == {0.4}


def test_the_share_decides_between_words_and_meaning() -> None:
    words, similarities = {"said": 5.0, "meant": 1.0}, {"said": 0.2, "meant": 0.8}

    assert ids(fuse(words, similarities, 0.0)) == ["said", "meant"]
    assert ids(fuse(words, similarities, 1.0)) == ["meant", "said"]


def test_what_only_one_side_found_is_found() -> None:
    assert ids(fuse({"said": 5.0}, {"meant": 0.8}, 0.4)) == ["said", "meant"]
    assert ids(fuse({"said": 5.0}, {"meant": 0.8}, 0.6)) == ["meant", "said"]


def test_where_one_side_found_nothing_the_other_decides_alone() -> None:
    assert [one.share for one in fuse({"a": 2.0, "b": 1.0}, {}, 0.4)] == [0.0, 0.0]
    assert fuse({"a": 2.0}, {}, 1.0) == [Fused("a", 1.0, 1.0, 0.0, 0.0)]
    assert fuse({}, {"a": 0.3}, 0.0) == [Fused("a", 1.0, 0.0, 1.0, 1.0)]
    assert fuse({}, {}, 0.4) == []


def test_meaning_says_nothing_where_nothing_is_alike() -> None:
    assert fuse({"a": 2.0}, {"b": 0.0, "c": -0.3}, 0.4) == [Fused("a", 1.0, 1.0, 0.0, 0.0)]


def test_even_notes_stand_by_id() -> None:
    assert ids(fuse({"c": 1.0, "a": 1.0, "b": 1.0}, {}, 0.4)) == ["a", "b", "c"]


@given(_SCORES, _SIMILARITIES, _SHARES)
def test_every_score_is_a_share_of_one_and_is_what_its_parts_explain(
    words: dict[str, float], similarities: dict[str, float], share: float
) -> None:
    found = fuse(words, similarities, share)

    assert words.keys() <= set(ids(found)) <= words.keys() | similarities.keys()
    assert found == sorted(found, key=lambda one: (-one.score, one.note_id))
    for one in found:
        assert 0 <= one.words <= 1
        assert 0 <= one.meaning <= 1
        assert 0 <= one.score <= 1 + 1e-9
        assert one.score == pytest.approx((1 - one.share) * one.words + one.share * one.meaning)


@given(_SCORES, _SIMILARITIES, _SHARES, st.floats(0.125, 8))
def test_the_scale_of_a_store_s_scores_does_not_matter(
    words: dict[str, float], similarities: dict[str, float], share: float, scale: float
) -> None:
    scaled = {note_id: score * scale for note_id, score in words.items()}

    before = {one.note_id: one.score for one in fuse(words, similarities, share)}
    after = {one.note_id: one.score for one in fuse(scaled, similarities, share)}

    assert after == pytest.approx(before, abs=1e-6)
