"""Logging in, by the link that `serve` prints or with the owner's token, and out; and the files that pages load."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from notebook_sync.surfaces.dashboard.asking import Form, pages_router
from notebook_sync.surfaces.dashboard.door import LOGIN, cookie_name
from notebook_sync.surfaces.dashboard.logins import COOKIE_SECONDS, Logins
from notebook_sync.surfaces.dashboard.pages import page, static_file

open_pages = APIRouter(include_in_schema=False)
pages = pages_router()
_USED = "That link was used already, or is more than ten minutes old; notebook-sync token link makes another one."
_NOT_THE_OWNERS = "That is not the owner's token."
_A_YEAR: Final = 365 * 86_400


@open_pages.get(LOGIN)
def login_page(request: Request, code: str = "", next: str = "/") -> Response:  # noqa: A002 - the name in the address
    """The form, or with a code that counts, the dashboard itself."""
    if code and _logins(request).spend(code):
        return _let_in(request, next)
    return page("login.html", here="", wanted=_within(next), wrong=_USED if code else "", status=403 if code else 200)


@open_pages.post(LOGIN)
def log_in(request: Request, form: Form) -> Response:
    """With the owner's token."""
    wanted = form.get("next", "/")
    if _logins(request).is_owners_token(form.get("token", "").strip()):
        return _let_in(request, wanted)
    return page("login.html", status=403, here="", wanted=_within(wanted), wrong=_NOT_THE_OWNERS)


@pages.post("/logout")
def log_out(request: Request) -> Response:
    """Take the cookie away, and let no copy of it count."""
    name = cookie_name(request.scope)
    _logins(request).end(request.cookies.get(name, ""))
    answer = RedirectResponse(LOGIN, 303)
    answer.delete_cookie(name, httponly=True, samesite="strict")
    return answer


@open_pages.get("/static/{name}")
async def static(name: Annotated[str, Path(max_length=64)]) -> Response:
    """A file that pages load. Its address changes with what it says, so it may be kept."""
    found = static_file(name)
    if found is None:
        raise HTTPException(404)
    content, media_type = found
    return Response(content, headers={"Cache-Control": f"private, max-age={_A_YEAR}, immutable"}, media_type=media_type)


def _logins(request: Request) -> Logins:
    logins: Logins = request.app.state.logins
    return logins


def _let_in(request: Request, wanted: str) -> Response:
    answer = RedirectResponse(_within(wanted), 303)
    # A proxy says so of what came to it by TLS; whoever else says it hides their own cookie from themselves.
    is_by_tls = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    answer.set_cookie(
        cookie_name(request.scope),
        _logins(request).cookie(),
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=is_by_tls,
    )
    return answer


def _within(wanted: str) -> str:
    """The path of a page here: an address elsewhere is none."""
    is_own = wanted.startswith("/") and not wanted.startswith("//") and wanted.isprintable() and "\\" not in wanted
    return wanted if is_own else "/"
