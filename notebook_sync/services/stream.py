"""The daily stream and long-term memory: what is logged, and what a session sees of a day. `recall` searches both, and
`checkpoints` go back to what they were.

What other programs wrote in Redis is read when somebody asks, for a moment only, and never stored. A line that names a
note is shown to those who may read the note now; of a file that is shown in part, without what it said.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from operator import itemgetter
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from notebook_sync import services
from notebook_sync.dates import moment
from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.files.names import is_announced
from notebook_sync.permissions import may_in_stream
from notebook_sync.registry import (
    NOT_EXTERNAL,
    OWNER_ONLY,
    Arg,
    DryRun,
    Limit,
    Result,
    Results,
    When,
    found_any,
    operation,
)
from notebook_sync.services.core import Core, NotebookService, publish_now
from notebook_sync.services.results import fenced, neutral_name
from notebook_sync.services.view import View
from notebook_sync.sessions import OWNER, Session
from notebook_sync.store import others
from notebook_sync.store.rows import Is, Row, both, from_milliseconds, to_milliseconds
from notebook_sync.sync.apply import NOTEBOOK, stream_entry

# What a row of the index has of a note that a line is about.
OF_NOTE = (
    *("id", "path", "title", "summary", "collection", "status", "version"),
    *("updated_at", "tags", "provenance", "audience", "digest"),
)
_LONGEST, _MOST_TAGS = 8 << 10, 20
_TAG = re.compile(r"\w[\w.-]{0,49}")
# So long a read waits for the index to take the line that says so.
_PATIENCE = 0.1
_NO_STREAM = "The daily stream is not available in this conversation"

Tags = Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=100), Arg("TAGS")]


class NoteRef(Result, frozen=True, kw_only=True):
    """The note that an entry is about, as it was then."""

    notebook_id: str
    path: str
    title: str
    summary: str
    collection: str
    status: str
    version: str


class Entry(Result, frozen=True, kw_only=True):
    """An entry of the stream or of long-term memory.

    `score`, 0 to 1, is how much it matters. `agent` logged it, or changed or opened the note that `ref` names; `action`
    is created, opened, updated, moved or deleted. `relevance` is to a query. `kept`: in long-term memory. `provenance`
    is "external" for a note that others wrote.
    """

    id: str
    content: str
    source: str
    tags: list[str]
    score: float
    timestamp: datetime
    agent: str
    action: str
    ref: NoteRef | None
    provenance: str
    kept: bool
    relevance: float | None

    def for_model(self) -> Entry:
        """With neutral names and the text in a fence, for a note or text of others."""
        if not self.provenance:
            return self
        name = neutral_name(self.ref.notebook_id if self.ref else self.id)
        ref = self.ref and replace(self.ref, notebook_id=name, path=name, title=name, summary="")
        return replace(self, id=name, content=fenced(self.content), tags=[], ref=ref)


class StreamService(NotebookService):
    """Log what happened, show a day, and recall it."""

    name = "stream"

    @operation(
        "stream log",
        tool="notebook_log",
        route="POST /log",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        effect="write",
        asks="caller",
        creates=True,
        unlisted=("source",),
        shows="content",
        hint="Every agent can recall it: a decision, a result, an event.",
        examples=(
            "notebook-sync stream log 'Odile moved the ferry to pier 3' --tags ferry",
            "notebook-sync stream log 'The harbour closes at ten' --keep --score 0.9",
        ),
    )
    def log(
        self,
        content: Annotated[str, Meta(description="what happened"), Arg("TEXT", positional=True, from_file=True)],
        session: Session = OWNER,
        *,
        tags: Tags | None = None,
        score: Annotated[float, Meta(ge=0, le=1, description="how much it matters, 0 to 1"), Arg("N")] = 0.5,
        source: Annotated[str, Meta(max_length=100, description="where it is from, if not from you")] = "",
        keep: Annotated[bool, Meta(description="in long-term memory, not in the day")] = False,
    ) -> Entry:
        """Log a line to today's stream.

        With `keep` it goes to long-term memory instead, which has no end. A line has at most 8 KB.
        """
        size = len(content.encode(errors="replace"))
        if not content.strip() or size > _LONGEST:
            raise UsageError(
                f"a line says something in at most {_LONGEST:,} bytes, and this text has {size:,}",
                next="say in a sentence what happened; of more, write a page, and log where it is",
            )
        if not 0 <= score <= 1:
            raise UsageError(f"score: {score!r} is not a number from 0 to 1")
        core, now = self.core, from_milliseconds(to_milliseconds(self.core.now()))  # as the index has it
        row: Row = {
            **dict.fromkeys(("action", "note", "path", "provenance"), ""),
            "id": uuid.uuid4().hex,
            "day": now.astimezone(core.settings.timezone).date().isoformat(),
            "at": now,
            "content": content,
            "source": _signed(source.strip(), session),
            "score": float(score),
            "agent": session.agent,
            "ref": None,
            "tags": _checked_tags(tags or ()),
        }
        with core.index.write(durable=True):
            (core.index.longterm if keep else core.index.stream).put([row])
        publish_now(core)
        return entry_of({**row, "kept": keep})

    @operation(
        "stream show",
        route="GET /today",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        columns=("timestamp", "source", "content"),
        nothing_found="no entries on this day; add one with: notebook-sync stream log TEXT",
        examples=("notebook-sync stream show", "notebook-sync stream show --day 2026-02-18 --json"),
    )
    def show(
        self,
        session: Session = OWNER,
        *,
        day: Annotated[When, Meta(description="2026-02-18 or yesterday, default today")] = "",
        limit: Limit = 1_000,
    ) -> Results[Entry]:
        """Show the stream of a day, oldest first.

        The day is one of the notebook's timezone. It has the lines that were logged, by other programs in Redis too,
        and one for each note that was created, opened, updated, moved or deleted. Of more entries than the limit, the
        last are shown; `degraded` says how many were before them, and what could not be read.
        """
        core, now, zone = self.core, self.core.now(), self.core.settings.timezone
        try:
            asked = moment(day or "today", zone, now).astimezone(zone).date().isoformat()
        except OverflowError:
            raise UsageError(f"{day!r} is not a date", next="write a day like 2026-02-18") from None
        heard = hear(core, [asked])
        ours = [
            row
            for row in core.index.stream.find(Is("day", "=", asked), order=("at", "rev"))
            if row["id"] not in heard.cut
        ]
        rows = shown(View(core, session), sorted([*ours, *heard.rows(now, zone)], key=itemgetter("at")))
        earlier = max(0, len(rows) - limit)
        before = f"earlier entries that the limit leaves out: {earlier:,}" if earlier else ""
        return Results([*map(entry_of, rows[earlier:])], "; ".join(filter(None, (heard.trouble, before))) or None)

    @operation(
        "stream recall",
        tool="notebook_recall",
        route="GET /recall",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        aliases={"q": "query"},
        columns=("relevance", "timestamp", "source", "content"),
        exit_code=found_any,
        nothing_found="nothing found; to search the text of notes: notebook-sync search",
        hint="Use it before you start.",
        examples=(
            "notebook-sync stream recall 'what changed on the ferry'",
            "notebook-sync stream recall ferry --since 7d --limit 5",
        ),
    )
    def recall(
        self,
        query: Annotated[str, Meta(max_length=4_096, description="words or a question"), Arg("QUERY", positional=True)],
        session: Session = OWNER,
        *,
        tags: Tags | None = None,
        since: When = "",
        limit: Limit = 10,
    ) -> Results[Entry]:
        """Search the stream, long-term memory and titles of notes, best first.

        Words count, and meaning with the local model; an entry counts half after 30 days, and what repeats
        another comes later. An empty query returns what mattered most lately. `degraded` says what was not searched.
        The exit code is 1 if nothing is found.
        """
        return services.recall.recall(self.core, session, query, tags=tags or (), since=since, limit=limit)

    @operation(
        "checkpoint create",
        tool="checkpoint",
        toolset="time",
        route="POST /checkpoints",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        effect="write",
        asks="caller",
        creates=True,
        hint="Use it before sweeping changes; the owner can go back.",
        examples=("notebook-sync checkpoint create 'before the regatta'",),
    )
    def checkpoint(
        self,
        name: Annotated[str, Meta(max_length=200, description="its name in lists"), Arg("NAME", positional=True)] = "",
        session: Session = OWNER,
    ) -> services.checkpoints.Checkpoint:
        """Save the notebook's state.

        A checkpoint holds the last seven days of the stream, long-term memory, the version of each note, and with git
        the files as they are, committed or not. Private notes are in the files alone. The last 50 are kept.
        """
        return services.checkpoints.take_checkpoint(self.core, session, name)

    @operation(
        "checkpoint list",
        route="GET /checkpoints",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        columns=("id", "at", "created_by", "name"),
        nothing_found="no checkpoints; create one with: notebook-sync checkpoint create NAME",
        examples=("notebook-sync checkpoint list", "notebook-sync checkpoint list --json"),
    )
    def checkpoints(self, session: Session = OWNER) -> Results[services.checkpoints.Checkpoint]:
        """List checkpoints, the latest first."""
        return services.checkpoints.list_checkpoints(self.core, session)

    @operation(
        "rollback",
        tool="rollback",
        toolset="time",
        route="POST /rollback",
        sessions=OWNER_ONLY,
        refusal="Rolling back to a checkpoint is only available in owner conversations",
        effect="destructive",
        asks="caller",
        unlisted=("dry_run",),
        hint="Only if asked.",
        examples=(
            "notebook-sync rollback 1a2b3c4d --dry-run --session owner",
            "notebook-sync rollback 1a2b3c4d --files --session owner",
        ),
    )
    def rollback(
        self,
        id: Annotated[str, Meta(max_length=64, description="of a checkpoint"), Arg("ID", positional=True)],
        session: Session = OWNER,
        *,
        files: Annotated[bool, Meta(description="also restore the notes")] = False,
        dry_run: DryRun = False,
    ) -> services.checkpoints.Rollback:
        """Restore the stream, and with --files the notes, of a checkpoint.

        It first makes a checkpoint of the present state, so that another rollback undoes this one; what is logged
        meanwhile stays. Long-term memory is restored, too. The notes are restored all or none, as one new commit. The
        id may be cut after four characters. Only the owner may roll back; in a script, use --session owner.
        """
        return services.checkpoints.roll_back(self.core, session, id, files=files, dry_run=dry_run)


def entry_of(row: Row) -> Entry:
    """A row as an entry."""
    ref = None
    if row["note"]:
        said = {name: str((row["ref"] or {}).get(name) or "") for name in NoteRef.__struct_fields__}
        ref = NoteRef(**{**said, "notebook_id": row["note"], "path": row["path"] or ""})
    texts = {name: row[name] or "" for name in ("id", "content", "source", "agent", "action", "provenance")}
    return Entry(
        **texts,
        tags=row["tags"],
        score=row["score"] or 0.0,
        timestamp=row["at"],
        ref=ref,
        kept=bool(row.get("kept")),
        relevance=row.get("relevance"),
    )


def hear(core: Core, days: Sequence[str], **options: Any) -> others.Heard:
    """What other programs wrote in Redis; see `store.others.hear`."""
    return others.hear(core.publisher, core.index, core.place.notebook_id, days, **options)


def shown(view: View, rows: Sequence[Row]) -> list[Row]:
    """The rows that the session may see, each as it may see it. A line of another program that names a note which this
    notebook never had is shown."""
    documents, ids = view.core.index.documents, sorted({row["note"] for row in rows if row["note"]})
    named, sees_all = Is("id", "in", ids), view.session.kind == "owner"
    whole = dict(documents.tuples(("id", "provenance"), both(view.whole, named)))
    in_part, known = dict(documents.tuples(("id", "path"), both(view.in_part, named))), documents.known(ids)
    found: list[Row] = []
    for row in rows:
        note, path = row["note"], in_part.get(row["note"])
        is_plain = not note and row["source"] != NOTEBOOK
        is_unknown = note and row.get("is_foreign") and note not in known
        if sees_all or note in whole or is_plain or is_unknown:
            found.append({**row, "provenance": row["provenance"] or whole.get(note)})
        elif path:
            ref = {**(row["ref"] or {}), "title": path, "summary": ""}
            found.append({**row, "content": f"[Notebook {row['action'].upper()}] {path}", "ref": ref, "path": path})
    return found


def note_opened(core: Core, session: Session, path: str) -> None:
    """Record, once a day for each version, that an agent opened a note that every session may read. No reader waits for
    that, and none fails by it."""
    if not session.agent or not may_in_stream(session, "add") or not is_announced(path, core.settings.prompt):
        return
    with suppress(NotebookError):
        for note in core.index.documents.find(Is("path", "=", path), fields=OF_NOTE):
            line = stream_entry(note, "opened", core.now(), core.settings.timezone, session.agent)
            once = "\n".join(map(str, ("opened", note["id"], note["version"], session.agent, line["day"])))
            line["id"] = sha256(once.encode()).hexdigest()[:16]
            if not core.index.stream.known([line["id"]]):
                with core.index.write(patience=_PATIENCE):
                    core.index.stream.put([line])


def _checked_tags(tags: Sequence[str]) -> list[str]:
    wrong = [tag[:60] for tag in tags if not _TAG.fullmatch(tag)]
    if wrong or len(set(tags)) > _MOST_TAGS:
        raise UsageError(
            f"these cannot be the tags of a line: {', '.join(wrong or tags)[:200]}",
            next=f"use at most {_MOST_TAGS} words, each of at most 50 letters, digits and _.-",
        )
    return list(dict.fromkeys(tags))


def _signed(source: str, session: Session) -> str:
    """Where a line is from: an agent's line says who logged it, whatever else it says."""
    if source == NOTEBOOK or not source.isprintable():
        raise UsageError(f"{source!r} cannot be a source", next="say in plain words where it is from: harbour radio")
    if session.kind == "owner":
        return source or session.changed_by
    return f"{session.changed_by} ({source})" if source else session.changed_by
