"""What can be measured of memories, of briefs and of what is made of them; and what of the day's budget is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import BackendDown
from notebook_sync.operations.registry import plain
from notebook_sync.settings import Tier2Settings
from notebook_sync.surfaces.dashboard.asking import Asking, Served, pages_router
from notebook_sync.surfaces.dashboard.memory.memory_view import Tone, share_of
from notebook_sync.surfaces.dashboard.notes.note_view import address_of
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.trouble import trouble_of

pages = pages_router()
FIGURES: Final = "/memory/figures"
MOST_KEPT: Final = 20
_LONGEST: Final = 8_000
_NOTHING: Final = "–"
_NEARLY: Final = 0.8


@dataclass(frozen=True, slots=True)
class Group:
    """Figures that belong together, each with what it means; where there is nothing to measure yet, `lacks` says what
    would fill them."""

    name: str
    rows: tuple[tuple[str, str, str], ...]
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """How many questions the day has, and has had."""

    spent: int
    limit: int
    share: int
    tone: Tone


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that is kept. `rests_on` are the paths of memories, and where their pages are."""

    name: str
    said: str
    source: str
    made_at: datetime
    hits: int
    holds: bool
    rests_on: tuple[tuple[str, str], ...]


@pages.get(FIGURES)
def figures_page(notebook: Served, asking: Asking, done: Annotated[str, Query(max_length=16)] = "") -> HTMLResponse:
    """All figures."""
    trouble, groups, budget, kept = None, [], None, []
    try:
        figures = plain(notebook.context.figures(asking))
        kept = plain(notebook.context.cached(asking, limit=MOST_KEPT).results)
    except BackendDown as error:
        trouble = trouble_of(error)
    else:
        groups, budget = groups_of(figures), budget_of(figures["synthesis"])
    tier2 = notebook.settings.tier2
    return page(
        "memory_figures.html",
        here="memory",
        trouble=trouble,
        groups=groups,
        budget=budget,
        kept=[kept_of(row) for row in kept],
        most=MOST_KEPT,
        zone=notebook.settings.timezone,
        tier2=tier2,
        reasoner=reasoner_of(tier2),
        scored=done == "scored",
    )


@pages.post("/memory/figures/scores")
def score(notebook: Served, asking: Asking) -> Response:
    """Compute all scores anew."""
    notebook.memories.score(asking)
    return RedirectResponse(f"{FIGURES}?done=scored", 303)


def kept_of(row: Mapping[str, Any]) -> Kept:
    """A row of an answer that is kept. Pure."""
    said = row["synthesis_md"]
    return Kept(
        name=row["synthesis_id"],
        said=said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…",
        source=row["source"],
        made_at=row["made_at"],
        hits=row["hits"],
        holds=row["holds"],
        rests_on=tuple((each["path"], address_of(each["path"])) for each in row["rests_on"]),
    )


def budget_of(synthesis: Mapping[str, Any]) -> Budget:
    """The day's questions. Pure."""
    spent, limit = synthesis["today"], synthesis["daily_limit"]
    share = spent / limit if limit else 1.0
    return Budget(spent, limit, share_of(share), "bad" if share >= 1 else "warn" if share >= _NEARLY else "good")


def reasoner_of(settings: Tier2Settings) -> str:
    """Who is asked for syntheses, "" for nobody. Pure."""
    if not settings.enabled:
        return ""
    return f"the MCP server {settings.command[0]!r}" if settings.command else "the model of [llm]"


def groups_of(figures: Mapping[str, Any]) -> list[Group]:
    """What the figures say, as it is shown. Pure."""
    compiled, asked = figures["compile"], figures["synthesis"]
    return [
        Group(
            "Memories",
            (
                ("Memories", _count(figures["memories"]), ""),
                (
                    "Structured",
                    _share(figures["structured_share"]),
                    "of a kind, with context, reasoning and outcome, and not waiting for a review",
                ),
                ("To review", _count(figures["needs_review"]), "marked so by who made them"),
                ("Links that say why", _count(figures["causal_links"]), "all but those that only say similar"),
                ("Score", _spread(figures["score"]), "the mean, and how far they spread"),
            ),
            "" if figures["memories"] else "Memories fill these: write one, or let an agent keep what it learned.",
        ),
        Group(
            "Task briefs",
            (
                ("Compiled", _count(compiled["count"]), "of the last thousand"),
                ("Usually within", _time(compiled["p50_ms"]), "half of them took no longer"),
                ("Nearly always within", _time(compiled["p95_ms"]), "95 of 100 took no longer"),
            ),
            "" if compiled["count"] else "Briefs fill these: notebook-sync context brief compiles one.",
        ),
        Group(
            "Syntheses",
            (
                ("Asked for", _count(asked["asked"]), "of the last thousand"),
                ("Kept answers", _count(asked["hits"]), "nobody had to be asked"),
                ("Share of kept answers", _share(asked["hit_rate"]), ""),
                ("Answered", _count(asked["answered"]), "by the reasoner"),
                ("Failed", _count(asked["failed"]), "the brief stood in"),
                ("An answer takes", _time(asked["p50_ms"]), "half of them; 95 of 100 " + _time(asked["p95_ms"])),
                (
                    "A kept one takes",
                    _time(asked["hit_p50_ms"]),
                    "half of them; 95 of 100 " + _time(asked["hit_p95_ms"]),
                ),
            ),
            "" if asked["asked"] else "Syntheses fill these: notebook-sync context synthesize asks for one.",
        ),
    ]


def _count(value: int) -> str:
    return f"{value:,}"


def _share(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.1%}"


def _time(value: float | None) -> str:
    if value is None:
        return _NOTHING
    return f"{value / 1000:,.1f} s" if value >= 1000 else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _spread(values: Mapping[str, float | None]) -> str:
    mean, sigma = values["mean"], values["sigma"]
    return _NOTHING if mean is None or sigma is None else f"{mean:.2f} ± {sigma:.2f}"
