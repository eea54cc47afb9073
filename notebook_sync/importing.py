"""An archive that is in its place as a notebook, brought into the stores: what they alone held comes back to them.

Done twice, it does no more than done once, so that it can go on where a store was away.
"""

from __future__ import annotations

import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from notebook_sync.errors import BackendDown, ConfigError, Refused
from notebook_sync.files.note import Seed
from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.facts import FactRows
from notebook_sync.mirror.memories import MemoryRows
from notebook_sync.notes.archive.format import CHECKPOINTS, FACTS, LONGTERM, MIRROR, STREAM, USE
from notebook_sync.notes.archive.lines import CHECKS, Line, fact_from, lines_in, seed_from, use_from
from notebook_sync.notes.archive.placing import Placed, alone_in
from notebook_sync.notes.archive.reading import Progress
from notebook_sync.refs.base import Entry, Refs, Swap
from notebook_sync.sync.engine import Engine
from notebook_sync.sync.sweep import Task

_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class ImportedArchive:
    """What came back, at `root`. `bytes` are those of the files; the last four are what is in the stores again."""

    root: Path
    files: int
    bytes: int
    commits: int
    notes: int
    entries: int
    longterm: int
    checkpoints: int

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "root": str(self.root),
            "files": self.files,
            "bytes": self.bytes,
            "commits": self.commits,
            "notes": self.notes,
            "entries": self.entries,
            "longterm": self.longterm,
            "checkpoints": self.checkpoints,
        }


def bring_into_stores(
    placed: Placed,
    engine: Callable[[], Engine],
    mirror: Callable[[], Mirror],
    refs: Callable[[], Refs],
    facts: Callable[[], FactRows],
    memories: Callable[[], MemoryRows],
    progress: Progress | None = None,
) -> ImportedArchive:
    """Fill the stores of the notebook that was placed. `progress(done, total)` counts files.

    Raises Refused where they hold another notebook or another import fills them, ConfigError and BackendDown; the
    files are in place all the same, and the same import goes on from there.
    """
    placed_in = f"the files are in place in {placed.root}"
    again = f"notebook-sync import {shlex.quote(str(placed.archive))} {shlex.quote(str(placed.root))}"
    try:
        with alone_in(placed.kept, placed.root):
            past = _Past(placed.kept / MIRROR)
            _must_be_for_this_notebook(mirror(), refs(), past, placed_in, again)
            _reconcile(engine(), past, progress)
            _restore_facts(facts(), placed)
            _restore_use(memories(), placed)
            refs().owner()  # a hot memory that is away did not stop the mirror
            _restore(refs(), placed)
            notes = mirror().note_count()
            shutil.rmtree(placed.kept, ignore_errors=True)
    except BackendDown as down:
        raise BackendDown(down.backend, f"{down.reason}; {placed_in}; once it answers, run: {again}") from None
    except ConfigError as error:
        raise ConfigError(f"{error}; {placed_in}; once that is mended, run: {again}") from None
    counts = placed.manifest.counts
    return ImportedArchive(
        placed.root,
        counts.files,
        counts.bytes,
        counts.commits,
        notes,
        counts.entries,
        counts.longterm,
        counts.checkpoints,
    )


class _Past:
    """What the archive's mirror knew of each file. Read where it is asked for: histories may not fit in memory."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.places: dict[str, int] = {}
        wishes: Counter[str] = Counter()
        holders: dict[str, str] = {}
        with file.open("rb") as opened:
            for place, row in lines_in(opened, CHECKS[MIRROR]):
                self.places[row["path"]] = place
                wishes[row["wants"]] += 1
                if row["id"] == row["wants"]:
                    holders[row["id"]] = row["path"]
        self.holders = frozenset(path for wanted, path in holders.items() if wishes[wanted] > 1)
        """Of notes that want one id, those that had it."""

    def seed_of(self, path: str) -> Seed | None:
        if path not in self.places:
            return None
        with self._file.open("rb") as opened:
            opened.seek(self.places[path])
            _, row = next(lines_in(opened, CHECKS[MIRROR]))
        return seed_from(row)


def _must_be_for_this_notebook(mirror: Mirror, refs: Refs, past: _Past, placed: str, again: str) -> None:
    others = [row.path for row in mirror.known() if row.path and row.path not in past.places]
    if others:
        raise Refused(
            f"{mirror.name} holds {len(others)} notes of another notebook, as {others[0]}; {placed}: name another "
            f"database below [mirror] in its notebook.toml, then run: {again}"
        )
    if refs.owner() not in {"", mirror.store_id()}:
        raise Refused(
            f"{refs.name} holds the hot memory of another notebook; {placed}: name another prefix below [refs] in its "
            f"notebook.toml, then run: {again}"
        )


def _reconcile(engine: Engine, past: _Past, progress: Progress | None) -> None:
    """Quietly: that notes came back is no news for the stream. Who had an id that others want has it first."""
    task = Task(rehash=True, force=True, past=past.seed_of)
    if past.holders:
        engine.look(replace(task, places=past.holders))
    engine.reconcile(replace(task, progress=progress))


def _restore_facts(rows: FactRows, placed: Placed) -> None:
    """Those of which nothing is known but that they stand in a file: what was told since stays."""
    known = {fact.note_id: fact for fact in rows.rows()}
    for fact in map(fact_from, _lines(placed, FACTS)):
        there = known.get(fact.note_id)
        if there is None or (not there.access_count and len(there.source_history) < 2):
            rows.upsert_note(fact)


def _restore_use(memories: MemoryRows, placed: Placed) -> None:
    lines = list(_lines(placed, USE))
    memories.restore_usage([use_from(line) for line in lines])
    told = {line["id"]: line["score"] for line in lines if line["score"] is not None}
    scored = {memory.id for memory in memories.all() if memory.score is not None}
    memories.put_scores({one: score for one, score in told.items() if one not in scored}, datetime.now(UTC))


def _restore(refs: Refs, placed: Placed) -> None:
    """What is there already stays: of an import that was broken off, or told since."""
    for days in _days(placed):
        refs.restore({day: Swap(entries) for day, entries in days.items()})
    refs.restore({}, Swap(list(_lines(placed, LONGTERM))))
    spare = {light["id"] for light in refs.checkpoints()}
    for checkpoint in _lines(placed, CHECKPOINTS):
        if checkpoint["id"] not in spare:
            spare.add(checkpoint["id"])
            refs.put_checkpoint(checkpoint, spare=spare)
    if placed.manifest.lost is not None and refs.lost() is None:
        refs.note_loss(placed.manifest.lost)


def _days(placed: Placed) -> Iterator[dict[str, Sequence[Entry]]]:
    """The days of the stream, some at a time."""
    days: dict[str, list[Entry]] = {}
    count = 0
    for told in _lines(placed, STREAM):
        if count >= _AT_ONCE and told["day"] not in days:
            yield dict(days)
            days, count = {}, 0
        days.setdefault(told["day"], []).append(told["entry"])
        count += 1
    yield dict(days)


def _lines(placed: Placed, name: str) -> Iterator[Line]:
    """The lines of a member; none of one that the first archives did not have."""
    if not any(member.name == name for member in placed.manifest.members):
        return
    with (placed.kept / name).open("rb") as opened:
        for _, line in lines_in(opened, CHECKS[name]):
            yield line
