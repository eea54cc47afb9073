"""A server that speaks as OpenAI's does and says what a test wrote for it, also where no good server would.

    with ScriptedServer() as server:
        server.say(chat('{"ferry": 1}'), Reply(status=500))
        …                                     # base_url = server.url
        assert server.asked[0].body["model"] == "small"

Each request gets the next reply; the last one is for all that follow.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """A request: its path, its headers by lower-case name, and its body as JSON."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What is answered. `hold`: nothing, until the server is closed. `cut`: the connection ends amid the body."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hold: bool = False
    cut: bool = False


# A reply, or what makes one of the request.
Line = Reply | Callable[[Asked], Reply]


class ScriptedServer:
    """Listens on a free port of the loopback interface; `asked` are the requests so far."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._lines: list[Line] = [Reply(status=404)]
        self._lock = threading.Lock()
        self._closing = threading.Event()
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                script._answer(self)

            def log_message(self, *_: object) -> None:
                """Nothing: what was asked is in `asked`."""

            def handle(self) -> None:
                with suppress(ConnectionError):
                    super().handle()

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def say(self, *lines: Line) -> None:
        """From now on, this."""
        with self._lock:
            self._lines = list(lines)

    def close(self) -> None:
        """End everything, what is held as well."""
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        asked = Asked(handler.path, headers, json.loads(raw))
        with self._lock:
            self.asked.append(asked)
            line = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        reply = line if isinstance(line, Reply) else line(asked)
        if reply.hold:
            self._closing.wait()
            handler.close_connection = True
            return
        body = reply.body[: len(reply.body) // 2] if reply.cut else reply.body
        handler.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(reply.body)))
        with suppress(ConnectionError):  # who asked has read enough
            handler.end_headers()
            handler.wfile.write(body)
        handler.close_connection = handler.close_connection or reply.cut


def chat(content: str | None, *, finish_reason: str = "stop", refusal: str | None = None) -> Reply:
    """A completion that says this."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return as_json({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]})


def embeddings(vectors: Sequence[Sequence[float]]) -> Reply:
    """These vectors, in the order of the texts."""
    rows = [{"object": "embedding", "index": at, "embedding": list(one)} for at, one in enumerate(vectors)]
    return as_json({"object": "list", "data": rows})


def as_json(value: Any, status: int = 200, **headers: str) -> Reply:
    """Any JSON; `Retry_After="0"` is a header."""
    return Reply(json.dumps(value).encode(), status, {name.replace("_", "-"): said for name, said in headers.items()})


def failure(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    """An error as such servers tell it."""
    return as_json({"error": {"message": message, "type": "error", "code": code}}, status, **headers)
