"""The operations on the daily stream, long-term memory, and checkpoints. Other modules do the work."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from notebook_sync.registry import NOT_EXTERNAL, OWNER_ONLY, Arg, Limit, Result, Results, When, found_any, operation
from notebook_sync.services.core import NotebookService
from notebook_sync.services.results import fenced, neutral_name
from notebook_sync.sessions import OWNER, Session

_NO_STREAM = "The daily stream is not available in this conversation"
_NO_ROLLBACK = "Rolling back to a checkpoint is only available in owner conversations"

Tag = Annotated[str, Meta(max_length=200)]
Tags = Annotated[list[Tag], Meta(max_length=100), Arg("TAGS")]
Day_ = Annotated[When, Meta(description="2026-02-18 or yesterday, default today")]


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
        ref, id = self.ref, self.id
        if ref:
            name = neutral_name(ref.notebook_id)
            id = name if id == ref.notebook_id else id
            ref = replace(ref, notebook_id=name, path=name, title=name, summary="")
        return replace(self, id=id, content=fenced(self.content), tags=[], ref=ref)


class Day(Result, frozen=True, kw_only=True):
    """The entries of a day, oldest first. `earlier` counts those before them that the limit leaves out; `degraded` says
    why entries of other programs are missing."""

    day: str
    results: list[Entry]
    earlier: int
    degraded: str | None


class Checkpoint(Result, frozen=True, kw_only=True):
    """A saved state. `commit` has the files, in the private history; "" where they are not saved, and for agents.
    `warnings` say what could not be saved."""

    id: str
    name: str
    at: datetime
    created_by: str
    commit: str
    warnings: list[str]


class NoteChange(Result, frozen=True, kw_only=True):
    """What became of a note since a checkpoint, or what a rollback does to a file: created, updated or deleted."""

    path: str
    change: str


class Rollback(Result, frozen=True, kw_only=True):
    """What a rollback did, or would do (`status` "dry_run").

    `before` is the checkpoint of the state before: roll back to it to undo this. Entries of the stream and of long-term
    memory came back (`restored`) or went (`removed`), those of other programs in Redis included. `changed` are notes
    that differ from the checkpoint, private ones not listed; `files` are the notes written or deleted in `commit`.
    """

    status: str
    id: str
    name: str
    before: str
    restored: int
    removed: int
    longterm_restored: int
    longterm_removed: int
    changed: list[NoteChange]
    files: list[NoteChange]
    commit: str
    warnings: list[str]


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
        from notebook_sync.services.lines import log_line

        return log_line(self.core, session, content, tags=tags or (), score=score, source=source, keep=keep)

    @operation(
        "stream show",
        route="GET /today",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        columns=("timestamp", "source", "content"),
        nothing_found="no entries on this day; add one with: notebook-sync stream log TEXT",
        examples=("notebook-sync stream show", "notebook-sync stream show --day 2026-02-18 --json"),
    )
    def show(self, session: Session = OWNER, *, day: Day_ = "", limit: Limit = 1_000) -> Day:
        """Show the stream of a day, oldest first.

        The day is one of the notebook's timezone. It has the lines that were logged, by other programs in Redis too,
        and one for each note that was created, opened, updated, moved or deleted. Of more entries than the limit, the
        last are shown.
        """
        from notebook_sync.services.lines import show_day

        return show_day(self.core, session, day, limit)

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

        Words count, and meaning with the local model; the worth of an entry halves every 30 days, and what repeats
        another comes later. An empty query returns what mattered most lately. `degraded` says what was not searched.
        The exit code is 1 if nothing is found.
        """
        from notebook_sync.services.lines import recall

        return recall(self.core, session, query, tags=tags or (), since=since, limit=limit)

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
        name: Annotated[str, Meta(max_length=200, description="to know it by"), Arg("NAME", positional=True)] = "",
        session: Session = OWNER,
    ) -> Checkpoint:
        """Save the notebook's state.

        A checkpoint holds the last seven days of the stream, long-term memory, the version of each note, and with git
        the files as they are, committed or not. Private notes are in the files alone. The last 50 are kept.
        """
        from notebook_sync.services.checkpoints import take_checkpoint

        return take_checkpoint(self.core, session, name)

    @operation(
        "checkpoint list",
        route="GET /checkpoints",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        columns=("id", "at", "created_by", "name"),
        nothing_found="no checkpoints; create one with: notebook-sync checkpoint create NAME",
        examples=("notebook-sync checkpoint list", "notebook-sync checkpoint list --json"),
    )
    def checkpoints(self, session: Session = OWNER) -> Results[Checkpoint]:
        """List checkpoints, the latest first."""
        from notebook_sync.services.checkpoints import list_checkpoints

        return Results(list_checkpoints(self.core, session))

    @operation(
        "rollback",
        tool="rollback",
        toolset="time",
        route="POST /rollback",
        sessions=OWNER_ONLY,
        refusal=_NO_ROLLBACK,
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
        dry_run: Annotated[bool, Meta(description="only show what would happen")] = False,
    ) -> Rollback:
        """Restore the stream, and with --files the notes, of a checkpoint.

        It first makes a checkpoint of the present state, so that another rollback undoes this one; what is logged
        meanwhile stays. Long-term memory is restored, too. The notes are restored all or none, as one new commit. The
        id may be cut after four characters. Only the owner may roll back; in a script, use --session owner.
        """
        from notebook_sync.services.checkpoints import roll_back

        return roll_back(self.core, session, id, files=files, dry_run=dry_run)
