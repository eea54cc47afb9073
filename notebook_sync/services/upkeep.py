"""What `sync` does besides the sync itself, and the chores of the process that follows the notebook.

When each chore ran last is a counter in the index. A clock that jumped is not believed: a chore that was never done, or
is late by more than a week, or was done in the future, is only noted, and done one period later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from notebook_sync import services
from notebook_sync.errors import BackendDown, Busy, GitFailed, MissingExtra, NotebookError
from notebook_sync.files.locks import FollowLock, write_lock
from notebook_sync.files.private import close_to_others
from notebook_sync.model import ADOPTED, SETTINGS_FILE
from notebook_sync.services.admin import SyncReport
from notebook_sync.services.core import FAULTS, Core
from notebook_sync.sessions import OWNER
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is, from_milliseconds, to_milliseconds

if TYPE_CHECKING:
    from notebook_sync.search.meaning import Meaning

# By the setting that names a model: the part of the searcher that uses it, and how many texts it embeds at once while
# files are followed. A model of sentences takes a hundred times as long.
MODELS = {"embeddings": ("meaning", 64), "second_stage": ("second", 8)}
# How long publishing may take at once, or `sync` waits for it; the most that `sync` publishes while servers answer; and
# how soon changes of other processes are looked for.
_PUBLISH_SECONDS, _FEED_SECONDS, POLL_SECONDS = 10.0, 3_600.0, 0.5
_ALL = 1 << 30
_MINUTE, _HOUR, _DAY, _WEEK = 60.0, 3_600.0, 86_400.0, 7 * 86_400.0
_COMMITTED, _MOST_COMMITTED = "committed", 500
# Up to when use is published; a fact's importance is published where it moved so much, of so many facts in one run.
_USED, _MOVED, _MOST_MOVED = "used", 0.01, 2_000
# So many events are kept.
_EVENTS = 50_000
# Texts of so many rows are in memory at once.
_EMBED_BATCH = 128
_PREFIX = "chore:"


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
    is_first = core.index.counters.one(ADOPTED) is None
    report = core.engine.sync(allow_empty=allow_empty or force, force=force, progress=progress)
    note_faults(core, report.failed)
    found = {**report.as_dict(), "embedded": 0, "hints": []}
    found["warnings"] += finish_open_writes(core)
    targets = publish_changes(core, claim=claim)
    found["warnings"] += tidy(core)
    try:
        found["embedded"] = embed_missing(core, _ALL)
    except (BackendDown, MissingExtra) as error:
        found["warnings"].append(f"notes are found by their words only: {error}")
    if found["embedded"]:
        found["hints"].append(f"notes and facts newly found by meaning: {found['embedded']:,}")
        if not any(each["trouble"] for each in targets):
            targets = publish_changes(core)  # the vectors of facts
    if is_first and not (core.root / SETTINGS_FILE).exists():
        found["hints"].append(f"for rules and settings of your own, run: notebook-sync init {core.root}")
    write_dump(core)
    return SyncReport(**found, targets=targets)


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


def note_faults(core: Core, faults: list[dict[str, str]]) -> None:
    """Remember the files that the index does not have as they are, for `status`."""
    if faults != core.noted(FAULTS):  # each save would wait for this
        core.index.cache.put([{"id": FAULTS, "kind": FAULTS, "value": faults, "made_at": core.now()}])


# ---- chores


class Chore(msgspec.Struct, frozen=True):
    """`run` is done every so many seconds. It is bounded by itself, and returns True where there is more to do now.

    `is_eager`: it is also done whenever something changed, and takes no time where it has nothing to do.
    """

    name: str
    every: float
    run: Callable[[], object]
    is_eager: bool = False


def run_chores(
    index: Index, chores: Sequence[Chore], report: Callable[[str, object], None] = lambda name, done: None
) -> float:
    """Run what is due, and return in how many seconds to come again. A chore that fails ends no other one, and is tried
    again after its period. `report` gets the name of each that ran, with what it returned or the error it raised."""
    ran, again = last_runs(index), _MINUTE
    for chore in chores:
        now = time.time()
        waited = now - ran.get(chore.name, now + 1)
        is_noted = chore.is_eager and 0 <= waited < _MINUTE
        if chore.is_eager or not 0 <= waited < chore.every:
            done = _run(chore) if chore.is_eager or 0 <= waited <= chore.every + _WEEK else None
            report(chore.name, done)
            waited = chore.every if done is True else 0.0
            if not is_noted:  # an eager one would write all the time
                index.counters.put([{"id": _PREFIX + chore.name, "value": int((now - waited) * 1000)}])
        again = min(again, max(0.0, chore.every - waited))
    return again


def last_runs(index: Index) -> dict[str, float]:
    """By name, when each chore ran last, or was noted, in seconds since 1970; of an eager one, to a minute."""
    rows = index.counters.find()
    return {row["id"].removeprefix(_PREFIX): row["value"] / 1000 for row in rows if row["id"].startswith(_PREFIX)}


def _run(chore: Chore) -> object:
    try:
        return chore.run()
    except (NotebookError, OSError) as error:
        return error
    except Exception as error:  # logged whole, and tried again after its period
        import logging  # takes time to load, and most commands need none

        logging.getLogger(__name__).exception("the chore %s failed", chore.name)
        return error


def chores_of(core: Core) -> list[Chore]:
    """What the process that follows the files does by the clock, in this order."""
    named = [(name, count) for name, (_, count) in MODELS.items() if model_of(core, name)]
    hours = core.settings.memory.recalculate_hours * _HOUR
    chores = [
        *(Chore(name, _MINUTE, partial(_embed_some, core, name, count), is_eager=True) for name, count in named),
        Chore("commit", _MINUTE, partial(commit_open, core)),
        Chore("usage", 10 * _MINUTE, partial(stamp_usage, core)),
        Chore("tidy", _HOUR, partial(tidy, core)),
        Chore("expiry", _HOUR, partial(expire, core)),
        Chore("facts", hours, lambda: services.fact_upkeep.tend_facts(core)),
        Chore("scores", hours, lambda: services.memory_care.score_memories(core)),
        Chore("dump", _DAY, partial(write_dump, core)),
        Chore("pack", _WEEK, lambda: core.history.pack()),
        *core.more_chores,
    ]
    if core.has_targets:
        publish = Chore("publish", POLL_SECONDS, lambda: core.publisher.publish(_PUBLISH_SECONDS), is_eager=True)
        chores = [publish, *chores, Chore("reconcile", _DAY, lambda: core.publisher.reconcile_all())]
    return chores


def chore_times(core: Core) -> list[dict[str, str]]:
    """When each chore ran last and is due next: `{chore, last, next}`; "never" and "" before the process that follows
    the files has run it."""
    found, last = [], last_runs(core.index)
    for chore in chores_of(core):
        ran = last.get(chore.name)
        due = "" if ran is None else "at the next change" if chore.is_eager else _moment(ran + chore.every)
        found.append({"chore": chore.name, "last": "never" if ran is None else _moment(ran), "next": due})
    return found


def _moment(seconds: float) -> str:
    return from_milliseconds(int(seconds) * 1_000).isoformat()


# ---- vectors


def model_of(core: Core, setting: str) -> str:
    """The model that a setting of [search] names, "" for none."""
    name: str = getattr(core.settings.search, setting)
    return "" if name == "off" else name


def queue_of(core: Core, setting: str) -> Meaning | None:
    """The rows that may lack vectors of a model; None for no model, and where all had them and nothing changed since:
    then nothing of search by meaning is loaded."""
    model, held = model_of(core, setting), core.index.counters.one(_embedded(core, setting))
    if not model or (held and held["value"] == core.index.rev()):
        return None
    meaning: Meaning | None = getattr(core.searcher, MODELS[setting][0])
    return meaning


def embed_missing(core: Core, limit: int, setting: str = "embeddings") -> int:
    """Make at most `limit` missing vectors; how many were made. Raises BackendDown, MissingExtra."""
    made, rev, queue = 0, core.index.rev(), queue_of(core, setting)
    while queue and made < limit:
        batch = queue.embed(min(_EMBED_BATCH, limit - made))
        made += batch.embedded
        if not batch.behind or not (batch.embedded or batch.failed):
            core.index.counters.put([{"id": _embedded(core, setting), "value": rev}])
            break
    return made


def _embed_some(core: Core, setting: str, count: int) -> bool:
    return embed_missing(core, count, setting) > 0


def _embedded(core: Core, setting: str) -> str:
    """The counter that says up to which change all vectors of a model are made."""
    return f"embedded:{setting}:{model_of(core, setting)}"


# ---- the others


def finish_open_writes(core: Core) -> list[str]:
    """Commit and record writes of tools that are not committed yet, unless somebody is writing; warnings."""
    if core.index.intents.count():
        with suppress(Busy), write_lock(core.place, "commit", timeout=0):
            return services.writing.finish_writes(core)[1]
    return []


def commit_open(core: Core) -> bool:
    """Commit what tools wrote and, with git.commit "all", the notes that were edited by hand since the last time, as
    the owner's; whether there are more of them. What waits for trust stays out of the user's repository. Raises
    GitFailed where commits have to wait."""
    warnings = finish_open_writes(core)
    if warnings:
        raise GitFailed("; ".join(warnings))
    if core.settings.git.commit != "all":
        return False
    held = core.index.counters.one(_COMMITTED)
    changes = core.index.changes(held["value"] if held else 0, _MOST_COMMITTED, {"documents"}, heavy=False)
    ends = Is("id", "in", [each.id for each in changes if each.row is None])
    ended = {row["id"]: row["path"] for row in core.index.documents.ended(ends)}
    paths = {each.row["path"] if each.row else ended.get(each.id) for each in changes}
    kept = []
    for path in sorted(path for path in paths if path):
        with suppress(NotebookError):
            raw = core.tree.read(path).raw if core.tree.stat(path) is not None else None
            kept.append(services.writing.kept_text(core, path, raw))
    try:
        with write_lock(core.place, "commit", timeout=0):
            if kept:
                core.history.keep(kept, OWNER, message="Keep what was edited by hand")
    except Busy:  # it waits for its next time
        return False
    if changes:
        core.index.counters.put([{"id": _COMMITTED, "value": changes[-1].rev}])
    return len(changes) == _MOST_COMMITTED


def stamp_usage(core: Core) -> bool:
    """Let what was used since the last time be published, and the importance of facts that has moved since; whether
    there are more of these."""
    index, now = core.index, core.now()
    held = index.counters.one(_USED)
    since = min(from_milliseconds(held["value"] if held else 0), now)
    columns = ("id", "base", "pin", "access_count", "path", "created_at", "last_accessed", "decay_rate", "importance")
    rows = [dict(zip(columns, values, strict=True)) for values in index.facts.tuples(columns)]
    weights = [(row["id"], row["importance"], services.fact_rows.importance(row, now)) for row in rows]
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


def expire(core: Core) -> None:
    """Forget what was kept for a while only, a week after its time: until then an old answer is better than none."""
    expired = core.index.cache.tuples(("id",), Is("expires_at", "<=", core.now() - timedelta(days=7)))
    core.index.cache.delete([id for (id,) in expired])


def write_dump(core: Core) -> None:
    """Write what only the index knows to the dump, once a day."""
    at = core.index.dumped_at()
    if at is None or abs(core.now() - at) > timedelta(days=1):
        core.index.dump(core.place.state / "dump")
