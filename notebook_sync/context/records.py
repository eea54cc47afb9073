"""What is kept of briefs and syntheses: cached answers, the questions of a day, and figures from the events.

A cached synthesis that rests on a memory that has changed, or that the session may not see, is never returned.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import NotFound, UsageError
from notebook_sync.registry import Result
from notebook_sync.services.core import Core
from notebook_sync.services.view import View
from notebook_sync.sessions import OWNER, Session
from notebook_sync.store.rows import Is, Row, both

if TYPE_CHECKING:
    from notebook_sync.context.compiler import Compiled

# A question that failed is not asked again for so long, unless it is wanted afresh.
FAILURE_SECONDS = 60.0
BRIEF, FEEDBACK, SYNTHESIS = "brief", "feedback", "synthesis"
_FAILURE, _COUNTER, _HASH = "synthesis failure", "synthesis:", "sha256:"
# Events of each kind that are looked at.
_MOST = 1_000


class CachedSynthesis(Result, frozen=True, kw_only=True):
    """One that no longer `holds` is not returned again: a memory that it rests on has changed, or it is too old."""

    synthesis_id: str
    synthesis_md: str
    source: str
    made_at: datetime
    hits: int
    holds: bool
    rests_on: list[str]


class SynthesisCache:
    """Of one notebook, for any number of threads and processes. The key of a brief is `key_of`."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def key_of(self, spec: str, made: Compiled) -> str:
        """All that a question depends on: the task, the brief, the notebook that is asked, and what memories say."""
        parts = (spec, made.stable, self._core.settings.tier2.notebook_id, sorted(made.words.items()))
        return sha256(json.dumps(parts).encode()).hexdigest()

    def find(self, key: str, made: Compiled, session: Session, since: datetime | None = None) -> Row | None:
        """The synthesis of a brief, made at `since` or later, that still holds for the session."""
        row = self._young(key, since)
        return row if row and not self.has_changed(row["value"]["words"], session, made.words) else None

    def count_use(self, key: str) -> None:
        """Note that a synthesis was used: those used longest ago are dropped first."""
        self._core.index.cache.update(Is("id", "=", key), set={"last_hit": self._core.now()}, inc={"hits": 1})

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Cache a synthesis, with the digests of the `words` that it rests on, and
        the ids of the `notes` of its brief and the digest of its task."""
        self._put(key, SYNTHESIS, dict(value), self._core.settings.tier2.cache_ttl_hours * 3600)

    def failure(self, key: str, since: datetime | None = None) -> str:
        """Why this question failed less than a minute ago, at `since` or later; "" where it did not."""
        row = self._young(f"failed:{key}", since)
        return str(row["value"]) if row else ""

    def put_failure(self, key: str, trouble: str) -> None:
        """Note that a question failed, so that those who wait with the same one do not ask it as well."""
        self._put(f"failed:{key}", _FAILURE, trouble, FAILURE_SECONDS)

    def has_changed(self, words: Mapping[str, str], session: Session, now: Mapping[str, str]) -> bool:
        """Whether one of these memories says something else, or may not be seen. `now` are digests known better than
        the index knows them."""
        where = both(View(self._core, session).where, Is("id", "in", tuple(words)))
        found = dict(self._core.index.documents.tuples(("id", "words_digest"), where)) | dict(now)
        return any(found.get(id) != digest for id, digest in words.items())

    def latest(self, limit: int, id: str = "") -> list[CachedSynthesis]:
        """The cached syntheses, the last used first; with `id`, only that one. Raises NotFound."""
        return list(map(self._described, self._named(id)[:limit]))

    def clear(self, id: str = "") -> list[CachedSynthesis]:
        """Drop the synthesis with this id, or all, and what is noted of failures; those that are dropped. Raises
        NotFound."""
        dropped = self._named(id)
        failures = self._core.index.cache.find(Is("kind", "=", _FAILURE), fields=("id",))
        self._core.index.cache.delete([row["id"] for row in (*failures, *dropped)])
        return list(map(self._described, dropped))

    def forget(self, ids: Collection[str]) -> int:
        """Drop the syntheses of briefs that showed one of these notes, or whose task is one; returns how many. The
        index must still have the notes."""
        named = Is("id", "in", list(ids))
        hidden = {*ids, *(digest for (digest,) in self._core.index.documents.tuples(("digest",), named))}
        gone = [row["id"] for row in self._all() if not hidden.isdisjoint(row["value"]["notes"])]
        self._core.index.cache.delete(gone)
        return len(gone)

    def spent_today(self) -> int:
        """How many questions were asked today, in the notebook's time zone."""
        row = self._core.index.counters.one(self._today())
        return int(row["value"]) if row else 0

    def spend(self, most: int) -> bool:
        """Count one question; False where `most` were asked today, by whichever process."""
        counters = self._core.index.counters
        with self._core.index.write():
            spent = self.spent_today()
            if spent < most:
                days = [row["id"] for row in counters.find(fields=("id",)) if row["id"].startswith(_COUNTER)]
                counters.delete([id for id in days if id != self._today()])
                counters.put([{"id": self._today(), "value": spent + 1}])
        return spent < most

    def _named(self, id: str) -> list[Row]:
        """The synthesis with this id, all for "", the last used first. Raises NotFound."""
        found = [row for row in self._all() if id in ("", row["value"]["synthesis_id"])]
        if id and not found:
            raise NotFound("cached synthesis", id, next="list them with: notebook-sync context cached")
        return found

    def _all(self) -> list[Row]:
        return self._core.index.cache.find(Is("kind", "=", SYNTHESIS), order=("-last_hit",), heavy=True)

    def _put(self, id: str, kind: str, value: Any, seconds: float) -> None:
        """Put a row; drop those that are too old and, beyond `cache_entries`, the syntheses used longest ago."""
        rows, now = self._core.index.cache, self._core.now()
        row = {"id": id, "kind": kind, "value": value, "made_at": now, "hits": 0, "last_hit": now}
        with self._core.index.write():
            rows.put([{**row, "expires_at": now + timedelta(seconds=seconds)}])
            of_ours = both(Is("kind", "in", (SYNTHESIS, _FAILURE)), Is("expires_at", "<=", now))
            old = [each["id"] for each in rows.find(of_ours, fields=("id",))]
            used = [each["id"] for each in self._all()]
            rows.delete([*old, *used[self._core.settings.tier2.cache_entries :]])

    def _described(self, row: Row) -> CachedSynthesis:
        value = row["value"]
        return CachedSynthesis(
            synthesis_id=value["synthesis_id"],
            synthesis_md=value["synthesis_md"],
            source=value["source"],
            made_at=row["made_at"],
            hits=row["hits"],
            holds=row["expires_at"] > self._core.now() and not self.has_changed(value["words"], OWNER, {}),
            rests_on=sorted(value["words"]),
        )

    def _today(self) -> str:
        return f"{_COUNTER}{self._core.now().astimezone(self._core.settings.timezone):%Y-%m-%d}"

    def _young(self, key: str, since: datetime | None) -> Row | None:
        row = self._core.index.cache.one(key)
        is_young = row is not None and row["expires_at"] > self._core.now() and (not since or row["made_at"] >= since)
        return row if is_young else None


# ---- figures


class Times(Result, frozen=True):
    """How many there were, and the median and the 95th percentile in milliseconds; null of none."""

    count: int
    p50_ms: float | None
    p95_ms: float | None


class Figures(Result, frozen=True, kw_only=True):
    """`used` and `useless` count the memories in briefs that helped and that did not, by feedback, and `precision` is
    the share of the first, null of none. `synthesis` has times by outcome: answered, cached, failed."""

    compile: Times
    used: int
    useless: int
    precision: float | None
    synthesis: dict[str, Times]
    calls_today: int
    daily_limit: int


def figures_of(core: Core) -> Figures:
    """The figures of the last 1,000 briefs and syntheses."""
    rated = {event["hash"]: event for event in _events(core, FEEDBACK)}
    used, useless = (sum(len(set(event[name])) for event in rated.values()) for name in ("used", "useless"))
    syntheses = _events(core, SYNTHESIS)
    return Figures(
        compile=_times(_events(core, BRIEF)),
        used=used,
        useless=useless,
        precision=round(used / (used + useless), 4) if used + useless else None,
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
    digest, asker = f"{_HASH}{name.removeprefix(_HASH)}", (session.kind, session.agent)
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


def _times(events: Iterable[dict[str, Any]]) -> Times:
    """The percentiles are nearest ranks: the least value that a share of them does not exceed."""
    times = sorted(event["latency_ms"] for event in events)
    return Times(len(times), *(times[ceil(share * len(times)) - 1] if times else None for share in (0.5, 0.95)))
