"""Which memories a session may know of, and what one that is named by its id or its path is.

A memory that the session may not read is to it as one that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice

from notebook_sync.errors import NoSuchNote
from notebook_sync.files.parse import wanted_id
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import LARGEST_LIMIT
from notebook_sync.mirror.memories import Memory, MemoryRows, Sought
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.memories.text import FOLDER
from notebook_sync.notes.showing import sees_all
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

_BATCH = 1_000


class MemoryReach:
    """For one notebook. `find` is `Lookup.find_path`."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        rows: Callable[[], MemoryRows],
        find: Callable[[str, Session, Verb], str],
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._rows = rows
        self._find = find

    def all(self, session: Session) -> Iterator[Memory]:
        """Every memory that the session may know of, in id order. Raises BackendDown."""
        yield from self._streamed(self._rows().all(), session)

    def for_review(self, session: Session) -> Iterator[Memory]:
        """As `all`, those that wait for a review."""
        yield from self._streamed(self._rows().for_review(), session)

    def _streamed(self, memories: Iterator[Memory], session: Session) -> Iterator[Memory]:
        while batch := list(islice(memories, _BATCH)):
            yield from self.told(batch, session)

    def of(self, ids: Collection[str], session: Session) -> dict[str, Memory]:
        """These memories by id, as far as the session may know of them. Raises BackendDown."""
        return {memory.id: memory for memory in self.told(self._rows().of(ids).values(), session)}

    def best(self, sought: Sought, limit: int, session: Session, is_wanted: Callable[[Memory], bool]) -> list[Memory]:
        """The first of the memories that match, which are those that are wanted; more are asked for where some are not
        told. Raises BackendDown."""
        count = limit
        while limit > 0:
            found = self._rows().sought(sought, count)
            wanted = self.told((memory for memory in found if is_wanted(memory)), session)
            if len(wanted) >= limit or len(found) < count or not is_wanted(found[-1]):
                return list(wanted[:limit])
            count = min(count * 4, LARGEST_LIMIT)
        return []

    def told(self, memories: Iterable[Memory], session: Session) -> Sequence[Memory]:
        """Those of the memories that the session may know of."""
        found = list(memories)
        if session.kind == "owner":
            return found
        permitted = set(self._guard.permitted(session, "read", {memory.path for memory in found}))
        prompt = self._settings.prompt
        return [one for one in found if one.path in permitted and sees_all(session, one.path, prompt)]

    def named(self, name: str, session: Session) -> tuple[str, str]:
        """The id and the path of the memory that is named so. Raises NoSuchNote, NotPermitted, UnsafePath, and
        BackendDown where only the mirror could tell."""
        path = self._find(name, session, "read")
        if not path.startswith(f"{FOLDER}/"):
            raise NoSuchNote(f"{path} is no memory", see="notebook-sync memory list")
        try:
            return wanted_id(path, self._vault.read(path)[0]), path
        except FileNotFoundError:
            raise NoSuchNote(f"{path} is gone") from None
