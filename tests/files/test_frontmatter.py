"""Frontmatter: exact to the character, safe whatever it says, and never in the way of the text."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.files.frontmatter import read_frontmatter
from prompt.hidden import end_of_frontmatter


def values(source: str) -> dict[str, Any]:
    front = read_frontmatter(f"---\n{source}\n---\nbody\n")
    assert front.problem is None
    return dict(front.metadata)


def refusal(source: str) -> tuple[int, str]:
    front = read_frontmatter(f"---\n{source}\n---\nbody\n")
    assert front.problem is not None
    assert (front.content.endswith("body\n"), front.metadata) == (True, {})
    return front.problem.line, front.problem.message


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("---\na: 1\n---\nbody", "---\na: 1\n---\n"),
        ("---\r\na: 1\r\n---\r\n\r\nbody", "---\r\na: 1\r\n---\r\n"),
        ("\ufeff---\na: 1\n---  \nbody", "\ufeff---\na: 1\n---  \n"),
        ("---\na: 1\n---", "---\na: 1\n---"),
        ("---\n---\nbody", "---\n---\n"),
        ("\ufeffbody", "\ufeff"),
        ("body\n---\na: 1\n---\n", ""),
        (" ---\na: 1\n---\n", ""),
        ("---\ndc:title: x\n---\nbody", "---\ndc:title: x\n---\n"),
        ("---\na: [\n---\nbody", "---\na: [\n---\n"),
        ("---\nText between two rules\n---\nbody", ""),
        ("---\n- a\n---\nbody", ""),
        ("----\na: 1\n----\n", ""),
        ("---\na: 1\n --- \n", ""),
    ],
)
def test_where_it_ends(text: str, head: str) -> None:
    front = read_frontmatter(text)
    assert front.head == head
    assert front.head + front.content == text
    assert end_of_frontmatter(text) == len(head)  # the prompt begins where the mirror does


@given(st.text(alphabet="-\n\r \t\ufeffa:", max_size=40))
def test_head_and_content_are_the_text(text: str) -> None:
    front = read_frontmatter(text)
    assert front.head + front.content == text
    assert end_of_frontmatter(text) == len(front.head)


def test_yaml_1_2_and_dates() -> None:
    assert values("a: no\nb: 1:30\nc: 010\nd: 1_000\ne: true\nf: ~\ng: -4\nh: 1.5\ni: 0x10\nj: yes\nk: on") == {
        "a": "no", "b": "1:30", "c": 10, "d": "1_000", "e": True, "f": None, "g": -4, "h": 1.5, "i": "0x10",
        "j": "yes", "k": "on",
    }  # fmt: skip
    assert values(
        "a: 2026-02-18\nb: 2026-02-18T10:30:00.123456+02:00\nc: 2026-02-30\nd: 0001-01-01T00:00:00+14:00"
    ) == {
        "a": datetime(2026, 2, 18, tzinfo=UTC),
        "b": datetime(2026, 2, 18, 8, 30, 0, 123000, tzinfo=UTC),
        "c": "2026-02-30",
        "d": "0001-01-01T00:00:00+14:00",
    }


def test_what_no_store_holds_becomes_text() -> None:
    assert values(
        '1: int\n2026-02-18: date\n"a\\0b": nul\nbig: 9223372036854775808\nmax: 9223372036854775807\n'
        "huge: " + "9" * 5000 + "\ninf: .inf\nnan: .NaN\nover: 1e999\nno: -.inf"
    ) == {
        "1": "int",
        "2026-02-18": "date",
        "a\ufffdb": "nul",
        "big": "9223372036854775808",
        "max": 9223372036854775807,
        "huge": "9" * 5000,
        "inf": ".inf",
        "nan": ".NaN",
        "over": "1e999",
        "no": "-.inf",
    }


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ("a: 1\nb: &x [1]\nc: *x", 3, "aliases"),
        ("a: &x 1\n*x : 2", 2, "aliases"),
        ("a: &x [*x]", 2, "aliases"),
        ("a: *nobody", 2, "alias"),
        ("a: 1\n<<: {b: 2}", 3, "merge"),
        ("a: 1\nb: 2\na: 3", 4, "'a' is there twice"),
        ("a: {b: 1, b: 2}", 2, "'b' is there twice"),
        ('1: a\n"1": b', 3, "'1' is there twice"),
        ("a: !!python/object:os.system x", 2, "tag"),
        ("a: !mine x", 2, "tag"),
        ("a: !!set {x, y}", 2, "tag"),
        ("a: !!binary aGk=", 2, "tag"),
        ("a: !!int seven", 2, "tag"),
        ("? [a, b]\n: c", 2, "not a mapping"),
        ("{? [a, b] : c}", 2, "key"),
        ("a: 1\nb: [", 4, "expected"),
        ("a: 1\n\tb: 2", 3, ""),
        ("just words", 2, "not a mapping"),
        ("- a\n- b", 2, "not a mapping"),
        ("a: 1\n...\nb: 2", 4, ""),
        ("a: 1\nb: \x07", 3, "character"),
        ("a: " + "[" * 32 + "]" * 32, 2, "deeper"),
        ("a: " + "[" * 30_000, 2, "deeper"),
        ("- " * 30_000 + "x", 2, "not a mapping"),
        ("? " * 30_000, 2, "not a mapping"),
        ("a: " + "{a: " * 900 + "}" * 900, 2, "deeper"),
        ("\n".join(" " * i + "a:" for i in range(60)), 34, "deeper"),
    ],
)
def test_what_is_refused(source: str, line: int, reason: str) -> None:
    told_line, told = refusal(source)
    assert reason in told
    assert told_line == line


def test_thirty_two_levels_are_allowed() -> None:
    assert json.dumps(values("a: " + "[" * 31 + "]" * 31)).count("[") == 31
    assert len(values("tags:\n" + "".join(f"- tag{i}\n" for i in range(300)))["tags"]) == 300


def test_the_billion_laughs_are_refused() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 20))
    assert "aliases" in refusal(bomb)[1]


def test_without_an_end_or_too_large_the_whole_text_is_content() -> None:
    for text in ("---\na: 1\n\nbody", "---", "\ufeff---\r\nx", "---\na: " + "x" * 65536 + "\n---\nbody"):
        front = read_frontmatter(text)
        assert front.content == text.removeprefix("\ufeff")
        assert front.problem is not None
        assert front.problem.line == 1
    assert read_frontmatter("---\na: " + "é" * 32_000 + "\n---\n").problem is None
    assert read_frontmatter("---\na: " + "é" * 33_000 + "\n---\n").problem is not None


yamlish = st.lists(
    st.sampled_from(
        ["a", "b", ": ", "- ", "? ", "[", "]", "{", "}", ", ", "\n", "\n  ", "\n    ", "&x ", "*x", "<<", "!!set ",
         "!t ", "|", ">", "'", '"', "\\", "#", "%", "@", "`", "~", "1", "2026-01-01", ".inf", "\t", "\x00", "é", "true",
         "..."]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(yamlish)
def test_whatever_it_says_bson_and_json_can_hold_it(source: str) -> None:
    front = read_frontmatter(f"---\n{source}\n---\nbody")
    json.dumps(front.metadata, default=datetime.isoformat, allow_nan=False).encode()
    assert front.content.endswith("body")
