"""Briefs and syntheses in words, for people at a terminal. Pure: values in, text out.

A brief is printed as it is, for it may be on its way to an agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from notebook_sync.surfaces.cli.text.memories import of_dropped
from notebook_sync.surfaces.cli.text.notebook import counts, safe
from notebook_sync.surfaces.cli.text.rendering import Rendering, by_width, common_complaints
from notebook_sync.surfaces.cli.text.rows import aligned

Told = Mapping[str, Any]


def of_brief(brief: Told, _: int | None = None) -> str:
    """The brief as it is given to an agent; with an explanation, that below it."""
    text = str(brief["task_brief_md"])
    return "\n".join([text.rstrip("\n"), "", *_explained(brief)]) if "explain" in brief else text


def _explained(brief: Told) -> Iterator[str]:
    """Each step: what was looked for, found, taken and left."""
    yield safe(f"context hash  {brief['context_hash']}")
    yield f"tokens        {brief['token_count']:,}"
    steps = brief["explain"]
    unrelated = _ids(steps, "prefilter") - _ids(steps, "search")
    for step, told in steps.items():
        yield step
        rows = told if isinstance(told, list) else [told]
        related = [one for one in rows if not (isinstance(one, Mapping) and one.get("id") in unrelated)]
        yield from (f"  {safe(_worded(one))}" for one in related)
        if len(related) < len(rows):
            yield f"  and {len(rows) - len(related):,} that have nothing to do with the task; --json lists them"


def _ids(steps: Told, step: str) -> set[str]:
    """The memories that a step tells of."""
    return {one["id"] for one in steps.get(step, ())}


def _worded(told: Any) -> str:
    """A value as people read it: the fields of an object behind their names, but for those that say nothing."""
    if isinstance(told, Mapping):
        return "  ".join(f"{name} {_worded(value)}" for name, value in told.items() if value not in ("", [], None))
    if isinstance(told, list):
        return ", ".join(map(_worded, told))
    if isinstance(told, float):
        return f"{told:.3f}"
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False, default=str)


def of_making(synthesis: Told) -> Iterator[str]:
    """Who made a synthesis, what that cost, and what became of the links in it."""
    source = f"{_SOURCES.get(synthesis['source'], synthesis['source'])}{', and kept' if synthesis['cached'] else ''}"
    calls = f"{synthesis['calls_today']:,} of {counts(synthesis['daily_limit'], 'call')} made today"
    yield from map(safe, (f"{source}; {calls}", *of_dropped(synthesis["links"])))


_SOURCES = {
    "bridge": "made by the server of tier2.command",
    "llm": "made by the language model",
    "local": "made here, of the brief alone",
}


def of_prefetched(fetched: Told, width: int | None = None) -> str:
    """A line for each spec: where its synthesis comes from, or why there is none."""
    rows = [(one["spec"], one["source"] or "-", one.get("trouble") or _ready(one)) for one in fetched["results"]]
    return aligned(rows, width)


def of_cached(cached: Told, width: int | None = None) -> str:
    """A line for each answer: when it was made, by whom, how often it was used, and whether it still holds."""
    rows = [
        (
            one["made_at"][:16],
            one["source"],
            f"{one['hits']:,} hits",
            "" if one["holds"] else "stale",
            one["synthesis_id"],
        )
        for one in cached["results"]
    ]
    return aligned(rows, width)


def _ready(fetched: Told) -> str:
    return "was there already" if fetched["cached"] else "is ready"


CONTEXT: Mapping[str, Rendering] = {
    "context brief": Rendering(lambda brief, _: of_brief(brief), is_quoted=True),
    "context synthesize": Rendering(
        lambda synthesis, _: str(synthesis["synthesis_md"]),
        lambda synthesis: [*of_making(synthesis), *common_complaints(synthesis)],
    ),
    "context prefetch": by_width(of_prefetched, lambda answer: any(one.get("trouble") for one in answer["results"])),
    "context cached": by_width(of_cached),
}
