"""What lies right in one folder of the notebook, by name and a page at a time: nothing below it is looked at, and the
mirror is not asked."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from notebook_sync.errors import NoSuchNote, UnsafePath
from notebook_sync.files.ignore import is_note_name
from notebook_sync.files.vault import Vault
from notebook_sync.notes.channels.channels import ANY
from notebook_sync.notes.guard import Guard
from notebook_sync.sessions import Session

MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Shelf:
    """Paths in the order of their names. Of the folders all, of the notes those that come `after` a name, `MOST` of
    them at the most; `following` is the name after which there are more, "" for none. `count` is how many files with
    the name of a note there are."""

    path: str
    folders: tuple[str, ...]
    notes: tuple[str, ...]
    following: str
    count: int


def shelf_of(vault: Vault, guard: Guard, place: str, session: Session, after: str = "") -> Shelf:
    """What lies right in the folder `place`, "" for the notebook itself, and may be read. A folder where no more than
    single notes may be read is not shown. Raises NoSuchNote, UnsafePath."""
    path, missing = vault.relative(place), NoSuchNote(f"there is no folder {place!r}; see: notebook-sync list")
    if path is None or (reason := vault.reason_against(place)):
        raise UnsafePath(place, "leads out of the notebook" if path is None else reason)
    try:
        names = os.listdir(vault.root / path)  # noqa: PTH208 - a Path for each of 100,000 names is made for nothing
    except (OSError, ValueError):
        raise missing from None
    within = f"{path}/" if path else ""
    folders = [f"{within}{name}" for name in vault.folders(path)]
    readable = set(guard.permitted(session, "read", [f"{folder}/{ANY}" for folder in folders]))
    notes = sorted(f"{within}{name}" for name in names if is_note_name(name) and _is_text(name))
    if session.kind != "owner":
        may = set(guard.permitted(session, "read", notes))
        notes = [note for note in notes if note in may]
        if path and not notes and not readable:
            raise missing
    start = bisect_right(notes, f"{within}{after}") if after else 0
    asked = notes[start : start + MOST]
    seen = vault.scan(asked).seen
    return Shelf(
        path=path,
        folders=tuple(folder for folder in folders if f"{folder}/{ANY}" in readable),
        notes=tuple(note for note in asked if note in seen),
        following=asked[-1][len(within) :] if start + MOST < len(notes) else "",
        count=len(notes),
    )


def _is_text(name: str) -> bool:
    """Whether a file name is UTF-8: any other is reported, and no note."""
    return name.isascii() or name.encode(errors="replace").decode() == name
