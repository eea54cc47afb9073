"""The links and the #tags of a note. Code, comments and HTML have neither. Pure."""

from __future__ import annotations

import re
from urllib.parse import unquote

from prompt.outline import Outline

_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
# What looks like a link and is none to a file: `<ines@quay.example>`, and `[^1]`, which refers to a footnote.
_NO_LINK = ("<", "[^")
_TAG = re.compile(r"#(\w[\w/-]*)")
_BEFORE_A_TAG = frozenset("([{,;:|*_~>（「『【、。，；：")


def links_of(outline: Outline) -> tuple[str, ...]:
    """Where the links and `![[embeds]]` lead, each once, in order: paths and names, without `#heading`.

    Addresses elsewhere, places in the same note, and images are left out.
    """
    text = outline.text
    paths = (
        _path_in(link.value, is_wikilink=text.startswith(("[[", "![["), link.start))
        for link in outline.links
        if not text.startswith(_NO_LINK, link.start) and (link.kind == "link" or text.startswith("![[", link.start))
    )
    return tuple(dict.fromkeys(filter(None, paths)))


def tags_of(outline: Outline) -> tuple[str, ...]:
    """The #tags in the text, each once, in order. A number alone is no tag, nor is anything within a link."""
    text = outline.text
    tags: dict[str, None] = {}
    for span in outline.hashes:
        for match in _TAG.finditer(text, span.start, span.end):
            before = text[match.start() - 1 : match.start()]
            tag = match[1].rstrip("/-")
            if (not before or before.isspace() or before in _BEFORE_A_TAG) and not tag.isdecimal():
                tags[tag] = None
    return tuple(tags)


def _path_in(destination: str, *, is_wikilink: bool) -> str:
    """The file that a destination names; "" for an address elsewhere and for a place in the same note."""
    path = destination.partition("#")[0]
    if is_wikilink:
        return path.removesuffix("\\").strip()  # in a table, `|` is written `\|`
    if _HAS_SCHEME.match(destination):
        return ""
    return unquote(path.partition("?")[0]).strip()
