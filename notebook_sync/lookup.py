"""Finding and reading notes by any of their names, as their files are now, and only as far as the session may.

What a session may not read answers as what is not there, wherever being there would tell it something.
"""

from __future__ import annotations

import posixpath
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import BackendDown, NoSuchNote, NotebookError, UnreadableFile, UnsafePath
from notebook_sync.files.provenance import is_external
from notebook_sync.files.stamped import RACY_SECONDS
from notebook_sync.files.vault import Vault
from notebook_sync.notes.editing.returned import Returned
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.links import folded
from notebook_sync.notes.showing import document_shown_to
from notebook_sync.patience import Silence, answer_within
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings
from notebook_sync.sync.sweep import Outcome, Task

if TYPE_CHECKING:
    from notebook_sync.files.note import Stamp
    from notebook_sync.mirror.base import Document, Known, Mirror
    from notebook_sync.sync.engine import Engine

READ = "notebook_read"
_MOST_NAMED = 5
_LONGEST_END_SECONDS = 1.0


class Lookup:
    """Reads one notebook. The stores are opened when they are first asked. May be used from several threads.

    Writers wait `patience` seconds at most before their files are there; a store that did not answer, they do not ask
    for some time.
    """

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        mirror: Callable[[], Mirror],
        engine: Callable[[], Engine],
        patience: float,
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._mirror = mirror
        self._engine = engine
        self._patience = patience
        self._mirror_silence, self._refs_silence = Silence(), Silence()
        # What was written while the mirror was away, with its stamps; and whether hot memory was not told something.
        self._missed: dict[str, Stamp | None] = {}
        self._is_untold = False
        self._looking = threading.Lock()  # an engine is for one thread at a time
        # By path, when the stamp of a file that was written just now will show a further write.
        self._racy: dict[str, float] = {}

    def find_path(self, name: str, session: Session, verb: Verb | None = None, tool: str = READ) -> str:
        """The path of a note that the session may read, given its path, its id, a runtime file's bare name, or a file
        name that only one note has, as a wikilink does. Ids and file names are those of the notes that are mirrored.

        With a `verb` the session must be permitted to do that, too, and leaves an event where it is not; a name that
        it may not use is refused before anything is looked up. Raises NotPermitted, UnsafePath for what is outside,
        hidden or a link, and NoSuchNote for everything else that it may not read.
        """
        place = self._guard.place(session, name, verb, tool)
        with self._guard.telling(session, tool):
            path = self._path_of(place, session)
        if verb:
            self._guard.require(session, verb, path, tool)
        return path

    def _path_of(self, place: str, session: Session) -> str:
        def readable(paths: Iterable[str]) -> list[str]:
            return [path for path in paths if self._guard.may(session, "read", path)]

        spellings = readable(path for spelled in (place, f"{place}.md") if (path := self._vault.place(spelled)))
        for path in spellings:
            if path in self._vault.scan([path]).seen:
                return path
        # No id and no other file's name is taken for a runtime file that does not exist.
        if runtime := self._vault.runtime_file(place.removeprefix("runtime/")):
            raise NoSuchNote(not_there(runtime))
        for path in readable(row.path for row in self._mirror().claimants([place]) if row.id == place):
            return path
        for path in spellings:
            if reason := self._vault.reason_against(path):
                raise UnsafePath(path, reason)
        named = readable(self._files_named(place))
        if len(named) > 1:
            raise NoSuchNote(f"several notes have the name {place!r}: {', '.join(named[:_MOST_NAMED])}; use a path")
        if not named:
            raise NoSuchNote.named(place)
        return named[0]

    def holder_of(self, wanted: str, path: str) -> str:
        """The path of another note than the one at `path` that has this id, or that it is a path of; "" for none.

        Of ids, those that are mirrored are known; where the mirror does not answer soon, none.
        """
        named = [place for spelled in (wanted, f"{wanted}.md") if (place := self._vault.place(spelled))]
        if not self._mirror_silence.trouble:
            with suppress(BackendDown):
                rows = answer_within(self._patience, lambda: self._mirror().claimants([wanted]))
                named += [row.path for row in rows if row.wants == wanted]
        others = [place for place in named if place != path]
        seen = self._vault.scan(others).seen if others else {}
        return next((place for place in others if place in seen), "")

    def version_of(self, path: str) -> int | None:
        """The version of the note at `path` that is mirrored; None where none is, or the mirror does not answer."""
        if self._mirror_silence.trouble:
            return None
        with suppress(NotebookError):
            return next((row.version for row in self._mirror().known([path]) if row.path == path), None)
        return None

    def _files_named(self, name: str) -> list[str]:
        """The notes with this file name, in whatever folder; case does not matter, nor does `.md`. The mirror knows
        them all without a walk through the folders."""
        if "/" in name:
            return []
        wanted = folded(name.removesuffix(".md"))
        found = [path for path in self._mirror().paths() if folded(posixpath.basename(path)[:-3]) == wanted]
        return sorted(self._vault.scan(found).seen.keys() & set(found)) if found else []

    def read(self, name: str, session: Session) -> Document:
        """The document of a note as the file is now, else the last good one with why in `stale`; of what the prompt
        shows, only what the session is shown there.

        Raises NotPermitted, NoSuchNote, UnsafePath, UnreadableFile.
        """
        path = self.find_path(name, session, "read")
        mirror = self._mirror()
        rows = {row.path: row for row in mirror.known([path])}
        self._mirror_silence.end()
        why = ""
        if path in self._racy or path not in rows or rows[path].stamp != self._vault.stamp(path):
            outcome = self._look_at({path})
            if path in outcome.report.failed and path not in rows:
                raise UnreadableFile(path, outcome.report.failed[path])
            why = "it is being written, or went away" if path in outcome.waiting else ""
            rows = {row.path: row for row in mirror.known([path])}
        document = mirror.get(rows[path].id) if path in rows else None
        if document is None:
            raise NoSuchNote(f"{path} went away, or is being written; try again")
        told = {**document, "stale": document["stale"] or why or None, "external": self._is_external(document)}
        return document_shown_to(session, told, self._settings.prompt, self._settings.local_now())

    def _is_external(self, document: Document) -> bool:
        """As its file says. Where that cannot be read, somebody else may have written it."""
        try:
            return is_external(self._vault.read(document["path"])[0])
        except (FileNotFoundError, UnreadableFile):
            return True

    def freshen(self, notes: Mapping[str, str]) -> tuple[frozenset[str], frozenset[str]]:
        """Bring the rows of these notes, paths by id, in step with their files: the paths of those that were behind,
        and of those that nobody can vouch for, which are being written, refused or gone. Raises BackendDown."""
        rows = {row.path: row for row in self._mirror().claimants(notes)}
        behind = {path for path in notes.values() if path in self._racy or not self._is_in_step(path, rows.get(path))}
        if not behind:
            return frozenset(), frozenset()
        self._look_at(behind)
        rows = {row.path: row for row in self._mirror().known(behind)}
        unsure = frozenset(path for path in behind if not self._is_in_step(path, rows.get(path)))
        return frozenset(behind) - unsure, unsure

    def _is_in_step(self, path: str, row: Known | None) -> bool:
        return row is not None and not row.stale and row.stamp == self._vault.stamp(path)

    def bring_in_step(
        self, written: Mapping[str, Stamp | None], authors: Mapping[tuple[str, str], str]
    ) -> tuple[dict[str, int | None], str]:
        """Mirror notes that were written just now, with these stamps, None for what was taken away; `authors` are who
        wrote them, by path and digest. By path, the version of each, None where there is no row, and what went wrong,
        "" for nothing. Raises nothing that a store or a file can do.

        A further write that their stamps do not show is looked for later: nobody waits for that. What was missed while
        the mirror was away is brought in step with them.
        """
        trouble = self._mirror_silence.trouble
        if not trouble:
            with self._looking:
                trouble = self._mirror_silence.trouble  # whoever was first at the engine may have found out
                if not trouble:
                    return self._brought_in_step(written, authors)
        self._missed |= written
        return {}, trouble

    def _brought_in_step(
        self, written: Mapping[str, Stamp | None], authors: Mapping[tuple[str, str], str]
    ) -> tuple[dict[str, int | None], str]:
        missed = dict(self._missed)
        settled = {**missed, **written}
        paths = frozenset(settled)
        outcome = Outcome()
        silent = outcome.report.refs_trouble = self._refs_silence.trouble  # then they are not asked
        try:
            now = time.monotonic()
            self._look_again({path for path, due in self._racy.items() if due <= now and path not in paths}, outcome)
            removed = frozenset(path for path, stamp in settled.items() if stamp is None)
            past = Returned(self._vault.root).past_of
            task = Task(paths, settled=settled, removed=removed, authors=authors, past=past)
            outcome = self._engine().look(task, outcome)
            if self._is_untold and not outcome.report.refs_trouble:
                self._engine().announce(outcome)
            self._racy |= dict.fromkeys(outcome.racy & paths, time.monotonic() + RACY_SECONDS)
            versions: dict[str, int | None] = dict.fromkeys(written)
            versions |= {row.path: row.version for row in self._mirror().known(written)}
        except NotebookError as error:
            if isinstance(error, BackendDown):
                # Who was not kept waiting may have written the note again meanwhile.
                self._missed |= {
                    path: stamp for path, stamp in written.items() if not self._is_missed_since(path, missed)
                }
                self._mirror_silence.begin(str(error))
            return {}, str(error)
        for path in missed:
            if not self._is_missed_since(path, missed):
                self._missed.pop(path, None)
        trouble = outcome.report.refs_trouble
        self._is_untold = bool(trouble)
        if trouble and not silent:  # a silence that ran out meanwhile is none that they were found in
            self._refs_silence.begin(trouble)
        return versions, trouble or outcome.report.facts_trouble

    def _is_missed_since(self, path: str, missed: Mapping[str, Stamp | None]) -> bool:
        return path in self._missed and (path not in missed or self._missed[path] != missed[path])

    def settle(self) -> None:
        """Look for what was left for later, before the stores are closed; not where somebody is kept waiting by one of
        them. Raises nothing that a store can do."""
        if not self._looking.acquire(timeout=_LONGEST_END_SECONDS):
            return
        try:
            with suppress(NotebookError):
                if not self._mirror_silence.trouble:
                    self._look_again(set(self._racy))
        finally:
            self._looking.release()

    def _look_at(self, paths: Set[str]) -> Outcome:
        """Bring rows in step, also with a write that a file's stamp does not show."""
        with self._looking:
            outcome = self._engine().look(Task(frozenset(paths), rehash=not paths.isdisjoint(self._racy)))
            for path in paths:
                self._racy.pop(path, None)
            if racy := outcome.racy & paths:
                self._racy |= dict.fromkeys(racy, time.monotonic() + RACY_SECONDS)
                self._look_again(racy, outcome)
            return outcome

    def _look_again(self, paths: Collection[str], outcome: Outcome | None = None) -> None:
        """Read files once more whose stamp did not vouch for their bytes, when it would show a further write."""
        if paths:
            time.sleep(max(0.0, max(self._racy[path] for path in paths) - time.monotonic()))
            for path in paths:
                del self._racy[path]
            self._engine().look(Task(frozenset(paths), rehash=True), outcome)


def not_there(path: str) -> str:
    """What is to be done about a runtime file that a notebook lacks, as an adopted folder does."""
    return f"{path} is not there; make it with: notebook-sync init DIR"


def section_of(document: Document, name: str) -> dict[str, Any]:
    """The section of a document with this anchor or heading. Raises NoSuchNote naming the anchors there are, which of
    a note that somebody else wrote are their words, and not told."""
    wanted = name.lstrip("#")
    found = [s for s in document["sections"] if s["anchor"] == wanted] or [
        s for s in document["sections"] if s["heading"].casefold() == wanted.casefold()
    ]
    if len(found) == 1:
        return dict(found[0])
    anchors = ", ".join(s["anchor"] for s in found or document["sections"]) or "none"
    what = "several sections" if found else "no section"
    told = "read the note for those it has" if document["external"] else f"anchors: {anchors}"
    raise NoSuchNote(f"{document['path']} has {what} named {name!r}; {told}")
