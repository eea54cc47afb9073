"""A picture of memories and links: one SVG without a script, for light and dark pages. Pure.

What notes say is text in it and never markup, whatever they say; nothing in it is fetched.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from notebook_sync.mirror.memories import KINDS, RELATIONS, Link, Memory
from notebook_sync.notes.memories.graph.layout import BOX_HEIGHT, BOX_WIDTH, Layout, Route, Spot, laid_out
from notebook_sync.notes.memories.graph.pick import Graph
from notebook_sync.notes.memories.score import told_score
from notebook_sync.notes.picture_text import fitted, short, two_lines

_MARGIN, _TOP = 28, 118
_LEAST_WIDTH = 760
_ROOM_OF_A_TITLE = 120
_NAME_SIZE, _SMALL_SIZE = 12.5, 11
_INSET, _PADDING = 14, 8
_ROOM = BOX_WIDTH - _INSET - _PADDING
_BESIDE = 7
_ARROW = 9
_BEND = 34
_ENTRY_GAP = 22
_LETTER = 6.2
_PLAIN = "unstructured"
_HEADING = "Memories and how they are linked"
# A light and a dark page's shade of each, tellable apart also for those who see few colours; links differ in their
# dashes, too.
_KIND_HUES = {
    "decision": ("#1f6fb2", "#63b3ed"),
    "problem": ("#c2410c", "#fb923c"),
    "pattern": ("#15803d", "#4ade80"),
    "insight": ("#a21caf", "#e879f9"),
    _PLAIN: ("#64748b", "#94a3b8"),
}
_LINKS = {
    "causes": ("#c2410c", "#fb923c", ""),
    "solves": ("#15803d", "#4ade80", ""),
    "contradicts": ("#b91c1c", "#f87171", "2 4"),
    "expands": ("#1f6fb2", "#63b3ed", "9 4"),
    "supersedes": ("#6d28d9", "#c4b5fd", "12 4 2 4"),
    "similar": ("#64748b", "#94a3b8", "5 5"),
}


def drawn(graph: Graph) -> str:
    """The picture of a graph."""
    numbers = {memory.id: number for number, memory in enumerate(graph.memories)}
    lines = [(numbers[start], numbers[link.to], link) for start, link in graph.links]
    layout = laid_out(len(numbers), [(start, end) for start, end, _ in lines])
    return "\n".join(_picture(graph, lines, layout)) + "\n"


_Lines = Sequence[tuple[int, int, Link]]


def _picture(graph: Graph, lines: _Lines, layout: Layout) -> Iterator[str]:
    width = max(layout.width + 2 * _MARGIN, _LEAST_WIDTH)
    left = (width - layout.width) / 2
    height = _TOP + layout.height + _MARGIN if graph.memories else _TOP + 12
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-labelledby="title desc" '
        "font-family=\"system-ui, -apple-system, 'Segoe UI', sans-serif\">"
    )
    yield f'<title id="title">{_HEADING}</title>'
    yield f'<desc id="desc">{escape(_described(graph))}</desc>'
    yield f"<style>{_STYLE}</style>"
    yield f'<rect class="page" width="{width:.0f}" height="{height:.0f}"/>'
    yield f'<text class="head" x="{_MARGIN}" y="33" font-size="18" font-weight="600">{_HEADING}</text>'
    yield f'<text class="soft" x="{_MARGIN}" y="54" font-size="12.5">{escape(graph.told())}</text>'
    yield from _legend(graph)
    yield f'<g transform="translate({left:.1f} {_TOP})">'
    yield from _drawn_links(lines, layout, graph)
    yield from _drawn_boxes(graph, layout.spots)
    yield "</g>"
    yield "</svg>"


def _described(graph: Graph) -> str:
    """The picture for those who do not see it."""
    titles = {memory.id: _title(memory) for memory in graph.memories}
    told = "; ".join(f"{titles[start]} {link.type} {titles[link.to]}" for start, link in graph.links)
    return f"{graph.told()}. {told}." if told else f"{graph.told()}."


def _title(memory: Memory) -> str:
    return short(memory.title, _ROOM_OF_A_TITLE) or memory.id


def _legend(graph: Graph) -> Iterator[str]:
    """What the colours mean of the kinds and links that are there, and how many there are."""
    x = float(_MARGIN)
    kinds = Counter(memory.kind or _PLAIN for memory in graph.memories)
    for kind in (*KINDS, _PLAIN):
        if kinds[kind]:
            words = f"{kind} {kinds[kind]:,}"
            yield f'<rect class="k-{kind} fill" x="{x:.1f}" y="72" width="10" height="10" rx="2.5"/>'
            yield f'<text class="soft small" x="{x + 16:.1f}" y="81">{words}</text>'
            x += 16 + len(words) * _LETTER + _ENTRY_GAP
    x = float(_MARGIN)
    links = Counter(link.type for _, link in graph.links)
    for relation in RELATIONS:
        if links[relation]:
            words = f"{relation} {links[relation]:,}"
            yield f'<path class="r-{relation} line" d="M{x:.1f},98 H{x + 26:.1f}"/>'
            yield f'<text class="soft small" x="{x + 33:.1f}" y="102">{words}</text>'
            x += 33 + len(words) * _LETTER + _ENTRY_GAP


def _drawn_links(lines: _Lines, layout: Layout, graph: Graph) -> Iterator[str]:
    """All links of a pair of memories go the same way, side by side."""
    ways: Mapping[tuple[int, int], Route] = {(min(way[:2]), max(way[:2])): way for way in layout.routes}
    together: dict[tuple[int, int], list[tuple[int, int, Link]]] = defaultdict(list)
    for line in lines:
        together[min(line[:2]), max(line[:2])].append(line)
    for pair, several in together.items():
        first, _, spots = ways[pair]
        for place, (start, end, link) in enumerate(several):
            aside = (place - (len(several) - 1) / 2) * _BESIDE
            way = [(x + aside, y) for x, y in (spots if start == first else reversed(spots))]
            yield f'<g class="r-{link.type}">'
            yield f"<title>{escape(_told_of(graph.memories[start], link, graph.memories[end]))}</title>"
            yield f'<path class="line" opacity="{0.45 + 0.55 * link.confidence:.2f}" d="{_curve(way)}"/>'
            yield f'<path class="tip" d="{_tip(way)}"/></g>'


def _told_of(start: Memory, link: Link, end: Memory) -> str:
    why = f": {short(link.reasoning, _ROOM_OF_A_TITLE)}" if link.reasoning else ""
    return f"{_title(start)} {link.type} {_title(end)} ({link.confidence:.2f}){why}"


def _curve(way: Sequence[Spot]) -> str:
    """A line that is upright at every spot and ends at the arrow's foot."""
    downwards = 1 if way[-1][1] > way[0][1] else -1
    spots = [*way[:-1], (way[-1][0], way[-1][1] - downwards * (_ARROW - 1))]
    pieces = [f"M{spots[0][0]:.1f},{spots[0][1]:.1f}"]
    for (x, y), (to_x, to_y) in pairwise(spots):
        if abs(x - to_x) < 0.05:  # what is drawn as the same number
            pieces.append(f"V{to_y:.1f}")
        else:
            bend = downwards * _BEND
            pieces.append(f"C{x:.1f},{y + bend:.1f} {to_x:.1f},{to_y - bend:.1f} {to_x:.1f},{to_y:.1f}")
    return " ".join(pieces)


def _tip(way: Sequence[Spot]) -> str:
    x, y = way[-1]
    foot = y - _ARROW if y > way[0][1] else y + _ARROW
    return f"M{x:.1f},{y:.1f} L{x - 4.5:.1f},{foot:.1f} L{x + 4.5:.1f},{foot:.1f} Z"


def _drawn_boxes(graph: Graph, spots: Sequence[Spot]) -> Iterator[str]:
    replaced = {link.to for _, link in graph.links if link.type == "supersedes"}
    for memory, (x, y) in zip(graph.memories, spots, strict=True):
        marks = [f"k-{memory.kind or _PLAIN}"]
        marks += ["old"] if memory.id in replaced or memory.status == "archived" else []
        marks += ["centre"] if memory.id == graph.around else []
        first, second = two_lines(memory.title, _ROOM / _NAME_SIZE)
        name = first or fitted(memory.id, _ROOM / _NAME_SIZE)
        yield f'<g class="{" ".join(marks)}" transform="translate({x:.1f} {y:.1f})">'
        yield f"<title>{escape(_title(memory))} · {escape(short(memory.path, _ROOM_OF_A_TITLE))}</title>"
        yield f'<rect class="box" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="7"/>'
        yield f'<rect class="fill" x="0.5" y="8" width="4" height="{BOX_HEIGHT - 16}" rx="2"/>'
        yield f'<text class="head name" x="{_INSET}" y="{20 if second else 27}">{escape(name)}</text>'
        if second:
            yield f'<text class="head name" x="{_INSET}" y="35">{escape(second)}</text>'
        small = escape(_small_print(memory, graph))
        yield f'<text class="soft small" x="{_INSET}" y="{BOX_HEIGHT - 10}">{small}</text></g>'


def _small_print(memory: Memory, graph: Graph) -> str:
    """What stands below a title, the most telling first: there is room for one line."""
    told = [memory.kind or _PLAIN]
    told += ["by others"] if memory.provenance else []
    told += ["to review"] if memory.needs_review else []
    told += [f"+{more} links"] if (more := graph.more[memory.id]) > 1 else ["+1 link"] if more else []
    told += [f"{told_score(memory):.2f}"] if memory.score is not None else []
    told += [memory.domain] if memory.domain else []
    return fitted(" · ".join(told), _ROOM / _SMALL_SIZE)


def _rules(dark: bool) -> str:
    page, box, edge, head, soft = (
        ("#14181f", "#1c222c", "#3a4453", "#e6e9ee", "#9aa4b2")
        if dark
        else ("#fff", "#f8fafc", "#cbd5e1", "#1c2430", "#5c6675")
    )
    kinds = "".join(f".k-{kind} .fill,.k-{kind}.fill{{fill:{hue[dark]}}}" for kind, hue in _KIND_HUES.items())
    centre = "".join(f".k-{kind}.centre .box{{stroke:{hue[dark]}}}" for kind, hue in _KIND_HUES.items())
    links = "".join(
        f".r-{relation} .line,.r-{relation}.line{{stroke:{hue[dark]}}}.r-{relation} .tip{{fill:{hue[dark]}}}"
        for relation, hue in _LINKS.items()
    )
    return (
        f".page{{fill:{page}}}.box{{fill:{box};stroke:{edge}}}.head{{fill:{head}}}.soft{{fill:{soft}}}"
        f"{kinds}{centre}{links}"
    )


_STYLE = (
    ".line{fill:none;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}.box{stroke-width:1}"
    ".centre .box{stroke-width:2.5}.old .box{stroke-dasharray:4 3}.old .name{opacity:.6}"
    f".name{{font-size:{_NAME_SIZE}px}}.small{{font-size:{_SMALL_SIZE}px;font-variant-numeric:tabular-nums}}"
    + "".join(f".r-{name}.line,.r-{name} .line{{stroke-dasharray:{hue[2]}}}" for name, hue in _LINKS.items() if hue[2])
    + f"{_rules(dark=False)}@media (prefers-color-scheme:dark){{{_rules(dark=True)}}}"
)
