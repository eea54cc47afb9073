"""What `sync` does besides the sync itself, and what the process that follows the files does by the clock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from notebook_sync.errors import BackendDown, Busy, GitFailed, MissingExtra, NotebookError
from notebook_sync.files.history import Kept
from notebook_sync.files.locks import FollowLock, write_lock
from notebook_sync.files.private import close_to_others
from notebook_sync.model import SETTINGS_FILE
from notebook_sync.services.admin import EMBEDDED, SyncReport
from notebook_sync.services.core import FAULTS, Core
from notebook_sync.sessions import OWNER
from notebook_sync.store.rows import Is, from_milliseconds, to_milliseconds
from notebook_sync.sync.upkeep import Chore, last_runs

# What `sync` waits for another process to publish, and the most that it publishes itself while servers answer.
_PUBLISH_SECONDS, _FEED_SECONDS = 10.0, 3_600.0
_USAGE_SECONDS = 600.0
_COMMIT_SECONDS, _TIDY_SECONDS, _DAY, _WEEK = 60.0, 3_600.0, 86_400.0, 7 * 86_400.0
_ALL = 1 << 30
_COMMITTED, _MOST_COMMITTED = "committed", 500
# Up to when use is published; a fact's importance is published where it moved so much, of so many facts in one run.
_USED, _MOVED, _MOST_MOVED = "used", 0.01, 2_000
# So many events are kept.
_EVENTS = 50_000
# Texts of so many rows are in memory at once.
_EMBED_BATCH = 128
_log = logging.getLogger(__name__)


def sync_notebook(
    core: Core,
    *,
    allow_empty: bool = False,
    claim: bool = False,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> SyncReport:
    """Bring the index to what the files say, then publish, embed and dump what is missing. `force` writes every row
    again. Raises WouldDeleteEverything, RootLost and errors of the index."""
    is_first = core.index.counters.one("adopted") is None
    report = core.engine.sync(allow_empty=allow_empty or force, force=force, progress=progress)
    core.index.cache.put([{"id": FAULTS, "kind": FAULTS, "value": report.failed, "made_at": core.now()}])
    finish_open_writes(core)
    targets = publish_changes(core, claim=claim)
    warnings = [
        *report.warnings,
        *tidy(core),
        *(f"{each['name']}: {each['trouble']}" for each in targets if each["trouble"]),
    ]
    hints, embedded = [], 0
    try:
        embedded = embed_missing(core, _ALL)
    except (BackendDown, MissingExtra) as error:
        warnings.append(f"notes are found by their words only: {error}")
    if embedded and not any(each["trouble"] for each in targets):
        targets = publish_changes(core)  # the vectors of facts
    if embedded:
        hints.append(f"found by their meaning from now on: {embedded:,} notes and facts")
    if is_first and not (core.root / SETTINGS_FILE).exists():
        hints.append(f"for rules and settings of your own, run: notebook-sync init {core.root}")
    write_dump(core)
    return SyncReport(
        added=report.added,
        updated=report.updated,
        moved=report.moved,
        deleted=report.deleted,
        unchanged=report.unchanged,
        failed=report.failed,
        warnings=warnings,
        seconds=round(report.seconds, 3),
        embedded=embedded,
        targets=targets,
        hints=hints,
    )


def publish_changes(core: Core, *, claim: bool = False) -> list[dict[str, Any]]:
    """Publish what is new, or wait until the process that follows the notebook has; then how each server is."""
    if not core.has_targets:
        return []
    lock = FollowLock(core.place)
    if not lock.acquire():
        return core.publisher.wait_for_cursors(_PUBLISH_SECONDS)
    try:
        core.publisher.publish(_FEED_SECONDS, claim=claim)
    finally:
        lock.release()
    return core.publisher.state()


def embed_missing(core: Core, limit: int) -> int:
    """Make at most `limit` missing vectors; how many were made. Raises BackendDown, MissingExtra."""
    key, rev = f"{EMBEDDED}{core.settings.search.embeddings}", core.index.rev()
    done = core.index.counters.one(key)
    if (done is not None and done["value"] == rev) or core.settings.search.embeddings == "off":
        return 0
    made, meaning = 0, core.searcher.meaning
    while meaning and made < limit:
        batch = meaning.queue.embed(min(_EMBED_BATCH, limit - made))
        made += batch.embedded
        if not batch.behind or not (batch.embedded or batch.failed):
            core.index.counters.put([{"id": key, "value": rev}])
            break
    return made


def embed_second(core: Core, limit: int) -> int:
    """Make at most `limit` missing vectors of the second stage; how many. Raises BackendDown, MissingExtra."""
    second = core.searcher.second if core.settings.search.second_stage else None
    return second.queue.embed(limit).embedded if second else 0


def note_faults(core: Core, batch: Mapping[str, Any]) -> None:
    """Remember what a look of the process that follows the files found, for `status`."""
    known, gone = core.known_faults(), {*batch["paths"], *(each["path"] for each in batch["failed"])}
    faults = [*(each for each in known if each["path"] not in gone), *batch["failed"]]
    if faults != known:  # each save would wait for this
        core.index.cache.put([{"id": FAULTS, "kind": FAULTS, "value": faults, "made_at": core.now()}])


def write_dump(core: Core) -> None:
    """Write what only the index knows to the dump, once a day."""
    at = core.index.dumped_at()
    if at is None or abs(core.now() - at) > timedelta(days=1):
        core.index.dump(core.place.state / "dump")


def score_all(core: Core) -> None:
    """Compute what each memory counts for."""
    from notebook_sync.services.memory_care import score_memories  # not loaded before it is due

    score_memories(core)


def finish_open_writes(core: Core) -> None:
    """Commit and record writes of tools that are not committed yet, unless somebody is writing."""
    if core.index.intents.count():
        with suppress(Busy), write_lock(core.place, "commit", timeout=0):
            from notebook_sync.services.writing import finish_writes  # few commands need it

            for warning in finish_writes(core)[1]:
                _log.warning("%s", warning)


def chores_of(core: Core) -> Sequence[Chore]:
    """What the process that follows the files does by the clock."""
    chores = [
        Chore("commit", _COMMIT_SECONDS, lambda: commit_open(core)),
        Chore("usage", _USAGE_SECONDS, lambda: stamp_usage(core)),
        Chore("tidy", _TIDY_SECONDS, lambda: _log.info("tidied: %s", tidy(core))),
        Chore("expiry", _TIDY_SECONDS, lambda: expire(core)),
        Chore("facts", core.settings.memory.recalculate_hours * 3_600, lambda: look_at_facts(core)),
        Chore("scores", core.settings.memory.recalculate_hours * 3_600, lambda: score_all(core)),
        Chore("dump", _DAY, lambda: write_dump(core)),
        Chore("pack", _WEEK, core.history.pack),
        *core.more_chores,
    ]
    return [*chores, Chore("reconcile", _DAY, core.publisher.reconcile_all)] if core.has_targets else chores


def chore_times(core: Core) -> list[dict[str, str]]:
    """When each chore ran last and is due next: `{chore, last, next}`; "never" and "" before the process that follows
    the files has run it."""
    found, last = [], last_runs(core.index)
    for chore in chores_of(core):
        ran = last.get(chore.name)
        times = ["never", ""] if ran is None else [_moment(ran), _moment(ran + chore.every)]
        found.append({"chore": chore.name, "last": times[0], "next": times[1]})
    return found


def _moment(seconds: float) -> str:
    return from_milliseconds(int(seconds) * 1_000).isoformat()


def expire(core: Core) -> None:
    """Forget what was kept for a while only, a week after its time: until then an old answer is better than none."""
    expired = core.index.cache.tuples(("id",), Is("expires_at", "<=", core.now() - timedelta(days=7)))
    core.index.cache.delete([id for (id,) in expired])


def look_at_facts(core: Core) -> None:
    """Archive facts that faded, and propose what the owner may do with others."""
    from notebook_sync.services.fact_upkeep import tend_facts  # not loaded before it is due

    tend_facts(core)


def commit_open(core: Core) -> bool:
    """Commit what tools wrote and, with git.commit "all", the notes that were edited by hand since the last time, as
    the owner's; whether there are more of them. What waits for trust stays out of the user's repository."""
    finish_open_writes(core)
    if core.settings.git.commit != "all":
        return False
    from notebook_sync.services.trust import is_trusted  # `sync` and `status` would wait for it

    held = core.index.counters.one(_COMMITTED)
    changes = core.index.changes(held["value"] if held else 0, _MOST_COMMITTED, {"documents"}, heavy=False)
    ended = {row["id"]: row["path"] for row in core.index.gone([each.id for each in changes if each.row is None])}
    paths = {each.row["path"] if each.row else ended.get(each.id) for each in changes}
    kept = []
    for path in sorted(path for path in paths if path):
        with suppress(NotebookError):
            raw = core.tree.read(path).raw if core.tree.stat(path) is not None else None
            kept.append(Kept(path, raw, apart=not is_trusted(core, path, raw)))
    try:
        with write_lock(core.place, "commit", timeout=0):
            if kept:
                core.history.keep(kept, OWNER, message="Keep what was edited by hand")
    except (Busy, GitFailed) as error:
        _log.info("commits wait: %s", error)
        return False
    if changes:
        core.index.counters.put([{"id": _COMMITTED, "value": changes[-1].rev}])
    return len(changes) == _MOST_COMMITTED


def stamp_usage(core: Core) -> bool:
    """Let what was used since the last time be published, and the importance of facts that has moved since; whether
    there are more of these."""
    from notebook_sync.services.fact_rows import importance  # `sync` and `status` would wait for it

    index, now = core.index, core.now()
    held = index.counters.one(_USED)
    since = min(from_milliseconds(held["value"] if held else 0), now)
    columns = ("id", "base", "pin", "access_count", "path", "created_at", "last_accessed", "decay_rate", "importance")
    rows = [dict(zip(columns, values, strict=True)) for values in index.facts.tuples(columns)]
    weights = [(row["id"], row["importance"], importance(row, now)) for row in rows]
    moved = [(id, weight) for id, was, weight in weights if was is None or abs(was - weight) >= _MOVED]
    with index.write():
        for id, weight in moved[:_MOST_MOVED]:
            index.facts.update(Is("id", "=", id), set={"importance": weight}, stamp=True)
        for used in (index.documents, index.facts):
            used.update(Is("last_accessed", ">", since), stamp=True)
        index.counters.put([{"id": _USED, "value": to_milliseconds(now)}])
    return len(moved) > _MOST_MOVED


def tidy(core: Core) -> list[str]:
    """Forget the oldest events, drop what writes left behind, and close the program's own files to other users; what
    the owner should know of that."""
    extra = core.index.events.count() - _EVENTS
    if extra > 0:
        oldest = core.index.events.find(order=("id",), limit=extra, fields=("id",))
        core.index.events.delete([row["id"] for row in oldest])
    found = [f"a text that a write replaced is kept in {path}" for path in core.saver.tidy()]
    for folder in (core.place.private, core.place.state):
        with suppress(OSError):
            found += [f"{path} was open to other users, and is closed now" for path in close_to_others(folder)]
    return found
