"""The memories that may help with a task: found by name, label, words, meaning and links, then ranked, and chosen so
that little is said twice.

No memory that the session may not read is looked up, nor one that others wrote, nor an archived one.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from operator import attrgetter
from typing import Any, NamedTuple

from notebook_sync.context.intent import Intent
from notebook_sync.model import id_from_path
from notebook_sync.search.ranking import bm25, fuse, mmr, rarity_of
from notebook_sync.search.terms import HEADING
from notebook_sync.search.vectors import cosine
from notebook_sync.services.core import Core
from notebook_sync.services.remembering import FOLDER, score_of_row
from notebook_sync.services.view import View
from notebook_sync.store.rows import EVERYTHING, Has, Is, Not, Row, Where, both
from notebook_sync.sync.project import fold_label, fold_tags
from prompt.assemble import Recent

# What is read of a candidate.
_COLUMNS = (
    *("id", "path", "title", "kind", "domain", "tags", "score", "needs_review", "digest", "words_digest"),
    *("fields", "created_at", "provenance", "status", "superseded_by"),
)
# What may be shown of what a session may read, and which of it are memories.
OPEN = both(Is("provenance", "=", ""), Is("status", "!=", "archived"))
_MEMORY = both(Is("path", "under", FOLDER), OPEN)
# The candidates that links are followed from, and those that are found so; the links of one memory that are read.
_MOST_LINKED, _MOST_LINKS = 30, 100
# Of the words that matter most, the rarest are looked for in the index, since others find too much; all of them say
# what the task means to a model of this machine. To count how many notes have a word is what they cost.
_RAREST, _AMONG, _STEEPNESS = 4, 16, 4
# So many times the memories with labels are looked at: what a caller excludes is among them.
_WIDER = 2
# What a domain counts for, against a tag.
_DOMAIN = 2
_LONGEST_AIM = 8_000
_SHARE_OF_MEANING = 0.4
# A link of another type brings nothing that helps.
_HELPFUL = ("causes", "solves", "contradicts", "expands")
# A memory below the first share of the best similarity shares a word by chance; from the second share on, and never
# below the third, it is there for its own sake.
_BY_CHANCE, _PRIMARY, _LEAST_PRIMARY = 0.1, 0.5, 0.3
# Terms of so many memories are remembered, about 5 KB each.
_MOST_REMEMBERED = 2_000


class Link(NamedTuple):
    """A link from the memory `source` to the memory `to`."""

    source: str
    type: str
    to: str
    confidence: float
    reasoning: str


class Wanted(NamedTuple):
    """What a caller narrows a brief to: memories of these domains ("any" where there are none), none with these tags.
    Both are folded. `asks_servers`: whether a server may be asked for meaning."""

    domains: frozenset[str]
    without_tags: frozenset[str]
    asks_servers: bool = True

    def fits(self, row: Row) -> bool:
        """Whether a memory, as its file is now, may be in a brief."""
        is_of_domain = not self.domains or fold_label(row["domain"]) in self.domains
        is_open = not row["provenance"] and row["status"] != "archived"
        return is_open and is_of_domain and self.without_tags.isdisjoint(row["tags"])


class Ranked(NamedTuple):
    """How a candidate was found, and its scores, each 0 to 1. `superseded_by` is the id of the memory that replaces it,
    "" for none; `cosine` is None without vectors."""

    found_by: list[str]
    cosine: float | None
    similarity: float
    score: float
    combined: float
    superseded_by: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Every candidate that has to do with the task, best first; the ids of those chosen, in order, and which of these
    are `primary`: there for their own sake.

    `rows` also has the memories at the other ends of `links`. `solved`: problems that some memory solves. `degraded`:
    why meaning does not count, None where it does.
    """

    ranked: Mapping[str, Ranked]
    chosen: tuple[str, ...]
    primary: frozenset[str]
    rows: Mapping[str, Row]
    links: Sequence[Link]
    solved: frozenset[str]
    degraded: str | None


class _Found(NamedTuple):
    """Candidates, in the order in which they were found; `others` are the memories at the other ends of their links.
    `ways`: the ids that are named, have a label, or are found by words, meaning or a link; all where memories are few.
    """

    ways: Mapping[str, list[str]]
    rows: Mapping[str, Row]
    others: Mapping[str, Row]
    links: Sequence[Link]
    solved: frozenset[str]


class _Labels(NamedTuple):
    """The memories of an index at one `rev` that everybody may read: scores by id; and by folded label, each id with
    what the label counts for: 2 as a domain, 1 as a tag."""

    rev: int
    scores: dict[str, float]
    ids: Mapping[str, Counter[str]]


class Candidates:
    """Finds the memories that may help with a task. Remembers what memories are labelled and which terms they have."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._labels = _Labels(-1, {}, {})
        self._counts: Recent[Counter[str]] = Recent(_MOST_REMEMBERED)

    def choose(self, view: View, intent: Intent, wanted: Wanted, limit: int) -> Choice:
        """The best `limit` memories for a task, which say little twice; superseded ones come last. Raises errors of the
        index."""
        settings, meaning, asked = self._core.settings.context, self._core.searcher.meaning, None
        if meaning and (wanted.asks_servers or meaning.embedder.is_local):
            meaning.catch_up()
            text = " ".join(intent.words[:_AMONG]) if meaning.embedder.is_local else intent.content
            asked = self._core.searcher.ask(f"{intent.title}\n{text[:_LONGEST_AIM]}")
        found = self._found(view, intent, wanted, asked)
        counts, cosines = self._counts_of(found.rows), dict[str, float]()
        directions: dict[str, array[float]] = {}
        if meaning and asked and asked.vector is not None:
            cosines = meaning.vectors["documents"].cosines(asked.vector, found.rows.keys())
            directions = meaning.vectors["documents"].directions(asked.vector, found.rows.keys())
        words = bm25(intent.keywords, counts)
        close = {id: each for id, each in cosines.items() if words.get(id) or (asked and each > asked.unrelated)}
        own = fuse(words, close, _SHARE_OF_MEANING) | dict.fromkeys(found.ways["named"], 1.0)
        ranked = _ranked(found, intent, own, cosines, settings.similarity)
        alike, chosen = _likeness(counts, directions), list[str]()
        for is_current in (True, False):
            scores = {id: each.combined for id, each in ranked.items() if is_current != bool(each.superseded_by)}
            chosen += mmr(scores, alike, settings.diversity, limit - len(chosen))
        least = max(_PRIMARY * max((ranked[id].similarity for id in chosen), default=0.0), _LEAST_PRIMARY)
        primary = (id for id in chosen if ranked[id].similarity >= least and not ranked[id].superseded_by)
        rows, degraded = {**found.others, **found.rows}, asked.degraded if asked else None
        return Choice(ranked, tuple(chosen), frozenset(primary), rows, found.links, found.solved, degraded)

    def _found(self, view: View, intent: Intent, wanted: Wanted, asked: Any) -> _Found:
        documents, most = self._core.index.documents, self._core.settings.context.prefilter
        labels, readable = self._current_labels(), both(view.whole, _MEMORY)
        where = both(readable, Not(Has("tags", tuple(wanted.without_tags))) if wanted.without_tags else EVERYTHING)
        if wanted.domains:
            worth = [item for domain in wanted.domains for item in labels.ids.get(domain, {}).items()]
            where = both(where, Is("id", "in", [id for id, count in worth if count >= _DOMAIN]))
        ways = {"named": named_notes(self._core, where, intent)}
        if len(labels.scores) <= most:
            ways["all"] = sorted(id for (id,) in documents.tuples(("id",), where))
        else:
            rare, third = self._rarest(intent), -(-most // 3)
            ways["label"] = self._by_labels(where, intent, labels, most)
            ways["words"] = list(documents.search(rare, where, limit=third, private=True))
            ways["meaning"] = self._core.searcher.nearest(asked, where)[:third] if asked else []
        turns = zip_longest(*ways.values())
        ids = list(dict.fromkeys(id for turn in turns for id in turn if id is not None))[:most]
        return self._with_linked(readable, where, ways, self._rows(where, ids))

    def _with_linked(self, readable: Where, where: Where, ways: dict[str, list[str]], rows: dict[str, Row]) -> _Found:
        """The candidates and those that links of the first lead to. What a caller excludes may solve a problem."""
        linking = self._core.index.documents.find(
            both(readable, Has("relations", tuple(rows))), fields=("id", "fields", "superseded_by")
        )
        sources = rows | {row["id"]: row for row in linking if row["id"] not in rows}
        every = sorted((link for row in sources.values() for link in _links_of(row)), key=attrgetter("reasoning"))
        links = [*{link[:3]: link for link in every if link.source in rows or link.to in rows}.values()]
        ends = {end for link in links for end in (link.source, link.to)}
        others = self._rows(where, sorted(ends - rows.keys()))
        solved, known = frozenset(link.to for link in links if link.type == "solves"), {*rows, *others}
        links = [link for link in links if link.source in known and link.to in known]
        near = list(rows)[:_MOST_LINKED]
        led_to = (end for link in links if link.source in near or link.to in near for end in (link.source, link.to))
        linked = [id for id in dict.fromkeys(led_to) if id in others][:_MOST_LINKED]
        found = rows | {id: others[id] for id in linked}
        return _Found({**ways, "linked": linked}, found, others, links, solved)

    def _current_labels(self) -> _Labels:
        index = self._core.index
        if self._labels.rev != (rev := index.rev()):
            labels = _Labels(rev, {}, defaultdict(Counter))
            fields, where = ("id", "domain", "tags", "score", "fields"), both(_MEMORY, Is("audience", "=", ""))
            for id, domain, tags, score, more in index.documents.tuples(fields, where):
                labels.scores[id] = score_of_row({"score": score, "fields": more})
                for label, worth in ((fold_label(domain), _DOMAIN), *((fold_label(tag), 1) for tag in tags)):
                    labels.ids[label][id] += worth
            self._labels = labels
        return self._labels

    def _by_labels(self, where: Where, intent: Intent, labels: _Labels, limit: int) -> list[str]:
        """Memories whose domain and tags fit best; of equal ones the score decides."""
        fits: Counter[str] = Counter()
        for label in intent.hints.union(fold_tags(intent.hints)):
            fits.update(labels.ids.get(label, {}))
        best = sorted(fits, key=lambda id: (-fits[id], -labels.scores[id], id))[: _WIDER * limit]
        shown = self._core.index.documents.tuples(("id",), both(where, Is("id", "in", best)))
        return sorted((id for (id,) in shown), key=best.index)[:limit]

    def _rarest(self, intent: Intent) -> list[str]:
        """Of the words that matter most, those that fewest notes have, by weight and rarity."""
        words = list(intent.keywords)[:_AMONG]
        total, having = self._core.index.documents.frequencies(words)
        known = [word for word in words if having.get(word)]
        worth = {word: intent.keywords[word] * rarity_of(total, having[word]) ** _STEEPNESS for word in known}
        return sorted(worth, key=lambda word: (-worth[word], word))[:_RAREST]

    def _rows(self, where: Where, ids: Sequence[str]) -> dict[str, Row]:
        """The rows of these memories, in this order."""
        found = self._core.index.documents.find(both(where, Is("id", "in", ids)), fields=_COLUMNS)
        rows = {row["id"]: row for row in found}
        return {id: rows[id] for id in ids if id in rows}

    def _counts_of(self, rows: Mapping[str, Row]) -> dict[str, Counter[str]]:
        """How often each memory has each term. What an index holds of a text is read once."""
        digests = {id: row["words_digest"] for id, row in rows.items()}
        missing = [id for id, digest in digests.items() if not self._counts.knows(digest)]
        terms = dict(self._core.index.documents.tuples(("id", "terms"), Is("id", "in", missing)))
        return {id: self._counts.get(digest, partial(_counted, terms.get(id))) for id, digest in digests.items()}


def named_notes(core: Core, where: Where, intent: Intent) -> list[str]:
    """The ids of the notes that a task names, by id or path, of those that match."""
    paths = [name if name.endswith(".md") else f"{name}.md" for name in intent.related]
    ids = [id_from_path(name) for name in intent.related]
    # One question after the other: for both at once, SQLite reads every row.
    named = (both(where, Is("path", "in", paths)), both(where, Is("id", "in", ids)))
    return sorted({id for each in named for (id,) in core.index.documents.tuples(("id",), each)})


def _counted(terms: str | None) -> Counter[str]:
    """The terms of a text as `search_columns` packs it, each with how often it has it."""
    counts = Counter((terms or "").split())
    del counts[HEADING]
    return counts


def _links_of(row: Row) -> list[Link]:
    """The links of a memory, as its frontmatter has them; one of them may lead to it, from the one that replaces it."""
    relations = ((row["fields"] or {}).get("relations") or ())[:_MOST_LINKS]
    links = [Link(row["id"], each["type"], each["to"], each["confidence"], each["reasoning"]) for each in relations]
    links += [Link(row["superseded_by"], "supersedes", row["id"], 1.0, "")] if row["superseded_by"] else []
    return [link for link in links if link.source != link.to]


# ---- ranking, pure


def _ranked(
    found: _Found, intent: Intent, own: Mapping[str, float], cosines: Mapping[str, float], share: float
) -> dict[str, Ranked]:
    """The candidates that have to do with the task, by words, meaning, a link, or a label; the best first. A link to
    one that has adds half of its similarity; `share` is that of the similarity, against that of the score."""
    similarity = {id: own.get(id, 0.0) for id in found.rows}
    for link in found.links:
        if link.type in _HELPFUL and link.source in similarity and link.to in similarity:
            for id, other in ((link.source, link.to), (link.to, link.source)):
                similarity[id] = max(similarity[id], own.get(other, 0.0) * link.confidence / 2)
    claims = {(link.source, link.to) for link in found.links if link.type == "supersedes"}
    # Of two that claim to replace each other, neither does.
    newer = {older: each for each, older in sorted(claims, reverse=True) if (older, each) not in claims}
    least = _BY_CHANCE * max(similarity.values(), default=0.0)
    ranked: dict[str, Ranked] = {}
    for id, row in found.rows.items():
        if similarity[id] > least or not intent.labels.isdisjoint(map(fold_label, (row["domain"], *row["tags"]))):
            ways, score = [way for way, of in found.ways.items() if id in of], score_of_row(row)
            combined = share * similarity[id] + (1 - share) * score
            ranked[id] = Ranked(ways, cosines.get(id), similarity[id], score, combined, newer.get(id, ""))
    return dict(sorted(ranked.items(), key=lambda item: (-item[1].combined, item[0])))


def _likeness(
    counts: Mapping[str, Counter[str]], directions: Mapping[str, array[float]]
) -> Callable[[str, str], float]:
    """How alike two candidates are, 0 to 1: by their vectors, or by the words in common where one has none."""

    def alike(one: str, other: str) -> float:
        if one in directions and other in directions:
            # Rounded, so that equal texts are equally alike.
            return round(min(max(cosine(directions[one], directions[other]), 0.0), 1.0), 6)
        either = len(counts[one].keys() | counts[other].keys())
        return len(counts[one].keys() & counts[other].keys()) / either if either else 0.0

    return alike
