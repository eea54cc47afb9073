"""What memories say, as long as that is what they were known by; the words of the last ones are remembered."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from notebook_sync.context.wording import stems_in
from notebook_sync.mirror.base import Document
from notebook_sync.mirror.memories import Memory

if TYPE_CHECKING:
    from notebook_sync.mirror.base import Mirror

# About 5 KB each.
_MOST_REMEMBERED = 2_000


class Texts:
    """Of one notebook, for any number of threads."""

    def __init__(self, mirror: Callable[[], Mirror]) -> None:
        self._mirror = mirror
        self._lock = threading.Lock()
        self._remembered: OrderedDict[tuple[str, str], Counter[str]] = OrderedDict()

    def documents(self, memories: Sequence[Memory]) -> dict[str, Document]:
        """The documents of these memories, by id, without those that say something else by now. Raises BackendDown."""
        found = self._mirror().get_many([memory.id for memory in memories])
        return {
            memory.id: found[memory.id]
            for memory in memories
            if memory.id in found and found[memory.id]["source"]["digest"] == memory.digest
        }

    def words(self, memories: Sequence[Memory]) -> dict[str, Counter[str]]:
        """How often each of these memories has each word, in its title, its tags and its text. As `documents`."""
        keys = {memory.id: (memory.id, memory.digest) for memory in memories}
        with self._lock:
            found = {note_id: self._remembered[key] for note_id, key in keys.items() if key in self._remembered}
        if missing := [memory for memory in memories if memory.id not in found]:
            found |= {note_id: _words_of(document) for note_id, document in self.documents(missing).items()}
        with self._lock:
            for note_id, words in found.items():
                self._remembered[keys[note_id]] = words
                self._remembered.move_to_end(keys[note_id])
            while len(self._remembered) > _MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return found


def _words_of(document: Document) -> Counter[str]:
    return stems_in(f"{document['title']}\n{' '.join(document['metadata']['tags'])}\n{document['content']}")
