"""Memories and links as a Mermaid diagram, for Markdown. Pure.

What notes say is a label in it and never syntax: nothing in it ends a line, a label or the code block around it. Of
memories that hold somebody else's words nothing is told, not even the id, for a model may be given the diagram.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from notebook_sync.mirror.memories import KINDS, Memory
from notebook_sync.notes.memories.graph.pick import Graph
from notebook_sync.notes.picture_text import short

_ROOM = 60
_UNKNOWN = "unstructured"
_SHAPES = {"decision": ("[", "]"), "problem": ("{{", "}}"), "pattern": ("([", "])"), "insight": ("(", ")")}
_PLAIN_SHAPE = ("[/", "/]")
# A frame in the middle of each hue: it is seen on light and dark pages.
_FRAMES = {"decision": "#3b82c4", "problem": "#d9622b", "pattern": "#2f9e4f", "insight": "#b94fc9", _UNKNOWN: "#7c8a9e"}
# All that Mermaid or Markdown could take for more than a letter.
_MARKS = re.compile(r"[^\w\s.,:()/+?!'-]")


def as_mermaid(graph: Graph) -> str:
    """The diagram of a graph, without a code block around it."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    yield "flowchart TD"
    yield f"    %% {graph.told()}"
    names = {memory.id: f"m{number}" for number, memory in enumerate(graph.memories, 1)}
    for number, memory in enumerate(graph.memories, 1):
        kind = memory.kind or _UNKNOWN
        opening, closing = _SHAPES.get(kind, _PLAIN_SHAPE)
        yield f'    {names[memory.id]}{opening}"{_label(memory, number)}"{closing}:::{kind}'
    for start, link in graph.links:
        yield f"    {names[start]} -->|{link.type}| {names[link.to]}"
    for kind in (*KINDS, _UNKNOWN):
        if any((memory.kind or _UNKNOWN) == kind for memory in graph.memories):
            yield f"    classDef {kind} stroke:{_FRAMES[kind]},stroke-width:2px"
    if graph.around:
        yield f"    style {names[graph.around]} stroke-width:4px"


def _label(memory: Memory, number: int) -> str:
    said = f"memory {number} (somebody else's words)" if memory.provenance else memory.title
    return _MARKS.sub(lambda found: f"#{ord(found[0])};", short(said, _ROOM) or memory.id)
