"""The layers that a graph is drawn in: what leads to something stands above it. Pure; for the same graph the same."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

# Boxes in one layer: no picture is wider than a page.
WIDEST = 6


def layers_of(members: Sequence[int], lines: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The layer of each box: below all that lead to it, once lines that close a circle are turned around, and no more
    than so many boxes in one."""
    downwards = _without_circles(members, lines)
    above: dict[int, list[int]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    for start, end in downwards:
        above[end].append(start)
        below[start].append(end)
    layer_of: dict[int, int] = {}
    filled: dict[int, int] = defaultdict(int)
    order = _sorted_out(members, above, below)
    for box in order:
        layer = max((layer_of[one] + 1 for one in above[box]), default=0)
        while filled[layer] >= WIDEST:
            layer += 1
        layer_of[box] = layer
        filled[layer] += 1
    for box in reversed(order):  # what leads somewhere far below stands near it, unless more leads to it
        if len(below[box]) > len(above[box]):
            lowest = min(layer_of[one] for one in below[box]) - 1
            nearer = next((one for one in range(lowest, layer_of[box], -1) if filled[one] < WIDEST), None)
            if nearer is not None:
                filled[layer_of[box]] -= 1
                filled[nearer] += 1
                layer_of[box] = nearer
    used = {layer: number for number, layer in enumerate(sorted(set(layer_of.values())))}
    return {box: used[layer] for box, layer in layer_of.items()}


def _without_circles(members: Sequence[int], lines: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The lines, those turned around that lead back to where one came from."""
    onwards: dict[int, list[int]] = defaultdict(list)
    for start, end in lines:
        onwards[start].append(end)
    done: set[int] = set()
    turned = []
    for first in members:
        path: list[tuple[int, Iterator[int]]] = [] if first in done else [(first, iter(onwards[first]))]
        on_path = {first}
        while path:
            box, ends = path[-1]
            for end in ends:
                turned.append((end, box) if end in on_path else (box, end))
                if end not in done and end not in on_path:
                    path.append((end, iter(onwards[end])))
                    on_path.add(end)
                    break
            else:
                path.pop()
                on_path.discard(box)
                done.add(box)
    return turned


def _sorted_out(
    members: Sequence[int], above: Mapping[int, Sequence[int]], below: Mapping[int, Sequence[int]]
) -> list[int]:
    """The boxes, each behind all that lead to it."""
    open_lines = {box: len(above[box]) for box in members}
    ready = deque(box for box in members if not open_lines[box])
    order = []
    while ready:
        box = ready.popleft()
        order.append(box)
        for other in below[box]:
            open_lines[other] -= 1
            if not open_lines[other]:
                ready.append(other)
    return order
