"""A server that speaks as OpenAI's chat completions do, and says what a test wrote for it.

    with llm_server() as server:
        server.say(chat('{"ferry": 1}'), Reply(status=500))     # one for each request, the last for all that follow
        llm = llm_of(server.settings())
        server.asked[0].body["messages"]

`JUNK`, `PROSE`, `REFUSAL`, `CUT_OFF`, `CRASH` and `HANG` are what bad servers and models do.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from notebook_sync.settings import LlmTable


@dataclass(frozen=True)
class Asked:
    """A request: its path, its headers by lower-case name, and its body."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What is answered. `hangs`: nothing, until the server closes. `is_cut`: the connection ends in the body."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False
    is_cut: bool = False


# A reply, or what makes one of the request.
Line = Reply | Callable[[Asked], Reply]


class LlmServer:
    """`asked` are the requests so far."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.lines: list[Line] = [Reply(status=404)]
        self.lock = Lock()
        self.closing = Event()

    def say(self, *lines: Line) -> None:
        """Answer so from now on."""
        with self.lock:
            self.lines = list(lines)

    def settings(self, seconds: float = 30.0, url: str = "") -> LlmTable:
        """The table [llm] that names this server."""
        return LlmTable(base_url=url or self.url, model="small", api_key_env="HARBOUR_KEY", timeout_seconds=seconds)

    def toml(self, seconds: float = 30.0) -> str:
        """The same as text of notebook.toml."""
        return f'[llm]\nbase_url = "{self.url}"\nmodel = "small"\ntimeout_seconds = {seconds}\n'

    def reply_to(self, asked: Asked) -> Reply:
        """The next line."""
        with self.lock:
            self.asked.append(asked)
            line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        return line if isinstance(line, Reply) else line(asked)


@contextmanager
def llm_server() -> Iterator[LlmServer]:
    """Runs one on a free port."""
    server = LlmServer()
    with answering(server.reply_to, server.closing) as server.url:
        yield server


@contextmanager
def answering(reply_to: Callable[[Asked], Reply], closing: Event) -> Iterator[str]:
    """An HTTP server on a free port; yields its address, and sets `closing` before it ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = reply_to(Asked(self.path, headers, body))
            if reply.hangs:
                closing.wait(60)
            self.close_connection = reply.hangs or reply.is_cut
            with suppress(OSError):  # a client that gave up
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: len(reply.body) // 2] if reply.is_cut else reply.body)

        def handle(self) -> None:
            with suppress(OSError):
                super().handle()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/v1"
        closing.set()
        http.shutdown()


def chat(content: str | None, *, finish_reason: str = "stop", refusal: str | None = None) -> Reply:
    """A completion that says this."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return as_json({"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]})


def says(value: Any) -> Reply:
    """A completion that is this value as JSON."""
    return chat(json.dumps(value))


def as_json(value: Any, status: int = 200, **headers: str) -> Reply:
    """Any JSON; `Retry_After="0"` is a header."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(json.dumps(value).encode(), status, named)


def failure(status: int, message: str = "no", **headers: str) -> Reply:
    """An error as such servers word it."""
    return as_json({"error": {"message": message, "type": "error"}}, status, **headers)


JUNK = Reply(b"\xff\x00<html>Harbour office</html>")
PROSE = chat("Of course! The ferry leaves at eight, from the pier.")
REFUSAL = chat(None, refusal="I cannot talk about ferries.")
CUT_OFF = chat('{"place": "the pi', finish_reason="length")
CRASH = failure(500, Retry_After="0")
HANG = Reply(hangs=True)
