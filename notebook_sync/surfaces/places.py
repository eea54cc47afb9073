"""The note and the section that one text names, as it stands behind the colon of an omission line or in a wikilink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from notebook_sync.errors import NoSuchNote
from notebook_sync.sessions import Session

if TYPE_CHECKING:
    from notebook_sync.mirror.base import Document
    from notebook_sync.notebook import Notebook


def found(notebook: Notebook, name: str, section: str, session: Session) -> tuple[Document, Document | None]:
    """The note that `name` names, and the section that `section` does, else the end of `name`; None for the whole.

    Raises as `Notebook.read` and `Notebook.section`.
    """
    missing = NoSuchNote("a note is named by its path, its id or a link to it")
    for note, anchor in _readings_of(name):
        try:
            document = notebook.read(note, session=session)
        except NoSuchNote as error:
            missing = error
            continue
        wanted = section or anchor
        return document, notebook.section(document, wanted) if wanted else None
    raise missing


# Each reading is looked up by itself, and no heading is nested deeper.
_MOST_MARKS = 6


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
