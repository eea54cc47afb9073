"""What Markdown means, in a form that two texts can be compared by: an edit is written only when the file would read
back as the file that was meant. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notebook_sync.files.commonmark import block_tokens, inline_tokens
from notebook_sync.files.prose import shorten

if TYPE_CHECKING:
    from markdown_it.token import Token

# (level, type, tag, mark, info, source) of each token. That lists begin and end is left out, so that an item is the
# same whether it stands in a list of its own or joins the one above; how deep it stands is in its level.
Shape = tuple[tuple[int, str, str, str, str, str], ...]

_LISTS = frozenset(("bullet_list_open", "bullet_list_close", "ordered_list_open", "ordered_list_close"))


def shape_of(tokens: Sequence[Token], up: int = 0) -> Shape:
    """The shape of `tokens`, as it would be `up` levels further out."""
    return tuple(
        (t.level - up, t.type, t.tag, t.markup, t.info if t.type == "fence" else "", t.content)
        for t in tokens
        if t.type not in _LISTS
    )


@dataclass(frozen=True, slots=True)
class Content:
    """Markdown to be put somewhere: no blank lines around it, \\n at its line ends. `kind` is its first block's."""

    text: str
    shape: Shape
    kind: str = ""


_NO_TEXT = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BLANK_START = re.compile(r"\A(?:[ \t]*\n)+")
_END_WORD = "end"
# Below a text, this reads as a paragraph of its own unless the text leaves something open.
END = f"\n\n{_END_WORD}"


def is_closed(tokens: Sequence[Token]) -> bool:
    """Whether what stood above END, in the text that `tokens` are of, leaves nothing open."""
    return [(token.level, token.content) for token in tokens[-3:]] == [(0, ""), (1, _END_WORD), (0, "")]


def characters_refused(text: str, there: str = "") -> str:
    """Why `text` cannot stand in a Markdown file, or ""; what is `there` already can."""
    known = set(there.replace("\r\n", "\n"))
    found = next((each for each in _NO_TEXT.finditer(text.replace("\r\n", "\n")) if each[0] not in known), None)
    if found is None:
        return ""
    what = "half a character" if found[0] >= "\ud800" else "a control character"
    return f"it holds {what} (U+{ord(found[0]):04X}) at position {found.start()}"


def content_of(text: str, level: int) -> Content | str:
    """`text` as content of a section of `level`, or why it cannot be that."""
    text = text.replace("\r\n", "\n")
    lines = _BLANK_START.sub("", text).split("\n")
    while lines and not lines[-1].strip(" \t"):
        lines.pop()
    text = "\n".join(lines)
    if not text:
        return Content("", ())
    tokens = block_tokens(text + END)
    if not is_closed(tokens):
        return "it opens a code fence, a comment or HTML that it does not close"
    tokens = tokens[:-3]
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0 and int(token.tag[1]) <= level:
            return (
                f"its heading {shorten(tokens[index + 1].content)!r} would begin another section; "
                "use add_section, or a heading of a lower level"
            )
        if "<!--" in token.content and _leaves_a_comment_open(token):
            return "it opens a comment that it does not close"
    return Content(text, shape_of(tokens), tokens[0].type if tokens else "")


def _leaves_a_comment_open(token: Token) -> bool:
    if token.type == "html_block":
        return token.content.rfind("<!--") > token.content.rfind("-->")
    if token.type == "inline":
        return any("<!--" in part.content for part in inline_tokens(token.content) if part.type == "text")
    return False
