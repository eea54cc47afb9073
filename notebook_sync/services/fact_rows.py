"""Facts as a session sees them: where each is stated, how much it counts now, and how they are found and compared.

A fact that is stated only where the session may not look does not exist for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from msgspec.structs import asdict, replace

from notebook_sync.errors import NotebookError, NotFound, UsageError
from notebook_sync.files.fact_text import ARCHIVE, LONGEST, fact_id, fact_text, facts_in, order_of
from notebook_sync.model import CORE_FACTS, id_from_path
from notebook_sync.registry import Result, Results
from notebook_sync.search.vectors import Vector
from notebook_sync.services.core import PROPOSALS, PROPOSED, Core
from notebook_sync.services.results import fenced, neutral_name
from notebook_sync.services.sameness import difference, words_of
from notebook_sync.services.view import View
from notebook_sync.sessions import Session
from notebook_sync.settings import MemoryTable
from notebook_sync.store.rows import Is, Row, both
from notebook_sync.sync.project import BASE

Scope = Literal["notes", "core", "archive", "all"]
# What `metadata` says of a fact that the owner wants proposed no more.
DECLINED = "declined"

_BY_USE, _MOST_BY_USE, _BY_DAY = 0.05, 0.5, 0.01
_DAY = timedelta(days=1)
_LONGEST_SHOWN, _LONGEST_CANDIDATE, _MATCHES = 400, 120, 5
_PREFIX = re.compile(r"[0-9a-f]{6,16}")
# What a session learns of a fact that is also where it may not look.
_UNKNOWN = {"base": BASE, "decay_rate": 0.0, "access_count": 0, "created_at": None, "last_accessed": None}


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
            return replace(self, content=text)
        return replace(self, content=fenced(text), section="", path=neutral_name(id_from_path(self.path)))


class FoundFact(FactRow, frozen=True, kw_only=True):
    """A fact that answers a query, or is like a claim. `similarity` is that of their meaning, 0 to 1; `score` is what
    the order depends on."""

    score: float
    similarity: float


class ChangedFact(FactRow, frozen=True, kw_only=True):
    """A fact after a change. `action`: added, reinforced, archived, restored, promoted, proposed or left."""

    action: str
    warnings: list[str]


class Verdict(Result, frozen=True, kw_only=True):
    """What is known of a claim. `matches` are the facts that it was compared with, the nearest first. `degraded` says
    why only words were compared."""

    verdict: Literal["CONFIRMED", "RELATED", "NEW"]
    similarity: float
    matches: list[FoundFact]
    degraded: str | None


# ---- found


def list_facts(
    core: Core,
    session: Session,
    scope: Scope,
    *,
    limit: int,
    section: str = "",
    stale: bool = False,
    fading: int = 0,
    proposed: bool = False,
    after: str = "",
) -> Results[FactRow]:
    """Facts that the session sees, those first that count for most; `after` is the `next` of the page before. See
    `fact list` for the others."""
    least = core.settings.memory.stale_days if stale else 0
    view, wanted, now = View(core, session), " ".join(section.split()).casefold(), core.now()
    among = [_faded_in(core, view, fading)] if fading else []
    if proposed:  # what others proposed is the owner's to know
        among.append(proposed_for_core(core) if session.kind == "owner" else set())
    rows = [
        fact
        for fact in facts_of(core, view, scope, set.intersection(*among) if among else None)
        if (not wanted or fact.section.casefold() == wanted) and days_unused(fact, now) >= least
    ]
    rows.sort(key=lambda fact: (-fact.importance, order_of(fact.path), fact.line))
    ids = [fact.id for fact in rows]
    if after and after not in ids:
        raise UsageError("after: no fact of this list has that id", next="begin without it")
    start = ids.index(after) + 1 if after else 0
    page = rows[start : start + limit]
    return Results(page, core.behind() or None, page[-1].id if page and start + limit < len(rows) else None)


def _faded_in(core: Core, view: View, days: int) -> set[str]:
    """The ids of the facts that fade within so many days, if nobody uses them."""
    later = core.now() + timedelta(days=days)
    facts = [fact for fact in facts_of(core, view, "notes", at=later) if not fact.provenance]
    histories = histories_of(core, facts)
    return {fact.id for fact in facts if has_faded(fact, histories[fact.id], core.settings.memory, later)}


def histories_of(core: Core, facts: Sequence[FactRow]) -> dict[str, list[Row]]:
    """By id, what was done with each fact."""
    rows = core.index.facts.tuples(("id", "source_history"), Is("id", "in", [fact.id for fact in facts]))
    return {fact.id: [] for fact in facts} | {id: history or [] for id, history in rows}


def has_faded(fact: FactRow, history: Sequence[Row], limits: MemoryTable, at: datetime) -> bool:
    """Whether a fact, with its importance at this time, may be archived then. A pin counts until a person takes it
    away, and what was brought back is left alone for a while."""
    back = (datetime.fromisoformat(event["at"]) for event in history if event["action"] == "restored")
    is_back = any(days_since(moment, at) < limits.stale_days for moment in back)
    return max(fact.importance, fact.pin or 0.0) < limits.archive_below and not is_back


def proposed_for_core(core: Core) -> set[str]:
    """The ids of the facts that the last look by the clock, or an agent, proposed for core.md, and nobody declined."""
    said = [row["fields"] or {} for row in core.index.events.find(Is("kind", "=", PROPOSED))]
    ids = {each["fact"] for each in said if "same_as" not in each}
    ids |= {id for id, same_as in core.noted(PROPOSALS) if not same_as}
    in_core = core.index.fact_places.tuples(("fact",), Is("path", "=", CORE_FACTS))
    return ids - declined(core, ids) - {fact for (fact,) in in_core}


def declined(core: Core, ids: Collection[str]) -> set[str]:
    """Those of the facts that the owner leaves where they are."""
    rows = core.index.facts.tuples(("id", "metadata"), Is("id", "in", list(ids)))
    return {id for id, metadata in rows if (metadata or {}).get(DECLINED)}


def search_facts(core: Core, session: Session, query: str, *, scope: Scope, limit: int) -> Results[FoundFact]:
    """Facts that answer a query, best first; without a query, the most important first. For an agent, the best answer
    and each that is related counts as used."""
    if not query.strip():
        listed = list_facts(core, session, scope, limit=limit)
        return Results([_found(fact, 0.0, fact.importance) for fact in listed.results], listed.degraded)
    seen = {fact.id: fact for fact in facts_of(core, View(core, session), scope)}
    where = Is("id", "in", list(seen))
    found = core.searcher.search(query, where=where, collection="facts", limit=limit, explain=True)
    results = [_found(seen[hit.id], clamp((hit.parts or {})["meaning"]), hit.score) for hit in found.hits]
    related = core.settings.memory.related
    _count_uses(core, session, [fact.id for at, fact in enumerate(results) if at == 0 or fact.similarity >= related])
    return Results(results, found.degraded or core.behind() or None)


def verify_claim(core: Core, session: Session, content: str) -> Verdict:
    """Whether a fact says this. For an agent, the one that confirms it counts as used."""
    text, limits = asked(content, "say what is to be verified"), core.settings.memory
    likeness = likeness_of(core, text)
    ranked = nearest(core, likeness, [fact for fact in facts_of(core, View(core, session)) if not fact.archived])
    confirming = (fact.id for fact, near in ranked if near >= limits.confirmed and not difference(fact.content, text))
    confirmed = next(confirming, None)
    if confirmed:
        _count_uses(core, session, [confirmed])
    matches = [_found(fact, near, near) for fact, near in ranked if near >= limits.related or fact.id == confirmed]
    matches.sort(key=lambda match: match.id != confirmed)
    return Verdict(
        verdict="CONFIRMED" if confirmed else "RELATED" if matches else "NEW",
        similarity=matches[0].similarity if matches else round(max((near for _, near in ranked), default=0.0), 4),
        matches=matches[:_MATCHES],
        degraded=likeness.degraded or core.behind() or None,
    )


def _found(fact: FactRow, similarity: float, score: float) -> FoundFact:
    return FoundFact(**asdict(fact), similarity=round(similarity, 4), score=round(score, 4))


def _count_uses(core: Core, session: Session, ids: Sequence[str]) -> None:
    """Count one use of each fact, if an agent used it: an owner who looks through the notebook keeps nothing alive, nor
    does a message of others."""
    if session.kind == "task" or (session.kind == "owner" and session.agent):
        core.count_uses("facts", ids)


# ---- seen


def facts_of(
    core: Core, view: View, scope: Scope = "all", ids: Collection[str] | None = None, at: datetime | None = None
) -> list[FactRow]:
    """The facts that a session sees, each at the first place where it sees it, in the order of files and lines.

    `scope`: "core" is core.md, "archive" is archive.md, "notes" are all other files. `ids`: only these. `at`: the time
    for which their importance is computed, now by default.
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
    rows, now = core.index.facts.get(list(first), heavy=False), at or core.now()
    for id in _elsewhere(core, view, seen, first) & rows.keys():
        rows[id] |= _UNKNOWN
    found = [
        fact_row(rows[id] | {"provenance": provenance.get(place["path"])}, place, now)
        for id, place in first.items()
        if id in rows
    ]
    scopes = {CORE_FACTS: "core", ARCHIVE: "archive"}
    return [fact for fact in found if scope in ("all", scopes.get(fact.path, "notes"))]


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


def fact_row(row: Row, place: Row, now: datetime) -> FactRow:
    """A fact from its row of the index, at one of its places. What nobody has counted yet may be absent."""
    row = {**_UNKNOWN, **row, "path": place["path"], "pin": place["pin"]}
    return FactRow(
        id=row["id"],
        content=row["content"],
        section=place["section"],
        path=place["path"],
        line=place["line"],
        importance=round(importance(row, now), 4),
        base=round(row["base"] if place["pin"] is None else place["pin"], 4),
        pin=place["pin"],
        access_count=row["access_count"],
        created_at=row["created_at"] or now,
        last_accessed=row["last_accessed"],
        provenance=row["provenance"] or "",
        core=place["path"] == CORE_FACTS,
        archived=place["path"] == ARCHIVE,
    )


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


def days_unused(fact: FactRow, now: datetime) -> float:
    """Days since a fact was used; one that never was counts from its creation."""
    return days_since(fact.last_accessed or fact.created_at, now)


# ---- named and compared


def asked(text: str, missing: str) -> str:
    """What somebody says of facts, as facts say it. Raises UsageError for nothing."""
    plain = fact_text(text)[:LONGEST]
    if not plain:
        raise UsageError(f"{missing}, as in: the ferry leaves at eight")
    return plain


def named(name: str, facts: Sequence[FactRow]) -> FactRow:
    """The fact that has this id, begins so (6 digits at least), or has exactly this text. Raises NotFound."""
    plain, own = name.strip().casefold(), fact_id(fact_text(name))
    found = [fact for fact in facts if fact.id in (plain, own)]
    if not found and _PREFIX.fullmatch(plain):
        found = [fact for fact in facts if fact.id.startswith(plain)]
    if len(found) != 1:
        raise no_such_fact(name, found)
    return found[0]


def no_such_fact(name: str, candidates: Sequence[FactRow]) -> NotFound:
    """The error for a name that no fact has, or several have. Words of others are not quoted."""
    lines = tuple(_candidate(fact) for fact in candidates[:_MATCHES])
    advice = f"use one of: {'; '.join(lines)}" if lines else "find it with: notebook-sync fact search WORDS"
    return NotFound("fact", " ".join(name.split())[:_LONGEST_CANDIDATE], candidates=lines, next=advice)


def _candidate(fact: FactRow) -> str:
    return fact.id if fact.provenance else f"{fact.id}: {' '.join(fact.content.split())[:_LONGEST_CANDIDATE]}"


class Likeness(NamedTuple):
    """A text, ready to be compared with facts. `vector` is None without meaning, and `degraded` says why."""

    text: str
    vector: Vector | None
    degraded: str | None


def likeness_of(core: Core, text: str) -> Likeness:
    """A text to compare. May ask a server for its vector: do this before the write lock is taken."""
    meaning = core.searcher.meaning
    vector, degraded = meaning.of(text, equally) if meaning else (None, None)
    if meaning and vector is not None:
        meaning.catch_up()
    return Likeness(text, vector, degraded)


def nearest(core: Core, likeness: Likeness, facts: Sequence[FactRow]) -> list[tuple[FactRow, float]]:
    """Facts and how like the text each is, 0 to 1, the nearest first: by meaning where both have vectors, else by the
    words that they share. The fact of exactly this text comes first."""
    meaning, own, cosines = core.searcher.meaning, fact_id(likeness.text), dict[str, float]()
    if meaning and likeness.vector is not None:
        cosines = meaning.vectors["facts"].cosines(likeness.vector, {fact.id for fact in facts})
    found = []
    for fact in facts:
        near = cosines[fact.id] if fact.id in cosines else _share_of_words(core, likeness.text, fact.content)
        found.append((fact, 1.0 if fact.id == own else clamp(near)))
    return sorted(found, key=lambda pair: (pair[0].id != own, -pair[1], pair[0].id))


def _share_of_words(core: Core, a: str, b: str) -> float:
    """How many of the words of two texts both have, 0 to 1: as they are, or as what they say, if that is more."""
    pairs = [(words_of(a), words_of(b)), tuple(frozenset(core.analyzer.query_terms(text)) for text in (a, b))]
    return max(2 * len(one & other) / (len(one) + len(other) or 1) for one, other in pairs)


def equally(word: str) -> float:
    """Each word of a statement counts as each other: this is how the vectors of facts are made."""
    return 1.0
