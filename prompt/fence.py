"""The fence around text that the owner did not write. What stands inside can never look like its end."""

from __future__ import annotations

import re
from secrets import token_hex

# Anything that could be taken for the tag, however it is spaced or cased.
_LOOK_ALIKE = re.compile(r"<(?=\s*/?\s*external[\s_-]*text)", re.IGNORECASE)


def fence_external(text: str, provenance: str, fence_id: str | None = None) -> str:
    """`text` between tags that carry a random id and where the text comes from. For the volatile part only."""
    fence_id = fence_id or token_hex(8)
    origin = re.sub(r"[^\w@.:+/ -]", "?", provenance)
    inside = _LOOK_ALIKE.sub("‹", text).replace(fence_id, "?" * len(fence_id))
    return f'<external-text id="{fence_id}" from="{origin}">\n{inside}\n</external-text id="{fence_id}">'
