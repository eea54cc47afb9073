"""What a query means, and how those are asked who may not answer that: the embedder, and where vectors are kept.

An embedder that does not answer costs meaning, never the answer; one that is off costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from notebook_sync.errors import BackendDown
from notebook_sync.patience import Silence
from notebook_sync.settings import SearchSettings

if TYPE_CHECKING:
    from notebook_sync.search.base import Embedder, Vector, Vectors
    from notebook_sync.search.embedding import Backlog

# Who looks by meaning embeds no more notes than these first; of a server, which may take long, nothing is asked for it.
_FEW_BEHIND = 200

_Answer = TypeVar("_Answer")


class Ranked(list[dict[str, Any]]):
    """Rows, best first. `degraded`: why words alone decide which, "" where what they mean counted too, or need not."""

    def __init__(self, rows: Iterable[dict[str, Any]] = (), degraded: str = "") -> None:
        super().__init__(rows)
        self.degraded = degraded


class NoMeaning(Exception):
    """Why nothing can be found by meaning."""


def answered(silence: Silence, ask: Callable[[], _Answer]) -> _Answer:
    """The answer of what may be away. Raises NoMeaning where it is, and for a while after without asking."""
    if silence.trouble:
        raise NoMeaning(silence.trouble)
    try:
        answer = ask()
    except BackendDown as down:
        silence.begin(str(down))
        raise NoMeaning(str(down)) from None
    silence.end()
    return answer


def vector_of(text: str, what: str, embedder: Embedder, silence: Silence) -> Vector:
    """The vector of a text, which is called `what`. Raises NoMeaning, also where the model knows no word of it."""
    vector: Vector = answered(silence, lambda: embedder.embed([text]))[0]
    if not vector.any():
        raise NoMeaning(f"the model of embeddings knows no word of this {what}")
    return vector


def catch_up(vectors: Vectors, model: str, backlog: Callable[[], Backlog]) -> None:
    """Embed what is behind where that is little. Where it cannot be written, what there is already answers."""
    if 0 < len(vectors.behind(model, _FEW_BEHIND + 1)) <= _FEW_BEHIND:
        with suppress(BackendDown):
            backlog().catch_up(limit=_FEW_BEHIND)


@dataclass(frozen=True, slots=True)
class Means:
    """`vector` is that of the query, made by `embedder`."""

    vector: Vector
    embedder: Embedder


class QueryMeanings:
    """Of one notebook, for any number of threads. The embedder is opened when it is first asked."""

    def __init__(self, settings: SearchSettings, embedder: Callable[[], Embedder | None]) -> None:
        self._settings = settings
        self._embedder = embedder
        self._silence = Silence()

    @property
    def is_on(self) -> bool:
        """Whether there are embeddings."""
        return self._settings.embeddings != "off"

    def of(self, query: str) -> Means | str:
        """What it means; or why that cannot be said, "" where embeddings are off."""
        if not self.is_on or (embedder := self._embedder()) is None:
            return ""
        try:
            return Means(vector_of(query, "query", embedder, self._silence), embedder)
        except NoMeaning as trouble:
            return str(trouble)
