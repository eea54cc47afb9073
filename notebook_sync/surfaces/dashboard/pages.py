"""Pages from templates. Whatever a template is given is text: it is escaped unless it was made as markup here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

# Everything comes from here, scripts and styles from files alone: what a note says runs nowhere.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
# With `no-referrer` a browser would not say of a form which page it comes from. And it would ask for the names of hosts
# that links lead to before anybody follows them: who made a link in a note would learn that it is read.
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-DNS-Prefetch-Control": "off",
}
# The parts of the dashboard: the name by which a page says that it belongs there, the address, and what it is called.
PARTS: Final = (
    ("home", "/", "Home"),
    ("prompt", "/prompt", "Prompt"),
    ("notes", "/notes", "Notes"),
    ("rules", "/rules", "Rules"),
    ("memory", "/memory", "Memory"),
)
_FOLDER = files("notebook_sync.surfaces.dashboard")
STYLE: Final = "text/css; charset=utf-8"
SCRIPT: Final = "text/javascript; charset=utf-8"
# What may stand first with a capital letter: no path, no name of a file, a setting or a command.
_WORD: Final = re.compile(r"[a-z]+(?:['’][a-z]+)?(?=[,;:]?(?:\s|$))")
_ENDED: Final = re.compile(r"[.!?…:][”\")’]*$|: notebook-sync [^.]*$")  # with a mark, or with a command to be copied
KINDS: Mapping[str, str] = {"css": STYLE, "js": SCRIPT, "svg": "image/svg+xml"}


def page(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """The answer that shows a template. `here` among the values names the part of the dashboard that it belongs to."""
    return HTMLResponse(fragment(template, **values), status, dict(HEADERS))


def fragment(template: str, **values: Any) -> str:
    """A template with these values, as markup."""
    return _environment().get_template(template).render(**values)


def trouble(status: int, message: str, next_step: str, *, login: str = "") -> HTMLResponse:
    """What went wrong, and what to do about it; where that is to log in, at which address."""
    said = {"message": message, "next_step": next_step, "login": login}
    return page("trouble.html", status=status, here="", code=status, **said)


@cache
def static_file(name: str) -> tuple[bytes, str] | None:
    """What a page may load, and its media type; None for what there is not."""
    kind = KINDS.get(name.rpartition(".")[2])
    if kind is None or name not in _names():
        return None
    return _FOLDER.joinpath("static", name).read_bytes(), kind


@cache
def version_of(name: str) -> str:
    """A name for what a static file says: another text has another one."""
    found = static_file(name)
    if found is None:
        raise LookupError(name)
    return sha256(found[0]).hexdigest()[:12]


@cache
def _names() -> frozenset[str]:
    return frozenset(each.name for each in _FOLDER.joinpath("static").iterdir())


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("notebook_sync.surfaces.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {"parts": PARTS, "static": lambda name: f"/static/{name}?v={version_of(name)}"}
    environment.filters |= {"number": "{:,}".format, "moment": moment_shown, "sentence": sentence}
    return environment


def sentence(message: str) -> str:
    """What an error says, which is worded to stand behind a colon, as a sentence: a capital, and a full stop."""
    said = message.strip()
    if _WORD.match(said):
        said = said[0].upper() + said[1:]
    return said if not said or _ENDED.search(said) else f"{said}."


def moment_shown(moment: datetime | str, timezone: tzinfo | None = None) -> str:
    """To the minute, as people read it; a text that is no moment, as it is."""
    try:
        found = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        return str(moment)
    return found.astimezone(timezone).strftime("%Y-%m-%d %H:%M") if found.tzinfo else found.strftime("%Y-%m-%d %H:%M")
