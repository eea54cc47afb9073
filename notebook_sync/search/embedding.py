"""Giving notes that are behind their vectors: all at once, or by and by in the background. Text never waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from notebook_sync.errors import BackendDown
from notebook_sync.mirror.base import LARGEST_LIMIT, Mirror
from notebook_sync.search.base import Embedder, Passage, Vectored, Vectors
from notebook_sync.search.embedded import Embedded
from notebook_sync.search.passages import passages_of

# Few enough that whoever waits for the store or the processor is served in between.
_NOTES = 64
_PASSAGES = 256
_ROUND_SECONDS = 60.0
_TIDY_SECONDS = 600.0
_BACKOFF_SECONDS = (5.0, 300.0)
_REST_SECONDS = 0.2
_CLOSE_SECONDS = 1.0
_REFUSED_SECONDS = 600.0
# What no embedder refuses.
_HARMLESS = "note"


class Backlog:
    """The notes that are behind. Any number of threads and processes may work on it at once."""

    def __init__(self, mirror: Mirror, vectors: Vectors, embedder: Embedder) -> None:
        self._mirror = mirror
        self._vectors = vectors
        self._embedder = embedder
        self._refused: dict[str, tuple[str, float]] = {}
        self._told = 0

    @property
    def is_empty(self) -> bool:
        """Whether no note is behind, as far as can be told while the embedder is away."""
        with suppress(BackendDown):
            self._expect()
        return not self._vectors.behind(self._embedder.model, 1)

    def catch_up(
        self,
        progress: Callable[[int, int], None] | None = None,
        limit: int | None = None,
        *,
        rest: Callable[[float], bool] = lambda _: False,
    ) -> Embedded:
        """Embed what is behind, `limit` notes at the most, each once: one of which no vectors can be made is counted.

        `progress` is told how many are done of how many. `rest` is called after each batch with the seconds it took,
        and says whether to stop. Raises BackendDown where a store or the embedder is away; what was done stays.
        """
        begun, done, failed = time.monotonic(), 0, 0
        model = self._embedder.model
        self._expect()
        total = min(self._vectors.counts(model).behind, LARGEST_LIMIT if limit is None else limit)
        for ids in self._batches(model, total):
            batch_begun = time.monotonic()
            embedded, refused = self._embed(ids)
            done, failed = done + embedded, failed + refused
            if progress:
                progress(min(done + failed, total), total)
            if rest(time.monotonic() - batch_begun):
                break
        return Embedded(model, done, self._vectors.counts(model).behind, failed, round(time.monotonic() - begun, 3))

    def embed(self, ids: Sequence[str]) -> None:
        """Embed these notes, some at a time. Raises as `catch_up`."""
        for start in range(0, len(ids), _NOTES):
            self._embed(ids[start : start + _NOTES])

    def tidy(self) -> int:
        """As `Vectors.tidy`."""
        return self._vectors.tidy()

    def _expect(self) -> None:
        """By the name that it had, a server may have another model by now. Its first answer tells, and is told once:
        another process may know better since."""
        dimensions = self._embedder.dimensions or self._embedder.embed([_HARMLESS]).shape[1]
        if dimensions != self._told:
            self._vectors.expect(self._embedder.model, dimensions)
            self._told = dimensions

    def _batches(self, model: str, most: int) -> Iterator[list[str]]:
        """Ids of notes that are behind, none of them twice: it may be behind again already, or stay so."""
        tried, again = set[str](), set[str]()
        while len(tried) < most:
            asked = len(again) + _NOTES
            behind = self._vectors.behind(model, asked)
            ids = [note_id for note_id in behind if note_id not in tried][: min(_NOTES, most - len(tried))]
            again |= tried.intersection(behind)
            if ids:
                tried |= set(ids)
                yield ids
            elif len(behind) < asked:
                return

    def _embed(self, ids: Sequence[str]) -> tuple[int, int]:
        """How many of these notes got vectors, and of how many none can be made."""
        notes, failed = [], 0
        for document in self._mirror.get_many(ids).values():
            note_id, digest = document["id"], document["source"]["digest"]
            if self._is_refused(note_id, digest):
                continue
            try:
                notes.append(_Note(note_id, digest, passages_of(document)))
            except Exception:  # whatever is wrong with one note, the others get their vectors
                failed += self._refuse(note_id, digest)
        embedded = 0
        for portion in _portions(notes):
            vectored = self._vectored(portion)
            if vectored:
                self._vectors.put(self._embedder.model, vectored)
            made = {one.note_id for one in vectored}
            embedded += len(made)
            failed += sum(self._refuse(note.note_id, note.digest) for note in portion if note.note_id not in made)
        return embedded, failed

    def _vectored(self, notes: Sequence[_Note]) -> list[Vectored]:
        """Those of these notes that the embedder takes. Raises BackendDown where it takes nothing at all."""
        try:
            return self._ask(notes)
        except BackendDown:
            if len(notes) > 1:
                return [one for note in notes for one in self._vectored([note])]
        self._embedder.embed([_HARMLESS])  # raises where it is not the note that is at fault
        return []

    def _ask(self, notes: Sequence[_Note]) -> list[Vectored]:
        matrix = self._embedder.embed([passage.text for note in notes for passage in note.passages])
        found, start = [], 0
        for note in notes:
            end = start + len(note.passages)
            places = [passage.place for passage in note.passages]
            found.append(Vectored(note.note_id, note.digest, places, matrix[start:end]))
            start = end
        return found

    def _is_refused(self, note_id: str, digest: str) -> bool:
        refused = self._refused.get(note_id)
        return refused is not None and refused[0] == digest and time.monotonic() < refused[1]

    def _refuse(self, note_id: str, digest: str) -> int:
        """Leave this note alone for a while, unless it changes."""
        self._refused[note_id] = digest, time.monotonic() + _REFUSED_SECONDS
        return 1


class Following:
    """A thread that embeds what comes to be behind, until it is closed. It keeps no process alive and hurries nobody.
    `beside` is done in each round when the notes are.

    Where a store or the embedder is away it waits, longer each time; `trouble` says why, "" where all is well.
    """

    def __init__(self, backlog: Callable[[], Backlog], beside: Callable[[], object] = lambda: None) -> None:
        self.trouble = ""
        self._backlog = backlog
        self._beside = beside
        self._asked, self._closing = threading.Event(), threading.Event()
        self._tidy_at = 0.0
        self._thread = threading.Thread(target=self._follow, name="embedding", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There may be something to embed: look now, not only at the next round."""
        self._asked.set()

    def close(self) -> None:
        """Stop after the batch that is under way. Twice is allowed."""
        self._closing.set()
        self._asked.set()
        self._thread.join(_CLOSE_SECONDS)

    def _follow(self) -> None:
        wait, longest = _BACKOFF_SECONDS
        while not self._closing.is_set():
            self._asked.clear()
            try:
                self._round()
            except Exception as error:  # nobody would see it, nor start the thread again
                self.trouble = str(error)
                self._closing.wait(wait)
                wait = min(2 * wait, longest)
            else:
                self.trouble, wait = "", _BACKOFF_SECONDS[0]
                self._asked.wait(_ROUND_SECONDS)

    def _round(self) -> None:
        backlog = self._backlog()
        if time.monotonic() >= self._tidy_at:
            backlog.tidy()
            self._tidy_at = time.monotonic() + _TIDY_SECONDS
        if not backlog.is_empty:
            backlog.catch_up(rest=self._rest)
        if not self._closing.is_set():
            with suppress(BackendDown):  # the next round does it
                self._beside()

    def _rest(self, worked: float) -> bool:
        """Leave the processor to others for as long as it was used."""
        return self._closing.wait(min(worked, _REST_SECONDS))


@dataclass(frozen=True, slots=True)
class _Note:
    note_id: str
    digest: str
    passages: Sequence[Passage]


def _portions(notes: Sequence[_Note]) -> Iterator[list[_Note]]:
    """Notes with so many passages together, or one with more."""
    portion, passages = list[_Note](), 0
    for note in notes:
        if portion and passages + len(note.passages) > _PASSAGES:
            yield portion
            portion, passages = [], 0
        portion.append(note)
        passages += len(note.passages)
    if portion:
        yield portion
