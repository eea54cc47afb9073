"""Facts that say the same: which pairs there are, and one of each kept in place of both.

What is dropped is not lost: its text goes to archive.md, its usage to the fact that stays.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from notebook_sync.files.facts import ARCHIVE, CORE, order_of
from notebook_sync.mirror.facts import Fact, FactRows
from notebook_sync.notes.editing.door import Text
from notebook_sync.notes.fact_life import MERGED, effective
from notebook_sync.notes.facts.alike import contradiction, decided_by, words_of
from notebook_sync.notes.facts.book import NOTES, Book, Draft
from notebook_sync.notes.facts.changes import FactChanges
from notebook_sync.notes.facts.facts import row_of
from notebook_sync.notes.facts.near import FactNear
from notebook_sync.notes.facts.reach import FactReach
from notebook_sync.notes.guard import Guard
from notebook_sync.sessions import Session
from notebook_sync.settings import MemorySettings

if TYPE_CHECKING:
    from notebook_sync.search.base import Vector

DEDUPE = "fact dedupe"

# Of the words of two facts together, how many both have; and of how many words one is told to be part of another.
_SHARED = 0.6
_CONTAINED_WORDS = 2
_AT_ONCE = 1_000
_ANY_PIN = 0.0
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two facts that say the same, by their numbers; `how` that was found: words, contained or meaning."""

    one: int
    other: int
    similarity: float
    how: str


_Choice = tuple[Fact, Fact, Pair]  # the one that stays, and the one that goes


class FactDedupe:
    """For one notebook."""

    def __init__(
        self,
        settings: MemorySettings,
        guard: Guard,
        reach: FactReach,
        near: FactNear,
        changes: FactChanges,
        rows: Callable[[], FactRows],
    ) -> None:
        self._settings = settings
        self._guard = guard
        self._reach = reach
        self._near = near
        self._changes = changes
        self._rows = rows

    def dedupe(self, session: Session, *, apply: bool) -> dict[str, Any]:
        """`{pairs: [{keep, drop, similarity, how}], merged, warnings}`: the pairs, rows of facts, the most alike first;
        with `apply`, how many facts were dropped. Raises NotPermitted, BackendDown, and as an edit."""
        self._guard.require_change(session, NOTES, DEDUPE)
        now = datetime.now(UTC)
        seen = self._reach.seen(session, "all")
        facts = [fact for fact in seen.facts if not fact.is_archived and fact.path not in seen.external]
        vectors = self._near.vectors()
        found = pairs_of(
            [fact.content for fact in facts], [vectors.get(f.note_id) for f in facts], self._settings.duplicate
        )
        pairs = [(*_chosen(facts[pair.one], facts[pair.other], now), pair) for pair in found]
        pairs = self._to_merge(pairs, session)
        told = [
            {
                "keep": row_of(keep, now, seen.external),
                "drop": row_of(drop, now, seen.external),
                "similarity": round(pair.similarity, 4),
                "how": pair.how,
            }
            for keep, drop, pair in pairs
        ]
        merged, warnings = self._merge([(keep, drop) for keep, drop, _ in pairs], session) if apply else (0, [])
        return {"pairs": told, "merged": merged, "warnings": warnings}

    def _to_merge(self, pairs: Sequence[_Choice], session: Session) -> list[_Choice]:
        """Those whose second fact may be dropped, as the files are now; nothing is changed."""
        found: list[_Choice] = []

        def look(book: Book) -> Sequence[Text]:
            found[:] = [one for one in pairs if self._drops(Draft(book), one[0], one[1], session)]
            return ()

        if pairs:
            self._changes.put(session, DEDUPE, look)
        return found

    def _drops(self, draft: Draft, keep: Fact, drop: Fact, session: Session) -> bool:
        """Let a draft archive one of two facts, if it may and the other stands somewhere as the notebook's own."""
        places = draft.book.facts.get(keep.note_id)
        if not places or places[0].path == ARCHIVE or self._reach.reason_to_stay(draft.book, keep.note_id):
            return False
        reason = f"merged into {keep.note_id}"
        return self._changes.put_aside(draft, drop.note_id, reason, session, below=_ANY_PIN) is not None

    def _merge(self, pairs: Sequence[tuple[Fact, Fact]], session: Session) -> tuple[int, list[str]]:
        """How many are merged, and warnings. Each fact is dropped once, and none for one that is dropped itself."""
        done: list[tuple[Fact, Fact]] = []

        def make(book: Book) -> list[Text]:
            done.clear()
            draft, dropped, kept = Draft(book), set[str](), set[str]()
            for keep, drop in pairs:
                if {keep.note_id, drop.note_id} & dropped or drop.note_id in kept:
                    continue
                if not self._drops(draft, keep, drop, session):
                    continue
                dropped.add(drop.note_id)
                kept.add(keep.note_id)
                done.append((keep, drop))
            told = "1 fact" if len(done) == 1 else f"{len(done):,} facts"
            return draft.texts(DEDUPE, f"Merge {told} into others that say the same")

        entered = self._changes.put(session, DEDUPE, make)
        trouble = self._changes.behind(lambda: self._merge_rows(done, session)) if done else ""
        told = [f"saved; uses of what was dropped stay with it, for the store is silent: {trouble}"] if trouble else []
        return len(done), [*entered.warnings, *told]

    def _merge_rows(self, pairs: Sequence[tuple[Fact, Fact]], session: Session) -> None:
        self._reach.seen(session, "archive")  # the rows first follow the files, then usage goes to what stays
        for keep, drop in pairs:
            self._rows().merge_notes(keep.note_id, drop.note_id, by=MERGED)


def pairs_of(texts: Sequence[str], vectors: Sequence[Vector | None], least: float) -> list[Pair]:
    """The pairs of texts that say the same, the most alike first: they share three of five words, one is part of the
    other, or their vectors are at least so near; and nothing that decides differs. Pure."""
    found: dict[tuple[int, int], Pair] = {}
    words = [words_of(text) for text in texts]
    for several in _blocks(texts):
        for pair in (*_by_words(several, words), *_by_meaning(several, vectors, least)):
            known = found.get((pair.one, pair.other))
            if known is None and _speak_of_others(texts[pair.one], texts[pair.other]):
                continue
            if known is None or pair.similarity > known.similarity:
                found[pair.one, pair.other] = pair
    return sorted(found.values(), key=lambda pair: (-pair.similarity, pair.one, pair.other))


def _speak_of_others(one: str, other: str) -> bool:
    """Whether what decides differs, or whom they speak of: Anna's boss is not Anna, and the ferry crew no ferry."""
    if contradiction(one, other):
        return True
    before, after = _spelled(one), _spelled(other)
    if _owners(before) & (set(after) - _owners(after)) or _owners(after) & (set(before) - _owners(before)):
        return True
    shared = words_of(one) & words_of(other)
    return _is_joined(before, after, shared) or _is_joined(after, before, shared)


def _spelled(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("\u2019", "'"))


def _owners(words: Sequence[str]) -> set[str]:
    """Both spellings of those whose thing or person is meant: Anna's boss, the boss of Anna."""
    named = {word.removesuffix("'s") for word in words if word.endswith("'s")}
    named |= {word for of, word in pairwise(words) if of == "of"}
    return named | {f"{word}'s" for word in named}


def _is_joined(words: Sequence[str], other: Sequence[str], shared: Collection[str]) -> bool:
    """Whether what both speak of first is followed by one more word here, where the other goes on at once."""
    at = next((number for number, word in enumerate(words) if word in shared), len(words))
    first, added, then = (*words[at : at + 3], "", "", "")[:3]
    return added not in other and (first, then) in pairwise(other)


def _blocks(texts: Sequence[str]) -> Iterator[list[int]]:
    """The numbers of texts that may say the same: two of which other things are decided never do."""
    blocks = defaultdict(list)
    for number, text in enumerate(texts):
        blocks[decided_by(text)].append(number)
    return (block for block in blocks.values() if len(block) > 1)


def _by_words(numbers: Sequence[int], words: Sequence[frozenset[str]]) -> Iterator[Pair]:
    """Not every two are compared: two that share so many words have one of their rarest ones in common, and what is
    part of another text has its rarest word from there."""
    often = Counter(word for number in numbers for word in words[number])
    having: dict[str, list[int]] = defaultdict(list)
    for number in numbers:
        for word in words[number]:
            having[word].append(number)
    among_the_rarest: dict[str, list[int]] = defaultdict(list)
    for number in numbers:
        own = words[number]
        rare_first = sorted(own, key=lambda word: (often[word], word))
        rarest = rare_first[: len(own) - math.ceil(_SHARED * len(own)) + 1]
        for other in {other for word in rarest for other in among_the_rarest[word]}:
            both = len(own & words[other])
            shared = both / (len(own) + len(words[other]) - both)
            if shared >= _SHARED:
                yield Pair(other, number, shared, "words")
        for word in rarest:
            among_the_rarest[word].append(number)
        if len(own) >= _CONTAINED_WORDS:
            for other in having[rare_first[0]]:
                if len(own) < _SHARED * len(words[other]) and own < words[other]:
                    yield Pair(min(number, other), max(number, other), len(own) / len(words[other]), "contained")


def _by_meaning(numbers: Sequence[int], vectors: Sequence[Vector | None], least: float) -> Iterator[Pair]:
    having = [(number, vector) for number in numbers if (vector := vectors[number]) is not None]
    sizes = Counter(vector.shape for _, vector in having)  # of two models, one is being replaced by the other
    having = [(number, vector) for number, vector in having if vector.shape == sizes.most_common(1)[0][0]]
    if len(having) < 2:
        return
    import numpy as np  # only where there are vectors at all

    matrix = np.stack([vector for _, vector in having])
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    for start in range(0, len(having), _AT_ONCE):
        alike = matrix[start : start + _AT_ONCE] @ matrix.T
        for row, column in zip(*np.nonzero(alike >= least), strict=True):
            if start + row < column:
                yield Pair(having[start + row][0], having[column][0], float(alike[row, column]), "meaning")


def _chosen(one: Fact, other: Fact, now: datetime) -> tuple[Fact, Fact]:
    """Which of two stays: the one in core.md, the one that a person pinned, the more important, the one that says more,
    the older."""

    def weight(fact: Fact) -> tuple[bool, bool, float, int, float, tuple[int, str]]:
        return (
            fact.path == CORE,
            fact.pinned,
            round(effective(fact, now), 2),
            len(fact.content),
            -fact.created_at.timestamp(),
            order_of(fact.path),
        )

    return (one, other) if weight(one) >= weight(other) else (other, one)
