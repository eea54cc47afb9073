"""How text that is not a trusted file is shown: as a Markdown quote, and in a fence if somebody else wrote it."""

from __future__ import annotations

import re
from hashlib import sha256

_LOOK_ALIKE = re.compile(r"<(?=[\s/\\]*external[\W_]*text)", re.IGNORECASE)
_NOT_IN_ORIGIN = re.compile(r"[^\w@.:+/ -]")


def quote(text: str) -> str:
    """`text` as a Markdown quote: `>` before each line, whatever ends lines in it.

    So no line of it begins with a tag or a heading of the frame, and what it leaves open ends with the quote.
    """
    return "".join(f"> {line}" if line.strip() else f">{line}" for line in text.splitlines(keepends=True))


def fence_external(text: str, source: str) -> str:
    """`text`, quoted, between tags that name its source and carry an id.

    The id is made of what is fenced, so that no text can contain its own.
    """
    fence_id = sha256(f"{source}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    origin = _NOT_IN_ORIGIN.sub("?", source)
    inside = quote(_LOOK_ALIKE.sub("?", text)).removesuffix("\n")
    return f'<external-text id="{fence_id}" from="{origin}">\n\n{inside}\n</external-text id="{fence_id}">'
