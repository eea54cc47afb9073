"""A notebook served as `serve` does, from a thread of this process, on a free port that stays its own."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from notebook_sync import Notebook
from notebook_sync.folder import FOLDER
from notebook_sync.logins import Logins
from notebook_sync.surfaces.beside.following import Following
from notebook_sync.surfaces.serving.app import http_app
from notebook_sync.tokens import Tokens
from tests.served import served


@dataclass(frozen=True)
class Address:
    """Where a notebook is served, whether it is at this moment or not."""

    root: Path
    port: int
    url: str

    def link(self, then: str = "/") -> str:
        """A link that logs in, once, as `serve` prints it."""
        return f"{self.url}/login?code={Logins(Tokens(self.root / FOLDER)).link_code()}&next={then}"


@contextlib.contextmanager
def serving(root: Path, *, port: int = 0, watch: bool = False) -> Iterator[Address]:
    """Serve until the end. `watch` follows the files, too."""
    with Notebook.open(root) as notebook, _listening(port) as listener, contextlib.ExitStack() as stack:
        app = http_app(notebook)
        config = uvicorn.Config(app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=10)
        stack.enter_context(served(config, listener, app.state.streams.end))
        if watch:
            following = Following(notebook, watch=True, changed=lambda _: None)
            stack.enter_context(following.running())
            assert following.state == "following the files"
        port = listener.getsockname()[1]
        yield Address(root, port, app.state.logins.link("127.0.0.1", port).partition("/login")[0])


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        yield listener
