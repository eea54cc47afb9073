"""The daily stream: what an agent logs, what a day holds, what is remembered of it.

What the stream tells of notes a session is told only as far as it may read the note, and of a file of the prompt no
more than the prompt shows; in between nothing tells that something was left out.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from notebook_sync.errors import UnreadableFile, UsageError
from notebook_sync.files.note import Note
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import LARGEST_LIMIT
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.showing import note_shown, sees_all
from notebook_sync.refs.base import Entry, Meaning, Model, Recalled, Refs
from notebook_sync.refs.entry import NOTEBOOK, new_entry
from notebook_sync.refs.ranking import POOL, asked_words
from notebook_sync.search.query_meaning import Means, QueryMeanings
from notebook_sync.sessions import KINDS, Session
from notebook_sync.settings import Settings

LOG, TODAY, RECALL = "notebook_log", "notebook_today", "notebook_recall"
LARGEST_ENTRY_BYTES = 8 << 10
_MOST_TAGS = 20
_TAG = re.compile(r"\w[\w.-]{0,49}")
_LONGEST_SOURCE = 100
_HALF = re.compile("[\ud800-\udfff]")
# What entries of notes say, and what only the owner signs with.
_RESERVED_SOURCES = frozenset({NOTEBOOK, "owner"})
# An agent says where something is from in plain words, so that none looks like another, and with none that names who
# speaks.
_PLAIN_WORDS = re.compile(r"[a-z0-9._-]+(?: [a-z0-9._-]+)*")
_EMPTIED = "hot memory was emptied: what was logged is gone, and notes are found again after: notebook-sync sync"
_SPEAKERS = frozenset({*KINDS, NOTEBOOK, "agent", "user", "human", "person", "system", "assistant"})


@dataclass(frozen=True, slots=True)
class Day:
    """The stream of one day, oldest first. `lost` says that a part of it is gone; "" where nothing is. `earlier` is how
    many entries there are before these."""

    day: str
    entries: list[Entry]
    lost: str = ""
    earlier: int = 0


class Stream:
    """The stream of one notebook. Every method raises NotPermitted, and BackendDown where hot memory is away."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        refs: Callable[[], Refs],
        meanings: QueryMeanings,
        is_emptied: Callable[[Refs], bool],
    ) -> None:
        """`is_emptied` tells of a hot memory that was emptied since anybody noted that."""
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._refs = refs
        self._meanings = meanings
        self._is_emptied = is_emptied

    def log(
        self,
        content: str,
        session: Session,
        *,
        source: str,
        tags: Sequence[str],
        score: float,
        keep: bool,
    ) -> Entry:
        """Add an entry to today's stream, or to long-term memory with `keep`; the entry. Raises UsageError."""
        self._guard.require_in_stream(session, "add", LOG)
        entry = checked_entry(content, session, source, tags, score, datetime.now(UTC))
        if keep:
            self._refs().keep(entry)
        else:
            self._refs().log(entry)
        return entry

    def today(self, session: Session, moment: datetime | None, limit: int) -> Day:
        """The last entries of the day of a moment, in the notebook's timezone; of today for None. Raises UsageError for
        a limit out of range."""
        self._guard.require_in_stream(session, "read", TODAY)
        if not 0 <= limit <= LARGEST_LIMIT:
            raise UsageError(f"a limit is a number from 0 to {LARGEST_LIMIT:,}")
        asked = (moment or datetime.now(UTC)).astimezone(self._settings.timezone).date()
        refs = self._refs()
        known = [entry for entry in refs.day(asked.isoformat()) if self.is_told(entry, session)]
        earlier = max(0, len(known) - limit)
        entries = list(self.told(known[earlier:], session))
        return Day(asked.isoformat(), entries, self._lost(asked, self.lost_at(refs)), earlier)

    def lost_at(self, refs: Refs) -> datetime | None:
        """When hot memory was found emptied the last time, which may be now; None for never."""
        return datetime.now(UTC) if self._is_emptied(refs) else refs.lost()

    def recall(
        self, query: str, session: Session, *, tags: Sequence[str], since: datetime | None, limit: int
    ) -> Recalled:
        """The entries that fit `query` best. `partial` also says why its meaning was not compared. Raises
        UsageError."""
        self._guard.require_in_stream(session, "read", RECALL)
        if not 0 <= limit <= POOL:
            raise UsageError(f"a limit is a number from 0 to {POOL}")
        tags = _checked_tags(tags)
        query, now = _storable(query), datetime.now(UTC)
        means = self._meanings.of(query) if limit and asked_words(query) else ""
        # What the session may not read leaves no gap, and what it is shown less of is found by that alone.
        refs = self._refs()
        found = refs.recall(
            query,
            tags=tags,
            since=since,
            limit=limit,
            now=now,
            meaning=None if isinstance(means, str) else _meaning(means),
            told=lambda entries: self.told(entries, session),
        )
        less = f"found by words alone: {means}" if isinstance(means, str) and means else ""
        gone = _EMPTIED if self._is_emptied(refs) else ""
        return Recalled(found.results, "; ".join(filter(None, [gone, found.partial, less])))

    def is_told(self, entry: Entry, session: Session) -> bool:
        """Whether the session is told of the entry at all: of a note, if it may read it."""
        path = path_of(entry)
        return session.kind == "owner" or path is None or (path != "" and self._guard.may(session, "read", path))

    def told(self, entries: Iterable[Entry], session: Session) -> Iterator[Entry]:
        """The entries, as the session is told them, that it is told of."""
        for entry in entries:
            if self.is_told(entry, session):
                path = path_of(entry)
                is_whole = path is None or sees_all(session, path, self._settings.prompt)
                yield entry if is_whole else self._shown(entry, path or "")

    def _shown(self, entry: Entry, path: str) -> Entry:
        """The entry with what the note at `path` shows now: what it said then may have been hidden since."""
        note = self._note_shown(path)
        title = note.title if note else path
        content = f"[{title}] {note.summary}" if note else f"[{path}]"
        return {**entry, "content": content, "ref": {**entry["ref"], "title": title}}

    def _note_shown(self, path: str) -> Note | None:
        try:
            text = self._vault.read(path)[0].decode(errors="replace")
        except (FileNotFoundError, UnreadableFile):
            return None
        return note_shown(path, text, self._settings.prompt, self._settings.local_now())

    def _lost(self, day: date, emptied: datetime | None) -> str:
        """What is gone of a day whose stream was told, from its beginning, to a hot memory that was emptied since."""
        zone = self._settings.timezone
        if emptied is None or emptied <= datetime.combine(day, time(), zone):
            return ""
        return f"the stream before {emptied.astimezone(zone):%Y-%m-%d %H:%M} is gone: hot memory was emptied"


def _meaning(means: Means) -> Meaning:
    """As hot memory takes it. A server is not asked for more than the query while somebody waits."""
    embedder = means.embedder
    embed = embedder.embed if embedder.is_local else None
    return Meaning(Model(embedder.model, len(means.vector)), means.vector, embedder.unrelated, embed)


def checked_entry(
    content: str, session: Session, source: str, tags: Sequence[str], score: float, now: datetime
) -> Entry:
    """An entry that a session logs. Raises UsageError where a part of it is empty, too long or no word."""
    if half := _HALF.search(content):
        where = f"(U+{ord(half[0]):04X}) at position {half.start()}"
        raise UsageError(f"what is to be logged holds half a character {where}; leave it out")
    content = _storable(content)
    if not content.strip():
        raise UsageError("there is nothing to log; say in a sentence what happened")
    if (size := len(content.encode())) > LARGEST_ENTRY_BYTES:
        raise UsageError(
            f"{size:,} bytes are more than the {LARGEST_ENTRY_BYTES:,} of an entry; write it as a page, and log where"
        )
    if isinstance(score, bool) or not 0 <= score <= 1:  # nor is a number that is none
        raise UsageError(f"a score is a number from 0 to 1, not {score!r}")
    return new_entry(
        uuid.uuid4().hex,
        content,
        now=now,
        source=_checked_source(source, session),
        tags=_checked_tags(tags),
        score=score,
        agent=session.agent,
    )


def path_of(entry: Mapping[str, Any]) -> str | None:
    """The path of the note that an entry tells of; None where it tells of none. "" is a note without a place."""
    ref = entry.get("ref")
    if isinstance(ref, Mapping):
        return str(ref.get("path", ""))
    return "" if entry.get("source") == NOTEBOOK else None


def _checked_tags(tags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise UsageError(f"tags are a list, as in [{tags[:60]!r}]")
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise UsageError(
                f"{tag[:60]!r} is no tag; use one word of at most 50 letters, digits, and _.- between them"
            )
    found = tuple(dict.fromkeys(tags))
    if len(found) > _MOST_TAGS:
        raise UsageError(f"{len(found)} tags are more than the {_MOST_TAGS} of an entry; leave out the least telling")
    return found


def _checked_source(source: str, session: Session) -> str:
    """Where an entry is from. None is signed with another's name: `agent` tells who logged it in any case."""
    source = source.strip()
    if source in ("", session.changed_by):
        return session.changed_by
    if len(source) > _LONGEST_SOURCE or not source.isprintable():
        raise UsageError(f"a source is one line of at most {_LONGEST_SOURCE} characters, as in: harbour radio")
    if source.casefold() in _RESERVED_SOURCES or source.casefold().startswith("agent:"):
        raise UsageError(f"{source!r} is no source of yours; say where it is from, as in: harbour radio")
    if session.kind == "owner":
        return source
    if not _PLAIN_WORDS.fullmatch(source):
        raise UsageError(f"a source is plain words of a to z, digits, and ._-, as in: harbour radio; not {source!r}")
    if named := _SPEAKERS.intersection(re.split(r"[ ._-]+", source)):
        raise UsageError(
            f"a source says where something is from, and {min(named)!r} is a name for who speaks; as in: harbour radio"
        )
    return source


def _storable(text: str) -> str:
    """Text that every store takes: without NUL and lone surrogates."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
