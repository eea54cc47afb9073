"""Bringing in the memories of another program: each record once, however often its export is read, and none lost.

What now is can be brought back by the checkpoint that is taken first. A record that cannot become a memory is told with
its reason, and stands in a file beside the export as it was.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from notebook_sync.errors import NotebookError, Refused, UnreadableFile, UsageError
from notebook_sync.events import Events
from notebook_sync.files.commits import commit
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.note import Stamp
from notebook_sync.files.vault import Vault
from notebook_sync.folder import FOLDER as NOTEBOOK_FOLDER
from notebook_sync.folder import lock, opened_private
from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.memories import MemoryRows
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.memories.importing.columns import flat, renamed
from notebook_sync.notes.memories.importing.left import LeftOver
from notebook_sync.notes.memories.importing.lines import Beside, Found, JsonLines, JsonList, open_json
from notebook_sync.notes.memories.importing.log import ImportLog
from notebook_sync.notes.memories.importing.record import IMPORTED, Drafting, Mark
from notebook_sync.notes.memories.importing.run import ImportRun
from notebook_sync.notes.memories.importing.sqlite import MAGIC, SqliteExport
from notebook_sync.notes.memories.importing.survey import Survey, surveyed
from notebook_sync.notes.memories.text import FOLDER
from notebook_sync.notes.stream.checkpoints import Checkpoints
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

TOOL = "memory_import"
_BATCH = 1000
COMMITTED_AT_ONCE = 10_000
"""Memories of one commit, at least: until then their texts are held."""
_ASKED_AT_ONCE = 5000
_LONGEST_NAME = 60
_MOST_COLUMNS = _MOST_LINKS = 1000
_LOCK = "import.lock"
_MARK = re.compile(rf"^{IMPORTED}: (m[0-9a-f]+-[0-9a-f]+)\r?$", re.MULTILINE)

Progress = Callable[[int, int], None]
MirrorNew = Callable[[Mapping[str, Stamp], Mapping[tuple[str, str], str], Progress], str]


class MemoryImport:
    """Imports into one notebook. `follow` brings the mirror in step with all files; `mirror_new` with those that were
    made just now, and tells what hot memory could not be told, "" for nothing."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        events: Events,
        checkpoints: Checkpoints,
        mirror: Callable[[], Mirror],
        rows: Callable[[], MemoryRows],
        follow: Callable[[], object],
        mirror_new: MirrorNew,
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._events = events
        self._checkpoints = checkpoints
        self._mirror = mirror
        self._rows = rows
        self._follow = follow
        self._mirror_new = mirror_new
        self._log = ImportLog(vault.root / NOTEBOOK_FOLDER)

    def bring_in(
        self,
        file: Path,
        session: Session,
        *,
        dry_run: bool = False,
        again: bool = False,
        names: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Make a memory of each record that is none yet, and was none; with `again`, also where it was deleted. `names`
        renames columns, from the export's name to a documented one. Raises NotPermitted for who is no owner, UsageError
        for a file that is no export, Refused while another import goes on, BackendDown where nothing was written."""
        if session.kind != "owner":
            self._guard.refuse(session, TOOL, "Importing memories is only available in owner conversations")
        with nullcontext() if dry_run else self._alone():
            return self._brought_in(file, session, dry_run, again, names or {}, progress)

    def _brought_in(
        self,
        file: Path,
        session: Session,
        dry_run: bool,
        again: bool,
        names: Mapping[str, str],
        progress: Progress | None,
    ) -> dict[str, Any]:
        export = _opened(file, names)

        def records() -> Iterator[Found]:
            return (_named(found, names) for found in export.records())

        imported = self._log.records()
        self._follow()
        linked = (link.to for some in export.beside.links.values() for link in some)
        away = frozenset[str]() if again else imported
        survey = surveyed(records, linked, away, self._claimed, self._unclaimed, self._memories)
        drafting = Drafting(export.beside.links, survey.leads_on, self._settings.timezone, session.changed_by)
        warnings = [*_untold(survey, export.beside)]
        if not survey.count:
            warnings.append(f"{_plain(file)} has no records; give memories as JSON lines, as a JSON list, or as SQLite")
        halves = _Halves(survey.count, progress, is_whole=dry_run)
        with LeftOver(file, is_wanted=not dry_run) as left:
            run = ImportRun(self._vault, survey, drafting, left, away)
            try:
                warnings += self._make(run, records(), file, session, halves, is_dry=dry_run)
                if not dry_run:
                    warnings += self._follow_up(run, session, halves)
            finally:  # what is written stays, whatever ends this
                if run.written:
                    warnings += self._commit(run, file, session)
                if not dry_run:
                    warnings += self._note(run.here - imported)
        warnings += _left_out(run)
        return {
            "read": run.read,
            "added": run.added,
            "already": run.already,
            "deleted": run.deleted,
            "needs_review": run.needs_review,
            "failed": run.failed,
            "links_dropped": run.dropped[:_MOST_LINKS],
            "columns": {role: _shown(name) for role, name in survey.taken().items()},
            "not_taken": [_shown(name) for name in survey.untaken()[:_MOST_COLUMNS]],
            "backup": run.backup,
            "lossless": not run.is_stopped
            and run.read == run.added + run.already + run.deleted + len(run.failed)
            and not left.trouble,
            "left_in": left.path,
            "warnings": [*warnings, *filter(None, [left.trouble])],
        }

    def _make(
        self, run: ImportRun, records: Iterator[Found], file: Path, session: Session, halves: _Halves, *, is_dry: bool
    ) -> Iterator[str]:
        """Make the memories; what there is to be told. Raises NotebookError only where none was written yet."""
        try:
            for batch in _batches(records):
                ready = run.prepare(batch)
                if is_dry:
                    run.count(ready)
                elif ready:
                    if not run.backup:
                        kept = self._checkpoints.take(session, f"before import of {_plain(file)}")
                        run.backup = kept.id
                        yield from kept.warnings
                    run.write(ready)
                    if len(run.written) >= COMMITTED_AT_ONCE:
                        yield from self._commit(run, file, session)
                halves.first(run.read)
        except NotebookError as error:
            if not run.stamps:
                raise
            run.is_stopped = True
            yield f"stopped after {run.added:,} memories: {error}; import the file again for the rest"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two imports at once would both make what neither finds yet. Raises Refused for the second."""
        path = self._vault.root / NOTEBOOK_FOLDER / _LOCK
        with opened_private(path, "an import needs to lock this file") as fd:
            if not lock(fd):
                raise Refused("memories are being imported into this notebook already; wait for that to end")
            yield

    def _claimed(self, ids: Collection[str]) -> dict[str, Mark]:
        """Of which record each note was made that has one of these ids."""
        asked = list(ids)
        claimed: dict[str, Mark] = {}
        for start in range(0, len(asked), _ASKED_AT_ONCE):
            for row in self._mirror().claimants(asked[start : start + _ASKED_AT_ONCE]):
                claimed[row.wants] = claimed[row.id] = self._record_of(row.path)
        return {note_id: claimed[note_id] for note_id in asked if note_id in claimed}

    def _memories(self, ids: Collection[str]) -> set[str]:
        """Those of these ids that memories have."""
        asked = list(ids)
        found: set[str] = set()
        for start in range(0, len(asked), _ASKED_AT_ONCE):
            rows = self._mirror().claimants(asked[start : start + _ASKED_AT_ONCE])
            found |= {row.id for row in rows if row.path.startswith(f"{FOLDER}/")}
        return found.intersection(asked)

    def _unclaimed(self) -> Iterator[str]:
        """Of which records files were made whose frontmatter is broken, so that nothing tells what their ids are."""
        for row in self._mirror().known([FOLDER]):
            if row.broken or row.stale:
                yield self._record_of(row.path).record

    def _record_of(self, path: str) -> Mark:
        """By its mark, which also stands where a person broke the frontmatter elsewhere."""
        with suppress(FileNotFoundError, UnreadableFile):
            text = self._vault.read(path)[0].decode(errors="replace")
            front = read_frontmatter(text)
            found = _MARK.search(text) if front.problem is not None else None
            return Mark.read(found[1] if found else front.metadata.text(IMPORTED) or "")
        return Mark("", "")

    def _follow_up(self, run: ImportRun, session: Session, halves: _Halves) -> Iterator[str]:
        """Have the mirror follow, and keep what the export knows of the use of memories; what went wrong."""
        if run.stamps:
            authors = dict.fromkeys(run.digests.items(), session.changed_by)
            try:
                trouble = self._mirror_new(run.stamps, authors, halves.second)
            except NotebookError as error:
                trouble = str(error)
            if trouble:
                yield f"saved; the mirror follows when it can: {trouble}"
        if run.usage:
            try:
                self._rows().restore_usage(run.usage)
            except NotebookError as error:
                yield f"how often memories were used could not be restored: {error}; importing the file again does that"

    def _commit(self, run: ImportRun, file: Path, session: Session) -> Iterator[str]:
        """Commit what was written and is not committed yet, and tell of it; what went wrong."""
        told = f"Import {len(run.written):,} memories from {_plain(file)}"
        revision = None
        if self._settings.git.commit != "off":
            message = f"{told}\n\nAction: {TOOL}\nSession: {session.kind}\n"
            try:
                revision = commit(self._vault.root, run.written, message, author=self._settings.git.author or None)
            except NotebookError as failure:
                yield f"saved, but not committed: {failure}"
        self._events.record("import", session, path=FOLDER, action=TOOL, reason=told, commit=revision)
        run.written.clear()

    def _note(self, records: Collection[str]) -> Iterator[str]:
        """Note that memories were made of these; what went wrong."""
        try:
            self._log.add(records)
        except OSError as error:
            yield f"what was imported could not be noted: {error.strerror}; what is deleted would come in again"


class _Halves:
    """Tells progress of two works that take about as long, as of one; of the first alone where it `is_whole`."""

    def __init__(self, total: int, progress: Progress | None, *, is_whole: bool) -> None:
        self._total = total
        self._progress = progress
        self._share = 1 if is_whole else 2

    def first(self, done: int) -> None:
        self._tell(done // self._share)

    def second(self, done: int, total: int) -> None:
        self._tell((self._total + self._total * done // max(total, 1)) // self._share)

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self._total)


def _named(found: Found, names: Mapping[str, str]) -> Found:
    """The record with its columns renamed, or the reason why that cannot be."""
    if found.fields is None:
        return found
    try:
        return replace(found, fields=renamed(flat(found.fields), names))
    except UsageError as error:
        return replace(found, fields=None, error=str(error))


def _opened(file: Path, names: Mapping[str, str]) -> JsonLines | JsonList | SqliteExport:
    """The export in a file, whatever its name. Raises UsageError."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise UsageError(f"{file} is no file; name an export of memories: JSON lines, a list, or SQLite")
        with file.open("rb") as opened:
            begins = opened.read(len(MAGIC))
        if begins == MAGIC:
            return SqliteExport(file, names)
        return open_json(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{file} cannot be read: {reason}; name an export of memories") from None


def _batches(records: Iterator[Found]) -> Iterator[list[Found]]:
    while batch := list(islice(records, _BATCH)):
        yield batch


def _untold(survey: Survey, beside: Beside) -> Iterator[str]:
    """What of an export has no place in a notebook."""
    if survey.vectors:
        yield f"the vectors of {survey.vectors:,} records are left out: they are made anew"
    yield from (f"left out: {one}" for one in beside.untold)


def _left_out(run: ImportRun) -> Iterator[str]:
    """What of records stands in no memory."""
    if run.changed:
        yield (
            f"{run.changed:,} records that are here already say other things beside their texts than they did: the "
            "memories stay as they are, the records are kept beside the export"
        )
    if run.brought_back:
        yield (
            f"priorities beyond 1 to 10, which became the nearest: {run.brought_back:,}; what the records say stays in "
            "their files"
        )
    if run.dropped:
        yield (
            f"left out: {len(run.dropped):,} links that are none, or lead to no memory; what a record has of "
            "them stays in its file"
        )
    if run.circles:
        yield f"left out: {run.circles:,} links from a memory to itself"


def _shown(name: str) -> str:
    """A column's name, as any text can hold it."""
    return name[:_LONGEST_NAME].encode(errors="replace").decode()


def _plain(file: Path) -> str:
    """The file's name on one line."""
    name = "".join(each if each.isprintable() else " " for each in file.name)
    return " ".join(name.split())[:_LONGEST_NAME]
