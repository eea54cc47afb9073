"""What every route of the HTTP API has before it begins: the notebook, who asks, and what the document says of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.requests import ClientDisconnect

from notebook_sync.errors import UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.http.errors import Answer
from notebook_sync.surfaces.http.models import notes as models
from notebook_sync.surfaces.tools.calling import QUICK

API = "/api/v1"
# Of what is only read, what searches, compares or draws; all else that is read is quick.
_COSTLY: Final = frozenset(
    f"{API}{path}"
    for path in (
        *("/search", "/check", "/recall", "/channels/{channel}/notes", "/channels/{channel}/peek"),
        *("/facts", "/facts/search", "/facts/plot", "/memories/search", "/memories/audit", "/memories/graph"),
    )
)
_OWNER_ONLY = "Only the notebook's owner may ask for this"


async def _notebook(request: Request) -> Notebook:
    notebook: Notebook = request.app.state.notebook
    return notebook


async def _asking(request: Request) -> Session:
    """Who asks, as the guard found out."""
    session: Session = request.state.session
    return session


Served = Annotated[Notebook, Depends(_notebook)]
Asking = Annotated[Session, Depends(_asking)]


def require_owner(request: Request, notebook: Served, asking: Asking) -> None:
    """Refuse who is not the owner."""
    if asking.kind != "owner":
        notebook.refuse(asking, f"{request.method} {request.url.path}", _OWNER_ONLY)


async def _turn(request: Request) -> AsyncIterator[None]:
    """Begin when it is the session's turn; not at all for a client that left meanwhile."""
    path, place = request.scope["route"].path, request.state.place
    is_read = request.method == "GET" and path not in _COSTLY
    async with place.at_work(is_quick=is_read or request.path_params.get("name") in QUICK):
        if await request.is_disconnected():
            raise ClientDisconnect
        yield


# For an endpoint that reads its body itself, which has to be before.
in_turn = asynccontextmanager(_turn)


class _Route(APIRoute):
    @cached_property
    def parameters(self) -> list[str]:
        """What may stand in its query. From the document of this route alone: that of all takes a second to make, for
        which the first request would wait."""
        paths = get_openapi(title="", version="", routes=[self])["paths"]
        operation = next(iter(paths[self.path_format].values()))
        return [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]


async def _known_parameters(request: Request) -> None:
    """Refuse a parameter that the document does not name: it was meant to mean something."""
    if not request.query_params:
        return
    known = request.scope["route"].parameters
    for name in request.query_params.keys() - known:
        raise UsageError(f"there is no parameter {name!r} here; there are: {', '.join(known) or 'none'}")


Name = Annotated[str, Path(max_length=models.LONGEST_QUERY, description="path, id, or a runtime file's name")]
Words = Annotated[str, Query(max_length=models.LONGEST_QUERY)]
Limit = Annotated[int, Query(ge=1, le=models.MOST_NOTES)]
Tags = Annotated[list[Annotated[str, Query(max_length=256)]] | None, Query(max_length=100, description="any of them")]
Moment = Annotated[str | None, Query(max_length=64, description="2026-02-18, 2026-02-18T09:30, or 7d for days ago")]
IfMatch = Annotated[str | None, Header(max_length=128, description="the digest that the file is to have")]

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": models.ErrorBody, "description": description}
    for status, description in (
        (400, "the body is no JSON at all"),
        (401, "no valid token"),
        (403, "the session may not do this, or a foreign Host or Origin"),
        (404, "no such note, tool or route"),
        (405, "another method"),
        (413, "the body is too large"),
        (414, "the path or the query is too long"),
        (415, "the body is not sent as JSON"),
        (422, "the arguments are wrong"),
        (429, "the session has as much under way as it may: try again after Retry-After"),
        (431, "the headers are too large"),
        (500, "a fault of the server"),
        (503, "a store does not answer: try again after Retry-After"),
    )
}
CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"model": models.ConflictBody, "description": "the file is not the one that was expected"}
}


def open_router() -> APIRouter:
    """For routes that need no token."""
    return _router()


def router() -> APIRouter:
    """For routes of whoever has a token."""
    bearer = HTTPBearer(auto_error=False, description="the owner's token, or an agent's")
    return _router(Depends(_known_parameters), Depends(bearer), Depends(_turn, scope="function"))


def _router(*first: Any) -> APIRouter:
    return APIRouter(
        prefix=API, responses=REFUSALS, dependencies=first, route_class=_Route, default_response_class=Answer
    )


def digest_in(if_match: str | None) -> str | None:
    """The digest that an If-Match header names; None where it names none, or any."""
    if if_match is None or if_match.strip() == "*":
        return None
    return if_match.strip().removeprefix("W/").strip('"')
