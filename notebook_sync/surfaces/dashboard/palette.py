"""What the palette (Ctrl+K) finds: notes, facts, memories, rules and pages, as JSON."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from notebook_sync.registry import OPERATIONS
from notebook_sync.services.core import Core
from notebook_sync.services.view import View
from notebook_sync.sessions import OWNER
from notebook_sync.store.rows import Is, both
from notebook_sync.surfaces.dashboard.markdown import note_href
from notebook_sync.surfaces.dashboard.shell import Ask, Shell
from notebook_sync.surfaces.dashboard.tables import PAGES, address_of
from notebook_sync.surfaces.http.guard import json_response

_MOST = 8
_LONGEST_QUERY = 200
_HERE = Is("path", "!=", None)


def routes(shell: Shell) -> list[BaseRoute]:
    """The one route of the palette."""
    return [shell.route("/palette", lambda ask: _answer(shell, ask))]


def _answer(shell: Shell, ask: Ask) -> Response:
    words = ask.query.get("q", "")[:_LONGEST_QUERY].casefold().split()
    found = _commands(shell, words)
    if words:
        core = shell.notebook.core
        found += [*_notes(core, words), *_facts(core, words), *_rules(shell, words)]
    return json_response({"results": found})


def _commands(shell: Shell, words: list[str]) -> list[dict[str, str]]:
    pages = [(title, path) for links in shell.navigation.values() for path, title in links]
    forms = [
        (OPERATIONS[each].summary, address_of(page, each))
        for page in PAGES
        for each in (page.create, *page.tools)
        if each
    ]
    fitting = [pair for pair in [*pages, *forms] if _has(pair[0], words)]
    return [_entry("command", title, path) for title, path in fitting[:_MOST]]


def _notes(core: Core, words: list[str]) -> list[dict[str, str]]:
    rows = core.index.documents.tuples(("path", "title", "collection"), both(View(core, OWNER).where, _HERE))
    fitting = [row for row in rows if _has(f"{row[1]} {row[0]}", words)]
    fitting.sort(key=lambda row: (not _has(str(row[1]), words), len(str(row[1])), row[0]))
    return [
        _entry("memory" if collection == "memories" else "note", title, note_href(path), path)
        for path, title, collection in fitting[:_MOST]
    ]


def _facts(core: Core, words: list[str]) -> list[dict[str, str]]:
    """Not by a search, which counts what it finds as used."""
    rows = core.index.facts.tuples(("path", "content"), both(View(core, OWNER).where, _HERE))
    fitting = sorted((len(content), content, path) for path, content in rows if _has(content, words))
    return [_entry("fact", content, note_href(path), path) for _, content, path in fitting[:_MOST]]


def _rules(shell: Shell, words: list[str]) -> list[dict[str, str]]:
    found = [each for each in shell.call("rules").results if _has(f"{each.name} {each.identity} {each.action}", words)]
    return [_entry("rule", f"{each.name}: {each.action}", "/rules") for each in found[:_MOST]]


def _has(text: str, words: list[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def _entry(kind: str, title: Any, href: str, place: str = "") -> dict[str, str]:
    return {"kind": kind, "title": str(title), "href": href, "place": place}
