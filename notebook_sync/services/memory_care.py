"""All memories at once: what each counts for, what they lack, repairs that git and tags can prove, and a picture.

    usage     min(1, ln(1 + uses) / 5)
    recency   2 ** (-days since the last use / 7), since it was made where it was never used
    age       1 - 2 ** (-days since it was made / 30)
    score     .30 usage + .35 recency + .25 priority / 10 - .10 age, within 0 to 1

Weights and half-lives are settings. A new memory counts for a tenth of its priority.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import partial
from math import log1p
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from msgspec.structs import replace

from notebook_sync.errors import GitFailed, NotebookError
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.files.fields import HIGHEST_PRIORITY, KINDS, read_fields
from notebook_sync.files.frontmatter import Frontmatter, read_frontmatter, typed
from notebook_sync.files.page import shorten
from notebook_sync.registry import Result
from notebook_sync.search.ranking import decay
from notebook_sync.services.core import Core
from notebook_sync.services.memory_text import NEEDED, UNKNOWN, agent_of, go_moment, plain_title
from notebook_sync.services.remembering import (
    FOLDER,
    UNSTRUCTURED,
    Memory,
    memories_where,
    said_of,
    score_of_row,
    shown_memories,
)
from notebook_sync.services.results import neutral_name
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, change_notes
from notebook_sync.sessions import PROGRAM, Session
from notebook_sync.settings import MemoryTable
from notebook_sync.store.rows import Is, Row

_MANY_USES = 5.0  # the logarithm at which usage counts in full: 147 uses
_MOVED = 0.01
_DAY = timedelta(days=1)
_MOST_LISTED, _BATCH = 1_000, 1_000
# A time that could not be read is kept under this name where the time of the first commit replaces it.
_BEFORE = "created_at_before"
_NO_TIME = "it does not say when it was made"
_KIND_TAG = re.compile(rf"(?:kind:|type:)?({'|'.join(KINDS)})", re.IGNORECASE)
_COLUMNS = ("id", "path", "kind", "tags", "fields", "needs_review", "provenance", "score")
_SCORED = ("id", "fields", "score", "access_count", "last_accessed", "created_at")

_MOST_LINKS = 400
BOX_WIDTH, BOX_HEIGHT, _GAP, _LAYER, _TOP, MARGIN = 228, 58, 26, 126, 80, 28
# Boxes in a row, pixels between lines of two boxes, letters of a title in a box.
_WIDEST, _APART, _LETTERS = 8, 7, 30
# Seen on light and dark pages.
_HUES = {
    "decision": "#3b82c4",
    "problem": "#d9622b",
    "pattern": "#2f9e4f",
    "insight": "#b94fc9",
    UNSTRUCTURED: "#7c8a9e",
}
_SHAPES = {"decision": ("[", "]"), "problem": ("{{", "}}"), "pattern": ("([", "])"), "insight": ("(", ")")}
# All that Mermaid or Markdown could take for more than a letter.
_MARKS = re.compile(r"[^\w\s.,:()/+?!'-]")


class Scored(Result, frozen=True, kw_only=True):
    """How many memories that the session may read have a score, and how many of these scores moved."""

    scored: int
    changed: int


class Finding(Result, frozen=True, kw_only=True):
    """What one memory lacks: `field` is created_at, agent, kind, parts, needs_review, relations, or another field."""

    path: str
    line: int
    field: str
    what: str
    fix: str
    provenance: str

    def for_model(self) -> Finding:
        """Without words of others."""
        return replace(self, path=neutral_name(self.path), what="") if self.provenance else self


class Audit(Result, frozen=True, kw_only=True):
    """What memories lack, counted. Means, deviations and shares are None of nothing. `similar_share` is the share of
    links of the type similar, `saturated` that of the most frequent priority."""

    memories: int
    timestamps: dict[str, int]
    agents: dict[str, int]
    unstructured: int
    needs_review: int
    importance: dict[str, float | None]
    links: int
    links_broken: int
    similar_share: float | None
    tags: dict[str, float | None]
    score: dict[str, float | None]
    findings: list[Finding]
    findings_left_out: int


class Repair(Result, frozen=True, kw_only=True):
    """One field of one memory, before (None for nothing) and after, and what proves the new value."""

    path: str
    field: str
    before: Any
    after: Any
    because: str
    provenance: str

    def for_model(self) -> Repair:
        """Without words of others."""
        return replace(self, path=neutral_name(self.path), before=None) if self.provenance else self


class Repaired(Result, frozen=True, kw_only=True):
    """`left` are findings that nothing proves."""

    repairs: list[Repair]
    applied: bool
    left: list[Finding]
    warnings: list[str]


class Picture(Result, frozen=True, kw_only=True):
    """Memories and their links as SVG, or as text for Mermaid."""

    text: str
    memories: int
    links: int


# ---- scores


def score_of(
    uses: int, used: datetime | None, made: datetime, priority: float, now: datetime, by: MemoryTable
) -> float:
    """What a memory counts for at `now`, 0 to 1. A time to come counts as now."""
    usage = min(1.0, log1p(max(uses, 0)) / _MANY_USES)
    recency = decay((now - (used or made)) / by.recency_half_life_days, _DAY)
    age = 1.0 - decay((now - made) / by.age_half_life_days, _DAY)
    score = by.usage * usage + by.recency * recency + by.priority * priority / HIGHEST_PRIORITY - by.age * age
    return min(max(score, 0.0), 1.0)


def score_memories(core: Core, session: Session = PROGRAM) -> Scored:
    """Compute all scores and write those that moved; count those of memories that the session may read."""
    now, settings, documents = core.now(), core.settings.memory, core.index.documents
    moved: defaultdict[float, list[str]] = defaultdict(list)
    for id, said, before, uses, used, made in documents.tuples(_SCORED, Is("collection", "=", FOLDER)):
        score = round(score_of(uses or 0, used, made or now, (said or {}).get("priority") or 0, now, settings), 3)
        if before is None or abs(before - score) >= _MOVED:
            moved[score].append(id)
    with core.index.write():
        for score, ids in moved.items():
            documents.update(Is("id", "in", ids), set={"score": score}, stamp=True)
    mine = {id for (id,) in documents.tuples(("id",), memories_where(core, View(core, session)))}
    return Scored(scored=len(mine), changed=sum(len(mine.intersection(ids)) for ids in moved.values()))


# ---- audit


def audit_memories(core: Core, session: Session) -> Audit:
    """Count what the memories that the session may read lack; the first findings by path."""
    rows, findings = _looked_at(core, session)
    about = Counter(finding.field for finding in findings)
    timeless = sum(finding.what == _NO_TIME for finding in findings)
    priorities, tags = [said_of(row).get("priority") or 0 for row in rows], [len(row["tags"]) for row in rows]
    usual = Counter(priorities).most_common(1)
    types = [link["type"] for row in rows for link in said_of(row).get("relations") or ()]
    scores = [score_of_row(row) for row in rows]
    return Audit(
        memories=len(rows),
        timestamps={"missing": timeless, "unparsable": about["created_at"] - timeless},
        agents={"unknown": about["agent"]},
        unstructured=len({finding.path for finding in findings if finding.field in ("kind", "parts")}),
        needs_review=about["needs_review"],
        importance={"saturated": _mean([each == usual[0][0] for each in priorities])},
        links=len(types),
        links_broken=about["relations"],
        similar_share=_mean([each == "similar" for each in types]),
        tags={"per_memory": _mean(tags), "none": float(tags.count(0))},
        score={"mean": _mean(scores), "sigma": round(pstdev(scores), 4) if scores else None},
        findings=findings[:_MOST_LISTED],
        findings_left_out=max(len(findings) - _MOST_LISTED, 0),
    )


def _mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), 4) if values else None


def _looked_at(core: Core, session: Session) -> tuple[list[Row], list[Finding]]:
    """The memories that the session may read, and what each lacks, by path and line."""
    rows = core.index.documents.find(memories_where(core, View(core, session)), order=("path",), fields=_COLUMNS)
    ids, findings = {row["id"] for row in rows}, list[Finding]()
    for row in rows:
        try:
            found = sorted(_lacks(row, _front_of(core.tree.read(row["path"]).raw), ids, core.settings.timezone))
        except NotebookError as error:
            found = [(1, "file", str(error), "correct the file; until then its last good text counts")]
        common = {"path": row["path"], "provenance": row["provenance"] or ""}
        findings += (
            Finding(line=at, field=field, what=what[:200], fix=fix, **common) for at, field, what, fix in found
        )
    return rows, findings


def _front_of(raw: bytes) -> Frontmatter:
    return read_frontmatter(raw.decode(errors="replace"))


def _lacks(row: Row, front: Frontmatter, ids: Collection[str], zone: tzinfo) -> Iterator[tuple[int, str, str, str]]:
    """Line, field, what is wrong, and what to do."""
    known, _, problems = read_fields(front, FOLDER, zone)
    said = {key.casefold(): front.line_of(key) for key, value in front.values.items() if value is not None}
    for problem in (*front.problems, *problems):
        yield problem.line, problem.message.partition(":")[0].casefold(), problem.message, "correct that line"
    if "created_at" not in said:
        yield 1, "created_at", _NO_TIME, "write an ISO 8601 date or time; `memory fix` takes that of the first commit"
    if said_of(row).get("agent") in (None, "", UNKNOWN):
        yield said.get("agent", 1), "agent", "nobody is known to have said it", "write agent: NAME, or a tag agent:NAME"
    if not row["kind"] and "kind" not in said:
        yield 1, "kind", "it is of no kind", f"write kind: {', '.join(KINDS)}"
    if parts := [name for name in NEEDED if name in said_of(row).get("missing", ())]:
        yield 1, "parts", f"it has no {' and no '.join(parts)}", "write each below a heading, like ## Context"
    if row["needs_review"]:
        yield said.get("needs_review", 1), "needs_review", "it is marked for review", "check it, then remove the mark"
    for link in known.get("relations") or ():
        if link["to"] not in ids:
            what = f"it {link['type']} {link['to']!r}, which is no memory"
            yield said["relations"], "relations", what, "name the id of a memory, or remove the link"


# ---- repairs


def fix_memories(core: Core, session: Session, *, dry_run: bool) -> Repaired:
    """Write what is proved into the memories, a thousand in a batch; nothing is made up. Raises as an edit does."""
    rows, findings = _looked_at(core, session)
    zone, first, warnings = core.settings.timezone, dict[str, datetime](), list[str]()
    try:
        first = core.history.created_at([row["path"] for row in rows])
    except GitFailed as error:
        warnings.append(f"git could not be asked: {error}")
    done, trouble = dict[str, list[Repair]](), dict[str, str]()

    def plan(some: Sequence[Row]) -> list[Change]:
        changes = list[Change]()
        for row in some:
            path, provenance = row["path"], row["provenance"] or ""
            done[path], trouble[path] = [], ""
            try:
                before = core.tree.read(path).raw
                proved = list(_proved(row, _front_of(before), zone, first.get(path)))
                fields = {field: now for field, _, now, _ in proved}
                after = apply_edits(path, before, [Edit("set_frontmatter", fields=fields)]) if fields else before
            except NotebookError as error:
                trouble[path] = str(error)
                continue
            for field, was, now, because in proved:
                said = {"before": typed(was, zone), "after": typed(now, zone), "because": because}
                done[path].append(Repair(path=path, field=field, **said, provenance=provenance))
            changes += [Change(path, before, after, "repair", reason=", ".join(fields))] if fields else []
        return changes

    for start in range(0, len(rows), _BATCH):
        batch = partial(plan, rows[start : start + _BATCH])
        warnings += change_notes(core, session, "memory fix", batch, dry_run=dry_run).warnings
    repairs = [each for of_one in done.values() for each in of_one]
    repaired = {(each.path, each.field) for each in repairs}
    return Repaired(
        repairs=repairs,
        applied=bool(repairs) and not dry_run,
        left=[each for each in findings if (each.path, each.field) not in repaired],
        warnings=[*warnings, *filter(None, trouble.values())],
    )


def _proved(row: Row, front: Frontmatter, zone: tzinfo, first: datetime | None) -> Iterator[tuple[str, Any, Any, str]]:
    """A field, what the memory says there, what is proved, and how."""
    was = {name: front.values.get(front.key_of(name) or name) for name in ("created_at", "agent", "kind")}
    made, tags = was["created_at"], said_of(row).get("tags") or row["tags"]
    if read_fields(front, FOLDER, zone)[0].get("created_at") is None:
        if own := go_moment(made, zone):
            yield "created_at", made, own, "that is what it says, in another form"
        # The first commit of what was imported is the import's.
        elif first and not any(front.key_of(name) for name in ("imported", "older", _BEFORE)):
            yield "created_at", made, first, "it is the time of its first commit"
            if made is not None:
                yield _BEFORE, None, made, "nothing else says what created_at said"
    if said_of(row).get("agent") in (None, "", UNKNOWN) and (name := agent_of("", tags)):
        yield "agent", was["agent"], name, f"it is tagged agent:{name}"
    kinds = {found[1].casefold() for tag in tags if (found := _KIND_TAG.fullmatch(tag))}
    if not row["kind"] and len(kinds) == 1:
        kind = kinds.pop()
        yield "kind", was["kind"], kind, f"it is tagged {kind}"


# ---- pictures


def draw_memories(core: Core, session: Session, shape: str, *, limit: int, links: str, **filters: Any) -> Picture:
    """Memories and their links as a picture, linked ones and the highest scores first. The same memories give the same
    picture."""
    view = View(core, session)
    memories = {each.id: each for each in shown_memories(core, view, memories_where(core, view, **filters))}
    arrows = [
        {"from": each.id, **link}
        for each in memories.values()
        for link in each.relations
        if link["to"] in memories and link["to"] != each.id
    ]
    linked = {arrow[name] for arrow in arrows for name in ("from", "to")}
    order = sorted(memories.values(), key=lambda each: (each.id not in linked, -each.score, each.id))
    chosen = {each.id: each for each in order[:limit]}
    arrows = [each for each in arrows if each["from"] in chosen and each["to"] in chosen]
    arrows.sort(key=lambda each: (-each["confidence"], each["from"], each["to"], each["type"]))
    del arrows[_MOST_LINKS:]
    shown = list(chosen.values())
    text = _svg(shown, arrows, links) if shape == "svg" else "\n".join([*_mermaid(shown, arrows), ""])
    return Picture(text=text, memories=len(chosen), links=len(arrows))


def _mermaid(memories: Sequence[Memory], arrows: Sequence[Row]) -> Iterator[str]:
    names = {each.id: f"m{number}" for number, each in enumerate(memories, 1)}
    yield from ("flowchart TD", "    %% Memories and their links")
    for each in memories:
        opening, closing = _SHAPES.get(each.kind, ("[/", "/]"))
        label = _MARKS.sub(lambda found: f"#{ord(found[0])};", shorten(_title(each), 60))
        yield f'    {names[each.id]}{opening}"{label}"{closing}:::{_kind(each)}'
    yield from (f"    {names[each['from']]} -->|{each['type']}| {names[each['to']]}" for each in arrows)
    yield from (f"    classDef {kind} stroke:{hue},stroke-width:2px" for kind, hue in _HUES.items())


def _svg(memories: Sequence[Memory], arrows: Sequence[Row], links: str) -> str:
    """A picture. With `links`, which is what is before a path in an address, boxes are links."""
    from jinja2 import Environment, StrictUndefined  # for this alone

    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    spots = place_boxes([each.id for each in memories], [(each["from"], each["to"]) for each in arrows])
    names = Counter([*map(_kind, memories), *(arrow["type"] for arrow in arrows)])
    asides = (BOX_WIDTH / 2 + (number % 5 - 2) * _APART for number in range(len(arrows)))
    return template.from_string(Path(__file__).with_name("memories.svg").read_text(encoding="utf-8")).render(
        width=round(max((x for x, _ in spots.values()), default=520) + BOX_WIDTH + MARGIN),
        height=round(max((y for _, y in spots.values()), default=0) + BOX_HEIGHT + MARGIN),
        links=links,
        counted=" · ".join(f"{count:,} {name}" for name, count in names.items()) or "no memories",
        titles={each.id: _title(each) for each in memories},
        arrows=[
            (each, arrow_path(spots[each["from"]], spots[each["to"]], aside))
            for each, aside in zip(arrows, asides, strict=True)
        ],
        box=(BOX_WIDTH, BOX_HEIGHT),
        hues=_HUES,
        boxes=[(each, _kind(each), shorten(_title(each), _LETTERS), spots[each.id]) for each in memories],
    )


def place_boxes(ids: Sequence[str], arrows: Sequence[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """The upper left corners of boxes with arrows from one to another: each below those that lead to it, but for one of
    a circle, and near them; below all, those without arrows."""
    above: dict[str, set[str]] = {id: {start for start, end in arrows if end == id} for id in ids}
    layers, left = list[list[str]](), {id for arrow in arrows for id in arrow}
    loose = [id for id in ids if id not in left]
    while left:
        waiting = [id for id in ids if id in left]
        layers.append([id for id in waiting if above[id].isdisjoint(left)] or waiting[:1])
        left.difference_update(layers[-1])
    layers.append(loose)
    widest, level = min(max(map(len, layers)) or 1, _WIDEST), 0
    spots: dict[str, tuple[float, float]] = {}
    for layer in layers:
        near = {id: fmean([spots[each][0] for each in above[id] if each in spots] or [0.0]) for id in layer}
        layer.sort(key=near.__getitem__)
        for start in range(0, len(layer), widest):
            row = layer[start : start + widest]
            for at, id in enumerate(row):
                spots[id] = MARGIN + (at + (widest - len(row)) / 2) * (BOX_WIDTH + _GAP), _TOP + level * _LAYER
            level += 1
    return spots


def arrow_path(start: tuple[float, float], end: tuple[float, float], aside: float) -> tuple[str, str]:
    """The line of an arrow, upright at both boxes, and its tip."""
    (x, y), (to_x, to_y) = start, end
    down = 1 if to_y > y else -1
    x, to_x, y, to_y = x + aside, to_x + aside, y + BOX_HEIGHT * (to_y > y), to_y + BOX_HEIGHT * (to_y < y)
    foot = to_y - down * 9
    line = f"M{x:.1f},{y:.1f} C{x:.1f},{y + down * 40:.1f} {to_x:.1f},{foot - down * 40:.1f} {to_x:.1f},{foot:.1f}"
    return line, f"M{to_x:.1f},{to_y:.1f} L{to_x - 4.5:.1f},{foot:.1f} L{to_x + 4.5:.1f},{foot:.1f} Z"


def _kind(memory: Memory) -> str:
    return memory.kind or UNSTRUCTURED


def _title(memory: Memory) -> str:
    """What others wrote is not named."""
    return "somebody else's words" if memory.provenance else plain_title(memory.title) or "Memory"
