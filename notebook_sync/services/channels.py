"""Private notes: each agent writes them into a channel of its own, a folder below `channels/`.

What a session may not know of is refused in the same words whether it exists or not, and has no effect on order, scores
and limits of what it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta

from notebook_sync import services
from notebook_sync.errors import NoAgentNamed, UsageError
from notebook_sync.permissions import Verb, fold_name
from notebook_sync.registry import NOT_EXTERNAL, Arg, Limit, Result, Results, When, found_any, operation
from notebook_sync.services.core import NotebookService
from notebook_sync.services.results import COLUMNS, NoteRow, Written, row_fields
from notebook_sync.services.view import View
from notebook_sync.sessions import KINDS, OWNER, Session, is_agent_name
from notebook_sync.store.rows import Is, Row, Where, both

FOLDER, GLOBAL, GENERAL = "channels", "global", "general"
UNSURE = 0.5  # the confidence of a note that names none
# So many of the newest notes are ranked; of older ones, the most promising.
_RANKED = 1_000
_WORDS_OF_A_NAME, _LONGEST_TITLE = 6, 80
_NEWEST = ("-created_at", "-updated_at")
_SCOPE = re.compile(r"\w(?:[\w .@+:-]{0,126}[\w@+:-])?")
_SEPARATORS = re.compile(r"[\s._-]+")
# Fields that the program sets, or that a reader takes for what a note says of itself, without separators.
_RESERVED = frozenset(
    (
        *("id", "title", "summary", "createdby", "createdat", "tag", "tags", "alias", "aliases", "status", "type"),
        *("topic", "sessionid", "provenance", "supersededby", "supersedes", "validuntil", "notebookid", "wants"),
        *("path", "collection", "content", "code", "sections", "metadata", "extra", "fields", "createdfrom"),
        *("updatedat", "version", "history", "source", "digest", "wordcount", "tokencount", "links", "problems"),
        *("stale", "usage", "score", "audience"),
    )
)
# What a private note is read by, and what its writer did not give of that.
_FIELDS = (*COLUMNS, "topic", "session_id", "created_at", "extra")
_OWN = frozenset(("type", "provenance"))
# Who may do one of these to the notes of a channel is one of its users.
_USES: tuple[Verb, ...] = ("peek", "write")
_REFUSAL = "Private notes are not available in this conversation"
# An owner that names no agent asks for the notes of all.
_UNLESS_OWNER = frozenset(("task", "external"))
_AGENT = {"agent_name": "channel", "agent_project_id": "project"}

Line = Annotated[str, Meta(max_length=256)]
Query = Annotated[str, Meta(max_length=4_096), Arg("QUERY", positional=True)]
Profile = Literal["recent", "quality", "balanced", "similarity"]
Topic = Annotated[str, Meta(max_length=256), Arg("TOPIC")]
Conversation = Annotated[str, Meta(max_length=256, description="of this conversation"), Arg("ID")]
Project = Annotated[
    str, Meta(max_length=128, description="a project's and general ones; global: only these"), Arg("ID")
]
Channel = Annotated[str, Meta(max_length=64, description="whose notes, default your own"), Arg("AGENT")]
Tags = Annotated[list[Line], Meta(max_length=100), Arg("TAGS")]

# After so many hours, a note is worth half for its age; what then age, likeness and confidence count.
PROFILES: Mapping[Profile, tuple[float, float, float, float]] = {
    "recent": (24, 0.6, 0.3, 0.1),
    "quality": (720, 0.1, 0.4, 0.5),
    "balanced": (168, 0.33, 0.34, 0.33),
    "similarity": (8_760, 0.0, 1.0, 0.0),
}


class PrivateNote(NoteRow, frozen=True, kw_only=True):
    """A private note without its text. `metadata` has the writer's own fields. `score`, 0 to 1, is null where notes are
    in order of time."""

    topic: str
    session_id: str
    created_at: datetime
    metadata: dict[str, Any]
    score: float | None

    def _neutral(self) -> dict[str, Any]:
        return NoteRow._neutral(self) | {"topic": "", "session_id": "", "metadata": {}}


class AgentChannel(Result, frozen=True, kw_only=True):
    """A channel. `scope` is a project, or "global". `notes` is null where the session may not read them. `members` are
    the other agents that may use it, as far as the session may know them, each with read, write or peek."""

    id: str
    agent: str
    scope: str
    notes: int | None
    members: dict[str, list[str]]


class ChannelService(NotebookService):
    """Private notes of agents, each a file in channels/AGENT/PROJECT/, or in channels/AGENT/global/ without a project.

    Other agents see nothing of them, unless a channel.toml in that folder names them. The owner sees all. `--agent`
    names the agent that asks, `--channel` another one, which shares its channel with it.
    """

    name = "channels"

    @operation(
        "note write",
        tool="write_note",
        route="POST /channels/{channel}/notes",
        effect="write",
        creates=True,
        asks="caller",
        needs_agent=frozenset(KINDS),
        aliases=_AGENT,
        unlisted=("channel",),
        hint="For your later self: a hunch, what to try next.",
        examples=(
            "notebook-sync note write 'Ines has the key of the boathouse' --topic harbour --agent scribe",
            "notebook-sync note write 'The buoy drifts' --metadata confidence=0.8 --agent scribe",
        ),
    )
    def write(
        self,
        content: Annotated[str, Meta(max_length=10_000_000), Arg("TEXT", positional=True, from_file=True)],
        session: Session = OWNER,
        *,
        topic: Topic = GENERAL,
        tags: Tags | None = None,
        session_id: Annotated[str, Meta(max_length=256, description="your conversation"), Arg("ID")] = "",
        project: Annotated[str, Meta(max_length=128), Arg("ID")] = "",
        metadata: Annotated[
            dict[str, Any], Meta(description="fields of your own; confidence 0..1 ranks"), Arg("KEY=VALUE")
        ]
        | None = None,
        channel: Channel = "",
    ) -> Written:
        """Write a private note.

        The channel is made with its first note. Further fields are kept in the note's frontmatter and come back with
        it. In an external session, the note is marked as somebody else's words: `provenance: external`.
        """
        from notebook_sync.files.compose import slug

        folder = f"{FOLDER}/{owner_of(channel, session)}/{scope_of(project)}"
        view, now = View(self.core, session), self.core.now()
        view.require("add", f"{folder}/note.md", "write_note")
        if not content.strip():
            raise UsageError("the note is empty", next="say what is to be kept")
        head = {
            "title": title_for(content),
            "type": "note",
            "topic": _line(topic) or GENERAL,
            "tags": [tag for each in tags or () if (tag := _line(each).lstrip("# "))] or None,
            "session_id": _line(session_id) or None,
            "provenance": session.kind,
            "created_by": session.changed_by,
            "created_at": now,
            **_checked_metadata(metadata or {}),
        }
        words = slug(" ".join(content.split()[:_WORDS_OF_A_NAME]))
        return services.documents.create_file(view, f"{folder}/{now:%Y-%m-%dT%H%M%SZ}-{words}", head, content)

    @operation(
        "note search",
        tool="search_my_notes",
        tool_aliases=("search_agent_notes",),
        route="GET /channels/{channel}/notes",
        sessions=NOT_EXTERNAL,
        refusal=_REFUSAL,
        needs_agent=_UNLESS_OWNER,
        aliases=_AGENT,
        unlisted=("until", "channel", "session_id"),
        columns=("score", "path", "title"),
        nothing_found="no private note matches",
        exit_code=found_any,
        examples=(
            "notebook-sync note search 'key of the boathouse' --agent scribe",
            "notebook-sync note search --tags key --since 7d --profile recent --agent scribe --json",
        ),
    )
    def search(
        self,
        query: Query = "",
        session: Session = OWNER,
        *,
        profile: Annotated[Profile, Arg("PROFILE")] = "balanced",
        topic: Topic = "",
        tags: Tags | None = None,
        session_id: Conversation = "",
        project: Project = "",
        since: When = "",
        until: When = "",
        limit: Limit = 50,
        channel: Channel = "",
    ) -> Results[PrivateNote]:
        """Search private notes, the best match first.

        The profile says what counts. similarity: words and meaning alone; recent: new notes more; quality: notes with a
        high `confidence` more; balanced: all three. Without a query, all notes that the options admit are ranked.
        `since` and `until` are about when a note was written. The owner searches all channels unless one is named. The
        exit code is 1 if nothing is found.
        """
        view = View(self.core, session)
        where = both(
            self._reach(view, channel, project, "read", "search_my_notes"),
            self._filter(topic, tags, session_id, since, until),
        )
        return self._ranked(query, where, profile, limit)

    @operation(
        "note recent",
        tool="get_recent_notes",
        toolset="channels",
        route="GET /channels/{channel}/recent",
        sessions=NOT_EXTERNAL,
        refusal=_REFUSAL,
        needs_agent=_UNLESS_OWNER,
        aliases=_AGENT,
        unlisted=("channel",),
        columns=("created_at", "path", "title"),
        nothing_found="no private notes",
        examples=("notebook-sync note recent --agent scribe --limit 5",),
    )
    def recent(
        self,
        session: Session = OWNER,
        *,
        topic: Topic = "",
        session_id: Conversation = "",
        project: Project = "",
        limit: Limit = 20,
        channel: Channel = "",
    ) -> Results[PrivateNote]:
        """List private notes, the latest first.

        The owner sees those of all channels unless one is named.
        """
        where = self._reach(View(self.core, session), channel, project, "read", "get_recent_notes")
        return self._newest(both(where, self._filter(topic, None, session_id)), limit)

    @operation(
        "note peek",
        tool="peek_agent_notes",
        toolset="channels",
        route="GET /channels/{channel}/peek",
        sessions=NOT_EXTERNAL,
        refusal=_REFUSAL,
        needs_agent=_UNLESS_OWNER,
        aliases={**_AGENT, "agent": "channel"},
        columns=("created_at", "path", "title"),
        nothing_found="no private note matches",
        examples=("notebook-sync note peek scribe boathouse --limit 5",),
    )
    def peek(
        self,
        channel: Annotated[str, Meta(max_length=64, description="the other agent"), Arg("AGENT", positional=True)],
        session: Session = OWNER,
        *,
        query: Query = "",
        topic: Topic = "",
        tags: Tags | None = None,
        project: Project = "",
        limit: Limit = 20,
    ) -> Results[PrivateNote]:
        """List private notes that another agent shares with you.

        A channel.toml in the folder of its notes grants it: read or peek. The owner may always look. If nothing is
        granted, the answer is the same whether there are notes or not. With a query the best match comes first, else
        the latest note.
        """
        where = self._reach(View(self.core, session), channel, project, "peek", "peek_agent_notes")
        where = both(where, self._filter(topic, tags))
        return self._ranked(query, where, "balanced", limit) if query.strip() else self._newest(where, limit)

    @operation(
        "note channels",
        route="GET /channels",
        columns=("id", "notes", "members"),
        nothing_found="no channels; the first note makes one: notebook-sync note write TEXT --agent NAME",
        examples=("notebook-sync note channels",),
    )
    def list(self, session: Session = OWNER) -> Results[AgentChannel]:
        """List the channels, and who else may use them.

        The owner sees all of them; an agent sees its own and those that it is a member of.
        """
        view, tree = View(self.core, session), self.core.tree
        agents = [agent for agent in tree.folders(FOLDER) if is_agent_name(agent)]
        folders = [f"{FOLDER}/{agent}/{scope}" for agent in agents for scope in tree.folders(f"{FOLDER}/{agent}")]
        usable = [
            each
            for each in folders
            if _SCOPE.fullmatch(each.split("/")[2]) and any(view.may(verb, f"{each}/note.md") for verb in _USES)
        ]
        counts = self.core.index.documents.distinct("audience", Is("audience", "in", usable))
        return Results([_channel(view, folder, counts.get(folder, 0)) for folder in usable])

    # ---- which notes

    def _reach(self, view: View, channel: str, project: str, verb: Verb, tool: str) -> Where:
        """The notes that a call is about, of those that the session may see. Raises NotPermitted where it may see none
        of the agent's, UsageError, NoAgentNamed."""
        session, scopes = view.session, (scope_of(project), GLOBAL) if project else ()
        is_for_all = session.kind == "owner" and not (channel or session.agent)
        agent = "" if is_for_all else owner_of(channel, session)
        # A channel that is shared may have no note yet.
        folders = self.core.tree.folders(f"{FOLDER}/{agent}") if agent else []
        known = view.channels.union(f"{FOLDER}/{agent}/{each}" for each in folders)
        found = [each for each in known if _is_of(each, agent, scopes) and view.may(verb, f"{each}/note.md")]
        if not found:
            view.require(verb, f"{FOLDER}/{agent}/{GLOBAL}/note.md", tool)
        return Is("audience", "in", found)

    def _filter(
        self, topic: str, tags: Iterable[str] | None, session_id: str = "", since: str = "", until: str = ""
    ) -> Where:
        texts = {"topic": _line(topic), "session_id": _line(session_id)}
        wanted: list[Where] = [Is(name, "=", text) for name, text in texts.items() if text]
        wanted += services.finding.within(self.core, "created_at", since, until)
        wanted += [services.finding.any_tag(tags)] if tags else []
        return both(Is("path", "!=", None), *wanted)

    # ---- in which order

    def _newest(self, where: Where, limit: int) -> Results[PrivateNote]:
        rows = self.core.index.documents.find(where, order=_NEWEST, limit=limit, fields=_FIELDS)
        return Results([_private_note(row) for row in rows], self.core.behind() or None)

    def _ranked(self, query: str, where: Where, profile: Profile, limit: int) -> Results[PrivateNote]:
        """By `(likeness·w + confidence·w + decay·w) / Σw`; without a query, likeness is left out of both sums."""
        from notebook_sync.search.ranking import decay

        documents, now, degraded = self.core.index.documents, self.core.now(), None
        half_life, by_age, by_likeness, by_confidence = PROFILES[profile]
        fields = ("id", "created_at", "fields")
        rows = documents.find(where, order=_NEWEST, limit=max(limit, _RANKED), fields=fields)
        if query.strip():
            rated, degraded = self.core.searcher.rate(query, where=where, among=[row["id"] for row in rows])
            rows = documents.find(Is("id", "in", list(rated)), order=_NEWEST, fields=fields)
        else:
            rated, by_likeness = dict.fromkeys((row["id"] for row in rows), 0.0), 0.0
        total = by_likeness + by_confidence + by_age or 1.0
        scores = dict[str, float]()
        for row in rows:
            confidence = (row["fields"] or {}).get("confidence")
            sure, age = UNSURE if confidence is None else confidence, now - row["created_at"]
            worth = by_likeness * rated[row["id"]] + by_confidence * sure
            worth += by_age * decay(age, timedelta(hours=half_life))
            scores[row["id"]] = round(worth / total, 4)
        best = sorted(scores, key=lambda id: -scores[id])[:limit]  # equal ones stay in order of time
        found = {row["id"]: row for row in documents.find(Is("id", "in", best), fields=_FIELDS)}
        results = [_private_note(found[id], scores[id]) for id in best if id in found]
        return Results(results, degraded or self.core.behind() or None)


def owner_of(channel: str, session: Session) -> str:
    """Whose channel is meant: the agent's that is named, else the session's own. Raises UsageError, NoAgentNamed."""
    name = channel or session.agent
    if not name:
        raise NoAgentNamed("private notes are those of one agent, and none is named", next="name it with --agent NAME")
    if not is_agent_name(name):
        raise UsageError(f"{name!r} cannot be an agent's name", next="use at most 64 letters, digits and .-_@+: inside")
    return name


def scope_of(project: str) -> str:
    """The folder of a project, which has its whole id; `global` without one. Raises UsageError."""
    if project and not _SCOPE.fullmatch(project):
        raise UsageError(
            f"{project[:64]!r} cannot be a project's id", next="use at most 128 letters, digits and .-_@+: inside"
        )
    return project or GLOBAL


def _is_of(audience: str, agent: str, scopes: Iterable[str]) -> bool:
    """Whether an audience is that of one of these scopes of an agent; "" is any agent, no scopes are all of them."""
    _, owner, scope = f"{audience}/".split("/")[:3]
    return agent in ("", owner) and (not scopes or scope in scopes)


def _private_note(row: Row, score: float | None = None) -> PrivateNote:
    fields = row_fields(row)
    said = {**(fields.pop("extra") or {}), "confidence": fields["fields"].get("confidence")}
    metadata = {name: value for name, value in said.items() if name.casefold() not in _OWN and value is not None}
    return PrivateNote(**fields, metadata=metadata, score=score)


def _channel(view: View, folder: str, notes: int) -> AgentChannel:
    _, agent, scope = folder.split("/")
    session, members = view.session, view.core.tree.members(folder)
    knows_all = session.kind == "owner" or session.agent == agent
    return AgentChannel(
        id=f"notes:{agent}:{scope}",
        agent=agent,
        scope=scope,
        notes=notes if view.may("peek", f"{folder}/note.md") else None,
        members={name: [*may] for name, may in members.items() if knows_all or name == session.agent},
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def title_for(content: str) -> str | None:
    """The first words, where no heading gives the note a title: else it would be called as its file is."""
    from notebook_sync.files.page import shorten
    from notebook_sync.files.parse import parse  # loads the prompt's parts, which only a note that is written needs

    note = parse("note.md", content.encode(errors="replace"), timezone=UTC)
    has_title = any(section.level == 1 and section.heading for section in note.sections)
    return None if has_title else shorten(note.summary, _LONGEST_TITLE) or None


def is_reserved(name: str) -> bool:
    """Whether a field's name is the notebook's own, in any spelling."""
    return _SEPARATORS.sub("", fold_name(name)) in _RESERVED


def _checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The writer's own fields. Raises UsageError for a name that is the notebook's own, in any spelling, or that nobody
    can read."""
    for name in metadata:
        if not name.strip() or not name.isprintable() or is_reserved(name):
            raise UsageError(
                f"metadata cannot set {name!r}: the notebook sets it, or nobody can read it",
                next="use another name, of letters, digits and _",
            )
    confidence = metadata.get("confidence", UNSURE)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise UsageError("confidence must be a number from 0 to 1")
    return dict(metadata)
