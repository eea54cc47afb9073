"""Search: what is asked, what is found, and how each result got its score.

Who may see what is the caller's `Where`: rows outside it are no candidates, and no statistics come from rows that some
session may not read. Without vectors, words alone answer, and the answer says why.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from posixpath import dirname
from typing import Literal, NamedTuple

from notebook_sync.errors import BackendDown, MissingExtra
from notebook_sync.model import is_current
from notebook_sync.search.embed import Embedder
from notebook_sync.search.meaning import SECOND_STAGE, Meaning, Nearness, Spans, is_within
from notebook_sync.search.ranking import (
    OUTDATED,
    Features,
    Question,
    best_of,
    likeness,
    natural_order,
    passage_rarity,
    score_of,
    with_neighbours,
)
from notebook_sync.search.terms import (
    NO_TERMS,
    Sections,
    Snippet,
    best_passage,
    passages_of,
    search_columns,
    snippet_of,
    texts_to_embed,
)
from notebook_sync.search.vectors import Vector, cosines_of
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.store.index import Index
from notebook_sync.store.rows import EVERYTHING, Is, Row, Where, both

Mode = Literal["hybrid", "keyword", "semantic"]
Name = Literal["documents", "facts"]

# Candidates by words alone, and by each of words and meaning. They do not depend on the limit: a smaller limit gives a
# prefix.
BY_WORDS, BY_MEANING = 100, 50
# So many times the candidates by meaning are looked at first: most sessions may read most rows.
_MORE = 3
# Words up to which a note is short enough to be raised by its neighbours: about 600 characters.
_SHORT = 100
# Words of a query whose rarity counts for its meaning.
_MOST_WORDS = 300
_SOME_BEHIND = "some notes have no vectors yet"
_OFF = "embeddings are off in notebook.toml"
_WORDS_ONLY = "found by words alone: no embedding server is asked for short texts"
_SECOND_BEHIND = "the second stage lacks some notes; `watch`, `serve` and `mcp` embed them"


class Hit(NamedTuple):
    """One result. `parts` says how the score came about, if that was asked for."""

    id: str
    score: float
    snippet: Snippet | None
    parts: dict[str, float] | None


class Found(NamedTuple):
    """Hits, best first. `degraded`: why meaning does not count, or not for all notes; None if it does or need not."""

    hits: list[Hit]
    degraded: str | None


class Asked(NamedTuple):
    """A query, ready for one collection. `vector` is None without meaning, and `degraded` may say why. What is not
    nearer than `unrelated`, and has no word of the query, is no result. `second` is the vector of the second stage."""

    collection: Name
    question: Question
    vector: Vector | None
    unrelated: float
    degraded: str | None
    now: datetime
    second: Vector | None


class _Candidate(NamedTuple):
    """A row and how well it answers. `spans`: which parts of its content count, None for all. `second`: the cosine of
    the second stage, None where there is none."""

    row: Row
    features: Features
    near: Nearness
    spans: Spans | None = None
    second: float | None = None

    def score(self, asked: Asked) -> float:
        if self.features.bm25 or self.near.cosine > asked.unrelated:
            return score_of(self.features, self.near.cosine, self.second or 0.0) * self.currency(asked)
        return 0.0

    def currency(self, asked: Asked) -> float:
        """What the score is multiplied by: less than 1 for a note that no longer holds."""
        still = is_current(self.row.get("superseded_by"), self.row.get("valid_until"), asked.now)
        return 1.0 if still else OUTDATED


class Searcher:
    """Finds rows of one index. May be used by several threads. `meaning` is None if embeddings are off,
    `second` without a second stage."""

    def __init__(
        self, index: Index, analyzer: WordAnalyzer, embedder: Embedder | None, second: Embedder | None = None
    ) -> None:
        self.meaning = Meaning(index, embedder) if embedder else None
        self.second = Meaning(index, second, stage=SECOND_STAGE) if second else None
        self._index = index
        self._analyzer = analyzer
        self._lengths: dict[Name, tuple[int, float]] = {}

    def search(
        self,
        query: str,
        *,
        where: Where = EVERYTHING,
        collection: Name = "documents",
        mode: Mode = "hybrid",
        limit: int = 10,
        section: str = "",
        explain: bool = False,
    ) -> Found:
        """The rows that match `where` and answer the query, best first; those below half of the best are left out.

        A smaller `limit` gives a prefix of a larger one; equal scores are in order of id. `section`: an anchor or a
        heading, and only what is below it counts. If meaning is not to be had, the words decide in every mode.
        """
        behind = _SOME_BEHIND if mode != "keyword" and self.meaning and self.meaning.catch_up() else None
        asked = self.ask(query, collection, mode)
        found = self._candidates(asked, where)
        chains: list[list[str]] = []
        if section:
            found = self._in_section(asked, found, section)
        else:
            chains = self._add_neighbours(asked, where, found)
        scores = {id: score for id, each in found.items() if (score := each.score(asked)) > 0}
        best = best_of(with_neighbours(scores, chains))[: max(limit, 0)]
        fields = ("content", "sections") if collection == "documents" else ("content",)
        texts = self._rows(collection, [id for id, _ in best], *fields, where=where)
        if not section:  # what of a section is nearest is known
            quoted = self._nearness(asked, texts)
            found |= {id: found[id]._replace(near=each) for id, each in quoted.items()}
        hits = [
            Hit(
                id,
                score,
                self._quote(asked, found[id], texts[id]),
                _parts(asked, found[id], score - scores[id]) if explain else None,
            )
            for id, score in best
            if id in texts
        ]
        if asked.second is not None and not section and any(found[id].second is None for id, _ in best):
            behind = behind or _SECOND_BEHIND
        return Found(hits, asked.degraded or behind)

    def rate(
        self, query: str, *, where: Where, among: Collection[str], collection: Name = "documents"
    ) -> tuple[dict[str, float], str | None]:
        """How well rows answer the query, 0 to 1, of those that do: the most promising that match `where`, and all of
        `among`, which match it, too; neighbours raise each other. And why meaning does not count, or not for all."""
        behind = self.meaning is not None and self.meaning.catch_up()
        asked = self.ask(query, collection, "hybrid")
        found = self._candidates(asked, where)
        found |= self._scored(asked, where, set(among) - found.keys())
        chains = self._add_neighbours(asked, where, found)
        rated = dict[str, float]()
        for id, each in found.items():
            if each.score(asked) > 0:
                cosine = None if asked.vector is None else each.near.cosine
                rated[id] = likeness(each.features, cosine) * each.currency(asked)
        raised = {id: min(score, 1.0) for id, score in with_neighbours(rated, chains).items()}
        return raised, asked.degraded or (_SOME_BEHIND if behind else None)

    def score_text(
        self, query: str, title: str, summary: str, content: str, sections: Sections, *, mode: Mode = "hybrid"
    ) -> tuple[float, Snippet | None]:
        """The score that a text would have as a document, 0 if it does not answer; and what to quote of it."""
        asked = self.ask(query, mode=mode)
        terms = search_columns(self._analyzer, content, title=title, summary=summary, sections=sections)["terms"]
        near = Nearness()
        if self.meaning and self.meaning.embedder.is_local and asked.vector is not None:
            vectors = self.meaning.embedder.embed([text for _, text in texts_to_embed(title, content, sections)])
            near = Nearness(max([0.0, *cosines_of(asked.vector, b"".join(vectors))]))
        row = {"content": content, "sections": sections, "terms": terms}
        candidate = _Candidate(row, asked.question.features(terms), near)
        score = candidate.score(asked)
        return score, self._quote(asked, candidate, row) if score > 0 else None

    def vectors_of(self, query: str, texts: Sequence[str]) -> tuple[Vector, list[Vector]] | str:
        """The vectors of a query and of texts that the index has none of; or why there are none, "" with embeddings
        off. No server is asked for texts."""
        if self.meaning is None or not self.meaning.embedder.is_local:
            return _WORDS_ONLY if self.meaning else ""
        asked = self.ask(query)
        try:
            return (
                (asked.degraded or "") if asked.vector is None else (asked.vector, self.meaning.embedder.embed(texts))
            )
        except (BackendDown, MissingExtra) as error:
            return str(error)

    # ---- the query

    def ask(self, query: str, collection: Name = "documents", mode: Mode = "hybrid") -> Asked:
        """A query of any length, ready to be compared with rows."""
        terms = self._analyzer.query_terms(query)
        every = {*terms, *(self._analyzer.terms(query)[:_MOST_WORDS] if mode != "keyword" else ())}
        total, having = self._index.collections[collection].frequencies(sorted(every))
        length = self._average_length(collection, total)

        def rarity(word: str) -> float:
            notes = max((having.get(term, 0) for term in self._analyzer.terms(word)), default=0)
            return passage_rarity(total, notes, length)

        vector, unrelated, degraded = None, 0.0, _OFF if mode == "semantic" else None
        if mode != "keyword" and self.meaning:
            vector, degraded = self.meaning.of(query, rarity)
            unrelated = self.meaning.embedder.unrelated
        second, without = self.second.of(query, rarity) if mode != "keyword" and self.second else (None, None)
        by_meaning = mode == "semantic" and vector is not None
        question = Question.of(() if by_meaning else terms, total, having, length)
        degraded = degraded or (without and f"the second stage: {without}")
        return Asked(collection, question, vector, unrelated, degraded, datetime.now(UTC), second)

    def _average_length(self, collection: Name, total: int) -> float:
        """Words of a row that everybody may read; remembered until the number of such rows changes."""
        if self._lengths.get(collection, (-1, 0.0))[0] != total:
            field = "word_count" if collection == "documents" else "content"
            cells = self._index.collections[collection].distinct(field, Is("audience", "=", ""))
            words = sum(count * (cell if isinstance(cell, int) else len(cell.split())) for cell, count in cells.items())
            self._lengths[collection] = total, words / max(sum(cells.values()), 1)
        return self._lengths[collection][1]

    # ---- candidates

    def _candidates(self, asked: Asked, where: Where) -> dict[str, _Candidate]:
        limit = BY_WORDS if asked.vector is None else BY_MEANING
        rows = self._index.collections[asked.collection]
        found = rows.search(list(asked.question.weights), where, limit=limit, private=True)
        return self._scored(asked, where, found.keys() | set(self.nearest(asked, where)))

    def nearest(self, asked: Asked, where: Where) -> list[str]:
        """The ids of the nearest of the rows that match, nearest first; none without meaning. Of few rows, one look
        tells; all are listed only where too few match."""
        if self.meaning is None or asked.vector is None:
            return []
        rows, vectors = self._index.collections[asked.collection], self.meaning.vectors[asked.collection]
        near = [id for id, _ in vectors.nearest(asked.vector, _MORE * BY_MEANING)]
        among = {id for (id,) in rows.tuples(("id",), both(where, Is("id", "in", near)))}
        if len(among) >= BY_MEANING or len(near) < _MORE * BY_MEANING:
            return [id for id in near if id in among][:BY_MEANING]
        among = {id for (id,) in rows.tuples(("id",), where)}
        return [id for id, _ in vectors.nearest(asked.vector, BY_MEANING, among)] if among else []

    def _scored(self, asked: Asked, where: Where, ids: Collection[str]) -> dict[str, _Candidate]:
        light = (
            ("path", "title", "word_count", "superseded_by", "valid_until") if asked.collection == "documents" else ()
        )
        rows = self._rows(asked.collection, ids, "terms", *light, where=where)
        near: dict[str, float] = {}
        if self.meaning and asked.vector is not None:
            near = self.meaning.vectors[asked.collection].cosines(asked.vector, rows.keys())
        found = {
            id: _Candidate(row, asked.question.features(row["terms"] or NO_TERMS), Nearness(near.get(id, 0.0)))
            for id, row in rows.items()
        }
        if self.second and asked.second is not None:
            second = self.second.vectors[asked.collection].cosines(asked.second, rows.keys())
            found = {id: each._replace(second=second.get(id)) for id, each in found.items()}
        return found

    def _in_section(self, asked: Asked, found: Mapping[str, _Candidate], section: str) -> dict[str, _Candidate]:
        """The candidates with such a section, by what is below it."""
        wanted = section.lstrip("#").strip().casefold()
        rows = self._rows(asked.collection, found, "content", "sections")
        spans: dict[str, Spans] = {}
        for id, row in rows.items():
            named = [each for each in row["sections"] or () if wanted in (each[2], each[0].casefold())]
            if named:
                spans[id] = [(each[4], each[5]) for each in named]
        near = self._nearness(asked, spans, spans)
        below: dict[str, _Candidate] = {}
        for id, parts in spans.items():
            text = "\n\n".join(rows[id]["content"][start:end] for start, end in parts)
            features = asked.question.features(search_columns(self._analyzer, text)["terms"])
            below[id] = _Candidate(found[id].row, features, near.get(id, Nearness()), parts)
        return below

    def _add_neighbours(self, asked: Asked, where: Where, found: dict[str, _Candidate]) -> list[list[str]]:
        """Add to the candidates those that raise their scores, and return the chains that they are in."""
        chains = self._chains(where, found) if asked.collection == "documents" else []
        near = {id for chain in chains for at, id in enumerate(chain) if found.keys() & chain[max(at - 2, 0) : at + 3]}
        found |= self._scored(asked, where, near - found.keys())
        return chains

    def _chains(self, where: Where, found: Mapping[str, _Candidate]) -> list[list[str]]:
        """Short notes of one folder and title, in natural order of their paths: turns of a conversation, a log.

        Only where two of them are candidates: others have nothing to share.
        """
        short = [each.row for each in found.values() if (each.row["word_count"] or 0) <= _SHORT and each.row["title"]]
        homes = Counter((dirname(row["path"] or ""), row["title"]) for row in short)
        titles = sorted({title for (_, title), count in homes.items() if count > 1})
        alike = both(where, Is("title", "in", titles), Is("word_count", "<=", _SHORT))
        chains = defaultdict(list)
        for id, path, title in self._index.documents.tuples(("id", "path", "title"), alike) if titles else ():
            if homes[dirname(path or ""), title] > 1:
                chains[dirname(path or ""), title].append((natural_order(path or ""), id))
        return [[id for _, id in sorted(chain)] for chain in chains.values()]

    def _nearness(
        self, asked: Asked, ids: Collection[str], spans: Mapping[str, Spans] | None = None
    ) -> dict[str, Nearness]:
        if self.meaning is None or asked.vector is None:
            return {}
        return self.meaning.nearness(asked.vector, asked.collection, ids, spans)

    def _rows(self, collection: Name, ids: Collection[str], *fields: str, where: Where = EVERYTHING) -> dict[str, Row]:
        listed = Is("id", "in", list(ids))
        found = self._index.collections[collection].find(both(where, listed), fields=("id", *fields)) if ids else []
        return {row["id"]: row for row in found}

    # ---- snippets

    def _quote(self, asked: Asked, candidate: _Candidate, row: Row) -> Snippet | None:
        passages = passages_of(row["content"] or "", row.get("sections") or ())
        kinds = asked.question.kinds(candidate.row["terms"] or NO_TERMS)
        counted = [
            (passage, count)
            for passage, count in zip(passages, kinds, strict=False)  # the note may have changed since
            if candidate.spans is None or is_within(passage.start, candidate.spans)
        ]
        chosen = best_passage(counted, candidate.near.start)
        wanted = asked.question.weights.keys()
        return chosen and snippet_of(chosen, lambda text: self._analyzer.first_place(text, wanted))


def _parts(asked: Asked, candidate: _Candidate, neighbours: float) -> dict[str, float]:
    parts = {**candidate.features._asdict(), "meaning": candidate.near.cosine, "neighbours": neighbours}
    parts |= {"outdated": OUTDATED} if candidate.currency(asked) < 1 else {}
    if candidate.second is not None:
        parts["second_stage"] = candidate.second
    return {name: round(value, 4) for name, value in parts.items()}
