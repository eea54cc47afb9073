"""The syntheses that are kept, and which of them still hold: none that rests on a memory whose file has changed.

Files are asked, not the mirror: an edit counts at once, whoever made it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from notebook_sync.context.compiler import PRIMARY, Compiled
from notebook_sync.errors import BackendDown, NotebookError
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.memories import MemoryRows
from notebook_sync.mirror.syntheses import Rested, Syntheses, Synthesis
from notebook_sync.notes.guard import Guard
from notebook_sync.search.searching import OFF
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: a task and what selects, by a session. `options` are those of `Compiler.compile`;
    `counts_use`: somebody reads what is answered."""

    spec: str
    session: Session
    options: Mapping[str, Any]
    counts_use: bool = True

    def name(self, settings: Settings) -> str:
        """The same for whoever would be given the same: all else that a brief depends on are the notes and their
        scores."""
        told = {
            "spec": _sha256(self.spec),
            "session": self.session.kind,
            "options": {
                name: sorted(map(str, value)) if _is_list(value) else value for name, value in self.options.items()
            },
            "notebook": settings.tier2.notebook_id,
            "settings": repr((settings.context, settings.memory, settings.search, settings.prompt, settings.llm)),
        }
        return _sha256(json.dumps(told, sort_keys=True))


def key_of(compiled: Compiled, notebook_id: str) -> str:
    """What a synthesis of this brief is kept by."""
    return _sha256(_sha256(compiled.spec) + _sha256(compiled.stable_brief) + notebook_id)


class Kept:
    """Of one notebook. Any number of threads."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        store: Callable[[], Syntheses],
        memories: Callable[[], MemoryRows],
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._store = store
        self._memories = memories

    def latest(self, session: Session, limit: int) -> list[tuple[Synthesis, bool]]:
        """Those that were used last and that the session may read, each with whether it still holds. Nothing counts as
        used by that. Raises BackendDown."""
        return [
            (one, self._is_young(one) and all(self._digest(each.path) == each.digest for each in one.rests_on))
            for one in self._store().latest(limit)
            if self._may_read(session, one.rests_on)
        ]

    def at_once(self, asked: Asked) -> Synthesis | None:
        """The answer to who asked for this before, where a brief would be the same as then; without one. Raises
        BackendDown."""
        name = asked.name(self._settings)
        found = self._store().asked_for(name)
        if found is None or not found.state or not self._is_young(found):
            return None
        if found.state != self._state(self._store().state(), [one.id for one in found.rests_on]):
            return None
        if not self._may_read(asked.session, found.rests_on):
            return None
        if changed := [one.id for one in found.rests_on if self._digest(one.path) != one.digest]:
            self._store().forget(changed)
            return None
        return self._used(found, name, found.state, counts=asked.counts_use)

    def find(self, asked: Asked, compiled: Compiled, notes: str, since: datetime | None = None) -> Synthesis | None:
        """The answer for this brief, which was compiled when the notes were in the state `notes`; where it is named,
        none that was made before `since`. Raises BackendDown."""
        found = self._store().get(key_of(compiled, self._settings.tier2.notebook_id))
        if found is None or not self._is_young(found) or (since and found.made_at < since):
            return None
        used, rests_on = {one.id: one.digest for one in compiled.used}, {one.id for one in found.rests_on}
        if changed := [one.id for one in found.rests_on if (used.get(one.id) or self._digest(one.path)) != one.digest]:
            self._store().forget(changed)
            return None
        if used.keys() - rests_on or not self._may_read(asked.session, found.rests_on):
            return None
        return self._used(found, asked.name(self._settings), self._state_of(compiled, notes, rests_on), counts=False)

    def keep(
        self, synthesis: Synthesis, asked: Asked, compiled: Compiled, notes: str, rests_on: Sequence[Rested]
    ) -> None:
        """Keep an answer, of which all but this is known, as that for this brief; it holds as long as these memories,
        which are those of the brief and maybe more, say the same. Raises BackendDown."""
        tier2 = self._settings.tier2
        whole = replace(
            synthesis,
            key=key_of(compiled, tier2.notebook_id),
            asked=asked.name(self._settings),
            state=self._state_of(compiled, notes, {one.id for one in rests_on}),
            context_hash=compiled.context_hash,
            rests_on=tuple(rests_on),
        )
        self._store().put(whole, entries=tier2.cache_entries, since=datetime.now(UTC) - self._life)

    @property
    def _life(self) -> timedelta:
        return timedelta(hours=self._settings.tier2.cache_ttl_hours)

    def _is_young(self, synthesis: Synthesis) -> bool:
        return datetime.now(UTC) - synthesis.made_at < self._life

    def _digest(self, path: str) -> str | None:
        with suppress(NotebookError):
            return self._vault.digest(path)
        return None

    def _may_read(self, session: Session, memories: Sequence[Rested]) -> bool:
        return all(self._guard.may(session, "read", one.path) for one in memories)

    def _state_of(self, compiled: Compiled, notes: str, ids: Collection[str]) -> str:
        """Where not all ways were searched for the time being, a brief may be another although nothing is changed."""
        return self._state(notes, ids) if compiled.partial in ("", OFF) else ""

    def _state(self, notes: str, ids: Collection[str]) -> str:
        """Of the notes, and of what the memories count for that were chosen: when scores are computed, all change."""
        memories = self._memories().of(sorted(ids))
        scores = [(each, memories[each].score if each in memories else None) for each in sorted(ids)]
        return f"{notes} {_sha256(json.dumps(scores))}"

    def _used(self, found: Synthesis, asked: str, state: str, *, counts: bool) -> Synthesis:
        """counts: nobody else counts the use of its memories."""
        now = datetime.now(UTC)
        with suppress(BackendDown):  # it answers all the same
            self._store().used(found.key, asked, state, now)
            primary = [str(one["id"]) for one in found.memories_used if one.get("contribution") == PRIMARY]
            if counts and primary:
                self._memories().used(primary, now)
        return found


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _sha256(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()
