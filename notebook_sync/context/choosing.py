"""From candidates to the memories that a brief rests on, each step with its scores. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from notebook_sync.context.candidates import Gathered
from notebook_sync.context.intent import Intent
from notebook_sync.context.ranking import Taken, bm25, combined, diversified, in_common, lifted
from notebook_sync.mirror.memories import UNSCORED, Memory
from notebook_sync.search.fusion import Fused, fuse
from notebook_sync.settings import Settings

# A link that only says that two memories are alike brings nothing new; nor does one to what is out of date.
_TELLING = frozenset({"causes", "solves", "contradicts", "expands"})
# From this part of the best similarity on, and never below the other, a memory is there for itself.
_PRIMARY, _LEAST_PRIMARY = 0.5, 0.3
# Below this part of the best, a word or two are in common by chance.
_CHANCE = 0.1


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate's scores, each 0 to 1. `similarity` is that of words and meaning, or what a link adds to it; `score`
    what the memory counts for by itself, as it was computed last: no clock changes it in between."""

    memory: Memory
    fused: Fused | None
    similarity: float
    score: float
    combined: float
    superseded_by: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """All that were ranked, best first; those that were taken, in order; why others were not, by id. `primary` are
    those of the taken that are there for themselves."""

    ranked: Mapping[str, Ranked]
    taken: tuple[Taken, ...]
    primary: frozenset[str]
    left_out: Mapping[str, str]


def choose(gathered: Gathered, intent: Intent, settings: Settings, top_k: int) -> Choice:
    """The best `top_k`, which say little twice. What another memory supersedes comes behind all others.

    Left out is what has nothing to do with the task: none of its words, domains or tags, no meaning, no link.
    """
    ranked = _ranked(gathered, intent, settings)
    relevance = {note_id: one.combined for note_id, one in ranked.items()}
    current = {note_id: value for note_id, value in relevance.items() if not ranked[note_id].superseded_by}
    older = {note_id: value for note_id, value in relevance.items() if ranked[note_id].superseded_by}
    alike, diversity = _alike(gathered), settings.context.diversity
    taken = diversified(current, alike, diversity, top_k)
    taken += diversified(older, alike, diversity, top_k - len(taken))
    least = max(_PRIMARY * max((ranked[one.note_id].similarity for one in taken), default=0.0), _LEAST_PRIMARY)
    primary = frozenset(
        one.note_id for one in taken if one.note_id in current and ranked[one.note_id].similarity >= least
    )
    chosen = {one.note_id for one in taken}
    left_out = {
        note_id: f"{top_k} others came before it" if note_id in ranked else "nothing of it has to do with the task"
        for note_id in gathered.memories
        if note_id not in chosen
    }
    return Choice(ranked, tuple(taken), primary, left_out)


def _ranked(gathered: Gathered, intent: Intent, settings: Settings) -> dict[str, Ranked]:
    words = bm25(intent.keywords, gathered.words)
    near = gathered.placed.similarities if gathered.placed else {}
    told = {note_id: cosine for note_id, cosine in near.items() if cosine > gathered.unrelated or note_id in words}
    fused = {one.note_id: one for one in fuse(words, told, settings.search.meaning)}
    # Both scales end at the best there is: where no word is in common, that may be far off.
    own = {
        note_id: 0.0 if note_id not in fused else min(fused[note_id].score, 1.0 if note_id in words else near[note_id])
        for note_id in gathered.memories
    }
    own |= {note_id: 1.0 for note_id, how in gathered.how.items() if "named" in how}
    telling = [(source, link.to, link.confidence) for source, link in gathered.links if link.type in _TELLING]
    similarity = lifted(own, telling)
    least = _CHANCE * max(similarity.values(), default=0.0)
    fitting = {note_id for note_id, found in similarity.items() if found > least}
    is_named = intent.naming()
    fitting |= {note_id for note_id, memory in gathered.memories.items() if is_named(memory.domain, memory.tags)}
    newer = _superseded(gathered)
    share = settings.context.similarity
    ranked = [
        Ranked(
            memory := gathered.memories[note_id],
            fused.get(note_id),
            similarity[note_id],
            score := UNSCORED if memory.score is None else memory.score,
            combined(similarity[note_id], score, share),
            newer.get(note_id, ""),
        )
        for note_id in fitting
    ]
    return {one.memory.id: one for one in sorted(ranked, key=lambda one: (-one.combined, one.memory.id))}


def _superseded(gathered: Gathered) -> dict[str, str]:
    """By id, the memory that took its place; of two that say so of each other, neither did."""
    told = {(source, link.to) for source, link in gathered.links if link.type == "supersedes" and source != link.to}
    return {older: newer for newer, older in sorted(told, reverse=True) if (older, newer) not in told}


def _alike(gathered: Gathered) -> Callable[[str], Mapping[str, float]]:
    """How alike candidates are to one, 0 to 1: by their vectors, and by the words that both have where one has none."""

    def alike(note_id: str) -> Mapping[str, float]:
        placed = gathered.placed.alike(note_id) if gathered.placed else {}
        others = gathered.words.keys() - placed.keys()
        return placed | {other: in_common(gathered.words[note_id], gathered.words[other]) for other in others}

    return alike
