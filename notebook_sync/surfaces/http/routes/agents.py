"""The routes of the HTTP API for what agents do: pages and private notes.

Each takes its arguments, calls one use case, and gives what that gives; a route decides nothing.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from notebook_sync.agent_notebook import BALANCED, GENERAL
from notebook_sync.moments import moment_given
from notebook_sync.surfaces.http.asking import (
    CONFLICT,
    Asking,
    IfMatch,
    Limit,
    Moment,
    Name,
    Served,
    Tags,
    Words,
    digest_in,
    router,
)
from notebook_sync.surfaces.http.models import agents as models
from notebook_sync.surfaces.http.models.notes import Listed
from notebook_sync.surfaces.tools.runs.pages import made
from notebook_sync.surfaces.tools.schemas.agents import (
    Change,
    CreateArguments,
    DeletedResult,
    NoteRow,
    Profile,
    WriteNoteArguments,
    WrittenResult,
)

agent_routes = router()

Agent = Annotated[str, Path(max_length=64, description="whose channel: an agent's name")]
Line = Annotated[str, Query(max_length=256)]
Project = Annotated[str, Query(max_length=128, description="its channel and the global one; else all")]

# Pages, code snippets and research notes.


@agent_routes.post("/notes", status_code=201, responses=CONFLICT)
def create(notebook: Served, asking: Asking, wanted: CreateArguments) -> WrittenResult:
    """Make a page, a code snippet or a research note."""
    return WrittenResult.model_validate(made(notebook, wanted, asking).as_dict())


@agent_routes.patch("/notes/{note:path}", responses=CONFLICT)
def update(
    notebook: Served, asking: Asking, response: Response, note: Name, wanted: Change, if_match: IfMatch = None
) -> WrittenResult:
    """Change of a note what is given. `ETag` is the digest that its file has then."""
    written = notebook.update(
        note,
        asking,
        content=wanted.content,
        title=wanted.title,
        tags=wanted.tags,
        summary=wanted.summary,
        status=wanted.status,
        fields=wanted.fields() or None,
        expected_digest=digest_in(if_match),
    )
    response.headers["ETag"] = f'"{written.digest}"'
    return WrittenResult.model_validate(written.as_dict())


@agent_routes.delete("/notes/{note:path}", responses=CONFLICT)
def delete(notebook: Served, asking: Asking, note: Name, if_match: IfMatch = None) -> DeletedResult:
    """Take away one note; what it said is kept in `.notebook/past`, and in git where there is one."""
    path = notebook.find_path(note, asking, "write", "notebook_delete")
    entered = notebook.delete(path, asking, expected_digest=digest_in(if_match))
    return DeletedResult(path=path, commit=entered.commit, warnings=list(entered.warnings))


# Private notes.


@agent_routes.get("/channels")
def channels(notebook: Served, asking: Asking) -> Listed[models.Channel]:
    """The channels that whoever asks may use."""
    return Listed[models.Channel].model_validate({"results": notebook.channels(asking)})


@agent_routes.post("/channels/{agent}/notes", status_code=201, responses=CONFLICT)
def write_note(notebook: Served, asking: Asking, agent: Agent, wanted: WriteNoteArguments) -> WrittenResult:
    """Write a private note into a channel of this agent."""
    written = notebook.write_note(
        wanted.content,
        asking,
        topic=wanted.topic or GENERAL,
        tags=wanted.tags or (),
        session_id=wanted.session_id or "",
        project=wanted.project or "",
        metadata=wanted.metadata or {},
        agent=agent,
    )
    return WrittenResult.model_validate(written.as_dict())


@agent_routes.get("/channels/{agent}/notes")
def find_notes(
    notebook: Served,
    asking: Asking,
    agent: Agent,
    query: Words = "",
    tags: Tags = None,
    topic: Line = "",
    session_id: Line = "",
    project: Project = "",
    since: Moment = None,
    until: Moment = None,
    profile: Annotated[Profile, Query()] = BALANCED,
    limit: Limit = 50,
) -> Listed[NoteRow]:
    """An agent's private notes without their text: those that match `query`, best first."""
    found = notebook.search_notes(
        query,
        asking,
        agent=agent,
        tags=tags or (),
        since=moment_given(notebook, since),
        until=moment_given(notebook, until),
        topic=topic,
        session_id=session_id,
        project=project,
        profile=profile,
        limit=limit,
    )
    return Listed[NoteRow].model_validate({"results": found, "degraded": found.degraded or None})


@agent_routes.get("/channels/{agent}/recent")
def recent_notes(
    notebook: Served,
    asking: Asking,
    agent: Agent,
    topic: Line = "",
    session_id: Line = "",
    project: Project = "",
    limit: Limit = 20,
) -> Listed[NoteRow]:
    """An agent's latest private notes, without their text."""
    found = notebook.recent_notes(asking, agent=agent, limit=limit, session_id=session_id, topic=topic, project=project)
    return Listed[NoteRow].model_validate({"results": found})


@agent_routes.get("/channels/{agent}/peek")
def peek_notes(
    notebook: Served,
    asking: Asking,
    agent: Agent,
    query: Words = "",
    tags: Tags = None,
    topic: Line = "",
    project: Project = "",
    limit: Limit = 20,
) -> Listed[NoteRow]:
    """Private notes of an agent that lets the one who asks look, without their text."""
    found = notebook.peek_notes(agent, asking, query=query, tags=tags or (), topic=topic, project=project, limit=limit)
    return Listed[NoteRow].model_validate({"results": found, "degraded": found.degraded or None})
