"""Compiles what a notebook knows about a task into a brief: intent, candidates, choice, text.

Scores and times decide what is chosen, and are never part of the hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from notebook_sync.context.brief import (
    LEAST_FENCED_TOKENS,
    LEAST_TOKENS,
    Entry,
    Material,
    Risk,
    at_start,
    body_of,
    in_code,
    one_line,
    write_brief,
)
from notebook_sync.context.candidates import Candidates, Choice, Gathered, Link, Wanted, choose, named_notes
from notebook_sync.context.intent import Intent, fold, intent_of
from notebook_sync.errors import NotebookError, UnreadableFile, UsageError
from notebook_sync.files.parse import parse
from notebook_sync.model import UNSETTLED
from notebook_sync.search.query import Mode
from notebook_sync.services.core import Core
from notebook_sync.services.finding import any_tag
from notebook_sync.services.remembering import count_uses
from notebook_sync.services.view import View
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Has, Is, Not, Row, both
from notebook_sync.sync.project import project
from prompt import count_tokens, omission_line
from prompt.assemble import Recent

PRIMARY, SUPPORTING = "primary", "supporting"
LARGEST_TOP_K = 150
MOST_SPEC_BYTES = 1 << 18
# Of the words that matter most, those that related notes are searched by.
_MOST_ASKED = 8
_MOST_RELATED, _MOST_LINKS = 5, 5
_RELATED = ("pages", "code_snippets", "research_notes")
_LONGEST_TITLE, _LONGEST_REASON, _LONGEST_SUMMARY = 120, 160, 200
# So many times memories are chosen, where some prove to be gone or changed; then those that are left are used.
_ROUNDS = 3
# Texts whose tokens are remembered, and their characters.
_MOST_COUNTED, _LONGEST_COUNTED = 4_000, 4_000
# Characters of a memory that a brief may show: to cut more of them would take seconds.
_LONGEST_BODY = 100_000
# How a link reads from the memory where it begins, and from the one where it ends.
_VERBS = {
    "causes": ("causes", "is caused by"),
    "solves": ("solves", "is solved by"),
    "contradicts": ("contradicts", "is contradicted by"),
    "expands": ("expands on", "is expanded on by"),
    "supersedes": ("supersedes", "is superseded by"),
    "similar": ("is like", "is like"),
}


class Used(NamedTuple):
    """A memory that a brief rests on. `score` is what it was chosen by; `contribution` is primary or supporting."""

    id: str
    path: str
    title: str
    score: float
    contribution: str


class Related(NamedTuple):
    """A note that has to do with the task and is no memory."""

    id: str
    path: str
    title: str
    summary: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """A brief and what it rests on.

    `stable` is the text without its metadata. `hash` is that of the spec, the options, and the memories used with their
    files' digests, in hex. `degraded` says why it is less than it could be, None where it is not. `steps` say how each
    candidate was found, scored, and used or not. `words` are the digests of the words of the memories used, by id.
    """

    text: str
    stable: str
    hash: str
    used: tuple[Used, ...]
    related: tuple[Related, ...]
    tokens: int
    degraded: str | None
    steps: Mapping[str, Any]
    words: Mapping[str, str]


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
        contents: Mapping[str, bytes | None] | None = None,
        counts_use: bool = True,
        asks_servers: bool = True,
    ) -> Compiled:
        """The brief for a task, of what the session may read; None is the setting's value.

        `contents` are bytes that files of memories are taken to have, None for no file. `counts_use`: the primary
        memories count as used, unless the session is external. `asks_servers`: a server may be asked for vectors.
        Raises UsageError for a spec that says nothing or is too large, and for wrong limits; errors of the index.
        """
        core, table = self._core, self._core.settings.context
        spec, is_external = spec.encode(errors="replace").decode(), session.kind == "external"
        max_tokens = table.max_tokens if max_tokens is None else max_tokens
        top_k = table.top_k if top_k is None else top_k
        _check(spec, max_tokens, top_k, core.settings.notebook.max_file_bytes, is_external=is_external)
        wanted = Wanted(
            frozenset(map(fold, table.include_domains if include_domains is None else include_domains)),
            frozenset(any_tag(exclude_tags or ()).values),
            asks_servers,
        )
        view, intent = View(core, session), intent_of(spec, core.analyzer, table.domains)
        gathered = self._candidates.gather(view, intent, wanted)
        texts: dict[str, str] = {}
        for _ in range(_ROUNDS):
            choice = choose(gathered, intent, table, top_k)
            changed = {id: self._row_now(gathered.rows[id], texts, contents or {}) for id in choice.chosen}
            changed = {id: row for id, row in changed.items() if row is not gathered.rows[id]}
            if not changed:
                break
            fitting = {id: row for id, row in changed.items() if row and wanted.fits(row)}
            gathered = gathered.with_rows(fitting, changed.keys())
        choice = replace(choice, chosen=tuple(id for id in choice.chosen if id in gathered.rows))
        related = self._related(view, intent, wanted)
        used = {id: _used(gathered, choice, id) for id in choice.chosen}
        options = [max_tokens, top_k, sorted(wanted.domains), sorted(wanted.without_tags)]

        def hash_of(ids: Sequence[str]) -> str:
            files = sorted((id, gathered.rows[id]["digest"]) for id in ids)
            return _digest(json.dumps([_digest(spec), options, files]))

        def metadata(ids: Sequence[str]) -> list[str]:
            listed = (f"- {in_code(id)}, {used[id].contribution}: {in_code(used[id].path)}" for id in ids)
            return [f"- context {in_code(hash_of(ids))}", f"- memories used: {len(ids)}", *listed]

        material = Material(
            intent.content,
            [_entry(gathered, choice, id, texts[id]) for id in choice.chosen],
            [*_risks(gathered, choice)],
            [_related_line(each) for each in related],
            metadata,
            is_external,
        )
        brief = write_brief(material, max_tokens, partial(self._count, core.settings.prompt.encoding))
        if counts_use and not is_external:
            count_uses(core, [id for id in brief.kept if id in choice.primary])
        lost = len(choice.chosen) - len(brief.kept)
        omitted = f"{lost} of {len(choice.chosen)} memories omitted: max_tokens is {max_tokens:,}" if lost else ""
        return Compiled(
            brief.text,
            brief.stable,
            hash_of(brief.kept),
            tuple(used[id] for id in brief.kept),
            tuple(related[: brief.related]),
            brief.tokens,
            "; ".join(filter(None, (gathered.degraded, omitted, core.behind()))) or None,
            _steps(intent, gathered, choice, brief.kept),
            {id: gathered.rows[id]["words_digest"] for id in brief.kept},
        )

    def _row_now(self, row: Row, texts: dict[str, str], contents: Mapping[str, bytes | None]) -> Row | None:
        """A memory as its file is now, the row itself where that is the same; its text is added to `texts`. None for a
        file that is gone; one that cannot be read, or is damaged, counts as its last good row."""
        core, path, note = self._core, row["path"], None
        try:
            raw = contents[path] if path in contents else core.tree.read(path).raw
        except UnreadableFile:
            raw = b""
        except NotebookError:
            raw = None
        if raw is None:
            return None
        if raw and sha256(raw).hexdigest() != row["digest"]:
            note = parse(path, raw, timezone=core.settings.timezone)
        if not raw or (note and note.broken):
            kept = core.index.documents.one(row["id"])
            texts[row["id"]] = kept["content"] if kept else ""
            return row
        texts[row["id"]] = raw.decode(errors="replace")
        if note is None:
            return row
        found = project(note, UNSETTLED, core.now(), core.settings.prompt, core.analyzer).document
        return row | {name: found[name] for name in (*row, "terms") if name in found and name != "score"}

    def _related(self, view: View, intent: Intent, wanted: Wanted) -> list[Related]:
        """Notes that are no memories: those that the task names, then those that have most to do with it."""
        core = self._core
        where = both(
            view.whole,
            Is("collection", "in", _RELATED),
            Is("provenance", "=", ""),
            Is("status", "!=", "archived"),
            Not(Has("tags", tuple(wanted.without_tags))),
        )
        named = [id for (id,) in core.index.documents.tuples(("id",), both(where, named_notes(intent)))]
        meaning, query = core.searcher.meaning, " ".join(intent.words[:_MOST_ASKED])
        mode: Mode = "hybrid" if wanted.asks_servers or (meaning and meaning.embedder.is_local) else "keyword"
        found = core.searcher.search(query, where=where, mode=mode, limit=_MOST_RELATED)
        ids = list(dict.fromkeys((*sorted(named), *(hit.id for hit in found.hits))))[:_MOST_RELATED]
        fields = ("id", "path", "title", "summary")
        rows = {row["id"]: row for row in core.index.documents.find(Is("id", "in", ids), fields=fields)}
        return [Related(**rows[id]) for id in ids if id in rows]

    def _count(self, encoding: str, text: str) -> int:
        if len(text) > _LONGEST_COUNTED:
            return count_tokens(text, encoding)
        return self._counts.get((encoding, text), partial(count_tokens, text, encoding))


def _check(spec: str, max_tokens: int, top_k: int, largest_file: int, *, is_external: bool) -> None:
    """Raises UsageError for what no brief can be made of."""
    size, largest = len(spec.encode()), min(MOST_SPEC_BYTES, largest_file)
    least = LEAST_FENCED_TOKENS if is_external else LEAST_TOKENS
    if size > largest:
        raise UsageError(f"the task has {size:,} bytes, at most {largest:,} are read", next="shorten it")
    if not spec.strip():
        raise UsageError("the task is empty", next="describe what is to be done")
    if max_tokens < least:
        raise UsageError(f"max_tokens is {max_tokens:,}", next=f"give at least {least:,}")
    if not 1 <= top_k <= LARGEST_TOP_K:
        raise UsageError(f"top_k is {top_k:,}", next=f"use 1 to {LARGEST_TOP_K}")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


# ---- what a brief says of the memories


def _used(gathered: Gathered, choice: Choice, id: str) -> Used:
    row, contribution = gathered.rows[id], PRIMARY if id in choice.primary else SUPPORTING
    return Used(id, row["path"], row["title"], round(choice.ranked[id].combined, 4), contribution)


def _entry(gathered: Gathered, choice: Choice, id: str, content: str) -> Entry:
    row = gathered.rows[id]
    domain, made = one_line(row["domain"] or "", _LONGEST_TITLE), row["created_at"]
    about = [in_code(row["path"]), row["kind"] or "no kind", domain, f"{made:%Y-%m-%d}" if made else ""]
    about.append("needs review" if row["needs_review"] else "")
    body = body_of(content, row["title"])
    if len(body) > _LONGEST_BODY:
        body = f"{body[:_LONGEST_BODY]}…\n\n{omission_line(0, row['path'])}"
    return Entry(
        id,
        row["path"] if row["path"].isprintable() else "",
        row["kind"],
        id in choice.primary,
        choice.ranked[id].similarity,
        f"### {_title(row)}\n\n{' · '.join(filter(None, about))}",
        body,
        list(_links(gathered, id))[:_MOST_LINKS],
    )


def _links(gathered: Gathered, id: str) -> Iterator[str]:
    read = [(_VERBS[link.type][0], link.to, link) for link in gathered.links if link.source == id]
    read += [(_VERBS[link.type][1], link.source, link) for link in gathered.links if link.to == id]
    for verb, end, link in sorted(read, key=lambda each: (each[0], -each[2].confidence, each[1], each[2].reasoning)):
        yield f"- {verb} {_named(gathered, end)}{_reason(link)}"


def _risks(gathered: Gathered, choice: Choice) -> Iterator[Risk]:
    """What to beware of: contradictions, what is out of date, problems that nothing solves."""
    for link in sorted(gathered.links):
        about = frozenset((link.source, link.to)).intersection(choice.chosen)
        if link.type == "contradicts" and about:
            line = f"- {_named(gathered, link.source)} contradicts {_named(gathered, link.to)}{_reason(link)}"
            yield Risk(about, line)
        elif link.type == "supersedes" and link.to in about:
            newer = f"{_named(gathered, link.source)} supersedes it{_reason(link)}"
            yield Risk(frozenset((link.to,)), f"- {_named(gathered, link.to)} is out of date: {newer}")
    for id in sorted(choice.chosen):
        if gathered.rows[id]["kind"] == "problem" and id not in gathered.solved:
            yield Risk(frozenset((id,)), f"- No memory says what solves {_named(gathered, id)}.")


def _named(gathered: Gathered, id: str) -> str:
    row = gathered.rows.get(id) or gathered.others[id]
    return f"“{_title(row)}” ({in_code(id)})"


def _title(row: Row) -> str:
    return one_line(row["title"], _LONGEST_TITLE) or "(no title)"


def _reason(link: Link) -> str:
    reason = one_line(link.reasoning, _LONGEST_REASON)
    return f": {reason}" if reason else ""


def _related_line(note: Related) -> str:
    title, summary = one_line(note.title, _LONGEST_TITLE) or "(no title)", one_line(note.summary, _LONGEST_SUMMARY)
    return f"- {at_start(title)} ({in_code(note.path)}){': ' if summary else ''}{summary}"


def _steps(intent: Intent, gathered: Gathered, choice: Choice, kept: Sequence[str]) -> dict[str, Any]:
    """How the brief came about: the intent, and a row for each candidate, the best first; those that have nothing to do
    with the task have no scores."""
    rows = [
        {
            "id": id,
            "path": gathered.rows[id]["path"],
            "found_by": gathered.found_by[id],
            "cosine": gathered.cosines.get(id),
            **(choice.ranked[id]._asdict() if id in choice.ranked else {}),
            "chosen": id in choice.chosen,
            "used": id in kept,
        }
        for id in {**choice.ranked, **gathered.rows}
    ]
    names = ("title", "domains", "components", "tags", "related", "keywords")
    return {"intent": {name: getattr(intent, name) for name in names}, "candidates": rows}
