"""Hot memory's port: one light ref per note and the daily stream, never a note's content.

Glossary

ref         a few fields about a note (`files.note.Ref`); the mirror can always write it again
entry       one line of the daily stream: `{id, content, source, tags, score, timestamp}`, and for a note also
            `action` and the ref's fields under `ref`
day         `YYYY-MM-DD` in the notebook's timezone
owner       the `store_id` of the mirror whose refs these are; a different or missing one means: write them all again

All writes are idempotent; the stream is at least once, and an entry's id is a digest of what it tells
(the note's id, serial, version, action, digest and path), so that a reader drops a repeated one. The serial tells one
event from another that says the same: a note may be moved there and back twice in a day.
Every method may raise `BackendDown`; no adapter lets a driver's own error out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from notebook_sync.files.note import Ref

Entry = dict[str, Any]


class Refs(Protocol):
    """Hot memory. One instance may be used from several threads."""

    name: str
    """For people, without secrets."""

    def write(self, refs: Sequence[Ref], *, announce: bool = True) -> None:
        """Write or remove (`deleted`) each ref; with `announce`, append a stream entry per ref whose action is one of
        created, updated, moved, deleted, and opened, which a host may tell and no sync does."""

    def get(self, note_id: str) -> dict[str, Any] | None:
        """The ref as stored: str values as in the field list of the hash, or None."""

    def digests(self) -> Iterator[tuple[str, str, int]]:
        """`(id, digest, version)` of every ref, streamed, without scanning the server's other keys."""

    def recent(self, limit: int = 20) -> list[dict[str, Any]]:
        """The refs changed last, newest first; none for a limit below 1."""

    def day(self, day: str) -> list[Entry]:
        """The stream of one day, oldest first, each entry once, where it was told first."""

    def owner(self) -> str:
        """The `store_id` these refs belong to, or "" when hot memory is new or was emptied."""

    def adopt(self, store_id: str, keep: Iterable[str]) -> None:
        """Declare that the refs now belong to `store_id`, after removing every ref whose id is not in `keep`.

        `keep` is read after the refs that are there were listed: one that is written meanwhile is not removed.
        """

    def close(self) -> None:
        """Release connections. Twice is allowed."""
