"""The cut: what stays, what leaves, and what no text and no cap can make it do."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cache
from sys import maxsize

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from prompt import Cutting, Trimmed, count_tokens, trim, visible
from tests.examples import examples_in
from tests.prompt.corpora import DOCUMENTS, FIXTURES, ODD_DOCUMENTS

PATH = "runtime/log.md"
CAPS = st.sampled_from([0, 1, 5, 20, 33, 60, 120, 400])
MARKER = regex.compile(r"\[…(?: (?:\d+ )?more(?:: notebook_read runtime/log\.md(?:#[^\s\]]+)?)?)?\]")


def cut(text: str, cap: int) -> Trimmed:
    shown = visible(text, now=datetime(2026, 3, 1))
    return trim(shown.text, cap, count_tokens, path=PATH, pinned=shown.pinned)


def cuts(
    text: str, caps: Iterable[int], *, path: str = PATH, pinned: frozenset[int] = frozenset()
) -> Iterator[tuple[int, Trimmed]]:
    """Each cap, and what is left of a text at it; what does not depend on the cap is found out once."""
    cutting = Cutting(text, count_tokens(text), count_tokens, path=path, pinned=pinned)
    return ((cap, cutting.at(cap)) for cap in caps)


@pytest.mark.parametrize(("cap", "text", "expected"), **examples_in(FIXTURES / "trim.md", 3))
def test_golden(cap: str, text: str, expected: str) -> None:
    text, expected = (each.replace("␍\n", "\r\n") for each in (text, expected))
    limit = int(cap) if int(cap) >= 0 else cut(text, maxsize).tokens + int(cap)
    result = cut(text, limit)
    assert result.text.rstrip("\r\n") == expected.rstrip("\r\n")
    assert result.tokens == count_tokens(result.text) <= limit


@pytest.mark.parametrize("text", ["", "- a\n" * 100, "<!-- how to write -->\n\n- a\n", " \n"])
def test_a_cap_below_nothing_shows_nothing(text: str) -> None:
    assert trim(text, -7, count_tokens) == trim(text, 0, count_tokens)
    assert trim(text, -7, count_tokens).text == ""


@settings(max_examples=40)
@given(DOCUMENTS | ODD_DOCUMENTS, st.lists(CAPS, max_size=4))
def test_a_text_that_is_cut_to_several_caps_is_cut_to_each_as_if_to_it_alone(text: str, caps: list[int]) -> None:
    cutting = Cutting(text, count_tokens(text), count_tokens, path=PATH)
    assert [cutting.at(cap) for cap in caps] == [trim(text, cap, count_tokens, path=PATH) for cap in caps]


@pytest.mark.parametrize(
    "count",
    [count_tokens, len, lambda text: len(text.split()), lambda text: len(text) * 7 % 101],
    ids=["tokens", "characters", "words", "nonsense"],
)
@settings(max_examples=30)
@given(text=DOCUMENTS | ODD_DOCUMENTS, cap=st.integers(0, 500), other=st.integers(0, 500), pin=st.booleans())
@example(text="**words** " * 900 + "\n\n- [x] done\n- [ ] open\n", cap=50, other=60, pin=True)
@example(text="> " + "verse of the song\n> " * 200, cap=40, other=90, pin=True)
@example(text="- a\n  - b b b b\n  - [x] c c c c\n  - d d d d\n" * 30, cap=40, other=41, pin=True)
@example(text="- a[^1]\n" * 30 + "\n[^1]: b[^2]\n\n[^2]: " + "c " * 300, cap=90, other=400, pin=False)
def test_whatever_counts_and_is_pinned_a_larger_cap_shows_all_that_a_smaller_one_does(
    count: Callable[[str], int], text: str, cap: int, other: int, pin: bool
) -> None:
    pinned = frozenset(at for at in (0, text.find("\n#") + 1) if pin)
    small, large = (trim(text, each, count, path=PATH, pinned=pinned) for each in sorted((cap, other)))
    assert small.tokens == count(small.text) <= min(cap, other) or not small.text
    assert cut_places(large) <= cut_places(small)


def cut_places(result: Trimmed) -> set[int]:
    return {at for start, end in result.cut for at in range(start, end)}


@pytest.mark.parametrize("heading", ["", "## Pier {}\n\n"])
@pytest.mark.parametrize("entries", [1, 3, 12])
def test_the_cap_is_used_and_not_wasted(heading: str, entries: int) -> None:
    text = "".join(heading.format(pier) + "- a boat with a lamp\n" * entries + "\n" for pier in range(200))
    for cap, result in cuts(text, range(300, 1000, 100)):
        assert cap - 30 < result.tokens <= cap


LARGE = {
    "a table in HTML": "<table>\n" + "<tr><td>a cell</td></tr>\n" * 400 + "</table>",
    "a folded block": "<details><summary>more</summary>\n" + "<p>a line</p>\n" * 400 + "</details>",
    "a cell": "| a | b |\n|---|---|\n| " + "long " * 900 + "| b |",
    "code": "```\n" + "x = 1\n" * 900 + "```",
    "a link": "[x](https://harbour.example/" + "tides/" * 900 + ")",
    "a formula": "$$\n" + "a + b\n" * 900 + "$$",
    "an item": "- " + "<b class='" + "word " * 900 + "'>x</b>",
    "a footnote": "- see[^1]\n\n[^1]: " + "`" + "word " * 900 + "`",
}


@pytest.mark.parametrize("large", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("cap", [60, 120, 500])
@pytest.mark.parametrize("pin", [False, True])
def test_nothing_large_empties_the_rest(large: str, cap: int, pin: bool) -> None:
    text = f"{large}\n\n## Rules\n\n- never sail in fog\n- keep the lamp lit\n"
    result = trim(text, cap, count_tokens, path=PATH, pinned=frozenset([0] * pin))
    assert "- never sail in fog\n- keep the lamp lit" in result.text
    assert MARKER.search(result.text)
    assert result.tokens <= cap


@pytest.mark.parametrize("pinned", [False, True])
def test_what_is_long_waits_for_what_is_short_unless_it_is_pinned(pinned: bool) -> None:
    text = "## Rules\n\n```\n" + "never sail in fog\n" * 150 + "```\n\n## Log\n\n" + "- the ferry left\n" * 300
    result = trim(text, 1_000, count_tokens, path=PATH, pinned=frozenset([0] * pinned))
    assert ("never sail" in result.text) == pinned


@pytest.mark.parametrize("levels", ["12", "1212", "2343", "123456", "312"])
@pytest.mark.parametrize("long", ["01", "1", "12", "3"])
@pytest.mark.parametrize("pin", [False, True])
def test_a_heading_too_long_to_introduce_anything_is_cut_like_a_paragraph(levels: str, long: str, pin: bool) -> None:
    text = ""
    for place, level in enumerate(levels):
        title = "Quay" + ", where the ferry leaves" * 30 if str(place) in long else f"Pier {place}"
        text += f"{'#' * int(level)} {title}\n\n" + f"- a boat at {title[:6]}\n" * 30 + "\n"
    pinned = frozenset([text.rindex("\n#") + 1] * pin)
    gone_from_small = set(range(len(text)))
    for cap, result in cuts(text, range(40, count_tokens(text), 37), pinned=pinned):
        assert result.tokens == count_tokens(result.text) <= cap
        assert cut_places(result) <= gone_from_small
        gone_from_small = cut_places(result)
        assert not result.omitted or f"notebook_read {PATH}" in result.text
        for boat in regex.finditer(r"- a boat at (Pier \d)", result.text):
            assert f"# {boat[1]}\n" in result.text[: boat.start()]
    assert len(gone_from_small) < len(text) // 3


def test_no_reference_to_a_footnote_is_shown_without_it() -> None:
    fares = "".join(f"- fare {number}[^{number % 5}] of the ferry\n" for number in range(20))
    notes = "".join(f"[^{number}]: not on day {number}[^x]\n" for number in range(5))
    text = f"## Fares\n\n{fares}\n## Notes\n\n{notes}\n[^x]: nor in fog\n\n    nor at night\n"
    for _, result in cuts(text, range(20, count_tokens(text), 5)):
        for name in regex.findall(r"\[\^(.)\](?!:)", result.text):
            assert f"[^{name}]:" in result.text
        assert ("nor in fog" in result.text) == ("nor at night" in result.text)


def test_a_formula_is_one_block_whatever_is_in_it() -> None:
    formula = "$$\nf(x) = a\n- b\n\n+ c $$"
    text = (
        f"## Fuel\n\nCosts $$ or more.\n\n{formula}\n\n"
        + "- a boat\n" * 30
        + "\n- in an item\n\n  $$\n  a\n  - b\n  $$\n"
    )
    for _, result in cuts(text, range(20, count_tokens(text), 3)):
        assert (formula in result.text) == ("f(x)" in result.text) == ("+ c $$" in result.text)
        assert ("  a\n  - b\n  $$" in result.text) == ("  $$\n  a" in result.text)


def test_a_paragraph_of_ordinary_length_is_cut_at_the_end_of_a_sentence() -> None:
    sentence = "The ferry waits for Odile (at the pier), unless the fog is on the water and Ines has gone home."
    text = "".join(f"## Day {day}\n\n" + " ".join([sentence] * 12) + "\n\n" for day in range(9))
    for cap, result in cuts(text, range(150, 700, 50)):
        assert result.tokens > cap - 70
        prose = [line for line in result.text.split("\n") if line.startswith("The")]
        assert {line.removesuffix("…").replace(sentence, "").strip() for line in prose} == {""}


def test_an_item_of_a_list_of_ordinary_length_stays_or_leaves_whole() -> None:
    item = "- " + "The ferry waits for Odile, unless the fog is on the water. " * 20
    for _, result in cuts((item + "\n") * 9, range(400, 1500, 100)):
        assert "…" not in MARKER.sub("", result.text)


def test_a_grapheme_is_never_broken() -> None:
    family = "👩‍👩‍👧‍👦"
    for _, result in cuts(family * 200, range(30, 130, 7)):
        shown = result.text.partition("\n")[0]
        assert set(regex.findall(r"\X", shown)) <= {family, "…"} or MARKER.fullmatch(shown)


def test_a_paragraph_cut_short_does_not_become_another_block() -> None:
    opens_a_fence = "``` that goes on " + "and on " * 120 + "until it `closes`"
    for _, result in cuts(f"A paragraph\n{opens_a_fence}", range(15, 200), path=""):
        assert "fence" not in {token.type for token in MarkdownIt().parse(result.text)}


def test_all_open_tasks_are_shown_while_only_done_ones_have_to_leave() -> None:
    boxes = ["[ ]", "[x]", "[/]", "[-]"] * 15
    text = "## Today\n\n" + "".join(f"- {box} task number {number} of today\n" for number, box in enumerate(boxes))
    result = trim(text, count_tokens(text) - 1, count_tokens, path=PATH)
    assert (result.text.count("[ ]"), result.text.count("[/]")) == (15, 15)
    assert 27 <= result.text.count("[x]") + result.text.count("[-]") < 30


def text_of(name: str) -> str:
    return (FIXTURES / "kept" / name).read_text(encoding="utf-8")


@cache
def cuts_of(name: str) -> list[str]:
    """What is left of a file as owners write them, at every fourth cap, up to one token under the whole."""
    text = text_of(name)
    return [result.text for _, result in cuts(text, range(count_tokens(text) - 1, 0, -4), path=name)]


@pytest.mark.parametrize("name", ["log-oldest-first.md", "diary-newest-first.md"])
def test_the_newest_days_of_a_log_survive(name: str) -> None:
    days = regex.compile(r"(?m)^(?:- (\S{10}):|## (\d.*))")
    whole = [match[0] for match in days.finditer(text_of(name))]
    newest_first = whole if name.startswith("diary") else whole[::-1]
    for shown in cuts_of(name):
        found = {match[0] for match in days.finditer(shown)}
        assert found == set(newest_first[: len(found)])


def test_a_quote_is_shown_with_its_own_attribution() -> None:
    pairs = regex.findall(r"(?m)^((?:> .*\n)+)\n(— .*)$", text_of("quotes.md"))
    assert len(pairs) == 7
    for shown in cuts_of("quotes.md"):
        for quote, attribution in pairs:
            assert (quote in shown) == (f"{quote}\n{attribution}\n" in shown)


HOSTILE = {
    "flags": "🇳🇴🇸🇪" * 6000,
    "one line": "word " * 50_000,
    "digits": "1" * 200_000,
    "angles": "<" * 100_000,
    "wiki links": "[[" * 20_000,
    "quotes": ">" * 40_000,
    "lone surrogates": "- a \ud800 b\n" * 300,
    "NUL": "- a \x00 b\n" * 300,
    "one-letter headings": "# a\n" * 6000,
    "inline marks": "*a* `b` " * 8000,
    "a nest": "- " * 20_000 + "x\n",
    "deep lists": "".join("  " * level + "- x\n" for level in range(600)),
    "formulas": "$$\n" * 20_001,
    "footnotes": "[^1]\n\n[^1]: [^1]\n\n" * 3000,
}


@pytest.mark.usefixtures("cpu_limit")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_cut(text: str) -> None:
    assert visible(text, now=datetime(2026, 3, 1)).text == text
    for cap, result in cuts(text, (20, 60, 400)):
        assert count_tokens(result.text) == result.tokens <= cap
    assert result.cut[:1] != ((0, len(text)),) or "\n" not in text.strip()
