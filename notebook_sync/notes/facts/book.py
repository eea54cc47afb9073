"""The files of facts as a session sees them, and what changes of them make: facts added, taken out, moved. Pure.

Whatever is asked for, it comes out as the whole texts of the files it touches, for the one door; no fact is dropped
that does not arrive somewhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_facts import source_of, with_facts, without_facts
from notebook_sync.files.fact_comment import Archived, Told
from notebook_sync.files.facts import ARCHIVE, CORE, FOLDER, Bullet, facts_in, order_of
from notebook_sync.files.provenance import is_external
from notebook_sync.notes.editing.door import Text

NOTES = f"{FOLDER}/notes.md"
SECTIONS = ("Key Topics", "Important Facts", "People & Entities", "Ongoing Threads", "File Knowledge")
USUAL = SECTIONS[1]
CORE_SECTIONS = ("Identity", "Projects", "Relationships", "System")
# Where in core.md a fact goes whose section it does not have.
_CORE_OF = {"People & Entities": "Relationships", "Key Topics": "Projects", "Ongoing Threads": "Projects"}
_FRESH = {NOTES: SECTIONS, CORE: CORE_SECTIONS}


@dataclass(frozen=True)
class Book:
    """`raws` are the files' bytes by path, None for one that is not there; `shown` is what of a text the session is
    shown. A file that is not UTF-8 has no facts here."""

    raws: Mapping[str, bytes | None]
    shown: Callable[[str, str], str]

    @cached_property
    def facts(self) -> Mapping[str, Sequence[Bullet]]:
        """Each fact by its id, at all places where it stands, the one that counts first."""
        found: dict[str, list[Bullet]] = {}
        for path in sorted(self.raws, key=order_of):
            for fact in self._facts_at(path):
                found.setdefault(fact.note_id, []).append(fact)
        return found

    @property
    def live(self) -> list[Bullet]:
        """The facts that are not archived."""
        return [places[0] for places in self.facts.values() if places[0].path != ARCHIVE]

    @property
    def external(self) -> frozenset[str]:
        """The files that hold somebody else's words."""
        return frozenset(path for path, raw in self.raws.items() if raw is not None and is_external(raw))

    def section_in_core(self, section: str) -> str:
        """The section of core.md for a fact of this section: that of its name, else the one of its kind."""
        names = {fact.section for fact in self._facts_at(CORE)} | set(CORE_SECTIONS)
        return section if section in names else _CORE_OF.get(section, "System")

    def _facts_at(self, path: str) -> Sequence[Bullet]:
        raw = self.raws.get(path)
        try:
            return facts_in(path, self.shown(path, raw.decode())) if raw is not None else ()
        except UnicodeDecodeError:
            return ()


class Draft:
    """What `book` is to become. Facts are named as the book has them."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._out: dict[str, list[Bullet]] = {}
        self._in: dict[str, dict[str, list[str]]] = {}

    def add(self, path: str, section: str, source: str) -> None:
        """Put a list item at the end of a section."""
        self._in.setdefault(path, {}).setdefault(section, []).append(source)

    def archive(self, fact: Bullet, archived: Archived) -> None:
        """Move a fact into archive.md, under the heading that it stood under."""
        if not any(place.path == ARCHIVE for place in self.book.facts[fact.note_id]):
            self.add(ARCHIVE, fact.section, self._source(fact, Told(fact.importance, archived)))
        self._take_out(place for place in self.book.facts[fact.note_id] if place.path != ARCHIVE)

    def move(self, fact: Bullet, path: str, section: str) -> None:
        """Move a fact to the end of a section, with what it pins."""
        self.add(path, section, self._source(fact, Told(fact.importance)))
        self._take_out(self.book.facts[fact.note_id])

    def moves(self, fact: Bullet) -> bool:
        """Whether it no longer stands at this place."""
        return fact in self._out.get(fact.path, ())

    def texts(self, action: str, told: str, *, section: str = "", reason: str = "") -> list[Text]:
        """The files that this changes. Raises EditFailed where one would not read as it is meant."""
        return [
            Text(path, self.book.raws.get(path), self._after(path), action, section, reason, told, as_one=True)
            for path in sorted({*self._out, *self._in})
        ]

    def _take_out(self, places: Iterable[Bullet]) -> None:
        for place in places:
            self._out.setdefault(place.path, []).append(place)

    def _source(self, fact: Bullet, told: Told) -> str:
        return source_of(_text(self.book.raws[fact.path], fact.path), fact, told)

    def _after(self, path: str) -> bytes:
        raw = self.book.raws.get(path)
        text = _fresh(path) if raw is None else _text(raw, path)
        if path in self._out:
            text = without_facts(text, self._out[path], path)
        for section, sources in self._in.get(path, {}).items():
            text = with_facts(text, section, sources, path)
        return text.encode()


def _fresh(path: str) -> str:
    """A file of facts without facts."""
    return "\n".join(f"## {section}\n" for section in _FRESH.get(path, ()))


def _text(raw: bytes | None, path: str) -> str:
    try:
        return (raw or b"").decode()
    except UnicodeDecodeError as error:
        raise EditFailed(path, f"it is not UTF-8 at byte {error.start:,}; mend that first") from error
