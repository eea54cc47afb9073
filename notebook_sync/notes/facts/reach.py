"""Which facts a session may know of, the files that it may change them in, and which of them stay where they are.

No fact is moved to where more sessions are shown it, or where it is no longer marked as somebody else's words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.facts import ARCHIVE, CORE, FOLDER, facts_in
from notebook_sync.files.provenance import is_external
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.facts import Fact, FactRows, Place, Scope, standing
from notebook_sync.notes.facts.book import NOTES, Book
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.showing import sees_all, shown_to
from notebook_sync.permissions import Verb
from notebook_sync.sessions import KINDS, Session
from notebook_sync.settings import Settings

_CHANGING: tuple[Verb, ...] = ("read", "write")
_EVERYBODY = tuple(Session(kind) for kind in KINDS)


@dataclass(frozen=True, slots=True)
class Seen:
    """Facts as a session sees them. `external`: the files that hold somebody else's words."""

    facts: list[Fact]
    external: frozenset[str]


class FactReach:
    """For one notebook. `follow` brings the rows of facts in step with the files."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        rows: Callable[[], FactRows],
        follow: Callable[[], object],
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._rows = rows
        self._follow = follow

    def seen(self, session: Session, scope: Scope) -> Seen:
        """The facts of a scope that the session may know of, as their files are now. Raises BackendDown."""
        self._follow()
        rows = self._rows()
        known = rows.all("all")
        if session.kind == "owner":
            facts = [fact for fact in known if fact.is_in(scope)]
            return Seen(facts, self.external({fact.path for fact in facts}))
        reached = self._reached(known, rows.places(), session)
        return Seen([fact for fact in reached if fact.is_in(scope)], self.external({fact.path for fact in reached}))

    def several(self, session: Session, note_ids: Collection[str]) -> dict[str, Fact]:
        """Some facts by id, as far as the session may know of them. Raises BackendDown."""
        self._follow()
        rows = self._rows()
        known = rows.get_many(note_ids)
        if session.kind == "owner":
            return known
        places = [place for place in rows.places() if place.note_id in known]
        return {fact.note_id: fact for fact in self._reached(list(known.values()), places, session)}

    def external(self, paths: Collection[str]) -> frozenset[str]:
        """Those of these files that hold somebody else's words."""
        found = set()
        for path in paths:
            with suppress(FileNotFoundError, UnreadableFile):
                if is_external(self._vault.read(path)[0]):
                    found.add(path)
        return frozenset(found)

    def paths(self, session: Session) -> set[str]:
        """The files of facts that the session may read, and those where facts go that are not there yet."""
        there = self._vault.scan([FOLDER]).seen.keys() | {NOTES, CORE, ARCHIVE}
        return set(self._guard.permitted(session, "read", there))

    def book(self, raws: Mapping[str, bytes | None], session: Session) -> Book:
        """The files of facts as the session sees them."""
        return Book(raws, lambda path, text: self._text_shown(session, path, text))

    def reason_to_stay(self, book: Book, note_id: str, to: str = "") -> str:
        """Why nobody moves a fact by a tool, in a sentence on the first of its files that forbids it; "" where it may
        be moved. With `to`, who is shown that file counts too."""
        for place in book.facts[note_id]:
            if place.path in book.external:
                return (
                    f"{place.path} holds somebody else's words, and out of it they would no longer be marked as such; "
                    "leave the fact where it stands, or write it by hand where you want it"
                )
            if to and not all(self._is_shown(session, place.path, note_id, book) for session in self._readers(to)):
                return (
                    f"this fact of {place.path} is not shown to everyone who reads {to}; "
                    "leave it where it stands, or take it out by hand"
                )
        return ""

    def may_change(self, session: Session, paths: Collection[str]) -> bool:
        """Whether the session may read and write all of these files."""
        return all(self._guard.may(session, verb, path) for path in set(paths) for verb in _CHANGING)

    def _readers(self, path: str) -> Iterator[Session]:
        return (session for session in _EVERYBODY if self._guard.may(session, "read", path))

    def _is_shown(self, session: Session, path: str, note_id: str, book: Book) -> bool:
        if not self._guard.may(session, "read", path):
            return False
        raw = book.raws[path] or b""
        return self._sees_all(session, path) or note_id in self._ids_shown(session, path, raw.decode())

    def _reached(self, known: Sequence[Fact], places: Sequence[Place], session: Session) -> list[Fact]:
        """Those of the facts that stand somewhere where the session is shown them, as they stand there."""
        paths = {place.path for place in places}
        whole = {path for path in self._guard.permitted(session, "read", paths) if self._sees_all(session, path)}
        shown = {path: self._shown(session, path) for path in self._guard.permitted(session, "read", paths - whole)}
        mine: dict[str, list[Place]] = defaultdict(list)
        for place in places:
            if place.path in whole or place.note_id in shown.get(place.path, ()):
                mine[place.note_id].append(place)
        return [standing(fact, mine[fact.note_id]) for fact in known if fact.note_id in mine]

    def _sees_all(self, session: Session, path: str) -> bool:
        return sees_all(session, path, self._settings.prompt)

    def _shown(self, session: Session, path: str) -> set[str]:
        """The ids of what a file of the prompt shows to who may not change it: nothing hidden, nothing expired."""
        try:
            text = self._vault.read(path)[0].decode(errors="replace")
        except (FileNotFoundError, UnreadableFile):
            return set()
        return self._ids_shown(session, path, text)

    def _ids_shown(self, session: Session, path: str, text: str) -> set[str]:
        return {fact.note_id for fact in facts_in(path, self._text_shown(session, path, text))}

    def _text_shown(self, session: Session, path: str, text: str) -> str:
        return shown_to(session, path, text, self._settings.prompt, self._settings.local_now())
