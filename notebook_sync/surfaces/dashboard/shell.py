"""What every page of the dashboard is made with: handlers, templates, messages, and the answer to errors.

Autoescape is always on, and a handler reaches the notebook through operations, as the owner.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.registry import OPERATIONS, call
from notebook_sync.services.core import Core
from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces.background import Threads
from notebook_sync.surfaces.dashboard.markdown import note_href, render

FRAGMENT: Final = "text/fragment"
GROUPS: Final = ("Notebook", "Memory", "Agents", "System")
_PAGE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",  # a form comes back to the page that it was sent from
    "X-DNS-Prefetch-Control": "off",
}
_MOST_FIELDS = 200
_MOST_MESSAGES = 200
_YEAR = 365 * 86_400
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

Fields = ImmutableMultiDict[str, str]


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as a handler sees it. `state` is the index's, from before the handler looked at anything."""

    request: Request
    form: Fields
    state: str

    @property
    def query(self) -> Fields:
        """The arguments in the address."""
        return self.request.query_params

    @property
    def path(self) -> Mapping[str, str]:
        """The parameters in the path."""
        return self.request.path_params

    def asked(self, *names: str) -> dict[str, str]:
        """These arguments in the address, "" for one that is not there."""
        return {name: self.query.get(name, "").strip() for name in names}

    @property
    def is_fragment(self) -> bool:
        """Whether only the inner part of the page is wanted."""
        return FRAGMENT in self.request.headers.get("accept", "")

    @property
    def here(self) -> str:
        """The own address that a form was sent from, with its query; "/" where it is not known."""
        before = urlsplit(self.request.headers.get("referer", ""))
        is_own = before.netloc == self.request.headers.get("host") and before.path
        return own_path(before.path + (f"?{before.query}" if before.query else "")) if is_own else "/"

    def back_to(self, *pages: str) -> str:
        """Where a form was sent from, if that is one of these pages, else the first of them."""
        return self.here if self.here.partition("?")[0] in pages else pages[0]


@dataclass(frozen=True, slots=True)
class Undo:
    """A form that takes back what was done: where it is sent, and its fields."""

    action: str
    fields: Mapping[str, str]


Handler = Callable[["Shell", Ask], Response]


def route(path: str, *methods: str, link: tuple[str, str] = ("", "")) -> Callable[[Handler], Handler]:
    """Declare a function as what answers at a path, to GET unless methods are named. `link` is its group and its title
    in the navigation."""

    def declare(handler: Handler) -> Handler:
        handler.declared = path, methods, link  # type: ignore[attr-defined]
        return handler

    return declare


class Shell:
    """The dashboard of one notebook."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        # By group, the path and the title of each link.
        self.navigation: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        self._threads = Threads()
        self._zone: tzinfo = UTC
        # What was just done, for the next page that is shown: `text`, `warnings` and `undo`.
        self._messages: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        # By the name of a server: when it last answered, and how many changes it lacked then.
        self.answered: dict[str, tuple[datetime, int]] = {}
        self._files = {each.name: each.read_bytes() for each in (Path(__file__).parent / "static").iterdir()}
        self._addresses = {
            name: f"/static/{sha256(each).hexdigest()[:12]}-{name}" for name, each in self._files.items()
        }
        self._templates = Environment(
            loader=PackageLoader("notebook_sync.surfaces.dashboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {"cell": self._cell, "note_href": note_href, "markdown": render}
        self._templates.globals |= {"static": self._addresses.__getitem__, "navigation": self.navigation}

    def routes_in(self, module: ModuleType) -> Iterator[Route]:
        """The routes that a module declares, which are also named in the navigation."""
        for handler in vars(module).values():
            if declared := getattr(handler, "declared", None):
                path, methods, (group, title) = declared
                if group:
                    self.navigation[group].append((path, title))
                yield self.route(path, partial(handler, self), *methods)

    def route(self, path: str, handler: Callable[[Ask], Response], *methods: str) -> Route:
        """A route whose handler runs in a thread. A form is read before."""

        async def answer(request: Request) -> Response:
            form = form_of(await request.body()) if request.method == "POST" else Fields()

            def work() -> Response:
                return handler(Ask(request, form, state_of(self.notebook.core)))

            return await self._threads.run(work, writes=request.method == "POST")

        return Route(path, answer, methods=list(methods or ("GET",)))

    def call(
        self, words: str, given: Mapping[str, Any] | None = None, session: Session = OWNER, **unchecked: Any
    ) -> Any:
        """What an operation answers to the owner, or to another session. Raises NotebookError."""
        return call(self.notebook, OPERATIONS[words], given or {}, session, from_text=True, **unchecked)

    def tried(
        self, words: str, given: Mapping[str, Any] | None = None, session: Session = OWNER
    ) -> tuple[Any, NotebookError | None]:
        """What an operation answers, and no error; or nothing, and why it cannot answer."""
        try:
            return self.call(words, given, session), None
        except NotebookError as error:
            return None, error

    def page(self, ask: Ask, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page, or the inner part of one."""
        message = self._messages.pop(ask.query.get("done", ""), None)
        values = {"here": ask.request.url.path, "message": message, "name": self.notebook.root.name, **values}
        values |= {"behind": self.notebook.core.behind(), "state": ask.state}
        self._zone = self.notebook.settings.timezone
        found = self._templates.get_template(template)
        inner = found.blocks["main"](found.new_context(values)) if ask.is_fragment else None
        return html(found.render(values) if inner is None else "".join(inner), status)

    def done(self, to: str, text: str, *, warnings: Sequence[str] = (), undo: Undo | None = None) -> Response:
        """The answer to a form that has done its work: the page at `to`, with a message."""
        key = secrets.token_urlsafe(9)
        self._messages[key] = {"text": text, "warnings": warnings, "undo": undo}
        while len(self._messages) > _MOST_MESSAGES:
            self._messages.popitem(last=False)
        place, _, query = to.partition("?")
        kept = [pair for pair in query.split("&") if pair and not pair.startswith("done=")]
        return RedirectResponse(f"{place}?{'&'.join([*kept, f'done={key}'])}", 303, dict(_PAGE_HEADERS))

    def refusal(self, error: NotebookError, *, login: str = "", here: str = "") -> Response:
        """An error as a page."""
        return self.plain("error.html", status=error.status, error=error, login=login, here=here)

    def plain(self, template: str, *, status: int = 200, here: str = "", **values: Any) -> Response:
        """A page without messages; without navigation too, unless `here` says where it is."""
        name = self.notebook.root.name if here else ""
        text = self._templates.get_template(template).render(here=here, name=name, behind="", **values)
        return html(text, status)

    async def static(self, request: Request) -> Response:
        """A file that pages load. Its address changes with what it says, so it may be kept."""
        name = request.path_params["name"].partition("-")[2]
        if self._addresses.get(name) != request.url.path:
            raise HTTPException(404)
        headers = {"Cache-Control": f"private, max-age={_YEAR}, immutable"}
        return Response(self._files[name], headers=headers, media_type=_TYPES[name.rpartition(".")[2]])

    def _cell(self, value: Any) -> str:
        return cell(value, self._zone)


def state_of(core: Core) -> str:
    """What differs after a change of the index; that something was looked at changes none of it."""
    return f"{core.index.rev()}-{core.events.newest()}"


def html(text: str, status: int = 200) -> Response:
    """Markup as an answer, with the pages' policy."""
    return HTMLResponse(text, status, dict(_PAGE_HEADERS))


def form_of(body: bytes) -> Fields:
    """The fields of a form. Line ends are as files have them: browsers send others. Raises UsageError."""
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise UsageError("the form cannot be read", next="go back to the page, and send it again") from None
    return Fields([(name, value.replace("\r\n", "\n")) for name, value in fields])


def own_path(wanted: str) -> str:
    """A path of this dashboard; "/" for an address elsewhere."""
    is_own = wanted.startswith("/") and not wanted.startswith("//") and wanted.isprintable() and "\\" not in wanted
    return quote(wanted, safe="/?&=%+:,;@!$'()*~-._") if is_own else "/"


def address_with(path: str, asked: Mapping[str, str], **more: str) -> str:
    """The address of a page with what is asked of it; more is asked, or "" of what was asked."""
    given = {name: value for name, value in {**asked, **more}.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def cell(value: Any, zone: tzinfo) -> str:
    """A value of a result as a cell of a table shows it; a time as 2026-02-18 09:30 in a zone."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, datetime):
        return f"{value.astimezone(zone):%Y-%m-%d %H:%M}"
    if isinstance(value, list | tuple | set):
        return ", ".join(cell(each, zone) for each in value) or "–"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {cell(each, zone)}" for name, each in value.items()) or "–"
    return "–" if value in (None, "") else str(value)


def plain(result: Any) -> Any:
    """A result as dicts, lists and values, with times kept."""
    return msgspec.to_builtins(result, builtin_types=(datetime, date), str_keys=True)
