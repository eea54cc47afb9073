"""Bytes → Note: the one reading of a file that everything else relies on.

It never raises, whatever the bytes: what is wrong becomes a problem of the note, and the text is never lost.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from notebook_sync.files.commonmark import block_tokens
from notebook_sync.files.fields import Fields, read_fields
from notebook_sync.files.frontmatter import read_frontmatter, storable
from notebook_sync.files.inline import LONGEST, links_and_tags, plain
from notebook_sync.files.memories import DEFAULT_PRIORITY, agent_of, kind_of_folder, parts_missing
from notebook_sync.files.note import Note, Problem, Section, collection_of, id_from_path
from notebook_sync.files.outline import Outline, outline
from notebook_sync.files.prose import shorten, summary_of
from notebook_sync.files.provenance import EXTERNAL, says_external
from notebook_sync.files.sections import sections_of


def parse(path: str, raw: bytes, *, encoding: str = "cl100k_base") -> Note:
    """The note that `raw` is at `path` (relative, POSIX). `encoding` is the tiktoken encoding tokens are counted in."""
    text, problems = _decoded(raw)
    front = read_frontmatter(text)
    if front.problem is not None:
        problems.append(front.problem)
    collection = collection_of(path)
    fields = read_fields(front.metadata, collection)
    content = front.content
    structure = outline(content)
    lines_before = front.head.count("\n")
    sections, tokens = sections_of(content, structure.headings, lines_before=lines_before, encoding=encoding)
    links, inline_tags = links_and_tags(content, structure.hidden)
    code = _code(collection, structure)
    tags = tuple(dict.fromkeys((*fields.tags, *inline_tags)))
    return Note(
        path=path,
        collection=collection,
        wants=fields.id or id_from_path(path),
        has_own_id=fields.id is not None,
        digest=sha256(raw).hexdigest(),
        title=fields.title or _first_title(structure) or _name_of(path),
        summary=fields.summary or summary_of(content, structure) or _summary_of_code(fields, code),
        content=content,
        sections=sections,
        code=code,
        fields=(
            _fields_of_memory(path, fields, tags, parts_missing(structure.headings, content))
            if collection == "memories"
            else _special_fields(collection, fields, content, structure, sections)
        ),
        created_by=fields.created_by or "owner",
        created_at=fields.created_at,
        tags=tags,
        status=fields.status or "draft",
        word_count=_count_words(content),
        token_count=tokens,
        links=links,
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


def _first_title(structure: Outline) -> str:
    return next((heading.text for heading in structure.headings if heading.level == 1 and heading.text), "")


def _name_of(path: str) -> str:
    return storable(PurePosixPath(id_from_path(path)).name)


def _code(collection: str, structure: Outline) -> str | None:
    if collection != "code_snippets" or not structure.fences:
        return None
    return structure.fences[0].code


def _summary_of_code(fields: Fields, code: str | None) -> str:
    """What a snippet is said to do, else how its code begins; "" for a note without code."""
    return "" if code is None else shorten(" ".join(str(fields.special["description"] or code)[:LONGEST].split()))


def _special_fields(
    collection: str, fields: Fields, content: str, structure: Outline, sections: tuple[Section, ...]
) -> dict[str, Any]:
    special = fields.special
    if collection == "code_snippets" and not special["language"] and structure.fences:
        info = structure.fences[0].info.split()
        return {**special, "language": info[0] if info else None}
    if collection == "research_notes" and not special["key_findings"]:
        return {**special, "key_findings": _bullets_under("key findings", content, sections)}
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


def _bullets_under(heading: str, content: str, sections: tuple[Section, ...]) -> list[str]:
    section = next((each for each in sections if each.heading.casefold() == heading), None)
    if section is None:
        return []
    tokens = block_tokens(content[section.start : section.end])
    bullets = []
    for index, token in enumerate(tokens):
        # Level 3 is a paragraph in an item of a top-level list; of an item's paragraphs, the first opens it.
        if token.type == "inline" and token.level == 3 and tokens[index - 2].type == "list_item_open":
            bullets.append(plain(token.content))
    return [bullet for bullet in bullets if bullet]
