"""The links and the #tags of a note. Code, comments and HTML have neither. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal
from urllib.parse import unquote

from notebook_sync.model import Link
from prompt.outline import Outline, Span
from prompt.values import Gap


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
    kind: Literal["wiki", "embed", "markdown"] = "markdown"
    if is_wiki:
        kind = "embed" if span.kind == "image" else "wiki"
    return Link(target.strip(), fragment.strip(), line, kind) if target.strip() or fragment.strip() else None


def _is_hidden(position: int, hidden: Sequence[Gap]) -> bool:
    index = bisect_right(hidden, position, key=lambda gap: gap.start) - 1 if hidden else -1
    return index >= 0 and hidden[index].reason == "comment" and position < hidden[index].end
