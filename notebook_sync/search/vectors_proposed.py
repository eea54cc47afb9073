"""MongoDB's vectors, the nearest of them proposed by another index: that of a Redis, or MongoDB's own `$vectorSearch`.

The truth stays in MongoDB: the other index proposes notes, and whole vectors decide. What is in channels never goes
there, and is searched by the exact index, as is everything while the other one is away, or not yet filled.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice

from notebook_sync.errors import BackendDown
from notebook_sync.patience import Silence
from notebook_sync.refs.redis_memory import pieces
from notebook_sync.refs.redis_search import NoSearch
from notebook_sync.search.base import Counts, Matrix, Near, Vector, Vectored
from notebook_sync.search.exact import State
from notebook_sync.search.mongo_behind import SKEW_MICROSECONDS
from notebook_sync.search.packing import unit
from notebook_sync.search.proposals import Proposals, kind_of
from notebook_sync.search.vectors_mongo import MongoVectors

# Notes that are not there yet and are compared one by one; where there are more, all are searched exactly.
_MOST_RECENT = 1_000
# How far its distances may be from those of whole vectors.
_BLUR = 1e-3
# Where more would be asked for, the exact index is as quick, and misses none.
_MOST_PASSAGES = 10_000
# A put is counted before and after: a writer that is killed in between leaves an odd number.
_MARKS_A_PUT = 2


class ProposedVectors:
    """`Vectors` over a MongoDB; opening it asks nothing of anybody. `name` tells how the last search was made."""

    def __init__(self, mongo: MongoVectors, proposals: Proposals) -> None:
        self._mongo = mongo
        self._proposals = proposals
        self._silence = Silence()
        self.name = f"{mongo.name}, searched by {proposals.name}"

    def behind(self, model: str, limit: int) -> list[str]:
        return self._mongo.behind(model, limit)

    def expect(self, model: str, dimensions: int) -> None:
        self._mongo.expect(model, dimensions)

    def put(self, model: str, notes: Sequence[Vectored]) -> None:
        if not notes:
            return
        before, puts = self._mongo.put_counted(model, notes)
        try:
            self._tell(model, [note.note_id for note in notes], before, puts)
        except (NoSearch, BackendDown) as reason:
            self._note(str(reason))  # the next tidying tells it

    def nearest(
        self,
        model: str,
        query: Vector,
        limit: int,
        *,
        among: Collection[str] | None = None,
        section: str = "",
        folders: Collection[str] | None = None,
    ) -> list[Near]:
        asked = unit(query)
        if among is None and asked is not None and limit > 0 and not self._silence.trouble:
            try:
                found = self._nearest(model, asked, limit, section, folders)
            except (NoSearch, BackendDown) as reason:
                self._note(str(reason))
            else:
                self._note("")
                return found
        return self._mongo.nearest(model, query, limit, among=among, section=section, folders=folders)

    def of(self, model: str, ids: Collection[str]) -> dict[str, Matrix]:
        return self._mongo.of(model, ids)

    def counts(self, model: str) -> Counts:
        return self._mongo.counts(model)

    def tidy(self) -> int:
        dropped = self._mongo.tidy()
        try:
            self._fill(self._mongo.model())
        except (NoSearch, BackendDown) as reason:
            self._note(str(reason))
        return dropped

    def close(self) -> None:
        self._mongo.close()
        self._proposals.close()

    def _nearest(
        self, model: str, query: Vector, limit: int, section: str, folders: Collection[str] | None
    ) -> list[Near]:
        state = self._mongo.state(model)
        if state.dimensions != len(query):
            return []
        kind = kind_of(state.made, model, state.dimensions)
        recent = self._recent(model, kind, state)
        self._proposals.prepare(kind, state.dimensions)
        count = 4 * limit + 16
        while count <= _MOST_PASSAGES:
            notes, farthest = self._proposals.nearest(kind, query, count, section)
            found = self._mongo.nearest(model, query, limit, among={*notes, *recent}, section=section)
            if farthest == -1 or (len(found) == limit and found[-1].similarity >= farthest - _BLUR):
                private = self._mongo.nearest_private(model, query, limit, section, folders)
                by_id = {near.note_id: near for near in [*private, *found]}
                return heapq.nsmallest(limit, by_id.values(), key=lambda near: (-near.similarity, near.note_id))
            count *= 4
        return self._mongo.nearest(model, query, limit, section=section, folders=folders)

    def _recent(self, model: str, kind: str, state: State) -> list[str]:
        """Notes whose vectors are not there yet. Raises NoSearch where they are many."""
        upto = self._proposals.upto(kind)
        if upto is None:
            raise NoSearch(f"{self._proposals.name} has no passages yet")
        if upto[0] == state.newest[0]:
            return []
        put = chain.from_iterable(page.items() for page in self._mongo.public(model, upto[1] - SKEW_MICROSECONDS))
        missing = list(islice(self._missing(kind, put), _MOST_RECENT + 1))
        if len(missing) > _MOST_RECENT:
            raise NoSearch(f"{self._proposals.name} has not all passages yet")
        return [note_id for note_id, _ in missing]

    def _missing(self, kind: str, put: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
        for piece in pieces(put):
            there = self._proposals.puts_of(kind, [note_id for note_id, _ in piece])
            yield from ((note_id, of) for note_id, of in piece if there.get(note_id) != of)

    def _tell(self, model: str, ids: Sequence[str], before: int, puts: int) -> None:
        """The other index of what was just put; where it had everything before, it has everything now."""
        state = self._mongo.state(model)
        if not state.dimensions:
            return
        kind = kind_of(state.made, model, state.dimensions)
        self._proposals.prepare(kind, state.dimensions)
        upto = self._proposals.upto(kind)
        public = self._mongo.public_among(model, ids)
        self._proposals.put(kind, self._mongo.whole(public), public)
        if before == 0 and puts == _MARKS_A_PUT and upto is None:
            self._proposals.note_upto(kind, (puts, state.newest[1]))
        elif upto is not None and upto[0] == before and puts == before + _MARKS_A_PUT:
            self._proposals.note_upto(kind, (puts, state.newest[1]), instead=upto)

    def _fill(self, model: str) -> None:
        """The other index has what is to be there, and nothing else."""
        state = self._mongo.state(model)
        if not state.dimensions:
            return
        kind = kind_of(state.made, model, state.dimensions)
        self._proposals.prepare(kind, state.dimensions, again=True)
        wanted = dict(chain.from_iterable(page.items() for page in self._mongo.public(model, 0)))
        there = dict(self._proposals.puts(kind))
        self._proposals.drop(kind, [note_id for note_id in there if note_id not in wanted])
        for piece in pieces(note_id for note_id, put in wanted.items() if there.get(note_id) != put):
            puts = {note_id: wanted[note_id] for note_id in piece}
            self._proposals.put(kind, self._mongo.whole(puts), puts)
        self._proposals.note_upto(kind, (state.newest[0], state.newest[1]))
        self._proposals.drop_other_kinds(kind)
        self._note("")

    def _note(self, trouble: str) -> None:
        if trouble:
            self._silence.begin(trouble)
        else:
            self._silence.end()
        how = f"exactly: {trouble}" if trouble else f"by {self._proposals.name}"
        self.name = f"{self._mongo.name}, searched {how}"
