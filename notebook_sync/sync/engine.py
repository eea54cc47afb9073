"""Files → mirror → refs, for all of the notebook or for some places. Never writes a file.

reconcile ── look(everything) ── look(what was waited for) ── what hot memory has not been told
look      ── sweep: scan, read, diff, write ── announce ── what changed meanwhile, again ── rows of facts
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import chain
from time import monotonic, sleep

from notebook_sync.errors import BackendDown
from notebook_sync.files.facts import FOLDER as FACTS
from notebook_sync.files.note import Problem
from notebook_sync.files.parse import parse
from notebook_sync.files.stamped import RACY_SECONDS
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Mirror
from notebook_sync.refs.base import Refs
from notebook_sync.sync.announce import adopt, announce
from notebook_sync.sync.report import Report
from notebook_sync.sync.sweep import UNSETTLED, Author, Outcome, Sweep, Task

# How often a path that changes under the engine's hands is looked at again at once; then the settle time helps.
_ROUNDS = 5
_BUSY = "was written to during every look; it is looked at again by the next sync"


def _nobody(path: str, digest: str) -> str:
    return ""


def _nothing(anew: bool) -> Mapping[str, str]:
    """There are no facts to follow."""
    return {}


class Engine:
    """Keeps mirror and refs in step with the files of one vault. For one thread at a time; any number of processes."""

    def __init__(
        self,
        vault: Vault,
        mirror: Mirror,
        refs: Refs,
        *,
        settle_seconds: float,
        batch: int,
        encoding: str,
        author: Author = _nobody,
        follow_facts: Callable[[bool], Mapping[str, str]] = _nothing,
    ) -> None:
        """`follow_facts` is asked after a look that found facts or a change of them; to read all of them anew, too,
        where rows are written anew. It tells which files could not be followed, and why."""
        self._vault = vault
        self._mirror = mirror
        self._refs = refs
        self._settle_seconds = settle_seconds
        self._batch = batch
        self._encoding = encoding
        self._author = author
        self._follow_facts = follow_facts
        self._store_id = ""
        self._survivors: bool | None = None

    def reconcile(self, task: Task | None = None) -> Report:
        """Compare every file with the mirror and repair every difference, refs included; returns when all is quiet.

        With `task.force` every row and every ref is written anew, and the daily stream is not told.
        Raises RootLost, WouldDeleteEverything (unless `task.allow_empty`) and BackendDown of the mirror; hot memory,
        and rows of facts, that do not answer are told in the report.
        """
        begun = monotonic()
        task = replace(task or Task(), places=None)
        outcome = Outcome()
        report = outcome.report
        self._adopt(outcome)
        self.look(task, outcome)
        for _ in range(_ROUNDS):
            if not outcome.waiting:
                break
            sleep(self._settle_seconds)
            found = dict(outcome.waiting)
            self.look(replace(task, places=frozenset(found), settled=found, progress=None), outcome)
        report.failed |= {path: _BUSY for path, stamp in outcome.waiting.items() if stamp is not None}
        if outcome.racy:
            sleep(RACY_SECONDS)
            self.look(Task(frozenset(outcome.racy), rehash=True), outcome)
        if not report.refs_trouble:
            self._adopt(outcome, anew=task.force, quiet=task.force, even_empty=task.allow_empty)
            self._announce(None, outcome, quiet=task.force)
        report.failed = {**self._faults(outcome.faulty), **report.failed}
        report.unchanged = len(outcome.seen - outcome.stored - report.failed.keys())
        report.seconds = monotonic() - begun
        return report

    def look(self, task: Task, outcome: Outcome | None = None) -> Outcome:
        """Bring the rows of the task's places in step with the disk, and announce them, batch by batch.

        A mirror that was emptied since the last look is filled again. The outcome's `waiting` and `racy` are the
        caller's to look at later. Raises as `reconcile` does.
        """
        outcome = outcome or Outcome()
        if outcome.survivors is None and self._survivors is False:
            outcome.survivors = False  # until a known note is seen to stand; that one stood once proves nothing now
        store_id = self._mirror.store_id()
        if self._store_id not in {"", store_id}:
            task = replace(task, places=None)
        try:
            self._look(task, outcome)
        finally:
            self._survivors = outcome.survivors
        self._store_id = store_id
        if _touches_facts(outcome, everywhere=task.places is None):
            self.follow_facts(outcome, anew=task.force)
        return outcome

    def follow_facts(self, outcome: Outcome, *, anew: bool = False) -> None:
        """Bring the rows of facts in step with their files. What goes wrong is told in the report: the mirror is
        written, and the rows follow. Raises RootLost."""
        report = outcome.report
        try:
            failed = self._follow_facts(anew)
            reasons = {**failed, **self._faults(outcome.faulty), **report.failed} if failed else {}
        except BackendDown as down:
            report.facts_trouble = str(down)
            return
        report.facts_trouble = ""
        report.failed |= {path: reasons[path] for path in failed}

    def _look(self, task: Task, outcome: Outcome) -> None:
        for _ in range(_ROUNDS):
            outcome.again = set()
            for path in task.places or ():
                outcome.waiting.pop(path, None)
            for written in self._sweep(task, outcome).batches():
                if written and not outcome.report.refs_trouble:
                    self._announce(written, outcome, quiet=task.force)
            outcome.again.discard("")  # of a row that lost its place: not the whole notebook
            if not outcome.again:
                return
            task = replace(task, places=frozenset(outcome.again), rehash=True, progress=None)
        outcome.waiting |= dict.fromkeys(outcome.again, UNSETTLED)

    def _sweep(self, task: Task, outcome: Outcome) -> Sweep:
        return Sweep(
            self._vault,
            self._mirror,
            task,
            outcome,
            batch=self._batch,
            encoding=self._encoding,
            author=self._author,
        )

    def announce(self, outcome: Outcome) -> None:
        """Tell hot memory everything it has not been told, after it was away."""
        self._announce(None, outcome, quiet=False)

    def warm_up(self) -> None:
        """Load what the first parse would wait for, the vocabulary above all: a quarter of a second."""
        parse("warm-up.md", b"# Warm up\n\n- a list\n", encoding=self._encoding)

    def rewrite_refs(self) -> None:
        """Write every ref anew and remove those of no note. Raises BackendDown."""
        adopt(self._mirror, self._refs, anew=True)

    def _adopt(self, outcome: Outcome, *, anew: bool = False, quiet: bool = False, even_empty: bool = False) -> None:
        try:
            adopt(self._mirror, self._refs, anew=anew, quiet=quiet, even_empty=even_empty)
        except BackendDown as down:
            self._note_trouble(down, outcome)

    def _announce(self, ids: Collection[str] | None, outcome: Outcome, *, quiet: bool) -> None:
        try:
            adopt(self._mirror, self._refs, quiet=quiet)  # emptied while nobody looked, it needs the others' refs too
            announce(self._mirror, self._refs, ids, quiet=quiet)
        except BackendDown as down:
            self._note_trouble(down, outcome)

    def _note_trouble(self, down: BackendDown, outcome: Outcome) -> None:
        """Hot memory may be away without stopping the mirror; the mirror may not."""
        if down.backend != self._refs.name or self._refs.name == self._mirror.name:
            raise down
        outcome.report.refs_trouble = str(down)

    def _faults(self, ids: Collection[str]) -> dict[str, str]:
        """By path, why these rows are stale, broken or under another id than they want: read in an earlier run."""
        faults = {}
        for document in self._mirror.get_many(sorted(ids)).values():
            severe = [problem for problem in document["problems"] if problem["severe"]]
            if document["stale"]:
                faults[document["path"]] = document["stale"]
            elif severe:
                faults[document["path"]] = str(Problem(**severe[0]))
        return faults


def _touches_facts(outcome: Outcome, *, everywhere: bool) -> bool:
    """Whether facts were changed; or, after a look everywhere, are there: a change may have been missed before."""
    paths = (outcome.report.paths, outcome.report.left, outcome.seen if everywhere else ())
    return any(path.startswith(f"{FACTS}/") for path in chain(*paths))
