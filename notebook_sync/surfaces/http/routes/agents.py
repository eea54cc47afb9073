"""The routes of the HTTP API for what agents do: pages, the stream, checkpoints.

Each takes its arguments, calls one use case, and gives what that gives; a route decides nothing.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Response

from notebook_sync.agent_notebook import USUAL_SCORE
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
    require_owner,
    router,
)
from notebook_sync.surfaces.http.models import agents as models
from notebook_sync.surfaces.http.models.notes import Listed
from notebook_sync.surfaces.tools.runs.pages import made
from notebook_sync.surfaces.tools.schemas.agents import (
    Change,
    CreateArguments,
    DeletedResult,
    WrittenResult,
)

agent_routes = router()

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


# The stream, and going back.


@agent_routes.post("/log", status_code=201, response_model_exclude_none=True)
def log(notebook: Served, asking: Asking, wanted: models.LogWanted) -> models.Entry:
    """Put a line into today's stream; with `keep`, into long-term memory instead."""
    entry = notebook.log(
        wanted.content,
        asking,
        source=wanted.source or "",
        tags=wanted.tags or (),
        score=USUAL_SCORE if wanted.score is None else wanted.score,
        keep=bool(wanted.keep),
    )
    return models.Entry.model_validate(entry)


@agent_routes.get("/today", response_model_exclude_none=True)
def today(
    notebook: Served,
    asking: Asking,
    day: Annotated[str, Query(max_length=16, description="as 2026-02-18; else today")] = "",
    limit: Annotated[int, Query(ge=1, le=models.MOST_ENTRIES, description="the last so many")] = 1000,
) -> models.Day:
    """The stream of a day, as far as whoever asks may know of it."""
    return models.Day.model_validate(notebook.today(asking, day, limit).as_dict())


@agent_routes.get("/recall", response_model_exclude_none=True)
def recall(
    notebook: Served,
    asking: Asking,
    query: Words,
    tags: Tags = None,
    since: Moment = None,
    limit: Limit = 10,
) -> models.Recalled:
    """What hot memory has for these words, best first: the stream, long-term memory, and which notes there are."""
    found = notebook.recall(query, asking, tags=tags or (), since=moment_given(notebook, since), limit=limit)
    return models.Recalled.model_validate(found)


@agent_routes.get("/checkpoints")
def checkpoints(notebook: Served, asking: Asking) -> Listed[models.Checkpoint]:
    """The checkpoints, the latest first; `degraded` says where older ones are lost."""
    kept = [each.as_dict() for each in notebook.checkpoints(asking)]
    return Listed[models.Checkpoint].model_validate(
        {"results": kept, "degraded": notebook.checkpoints_lost(asking) or None}
    )


@agent_routes.post("/checkpoints", status_code=201)
def checkpoint(notebook: Served, asking: Asking, wanted: models.CheckpointWanted) -> models.Checkpoint:
    """Remember how things are now, to go back to."""
    return models.Checkpoint.model_validate(notebook.checkpoint(asking, wanted.name or "").as_dict())


@agent_routes.post("/rollback", dependencies=[Depends(require_owner)], responses=CONFLICT)
def rollback(notebook: Served, asking: Asking, wanted: models.RollbackWanted) -> models.RolledBack:
    """Go back to a checkpoint: stream and long-term memory, with `files` the notes too. The owner's."""
    rolled = notebook.rollback(wanted.id, asking, files=wanted.files)
    return models.RolledBack.model_validate(rolled.as_dict())
