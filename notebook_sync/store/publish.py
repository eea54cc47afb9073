"""Publishing: the index's feed to the servers that are set. A server that hangs costs its own time and nothing else.

The cursor of each server is in its owner mark, written after the rows. What the feed cannot prove, reconciling repairs.

A target is one server. It reads and writes its mark, writes a batch of changes, tells what rows of ours it has
(`known`), which documents belong there (`publishes`), and gives the index what only it has (`take_over`). Each of these
raises BackendDown. `needs_text`: whether it wants rows with their heavy columns.
"""

from __future__ import annotations

import logging
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

from notebook_sync.errors import BackendDown, ForeignTarget, NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.files.state import Place
from notebook_sync.model import ADOPTED
from notebook_sync.settings import Settings
from notebook_sync.store.index import Index
from notebook_sync.store.owner import FOREIGN, Mark, Revs, is_continued
from notebook_sync.store.rows import Change, Few, Is, Row, both

if TYPE_CHECKING:
    from notebook_sync.store.mongodb import MongoTarget
    from notebook_sync.store.redis import RedisTarget

    Target = MongoTarget | RedisTarget

_Answer = TypeVar("_Answer")
_BATCH = 500
# A server that failed is left alone, longer each time.
_PAUSES = (0.5, 30.0)
# After a write that timed out, the server may still carry it out.
_LATE_SECONDS = 60.0
# Refs go on without MongoDB after so much trouble.
_ALONE_SECONDS = 10.0
# What `status` waits for servers, and how long one that did not answer is left alone.
_STATUS_SECONDS, _REST_SECONDS = 1.0, 5.0
_POLL_SECONDS = 0.02
_NO_LIMIT = 1 << 62
# The index forgets rows that ended a year ago; a cursor that old may have missed some.
_OLDEST_CURSOR = timedelta(days=300)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Published:
    """What one call did for one server."""

    published: int = 0
    trouble: str = ""


@dataclass(slots=True)
class _State:
    """What this process knows of one server. It has every change up to `through`; questions wait until `ask_at`."""

    through: int = 0
    trouble: str = ""
    retry_at: float = 0.0
    ask_at: float = 0.0
    pause: float = _PAUSES[0]


def targets_of(settings: Settings, place: Place, index: Index) -> Iterator[Target]:
    """The servers that the settings name, MongoDB first. Nothing is asked of them yet."""
    if settings.mirror.url:
        from notebook_sync.store.mongodb import MongoTarget

        yield MongoTarget(settings.mirror, place.notebook_id, index)
    if settings.refs.url:
        from notebook_sync.store.redis import RedisTarget

        yield RedisTarget(settings.refs, settings.prompt, index)


class Publisher:
    """Publishes one index. Only the process that holds the follow lock calls `publish`; one thread at a time works."""

    def __init__(self, index: Index, targets: Iterable[Target], place: Place) -> None:
        self._index = index
        self._targets = tuple(targets)
        self._place = place
        self._states = {target.kind: _State() for target in self._targets}
        self._lock = threading.Lock()

    def publish(self, seconds: float, *, claim: bool = False) -> dict[str, Published]:
        """Publish what is new for about so many seconds, at least a batch; by kind of server, what was done.

        A server that failed lately is left alone for a while. `claim` takes over servers that another copy of this
        notebook published to, and overwrites documents and refs of others that have ids of ours.
        Raises errors of the index only.
        """
        until = time.monotonic() + seconds
        with self._lock:
            if claim:
                self._begin_generation()
            return {target.kind: self._publish_to(target, until, claim=claim) for target in self._targets}

    def publish_inline(self, seconds: float) -> None:
        """Publish before a write returns, unless another process follows the notebook; gives up after `seconds`."""

        def work() -> None:
            lock = FollowLock(self._place)
            try:
                if lock.acquire():
                    self.publish(seconds)
            except NotebookError as error:  # the write itself is done
                _log.warning("publishing waits: %s", error)
            finally:
                lock.release()

        _run_for(seconds, [work])

    def wait_for_cursors(self, seconds: float) -> list[dict[str, Any]]:
        """Wait until every server has what the index has, by the marks that a follower writes there; their `state`."""
        until = time.monotonic() + seconds
        states = self.state()
        while any(each["behind"] or each["trouble"] for each in states) and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
            states = self.state()
        for each in states:
            late = f"it does not have every change after {seconds:g} s" if each["behind"] else ""
            each["trouble"] = each["trouble"] or late
        return states

    def reconcile_all(self) -> None:
        """Compare every row of every server with the index and repair the differences. Raises BackendDown."""
        with self._lock:
            for target in self._targets:
                self._states[target.kind].retry_at = 0.0
                self._remember(target, doubt=0.0)
                done = self._publish_to(target, time.monotonic() + _ALONE_SECONDS)
                if done.trouble:
                    raise BackendDown(target.name, done.trouble)

    def compare(self) -> tuple[int | None, int | None, list[dict[str, str]]]:
        """How many rows MongoDB and Redis have, None where one is not set, and how they differ from the index, as
        `{path, what, detail}`. Raises BackendDown."""
        counts: dict[str, int] = {}
        found: list[dict[str, str]] = []
        for target in self._targets:
            counts[target.kind], differences = self._compare(target)
            found += [{"path": id, "what": what, "detail": target.name} for _, id, what in differences]
        return counts.get("mongodb"), counts.get("redis"), found

    def state(self) -> list[dict[str, Any]]:
        """How far each server is, for `status`: name, kind, cursor, behind, trouble, refused, owner. Takes a second at
        most; a server that did not answer lately is not asked."""
        answers = self._ask(self._targets, methodcaller("read_mark"), _STATUS_SECONDS)
        return [self._state_of(each, *answers[each.kind]) for each in self._targets]

    def ask(self, kind: str, work: Callable[[Any], _Answer], seconds: float) -> tuple[_Answer | None, str]:
        """What a server answers within so many seconds: `work` gets the target. None where there is none, and why,
        "" for a server that is not set. One that did not answer lately is not asked."""
        targets = [each for each in self._targets if each.kind == kind]
        answer, trouble = self._ask(targets, work, seconds).get(kind, (None, ""))
        return answer, f"{targets[0].name} does not answer" if trouble else ""

    def _ask(
        self, targets: Sequence[Target], work: Callable[[Any], _Answer], seconds: float
    ) -> dict[str, tuple[_Answer | None, str]]:
        """What servers answer to `work`, all at once, and why one did not. One that kept it waiting rests then."""
        answers: dict[str, tuple[_Answer | None, str]] = {}

        def run(target: Target) -> None:
            try:
                answers[target.kind] = work(target), ""
            except BackendDown as down:
                answers[target.kind] = None, down.reason

        states, now = self._states, time.monotonic()
        asked = [each for each in targets if now >= max(states[each.kind].retry_at, states[each.kind].ask_at)]
        _run_for(seconds, [partial(run, each) for each in asked])
        found = dict(answers)  # a later answer is not waited for
        for each in asked:
            states[each.kind].ask_at = 0.0 if each.kind in found else time.monotonic() + _REST_SECONDS
        silent = {each.kind: (None, states[each.kind].trouble or "it does not answer") for each in targets}
        return {**silent, **found}

    def close(self) -> None:
        """Close the connections."""
        for target in self._targets:
            target.close()

    # ---- one server

    def _publish_to(self, target: Target, until: float, *, claim: bool = False) -> Published:
        state, noted = self._states[target.kind], self._noted(target)
        if time.monotonic() < state.retry_at and not claim:
            return Published(trouble=state.trouble)
        try:
            count = self._feed(target, noted, until, claim=claim)
        except (BackendDown, ForeignTarget) as error:
            state.trouble = error.reason if isinstance(error, BackendDown) else str(error)
            state.retry_at = time.monotonic() + state.pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads attempts
            state.pause = min(state.pause * 2, _PAUSES[1])
            # A late write may come at any time until the server answers again.
            self._remember(target, trouble=noted["trouble"] or time.time(), doubt=time.time() + _LATE_SECONDS)
            return Published(trouble=state.trouble)
        self._states[target.kind] = _State(state.through)
        if noted["trouble"]:
            self._remember(target, trouble=None)
        return Published(count)

    def _feed(self, target: Target, noted: Mapping[str, Any], until: float, *, claim: bool) -> int:
        """Write what the server lacks, from its cursor on; how many changes that were."""
        state, found, own = self._states[target.kind], target.read_mark(), self._own_mark()
        is_doubted = noted["doubt"] is not None and time.time() >= noted["doubt"]
        if found is not None and is_continued(
            found, own, self._generations(), target=target.name, last_cursor=noted["cursor"], claim=claim
        ):
            is_doubted = is_doubted or datetime.now(UTC) - found.at > _OLDEST_CURSOR
            mark = replace(found, replica=own.replica, name=own.name, host=own.host, root=own.root)
        else:
            published = 0
            if found is not None:
                newer = Is("at", ">", found.at)  # lines before may be there, or cut by another program
                revs = [rev for (rev,) in self._index.stream.tuples(("rev",), newer)]
                published = min(revs, default=self._index.rev() + 1) - 1
                self._index.raise_rev(found.cursor)
                if found.generation == own.generation:
                    self._begin_generation()
                target.take_over()
            mark = replace(self._own_mark(), published_through=published)
            # What is there and not in the index is deleted later, after a full scan.
            self._remember(target, doubt=time.time() + _LATE_SECONDS)
        limit, is_alone = self._limit_of(target)
        if is_alone and not mark.pending_from:
            mark = replace(mark, pending_from=mark.cursor + 1)
        elif mark.pending_from and not is_alone:  # refs that went ahead of MongoDB are written again
            mark = replace(mark, pending_from=0, cursor=min(mark.cursor, mark.pending_from - 1))
        count = self._reconcile(target, mark, limit) if is_doubted and mark.cursor else 0
        if mark != found:
            self._record(target, mark)
        while True:
            seen = min(self._index.rev(), limit)
            changes = self._index.changes(mark.cursor, _BATCH, target.collections, heavy=target.needs_text)
            changes = [change for change in changes if change.rev <= limit]
            is_last = len(changes) < _BATCH
            if changes:
                self._write(target, changes, mark, claim=claim)
                count += len(changes)
                last = changes[-1].rev
                mark = replace(mark, cursor=last, published_through=max(mark.published_through, last))
                self._record(target, mark)
            state.through = seen if is_last else mark.cursor
            if is_last or time.monotonic() > until:
                return count

    def _reconcile(self, target: Target, mark: Mark, limit: int) -> int:
        """Write every row whose rev is another there, and delete rows of ours that are gone, after a full scan of the
        files."""
        is_scanned = self._index.counters.one(ADOPTED) is not None
        differences = [each for each in self._compare(target)[1] if is_scanned or each[2] != "orphan"]
        for at in range(0, len(differences), _BATCH):
            part = differences[at : at + _BATCH]
            changes = [Change(name, id, 0, None) for name, id, what in part if what == "orphan"]
            for name in {name for name, *_ in part}:
                ids = [id for other, id, what in part if other == name and what != "orphan"]
                rows = self._index.collections[name].get(ids, heavy=target.needs_text)
                changes += [Change(name, id, row["rev"], row) for id, row in rows.items() if row["rev"] <= limit]
            self._write(target, changes, mark)
        self._remember(target, doubt=None if is_scanned else time.time() + _LATE_SECONDS)
        return len(differences)

    def _compare(self, target: Target) -> tuple[int, list[tuple[str, str, str]]]:
        """How many rows a server has, and each difference: collection, id, and whether it is `missing` there, an
        `orphan` there, or `differs`."""
        known, wanted = target.known(), self._wanted(target)
        differences: list[tuple[str, str, str]] = []
        for name, there in known.items():
            here = wanted[name]
            for id in sorted(there.keys() | here.keys()) if there != here else ():
                if there.get(id) != here.get(id):
                    what = "missing" if id not in there else "orphan" if id not in here else "differs"
                    differences.append((name, id, what))
        return sum(map(len, known.values())), differences

    def _wanted(self, target: Target) -> Revs:
        """The rows that belong on a server, as `Target.known` has them."""
        for_all = both(Is("audience", "=", ""), Is("path", "!=", None), Is("collection", "!=", "channels"))
        others = Few((Is("audience", ">", ""), Is("collection", "=", "channels")))
        documents = dict(self._index.documents.tuples(("id", "rev"), for_all))
        rows = self._index.documents.find(others, fields=("id", "rev", "collection", "audience", "path"))
        documents |= {row["id"]: row["rev"] for row in rows if target.publishes(row)}
        return {"documents": documents, "facts": dict(self._index.facts.tuples(("id", "rev")))}

    def _write(self, target: Target, changes: Sequence[Change], mark: Mark, *, claim: bool = False) -> None:
        """Write a batch, and keep which rows the server refuses. Raises BackendDown where it refuses all of them."""
        refused = target.write(changes, mark, claim=claim)
        codes = {code for code, _ in refused.values()}
        if len(changes) > 1 and len(refused) == len(changes) and len(codes) == 1 and FOREIGN[0] not in codes:
            raise BackendDown(target.name, next(iter(refused.values()))[1])
        kind, revs = target.kind, {change.key: change.rev for change in changes}
        rows: list[Row] = [
            {
                "id": f"{kind}:{key}",
                "target": kind,
                "row": key,
                "row_rev": revs[key],
                "code": code,
                "reason": reason[:300],
            }
            for key, (code, reason) in refused.items()
        ]
        if rows or self._index.refused.count(Is("target", "=", kind)):
            with self._index.write():
                self._index.refused.delete([f"{kind}:{change.key}" for change in changes])
                self._index.refused.put(rows)

    def _limit_of(self, target: Target) -> tuple[int, bool]:
        """The last rev that may be written, and whether that is without MongoDB, which has been in trouble for long."""
        mongo = next((each for each in self._targets if each.kind == "mongodb"), target)
        if mongo is target:
            return _NO_LIMIT, False
        since = self._noted(mongo)["trouble"]
        if since and time.time() - since > _ALONE_SECONDS:
            return _NO_LIMIT, True
        return self._states[mongo.kind].through, False

    # ---- what is recorded

    def _record(self, target: Target, mark: Mark) -> None:
        """Write the mark, to the index first: a mark with a greater cursor was written by a later index."""
        mark = replace(mark, at=datetime.now(UTC))
        self._remember(target, cursor=mark.cursor)
        target.write_mark(mark)

    def _noted(self, target: Target) -> dict[str, Any]:
        """What the index knows of a server: the last `cursor`; since when it is in `trouble`; when to reconcile after
        `doubt`. Times are seconds since 1970, None for no."""
        row = self._index.targets.one(target.kind) or {"state": {}}
        return {"cursor": 0, "trouble": None, "doubt": None, **row["state"]}

    def _remember(self, target: Target, **changes: float | None) -> None:
        self._index.targets.put([{"id": target.kind, "state": {**self._noted(target), **changes}}])

    def _own_mark(self) -> Mark:
        """The mark of this index where it has published nothing."""
        place, host = self._place, socket.gethostname()
        generation = self._generations()[-1]
        return Mark(place.notebook_id, place.root.name, place.replica, generation, host, str(place.root))

    def _generations(self) -> list[str]:
        """Those that the state folder began, the present one last."""
        return self._place.findings().get("generations") or self._begin_generation()

    def _begin_generation(self) -> list[str]:
        begun = [*(self._place.findings().get("generations") or ()), secrets.token_hex(16)]
        self._place.remember(generations=begun)
        return begun

    # ---- how far it is

    def _state_of(self, target: Target, mark: Mark | None, trouble: str) -> dict[str, Any]:
        cursor = last = self._noted(target)["cursor"]
        if mark is not None:
            try:
                is_continued(mark, self._own_mark(), self._generations(), target=target.name, last_cursor=last)
                cursor = mark.cursor
            except ForeignTarget as error:
                trouble = str(error)
        return {
            "name": target.name,
            "kind": target.kind,
            "cursor": cursor,
            "behind": sum(self._index.collections[each].count(Is("rev", ">", cursor)) for each in target.collections),
            "trouble": trouble,
            "refused": self._index.refused.count(Is("target", "=", target.kind)),
            "owner": mark.owner if mark else "",
        }


def _run_for(seconds: float, works: Sequence[Callable[[], None]]) -> None:
    """Do all of it at once, and go on after so many seconds with what is done; a server that hangs holds up no exit."""
    threads = [threading.Thread(target=work, name="notebook-sync publish", daemon=True) for work in works]
    until = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
