"""The port of the rows of facts: what is known of each bullet below facts/ beside what its file says.

Glossary

fact        a bullet of a file below facts/, by its text: the same text at several places is one fact
place       where a fact stands. Of several the one in core.md counts, else the first by path, archive.md last
row         what the store keeps of a fact by its `note_id`: usage, importance, history, vector. It outlives the bullet
gone        of a fact whose bullet stands nowhere: its row keeps its usage, and comes back with the bullet
source      a file below facts/ and the digest of the text that its places were read from
base        the digest that a writer believes a source has; a write whose base is no longer true is *lost*
importance  0 to 1, before it fades: what a person pinned in the file, else what the row came to have

A fact enters by its file alone. A row made by `upsert_note` for a text that no file holds is known to the store only,
and is lost with it. How important a fact is now is computed, never kept: `notes/fact_life.py`.
Times are aware UTC datetimes with millisecond precision. Every method may raise `BackendDown`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from notebook_sync.files.facts import ARCHIVE, CORE, order_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Matrix = NDArray[np.float32]

START = 0.5
"""The importance of a fact of which nothing else is known."""
DECAY_RATE = 0.01
HISTORY_LIMIT = 50

Scope = Literal["notes", "core", "archive", "all"]
SCOPES: tuple[Scope, ...] = ("notes", "core", "archive", "all")
Action = Literal[
    "added",
    "reworded",
    "returned",
    "gone",
    "archived",
    "restored",
    "promoted",
    "demoted",
    "moved",
    "pinned",
    "unpinned",
]


class Place(NamedTuple):
    """Where a fact stands; `line` is 1-based in the file, `pin` the importance that a person wrote behind it.

    A named tuple, as `Known` is: of places there are too many for anything dearer.
    """

    note_id: str
    path: str
    section: str
    line: int
    pin: float | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as the store knows it. Of one that is gone, the place is where it stood last.

    `importance` is the one in force, `unpinned` the one it has without a pin. `decay_rate` is what it loses a day.
    `source_history` are the last 50 events, the oldest first: {at, action, importance, ...}, with `path` and `section`
    where it moved, `was` for the id of what it was before it was reworded or merged, and `actor` for who reinforced it:
    "owner", "agent:NAME".
    """

    note_id: str
    content: str
    created_at: datetime
    updated_at: datetime
    section: str = ""
    path: str = ""
    line: int = 0
    importance: float = START
    pinned: bool = False
    unpinned: float = START
    decay_rate: float = DECAY_RATE
    access_count: int = 0
    last_accessed: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source_history: tuple[Mapping[str, Any], ...] = ()
    gone_at: datetime | None = None

    @property
    def is_core(self) -> bool:
        return self.path == CORE

    @property
    def is_archived(self) -> bool:
        return self.path == ARCHIVE

    def is_in(self, scope: Scope) -> bool:
        """Whether it stands in core.md, in archive.md, or for `notes` in any other file; a gone one nowhere."""
        if self.gone_at is not None:
            return False
        return scope == "all" or scope == ("core" if self.is_core else "archive" if self.is_archived else "notes")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's facts as they are to be known: instead of what was read of `base`, "" for a file that was not known.
    `digest` is "" where the file is gone. `places` has each fact once."""

    path: str
    base: str
    digest: str
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a fact. `place` is where it stands now, or stood until it was gone.

    A row that is not there is made, with the importance and the age that are given here; of a reworded fact from the
    row of what it `was`, which ends unless that stands somewhere by now.
    """

    action: Action
    note_id: str
    content: str
    place: Place
    at: datetime
    was: str = ""
    importance: float = START
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Alike:
    """A fact that was searched for; `by` what its similarity, 0 to 1, was found: meaning, or words."""

    fact: Fact
    similarity: float
    by: Literal["meaning", "words"]


class Embeds(Protocol):
    """What makes vectors of texts: of `search.base.Embedder`, as much as a store of facts asks for."""

    @property
    def model(self) -> str: ...
    def embed(self, texts: Sequence[str]) -> Matrix: ...


class Lacking(NamedTuple):
    """How many facts have no vector yet, and of how many none can be made."""

    behind: int
    refused: int


Embedding = Callable[[], Embeds | None]


class FactRows(Protocol):
    """The rows of facts. May be used from several threads; several processes may share one store."""

    name: str
    """For people, without secrets."""

    # The facts themselves.

    def get_note(self, note_id: str) -> Fact | None:
        """One fact, also one that is gone."""

    def get_many(self, note_ids: Collection[str]) -> dict[str, Fact]:
        """These facts by id, gone ones too; unknown ids are left out."""

    def rows(self) -> list[Fact]:
        """All that is known of facts, gone ones too, in id order."""

    def all(self, scope: Scope = "notes", section: str = "") -> list[Fact]:
        """The facts in a scope, of one section where it is named, in the order of their files; none that is gone."""

    def get_recent_notes(self, limit: int = 20, section: str = "", scope: Scope = "notes") -> list[Fact]:
        """Those that were made or changed last, the latest first."""

    def get_by_importance_range(
        self, low: float = 0.0, high: float = 1.0, limit: int = 50, scope: Scope = "notes"
    ) -> list[Fact]:
        """Those whose importance is from `low` to `high`, both included, the most important first."""

    def get_stale_notes(
        self, days: float = 30, limit: int = 50, *, now: datetime | None = None, scope: Scope = "notes"
    ) -> list[Fact]:
        """Those not accessed for so many days or more, counted from when they were made where they never were; the
        longest first."""

    def search_similar(
        self, asked: str | Sequence[float] | Vector, limit: int = 10, section: str = "", scope: Scope = "notes"
    ) -> list[Alike]:
        """The facts most like a text, or a vector of the store's model; the most alike first, even ones by id.

        By words where the store was opened without an embedder, where that does not answer, and for facts that have no
        vector of its model yet, or that it refuses: such a similarity is for ranking, and does not tell that two texts
        are one fact. A vector without direction, or of other dimensions, is like nothing.
        """

    # Usage and importance. Each of these is atomic, however many processes do the same.

    def upsert_note(self, fact: Fact) -> Fact:
        """Make the row what `fact` says, in all but its place and its pin, which only a file tells; the fact as it is
        then. Raises UsageError for an id that is not its text's, or an importance that is none."""

    def increment_access(self, *note_ids: str, at: datetime | None = None) -> int:
        """Count one use of each, now or `at` a time; how many of them there are."""

    def update_importance(
        self,
        note_id: str,
        importance: float | None = None,
        *,
        by: float = 0.0,
        action: str = "weighed",
        actor: str = "",
        at: datetime | None = None,
    ) -> Fact | None:
        """Set what the fact has without a pin, or change it `by` so much; never beyond 0 and 1. The fact as it is then,
        None for an unknown id. `action` and `actor` are what the event in its history says. Raises UsageError for what
        is not a number."""

    def bulk_update_importance(self, importances: Mapping[str, float], *, at: datetime | None = None) -> int:
        """Set several; how many of them there are. Raises UsageError before any is set."""

    def merge_notes(self, keep: str, drop: str, *, by: float = 0.05, at: datetime | None = None) -> Fact | None:
        """Let one fact have the usage of another too, whose row ends: the sum of accesses, the earlier making, the
        later access, the greater importance and `by` more. The fact as it is then; None, and nothing done, where either
        is unknown or both are one. Where the bullet of what was dropped still stands, it begins anew."""

    def delete_note(self, note_id: str) -> bool:
        """Forget all usage of one fact; whether there was a row. Where its bullet stands, it begins anew."""

    def clear_all(self) -> int:
        """Forget all of it; how many rows there were. What stands in files begins anew."""

    # Vectors.

    def without_vector(self, model: str, limit: int = 1000, *, dimensions: int | None = None) -> list[Fact]:
        """Facts that stand somewhere and have no vector of this model, or none of these dimensions; in id order."""

    def put_vectors(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Keep these instead of those that the facts had, of whatever model; unknown ids are left out. One without
        direction, all zero, is for a fact that the model refuses: that has been tried, and words find it."""

    def lacking(self, model: str, *, dimensions: int | None = None) -> Lacking:
        """Of the facts that stand somewhere, those that are `without_vector`, and those that the model refuses."""

    def vectors(self, model: str) -> Mapping[str, Vector]:
        """By id, the vectors of this model, of any for ""; of facts that are gone, too."""

    # What keeps rows in step with files.

    def sources(self) -> dict[str, str]:
        """By path, the digest of the text that the places of a file were read from; "" where it has to be read again
        whatever its digest is."""

    def places(self) -> list[Place]:
        """Every place of every fact."""

    def apply(self, sources: Sequence[Source], changes: Sequence[Change]) -> bool:
        """Make this known, and make or change rows as the changes say. False where the base of a source was no longer
        true: then nothing of that source is known, and what the changes did to rows is done right by the next
        `apply` of what is true. Raises UnreadableFile for a source that has more facts than the store can hold.
        """

    def prune(self, before: datetime) -> int:
        """Forget the rows of facts that were gone before this time; how many."""

    def close(self) -> None:
        """Release connections. Twice is allowed."""


def standing(row: Fact, places: Sequence[Place]) -> Fact:
    """The fact that a row is with the places where it stands now: none is gone, and the first that counts tells."""
    if not places:
        return row if row.gone_at or not row.path else replace(row, gone_at=row.updated_at)
    best = places[0] if len(places) == 1 else min(places, key=lambda place: (order_of(place.path), place.line))
    if best.pin is None and not row.pinned and row.gone_at is None and (row.path, row.section, row.line) == best[1:4]:
        return row
    return replace(
        row,
        section=best.section,
        path=best.path,
        line=best.line,
        importance=row.unpinned if best.pin is None else best.pin,
        pinned=best.pin is not None,
        gone_at=None,
    )
