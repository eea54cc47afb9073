"""A search by words, by meaning, or by both: what is asked, what is found, and how each find came to its place.

Meaning only ever adds: where it cannot be had, words alone answer, and the answer says so. Who may be told of what is
not decided here: a `Readable` is all that one session can find.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from notebook_sync.errors import UsageError
from notebook_sync.mirror.base import LARGEST_LIMIT, Document
from notebook_sync.patience import Silence
from notebook_sync.search.fusion import Fused, fuse
from notebook_sync.search.query_meaning import NoMeaning, answered, catch_up, vector_of
from notebook_sync.search.snippets import says_below, snippet_of, words_of
from notebook_sync.settings import SearchSettings

if TYPE_CHECKING:
    from notebook_sync.search.base import Embedder, Near, Vector, Vectors
    from notebook_sync.search.embedding import Backlog

# Why there is no search by meaning, and what to do.
OFF = 'embeddings are off: say embeddings = "wordllama" below [search] in notebook.toml'
KEYWORD, SEMANTIC, HYBRID = MODES = ("keyword", "semantic", "hybrid")


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and how it is to be answered. `mode` "" is hybrid where there are embeddings, else keyword.

    section: an anchor or a heading. By words, notes that say any of them below it; by meaning, the passages right below
    it. snippet, explain: tell beside each row where the query is met, and how the row came to its place. cosine: tell
    beside each row how near its meaning is to the query's, 0 where that is not known.
    """

    query: str
    mode: str = ""
    section: str = ""
    snippet: bool = False
    explain: bool = False
    cosine: bool = False


@dataclass(frozen=True, slots=True)
class Searched:
    """Rows, the best first, each with its `score`: by words that of the store, by meaning the cosine, by both 0 to 1.

    mode: what was done. degraded: why that is less than was asked for, else "". behind: how many of the notes that
    might have been found have no vectors yet, or older ones.
    """

    results: list[Document]
    mode: str
    degraded: str = ""
    behind: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--report` prints."""
        return {"results": self.results, "mode": self.mode, "degraded": self.degraded, "behind": self.behind}


class Readable(Protocol):
    """What one session may be told of, of the notes that one filter admits."""

    is_everything: bool
    """Whether that is every note there is."""
    folders: Collection[str] | None
    """Those of private notes that it may read; None for all."""

    def by_words(self, query: str, count: int) -> Sequence[Document]:
        """Light rows of the notes that match any of the words, best first, with their scores."""

    def rows(self, ids: Collection[str]) -> Mapping[str, Document]:
        """Light rows of those of these notes of which the session is shown all that they say."""

    def meant(self, rows: Sequence[Document]) -> Collection[str]:
        """The ids of those of these rows of which the session is shown all that they say."""

    def few(self) -> Collection[str] | None:
        """The ids of all that the filter admits where those are few, None where they are many."""

    def texts(self, rows: Sequence[Document]) -> Mapping[str, Document]:
        """The documents of these rows, by id, as the session is shown them; without those that cannot be had."""

    def lines_before(self, document: Document) -> int:
        """How many lines of its file stand before a document's content, where none of its sections tells that."""


class Searching:
    """Of one notebook, for any number of threads. Embedder, vectors and backlog are opened when they are first asked;
    for words alone, none of them."""

    def __init__(
        self,
        settings: SearchSettings,
        embedder: Callable[[], Embedder | None],
        vectors: Callable[[], Vectors],
        backlog: Callable[[], Backlog],
    ) -> None:
        self._settings = settings
        self._embedder = embedder
        self._vectors = vectors
        self._backlog = backlog
        self._of_embedder, self._of_vectors = Silence(), Silence()

    def find(self, asked: Asked, limit: int, readable: Readable) -> Searched:
        """What answers. Raises UsageError, and BackendDown where the mirror itself is away."""
        mode = _mode_of(asked.mode, self._settings)
        if limit < 1:
            return Searched([], mode)
        if mode == KEYWORD:
            is_less = asked.mode == HYBRID
            return self._words_alone(asked, limit, readable, OFF if is_less else "")
        # For one section each text is read, so no more are looked for than are told.
        count = limit if asked.section else max(limit, _OF_WORDS)
        words = _Words() if mode == SEMANTIC else _by_words(asked, count, readable)
        try:
            meant = self._by_meaning(asked, max(limit, _NEAREST), readable, words)
        except NoMeaning as trouble:
            return self._words_alone(asked, limit, readable, str(trouble))
        finds = _fused(words, meant, self._settings.meaning, limit, readable)
        return Searched(_told(finds, asked, mode, readable), mode, words.cut_short, meant.behind)

    def _words_alone(self, asked: Asked, limit: int, readable: Readable, degraded: str) -> Searched:
        words = _by_words(asked, limit, readable)
        finds = _fused(words, _Meant(), 0.0, limit, readable)
        behind = self._behind_now(readable) if degraded else 0
        return Searched(_told(finds, asked, KEYWORD, readable), KEYWORD, degraded or words.cut_short, behind)

    def _behind_now(self, readable: Readable) -> int:
        """How many are behind, also where nobody could embed them; 0 where the store of vectors does not tell."""
        embedder = self._embedder()
        if embedder is None:
            return 0
        with suppress(NoMeaning):
            return answered(self._of_vectors, lambda: _behind(self._vectors(), embedder.model, readable))
        return 0

    def _by_meaning(self, asked: Asked, count: int, readable: Readable, words: _Words) -> _Meant:
        """The notes nearest to the query, and all that words found. Raises NoMeaning where nothing can be said."""
        embedder = self._embedder()
        if embedder is None:
            raise NoMeaning(OFF)
        query = vector_of(asked.query, "query", embedder, self._of_embedder)
        return answered(self._of_vectors, lambda: self._nearest(embedder, query, asked, count, readable, words))

    def _nearest(
        self, embedder: Embedder, query: Vector, asked: Asked, count: int, readable: Readable, words: _Words
    ) -> _Meant:
        vectors, model, section = self._vectors(), embedder.model, _anchor(asked.section)
        vectors.expect(model, len(query))
        if embedder.is_local:
            catch_up(vectors, model, self._backlog)
        near = _near(vectors, model, query, count, readable, section)
        others = words.rows.keys() - {one.note_id for one in near}
        if others and (meant := readable.meant([words.rows[note_id] for note_id in others])):
            near += vectors.nearest(model, query, len(meant), among=meant, section=section)
        behind = _behind(vectors, model, readable)
        if behind and not near:
            raise NoMeaning(f"{behind:,} notes have no vectors yet" if behind > 1 else "1 note has no vectors yet")
        # Who asks for meaning alone asks for the nearest, however far. Beside words, what has nothing to do with the
        # query would only be in the way.
        least = embedder.unrelated if asked.mode != SEMANTIC else 0.0
        told = (one for one in near if one.similarity > (0.0 if one.note_id in words.rows else least))
        return _Meant({one.note_id: one for one in told}, behind)


# Of so many notes that words find, and so many that meaning does, the best by both are told.
_OF_WORDS, _NEAREST = 100, 25
# So many more are asked for as the session may not be told of: mostly that is enough.
_SPARE = 25
# So many texts are looked through for one section, at the most.
_MOST_TEXTS = 2_000


@dataclass(frozen=True, slots=True)
class _Words:
    """What words found, by id, best first. `cut_short`: why that may not be all."""

    rows: Mapping[str, Document] = field(default_factory=dict)
    cut_short: str = ""


@dataclass(frozen=True, slots=True)
class _Meant:
    """How near notes are, by id: the nearest, and what words found."""

    near: Mapping[str, Near] = field(default_factory=dict)
    behind: int = 0


@dataclass(frozen=True, slots=True)
class _Find:
    """A row, how it came to its score, its rank among what words found (0 for none), and its nearest passage."""

    row: Document
    fused: Fused
    rank: int
    near: Near | None


def _mode_of(named: str, settings: SearchSettings) -> str:
    is_on = settings.embeddings != "off"
    if named and named not in MODES:
        raise UsageError(f"there is no mode {named!r}; use one of {', '.join(MODES)}")
    if named == SEMANTIC and not is_on:
        raise UsageError(f"no search by meaning: {OFF}")
    return (named or HYBRID) if is_on else KEYWORD


def _by_words(asked: Asked, count: int, readable: Readable) -> _Words:
    if not asked.section:
        return _Words({row["id"]: row for row in readable.by_words(asked.query, count)})
    words = words_of(asked.query)
    found: dict[str, Document] = {}
    looked, taken = 0, min(count, _MOST_TEXTS)
    while True:
        rows = readable.by_words(asked.query, taken)
        texts = readable.texts(rows[looked:])
        fitting = (row for row in rows[looked:] if row["id"] in texts)
        found |= {row["id"]: row for row in fitting if says_below(texts[row["id"]], asked.section, words)}
        if len(found) >= count or len(rows) < taken:
            return _Words(dict(list(found.items())[:count]))
        if taken == _MOST_TEXTS:
            return _Words(found, f"only the {taken:,} notes that fit best were looked through for that section")
        looked, taken = taken, min(taken * 4, _MOST_TEXTS)


def _anchor(section: str) -> str:
    """The anchor that a heading has where no other of its note is spelled alike."""
    from prompt.outline import anchors_of

    return anchors_of([section.lstrip("#")])[0] if section else ""


def _near(vectors: Vectors, model: str, query: Vector, count: int, readable: Readable, section: str) -> list[Near]:
    """The nearest notes that the session may be told of."""
    if readable.is_everything:
        return vectors.nearest(model, query, count, section=section)
    few = readable.few()
    asked = count + _SPARE if few is None else len(few)
    while True:
        near = vectors.nearest(model, query, asked, among=few, section=section, folders=readable.folders)
        rows = readable.rows([one.note_id for one in near])
        told = [one for one in near if one.note_id in rows][:count]
        if len(told) == count or len(near) < asked or few is not None or asked == LARGEST_LIMIT:
            return told
        asked = min(asked * 4, LARGEST_LIMIT)


def _behind(vectors: Vectors, model: str, readable: Readable) -> int:
    """How many are behind of the notes that the session may be told of: of no other it learns that it is there."""
    if not vectors.behind(model, 1):
        return 0
    if readable.is_everything:
        return vectors.counts(model).behind
    return len(readable.rows(vectors.behind(model, LARGEST_LIMIT)))


def _fused(words: _Words, meant: _Meant, share: float, limit: int, readable: Readable) -> list[_Find]:
    """The best by both. A note that is gone by now is left out."""
    scores = {note_id: row["score"] for note_id, row in words.rows.items()}
    ranks = {note_id: rank for rank, note_id in enumerate(scores, start=1)}
    best = fuse(scores, {note_id: near.similarity for note_id, near in meant.near.items()}, share)[:limit]
    missing = [one.note_id for one in best if one.note_id not in words.rows]
    rows = {**words.rows, **(readable.rows(missing) if missing else {})}
    return [
        _Find(rows[one.note_id], one, ranks.get(one.note_id, 0), meant.near.get(one.note_id))
        for one in best
        if one.note_id in rows
    ]


def _told(finds: Sequence[_Find], asked: Asked, mode: str, readable: Readable) -> list[Document]:
    texts = readable.texts([find.row for find in finds]) if asked.snippet or asked.explain else {}
    words = words_of(asked.query)
    rows = []
    for find in finds:
        row = {**find.row, "score": _score(find, mode)}
        document, near = texts.get(row["id"]), find.near.place if find.near else None
        before = readable.lines_before(document) if document else 0
        if asked.snippet:
            quoted = document and snippet_of(document, words, near=near, section=asked.section)
            row["snippet"] = quoted and {**quoted, "line": quoted["line"] + before}
        if asked.cosine:
            row["cosine"] = float(find.near.similarity) if find.near else 0.0
        if asked.explain:
            row["explain"] = _explained(find, mode, before)
        rows.append(row)
    return rows


def _score(find: _Find, mode: str) -> float:
    if mode == KEYWORD:
        return float(find.row["score"])
    return float(find.near.similarity) if mode == SEMANTIC and find.near else find.fused.score


def _explained(find: _Find, mode: str, before: int) -> dict[str, Any]:
    """How the row came to its score: by words and meaning, `(1 - share) x words.part + share x meaning.part`."""
    fused, near = find.fused, find.near
    of_words = {"score": find.row["score"], "rank": find.rank, "part": fused.words} if find.rank else None
    return {
        "words": of_words,
        "meaning": near and {"similarity": float(near.similarity), "part": fused.meaning},
        "share": fused.share,
        "score": _score(find, mode),
        "passage": near and {"section": near.place.anchor, "line": near.place.line + before},
    }
