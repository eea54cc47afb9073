"""Facts as a session sees them: where each is stated, and how much it counts now.

A fact that is stated only where the session may not look does not exist for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from notebook_sync.errors import NotebookError
from notebook_sync.files.fact_text import ARCHIVE, facts_in, order_of
from notebook_sync.model import CORE_FACTS, id_from_path
from notebook_sync.registry import Result
from notebook_sync.services.core import Core
from notebook_sync.services.results import fenced, neutral_name
from notebook_sync.services.view import View
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Is, Row, both
from notebook_sync.sync.project import BASE

Scope = Literal["notes", "core", "archive", "all"]

_BY_USE, _MOST_BY_USE, _BY_DAY = 0.05, 0.5, 0.01
_DAY = timedelta(days=1)
_LONGEST_SHOWN = 400
# What a session learns of a fact that is also where it may not look.
_UNKNOWN = {"base": BASE, "access_count": 0, "created_at": None, "last_accessed": None}


class FactRow(Result, frozen=True, kw_only=True):
    """A fact: a list item of `path` at the 1-based `line`, below the heading `section`.

    `importance` is how much it counts now, 0 to 1; `base` is the same without use and age. `pin` is what a person wrote
    in its place, None for nothing. `access_count` is how often it was used.
    """

    id: str
    content: str
    section: str
    path: str
    line: int
    importance: float
    base: float
    pin: float | None
    access_count: int
    created_at: datetime
    last_accessed: datetime | None
    provenance: str
    core: bool
    archived: bool

    def for_model(self) -> FactRow:
        """The row with a long text cut; of a fact that others wrote, the text is fenced and its place is not named."""
        is_long = len(self.content) > _LONGEST_SHOWN
        text = f"{self.content[: _LONGEST_SHOWN - 1].rstrip()}…" if is_long else self.content
        if not self.provenance:
            return msgspec.structs.replace(self, content=text)
        name = neutral_name(id_from_path(self.path))
        return msgspec.structs.replace(self, content=fenced(text), section="", path=name)


class FoundFact(FactRow, frozen=True, kw_only=True):
    """A fact that answers a query, or is like a claim. `similarity` is that of their meaning, 0 to 1; `score` is what
    the order depends on."""

    score: float
    similarity: float


class ChangedFact(FactRow, frozen=True, kw_only=True):
    """A fact after a change. `action`: added, reinforced, archived, restored, promoted or proposed. `moved`: whether
    this change wrote it to `path`. `created`: whether this also made that file."""

    action: str
    moved: bool
    created: bool
    warnings: list[str]


class Verdict(Result, frozen=True, kw_only=True):
    """What is known of a claim. `matches` are the facts that it was compared with, the nearest first. `degraded` says
    why only words were compared."""

    verdict: Literal["CONFIRMED", "RELATED", "NEW"]
    similarity: float
    matches: list[FoundFact]
    degraded: str | None


def facts_of(core: Core, view: View, scope: Scope = "all", ids: Collection[str] | None = None) -> list[FactRow]:
    """The facts that a session sees, each at the first place where it sees it, in the order of files and lines.

    `scope`: "core" is core.md, "archive" is archive.md, "notes" are all other files. `ids`: only these.
    """
    wanted = view.where if ids is None else both(view.where, Is("fact", "in", list(ids)))
    places = core.index.fact_places.find(wanted)
    paths = {place["path"] for place in places}
    partly = {path: shown_in(core, view, path) for path in paths if view.sees_in_part(path)}
    seen = [place for place in places if place["path"] not in partly or place["fact"] in partly[place["path"]]]
    first: dict[str, Row] = {}
    for place in sorted(seen, key=lambda each: (order_of(each["path"]), each["line"])):
        first.setdefault(place["fact"], place)
    provenance = dict(core.index.documents.tuples(("path", "provenance"), Is("path", "in", list(paths))))
    rows, now = core.index.facts.get(list(first), heavy=False), core.now()
    for id in _elsewhere(core, view, seen, first) & rows.keys():
        rows[id] |= _UNKNOWN
    return [
        _fact_row(rows[key] | {"provenance": provenance.get(place["path"])}, place, now)
        for key, place in first.items()
        if key in rows and scope in ("all", scope_of(place["path"]))
    ]


def scope_of(path: str) -> Scope:
    """The scope that the facts of a file belong to."""
    return "core" if path == CORE_FACTS else "archive" if path == ARCHIVE else "notes"


def importance(row: Row, now: datetime) -> float:
    """How much a fact counts now, 0 to 1, by its row of the index:

    clamp((base + min(.5, .05 · uses) - days since use · rate) / (1 + .01 · days since creation))

    `base` is the pin, if there is one. A fact that was never used counts from its creation, a time to come counts as
    now. Facts in core.md lose nothing by time.
    """
    base = row["base"] if row["pin"] is None else row["pin"]
    gained = base + min(_MOST_BY_USE, _BY_USE * max(row["access_count"] or 0, 0))
    if row["path"] == CORE_FACTS:
        return clamp(gained)
    created = row["created_at"] or now
    lost = days_since(row["last_accessed"] or created, now) * row["decay_rate"]
    return clamp((gained - lost) / (1 + _BY_DAY * days_since(created, now)))


def clamp(value: float) -> float:
    """The nearest value from 0 to 1; 0 for what is no number."""
    return min(1.0, value) if value > 0 else 0.0


def days_since(moment: datetime, now: datetime) -> float:
    """Days, and parts of one, that have passed; 0 for a time to come."""
    return max(0.0, (now - moment) / _DAY)


def used(core: Core, session: Session, ids: Collection[str]) -> None:
    """Count one use of each fact, if an agent used it: an owner who looks through the notebook keeps nothing alive, nor
    does a message of others. An index that cannot be written is no reason to fail."""
    if ids and (session.kind == "task" or (session.kind == "owner" and session.agent)):
        with suppress(NotebookError):
            core.index.facts.update(
                Is("id", "in", list(ids)), set={"last_accessed": core.now()}, inc={"access_count": 1}
            )


def _elsewhere(core: Core, view: View, seen: Sequence[Row], ids: Collection[str]) -> set[str]:
    """Which of the facts a file states, too, that the session may not see: their use and age would tell that."""
    if view.session.kind == "owner":
        return set()
    known = {place["id"] for place in seen}
    stated = core.index.fact_places.tuples(("id", "fact"), Is("fact", "in", list(ids)))
    return {fact for id, fact in stated if id not in known}


def shown_in(core: Core, view: View, path: str) -> set[str]:
    """The ids of the facts that a session is shown of a file that it sees in part."""
    with suppress(NotebookError):
        text = core.tree.read(path).raw.decode(errors="replace")
        return {fact.id for fact in facts_in(path, view.shown(path, text))}
    return set()


def _fact_row(row: Row, place: Row, now: datetime) -> FactRow:
    seen = {**row, "path": place["path"], "pin": place["pin"]}
    return FactRow(
        id=row["id"],
        content=row["content"],
        section=place["section"],
        path=place["path"],
        line=place["line"],
        importance=round(importance(seen, now), 4),
        base=round(row["base"] if place["pin"] is None else place["pin"], 4),
        pin=place["pin"],
        access_count=row["access_count"],
        created_at=row["created_at"] or now,
        last_accessed=row["last_accessed"],
        provenance=row["provenance"] or "",
        core=place["path"] == CORE_FACTS,
        archived=place["path"] == ARCHIVE,
    )
