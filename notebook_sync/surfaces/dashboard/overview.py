"""What is in the notebook, in numbers."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from notebook_sync.store.rows import Is
from notebook_sync.surfaces.dashboard.shell import Ask, Shell

_DAYS = 14
# What no file holds.
_KEPT = ("facts", "stream", "longterm", "checkpoints", "history", "events")
_ADDRESS = "/statistics"


def routes(shell: Shell) -> list[BaseRoute]:
    """The page of statistics."""
    shell.add_link("System", _ADDRESS, "Statistics")
    return [
        shell.route(_ADDRESS, lambda ask: _show(shell, ask), "GET"),
    ]


def _show(shell: Shell, ask: Ask) -> Response:
    index = shell.notebook.core.index
    days, kinds = _activity(shell)
    return shell.page(
        ask,
        "statistics.html",
        notes=index.documents.distinct("collection", Is("path", "!=", None)),
        kept={name: index.collections[name].count() for name in _KEPT},
        statuses=index.documents.distinct("status", Is("path", "!=", None)),
        authors=index.documents.distinct("created_by", Is("path", "!=", None)),
        tags=sorted(index.documents.distinct("tags").items(), key=lambda pair: (-pair[1], str(pair[0])))[:20],
        days=days,
        most=max((count for _, count in days), default=0),
        kinds=kinds.most_common(),
    )


def _activity(shell: Shell) -> tuple[list[tuple[str, int]], Counter[str]]:
    """How many events each of the last days has, the oldest first, and how many each kind of event has."""
    now = datetime.now(UTC)
    first = now - timedelta(days=_DAYS - 1)
    rows: list[tuple[Any, ...]] = shell.notebook.core.index.events.tuples(("at", "kind"), Is("at", ">", first))
    per_day = Counter(f"{at:%Y-%m-%d}" for at, _ in rows)
    names = [f"{first + timedelta(days=each):%Y-%m-%d}" for each in range(_DAYS)]
    return [(name, per_day[name]) for name in names], Counter(str(kind) for _, kind in rows)
