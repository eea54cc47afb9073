"""A server that speaks as OpenAI's embeddings do, and answers what a test says."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from typing import Any

from tests.llm_server import Asked, answering
from tests.llm_server import Reply as HttpReply

# Status and body; a callable gets the texts.
Reply = tuple[int, bytes]


def vectors(rows: list[Any]) -> Reply:
    """A good answer, whatever the rows are."""
    return 200, json.dumps({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}).encode()


class EmbeddingServer:
    """`asked` are body and headers of each request; answers wait while `hold` is not set."""

    def __init__(self) -> None:
        self.url = ""
        self.answer: Reply | Callable[[list[str]], Reply] = (500, b"")
        self.asked: list[tuple[dict[str, Any], Mapping[str, str]]] = []
        self.hold = Event()
        self.hold.set()

    def reply_to(self, asked: Asked) -> HttpReply:
        self.asked.append((asked.body, asked.headers))
        self.hold.wait(30)
        status, content = self.answer(asked.body["input"]) if callable(self.answer) else self.answer
        return HttpReply(content, status)


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    """Runs one on a free port."""
    server = EmbeddingServer()
    with answering(server.reply_to, server.hold) as server.url:
        yield server
