"""What can be measured of memories and briefs: from the index, and from the events of the last briefs and syntheses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from statistics import fmean, pstdev
from typing import Any

from notebook_sync.context.cache import SynthesisCache
from notebook_sync.errors import NotFound, UsageError
from notebook_sync.registry import Result
from notebook_sync.services.core import Core
from notebook_sync.services.view import View
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Is, both

BRIEF, FEEDBACK, SYNTHESIS = "brief", "feedback", "synthesis"
# Events of each kind that are looked at.
_MOST = 1_000
# What a memory says at least, besides its kind, to have a structure.
_NEEDED = ("context", "reasoning")


class Times(Result, frozen=True):
    """How many there were, and the median and the 95th percentile in milliseconds; null of none."""

    count: int
    p50_ms: float | None
    p95_ms: float | None


class Precision(Result, frozen=True):
    """What feedback says of memories in briefs: how many helped, how many did not, and the share of the first."""

    used: int
    useless: int
    share: float | None


class Figures(Result, frozen=True, kw_only=True):
    """`structured_share`: memories with a kind, a context and a reasoning that wait for no review. `score` has mean and
    sigma. `synthesis` has times by outcome (answered, cached,
    failed). Of none, shares and means are null."""

    memories: int
    structured_share: float | None
    needs_review: int
    causal_links: int
    score: dict[str, float | None]
    compile: Times
    precision: Precision
    synthesis: dict[str, Times]
    calls_today: int
    daily_limit: int


def figures_of(core: Core, session: Session) -> Figures:
    """The figures of the memories that the session may read, and of the last 1,000 briefs and syntheses."""
    where = both(View(core, session).whole, Is("path", "under", "memories"))
    rows = core.index.documents.tuples(("kind", "needs_review", "score", "fields"), where)
    fields = [more or {} for *_, more in rows]
    scores = [score for _, _, score, _ in rows if score is not None]
    structured = sum(
        bool(kind) and not review and not set(_NEEDED).intersection(more.get("missing") or ())
        for (kind, review, _, _), more in zip(rows, fields, strict=True)
    )
    rated = {event["hash"]: event for event in _events(core, FEEDBACK)}
    used, useless = (sum(len(set(event[name])) for event in rated.values()) for name in ("used", "useless"))
    syntheses = _events(core, SYNTHESIS)
    return Figures(
        memories=len(rows),
        structured_share=_share(structured, len(rows)),
        needs_review=sum(review for _, review, _, _ in rows),
        causal_links=sum(link["type"] != "similar" for more in fields for link in more.get("relations") or ()),
        score={
            "mean": round(fmean(scores), 4) if scores else None,
            "sigma": round(pstdev(scores), 4) if scores else None,
        },
        compile=_times(_events(core, BRIEF)),
        precision=Precision(used, useless, _share(used, used + useless)),
        synthesis={
            outcome: _times([event for event in syntheses if event["outcome"] == outcome])
            for outcome in sorted({event["outcome"] for event in syntheses})
        },
        calls_today=SynthesisCache(core).spent_today(),
        daily_limit=core.settings.tier2.daily_limit,
    )


def record_feedback(core: Core, session: Session, name: str, used: Sequence[str], useless: Sequence[str]) -> None:
    """Record which memories of the brief with this hash helped; the last feedback on a brief counts.

    Raises NotFound for a brief that the session did not compile, UsageError for ids that are not in it.
    """
    digest, asker = name.removeprefix("sha256:"), (session.kind, session.agent)
    compiled = (*_events(core, BRIEF), *_events(core, SYNTHESIS))
    own = [each for each in compiled if session.kind == "owner" or each["asker"] == asker]
    brief = next((each for each in reversed(own) if each["hash"] == digest), None)
    if brief is None:
        raise NotFound("brief", name, next="give the context_hash of a brief that you compiled")
    if unknown := {*used, *useless}.difference(brief["memories"]):
        raise UsageError(f"the brief has no memory {min(unknown)!r}", next=f"it has {', '.join(brief['memories'])}")
    core.events.record(FEEDBACK, session, hash=digest, used=list(used), useless=list(useless))


def _events(core: Core, kind: str) -> list[dict[str, Any]]:
    """The fields of the last events of a kind, and who asked; oldest first."""
    rows = core.index.events.find(Is("kind", "=", kind), order=("-id",), limit=_MOST)
    return [{**(row["fields"] or {}), "asker": (row["session"], row["agent"])} for row in reversed(rows)]


def _times(events: Sequence[dict[str, Any]]) -> Times:
    return Times(len(events), *(_percentile((event["latency_ms"] for event in events), each) for each in (0.5, 0.95)))


def _percentile(values: Iterable[float], share: float) -> float | None:
    """The least value that `share` of them do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[ceil(share * len(ordered)) - 1] if ordered else None


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
