"""What `serve` knows its clients by, in `tokens.json`: the owner's token, one for each agent, those of remote clients,
which expire, and for the dashboard login links and the cookies of browsers.

They are kept as they are: the owner has to be able to read theirs, and who can read this file can change the notes.
So the file, in the state folder, is readable by its owner alone, or it is not used.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import msgspec

from notebook_sync.errors import Busy, NotebookError, Refused, UsageError
from notebook_sync.files.locks import FileLock
from notebook_sync.files.private import write_private
from notebook_sync.services.admin import TokenKind
from notebook_sync.sessions import KINDS, Kind, Session

FILE = "tokens.json"
LINK_LIFE = timedelta(minutes=10)
COOKIE_LIFE = timedelta(days=30)
# Of a remote client's token; and how long it may leave its refresh token unused.
ACCESS_LIFE = timedelta(hours=1)
GRANT_LIFE = timedelta(days=30)
_LOCK_SECONDS = 5.0

_OWNERS: tuple[TokenKind, ...] = ("owner", "link", "cookie")


class TokenRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One token. `name` is an agent's, or "owner"; `host` is where it counts: the host name of a cookie, the address
    of MCP for a remote client's token, "" for others.

    A remote client's token is good until `fresh_until`. Until `expires_at`, `refresh` gets `client` another one.
    """

    name: str
    kind: TokenKind
    secret: str
    created_at: datetime
    expires_at: datetime | None = None
    host: str = ""
    client: str = ""
    refresh: str = ""
    fresh_until: datetime | None = None

    @property
    def session(self) -> Session:
        """Who asks with it. Raises UsageError for a row that nobody wrote with this program."""
        is_owners = self.kind in _OWNERS and not self.client
        if not self.secret or (self.name == "owner") != is_owners:
            raise UsageError(f"a token of {self.name!r} cannot be {self.kind}")
        return Session.owner() if is_owners else Session.named(self.kind, self.name)

    @property
    def is_valid(self) -> bool:
        """Whether it has not expired."""
        return self.expires_at is None or self.expires_at > datetime.now(UTC)

    @property
    def is_fresh(self) -> bool:
        """Whether the token itself is good; a remote client's may only be waiting to be refreshed."""
        return self.fresh_until is None or self.fresh_until > datetime.now(UTC)


class TokenFile:
    """The tokens of one notebook; `folder` is its state folder. Every method reads the file: what another process
    revoked is worth nothing at once.

    Methods raise Refused for a file that others can read, NotebookError for one that cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def rows(self) -> list[TokenRow]:
        """The tokens and logins that have not expired, by name."""
        return sorted((row for row in self._read() if row.is_valid), key=lambda row: row.name)

    def owner(self) -> str:
        """The owner's token, which is made where there is none."""
        with self._changing() as rows:
            known = [row.secret for row in rows if row.kind == "owner" and not row.client]
            return known[0] if known else _new(rows, "owner", "owner")

    def host_name(self) -> str:
        """The host name of the dashboard: cookies of other servers on this machine never reach it, nor its own them."""
        proof = hmac.new(self.owner().encode(), b"dashboard", "sha256")
        return f"notebook-{proof.hexdigest()[:32]}.localhost"

    def add_link(self) -> str:
        """The secret of a login link for the owner's browser: it counts once, within 10 minutes."""
        with self._changing() as rows:
            return _new(rows, "owner", "link", life=LINK_LIFE)

    def add_cookie(self, host: str, *, link: str = "") -> str | None:
        """A cookie for the owner's browser at `host`; None where `link`, which is spent, is none that counts."""
        with self._changing() as rows:
            spent = _same(rows, link, "link") if link else []
            rows[:] = [row for row in rows if row not in spent]
            return _new(rows, "owner", "cookie", life=COOKIE_LIFE, host=host) if spent or not link else None

    def end_cookie(self, secret: str) -> None:
        """Log a browser out."""
        with self._changing() as rows:
            ended = _same(rows, secret, "cookie")
            rows[:] = [row for row in rows if row not in ended]

    def add(self, name: str, kind: Kind) -> str:
        """A new token for an agent, whose conversations are of this kind: task or external. Raises UsageError."""
        if not Session.named(kind, name).agent or kind == "owner":
            raise UsageError(
                "a token is for an agent's task or external conversations",
                next="the owner's token is printed by: notebook-sync token show",
            )
        with self._changing() as rows:
            _check_is_free(rows, name)
            return _new(rows, name, kind)

    def revoke(self, name: str) -> bool:
        """Remove the tokens of a name; False where there is none. The owner's is made again when it is asked for; those
        of remote clients end with it."""
        with self._changing() as rows:
            revoked = [row for row in rows if row.name == name]
            rows[:] = [row for row in rows if row.name != name and not (name == "owner" and row.client)]
            return bool(revoked)

    def check_free(self, name: str, kind: Kind, client: str) -> None:
        """Raise UsageError unless a remote client may have tokens for an agent of this name."""
        if not Session.named(kind, name).agent:
            raise UsageError("the client needs an agent name")
        _check_is_free([row for row in self.rows() if row.client != client], name)

    def add_client(self, name: str, kind: Kind, client: str, host: str) -> TokenRow:
        """New tokens for a remote client, in place of those that it had. Raises UsageError."""
        self.check_free(name, kind, client)
        with self._changing() as rows:
            rows[:] = [row for row in rows if row.client != client]
            _check_is_free(rows, name)
            return _grant(rows, TokenRow(name, kind, "-", datetime.now(UTC), host=host, client=client))

    def renew_client(self, refresh: str, client: str, host: str) -> TokenRow | None:
        """New tokens for a refresh token, which counts once. None for one that is not valid; where it was valid once,
        or another client sends it, somebody has copied it, and the tokens that came of it end too."""
        with self._changing() as rows:
            family = [row for row in rows if row.refresh and _is_same(_family(row.refresh), _family(refresh))]
            rows[:] = [row for row in rows if row not in family]
            is_newest = bool(family) and _is_same(family[0].refresh, refresh)
            is_theirs = is_newest and (family[0].client, family[0].host) == (client, host)
            return _grant(rows, family[0]) if is_theirs else None

    def check(self, secret: str, host: str = "") -> Session | None:
        """Who asks with this bearer token; None for one that is not valid. `host`: the address of MCP, where remote
        clients' tokens count."""
        found = (row for row in _same(self._read(), secret, *KINDS) if row.is_fresh and row.host in ("", host))
        return next((row.session for row in found), None)

    def check_cookie(self, secret: str, host: str) -> Session | None:
        """Who asks from a browser with this cookie at `host`; None for one that is not valid there."""
        return next((row.session for row in _same(self._read(), secret, "cookie") if row.host == host), None)

    def _read(self) -> list[TokenRow]:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise NotebookError(f"{self._path} cannot be read: {error.strerror}") from None
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or os.geteuid() not in {0, found.st_uid}:
                raise Refused(f"{self._path} is not a file of yours, so its tokens are not valid", next="delete it")
            if found.st_mode & 0o077:
                raise Refused(
                    f"{self._path} can be read by other users, so its tokens are not valid",
                    next=f"revoke its tokens, or run: chmod 600 {self._path}",
                )
            try:
                return [row for row in msgspec.json.decode(file.read(), type=list[TokenRow]) if row.session]
            except (ValueError, UsageError):
                raise NotebookError(
                    f"{self._path} cannot be read as tokens",
                    next="delete it; new tokens are made when they are asked for",
                ) from None

    @contextmanager
    def _changing(self) -> Iterator[list[TokenRow]]:
        """The tokens, to be changed by one process at a time, and written where all went well. Raises Busy."""
        lock = FileLock(self._path.with_suffix(".lock"))
        if not lock.acquire(_LOCK_SECONDS):
            raise Busy(lock.describe_holder())
        try:
            rows = [row for row in self._read() if row.is_valid]
            yield rows
            write_private(self._path, msgspec.json.format(msgspec.json.encode(rows)))
        except OSError as error:
            raise NotebookError(f"{self._path} cannot be written: {error.strerror}") from None
        finally:
            lock.release()


def _check_is_free(rows: Iterable[TokenRow], name: str) -> None:
    if any(row.name.casefold() == name.casefold() for row in rows):
        raise UsageError(f"there is a token for {name!r} already", next=f"notebook-sync token revoke {name}")


def _same(rows: Iterable[TokenRow], secret: str, *kinds: TokenKind) -> list[TokenRow]:
    """The valid rows of these kinds with this secret. All are compared: how long it takes says nothing about any."""
    same = [row for row in rows if _is_same(secret, row.secret)]
    return [row for row in same if row.kind in kinds and row.is_valid]


def _is_same(one: str, other: str) -> bool:
    """Compared in constant time, whatever their lengths."""
    first, second = (sha256(each.encode("utf-8", "surrogatepass")).digest() for each in (one, other))
    return hmac.compare_digest(first, second)


def _family(refresh: str) -> str:
    """What all refresh tokens of one consent begin with."""
    return refresh.partition(".")[0]


def _grant(rows: list[TokenRow], row: TokenRow) -> TokenRow:
    """Add the row with new tokens, the refresh token of the same family."""
    now, family = datetime.now(UTC), _family(row.refresh) or secrets.token_urlsafe(16)
    granted = msgspec.structs.replace(
        row,
        secret=secrets.token_urlsafe(32),
        refresh=f"{family}.{secrets.token_urlsafe(32)}",
        expires_at=now + GRANT_LIFE,
        fresh_until=now + ACCESS_LIFE,
    )
    rows.append(granted)
    return granted


def _new(rows: list[TokenRow], name: str, kind: TokenKind, *, life: timedelta | None = None, host: str = "") -> str:
    """Add a token, and return its secret."""
    secret, now = secrets.token_urlsafe(32), datetime.now(UTC)
    rows.append(TokenRow(name, kind, secret, now, now + life if life else None, host))
    return secret
