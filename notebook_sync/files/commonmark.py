"""markdown-it-py as notes need it for blocks; `prompt.anchors` has the one for inline text. Slow and right: the fast
readers beside it must never say anything else than it does."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from prompt.anchors import WIKILINK, inline_tokens, rendered

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["WIKILINK", "block_tokens", "inline_tokens", "rendered"]


def block_tokens(text: str) -> list[Token]:
    """The block structure of `text`. `token.map` counts lines ended by \\n, \\r\\n or a lone \\r."""
    try:
        return _blocks().parse(text)
    except IndexError:
        # It reads one character too far when a comment is still open in a list or quote at the very end of the text.
        return _blocks().parse(text + "\n")


@cache
def _blocks() -> MarkdownIt:
    from markdown_it import MarkdownIt  # 30 ms that most notes, and `--version`, never need

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
