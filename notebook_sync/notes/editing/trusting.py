"""Accepting what waits for trust: what the difference is, and that the owner vouches for it."""

from __future__ import annotations

from collections.abc import Mapping

from notebook_sync.errors import Conflict, UnwritableFile, UsageError
from notebook_sync.events import Events
from notebook_sync.notes.editing.difference import difference
from notebook_sync.notes.editing.door import Door, digest_of
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.prompting.system_prompt import SystemPrompt
from notebook_sync.notes.prompting.trust import Untrusted
from notebook_sync.notes.runtime.answers import TrustedFile
from notebook_sync.sessions import Session

TOOL = "trust"


class Trusting:
    """Accepts files of one notebook's prompt."""

    def __init__(self, prompt: SystemPrompt, guard: Guard, door: Door, events: Events) -> None:
        self._prompt = prompt
        self._guard = guard
        self._door = door
        self._events = events

    def accept(
        self, session: Session, file: str, *, dry_run: bool, expected_digests: Mapping[str, str] | None
    ) -> list[TrustedFile]:
        """Accept what waits in `file`, or in all files of the prompt for ""; with `dry_run`, only show it. With
        expected digests, only if the files still have them.

        Raises NotPermitted, UsageError, Conflict, UnwritableFile, GitFailed.
        """
        paths = [path for path in self._prompt.paths if file in ("", path, path.rpartition("/")[2])]
        if not paths:
            known = ", ".join(self._prompt.paths)
            raise UsageError(f"no prompt shows {file!r}; its files are: {known}")
        for path in paths:
            self._guard.require(session, "write", path, TOOL)
        with self._door.lock(() if dry_run else paths):
            waiting = [one for one in self._prompt.untrusted() if one.path in paths]
            for one in waiting:
                _must_be_expected(one, expected_digests)
            return [self._accepted(one, session, dry_run=dry_run) for one in waiting]

    def _accepted(self, one: Untrusted, session: Session, *, dry_run: bool) -> TrustedFile:
        digest = digest_of(one.found)
        if self._prompt.trust and not dry_run:
            try:
                self._prompt.trust.accept(one.path, one.found)
            except OSError as error:
                raise UnwritableFile(one.path, f"the accepted version cannot be kept: {error.strerror}") from None
            self._events.record(TOOL, session, path=one.path, digest=digest)
        diff = difference(one.path, one.trusted, one.found)
        return TrustedFile(one.path, digest, one.lines, diff, accepted=not dry_run)


def _must_be_expected(one: Untrusted, expected: Mapping[str, str] | None) -> None:
    if expected is not None and expected.get(one.path) != digest_of(one.found):
        raise Conflict(one.path, expected.get(one.path, ""), digest_of(one.found))
