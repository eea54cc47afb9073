"""Changes of the files of facts: facts added, moved, taken out. All files of a call are one edit, which `undo` reverts.

What is decided depends on the files as they are under the write lock, and is decided again where an editor is faster.
No fact is dropped before its new place is written, and none gets to where more sessions see it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from notebook_sync.errors import NotebookError, UnsafePath, UsageError
from notebook_sync.files.fact_text import ARCHIVE, FOLDER, as_bullet, facts_in, with_facts, without_facts
from notebook_sync.files.frontmatter import is_external
from notebook_sync.files.names import copy_of, why_not
from notebook_sync.files.page import plain
from notebook_sync.model import CORE_FACTS, FactLine
from notebook_sync.registry import Result
from notebook_sync.services.core import Core
from notebook_sync.services.documents import changed
from notebook_sync.services.fact_rows import shown_in
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, Saved, change_notes, save
from notebook_sync.sessions import KINDS, Session
from notebook_sync.sync.facts import places_of

_Decided = TypeVar("_Decided")
NOTES = f"{FOLDER}/notes.md"
SECTIONS = ("Key Topics", "Important Facts", "People & Entities", "Ongoing Threads", "File Knowledge")
IMPORTANT = SECTIONS[1]
CORE_SECTIONS = ("Identity", "Projects", "Relationships", "System")
# Where in core.md a fact goes whose section it does not have.
_CORE_OF = {"People & Entities": "Relationships", "Key Topics": "Projects", "Ongoing Threads": "Projects"}
_FRESH: Mapping[str, Sequence[str]] = {NOTES: SECTIONS, CORE_FACTS: CORE_SECTIONS}
_AGENT = Session.task()
_EXTERNAL = "it holds words of others, which would no longer be marked as such elsewhere"


class Addition(Result, frozen=True):
    """A new fact. `pin` is the importance to write in its place."""

    content: str
    section: str = IMPORTANT
    path: str = NOTES
    pin: float | None = None


class Move(Result, frozen=True):
    """Where a fact goes, from every file that states it; `path` "" is nowhere. `section`: "" for the one that it has.
    `reason`: for the archive, "" for that of the call."""

    id: str
    path: str
    section: str = ""
    reason: str = ""


class Moved(Result, frozen=True):
    """`moved`: the ids of the facts that were moved. `stayed`: why each of the others was not, by id."""

    moved: tuple[str, ...]
    stayed: Mapping[str, str]
    commit: str
    warnings: tuple[str, ...]


def move_facts(
    core: Core,
    session: Session,
    moves: Sequence[Move],
    *,
    action: str,
    reason: str = "",
    additions: Sequence[Addition] = (),
) -> Moved:
    """Move facts, and add others, in one edit: one commit, one undo. A fact that may not be moved, or that no file
    states any more, stays, and the others are moved.

    `additions` are written as they are. Raises UsageError for a text that is no fact, and what `change_notes` does.
    """

    def decide(draft: Draft) -> dict[str, str]:
        for addition in additions:
            draft.add(addition)
        found = {id: draft.move(move) for id, move in {move.id: move for move in moves}.items()}
        return {id: why for id, why in found.items() if why}

    stayed, saved, _ = change_facts(core, session, action, decide, reason=reason)
    moved = tuple(move.id for move in moves if move.id not in stayed)
    return Moved(moved, stayed, saved.commit, saved.warnings)


class Done(NamedTuple, Generic[_Decided]):
    """What was decided, what became of it, and the files that were made for it."""

    decided: _Decided
    saved: Saved
    created: frozenset[str]


def change_facts(
    core: Core, session: Session, action: str, decide: Callable[[Draft], _Decided], *, reason: str = ""
) -> Done[_Decided]:
    """Let `decide` change a draft of the files, under the write lock, and save it. It is called again where a file was
    changed meanwhile.

    A file that is not there is first made without facts, in an edit of its own: so `undo` has a text to go back to.
    """

    decided: list[_Decided] = []
    created: set[str] = set()

    def plan() -> list[Change]:
        core.writer.look({FOLDER})  # the index may not have what an editor has just saved
        draft = Draft(core, session, reason)
        decided[:] = [decide(draft)]
        created.update(draft.begin_files())
        return draft.changes(action)

    saved = change_notes(core, session, action, plan)
    return Done(decided[0], saved, frozenset(created))


class Draft:
    """The files of facts as they are, and what is to be done to them."""

    def __init__(self, core: Core, session: Session, reason: str = "") -> None:
        self._core = core
        self._view = View(core, session)
        self._reason = reason
        self._raw: dict[str, bytes | None] = {}
        self._stated: dict[str, Mapping[str, Sequence[FactLine]]] = {}
        self._out: defaultdict[str, set[int]] = defaultdict(set)
        self._in: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def add(self, addition: Addition) -> None:
        """Add a fact at the end of its section. Raises UsageError for a text that is none."""
        self._in[addition.path][addition.section].append(as_bullet(addition.content, pin=addition.pin))

    def move(self, move: Move) -> str:
        """Move a fact; why it stays, "" where it is moved."""
        places = self.places(move.id)
        if not places:
            return "no file states it any more"
        if why := self.why_stays(move.id, places, move.path):
            return why
        first, fact = next(iter(places.items()))
        origin = next((path for path in places if path != ARCHIVE), first)
        archived = None
        if move.path == ARCHIVE:
            day = self._core.now().astimezone(self._core.settings.timezone).date()
            archived = {"date": day.isoformat(), "reason": move.reason or self._reason, "from": origin}
        if move.path and move.path not in places:
            try:
                bullet = as_bullet(fact.text, pin=fact.pin, archived=archived, is_known=True)
            except UsageError as error:
                return error.message
            self._in[move.path][move.section or fact.section or IMPORTANT].append(bullet)
        for path in places.keys() - {move.path}:
            self._out[path] |= {each.line for each in self._facts(path)[move.id]}
        return ""

    def places(self, id: str) -> dict[str, FactLine]:
        """The files that state a fact now, each with its first line there, the file that counts first."""
        rows = places_of(self._core.index, [id]).get(id, [])
        paths = dict.fromkeys(row["path"] for row in rows)
        return {path: self._facts(path)[id][0] for path in paths if id in self._facts(path)}

    def why_stays(self, id: str, places: Mapping[str, FactLine], to: str) -> str:
        """Why the session may not move a fact to the file `to`, "" for none; "" where it may."""
        for path in (*places, *filter(None, [to])):
            if not (self._view.may("read", path) and self._view.may("write", path)):
                return f"{path} may not be changed in this conversation"
        return self.why_fixed(id, places, to)

    def why_fixed(self, id: str, places: Mapping[str, FactLine], to: str) -> str:
        """Why no tool moves a fact to the file `to`, "" for any; "" where one may."""
        for path in places:
            if is_external(self._raw[path] or b""):
                return f"{path}: {_EXTERNAL}; leave the fact there, or write it by hand where you want it"
            views = (View(self._core, Session.named(kind)) for kind in KINDS)
            if to and not all(self._sees(view, path, id) for view in views if view.may("read", to)):
                return f"not every session that reads {to} sees this fact of {path}; move it by hand"
        return ""

    def home_of(self, id: str) -> tuple[str, str]:
        """The file and section that an archived fact came from. It is notes.md for a place that cannot be known, and
        for a file that no agent may write: an agent may have written that the fact came from there."""
        fact = self.places(id).get(ARCHIVE)
        if fact is None:
            return NOTES, IMPORTANT
        path = fact.archived["from"] if fact.archived else ""
        is_file_of_facts = path.startswith(f"{FOLDER}/") and path != ARCHIVE and not copy_of(path)
        is_free = is_file_of_facts and not why_not(path) and not self._core.tree.why_left_out(path)
        agent = View(self._core, _AGENT)
        if not is_free or not (agent.may("write", path) or not agent.may("write", ARCHIVE)):
            path = NOTES
        return path, fact.section or IMPORTANT

    def section_in_core(self, section: str) -> str:
        """The section of core.md for a fact of this section: that of its name, else the one of its kind."""
        names = {each.section.casefold(): each.section for facts in self._facts(CORE_FACTS).values() for each in facts}
        names |= {name.casefold(): name for name in CORE_SECTIONS}
        return names.get(section.casefold()) or _CORE_OF.get(section, "System")

    def begin_files(self) -> set[str]:
        """Make the files that are to get facts and are not there, each with its headings, and return their paths.
        Raises UnsafePath for a file that is no note, or could be none."""
        for path in self._in:
            if reason := self._core.tree.why_left_out(path):
                raise UnsafePath(path, reason)
        new = {path: self._fresh(path) for path in sorted(self._in) if self._read(path) is None}
        save(self._core, [Change(path, None, raw, "create") for path, raw in new.items()], self._view.session)
        self._raw |= new
        return set(new)

    def changes(self, action: str) -> list[Change]:
        """What is to be written: files that only gain facts come first. Raises EditFailed where one would not read as
        it is meant, OverCap for core.md."""
        paths = sorted({*self._in, *self._out}, key=lambda path: (path in self._out, path))
        return [self._change(path, action) for path in paths]

    # ---- one file

    def _change(self, path: str, action: str) -> Change:
        before = self._read(path)
        after = changed(self._core, path, before or b"", lambda raw: self._after(path, raw), allow_over_cap=False)
        section = next(iter(self._in[path]), "")
        return Change(path, before, after, action, section, self._reason)

    def _after(self, path: str, raw: bytes) -> bytes:
        text = raw.decode()
        if self._out[path]:
            text = without_facts(path, text, self._out[path])
        for section, bullets in self._in[path].items():
            text = with_facts(path, text, section, bullets)
        # A file that held facts and is empty is taken for a damaged one.
        return (text if text.strip("\ufeff \t\r\n") else f"{text}## {IMPORTANT}\n").encode()

    def _fresh(self, path: str) -> bytes:
        sections = _FRESH.get(path) or tuple(self._in[path])
        return "\n".join(f"## {section}\n" for section in sections).encode()

    def _read(self, path: str) -> bytes | None:
        if path not in self._raw:
            self._raw[path] = self._core.tree.read(path).raw if self._core.tree.stat(path) else None
        return self._raw[path]

    def _facts(self, path: str) -> Mapping[str, Sequence[FactLine]]:
        """The facts of a file as it is, by id; none for one that is not UTF-8, or cannot be read."""
        if path not in self._stated:
            found = defaultdict[str, list[FactLine]](list)
            with suppress(UnicodeDecodeError, NotebookError):
                for fact in facts_in(path, (self._read(path) or b"").decode()):
                    found[fact.id].append(fact)
            self._stated[path] = dict(found)
        return self._stated[path]

    def _sees(self, view: View, path: str, id: str) -> bool:
        shown = not view.sees_in_part(path) or id in shown_in(self._core, view, path)
        return view.may("read", path) and shown


def one_line(name: str, value: str, longest: int = 200) -> str:
    """A section or a reason on one line, "" for none. Raises UsageError for one that is too long, or without words that
    a reader sees."""
    from notebook_sync.files.edits import characters_refused

    line = " ".join(value.split())
    refused = characters_refused(line) or ("" if plain(line) or not line else "it has no words")
    if refused or len(line) > longest:
        why = refused or f"it has {len(line):,} characters, and at most {longest} are kept"
        raise UsageError(f"the {name} cannot be used: {why}", next="reword it")
    return line
