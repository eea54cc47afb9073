"""Memories and their links as a picture: one SVG without a script, for light and dark pages, or a text for Mermaid.

The same memories give the same picture. What a memory says is text in it, never markup, and nothing in it is fetched;
what others wrote is not named.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple
from xml.sax.saxutils import escape

from notebook_sync.files.page import shorten
from notebook_sync.services.memory_results import Memory
from notebook_sync.services.memory_text import plain_title

# In every picture: a file that has it may be replaced by another picture.
MARK = "Memories and their links"
_MOST_LINKS = 400
_PLAIN = "unstructured"
_WIDTH, _HEIGHT, _GAP, _LAYER, _TOP, _MARGIN = 228, 58, 26, 126, 80, 28
# Boxes in a row, pixels between lines of two boxes, rounds of ordering, letters of a title in a box.
_ON_A_SHELF, _WIDEST, _BESIDE, _SWEEPS, _LETTERS = 4, 8, 7, 4, 30
# Seen on light and dark pages; links differ in their dashes, too.
_HUES = {"decision": "#3b82c4", "problem": "#d9622b", "pattern": "#2f9e4f", "insight": "#b94fc9", _PLAIN: "#7c8a9e"}
_LINKS = {
    "causes": ("#d9622b", ""),
    "solves": ("#2f9e4f", ""),
    "contradicts": ("#d64545", "2 4"),
    "expands": ("#3b82c4", "9 4"),
    "supersedes": ("#8b6fd6", "12 4 2 4"),
    "similar": ("#7c8a9e", "5 5"),
}
_SHAPES = {"decision": ("[", "]"), "problem": ("{{", "}}"), "pattern": ("([", "])"), "insight": ("(", ")")}
# All that Mermaid or Markdown could take for more than a letter.
_MARKS = re.compile(r"[^\w\s.,:()/+?!'-]")
_STYLE = (
    ".page{fill:#fff}.box{fill:#f8fafc;stroke:#cbd5e1}.head{fill:#1c2430}.soft{fill:#5c6675}.line{fill:none}"
    "@media(prefers-color-scheme:dark){.page{fill:#14181f}.box{fill:#1c222c;stroke:#3a4453}.head{fill:#e6e9ee}"
    ".soft{fill:#9aa4b2}}"
)


class Arrow(NamedTuple):
    """A link between two memories of a graph, by their ids."""

    start: str
    end: str
    type: str
    confidence: float


class Graph(NamedTuple):
    """The memories of a picture, and the links between them."""

    memories: Sequence[Memory]
    arrows: Sequence[Arrow]


def pick(memories: Sequence[Memory], *, around: str = "", limit: int = 80) -> Graph:
    """The memories with the highest scores, linked ones first; or the memory `around`, and those nearest by links."""
    ids = {each.id: each for each in memories}
    arrows = [
        Arrow(each.id, link["to"], link["type"], link["confidence"])
        for each in memories
        for link in each.relations
        if link["to"] in ids and link["to"] != each.id
    ]
    near = _neighbours(arrows)
    order = sorted((id not in near, -each.score, id) for id, each in ids.items())
    rank = {id: at for at, (_, _, id) in enumerate(order)}
    chosen = dict.fromkeys([around] if around else list(rank)[:limit])
    waiting = deque(chosen if around else ())
    while waiting and len(chosen) < limit:
        new = sorted(near[waiting.popleft()].keys() - chosen.keys(), key=rank.__getitem__)[: limit - len(chosen)]
        chosen |= dict.fromkeys(new)
        waiting.extend(new)
    shown = [each for each in arrows if each.start in chosen and each.end in chosen]
    shown.sort(key=lambda each: (-each.confidence, each.start, each.end, each.type))
    return Graph([ids[id] for id in chosen], shown[:_MOST_LINKS])


def as_mermaid(graph: Graph) -> str:
    """The picture as a diagram of Mermaid, without a code block around it."""
    names = {each.id: f"m{number}" for number, each in enumerate(graph.memories, 1)}
    lines = ["flowchart TD", f"    %% {MARK}"]
    for each in graph.memories:
        opening, closing = _SHAPES.get(each.kind, ("[/", "/]"))
        label = _MARKS.sub(lambda found: f"#{ord(found[0])};", shorten(_title(each), 60))
        lines.append(f'    {names[each.id]}{opening}"{label}"{closing}:::{each.kind or _PLAIN}')
    lines += [f"    {names[each.start]} -->|{each.type}| {names[each.end]}" for each in graph.arrows]
    lines += [f"    classDef {kind} stroke:{hue},stroke-width:2px" for kind, hue in _HUES.items()]
    return "\n".join(lines) + "\n"


def as_svg(graph: Graph) -> str:
    """The picture as SVG: in layers, what leads to something above it."""
    return "\n".join(_svg(graph, place_boxes(graph))) + "\n"


def place_boxes(graph: Graph) -> dict[str, tuple[float, float]]:
    """The upper left corners of the boxes by id: linked memories in layers, each near what it is linked with, and below
    them the others."""
    depth = _depths(graph.arrows)
    ids = [each.id for each in graph.memories]
    rows = [[id for id in ids if depth.get(id) == level] for level in range(max(depth.values(), default=-1) + 1)]
    near = _neighbours(graph.arrows)
    for _ in range(_SWEEPS):
        for row in rows:
            place = {id: at - len(one) / 2 for one in rows for at, id in enumerate(one)}
            row.sort(key={id: (fmean(place[other] for other in near[id]), id) for id in row}.__getitem__)
    rows = [row[start : start + _WIDEST] for row in rows for start in range(0, len(row), _WIDEST)]
    loose = [id for id in ids if id not in depth]
    rows += [loose[start : start + _ON_A_SHELF] for start in range(0, len(loose), _ON_A_SHELF)]
    widest = max(map(len, rows), default=0)
    return {
        id: (_MARGIN + (at + (widest - len(row)) / 2) * (_WIDTH + _GAP), _TOP + level * _LAYER)
        for level, row in enumerate(rows)
        for at, id in enumerate(row)
    }


def _neighbours(arrows: Sequence[Arrow]) -> dict[str, Counter[str]]:
    """With which memories each linked one has how many links."""
    near: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for arrow in arrows:
        near[arrow.start][arrow.end] += 1
        near[arrow.end][arrow.start] += 1
    return near


def _depths(arrows: Sequence[Arrow]) -> dict[str, int]:
    """The layer of each linked memory: below all that leads to it, but for links that would close a circle."""
    sources: defaultdict[str, set[str]] = defaultdict(set)
    for arrow in arrows:
        sources[arrow.end].add(arrow.start)
        sources[arrow.start].update()
    waiting, depth = {id: set(each) for id, each in sources.items()}, dict[str, int]()
    while waiting:
        _, id = min((len(each), id) for id, each in waiting.items())
        depth[id] = 1 + max((depth[source] for source in sources[id] if source in depth), default=-1)
        del waiting[id]
        for each in waiting.values():
            each.discard(id)
    return depth


def _svg(graph: Graph, spots: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    width = max((x for x, _ in spots.values()), default=520.0) + _WIDTH + _MARGIN
    height = max((y for _, y in spots.values()), default=0.0) + _HEIGHT + _MARGIN
    titles = {each.id: escape(_title(each)) for each in graph.memories}
    names = Counter([*map(_kind, graph.memories), *(arrow.type for arrow in graph.arrows)])
    counted = " · ".join(f"{count:,} {name}" for name, count in names.items())
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{MARK}" font-family="system-ui, sans-serif">\n'
        f'<title>{MARK}</title><style>{_STYLE}</style><rect class="page" width="100%" height="100%"/>\n'
        f'<text class="head" x="{_MARGIN}" y="33" font-size="18" font-weight="600">{MARK}</text>\n'
        f'<text class="soft" x="{_MARGIN}" y="54" font-size="12">{counted or "no memories"}</text>'
    )
    between: Counter[frozenset[str]] = Counter()
    for arrow in graph.arrows:
        pair, (hue, dashes) = frozenset((arrow.start, arrow.end)), _LINKS[arrow.type]
        line, tip = _way(spots, arrow, between[pair] * _BESIDE)
        between[pair] += 1
        yield (
            f"<g><title>{titles[arrow.start]} {arrow.type} {titles[arrow.end]} ({arrow.confidence:.2f})</title>"
            f'<path class="line" stroke="{hue}" stroke-width="1.8" stroke-dasharray="{dashes}" '
            f'opacity="{0.45 + 0.55 * arrow.confidence:.2f}" d="{line}"/><path fill="{hue}" d="{tip}"/></g>'
        )
    for each in graph.memories:
        x, y = spots[each.id]
        small = " · ".join(filter(None, (_kind(each), f"{each.score:.2f}", "to review" * each.needs_review)))
        yield (
            f'<g transform="translate({x:.1f} {y:.1f})"><title>{titles[each.id]}</title>'
            f'<rect class="box" width="{_WIDTH}" height="{_HEIGHT}" rx="7"/>'
            f'<rect fill="{_HUES[_kind(each)]}" y="8" width="4" height="{_HEIGHT - 16}" rx="2"/>'
            f'<text class="head" x="14" y="25" font-size="12.5">{escape(shorten(_title(each), _LETTERS))}</text>'
            f'<text class="soft" x="14" y="44" font-size="11">{small}</text></g>'
        )
    yield "</svg>"


def _way(spots: Mapping[str, tuple[float, float]], arrow: Arrow, aside: float) -> tuple[str, str]:
    """The line of an arrow, upright at both boxes, and its tip."""
    (x, y), (to_x, to_y) = spots[arrow.start], spots[arrow.end]
    down = 1 if to_y > y else -1
    x, to_x = x + _WIDTH / 2 + aside, to_x + _WIDTH / 2 + aside
    y, to_y = (y + _HEIGHT, to_y) if to_y > y else (y, to_y + (_HEIGHT if to_y < y else 0))
    foot = to_y - down * 9
    line = f"M{x:.1f},{y:.1f} C{x:.1f},{y + down * 40:.1f} {to_x:.1f},{foot - down * 40:.1f} {to_x:.1f},{foot:.1f}"
    tip = f"M{to_x:.1f},{to_y:.1f} L{to_x - 4.5:.1f},{foot:.1f} L{to_x + 4.5:.1f},{foot:.1f} Z"
    return line, tip


def _kind(memory: Memory) -> str:
    return memory.kind or _PLAIN


def _title(memory: Memory) -> str:
    return "somebody else's words" if memory.provenance else plain_title(memory.title) or "Memory"
