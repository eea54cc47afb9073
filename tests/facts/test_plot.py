"""The picture of facts over time: well-formed whatever they say, and true to the formula."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.errors import UsageError
from notebook_sync.files.facts import id_of
from notebook_sync.mirror.facts import Fact
from notebook_sync.notes.fact_life import effective
from notebook_sync.notes.facts.curves import crossing, curve_of
from notebook_sync.notes.facts.plot import MOST_FACTS, plot
from notebook_sync.settings import Fraction, MemorySettings
from tests import fact_picture

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def fact(text: str, importance: float = 0.5, age: float = 10, **more: Any) -> Fact:
    place = {"section": "Important Facts", "path": "facts/notes.md", "line": 1}
    return Fact(id_of(text), text, ago(age), ago(age), importance=importance, **{**place, **more})


FERRY = fact("The ferry leaves at 8", 0.7, 60, access_count=3, last_accessed=ago(5))


def drawn(facts: Sequence[Fact], **more: Any) -> ElementTree.Element:
    return ElementTree.fromstring(plot(facts, NOW, MemorySettings(), **more))  # noqa: S314 - it is what is tested


def texts(picture: ElementTree.Element) -> list[str]:
    return ["".join(one.itertext()) for one in picture.iter(f"{SVG}text")]


def test_a_fact_is_a_solid_line_up_to_today_and_a_dashed_one_from_there() -> None:
    picture = drawn([FERRY])
    past, ahead = picture.iter(f"{SVG}path")
    assert (past.get("class"), ahead.get("class")) == ("line", "line ahead")
    assert ".ahead{stroke-dasharray" in "".join(picture.itertext())
    assert past.attrib["d"].split()[-1].strip("L") == ahead.attrib["d"].split()[0].strip("M")
    assert {"today", "The ferry leaves at 8", f"{effective(FERRY, NOW):.2f}"} <= set(texts(picture))


def test_the_thresholds_are_lines_that_say_what_happens_there() -> None:
    told = texts(drawn([FERRY]))
    assert "above 0.8: with 3 uses and more, is proposed for core.md" in told
    assert "below 0.05: moves to archive.md" in told
    own = MemorySettings(archive_below=Fraction(0.1), promote="auto", promote_accesses=5)
    picture = plot([FERRY], NOW, own)
    assert "below 0.1: moves to archive.md" in picture
    assert "with 5 uses and more, moves to core.md" in picture


def test_the_axes_have_days_and_numbers() -> None:
    told = texts(drawn([FERRY]))
    assert {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"} <= set(told)
    days = [one for one in told if re.fullmatch(r"\d{4}-\d\d-\d\d", one)]
    assert "2026-03-01" in days
    assert len(days) >= 4


def test_the_legend_tells_when_a_fact_will_be_archived() -> None:
    fading = fact("The crane is out of use", 0.3, 1)
    told = texts(drawn([fading]))
    (when,) = (one for one in told if one.startswith("archived "))
    day = datetime.fromisoformat(when.removeprefix("archived ")).replace(tzinfo=UTC)
    assert effective(fading, day - timedelta(days=2)) >= 0.05 > effective(fading, day + timedelta(days=2))


def test_the_legend_tells_which_facts_are_for_the_archive_now() -> None:
    assert "due for the archive" in texts(drawn([fact("The crane is out of use", 0.3, 60)]))


@pytest.mark.parametrize("age", [1, 60])
def test_the_legend_foretells_no_archiving_of_what_a_person_pinned(age: float) -> None:
    told = texts(drawn([fact("The crane is out of use", 0.3, age, pinned=True)]))
    assert not [one for one in told if one.startswith(("archived ", "due for"))]
    assert "due for the archive" in texts(drawn([fact("The crane is out of use", 0.04, age, pinned=True)]))


def test_who_does_not_see_it_is_told_the_same() -> None:
    picture = drawn([FERRY])
    labels = picture.attrib["aria-labelledby"].split()
    title, description = (next(one for one in picture.iter() if one.get("id") == label) for label in labels)
    assert picture.get("role") == "img"
    assert title.text == "Importance of facts over time"
    assert f"The ferry leaves at 8: {effective(FERRY, NOW):.2f} now" in (description.text or "")


def test_the_facts_that_count_for_most_are_drawn_and_the_others_counted() -> None:
    picture = drawn([fact(f"Rope {number} is new", number / 100) for number in range(40)], limit=3)
    assert len([*picture.iter(f"{SVG}path")]) == 6
    assert [one for one in texts(picture) if one.startswith("Rope")] == [f"Rope {n} is new" for n in (39, 38, 37)]
    assert "the 3 of 40 that count for most" in "".join(texts(picture))


def test_the_picture_of_the_documentation_is_what_the_program_draws() -> None:
    assert fact_picture.PICTURE.read_text(encoding="utf-8") == fact_picture.drawn(), (
        "draw it anew: python -m tests.fact_picture"
    )


def test_no_facts_make_a_picture_that_says_so() -> None:
    picture = drawn([])
    assert not [*picture.iter(f"{SVG}path")]
    assert any("There are no facts yet" in one for one in texts(picture))


def test_two_calls_draw_the_same_and_nothing_in_it_runs_or_is_fetched() -> None:
    picture = plot([FERRY], NOW, MemorySettings())
    assert picture == plot([FERRY], NOW, MemorySettings())
    assert "prefers-color-scheme:dark" in picture
    assert not re.search(r"<script|\bon\w+=|href|url\(|@import|<!", picture)


@pytest.mark.parametrize(
    "text",
    [
        "</text><script>alert(1)</script>",
        '"><image href="http://harbour.example/x.png"/>',
        "&lt; &#0; ]]> <!-- --> <?php ?>",
        "a\0b\x0b\ud800\ufffe\u202egnp.x",
        "港" * 400,
        "x" * 100_000,
        "- a list\n- in a fact\n\n# and a heading",
        "🛳" * 100,
    ],
)
def test_what_a_fact_says_is_text_and_never_markup(text: str) -> None:
    picture = drawn([fact(text)])
    assert {one.tag.removeprefix(SVG) for one in picture.iter()} <= {
        *("svg", "title", "desc", "style", "rect", "text", "line", "g", "path", "circle")
    }
    assert all(len(one) < 120 for one in texts(picture))
    assert "\u202e" not in "".join(texts(picture))


@pytest.mark.parametrize(("days", "limit"), [(0, 12), (-1, 12), (10**9, 12), (90, 0), (90, MOST_FACTS + 1)])
def test_days_and_limits_that_make_no_picture_are_refused(days: int, limit: int) -> None:
    with pytest.raises(UsageError, match="a picture shows 1 to"):
        plot([FERRY], NOW, MemorySettings(), days=days, limit=limit)


moments = st.floats(-400, 4000).map(ago)
facts = st.builds(
    fact,
    st.text(min_size=1, max_size=30),
    st.floats(0, 1),
    st.floats(-5, 3000),
    access_count=st.integers(0, 60),
    last_accessed=st.none() | moments,
    decay_rate=st.floats(0, 1),
    path=st.sampled_from(["facts/notes.md", "facts/core.md"]),
    source_history=st.lists(
        st.fixed_dictionaries(
            {"at": moments | st.just("2026-01-05T08:00:00+00:00") | st.just("soon") | st.none()},
            optional={
                "importance": st.floats(0, 1) | st.none() | st.just("high"),
                "action": st.sampled_from(["reinforced", "added"]),
            },
        ),
        max_size=5,
    ).map(tuple),
)


@settings(max_examples=60)
@given(st.lists(facts, max_size=6), st.integers(1, 3650))
def test_any_facts_make_a_picture_within_its_frame(given_facts: list[Fact], days: int) -> None:
    picture = drawn(given_facts, days=days)
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    for path in picture.iter(f"{SVG}path"):
        for x, y in re.findall(r"([\d.-]+),([\d.-]+)", path.attrib["d"]):
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height


def test_the_past_steps_up_when_a_fact_was_reinforced_and_is_what_the_formula_gave_then() -> None:
    history = (
        {"at": ago(60), "action": "added", "importance": 0.5},
        {"at": ago(20), "action": "reinforced", "importance": 0.6},
    )
    one = fact("Ines keeps the keys", 0.6, 60, access_count=1, last_accessed=ago(20), source_history=history)
    curve = curve_of(one, ago(90), NOW, NOW + timedelta(days=90))
    at = dict(curve.past)
    assert at[ago(60)] == pytest.approx(0.5)
    before = [value for when, value in curve.past if when < ago(20)][-1]
    assert before == pytest.approx((0.5 - 0.4) / 1.4, abs=0.001)
    assert at[ago(20)] == pytest.approx((0.6 + 0.05) / 1.4)
    assert curve.now == effective(one, NOW)
    assert curve.at_the_end == effective(one, NOW + timedelta(days=90))


def test_what_is_pinned_counts_as_that_from_the_first_day() -> None:
    history = ({"at": ago(0.5), "action": "added", "importance": 0.5},)
    one = fact("The toll is ten", 0.9, 0.5, pinned=True, source_history=history)
    curve = curve_of(one, ago(90), NOW, NOW + timedelta(days=90))
    assert max(value for _, value in curve.past) - min(value for _, value in curve.past) < 0.02
    assert curve.at_the_end < 0.05


def test_numbers_stand_at_the_height_of_their_curves() -> None:
    picture = drawn([*(fact(f"Berth {number} is free", 0.5, 1) for number in range(10)), fact("The toll", 0.2, 1)])
    spots = []
    for group in picture.iter(f"{SVG}g"):
        dot, mark = group.find(f"{SVG}circle"), group.find(f"{SVG}text")
        if dot is not None and mark is not None:
            assert abs(float(dot.attrib["cy"]) - float(mark.attrib["y"]) + 4) < 12
            spots.append((mark.attrib["x"], mark.attrib["y"]))
    assert len({*spots}) == 11


def test_uses_of_which_nothing_else_is_known_are_spread_up_to_the_last() -> None:
    curve = curve_of(fact("Ropes", 0.5, 40, access_count=4, last_accessed=NOW), ago(90), NOW, NOW + timedelta(days=1))
    steps = [at for (_, low), (at, high) in zip(curve.past, curve.past[1:], strict=False) if high > low + 0.01]
    assert [round((NOW - at).days) for at in steps] == [30, 20, 10, 0]


def test_a_curve_falls_below_a_level_once() -> None:
    points = [(ago(3), 0.5), (ago(2), 0.04), (ago(1), 0.3), (ago(0), 0.0)]
    assert crossing(points, 0.05) == ago(2)
    assert crossing(points[:1], 0.05) is None
