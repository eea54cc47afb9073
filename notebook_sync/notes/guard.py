"""Asks the table of permissions for one notebook, and leaves an event for each call that is refused.

Membership of a shared channel is read from its `channel.toml` at each call: what was withdrawn holds at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import NoReturn

from notebook_sync.errors import NoSuchNote, NotPermitted, UnreadableFile, UnsafePath
from notebook_sync.events import Events
from notebook_sync.files.vault import Vault
from notebook_sync.permissions import (
    CHANNEL,
    NOBODY,
    Members,
    Verb,
    channel_of,
    may,
    members_in,
    require,
    require_in_stream,
)
from notebook_sync.sessions import Session
from notebook_sync.settings import PromptSettings


class Guard:
    """May this session do that? For one notebook; any number of threads."""

    def __init__(self, vault: Vault, settings: PromptSettings, events: Events) -> None:
        self._vault = vault
        self._settings = settings
        self._events = events

    def may(self, session: Session, verb: Verb, path: str) -> bool:
        """Whether the session may do this to the note at `path`."""
        return may(session, verb, self._judged(verb, path), self._settings, self._members(session, path))

    def permitted(self, session: Session, verb: Verb, paths: Iterable[str]) -> Iterator[str]:
        """Those of many paths where the session may do this, one after the other; who are members of a channel is read
        once."""
        known: dict[str, Members] = {}

        def members(path: str) -> Members:
            channel = channel_of(path)
            if channel is None or session.kind != "task":
                return NOBODY
            if channel not in known:
                known[channel] = self._members_of(channel)
            return known[channel]

        return (path for path in paths if may(session, verb, self._judged(verb, path), self._settings, members(path)))

    def place(self, session: Session, name: str, verb: Verb | None, tool: str) -> str:
        """The one path that `name` means, where the session may read and do this; None asks for no permission. The
        answer never depends on whether a note exists there.

        Raises NotPermitted, NoSuchNote for what is withheld, and UnsafePath for what is outside, hidden or a link, and
        leaves an event. An owner is refused nothing but by UnsafePath, which says more.
        """
        place = self._vault.place(name)
        judged = name if place is None else place
        if verb and session.kind != "owner":
            # Where a note is to be made, the refusal says so; otherwise a withheld note must look absent.
            verbs: tuple[Verb, ...] = (verb, "read") if verb == "add" else ("read", verb)
            try:
                for each, path in product(verbs, (judged, f"{judged}.md") if judged else ("",)):
                    self.require(session, each, path, tool)
            except NoSuchNote:
                raise NoSuchNote.named(judged) from None
        with self.telling(session, tool):
            reason = self._vault.reason_against(judged)
            if place is None or reason:
                raise UnsafePath(name, reason)
        return place

    def require(self, session: Session, verb: Verb, path: str, tool: str) -> None:
        """Raises NotPermitted, or NoSuchNote for what is withheld, and leaves an event where it may not; `tool` is what
        it tried to use."""
        try:
            require(session, verb, self._judged(verb, path), self._settings, self._members(session, path))
        except (NotPermitted, NoSuchNote) as refusal:
            self.note(session, tool, str(refusal), path)
            raise

    def require_change(self, session: Session, path: str, tool: str) -> None:
        """As `require`, for changing a note that stands: whatever comes of that tells what it says, or that it is
        there."""
        self.require(session, "read", path, tool)
        self.require(session, "write", path, tool)

    def require_in_stream(self, session: Session, verb: Verb, tool: str) -> None:
        """As `require`, for the daily stream and checkpoints."""
        try:
            require_in_stream(session, verb)
        except NotPermitted as refusal:
            self.refuse(session, tool, str(refusal))

    def refuse(self, session: Session, tool: str, sentence: str, path: str = "") -> NoReturn:
        """Leave an event and raise NotPermitted with this sentence."""
        self.note(session, tool, sentence, path)
        raise NotPermitted(sentence)

    def note(self, session: Session, tool: str, reason: str, path: str) -> None:
        """Leave an event of a call that was refused."""
        self._events.record("refused", session, tool=tool, path=path, reason=reason)

    @contextmanager
    def telling(self, session: Session, tool: str) -> Iterator[None]:
        """Leave an event of an UnsafePath that is raised meanwhile."""
        try:
            yield
        except UnsafePath as unsafe:
            self.note(session, tool, unsafe.reason, unsafe.path)
            raise

    def _judged(self, verb: Verb, path: str) -> str:
        """The path whose rights decide: what is written at the bare name of a runtime file counts as that file."""
        return path if verb == "read" else self._vault.runtime_file(path) or path

    def _members(self, session: Session, path: str) -> Members:
        channel = channel_of(path)
        return NOBODY if channel is None or session.kind != "task" else self._members_of(channel)

    def _members_of(self, channel: str) -> Members:
        try:
            return members_in(self._vault.read(f"{channel}/{CHANNEL}")[0])
        except (FileNotFoundError, UnreadableFile):
            return NOBODY
