"""The memories that a brief may use, and which of them it does: found by name, label, words, meaning and links, then
ranked, and chosen so that little is said twice.

No memory that the session may not read is looked up, nor one that others wrote, nor an archived one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

from notebook_sync.context.intent import Intent, fold
from notebook_sync.model import id_from_path
from notebook_sync.search.ranking import bm25, fuse, mmr, rarity_of
from notebook_sync.search.terms import HEADING
from notebook_sync.services.core import Core
from notebook_sync.services.remembering import score_of_row
from notebook_sync.services.view import View
from notebook_sync.settings import ContextTable
from notebook_sync.store.rows import EVERYTHING, Either, Has, Is, Not, Row, Where, both
from notebook_sync.sync.project import fold_tags
from prompt.assemble import Recent

MEMORIES = "memories"
# What is read of a candidate.
COLUMNS = (
    *("id", "path", "title", "kind", "domain", "tags", "score", "needs_review", "digest", "words_digest"),
    *("fields", "created_at", "provenance", "status"),
)
# The candidates that links are followed from, and those that are found so.
_MOST_LINKED = 30
# The rarest of the words that matter most are looked for in the index: others find too much.
_RAREST, _AMONG, _STEEPNESS = 4, 16, 4
_LONGEST_AIM = 8_000
_SHARE_OF_MEANING = 0.4
# What may be in a brief, of what a session may read.
_MEMORY = both(Is("path", "under", MEMORIES), Is("provenance", "=", ""), Is("status", "!=", "archived"))
# A link of another type brings nothing that helps; so many of one memory are followed.
_HELPFUL, _MOST_LINKS = ("causes", "solves", "contradicts", "expands"), 100
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
        is_of_domain = not self.domains or fold(row["domain"]) in self.domains
        is_open = not row["provenance"] and row["status"] != "archived"
        return is_open and is_of_domain and self.without_tags.isdisjoint(row["tags"])


@dataclass(frozen=True, slots=True)
class Gathered:
    """Candidates by id in the order in which they were found, and the memories at the other ends of their links.

    `found_by` says how: named, metadata, words, meaning, linked, or all where memories are few. `cosines` are those of
    candidates with vectors; what is not nearer than `unrelated` is far. `counts` are the terms of each, `directions`
    their vectors. `solved`: problems that some memory solves. `degraded`: why meaning does not count, None where it
    does.
    """

    rows: Mapping[str, Row]
    counts: Mapping[str, Counter[str]]
    others: Mapping[str, Row]
    found_by: Mapping[str, list[str]]
    links: Sequence[Link]
    solved: frozenset[str]
    cosines: Mapping[str, float]
    directions: Mapping[str, Any]
    unrelated: float
    degraded: str | None

    def with_rows(self, rows: Mapping[str, Row], instead: Collection[str]) -> Gathered:
        """The same with these rows instead of those with the ids `instead`."""
        now = {id: rows.get(id, row) for id, row in self.rows.items() if id in rows or id not in instead}
        counts = {id: self.counts[id] for id in now} | {id: counts_of(row["terms"]) for id, row in rows.items()}
        links = [link for link in self.links if {link.source, link.to} <= {*now, *self.others}]
        return replace(self, rows=now, counts=counts, links=links)


class Ranked(NamedTuple):
    """A candidate's scores, each 0 to 1. `superseded_by` is the id of the memory that replaces it, "" for none."""

    similarity: float
    score: float
    combined: float
    superseded_by: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Every candidate that has to do with the task, best first; the ids of those chosen, in order, and which of these
    are `primary`: there for their own sake."""

    ranked: Mapping[str, Ranked]
    chosen: tuple[str, ...]
    primary: frozenset[str]


class Labels(NamedTuple):
    """The memories of an index at one `rev` that everybody may read: scores by id, ids by folded domain and by tag."""

    rev: int
    scores: dict[str, float]
    by_domain: dict[str, list[str]]
    by_tag: dict[str, list[str]]


class Candidates:
    """Finds the memories that may help with a task. Remembers what memories are labelled and which terms they have."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._labels = Labels(-1, {}, {}, {})
        self._counts: Recent[Counter[str]] = Recent(_MOST_REMEMBERED)

    def gather(self, view: View, intent: Intent, wanted: Wanted) -> Gathered:
        """The candidates for a task. Raises errors of the index."""
        core, most = self._core, self._core.settings.context.prefilter
        documents, meaning, labels = core.index.documents, core.searcher.meaning, self._current_labels()
        readable = both(view.whole, _MEMORY)
        of_domains = [id for domain in wanted.domains for id in labels.by_domain.get(domain, ())]
        where = both(
            readable,
            Is("id", "in", of_domains) if wanted.domains else EVERYTHING,
            Not(Has("tags", tuple(wanted.without_tags))) if wanted.without_tags else EVERYTHING,
        )
        asked = None
        if meaning and (wanted.asks_servers or meaning.embedder.is_local):
            meaning.catch_up()
            text = " ".join(intent.words) if meaning.embedder.is_local else intent.content
            asked = core.searcher.ask(f"{intent.title}\n{text[:_LONGEST_AIM]}")
        found = {"named": self._ids(where, named_notes(intent)) if intent.related else []}
        if len(labels.scores) <= most:
            found["all"] = self._ids(where)
        else:
            rare, count = self._rarest(intent), -(-most // 3)
            found["metadata"] = self._by_labels(where, intent, labels, most)
            found["words"] = [hit.id for hit in documents.search(rare, where, limit=count, private=True)]
            found["meaning"] = core.searcher.nearest(asked, where)[:count] if asked else []
        turns = zip_longest(*found.values())
        ids = list(dict.fromkeys(id for turn in turns for id in turn if id is not None))[:most]
        rows = self._rows(where, ids)
        links = [link for row in rows.values() for link in links_of(row)]
        linking = documents.find(both(readable, Has("relations", tuple(ids))), fields=("id", "fields"))
        links += [link for row in linking if row["id"] not in rows for link in links_of(row) if link.to in rows]
        others = self._rows(where, sorted({end for link in links for end in (link.source, link.to)} - rows.keys()))
        solved = frozenset(link.to for link in links if link.type == "solves" and link.source != link.to)
        links = [each for each in links if each.source != each.to and {each.source, each.to} <= {*rows, *others}]
        near = frozenset(ids[:_MOST_LINKED])
        ends = (end for link in links if not near.isdisjoint((link.source, link.to)) for end in (link.source, link.to))
        found["linked"] = [id for id in dict.fromkeys(ends) if id in others][:_MOST_LINKED]
        rows |= {id: others.pop(id) for id in found["linked"]}
        cosines, directions = {}, {}
        if asked and meaning and asked.vector is not None:
            cosines = meaning.cosines(asked.vector, "documents", rows.keys())
            directions = meaning.directions(asked.vector, "documents", cosines.keys())
        ways = {way: frozenset(of) for way, of in found.items()}
        return Gathered(
            rows,
            self._counts_of(rows),
            others,
            {id: [way for way, of in ways.items() if id in of] for id in rows},
            links,
            solved,
            cosines,
            directions,
            asked.unrelated if asked else 0.0,
            asked.degraded if asked else None,
        )

    def _current_labels(self) -> Labels:
        index = self._core.index
        if self._labels.rev != (rev := index.rev()):
            labels = Labels(rev, {}, {}, {})
            fields, where = ("id", "domain", "tags", "score", "fields"), both(_MEMORY, Is("audience", "=", ""))
            for id, domain, tags, score, more in index.documents.tuples(fields, where):
                labels.scores[id] = score_of_row({"score": score, "fields": more})
                labels.by_domain.setdefault(fold(domain), []).append(id)
                for tag in tags:
                    labels.by_tag.setdefault(tag, []).append(id)
            self._labels = labels
        return self._labels

    def _ids(self, where: Where, *more: Where) -> list[str]:
        return sorted(id for (id,) in self._core.index.documents.tuples(("id",), both(where, *more)))

    def _by_labels(self, where: Where, intent: Intent, labels: Labels, limit: int) -> list[str]:
        """Memories whose domain and tags fit best; a domain counts as two tags, and of equal ones the score decides."""
        fits: Counter[str] = Counter()
        for domain in intent.possible_domains:
            fits.update(2 * labels.by_domain.get(domain, []))
        for tag in fold_tags(intent.possible_tags):
            fits.update(labels.by_tag.get(tag, []))
        best = sorted(fits, key=lambda id: (-fits[id], -labels.scores[id], id))
        kept: list[str] = []
        for start in range(0, len(best), 2 * limit):
            batch = best[start : start + 2 * limit]
            shown = frozenset(self._ids(where, Is("id", "in", batch)))
            kept += [id for id in batch if id in shown]
            if len(kept) >= limit:
                break
        return kept[:limit]

    def _rarest(self, intent: Intent) -> list[str]:
        """Of the words that matter most, those that fewest notes have, by weight and rarity."""
        words = list(intent.keywords)[:_AMONG]
        total, having = self._core.index.documents.frequencies(words)
        worth = {
            word: intent.keywords[word] * rarity_of(total, having[word]) ** _STEEPNESS
            for word in words
            if having.get(word)
        }
        return sorted(worth, key=lambda word: (-worth[word], word))[:_RAREST]

    def _rows(self, where: Where, ids: Sequence[str]) -> dict[str, Row]:
        """The rows of these memories, in this order."""
        found = self._core.index.documents.find(both(where, Is("id", "in", ids)), fields=COLUMNS) if ids else []
        rows = {row["id"]: row for row in found}
        return {id: rows[id] for id in ids if id in rows}

    def _counts_of(self, rows: Mapping[str, Row]) -> dict[str, Counter[str]]:
        """How often each memory has each term. What an index holds of a text is read once."""
        digests = {id: row["words_digest"] for id, row in rows.items()}
        missing = [id for id, digest in digests.items() if not self._counts.knows(digest)]
        terms = dict(self._core.index.documents.tuples(("id", "terms"), Is("id", "in", missing))) if missing else {}
        return {id: self._counts.get(digest, partial(counts_of, terms.get(id))) for id, digest in digests.items()}


def counts_of(terms: str | None) -> Counter[str]:
    """The terms of a text as `search_columns` packs it, each with how often it has it."""
    counts = Counter((terms or "").split())
    del counts[HEADING]
    return counts


def choose(gathered: Gathered, intent: Intent, settings: ContextTable, limit: int) -> Choice:
    """The best `limit` candidates, which say little twice; superseded ones come last. Pure."""
    ranked = _ranked(gathered, intent, settings.similarity)
    alike, chosen = _alike(gathered), list[str]()
    for is_current in (True, False):
        scores = {id: each.combined for id, each in ranked.items() if is_current != bool(each.superseded_by)}
        chosen += mmr(scores, alike, settings.diversity, limit - len(chosen))
    least = max(_PRIMARY * max((ranked[id].similarity for id in chosen), default=0.0), _LEAST_PRIMARY)
    primary = (id for id in chosen if ranked[id].similarity >= least and not ranked[id].superseded_by)
    return Choice(ranked, tuple(chosen), frozenset(primary))


def links_of(row: Row) -> list[Link]:
    """The links of a memory, as its frontmatter has them."""
    relations = ((row["fields"] or {}).get("relations") or ())[:_MOST_LINKS]
    return [Link(row["id"], each["type"], each["to"], each["confidence"], each["reasoning"]) for each in relations]


def named_notes(intent: Intent) -> Where:
    """The notes that a task names, by id or path."""
    paths = [name if name.endswith(".md") else f"{name}.md" for name in intent.related]
    return Either((Is("path", "in", paths), Is("id", "in", [id_from_path(name) for name in intent.related])))


# ---- ranking


def _ranked(gathered: Gathered, intent: Intent, share: float) -> dict[str, Ranked]:
    """The candidates that have to do with the task, by words, meaning, a link, or a label; the best first."""
    similarity, newer = _similarities(gathered, intent), _superseded(gathered.links)
    least = _BY_CHANCE * max(similarity.values(), default=0.0)
    ranked: dict[str, Ranked] = {}
    for id, row in gathered.rows.items():
        if similarity[id] > least or not intent.labels.isdisjoint((fold(row["domain"]), *row["tags"])):
            score = score_of_row(row)
            combined = share * similarity[id] + (1 - share) * score
            ranked[id] = Ranked(similarity[id], score, combined, newer.get(id, ""))
    return dict(sorted(ranked.items(), key=lambda item: (-item[1].combined, item[0])))


def _similarities(gathered: Gathered, intent: Intent) -> dict[str, float]:
    """How much each candidate has to do with the task, 0 to 1; a link to one that has adds half of it."""
    words = bm25(intent.keywords, gathered.counts)
    near = {id: each for id, each in gathered.cosines.items() if each > gathered.unrelated or words.get(id)}
    fused = fuse(words, near, _SHARE_OF_MEANING)
    own = {id: 1.0 if "named" in gathered.found_by[id] else fused.get(id, 0.0) for id in gathered.rows}
    similarity = dict(own)
    for link in gathered.links:
        if link.type in _HELPFUL and link.source in own and link.to in own:
            for id, other in ((link.source, link.to), (link.to, link.source)):
                similarity[id] = max(similarity[id], own[other] * link.confidence / 2)
    return similarity


def _superseded(links: Iterable[Link]) -> dict[str, str]:
    """By id, the memory that replaces it; of two that claim so of each other, neither does."""
    claims = {(link.source, link.to) for link in links if link.type == "supersedes"}
    return {older: newer for newer, older in sorted(claims, reverse=True) if (older, newer) not in claims}


def _alike(gathered: Gathered) -> Callable[[str, str], float]:
    """How alike two candidates are, 0 to 1: by their vectors, or by the words in common where one has none."""
    counts, directions = gathered.counts, gathered.directions

    def alike(one: str, other: str) -> float:
        if one in directions and other in directions:
            # Rounded, so that equal texts are equally alike.
            return round(min(max(float(directions[one] @ directions[other]), 0.0), 1.0), 6)
        either = len(counts[one].keys() | counts[other].keys())
        return len(counts[one].keys() & counts[other].keys()) / either if either else 0.0

    return alike
