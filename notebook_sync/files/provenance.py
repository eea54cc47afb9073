"""Whether the owner stands behind a note, or it holds what somebody else said. In doubt, somebody else did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notebook_sync.files.frontmatter import Frontmatter

EXTERNAL = "external"
_KEY = "provenance"


def is_external(raw: bytes) -> bool:
    """Whether the frontmatter says `provenance: external`, or names a provenance and cannot be read."""
    if _KEY.encode() not in raw:
        return False
    from notebook_sync.files.frontmatter import read_frontmatter  # YAML, which a prompt seldom needs

    text = raw.decode(errors="replace")
    return says_external(text, read_frontmatter(text))


def says_external(text: str, front: Frontmatter) -> bool:
    """As `is_external`, of a text whose frontmatter is read already."""
    if front.problem is not None:
        return _KEY in text
    return (front.metadata.text(_KEY) or "").strip().casefold().startswith(EXTERNAL)
