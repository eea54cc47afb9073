"""Compiles what a notebook knows: about a task, into a brief; about everything, into sources for a reasoner.

Scores and times decide what is chosen, and are never part of the hash.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

from notebook_sync.context.brief import (
    LEAST_FENCED_TOKENS,
    LEAST_TOKENS,
    Material,
    body_of,
    entries_of,
    in_code,
    one_line,
    related_line,
    risks_of,
    write_brief,
)
from notebook_sync.context.candidates import OPEN, Candidates, Wanted, named_notes
from notebook_sync.context.intent import Intent, intent_of
from notebook_sync.errors import NotebookError, UnreadableFile, UnwritableFile, UsageError
from notebook_sync.files.beneath import digest_of
from notebook_sync.files.parse import parse
from notebook_sync.files.state import expanded
from notebook_sync.model import UNSETTLED
from notebook_sync.registry import Result
from notebook_sync.services.core import Core
from notebook_sync.services.finding import any_tag
from notebook_sync.services.remembering import FOLDER
from notebook_sync.services.view import View
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Has, Is, Not, Row, Where, both
from notebook_sync.sync.project import fold_label, fold_tags, project
from prompt import count_tokens
from prompt.assemble import Recent

LARGEST_TOP_K, MOST_SPEC_BYTES, MOST_SOURCES = 150, 1 << 18, 50
# Of the words that matter most, those that related notes are searched by.
_MOST_ASKED, _MOST_RELATED = 8, 5
_RELATED = ("pages", "code_snippets", "research_notes")
# Texts whose tokens are remembered, and their characters.
_MOST_COUNTED, _LONGEST_COUNTED = 4_000, 4_000
# The sources of memories of these kinds; those of others are lessons.
_SOURCES, _LESSONS, _GENERAL = {"decision": "decisions", "problem": "problems"}, "lessons", "general"


class UsedMemory(Result, frozen=True, kw_only=True):
    """A memory that a brief rests on: for its own sake (primary), or in support. `score` is what it was chosen by."""

    id: str
    path: str
    title: str
    score: float
    contribution: Literal["primary", "supporting"]


class RelatedNote(Result, frozen=True, kw_only=True):
    """A note that has to do with a task and is no memory."""

    id: str
    path: str
    title: str
    summary: str


class TaskBrief(Result, frozen=True, kw_only=True):
    """A brief. `context_hash` is equal for an equal spec, equal options, and equal files of the memories used.

    `degraded` says why it is less than it could be. `explain` has what the spec was read as, and a row for each memory
    that has to do with it, the best first.
    """

    task_brief_md: str
    context_hash: str
    token_count: int
    memories_used: list[UsedMemory]
    related: list[RelatedNote]
    degraded: str | None
    explain: dict[str, Any] | None


class Compiled(NamedTuple):
    """A brief; `stable` is its text without metadata, `words` are the digests of the words of the memories used, by
    id."""

    brief: TaskBrief
    stable: str
    words: Mapping[str, str]

    @property
    def notes(self) -> list[str]:
        """The ids of all notes that it shows."""
        return [*self.words, *(each.id for each in self.brief.related)]


class Compiler:
    """Compiles briefs for one notebook. May be used by several threads."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._candidates = Candidates(core)
        self._counts: Recent[int] = Recent(_MOST_COUNTED)

    def compile(
        self,
        spec: str,
        session: Session,
        *,
        max_tokens: int | None = None,
        top_k: int | None = None,
        include_domains: Sequence[str] | None = None,
        exclude_tags: Sequence[str] | None = None,
        counts_use: bool = True,
        asks_servers: bool = True,
    ) -> Compiled:
        """The brief for a task, of what the session may read; None is the setting's value.

        `counts_use`: the primary memories count as used, unless the session is external. `asks_servers`: a server may
        be asked for vectors. Raises UsageError for a spec that says nothing or is too large, and for too few tokens;
        errors of the index.
        """
        core, table, is_external = self._core, self._core.settings.context, session.kind == "external"
        spec = spec.encode(errors="replace").decode()
        max_tokens = table.max_tokens if max_tokens is None else max_tokens
        top_k = min(table.top_k if top_k is None else top_k, LARGEST_TOP_K)
        _check(spec, max_tokens, core.settings.notebook.max_file_bytes, is_external=is_external)
        wanted = Wanted(
            frozenset(map(fold_label, table.include_domains if include_domains is None else include_domains)),
            frozenset(any_tag(exclude_tags or ()).values),
            asks_servers,
        )
        view, intent = View(core, session), intent_of(spec, core.analyzer, table.domains)
        task = digest_of(spec.encode())
        choice = self._candidates.choose(view, intent, wanted, top_k)
        read = {id: self._as_now(choice.rows[id]) for id in choice.chosen}
        now = {id: found for id, found in read.items() if found and wanted.fits(found[0])}
        rows = {**choice.rows, **{id: row for id, (row, _) in now.items()}}
        gone = read.keys() - now.keys()
        links = [link for link in choice.links if gone.isdisjoint((link.source, link.to))]
        choice = replace(choice, chosen=tuple(now), rows=rows, links=links)
        related = self._related(both(view.whole, Is("digest", "!=", task)), intent, wanted)
        used = {id: _used(rows[id], choice.ranked[id].combined, id in choice.primary) for id in now}
        options = [max_tokens, top_k, sorted(wanted.domains), sorted(wanted.without_tags)]

        def hash_of(ids: Sequence[str]) -> str:
            files = sorted((id, rows[id]["digest"]) for id in ids)
            return digest_of(json.dumps([task, options, files]).encode())

        def metadata(ids: Sequence[str]) -> list[str]:
            listed = (f"- {in_code(id)}, {used[id].contribution}: {in_code(used[id].path)}" for id in ids)
            return [f"- context {in_code(hash_of(ids))}", f"- memories used: {len(ids)}", *listed]

        lines = [related_line(each.title, each.path, each.summary) for each in related]
        texts = {id: text for id, (_, text) in now.items()}
        entries, risks = entries_of(choice, texts), list(risks_of(choice))
        material = Material(intent.content, entries, risks, lines, metadata, is_external)
        brief = write_brief(material, max_tokens, partial(self._count, core.settings.prompt.encoding))
        if counts_use and not is_external:
            core.count_uses("documents", [id for id in brief.kept if id in choice.primary])
        lost = len(now) - len(brief.kept)
        omitted = f"{lost} of {len(now)} memories omitted: max_tokens is {max_tokens:,}" if lost else ""
        read_as = {"title": intent.title, "labels": sorted(intent.labels), "keywords": intent.keywords}
        ranked = [{"id": id, "path": rows[id]["path"], **each._asdict()} for id, each in choice.ranked.items()]
        made = TaskBrief(
            task_brief_md=brief.text,
            context_hash=f"sha256:{hash_of(brief.kept)}",
            token_count=brief.tokens,
            memories_used=[used[id] for id in brief.kept],
            related=related[: brief.related],
            degraded="; ".join(filter(None, (choice.degraded, omitted, core.behind()))) or None,
            explain={"intent": read_as, "candidates": ranked},
        )
        return Compiled(made, brief.stable, {id: rows[id]["words_digest"] for id in brief.kept})

    def _as_now(self, row: Row) -> tuple[Row, str] | None:
        """A memory as its file is now, and its text. None for a file that is gone; one that cannot be read, or is
        damaged, counts as its last good row."""
        core = self._core
        try:
            raw = core.tree.read(row["path"]).raw
        except UnreadableFile:
            raw = b""
        except NotebookError:
            return None
        text = raw.decode(errors="replace")
        if digest_of(raw) == row["digest"]:
            return row, text
        note = parse(row["path"], raw, timezone=core.settings.timezone)
        if not raw or note.broken:
            kept = core.index.documents.one(row["id"])
            return row, kept["content"] if kept else ""
        found = project(note, UNSETTLED, core.now(), core.settings.prompt, core.analyzer).document
        return row | {name: found[name] for name in row if name in found and name != "score"}, text

    def _related(self, others: Where, intent: Intent, wanted: Wanted) -> list[RelatedNote]:
        """Notes that are no memories: those that the task names, then those that have most of its words. `others` are
        not the task itself."""
        where = both(others, Is("collection", "in", _RELATED), OPEN, Not(Has("tags", tuple(wanted.without_tags))))
        query = " ".join(intent.words[:_MOST_ASKED])
        found = self._core.searcher.search(query, where=where, mode="keyword", limit=_MOST_RELATED)
        named = named_notes(self._core, where, intent)
        ids = list(dict.fromkeys((*named, *(hit.id for hit in found.hits))))[:_MOST_RELATED]
        fields = ("id", "path", "title", "summary")
        rows = {row["id"]: row for row in self._core.index.documents.find(Is("id", "in", ids), fields=fields)}
        return [RelatedNote(**rows[id]) for id in ids if id in rows]

    def _count(self, encoding: str, text: str) -> int:
        if len(text) > _LONGEST_COUNTED:
            return count_tokens(text, encoding)
        return self._counts.get((encoding, text), partial(count_tokens, text, encoding))


def _check(spec: str, max_tokens: int, largest_file: int, *, is_external: bool) -> None:
    """Raises UsageError for what no brief can be made of."""
    size, largest = len(spec.encode()), min(MOST_SPEC_BYTES, largest_file)
    least = LEAST_FENCED_TOKENS if is_external else LEAST_TOKENS
    if size > largest:
        raise UsageError(f"the task has {size:,} bytes, at most {largest:,} are read", next="shorten it")
    if not spec.strip():
        raise UsageError("the task is empty", next="describe what is to be done")
    if max_tokens < least:
        raise UsageError(f"max_tokens is {max_tokens:,}", next=f"give at least {least:,}")


def _used(row: Row, score: float, is_primary: bool) -> UsedMemory:
    shown = {name: row[name] for name in ("id", "path", "title")}
    return UsedMemory(**shown, score=round(score, 4), contribution="primary" if is_primary else "supporting")


# ---- sources for a reasoner's own notebook


def write_seed(core: Core, folder: str) -> list[str]:
    """Write at most 50 sources into a new or empty folder outside the notebook; returns their names.

    Private, archived and external notes are left out, and so are comments. The domains with most memories come first.
    Raises UsageError for a folder that has something in it, or is in the notebook; UnwritableFile.
    """
    place = expanded(folder).resolve()
    if place.is_relative_to(core.root):
        raise UsageError(f"{place} is in the notebook, which would index it", next="name a folder elsewhere")
    try:
        place.mkdir(parents=True, exist_ok=True)
        if any(place.iterdir()):
            raise UsageError(f"{place} is not empty", next="name a new folder")
        sources = list(islice(_sources(core), MOST_SOURCES))
        for name, text in sources:
            (place / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UnwritableFile(str(place), error.strerror or type(error).__name__) from None
    return [name for name, _ in sources]


def _sources(core: Core) -> Iterator[tuple[str, str]]:
    """Each source's file name and text."""
    fields, open_to_all = ("id", "path", "title", "kind", "domain", "content"), both(Is("audience", "=", ""), OPEN)
    documents, domains = core.index.documents, defaultdict[str, list[Row]](list)
    for row in documents.find(both(Is("path", "under", FOLDER), open_to_all), fields=fields):
        domains[" ".join((row["domain"] or _GENERAL).split())].append(row)
    for number, domain in enumerate(sorted(domains, key=lambda name: (-len(domains[name]), name)), 1):
        groups = defaultdict[str, list[Row]](list)
        for row in domains[domain]:
            groups[_SOURCES.get(row["kind"], _LESSONS)].append(row)
        if tags := fold_tags([domain]):
            pages = both(Is("collection", "=", "pages"), Has("tags", (tags[-1],)), open_to_all)
            groups["pages"] = documents.find(pages, fields=fields)
        stem = re.sub(r"[^\w-]+", "-", domain.casefold()).strip("-")[:60]
        for group in sorted(name for name, rows in groups.items() if rows):
            texts = [f"# {one_line(domain, 120)}: {group}\n"]
            for row in groups[group]:
                head = f"## {one_line(row['title'], 120)} ({in_code(row['id'])})"
                texts.append(f"{head}\n\n{body_of(row['content'], row['title'])}\n")
            yield f"{number:02}-{stem}-{group}.md", "\n".join(texts)
