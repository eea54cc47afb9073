"""Notes as whole files, for tools that think in files: what there is, what one says, another path for it, away with it.

Of a folder all its notes go or none do, and what is no note stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from notebook_sync.errors import Conflict, NoSuchNote
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
    """The files of one notebook. Everything asks the guard first. `find` is `Lookup.find_path`."""

    def __init__(self, vault: Vault, settings: Settings, guard: Guard, door: Door, find: Callable[..., str]) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._door = door
        self._find = find

    def sizes(self, place: str, session: Session) -> dict[str, int]:
        """The notes at `place` and below that the session may read, by path, with their sizes in bytes."""
        seen = self._vault.scan([place]).seen
        return {path: seen[path].size for path in sorted(seen) if self._guard.may(session, "read", path)}

    def file(self, path: str, session: Session) -> File:
        """The note at `path`. Raises NotPermitted, UnsafePath, NoSuchNote, UnreadableFile."""
        path = self._permitted(path, "read", session)
        raw = self._raw(path)
        text = raw.decode(errors="replace")
        shown = shown_to(session, path, text, self._settings.prompt, self._settings.local_now())
        return File(path, text, digest_of(raw), shown, is_external(raw))

    def delete(self, place: str, session: Session, expected_digest: str | None = None) -> Entered:
        """Take away the note at `place`, or all notes below it; with an expected digest, one note that has it.

        Raises NotPermitted, NoSuchNote, Conflict; as `Vault.delete`.
        """
        place = self._permitted(place, "write", session)
        paths = self._at(place, session) if expected_digest is None else [place]
        with self._guard.telling(session, TOOL), self._door.lock(paths):
            texts = [Text(path, self._raw(path), None, "delete") for path in paths]
            if expected_digest is not None:
                _must_be(expected_digest, texts[0])
            return self._door.enter(texts, session)

    def rename(self, old: str, new: str, session: Session) -> Entered:
        """Give the note that `old` names, or all notes below that folder, a place at `new`.

        Raises NotPermitted where the session may not write to one of the paths, old or new, or not read it;
        NoSuchNote; Conflict with the base "" where there is something at a new path; and as `Vault.write`.
        """
        old, new = self._permitted(old, "write", session), self._permitted(new, "add", session)
        if not self._vault.scan([old]).seen:
            old = self._find(old, session, "write", TOOL)
        targets = dict(self._moving(old, new, session))
        with self._guard.telling(session, TOOL), self._door.lock({*targets, *targets.values()}):
            texts = [text for path, target in targets.items() for text in self._moved(path, target)]
            for path in sorted(self._vault.scan([new]).seen):
                raise Conflict(path, "", self._vault.digest(path) or "")
            return self._door.enter(texts, session)

    def _moving(self, old: str, new: str, session: Session) -> Iterator[tuple[str, str]]:
        """Each path, and the one that it is to have."""
        for path in self._at(old, session):
            yield path, self._permitted(new + path[len(old) :], "add", session)

    def _moved(self, path: str, target: str) -> tuple[Text, Text]:
        raw = self._raw(path)
        return (
            Text(target, None, raw, "rename", reason=f"from {path}", moved_from=path),
            Text(path, raw, None, "rename", reason=f"to {target}"),
        )

    def _permitted(self, path: str, verb: Verb, session: Session) -> str:
        """The one path at which the session may do this."""
        place = self._guard.place(session, path, verb, TOOL)
        if not place:
            self._guard.refuse(session, TOOL, "The notebook itself is no note; name one of its notes or folders", path)
        return place

    def _at(self, place: str, session: Session) -> list[str]:
        """The notes at or below `place`, all of which the session may change."""
        found = sorted(self._vault.scan([place]).seen)
        for path in found:
            self._guard.require_change(session, path, TOOL)
        if not found:
            raise NoSuchNote.named(place)
        return found

    def _raw(self, path: str) -> bytes:
        if path in self._vault.scan([path]).seen:
            with suppress(FileNotFoundError):
                return self._vault.read(path)[0]
        raise NoSuchNote.named(path)


def _must_be(expected_digest: str, text: Text) -> None:
    """Raises Conflict for a note with another digest."""
    before = text.before or b""
    if digest_of(before) != expected_digest:
        raise Conflict(text.path, expected_digest, digest_of(before), before.decode(errors="replace"))
