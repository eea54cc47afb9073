"""Commits what people changed by hand, behind the watch: `[git] commit = "all"`.

A thread of its own, so that a slow git keeps nobody waiting. What it commits is what the mirror has of a note; what a
tool has written is left to the tool, and what git itself changes, as in a merge, to whoever runs it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping

from notebook_sync.errors import BackendDown, GitFailed, UnreadableFile
from notebook_sync.files.branch import NO_BRANCH, branch_of
from notebook_sync.files.commits import HeadMoved, commit
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Mirror
from notebook_sync.notes.editing.door import digest_of, message_by_hand
from notebook_sync.notes.editing.past import Past

# Saves that follow each other are one commit, and a tool has committed its own by then.
_PAUSE_SECONDS = 1.0
_RETRY_SECONDS = 2.0
_AT_ONCE = 500
# A tool's git has given up after that.
_TOOLS_OWN_SECONDS = 20.0
_NO_TROUBLE = ("", "")


class ByHand:
    """The commits of one notebook's watch. Each of its methods returns at once, but for `close`. `skipped` are
    the paths that people commit themselves."""

    def __init__(
        self, vault: Vault, past: Past, mirror: Callable[[], Mirror], author: str | None, skipped: Collection[str] = ()
    ) -> None:
        self._vault = vault
        self._past = past
        self._mirror = mirror
        self._author = author
        self._skipped = frozenset(skipped)
        self._changing = threading.Condition()
        self._waiting: set[str] = set()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._trouble = _NO_TROUBLE

    def changed(self, paths: Collection[str]) -> None:
        """Commit the notes at these paths in a moment, those that are gone included."""
        with self._changing:
            self._waiting |= set(paths) - self._skipped
            if self._waiting and self._thread is None:
                self._closing = False
                self._thread = threading.Thread(target=self._work, name="commits by hand", daemon=True)
                self._thread.start()
            self._changing.notify()

    @property
    def trouble(self) -> tuple[str, str]:
        """Why notes wait for their commit, and the same as it is told: with their number, and what to do. Both "" where
        none waits for more than its turn. It is tried again."""
        return self._trouble

    def close(self) -> None:
        """Commit what waits, if that can be done now, and come to an end. Twice is allowed."""
        with self._changing:
            thread, self._thread = self._thread, None
            self._closing = True
            self._changing.notify()
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        pause = _PAUSE_SECONDS
        while paths := self._next(pause):
            try:
                left = self._commit(paths)
            except (GitFailed, BackendDown) as error:
                left = paths
                self._trouble = str(error), f"not committed: {error}"
            pause = _RETRY_SECONDS if left else _PAUSE_SECONDS
            with self._changing:
                self._waiting |= left
                if left and self._closing:
                    return

    def _next(self, pause: float) -> set[str]:
        """What waits, a moment after the first of it; nothing at the end."""
        with self._changing:
            self._changing.wait_for(lambda: self._waiting or self._closing)
            self._changing.wait_for(lambda: self._closing, timeout=pause)
            paths, self._waiting = self._waiting, set()
        return paths

    def _commit(self, paths: set[str]) -> set[str]:
        """Commit what is to be; which of the paths have to wait."""
        branch = branch_of(self._vault.root)
        if branch is None:
            self._trouble = _NO_TROUBLE
            return set()
        texts = self._texts(paths)
        # Asked after the files were read: what git changes meanwhile moves the head, and is then read again.
        reason = branch.stands_open()
        if not reason and branch.is_changing():
            return paths
        changes = branch.uncommitted(texts)
        tools = {path for path, raw in changes.items() if self._is_a_tools(path, raw)}
        names = sorted(changes.keys() - tools)
        if reason:
            self._trouble = (reason, _waiting(len(names), reason)) if names else _NO_TROUBLE
            return paths
        onto = branch.head
        try:
            for start in range(0, len(names), _AT_ONCE):
                some = names[start : start + _AT_ONCE]
                batch = {path: changes[path] for path in some}
                made = commit(self._vault.root, batch, message_by_hand(some), author=self._author, onto=onto)
                onto = made or onto
        except HeadMoved:
            return paths
        self._trouble = _NO_TROUBLE
        return tools

    def _texts(self, paths: Collection[str]) -> Mapping[str, bytes | None]:
        """What the notes say, None for one that is gone, as far as the mirror has it. Of the others a later batch
        tells."""
        known = {row.path: row.digest for row in self._mirror().known(paths)}
        texts: dict[str, bytes | None] = {}
        for path in paths:
            try:
                raw = self._vault.read(path)[0]
            except FileNotFoundError:
                raw = None
            except UnreadableFile:
                continue
            if digest_of(raw) == known.get(path, ""):
                texts[path] = raw
        return texts

    def _is_a_tools(self, path: str, raw: bytes | None) -> bool:
        """Whether a tool wrote this just now, and will commit it. Its copies have a summary, those of what it found
        have none."""
        newest = next(self._past.copies(path), None)
        if newest is None or not newest.summary or newest.digest != digest_of(raw):
            return False
        try:
            written = newest.file.stat().st_mtime  # where the clock went back, `at` may be long to come
        except OSError:
            return False
        return abs(time.time() - written) < _TOOLS_OWN_SECONDS


def _waiting(count: int, reason: str) -> str:
    step = (
        "check one out, as with: git switch -c NAME"
        if reason == NO_BRANCH
        else "end it, and what it leaves uncommitted is committed"
    )
    return f"{count:,} {'note waits for its' if count == 1 else 'notes wait for their'} commit: {reason}; {step}"
