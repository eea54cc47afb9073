"""Pictures that pages show, as files of their own: a style in an SVG counts there alone, and no script of it runs.

A picture is named by what it is, so that a page that is made anew loads only what is another one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import sha256
from typing import Annotated, Final

from fastapi import Path, Request
from fastapi.responses import Response
from markupsafe import Markup
from starlette.exceptions import HTTPException

from notebook_sync.surfaces.dashboard.asking import pages_router
from notebook_sync.surfaces.http.picture import picture as drawn

pages = pages_router()
MOST: Final = 24


class Pictures:
    """The last pictures that pages were made with. Those of a server that ran before are gone with it: the page that
    shows one is what makes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, str] = OrderedDict()

    def address_of(self, picture: str) -> str:
        """Where a browser finds it from now on."""
        name = sha256(picture.encode()).hexdigest()
        with self._lock:
            self._kept[name] = picture
            self._kept.move_to_end(name)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return f"/memory/pictures/{name}.svg"

    def named(self, name: str) -> str | None:
        """The picture of this name."""
        with self._lock:
            return self._kept.get(name)


def said_in(picture: str) -> Markup:
    """What a picture of ours says for those who do not see it. It is escaped there."""
    return Markup(picture.partition('<desc id="desc">')[2].partition("</desc>")[0])  # noqa: S704 - made by our own renderer


@pages.get("/memory/pictures/{name}.svg")
def picture(request: Request, name: Annotated[str, Path(max_length=64)]) -> Response:
    """One that a page was made with."""
    pictures: Pictures = request.app.state.pictures
    found = pictures.named(name)
    if found is None:
        raise HTTPException(404)
    return drawn(found)
