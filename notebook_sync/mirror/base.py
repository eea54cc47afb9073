"""The content store's port: what the sync engine and the readers may ask of SQLite or MongoDB.

Glossary

row         what the store keeps of one note: its document, what is known of its file, and what is operational
document    a dict, the note as readers see it (shape below)
known       the part of a row that tells whether its file changed: digest, stamp, parser revision (law 5)
base        the digest a writer believes the row has; a write whose base is no longer true *loses* and changes nothing
serial      an integer that grows with every write to a row
event       the serial of the write that last changed a row's digest or path, or made or ended it: who writes the same
            once more tells of no other event
pending     the action whose ref is not yet in hot memory; "" when mirror and refs agree about the row
tombstone   a row whose note is gone and whose ref is not yet removed; readers never see it
stale       why the file as it now is was refused; the row still holds the last good note
operational version, history, usage, and a `created_at` that no frontmatter names: not derivable from the files alone

Document shape (also what MongoDB holds, with `_id` for `id`)

    {id, wants, path, collection, title, summary, content,
     sections: [{heading, level, anchor, line, start, end, content, token_count}],   child headings included
     code, language, description, related_page,                             code_snippets
     source_url, key_findings, confidence, related_pages,                   research_notes
     metadata: {created_by, created_at, created_from, updated_at, version, tags, status, word_count, token_count,
                links, extra, provenance},     created_from: frontmatter, git or file; provenance: None or "external"
     history: [{version, timestamp, summary, changed_by}],                  the last 50, oldest first
     source: {path, digest, size, mtime_ns, ctime_ns, inode, revision, has_own_id, broken},
     problems: [{line, message, severe}], stale}                                    stale: None or the reason

`path` is "" where another note took the row's place and its own file was not looked at since; `source.path` stays.
Times are aware UTC datetimes with millisecond precision, which is what BSON keeps.
Every method may raise `BackendDown`; no adapter lets a driver's own error out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from notebook_sync.files.note import Note, Ref, Seed, Stamp

Document = dict[str, Any]
# Of words in title, summary, content and code: a word in a title says most about what a note is for.
WEIGHTS = (8.0, 2.0, 1.0, 1.0)
# What every store can count to.
LARGEST_LIMIT = 2**31 - 1
# What notes are told in the order of: their latest change, or when they were made.
Order = Literal["changed", "made"]


class Known(NamedTuple):
    """What the mirror knows of one file."""

    id: str
    wants: str
    has_own_id: bool
    path: str
    digest: str
    stamp: Stamp
    revision: int
    version: int
    stale: str = ""
    problems: int = 0
    broken: bool = False
    pending: str = ""


class Name(NamedTuple):
    """What one note answers to."""

    path: str
    title: str
    wants: str


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """One entry of a note's history, without its version, which the store counts itself."""

    timestamp: datetime
    summary: str
    changed_by: str = "owner"


@dataclass(frozen=True, slots=True)
class Put:
    """Make the row `id` say what `note` says, read from a file with `stamp`.

    base: the digest the row has now; None when no row is expected. base_version: its version, which tells a row that
    came back to that digest from one that never left it; None where any will do.
    replaces: the id of the row this file had before, which ends without an announcement (its ref is removed); with one,
    as deleted, where the note went into a channel, of which nobody is told.
    Where no row has the id, version, history, usage and created_at come from there. A tombstone of the id is the note's
    own past and comes first, so that two notes that swap names one after the other do not swap their pasts.
    A row whose digest already equals the note's is rewritten without a new version or breadcrumb.
    """

    id: str
    note: Note
    stamp: Stamp
    base: str | None
    action: str
    breadcrumb: Breadcrumb
    replaces: str | None = None
    seed: Seed | None = None
    base_version: int | None = None


@dataclass(frozen=True, slots=True)
class Touch:
    """The file's bytes are as known, its stamp is not. Clears `stale`."""

    id: str
    base: str
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class MarkStale:
    """The file as it now is was refused for `reason`; the row keeps the last good note."""

    id: str
    base: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remove:
    """The file is gone. The row becomes a tombstone until its ref is removed."""

    id: str
    base: str


Write = Put | Touch | MarkStale | Remove


@dataclass(frozen=True, slots=True)
class Filter:
    """Which notes a reader wants; what is left empty admits all. Every value is data.

    tags: any of them, exactly. since, until: aware; changed at `since` or later, and before `until`. made_since,
    made_until: likewise, of when it was made.
    below: folders, of which any must hold the note; not_below: none may, and a note whose path another one took is
    left out too, for nothing tells where it lies. topic, session_id: as the frontmatter of a note in channels says.
    not_at: paths of which none may be the note's.
    of_channels: of the notes in channels, only those below these folders; None for all of them.
    after: the `updated_at` and the id of a row; only those that stand behind it in the order of changes.
    """

    collections: tuple[str, ...] = ()
    status: str = ""
    tags: tuple[str, ...] = ()
    created_by: str = ""
    since: datetime | None = None
    until: datetime | None = None
    made_since: datetime | None = None
    made_until: datetime | None = None
    below: tuple[str, ...] = ()
    not_below: tuple[str, ...] = ()
    not_at: tuple[str, ...] = ()
    topic: str = ""
    session_id: str = ""
    of_channels: tuple[str, ...] | None = None
    after: tuple[datetime, str] | None = None


ALL = Filter()


class Mirror(Protocol):
    """The content store. One instance may be used from several threads; several processes may share one store."""

    name: str
    """For people, without secrets: `MongoDB at localhost:27017/aether_notebook`, `SQLite`."""

    def known(self, places: Iterable[str] | None = None) -> list[Known]:
        """Rows whose path is one of `places` or lies below one of them; all rows for None. No tombstones."""

    def claimants(self, ids: Iterable[str]) -> list[Known]:
        """Rows that have or want one of `ids`. No tombstones."""

    def apply(self, writes: Sequence[Write]) -> list[Write]:
        """Write all, each by itself atomic and idempotent, and return those that lost.

        A Put over a tombstone revives its row. A Put that succeeds adds 1 to `version` and a breadcrumb exactly
        once per change of digest, however many processes try the same. Put, Touch and Remove set `pending`.
        A Put wins only if the row's digest and version are its base's, or the digest is already the note's; a note that
        cannot be stored (too large for the store) raises UnreadableFile naming the path, after the others were written.
        Only a Put's note can be at fault: whatever else a store refuses is `BackendDown`.
        """

    def pending(self, ids: Iterable[str] | None = None) -> list[Ref]:
        """Refs of rows, tombstones included, whose `pending` is not empty; among `ids`, or all for None."""

    def refs_written(self, refs: Sequence[Ref]) -> list[Ref]:
        """These refs are in hot memory: clear `pending`, drop tombstones; leave rows whose serial moved on.

        Returns what hot memory should have been told instead: the refs of rows that moved on, as they are now, and
        `deleted` ones for rows that are no more.
        """

    def refs(self) -> Iterator[Ref]:
        """The ref of every row that is not a tombstone, in id order, whatever is pending."""

    def get(self, note_id: str) -> Document | None:
        """The document of one note."""

    def get_many(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents of these notes, by id; unknown ids are left out."""

    def documents(self) -> Iterator[Document]:
        """Every document, in id order, streamed."""

    def paths(self) -> Iterator[str]:
        """The path of every row that has one, in no order."""

    def names(self) -> Iterator[Name]:
        """The names of every row that has a path, in no order."""

    def light(self, filter: Filter = ALL, limit: int = 50, by: Order = "changed") -> list[Document]:
        """Light fields of notes: id, path, collection, title, summary, tags, updated_at, status, created_by,
        word_count, version, and provenance where there is one. Where there are such, also topic, session_id,
        confidence and always created_at of a note in channels, language of a code snippet, source_url of a research
        note. Never content. None for a limit below 1.

        Newest `updated_at` first, then by id; `made` puts the newest `created_at` before both, and is quick among
        notes in channels alone."""

    def light_many(self, ids: Sequence[str], filter: Filter = ALL) -> dict[str, Document]:
        """The light fields of those of these notes that the filter admits, by id."""

    def search(self, query: str, limit: int = 10, filter: Filter = ALL) -> list[Document]:
        """Notes that match the words of `query`, best first: the fields of `light` and a `score`, higher is better.
        The query is data: no punctuation mark in it is an operator. None for a limit below 1. Where the filter names
        `of_channels`, files that the prompt shows are left out: sessions are not shown all that they say."""

    def rarities(self, query: str) -> dict[str, float]:
        """How much each word of the query adds to a score, by how rare it is in the notes that everybody may read."""

    def counts(self) -> dict[str, int]:
        """`{"notes", "stale", "problems", "pending"}`, and one key per collection as `collection:NAME`."""

    def note_count(self) -> int:
        """How many notes there are: rows that are no tombstones."""

    def store_id(self) -> str:
        """An id made with the store, another after it was lost: hot memory keeps it to know whose refs it has."""

    def close(self) -> None:
        """Release connections. Twice is allowed."""
