"""The operations on the daily stream, and on checkpoints of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.notes.stream.rolled_back import Checkpoint, Exchange, FileChange, NoteChange
from notebook_sync.operations.memories import Tags, TagsGiven
from notebook_sync.operations.registry import NOT_EXTERNAL, Cli, Limit, Model, Results, Service, When, operation
from notebook_sync.refs.entry import NOTEBOOK
from notebook_sync.sessions import OWNER, Session

_NO_STREAM = "The daily stream is not available in this conversation"
_NO_ROLLBACK = "Going back to a checkpoint is only available in owner conversations"

Line = Annotated[str, Meta(max_length=4_096)]
CheckpointId = Annotated[Line, Meta(description="of a checkpoint"), Cli("ID", positional=True)]


class NoteRef(Model):
    """The note that an entry is about."""

    notebook_id: str
    title: str
    collection: str
    status: str
    version: str
    path: str


class Entry(Model, kw_only=True):
    """An entry of the stream or of long-term memory. `score` is how much it matters, from 0 to 1. `agent` logged it or
    opened the note. An entry about a note has its `ref`, and in a day also the `action`: created, opened, updated,
    moved or deleted. `provenance` is "external" for a note that somebody else wrote. `relevance` is to the query.
    `kept` says that it was logged to long-term memory."""

    id: str
    content: str
    source: str
    tags: list[str]
    score: float
    timestamp: str
    agent: str | None = None
    action: str | None = None
    ref: NoteRef | None = None
    provenance: str | None = None
    relevance: float | None = None
    kept: bool = False

    @property
    def path(self) -> str | None:
        """Of the note that it is about, "" for a note without a path; None if it is about no note."""
        return self.ref.path if self.ref else "" if self.source == NOTEBOOK else None

    def for_model(self) -> Entry:
        """Somebody else's words are fenced, and their note is named by its path alone."""
        from prompt import fence_external  # it loads the assembler, which the command line does not need

        if self.provenance is None:
            return self
        entry_id, ref = self.id, self.ref
        if ref is not None:
            entry_id = ref.path if entry_id == ref.notebook_id else entry_id
            ref = msgspec.structs.replace(ref, notebook_id=ref.path, title=ref.path)
        content = fence_external(self.content, EXTERNAL)
        return msgspec.structs.replace(self, id=entry_id, content=content, ref=ref, provenance=EXTERNAL)


class Day(msgspec.Struct, kw_only=True):
    """The entries of a day, oldest first. `earlier` counts those before them that the limit leaves out; `degraded` says
    that a part of the day is lost."""

    day: str
    results: list[Entry]
    degraded: str | None = None
    earlier: int = 0


class EntryChanges(Model):
    """Entries that come `back` and that are `gone` after a rollback, and how many `stay`. An entry whose text differs
    is in both lists."""

    back: list[Entry]
    gone: list[Entry]
    stay: int


class Plan(Model):
    """What a rollback would do to the stream, to long-term memory and to files. `digest` changes when anything of that
    does. `latest` is the id of the latest checkpoint."""

    checkpoint: Checkpoint
    latest: str
    stream: EntryChanges
    longterm: EntryChanges
    files: list[FileChange]
    digest: str


class Rollback(Model, kw_only=True):
    """`before` is the checkpoint of the state before: roll back to it to undo this. `entries` and `longterm` count what
    the checkpoint holds, `changed` are the notes that changed since, `restored` the paths of the notes that were
    written or removed, in `commit`. Of a dry run, `plan` says what would be done."""

    id: str
    before: str
    entries: int
    longterm: int
    changed: list[NoteChange]
    restored: list[str]
    commit: str
    warnings: list[str]
    plan: Plan | None = None


class StreamService(Service):
    """Log what happened, day by day, and recall it

    The daily stream has the lines that agents log, and an entry for each note that is created, opened, updated, moved
    or deleted. It is in hot memory (Redis or the embedded database), not in files: write what must last into a note.
    See docs/memory.md.
    """

    name = "stream"
    words = "stream"
    groups = MappingProxyType({"checkpoint": "Save the notebook's state, to go back to it with rollback"})
    examples = (
        "notebook-sync stream log 'Odile moved the ferry to pier 3' --tags ferry",
        "notebook-sync stream show",
        "notebook-sync stream recall 'pier 3'",
    )

    @operation(
        "stream log",
        tool="notebook_log",
        route="POST /log",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        effect="write",
        creates=True,
        unlisted=("source",),
        hint="Every agent can recall it: a decision, a result, an event.",
        examples=(
            "notebook-sync stream log 'Odile moved the ferry to pier 3' --tags ferry",
            "notebook-sync stream log 'The harbour closes at ten' --keep --score 0.9",
        ),
    )
    def log(
        self,
        content: Annotated[str, Meta(description="what happened"), Cli("TEXT", positional=True, from_file=True)],
        session: Session = OWNER,
        *,
        tags: TagsGiven | None = None,
        score: Annotated[float, Meta(ge=0, le=1, description="how much it matters, 0 to 1"), Cli("N")] = 0.5,
        source: Annotated[Line, Meta(description="where it is from, if not from you"), Cli("TEXT")] = "",
        keep: Annotated[bool, Meta(description="in long-term memory, not in the day")] = False,
    ) -> Entry:
        """Log a line to today's stream.

        With --keep it goes to long-term memory instead. An entry has at most 8 KB.
        """
        logged = self.wiring._stream.log(content, session, source=source, tags=tags or (), score=score, keep=keep)
        return _entry(logged, kept=keep)

    @operation(
        "stream show",
        tool="notebook_today",
        route="GET /today",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        for_models={"limit": 50},
        nothing_found="no entries on this day; add one with: notebook-sync stream log TEXT",
        examples=("notebook-sync stream show", "notebook-sync stream show --day 2026-02-18 --json"),
    )
    def show(
        self,
        session: Session = OWNER,
        *,
        day: Annotated[When, Meta(description="2026-02-18 or yesterday, default today"), Cli("DATE")] | None = None,
        limit: Limit = 1_000,
    ) -> Day:
        """Show the stream of a day, oldest first.

        The day is one of the notebook's timezone. If it has more entries than the limit, the last ones are shown and
        `earlier` counts the others. `degraded` says that entries are lost because hot memory was emptied.
        """
        moment = self.moment(day)
        found = self.wiring._stream.today(session, moment, limit)
        return Day(day=found.day, results=_entries(found.entries), degraded=found.lost or None, earlier=found.earlier)

    @operation(
        "stream recall",
        tool="notebook_recall",
        route="GET /recall",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        nothing_found="no matches; to search the text of notes: notebook-sync search; to see what happened to deleted "
        "notes: notebook-sync stream show --day DATE",
        hint="Use it before you start, and for earlier work.",
        examples=(
            "notebook-sync stream recall 'pier 3'",
            "notebook-sync stream recall ferry --tags ferry --since 7d --limit 5",
        ),
    )
    def recall(
        self,
        query: Annotated[Line, Meta(description="words or a question"), Cli("QUERY", positional=True)],
        session: Session = OWNER,
        *,
        tags: Tags | None = None,
        since: Annotated[When, Meta(description="2026-02-18, or 7d for days ago"), Cli("DATE")] | None = None,
        limit: Limit = 10,
    ) -> Results[Entry]:
        """Search the stream, long-term memory and titles of notes, best first.

        Words count, and meaning if embeddings are on; older entries count less, and repeated ones once. An empty query
        returns what mattered most lately. `degraded` says why not everything was searched.
        """
        moment = self.moment(since)
        found = self.wiring._stream.recall(query, session, tags=tags or (), since=moment, limit=limit)
        return Results(results=_entries(found.results), degraded=found.partial or None)

    @operation(
        "checkpoint create",
        tool="checkpoint",
        route="POST /checkpoints",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        effect="write",
        creates=True,
        hint="Use it before sweeping changes; the owner can go back.",
        examples=("notebook-sync checkpoint create 'before the regatta'",),
    )
    def checkpoint(
        self,
        name: Annotated[Line, Meta(description="a name to know it by"), Cli("NAME", positional=True)] = "",
        session: Session = OWNER,
    ) -> Checkpoint:
        """Save the notebook's state.

        A checkpoint holds the last seven days of the stream, long-term memory, the version of each note, and with git
        the files as they are, committed or not. Private notes are not listed in it. The last 50 are kept.
        """
        return self.wiring._checkpoints.take(session, name)

    @operation(
        "checkpoint list",
        route="GET /checkpoints",
        sessions=NOT_EXTERNAL,
        refusal=_NO_STREAM,
        nothing_found="no checkpoints; create one with: notebook-sync checkpoint create NAME",
        examples=("notebook-sync checkpoint list", "notebook-sync checkpoint list --json"),
    )
    def checkpoints(self, session: Session = OWNER) -> Results[Checkpoint]:
        """List checkpoints, the latest first.

        `degraded` says that older ones are lost because hot memory was emptied.
        """
        checkpoints = self.wiring._checkpoints
        return Results(results=checkpoints.list(session), degraded=checkpoints.lost(session) or None)

    @operation(
        "rollback",
        tool="rollback",
        route="POST /rollback",
        sessions=frozenset(("owner",)),
        refusal=_NO_ROLLBACK,
        effect="destructive",
        unlisted=("dry_run", "expected_digest"),
        hint="Only if asked.",
        examples=(
            "notebook-sync rollback 6f1c --dry-run",
            "notebook-sync rollback 6f1c --files --session owner",
        ),
    )
    def rollback(
        self,
        id: CheckpointId = "",  # noqa: A002 - its name on every surface
        session: Session = OWNER,
        *,
        files: Annotated[bool, Meta(description="also restore the notes")] = False,
        dry_run: Annotated[bool, Meta(description="only show what would change")] = False,
        expected_digest: Annotated[Line, Meta(description="that of a dry run's plan"), Cli("DIGEST")] | None = None,
    ) -> Rollback:
        """Restore the stream and long-term memory of a checkpoint.

        It first makes a checkpoint of the current state, so that another rollback undoes this one. With --files it also
        restores the text of the notes, all of them or none, as a new commit; no commit is lost. It lists the notes that
        were created, updated or deleted since the checkpoint. ID may be shortened to four characters; without one, the
        error names the latest checkpoints. --expected-digest refuses a rollback that would do anything else than the
        dry run showed. Only the owner may roll back; in a script, use --session owner.
        """
        checkpoints = self.wiring._checkpoints
        if not dry_run:
            done = checkpoints.rollback(id, session, files=files, foreseen=expected_digest)
            return msgspec.convert(done, Rollback, from_attributes=True)
        found = checkpoints.foresee(id, session, files=files)
        return Rollback(
            id=found.checkpoint.id,
            before="",
            entries=found.checkpoint.entries,
            longterm=found.checkpoint.longterm,
            changed=list(found.changed),
            restored=[each.path for each in found.files],
            commit="",
            warnings=list(found.warnings),
            plan=Plan(
                found.checkpoint,
                found.latest,
                _changes(found.stream),
                _changes(found.longterm),
                list(found.files),
                found.digest,
            ),
        )


def _changes(found: Exchange) -> EntryChanges:
    return EntryChanges(_entries(found.back), _entries(found.gone), found.stay)


def _entries(found: Any) -> list[Entry]:
    return [_entry(each) for each in found]


def _entry(entry: Mapping[str, Any], *, kept: bool = False) -> Entry:
    """Other programs write to hot memory too: what is missing or not text is made text."""
    told = {name: entry[name] for name in ("id", "content", "source", "tags", "score", "timestamp")}
    told |= {name: str(entry[name]) for name in ("agent", "action", "provenance") if entry.get(name) is not None}
    if isinstance(ref := entry.get("ref"), Mapping):
        told["ref"] = NoteRef(*(str(ref.get(name, "")) for name in NoteRef.__struct_fields__))
    return Entry(**told, relevance=entry.get("relevance"), kept=kept)
