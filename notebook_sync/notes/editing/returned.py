"""The past of notes that come back after they were deleted, of which the mirror knows nothing any more: from the copies
that tools' edits left, and from git where it knows of more."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from notebook_sync.errors import GitFailed
from notebook_sync.files.branch import branch_of
from notebook_sync.files.history import GitHistory, git_history
from notebook_sync.files.moves import opens
from notebook_sync.files.note import HISTORY_LIMIT, Seed
from notebook_sync.folder import FOLDER
from notebook_sync.notes.editing.past import Copy, Past


class Returned:
    """The pasts of notes that tools have just written. Git is asked once, and only where one was there before."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._past = Past(root / FOLDER)
        self._history: GitHistory | None = None

    def past_of(self, path: str) -> Seed | None:
        """What the row of the note at `path` goes on from, this write included; None for a note that is new."""
        followed = takewhile(lambda copy: not opens(copy.path, path), self._past.copies(path))
        copies = [copy for copy in followed if not copy.moved_from][::-1]  # a move is no version
        if not copies or (len(copies) == 1 and copies[0].begins):
            return None
        crumbs = tuple(_crumb(copy, version) for version, copy in enumerate(copies, 1))
        kept = Seed(len(copies), copies[0].at, crumbs, "file")
        told = self._committed(path)
        if told is not None and self._is_yet_to_come(path, copies[-1]):
            version = told.version + 1
            told = replace(told, version=version, history=(*told.history, _crumb(copies[-1], version))[-HISTORY_LIMIT:])
        return told if told is not None and told.version >= kept.version else kept

    def _is_yet_to_come(self, path: str, last: Copy) -> bool:
        """Whether git has still to be told of what was just written: that is committed before or after its row is made.
        Of a note that git knows as gone, what it had said before is nothing new."""
        try:
            branch = branch_of(self._root)
            if branch is None or not branch.uncommitted({path: None}):
                return last.begins
            return bool(branch.uncommitted({path: last.read()}))
        except GitFailed:
            return last.begins

    def _committed(self, path: str) -> Seed | None:
        if self._history is None:
            self._history = git_history(self._root)
        return self._history.seed_of(path)


def _crumb(copy: Copy, version: int) -> dict[str, Any]:
    summary = "Created" if version == 1 else copy.summary or "Changed"
    return {"version": version, "timestamp": copy.at, "summary": summary, "changed_by": copy.changed_by}
