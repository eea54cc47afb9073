"""Linking memories: what somebody says of how one leads to another is written into the file of the one it starts from.

Both have to be there, and the session has to be able to read them: of no other it learns that it is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from notebook_sync.errors import BackendDown, EditFailed, NoSuchNote, NotebookError
from notebook_sync.mirror.memories import Link, Memory
from notebook_sync.notes.editing.door import Entered, Text
from notebook_sync.notes.editing.editing import Editing
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.memories.reach import MemoryReach
from notebook_sync.notes.memories.relations import KEPT, Settled, merged, with_link
from notebook_sync.notes.memories.suggestions import Said, link_of, must_lead_on, row_of, short, suggested_in
from notebook_sync.notes.memories.text import FOLDER
from notebook_sync.sessions import Session

LINK = "memory_link"

Row = dict[str, Any]
Rows = list[Row]


class MemoryLinks:
    """For one notebook."""

    def __init__(self, guard: Guard, editing: Editing, reach: MemoryReach) -> None:
        self._guard = guard
        self._editing = editing
        self._reach = reach

    def link(
        self,
        from_id: str,
        type: str,  # noqa: A002 - so it is called in the file, too
        to_id: str,
        session: Session,
        *,
        confidence: float,
        reasoning: str,
        source: str,
        synthesis_id: str,
    ) -> Row:
        """Write one link down; one that is known already is said anew. Raises UsageError, NoSuchNote, NotPermitted, and
        as an edit."""
        self._guard.require_change(session, f"{FOLDER}/memory.md", LINK)
        with self._guard.telling(session, LINK):
            start, path = self._reach.named(from_id, session)
            end, _ = self._reach.named(to_id, session)
        said = link_of(type, end, confidence, reasoning, source, synthesis_id)
        must_lead_on(start, said)
        ((action, link),), entered = self._put(path, [(start, said)], session, merged)
        return {**row_of(start, link), "action": action, "warnings": [*entered.warnings]}

    def take_in(self, links: object, session: Session, *, is_trial: bool = False) -> Row:
        """Write down links that somebody suggests, any JSON, or only tell what would be. Raises NotPermitted,
        BackendDown."""
        self._guard.require_change(session, f"{FOLDER}/memory.md", LINK)
        dropped: Rows = []
        said = self._known(suggested_in(links, dropped), dropped, session)
        ingested: Rows = []
        kept: Rows = []
        warnings: dict[str, None] = {}
        for path, some in said.items():
            try:
                done, entered = self._put(path, some, session, _from_the_same, is_trial=is_trial)
            except BackendDown:
                raise
            except NotebookError as error:
                reason = error.reason if isinstance(error, EditFailed) else str(error)
                dropped += [{"link": row_of(start, link), "reason": reason} for start, link in some]
                continue
            warnings |= dict.fromkeys(entered.warnings)
            for (start, _), (action, link) in zip(some, done, strict=True):
                (kept if action == KEPT else ingested).append({**row_of(start, link), "action": action})
        return {"ingested": ingested, "kept": kept, "dropped": dropped, "warnings": [*warnings]}

    def _known(self, said: Sequence[Said], dropped: Rows, session: Session) -> Mapping[str, Sequence[Said]]:
        """By the path of its file, the links that start there; of those whose ends are both there."""
        memories = self._reach.of({one for start, link in said for one in (start, link.to)}, session)
        found: dict[str, list[Said]] = defaultdict(list)
        for start, link in said:
            missing = [one for one in (start, link.to) if one not in memories]
            reason = (
                f"there is no memory {short(missing[0])!r}" if missing else self._forbidden(memories[start], session)
            )
            if reason:
                dropped.append({"link": row_of(start, link), "reason": reason})
            else:
                found[memories[start].path].append((start, link))
        return found

    def _forbidden(self, memory: Memory, session: Session) -> str:
        return (
            "" if self._guard.may(session, "write", memory.path) else f"{memory.path} is not for this session to change"
        )

    def _put(
        self,
        path: str,
        said: Sequence[Said],
        session: Session,
        settled: Settled,
        *,
        is_trial: bool = False,
    ) -> tuple[list[tuple[str, Link]], Entered]:
        """What was done with each of the links of one file, in one edit of it; in a trial, what would be."""
        self._guard.require_change(session, path, LINK)
        done: list[tuple[str, Link]] = []

        def make(raws: Mapping[str, bytes | None]) -> Sequence[Text]:
            before = raws[path]
            if before is None:
                raise NoSuchNote(f"{path} is gone")
            done.clear()
            after = before
            for _, link in said:
                after, action, now = with_link(path, after, link, settled)
                done.append((action, now))
            told = f"Link to {said[0][1].to}" if len(said) == 1 else f"Link to {len(said)} memories"
            return [Text(path, before, before if is_trial else after, "link", reason=said[0][1].type, told=told)]

        return done, self._editing.put_all(lambda: [path], make, session)


def _from_the_same(known: Link, said: Link) -> Link:
    """What a person or another synthesis said is not said over; who said a thing before may say it better."""
    return merged(known, said) if known.source == said.source else known
