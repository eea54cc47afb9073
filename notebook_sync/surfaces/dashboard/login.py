"""Logging in, by the link that `serve` prints or with the owner's token, and out; and the files that pages load."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from notebook_sync.logins import COOKIE_SECONDS, GUESS_SECONDS, Logins
from notebook_sync.surfaces.dashboard.asking import Form, pages_router
from notebook_sync.surfaces.dashboard.door import COOKIE, LOGIN, host_of
from notebook_sync.surfaces.dashboard.pages import page, static_file

open_pages = APIRouter(include_in_schema=False)
pages = pages_router()
_USED = "That link was used already, or is more than ten minutes old; notebook-sync token link makes another one."
_NOT_THE_OWNERS = "That is not the owner's token."
_TOO_MANY_GUESSES = (
    "Too many wrong tokens. notebook-sync token show tells the right one, and notebook-sync token link makes a link."
)
_A_YEAR: Final = 365 * 86_400


@open_pages.get(LOGIN)
def login_page(request: Request, code: str = "", next: str = "/") -> Response:  # noqa: A002 - the name in the address
    """The form, or with a code that counts, the dashboard itself; at an address where nobody logs in, where to."""
    if _logins(request).is_shared(host_of(request.scope)):
        return _elsewhere(request)
    if code and _logins(request).spend(code):
        return _let_in(request, next)
    return _form(next, _USED) if code else _form(next, "", 200)


@open_pages.post(LOGIN)
def log_in(request: Request, form: Form) -> Response:
    """With the owner's token."""
    logins, wanted = _logins(request), form.get("next", "/")
    if logins.is_shared(host_of(request.scope)):
        return _elsewhere(request)
    if logins.is_owners_token(form.get("token", "").strip()):
        return _let_in(request, wanted)
    if not logins.is_throttled:
        return _form(wanted, _NOT_THE_OWNERS)
    refusal = _form(wanted, _TOO_MANY_GUESSES, 429)
    refusal.headers["Retry-After"] = str(GUESS_SECONDS)
    return refusal


@pages.post("/logout")
def log_out(request: Request) -> Response:
    """Take the cookie away, and let no copy of it count."""
    _logins(request).end(request.app.state.browsers.proof_in(request.scope))
    answer = RedirectResponse(LOGIN, 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
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


def _elsewhere(request: Request) -> Response:
    """How to get to the dashboard. Not its address: whoever asks has proved nothing."""
    return page("elsewhere.html", status=403, here="", host=host_of(request.scope))


def _form(wanted: str, wrong: str, status: int = 403) -> Response:
    return page("login.html", status=status, here="", wanted=_within(wanted), wrong=wrong)


def _let_in(request: Request, wanted: str) -> Response:
    answer = RedirectResponse(_within(wanted), 303)
    # A proxy says so of what came to it by TLS; whoever else says it hides their own cookie from themselves.
    is_by_tls = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    answer.set_cookie(
        COOKIE,
        _logins(request).cookie(host_of(request.scope)),
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
