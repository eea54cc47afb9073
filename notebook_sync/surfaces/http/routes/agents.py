"""The routes of the HTTP API for pages, code snippets and research notes.

Each takes its arguments, calls one use case, and gives what that gives; a route decides nothing.
"""

from __future__ import annotations

from fastapi import Response

from notebook_sync.surfaces.http.asking import (
    CONFLICT,
    Asking,
    IfMatch,
    Name,
    Served,
    digest_in,
    router,
)
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
