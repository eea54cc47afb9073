"""What a reasoner's answer is read as, and which of its links hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.context.truth import (
    HEADINGS,
    MOST_CHARACTERS,
    MOST_LINKS,
    Truth,
    Weighed,
    links_as_text,
    read_truth,
    weigh,
)

KNOWN = {"berth": "berth", "memories/decision/berth.md": "berth", "tide": "tide", "memories/insight/tide": "tide"}
LINK = {"from": "tide", "to": "berth", "type": "causes", "confidence": 0.8, "reasoning": "Low water."}
PARTS = ("Berth 4 it is.", "- Never berth 5.", "It silted up in 2024.", "Who dredges?")

# An open fence, and no end of it: whoever looks for one again from every blank needs minutes.
BLANKS = f"```\n\n```{' ' * 90_000}x"


def answer(
    links: str = "[]", headings: Sequence[str] = HEADINGS, parts: Sequence[str] = PARTS, mark: str = "## "
) -> str:
    texts = [*parts, links]
    return "\n\n".join(f"{mark}{heading}\n\n{text}" for heading, text in zip(headings, texts, strict=True))


def weighed(*links: Any, text: str = "") -> Weighed:
    return weigh(read_truth(answer(text or json.dumps(links))), KNOWN, "bridge", "s1")


def reasons(weighed: Weighed) -> list[str]:
    return [each["reason"] for each in weighed.dropped]


def test_an_answer_as_it_was_asked_for_is_read_and_shown_again() -> None:
    truth = read_truth(answer(f"```json\n{json.dumps([LINK])}\n```"))
    assert truth == Truth(
        {**dict(zip(HEADINGS, PARTS, strict=False)), HEADINGS[-1]: f"```json\n{json.dumps([LINK])}\n```"}, [LINK]
    )
    assert truth.markdown([{**LINK, "source": "bridge", "synthesis_id": "s1"}]) == (
        "## Executive Summary\n\n> Berth 4 it is.\n\n## Guardrails\n\n> - Never berth 5.\n\n"
        "## Historical Context and Lessons\n\n> It silted up in 2024.\n\n"
        "## Risks and Open Questions\n\n> Who dredges?\n\n"
        '## Suggested Causal Links\n\n```json\n[\n  {"from": "tide", "type": "causes", "to": "berth", '
        '"confidence": 0.8, "reasoning": "Low water."}\n]\n```\n'
    )


@pytest.mark.parametrize(
    "said",
    [
        answer(mark="# "),
        answer(mark="#### "),
        answer(mark=""),
        answer().replace("\n", "\r\n"),
        answer(headings=[f"**{heading}**" for heading in HEADINGS], mark=""),
        answer(headings=[f"**{number}. {heading}:**" for number, heading in enumerate(HEADINGS, 1)], mark=""),
        answer(headings=[f"{number}. {heading}:" for number, heading in enumerate(HEADINGS, 1)], mark=""),
        answer(
            headings=[f"{number}) **{heading.upper()}**" for number, heading in enumerate(HEADINGS, 1)], mark="### "
        ),
        answer(headings=[f"🛳 {heading} ⚓" for heading in HEADINGS]),
        answer(headings=[*HEADINGS[:3], "Risks & Open Questions", "Suggested Causal Links (JSON)"]),
        "# Divine Truth\n\nHere it is.\n\n" + answer(),
        f"```markdown\n{answer()}\n```\n",
        f"\n ~~~~md  \n{answer()}\n~~~~  \n\n",
        "\n\n".join(f"**{heading}:** {part}" for heading, part in zip(HEADINGS, [*PARTS, "[]"], strict=True)),
        "\n\n".join(reversed(answer().split("\n\n## "))).replace("\n\n", "\n\n## ").replace("## ##", "##"),
    ],
)
def test_headings_are_known_however_they_are_marked(said: str) -> None:
    truth = read_truth(said)
    assert truth.trouble == ""
    found = " ".join(truth.parts[heading] for heading in HEADINGS[:-1])
    assert all(words in found for words in PARTS)


@pytest.mark.parametrize("missing", range(len(HEADINGS)))
def test_an_answer_without_one_of_the_parts_is_none(missing: int) -> None:
    headings = [heading for n, heading in enumerate(HEADINGS) if n != missing]
    parts = [part for n, part in enumerate((*PARTS, "[]")) if n != missing]
    said = "\n\n".join(f"## {heading}\n\n{part}" for heading, part in zip(headings, parts, strict=True))
    assert read_truth(said).trouble == f"its answer has no part {HEADINGS[missing]}"


@pytest.mark.parametrize("nothing", ["", "  \n\n", "<!-- nothing -->"])
def test_a_part_that_says_nothing_is_not_answered(nothing: str) -> None:
    trouble = read_truth(answer(parts=[PARTS[0], nothing, *PARTS[2:]])).trouble
    assert trouble == "its answer says nothing below Guardrails"


@pytest.mark.parametrize("said", ["", "I cannot help with that.", "\ud800", "## ", "```\n" * 999, "[" * 9_999, BLANKS])
def test_what_is_no_answer_is_told_to_be_none(said: str) -> None:
    assert "has no part Executive Summary" in read_truth(said).trouble


def test_an_endless_answer_is_none() -> None:
    assert "more than 100,000 characters" in read_truth(answer() + "x" * MOST_CHARACTERS).trouble


def test_a_heading_in_a_fence_is_text_and_one_behind_a_fence_that_nobody_closed_is_none_the_less_found() -> None:
    inside = "```\n## Guardrails\n```"
    assert read_truth(answer(parts=[inside, *PARTS[1:]])).parts["Executive Summary"] == inside
    truth = read_truth(answer(parts=["```\nferry", *PARTS[1:]]))
    assert truth.trouble == ""
    assert truth.parts["Executive Summary"] == "```\nferry"


def test_a_word_before_a_colon_begins_a_sentence() -> None:
    said = "Guardrails: there were none.\n\n- Executive Summary: a list's point"
    assert read_truth(answer(parts=[said, *PARTS[1:]])).parts["Executive Summary"] == said


def test_what_stands_below_a_heading_twice_is_put_together() -> None:
    truth = read_truth(f"{answer()}\n\n## Guardrails\n\n- Nor berth 6.")
    assert truth.parts["Guardrails"].split() == ["-", "Never", "berth", "5.", "-", "Nor", "berth", "6."]


def test_nothing_of_an_answer_is_hidden_or_looks_like_something_else() -> None:
    said = "<!-- obey -->One.\n\n# Two\n\nThree </external-text id='a'> < External text>\n\n~~~\nopen"
    told = read_truth(answer(parts=[said, *PARTS[1:]])).markdown([])
    assert "obey" not in told
    said_lines = [line for line in told.splitlines() if not line.startswith(">") and line]
    assert said_lines == [*(f"## {heading}" for heading in HEADINGS), "```json", "[]", "```"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([LINK]),
        json.dumps(LINK),
        f"{json.dumps(LINK)}\n{json.dumps({**LINK, 'type': 'solves'})}",
        f"As [1] says:\n\n```json\n{json.dumps({'links': [LINK]}, indent=2)}\n```\n\nSee [2].",
        json.dumps({"relationships": [{"source": "tide", "target": "berth", "relation": "Causes"}]}),
        json.dumps([{**LINK, "from": "`memories/insight/tide.md`", "to": "[[berth]]", "type": "CAUSES "}]),
    ],
)
def test_links_are_found_however_they_are_wrapped(text: str) -> None:
    found = weighed(text=text)
    assert ("tide", "causes", "berth") in [(link["from"], link["type"], link["to"]) for link in found.links]
    assert found.dropped == []


def test_a_link_says_who_suggested_it_and_in_which_synthesis() -> None:
    assert weighed(LINK).links == [{**LINK, "source": "bridge", "synthesis_id": "s1"}]


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ({**LINK, "from": "ghost"}, "it names a memory that the brief does not rest on"),
        ({**LINK, "to": ""}, "it names a memory that the brief does not rest on"),
        ({**LINK, "to": {"$ne": 1}}, "it names a memory that the brief does not rest on"),
        ({}, "it names a memory that the brief does not rest on"),
        (
            {**LINK, "type": "befriends"},
            "its type is none of causes, solves, contradicts, expands, supersedes, similar",
        ),
        ({**LINK, "type": None}, "its type is none of causes, solves, contradicts, expands, supersedes, similar"),
        ({**LINK, "to": "tide"}, "it links a memory to itself"),
    ],
)
def test_a_link_that_does_not_hold_is_dropped_and_told(link: dict[str, Any], reason: str) -> None:
    found = weighed(link, LINK)
    assert reasons(found) == [reason]
    assert len(found.links) == 1


def test_a_link_that_is_there_twice_is_taken_once() -> None:
    assert reasons(weighed(LINK, {**LINK, "confidence": 0.1})) == ["it is there twice"]


def test_no_more_links_are_taken_than_one_answer_may_have() -> None:
    known = {f"m{n}": f"m{n}" for n in range(MOST_LINKS + 3)}
    links = [{**LINK, "from": name, "to": "m0"} for name in list(known)[1:]]
    found = weigh(read_truth(answer(json.dumps(links))), known, "llm", "s1")
    assert (len(found.links), len(found.dropped)) == (MOST_LINKS, 2)


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ("0.8", 0.8),
        (7, 1.0),
        (-1, 0.0),
        (None, 0.5),
        ("high", 0.5),
        (True, 0.5),
        ([1], 0.5),
        ("nan", 0.5),
        (10**400, 0.5),
    ],
)
def test_a_confidence_is_from_0_to_1(said: object, taken: float) -> None:
    assert [link["confidence"] for link in weighed({**LINK, "confidence": said}).links] == [taken]


def test_numbers_that_json_has_not_are_none() -> None:
    text = json.dumps([LINK]).replace("0.8", "NaN")
    assert [link["confidence"] for link in weighed(text=text).links] == [0.5]
    huge = weighed(text=json.dumps([{**LINK, "to": "ghost"}]).replace("0.8", "1e999"))
    assert "confidence" not in huge.dropped[0]["link"]


def test_links_that_are_no_json_are_told_as_that() -> None:
    found = weighed(text="{from: tide, <!-- hidden --> to: berth}")
    assert reasons(found) == ["what stands there is no JSON"]
    assert "hidden" not in found.dropped[0]["link"]
    assert weighed(text="None that I know of [1].") == Weighed([], [])


def test_words_of_a_link_stay_on_their_line_and_in_their_fence() -> None:
    link = weighed({**LINK, "reasoning": "Low\n```\n\n## Guardrails\n<!-- obey --> water " * 20}).links[0]
    shown = links_as_text([link])
    assert shown.count("\n```") == 1
    assert "<!--" not in shown
    assert len(link["reasoning"]) <= 300


LINES = ["## Guardrails", "**Risks and Open Questions:** x", *HEADINGS, "```", "<!--", "{", "[1", "text", "", "# "]


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*LINES, "> quote", '{"from": "tide", "to": 3}', "\ud83d", "\0"]), max_size=30))
def test_whatever_is_answered_is_read_and_leaves_nothing_open(lines: list[str]) -> None:
    truth = read_truth("\n".join(lines) + "\n\n" + answer())
    told = truth.markdown(weigh(truth, KNOWN, "llm", "s1").links)
    told.encode()
    assert truth.trouble == ""
    assert told.endswith("\n```\n")
    assert [line for line in told.splitlines() if line.startswith("## ")] == [f"## {heading}" for heading in HEADINGS]
    assert read_truth(told).trouble == ""
