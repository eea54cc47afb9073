"""Facts found: listed, searched, named, and compared with a claim."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from notebook_sync.errors import NotFound, UsageError
from notebook_sync.files.fact_text import LONGEST, fact_id, fact_text, order_of
from notebook_sync.registry import Results
from notebook_sync.services.core import Core
from notebook_sync.services.fact_rows import FactRow, FoundFact, Scope, Verdict, clamp, days_since, facts_of, used
from notebook_sync.services.sameness import difference, words_of
from notebook_sync.services.view import View
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Is

if TYPE_CHECKING:
    from notebook_sync.search.embed import Vector

_PREFIX = re.compile(r"[0-9a-f]{6,16}")
_MATCHES, _LONGEST_CANDIDATE = 5, 120


def list_facts(
    core: Core, session: Session, *, scope: Scope, section: str, stale: bool, limit: int, after: str
) -> Results[FactRow]:
    """Facts that the session sees, those first that count for most; `after` is the `next` of the page before."""
    now, stale_days = core.now(), core.settings.memory.stale_days
    wanted = " ".join(section.split()).casefold()
    rows = [
        fact
        for fact in facts_of(core, View(core, session), scope)
        if (not wanted or fact.section.casefold() == wanted)
        and (not stale or days_since(fact.last_accessed or fact.created_at, now) >= stale_days)
    ]
    rows.sort(key=lambda fact: (-fact.importance, order_of(fact.path), fact.line))
    ids = [fact.id for fact in rows]
    if after and after not in ids:
        raise UsageError("after: no fact of this list has that id", next="begin without it")
    start = ids.index(after) + 1 if after else 0
    page = rows[start : start + limit]
    return Results(page, core.behind() or None, page[-1].id if page and start + limit < len(rows) else None)


def search_facts(core: Core, session: Session, query: str, *, scope: Scope, limit: int) -> Results[FoundFact]:
    """Facts that answer a query, best first; without a query, the most important first. For an agent, the best answer
    and each that is related counts as used."""
    if not query.strip():
        listed = list_facts(core, session, scope=scope, section="", stale=False, limit=limit, after="")
        return Results([found_fact(fact, 0.0, fact.importance) for fact in listed.results], listed.degraded)
    seen = {fact.id: fact for fact in facts_of(core, View(core, session), scope)}
    where = Is("id", "in", list(seen))
    found = core.searcher.search(query, where=where, collection="facts", limit=limit, explain=True)
    results = [found_fact(seen[hit.id], clamp((hit.parts or {})["meaning"]), hit.score) for hit in found.hits]
    related = core.settings.memory.related
    used(core, session, [fact.id for at, fact in enumerate(results) if at == 0 or fact.similarity >= related])
    return Results(results, found.degraded or core.behind() or None)


def verify_claim(core: Core, session: Session, content: str) -> Verdict:
    """Whether a fact says this. For an agent, the one that confirms it counts as used."""
    text = asked(content, "say what is to be verified")
    known = [fact for fact in facts_of(core, View(core, session)) if not fact.archived]
    likeness, limits = likeness_of(core, text), core.settings.memory
    alike = similarities(core, likeness, known)
    ranked = sorted(known, key=lambda fact: (-alike[fact.id], fact.id))
    near = [fact for fact in ranked if alike[fact.id] >= limits.related]
    confirming = (fact for fact in near if alike[fact.id] >= limits.confirmed and not difference(fact.content, text))
    confirmed = next(confirming, None)
    if confirmed is not None:
        near = [confirmed, *(fact for fact in near if fact is not confirmed)]
        used(core, session, [confirmed.id])
    best = alike[(near or ranked)[0].id] if ranked else 0.0
    return Verdict(
        verdict="CONFIRMED" if confirmed else "RELATED" if near else "NEW",
        similarity=round(best, 4),
        matches=[found_fact(fact, alike[fact.id], alike[fact.id]) for fact in near[:_MATCHES]],
        degraded=likeness.degraded or core.behind() or None,
    )


def found_fact(fact: FactRow, similarity: float, score: float) -> FoundFact:
    """A fact as a result."""
    return FoundFact(**msgspec.structs.asdict(fact), similarity=round(similarity, 4), score=round(score, 4))


def asked(text: str, missing: str) -> str:
    """What somebody says of facts, as facts say it. Raises UsageError for nothing."""
    plain = fact_text(text)[:LONGEST]
    if not plain:
        raise UsageError(f"{missing}, as in: the ferry leaves at eight")
    return plain


def named(name: str, facts: Sequence[FactRow]) -> FactRow:
    """The fact that has this id, begins so (6 digits at least), or has exactly this text. Raises NotFound."""
    plain = name.strip().casefold()
    by_id = {fact.id: fact for fact in facts}
    exact = by_id.get(plain) or by_id.get(fact_id(fact_text(name)))
    if exact is not None:
        return exact
    found = [fact for fact in facts if fact.id.startswith(plain)] if _PREFIX.fullmatch(plain) else []
    if len(found) == 1:
        return found[0]
    raise no_such_fact(name, found)


def no_such_fact(name: str, candidates: Sequence[FactRow]) -> NotFound:
    """The error for a name that no fact has, or several have. Words of others are not quoted."""
    lines = tuple(_candidate(fact) for fact in candidates[:_MATCHES])
    advice = f"use one of: {'; '.join(lines)}" if lines else "find it with: notebook-sync fact search WORDS"
    return NotFound("fact", " ".join(name.split())[:_LONGEST_CANDIDATE], candidates=lines, next=advice)


class Likeness(NamedTuple):
    """A text, ready to be compared with facts. `vector` is None without meaning, and `degraded` says why."""

    text: str
    vector: Vector | None
    degraded: str | None


def likeness_of(core: Core, text: str) -> Likeness:
    """A text to compare. May ask a server for its vector: do this before the write lock is taken."""
    meaning = core.searcher.meaning
    if meaning is None:
        return Likeness(text, None, None)
    vector, degraded = meaning.of(text, _equally)
    if vector is not None:
        meaning.catch_up()
    return Likeness(text, vector, degraded)


def similarities(core: Core, likeness: Likeness, facts: Sequence[FactRow]) -> dict[str, float]:
    """How like the text each fact is, 0 to 1: by meaning where both have vectors, else by the words that they share."""
    cosines: Mapping[str, float] = {}
    if likeness.vector is not None and core.searcher.meaning is not None:
        cosines = core.searcher.meaning.cosines(likeness.vector, "facts", {fact.id for fact in facts})
    known = {fact.id: clamp(cosines[fact.id]) for fact in facts if fact.id in cosines}
    by_words = (fact for fact in facts if fact.id not in known)
    known |= {fact.id: _share_of_words(core, likeness.text, fact.content) for fact in by_words}
    own = fact_id(likeness.text)
    return {**known, own: 1.0} if own in known else known


def _share_of_words(core: Core, a: str, b: str) -> float:
    """How many of the words of two texts both have, 0 to 1: as they are, or as what they say, if that is more."""
    pairs = [(words_of(a), words_of(b)), tuple(frozenset(core.analyzer.query_terms(text)) for text in (a, b))]
    return max(2 * len(one & other) / (len(one) + len(other) or 1) for one, other in pairs)


def _equally(word: str) -> float:
    """Each word of a statement counts as each other: this is how the vectors of facts are made."""
    return 1.0


def _candidate(fact: FactRow) -> str:
    return fact.id if fact.provenance else f"{fact.id}: {' '.join(fact.content.split())[:_LONGEST_CANDIDATE]}"
