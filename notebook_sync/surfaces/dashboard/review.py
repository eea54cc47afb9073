"""What the owner decides about facts and memories: proposals, what fades, duplicates, what nobody confirmed; and the
graph of memories. Each decision is one operation, done where it is shown, and most are taken back by one more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup
from starlette.responses import Response

from notebook_sync.errors import UsageError
from notebook_sync.model import CORE_FACTS
from notebook_sync.services.fact_upkeep import Pair
from notebook_sync.surfaces.dashboard.markdown import note_href
from notebook_sync.surfaces.dashboard.notes import undo_of
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, Undo, route

_FACTS, _PAIRS, _MEMORIES, _GRAPH = "/review/facts", "/review/pairs", "/review/memories", "/memory-graph"
_FADING_DAYS = "14"
_MOST_PAIRS, _MOST_ROWS = 20, 50
_KINDS = ("decision", "problem", "pattern", "insight")
_MARKED = re.compile(r"\[-(.*?)-\]|\{\+(.*?)\+\}", re.DOTALL)
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)

Pieces = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Decision:
    """An operation on what a form names, by `argument`, and what is said of it. `undo` is the decision that takes it
    back; for _BACK, the text before comes back in the file that the form names."""

    operation: str
    argument: str
    said: str
    undo: str = ""
    fixed: dict[str, str] = field(default_factory=dict)


_BACK = "back"
_EDITED = {"action": "set_frontmatter", "content": "needs_review: false"}
DECISIONS = {
    "promote": Decision("fact promote", "fact", "moved a fact to core.md", _BACK),
    "leave": Decision("fact promote", "fact", "left a fact where it is", "propose", {"leave": "true"}),
    "propose": Decision("fact promote", "fact", "proposed a fact again", "leave", {"leave": "false"}),
    "keep": Decision("fact reinforce", "fact", "reinforced a fact"),
    "archive": Decision("fact archive", "fact", "archived a fact", "restore"),
    "restore": Decision("fact restore", "fact", "restored a fact", "archive"),
    "merge": Decision("fact dedupe", "merge", "merged two facts", _BACK),
    "apart": Decision("fact dedupe", "not_same", "these are two facts", "together"),
    "together": Decision("fact dedupe", "not_same", "they may be the same", "apart", {"forget": "true"}),
    "confirm": Decision("edit", "id", "confirmed a memory", _BACK, _EDITED),
}


@route(_FACTS, link=("Memory", "Review facts"))
def show_facts(shell: Shell, ask: Ask) -> Response:
    """Facts that are proposed, or that fade."""
    call, limit = shell.call, str(_MOST_ROWS)
    return shell.page(
        ask,
        "review_facts.html",
        proposed=call("fact list", {"proposed": "true", "limit": limit}).results,
        fading=call("fact list", {"fading": _FADING_DAYS, "limit": limit}).results[::-1],
        days=_FADING_DAYS,
        core=CORE_FACTS,
    )


@route(_PAIRS)
def show_pairs(shell: Shell, ask: Ask) -> Response:
    """Facts that say the same, which takes a while to find: the page of facts asks for them when it is shown."""
    pairs: Sequence[Pair] = shell.call("fact dedupe", {"dry_run": "true"}).pairs
    twins, more = [_twins(pair) for pair in pairs[:_MOST_PAIRS]], max(0, len(pairs) - _MOST_PAIRS)
    return shell.page(ask, "review_pairs.html", twins=twins, more=more, is_inner=ask.is_fragment)


@route(_MEMORIES, link=("Memory", "Review memories"))
def show_memories(shell: Shell, ask: Ask) -> Response:
    """Memories that an agent saved and nobody confirmed."""
    found = shell.call("memory list", {"needs_review": "true", "limit": str(_MOST_ROWS)})
    return shell.page(ask, "review_memories.html", rows=found.results)


@route(_GRAPH, link=("Memory", "Memory graph"))
def show_graph(shell: Shell, ask: Ask) -> Response:
    """Memories and their links as a picture in which each box is a link."""
    asked = ask.asked("kind", "domain")
    given = {name: value for name, value in asked.items() if value}
    drawn = shell.call("memory graph", {**given, "links": note_href("")})
    # The pages' policy forbids a style in a page, and style.css has these classes.
    picture = Markup(_STYLE.sub("", drawn.text))  # noqa: S704 - the operation escapes what memories say
    return shell.page(ask, "memory_graph.html", picture=picture, drawn=drawn, kinds=_KINDS, asked=asked)


@route("/decide", "POST")
def decide(shell: Shell, ask: Ask) -> Response:
    """Do what a form says."""
    decision, what = DECISIONS.get(ask.form.get("do", "")), ask.form.get("what", "")
    if decision is None:
        raise UsageError("there is no such decision", next="go back to the page, and send it again")
    done = shell.call(decision.operation, {decision.argument: what, **decision.fixed})
    undo = Undo("/decide", {"do": decision.undo, "what": what}) if decision.undo else None
    if decision.undo == _BACK:
        undo = undo_of(shell.call("read", {"id": ask.form.get("path", "")}))
    to = ask.back_to(_FACTS, _PAIRS, _MEMORIES)
    return shell.done(to, f"Done: {decision.said}", warnings=done.warnings, undo=undo)


def _twins(pair: Pair) -> tuple[Pair, Pieces, Pieces]:
    """A pair, and what goes and what stays in pieces, with the words that the other lacks. They are not marked where
    the facts themselves hold such marks."""
    pieces: Pieces = []
    last = 0
    for found in _MARKED.finditer(pair.diff):
        gone, new = found[1] or "", found[2] or ""
        pieces += [("", pair.diff[last : found.start()]), ("del", gone), ("ins", new)]
        last = found.end()
    pieces.append(("", pair.diff[last:]))
    drop = [piece for piece in pieces if piece[0] != "ins"]
    keep = [piece for piece in pieces if piece[0] != "del"]
    if (_said(drop), _said(keep)) != (pair.drop.content, pair.keep.content):
        return pair, [("", pair.drop.content)], [("", pair.keep.content)]
    return pair, drop, keep


def _said(pieces: Pieces) -> str:
    return "".join(text for _, text in pieces)
