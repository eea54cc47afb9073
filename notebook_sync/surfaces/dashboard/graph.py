"""The links of one note as a picture in layers and as a list: what it links to and what links to it, one or two links
away."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from notebook_sync.files.page import shorten
from notebook_sync.permissions import guarded_names
from notebook_sync.services.memory_care import BOX_HEIGHT, BOX_WIDTH, MARGIN, arrow_path, place_boxes
from notebook_sync.services.view import Names, View, linking, note_names
from notebook_sync.sessions import OWNER
from notebook_sync.store.rows import Has, Is
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, route

# Notes in the picture, and those that one note adds in each direction.
_MOST_NOTES: Final = 60
_MOST_NEAR: Final = 15
_LETTERS = 26
_FARTHEST = 2


class Node(NamedTuple):
    """A note in the picture. `steps` is how far it is from the one in the middle."""

    path: str
    title: str
    steps: int


Links = list[tuple[str, str]]


@route("/graph/{name:path}")
def show(shell: Shell, ask: Ask) -> Response:
    """The picture of a note's links."""
    note = shell.call("read", {"id": ask.path["name"]})
    hops = _FARTHEST if ask.query.get("hops") == str(_FARTHEST) else 1
    nodes, links, is_cut = notes_around(shell, note.path, hops)
    spots = place_boxes(list(nodes), links)
    return shell.page(
        ask,
        "graph.html",
        note=note,
        hops=hops,
        is_cut=is_cut,
        size=(max(x for x, _ in spots.values()) + BOX_WIDTH + MARGIN, max(y for _, y in spots.values()) + BOX_HEIGHT),
        box=(BOX_WIDTH, BOX_HEIGHT),
        boxes=[(nodes[path], shorten(nodes[path].title, _LETTERS), spot) for path, spot in spots.items()],
        lines=[
            (arrow_path(spots[start], spots[end], BOX_WIDTH / 2), note.path in (start, end)) for start, end in links
        ],
        groups=_groups(nodes.values(), links, note.path),
    )


def _groups(nodes: Collection[Node], links: Links, middle: str) -> list[tuple[str, list[Node]]]:
    """The notes in reading order, below a heading for each way that they are linked."""
    onward = {end for start, end in links if start == middle}
    back = {start for start, end in links if end == middle}
    found = [
        ("Links to", [each for each in nodes if each.path in onward]),
        ("Linked from", [each for each in nodes if each.path in back]),
        ("Two links away", [each for each in nodes if each.steps == _FARTHEST]),
    ]
    return [(title, members) for title, members in found if members]


def notes_around(shell: Shell, path: str, hops: int) -> tuple[dict[str, Node], Links, bool]:
    """The notes that are linked with one by at most so many links, the nearest first; the links between them as pairs
    of paths; and whether some notes are left out."""
    nodes = {path: Node(path, path, 0)}  # the index may not have it yet
    links: dict[tuple[str, str], None] = {}
    is_cut, frontier = False, [path]
    for steps in range(hops + 1):
        rows = _rows(shell, frontier)
        nodes |= {row["path"]: Node(row["path"], row["title"] or row["path"], steps) for row in rows}
        if steps == hops:
            break
        new = _links_of(shell, rows)
        ends = list(dict.fromkeys(each for pair in new for each in pair if each not in nodes))
        is_cut |= len(nodes) + len(ends) > _MOST_NOTES
        frontier = ends[: _MOST_NOTES - len(nodes)]
        links |= dict.fromkeys(new)
    return nodes, [pair for pair in links if pair[0] in nodes and pair[1] in nodes], is_cut


def _rows(shell: Shell, paths: Sequence[str]) -> list[dict[str, Any]]:
    fields = ("path", "id", "title", "aliases", "links", "linked")
    found = shell.notebook.core.index.documents.find(Is("path", "in", paths), fields=fields)
    return sorted(found, key=lambda row: paths.index(row["path"]))


def _links_of(shell: Shell, rows: Sequence[dict[str, Any]]) -> Links:
    """The links from these notes, then those to them."""
    core = shell.notebook.core
    view = View(core, OWNER)
    keys = tuple({key for row in rows for key in row["linked"]})
    names = Names(note_names(core, view, Has("names", keys)) if keys else (), (), guarded_names(core.settings.prompt))
    found: Links = []
    for row in rows:
        ends = [end for link in row["links"] if link.strip() for end in names.find(link, row["path"])[:1]]
        found += [(row["path"], end) for end in dict.fromkeys(ends) if end != row["path"]][:_MOST_NEAR]
    for row in rows:
        found += [(source, row["path"]) for source in islice(linking(core, view, row["path"]), _MOST_NEAR)]
    return list(dict.fromkeys(found))
