"""What the HTTP API answers where something is wrong: always one JSON object with an `error` in it, never HTML.

Errors of the notebook keep the name and the status they have at every door; here are those that only HTTP knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from notebook_sync.surfaces.errors import KINDS

RETRY_SECONDS = 5
# Of an error that `error_body` worded, by its name.
STATUSES: Mapping[str, int] = {kind.type: kind.status for kind in KINDS}
_TEMPORARY = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)


class Answer(JSONResponse):
    """JSON in UTF-8. A lone surrogate, which a client can send and UTF-8 cannot hold, is answered as `?`."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode(errors="replace")


@dataclass(frozen=True, slots=True)
class Fault:
    """A request that HTTP itself refuses."""

    status: int
    type: str
    message: str
    next: str

    def body(self) -> dict[str, Any]:
        """As `error_body`."""
        return {"error": {"type": self.type, "message": self.message, "next": self.next}}


FOREIGN_HOST = Fault(
    403,
    "foreign_host",
    "this server does not answer to that Host name",
    "use a loopback address, or name the host in server.allowed_hosts of notebook.toml",
)
FOREIGN_ORIGIN = Fault(
    403,
    "foreign_origin",
    "pages of other sites may not use this server",
    "call it from a program, or from a page that it serves itself",
)
NO_TOKEN = Fault(
    401,
    "unauthorized",
    "a valid token is needed",
    "send it as `Authorization: Bearer TOKEN`; the owner makes one with: notebook-sync token add",
)
TOKENS_UNUSABLE = Fault(
    503,
    "tokens_unusable",
    "the server cannot use its tokens",
    "see its log for the reason",
)
TARGET_TOO_LONG = Fault(414, "target_too_long", "the path or the query is too long", "send a long text in a body")
HEADERS_TOO_LARGE = Fault(431, "headers_too_large", "the headers are too large", "send fewer or shorter headers")
BODY_TOO_LARGE = Fault(413, "body_too_large", "the body is too large", "edit a part of the note, not the whole of it")
BODY_TOO_SLOW = Fault(408, "body_too_slow", "the body took too long to arrive", "send the request again, in one go")
TOO_MANY_REQUESTS = Fault(
    429, "too_many_requests", "too many requests of this session are under way", "wait for an answer, then ask again"
)
NOT_JSON = Fault(
    415,
    "not_json",
    "a body is taken as plain JSON only",
    "send it with `Content-Type: application/json` and no Content-Encoding",
)
STREAMS_FULL = Fault(503, "too_many_streams", "too many event streams are open", "close one, or try again later")
NO_WEBSOCKET = 1008
FAULT_OF_OURS = Fault(500, "internal", "the server failed; nothing more is known here", "its log says more")


def answer(status: int, body: Mapping[str, Any]) -> Answer:
    """An answer with this status, which says when to come again where that is of use."""
    again = {"Retry-After": str(RETRY_SECONDS)} if status in _TEMPORARY else {}
    return Answer(body, status, again)


def fault_of(status: int, detail: str) -> Fault:
    """A refusal of the framework: no such route, another method, a body that is no JSON at all."""
    if status in _OF_THE_FRAMEWORK:
        return _OF_THE_FRAMEWORK[status]
    return Fault(status, "bad_request", detail, "see /api/v1/openapi.json")


_OF_THE_FRAMEWORK: Mapping[int, Fault] = {
    404: Fault(404, "no_such_route", "there is nothing at this path", "see /api/v1/openapi.json"),
    405: Fault(405, "method_not_allowed", "this path does not take that method", "see /api/v1/openapi.json"),
    408: BODY_TOO_SLOW,
    413: BODY_TOO_LARGE,
}
