"""Where in the dashboard a line of a file is mended: the form of the entry that it is in, or its place in the note. It
changes nothing."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.rendering import AT
from notebook_sync.surfaces.dashboard.runtime.runtime_entries import sections_of
from notebook_sync.surfaces.dashboard.runtime.runtime_files import FILES

KEYS: Final = {file.path: file.key for file in FILES.values()}


class Places:
    """Where lines are mended. Each file is read once."""

    def __init__(self, notebook: Notebook, asking: Session) -> None:
        self._notebook = notebook
        self._asking = asking
        self._texts: dict[str, str] = {}

    def address(self, path: str, line: int) -> str:
        """The page for a line, from 1; for 0, or in a file that cannot be read, the note's."""
        if path not in self._texts:
            self._texts[path] = self._text(path)
        return address_of(path, self._texts[path], line)

    def _text(self, path: str) -> str:
        try:
            return self._notebook.file(path, self._asking).text
        except NotebookError:
            return ""


def address_of(path: str, text: str, line: int) -> str:
    """The same, for a file that says `text`. Pure."""
    note = f"/notes/{quote(path)}"
    above = [section for section in sections_of(text) if section.line <= line] if line and text else []
    if not above:
        return note
    for item in above[-1].items:
        if path in KEYS and item.line <= line <= item.line + item.raw.count("\n"):
            return f"/rules/entry?{urlencode({'file': KEYS[path], 'line': item.line})}"
    return f"{note}#{AT}{quote(above[-1].anchor)}" if above[-1].anchor else note
