"""How a brief came to be, step by step, with scores: what `explain` tells. Pure."""

from __future__ import annotations

from typing import Any

from notebook_sync.context.brief import Brief
from notebook_sync.context.candidates import Gathered
from notebook_sync.context.choosing import Choice, Ranked
from notebook_sync.context.intent import Intent


def explained(intent: Intent, gathered: Gathered, choice: Choice, brief: Brief) -> dict[str, Any]:
    """`{intent, prefilter, search, combined, mmr, cut}`: rows with `id`, in the order of their step."""
    ranked = choice.ranked
    return {
        "intent": intent.as_dict(),
        "prefilter": [
            {"id": note_id, "path": memory.path, "found_by": list(gathered.how[note_id])}
            for note_id, memory in gathered.memories.items()
        ],
        "search": [_searched(one, gathered) for one in ranked.values()],
        "combined": [
            {
                "id": note_id,
                "similarity": _told(one.similarity),
                "score": _told(one.score),
                "combined": _told(one.combined),
            }
            for note_id, one in ranked.items()
        ],
        "mmr": [
            {
                "id": one.note_id,
                "relevance": _told(one.relevance),
                "redundancy": _told(one.redundancy),
                "margin": _told(one.margin),
                "superseded_by": ranked[one.note_id].superseded_by,
            }
            for one in choice.taken
        ],
        "cut": [{"id": note_id, "why": why} for note_id, why in [*brief.cut.items(), *choice.left_out.items()]],
    }


def _searched(one: Ranked, gathered: Gathered) -> dict[str, Any]:
    note_id, fused = one.memory.id, one.fused
    cosine = gathered.placed.similarities.get(note_id) if gathered.placed else None
    return {
        "id": note_id,
        "words": _told(fused.words) if fused else 0.0,
        "meaning": _told(fused.meaning) if fused else 0.0,
        "cosine": None if cosine is None else _told(cosine),
        "share": fused.share if fused else 0.0,
    }


def _told(score: float) -> float:
    return round(score, 4)
