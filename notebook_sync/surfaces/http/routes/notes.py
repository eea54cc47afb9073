"""The routes of the HTTP API: each takes its arguments, calls one use case, and gives what that gives.

They run in worker threads. What a session may do is decided in the use cases; a route decides nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import Body, Depends, Header, Path, Query, Request, Response
from fastapi.responses import EventSourceResponse
from fastapi.sse import ServerSentEvent

from notebook_sync import __version__
from notebook_sync.errors import UsageError
from notebook_sync.events import Event
from notebook_sync.files.note import COLLECTIONS, STATUSES
from notebook_sync.moments import moment_given
from notebook_sync.notebook import Notebook
from notebook_sync.notes.runtime.audience import told_to
from notebook_sync.sessions import Session
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
    open_router,
    require_owner,
    router,
)
from notebook_sync.surfaces.http.errors import STATUSES as HTTP_STATUSES
from notebook_sync.surfaces.http.errors import answer
from notebook_sync.surfaces.http.events import Streams
from notebook_sync.surfaces.http.metrics import CONTENT_TYPE, Metrics
from notebook_sync.surfaces.http.models import notes as models
from notebook_sync.surfaces.tools.calling import Shape, call, tool_definitions
from notebook_sync.surfaces.tools.schemas.notes import EditResult, Row

Collection = Annotated[str | None, Query(json_schema_extra={"enum": list(COLLECTIONS)})]
Status = Annotated[str | None, Query(json_schema_extra={"enum": list(STATUSES)})]
Mode = Literal["keyword", "semantic", "hybrid"]
Author = Annotated[str, Query(max_length=128, description="owner, or agent:NAME")]
_TOLD_TO_NOBODY_ELSE = "Events are not available in this conversation"
_EXPOSITION = {"description": "Prometheus' text format", "content": {"text/plain": {"schema": {"type": "string"}}}}


open_routes = open_router()
routes = router()


def _may_follow(request: Request, notebook: Served, asking: Asking) -> None:
    if asking.kind == "external":
        notebook.refuse(asking, f"{request.method} {request.url.path}", _TOLD_TO_NOBODY_ELSE)


@open_routes.get("/health")
async def health() -> models.Health:
    """Whether the server is there. Needs no token, and tells nothing of the notebook."""
    return models.Health(version=__version__)


async def _narrowed(
    notebook: Served,
    collection: Collection = None,
    status: Status = None,
    tags: Tags = None,
    author: Author = "",
    since: Moment = None,
    until: Moment = None,
) -> dict[str, Any]:
    """By what notes may be narrowed, as the notebook is asked for it."""
    return {
        "collection": collection,
        "status": status,
        "tags": tags or (),
        "created_by": author,
        "since": moment_given(notebook, since),
        "until": moment_given(notebook, until),
    }


Narrowed = Annotated[dict[str, Any], Depends(_narrowed)]


@routes.get("/notes")
def list_notes(notebook: Served, asking: Asking, narrowed: Narrowed, limit: Limit = 50) -> models.Listed[Row]:
    """Notes, the latest change first, without their text."""
    return models.Listed[Row].model_validate({"results": notebook.list(limit=limit, session=asking, **narrowed)})


@routes.get("/notes/{note:path}")
def read(
    notebook: Served,
    asking: Asking,
    response: Response,
    note: Name,
    section: Words | None = None,
    omitted: Annotated[bool, Query(description="only what the session's prompt leaves out")] = False,
) -> models.NoteAnswer | models.OmittedAnswer:
    """A note as its file is now, or one section of it by its anchor or heading. `ETag` is the file's digest."""
    if omitted:
        left = notebook.prompts.omitted(note, asking, section=section or "")
        response.headers["ETag"] = f'"{left.digest}"'
        return models.OmittedAnswer(**asdict(left))
    document = notebook.read(note, asking)
    part = notebook.section(document, section) if section is not None else None
    response.headers["ETag"] = f'"{document["source"]["digest"]}"'
    return _as_answer(document, part)


async def _found_by(
    query: Words,
    mode: Annotated[Mode | None, Query(description="else hybrid, where there are embeddings")] = None,
    section: Annotated[str, Query(max_length=models.LONGEST_QUERY, description="below this anchor or heading")] = "",
    snippet: Annotated[bool, Query(description="with each row, what of the note fits best")] = False,
    explain: Annotated[bool, Query(description="with each row, how it came to its score")] = False,
    limit: Limit = 10,
) -> dict[str, Any]:
    """What is looked for, as the notebook is asked for it."""
    asked = {"query": query, "mode": mode or "", "section": section, "snippet": snippet, "explain": explain}
    return {**asked, "limit": limit}


FoundBy = Annotated[dict[str, Any], Depends(_found_by)]


@routes.get("/search")
def search(notebook: Served, asking: Asking, found_by: FoundBy, narrowed: Narrowed) -> models.SearchAnswer:
    """Search notes by words and meaning, best match first, without their text. No character of `query` is an operator.
    `behind` counts notes without an embedding."""
    searched = notebook.search_report(session=asking, **found_by, **narrowed)
    return models.SearchAnswer.model_validate({**searched.as_dict(), "degraded": searched.degraded or None})


@routes.post("/edit", response_model=EditResult, response_model_exclude_none=True, responses=CONFLICT)
def edit(
    notebook: Served,
    asking: Asking,
    wanted: models.EditWanted,
    if_match: IfMatch = None,
) -> Any:
    """Change one file, as the tool notebook_edit does: by a section or an entry, several edits all or nothing."""
    arguments = wanted.model_dump(exclude_unset=True)
    digest = digest_in(if_match)
    if digest is not None:
        if wanted.expected_digest not in (None, digest):
            raise UsageError("If-Match and expected_digest name two texts; send one of them")
        arguments["expected_digest"] = digest
    return _run("notebook_edit", arguments, notebook, asking)


@routes.post("/undo", responses=CONFLICT)
def undo(notebook: Served, asking: Asking, wanted: models.UndoWanted) -> models.EditedAnswer:
    """Give a note the text it had before, as a new edit; a second undo takes back the first."""
    return models.EditedAnswer.model_validate(notebook.undo(wanted.file, asking).as_dict())


@routes.get("/history/{note:path}")
def history(notebook: Served, asking: Asking, note: Name, limit: Limit = 50) -> list[models.RevisionAnswer]:
    """The versions of a note, the latest first; also of one that is gone."""
    found = notebook.history(note, asking, limit)
    return [models.RevisionAnswer.model_validate(revision.as_dict()) for revision in found]


@routes.get("/diff/{note:path}")
def diff(
    notebook: Served,
    asking: Asking,
    note: Name,
    rev: Annotated[str, Query(max_length=64, description='as history names it; "" for the one before')] = "",
) -> models.DiffAnswer:
    """What changed in a note since a version of it."""
    return models.DiffAnswer(diff=notebook.diff(note, rev, asking))


@routes.get("/tools")
def tools(asking: Asking, shape: Shape = "openai") -> list[dict[str, Any]]:
    """The definitions of the tools that whoever asks may call."""
    return tool_definitions(asking, shape)


@routes.post("/tools/{name}", responses=CONFLICT)
def call_tool(
    notebook: Served,
    asking: Asking,
    name: Annotated[str, Path(max_length=64)],
    arguments: Annotated[dict[str, Any], Body()],
) -> dict[str, Any]:
    """Run a tool. The answer is the tool's; an error of it has the status that it has elsewhere."""
    answered: dict[str, Any] = _run(name, arguments, notebook, asking)
    return answered


@routes.get("/metrics", dependencies=[Depends(require_owner)], response_class=Response, responses={200: _EXPOSITION})
def metrics(request: Request) -> Response:
    """Numbers for Prometheus. The owner's: how many notes there are is private, too."""
    numbers: Metrics = request.app.state.metrics
    return Response(numbers.text(), media_type=CONTENT_TYPE)


@routes.get("/events", dependencies=[Depends(_may_follow)], response_class=EventSourceResponse)
async def events(
    request: Request,
    notebook: Served,
    asking: Asking,
    last_event_id: Annotated[str, Header(max_length=64)] = "",
) -> AsyncIterator[ServerSentEvent]:
    """What happens from now on, or since the event `Last-Event-ID`, as server-sent events, while the token counts."""
    streams: Streams = request.app.state.streams

    def told_of(event: Event) -> Event | None:
        return told_to(asking, event, lambda path: notebook.guard.may(asking, "read", path))

    yield ServerSentEvent(comment="following", retry=_RETRY_MS)
    async for event in streams.follow(last_event_id, None):
        if event is None or not await to_thread.run_sync(request.state.is_current, limiter=streams.limiter):
            return
        told = await to_thread.run_sync(told_of, event, limiter=streams.limiter)
        if told is not None:
            yield ServerSentEvent(data=told, event=told["kind"], id=told["id"])


_RETRY_MS = 2_000


def _run(name: str, arguments: dict[str, Any], notebook: Notebook, asking: Session) -> Any:
    answered = call(notebook, name, arguments, asking)
    if "error" in answered:
        return answer(HTTP_STATUSES[answered["error"]["type"]], answered)
    return answered


def _as_answer(document: dict[str, Any], part: dict[str, Any] | None) -> models.NoteAnswer:
    metadata = document["metadata"]
    return models.NoteAnswer(
        id=document["id"],
        path=document["path"],
        collection=document["collection"],
        title=document["title"],
        digest=document["source"]["digest"],
        version=metadata["version"],
        status=metadata["status"],
        tags=metadata["tags"],
        updated_at=metadata["updated_at"],
        created_by=metadata["created_by"],
        text=part["content"] if part else document["content"],
        section=part["anchor"] if part else None,
        sections=[models.SectionOutline.model_validate(each) for each in document["sections"]],
        external=document["external"],
        stale=document["stale"],
    )
