"""Comparing texts that were made to be hard to compare: in so many steps, and never wrong."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.files.comparing import Steps, opcodes

PARTS = st.lists(st.sampled_from(["ebb", "flood", "slack", " "]), max_size=20)


def must_make_the_one_of_the_other(one: Sequence[str], other: Sequence[str], steps: Steps) -> None:
    made: list[str] = []
    at = (0, 0)
    for tag, start, end, other_start, other_end in opcodes(one, other, steps):
        assert (start, other_start) == at
        assert (one[start:end] == other[other_start:other_end]) == (tag == "equal")
        made += other[other_start:other_end]
        at = (end, other_end)
    assert at == (len(one), len(other))
    assert made == list(other)


@given(PARTS, PARTS, st.integers(0, 400))
def test_what_is_found_is_so_however_few_steps_there_are(one: list[str], other: list[str], most: int) -> None:
    must_make_the_one_of_the_other(one, other, Steps(most))


def test_two_that_can_be_compared_are_compared_as_difflib_does_it() -> None:
    one, other = ["the", "ferry", "leaves", "at", "noon"], ["a", "ferry", "never", "leaves", "at", "ten"]
    assert opcodes(one, other, Steps()) == SequenceMatcher(None, one, other).get_opcodes()


@pytest.mark.timeout(60)
def test_what_repeats_itself_is_given_up_and_what_both_ends_have_is_found() -> None:
    steps = Steps()
    one, other = ["x", ","] * 2_000, ["x", "."] * 2_000
    found = opcodes(["ebb", *one, "flood"], ["ebb", *other, "flood"], steps, autojunk=False)
    assert steps.left <= 0
    assert found[0] == ("equal", 0, 2, 0, 2)
    assert found[-1] == ("equal", 4_001, 4_002, 4_001, 4_002)
    assert len(found) < 20
