"""The memories that a brief may rest on: found by what they say of themselves, by words, by meaning and by links.

None that the session may not read, that somebody else wrote, or whose row does not say what its file does. What is left
out so pushes nothing else out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from notebook_sync.context.intent import Intent
from notebook_sync.context.meaning import Meaning, Placed
from notebook_sync.context.ranking import by_turns
from notebook_sync.context.texts import Texts
from notebook_sync.mirror.base import LARGEST_LIMIT, Document, Filter
from notebook_sync.mirror.memories import Link, Memory, MemoryRows, Sought, folded
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.showing import sees_all
from notebook_sync.search.query_meaning import NoMeaning
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

if TYPE_CHECKING:
    from notebook_sync.mirror.base import Mirror

# Brings the rows of notes in step with their files, given their paths by id: the paths of those that changed, and of
# those that nobody can vouch for.
Freshen = Callable[[Mapping[str, str]], tuple[Set[str], Set[str]]]

MEMORIES = "memories"
ARCHIVED = "archived"
# So often notes are looked for that change meanwhile.
ROUNDS = 4
# What is embedded of a task: its title, and so much of what it says.
_LONGEST_AIM = 8_000
# Of a memory, so many links count each way.
_MOST_LINKS = 100
# So many memories are followed up by their links.
_MOST_LINKED = 30


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the caller narrows a brief to: memories of any of these domains, where any are named, with none of these
    tags. `limit` is how many candidates there may be."""

    domains: frozenset[str]
    without_tags: frozenset[str]
    limit: int

    def admits(self, memory: Memory) -> bool:
        """Whether the memory is of them."""
        if memory.status == ARCHIVED or (self.domains and folded(memory.domain) not in self.domains):
            return False
        return not self.without_tags or self.without_tags.isdisjoint(map(folded, memory.tags))


@dataclass(frozen=True, slots=True)
class Gathered:
    """Candidates by id, in the order in which they came, and what is known of them.

    how: by what each was found: named, metadata, words, meaning, linked. words: how often each says a word. placed:
    None without vectors; `partial` says why, or what could not be placed. links: those that begin or end at a
    candidate, and the memory where each begins. `others` are the memories at their other ends. solved: what something
    solves, be it narrowed away.
    """

    memories: Mapping[str, Memory]
    how: Mapping[str, tuple[str, ...]]
    words: Mapping[str, Counter[str]]
    placed: Placed | None
    unrelated: float
    partial: str
    links: Sequence[tuple[str, Link]]
    others: Mapping[str, Memory]
    solved: frozenset[str]


class Candidates:
    """Of one notebook, for any number of threads."""

    def __init__(
        self,
        settings: Settings,
        guard: Guard,
        mirror: Callable[[], Mirror],
        rows: Callable[[], MemoryRows],
        meaning: Meaning,
        freshen: Freshen,
    ) -> None:
        self._mirror = mirror
        self._rows = rows
        self._meaning = meaning
        self._freshen = freshen
        self._texts = Texts(mirror)
        # No member of a channel is asked for: of all other paths, names alone decide.
        self._is_shown = lru_cache(maxsize=_MOST_JUDGED)(
            lambda session, path: guard.may(session, "read", path) and sees_all(session, path, settings.prompt)
        )

    def gather(self, intent: Intent, session: Session, wanted: Wanted) -> Gathered:
        """The candidates for a task. Raises BackendDown."""
        unsure: Set[str] = frozenset()
        for _ in range(ROUNDS):
            search = _Search(
                self._mirror(),
                self._rows(),
                self._meaning,
                self._texts,
                intent,
                wanted,
                lambda path: path not in unsure and self._is_shown(session, path),  # noqa: B023 - used in this round
            )
            gathered = search.gathered()
            told = {**gathered.memories, **gathered.others}
            changed, more = self._freshen({note_id: memory.path for note_id, memory in told.items()})
            if not changed and not more:
                break
            unsure |= more
        return gathered

    def documents(self, memories: Sequence[Memory]) -> dict[str, Document]:
        """The documents of these memories, by id, without those that say something else by now. Raises BackendDown."""
        return self._texts.documents(memories)


_MOST_JUDGED = 8_192


class _Search:
    """One search."""

    def __init__(
        self,
        mirror: Mirror,
        rows: MemoryRows,
        meaning: Meaning,
        texts: Texts,
        intent: Intent,
        wanted: Wanted,
        is_shown: Callable[[str], bool],
    ) -> None:
        self._mirror = mirror
        self._rows = rows
        self._meaning = meaning
        self._texts = texts
        self._intent = intent
        self._wanted = wanted
        self._is_shown = is_shown
        # What may be told of, and of that, by id, what is wanted.
        self._readable: set[str] = set()
        self._known: dict[str, Memory] = {}

    def gathered(self) -> Gathered:
        """What is found."""
        partial, aim, behind = "", None, 0
        try:
            aim = self._meaning.aim(self._text())
        except NoMeaning as trouble:
            partial = str(trouble)
        found = {"named": self._named()}
        found["metadata"], is_all = self._by_metadata()
        if not is_all:
            # By turns, no more of each way get in where all three find as many; metadata find them in any case.
            count = -(-self._wanted.limit // 3)
            found["words"] = self._by_words(count)
            try:
                found["meaning"] = aim.nearest(count, self._admitted) if aim else []
                behind = aim.behind(self._admitted) if aim else 0
            except NoMeaning as trouble:
                partial, aim = str(trouble), None
        ids = by_turns(*found.values(), limit=self._wanted.limit)
        links, others, solved = self._links(ids)
        found["linked"] = _linked(links, frozenset(ids[:_MOST_LINKED]), others)[:_MOST_LINKED]
        ids += found["linked"]
        words = self._words(ids)
        ids = [note_id for note_id in ids if note_id in words]
        placed = None
        if aim:
            try:
                placed = aim.placed(frozenset(ids), self._documents)
            except NoMeaning as trouble:
                partial = str(trouble)
        if placed and (behind := max(behind, placed.behind)):
            partial = f"{behind:,} memories have no vectors yet"
        memories = {note_id: self._known[note_id] for note_id in ids}
        ways = {way: frozenset(of) for way, of in found.items()}
        return Gathered(
            memories,
            {note_id: tuple(way for way, of in ways.items() if note_id in of) for note_id in ids},
            words,
            placed,
            aim.unrelated if aim else 0.0,
            partial,
            links,
            {note_id: memory for note_id, memory in others.items() if note_id not in memories},
            solved,
        )

    def _text(self) -> str:
        from notebook_sync.search.passages import said  # which brings arrays along

        return f"{self._intent.title}\n{said(self._intent.content[:_LONGEST_AIM])}"

    def _named(self) -> list[str]:
        """The memories that the task names, by id or path."""
        return sorted(self._admitted(named_notes(self._mirror, self._intent)))

    def _by_metadata(self) -> tuple[list[str], bool]:
        """The memories whose tags and domain match best, and whether these are all there are."""
        sought = Sought(
            tags=self._intent.terms(),
            domains=self._intent.possible_domains(),
            only_domains=self._wanted.domains,
            without_tags=self._wanted.without_tags,
            own_words=True,
        )
        count = self._wanted.limit
        while True:
            found = self._rows.sought(sought, count)
            told = self._take(found)
            if len(told) >= self._wanted.limit or len(found) < count:
                return told[: self._wanted.limit], len(found) < count
            count = min(count * 4, LARGEST_LIMIT)

    def _by_words(self, wanted: int) -> list[str]:
        query, count = " ".join(self._intent.rare), wanted
        while query:
            found = [row["id"] for row in self._mirror.search(query, count, Filter(collections=(MEMORIES,)))]
            kept = self._admitted(found)
            told = [note_id for note_id in found if note_id in kept]
            if len(told) >= wanted or len(found) < count:
                return told[:wanted]
            count = min(count * 4, LARGEST_LIMIT)
        return []

    def _links(self, ids: Sequence[str]) -> tuple[list[tuple[str, Link]], dict[str, Memory], frozenset[str]]:
        """The links from and to these memories, the memories at their other ends, and those that something solves."""
        outward = [(note_id, link) for note_id in ids for link in self._known[note_id].relations[:_MOST_LINKS]]
        inward = [one for found in self._rows.linking_to(ids).values() for one in found[:_MOST_LINKS]]
        ends = {end for note_id, link in (*outward, *inward) for end in (note_id, link.to)}
        self._admitted(ends)
        found = dict.fromkeys((*outward, *inward))
        solved = {link.to for note_id, link in found if link.type == "solves" and note_id in self._readable - {link.to}}
        kept = [
            (source, link) for source, link in found if {source, link.to} <= self._known.keys() and source != link.to
        ]
        others = {end: self._known[end] for end in sorted(ends.difference(ids)) if end in self._known}
        return kept, others, frozenset(solved)

    def _admitted(self, ids: Collection[str]) -> set[str]:
        """Those of these notes that are memories which may be told of."""
        unknown = [note_id for note_id in ids if note_id not in self._readable]
        if unknown:
            self._take(self._rows.of(unknown).values())
        return {note_id for note_id in ids if note_id in self._known}

    def _take(self, memories: Iterable[Memory]) -> list[str]:
        """The ids of those that may be told of, which are known from now on."""
        told = [memory for memory in memories if memory.provenance is None and self._is_shown(memory.path)]
        self._readable.update(memory.id for memory in told)
        wanted = [memory for memory in told if self._wanted.admits(memory)]
        self._known |= {memory.id: memory for memory in wanted}
        return [memory.id for memory in wanted]

    def _words(self, ids: Sequence[str]) -> dict[str, Counter[str]]:
        return self._texts.words([self._known[note_id] for note_id in ids])

    def _documents(self, ids: Sequence[str]) -> list[Document]:
        return list(self._texts.documents([self._known[note_id] for note_id in ids]).values())


def named_notes(mirror: Mirror, intent: Intent) -> list[str]:
    """The ids of the notes that a task names, by id or path. Raises BackendDown."""
    names = intent.related
    if not names:
        return []
    paths = {name if name.endswith(".md") else f"{name}.md" for name in names}
    rows = [*mirror.claimants(names), *mirror.known(sorted(paths))]
    return [row.id for row in rows if row.id in names or row.path in paths]


def _linked(links: Iterable[tuple[str, Link]], ids: Set[str], others: Iterable[str]) -> list[str]:
    """Those of the others that a link leads from or to one of these."""
    ends = {end for source, link in links if source in ids or link.to in ids for end in (source, link.to)}
    return [other for other in others if other in ends]
