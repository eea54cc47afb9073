"""The ways by which a model reaches the tools, behind one face: what is tested of one is tested of all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from notebook_sync import Notebook, Session, call, tool_definitions
from tests.surfaces.http_clients import over_http
from tests.surfaces.mcp_clients import mcp_in_process, mcp_over_http


class Door(Protocol):
    """One way in. A session is named anew at each call, so that a door cannot remember a better one."""

    def list_tools(self, session: Session) -> set[str]:
        """The names of the tools that the session is shown."""

    def call(self, session: Session, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The tool's answer, or `{"error": {"type", "message", …}}`."""


class Direct:
    """`tool_definitions` and `call`, in this process."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    def list_tools(self, session: Session) -> set[str]:
        return {each["name"] for each in tool_definitions(session, "mcp")}

    def call(self, session: Session, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return call(self._notebook, name, arguments, session)


@contextlib.contextmanager
def direct(root: Path) -> Iterator[Door]:
    with Notebook.open(root) as notebook:
        yield Direct(notebook)


# Each opens the notebook at a folder, and closes what it opened.
DOORS: dict[str, Callable[[Path], AbstractContextManager[Door]]] = {
    "direct": direct,
    "http": over_http,
    "mcp": mcp_in_process,
    "mcp over http": mcp_over_http,
}
