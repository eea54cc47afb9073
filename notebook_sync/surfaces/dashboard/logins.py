"""What proves to the dashboard that a browser is the owner's: a link that is good once, and a cookie.

Both are signed with the owner's token, so that they survive a restart of the server and are worth nothing once the
token is revoked. Neither is the token: a browser shows its cookies to every port of this machine.
"""

from __future__ import annotations

import hmac
import secrets
import time
from hashlib import sha256

from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces.dashboard.spent import Spent
from notebook_sync.tokens import Tokens

LARGEST_PORT = 65_535
LINK_SECONDS = 600
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - recognised, so that nobody is served everywhere unawares
COOKIE_SECONDS = 30 * 86_400
_LINK = "link"
_COOKIE = "cookie"


class Logins:
    """The logins of one server. Methods raise as those of `Tokens`."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._spent = Spent(tokens.folder)

    def link_code(self) -> str:
        """A code for a link: good once, for ten minutes."""
        return self._signed(_LINK, LINK_SECONDS)

    def link(self, host: str, port: int) -> str:
        """The link itself, for the server that listens there."""
        name = "127.0.0.1" if host in EVERYWHERE else host
        return f"{url_of(name, port)}login?code={self.link_code()}"

    def cookie(self) -> str:
        """The value of a cookie, good for thirty days."""
        return self._signed(_COOKIE, COOKIE_SECONDS)

    def is_owners_token(self, token: str) -> bool:
        """Whether this is the token of the owner; that of an agent is not."""
        found = self._tokens.session_of(token)
        return found is not None and found.kind == "owner"

    def spend(self, code: str) -> bool:
        """Whether a link's code counts. It does so once, whichever server of the notebook is asked. Raises
        NotebookError where that cannot be noted."""
        until = self._until(_LINK, code)
        return bool(until) and self._spent.add(code, until)

    def end(self, cookie: str) -> None:
        """Let a cookie count no more, wherever it was copied to."""
        if until := self._until(_COOKIE, cookie):
            self._spent.add(cookie, until)

    def session_of(self, cookie: str) -> Session | None:
        """Whose cookie this is: the owner's, or nobody's."""
        return OWNER if self._until(_COOKIE, cookie) and cookie not in self._spent else None

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


def url_of(host: str, port: int) -> str:
    """The address of a server's first page."""
    return f"http://{in_url(host)}:{port}/"


def in_url(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host
