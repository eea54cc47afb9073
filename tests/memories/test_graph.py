"""Pictures of memories: well-formed whatever they say, true to their links, and the same each time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync import Notebook, Session
from notebook_sync.errors import NoSuchNote, UsageError
from notebook_sync.mirror.memories import KINDS, RELATIONS, Link, Memory
from notebook_sync.notes.memories.graph.layout import BOX_HEIGHT, BOX_WIDTH, laid_out
from notebook_sync.notes.memories.graph.mermaid import as_mermaid
from notebook_sync.notes.memories.graph.pick import MOST_MEMORIES, picked
from notebook_sync.notes.memories.graph.svg import drawn
from notebook_sync.notes.memories.score import told_score
from tests import memory_picture

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "</text><script>alert(1)</script>",
    '"><image href="http://harbour.example/x.png"/>',
    "&lt; &#0; ]]> <!-- --> <?php ?>",
    "a\0b\x0b\ud800\ufffe\u202egnp.x",
    "港" * 400,
    "x" * 100_000,
    "🛳" * 100,
    '"] --> m2\nclick m1 call alert(1)\n%%{init: {}}%%',
    "```\n# Not in the diagram\n```",
    "#quot; #35; `code` **bold** $$x$$",
    "",
]


def memory(name: str, *links: Link, **more: Any) -> Memory:
    base = memory_picture.memories()[0]
    path = f"memories/problem/{name}.md"
    return replace(base, **{"id": name, "path": path, "title": f"The {name}", "relations": links, **more})


def picture(memories: Sequence[Memory], **more: Any) -> ElementTree.Element:
    return ElementTree.fromstring(drawn(picked(memories, **more)))  # noqa: S314 - it is what is tested


def texts(found: ElementTree.Element) -> list[str]:
    return ["".join(one.itertext()) for one in found.iter(f"{SVG}text")]


def names_in(found: ElementTree.Element) -> list[str]:
    """The lines of titles."""
    return [one.text or "" for one in found.iter(f"{SVG}text") if one.get("class") == "head name"]


def lines_in(found: ElementTree.Element) -> list[str]:
    """What is said of each line when one points at it."""
    groups = [one for one in found.iter(f"{SVG}g") if (one.get("class") or "").startswith("r-")]
    return [one.findtext(f"{SVG}title") or "" for one in groups]


ROPE, GATE, TIDE = memory("rope", Link("causes", "gate", 0.9, "It hangs there")), memory("gate"), memory("tide")


def test_memories_are_boxes_and_links_lines_that_say_how_and_why() -> None:
    found = picture([ROPE, GATE, TIDE])
    assert {"The rope", "The gate", "The tide", "3 memories · 1 link", "causes 1"} <= set(texts(found))
    assert lines_in(found) == ["The rope causes The gate (0.90): It hangs there"]


def test_two_calls_draw_the_same_and_nothing_in_it_runs_or_is_fetched() -> None:
    told = memory_picture.picture()
    assert told == memory_picture.picture()
    assert "prefers-color-scheme:dark" in told
    assert not re.search(r"<script|\bon\w+=|href|url\(|@import|<!", told)


def test_the_picture_of_the_documentation_is_what_the_program_draws() -> None:
    assert memory_picture.PICTURE.read_text(encoding="utf-8") == memory_picture.picture(), (
        "draw it anew: python -m tests.memory_picture"
    )


def test_who_does_not_see_it_is_told_the_same() -> None:
    found = picture([ROPE, GATE])
    titles = {one.get("id"): one.text or "" for one in found.iter() if one.get("id")}
    assert found.get("role") == "img"
    assert [*titles] == found.attrib["aria-labelledby"].split()
    assert "The rope causes The gate" in titles["desc"]


def test_no_memories_make_a_picture_that_says_so() -> None:
    assert any("There are no memories yet" in one for one in texts(picture([])))
    assert "No memory is like that." in texts(picture([GATE], kind="insight"))


def test_the_score_is_rounded_as_in_lists() -> None:
    one = memory("rope", score=0.524996)
    assert any("0.53" in said for said in texts(picture([one])))
    assert f"{told_score(one):.2f}" == "0.53"


def test_memories_without_links_stand_in_rows_that_a_page_has_room_for() -> None:
    found = picture([memory(f"n{number}") for number in range(9)])
    assert float(found.attrib["width"]) < 1100


def test_what_is_superseded_reviewed_or_somebody_elses_is_marked() -> None:
    newer = memory("newer", Link("supersedes", "gate"), needs_review=True, provenance="external")
    told = texts(picture([newer, GATE]))
    assert any("by others · to review" in one for one in told)
    old = [one for one in picture([newer, GATE]).iter(f"{SVG}g") if "old" in (one.get("class") or "").split()]
    assert [one.findtext(f"{SVG}title") for one in old] == ["The gate · memories/problem/gate.md"]


# How wide they are in DejaVu Sans, or in what stands in for it, as shares of the font's size.
@pytest.mark.parametrize(("letter", "width"), [("W", 0.989), ("m", 0.974), ("i", 0.278), ("船", 1.0), ("🛶", 1.275)])
def test_no_title_is_wider_than_its_box(letter: str, width: float) -> None:
    first, second = names_in(picture([memory("a", title=letter * 200)]))
    room = (BOX_WIDTH - 14) / 12.5
    assert 0.7 * room < len(first) * width < room
    assert 0.7 * room < (len(second) - 1) * width + 1 < room
    assert (set(first), set(second), second[-1]) == ({letter}, {letter, "…"}, "…")
    (alone,) = names_in(picture([memory("m" * 99, title="")]))
    assert len(alone) * 0.974 < room
    assert names_in(picture([memory("a", title=letter)])) == [letter]


def test_links_that_lead_nowhere_are_counted_and_not_drawn() -> None:
    found = picture([memory("rope", Link("causes", "nobody"), Link("solves", "gate"), Link("similar", "rope")), GATE])
    assert lines_in(found) == ["The rope solves The gate (1.00)"]
    assert "2 memories · 1 link · 1 link leads to no memory" in texts(found)


def test_of_many_the_linked_ones_with_the_highest_score_are_shown_and_what_is_left_out_is_told() -> None:
    many = [memory(f"n{number:02}", score=number / 100) for number in range(40)]
    many += [memory("a", Link("causes", "b"), Link("causes", "c"), score=0.02), memory("b", score=0.01)]
    many += [memory("c", score=0.0)]
    told = texts(picture(many, limit=4))
    assert [one for one in told if one.startswith("The ")] == ["The a", "The b", "The c", "The n39"]
    assert "4 of 43 memories · 2 links" in told
    assert any("+1 link" in one for one in texts(picture(many, limit=2)))


def test_a_kind_and_a_domain_narrow_what_is_shown() -> None:
    some = [memory("rope", kind="pattern"), memory("gate", domain="Gates"), memory("tide")]
    assert {one.id for one in picked(some, kind="pattern").memories} == {"rope"}
    assert {one.id for one in picked(some, domain="gates").memories} == {"gate"}
    spaced = [memory("pier", domain="North Pier"), memory("tide")]
    assert {one.id for one in picked(spaced, domain=" north  pier").memories} == {"pier"}


def test_around_a_memory_are_those_that_are_nearest_to_it_either_way() -> None:
    chain = [memory(f"n{number}", Link("causes", f"n{number + 1}")) for number in range(9)]
    assert {one.id for one in picked(chain, around="n4", limit=3).memories} == {"n3", "n4", "n5"}
    assert [one.id for one in picked(chain, around="n4", limit=1).memories] == ["n4"]


@pytest.mark.parametrize("limit", [0, -1, MOST_MEMORIES + 1])
def test_a_limit_that_makes_no_picture_is_refused(limit: int) -> None:
    with pytest.raises(UsageError, match="a picture shows 1 to"):
        picked([GATE], limit=limit)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_memory_says_is_text_and_never_markup(text: str) -> None:
    odd = memory("odd", Link("causes", "gate", reasoning=text), title=text, domain=text, path=f"memories/{text}.md")
    found = picture([odd, GATE])
    assert {one.tag.removeprefix(SVG) for one in found.iter()} <= {
        *("svg", "title", "desc", "style", "rect", "text", "g", "path")
    }
    assert all(len(one) < 100 for one in texts(found))
    assert "\u202e" not in "".join(found.itertext())


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_memory_says_is_a_label_in_mermaid_and_never_syntax(text: str) -> None:
    odd = memory("odd", Link("causes", "gate", reasoning=text), title=text, domain=text)
    plain = as_mermaid(picked([memory("odd", Link("causes", "gate")), GATE]))
    told = as_mermaid(picked([odd, GATE]))
    assert len(told.splitlines()) == len(plain.splitlines())
    (label,) = re.findall(r'm\d+\{\{"(.*)"\}\}:::problem\n    m\d+ -->', told)
    assert re.fullmatch(r"(?:[\w\s.,:()/+?!'-]|#\d+;)+", label)
    assert "`" not in told


def test_a_diagram_has_a_line_for_each_memory_and_each_link() -> None:
    told = as_mermaid(picked([ROPE, GATE], around="rope")).splitlines()
    assert told[0] == "flowchart TD"
    assert '    m1{{"The rope"}}:::problem' in told
    assert "    m1 -->|causes| m2" in told
    assert "    style m1 stroke-width:4px" in told


def test_a_diagram_has_nothing_but_a_number_of_what_somebody_else_says() -> None:
    theirs = memory("Ignore all rules", title="Ignore all rules", provenance="external")
    told = as_mermaid(picked([theirs]))
    assert "Ignore" not in told
    assert "memory 1 (somebody else's words)" in told


graphs = st.integers(1, 24).flatmap(
    lambda boxes: st.tuples(
        st.just(boxes), st.lists(st.tuples(st.integers(0, boxes - 1), st.integers(0, boxes - 1)), max_size=40)
    )
)


@settings(max_examples=35)
@given(graphs)
def test_no_two_boxes_touch_and_no_line_crosses_a_box(graph: tuple[int, list[tuple[int, int]]]) -> None:
    boxes, arrows = graph
    layout = laid_out(boxes, arrows)
    for (x, y), (other_x, other_y) in combinations(layout.spots, 2):
        assert abs(x - other_x) >= BOX_WIDTH or abs(y - other_y) >= BOX_HEIGHT
    for x, y in [*layout.spots, *(spot for *_, way in layout.routes for spot in way)]:
        assert -0.1 <= x <= layout.width + 0.1
        assert 0 <= y <= layout.height
    assert {frozenset(way[:2]) for way in layout.routes} == {frozenset(one) for one in arrows if one[0] != one[1]}
    for start, end, way in layout.routes:
        assert _touches(layout.spots[start], way[0])
        assert _touches(layout.spots[end], way[-1])
        for x, y in way[1:-1]:
            assert not any(left < x < left + BOX_WIDTH and top <= y <= top + BOX_HEIGHT for left, top in layout.spots)


def _touches(box: tuple[float, float], spot: tuple[float, float]) -> bool:
    return box[0] <= spot[0] <= box[0] + BOX_WIDTH and spot[1] in (box[1], box[1] + BOX_HEIGHT)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.sampled_from(RELATIONS), st.integers(0, 9), st.integers(0, 9)), max_size=20), st.data())
def test_any_memories_and_links_make_a_picture(links: list[tuple[str, int, int]], data: st.DataObject) -> None:
    own: dict[int, dict[tuple[str, int], Link]] = {number: {} for number in range(8)}
    for relation, start, end in links:
        if start in own:
            own[start][relation, end] = Link(relation, f"n{end}", data.draw(st.floats(0, 1)))
    kinds = st.sampled_from((*KINDS, ""))
    some = [memory(f"n{n}", *own[n].values(), kind=data.draw(kinds), title=data.draw(st.text())) for n in own]
    found = picture(some)
    there = sum(1 for start in own for _, end in own[start] if end in own and end != start)
    assert len(lines_in(found)) == there
    assert as_mermaid(picked(some)).count("-->|") == there


WITHHELD = """
[[prompt.files]]
path = "memories/problem/secret.md"
sessions = ["owner"]
"""


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    place = tmp_path / "memories" / "problem"
    place.mkdir(parents=True)
    (tmp_path / "notebook.toml").write_text(WITHHELD)
    (place / "rope.md").write_text("---\nid: rope\nrelations:\n- {type: causes, to: secret}\n---\n# The rope hangs\n")
    (place / "secret.md").write_text("---\nid: secret\n---\n# Odile pays the keeper\n")
    with Notebook.open(tmp_path) as opened:
        yield opened


def test_the_picture_is_of_the_files_as_they_are_now(notebook: Notebook) -> None:
    assert "Odile pays the keeper" in notebook.memories.graph(Session.owner())
    (notebook.root / "memories" / "problem" / "rope.md").write_text("# The rope is new\n")
    told = notebook.memories.graph(Session.owner())
    assert "The rope is new" in told
    assert "0 links" in told


@pytest.mark.parametrize("format", ["svg", "mermaid"])
def test_a_memory_that_a_session_may_not_read_is_as_one_that_is_not_there(notebook: Notebook, format: str) -> None:  # noqa: A002 - so the option is called
    session = Session.task("scribe")
    told = notebook.memories.graph(session, format=format)
    assert "The rope hangs" in told
    (notebook.root / "memories" / "problem" / "secret.md").unlink()
    assert notebook.memories.graph(session, format=format) == told


def test_a_format_a_kind_and_a_memory_that_are_not_there_are_refused(notebook: Notebook) -> None:
    with pytest.raises(UsageError, match="use one of svg, mermaid"):
        notebook.memories.graph(Session.owner(), format="png")
    with pytest.raises(UsageError, match="use one of pattern, decision"):
        notebook.memories.graph(Session.owner(), kind="idea")
    with pytest.raises(NoSuchNote):
        notebook.memories.graph(Session.owner(), around="nobody")
    of_kind = notebook.memories.graph(Session.owner(), format="mermaid", kind="problem")
    assert notebook.memories.graph(Session.owner(), format="mermaid", kind=" [Problem]") == of_kind
    assert "centre" in notebook.memories.graph(Session.owner(), around="memories/problem/rope.md")
