"""Carry out a plan in the caller's transaction: rows of notes and facts, and what is recorded of each change."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from notebook_sync.model import HISTORY_LIMIT, UNSETTLED, collection_of
from notebook_sync.permissions import is_private, may
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is, Row, both
from notebook_sync.sync.diff import Change, Delete, Known, Put, Stale, Touch
from notebook_sync.sync.journal import agent_of, changed_by, crumb, stream_entry, what_happened

if TYPE_CHECKING:
    from notebook_sync.sync.project import Projection

# What an event names of a batch: a checkout touches thousands of notes.
_MOST_NAMED = 100
_SESSIONS = (Session.task(), Session.external())
_INTENT = ("id", "path", "digest", "session", "agent", "reason")


@dataclass(frozen=True, slots=True)
class Applier:
    """Writes changes to one index."""

    index: Index
    analyzer: WordAnalyzer
    settings: Settings

    def apply(
        self, changes: Sequence[Change], *, created: Mapping[str, datetime] | None = None, is_quiet: bool = False
    ) -> None:
        """Write the changes. `created` has the first commit's time of new notes, where it is known. A quiet batch is of
        a first sync or a rebuild: new notes are no news, and the stream has no lines of it."""
        documents, now = self.index.documents, datetime.now(UTC)
        for change in changes:
            match change:
                case Touch(known, stamp, mtime):
                    has_new_time = known.stamp != UNSETTLED and known.stamp.mtime_ns != stamp.mtime_ns
                    is_news = bool(known.stale) or has_new_time
                    seen = {"stamp": list(stamp), "updated_at": mtime, "stale": ""}
                    documents.update(Is("id", "=", known.id), set=seen, stamp=is_news)
                case Stale(_, reason, known) if known is not None and known.stale != reason:
                    documents.update(Is("id", "=", known.id), set={"stale": reason}, stamp=True)
        puts = [change for change in changes if isinstance(change, Put)]
        ends = [change.known for change in changes if isinstance(change, Delete)]
        if puts or ends:
            before = self._rows_before(puts, ends)
            # Of a note that moved, the old path has an end, too.
            left = dict.fromkeys(row.path for row in (*(put.past for put in puts), *ends) if row is not None)
            intents = self._intents_of(puts, left)
            self._put(puts, before, created or {})
            documents.delete([row.id for row in ends])
            self._apply_facts({**left, **{put.look.path: put.projection for put in puts}}, intents, now)
            self._record(puts, ends, before, intents, now, is_quiet=is_quiet)

    def note_first_sync(self, name: str, notes: int) -> None:
        """The one stream line for a folder that was full before it was a notebook."""
        now = datetime.now(UTC)
        note: Row = dict.fromkeys(("id", "digest", "path", "audience", "collection", "status", "provenance"), "")
        note |= {"title": name, "summary": f"{notes:,} notes indexed", "version": 1, "updated_at": now}
        self.index.stream.put([stream_entry(note, "created", now, self.settings.timezone)])

    def update_audiences(self) -> None:
        """Give every row the audience that the settings state now; also rows whose file is damaged or missing."""
        from notebook_sync.sync.facts import most_open, places_of
        from notebook_sync.sync.project import audience, with_fact_words, with_words

        documents, places, facts = self.index.documents, self.index.fact_places, self.index.facts
        rows = documents.tuples(("id", "path", "audience"))
        now = {path: audience(path, self.settings.prompt) for _, path, _ in rows if path}
        for id in [id for id, path, was in rows if now.get(path, was) != was]:
            row = documents.get([id])[id]
            documents.put([with_words({**row, "audience": now[row["path"]]}, self.analyzer)])
        moved = [row for row in places.find() if now.get(row["path"], row["audience"]) != row["audience"]]
        places.put([{**row, "audience": now[row["path"]]} for row in moved])
        for id, stated in places_of(self.index, sorted({row["fact"] for row in moved})).items():
            row = facts.get([id])[id]
            facts.put([with_fact_words({**row, "audience": most_open(stated)}, self.analyzer)])

    def _rows_before(self, puts: Sequence[Put], ends: Sequence[Known]) -> dict[str, Row]:
        """The rows that change or end, by id, with the text of those that get another."""
        documents = self.index.documents
        pasts = [row.id for put in puts for row in (put.onto, put.was) if row is not None] + [row.id for row in ends]
        if not pasts:
            return {}
        before = {row["id"]: row for row in self.index.gone(pasts)} | documents.get(pasts, heavy=False)
        edited = [put.onto.id for put in puts if put.onto is not None and not put.is_same]
        for row in documents.find(Is("id", "in", edited), fields=("id", "content", "sections")) if edited else ():
            before[row["id"]] |= row
        return before

    def _put(self, puts: Sequence[Put], before: Mapping[str, Row], created: Mapping[str, datetime]) -> None:
        documents = self.index.documents
        documents.delete([put.was.id for put in puts if put.was is not None and put.onto is not None])
        documents.rename({put.was.id: put.id for put in puts if put.was is not None and put.onto is None})
        rows = [{**put.projection.document, "id": put.id} for put in puts]
        for put, row in zip(puts, rows, strict=True):
            if row["created_at"] is None:
                row["created_at"] = created.get(put.look.path) or row["updated_at"]
            elif put.past is not None and before[put.past.id]["created_at"] != row["created_at"]:
                documents.update(Is("id", "=", put.id), set={"created_at": row["created_at"]})
        documents.put(rows)

    def _apply_facts(self, files: Mapping[str, Projection | None], intents: Mapping[str, Row], now: datetime) -> None:
        files = {path: found for path, found in files.items() if collection_of(path) == "facts"}
        if files:
            from notebook_sync.sync.facts import apply_facts  # most batches have no facts, and loading takes time

            actors = {path: changed_by(intents.get(path)) for path in files}
            apply_facts(self.index, files, self.analyzer, now, actors)

    def _intents_of(self, puts: Sequence[Put], left: Mapping[str, None]) -> dict[str, Row]:
        """By path, the open intent of the tool that made the change: it names path and digest."""
        digests = {**dict.fromkeys(left, ""), **{put.look.path: put.projection.document["digest"] for put in puts}}
        is_open = both(Is("path", "in", list(digests)), Is("committed", "=", 0))
        rows = self.index.intents.find(is_open, order=("at",), fields=_INTENT)
        found = {row["path"]: row for row in rows if row["digest"] == digests[row["path"]]}
        if found:
            self.index.intents.update(Is("id", "in", [row["id"] for row in found.values()]), set={"applied": 1})
        return found

    def _record(
        self,
        puts: Sequence[Put],
        ends: Sequence[Known],
        before: Mapping[str, Row],
        intents: Mapping[str, Row],
        now: datetime,
        *,
        is_quiet: bool,
    ) -> None:
        """Breadcrumbs; stream lines, of notes that no kind of session is denied as a whole; and one event for all that
        was changed by hand, as tools record their own."""
        news = [
            put for put in puts if not (put.is_same and not put.is_moved) and (put.past is not None or not is_quiet)
        ]
        after = self.index.documents.get([put.id for put in news], heavy=False) if news else {}
        crumbs, lines = [], [(before[row.id], "deleted", row.path) for row in ends]
        for put in news:
            note, was = after[put.id], before[put.past.id] if put.past is not None else None
            summary, action = what_happened(put, was)
            crumbs.append(crumb(note, summary, now if put.is_moved else put.look.mtime, intents.get(put.look.path)))
            crumbs[-1]["id"] += "+" if put.is_moved else ""  # a move makes no version
            lines.append((was if action == "deleted" and was is not None else note, action, put.look.path))
        self.index.history.put(crumbs)
        over = [f"{row['note']}@{row['version'] - HISTORY_LIMIT}" for row in crumbs]
        self.index.history.delete([*over, *(f"{id}+" for id in over)])
        if is_quiet:
            return
        entries = [
            stream_entry(note, action, now, self.settings.timezone, agent_of(intents.get(path)))
            for note, action, path in lines
            if not is_private(at := note["path"] or "")
            and all(may(session, "read", at, self.settings.prompt) for session in _SESSIONS)
        ]
        self.index.stream.put(entries)
        paths = [path for _, _, path in lines if path not in intents]
        if paths:
            id = f"{time.time_ns():016x}{secrets.token_hex(4)}"
            event: dict[str, Any] = {"id": id, "key": id, "at": now, "kind": "changed", "session": "owner", "agent": ""}
            named = {"paths": paths[:_MOST_NAMED], "more": max(0, len(paths) - _MOST_NAMED)}
            self.index.events.put([{**event, "path": paths[0] if len(paths) == 1 else "", "fields": named}])
