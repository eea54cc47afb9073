"""Another server on this machine, on another port: a browser does not send it the dashboard's cookie."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from playwright.sync_api import Browser

from notebook_sync.folder import FOLDER
from notebook_sync.logins import Logins
from notebook_sync.tokens import Tokens
from tests.dashboard.browser.serving import serving


@contextmanager
def another_server() -> Iterator[tuple[int, list[str]]]:
    """A server's port, and the path and the cookies of each request to it."""
    seen: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(f"{self.path} {self.headers.get('Cookie', '')}")
            self.send_response(200)
            self.send_header("Set-Cookie", "own=1")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Listener) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port, seen
        server.shutdown()
        thread.join()


def test_a_browser_sends_the_cookie_to_no_other_local_server(root: Path, chromium: Browser) -> None:
    with serving(root) as address, another_server() as (port, seen), chromium.new_context() as context:
        page = context.new_page()
        page.goto(Logins(Tokens(root / FOLDER)).link("127.0.0.1", address.port))
        assert page.url == f"{address.url}/"
        assert [cookie["name"] for cookie in context.cookies()] == ["notebook"]
        for host in ("127.0.0.1", "localhost", "127.0.0.1"):
            page.goto(f"http://{host}:{port}/seen")
        assert "/seen own=1" in seen  # it does get its own
        assert not any("notebook" in each for each in seen)
        page.goto(f"{address.url}/prompt")
        assert page.url == f"{address.url}/prompt"
