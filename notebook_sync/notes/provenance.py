"""Whether the owner stands behind a note, or it holds what somebody else said. In doubt, somebody else did."""

from __future__ import annotations

_KEY = "provenance"
_EXTERNAL = "external"


def is_external(raw: bytes) -> bool:
    """Whether the frontmatter says `provenance: external`, or names a provenance and cannot be read."""
    if _KEY.encode() not in raw:
        return False
    from notebook_sync.files.frontmatter import read_frontmatter  # YAML, which a prompt seldom needs

    front = read_frontmatter(raw.decode(errors="replace"))
    if front.problem is not None:
        return True
    return (front.metadata.text(_KEY) or "").strip().casefold().startswith(_EXTERNAL)
