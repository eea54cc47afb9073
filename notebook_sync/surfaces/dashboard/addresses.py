"""Where pages are, with what is asked of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

NOTES: Final = "/notes"


def address(path: str, asked: Mapping[str, object], **changed: object) -> str:
    """The page at `path` with what was asked for, changed; what is empty is left out."""
    kept = {name: str(value) for name, value in {**asked, **changed}.items() if value}
    return f"{path}?{urlencode(kept, errors='replace')}" if kept else path
