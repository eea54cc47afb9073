"""The door of browsers: a cookie that only the dashboard takes, forms of its own pages, and pages for answers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from notebook_sync.logins import Logins
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.pages import trouble
from notebook_sync.surfaces.http import errors as faults
from notebook_sync.surfaces.http.doors import READING, host_name, is_sent_as
from notebook_sync.surfaces.http.errors import Fault

LOGIN: Final = "/login"
COOKIE: Final = "notebook"
STATIC: Final = "/static/"
FORM: Final = "application/x-www-form-urlencoded"
_NOT_A_FORM = Fault(415, "not_a_form", "a page sends its forms as they are", "go back, and send the form from the page")
_NOT_FROM_A_PAGE = Fault(
    403,
    "foreign_origin",
    "a form is taken from the dashboard's own pages only",
    "open the page at this address, and send the form from there",
)
_STILL_THERE = "what you wrote is still in the page before: log in in another tab, go back here, and send it again"


class BrowserDoor:
    """`programs` are the paths that are not for browsers, with all below them."""

    def __init__(self, logins: Logins, programs: Collection[str]) -> None:
        self._logins = logins
        self._programs = tuple(programs)

    def owns(self, path: str) -> bool:
        return not any(path == own or path.startswith(f"{own}/") for own in self._programs)

    def is_open(self, path: str) -> bool:
        return path == LOGIN or path.startswith(STATIC)

    def proof_in(self, scope: Scope) -> str:
        given = Headers(scope=scope).getlist("cookie")
        cookie = cookie_parser(given[0]).get(COOKIE, "") if len(given) == 1 else ""
        return cookie and f"{host_of(scope)} {cookie}"

    def session_of(self, proof: str) -> Session | None:
        return self._logins.session_of(proof)

    def content_refusal_of(self, scope: Scope) -> Fault | None:
        """What changes something comes from a page of ours, and the browser says so: the cookie alone proves it not."""
        if scope["method"] in READING:
            return None
        headers = Headers(scope=scope)
        if "origin" not in headers:  # which is ours where it is there: no other passed
            return _NOT_FROM_A_PAGE
        return None if is_sent_as(headers, FORM) else _NOT_A_FORM

    def refusal(self, scope: Scope, fault: Fault) -> Response:
        if fault is not faults.NO_TOKEN:
            return trouble(fault.status, fault.message, fault.next)
        if scope["method"] in READING and Headers(scope=scope).get("sec-fetch-dest", "document") == "document":
            return RedirectResponse(_login_before(scope["path"], scope["query_string"].decode("latin-1")), 303)
        return trouble(401, "you are not logged in any more", _STILL_THERE, login=_login_before(*_page_before(scope)))


def _login_before(path: str, query: str) -> str:
    """The address that leads to a page by way of the login."""
    wanted = f"{path}?{query}" if query else path
    return f"{LOGIN}?next={quote(wanted)}" if wanted != "/" else LOGIN


def _page_before(scope: Scope) -> tuple[str, str]:
    """The path and the query of the page that a form was sent from: what it is sent to, nobody can look at."""
    headers = Headers(scope=scope)
    try:
        before = urlsplit(headers.get("referer", ""))
    except ValueError:
        return "/", ""
    return (before.path or "/", before.query) if before.netloc == headers.get("host") else ("/", "")


def host_of(scope: Scope) -> str:
    """The host name by which a request came, without its port."""
    return host_name(Headers(scope=scope).get("host", ""))
