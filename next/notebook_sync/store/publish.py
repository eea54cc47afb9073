"""Publishing: the index's feed to the servers that are set. A server that hangs costs its own time and nothing else.

The cursor of each server is in its owner mark, written after the rows. What the feed cannot prove, reconciling repairs.
"""

from __future__ import annotations

import logging
import random
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from notebook_sync.errors import BackendDown, ForeignTarget, NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.files.state import Place
from notebook_sync.settings import Settings
from notebook_sync.store.index import Index
from notebook_sync.store.owner import Identity, Mark, step_for
from notebook_sync.store.rows import Change, Is, Row

Key = tuple[str, str]
Refusals = dict[str, tuple[str, str]]

_BATCH = 500
# A server that failed is left alone, longer each time.
_PAUSES = (0.5, 30.0)
# After a write that timed out, the server may still carry it out.
_LATE_SECONDS = 60.0
# Refs go on without MongoDB after so much trouble.
_ALONE_SECONDS = 10.0
# What `status` waits for servers, and how long it believes that one does not answer.
_STATUS_SECONDS, _BELIEVED_SECONDS = 1.0, 5.0
_POLL_SECONDS = 0.02
_NO_LIMIT = 1 << 62
# Stream lines as old as this are not written again to an emptied server.
REFILL = timedelta(days=30)
FOREIGN = ("foreign", "another program wrote it or changed it")
_ADOPTED, _SELF = "adopted", "self"
_log = logging.getLogger(__name__)


class Target(Protocol):
    """One server that is published to. Every method that asks it raises BackendDown.

    `needs_text`: whether `write` wants rows with their heavy columns.
    """

    kind: str
    name: str
    collections: frozenset[str]
    needs_text: bool

    def read_mark(self) -> Mark | None: ...
    def write_mark(self, mark: Mark) -> None: ...
    def prepare(self) -> None: ...
    def write(self, changes: Sequence[Change], mark: Mark, *, claim: bool) -> Refusals: ...
    def known(self) -> dict[Key, int]: ...
    def publishes(self, collection: str, row: Row) -> bool: ...
    def take_over(self) -> None: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class Published:
    """What one call did for one server."""

    published: int = 0
    trouble: str = ""


@dataclass(slots=True)
class _State:
    """What this process knows of one server. It has every change up to `through`."""

    through: int = 0
    is_writing: bool = False
    trouble: str = ""
    retry_at: float = 0.0
    believed_until: float = 0.0
    pause: float = _PAUSES[0]


def targets_of(settings: Settings, place: Place, index: Index) -> list[Target]:
    """The servers that the settings name, MongoDB first. Nothing is asked of them yet."""
    targets: list[Target] = []
    if settings.mirror.url:
        from notebook_sync.store.mongodb import MongoTarget

        targets.append(MongoTarget(settings.mirror, place.notebook_id, index))
    if settings.refs.url:
        from notebook_sync.store.redis import RedisTarget

        targets.append(RedisTarget(settings.refs, settings.prompt, index))
    return targets


class Publisher:
    """Publishes one index. Only the process that holds the follow lock calls `publish`; one thread at a time works."""

    def __init__(self, index: Index, targets: Sequence[Target], place: Place, *, name: str = "") -> None:
        self._index = index
        self._targets = targets
        self._place = place
        self._name = name or place.root.name
        self._states = {target.kind: _State() for target in targets}
        self._who: Identity | None = None
        self._lock = threading.Lock()

    def publish(self, seconds: float, *, claim: bool = False) -> dict[str, Published]:
        """Publish what is new for about so many seconds, at least a batch; by kind of server, what was done.

        A server that failed lately is left alone for a while. `claim` takes over servers that another copy of this
        notebook published to, and documents there that other programs changed. Raises errors of the index only."""
        until = time.monotonic() + seconds
        with self._lock:
            return {target.kind: self._publish_to(target, until, claim=claim) for target in self._targets}

    def publish_inline(self, seconds: float) -> None:
        """Publish before a write returns, unless another process follows the notebook; gives up after `seconds`."""
        if not self._targets:
            return

        def work() -> None:
            lock = FollowLock(self._place)
            try:
                if lock.acquire():
                    self.publish(seconds)
            except NotebookError as error:  # the write itself is done
                _log.warning("publishing waits: %s", error)
            finally:
                lock.release()

        thread = threading.Thread(target=work, name="notebook-sync publish", daemon=True)
        thread.start()
        thread.join(seconds)

    def wait_for_cursors(self, seconds: float) -> bool:
        """Wait until every server has what the index has now, by the marks that a follower writes there."""
        wanted, until, left = self._index.rev(), time.monotonic() + seconds, list(self._targets)
        while left := [target for target in left if not self._has(target, wanted)]:
            if time.monotonic() > until:
                break
            time.sleep(_POLL_SECONDS)
        for target in left:
            state = self._states[target.kind]
            state.trouble = state.trouble or f"it does not have every change after {seconds:g} s"
            state.believed_until = time.monotonic() + _BELIEVED_SECONDS
        return not left

    def claim(self) -> dict[str, Published]:
        """Take over servers that another copy of this notebook published to."""
        return self.publish(_ALONE_SECONDS, claim=True)

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
        differences: list[dict[str, str]] = []
        for target in self._targets:
            known, wanted = target.known(), self._wanted(target)
            counts[target.kind] = len(known)
            for key in sorted(known.keys() | wanted.keys()):
                if known.get(key) != wanted.get(key):
                    what = "missing" if key not in known else "orphan" if key not in wanted else "differs"
                    differences.append({"path": key[1], "what": what, "detail": target.name})
        return counts.get("mongodb"), counts.get("redis"), differences

    def state(self) -> list[dict[str, Any]]:
        """How far each server is, for `status`: name, kind, cursor, behind, trouble, refused, owner. Takes a second at
        most; a server that did not answer lately is not asked."""
        answers: dict[str, tuple[Mark | None, str]] = {}

        def ask(target: Target) -> None:
            try:
                answers[target.kind] = (target.read_mark(), "")
            except BackendDown as down:
                answers[target.kind] = (None, down.reason)

        threads: list[threading.Thread] = []
        for target in self._targets:
            state = self._states[target.kind]
            if time.monotonic() < max(state.retry_at, state.believed_until):
                answers[target.kind] = (None, state.trouble)
            else:
                threads.append(threading.Thread(target=ask, args=(target,), daemon=True))
                threads[-1].start()
        until = time.monotonic() + _STATUS_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        return [self._state_of(each, *answers.get(each.kind, (None, "it does not answer"))) for each in self._targets]

    def close(self) -> None:
        """Close the connections."""
        for target in self._targets:
            target.close()

    # ---- one server

    def _publish_to(self, target: Target, until: float, *, claim: bool = False) -> Published:
        state = self._states[target.kind]
        if time.monotonic() < state.retry_at and not claim:
            return Published(trouble=state.trouble)
        try:
            done = Published(self._bring_up_to_date(target, state, until, claim=claim))
        except (BackendDown, ForeignTarget) as error:
            self._note_trouble(target, state, error)
            return Published(trouble=state.trouble)
        self._states[target.kind] = _State(state.through)
        if self._noted(target)["trouble"]:
            self._remember(target, trouble=None)
        return done

    def _note_trouble(self, target: Target, state: _State, error: BackendDown | ForeignTarget) -> None:
        state.trouble = error.reason if isinstance(error, BackendDown) else str(error)
        state.retry_at = time.monotonic() + state.pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads attempts
        state.pause = min(state.pause * 2, _PAUSES[1])
        noted = self._noted(target)
        # A late write may come at any time until the server answers again.
        is_doubted = state.is_writing or noted["doubt"] is not None
        doubt = time.time() + _LATE_SECONDS if is_doubted and isinstance(error, BackendDown) else noted["doubt"]
        state.is_writing = False
        self._remember(target, trouble=noted["trouble"] or time.time(), doubt=doubt)

    def _bring_up_to_date(self, target: Target, state: _State, until: float, *, claim: bool) -> int:
        found, who, noted = target.read_mark(), self._identity(), self._noted(target)
        step = step_for(found, who, target=target.name, last_cursor=noted["cursor"], claim=claim)
        target.prepare()
        if found is not None and step in ("take over", "restored"):
            self._index.raise_rev(found.cursor)
            is_copied = found.replica == who.replica and not who.made(found)
            if is_copied or found.generation == who.generation:
                who = self._renew_identity(secrets.token_hex(8) if is_copied else "")
            target.take_over()
        mark = self._mark_of(who, found or Mark())
        limit, is_alone = self._limit_of(target)
        if is_alone and not mark.pending_from:
            mark = replace(mark, pending_from=mark.cursor + 1 if step == "continue" else 1)
        elif mark.pending_from and not is_alone:  # refs that went ahead of MongoDB are written again
            mark = replace(mark, pending_from=0, cursor=min(mark.cursor, mark.pending_from - 1))
        count = 0
        is_doubted = noted["doubt"] is not None and time.time() >= noted["doubt"]
        if step != "continue" or is_doubted:
            through = self._index.rev()
            is_trusted = found is not None and step in ("continue", "reconcile") and not claim
            count += self._reconcile(
                target, mark, limit, is_trusted=is_trusted, may_delete=step != "restored", claim=claim
            )
            if not is_trusted:
                count += self._refill(target, mark)
                mark = replace(mark, cursor=min(through, limit), published_through=through)
            is_settled = step != "restored" and self._index.counters.one(_ADOPTED) is not None
            self._remember(target, doubt=None if is_settled else time.time() + _LATE_SECONDS)
        if mark != found:
            self._record(target, mark)
        while True:
            seen = min(self._index.rev(), limit)
            changes = self._index.changes(mark.cursor, _BATCH, target.collections, heavy=target.needs_text)
            changes = [change for change in changes if change.rev <= limit]
            if not changes:
                state.through = seen
                return count
            self._write(target, changes, mark)
            count += len(changes)
            state.through = changes[-1].rev
            through = max(mark.published_through, state.through)
            mark = replace(mark, cursor=state.through, published_through=through)
            self._record(target, mark)
            if time.monotonic() > until:
                return count

    def _reconcile(
        self, target: Target, mark: Mark, limit: int, *, is_trusted: bool, may_delete: bool, claim: bool
    ) -> int:
        """Write every row whose rev is another there, and delete rows of ours that are gone, after a full scan by this
        index. Revs of another generation say nothing: not `is_trusted`, every row is written."""
        known, wanted = target.known(), self._wanted(target)
        unequal = [key for key, rev in wanted.items() if rev <= limit and not (is_trusted and known.get(key) == rev)]
        is_scanned = may_delete and self._index.counters.one(_ADOPTED) is not None
        ended = sorted(known.keys() - wanted.keys()) if is_scanned else []
        for batch in _parts(sorted(unequal), _BATCH):
            changes: list[Change] = []
            for name in dict(batch):
                rows = self._index.collections[name].get(
                    [id for at, id in batch if at == name], heavy=target.needs_text
                )
                changes += [Change(name, id, row["rev"], row) for id, row in rows.items()]
            self._write(target, changes, mark, claim=claim)
        for batch in _parts(ended, _BATCH):
            self._write(target, [Change(name, id, 0, None) for name, id in batch], mark)
        return len(unequal) + len(ended)

    def _refill(self, target: Target, mark: Mark) -> int:
        """Write what is not compared: long-term memory, checkpoints, and the stream since the mark, 30 days at most."""
        since = max(mark.written_at, datetime.now(UTC) - REFILL)
        fed = {"stream": Is("at", ">", since), "longterm": Is("at", "!=", None), "checkpoints": Is("at", "!=", None)}
        changes = [
            Change(name, row["id"], row["rev"], row)
            for name, where in fed.items()
            if name in target.collections
            for row in self._index.collections[name].find(where, order=("at",))
        ]
        for batch in _parts(changes, _BATCH):
            self._write(target, batch, replace(mark, published_through=0))
        return len(changes)

    def _write(self, target: Target, changes: Sequence[Change], mark: Mark, *, claim: bool = False) -> None:
        """Write a batch, and keep which rows the server refuses. Raises BackendDown where it refuses all of them."""
        state = self._states[target.kind]
        state.is_writing = True
        refused = target.write(changes, mark, claim=claim)
        state.is_writing = False
        codes = {code for code, _ in refused.values()}
        if len(changes) > 1 and len(refused) == len(changes) and len(codes) == 1 and FOREIGN[0] not in codes:
            raise BackendDown(target.name, next(iter(refused.values()))[1])
        revs = {f"{change.collection}:{change.id}": change.rev for change in changes}
        kept = self._index.refused.find(Is("target", "=", target.kind), fields=("id", "row"))
        settled = [row["id"] for row in kept if row["row"] in revs and row["row"] not in refused]
        rows = [
            {
                "id": f"{target.kind}:{key}",
                "target": target.kind,
                "row": key,
                "row_rev": revs[key],
                "code": code,
                "reason": reason[:300],
            }
            for key, (code, reason) in refused.items()
        ]
        if rows or settled:
            with self._index.write():
                self._index.refused.delete(settled)
                self._index.refused.put(rows)

    def _wanted(self, target: Target) -> dict[Key, int]:
        """(collection, id) → rev of the rows that belong on a server and are compared there."""
        fields = ("id", "rev", "collection", "audience", "path")
        rows = [dict(zip(fields, row, strict=True)) for row in self._index.documents.tuples(fields)]
        wanted = {("documents", row["id"]): row["rev"] for row in rows if target.publishes("documents", row)}
        if "facts" in target.collections:
            wanted |= {("facts", id): rev for id, rev in self._index.facts.tuples(("id", "rev"))}
        return wanted

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

    def _mark_of(self, who: Identity, found: Mark) -> Mark:
        place = {"name": self._name, "host": socket.gethostname(), "root": str(self._place.root)}
        own = {"notebook": who.notebook, "replica": who.replica, "generation": who.generation}
        return Mark.read({**found.as_json(), **own, **place})

    def _record(self, target: Target, mark: Mark) -> None:
        """Write the mark, to the index first: a mark with a greater cursor was written by a later index."""
        mark = replace(mark, at=datetime.now(UTC).isoformat(timespec="milliseconds"))
        self._remember(target, mark)
        self._states[target.kind].is_writing = True
        target.write_mark(mark)
        self._states[target.kind].is_writing = False

    def _noted(self, target: Target) -> dict[str, Any]:
        """What the index knows of a server: the last `cursor`; since when it is in `trouble`; when to reconcile after
        `doubt`. Times are seconds since 1970, None for no."""
        row = self._index.targets.one(target.kind) or {}
        cursor = int((row.get("mark") or {}).get("cursor") or 0)
        return {"cursor": cursor, "trouble": None, "doubt": None, **(row.get("state") or {})}

    def _remember(self, target: Target, mark: Mark | None = None, **changes: float | None) -> None:
        row = self._index.targets.one(target.kind) or {"mark": {}, "state": {}}
        known = {"mark": mark.as_json() if mark else row["mark"], "state": {**row["state"], **changes}}
        self._index.targets.put([{"id": target.kind, "seen_at": datetime.now(UTC), **known}])

    def _identity(self) -> Identity:
        """Who this index is; a new one, or one that was built again, begins a generation."""
        own = self._index.targets.one(_SELF)
        generation = own["mark"]["generation"] if own else ""
        if not generation:
            self._who = self._renew_identity()
        elif self._who is None or self._who.generation != generation:
            known = self._place.findings()
            made = known.get("generations") or []
            self._who = Identity(
                self._place.notebook_id, known.get("replica") or self._place.replica, generation, [*made, generation]
            )
        return self._who

    def _renew_identity(self, replica: str = "") -> Identity:
        """Begin a generation, of another replica where one is given. The state folder knows all of them."""
        generation, known = secrets.token_hex(16), self._place.findings()
        made = [*(known.get("generations") or []), generation]
        replica = replica or known.get("replica") or self._place.replica
        self._place.remember(generations=made, replica=replica)
        self._index.targets.put([{"id": _SELF, "mark": {"generation": generation}, "seen_at": None, "state": {}}])
        self._who = Identity(self._place.notebook_id, replica, generation, made)
        return self._who

    # ---- how far it is

    def _has(self, target: Target, rev: int) -> bool:
        try:
            mark = target.read_mark()
        except BackendDown:
            return False
        if mark is None or not self._identity().made(mark):
            return False
        return mark.cursor >= rev or not self._index.changes(mark.cursor, 1, target.collections, heavy=False)

    def _state_of(self, target: Target, mark: Mark | None, trouble: str) -> dict[str, Any]:
        state, noted = self._states[target.kind], self._noted(target)
        if trouble and time.monotonic() > max(state.retry_at, state.believed_until):
            state.trouble, state.believed_until = trouble, time.monotonic() + _BELIEVED_SECONDS
        if mark is not None:
            try:
                step_for(mark, self._identity(), target=target.name, last_cursor=noted["cursor"])
            except ForeignTarget as error:
                trouble = str(error)
        cursor = mark.cursor if mark and not trouble else noted["cursor"]
        return {
            "name": target.name,
            "kind": target.kind,
            "cursor": cursor,
            "behind": sum(self._index.collections[each].count(Is("rev", ">", cursor)) for each in target.collections),
            "trouble": trouble,
            "refused": self._index.refused.count(Is("target", "=", target.kind)),
            "owner": mark.owner if mark else "",
        }


def _parts(items: Sequence[Any], size: int) -> list[Any]:
    return [items[at : at + size] for at in range(0, len(items), size)]
