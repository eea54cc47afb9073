"""Where a link leads: by path, by file name, by title or by id. Names are gathered once; then a link is a look-up."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Callable, Iterable
from urllib.parse import quote

from notebook_sync.files.note import Note


class Names:
    """Every name that a note answers to. Case and Unicode form do not matter, as in editors that follow such links.

    `stands` tells whether a path below the notebook is there at all: links may lead to pictures and folders.
    """

    def __init__(self, notes: Iterable[Note], stands: Callable[[str], bool]) -> None:
        self._stands = stands
        self._names: set[str] = set()
        for note in notes:
            name = posixpath.basename(note.path)
            self._names |= {folded(each) for each in (note.path, name, note.title, note.wants) if each}
            self._names |= {folded(_stem(each)) for each in (note.path, name)}

    def leads_nowhere(self, link: str, source: str) -> str:
        """Why a link in the note at `source` leads nowhere; "" when it leads somewhere."""
        if folded(link) in self._names:
            return ""
        rooted = link.startswith("/")
        path = posixpath.normpath(link.lstrip("/") if rooted else posixpath.join(posixpath.dirname(source), link))
        if path == ".." or path.startswith("../"):
            return "it leads out of the notebook"
        for place in (path, posixpath.normpath(link)):
            if folded(place) in self._names or (not place.startswith("..") and self._stands(place)):
                return ""
        return "no note and no file has this name"


def folded(name: str) -> str:
    """The name as systems compare it that know neither case nor Unicode forms."""
    return unicodedata.normalize("NFC", name).casefold()


def _stem(path: str) -> str:
    return path[:-3] if path[-3:].lower() == ".md" else path


def line_of(link: str, text: str) -> int:
    """The first line of `text` on which a link to `link` begins; 0 where it is spelled in another way."""
    for spelled in (f"[[{link}", f"]({link}", f"](<{link}", f"]({quote(link)}", f"]: {link}", f"]: {quote(link)}"):
        at = text.find(spelled)
        if at >= 0:
            return text.count("\n", 0, at) + 1
    return 0
