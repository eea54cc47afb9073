"""What is in the notebook: its notes in a tree of folders, narrowed and searched; the palette; and statistics."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.permissions import is_private
from notebook_sync.registry import OPERATIONS
from notebook_sync.services.core import Core
from notebook_sync.services.finding import list_notes, search_notes
from notebook_sync.services.view import View
from notebook_sync.sessions import OWNER
from notebook_sync.store.rows import EVERYTHING, Either, Is, both
from notebook_sync.surfaces.dashboard.markdown import note_href
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, address_with, route
from notebook_sync.surfaces.dashboard.tables import PAGES, address_of
from notebook_sync.surfaces.http.guard import json_response

NOTES: Final = "/notes"
_PER_PAGE, _MOST_FOUND, _MOST_TAGS = 50, 200, 60
_FILTERS = ("query", "folder", "collection", "status", "tag", "linked_to")
_DEEPEST = 6
_HERE: Final = Is("path", "!=", None)
# Of the palette: results of each kind, and characters of a query.
_MOST_OF_A_KIND, _LONGEST_QUERY = 8, 200
_STATISTICS: Final = "/statistics"
_DAYS = 14
# What no file holds.
_KEPT = ("facts", "stream", "longterm", "checkpoints", "history", "events")


@route(NOTES, link=("Notebook", "Notes"))
def show_notes(shell: Shell, ask: Ask) -> Response:
    """The notes of a folder, or those that are searched for, and what narrows them."""
    core = shell.notebook.core
    asked = ask.asked(*_FILTERS)
    asked["folder"] = posixpath.normpath(f"/{asked['folder']}").strip("/")
    folders, facets = _counts(core, core.index.version(), asked["folder"])
    results: Any = ()
    degraded, more, trouble = "", "", None
    try:
        found, more = _found(core, asked, ask.query)
        results, degraded = found.results, found.degraded
    except NotebookError as error:
        trouble = error
    return shell.page(
        ask,
        "notes.html",
        status=trouble.status if isinstance(trouble, UsageError) else 200,
        asked=asked,
        folders=_tree(folders, asked["folder"]),
        facets={name: _options(Counter(counts), asked[name]) for name, counts in facets.items()},
        rows=[(row, marked(_text_of(row), asked["query"])) for row in results],
        degraded=degraded,
        more=more,
        trouble=trouble,
        is_narrowed=any(value for name, value in asked.items() if name != "folder"),
    )


def _found(core: Core, asked: Mapping[str, str], query: Mapping[str, str]) -> tuple[Any, str]:
    """The notes that are asked for, and the address of the next page. Raises NotebookError."""
    filters: dict[str, Any] = {
        "folder": asked["folder"],
        "collection": asked["collection"] or None,
        "status": asked["status"] or None,
        "tags": [asked["tag"]] if asked["tag"] else None,
        "linked_to": asked["linked_to"],
    }
    if asked["query"]:
        limit = _MOST_FOUND if query.get("all") else _PER_PAGE
        found = search_notes(core, OWNER, asked["query"], mode="hybrid", limit=limit, explain=False, **filters)
        is_more = limit == len(found.results) < _MOST_FOUND
        return found, address_with(NOTES, asked, all="yes") if is_more else ""
    listed = list_notes(core, OWNER, limit=_PER_PAGE, after=query.get("after", ""), **filters)
    return listed, address_with(NOTES, asked, after=listed.next) if listed.next else ""


@lru_cache(maxsize=8)
def _counts(core: Core, version: int, folder: str) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """How many notes each folder has, and how many of those in one folder and below have what lists are narrowed by, at
    this version of the index."""
    documents = core.index.documents
    here = Either((Is("folder", "=", folder), Is("folder", "under", folder))) if folder else EVERYTHING
    narrowed = {"collection": "collection", "status": "status", "tag": "tags"}
    return documents.distinct("folder"), {name: documents.distinct(field, here) for name, field in narrowed.items()}


def _tree(notes: Mapping[str, int], here: str) -> list[dict[str, Any]]:
    """The folders at the top, those on the way to `here`, and those in it, with how many `notes` are in each and below;
    `depth` 0 is the notebook."""
    counts: Counter[str] = Counter()
    for folder, count in notes.items():
        parts = folder.split("/") if folder else []
        for depth in range(len(parts) + 1):
            counts["/".join(parts[:depth])] += count
    shown = [each for each in counts if _is_within(here, posixpath.dirname(each))]
    return [
        {
            "name": posixpath.basename(each) or "All notes",
            "href": address_with(NOTES, {"folder": each}),
            "depth": min(each.count("/") + bool(each), _DEEPEST),
            "notes": counts[each],
            "is_here": each == here,
        }
        for each in sorted(shown, key=lambda folder: (is_private(f"{folder}/"), folder.split("/")))
    ]


def _is_within(folder: str, above: str) -> bool:
    return not above or folder == above or folder.startswith(f"{above}/")


def _options(counts: Counter[str], chosen: str) -> list[tuple[str, int]]:
    """What may be chosen and how many notes have it, the chosen one included, by name."""
    names = {name for name, _ in counts.most_common(_MOST_TAGS)} | {chosen}
    return sorted((name, counts[name]) for name in names if name)


def _text_of(row: Any) -> str:
    """What is shown below a title: where the words were found, else the summary."""
    snippet = getattr(row, "snippet", None)
    return str(snippet.text if snippet else row.summary)


def marked(text: str, query: str) -> Markup:
    """A text with the words of a query marked."""
    words = [re.escape(word) for word in re.findall(r"\w{2,}", query)]
    if not words:
        return Markup("{}").format(text)
    pieces = re.split(rf"\b({'|'.join(words)})", text, flags=re.IGNORECASE)
    return Markup("").join(Markup("<mark>{}</mark>").format(each) if at % 2 else each for at, each in enumerate(pieces))


@route(_STATISTICS, link=("System", "Statistics"))
def show_statistics(shell: Shell, ask: Ask) -> Response:
    """What is in the notebook, in numbers."""
    index = shell.notebook.core.index
    days, kinds = _activity(shell)
    return shell.page(
        ask,
        "statistics.html",
        notes=index.documents.distinct("collection"),
        kept={name: index.collections[name].count() for name in _KEPT},
        statuses=index.documents.distinct("status"),
        authors=index.documents.distinct("created_by"),
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


@route("/palette")
def answer_palette(shell: Shell, ask: Ask) -> Response:
    """What the palette (Ctrl+K) finds: notes, facts, memories, rules and pages, as JSON."""
    words = ask.query.get("q", "")[:_LONGEST_QUERY].casefold().split()
    found = _commands_with(shell, words)
    if words:
        core = shell.notebook.core
        found += [*_notes_with(core, words), *_facts_with(core, words), *_rules_with(shell, words)]
    return json_response({"results": found})


def _commands_with(shell: Shell, words: list[str]) -> list[dict[str, str]]:
    pages = [(title, path) for links in shell.navigation.values() for path, title in links]
    forms = [
        (OPERATIONS[each].summary, address_of(page, each))
        for page in PAGES
        for each in (page.create, *page.tools)
        if each
    ]
    fitting = [pair for pair in [*pages, *forms] if _has(pair[0], words)]
    return [_entry("command", title, path) for title, path in fitting[:_MOST_OF_A_KIND]]


def _notes_with(core: Core, words: list[str]) -> list[dict[str, str]]:
    rows = core.index.documents.tuples(("path", "title", "collection"), both(View(core, OWNER).where, _HERE))
    fitting = [row for row in rows if _has(f"{row[1]} {row[0]}", words)]
    fitting.sort(key=lambda row: (not _has(str(row[1]), words), len(str(row[1])), row[0]))
    return [
        _entry("memory" if collection == "memories" else "note", title, note_href(path), path)
        for path, title, collection in fitting[:_MOST_OF_A_KIND]
    ]


def _facts_with(core: Core, words: list[str]) -> list[dict[str, str]]:
    """Not by a search, which counts what it finds as used."""
    rows = core.index.facts.tuples(("path", "content"), both(View(core, OWNER).where, _HERE))
    fitting = sorted((len(content), content, path) for path, content in rows if _has(content, words))
    return [_entry("fact", content, note_href(path), path) for _, content, path in fitting[:_MOST_OF_A_KIND]]


def _rules_with(shell: Shell, words: list[str]) -> list[dict[str, str]]:
    found = [each for each in shell.call("rules").results if _has(f"{each.name} {each.identity} {each.action}", words)]
    return [_entry("rule", f"{each.name}: {each.action}", "/rules") for each in found[:_MOST_OF_A_KIND]]


def _has(text: str, words: list[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def _entry(kind: str, title: Any, href: str, place: str = "") -> dict[str, str]:
    return {"kind": kind, "title": str(title), "href": href, "place": place}
