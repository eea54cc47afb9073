"""Whether a note holds what somebody else said. In doubt, it does. Only its parsed frontmatter decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notebook_sync.files.frontmatter import Frontmatter

EXTERNAL = "external"
_KEY = "provenance"
_OPENINGS = (b"---", b"\xef\xbb\xbf---")


def is_external(raw: bytes) -> bool:
    """Whether the frontmatter says `provenance: external`, or may say it and cannot be read."""
    if not raw.startswith(_OPENINGS):
        return False
    from notebook_sync.files.frontmatter import read_frontmatter  # YAML, which a prompt seldom needs

    text = raw.decode(errors="replace")
    return says_external(text, read_frontmatter(text))


def says_external(text: str, front: Frontmatter) -> bool:
    """As `is_external`, of a text whose frontmatter is read already."""
    if front.problem is not None:
        return _KEY in text or "\\" in text  # an escape may spell the key
    if isinstance(front.metadata.get(_KEY), (list, dict)):
        return True
    return (front.metadata.text(_KEY) or "").strip().casefold().startswith(EXTERNAL)
