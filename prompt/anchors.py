"""Section anchors as GitHub makes them, by which `notebook_read` names a section, and the headings they are made of.

The notebook reads its headings here as well: an anchor that a prompt names is one that a section has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

# [[target]] and [[target|shown]].
WIKILINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")
# The end of [shown][label], whose definition stands elsewhere in the note.
_LABEL = re.compile(r"\]\[[^\[\]]*\]")
_MARKUP = re.compile(r"[*_`\[\]<>&\\~!]")
_NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")
# Beyond this a heading is not for people, and its marks are left as they are.
_LONGEST = 2000
# As many brackets are looked for the end of, each as far as the heading goes.
_MOST_BRACKETS = 50


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
    """A heading as its reader sees it: without `#`, underline and inline marks, links as their text.

    One that is only an image is read by the image's alternative text.
    """
    source = source.strip()
    marks = len(source) - len(source.lstrip("#"))
    if marks:
        source = re.sub(r"(?:^|[ \t])#+$", "", source[marks:].strip()).strip()
    else:
        source = re.split(r"[\r\n][ \t]*(?:=+|-+)\Z", source)[0].strip()
    source = source.replace("\0", "\ufffd")
    if len(source) <= _LONGEST and source.count("[") <= _MOST_BRACKETS and _MARKUP.search(source):
        source = rendered(source) or rendered(source, images=True)
    return " ".join(source.split())


def rendered(source: str, *, images: bool = False) -> str:
    """A paragraph or heading without its inline marks, on one line; `images` by their alternative text or left out."""
    pieces = []
    for token in inline_tokens(source):
        if token.type in ("text", "code_inline") or (images and token.type == "image"):
            pieces.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            pieces.append(" ")
    return " ".join("".join(pieces).split())


def inline_tokens(source: str) -> list[Token]:
    """The inline structure of one paragraph or heading."""
    return _inlines().parseInline(source)[0].children or []


@cache
def _inlines() -> MarkdownIt:
    from markdown_it import MarkdownIt  # 30 ms that most notes, and `--version`, never need

    parser = MarkdownIt("commonmark").enable("strikethrough")
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.inline.ruler.before("link", "reference", _reference)
    return parser


def _wikilink(state: StateInline, silent: bool) -> bool:
    match = WIKILINK.match(state.src, state.pos) if state.src.startswith("[[", state.pos) else None
    shown = match and (match[2] or match[1])
    if not match or not shown:
        return False
    if not silent:
        state.push("text", "", 0).content = shown
    state.pos = match.end()
    return True


def _reference(state: StateInline, silent: bool) -> bool:
    """Of a link, what it shows is read as any other text; of a picture, it is what stands in its place."""
    is_picture = state.src.startswith("![", state.pos)
    start = state.pos + is_picture
    if not state.src.startswith("[", start) or state.src.find("][", start, state.posMax) < 0:
        return False
    end = state.md.helpers.parseLinkLabel(state, start, False)
    label = _LABEL.match(state.src, end, state.posMax) if end > start else None
    if not label:
        return False
    if is_picture and not silent:
        state.push("image", "img", 0).content = state.src[start + 1 : end]
    elif not silent:
        after = state.posMax
        state.pos, state.posMax = start + 1, end
        state.md.inline.tokenize(state)
        state.posMax = after
    state.pos = label.end()
    return True
