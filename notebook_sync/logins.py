"""What proves to the dashboard that a browser is the owner's: a link that is good once, and a cookie.

Both are signed with the owner's token, so they survive a restart of the server and end when the token is revoked.
Neither is the token.

A browser sends the cookies of a host to every port of it, so another server on this machine could replay a cookie of
127.0.0.1. The dashboard therefore has a host name of its own, which contains a key that only the owner sees.
Browsers resolve `*.localhost` to this machine; a server that does not know the key cannot lead them to the name.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import deque
from hashlib import sha256

from notebook_sync.sessions import OWNER, Session
from notebook_sync.spent import Spent
from notebook_sync.tokens import Tokens

LARGEST_PORT = 65_535
LINK_SECONDS = 600
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - recognised, so that nobody is served everywhere unawares
COOKIE_SECONDS = 30 * 86_400
MOST_GUESSES = 10
GUESS_SECONDS = 60
_LINK = "link"
_COOKIE = "cookie"
_HOST = "host"
_KEY_DIGITS = 32


class Logins:
    """The logins of one server. Methods raise as those of `Tokens`."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._spent = Spent(tokens.folder)
        self._wrong: deque[float] = deque(maxlen=MOST_GUESSES)

    def link_code(self) -> str:
        """A code for a link: good once, for ten minutes."""
        return self._signed(_LINK, LINK_SECONDS)

    def link(self, host: str, port: int) -> str:
        """The link itself, for the server that listens there."""
        code = self.link_code()
        name = self.own_host() if host in EVERYWHERE or is_local(in_url(host)) else host
        return f"{url_of(name, port)}login?code={code}"

    def own_host(self) -> str:
        """The host name that contains the key of this notebook's dashboard."""
        key = _signature(self._tokens.known_owner() or secrets.token_hex(), _HOST, "")
        return f"notebook-{key[:_KEY_DIGITS]}.localhost"

    def is_shared(self, host: str) -> bool:
        """Whether a browser sends the cookies of this host name to other servers on this machine."""
        return is_local(host) and host != self.own_host()

    def cookie(self, host: str) -> str:
        """The value of a cookie, valid for thirty days at this host name."""
        return self._signed(f"{_COOKIE} {host}", COOKIE_SECONDS)

    @property
    def is_throttled(self) -> bool:
        """Whether so many wrong tokens came lately that who sends them is to wait. The right one always counts: nobody
        guesses it, and nobody's guesses keep the owner out."""
        return len(self._wrong) == MOST_GUESSES and time.monotonic() - self._wrong[0] < GUESS_SECONDS

    def is_owners_token(self, token: str) -> bool:
        """Whether this is the token of the owner; that of an agent is not."""
        found = self._tokens.session_of(token)
        if found is not None and found.kind == "owner":
            return True
        self._wrong.append(time.monotonic())
        return False

    def spend(self, code: str) -> bool:
        """Whether a link's code counts. It does so once, whichever server of the notebook is asked. Raises
        NotebookError where that cannot be noted."""
        until = self._until(_LINK, code)
        return bool(until) and self._spent.add(code, until)

    def end(self, proof: str) -> None:
        """Revoke a cookie and all its copies. `proof` is the host name, a space and the cookie."""
        if until := self._ends(proof):
            self._spent.add(proof, until)

    def session_of(self, proof: str) -> Session | None:
        """The owner's session for a host name, a space and a cookie that is valid there, or None."""
        return OWNER if self._ends(proof) and proof not in self._spent else None

    def _ends(self, proof: str) -> int:
        host, _, cookie = proof.partition(" ")
        return self._until(f"{_COOKIE} {host}", cookie)

    def _signed(self, purpose: str, seconds: int) -> str:
        said = f"{int(time.time()) + seconds}.{secrets.token_urlsafe(12)}"
        return f"{said}.{_signature(self._tokens.owner(), purpose, said)}"

    def _until(self, purpose: str, signed: str) -> int:
        """When it ends, in seconds since the epoch; 0 for what is not signed by us for this, or has ended."""
        said, _, signature = signed.rpartition(".")
        secret = self._tokens.known_owner()
        if secret is None or not hmac.compare_digest(
            _signature(secret, purpose, said).encode(), signature.encode("utf-8", "replace")
        ):
            return 0
        until = int(said.partition(".")[0])
        return until if until > time.time() else 0


def _signature(secret: str, purpose: str, said: str) -> str:
    text = f"dashboard {purpose} {said}".encode("utf-8", "replace")
    return hmac.new(secret.encode(), text, sha256).hexdigest()


def is_local(host: str) -> bool:
    """Whether browsers take this name for this machine without asking a name server."""
    return host in _LOOPBACK or host.endswith(".localhost")


def url_of(host: str, port: int) -> str:
    """The address of a server's first page."""
    return f"http://{in_url(host)}:{port}/"


def in_url(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host
