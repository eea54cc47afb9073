"""Where the boxes of a graph stand and which way its lines go: in layers, what leads to something above it. Pure; for
the same graph the same.

Layers as in Sugiyama, Tagawa and Toda (1981), at most so many boxes wide; boxes of a layer are ordered by the median of
their neighbours, and moved to where their lines are straightest without changing that order.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from notebook_sync.notes.memories.graph.layers import layers_of

BOX_WIDTH, BOX_HEIGHT = 228, 62
LAYER_HEIGHT = BOX_HEIGHT + 68
_GAP, _LINE_GAP = 26, 6
_LINE_WIDTH = 6
_BETWEEN_PARTS = 46
# Boxes beside each other that hang on nothing: as many as a page has room for.
_ON_A_SHELF = 4
_SWEEPS = 10
# So much more than a box, a line that passes a layer pulls for being straight.
_STRAIGHT = 3.0

Spot = tuple[float, float]
# Two boxes by number, and the way from the first to the second. It leaves the one and reaches the other from above or
# from below, and is upright where it passes a layer.
Route = tuple[int, int, Sequence[Spot]]


@dataclass(frozen=True, slots=True)
class Layout:
    """`spots` are the upper left corners of the boxes, by number; `routes` has one way for each pair of boxes."""

    width: float
    height: float
    spots: Sequence[Spot]
    routes: Sequence[Route]


def laid_out(boxes: int, arrows: Iterable[tuple[int, int]]) -> Layout:
    """The layout of so many boxes and the arrows between them; several between two boxes go the same way, and one from
    a box to itself none."""
    pairs: dict[tuple[int, int], tuple[int, int]] = {}
    for start, end in arrows:
        if start != end:
            pairs.setdefault((min(start, end), max(start, end)), (start, end))
    spots: dict[int, Spot] = {}
    routes: list[Route] = []
    parts = [_Part(members, lines) for members, lines in _parts(boxes, list(pairs.values()))]
    shelf_width = max([part.width for part in parts] + [_shelf(min(boxes, _ON_A_SHELF))])
    left = top = width = height = 0.0
    for part in sorted(parts, key=lambda one: (-one.height, -one.width, min(one.members))):
        if left and left + part.width > shelf_width:
            left, top = 0.0, height + _BETWEEN_PARTS
        spots |= {box: (x + left, y + top) for box, (x, y) in part.spots.items()}
        routes += [(one, other, [(x + left, y + top) for x, y in way]) for one, other, way in part.routes]
        width, height = max(width, left + part.width), max(height, top + part.height)
        left += part.width + _GAP
    return Layout(width, height, [spots[box] for box in range(boxes)], sorted(routes, key=lambda one: one[:2]))


def _shelf(boxes: int) -> float:
    return boxes * (BOX_WIDTH + _GAP) - _GAP


def _parts(boxes: int, lines: Sequence[tuple[int, int]]) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """The boxes that hang together, with the lines between them."""
    near: dict[int, list[int]] = defaultdict(list)
    for start, end in lines:
        near[start].append(end)
        near[end].append(start)
    part_of: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    for box in range(boxes):
        if box in part_of:
            continue
        part_of[box], members[box] = box, []
        waiting = deque([box])
        while waiting:
            one = waiting.popleft()
            members[box].append(one)
            for other in near[one]:
                if other not in part_of:
                    part_of[other] = box
                    waiting.append(other)
    own: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for start, end in lines:
        own[part_of[start]].append((start, end))
    return ((sorted(part), own[first]) for first, part in members.items())


@dataclass(slots=True)
class _Node:
    """A box, or where a line passes a layer. `above` and `below` are the nodes it has lines to, one layer off."""

    width: float
    x: float = 0.0
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)


class _Part:
    """Boxes that hang together, laid out by themselves."""

    def __init__(self, members: Sequence[int], lines: Sequence[tuple[int, int]]) -> None:
        self.members = members
        layer_of = layers_of(members, lines)
        self._nodes = [_Node(BOX_WIDTH) for _ in members]
        self._number = {box: number for number, box in enumerate(members)}
        self._layers: list[list[int]] = [[] for _ in range(max(layer_of.values()) + 1)]
        for box in members:
            self._layers[layer_of[box]].append(self._number[box])
        self._passing: list[list[int]] = [[] for _ in self._layers]
        ways = [self._way(start, end, layer_of) for start, end in lines]
        # Lines in the middle to begin with, so that what hangs on one box spreads to both sides.
        for layer, passing in zip(self._layers, self._passing, strict=True):
            layer[len(layer) // 2 : len(layer) // 2] = passing
        self._order()
        self._place()
        self.width = max(node.x + node.width / 2 for node in self._nodes)
        self.height = float(len(self._layers) * LAYER_HEIGHT - LAYER_HEIGHT + BOX_HEIGHT)
        self.spots = {
            box: (self._nodes[self._number[box]].x - BOX_WIDTH / 2, float(layer_of[box] * LAYER_HEIGHT))
            for box in members
        }
        self.routes = list(self._routes(lines, ways, layer_of))

    def _way(self, start: int, end: int, layer_of: Mapping[int, int]) -> list[int]:
        """The nodes that the line between two boxes goes through, the upper box first."""
        upper, lower = sorted((start, end), key=lambda box: layer_of[box])
        way = [self._number[upper]]
        for layer in range(layer_of[upper] + 1, layer_of[lower]):
            way.append(len(self._nodes))
            self._nodes.append(_Node(_LINE_WIDTH))
            self._passing[layer].append(way[-1])
        way.append(self._number[lower])
        for above, below in pairwise(way):
            self._nodes[above].below.append(below)
            self._nodes[below].above.append(above)
        return way

    # Which stands beside which.

    def _order(self) -> None:
        best, fewest = [list(layer) for layer in self._layers], self._crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            downwards = sweep % 2 == 0
            for layer in self._layers if downwards else reversed(self._layers):
                position = self._positions()
                middle = {node: self._middle(node, downwards, position) for node in layer}
                layer.sort(key=middle.__getitem__)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(layer) for layer in self._layers], crossings
        self._layers = best

    def _positions(self) -> dict[int, int]:
        return {node: at for layer in self._layers for at, node in enumerate(layer)}

    def _middle(self, node: int, downwards: bool, position: Mapping[int, int]) -> float:
        near = self._nodes[node].above if downwards else self._nodes[node].below
        places = sorted(position[other] for other in near)
        if not places:
            return position[node]
        half = len(places) // 2
        return float(places[half]) if len(places) % 2 else (places[half - 1] + places[half]) / 2

    def _crossings(self) -> int:
        position = self._positions()
        crossings = 0
        for layer in self._layers:
            ends: list[int] = []
            for node in layer:
                below = sorted(position[other] for other in self._nodes[node].below)
                crossings += sum(len(ends) - bisect_right(ends, end) for end in below)
                for end in below:
                    insort(ends, end)
        return crossings

    # How far from each other.

    def _place(self) -> None:
        for layer in self._layers:
            self._settle(layer, {})
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            for layer in self._layers if downwards else reversed(self._layers):
                self._settle(layer, {node: self._wish(node, downwards) for node in layer})
        first = min(node.x - node.width / 2 for node in self._nodes)
        for node in self._nodes:
            node.x -= first

    def _wish(self, node: int, downwards: bool) -> float:
        own = self._nodes[node]
        near = (own.above if downwards else own.below) or own.above or own.below
        return sum(self._nodes[other].x for other in near) / len(near) if near else own.x

    def _settle(self, layer: Sequence[int], wishes: Mapping[int, float]) -> None:
        """Put the nodes of a layer where they wish to be, as nearly as their order and widths allow: least squares by
        pooling adjacent violators."""
        pools: list[tuple[float, float, int]] = []  # where the first of them is, less what stands before it; weight
        offsets = []
        before = 0.0
        for at, number in enumerate(layer):
            node = self._nodes[number]
            if at:
                before += (self._nodes[layer[at - 1]].width + node.width) / 2
                before += _GAP if BOX_WIDTH in (node.width, self._nodes[layer[at - 1]].width) else _LINE_GAP
            offsets.append(before)
            weight = 1.0 if node.width == BOX_WIDTH else _STRAIGHT
            pool = (wishes.get(number, before) - before, weight, 1)
            while pools and pools[-1][0] >= pool[0]:
                mean, mass, count = pools.pop()
                total = mass + pool[1]
                pool = ((mean * mass + pool[0] * pool[1]) / total, total, count + pool[2])
            pools.append(pool)
        shifts = (mean for mean, _, count in pools for _ in range(count))
        for number, offset, shift in zip(layer, offsets, shifts, strict=True):
            self._nodes[number].x = offset + shift

    # The lines.

    def _routes(
        self, lines: Sequence[tuple[int, int]], ways: Sequence[Sequence[int]], layer_of: Mapping[int, int]
    ) -> Iterator[Route]:
        leaving, reaching = self._ports(ways, 0, 1), self._ports(ways, -1, -2)
        for number, ((start, end), way) in enumerate(zip(lines, ways, strict=True)):
            top = min(layer_of[start], layer_of[end])
            spots: list[Spot] = [(leaving[number], top * LAYER_HEIGHT + BOX_HEIGHT)]
            for layer, passed in enumerate(way[1:-1], top + 1):
                x, y = self._nodes[passed].x, layer * LAYER_HEIGHT
                spots += [(x, y), (x, y + BOX_HEIGHT)]
            spots.append((reaching[number], max(layer_of[start], layer_of[end]) * LAYER_HEIGHT))
            yield start, end, spots if self._number[start] == way[0] else spots[::-1]

    def _ports(self, ways: Sequence[Sequence[int]], at: int, towards: int) -> dict[int, float]:
        """By line, where it touches a box: in the order of where the lines come from, so that they do not cross."""
        touching: dict[int, list[int]] = defaultdict(list)
        for number, way in enumerate(ways):
            touching[way[at]].append(number)
        ports = {}
        for node, numbers in touching.items():
            numbers.sort(key=lambda number: (self._nodes[ways[number][towards]].x, number))
            step = min(20.0, (BOX_WIDTH - 40) / max(len(numbers) - 1, 1))
            for place, number in enumerate(numbers):
                ports[number] = self._nodes[node].x + (place - (len(numbers) - 1) / 2) * step
        return ports
