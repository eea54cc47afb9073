"""One thing that `check` points at. A value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """`line` is 1-based in the file, 0 for the file as a whole.

    error: the note is not mirrored as it is, or a rule does not do what it says. warning: it is probably not meant so.
    info: it may be removed, or is not seen where it stands.
    """

    path: str
    line: int
    severity: Severity
    message: str
