"""OAuth 2.1 for remote clients of MCP: a client registers itself, the owner lets it in on a page behind the dashboard's
login, and it gets a token that expires and counts at MCP only.

Nothing is stored for who has not been let in, no answer leads to another site before the owner has pressed a button,
and whatever a client says of itself is text.
"""

from __future__ import annotations

import base64
import hmac
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from secrets import token_urlsafe
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from notebook_sync.errors import NotebookError, NotPermitted, Unauthorized, UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.services.tokens import ACCESS_LIFE, TokenFile, TokenRow
from notebook_sync.sessions import Kind, Session
from notebook_sync.surfaces.dashboard.shell import Ask, Fields, Shell
from notebook_sync.surfaces.http.app import MCP, REGISTER, TOKEN, WELL_KNOWN
from notebook_sync.surfaces.http.guard import AUTHORIZE, COOKIE, BearerAuth, SessionOf, is_own_host, json_response

CONSENT: Final = "/consent"
CODE_SECONDS = 60.0
# How long after it registered a client may ask for the first time, and again once it has no tokens.
CLIENT_SECONDS = 90 * 86_400
_METADATA = f"{WELL_KNOWN}oauth-protected-resource"
_LONGEST_NAME = 60
_GRANTS = ("authorization_code", "refresh_token")
_ASKED = (
    *("response_type", "client_id", "redirect_uri", "state", "resource"),
    *("code_challenge", "code_challenge_method"),
)
_PUBLIC = re.compile(r"(https?)://([\w.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?/?", re.ASCII)
# Where an answer may go: by TLS, or to a program on the machine of the browser, whose port differs from run to run.
_HERE = r"http://(?:127\.0\.0\.1|\[::1\]|localhost)"
_PLACE = rf"(?a)^(?:https://[\w.-]+|{_HERE})(?::\d{{1,5}})?(?:[/?][\w.~:/?\[\]@!$&'()*+,;=%-]*)?\Z"
_PORT = re.compile(rf"(?a)^({_HERE}):\d{{1,5}}(?=[/?]|\Z)")
_Uri = Annotated[str, msgspec.Meta(max_length=500, pattern=_PLACE)]
_CHALLENGE = re.compile(r"[\w-]{43}", re.ASCII)
_START_AGAIN = "start again in the client; if that does not help, remove this server there, and add it again"


class Client(msgspec.Struct, frozen=True, array_like=True):
    """What a client said of itself, and a random mark. Signed, it is the client's id: nobody has to keep a list of
    clients."""

    name: str
    redirect_uris: tuple[str, ...]
    registered_at: int
    mark: str

    @property
    def label(self) -> str:
        """What its tokens are kept under."""
        return f"{self.name} [{self.mark}]"

    def may_go_to(self, uri: str) -> bool:
        """Whether it registered this address; on the browser's own machine, at any port."""
        return _PORT.sub(r"\1", uri) in [_PORT.sub(r"\1", each) for each in self.redirect_uris]


class _Registration(msgspec.Struct):
    """What a client sends to register; the rest of it changes nothing here."""

    redirect_uris: Annotated[list[_Uri], msgspec.Meta(min_length=1, max_length=5)]
    client_name: str | None = None


@dataclass(slots=True)
class _Wanted:
    """A client's request to be let in, checked; `asked` are its parameters as they came. What follows is there once the
    owner has allowed it; once its code is spent, `expires_at` is 0, and `refresh` is the first refresh token that came
    of it."""

    asked: Mapping[str, str]
    client: Client
    name: str = ""
    kind: Kind = "task"
    expires_at: float = 0.0
    refresh: str = ""

    @property
    def host(self) -> str:
        """Where the answer goes."""
        return self.asked["redirect_uri"].split("/")[2].partition("?")[0]

    def fits(self, client: Client, form: Fields) -> bool:
        """Whether this is the client that asked, with the secret that its request was made with."""
        challenge = base64.urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=")
        is_same_place = form.get("redirect_uri", self.asked["redirect_uri"]) == self.asked["redirect_uri"]
        is_current = time.monotonic() < self.expires_at and client == self.client
        return is_current and is_same_place and hmac.compare_digest(challenge, self.asked["code_challenge"].encode())


class RemoteClients(BearerAuth):
    """Authentication at MCP, where remote clients' tokens count too, and the routes by which they get them.

    `public_url` is the server's address in the world. Raises UsageError for one that cannot be used.
    """

    def __init__(self, notebook: Notebook, public_url: str, session_of: SessionOf) -> None:
        found = _PUBLIC.fullmatch(public_url.lower())
        if found is None or (found[1] == "http" and not is_own_host(found[2])):
            advice = "give the address that clients use, such as https://notes.example.org, without a path"
            raise UsageError(f"--public-url cannot be {public_url!r}", next=advice)
        self.host = found[2].strip("[]")
        self._issuer = public_url.lower().rstrip("/").removesuffix(":443")  # as clients write it
        self._resource = self._issuer + MCP
        self._tokens = TokenFile(notebook.core.place.state)
        self._shell = Shell(notebook)
        self._others = session_of
        self._codes: dict[str, _Wanted] = {}
        self._lock = threading.Lock()
        super().__init__(self._session_of)

    # ---- who asks

    def owns(self, path: str) -> bool:
        """What programs ask for without a browser."""
        return path in (MCP, REGISTER, TOKEN) or path.startswith(WELL_KNOWN)

    def _session_of(self, token: str) -> Session | None:
        return self._others(token) or self._tokens.check(token, self._resource)

    def refusal(self, scope: Scope, error: NotebookError) -> Response:
        """The error as JSON; without a token, where to begin to get one."""
        answer = super().refusal(scope, error)
        if isinstance(error, Unauthorized):
            answer.headers["WWW-Authenticate"] = f'Bearer resource_metadata="{self._issuer}{_METADATA}{MCP}"'
        return answer

    def routes(self) -> list[BaseRoute]:
        """What there is only where remote clients are allowed."""
        route = self._shell.route
        return [
            *(Route(f"{_METADATA}{path}", self._describe_resource) for path in ("", MCP)),
            Route(f"{WELL_KNOWN}oauth-authorization-server", self._describe_server),
            Route(REGISTER, self._register, methods=["POST"]),
            route(AUTHORIZE, self._arrive, "GET"),
            route(CONSENT, self._consent, "GET", "POST"),
            route(TOKEN, self._token, "POST"),
        ]

    async def _describe_resource(self, _request: Request) -> Response:
        """RFC 9728."""
        return json_response(
            {
                "resource": self._resource,
                "resource_name": "notebook-sync",
                "authorization_servers": [self._issuer],
                "bearer_methods_supported": ["header"],
            }
        )

    async def _describe_server(self, _request: Request) -> Response:
        """RFC 8414."""
        return json_response(
            {
                "issuer": self._issuer,
                "authorization_endpoint": self._issuer + AUTHORIZE,
                "token_endpoint": self._issuer + TOKEN,
                "registration_endpoint": self._issuer + REGISTER,
                "response_types_supported": ["code"],
                "grant_types_supported": _GRANTS,
                "token_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }
        )

    # ---- clients

    async def _register(self, request: Request) -> Response:
        """RFC 7591, without keeping anything: the id is what was registered, signed."""
        try:
            given = msgspec.json.decode(await request.body(), type=_Registration)
        except (ValueError, RecursionError):
            advice = "give 1 to 5 addresses: https, or http on 127.0.0.1, [::1] or localhost"
            return _oauth_error("invalid_redirect_uri", advice)
        name = "".join(each for each in " ".join((given.client_name or "").split()) if each.isprintable())
        shown, now = name[:_LONGEST_NAME].strip() or "a client without a name", int(time.time())
        client = Client(shown, tuple(given.redirect_uris), now, token_urlsafe(12))
        answer = {
            "client_id": await anyio.to_thread.run_sync(self._id_of, client),
            "client_id_issued_at": client.registered_at,
            "client_name": client.name,
            "redirect_uris": given.redirect_uris,
            "grant_types": _GRANTS,
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        return json_response(answer, 201)

    def _id_of(self, client: Client) -> str:
        said = base64.urlsafe_b64encode(msgspec.json.encode(client)).rstrip(b"=").decode()
        return f"{said}.{self._signed('client', said)}"

    def _signed(self, purpose: str, *said: Any) -> str:
        """A proof that this notebook wrote it. With the owner's token it ends."""
        return hmac.new(self._tokens.owner().encode(), msgspec.json.encode([purpose, *said]), "sha256").hexdigest()

    def _client(self, client_id: str) -> Client | None:
        """The client with this id, None for one that did not register here or that has not been used for long."""
        said, _, proof = client_id.partition(".")
        if not hmac.compare_digest(proof.encode(), self._signed("client", said).encode()):
            return None
        client = msgspec.json.decode(base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)), type=Client)
        is_recent = time.time() < client.registered_at + CLIENT_SECONDS
        return client if is_recent or any(row.client == client.label for row in self._tokens.rows()) else None

    # ---- the owner's consent

    def _arrive(self, ask: Ask) -> Response:
        """A page in between: the browser sends the login's cookie only from a page of ours."""
        return self._lead(f"{CONSENT}?{ask.request.url.query}", "A program asks for access to the notebook.")

    def _lead(self, address: str, text: str) -> Response:
        """A page that leads on. A redirect would do, but the policy of the page with the form forbids it."""
        return self._shell.plain("onward.html", address=address, text=text)

    def _consent(self, ask: Ask) -> Response:
        """Who asks, and where the answer goes; then the answer. It counts only for what the page has shown."""
        is_sent = ask.request.method == "POST"
        wanted = self._wanted(ask.form if is_sent else ask.query)
        proof, trouble = self._signed("consent", ask.request.cookies.get(COOKIE, ""), wanted.asked), None
        if is_sent:
            if not hmac.compare_digest(proof.encode(), ask.form.get("proof", "").encode()):
                raise NotPermitted("This form was not sent from the page that asks", next=_START_AGAIN)
            if ask.form.get("answer") != "allow":
                return self._answer(wanted, error="access_denied")
            try:
                return self._answer(wanted, code=self._allow(wanted, ask.form))
            except UsageError as error:
                trouble = error
        before = [row.name for row in self._tokens.rows() if row.client == wanted.client.label]
        suggested = re.sub(r"[^\w.-]+", "-", wanted.client.name).strip("-._")
        agent = ask.form.get("agent") or [*before, suggested][0]
        values: dict[str, Any] = {"wanted": wanted, "proof": proof, "error": trouble, "agent": agent}
        values |= {"status": trouble.status if trouble else 200, "kind": ask.form.get("session", "")}
        return self._shell.plain("consent.html", **values)

    def _wanted(self, given: Fields) -> _Wanted:
        """The request in an address or a form. What is wrong with it is shown, and never sent to where it names.
        Raises UsageError."""
        asked = {name: given[name] for name in _ASKED if name in given}
        client = self._client(asked.get("client_id", ""))
        if client is None:
            raise UsageError("this client is not known here, or has not been used for long", next=_START_AGAIN)
        problems = {
            "a parameter is given twice": any(len(given.getlist(name)) > 1 for name in asked),
            "the client did not register that redirect_uri": not client.may_go_to(asked.get("redirect_uri", "")),
            "response_type must be code": asked.get("response_type") != "code",
            "code_challenge_method must be S256": asked.get("code_challenge_method") != "S256",
            "code_challenge is not one of S256": not _CHALLENGE.fullmatch(asked.get("code_challenge", "")),
            f"resource must be {self._resource}": not self._is_ours(asked.get("resource")),
        }
        for problem, is_there in problems.items():
            if is_there:
                raise UsageError(f"the client's request cannot be used: {problem}", next=_START_AGAIN)
        return _Wanted(asked, client)

    def _is_ours(self, resource: str | None) -> bool:
        """Whether a token is wanted for MCP here: it counts nowhere else, and older clients do not say."""
        return resource is None or resource.partition("?")[0].rstrip("/") == self._resource

    def _allow(self, wanted: _Wanted, form: Fields) -> str:
        """A code for what the owner chose. Raises UsageError."""
        name, kind = form.get("agent", "").strip(), form.get("session", "")
        chosen = Session.named(kind, name)
        if chosen.kind == "owner" and form.get("confirmed") != "yes":
            raise UsageError("an owner's session needs your confirmation", next="tick the box, or choose task")
        self._tokens.check_free(name, chosen.kind, wanted.client.label)
        code = token_urlsafe(32)
        self._codes[code] = replace(wanted, name=name, kind=chosen.kind, expires_at=time.monotonic() + CODE_SECONDS)
        return code

    def _answer(self, wanted: _Wanted, **said: str) -> Response:
        """The way back to the client, with what it needs to know."""
        uri, state = wanted.asked["redirect_uri"], wanted.asked.get("state")
        query = urlencode({**said, **({} if state is None else {"state": state}), "iss": self._issuer})
        return self._lead(f"{uri}{'&' if '?' in uri else '?'}{query}", f"Back to {wanted.client.name}.")

    # ---- tokens

    def _token(self, ask: Ask) -> Response:
        """New tokens for a code, or for a refresh token."""
        form, client = ask.form, self._client(ask.form.get("client_id", ""))
        if len(form.multi_items()) > len(form):
            return _oauth_error("invalid_request", "a parameter is given twice")
        if client is None:
            return _oauth_error("invalid_client", "this client is not known here; register again", 401)
        if not self._is_ours(form.get("resource")):
            return _oauth_error("invalid_target", f"resource must be {self._resource}")
        if form.get("grant_type") == "authorization_code":
            row = self._redeem(form, client)
        elif form.get("grant_type") == "refresh_token":
            row = self._tokens.renew_client(form.get("refresh_token", ""), client.label, self._resource)
        else:
            return _oauth_error("unsupported_grant_type", "use authorization_code or refresh_token")
        if row is None:
            return _oauth_error("invalid_grant", "it does not count, or not any more; ask the owner again")
        seconds = int(ACCESS_LIFE.total_seconds())
        bearer = {"access_token": row.secret, "token_type": "Bearer", "expires_in": seconds}
        return json_response({**bearer, "refresh_token": row.refresh})

    def _redeem(self, form: Fields, client: Client) -> TokenRow | None:
        """Tokens for a code that counts. Whatever is tried with it, it is spent; tried again, its tokens end."""
        with self._lock:
            code = self._codes.get(form.get("code", ""))
            if code is None:
                return None
            is_good, code.expires_at = code.fits(client, form), 0.0
            if not is_good:
                self._tokens.renew_client(code.refresh, "", "")
                return None
            try:
                row = self._tokens.add_client(code.name, code.kind, client.label, self._resource)
            except UsageError:  # the name was given away meanwhile
                return None
            code.refresh = row.refresh
            return row


def _oauth_error(error: str, description: str, status: int = 400) -> Response:
    """An error as OAuth's clients read it."""
    return json_response({"error": error, "error_description": description}, status)
