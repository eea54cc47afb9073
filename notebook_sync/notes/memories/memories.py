"""What a session is told of memories, and what of that counts as a use of them.

A memory that the session may not read is to it as one that is not there: in answers, and in what they count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from heapq import nsmallest
from typing import Any

from notebook_sync.errors import BackendDown, UsageError
from notebook_sync.files.frontmatter import storable
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.mirror.base import LARGEST_LIMIT, Document, Filter
from notebook_sync.mirror.memories import Memory, MemoryRows, Sought, folded
from notebook_sync.notes.channels.private_note import tags_of
from notebook_sync.notes.facts.words import DENIALS, FAMILIES, SMALL
from notebook_sync.notes.memories.reach import MemoryReach
from notebook_sync.notes.memories.score import known_score, told_score
from notebook_sync.notes.memories.template import kind_named
from notebook_sync.notes.memories.text import FOLDER
from notebook_sync.search.searching import KEYWORD, Asked, Searched
from notebook_sync.search.snippets import share_said, words_of
from notebook_sync.sessions import Session

# Of so many memories that fit a query best, each is looked at for its kind, its domain and its tags; from there on,
# only those that have them are waited for, where these are few.
_LOOKED_AT = 2_000
_FEW = 1_000
# Of so many with the highest score, those that wait for a review are told where that is enough of them.
_REVIEWED = 1_000
# Texts that have nothing to do with each other are as like as that by their meaning, too.
_UNRELATED = 0.1
# Words that any text may say, whatever it is about.
_OF_ANY = frozenset(("whose", "then", "still", "when", "condition", "must", "way"))
_SMALL = SMALL | DENIALS | {"why"} | {word for word, (family, _) in FAMILIES.items() if family in _OF_ANY}

# `list` names a method here, so the type needs a name of its own.
Row = dict[str, Any]
Rows = list[Row]
Search = Callable[[Asked, Filter, int, Session], Searched]
Texts = Callable[[Sequence[Document], Session], Mapping[str, Document]]


class Memories:
    """The memories of one notebook, as sessions ask for them. `search` finds notes, `texts` gives those that were
    found; what is as like a query as `related` is used by being told."""

    def __init__(
        self, reach: MemoryReach, search: Search, texts: Texts, rows: Callable[[], MemoryRows], related: float
    ) -> None:
        self._reach = reach
        self._search = search
        self._texts = texts
        self._rows = rows
        self._related = related

    def list(
        self, session: Session, *, kind: str, domain: str, tags: Sequence[str], needs_review: bool | None, limit: int
    ) -> Rows:
        """Memories, those with the highest score first. Nothing counts as used by that. Raises UsageError,
        BackendDown."""
        wanted = _Wanted(kind, domain, tags, needs_review)
        limit = _limit(limit)
        if needs_review is None:
            pieces = (self._reach.best(sought, limit, session, wanted.admits) for sought in wanted.sought)
            found: Iterable[Memory] = {memory.id: memory for piece in pieces for memory in piece}.values()
        else:
            found = self._of_review(wanted, limit, session)
        return [row_of(memory) for memory in nsmallest(limit, found, key=lambda one: (-known_score(one), one.id))]

    def search(
        self,
        query: str,
        session: Session,
        *,
        kind: str,
        domain: str,
        tags: Sequence[str],
        limit: int,
        counts_use: bool = True,
    ) -> Rows:
        """The memories that fit `query`, best first: rows with `similarity`. Those that are clearly related to it are
        used by that, except by somebody else's message, and where `counts_use` is not meant. Raises as `list`."""
        query = storable(query).strip()
        if not query:
            raise UsageError("say what to look for, as in: notebook-sync memory search 'ferry times'")
        wanted = _Wanted(kind, domain, tags)
        found = self._found(query, wanted, _limit(limit), session)
        if counts_use:
            self._used([memory.id for memory, similarity in found if similarity >= self._related], session)
        return [{**row_of(memory), "similarity": round(similarity, 4)} for memory, similarity in found]

    def _of_review(self, wanted: _Wanted, limit: int, session: Session) -> Iterable[Memory]:
        """Those that wait for a review, or do not: of the first by score where these are enough, else of all that
        may be so."""
        every = self._reach.for_review if wanted.needs_review else self._reach.all
        count = max(limit, _REVIEWED)
        found: dict[str, Memory] = {}
        for sought in wanted.sought:
            first = self._reach.best(sought, count, session, wanted.matches)
            told = {memory.id: memory for memory in first if wanted.admits(memory)}
            if len(told) < limit and len(first) == count:
                return (memory for memory in every(session) if wanted.admits(memory))
            found |= told
        return found.values()

    def _found(self, query: str, wanted: _Wanted, limit: int, session: Session) -> Sequence[tuple[Memory, float]]:
        """The best memories that are wanted: where others stand among those that fit best, more of these are asked
        for, until there are no more, unless none is wanted."""
        if not any(self._reach.best(sought, min(limit, 1), session, wanted.admits) for sought in wanted.sought):
            return []
        count = limit
        few: dict[str, Memory] | None = None
        while True:
            searched = self._search(Asked(query, cosine=True), Filter(collections=(FOLDER,)), count, session)
            ids = [row["id"] for row in searched.results]
            memories = self._reach.of(ids, session) if few is None else few
            told = (memories[one] for one in ids if one in memories)
            found = [memory for memory in told if wanted.admits(memory)]
            if len(found) >= limit or len(ids) < count or (few is not None and len(found) == len(few)):
                return self._alike(query, searched, found[:limit], session)
            if count >= _LOOKED_AT and few is None:
                few = self._few(wanted, session)
            count = min(count * 4, LARGEST_LIMIT)

    def _alike(
        self, query: str, searched: Searched, memories: Sequence[Memory], session: Session
    ) -> Sequence[tuple[Memory, float]]:
        """Those of the memories that have something in common with the query, and how like it each is by itself,
        whatever else was found: by its meaning, or by the share of the query's words that it says."""
        rows = {row["id"]: row for row in searched.results}
        texts = self._texts([rows[memory.id] for memory in memories], session)
        words = words_of(query)
        telling = words - _SMALL or words
        # What words alone found says one of them, if it be in a form that only the store knows.
        least = 1 / len(words) if words and telling == words and searched.mode == KEYWORD else 0.0
        found = []
        for memory in memories:
            said = "\n".join((memory.title, *memory.tags, texts.get(memory.id, {}).get("content", "")))
            cosine = rows[memory.id]["cosine"]
            similarity = max(share_said(said, telling), least, cosine if cosine > _UNRELATED else 0.0)
            if similarity > 0:
                found.append((memory, min(similarity, 1.0)))
        return sorted(found, key=lambda one: -one[1])

    def _few(self, wanted: _Wanted, session: Session) -> dict[str, Memory] | None:
        """All that are wanted, by id; None where those are many."""
        found: dict[str, Memory] = {}
        for sought in wanted.sought:
            found |= {memory.id: memory for memory in self._reach.best(sought, _FEW + 1, session, wanted.admits)}
            if len(found) > _FEW:
                return None
        return found

    def _used(self, ids: Sequence[str], session: Session) -> None:
        if ids and session.kind != EXTERNAL:
            with suppress(BackendDown):  # it is only not counted
                self._rows().used(ids, datetime.now(UTC))


class _Wanted:
    """What a caller asks for; what is left empty admits all. Raises UsageError for a kind there is not."""

    def __init__(self, kind: str, domain: str, tags: Sequence[str], needs_review: bool | None = None) -> None:
        self._kind = kind_named(kind)
        self._domain = folded(domain)
        self._tags = frozenset(map(folded, tags_of(tags)))
        self.needs_review = needs_review

    @property
    def sought(self) -> Iterator[Sought]:
        """What a store is asked for, one thing after the other: of each, all that match come before all that do not,
        and those with a higher score before others."""
        kinds = frozenset([self._kind] if self._kind else [])
        domains = frozenset([self._domain] if self._domain else [])
        for tags in [frozenset([tag]) for tag in sorted(self._tags)] or [frozenset[str]()]:
            yield Sought(tags=tags, kinds=kinds, only_domains=domains)

    def admits(self, memory: Memory) -> bool:
        return self.matches(memory) and self.needs_review in (None, memory.needs_review)

    def matches(self, memory: Memory) -> bool:
        """Whether it is of what stores are asked for; they are not asked who waits for a review."""
        return (
            (not self._kind or memory.kind == self._kind)
            and (not self._domain or folded(memory.domain) == self._domain)
            and (not self._tags or not self._tags.isdisjoint(map(folded, memory.tags)))
        )


def row_of(memory: Memory) -> Row:
    """A memory as it is told."""
    return {
        "notebook_id": memory.id,
        "path": memory.path,
        "title": memory.title,
        "kind": memory.kind,
        "domain": memory.domain,
        "tags": [*memory.tags],
        "agent": memory.agent,
        "priority": memory.priority,
        "score": told_score(memory),
        "created_at": memory.created_at,
        "needs_review": memory.needs_review,
        "relations": len(memory.relations),
        "accesses": memory.accesses,
        **({"provenance": memory.provenance} if memory.provenance else {}),
    }


def _limit(limit: int) -> int:
    if not 0 <= limit <= LARGEST_LIMIT:
        raise UsageError(f"a limit is a number from 0 to {LARGEST_LIMIT:,}")
    return limit
