"""The pages of a served notebook, asked as a browser asks for them, without one."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2

from notebook_sync.surfaces.dashboard.door import FORM
from tests.surfaces.http_clients import Served, served


@dataclass
class Browsing:
    """A browser's doings. Redirects are answers; `follow` goes where one leads."""

    served: Served

    def __post_init__(self) -> None:
        logins = self.served.app.state.logins
        self.served.client.base_url = logins.link("127.0.0.1", 8765).partition("/login")[0]

    @property
    def root(self) -> Path:
        return self.served.root

    @property
    def origin(self) -> str:
        return str(self.served.client.base_url).rstrip("/")

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """What is at a path of the dashboard."""
        return self.served.client.get(path, headers={"Sec-Fetch-Dest": "document", **headers}, follow_redirects=False)

    def post(self, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> httpx2.Response:
        """Send a form from a page of the dashboard. Line ends go as a browser sends them."""
        body = urlencode({name: value.replace("\n", "\r\n") for name, value in (fields or {}).items()})
        sent = {"Origin": self.origin, "Content-Type": FORM, **headers}
        return self.served.client.post(path, content=body, headers=sent, follow_redirects=False)

    def follow(self, answer: httpx2.Response) -> httpx2.Response:
        """The page that an answer leads to."""
        assert answer.status_code == 303, text_of(answer.text)
        return self.get(answer.headers["Location"])


@contextlib.contextmanager
def browsing(root: Path, **options: Any) -> Iterator[Browsing]:
    """A browser that is logged in as the owner of the notebook at `root`."""
    with served(root, **options) as found:
        browser = Browsing(found)
        assert browser.get(f"/login?code={found.app.state.logins.link_code()}").status_code == 303
        yield browser


def text_of(markup: str) -> str:
    """What a page says, without its markup, each run of white space one space."""
    reader = _Text()
    reader.feed(markup)
    return re.sub(r"\s+", " ", " ".join(reader.said)).strip()


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_data(self, data: str) -> None:
        self.said.append(data)
