"""The commands that list and search notes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.cli.answers import (
    as_json,
    complain,
    moment_given,
    opened,
    show,
    shown_to,
    tags_wanted,
    terminal_width,
)
from notebook_sync.surfaces.cli.text.finding import of_found, of_shortcomings
from notebook_sync.surfaces.cli.text.notes import of_notes

_FAILED = 1


def _list(arguments: Namespace) -> int:
    with opened(arguments) as notebook:
        notes = notebook.list(limit=arguments.limit, session=shown_to(arguments), **_narrowed(arguments, notebook))
        zone = notebook.settings.timezone
    of_none = f"no notes{_of_those_named(arguments)}; the mirror is listed as it is, see: notebook-sync sync"
    return _tell(arguments, notes, zone, of_none)


def _search(arguments: Namespace) -> int:
    if not arguments.query.strip():
        raise UsageError('say what to look for, as in: notebook-sync search "race condition"')
    with opened(arguments) as notebook:
        searched = notebook.search_report(
            arguments.query,
            arguments.limit,
            shown_to(arguments),
            mode=arguments.mode or "",
            section=arguments.section,
            snippet=arguments.snippet,
            explain=arguments.explain,
            **_narrowed(arguments, notebook),
        )
        zone = notebook.settings.timezone
    if arguments.report:
        print(as_json(searched.as_dict()))
        return 0
    show(arguments, list(searched.results), lambda rows: of_found(rows, zone, terminal_width()))
    if not searched.results:
        complain(f"nothing found{_of_those_named(arguments)}; a note is found once sync has seen it")
    for line in of_shortcomings(searched.mode, searched.degraded, searched.behind):
        complain(line)
    return 0


def _narrowed(arguments: Namespace, notebook: Notebook) -> dict[str, Any]:
    """By what notes may be narrowed, as the notebook is asked for it. Raises UsageError."""
    return {
        "collection": arguments.collection,
        "status": arguments.status,
        "tags": tags_wanted(arguments),
        "created_by": arguments.author,
        "since": moment_given(arguments.since, notebook),
        "until": moment_given(arguments.until, notebook),
    }


def _tell(arguments: Namespace, notes: list[dict[str, Any]], zone: tzinfo, of_none: str) -> int:
    """Print notes; `of_none` is why there may be none."""
    show(arguments, notes, lambda rows: of_notes(rows, zone, terminal_width()))
    if not notes:
        complain(of_none)
    return 0


def _of_those_named(arguments: Namespace) -> str:
    """Which options left nothing, so that nobody looks for the reason elsewhere."""
    narrowing = ("collection", "status", "tags", "author", "since", "until", "section")
    given = [name if name == "collection" else f"--{name}" for name in narrowing if getattr(arguments, name, None)]
    spelled = "; an agent is named as agent:scribe" if arguments.author and ":" not in arguments.author else ""
    return f" with this {' and '.join(given)}{spelled}" if given else ""


FINDING: Mapping[str, Callable[[Namespace], int]] = {"list": _list, "search": _search}
