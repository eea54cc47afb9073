"""The HTTP API of one notebook, asked in this process by clients with a token each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient

from notebook_sync import Notebook, Session
from notebook_sync.folder import FOLDER
from notebook_sync.surfaces.serving.app import http_app
from notebook_sync.tokens import Tokens

BASE = "http://127.0.0.1:8765"


@dataclass
class Served:
    """A served notebook. A session that asks for the first time is given a token."""

    root: Path
    app: FastAPI
    client: TestClient
    _tokens: dict[Session, str] = field(default_factory=dict)

    def token(self, session: Session) -> str:
        if session not in self._tokens:
            tokens = Tokens(self.root / FOLDER)
            is_owner = session.kind == "owner"
            if not is_owner:
                tokens.revoke(session.agent)
            self._tokens[session] = tokens.owner() if is_owner else tokens.add(session.agent, session.kind)
        return self._tokens[session]

    def ask(
        self, method: str, path: str, session: Session | None, *, headers: dict[str, str] | None = None, **more: Any
    ) -> httpx2.Response:
        """The answer to one request to a path below /api/v1, made by this session, None for nobody."""
        bearer = {"Authorization": f"Bearer {self.token(session)}"} if session else {}
        return self.client.request(method, f"/api/v1{path}", headers={**bearer, **(headers or {})}, **more)


def answered(server: Served, method: str, path: str, session: Session, status: int = 200, **more: Any) -> Any:
    """The value of an answer, after a look at its status."""
    answer = server.ask(method, path, session, **more)
    assert answer.status_code == status, answer.text
    return answer.json()


@contextlib.contextmanager
def served(root: Path, **options: Any) -> Iterator[Served]:
    with Notebook.open(root) as notebook:
        app = http_app(notebook, **options)
        with TestClient(app, base_url=BASE) as client:
            yield Served(root, app, client)


class HttpDoor:
    """`Door` by HTTP: each session by a token of its own."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def list_tools(self, session: Session) -> set[str]:
        answer = self._served.ask("GET", "/tools", session, params={"shape": "mcp"})
        return {tool["name"] for tool in answer.json()}

    def call(self, session: Session, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = self._served.ask("POST", f"/tools/{name}", session, json=arguments)
        told: dict[str, Any] = answer.json()
        assert (answer.status_code == httpx2.codes.OK) != ("error" in told)
        return told


@contextlib.contextmanager
def over_http(root: Path) -> Iterator[HttpDoor]:
    with served(root) as found:
        yield HttpDoor(found)
