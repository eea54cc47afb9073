"""The operations on private notes, which each agent keeps in a channel of its own."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.operations.registry import NOT_EXTERNAL, Cli, Limit, Model, Results, Service, When, operation
from notebook_sync.sessions import KINDS, OWNER, Session

if TYPE_CHECKING:
    from notebook_sync.notes.channels.importing import Imported

_REFUSAL = "Private notes are not available in this conversation"
# An owner that names no agent asks for the notes of all.
_UNLESS_OWNER = frozenset(("task", "external"))

Line = Annotated[str, Meta(max_length=256)]
Project = Annotated[str, Meta(max_length=128)]
Agent = Annotated[str, Meta(max_length=64)]
Tag = Annotated[str, Meta(max_length=256)]
Tags = Annotated[list[Tag], Meta(max_length=100), Cli("A,B", help="only those with any of these tags")]
Query = Annotated[str, Meta(max_length=4_096), Cli("QUERY", positional=True, help="words or a question")]
Profile = Literal["balanced", "recent", "quality", "similarity"]

Topic = Annotated[Line, Cli("TOPIC", help="only those on this topic")]
Conversation = Annotated[Line, Cli("ID", help="only those of this conversation")]
OfProject = Annotated[Project, Cli("ID", help="only those of this project or of none; global: only those of none")]
Channel = Annotated[Agent, Meta(description="the agent whose channel it is, default your own"), Cli("AGENT")]


class PrivateNote(Model, kw_only=True):
    """A private note without its text. `score`, from 0 to 1, is what a search ranked it by. `provenance` is "external"
    for somebody else's words."""

    id: str
    path: str
    collection: str
    title: str
    summary: str
    tags: list[str]
    updated_at: datetime
    status: str
    created_by: str
    word_count: int
    version: int
    topic: str
    session_id: str
    created_at: datetime
    confidence: float | None = None
    score: float | None = None
    provenance: str | None = None

    def for_model(self) -> PrivateNote:
        """Somebody else's title and summary are fenced, and what else they chose is withheld."""
        from prompt import fence_external  # it loads the assembler, which the command line does not need

        if self.provenance != EXTERNAL:
            return self
        return msgspec.structs.replace(
            self,
            id=self.path,
            title=self.path,
            summary=fence_external(f"{self.title}\n\n{self.summary}", EXTERNAL),
            tags=[],
            created_by=EXTERNAL,
            topic="",
            session_id="",
            confidence=None,
        )


class WrittenNote(Model, kw_only=True):
    """A private note after it was written. `version` is None if the mirror was not updated. `provenance` is "external"
    for somebody else's words."""

    notebook_id: str
    path: str
    title: str
    collection: str
    version: int | None
    status: str
    digest: str
    changed: list[str]
    commit: str | None
    warnings: list[str]
    provenance: str | None = None

    def for_model(self) -> WrittenNote:
        """Somebody else's title is withheld."""
        if self.provenance != EXTERNAL:
            return self
        return msgspec.structs.replace(self, notebook_id=self.path, title=self.path)


class AgentChannel(Model):
    """`scope` is a project or global. `notes` is null if the session may not read them. `members` are the other agents
    that may use it, as far as the session may know them."""

    id: str
    name: str
    agent: str
    scope: str
    notes: int | None
    members: dict[str, list[str]]


class ChannelService(Service):
    """Private notes of each agent

    Each note is a file in channels/AGENT/PROJECT/, or in channels/AGENT/global/ for notes of no project. Other agents
    see nothing of them, unless a channel.toml in that folder names them. The owner sees all. See docs/private-notes.md.

    --agent names the agent that asks. --channel names another agent, which shares its channel with that one.
    """

    name = "channels"
    words = "note"
    examples = (
        "notebook-sync note write 'Ines has the key of the boathouse' --topic harbour --agent scribe",
        "notebook-sync note search boathouse --agent scribe",
        "notebook-sync note recent --agent scribe --limit 5",
    )

    @operation(
        "note write",
        tool="write_note",
        route="POST /channels/{channel}/notes",
        effect="write",
        creates=True,
        needs_agent=frozenset(KINDS),
        unlisted=("channel",),
        hint="For your later self: a hunch, an observation, what to try next. To share it: notebook_create.",
        examples=(
            "notebook-sync note write 'Ines has the key of the boathouse' --topic harbour --agent scribe",
            "notebook-sync note write - --tags tides,winter --project harbour-2026 --agent scribe",
            "notebook-sync note write 'The buoy drifts' --session-id morning --meta confidence=0.8 --agent scribe",
        ),
    )
    def write(
        self,
        content: Annotated[str, Cli("TEXT", positional=True, from_file=True, help="the note")],
        session: Session = OWNER,
        *,
        topic: Annotated[Line, Cli("TOPIC", help="what it is about, in one word")] = "general",
        tags: Annotated[list[Tag], Meta(max_length=100), Cli("A,B", help="tags")] | None = None,
        session_id: Annotated[Line, Cli("ID", help="the conversation that it belongs to")] = "",
        project: Annotated[Project, Cli("ID", help="the project that it belongs to, if any")] = "",
        metadata: Annotated[
            dict[str, Any],
            Cli("KEY=VALUE", flag="--meta", help="a further field, such as confidence=0.8; repeatable"),
        ]
        | None = None,
        channel: Channel = "",
    ) -> WrittenNote:
        """Write a private note.

        The channel is created with its first note. Further fields are kept in the note's frontmatter; their values may
        be JSON. `confidence`, from 0 to 1, counts in searches. In an external session the note is marked as somebody
        else's words: `provenance: external`.
        """
        written = self.wiring._channels.write(
            content,
            session,
            topic=topic,
            tags=tags or (),
            session_id=session_id,
            project=project,
            metadata={} if metadata is None else metadata,
            agent=channel,
        )
        return msgspec.convert(written.as_dict(), WrittenNote)

    @operation(
        "note search",
        tool="search_my_notes",
        route="GET /channels/{channel}/notes",
        sessions=NOT_EXTERNAL,
        refusal=_REFUSAL,
        needs_agent=_UNLESS_OWNER,
        unlisted=("until", "channel"),
        nothing_found="no private note matches; list the latest with: notebook-sync note recent",
        hint="Read one with notebook_read.",
        examples=(
            "notebook-sync note search 'key of the boathouse' --agent scribe",
            "notebook-sync note search --tags tides --since 7d --profile recent --agent scribe --json",
        ),
    )
    def search(
        self,
        query: Query = "",
        session: Session = OWNER,
        *,
        tags: Tags | None = None,
        since: Annotated[
            When,
            Meta(description="2026-02-18, or 7d"),
            Cli("DATE", help="only those written since 2026-02-18, or 7d ago"),
        ]
        | None = None,
        until: Annotated[When, Cli("DATE", help="only those written before then")] | None = None,
        topic: Topic = "",
        session_id: Conversation = "",
        project: OfProject = "",
        profile: Annotated[Profile, Meta(description="what counts"), Cli("PROFILE")] = "balanced",
        limit: Limit = 50,
        channel: Channel = "",
    ) -> Results[PrivateNote]:
        """Search private notes, best match first.

        --profile says what counts. similarity: words and meaning alone; recent: new notes more; quality: notes with a
        high `confidence` more; balanced: all three. Without a query, all notes that the options admit are ranked.
        --since and --until are about when a note was written. The owner searches all channels unless one is named.
        """
        from notebook_sync.notes.channels.search import Wanted

        wanted = Wanted(tags or (), self.moment(since), self.moment(until), topic, session_id, project)
        found = self.wiring._note_search.search(query, session, wanted, agent=channel, profile=profile, limit=limit)
        return _rows(found, found.degraded)

    @operation(
        "note recent",
        tool="get_recent_notes",
        route="GET /channels/{channel}/recent",
        sessions=NOT_EXTERNAL,
        refusal=_REFUSAL,
        needs_agent=_UNLESS_OWNER,
        unlisted=("channel",),
        nothing_found="no private notes; write one with: notebook-sync note write TEXT --agent NAME",
        examples=(
            "notebook-sync note recent --agent scribe",
            "notebook-sync note recent --agent scribe --session-id morning --limit 5",
        ),
    )
    def recent(
        self,
        session: Session = OWNER,
        *,
        topic: Topic = "",
        session_id: Conversation = "",
        project: OfProject = "",
        limit: Limit = 20,
        channel: Channel = "",
    ) -> Results[PrivateNote]:
        """List private notes, the latest first.

        The owner sees those of all channels unless one is named.
        """
        from notebook_sync.notes.channels.search import Wanted

        wanted = Wanted(topic=topic, session_id=session_id, project=project)
        return _rows(self.wiring._note_search.recent(session, wanted, agent=channel, limit=limit))

    @operation(
        "note peek",
        tool="peek_agent_notes",
        route="GET /channels/{channel}/peek",
        sessions=NOT_EXTERNAL,
        refusal=_REFUSAL,
        needs_agent=_UNLESS_OWNER,
        aliases={"agent": "channel"},
        nothing_found="no private note matches; list the channels with: notebook-sync note channels",
        examples=(
            "notebook-sync note peek scribe --session task --agent pilot",
            "notebook-sync note peek scribe boathouse --agent pilot --limit 5",
        ),
    )
    def peek(
        self,
        channel: Annotated[Agent, Meta(description="the other agent"), Cli("AGENT", positional=True)],
        session: Session = OWNER,
        *,
        query: Query = "",
        tags: Tags | None = None,
        topic: Topic = "",
        project: OfProject = "",
        limit: Limit = 20,
    ) -> Results[PrivateNote]:
        """List private notes that another agent shares with you.

        A channel.toml in the folder of its notes grants it: read or peek. The owner may always look. If nothing is
        granted, the answer is the same whether there are notes or not. With a query the best match comes first, else
        the latest note.
        """
        from notebook_sync.notes.channels.search import Wanted

        wanted = Wanted(tags or (), topic=topic, project=project)
        found = self.wiring._note_search.peek(channel, query, session, wanted, limit=limit)
        return _rows(found, found.degraded)

    @operation(
        "note channels",
        route="GET /channels",
        nothing_found="no channels; the first note creates one: notebook-sync note write TEXT --agent NAME",
        examples=("notebook-sync note channels", "notebook-sync note channels --session task --agent scribe --json"),
    )
    def list(self, session: Session = OWNER) -> Results[AgentChannel]:
        """List the channels, and who else may read them.

        The owner sees all of them; an agent sees its own and those that it is a member of. `notes` is null if the agent
        may write there but not read.
        """
        return Results(results=[AgentChannel(**each) for each in self.wiring._channels.list(session)])

    def import_notes(self, file: Path, session: Session = OWNER) -> Imported:
        """Import the notes of an older program's export, each once however often this is called, with their times,
        tags, conversations and metadata. Invalid ones are listed in `failed`; the others are still imported. Raises
        NotPermitted unless the session is the owner's, UsageError for a file that is no export."""
        return self.wiring._note_import.bring_in(file, session)


def _rows(found: Any, degraded: str = "") -> Results[PrivateNote]:
    return Results(results=msgspec.convert(found, Rows), degraded=degraded or None)


Rows = list[PrivateNote]
