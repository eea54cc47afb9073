"""Carry out a plan in the caller's transaction: rows of notes and facts, and what is recorded of each change, which is
a breadcrumb in the note's history, a line in the daily stream, and one event for all that was changed by hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo

from notebook_sync.files.names import audience, copy_of, is_announced
from notebook_sync.model import HISTORY_LIMIT, UNSETTLED, collection_of
from notebook_sync.permissions import guarded_paths, is_private
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.sessions import maker_of
from notebook_sync.settings import Settings
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is, Row, both, to_milliseconds
from notebook_sync.sync.diff import Change, Delete, Known, Projection, Put, Stale, Touch

# The breadcrumb of a note that left a channel: what was before is not for all who may read it now.
MOVED_OUT = "Moved out of a channel"
# The source of lines about notes.
NOTEBOOK = "notebook"
# What an event names of a batch: a checkout touches thousands of notes.
_MOST_NAMED = 100
# Headings that a breadcrumb names of a kind, and characters of a summary in a stream line.
_NAMED, _SUMMARY = 3, 200
_SCORE = 0.8
# What is read of an intent, and of a row that changes or ends.
_INTENT = ("id", "path", "digest", "session", "agent", "reason")
_COMPARED = ("title", "summary", "tags", "status", "provenance")
_BEFORE = (*_COMPARED, "id", "path", "audience", "collection", "digest", "updated_at", "version", "created_at")
_TEXT = ("content", "sections", "fields")
# What is read from the text where the frontmatter does not name it.
_DERIVED = frozenset(("summary", "language", "key_findings"))


class Applier:
    """Writes changes to one index."""

    def __init__(self, index: Index, analyzer: WordAnalyzer, settings: Settings) -> None:
        self.index = index
        self.analyzer = analyzer
        self.settings = settings

    def apply(
        self, changes: Sequence[Change], *, created: Mapping[str, datetime] | None = None, is_quiet: bool = False
    ) -> None:
        """Write the changes. `created` has the first commit's time of new notes, where it is known. A quiet batch is of
        a first sync or a rebuild: new notes are no news, and the stream has no lines of it."""
        documents = self.index.documents
        for change in changes:
            match change:
                case Touch(known, stamp, mtime):
                    has_new_time = known.stamp != UNSETTLED and known.stamp.mtime_ns != stamp.mtime_ns
                    seen = {"stamp": stamp, "updated_at": mtime, "stale": ""}
                    documents.update(Is("id", "=", known.id), set=seen, stamp=bool(known.stale) or has_new_time)
                case Stale(_, reason, known) if known is not None and known.stale != reason:
                    documents.update(Is("id", "=", known.id), set={"stale": reason}, stamp=True)
        puts = [change for change in changes if isinstance(change, Put)]
        ends = [change.known for change in changes if isinstance(change, Delete)]
        if puts or ends:
            before = self._rows_before(puts, ends)
            # Of a note that moved, the old path has an end, too.
            files: dict[str, Projection | None] = {
                row.path: None for row in (*(put.past for put in puts), *ends) if row is not None
            }
            files |= {put.look.path: put.projection for put in puts}
            intents = self._intents_of(files)
            self._put(puts, before, created or {})
            documents.delete([row.id for row in ends])
            self._apply_facts(files, intents)
            self._record(puts, ends, before, intents, is_quiet=is_quiet)

    def note_first_sync(self, name: str, notes: int) -> None:
        """The one stream line for a folder that was full before it was a notebook; none again where the index was lost
        and the stream comes from its dump."""
        if self.index.stream.count(
            both(Is("source", "=", NOTEBOOK), Is("note", "=", ""), Is("action", "=", "created"))
        ):
            return
        now = datetime.now(UTC)
        note: Row = dict.fromkeys(("id", "digest", "path", "audience", "collection", "status", "provenance"), "")
        note |= {"title": name, "summary": f"{notes:,} notes indexed", "version": 1, "updated_at": now}
        self.index.stream.put([stream_entry(note, "created", now, self.settings.timezone)])

    def update_audiences(self) -> None:
        """Give every row the audience that the settings state now; also rows whose file is damaged or missing."""
        from notebook_sync.sync.facts import most_open, places_of  # not loaded for a look that finds nothing new
        from notebook_sync.sync.project import with_words

        documents, places, facts = self.index.documents, self.index.fact_places, self.index.facts
        rows = documents.tuples(("id", "path", "audience"))
        now = {path: audience(path, self.settings.prompt) for _, path, _ in rows if path}
        for id in [id for id, path, was in rows if now.get(path, was) != was]:
            row = documents.get([id])[id]
            copied = copy_of(row["path"], guarded_paths(self.settings.prompt))
            documents.put([with_words({**row, "audience": now[row["path"]], "copy_of": copied}, self.analyzer)])
        moved = [row for row in places.find() if now.get(row["path"], row["audience"]) != row["audience"]]
        places.put([{**row, "audience": now[row["path"]]} for row in moved])
        for id, stated in places_of(self.index, sorted({row["fact"] for row in moved})).items():
            row = facts.get([id])[id]
            facts.put([with_words({**row, "audience": most_open(stated)}, self.analyzer)])

    def _rows_before(self, puts: Sequence[Put], ends: Sequence[Known]) -> dict[str, Row]:
        """The rows that change or end, by id; with the text of those that may get another, of all that end it could be
        too much."""
        pasts = {row.id for put in puts for row in (put.onto, put.was) if row is not None}
        found = self.index.documents.find(Is("id", "in", pasts), fields=_BEFORE + _TEXT)
        found += self.index.documents.find(Is("id", "in", [row.id for row in ends]), fields=_BEFORE)
        before = {row["id"]: row for row in found}
        ended = pasts - before.keys()
        return before | ({row["id"]: row for row in self.index.documents.ended(Is("id", "in", ended))} if ended else {})

    def _put(self, puts: Sequence[Put], before: Mapping[str, Row], created: Mapping[str, datetime]) -> None:
        documents = self.index.documents
        moved = [(put, put.was) for put in puts if put.was is not None]
        documents.delete([was.id for put, was in moved if put.onto is not None])
        documents.rename({was.id: put.id for put, was in moved if put.onto is None})
        rows = [{**put.projection.document, "id": put.id} for put in puts]
        for put, row in zip(puts, rows, strict=True):
            if row["created_at"] is None:
                row["created_at"] = created.get(put.look.path) or row["updated_at"]
            elif put.past is not None and before[put.past.id]["created_at"] != row["created_at"]:
                documents.update(Is("id", "=", put.id), set={"created_at": row["created_at"]})
            if row["collection"] == "memories":
                row["score"] = row["fields"]["priority"] / 10  # until it is computed
        documents.put(rows)

    def _apply_facts(self, files: Mapping[str, Projection | None], intents: Mapping[str, Row]) -> None:
        files = {path: found for path, found in files.items() if collection_of(path) == "facts"}
        if files:
            from notebook_sync.sync.facts import apply_facts  # most batches have no facts, and loading takes time

            actors = {path: changed_by(intents.get(path)) for path in files}
            apply_facts(self.index, files, self.analyzer, datetime.now(UTC), actors, self.settings.memory.decay_rate)

    def _intents_of(self, files: Mapping[str, Projection | None]) -> dict[str, Row]:
        """By path, the open intent of the tool that made the change: it names path and digest."""
        is_open = both(Is("path", "in", list(files)), Is("committed", "=", 0))
        digests = {path: found.document["digest"] if found else "" for path, found in files.items()}
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
        *,
        is_quiet: bool,
    ) -> None:
        """Breadcrumbs; stream lines, of notes that no kind of session is denied as a whole; and one event for all that
        was changed by hand, as tools record their own."""
        now, zone = datetime.now(UTC), self.settings.timezone
        news = [
            put for put in puts if not (put.is_same and not put.is_moved) and (put.past is not None or not is_quiet)
        ]
        is_new = Is("id", "in", [put.id for put in news])
        stored = {id: more for id, *more in self.index.documents.tuples(("id", "version", "updated_at"), is_new)}
        crumbs, lines = [], [(before[row.id], "deleted", row.path) for row in ends]
        for put in news:
            was, path = before[put.past.id] if put.past is not None else None, put.look.path
            version, updated_at = stored[put.id]
            note = {**put.projection.document, "id": put.id, "version": version, "updated_at": updated_at}
            summary, action = what_happened(put, was)
            crumbs.append(crumb(note, summary, now if put.is_moved else put.look.mtime, intents.get(path)))
            crumbs[-1]["id"] += "+" if put.is_moved else ""  # a move makes no version
            lines.append((was if action == "deleted" and was is not None else note, action, path))
        self.index.history.put(crumbs)
        over = [f"{row['note']}@{row['version'] - HISTORY_LIMIT}" for row in crumbs if row["version"] > HISTORY_LIMIT]
        self.index.history.delete([*over, *(f"{id}+" for id in over)])
        if is_quiet:
            return
        self.index.stream.put(
            [
                stream_entry(note, action, now, zone, agent_of(intents.get(path)))
                for note, action, path in lines
                if is_announced(note["path"] or "", self.settings.prompt)
            ]
        )
        paths = [path for _, _, path in lines if path not in intents]
        if paths:
            id = self.index.new_event_id()
            event: Row = {"id": id, "key": id, "at": now, "kind": "changed", "session": "owner", "agent": ""}
            named = {"paths": paths[:_MOST_NAMED], "more": max(0, len(paths) - _MOST_NAMED)}
            self.index.events.put([{**event, "path": paths[0] if len(paths) == 1 else "", "fields": named}])


def changed_by(intent: Row | None) -> str:
    """Who made a change, as `Session.changed_by` names it: the session of a tool's intent; without one the owner."""
    agent = agent_of(intent)
    return maker_of(agent) if agent or intent is None or intent["session"] == "owner" else "agent:unknown"


def agent_of(intent: Row | None) -> str:
    """The agent that made a change, "" for a person."""
    return (intent["agent"] or "") if intent is not None else ""


def crumb(note: Row, summary: str, at: datetime, intent: Row | None) -> Row:
    """The history row of the version that a note has now."""
    reason = f": {intent['reason']}" if intent is not None and intent["reason"] else ""
    return {
        "id": f"{note['id']}@{note['version']}",
        "note": note["id"],
        "version": note["version"],
        "at": at,
        "summary": summary + reason,
        "changed_by": changed_by(intent),
    }


def what_happened(put: Put, was: Row | None) -> tuple[str, str]:
    """The breadcrumb's summary, and the action that the stream names. `was` is the row before."""
    if was is None:
        return "Created", "created"
    if not put.is_moved:
        return "Changed the id" if put.onto is None else describe_change(was, put.projection.document), "updated"
    old, new = was["path"] or "", put.look.path
    if is_private(old) == is_private(new):
        return f"Moved from {old}", "moved"
    return (MOVED_OUT, "created") if is_private(old) else (f"Moved from {old}", "deleted")


def stream_entry(note: Row, action: str, at: datetime, zone: tzinfo, agent: str = "") -> Row:
    """The stream line of what happened to a note, a light row of `documents`.

    The text of a note that some session sees in part may be what it must not see, so its line has the path alone.
    """
    title, summary = (note["path"], "") if note["audience"] else (note["title"], note["summary"][:_SUMMARY])
    identity = (note["id"], to_milliseconds(at), note["version"], action, note["digest"], note["path"])
    ref = {"title": title, **{name: note[name] for name in ("collection", "status", "version")}}
    return {
        "id": hashlib.sha256("\n".join(map(str, identity)).encode()).hexdigest()[:16],
        "day": at.astimezone(zone).date().isoformat(),
        "at": at,
        "content": f"[Notebook {action.upper()}] {title}" + (f": {summary}" if summary else ""),
        "source": NOTEBOOK,
        "score": _SCORE,
        "agent": agent,
        "action": action,
        "note": note["id"],
        "path": note["path"],
        "provenance": note["provenance"],
        "ref": {**ref, "summary": summary, "updated_at": note["updated_at"].isoformat()},
        "tags": [*filter(None, [note["collection"]])],
    }


def describe_change(before: Row, after: Row) -> str:
    """One line on what differs between two rows with their text: "Changed title, tags; changed Budget; added Risks"."""
    is_same_text = before["content"] == after["content"]
    old, new = _own_texts(before), _own_texts(after)
    sections = (
        _listed("changed", [new[anchor][0] for anchor in new if anchor in old and new[anchor] != old[anchor]]),
        _listed("added", [heading for anchor, (heading, _) in new.items() if anchor not in old]),
        _listed("removed", [heading for anchor, (heading, _) in old.items() if anchor not in new]),
    )
    text = "" if is_same_text else "; ".join(filter(None, sections)) or "changed the text"
    fields = _listed("changed", _changed_fields(before, after, is_same_text=is_same_text))
    summary = "; ".join(filter(None, (fields, text))) or "changed the frontmatter"
    return summary[0].upper() + summary[1:]


def _changed_fields(before: Row, after: Row, *, is_same_text: bool) -> list[str]:
    old, new = before["fields"] or {}, after["fields"] or {}
    pairs = {name: (before[name], after[name]) for name in _COMPARED}
    pairs |= {name: (old.get(name), new.get(name)) for name in sorted({*old, *new} - {"tags"})}
    return [name for name, (was, now) in pairs.items() if was != now and (is_same_text or name not in _DERIVED)]


def _own_texts(row: Row) -> dict[str, tuple[str, str]]:
    """Heading and text by anchor; the text ends at the next heading of any level, so that a change is named once."""
    sections = row["sections"] or ()
    ends = [*(section[4] for section in sections), len(row["content"])][1:]
    return {
        anchor: (heading, row["content"][start:end].rstrip())
        for (heading, _, anchor, _, start, _), end in zip(sections, ends, strict=True)
    }


def _listed(verb: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{verb} {', '.join(names[:_NAMED])}{more}"
