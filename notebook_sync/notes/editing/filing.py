"""Notes as whole files, for tools that think in files: what there is, what one says, another path for it, away with it.

Of a folder all its notes go or none do, and what is no note stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from notebook_sync.errors import Conflict, NoSuchNote, UnsafePath
from notebook_sync.files.provenance import is_external
from notebook_sync.files.vault import Vault
from notebook_sync.notes.editing.door import Door, Entered, Text, digest_of
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.showing import shown_to
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

TOOL = "memory"


@dataclass(frozen=True, slots=True)
class File:
    """A note's file: its text to the character, and what of it the session is shown.

    `external`: somebody else wrote it, so it is to be fenced.
    """

    path: str
    text: str
    digest: str
    shown: str
    external: bool


class Filing:
    """The files of one notebook. Everything asks the guard first. `holder_of` gives the path of the note that has an
    id, "" for none."""

    def __init__(
        self, vault: Vault, settings: Settings, guard: Guard, door: Door, holder_of: Callable[[str], str]
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._door = door
        self._holder_of = holder_of

    def sizes(self, place: str, session: Session) -> dict[str, int]:
        """The notes at `place` and below that the session may read, by path, with their sizes in bytes."""
        seen = self._vault.scan([place]).seen
        return {path: seen[path].size for path in sorted(seen) if self._guard.may(session, "read", path)}

    def file(self, path: str, session: Session) -> File:
        """The note at `path`. Raises NotPermitted, UnsafePath, NoSuchNote, UnreadableFile."""
        with self._guard.telling(session, TOOL):
            path = self._permitted(path, "read", session)
        raw = self._raw(path)
        text = raw.decode(errors="replace")
        today = datetime.now(self._settings.timezone).date()
        shown = shown_to(session, path, text, self._settings.prompt, today)
        return File(path, text, digest_of(raw), shown, is_external(raw))

    def delete(self, place: str, session: Session, expected_digest: str | None = None) -> Entered:
        """Take away the note at `place`, or all notes below it; with an expected digest, one note that has it.

        Raises NotPermitted, NoSuchNote, Conflict; as `Vault.delete`.
        """
        with self._guard.telling(session, TOOL):
            place = self._changeable(place, session)
            paths = self._at(place, session) if expected_digest is None else [place]
            with self._door.turn(paths):
                texts = [Text(path, self._raw(path), None, "delete") for path in paths]
                if expected_digest is not None:
                    _must_be(expected_digest, texts[0])
                return self._door.enter(texts, session)

    def rename(self, old: str, new: str, session: Session) -> Entered:
        """Give the note at `old`, or all notes below it, a place at `new`; where nothing lies there, the note with that
        id.

        Raises NotPermitted where the session may not write to one of the paths, old or new, or not read it;
        NoSuchNote; Conflict with the base "" where there is something at a new path; and as `Vault.write`.
        """
        with self._guard.telling(session, TOOL):
            old, new = self._changeable(old, session), self._changeable(new, session)
            named = "" if self._vault.scan([old]).seen else self._holder_of(old)
            if named and self._guard.may(session, "read", named):
                old = self._changeable(named, session)
            targets = dict(self._moving(old, new, session))
            with self._door.turn({*targets, *targets.values()}):
                texts = [text for path, target in targets.items() for text in self._moved(path, target)]
                for path in sorted(self._vault.scan([new]).seen):
                    raise Conflict(path, "", self._vault.digest(path) or "")
                return self._door.enter(texts, session)

    def _moving(self, old: str, new: str, session: Session) -> Iterator[tuple[str, str]]:
        """Each path, and the one that it is to have."""
        for path in self._at(old, session):
            yield path, self._changeable(new + path[len(old) :], session)

    def _moved(self, path: str, target: str) -> tuple[Text, Text]:
        raw = self._raw(path)
        return (
            Text(target, None, raw, "rename", reason=f"from {path}", moved_from=path),
            Text(path, raw, None, "rename", reason=f"to {target}"),
        )

    def _changeable(self, path: str, session: Session) -> str:
        """The one spelling of a path at which the session may change notes, and learn by that what is there."""
        self._guard.require(session, "write", path, TOOL)
        return self._permitted(path, "read", session)

    def _permitted(self, path: str, verb: Verb, session: Session) -> str:
        """The one spelling of a path at which the session may do this."""
        self._guard.require(session, verb, path, TOOL)
        place = self._vault.relative(path)
        if not place:
            self._guard.refuse(session, TOOL, "The notebook itself is no note; name one of its notes or folders", path)
        if reason := self._vault.reason_against(place):
            raise UnsafePath(path, reason)
        return place

    def _at(self, place: str, session: Session) -> list[str]:
        """The notes at or below `place`, all of which the session may change."""
        found = sorted(self._vault.scan([place]).seen)
        for path in found:
            self._guard.require_change(session, path, TOOL)
        if not found:
            raise NoSuchNote(f"there is no note at {place} or below it")
        return found

    def _raw(self, path: str) -> bytes:
        if path in self._vault.scan([path]).seen:
            with suppress(FileNotFoundError):
                return self._vault.read(path)[0]
        raise NoSuchNote(f"there is no note at {path}")


def _must_be(expected_digest: str, text: Text) -> None:
    """Raises Conflict for a note with another digest."""
    before = text.before or b""
    if digest_of(before) != expected_digest:
        raise Conflict(text.path, expected_digest, digest_of(before), before.decode(errors="replace"))
