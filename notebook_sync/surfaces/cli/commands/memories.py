"""The group `memory`: decisions, problems, patterns and insights, and how they bear on each other."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

from notebook_sync.errors import UsageError
from notebook_sync.surfaces.cli.answers import (
    complain,
    listed,
    opened,
    session_of,
    show,
    tags_wanted,
    terminal_width,
    text_given,
)
from notebook_sync.surfaces.cli.next_steps import next_steps, undo_of
from notebook_sync.surfaces.cli.picture import put_picture, require_place
from notebook_sync.surfaces.cli.progress import progress
from notebook_sync.surfaces.cli.text import memories as text

_FAILED = 1


def memory(arguments: Namespace) -> int:
    """Run one command of the group."""
    return _MEMORY[arguments.subcommand](arguments)


def _add(arguments: Namespace) -> int:
    if arguments.text is not None and arguments.content_file is not None:
        raise UsageError("give the memory once: as TEXT or with --content-file")
    content = text_given(arguments.text, arguments.content_file, "--content")
    if content is None:
        raise UsageError("say what is to be remembered, as in: notebook-sync memory add --content-file decision.txt")
    with next_steps(arguments), opened(arguments) as notebook:
        added = notebook.memory_add(
            content,
            session_of(arguments),
            title=arguments.title,
            kind=arguments.kind,
            domain=arguments.domain,
            tags=listed(arguments.tags or ""),
            agent=arguments.agent,
            priority=arguments.priority,
            created_at=arguments.created_at,
            strict=arguments.strict,
        )
    show(arguments, added, lambda told: text.of_adding(told, undo_of(arguments, made=True)))
    return 0


def _list(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        memories = notebook.memories(
            session_of(arguments),
            kind=arguments.kind,
            domain=arguments.domain,
            tags=tags_wanted(arguments),
            needs_review=True if arguments.needs_review else None,
            limit=arguments.limit,
        )
    show(arguments, memories, lambda rows: text.of_memories(rows, terminal_width()))
    if not memories:
        complain(_of_none(arguments))
    return 0


def _of_none(arguments: Namespace) -> str:
    """Which option may have left nothing; without one, how a memory is made."""
    names = ("kind", "domain", "tags", "needs_review")
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name)]
    if given:
        return f"no memories with this {' and '.join(given)}"
    return "no memories; one is written with: notebook-sync memory add TEXT"


def _search(arguments: Namespace) -> int:
    if not arguments.query.strip():
        raise UsageError("say what to look for, as in: notebook-sync memory search 'why was the pier closed'")
    with next_steps(arguments), opened(arguments) as notebook:
        found = notebook.memory_search(
            arguments.query,
            session_of(arguments),
            kind=arguments.kind,
            domain=arguments.domain,
            tags=tags_wanted(arguments),
            limit=arguments.limit,
        )
    show(arguments, found, lambda rows: text.of_found(rows, terminal_width()))
    if not found:
        complain("no memory comes near; all there are: notebook-sync memory list")
    return 0


def _link(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        link = notebook.memory_link(
            arguments.from_id,
            arguments.type,
            arguments.to_id,
            session_of(arguments),
            confidence=arguments.confidence,
            reasoning=arguments.reasoning,
            source=arguments.source,
        )
    show(arguments, link, text.of_link)
    return 0


def _ingest(arguments: Namespace) -> int:
    said = text_given(None, arguments.file, "FILE")
    try:
        links = json.loads(said or "")
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{arguments.file} is no JSON: {error}; give a list of links, each with from, to, type"
        ) from None
    with next_steps(arguments), opened(arguments) as notebook:
        taken = notebook.memory_links(links, session_of(arguments))
    show(arguments, taken, lambda told: text.of_ingesting(told, terminal_width()))
    return _FAILED if taken["dropped"] else 0


def _infer(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        inferred = notebook.memory_infer(session_of(arguments), apply=arguments.apply, limit=arguments.limit)
    show(arguments, inferred, lambda told: text.of_inferring(told, terminal_width()))
    if not inferred["links"]:
        complain(f"no links found; {inferred['pairs']:,} pairs of memories are alike enough to be asked about")
    elif not arguments.apply:
        complain("nothing is changed; --apply writes them down")
    return 0


def _audit(arguments: Namespace) -> int:
    if arguments.fix:
        return _fix(arguments)
    if arguments.dry_run:
        raise UsageError(
            "an audit changes nothing; to see what --fix would: notebook-sync memory audit --fix --dry-run"
        )
    with next_steps(arguments), opened(arguments) as notebook:
        audit = notebook.memory_audit(session_of(arguments))
    show(arguments, audit, text.of_audit)
    return 0


def _fix(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook, progress("repair") as told:
        fixed = notebook.memory_fix(session_of(arguments), dry_run=arguments.dry_run, progress=told)
    show(arguments, fixed, lambda found: text.of_fix(found, dry_run=arguments.dry_run))
    return _FAILED if fixed["trouble"] else 0


def _score(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        scored = notebook.memory_scores(session_of(arguments))
    show(arguments, scored, text.of_scores)
    return 0


def _import(arguments: Namespace) -> int:
    if not arguments.file or "\0" in arguments.file:
        raise UsageError("name a file, as in: notebook-sync memory import memories.jsonl")
    pairs = [each.partition("=") for each in arguments.map]
    if not all(old and new for old, _, new in pairs):
        raise UsageError("--map takes OLD=NEW, as in: --map body=content")
    file = Path(arguments.file).expanduser()
    with next_steps(arguments), opened(arguments) as notebook, progress("import", "memories") as told:
        imported = notebook.memory_import(
            file,
            session_of(arguments),
            dry_run=arguments.dry_run,
            again=arguments.again,
            names={old: new for old, _, new in pairs},
            progress=told,
        )
    show(arguments, imported, lambda found: text.of_import(found, dry_run=arguments.dry_run))
    return _FAILED if imported["failed"] or not imported["lossless"] or not imported["read"] else 0


def _graph(arguments: Namespace) -> int:
    if arguments.mermaid:
        require_place(arguments, ".mmd", ".md", example="notebook-sync memory graph memories.mmd --mermaid")
    else:
        require_place(arguments, ".svg", example="notebook-sync memory graph memories.svg")
    with next_steps(arguments), opened(arguments) as notebook:
        picture = notebook.memory_graph(
            session_of(arguments),
            format="mermaid" if arguments.mermaid else "svg",
            kind=arguments.kind,
            domain=arguments.domain,
            around=arguments.around,
            limit=arguments.limit,
        )
    return put_picture(arguments, picture)


def _figures(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        figures = notebook.memory_figures(session_of(arguments))
    show(arguments, figures, text.of_figures)
    return 0


_MEMORY: Mapping[str, Callable[[Namespace], int]] = {
    "add": _add,
    "list": _list,
    "search": _search,
    "link": _link,
    "ingest": _ingest,
    "infer": _infer,
    "audit": _audit,
    "score": _score,
    "import": _import,
    "graph": _graph,
    "figures": _figures,
}
