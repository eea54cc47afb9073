"""Where a link leads: by path, by file name, by title or by id. Names are gathered once; then a link is a look-up."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Callable, Iterable
from typing import Protocol
from urllib.parse import quote


class Named(Protocol):
    """What a note is known by."""

    @property
    def path(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def wants(self) -> str: ...


class Names:
    """Every name that a note answers to. Case and Unicode form do not matter, as in editors that follow such links.

    `stands` tells whether a path below the notebook is there at all: links may lead to pictures and folders.
    """

    def __init__(self, notes: Iterable[Named], stands: Callable[[str], bool]) -> None:
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
        from_root = posixpath.normpath(link.lstrip("/") or ".")
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        places = [
            place for place in (from_root if link.startswith("/") else beside, from_root) if not _is_outside(place)
        ]
        if any(folded(place) in self._names or self._stands(place) for place in places):
            return ""
        if not places:
            return "it leads out of the notebook; mend the link"
        return "no note and no file has this name; mend the link, or write the page"


def folded(name: str) -> str:
    """The name as systems compare it that know neither case nor Unicode forms."""
    return unicodedata.normalize("NFC", name).casefold()


def _is_outside(path: str) -> bool:
    return path.startswith("/") or path.split("/")[0] == ".."


def _stem(path: str) -> str:
    return path[:-3] if path[-3:].lower() == ".md" else path


def line_of(link: str, text: str) -> int:
    """The first line of `text` on which a link to `link` begins; 0 where it is spelled in another way."""
    for spelled in (f"[[{link}", f"]({link}", f"](<{link}", f"]({quote(link)}", f"]: {link}", f"]: {quote(link)}"):
        at = text.find(spelled)
        if at >= 0:
            return text.count("\n", 0, at) + 1
    return 0
