"""The syntheses that are cached, which of them still hold, and how many questions were asked today.

One that rests on a memory that has changed, or that the session may not see, is never returned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import NotFound
from notebook_sync.services.core import Core
from notebook_sync.services.view import View
from notebook_sync.sessions import OWNER, Session
from notebook_sync.store.collection import Collection
from notebook_sync.store.rows import Is, Row, both

if TYPE_CHECKING:
    from notebook_sync.context.compiler import Compiled

# A question that failed is not asked again for so long, unless it is wanted afresh.
FAILURE_SECONDS = 60.0
_SYNTHESIS, _FAILURE, _COUNTER = "synthesis", "synthesis failure", "synthesis:"


@dataclass(frozen=True, slots=True)
class CachedSynthesis:
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

    @property
    def _rows(self) -> Collection:
        return self._core.index.cache

    def key_of(self, spec: str, compiled: Compiled) -> str:
        """All that a question depends on: the task, the brief, the notebook that is asked, and what memories say."""
        notebook, words = self._core.settings.tier2.notebook_id, json.dumps(sorted(compiled.words.items()))
        texts = (spec, compiled.stable, notebook, words)
        digests = [sha256(text.encode(errors="replace")).hexdigest() for text in texts]
        return sha256("".join(digests).encode()).hexdigest()

    def find(self, key: str, compiled: Compiled, session: Session, since: datetime | None = None) -> Row | None:
        """The synthesis of a brief, made at `since` or later, that still holds for the session."""
        row = self._young(key, since)
        return row if row and not self.has_changed(row["value"]["words"], session, compiled.words) else None

    def count_use(self, key: str) -> None:
        """Note that a synthesis was used: those used longest ago are dropped first."""
        self._rows.update(Is("id", "=", key), set={"last_hit": self._core.now()}, inc={"hits": 1})

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Cache a synthesis; drop those that are too old and, beyond `cache_entries`, those used longest ago."""
        tier2, now = self._core.settings.tier2, self._core.now()
        row = {"id": key, "kind": _SYNTHESIS, "value": dict(value), "made_at": now, "hits": 0, "last_hit": now}
        with self._core.index.write():
            self._rows.put([{**row, "expires_at": now + timedelta(hours=tier2.cache_ttl_hours)}])
            ours = Is("kind", "in", (_SYNTHESIS, _FAILURE))
            old = self._rows.find(both(ours, Is("expires_at", "<=", now)), fields=("id",))
            used = self._rows.find(Is("kind", "=", _SYNTHESIS), order=("-last_hit",), fields=("id",))
            self._rows.delete([each["id"] for each in (*old, *used[tier2.cache_entries :])])

    def failure(self, key: str, since: datetime | None = None) -> str:
        """Why this question failed less than a minute ago, at `since` or later; "" where it did not."""
        row = self._young(f"failed:{key}", since)
        return str(row["value"]) if row else ""

    def put_failure(self, key: str, trouble: str) -> None:
        """Note that a question failed, so that those who wait with the same one do not ask it as well."""
        now = self._core.now()
        row = {"id": f"failed:{key}", "kind": _FAILURE, "value": trouble, "made_at": now}
        self._rows.put([{**row, "expires_at": now + timedelta(seconds=FAILURE_SECONDS)}])

    def has_changed(self, words: Mapping[str, str], session: Session, now: Mapping[str, str]) -> bool:
        """Whether one of these memories says something else, or may not be seen. `now` are digests known better than
        the index knows them."""
        where = both(View(self._core, session).where, Is("id", "in", tuple(words)))
        found = dict(self._core.index.documents.tuples(("id", "words_digest"), where)) | dict(now)
        return any(found.get(id) != digest for id, digest in words.items())

    def latest(self, limit: int = -1, id: str = "") -> list[CachedSynthesis]:
        """The cached syntheses, the last used first; with `id`, only that one. Raises NotFound."""
        rows = self._rows.find(Is("kind", "=", _SYNTHESIS), order=("-last_hit",), heavy=True)
        found = [row for row in rows if id in ("", row["value"]["id"])]
        if id and not found:
            raise NotFound("cached synthesis", id, next="list them with: notebook-sync context cached")
        return [self._described(row) for row in (found if limit < 0 else found[:limit])]

    def clear(self, id: str = "") -> list[CachedSynthesis]:
        """Drop the synthesis with this id, or all, and what is noted of failures; those that are dropped. Raises
        NotFound."""
        dropped = self.latest(id=id)
        ids = {each.synthesis_id for each in dropped}
        rows = self._rows.find(Is("kind", "in", (_SYNTHESIS, _FAILURE)), heavy=True)
        self._rows.delete([row["id"] for row in rows if row["kind"] == _FAILURE or row["value"]["id"] in ids])
        return dropped

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

    def _described(self, row: Row) -> CachedSynthesis:
        value = row["value"]
        return CachedSynthesis(
            synthesis_id=value["id"],
            synthesis_md=value["text"],
            source=value["source"],
            made_at=row["made_at"],
            hits=row["hits"],
            holds=row["expires_at"] > self._core.now() and not self.has_changed(value["words"], OWNER, {}),
            rests_on=sorted(value["words"]),
        )

    def _today(self) -> str:
        return f"{_COUNTER}{self._core.now().astimezone(self._core.settings.timezone):%Y-%m-%d}"

    def _young(self, key: str, since: datetime | None) -> Row | None:
        row = self._rows.one(key)
        is_young = row is not None and row["expires_at"] > self._core.now() and (not since or row["made_at"] >= since)
        return row if is_young else None
