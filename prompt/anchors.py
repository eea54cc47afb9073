"""Section anchors as GitHub makes them, which is how `notebook_read` names a section."""

from __future__ import annotations

import re
from collections.abc import Sequence

from prompt.blocks import plain_inline

_WIKILINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")
_MARKUP = re.compile(r"[*_`\[\]<>&\\~!]")
_NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")
# Beyond this a heading is not for people, and its marks are left as they are.
_LONGEST = 2000


def anchors_of(headings: Sequence[str]) -> list[str]:
    """One anchor for each heading's plain text: lower case, no punctuation, `-` for spaces, `-1`, `-2` for repeats."""
    taken: dict[str, int] = {}
    anchors = []
    for heading in headings:
        wanted = anchor = _NOT_IN_ANCHOR.sub("", heading.lower()).replace(" ", "-") or "section"
        while anchor in taken:
            taken[wanted] += 1
            anchor = f"{wanted}-{taken[wanted]}"
        taken[anchor] = 0
        anchors.append(anchor)
    return anchors


def heading_text(source: str) -> str:
    """A heading as its reader sees it: without `#`, underline and inline marks, links as their text."""
    source = source.strip()
    marks = len(source) - len(source.lstrip("#"))
    if marks:
        source = re.sub(r"(?:^|[ \t])#+$", "", source[marks:].strip()).strip()
    else:
        source = re.split(r"[\r\n][ \t]*(?:=+|-+)\Z", source)[0].strip()
    if len(source) <= _LONGEST and _MARKUP.search(source):
        source = plain_inline(_WIKILINK.sub(lambda match: match[2] or match[1], source))
    return " ".join(source.split())
