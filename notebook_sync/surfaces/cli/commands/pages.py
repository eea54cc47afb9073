"""The commands that make and change pages, code snippets and research notes."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.surfaces.cli.addressed import program
from notebook_sync.surfaces.cli.answers import listed, opened, session_of, show, text_given
from notebook_sync.surfaces.cli.next_steps import keeping, next_steps, undo_of
from notebook_sync.surfaces.cli.text import notes as text

_FIELDS = ("language", "description", "related_page", "source_url", "confidence")


def _create(arguments: Namespace) -> int:
    content = text_given(arguments.content, arguments.content_file, "--content")
    for flag, given in (("--title", arguments.title), ("--content", content)):
        if given is None:
            raise UsageError(
                f"create needs {flag}, as in: notebook-sync create pages --title Tides --content 'High water at nine'"
            )
    with next_steps(arguments), opened(arguments) as notebook:
        written = notebook.create(
            arguments.collection,
            arguments.title,
            content or "",
            session_of(arguments),
            summary=arguments.summary or "",
            tags=listed(arguments.tags or ""),
            status=arguments.status or "",
            fields=_fields(arguments),
        )
        kept = keeping(notebook, written.commit, written.path)
    show(arguments, written.as_dict(), lambda told: text.of_creation(told, kept, read=_reading(arguments)))
    return 0


def _update(arguments: Namespace) -> int:
    content = text_given(arguments.content, arguments.content_file, "--content")
    fields = _fields(arguments)
    given = (content, arguments.title, arguments.tags, arguments.summary, arguments.status)
    if all(one is None for one in given) and not fields:
        raise UsageError("say what is to change, as in: notebook-sync update pages/tides --status complete")
    with next_steps(arguments), opened(arguments) as notebook:
        written = notebook.update(
            arguments.id,
            session_of(arguments),
            content=content,
            title=arguments.title,
            tags=None if arguments.tags is None else listed(arguments.tags),
            summary=arguments.summary,
            status=arguments.status,
            fields=fields or None,
            expected_digest=arguments.expected_digest,
        )
        kept = keeping(notebook, written.commit, written.path)
    show(arguments, written.as_dict(), lambda told: text.of_update(told, kept, undo=undo_of(arguments)))
    return 0


def _fields(arguments: Namespace) -> dict[str, Any]:
    """Those of the note's collection that are given."""
    fields = {name: value for name in _FIELDS if (value := getattr(arguments, name)) is not None}
    if arguments.key_finding is not None:
        fields["key_findings"] = [one for one in arguments.key_finding if one.strip()]
    if arguments.related_pages is not None:
        fields["related_pages"] = list(listed(arguments.related_pages))
    return fields


def _reading(arguments: Namespace) -> Callable[[str], str]:
    return lambda name: f"{program()} read {shlex.quote(name)}"


MAKING: Mapping[str, Callable[[Namespace], int]] = {"create": _create, "update": _update}
