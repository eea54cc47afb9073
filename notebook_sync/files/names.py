"""Which paths may be written to: names that mean the same file on every system, and nothing hidden or out of reach.

Pure: it is told what a folder holds.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from notebook_sync.files.ignore import is_hidden, is_note_name

LONGEST_NAME = 255
_LONGEST_PATH = 4000
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in "123456789¹²³")}
# Control characters, surrogates (bytes that are not UTF-8), line and paragraph ends.
_UNPRINTABLE = {"Cc", "Cs", "Zl", "Zp"}
# What makes text read in another order than it is written in.
TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def reason_against(path: str) -> str:
    """Why no note may be written at `path`, as it was given; "" where nothing in the path speaks against it."""
    if path.startswith("/"):
        return "an absolute path; name the note by its path in the notebook"
    if any(unicodedata.category(one) in _UNPRINTABLE or one in TURNING for one in path):
        return "its name has a control character, or bytes that are not UTF-8"
    if "\\" in path:
        return "its name has a backslash; write / between folders"
    parts = path.split("/")
    if ".." in parts:
        return "leads up with `..`; name the note by its path in the notebook"
    if len(path.encode()) > _LONGEST_PATH:
        return "its path is too long"
    for part in parts:
        if reason := _reason_against_part(part):
            return reason
    return "" if is_note_name(parts[-1]) else "is no Markdown note; its name must end in .md"


def _reason_against_part(part: str) -> str:
    if part in {"", "."}:
        return "has an empty part; name the note by its path in the notebook"
    if is_hidden(part):
        return f"{part!r} is hidden, and what is hidden is no note"
    if part.endswith((".", " ")) or part.startswith(" "):
        return f"{part!r} has a space or a dot at its edge, which other systems drop"
    if part.split(".")[0].rstrip().casefold() in _RESERVED:
        return f"{part!r} is the name of a device on Windows"
    if len(part.encode()) > LONGEST_NAME:
        return f"a name has more than {LONGEST_NAME} bytes"
    return ""


def twin_of(name: str, others: Iterable[str]) -> str | None:
    """Another name in the folder that some systems take for `name`: other case, or other Unicode composition."""
    wanted = folded(name)
    return next((other for other in others if other != name and folded(other) == wanted), None)


def folded(name: str) -> str:
    """What names have in common that some systems take for one."""
    if name.isascii():  # nearly all are, and a folder may hold very many
        return name.lower()
    # Folding can undo the composition, so it is composed before and after.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
