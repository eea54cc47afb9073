"""A parsed note → the rows that the index holds of it. Pure; equal files give equal rows on any machine.

`tags` are folded and have their ancestors, so that `Has` finds `a/b` for `a`; where that differs from what the author
wrote, `fields["tags"]` has the author's. `links` and `aliases` are as written, `relations` are the targets. By `linked`
and `names`, the notes are found that may have a link to one.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from notebook_sync.files.names import audience, copy_of
from notebook_sync.model import CORE_FACTS, PARSER, Note, Stamp
from notebook_sync.permissions import fold_name, guarded_key, guarded_paths
from notebook_sync.settings import PromptTable
from notebook_sync.store.rows import Row
from notebook_sync.sync.diff import Projection

if TYPE_CHECKING:
    from notebook_sync.search.words import WordAnalyzer

# The importance that a fact begins with.
BASE, CORE_BASE = 0.5, 1.0


def project(
    note: Note,
    stamp: Stamp,
    mtime: datetime,
    prompt: PromptTable,
    analyzer: WordAnalyzer,
    *,
    damage: str = "",
) -> Projection:
    """The rows of `note`. `damage` is a fault of its bytes that the note's own problems do not name."""
    private = audience(note.path, prompt)
    fields = dict(note.fields)
    tags = fold_tags(note.tags)
    if tags != list(note.tags):
        fields["tags"] = list(note.tags)
    problems = [[each.line, each.message, each.severe] for each in note.problems]
    document: Row = {
        "path": note.path,
        "folder": posixpath.dirname(note.path),
        "copy_of": copy_of(note.path, guarded_paths(prompt)),
        "wanted_id": note.wanted_id,
        "collection": note.collection,
        "kind": fields.get("kind") or "",
        "audience": private,
        "title": note.title,
        "summary": note.summary,
        "status": note.status,
        "topic": fields.get("topic") or "",
        "session_id": fields.get("session_id") or "",
        "domain": fields.get("domain") or "",
        "needs_review": int(bool(fields.get("needs_review"))),
        "created_by": note.created_by,
        "language": fields.get("language") or "",
        "provenance": note.provenance,
        "superseded_by": fields.get("superseded_by") or "",
        "valid_until": note.valid_until,
        "word_count": note.word_count,
        "updated_at": mtime,
        "digest": note.digest,
        "stamp": stamp,
        "parser": PARSER,
        "stale": "",
        "fields": fields,
        "problems": [*problems, [0, damage, True]] if damage else problems,
        "created_at": note.created_at,
        "content": note.content,
        "code": note.code,
        "sections": [list(section) for section in note.sections],
        "extra": dict(note.extra),
        "tags": tags,
        "links": list(dict.fromkeys(link.target for link in note.links if link.target)),
        "linked": name_keys(link.target for link in note.links),
        "names": name_keys((note.path, note.title, note.wanted_id, *note.aliases)),
        "aliases": list(note.aliases),
        "relations": list(dict.fromkeys(each["to"] for each in fields.get("relations") or ())),
    }
    base = CORE_BASE if note.path == CORE_FACTS else BASE
    facts: dict[str, Row] = {}
    places: list[Row] = []
    for fact in note.facts:
        both = {"path": note.path, "audience": private, "section": fact.section, "pin": fact.pin}
        places.append({**both, "id": f"{note.path}:{fact.line}", "fact": fact.id, "line": fact.line})
        first = {**both, "id": fact.id, "content": fact.text, "provenance": note.provenance, "base": base}
        facts.setdefault(fact.id, first)
    return Projection(with_words(document, analyzer), tuple(facts.values()), tuple(places))


def name_keys(names: Iterable[str]) -> list[str]:
    """What names that may lead to one note have in common: the last part, without `.md`, case, hyphens and spaces."""
    return list(dict.fromkeys(filter(None, (guarded_key(posixpath.basename(name)) for name in names))))


def fold_tags(tags: Iterable[str]) -> list[str]:
    """Tags as they are compared: without `#`, case folded, each with its ancestors (`a/b` has `a`)."""
    folded: dict[str, None] = {}
    for tag in tags:
        parts = [part for part in unicodedata.normalize("NFC", tag).casefold().strip("# ").split("/") if part]
        folded |= dict.fromkeys("/".join(parts[:length]) for length in range(1, len(parts) + 1))
    return list(folded)


def fold_label(label: str) -> str:
    """A domain as it is compared, and a tag that is compared with one."""
    return fold_name(" ".join(label.split()))


def with_words(row: Row, analyzer: WordAnalyzer) -> Row:
    """A whole row of `documents` or `facts` with what search needs of its text."""
    from notebook_sync.search.terms import search_columns  # not to ask who may read a note

    texts = {name: row.get(name) or "" for name in ("title", "summary", "code")}
    return {**row, **search_columns(analyzer, row["content"] or "", **texts, sections=row.get("sections") or ())}
