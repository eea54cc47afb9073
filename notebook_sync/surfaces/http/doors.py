"""By which door a request comes in, and what proves there who is asking.

Programs show a bearer token, browsers the dashboard's cookie, and neither counts at the other's door: no page of a
browser can make a request to the API that its cookie would prove.
"""

from __future__ import annotations

from typing import Final, Protocol

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from notebook_sync.sessions import Session
from notebook_sync.surfaces.http import errors as faults
from notebook_sync.surfaces.http.errors import Fault, answer
from notebook_sync.tokens import Tokens

# They tell nothing of the notebook: that the server is there, and how the API is.
OPEN_PATHS: Final = frozenset({"/api/v1/health", "/api/v1/openapi.json"})
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Door(Protocol):
    """One way in. `owns` and `is_open` look at the path alone; an open path needs no proof."""

    def owns(self, path: str) -> bool:
        """Whether what stands at this path is reached by this door."""

    def is_open(self, path: str) -> bool:
        """Whether anybody may see it."""

    def proof_in(self, scope: Scope) -> str:
        """What the request shows as its proof; "" where it shows none, or more than one."""

    def session_of(self, proof: str) -> Session | None:
        """Who shows this proof; None for nobody. Raises as `Tokens.session_of`."""

    def content_refusal_of(self, scope: Scope) -> Fault | None:
        """Why the body of a request is not taken."""

    def refusal(self, scope: Scope, fault: Fault) -> Response:
        """The answer in place of the app's."""


class ProgramDoor:
    """For programs: a bearer token, JSON in, JSON out. It owns what no other door does."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def owns(self, path: str) -> bool:
        return True

    def is_open(self, path: str) -> bool:
        return path in OPEN_PATHS

    def proof_in(self, scope: Scope) -> str:
        return token_in(Headers(scope=scope))

    def session_of(self, proof: str) -> Session | None:
        return self._tokens.session_of(proof)

    def content_refusal_of(self, scope: Scope) -> Fault | None:
        headers = Headers(scope=scope)
        if scope["method"] in READING or (scope["method"] != "POST" and not has_body(headers)):
            return None
        return None if is_sent_as(headers, "application/json") else faults.NOT_JSON

    def refusal(self, scope: Scope, fault: Fault) -> Response:
        refusal = answer(fault.status, fault.body())
        if fault is faults.NO_TOKEN:
            refusal.headers["WWW-Authenticate"] = 'Bearer realm="notebook"'
        return refusal


def host_name(host: str) -> str:
    """The name in a Host header, as it is compared: without the port."""
    name, colon, port = host.casefold().rpartition(":")
    return name if colon and port.isdecimal() and not name.endswith(":") else host.casefold()


def token_in(headers: Headers) -> str:
    """The bearer token; "" where there is none, or more than one."""
    given = headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if scheme.casefold() == "bearer" else ""


def has_body(headers: Headers) -> bool:
    """Whether a request has one, as its head says."""
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def is_sent_as(headers: Headers, media_type: str) -> bool:
    """Whether a body is of this type, and plain."""
    kind = headers.get("content-type", "").partition(";")[0].strip().casefold()
    return kind == media_type and headers.get("content-encoding", "identity").casefold() == "identity"
