"""Which memories and links a picture shows, of those that are known. Pure; for the same memories the same."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from notebook_sync.errors import UsageError
from notebook_sync.mirror.memories import UNSCORED, Link, Memory, folded

MOST_MEMORIES = 300
# More lines than that are a blot: the surest are drawn.
_MOST_LINKS = 250


@dataclass(frozen=True, slots=True)
class Graph:
    """What is shown, of `known` memories. `more` tells of each how many links it has that are not shown; `nowhere` how
    many of all links lead to no memory. `around` is the id of the memory in the middle, "" for none."""

    memories: Sequence[Memory]
    links: Sequence[tuple[str, Link]]
    known: int
    more: Mapping[str, int]
    nowhere: int = 0
    around: str = ""

    def told(self) -> str:
        """How much of all that is, in one line."""
        if not self.known:
            return "There are no memories yet. Add one with: notebook-sync memory add TEXT"
        if not self.memories:
            return "No memory is like that."
        shown = len(self.memories)
        which = f"{shown:,} of {self.known:,} memories" if shown < self.known else _counted(shown, "memory", "memories")
        told = [which, _counted(len(self.links), "link", "links")]
        if self.nowhere:
            told.append(f"{_counted(self.nowhere, 'link leads', 'links lead')} to no memory")
        return " · ".join(told)


def picked(memories: Sequence[Memory], *, kind: str = "", domain: str = "", around: str = "", limit: int = 80) -> Graph:
    """The `limit` memories of a kind and a domain, "" for any, that count for most, linked ones first; or those nearest
    to the memory with the id `around`. Raises UsageError for a limit that makes no picture."""
    if not 1 <= limit <= MOST_MEMORIES:
        raise UsageError(f"a picture shows 1 to {MOST_MEMORIES} memories, not {limit:,}")
    by_id = {memory.id: memory for memory in memories}
    every = [(memory.id, link) for memory in by_id.values() for link in memory.relations if link.to != memory.id]
    links = [one for one in every if one[1].to in by_id]
    degree = Counter(one for start, link in links for one in (start, link.to))
    of_domain = folded(domain)
    wanted = {
        memory.id
        for memory in by_id.values()
        if (not kind or memory.kind == kind) and (not of_domain or folded(memory.domain) == of_domain)
    }

    def rank(memory_id: str) -> tuple[bool, float, str]:
        score = by_id[memory_id].score
        return not degree[memory_id], -(UNSCORED if score is None else score), memory_id

    ids = _nearest(around, links, wanted, rank, limit) if around else sorted(wanted, key=rank)[:limit]
    shown = set(ids)
    drawn = sorted(
        (one for one in links if one[0] in shown and one[1].to in shown),
        key=lambda one: (-one[1].confidence, one[0], one[1].to, one[1].type),
    )[:_MOST_LINKS]
    drawn_at = Counter(one for start, link in drawn for one in (start, link.to))
    more = {memory_id: degree[memory_id] - drawn_at[memory_id] for memory_id in ids}
    nowhere = len(every) - len(links)
    return Graph([by_id[memory_id] for memory_id in ids], drawn, len(by_id), more, nowhere, around)


def _nearest(
    around: str,
    links: Sequence[tuple[str, Link]],
    wanted: Set[str],
    rank: Callable[[str], tuple[bool, float, str]],
    limit: int,
) -> list[str]:
    """`around` first, then its neighbours, then theirs: only by way of those that are wanted."""
    near: dict[str, set[str]] = defaultdict(set)
    for start, link in links:
        near[start].add(link.to)
        near[link.to].add(start)
    found = {around: None}
    waiting = deque(found)
    while waiting and len(found) < limit:
        others = (near[waiting.popleft()] & wanted) - found.keys()
        for other in sorted(others, key=rank)[: limit - len(found)]:
            found[other] = None
            waiting.append(other)
    return list(found)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
