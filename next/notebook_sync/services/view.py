"""What one session may see: a condition that every query carries, and the text of files that are shown in part.

What a session may not see is not looked up, counted, ranked or named in an error; absent and withheld give one answer.
"""

from __future__ import annotations

from functools import cached_property

from notebook_sync.errors import NoSuchNote, NotPermitted
from notebook_sync.files.names import copy_of
from notebook_sync.model import RUNTIME_FILES
from notebook_sync.permissions import (
    Members,
    Verb,
    channel_of,
    guarded_names,
    may,
    prompt_paths,
    require,
)
from notebook_sync.services.core import Core
from notebook_sync.sessions import Session
from notebook_sync.store.rows import EVERYTHING, NOTHING, Either, Is, Not, Where, both
from notebook_sync.sync.project import audience


class View:
    """What `session` may read and change, now. Made for each call; it keeps nothing."""

    def __init__(self, core: Core, session: Session) -> None:
        self.core = core
        self.session = session
        self._prompt = core.settings.prompt

    @cached_property
    def where(self) -> Where:
        """The rows that the session may read."""
        return Either((self.whole, self.in_part)) if self.in_part != NOTHING else self.whole

    @cached_property
    def whole(self) -> Where:
        """The rows that the session may read as they are: what they say may be searched and filtered by."""
        if self.session.kind == "owner":
            return EVERYTHING
        # Guarded paths are excluded by name: the column follows a change of notebook.toml with the next look.
        return Either((both(Is("audience", "=", ""), Not(self._guarded)), *self._channels))

    @cached_property
    def in_part(self) -> Where:
        """The rows of prompt files that the session may read through `shown` only."""
        if self.session.kind == "owner":
            return NOTHING
        paths, _ = self._restricted
        return Is("path", "in", tuple(path for path in paths if self.may("read", path)))

    def may(self, verb: Verb, path: str) -> bool:
        """Whether the session may do this to the note at `path`."""
        return all(may(self.session, verb, each, self._prompt, self._members(each)) for each in self._judged(path))

    def require(self, verb: Verb, path: str, operation: str) -> None:
        """Raises NotPermitted where `may` is False, NoSuchNote where the note must not be known; an event says so."""
        try:
            for each in self._judged(path):
                require(self.session, verb, each, self._prompt, self._members(each))
        except (NoSuchNote, NotPermitted):
            self.core.events.record("refused", self.session, path=path, operation=operation)
            raise

    def refuse(self, path: str, operation: str, message: str) -> NotPermitted:
        """The refusal of what the table permits and another rule does not, recorded as an event."""
        self.core.events.record("refused", self.session, path=path, operation=operation)
        return NotPermitted(message)

    def sees_in_part(self, path: str) -> bool:
        """Whether the session sees only a part of the note: what the prompt hides is hidden from it."""
        return self.session.kind != "owner" and audience(path, self._prompt) == "apart"

    def shown(self, path: str, text: str) -> str:
        """The text of a note as the session sees it."""
        if not self.sees_in_part(path):
            return text
        from prompt import visible  # loads the prompt's parts, which most questions do without

        return visible(text, now=self.core.settings.local_now()).text

    @property
    def channels(self) -> set[str]:
        """The audiences of all private notes there are: which of them the session may know, `may` says."""
        return self._restricted[1]

    @property
    def _restricted(self) -> tuple[list[str], set[str]]:
        """The paths of files that are withheld or shown in part, and the audiences of private notes. What the index
        says of them is kept until it changes."""
        core, key = self.core, (self.core.index.rev(), self._prompt)
        if core.restricted is None or core.restricted[0] != key:
            rows = core.index.documents.tuples(("path", "audience"), Either((Is("audience", "!=", ""), self._guarded)))
            private = {audience for _, audience in rows if audience and audience.startswith("channels/")}
            core.restricted = key, ([path for path, audience in rows if path and audience not in private], private)
        return core.restricted[1]

    @property
    def _guarded(self) -> Where:
        named = Is("path", "in", (*RUNTIME_FILES, *prompt_paths(self._prompt)))
        return Either((named, Is("path", "under", "runtime")))

    @property
    def _channels(self) -> tuple[Where, ...]:
        """Private notes: the session's own, and those of channels that it is a member of."""
        session = self.session
        if session.kind != "task" or not session.agent:
            return ()
        own = f"channels/{session.agent}"
        _, audiences = self._restricted
        shared = [each for each in audiences if not each.startswith(f"{own}/") and self.may("read", f"{each}/note.md")]
        return (Is("audience", "under", own), Is("audience", "in", tuple(shared)))

    def _judged(self, path: str) -> tuple[str, ...]:
        """The paths whose rights count. A conflict copy is as private as its original."""
        is_owner = self.session.kind == "owner"
        original = "" if is_owner else copy_of(path, tuple(guarded_names(self._prompt).values()))
        return (path, original) if original else (path,)

    def _members(self, path: str) -> Members:
        channel = channel_of(path) if self.session.kind == "task" else None
        return self.core.tree.members(channel) if channel else {}
