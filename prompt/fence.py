"""How text that is not a trusted file is shown: as a Markdown quote, and in a fence where somebody else wrote it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from secrets import token_hex

# A fence as `fence_external` makes it. No inside holds another opening or end.
FENCED = re.compile(
    r'(?P<opening><external-text id="(?P<id>[^"]+)" from="[^"]*">\n\n)(?P<inside>.*?)\n'
    r'(?P<closing></external-text id="(?P=id)">)',
    re.DOTALL,
)
# Anything that could be taken for the tag, however it is spaced, cased or spelled.
_LOOK_ALIKE = re.compile(r"(?:<|&(?:lt|#0*60|#x0*3c);?)(?=[\s/\\]*external[\W_]*text)")
_PLAIN = re.compile(r"[\t\n\r -~]*")
_UNSEEN = ("Cc", "Cf", "Mn", "Me")
_SAME_SHAPE = str.maketrans("‹〈《⟨еёхтпгаӏ∕⁄", "<<<<eextnral//")


def quote(text: str) -> str:
    """`text` as a Markdown quote: `>` before each line, whatever ends lines in it.

    So no line of it begins with a tag or a heading of the frame, and what it leaves open ends with the quote.
    """
    return "".join(f"> {line}" if line.strip() else f">{line}" for line in text.splitlines(keepends=True))


def fence_external(text: str, provenance: str, fence_id: str | None = None) -> str:
    """`text`, quoted, between tags that carry a random id and where the text comes from."""
    fence_id = fence_id or token_hex(8)
    origin = re.sub(r"[^\w@.:+/ -]", "?", _neutralised(provenance, fence_id))
    inside = quote(_neutralised(text, fence_id))
    return f'<external-text id="{fence_id}" from="{origin}">\n\n{inside}\n</external-text id="{fence_id}">'


def _neutralised(text: str, fence_id: str) -> str:
    characters = list(text)
    plain, origin = _as_read(text)
    for match in _LOOK_ALIKE.finditer(plain):
        for position in origin[match.start() : match.end()]:
            characters[position] = "?"
    own, _ = _as_read(fence_id)
    mask = "o" if "x" in own else "x"  # a letter: a mark could bring two halves of a look-alike together
    at = plain.find(own)
    while at >= 0:
        for position in origin[at : at + len(own)]:
            characters[position] = mask
        at = plain.find(own, at + len(own))
    return "".join(characters)


def _as_read(text: str) -> tuple[str, Sequence[int]]:
    """`text` as an eye takes it, without what it cannot see or tell apart, and where each character comes from."""
    if _PLAIN.fullmatch(text):
        return text.lower(), range(len(text))
    pieces: list[str] = []
    origin: list[int] = []
    for position, character in enumerate(text):
        if unicodedata.category(character) in _UNSEEN and not character.isspace():
            continue
        plain = unicodedata.normalize("NFKC", character).casefold().translate(_SAME_SHAPE)
        pieces.append(plain)
        origin.extend([position] * len(plain))
    return "".join(pieces), origin
