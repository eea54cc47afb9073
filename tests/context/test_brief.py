"""The brief as text: what stands where, and what leaves where there is no room."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.context.brief import HEADINGS, LEAST_TOKENS, NOTHING, Brief, Entry, Material, Risk, written
from prompt import count_tokens, quote
from prompt.outline import Outline

TASK = "### Move the night ferry\n\nTwo ferries must not clash."


def entry(number: int, kind: str = "decision", *, body: str = "", primary: bool = True, like: float = 0.5) -> Entry:
    head = f"### Memory {number}\n\n`memories/{kind}/m{number}.md` · {kind}"
    said = body or f"#### Context\n\nWhat memory {number} says of the pier."
    return Entry(f"m{number}", f"memories/{kind}/m{number}.md", kind, primary, like, head, said)


def metadata(kept: Sequence[str]) -> list[str]:
    return ["- context `abc`", *(f"- `{one}`" for one in kept)]


def headings_of(text: str, level: int = 2) -> list[str]:
    return [section.title for section in Outline(text).sections if section.level == level]


def sections_of(brief: Brief) -> dict[str, str]:
    return {section.heading: section.text for section in brief.sections}


def test_each_kind_has_its_section_and_those_of_nothing_say_so() -> None:
    entries = [entry(1), entry(2, "problem"), entry(3, "pattern"), entry(4, "")]
    risks = [Risk(frozenset({"m2"}), "- m2 is not solved")]
    brief = written(Material(TASK, entries, risks, ["- a page"], metadata), 4_000, count_tokens)
    assert headings_of(brief.text) == list(HEADINGS)
    told = sections_of(brief)
    assert ["Memory 4" in told["Relevant Context"], "Memory 1" in told["Decisions"]] == [True, True]
    assert ["Memory 2" in told["Known Problems"], "Memory 3" in told["Patterns"]] == [True, True]
    assert (told["Risks"], told["Related Notes"]) == ("- m2 is not solved", "- a page")
    assert (brief.kept, brief.cut, brief.related) == (("m1", "m2", "m3", "m4"), {}, 1)
    empty = written(Material(TASK), 4_000, count_tokens)
    assert headings_of(empty.text) == [heading for heading in HEADINGS if heading != "Metadata"]
    assert empty.text.count(NOTHING) == 6


def test_the_stable_brief_is_the_brief_without_its_metadata() -> None:
    material = Material(TASK, [entry(1)], metadata=metadata)
    brief = written(material, 2_000, count_tokens)
    assert brief.text == f"{brief.stable}\n## Metadata\n\n- context `abc`\n- `m1`\n"
    assert brief.tokens == count_tokens(brief.text)


def test_in_a_section_what_the_task_has_most_to_do_with_comes_first() -> None:
    entries = [entry(1, like=0.2, primary=False), entry(2, like=0.4), entry(3, like=0.9), entry(4, like=0.4)]
    brief = written(Material(TASK, entries), 4_000, count_tokens)
    assert headings_of(brief.text, 3) == ["Memory 3", "Memory 2", "Memory 4", "Memory 1"]


def test_where_there_is_no_room_the_last_entries_leave_and_with_them_what_is_said_of_them() -> None:
    entries = [entry(number) for number in range(12)]
    risks = [Risk(frozenset({"m0"}), "- m0 is old"), Risk(frozenset({"m0", "m11"}), "- m0 against m11")]
    brief = written(Material(TASK, entries, risks, metadata=metadata), 400, count_tokens)
    assert 0 < len(brief.kept) < 12
    assert brief.kept == tuple(f"m{number}" for number in range(len(brief.kept)))
    assert brief.cut == {f"m{number}": "no room for it" for number in range(len(brief.kept), 12)}
    assert sections_of(brief)["Risks"] == "- m0 is old"
    assert brief.tokens == count_tokens(brief.text) <= 400


def test_of_a_long_entry_the_end_leaves_and_says_how_to_read_it() -> None:
    long = "\n\n".join(f"#### Part {part}\n\n{'The pier is long. ' * 30}" for part in range(20))
    brief = written(Material(TASK, [entry(1, body=long), entry(2)]), 800, count_tokens)
    assert brief.kept == ("m1", "m2")
    assert brief.cut.keys() == {"m1"}
    assert "notebook_read memories/decision/m1.md" in brief.text
    assert "What memory 2 says of the pier." in brief.text
    assert 400 < brief.tokens <= 800


def test_a_long_task_leaves_room_for_memories() -> None:
    task = "\n\n".join(f"#### Step {step}\n\n{'Coal is carried. ' * 40}" for step in range(50))
    brief = written(Material(task, [entry(1), entry(2)]), 1_000, count_tokens)
    assert brief.kept == ("m1", "m2")
    assert sections_of(brief)["Task"].endswith("more]")
    assert brief.tokens <= 1_000


def test_a_smaller_brief_holds_no_entry_that_a_larger_one_lacks() -> None:
    entries = [entry(number, body="The pier is long. " * (10 + number * 7 % 40)) for number in range(15)]
    kept = [set(written(Material(TASK, entries), cap, count_tokens).kept) for cap in range(LEAST_TOKENS, 3_000, 300)]
    assert all(less <= more for less, more in pairwise(kept))
    assert len(kept[-1]) == 15


@pytest.mark.parametrize("cap", [160, 200, 250])
def test_a_short_task_gives_its_room_to_the_best_memory(cap: int) -> None:
    said = "#### Context\n\n" + "The lease of a job ends at night. " * 18
    brief = written(Material("### Stop jobs from running twice", [entry(1, body=said)]), cap, count_tokens)
    assert brief.kept == ("m1",)
    assert "The lease of a job ends" in brief.text
    assert cap - 50 < brief.tokens <= cap


def test_links_and_metadata_leave_before_the_best_memory() -> None:
    links = tuple(f"- solves “Memory {number}”: {'slot two is free at night ' * 6}" for number in range(5))
    linked = dataclasses.replace(entry(1), links=links)
    brief = written(Material(TASK, [linked], metadata=metadata), 120, count_tokens)
    assert brief.kept == ("m1",)
    assert "What memory 1 says of the pier." in brief.text
    assert "cut to" in brief.cut["m1"]
    assert all(link in written(Material(TASK, [linked]), 2_000, count_tokens).text for link in links)


@pytest.mark.parametrize("cap", [LEAST_TOKENS, 120, 300])
def test_memories_that_have_no_room_are_counted_in_a_line_with_a_cap_that_has_room(cap: int) -> None:
    material = Material(TASK, [entry(number, body="The pier is long. " * 40) for number in range(12)])
    brief = written(material, cap, count_tokens)
    [line] = [line for line in brief.text.splitlines() if line.startswith("[") and "memories omitted" in line]
    left = 12 - len(brief.kept)
    found = re.fullmatch(rf"\[… {left} memories omitted: compile_context with max_tokens (\d+)\]", line)
    assert found
    enough = written(material, int(found[1]), count_tokens)
    assert len(enough.kept) == 12
    assert "memories omitted" not in enough.text


def test_a_larger_cap_shows_no_less_of_a_task() -> None:
    steps = [
        f"#### Step {step}\n\nCoal is carried to berth {step}. Then *it is weighed {step}* twice." for step in range(30)
    ]
    task = "\n\n".join(["### Move the coal\n\nFirst of all, ask Ines.", "- by cart\n- by crane", *steps])
    entries = [entry(number, body="The pier is long. " * 60) for number in range(6)]
    shown = []
    for cap in range(LEAST_TOKENS, 3_000, 90):
        told = sections_of(written(Material(task, entries, metadata=metadata), cap, count_tokens))["Task"]
        assert told == quote(task) or " more]" in told
        shown.append([line.rstrip("…") for line in told.splitlines() if not line.startswith("> […")])
    assert {lines[0] for lines in shown} == {"> ### Move the coal"}
    for less, more in pairwise(shown):
        assert all(any(other.startswith(line) for other in more) for line in less)
    assert shown[-1] == quote(task).splitlines()


def test_of_a_task_that_is_cut_whole_sentences_stay() -> None:
    task = "Ask Ines first. " + "The crane is slow at night. " * 200
    told = sections_of(written(Material(task, [entry(1)]), 200, count_tokens))["Task"]
    assert re.match(r"> Ask Ines first\. (The crane is slow at night\. )+The crane is slow at night\.…\n>\n> \[…", told)


def test_no_memory_takes_more_than_its_part() -> None:
    huge = "Lorem ipsum dolor sit amet. " * 4_000
    near = [entry(number) for number in range(1, 3)]
    for far in (entry(9, body=huge, like=0.1, primary=False), entry(9, body=huge, like=0.1)):
        brief = written(Material(TASK, [*near, far]), 4_000, count_tokens)
        assert brief.kept == ("m1", "m2", "m9")
        assert brief.tokens < (1_100 if far.is_primary else 700)
        assert "notebook_read memories/decision/m9.md" in brief.text
    best = written(Material(TASK, [entry(9, body=huge), *near]), 4_000, count_tokens)
    assert 1_000 < best.tokens < 1_700


@pytest.mark.parametrize("cap", [LEAST_TOKENS, 80, 120, 333])
@pytest.mark.parametrize(
    "task",
    [
        "👩‍👩‍👧‍👦" * 500,
        "潮位表" * 1_000,
        "x" * 9_000,
        "```\n" + "code\n" * 900,
        "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 400,
    ],
)
def test_the_cap_holds_for_texts_that_are_hard_to_cut(task: str, cap: int) -> None:
    entries = [entry(1, body=task), entry(2, body="ferry " * 2_000)]
    brief = written(
        Material(task, entries, [Risk(frozenset({"m1"}), "- " + task[:80])], metadata=metadata), cap, count_tokens
    )
    assert brief.tokens == count_tokens(brief.text) <= cap
    assert headings_of(brief.text)[0] == "Task"


@settings(max_examples=12)
@given(
    st.integers(LEAST_TOKENS, 1_500),
    st.lists(st.tuples(st.sampled_from(["decision", "problem", ""]), st.integers(0, 400), st.booleans()), max_size=20),
    st.integers(0, 600),
)
def test_no_brief_is_over_its_cap(cap: int, shapes: list[tuple[str, int, bool]], words: int) -> None:
    entries = [
        entry(number, kind, body="gangway " * length, primary=primary)
        for number, (kind, length, primary) in enumerate(shapes)
    ]
    related = [f"- page {number}" for number in range(5)]
    brief = written(Material("ferry " * words or "-", entries, (), related, metadata), cap, count_tokens)
    assert brief.tokens == count_tokens(brief.text) <= cap
    assert {*brief.kept, *brief.cut} == {one.id for one in entries}
