"""The dashboard as an ASGI application, and who may see it.

Browsers are let in by a cookie that counts at the dashboard's own host name only, send forms of its own pages, and get
pages for answers. They log in by the link that `serve` prints or with the owner's token.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from urllib.parse import quote

import anyio
from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Scope

from notebook_sync.errors import NotebookError, NotPermitted, Unauthorized
from notebook_sync.notebook import Notebook
from notebook_sync.services.tokens import COOKIE_LIFE, TokenFile
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard import (
    browse,
    editor,
    graph,
    notes,
    past,
    prompt,
    review,
    runtime,
    tables,
    today,
)
from notebook_sync.surfaces.dashboard.shell import FRAGMENT, Ask, Shell, own_path, state_of
from notebook_sync.surfaces.http.app import API, LIVE, LOGIN, MCP, STATIC
from notebook_sync.surfaces.http.guard import COOKIE, host_name, is_own_host
from notebook_sync.surfaces.http.live import sent_as_events

# The modules of pages, in the order of the navigation. A crafted page that takes the place of a generic one comes
# before `tables`.
CRAFTED = (today, past, browse, notes, editor, graph, prompt, runtime, tables, review)
_POLL_SECONDS = 0.3
_MOST_GUESSES = 10
_GUESS_SECONDS = 60.0
_READING = ("GET", "HEAD")
_USED = "This link was used already, or is more than 10 minutes old."
_WRONG = "This is not the owner's token."
_TOO_MANY = "Too many wrong tokens. Try again in a minute."


def dashboard_of(notebook: Notebook) -> tuple[CookieAuth, ASGIApp]:
    """Authentication and the pages of a notebook."""
    shell = Shell(notebook)
    auth = CookieAuth(shell)
    routes: list[BaseRoute] = [
        Route(f"{STATIC}{{name}}", shell.static),
        Route(LIVE, partial(_live, notebook)),
        *auth.routes(),
    ]
    for module in CRAFTED:
        routes += tables.routes(shell) if module is tables else shell.routes_in(module)
    return auth, GZipMiddleware(Router(routes, redirect_slashes=False), minimum_size=1000, compresslevel=6)


async def _live(notebook: Notebook, request: Request) -> Response:
    """The state of the index as a server-sent event, now and whenever it changes, until the login ends. A page compares
    it with the one that it was made from."""
    return sent_as_events(_changes(notebook, request.state.is_current))


async def _changes(notebook: Notebook, is_current: Callable[[], bool]) -> AsyncIterator[dict[str, str]]:
    seen = ""
    while await anyio.to_thread.run_sync(is_current):
        now = await anyio.to_thread.run_sync(state_of, notebook.core)
        if now != seen:
            yield {"data": now}
        seen = now
        await anyio.sleep(_POLL_SECONDS)


class CookieAuth:
    """How browsers are let in. It owns every path that is not for programs."""

    media_type = "application/x-www-form-urlencoded"

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._tokens = TokenFile(shell.notebook.core.place.state)
        self._guesses: deque[float] = deque(maxlen=_MOST_GUESSES)
        self._lock = threading.Lock()

    def owns(self, path: str) -> bool:
        """Whether a path is a page's."""
        return not any(path == each or path.startswith(f"{each}/") for each in (API, MCP))

    def proof_in(self, method: str, headers: Headers) -> str:
        """The host name and the cookie. What changes something comes from a page of ours, and the browser says so."""
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        is_from_page = method in _READING or "origin" in headers  # which the guard has found to be our own
        return f"{host_name(headers.get('host', ''))} {cookie}" if cookie and is_from_page else ""

    def session_of(self, proof: str) -> Session | None:
        """The owner, for a cookie that is valid at this host name."""
        host, _, cookie = proof.partition(" ")
        return self._tokens.check_cookie(cookie, host)

    def refusal(self, scope: Scope, error: NotebookError) -> Response:
        """The way to the login for who is not logged in, else the error as a page."""
        here = scope["path"] if scope["state"].get("session") else ""
        return self._to_login(scope) if isinstance(error, Unauthorized) else self._shell.refusal(error, here=here)

    def _to_login(self, scope: Scope) -> Response:
        """The login, for who opens a page; what was sent from one stays in it."""
        headers, query = Headers(scope=scope), scope["query_string"].decode("latin-1")
        is_page = scope["method"] in _READING and headers.get("sec-fetch-dest", "document") == "document"
        if is_page and FRAGMENT not in headers.get("accept", ""):
            wanted = scope["path"] + (f"?{query}" if query else "")
            return RedirectResponse(f"{LOGIN}?next={quote(wanted)}" if wanted != "/" else LOGIN, 303)
        advice = "log in in another tab, go back here, and send it again: what you wrote is still in the page before"
        return self._shell.refusal(Unauthorized("you are not logged in any more", next=advice), login=LOGIN)

    # ---- logging in and out

    def routes(self) -> list[BaseRoute]:
        """The login and the logout."""
        shell = self._shell
        return [shell.route(LOGIN, self._login, "GET", "POST"), shell.route("/logout", self._logout, "POST")]

    def _login(self, ask: Ask) -> Response:
        """The form; with a code or a token that counts, the dashboard; where nobody logs in, how to get there."""
        host = host_name(ask.request.headers.get("host", ""))
        if not self._is_ours(host):
            return self._shell.plain("elsewhere.html", status=NotPermitted.status, host=host)
        wanted = own_path(ask.form.get("next") or ask.query.get("next") or "/")
        code, cookie, wrong, status = ask.query.get("code", ""), None, "", 200
        if ask.request.method == "POST":
            if hmac.compare_digest(ask.form.get("token", "").strip().encode(), self._tokens.owner().encode()):
                cookie = self._tokens.add_cookie(host)
            else:
                wrong, status = (_TOO_MANY, 429) if self._is_throttled() else (_WRONG, 403)
        elif code:
            cookie = self._tokens.add_cookie(host, link=code)
            wrong, status = ("", 200) if cookie else (_USED, 403)
        if cookie:
            return self._let_in(ask, wanted, cookie)
        answer = self._shell.plain("login.html", status=status, wanted=wanted, wrong=wrong)
        if status == 429:
            answer.headers["Retry-After"] = f"{_GUESS_SECONDS:.0f}"
        return answer

    def _let_in(self, ask: Ask, wanted: str, cookie: str) -> Response:
        answer = RedirectResponse(wanted, 303)
        # A proxy says so of what came to it by TLS; a client that says it falsely hides only its own cookie.
        is_tls = "https" in (ask.request.url.scheme, ask.request.headers.get("x-forwarded-proto"))
        seconds = int(COOKIE_LIFE.total_seconds())
        answer.set_cookie(COOKIE, cookie, max_age=seconds, httponly=True, samesite="strict", secure=is_tls)
        return answer

    def _logout(self, ask: Ask) -> Response:
        """Take the cookie away, and let no copy of it count."""
        self._tokens.end_cookie(ask.request.cookies.get(COOKIE, ""))
        answer = RedirectResponse(LOGIN, 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    def _is_ours(self, host: str) -> bool:
        """Whether cookies of this host name reach no other server of this machine: the dashboard's own name, or one
        that the settings allow."""
        return host == self._tokens.host_name() or not is_own_host(host)

    def _is_throttled(self) -> bool:
        """Count a wrong token; True where there were too many within a minute."""
        with self._lock:
            now, oldest = time.monotonic(), self._guesses[0] if len(self._guesses) == _MOST_GUESSES else None
            self._guesses.append(now)
            return oldest is not None and now - oldest < _GUESS_SECONDS
