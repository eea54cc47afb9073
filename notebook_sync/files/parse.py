"""Bytes → Note: the one reading of a file that everything else relies on.

It never raises, whatever the bytes: what is wrong becomes a problem of the note, and the text is never lost.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from notebook_sync.files.excerpt import SUMMARY_LENGTH, shorten, summary_of
from notebook_sync.files.fields import Fields, read_fields
from notebook_sync.files.frontmatter import read_frontmatter, storable
from notebook_sync.files.links import links_of, tags_of
from notebook_sync.files.memories import DEFAULT_PRIORITY, agent_of, kind_of_folder, parts_missing
from notebook_sync.files.note import Note, Problem, collection_of, id_from_path
from notebook_sync.files.provenance import EXTERNAL, says_external
from notebook_sync.files.sections import sections_of
from prompt.outline import Block, Outline


def parse(path: str, raw: bytes, *, encoding: str = "cl100k_base") -> Note:
    """The note that `raw` is at `path` (relative, POSIX). `encoding` is the tiktoken encoding tokens are counted in."""
    text, problems = _decoded(raw)
    front = read_frontmatter(text)
    if front.problem is not None:
        problems.append(front.problem)
    collection = collection_of(path)
    fields = read_fields(front.metadata, collection)
    content = front.content
    outline = Outline(content)
    sections, tokens = sections_of(outline, lines_before=front.head.count("\n"), encoding=encoding)
    fence = first_fence(outline) if collection == "code_snippets" else None
    code = fence.content if fence else None
    tags = tuple(dict.fromkeys((*fields.tags, *tags_of(outline))))
    return Note(
        path=path,
        collection=collection,
        wants=fields.id or id_from_path(path),
        has_own_id=fields.id is not None,
        digest=sha256(raw).hexdigest(),
        title=fields.title or _first_title(outline) or _name_of(path),
        summary=fields.summary or summary_of(outline) or _summary_of_code(fields, code),
        content=content,
        sections=sections,
        code=code,
        fields=(
            _fields_of_memory(path, fields, tags, parts_missing(outline))
            if collection == "memories"
            else _special_fields(collection, fields, outline, fence)
        ),
        created_by=fields.created_by or "owner",
        created_at=fields.created_at,
        tags=tags,
        status=fields.status or "draft",
        word_count=_count_words(content),
        token_count=tokens,
        links=links_of(outline),
        extra=fields.extra,
        provenance=EXTERNAL if says_external(text, front) else None,
        problems=(*problems, *fields.problems),
    )


def wanted_id(path: str, raw: bytes) -> str:
    """The id that the note `raw` at `path` is to have: that of its frontmatter, else its path's."""
    front = read_frontmatter(_decoded(raw)[0])
    return read_fields(front.metadata, collection_of(path)).id or id_from_path(path)


def _decoded(raw: bytes) -> tuple[str, list[Problem]]:
    try:
        return raw.decode(), []
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        reason = "not UTF-8 from here on; what could not be read is shown as \ufffd"
        return raw.decode(errors="replace"), [Problem(line, reason, severe=True)]


_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def _count_words(text: str) -> int:
    """What white space parts; in scripts that part no words, each character."""
    if not text.isascii():
        text = _IDEOGRAPH.sub(r" \g<0> ", text)
    return len(text.split())


def _first_title(outline: Outline) -> str:
    return next((section.title for section in outline.sections if section.level == 1 and section.title), "")


def _name_of(path: str) -> str:
    return storable(PurePosixPath(id_from_path(path)).name)


def first_fence(outline: Outline) -> Block | None:
    """The fenced code that a snippet is read from."""
    return next((block for block in outline.root.walk() if block.type == "fence"), None)


def _summary_of_code(fields: Fields, code: str | None) -> str:
    """What a snippet is said to do, else how its code begins; "" for a note without code."""
    return (
        ""
        if code is None
        else shorten(" ".join(str(fields.special["description"] or code)[: 10 * SUMMARY_LENGTH].split()))
    )


def _special_fields(collection: str, fields: Fields, outline: Outline, fence: Block | None) -> dict[str, Any]:
    special = fields.special
    if collection == "code_snippets" and not special["language"] and fence:
        return {**special, "language": next(iter(fence.info.split()), None)}
    if collection == "research_notes" and not special["key_findings"]:
        return {**special, "key_findings": _bullets_under("key findings", outline)}
    return special


def _fields_of_memory(path: str, fields: Fields, tags: tuple[str, ...], missing: list[str]) -> dict[str, Any]:
    special = fields.special
    priority = special["priority"]
    return {
        "kind": special["kind"] or kind_of_folder(path),
        "domain": special["domain"],
        "agent": agent_of(special["agent"], tags, fields.created_by or ""),
        "priority": DEFAULT_PRIORITY if priority is None else priority,
        "relations": special["relations"] or [],
        "needs_review": bool(special["needs_review"]),
        "missing": missing,
    }


def _bullets_under(title: str, outline: Outline) -> list[str]:
    """The first paragraph of each top-level list item in the first section of this title."""
    bullets: list[str] = []
    level = 0
    sections = iter(outline.sections)
    for block in outline.root.children:
        if block.type == "heading":
            section = next(sections)
            if level and block.level <= level:
                break
            if not level and section.title.casefold() == title:
                level = block.level
        elif level and block.type in ("bullet_list", "ordered_list"):
            firsts = (item.children[0] for item in block.children if item.children)
            bullets += [first.shown for first in firsts if first.type == "paragraph" and first.shown]
    return bullets
