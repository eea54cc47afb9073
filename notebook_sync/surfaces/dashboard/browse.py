"""The notes of the notebook: a tree of folders, what narrows the list, and search."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import BaseRoute

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.permissions import is_private
from notebook_sync.services.core import Core
from notebook_sync.services.finding import list_notes, search_notes
from notebook_sync.sessions import OWNER
from notebook_sync.store.rows import Is
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, address_with

NOTES: Final = "/notes"
_PER_PAGE, _MOST_FOUND, _MOST_TAGS = 50, 200, 60
_FILTERS = ("query", "folder", "collection", "status", "tag", "linked_to")
_DEEPEST = 6


class Folder(NamedTuple):
    """A folder of the tree, with how many `notes` are in it and below; `depth` 0 is the notebook."""

    name: str
    href: str
    depth: int
    notes: int
    is_here: bool


class _Known(NamedTuple):
    """What the lists are narrowed by, of one note."""

    folder: str
    collection: str
    status: str
    tags: list[str]


def routes(shell: Shell) -> list[BaseRoute]:
    """The list of notes."""
    shell.add_link("Notebook", NOTES, "Notes")
    return [shell.route(NOTES, lambda ask: _show(shell, ask), "GET")]


def _show(shell: Shell, ask: Ask) -> Response:
    core = shell.notebook.core
    asked = ask.asked(*_FILTERS)
    asked["folder"] = posixpath.normpath(f"/{asked['folder']}").strip("/")
    known = _known(core, core.index.version())
    here = [each for each in known if _is_within(each.folder, asked["folder"])]
    results: Any = ()
    degraded, more, trouble = "", "", None
    try:
        found, more = _found(core, asked, ask.query)
        results, degraded = found.results, found.degraded
    except NotebookError as error:
        trouble = error
    tags = Counter(tag for each in here for tag in each.tags)
    return shell.page(
        ask,
        "notes.html",
        status=trouble.status if isinstance(trouble, UsageError) else 200,
        asked=asked,
        folders=_tree(known, asked["folder"]),
        facets={
            "collection": _options(Counter(each.collection for each in here), asked["collection"]),
            "status": _options(Counter(each.status for each in here), asked["status"]),
            "tag": _options(tags, asked["tag"]),
        },
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


@lru_cache(maxsize=1)
def _known(core: Core, version: int) -> list[_Known]:
    """All notes, as they are at this version of the index."""
    fields = ("path", "collection", "status", "tags")
    rows = core.index.documents.tuples(fields, Is("path", "!=", None))
    return [_Known(posixpath.dirname(path), *rest) for path, *rest in rows]


def _tree(known: Iterable[_Known], here: str) -> list[Folder]:
    """The folders at the top, those on the way to `here`, and those in it."""
    counts: Counter[str] = Counter()
    for folder, count in Counter(each.folder for each in known).items():
        parts = folder.split("/") if folder else []
        for depth in range(len(parts) + 1):
            counts["/".join(parts[:depth])] += count
    shown = [each for each in counts if _is_within(here, posixpath.dirname(each))]
    return [
        Folder(
            name=posixpath.basename(each) or "All notes",
            href=address_with(NOTES, {"folder": each}),
            depth=min(each.count("/") + bool(each), _DEEPEST),
            notes=counts[each],
            is_here=each == here,
        )
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
