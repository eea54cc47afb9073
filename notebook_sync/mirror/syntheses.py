"""The port of what is kept of syntheses: the answers, how many were asked for in a day, and how long each took.

Glossary

synthesis  what a reasoner made of a task brief; it can be lost at any time, and costs a question to be made again
key        what it answers: the spec, the brief, and the notebook of the reasoner
asked      what it was asked for: the spec and the options, by which it is found before a brief is compiled
state      what tells that the brief would still be the same: of the notes, and of their scores
rests on   the memories that the brief used, each with the digest that its file had
day        a day in the notebook's timezone, as 2026-03-01: the limit counts those
lease      that one process, of all on all machines, asks; it ends by itself

Times are aware UTC datetimes with millisecond precision. Every method may raise `BackendDown`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

What = Literal["compile", "synthesis"]
# compiled: of a brief. hit: kept already. waited: somebody else was asking for it, and it was waited for. answered: by
# the reasoner. failed: nobody could be asked, or the answer would not do.
Outcome = Literal["compiled", "hit", "waited", "answered", "failed"]
TIMINGS_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Rested:
    """A memory that a synthesis rests on: where it is, and what its file's bytes are."""

    id: str
    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class Synthesis:
    """One answer. `source` is the kind of reasoner, `memories_used` and `links` what is told of it."""

    key: str
    asked: str
    state: str
    synthesis_id: str
    synthesis_md: str
    source: str
    context_hash: str
    made_at: datetime
    rests_on: tuple[Rested, ...] = ()
    memories_used: tuple[Mapping[str, Any], ...] = ()
    links: Mapping[str, Any] = field(default_factory=dict)
    hits: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one of them took, in milliseconds."""

    outcome: Outcome
    milliseconds: float


class Syntheses(Protocol):
    """Beside the mirror's rows, in its store. May be used from several threads and processes."""

    name: str
    """For people, without secrets."""

    def get(self, key: str) -> Synthesis | None:
        """The answer to this."""

    def asked_for(self, asked: str) -> Synthesis | None:
        """The answer that was given last to who asked for this."""

    def latest(self, limit: int) -> list[Synthesis]:
        """Those that were used last, the last one first."""

    def put(self, synthesis: Synthesis, *, entries: int, since: datetime) -> None:
        """Keep it instead of what has its key. Of all, `entries` at most are kept, those that were used last, and none
        that was made before `since`."""

    def used(self, key: str, asked: str, state: str, at: datetime) -> None:
        """Count a use, by who asked for this while the notes were in that state. Nothing where it is gone."""

    def forget(self, memory_ids: Collection[str]) -> int:
        """Drop what rests on any of these memories; how many."""

    def state(self) -> str:
        """The same text as before only where the notes in the mirror are the same."""

    # The limit. Each is atomic, however many processes do the same.

    def spend(self, day: str, limit: int) -> bool:
        """Count one more on that day, where there were less than `limit`; whether there were. Days before are
        forgotten."""

    def spent(self, day: str) -> int:
        """How many were counted on that day."""

    def lease(self, holder: str, seconds: float) -> bool:
        """Take the lease for so long, or keep it; whether it could be had: nobody else holds it, or their time is
        up."""

    def release(self, holder: str) -> None:
        """Give the lease back, where this holder has it."""

    # Figures.

    def timed(self, what: What, timing: Timing) -> None:
        """Keep this, and the 999 before it."""

    def timings(self, what: What) -> Sequence[Timing]:
        """What is kept, the oldest first."""

    def close(self) -> None:
        """Release connections. Twice is allowed."""
