"""Hot memory's port: a light ref per note, the daily stream, what is kept for long, and checkpoints; never a note's
content, and nothing of a note in `channels/`: other programs read this memory.

Glossary

ref         a few fields about a note (`files.note.Ref`); the mirror can always write it again
entry       one line of the daily stream or of long-term memory: `{id, content, source, tags, score, timestamp}`, and
            where they are known `agent` (who logged it, or opened the note) and `provenance` ("external"); for a note,
            in the stream, also `action` and the ref's fields under `ref`
            `score` is how much it matters, 0 to 1; `timestamp` an ISO time in UTC, to the millisecond
day         `YYYY-MM-DD` in the notebook's timezone
owner       the `store_id` of the mirror whose refs these are; a different or missing one means: write them all again
checkpoint  `{id, name, at, commit, notebook: [{id, collection, version, digest}], days: {day: [entry]},
            longterm: [entry]}`; `at` an ISO time in UTC; `created_by`, "agent:NAME" or "owner", where it is known
behind      of a ref, or an entry that was logged or kept: what it says now has no vector yet of the model in question

All writes are idempotent; the stream is at least once, and an entry's id is a digest of what it tells
(the note's id, event, version, action, digest, path, and who opened it), so that a reader drops a repeated one. The
event tells one change from another that says the same: a note may be moved there and back twice in a day.
Every method may raise `BackendDown`; no adapter lets a driver's own error out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from notebook_sync.files.note import Ref

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Matrix = NDArray[np.float32]
    # A vector for each text, of length 1, or all zero for a text of which nothing is known.
    Embed = Callable[[Sequence[str]], Matrix]

Entry = dict[str, Any]
Checkpoint = dict[str, Any]
CHECKPOINTS_KEPT = 50


@dataclass(frozen=True, slots=True)
class Recalled:
    """What recall found, best first: each an entry with its `relevance`, 0 to 1; of a note, an entry with its `ref`.

    partial: "", or why not all of hot memory was looked through.
    """

    results: list[Entry]
    partial: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """How vectors are made: those of two models are never compared, nor those of other dimensions."""

    name: str
    dimensions: int

    def __str__(self) -> str:
        return f"{self.dimensions} {self.name}"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a query means: `vector`, of length 1.

    unrelated: what is no more like the query than that is found by its words alone. embed: gives what is behind its
    vectors, where nobody waits long for that; None where a server would have to be asked.
    """

    model: Model
    vector: Vector
    unrelated: float = 0.0
    embed: Embed | None = None


@dataclass(frozen=True, slots=True)
class Swap:
    """What a restore does to a day, or to long-term memory: `there` is to be there, and of `gone` only that stays.

    gone: ids of what the caller had read. An entry that is in neither stays as it is: it was told meanwhile.
    """

    there: Sequence[Entry]
    gone: AbstractSet[str] = frozenset()


# The entries of these that may be told, as they are told.
Told = Callable[[Iterable[Entry]], Iterable[Entry]]


class Refs(Protocol):
    """Hot memory. One instance may be used from several threads."""

    name: str
    """For people, without secrets."""

    # One ref per note.

    def write(self, refs: Sequence[Ref], *, announce: bool = True) -> None:
        """Write or remove (`deleted`) each ref; with `announce`, append a stream entry per ref whose action is one of
        created, updated, moved, deleted and opened. `opened` is only told: the ref stays as its last change left it."""

    def get(self, note_id: str) -> dict[str, Any] | None:
        """The ref as stored: str values as in the field list of the hash, or None."""

    def get_many(self, note_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The refs of these notes, by id; unknown ids are left out."""

    def digests(self) -> Iterator[tuple[str, str, int]]:
        """`(id, digest, version)` of every ref, streamed, without scanning the server's other keys."""

    def recent(self, limit: int = 20) -> list[dict[str, Any]]:
        """The refs changed last, newest first; none for a limit below 1."""

    def owner(self) -> str:
        """The `store_id` these refs belong to, or "" when hot memory is new or was emptied."""

    def adopt(self, store_id: str, keep: Iterable[str]) -> None:
        """Declare that the refs now belong to `store_id`, after removing every ref whose id is not in `keep`.

        `keep` is read after the refs that are there were listed: one that is written meanwhile is not removed.
        """

    def note_loss(self, at: datetime) -> None:
        """Remember that at this time hot memory was found without what had been told to it."""

    def lost(self) -> datetime | None:
        """When it was last found so, to the millisecond; None for a hot memory that has all it was ever told."""

    # The daily stream and long-term memory.

    def log(self, entry: Entry) -> None:
        """Append the entry to the stream of the day of its timestamp, and let recall find it.

        The same id again takes the place of the earlier entry for recall; in the stream the earlier one stays.
        """

    def keep(self, entry: Entry) -> None:
        """Put the entry into long-term memory, in the place of one with its id."""

    def day(self, day: str) -> list[Entry]:
        """The stream of one day, oldest first, each entry once, where it was told first."""

    def days(self) -> list[str]:
        """The days that have a stream, oldest first."""

    def longterm(self) -> list[Entry]:
        """All of long-term memory, oldest first by timestamp, then by id."""

    def restore(self, days: Mapping[str, Swap], longterm: Swap | None = None) -> None:
        """Swap entries of these days and, unless it is None, of long-term memory; nothing else is touched.

        An entry that is there already stays where it is, unless it may go and says something else; one that is missing
        comes where it was told, by its place among the others and by time. Whatever is logged or restored at the same
        time, an entry that none of them lets go is there afterwards. A restore that was broken off is mended by the
        same one again.
        """

    def recall(
        self,
        query: str,
        *,
        tags: Sequence[str] = (),
        since: datetime | None = None,
        limit: int = 10,
        now: datetime,
        meaning: Meaning | None = None,
        told: Told | None = None,
    ) -> Recalled:
        """What was logged and kept, and the refs, that share a word with `query`, as `refs.ranking` ranks them; with a
        `meaning`, also what means much the same.

        The query is data: no punctuation mark in it is an operator. One without a word asks for what matters most of
        late, whatever its meaning. tags: any of them; a ref's tag is its collection. since: not older. told: what may
        be told of the entries that a store finds, and as what; nothing else has a part in the order. None for a
        limit below 1.
        """

    def embed(self, model: Model, embed: Embed, limit: int) -> int:
        """Give what is behind its vectors, `limit` of them at the most; how many got one. What is raised by `embed`
        gets out; what was done stays."""

    # Checkpoints.

    def put_checkpoint(self, checkpoint: Checkpoint, *, spare: Collection[str] = ()) -> None:
        """Keep the checkpoint; of more than CHECKPOINTS_KEPT some are dropped, as `refs.entry.surplus` says, but none
        of these ids."""

    def checkpoints(self) -> list[dict[str, Any]]:
        """`{id, name, at, commit, created_by, notes, entries, longterm}` of each, the last three as counts; newest
        first."""

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        """One checkpoint, whole."""

    def close(self) -> None:
        """Release connections. Twice is allowed."""
