"""A server that speaks as OpenAI's embeddings do, and answers what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

# Status and body; a callable gets the texts.
Reply = tuple[int, bytes]


def vectors(rows: list[Any]) -> Reply:
    """A good answer, whatever the rows are."""
    return 200, json.dumps({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}).encode()


class EmbeddingServer:
    """`asked` are body and headers of each request; answers wait while `hold` is not set."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answer: Reply | Callable[[list[str]], Reply] = (500, b"")
        self.asked: list[tuple[dict[str, Any], dict[str, str]]] = []
        self.hold = Event()
        self.hold.set()


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    """Runs one on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append((body, {name.lower(): value for name, value in self.headers.items()}))
            server.hold.wait(30)
            status, content = server.answer(body["input"]) if callable(server.answer) else server.answer
            with suppress(OSError):  # a client that gave up
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server = EmbeddingServer(f"http://127.0.0.1:{http.server_port}/v1")
        Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.hold.set()
        http.shutdown()
