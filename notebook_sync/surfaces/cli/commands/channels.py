"""The group `note`: an agent's private notes."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.surfaces.cli.answers import (
    complain,
    listed,
    moment_given,
    opened,
    session_of,
    show,
    tags_wanted,
    terminal_width,
    text_given,
)
from notebook_sync.surfaces.cli.next_steps import keeping, next_steps
from notebook_sync.surfaces.cli.text import notes as text
from notebook_sync.surfaces.cli.text.finding import of_shortcomings


def note(arguments: Namespace) -> int:
    """Run one command of the group."""
    return _NOTE[arguments.subcommand](arguments)


def _write(arguments: Namespace) -> int:
    content = text_given(arguments.text, None, "TEXT") or ""
    metadata = _metadata(arguments.meta)
    with next_steps(arguments), opened(arguments) as notebook:
        written = notebook.write_note(
            content,
            session_of(arguments),
            topic=arguments.topic,
            tags=listed(arguments.tags or ""),
            session_id=arguments.session_id,
            project=arguments.project,
            metadata=metadata,
            agent=arguments.channel,
        )
        kept = keeping(notebook, written.commit, written.path)
    show(arguments, written.as_dict(), lambda told: text.of_writing(told, kept))
    return 0


def _metadata(given: list[str]) -> dict[str, Any]:
    """By key, what JSON says, else the text itself. Raises UsageError."""
    metadata: dict[str, Any] = {}
    for one in given:
        key, parted, value = one.partition("=")
        if not parted or not key.strip():
            raise UsageError(f"{one!r} is no KEY=VALUE; give it as in: --meta confidence=0.8")
        if key.strip() in metadata:
            raise UsageError(
                f'--meta gives {key.strip()!r} twice; give it once, as in: --meta \'places=["pier", "bay"]\''
            )
        try:
            metadata[key.strip()] = json.loads(value, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            metadata[key.strip()] = value
    return metadata


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _search(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        notes = notebook.search_notes(
            arguments.query,
            session_of(arguments),
            agent=arguments.channel,
            tags=tags_wanted(arguments),
            since=moment_given(arguments.since, notebook),
            until=moment_given(arguments.until, notebook),
            topic=arguments.topic,
            session_id=arguments.session_id,
            project=arguments.project,
            profile=arguments.profile,
            limit=arguments.limit,
        )
        zone = notebook.settings.timezone
    return _tell(
        arguments, notes, zone, "nothing found; look for fewer words, or see: notebook-sync note recent", notes.degraded
    )


def _recent(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        notes = notebook.recent_notes(
            session_of(arguments),
            agent=arguments.channel,
            limit=arguments.limit,
            session_id=arguments.session_id,
            topic=arguments.topic,
            project=arguments.project,
        )
        zone = notebook.settings.timezone
    return _tell(
        arguments, notes, zone, "no private notes; one is written with: notebook-sync note write TEXT --agent NAME"
    )


def _peek(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        notes = notebook.peek_notes(
            arguments.of,
            session_of(arguments),
            query=arguments.query,
            tags=tags_wanted(arguments),
            topic=arguments.topic,
            project=arguments.project,
            limit=arguments.limit,
        )
        zone = notebook.settings.timezone
    return _tell(arguments, notes, zone, "nothing found; see: notebook-sync note channels", notes.degraded)


def _tell(arguments: Namespace, notes: list[dict[str, Any]], zone: tzinfo, of_none: str, degraded: str = "") -> int:
    """Print private notes; `of_none` is what to do where there are none, `degraded` why words alone found them."""
    show(arguments, notes, lambda rows: text.of_private_notes(rows, zone, terminal_width()))
    if not notes:
        complain(of_none)
    for line in of_shortcomings("keyword", degraded, 0):
        complain(line)
    return 0


def _channels(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        channels = notebook.channels(session_of(arguments))
    show(arguments, channels, text.of_channels)
    if not channels:
        complain("no channels; the first note makes one: notebook-sync note write TEXT --agent NAME")
    return 0


_NOTE: Mapping[str, Callable[[Namespace], int]] = {
    "write": _write,
    "search": _search,
    "recent": _recent,
    "peek": _peek,
    "channels": _channels,
}
