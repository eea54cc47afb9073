"""The note and the section that one text names, as an omission line or a wikilink writes it: `PATH#SECTION`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from notebook_sync.errors import NoSuchNote

_Read = TypeVar("_Read")
# Each reading is looked up by itself, and no heading is nested deeper.
_MOST_MARKS = 6


def found(read: Callable[[str], _Read], name: str) -> tuple[_Read, str]:
    """What `read` gives for the note that `name` names, and the section that the end of `name` does, "" for none.

    `read` raises NoSuchNote for a name that no note has. Raises as `read`.
    """
    missing = NoSuchNote("a note is named by its path, its id or a link to it")
    for note, section in _readings_of(name):
        try:
            return read(note), section
        except NoSuchNote as error:
            missing = error
    raise missing


def _readings_of(name: str) -> Iterator[tuple[str, str]]:
    """Each note and section that a name may mean, a note of that very name first: `[[plan#Budget|money]]`, `c#.md`."""
    if name.startswith("[[") and name.endswith("]]"):
        name = name[2:-2].partition("|")[0]
    yield name, ""
    place = len(name)
    for _ in range(_MOST_MARKS):
        place = name.rfind("#", 0, place)
        if place <= 0:
            return
        yield name[:place], name[place + 1 :].rpartition("#")[2]
