"""markdown-it-py, set up the two ways notes need it: blocks only, and inline only. Slow and right: the fast
readers beside it must never say anything else than it does."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

# [[target]], [[target|shown]], and [shown][label], whose definition stands elsewhere in the note.
WIKILINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")
_REFERENCE = re.compile(r"\[([^\[\]]+)\]\[[^\[\]]*\]")


def block_tokens(text: str) -> list[Token]:
    """The block structure of `text`. `token.map` counts lines ended by \\n, \\r\\n or a lone \\r."""
    try:
        return _blocks().parse(text)
    except IndexError:
        # It reads one character too far when a comment is still open in a list or quote at the very end of the text.
        return _blocks().parse(text + "\n")


def inline_tokens(source: str) -> list[Token]:
    """The inline structure of one paragraph or heading."""
    return _inlines().parseInline(source)[0].children or []


@cache
def _blocks() -> MarkdownIt:
    from markdown_it import MarkdownIt  # 30 ms that most notes, and `--version`, never need

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _inlines() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("strikethrough")
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    return parser


def _wikilink(state: StateInline, silent: bool) -> bool:
    if not state.src.startswith("[", state.pos):
        return False
    match = WIKILINK.match(state.src, state.pos)
    shown = match and (match[2] or match[1])
    if not match:
        match = _REFERENCE.match(state.src, state.pos)
        shown = match and match[1]
    if not match or not shown:
        return False
    if not silent:
        state.push("text", "", 0).content = shown
    state.pos = match.end()
    return True
