"""Which memories match best what is sought, whatever store they are in.

Only the memories that have any of the tags are counted. How they stand with domains and kinds is asked class by class,
the best class first, until there are enough: each class is read in the order of scores, by an index, and to its end by
none.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain, product
from typing import Generic, Protocol, TypeVar

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.mirror.document import askable
from notebook_sync.mirror.memories import Sought, folded, marks

_STEP = 500
# So many are looked up one by one; more are found sooner by going down the order.
_MANY = 10_000
_DOMAIN, _KIND = 2, 1

Key = TypeVar("Key", int, str)
"""What a store knows a memory by."""
Standing = tuple[float, str, Key]
"""As they are ordered: the score, negative, and the id; with the key."""


@dataclass(frozen=True, slots=True)
class Where:
    """Of memories: whether their domain is one of `domains`, or none of them, and the same of kinds."""

    domains: Sequence[str]
    of_domains: bool
    kinds: Sequence[str]
    of_kinds: bool


class Standings(Protocol[Key]):
    """What the search asks of a store."""

    def marked(self, marks: Sequence[str]) -> Iterable[Collection[Key]]:
        """For each of these marks that any memory has, all memories with it, in no order."""

    def domains(self, among: Sequence[str]) -> list[str]:
        """These domains, without any that the store knows at once to be no memory's."""

    def first(self, among: Collection[Key], where: Where, limit: int) -> list[Standing[Key]]:
        """Of these memories the first that are so, in order."""

    def down(self, where: Where, start: int, limit: int) -> list[Standing[Key]]:
        """Of all memories those that are so, in order, beginning with number `start`. Of `domains` that are to be had
        there is one."""


def best(store: Standings[Key], sought: Sought, limit: int) -> list[Key]:
    """The keys of those that match best, in order."""
    search = _Search(store, sought)
    found: list[Key] = []
    for classes in search.classes():
        left = limit - len(found)
        if left <= 0:
            break
        standing = [one for each in classes for one in each(left)]
        found += [key for _, _, key in heapq.nsmallest(left, standing)]
    return found


class _Search(Generic[Key]):
    """One search. The classes of those that match nothing come last, and are all that there are where nothing does."""

    def __init__(self, store: Standings[Key], sought: Sought) -> None:
        self._store: Standings[Key] = store
        self._domains = store.domains(_folded(sought.domains))
        self._kinds = sorted(askable(kind) for kind in sought.kinds)
        self._only = _folded(sought.only_domains) if sought.only_domains else None
        left_out = (*marks("t", sought.without_tags), *marks("p", [EXTERNAL] if sought.own_words else []))
        without = set(chain.from_iterable(store.marked(left_out)))
        tags = Counter(chain.from_iterable(store.marked(marks("t", sought.tags))))
        self._elsewhere: set[Key] = tags.keys() | without
        self._by_tags: dict[int, list[Key]] = defaultdict(list)
        for key, count in tags.items():
            if key not in without:
                self._by_tags[count].append(key)

    def classes(self) -> Iterator[list[Callable[[int], list[Standing[Key]]]]]:
        """What finds the first of each class: those together that match as well, the best first."""
        of_domains = (True, False) if self._domains else (False,)
        of_kinds = (True, False) if self._kinds else (False,)
        for points in range(max(self._by_tags, default=0) + _DOMAIN + _KIND, -1, -1):
            together = []
            for of_domain, of_kind in product(of_domains, of_kinds):
                count = points - _DOMAIN * of_domain - _KIND * of_kind
                if count == 0 or count in self._by_tags:
                    together.append(self._finder(count, self._where(of_domain, of_kind)))
            yield together

    def _where(self, of_domain: bool, of_kind: bool) -> Where:
        only, domains = self._only, self._domains
        if of_domain:
            domains = [domain for domain in domains if only is None or domain in only]
        elif only is not None:
            domains = [domain for domain in only if domain not in domains]
        return Where(domains, of_domain or only is not None, self._kinds, of_kind)

    def _finder(self, count: int, where: Where) -> Callable[[int], list[Standing[Key]]]:
        if count == 0:
            return lambda limit: self._down(lambda key: key not in self._elsewhere, where, limit)
        among = self._by_tags[count]
        if len(among) > _MANY:
            return lambda limit: self._down(set(among).__contains__, where, limit)
        return lambda limit: self._store.first(among, where, limit)

    def _down(self, may: Callable[[Key], bool], where: Where, limit: int) -> list[Standing[Key]]:
        """The first of those that may be told, in ever larger steps down the order."""
        of_each = (
            [Where([domain], True, where.kinds, where.of_kinds) for domain in where.domains]
            if where.of_domains
            else [where]
        )
        return [one for each in of_each for one in self._passing(may, each, limit)]

    def _passing(self, may: Callable[[Key], bool], where: Where, limit: int) -> list[Standing[Key]]:
        found: list[Standing[Key]] = []
        start, step = 0, _STEP
        while len(found) < limit:
            page = self._store.down(where, start, step)
            found += [one for one in page if may(one[2])]
            if len(page) < step:
                break
            start, step = start + step, step * 4
        return found[:limit]


def _folded(domains: Set[str]) -> list[str]:
    return sorted({askable(folded(domain)) for domain in domains} - {""})
