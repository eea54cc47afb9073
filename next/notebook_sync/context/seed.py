"""Sources for a reasoner's own notebook: what the notebook knows, by domain, as a few Markdown files to upload."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from notebook_sync.context.brief import body_of, in_code, one_line
from notebook_sync.context.candidates import MEMORIES
from notebook_sync.errors import UnwritableFile, UsageError
from notebook_sync.services.core import Core
from notebook_sync.store.rows import Has, Is, Row, both
from notebook_sync.sync.project import fold_tags

MOST_SOURCES = 50
_NAMES = {"decision": "decisions", "problem": "problems"}
_LESSONS, _PAGES, _GENERAL = "lessons", "pages", "general"
_FIELDS = ("id", "path", "title", "kind", "domain", "content")


def write_seed(core: Core, folder: str) -> list[str]:
    """Write at most 50 sources into a new or empty folder outside the notebook; returns their names.

    Private, archived and external notes are left out, and so are comments. The domains with most memories come first.
    Raises UsageError for a folder that has something in it, or is in the notebook; UnwritableFile.
    """
    place = Path(folder).expanduser().resolve()
    if place.is_relative_to(core.root):
        raise UsageError(f"{place} is in the notebook, which would index it", next="name a folder elsewhere")
    try:
        place.mkdir(parents=True, exist_ok=True)
        if any(place.iterdir()):
            raise UsageError(f"{place} is not empty", next="name a new folder")
        written: list[str] = []
        for name, text in _sources(core):
            (place / name).write_text(text, encoding="utf-8", newline="\n")
            written.append(name)
            if len(written) == MOST_SOURCES:
                break
    except OSError as error:
        raise UnwritableFile(str(place), error.strerror or type(error).__name__) from None
    return written


def _sources(core: Core) -> Iterator[tuple[str, str]]:
    """Each source's file name and text."""
    open_to_all = (Is("audience", "=", ""), Is("provenance", "=", ""), Is("status", "!=", "archived"))
    documents = core.index.documents
    domains: defaultdict[str, list[Row]] = defaultdict(list)
    for row in documents.find(both(Is("path", "under", MEMORIES), *open_to_all), fields=_FIELDS):
        domains[" ".join((row["domain"] or _GENERAL).split())].append(row)
    for number, domain in enumerate(sorted(domains, key=lambda name: (-len(domains[name]), name)), 1):
        groups: defaultdict[str, list[Row]] = defaultdict(list)
        for row in domains[domain]:
            groups[_NAMES.get(row["kind"], _LESSONS)].append(row)
        if tags := fold_tags([domain]):
            pages = both(Is("collection", "=", "pages"), Has("tags", (tags[-1],)), *open_to_all)
            groups[_PAGES] = documents.find(pages, fields=_FIELDS)
        stem = re.sub(r"[^\w-]+", "-", domain.casefold()).strip("-")[:60]
        for group in sorted(name for name, rows in groups.items() if rows):
            texts = [f"# {one_line(domain, 120)}: {group}\n", *map(_text_of, groups[group])]
            yield f"{number:02}-{stem}-{group}.md", "\n".join(texts)


def _text_of(row: Row) -> str:
    return f"## {one_line(row['title'], 120)} ({in_code(row['id'])})\n\n{body_of(row['content'], row['title'])}\n"
