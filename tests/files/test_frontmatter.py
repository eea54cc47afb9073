"""Frontmatter: exact to the character, safe whatever it says, and never in the way of the text."""

import json
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_sync.files.frontmatter import is_external, read_frontmatter, typed
from prompt.hidden import end_of_frontmatter


def values(source: str, zone: Any = UTC) -> dict[str, Any]:
    front = read_frontmatter(f"---\n{source}\n---\nbody\n")
    assert front.problems == ()
    return dict(typed(front.values, zone))


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("---\na: 1\n---\nbody", "---\na: 1\n---\n"),
        ("---\r\na: 1\r\n---\r\n\r\nbody", "---\r\na: 1\r\n---\r\n"),
        ("\ufeff---\na: 1\n---  \nbody", "\ufeff---\na: 1\n---  \n"),
        ("---\na: 1\n---", "---\na: 1\n---"),
        ("---\n---\nbody", "---\n---\n"),
        ("---\na: 1\n...\n---\nbody", "---\na: 1\n...\n"),
        ("\n \n---\na: 1\n---\nbody", "\n \n---\na: 1\n---\n"),
        ("+++\na = 1\n+++\nbody", "+++\na = 1\n+++\n"),
        ("\ufeffbody", "\ufeff"),
        ("body\n---\na: 1\n---\n", ""),
        (" ---\na: 1\n---\n", ""),
        ("---\ndc:title: x\n---\nbody", "---\ndc:title: x\n---\n"),
        ("---\na: [\n---\nbody", "---\na: [\n---\n"),
        ("---\nText between two rules\n---\nbody", ""),
        ("---\n- a\n---\nbody", ""),
        ("+++\nplus\n+++\n", ""),
        ('{\n"a": 1\n}\nbody', ""),
        ("----\na: 1\n----\n", ""),
        ("---\na: 1\n --- \n", ""),
    ],
)
def test_it_ends_where_the_prompt_begins(text: str, head: str) -> None:
    assert read_frontmatter(text).body_start == end_of_frontmatter(text) == len(head)
    assert text.startswith(head)


HEAD_LINES = st.sampled_from(
    ["---", "--- ", "...", "+++", "{", "}", "----", " ---", "", " \t", "# c", "a: 1", "a:", "a = 1", "[deep]", "text",
     "- a", '"a": 1', "a: [", "title", "tags: [a]", "a: {{b}}", "\x85", "\u2028", "a: " + "x" * 70_000]
)  # fmt: skip
heads = st.builds(
    lambda first, lines, end: first + "".join(line + end for line in lines),
    st.sampled_from(["", "\ufeff", "\n", "\ufeff\ufeff"]),
    st.lists(HEAD_LINES, max_size=7),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
)


@given(heads | heads.map(str.rstrip) | st.text(alphabet="-\n\r \t\ufeffa:+=.", max_size=40))
def test_whatever_the_text_it_ends_where_the_prompt_begins(text: str) -> None:
    front = read_frontmatter(text)
    assert front.body_start == end_of_frontmatter(text)
    assert not front.values or text[: front.body_start].strip("\ufeff\r\n \t").startswith("---")


def test_text_is_as_yaml_1_2_reads_it_and_numbers_stay_as_written() -> None:
    assert values(
        "a: no\nb: 1:30\nc: 010\nd: 1_000\ne: true\nf: ~\ng: -4\nh: 1.5\ni: 0x10\nj: yes\nk: on\nl: '7'\n"
        "phone: +4912345\nzip: 01234\nversion: 1.10\nwhole: 5.0\nlarge: 1e3\n1: int\n2026-02-18: date\n"
        '"a\\0b": nul\nbig: 9223372036854775808\nmax: 9223372036854775807\ninf: .inf\nnan: .NaN\nover: 1e999\n'
        "low: -0"
    ) == {
        "a": "no", "b": "1:30", "c": "010", "d": "1_000", "e": True, "f": None, "g": -4, "h": 1.5, "i": "0x10",
        "j": "yes", "k": "on", "l": "7", "phone": "+4912345", "zip": "01234", "version": "1.10", "whole": 5.0,
        "large": "1e3", "1": "int", "2026-02-18": "date", "a\ufffdb": "nul", "big": "9223372036854775808",
        "max": 9223372036854775807, "inf": ".inf", "nan": ".NaN", "over": "1e999", "low": "-0",
    }  # fmt: skip


def test_days_stay_days_and_local_times_are_those_of_the_notebook() -> None:
    dates = (
        "day: 2026-05-24\nquoted: '2026-05-24'\nshort: 2026-05-24 09:30\nlong: 2026-05-24 09:30:00\n"
        "sailing: 2026-05-24T09:30:00.123456+02:00\nnone: 2026-02-30\nfirst: 0001-01-01T00:00:00+14:00"
    )
    assert values(dates, ZoneInfo("America/Los_Angeles")) == {
        "day": date(2026, 5, 24),
        "quoted": "2026-05-24",
        "short": datetime(2026, 5, 24, 16, 30, tzinfo=UTC),
        "long": datetime(2026, 5, 24, 16, 30, tzinfo=UTC),
        "sailing": datetime(2026, 5, 24, 7, 30, 0, 123000, tzinfo=UTC),
        "none": "2026-02-30",
        "first": "0001-01-01T00:00:00+14:00",
    }


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ("a: 1\nb: &x [1]\nc: *x", 4, "aliases"),
        ("a: &x 1\n*x : 2", 3, "key"),
        ("a: &x [*x]", 2, "aliases"),
        ("a: 1\n<<: {b: 2}", 3, "merge"),
        ("a: 1\nb: 2\na: 3", 4, "'a' is there twice"),
        ("a: {b: 1, b: 2}", 2, "'b' is there twice"),
        ('1: a\n"1": b', 3, "'1' is there twice"),
        ("a: !!python/object:os.system x", 2, "tag"),
        ("a: !mine x", 2, "tag"),
        ("a: !!set {x, y}", 2, "tag"),
        ("a: !!binary aGk=", 2, "tag"),
        ("{? [a, b] : c}", 2, "key"),
        ("title: Plan: phase two", 2, "put the value in quotes"),
        ("a: 1\nb: [", 4, "expected"),
        ("a: 1\n\tb: 2", 3, "indent with spaces"),
        ("a: 1\nb: \x07", 3, "character"),
        ("a: " + "[" * 32 + "]" * 32, 2, "deeper"),
        ("a: " + "[" * 30_000, 2, "deeper"),
        ("a: " + "{a: " * 900 + "}" * 900, 2, "deeper"),
        ("\n".join(" " * i + "a:" for i in range(60)), 34, "deeper"),
        ("a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{f'*a{i - 1}, ' * 9}]\n" for i in range(1, 20)), 3, "aliases"),
        ("a: " + "x" * 65_536, 1, "larger"),
        ("a: " + "é" * 33_000, 1, "larger"),
    ],
)
def test_what_is_refused_names_the_line_and_hides_no_text(source: str, line: int, reason: str) -> None:
    text = f"---\n{source}\n---\nbody\n"
    front = read_frontmatter(text)
    (problem,) = front.problems
    assert (problem.line, problem.severe, front.values) == (line, True, {})
    assert reason in problem.message
    assert text[front.body_start :].endswith("body\n")


@pytest.mark.parametrize(
    ("text", "line", "severe"),
    [
        ("---\na: 1\n\nbody", 1, True),
        ("+++\na = 1\n\nbody", 1, True),
        ("---", 1, True),
        ("+++\na = 1\n+++\n", 1, False),
        ('{\n"a": 1\n}\n', 1, False),
        ("{\nnot JSON\n}\n", 0, False),
        ("---\ntitle: {{title}}\naliases: {{date:WW}}_{{date:YYYY}} daily\n---\n# {{title}}\n", 2, False),
        ("---\ntitle\ntags: [a]\n---\n", 2, False),
        ("\n---\nNote: below a rule\n", 0, False),
        ("---\nNotes of today\n\nStatus: fine\n---\n", 0, False),
        ("---\n- a\n---\n", 0, False),
        ("---\n\n# A rule above a title\n\nNote: this is text\n", 0, False),
        ("---\njust words\n---\n", 0, False),
    ],
)
def test_an_attempt_is_reported_and_text_is_not(text: str, line: int, severe: bool) -> None:
    assert [(problem.line, problem.severe) for problem in read_frontmatter(text).problems] == [(line, severe)] * bool(
        line
    )


def test_thirty_two_levels_and_hundreds_of_tags_are_allowed() -> None:
    assert json.dumps(values("a: " + "[" * 31 + "]" * 31)).count("[") == 31
    assert len(values("tags:\n" + "".join(f"- tag{i}\n" for i in range(300)))["tags"]) == 300
    assert len(values("a: " + "é" * 32_000)["a"]) == 32_000


yamlish = st.lists(
    st.sampled_from(
        ["a", "b", ": ", "- ", "? ", "[", "]", "{", "}", ", ", "\n", "\n  ", "\n    ", "&x ", "*x", "<<", "!!set ",
         "!t ", "|", ">", "'", '"', "\\", "#", "%", "@", "`", "~", "1", "2026-01-01", ".inf", "\t", "\x00", "é", "true",
         "...", " = "]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(yamlish)
def test_whatever_it_says_bson_and_json_can_hold_it(source: str) -> None:
    front = read_frontmatter(f"---\n{source}\n---\nbody")
    json.dumps(typed(front.values, UTC), default=date.isoformat, allow_nan=False).encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# The ferry\n\nprovenance: external\n", False),
        ("---\nprovenance: owner\n---\nMine.\n", False),
        ("---\nprovenance: external\n---\nHers.\n", True),
        ("---\nProvenance: ' External, by mail'\n---\nHers.\n", True),
        ('---\n"pro\\x76enance": external\n---\nHers.\n', True),
        ('+++\nprovenance = "external"\n+++\nHers.\n', True),
        ("---\nprovenance: [external]\n---\nHers.\n", True),
        ("---\nprovenance: [\n---\nWho knows.\n", True),
        ("---\ntitle: [\n---\nMine.\n", False),
    ],
)
def test_a_note_says_whether_it_holds_what_others_wrote(text: str, expected: bool) -> None:
    assert is_external(text.encode()) is expected
