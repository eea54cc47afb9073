"""Files → index, for all of a notebook or for some places. Never writes a file.

One map holds what has to be looked at again: files that changed during a look, that vanished or are unfinished, and
those that were read too soon after a write. `sync` waits for them; a process that follows the files looks at `due`.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from notebook_sync.errors import IndexDamaged
from notebook_sync.files.state import Place
from notebook_sync.files.tree import Tree
from notebook_sync.model import ADOPTED, UNSETTLED, Stamp
from notebook_sync.permissions import is_private
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.settings import Settings
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is, Row
from notebook_sync.store.tables import as_json
from notebook_sync.sync.apply import Applier
from notebook_sync.sync.diff import Look, contested
from notebook_sync.sync.readers import Reader
from notebook_sync.sync.sweep import CreatedAt, Report, Sweep

__all__ = ["Engine", "Report", "Verified"]

# How often paths that change during every look are looked at again at once, and how often a command waits for others.
_ROUNDS = 5
_AUDIENCES = "audiences"
# What the bytes of a file do not determine: when and how it was seen, and what `put` only inserts.
_SEEN = frozenset(("words", "stamp", "updated_at", "created_at"))
_PLACE = ("id", "fact", "section", "pin", "audience")


class Verified(msgspec.Struct, frozen=True):
    """Whether files, index and servers agree: how many notes each has (null for a server that is not set), and every
    difference as `{path, what, detail}`. `what`: missing, stale, differs, facts, orphan; or what a server lacks."""

    consistent: bool
    files: int
    index: int
    mongodb: int | None
    redis: int | None
    differences: list[dict[str, str]]


class Engine:
    """Keeps the index of one notebook in step with its files. For any number of threads and processes. `created_at`
    is asked once, when the folder is looked at first."""

    def __init__(
        self,
        tree: Tree,
        place: Place,
        index: Index,
        settings: Settings,
        created_at: CreatedAt | None,
        analyzer: WordAnalyzer,
    ) -> None:
        self.tree = tree
        self.index = index
        self.settings = settings
        self._place = place
        self._created_at = created_at
        self._reader = Reader(tree, settings, settings.timezone, analyzer)
        self._applier = Applier(index, analyzer, settings)
        self._lock = threading.Lock()  # of the next
        self._waiting: dict[str, tuple[float, Stamp | None]] = {}

    @property
    def due(self) -> float:
        """When `look` has to be called again by itself, on the monotonic clock; infinite where nothing waits."""
        with self._lock:
            return min((due for due, _ in self._waiting.values()), default=math.inf)

    def sync(
        self, *, allow_empty: bool = False, force: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> Report:
        """Compare every file with the index and repair every difference; returns when all is quiet.

        `force` writes every row again; versions, use and history stay. Faults of single files are in the report. Raises
        RootLost, errors of the index, and WouldDeleteEverything unless `allow_empty`. A damaged index is set aside and
        filled again.
        """
        begun, report = time.monotonic(), Report()
        options = {"allow_empty": allow_empty, "force": force, "is_last": True}
        seen = self._look_everywhere(report, progress=progress, **options)
        for _ in range(_ROUNDS):
            if self._waiting:
                time.sleep(max(0.0, self.due - time.monotonic()))
                self._look(report, (), **options)
        report.warnings += [f"{path} is still being written; sync again" for path in sorted(self._waiting)]
        report.unchanged = len(seen - set(report.paths) - report.faults.keys())
        report.seconds = time.monotonic() - begun
        return report

    def look(
        self, places: Collection[str] | None = (), *, rehash: bool = False, report: Report | None = None
    ) -> Report:
        """Bring the rows of some files and folders in step with the disk, None for all, and of whatever waits.

        `rehash` reads files whose stamp is unchanged too. Raises as `sync` does; `report` has what was done before.
        """
        begun, report = time.monotonic(), report or Report()
        if places is None:
            self._look_everywhere(report, rehash=rehash)
        else:
            self._look(report, places, rehash=rehash)
        report.seconds = time.monotonic() - begun
        return report

    def verify(self, compare_servers: Callable[[], Any] | None = None) -> Verified:
        """Compare a fresh parse of every file with its rows. Changes nothing. `compare_servers` returns how many notes
        MongoDB and Redis have (None where one is not set) and the differences, each `{path, what, detail}`."""
        scan = self.tree.scan()
        missing = dict.fromkeys(scan.seen, "no look has found it yet") | scan.refused
        held = [path or "" for (path,) in self.index.documents.tuples(("path",))]
        found: list[tuple[str, str, str]] = []
        for looks in self._reader.looks([(path, "") for path in scan.seen]):
            seen = {look.path: look for look in looks}
            for row in self.index.documents.find(Is("path", "in", list(seen)), heavy=True):
                found += [(row["path"], *difference) for difference in self._compare(row, seen[row["path"]])]
        for path in held:
            reason = missing.pop(path, "its folder cannot be read")
            is_stale = path in scan.refused or scan.is_blind_to(path)
            if path not in scan.seen:
                found.append((path, "stale", reason) if is_stale else (path, "orphan", "the file is not there"))
        found += [(path, "missing", reason) for path, reason in missing.items()]
        mongodb, redis, others = compare_servers() if compare_servers is not None else (None, None, ())
        differences = [
            *({"path": path, "what": what, "detail": detail} for path, what, detail in sorted(found)),
            *others,
        ]
        return Verified(not differences, len(scan.seen), len(held), mongodb, redis, differences)

    def _look_everywhere(self, report: Report, **options: Any) -> set[str]:
        """Look at everything. A damaged index is set aside and filled again, with what only it knew from the dump."""
        try:
            self._update_audiences()
            is_first = not options.get("force") and self.index.counters.one(ADOPTED) is None
            seen = self._look(report, None, is_first=is_first, **options)
        except IndexDamaged:
            aside = self.index.recover()
            self.index.load_dump(self._place.state / "dump")
            report.warnings.append(f"the index was damaged: it was set aside as {aside} and made again")
            is_first, seen = True, self._look(report, None, is_first=True, **options)
        if is_first:
            with self.index.write():
                if shown := [path for path in seen if not is_private(path)]:
                    self._applier.note_first_sync(self.settings.notebook.name or self.tree.root.name, len(shown))
                self.index.counters.put([{"id": ADOPTED, "value": 1}])
        if self.tree.mounts:
            with suppress(OSError):
                self._place.remember(mounts=sorted(self.tree.mounts))
        return seen

    def _look(self, report: Report, places: Collection[str] | None, **options: Any) -> set[str]:
        """Look at the places and at all that waits, and again at what changed meanwhile; returns the paths of the files
        that were there. A new file may be a note that vanished in an earlier look, so the two are looked at together.
        """
        seen: set[str] = set()
        for turn in range(_ROUNDS):
            with self._lock:
                waiting, now = dict(self._waiting), time.monotonic()
            settled = {path: found for path, (due, found) in waiting.items() if due <= now and found != UNSETTLED}
            asked = None if places is None else {*places, *waiting}
            sweep = Sweep(self._reader, self._applier, self._created_at, report, asked, settled, **options)
            sweep.run()
            seen |= sweep.scan.seen.keys()
            self._wait_for(sweep, waiting.keys() | (sweep.places or set()), is_last=turn == _ROUNDS - 1)
            places, options = (), {**options, "is_first": False, "progress": None}
            if self.due > time.monotonic():
                break
        return seen

    def _wait_for(self, sweep: Sweep, looked_at: set[str], *, is_last: bool) -> None:
        """Note what the sweep leaves to look at; after the last round, what changes all the time has to settle."""
        now, settle = time.monotonic(), self.settings.sync.settle_ms / 1000
        with self._lock:
            for path in looked_at - sweep.waiting.keys():
                self._waiting.pop(path, None)
            for path, (seconds, found) in sweep.waiting.items():
                due, before = self._waiting.get(path, (0.0, UNSETTLED))
                if before != found or found == UNSETTLED or due <= now:
                    self._waiting[path] = (now + (settle if is_last and not seconds else seconds), found)

    def _update_audiences(self) -> None:
        """Let rows follow the settings that say who may read them."""
        digest = int(hashlib.sha256(msgspec.json.encode(self.settings.prompt)).hexdigest()[:15], 16)
        held = self.index.counters.one(_AUDIENCES)
        if held is None or held["value"] != digest:
            with self.index.write():
                self._applier.update_audiences()
                self.index.counters.put([{"id": _AUDIENCES, "value": digest}])

    def _compare(self, row: Row, look: Look) -> Iterator[tuple[str, str]]:
        if row["stale"] or look.projection is None:
            yield "stale", row["stale"] or look.fault or "it vanished"
            return
        projection, facts = look.projection, [fact["id"] for fact in look.projection.facts]
        if row["id"] != row["wanted_id"]:
            holder = self.index.documents.one(row["wanted_id"], heavy=False) or {"path": ""}
            projection = projection.with_problem(contested(row["wanted_id"], holder["path"]))
        # As the index can hold it: no value has a NUL.
        values = {name: as_json(value).replace("\\u0000", "\ufffd") for name, value in projection.document.items()}
        if wrong := [
            name for name in values.keys() - _SEEN if values[name] != as_json(row[name]).replace("\\u0000", "\ufffd")
        ]:
            yield "differs", f"in {', '.join(sorted(wrong))}"
        places = self.index.fact_places.find(Is("path", "=", row["path"]))
        stated, held = (
            {tuple(place[name] for name in _PLACE) for place in each} for each in (projection.places, places)
        )
        if stated != held or self.index.facts.count(Is("id", "in", facts)) != len(facts):
            yield "facts", "the rows of its facts are not what it says"
