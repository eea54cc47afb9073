"""Repairing memories: what git, tags and a memory itself can prove is written into its file, by ordinary edits of many
files each. Nothing is made up; what nothing proves is told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from notebook_sync.errors import EditFailed, NotebookError, UnreadableFile
from notebook_sync.files.history import GitHistory, git_history
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.memories import Memory
from notebook_sync.notes.editing.door import Text
from notebook_sync.notes.editing.editing import Editing
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.memories.audit import MemoryAudit
from notebook_sync.notes.memories.findings import AGENT, CREATED_AT, KIND, RELATIONS, Finding
from notebook_sync.notes.memories.repair import Change, by_path, repaired, told_by
from notebook_sync.notes.memories.text import FOLDER
from notebook_sync.notes.stream.checkpoints import Checkpoints
from notebook_sync.sessions import Session

TOOL = "memory_fix"
_ACTION = "repair"
MOST_TOLD = 1000
BATCH = 1000
"""Files that one edit mends, all of them or none: so many others wait for while it is written."""
Progress = Callable[[int, int], None]
# By what is amiss, the field whose change mends it.
_MENDED = {"missing": CREATED_AT, "unparsable": CREATED_AT, "agent": AGENT, "kind": KIND, "link": RELATIONS}


class MemoryFix:
    """For one notebook."""

    def __init__(
        self, vault: Vault, guard: Guard, editing: Editing, audit: MemoryAudit, checkpoints: Checkpoints
    ) -> None:
        self._vault = vault
        self._guard = guard
        self._editing = editing
        self._audit = audit
        self._checkpoints = checkpoints

    def fix(self, session: Session, *, dry_run: bool, progress: Progress | None = None) -> dict[str, Any]:
        """Write what can be proved, or only tell it: `{changes, applied, left, left_out, backup, trouble, warnings}`;
        `left_out` counts those of `changes` and `left` that are too many to tell. `progress` counts files.

        What is more than one batch has a checkpoint first, `backup`. Raises NotPermitted, BackendDown, and as an edit
        of several notes, where nothing was changed; else `trouble` tells why not all was.
        """
        self._guard.require_change(session, f"{FOLDER}/memory.md", TOOL)
        memories, findings = self._audit.found(session)
        amiss = {finding.path for finding in findings if finding.about in _MENDED}
        wanted = {memory.path: memory for memory in memories if memory.path in amiss}
        wanted = {path: memory for path, memory in wanted.items() if self._guard.may(session, "write", path)}
        past, ids = git_history(self._vault.root) if wanted else GitHistory(), by_path(memories)
        run = _Run([_Repair(batch, past, ids) for batch in _batches(wanted)], progress)
        if dry_run:
            run.make(lambda repair: repair.made({path: self._raw(path) for path in repair.paths}))
        else:
            if len(run.repairs) > 1:
                kept = self._checkpoints.take(session, "before repair of memories")
                run.backup, run.warnings = kept.id, [*kept.warnings]
            run.make(lambda repair: self._write(repair, session, run))
        changes, left = run.changes, _left(findings, run.changes)
        return {
            "changes": [change.as_dict() for change in changes[:MOST_TOLD]],
            "applied": bool(changes) and not dry_run,
            "left": [one.as_dict() for one in left[:MOST_TOLD]],
            "left_out": {"changes": len(changes[MOST_TOLD:]), "left": len(left[MOST_TOLD:])},
            "backup": run.backup,
            "trouble": run.trouble,
            "warnings": [*([f"git could not be asked: {past.reason}"] if past.reason else []), *run.warnings],
        }

    def _write(self, repair: _Repair, session: Session, run: _Run) -> None:
        run.warnings += self._editing.put_all(lambda: repair.paths, repair.made, session).warnings

    def _raw(self, path: str) -> bytes | None:
        with suppress(FileNotFoundError, UnreadableFile):
            return self._vault.read(path)[0]
        return None


class _Run:
    """Repairs, one after the other: what was done before one of them failed stays done."""

    def __init__(self, repairs: Sequence[_Repair], progress: Progress | None) -> None:
        self.repairs = repairs
        self._progress = progress
        self.backup = self.trouble = ""
        self.changes: list[Change] = []
        self.warnings: list[str] = []

    def make(self, carry_out: Callable[[_Repair], object]) -> None:
        """Carry out each. Raises NotebookError where none was that changed anything."""
        done, total = 0, sum(len(repair.paths) for repair in self.repairs)
        for repair in self.repairs:
            try:
                carry_out(repair)
            except NotebookError as error:
                if not self.changes:
                    raise
                self.trouble = f"{error}; what is told here is written, and the next repair goes on from there"
                return
            self.changes += repair.changes
            self.warnings += repair.failed
            done += len(repair.paths)
            if self._progress is not None:
                self._progress(done, total)


class _Repair:
    """Makes the new texts of files, by what they say when it is asked: `changes` are what it made of them last,
    `failed` says which files have to be mended by hand first."""

    def __init__(self, memories: Mapping[str, Memory], past: GitHistory, ids: Mapping[str, str]) -> None:
        self._memories = memories
        self._past = past
        self._ids = ids
        self.paths = list(memories)
        self.failed: list[str] = []
        self.changes: list[Change] = []

    def made(self, raws: Mapping[str, bytes | None]) -> Sequence[Text]:
        """The texts of those that change."""
        self.changes, self.failed = [], []
        texts = []
        for path in sorted(raws):
            before = raws[path]
            if before is None:
                continue
            try:
                after, changes = repaired(self._memories[path], before, self._past.seed_of(path), self._ids)
            except EditFailed as failed:
                self.failed.append(str(failed))
                continue
            if changes:
                self.changes += changes
                fields = ", ".join(change.field for change in changes)
                texts.append(Text(path, before, after, _ACTION, reason=fields, told="Repair memories"))
        return texts


def _batches(memories: Mapping[str, Memory]) -> Iterator[Mapping[str, Memory]]:
    paths = sorted(memories)
    for start in range(0, len(paths), BATCH):
        yield {path: memories[path] for path in paths[start : start + BATCH]}


def _left(findings: Collection[Finding], changes: Collection[Change]) -> list[Finding]:
    """What is amiss still."""
    after = {(change.path, change.field): change.after for change in changes}

    def is_mended(finding: Finding) -> bool:
        field = _MENDED.get(finding.about, "")
        if (finding.path, field) not in after:
            return False
        return field != RELATIONS or all(told_by(link) != finding.link for link in after[finding.path, field])

    return [one for one in findings if not is_mended(one)]
