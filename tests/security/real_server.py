"""A notebook served on a real port of this process, as `serve` does it: the whole app behind uvicorn."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from notebook_sync import Notebook, Session
from notebook_sync.folder import FOLDER
from notebook_sync.logins import Logins
from notebook_sync.tokens import Tokens
from tests.surfaces.mcp_clients import serving, token_of


@dataclass
class Running:
    """A server, and a client that keeps no connection alive between tests."""

    tokens: Tokens
    port: int
    client: httpx2.Client

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def own_host(self) -> str:
        """The host name at which the dashboard lets the owner log in."""
        self.tokens.owner()
        return f"{Logins(self.tokens).own_host()}:{self.port}"

    def token(self, session: Session) -> str:
        return token_of(self.tokens, session)

    def headers(self, session: Session) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(session)}"}

    def get(self, path: str, token: str = "") -> httpx2.Response:
        return self.client.get(self.url + path, headers={"Authorization": f"Bearer {token}"} if token else {})

    def connect(self) -> socket.socket:
        """A connection on which nothing was said."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


@contextlib.contextmanager
def running(root: Path) -> Iterator[Running]:
    tokens = Tokens(root / FOLDER)
    limits = httpx2.Limits(max_connections=None)
    with (
        Notebook.open(root) as notebook,
        serving(notebook) as url,
        httpx2.Client(trust_env=False, timeout=60, limits=limits) as client,
    ):
        yield Running(tokens, urlsplit(url).port or 0, client)
