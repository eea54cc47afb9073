"""How alike facts are to a text: by meaning where both have vectors, else by their words.

An embedder or a store that does not answer costs meaning, never the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from rapidfuzz import fuzz

from notebook_sync.errors import BackendDown
from notebook_sync.mirror.fact_store import cosines
from notebook_sync.mirror.facts import FactRows
from notebook_sync.notes.facts.alike import folded
from notebook_sync.patience import Silence, answer_within

if TYPE_CHECKING:
    from notebook_sync.notes.facts.alike import Means
    from notebook_sync.search.base import Embedder, Vector

By = Literal["meaning", "words"]

# How many facts without a vector a question may wait for, here and where each batch asks a server.
_MOST_HERE, _MOST_AWAY = 20_000, 256
# From which cosine on two single words mean the same.
_ONE_MEANING = 0.5
_BETWEEN_WORDS = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class Nearness:
    """What is near to `text`. `vector` is that of the text, `known` those of facts by id; none where there is no
    meaning to go by. `means` is as `fact_alike.difference` takes it. `trouble`: why the embedder made no vector of the
    text, so that words alone decide, or none of facts that lacked theirs; "" for who writes where others lack theirs,
    and where the store does not give its vectors."""

    text: str
    vector: Vector | None = None
    known: Mapping[str, Vector] = field(default_factory=dict)
    means: Means | None = None
    trouble: str = ""

    @property
    def warnings(self) -> list[str]:
        """What is told beside what was decided by it."""
        return [f"compared with other facts by words alone: {self.trouble}"] if self.trouble else []

    def to(self, facts: Sequence[tuple[str, str]]) -> list[tuple[float, By]]:
        """How like the text each of these is, 0 to 1, given the id and the text of each."""
        having = [note_id for note_id, _ in facts if self.vector is not None and note_id in self.known]
        alike: dict[str, float] = {}
        if self.vector is not None:
            alike = dict(zip(having, cosines([self.known[note_id] for note_id in having], self.vector), strict=True))
        return [
            (max(0.0, alike[note_id]), "meaning") if note_id in alike else (_by_words(self.text, content), "words")
            for note_id, content in facts
        ]


class FactNear:
    """Makes them, for one notebook. Both the store and the embedder are opened when they are first asked for; `embed`
    gives facts that lack vectors theirs, so many at most; `silence` is the store's, which is waited for `patience`
    seconds at most before it is taken for silent; and a server that embeds for `hurry` seconds, by who writes."""

    def __init__(
        self,
        rows: Callable[[], FactRows],
        embedder: Callable[[], Embedder | None],
        embed: Callable[[FactRows, Embedder, int], object],
        silence: Silence,
        patience: float,
        hurry: float,
    ) -> None:
        self._rows = rows
        self._embedder = embedder
        self._embed = embed
        self._of_embedder, self._of_rows = Silence(), silence
        # Too late for who is in a hurry is no silence for who is not.
        self._of_hurried = Silence()
        self._patience = patience
        self._hurry = hurry

    def text(self, text: str) -> Nearness:
        """What is near to a text."""
        return self.texts([text])[0]

    def texts(self, texts: Sequence[str]) -> list[Nearness]:
        """What is near to each of several texts."""
        return self._near(texts, self.vectors, None)

    def texts_to_write(self, texts: Sequence[str]) -> list[Nearness]:
        """The same for who is about to write them down, which is not to wait for a server: it is given little time for
        all of them, and is not asked for the vectors that other facts lack."""
        embedder = self._embedder()
        if embedder is None or embedder.is_local:
            return self.texts(texts)
        return self._near(texts, lambda: self._known(embedder), self._hurry)

    def vectors(self) -> Mapping[str, Vector]:
        """The vectors of facts, by id. Those that have none yet get one, as many as can be waited for."""
        embedder = self._embedder()
        return {} if embedder is None else self._known(embedder, make=True)

    def _near(
        self, texts: Sequence[str], known: Callable[[], Mapping[str, Vector]], seconds: float | None
    ) -> list[Nearness]:
        embedder = self._embedder()
        if not texts or embedder is None:
            return [Nearness(text) for text in texts]
        own = self._of_embedder if seconds is None else self._of_hurried
        if silent := self._of_embedder.trouble or own.trouble:
            return [Nearness(text, trouble=silent) for text in texts]
        try:
            vectors = embedder.embed(texts, seconds=seconds)
        except BackendDown as down:
            own.begin(str(down))
            return [Nearness(text, trouble=str(down)) for text in texts]
        comparable = {note_id: one for note_id, one in known().items() if one.shape == vectors[0].shape}
        means, trouble = _means(embedder) if embedder.is_local else None, self._of_embedder.trouble
        return [Nearness(text, vector, comparable, means, trouble) for text, vector in zip(texts, vectors, strict=True)]

    def _known(self, embedder: Embedder, *, make: bool = False) -> Mapping[str, Vector]:
        if self._of_rows.trouble:
            return {}
        try:
            rows = self._rows()
            answer_within(self._patience, rows.sources)  # a file is waiting for this
            known = rows.vectors(embedder.model)
            if not make or self._of_embedder.trouble or all(place.note_id in known for place in rows.places()):
                return _with_direction(known)
            self._make_vectors(rows, embedder)
            return _with_direction(rows.vectors(embedder.model))
        except BackendDown as down:
            self._of_rows.begin(str(down))
            return {}

    def _make_vectors(self, rows: FactRows, embedder: Embedder) -> None:
        """Those that have one are of use all the same where the embedder does not answer."""
        try:
            self._embed(rows, embedder, _MOST_HERE if embedder.is_local else _MOST_AWAY)
        except BackendDown as down:
            if down.backend == rows.name:
                raise
            self._of_embedder.begin(str(down))


def _with_direction(vectors: Mapping[str, Vector]) -> Mapping[str, Vector]:
    """Without those of facts that the embedder refuses, which are compared by their words."""
    return {note_id: vector for note_id, vector in vectors.items() if vector.any()}


def _means(embedder: Embedder) -> Means:
    """Of single words; where a server has to be asked for each, nobody waits for that."""

    def means(word: str, others: Sequence[str]) -> bool:
        vectors = embedder.embed([word, *others])
        return max(cosines(list(vectors[1:]), vectors[0]), default=0.0) >= _ONE_MEANING

    return means


def _by_words(one: str, other: str) -> float:
    """As they are written, or by what they say, whichever are the more alike."""
    written = fuzz.token_sort_ratio(one.casefold(), other.casefold(), processor=_spaced)
    return max(written, fuzz.token_sort_ratio(folded(one), folded(other))) / 100


def _spaced(text: str) -> str:
    return _BETWEEN_WORDS.sub(" ", text)
