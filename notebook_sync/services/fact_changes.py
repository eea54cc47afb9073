"""Changes of the files of facts: facts added, moved, taken out. All files of a call are one edit, which `undo` reverts.

What is decided depends on the files as they are under the write lock, and is decided again where an editor is faster.
No fact is dropped before its new place is written, and none gets to where more sessions see it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from notebook_sync.errors import NotebookError, UnsafePath, UsageError
from notebook_sync.files.edits import characters_refused
from notebook_sync.files.fact_text import ARCHIVE, FOLDER, as_bullet, fact_id, facts_in, with_facts, without_facts
from notebook_sync.files.frontmatter import is_external
from notebook_sync.files.names import copy_of, why_not
from notebook_sync.files.page import plain
from notebook_sync.model import CORE_FACTS, FactLine
from notebook_sync.registry import Result
from notebook_sync.services.core import Core
from notebook_sync.services.documents import changed, require_change
from notebook_sync.services.fact_rows import FactRow, clamp, shown_in
from notebook_sync.services.view import View
from notebook_sync.services.writing import Change, Saved, change_notes, save
from notebook_sync.sessions import KINDS, Session
from notebook_sync.store.rows import EVERYTHING, Is, Row, both
from notebook_sync.sync.facts import places_of, with_event

_Decided = TypeVar("_Decided")
NOTES = f"{FOLDER}/notes.md"
SECTIONS = ("Key Topics", "Important Facts", "People & Entities", "Ongoing Threads", "File Knowledge")
IMPORTANT = SECTIONS[1]
_CORE_SECTIONS = ("Identity", "Projects", "Relationships", "System")
# Where in core.md a fact goes whose section it does not have.
_CORE_OF = {"People & Entities": "Relationships", "Key Topics": "Projects", "Ongoing Threads": "Projects"}
_FRESH: Mapping[str, Sequence[str]] = {NOTES: SECTIONS, CORE_FACTS: _CORE_SECTIONS}
_LONGEST_LINE = 200
# What a fact gains by being confirmed, or said again.
_REINFORCED = 0.1


class Outcome(Result, frozen=True):
    """What was done, or would be, with one fact, and where it is then. `action`: added, reinforced, archived, restored,
    promoted or proposed."""

    id: str
    content: str
    section: str
    path: str
    action: str


def change_facts(
    core: Core, session: Session, action: str, decide: Callable[[Draft], _Decided], *, reason: str = ""
) -> tuple[_Decided, Saved]:
    """Let `decide` change a draft of the files, under the write lock, and save it; what was decided, and what became of
    it. It is called again where a file was changed meanwhile.

    A file that is not there is first made without facts, in an edit of its own: so `undo` has a text to go back to.
    """

    decided: list[_Decided] = []

    def plan() -> list[Change]:
        core.writer.look({FOLDER})  # the index may not have what an editor has just saved
        draft = Draft(core, session, reason)
        decided[:] = [decide(draft)]
        draft.begin_files()
        return draft.changes(action)

    saved = change_notes(core, session, action, plan)
    return decided[0], saved


def view_to_change(core: Core, session: Session, operation: str, path: str = NOTES) -> View:
    """The session's view. Raises NotPermitted where it may not change this file of facts."""
    view = View(core, session)
    require_change(core, view, path, operation)
    return view


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

    def add(self, text: str, section: str, pin: float | None = None) -> None:
        """Add a fact at the end of a section of notes.md; `pin` is written in its place. Raises UsageError for a text
        that is none."""
        self._in[NOTES][section].append(as_bullet(text, pin=pin))

    def keep(self, text: str, section: str, known: FactRow | None, pin: float | None = None) -> Outcome:
        """Add a fact, unless `known` says the same: that one is reinforced, or comes back from the archive."""
        if known is not None and not known.archived:
            return outcome_of(known, "reinforced")
        if known is not None:
            path, home = self.home_of(known.id)
            if not self.move(known.id, path, home):
                return outcome_of(known, "restored", path, home)
        self.add(text, section, pin)
        return Outcome(fact_id(text), text, section, NOTES, "added")

    def move(self, id: str, to: str, section: str = "", reason: str = "") -> str:
        """Move a fact from every file that states it to the file `to`, "" for none; why it stays, "" where it is moved.

        `section`: "" for the one that it has. `reason`: for the archive, "" for that of the call.
        """
        places = self.places(id)
        if why := self.why_stays(id, to):
            return why
        origin, fact = next(iter(places.items()))
        archived = None
        if to == ARCHIVE:
            day = self._core.now().astimezone(self._core.settings.timezone).date()
            archived = {"date": day.isoformat(), "reason": reason or self._reason, "from": origin}
        if to and to not in places:
            try:
                bullet = as_bullet(fact.text, pin=fact.pin, archived=archived, is_known=True)
            except UsageError as error:
                return error.message
            self._in[to][section or fact.section or IMPORTANT].append(bullet)
        for path in places.keys() - {to}:
            self._out[path] |= {each.line for each in self._facts(path)[id]}
        return ""

    def places(self, id: str) -> dict[str, FactLine]:
        """The files that state a fact now, each with its first line there, the file that counts first."""
        rows = places_of(self._core.index, [id]).get(id, [])
        paths = dict.fromkeys(row["path"] for row in rows)
        return {path: self._facts(path)[id][0] for path in paths if id in self._facts(path)}

    def why_stays(self, id: str, to: str) -> str:
        """Why the session may not move a fact to the file `to`, "" for none; "" where it may."""
        places = self.places(id)
        for path in (*places, *filter(None, [to])):
            if not (self._view.may("read", path) and self._view.may("write", path)):
                return f"{path} may not be changed in this conversation"
        for path in places:
            if is_external(self._raw[path] or b""):
                return f"{path} holds words of others, which are no longer marked as such elsewhere; move it by hand"
            views = (View(self._core, Session.named(kind)) for kind in KINDS)
            if to and not all(self._sees(view, path, id) for view in views if view.may("read", to)):
                return f"not every session that reads {to} sees this fact of {path}; move it by hand"
        return "" if places else "no file states it any more"

    def home_of(self, id: str) -> tuple[str, str]:
        """The file and section that an archived fact came from. It is notes.md for a place that cannot be known, and
        for a file that no agent may write: an agent may have written that the fact came from there."""
        fact = self.places(id).get(ARCHIVE)
        if fact is None:
            return NOTES, IMPORTANT
        path = fact.archived["from"] if fact.archived else ""
        is_file_of_facts = path.startswith(f"{FOLDER}/") and path != ARCHIVE and not copy_of(path)
        is_free = is_file_of_facts and not why_not(path) and not self._core.tree.why_left_out(path)
        may_be = is_free and View(self._core, Session.task()).may("write", path)
        return path if may_be else NOTES, fact.section or IMPORTANT

    def section_in_core(self, section: str) -> str:
        """The section of core.md for a fact of this section: that of its name, else the one of its kind."""
        there = [fact.section for facts in self._facts(CORE_FACTS).values() for fact in facts]
        names = {name.casefold(): name for name in (*there, *_CORE_SECTIONS)}
        return names.get(section.casefold()) or _CORE_OF.get(section, "System")

    def begin_files(self) -> None:
        """Make the files that are to get facts and are not there, each with its headings. Raises UnsafePath for a file
        that is no note, or could be none."""
        for path in self._in:
            if reason := self._core.tree.why_left_out(path):
                raise UnsafePath(path, reason)
        missing = {path: _FRESH.get(path) or tuple(self._in[path]) for path in self._in if self._read(path) is None}
        new = {path: "\n".join(f"## {name}\n" for name in sections).encode() for path, sections in missing.items()}
        save(self._core, [Change(path, None, raw, "create") for path, raw in sorted(new.items())], self._view.session)
        self._raw |= new

    def changes(self, action: str) -> list[Change]:
        """What is to be written: files that only gain facts come first. Raises EditFailed where one would not read as
        it is meant, OverCap for core.md."""
        found = []
        for path in sorted({*self._in, *self._out}, key=lambda path: (path in self._out, path)):
            before, section = self._read(path), next(iter(self._in[path]), "")
            after = changed(self._core, path, before or b"", partial(self._after, path), allow_over_cap=False)
            found.append(Change(path, before, after, action, section, self._reason))
        return found

    # ---- one file

    def _after(self, path: str, raw: bytes) -> bytes:
        text = raw.decode()
        if self._out[path]:
            text = without_facts(path, text, self._out[path])
        for section, bullets in self._in[path].items():
            text = with_facts(path, text, section, bullets)
        # A file that held facts and is empty is taken for a damaged one.
        return (text if text.strip("\ufeff \t\r\n") else f"{text}## {IMPORTANT}\n").encode()

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


# ---- what the database keeps


def outcome_of(fact: FactRow, action: str, path: str = "", section: str = "") -> Outcome:
    """What was done with a fact, which is now in this file and section, "" for its own."""
    return Outcome(fact.id, fact.content, section or fact.section, path or fact.path, action)


def record_kept(core: Core, session: Session, kept: Outcome, weight: float | None) -> None:
    """Let a fact that `Draft.keep` kept count for what was said of it, or for more."""
    if kept.action == "reinforced":
        strengthen(core, session, kept.id, weight or 0.0)
    elif weight is not None:
        less = Is("base", "<", weight) if kept.action == "restored" else EVERYTHING
        core.index.facts.update(both(Is("id", "=", kept.id), less), set={"base": weight}, stamp=True)


def strengthen(core: Core, session: Session, id: str, least: float = 0.0) -> None:
    """Count a use of a fact, and let it count for more, and for `least` at least."""
    with core.index.write():
        row = core.index.facts.one(id, heavy=False)
        if row is not None:
            more = raised(core, session, row, "reinforced", max(row["base"] + _REINFORCED, least))
            more["last_accessed"] = core.now()
            core.index.facts.update(Is("id", "=", id), set=more, inc={"access_count": 1}, stamp=True)


def raised(core: Core, session: Session, row: Row, action: str, base: float, **said: str) -> Row:
    """What is set of a fact that is to count for `base`, with the event that says so; the importance of one that is
    pinned, or in core.md, stays."""
    is_fixed = row["pin"] is not None or row["path"] == CORE_FACTS
    base = row["base"] if is_fixed else clamp(base)
    actor = "owner" if session.kind == "owner" else session.changed_by
    return with_event(row, row, core.now(), action, base, actor, **said)


def one_line(name: str, value: str) -> str:
    """A section or a reason on one line, "" for none. Raises UsageError for one that is too long, or without words that
    a reader sees."""
    line = " ".join(value.split())
    why = characters_refused(line) or ("" if plain(line) or not line else "it has no words")
    if len(line) > _LONGEST_LINE:
        why = f"it has {len(line):,} characters, and at most {_LONGEST_LINE} are kept"
    if why:
        raise UsageError(f"the {name} cannot be used: {why}", next="reword it")
    return line
