"""Bytes of a Markdown file → Note. Pure; never raises, whatever the bytes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, tzinfo
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import unquote

from notebook_sync.files.beneath import MERGE_CONFLICT, conflict_marks, fault_of
from notebook_sync.files.fact_text import FOLDER, facts_of
from notebook_sync.files.fields import AGENT, CURRENCY, DEFAULT_PRIORITY, FIELDS, KINDS, read_fields
from notebook_sync.files.frontmatter import EXTERNAL, Frontmatter, as_utc, read_frontmatter, says_external, storable
from notebook_sync.files.names import copy_of
from notebook_sync.files.page import Page, shorten
from notebook_sync.model import Link, Note, Problem, Section, collection_of, id_from_path
from prompt.blocks import LISTS
from prompt.hidden import Visible, visible
from prompt.outline import Outline, Span, shown_text
from prompt.values import Gap

PARTS = ("context", "reasoning", "outcome")  # of a memory
_LIST_FIELDS = ("key_findings", "related_pages", "relations")


def parse(path: str, raw: bytes, *, timezone: tzinfo) -> Note:
    """The note that `raw` is at `path` (relative, POSIX). Times without a zone are in `timezone`, the notebook's."""
    text = raw.decode(errors="replace")
    front = read_frontmatter(text)
    collection = collection_of(path)
    known, extra, problems = read_fields(front, collection, timezone)
    page = Page(path, text[: front.body_start], text[front.body_start :])
    content, outline, lines_above = page.body, page.outline, page.line - 1
    # Only Obsidian's comments need the search: the Markdown reader knows those of HTML.
    seen = visible(content, now=None) if "%%" in content else Visible(content)
    tags = tuple(dict.fromkeys((*known.get("tags", ()), *tags_of(outline, seen.gaps))))
    fields, code = _fields_of(collection, path, known, tags, outline)
    fields |= {name: known[name] for name in CURRENCY if name in known}
    shown = Outline(seen.text) if seen.gaps else outline
    own_id = known.get("id")
    first_title = next((each.title for each in shown.sections if each.level == 1 and each.title), "")
    has_facts = path.startswith(f"{FOLDER}/") and not copy_of(path)  # a conflict copy has no authority
    return Note(
        path=path,
        collection=collection,
        wanted_id=own_id or id_from_path(path),
        has_own_id=own_id is not None,
        digest=sha256(raw).hexdigest(),
        title=known.get("title") or first_title or storable(id_from_path(path).rpartition("/")[2]),
        summary=known.get("summary") or _summary_of(shown) or _summary_of_code(fields, code),
        content=content,
        sections=_sections(outline, lines_above),
        code=code,
        fields=fields,
        extra=extra,
        created_by=known.get("created_by") or "owner",
        created_at=known.get("created_at"),
        tags=tags,
        aliases=known.get("aliases", ()),
        status=known.get("status") or "draft",
        word_count=_count_words(content),
        links=(*links_of(outline, seen.gaps, lines_above), *_replacements(fields, front)),
        facts=facts_of(page) if has_facts else (),
        problems=(*_problems(raw, text, front, outline, lines_above), *front.problems, *problems),
        provenance=EXTERNAL if says_external(text, front) else "",
        valid_until=_end_of(known["valid_until"], timezone) if "valid_until" in known else None,
    )


def _sections(outline: Outline, lines_above: int) -> tuple[Section, ...]:
    line_of = outline.lines.at
    return tuple(
        Section(each.title, each.level, each.anchor, line_of(each.start) + 1 + lines_above, each.start, each.end)
        for each in outline.sections
    )


def _fields_of(
    collection: str, path: str, known: Mapping[str, Any], tags: tuple[str, ...], outline: Outline
) -> tuple[dict[str, Any], str | None]:
    """The fields of the collection, completed from text, tags and folder; and the code of a snippet."""
    names = FIELDS.get(collection, {})
    fields = {name: known.get(name, [] if name in _LIST_FIELDS else None) for name in names}
    if collection == "code_snippets":
        fence = next((block for block in outline.root.walk() if block.type == "fence"), None)
        if fence:
            fields["language"] = fields["language"] or next(iter(fence.info.split()), None)
            return fields, fence.content
    elif collection == "research_notes":
        fields["key_findings"] = fields["key_findings"] or _bullets_under("key findings", outline)
    elif collection == "memories":
        folder = path.split("/")[1]
        fields["kind"] = fields["kind"] or (folder if folder in KINDS else None)
        named = (*tags, known.get("created_by") or "")
        agents = (each.removeprefix(AGENT).strip() for each in named if each.startswith(AGENT))
        fields["agent"] = fields["agent"] or next(filter(None, agents), None)
        fields["priority"] = fields["priority"] or DEFAULT_PRIORITY
        fields["needs_review"] = bool(fields["needs_review"])
        fields["missing"] = parts_missing(outline)
    return fields, None


def parts_missing(outline: Outline) -> list[str]:
    """Which of PARTS no heading names, or only one with nothing below it."""
    said = {
        each.title.strip(" :").casefold() for each in outline.sections if outline.text[each.body : each.end].strip()
    }
    return [part for part in PARTS if part not in said]


def _replacements(fields: Mapping[str, Any], front: Frontmatter) -> Iterator[Link]:
    """The notes that this one replaces, or is replaced by, as links."""
    for key, names in (("superseded_by", [fields.get("superseded_by")]), ("supersedes", fields.get("supersedes", []))):
        for target, _, fragment in (name.partition("#") for name in names if name):
            yield Link(target, fragment, front.line_of(front.key_of(key) or key))


def _end_of(until: date, zone: tzinfo) -> datetime | None:
    """The last moment of a day; a moment itself."""
    return until if isinstance(until, datetime) else as_utc(datetime.combine(until, time.max, zone), zone)


# 2 ms to compile, which texts in Latin letters need not wait for.
_IDEOGRAPH = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"


def _count_words(text: str) -> int:
    """What white space separates; in scripts without spaces, each character."""
    if not text.isascii():
        text = re.sub(_IDEOGRAPH, r" \g<0> ", text)
    return len(text.split())


def _summary_of(outline: Outline) -> str:
    """The first top-level paragraph with text (not only images), as a reader sees it; "" where there is none."""
    paragraphs = (block for block in outline.root.children if block.type == "paragraph")
    return next((shorten(words) for block in paragraphs if (words := shown_text(block.spans, alt=False))), "")


def _summary_of_code(fields: Mapping[str, Any], code: str | None) -> str:
    """What a snippet is said to do, else how its code begins; "" for a note without code."""
    source = str(fields["description"] or code)[:2_000] if code is not None else ""  # ten times what is shown
    return shorten(" ".join(source.split()))


def _bullets_under(title: str, outline: Outline) -> list[str]:
    """The first paragraph of each top-level list item in the first section of this title."""
    section = next((each for each in outline.sections if each.title.casefold() == title), None)
    return [
        item.children[0].shown
        for block in outline.root.children
        if section and section.start <= block.start < section.end and block.type in LISTS
        for item in block.children
        if item.children and item.children[0].type == "paragraph" and item.children[0].shown
    ]


# Behind a real \n there is another one, a list mark or a heading; \nabla and C:\notes are something else.
_WRITTEN_LINE_END = re.compile(r"\\n(?:\\n|(?:[-*+>]|#{1,6}|[0-9]{1,9}[.)])[ \t])")
_TAGS_AS_COMMENT = re.compile(r"[^#]*:[ \t]*#\w")


def _problems(raw: bytes, text: str, front: Frontmatter, outline: Outline, lines_above: int) -> Iterator[Problem]:
    """Bytes that are no text, and what is read but hardly meant so."""
    if fault := fault_of(raw):
        yield fault
    for line in conflict_marks(text)[:1]:
        yield Problem(line, MERGE_CONFLICT)
    key = front.key_of("tags") or front.key_of("tag")
    if key and front.values[key] is None and _TAGS_AS_COMMENT.match(text.split("\n")[front.line_of(key) - 1]):
        yield Problem(front.line_of(key), f"{key}: what follows # is a comment; write [ferry, winter], without #")
    if _WRITTEN_LINE_END.search(outline.text):
        for block in outline.root.walk():
            is_text = block.type in ("paragraph", "heading", "row")
            if is_text and any(each.kind == "text" and _WRITTEN_LINE_END.search(each.value) for each in block.spans):
                line = lines_above + block.first + 1
                yield Problem(line, r"it says \n where a line is meant to end; write real line ends")
                break


def links_of(outline: Outline, hidden: Sequence[Gap] = (), lines_above: int = 0) -> tuple[Link, ...]:
    """Every link and `![[embed]]` to a file outside of the comments in `hidden`, in order.

    A link to a place in the same note has the target "". Addresses elsewhere and `![images](…)` are left out.
    `lines_above` are the lines of the file above the outline's text.
    """
    links = ((span.start, _link(outline, span, lines_above)) for span in outline.links)
    return tuple(link for start, link in links if link and not _is_hidden(start, hidden))


def tags_of(outline: Outline, hidden: Sequence[Gap] = ()) -> tuple[str, ...]:
    """The #tags in the text, each once, in order. A number alone is no tag, nor is anything within a link."""
    text = outline.text
    if not _TAG.search(text):
        return ()
    tags: dict[str, None] = {}
    for span in outline.hashes:
        for match in _TAG.finditer(text, span.start, span.end):
            before = text[match.start() - 1 : match.start()]
            tag = match[1].rstrip("/-")
            begins = not before or before.isspace() or before in _BEFORE_A_TAG
            if begins and not tag.isdecimal() and not _is_hidden(match.start(), hidden):
                tags[tag] = None
    return tuple(tags)


_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
# What looks like a link and is none to a file: `<ines@quay.example>`, and `[^1]`, which refers to a footnote.
_NO_LINK = ("<", "[^")
_TAG = re.compile(r"#(\w[\w/-]*)")
_BEFORE_A_TAG = frozenset("([{,;:|*_~>（「『【、。，；：")


def _link(outline: Outline, span: Span, lines_above: int) -> Link | None:
    text, destination = outline.text, span.value
    is_wiki = text.startswith(("[[", "![["), span.start)
    is_address = not is_wiki and (span.kind == "image" or _HAS_SCHEME.match(destination))
    if is_address or text.startswith(_NO_LINK, span.start):
        return None
    # In a table, `|` is written `\|`.
    target, _, fragment = (destination.rstrip("\\") if is_wiki else destination).partition("#")
    if not is_wiki:
        target, fragment = unquote(target.partition("?")[0]), unquote(fragment)
    line = lines_above + outline.lines.at(span.start) + 1
    wiki_kind: Literal["embed", "wiki"] = "embed" if span.kind == "image" else "wiki"
    kind = wiki_kind if is_wiki else "markdown"
    return Link(target.strip(), fragment.strip(), line, kind) if target.strip() or fragment.strip() else None


def _is_hidden(position: int, hidden: Sequence[Gap]) -> bool:
    index = bisect_right(hidden, position, key=lambda gap: gap.start) - 1 if hidden else -1
    return index >= 0 and hidden[index].reason == "comment" and position < hidden[index].end
