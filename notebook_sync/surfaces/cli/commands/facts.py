"""The group `fact`: short statements that matter more when used, and fade when not."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.permissions import CORE_FACTS
from notebook_sync.surfaces.cli.answers import complain, opened, session_of, show, terminal_width, text_given
from notebook_sync.surfaces.cli.next_steps import next_steps, undo_of
from notebook_sync.surfaces.cli.picture import put_picture, require_place
from notebook_sync.surfaces.cli.text import facts as text
from notebook_sync.surfaces.cli.text.finding import of_shortcomings

_FAILED = 1
_NOTES, _ARCHIVE = "facts/notes.md", "facts/archive.md"


def fact(arguments: Namespace) -> int:
    """Run one command of the group."""
    return _FACT[arguments.subcommand](arguments)


def _add(arguments: Namespace) -> int:
    if arguments.text is not None and arguments.content_file is not None:
        raise UsageError("give the fact once: as TEXT or with --content-file")
    content = text_given(arguments.text, arguments.content_file, "--content")
    if content is None:
        raise UsageError("say what the fact is, as in: notebook-sync fact add 'The ferry leaves at eight'")
    with next_steps(arguments), opened(arguments) as notebook:
        was_there = notebook.vault.stamp(_NOTES) is not None
        added = notebook.fact_add(
            content, session_of(arguments), section=arguments.section, importance=arguments.importance
        )
    made = not was_there and added["action"] == "added"  # one that was put aside has left its place: it is moved back
    show(arguments, added, lambda told: text.of_adding(told, undo_of(arguments, made=made)))
    return 0


def _list(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        facts = notebook.facts(
            session_of(arguments),
            scope=arguments.scope,
            section=arguments.section,
            stale=arguments.stale,
            limit=arguments.limit,
        )
    show(arguments, facts, lambda rows: text.of_facts(rows, terminal_width()))
    if not facts:
        complain(_of_none(arguments))
    return 0


def _of_none(arguments: Namespace) -> str:
    """Which option may have left nothing; without one, how a fact is made."""
    given = [f"--{name}" for name in ("section", "stale") if getattr(arguments, name)]
    given += ["--scope"] if arguments.scope != "notes" else []
    if given:
        return f"no facts with this {' and '.join(given)}"
    return "no facts; one is written with: notebook-sync fact add TEXT"


def _search(arguments: Namespace) -> int:
    if not arguments.query.strip():
        raise UsageError("say what to look for, as in: notebook-sync fact search 'when does the ferry leave'")
    with next_steps(arguments), opened(arguments) as notebook:
        found = notebook.fact_search(
            arguments.query, session_of(arguments), scope=arguments.scope, limit=arguments.limit
        )
    show(arguments, found, lambda rows: text.of_found(rows, terminal_width()))
    if not found:
        complain("no fact comes near; --scope all looks at core.md and archive.md too")
    _tell_shortcoming(found.degraded)
    return 0


def _verify(arguments: Namespace) -> int:
    claim = text_given(arguments.text, None, "TEXT") or ""
    with next_steps(arguments), opened(arguments) as notebook:
        verdict = notebook.fact_verify(claim, session_of(arguments))
    show(arguments, verdict, lambda told: text.of_verdict(told, terminal_width()))
    _tell_shortcoming(verdict["degraded"])
    return 0


def _tell_shortcoming(degraded: str) -> None:
    for line in of_shortcomings("keyword", degraded, 0):
        complain(line)


def _reinforce(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        changed = notebook.fact_reinforce(arguments.fact, session_of(arguments))
    return _tell_change(arguments, changed)


def _archive(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        before = notebook.vault.stamp(_ARCHIVE)
        changed = notebook.fact_archive(arguments.fact, session_of(arguments), reason=arguments.reason)
        is_moved = notebook.vault.stamp(_ARCHIVE) != before
    return _tell_change(arguments, changed, is_moved=is_moved)


def _restore(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        changed = notebook.fact_restore(arguments.fact, session_of(arguments))
    return _tell_change(arguments, changed, is_moved=True)


def _promote(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        before = notebook.vault.stamp(CORE_FACTS)
        changed = notebook.fact_promote(arguments.fact, session_of(arguments), section=arguments.section)
        is_moved = notebook.vault.stamp(CORE_FACTS) != before
    return _tell_change(arguments, changed, is_moved=is_moved)


def _tell_change(arguments: Namespace, changed: Mapping[str, Any], *, is_moved: bool = False) -> int:
    undo = undo_of(arguments) if is_moved else None
    show(arguments, changed, lambda told: text.of_change(told, undo))
    return 0


def _decay(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        decayed = notebook.fact_decay(session_of(arguments), dry_run=arguments.dry_run)
    show(arguments, decayed, lambda told: text.of_decay(told, dry_run=arguments.dry_run, width=terminal_width()))
    return 0


def _dedupe(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        found = notebook.fact_dedupe(session_of(arguments), apply=arguments.apply)
    show(arguments, found, lambda told: text.of_pairs(told, terminal_width()))
    if not found["pairs"]:
        complain("no two facts say the same")
    elif not arguments.apply:
        complain("nothing is changed; --apply merges them")
    return 0


def _extract(arguments: Namespace) -> int:
    messages = _messages(arguments.messages)
    with next_steps(arguments), opened(arguments) as notebook:
        extracted = notebook.fact_extract(messages, session_of(arguments), dry_run=arguments.dry_run)
    show(arguments, extracted, lambda told: text.of_extraction(told, terminal_width()))
    if extracted["error"]:
        complain(extracted["error"])
        return _FAILED
    if not (extracted["additions"] or extracted["removals"]):
        complain("nothing in these messages is new, and nothing known is said to hold no longer")
    return 0


def _messages(file: str) -> Any:
    """What the JSON says. Raises UsageError for what is none."""
    source = "standard input" if file == "-" else file
    given = text_given(None, file, "MESSAGES") or ""
    try:
        return json.loads(given.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{source} is no JSON: {error}; messages are an array, as in: "
            '[{"role": "user", "content": "The ferry leaves at nine"}]'
        ) from None


def _plot(arguments: Namespace) -> int:
    require_place(arguments, ".svg", example="notebook-sync fact plot facts.svg")
    with next_steps(arguments), opened(arguments) as notebook:
        picture = notebook.fact_plot(session_of(arguments), days=arguments.days, limit=arguments.limit)
    return put_picture(arguments, picture)


_FACT: Mapping[str, Callable[[Namespace], int]] = {
    "add": _add,
    "list": _list,
    "search": _search,
    "verify": _verify,
    "reinforce": _reinforce,
    "decay": _decay,
    "archive": _archive,
    "restore": _restore,
    "promote": _promote,
    "dedupe": _dedupe,
    "extract": _extract,
    "plot": _plot,
}
