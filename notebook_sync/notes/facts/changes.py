"""What tools change in the files of facts: a fact put aside, brought back, kept for good.

Each change is one ordinary edit of all the files it touches, by the one door. What is known of a fact beside its text
follows behind: where the store does not answer, the files are written all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from notebook_sync.errors import BackendDown, EditFailed, NoSuchFact, UsageError
from notebook_sync.events import Events
from notebook_sync.files.edit_shape import characters_refused
from notebook_sync.files.excerpt import plain, shorten
from notebook_sync.files.fact_comment import Archived
from notebook_sync.files.facts import ARCHIVE, CORE, FOLDER, Bullet, fact_text, id_of
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.facts import START, Fact
from notebook_sync.notes.editing.door import Entered, Text
from notebook_sync.notes.editing.editing import Editing
from notebook_sync.notes.facts.alike import difference
from notebook_sync.notes.facts.book import NOTES, USUAL, Book, Draft
from notebook_sync.notes.facts.facts import Facts, candidates_of, named, row_of
from notebook_sync.notes.facts.near import Nearness
from notebook_sync.notes.facts.reach import FactReach
from notebook_sync.notes.guard import Guard
from notebook_sync.patience import Silence
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

ARCHIVING, RESTORE, PROMOTE = "fact archive", "fact restore", "fact promote"
PROPOSED = "fact_proposed"

Row = dict[str, Any]
_AGENT = Session.task()
_LONGEST_LINE = 200
_CANDIDATES = 5


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of a fact. `place` is where it stood, or is to stand where it is new; `importance` what it is said
    to have; `to` the file and the section that it moved to."""

    place: Bullet
    action: str
    importance: float | None = None
    to: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class _Change:
    """What is done to a fact, in a few words for the commit, and where it stands then."""

    action: str
    told: str
    path: str
    section: str
    reason: str = ""


class FactChanges:
    """Changes the facts of one notebook."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        events: Events,
        editing: Editing,
        reach: FactReach,
        facts: Facts,
        silence: Silence,
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._events = events
        self._editing = editing
        self._reach = reach
        self._facts = facts
        self._silence = silence

    def archive(self, name: str, session: Session, *, reason: str) -> Row:
        """Move a fact to archive.md, with the reason: its row, `action` and `warnings`. One that is there stays as it
        is. Raises NoSuchFact, NotPermitted, UsageError, EditFailed for one that no tool moves, and as an edit."""
        reason = line_of("reason", reason) or f"put aside by {session.changed_by}"

        def change(draft: Draft, place: Bullet) -> _Change:
            if place.path != ARCHIVE:
                self._guard.require_change(session, place.path, ARCHIVING)
                self._must_be_movable(draft.book, place, ARCHIVE)
                draft.archive(place, Archived(self.today(), reason, place.path))
            return _Change("archived", "Archive a fact", ARCHIVE, place.section, reason)

        return self._changed(name, session, ARCHIVING, change)

    def restore(self, name: str, session: Session) -> Row:
        """Move a fact from archive.md back to where it came from, its section made again where it is missing. As
        `archive`; UsageError for one that is not archived, NotPermitted where the session may not write there."""

        def change(draft: Draft, place: Bullet) -> _Change:
            if place.path != ARCHIVE:
                raise UsageError(f"this fact is not archived: it stands in {place.path}, line {place.line}")
            self._must_be_movable(draft.book, place)
            path, section = self._home(place)
            draft.move(place, path, section)
            return _Change("restored", "Bring back a fact", path, section)

        return self._changed(name, session, RESTORE, change)

    def promote(self, name: str, session: Session, *, section: str) -> Row:
        """Move a fact to core.md, into `section` or the one that its own corresponds to. Who may not write there
        proposes it: an event tells the owner. As `archive`, and raises OverCap."""
        section = heading_of(section)
        proposes = not self._guard.may(session, "write", CORE)

        def change(draft: Draft, place: Bullet) -> _Change:
            if place.path != CORE:
                self._must_be_movable(draft.book, place, CORE)
            if proposes:
                return _Change("proposed", "", place.path, place.section)
            if place.path == CORE:
                return _Change("promoted", "", CORE, place.section)
            target = section or draft.book.section_in_core(place.section)
            draft.move(place, CORE, target)
            return _Change("promoted", f"Keep a fact for good in {target}", CORE, target)

        row = self._changed(name, session, PROMOTE, change)
        if proposes:
            self._events.record(PROPOSED, session, path=row["path"], note_id=row["note_id"])
        return row

    def _changed(self, name: str, session: Session, tool: str, change: Callable[[Draft, Bullet], _Change]) -> Row:
        self._guard.require_change(session, NOTES, tool)
        found: list[Changed] = []

        def make(book: Book) -> Sequence[Text]:
            place, draft = _meant(book, name), Draft(book)
            made = change(draft, place)
            found[:] = [Changed(place, made.action, to=(made.path, made.section))]
            return draft.texts(tool, made.told, section=made.section, reason=made.reason)

        entered = self.put(session, tool, make)
        (row,), warnings = self.told(found, session)
        moved = found[0].place.path != row["path"]
        return {**row, "moved": moved, "warnings": [*entered.warnings, *warnings]}

    def _must_be_movable(self, book: Book, place: Bullet, to: str = "") -> None:
        """Raises EditFailed for a fact that no tool moves, or none to the file `to`."""
        if reason := self._reach.reason_to_stay(book, place.note_id, to):
            raise EditFailed(place.path, f"the fact {place.note_id} stays where it is: {reason}")

    def put_aside(self, draft: Draft, note_id: str, reason: str, session: Session, *, below: float) -> Bullet | None:
        """Let a draft archive a fact, as nobody asks for it by name: one that stands somewhere, outside core.md and
        archive.md, that no person pinned to `below` or more, and that the session may move. The place that it had;
        None for one that stays."""
        places = draft.book.facts.get(note_id, ())
        if (
            not places
            or places[0].path in (ARCHIVE, CORE)
            or any(place.importance is not None and place.importance >= below for place in places)
            or not self.may_move(draft.book, note_id, ARCHIVE, session)
        ):
            return None
        draft.archive(places[0], Archived(self.today(), reason, places[0].path))
        return places[0]

    def may_move(self, book: Book, note_id: str, to: str, session: Session) -> bool:
        """Whether the session may move this fact, away from all places where it stands, to the file `to`."""
        paths = {to, *(place.path for place in book.facts[note_id])}
        return self._reach.may_change(session, paths) and not self._reach.reason_to_stay(book, note_id, to)

    def say(
        self,
        draft: Draft,
        source: str,
        section: str,
        importance: float | None,
        near: Nearness,
        session: Session,
        but: Collection[str] = (),
    ) -> Changed:
        """Let a draft hold what a text says, which `as_bullet` made `source` of: added to notes.md; restored, where it
        was put aside; or nothing more, where a fact says it already that is none of those with the ids `but`."""
        content = near.text
        known = self._known(draft.book, content, near, but)
        if known is not None and (known.path != ARCHIVE or draft.moves(known)):
            return Changed(known, "reinforced", importance)
        if known is not None and (home := self._way_back(draft.book, known, session)):
            draft.move(known, *home)
            return Changed(known, "restored", importance, home)
        draft.add(NOTES, section, source)
        return Changed(Bullet(id_of(content), content, NOTES, section, 0, 0, 0), "added", importance)

    def put(self, session: Session, tool: str, make: Callable[[Book], Sequence[Text]]) -> Entered:
        """Carry out what `make` makes of the files of facts, all of it or nothing. It is asked again where somebody was
        faster. Raises NotPermitted, and as an edit."""

        def permitted(book: Book) -> Sequence[Text]:
            texts = make(book)
            for text in texts:
                self._guard.require_change(session, text.path, tool)
            return texts

        return self._editing.put_all(
            lambda: self._reach.paths(session), lambda raws: permitted(self._reach.book(raws, session)), session
        )

    def told(self, changed: Sequence[Changed], session: Session) -> tuple[list[Row], list[str]]:
        """The rows of facts after a change, with `action`; what it makes of their importance is written first. Where
        the store is silent, they are as their files have them, and a warning says so."""
        known: dict[str, Fact] = {}
        trouble = self.behind(lambda: known.update(self._weighed(changed, session)))
        warnings = [f"saved; what is known of facts beside their text is told when it answers: {trouble}"]
        now = datetime.now(UTC)
        facts = [known.get(one.place.note_id) or _of_file(one, now) for one in changed]
        external = self._reach.external({fact.path for fact in facts})
        rows = [{**row_of(fact, now, external), "action": one.action} for fact, one in zip(facts, changed, strict=True)]
        return rows, warnings if trouble else []

    def behind(self, act: Callable[[], object]) -> str:
        """Do what follows in the store behind a change of files; why it was not done, "" where it was."""
        if trouble := self._silence.trouble:
            return trouble
        try:
            act()
        except BackendDown as down:
            self._silence.begin(str(down))
            return str(down)
        return ""

    def today(self) -> date:
        """The day in the notebook's timezone."""
        return datetime.now(self._settings.timezone).date()

    def _known(self, book: Book, content: str, near: Nearness, but: Collection[str] = ()) -> Bullet | None:
        """The fact that says this already: the same text, archived or not, else one that is as good as the same, and
        is none of those with the ids `but`."""
        if places := book.facts.get(id_of(content)):
            return places[0]
        live = [fact for fact in book.live if fact.note_id not in but]
        alike = near.to([(fact.note_id, fact.content) for fact in live])
        for (similarity, _), fact in sorted(zip(alike, live, strict=True), key=lambda one: -one[0][0]):
            if similarity < self._settings.memory.duplicate:
                break
            if not difference(fact.content, content, near.means):
                return fact
        return None

    def _way_back(self, book: Book, fact: Bullet, session: Session) -> tuple[str, str] | None:
        """Where an archived fact goes that is said again; None where the session may not move it there."""
        home = self._home(fact)
        may = self._reach.may_change(session, (ARCHIVE, home[0]))
        return home if may and not self._reach.reason_to_stay(book, fact.note_id) else None

    def _home(self, fact: Bullet) -> tuple[str, str]:
        """The file and the section that an archived fact came from; notes.md where that cannot be told, and for a file
        that no agent may write: an agent may have written that the fact came from there."""
        path = fact.archived.came_from if fact.archived else ""
        is_place = path == self._vault.relative(path) and path.startswith(f"{FOLDER}/") and path.endswith(".md")
        may = partial(self._guard.may, _AGENT, "write")
        is_trusted = is_place and (may(path) or not may(ARCHIVE))
        if not is_trusted or path == ARCHIVE or self._vault.reason_against(path):
            return NOTES, fact.section or USUAL
        return path, fact.section

    def _weighed(self, changed: Sequence[Changed], session: Session) -> dict[str, Fact]:
        ids = {one.place.note_id for one in changed}
        known = self._reach.several(session, ids)
        weighed = [self._weigh(known[one.place.note_id], one, session) for one in changed if one.place.note_id in known]
        return self._reach.several(session, ids) if any(weighed) else known

    def _weigh(self, fact: Fact, one: Changed, session: Session) -> bool:
        """Whether the change makes the fact count for more, or else."""
        if one.action == "reinforced":
            self._facts.strengthen(fact, session, one.importance or 0.0)
            return True
        if one.importance is None:
            return False
        if one.action == "restored" and (fact.pinned or fact.is_core or fact.unpinned >= one.importance):
            return False  # what is said again never counts for less by that
        self._facts.weigh(fact, one.importance)
        return True


def line_of(name: str, value: str) -> str:
    """One line of a text, for a heading or a comment. Raises UsageError for a longer one."""
    line = " ".join(value.split())
    if len(line) > _LONGEST_LINE:
        raise UsageError(f"the {name} has {len(line):,} characters, and at most {_LONGEST_LINE} are kept; shorten it")
    return line


def heading_of(value: str) -> str:
    """The text of a heading, "" for none. Raises UsageError for what would be seen as none."""
    line = line_of("section", value)
    if refused := characters_refused(line):
        raise UsageError(f"the section cannot be a heading: {refused}")
    if line and not plain(line):
        raise UsageError(f"the section {line!r} would be a heading that says nothing; name it by its words")
    return line


def _meant(book: Book, name: str) -> Bullet:
    """The place that counts of the fact with this id or text. Raises NoSuchFact, EditFailed."""
    every = [places[0] for places in book.facts.values()]
    pairs = [(fact.note_id, fact.content) for fact in every]
    found = named(name, pairs)
    if found is not None:
        return every[found]
    wanted = shorten(" ".join(fact_text(name).split()), _LONGEST_LINE)
    alike = sorted(zip(Nearness(wanted).to(pairs), every, strict=True), key=lambda one: -one[0][0])
    raise NoSuchFact(wanted, candidates_of([fact for _, fact in alike[:_CANDIDATES]], book.external))


def _of_file(one: Changed, now: datetime) -> Fact:
    place = one.place
    weight = one.importance if place.importance is None else place.importance
    return Fact(
        place.note_id,
        place.content,
        now,
        now,
        one.to[1] if one.to[0] else place.section,
        one.to[0] or place.path,
        place.line,
        importance=START if weight is None else weight,
        pinned=place.importance is not None,
    )
