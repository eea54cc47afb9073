"""Files below facts/ → rows of facts. Never writes a file, and never forgets how a fact was used because its file is
away for a moment."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from notebook_sync.errors import BackendDown, TextRefused, UnreadableFile
from notebook_sync.files.facts import FOLDER, Bullet, facts_in
from notebook_sync.files.unfinished import looks_unfinished
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import LARGEST_LIMIT, Mirror
from notebook_sync.mirror.facts import Action, Fact, FactRows, Source
from notebook_sync.sync.fact_plan import plan, touched

if TYPE_CHECKING:
    from notebook_sync.search.base import Embedder, Vector

# How often a write that another was faster than is planned anew before the store is said not to keep still.
_ROUNDS = 20
_KEPT = timedelta(days=365)
# For so long after a fact was taken out, nearly the same one in its place is the same, reworded.
_LATELY = timedelta(days=1)
_AT_ONCE = 256
# What no embedder refuses.
_HARMLESS = "note"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Followed:
    """What `follow` did: how many facts of each kind of change, the files that it read anew, and why others could not
    be read; what is known of these stays as it was."""

    counts: Mapping[Action, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


class FactSync:
    """Keeps rows in step with the files of one vault. For any number of threads and processes."""

    def __init__(
        self,
        vault: Vault,
        mirror: Callable[[], Mirror],
        rows: Callable[[], FactRows],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._vault = vault
        self._mirror = mirror
        self._rows = rows
        self._now = now

    def follow(self, *, anew: bool = False) -> Followed:
        """Make the rows say what the files do. Idempotent: what another process did, or was stopped in, is done right.

        `anew` reads files, too, whose text is known. That a file is gone, or empty, is believed once the mirror says
        so, which waits for writers. Raises RootLost and BackendDown.
        """
        too_large: dict[str, str] = {}
        for _ in range(_ROUNDS):
            try:
                followed = self._round(anew, too_large)
            except UnreadableFile as unreadable:  # the other files are followed
                too_large[unreadable.path] = unreadable.reason
                continue
            if followed is not None:
                return followed
        raise BackendDown(self._rows().name, "others change the facts faster than they can be followed; try again")

    def out_of_step(self) -> list[str]:
        """The files whose facts the rows do not tell as they are. Raises as `follow`."""
        return sorted(source.path for source in self._look(anew=False).sources)

    def _round(self, anew: bool, left_out: Mapping[str, str]) -> Followed | None:
        """One attempt; None where another was faster."""
        look, rows, now = self._look(anew), self._rows(), self._now()
        sources = [source for source in look.sources if source.path not in left_out]
        failed = {**look.failed, **left_out}
        if not sources:
            return Followed(failed=failed)
        known = rows.places()
        read = {source.path: look.bullets.get(source.path, []) for source in sources}
        among = touched(known, read, {source.path for source in sources if anew or not source.base})
        there = rows.get_many(among)
        # All rows are asked for where a fact is new, and then only: seldom, and never of a watch that is at rest.
        every = rows.rows() if among - there.keys() else []
        lately = [fact for fact in every if fact.gone_at is not None and fact.gone_at >= now - _LATELY]
        planned = plan(known, read, among, there, now, lately)
        if not rows.apply([replace(one, places=planned.places[one.path]) for one in sources], planned.changes):
            return None
        rows.prune(now - _KEPT)
        return Followed(Counter(change.action for change in planned.changes), tuple(read), failed)

    def _look(self, anew: bool) -> _Look:
        """What the files say that differ from what is known of them."""
        look = _Look()
        known = self._rows().sources()
        scan = self._vault.scan([FOLDER])
        mirrored = {row.path: row for row in self._mirror().known([FOLDER]) if row.path}
        look.failed |= scan.refused
        for path, stamp in sorted(scan.seen.items()):
            row, base = mirrored.get(path), known.get(path, "")
            if not anew and base and row is not None and (row.stamp, row.digest) == (stamp, base):
                continue
            try:
                raw = self._vault.read(path)[0]
            except FileNotFoundError:
                continue
            except UnreadableFile as unreadable:
                look.failed[path] = unreadable.reason
                continue
            digest = sha256(raw).hexdigest()
            if (digest != base or anew) and (not looks_unfinished(raw) or (row is not None and row.digest == digest)):
                self._read(look, Source(path, base, digest), raw)
        for path, base in known.items():
            if (
                path not in scan.seen
                and path not in mirrored
                and path not in look.failed
                and not scan.is_blind_to(path)
            ):
                look.sources.append(Source(path, base, ""))
        return look

    def _read(self, look: _Look, source: Source, raw: bytes) -> None:
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            if source.base:  # the last good text is better than half of this one
                look.failed[source.path] = f"not UTF-8 from byte {error.start + 1} on"
                return
            text = raw.decode(errors="replace")
        try:
            look.bullets[source.path] = facts_in(source.path, text)
        except Exception as error:  # whatever is wrong with one file, or with its reading, the others are followed
            _log.exception("the facts of %s cannot be read", source.path)
            look.failed[source.path] = f"its facts cannot be read, the log says why: {type(error).__name__}: {error}"
            return
        look.sources.append(source)


@dataclass(slots=True)
class _Look:
    sources: list[Source] = field(default_factory=list)
    bullets: dict[str, list[Bullet]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def embed_facts(rows: FactRows, embedder: Embedder, limit: int = LARGEST_LIMIT) -> int:
    """Make the vectors that facts lack, in small batches, so that one that fails costs little; how many were made.
    What the embedder refuses is kept as such, and not tried again. Raises BackendDown."""
    # A remote model tells how long its vectors are with the first of them.
    behind = rows.without_vector(embedder.model, limit, dimensions=embedder.dimensions or None)
    made = 0
    for start in range(0, len(behind), _AT_ONCE):
        vectors = _vectors(embedder, behind[start : start + _AT_ONCE])
        rows.put_vectors(embedder.model, vectors)
        made += sum(bool(vector.any()) for vector in vectors.values())
    return made


def _vectors(embedder: Embedder, facts: Sequence[Fact]) -> dict[str, Vector]:
    """The vectors by id, all zero for what the embedder refuses. Raises BackendDown, also where it takes nothing at
    all."""
    try:
        vectors = embedder.embed([fact.content for fact in facts])
    except TextRefused:
        if len(facts) == 1:
            harmless = embedder.embed([_HARMLESS])[0]  # raises where it is not the fact that is at fault
            return {facts[0].note_id: harmless * 0}
        half = len(facts) // 2
        return _vectors(embedder, facts[:half]) | _vectors(embedder, facts[half:])
    return {fact.note_id: vectors[n] for n, fact in enumerate(facts)}
