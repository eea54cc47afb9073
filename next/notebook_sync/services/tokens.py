"""What `serve` knows its clients by, in `tokens.json`: the owner's token, one for each agent, and for the dashboard
login links and the cookies of browsers.

They are kept as they are: the owner has to be able to read theirs, and who can read this file can change the notes.
So the file, in the state folder, is readable by its owner alone, or it is not used.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import msgspec

from notebook_sync.errors import Busy, NotebookError, Refused, UsageError
from notebook_sync.files.locks import FileLock
from notebook_sync.files.private import write_private
from notebook_sync.services.admin import Token, TokenKind
from notebook_sync.sessions import KINDS, Kind, Session

FILE = "tokens.json"
LINK_LIFE = timedelta(minutes=10)
COOKIE_LIFE = timedelta(days=30)
_LOCK_SECONDS = 5.0

# A login link counts once, and gives a browser its cookie; neither is a bearer token.
_LINK: tuple[TokenKind, ...] = ("link",)
_COOKIE: tuple[TokenKind, ...] = ("cookie",)
_OWNERS: tuple[TokenKind, ...] = ("owner", *_LINK, *_COOKIE)


class TokenFile:
    """The tokens of one notebook; `folder` is its state folder. Every method reads the file: what another process
    revoked is worth nothing at once.

    Methods raise Refused for a file that others can read, NotebookError for one that cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def rows(self) -> list[Token]:
        """The tokens and logins that have not expired, by name."""
        return sorted(filter(_is_valid, self._read()), key=lambda row: row.name)

    def owner(self) -> Token:
        """The owner's token, which is made where there is none."""
        with self._changing() as rows:
            known = [row for row in rows if row.kind == "owner"]
            return known[0] if known else _new(rows, "owner", "owner")

    def host_name(self) -> str:
        """The host name of the dashboard: cookies of other servers on this machine never reach it, nor its own them."""
        proof = hmac.new(self.owner().token.encode(), b"dashboard", "sha256")
        return f"notebook-{proof.hexdigest()[:32]}.localhost"

    def add_link(self) -> Token:
        """A login link for the owner's browser: it counts once, within 10 minutes."""
        with self._changing() as rows:
            return _new(rows, "owner", "link", life=LINK_LIFE)

    def add_cookie(self, host: str, *, link: str = "") -> Token | None:
        """A cookie for the owner's browser at `host`; None where `link`, which is spent, is none that counts."""
        with self._changing() as rows:
            spent = _same(rows, link, _LINK) if link else []
            rows[:] = [row for row in rows if row not in spent]
            return _new(rows, "owner", "cookie", life=COOKIE_LIFE, host=host) if spent or not link else None

    def end_cookie(self, secret: str) -> None:
        """Log a browser out."""
        with self._changing() as rows:
            ended = _same(rows, secret, _COOKIE)
            rows[:] = [row for row in rows if row not in ended]

    def add(self, name: str, kind: Kind) -> Token:
        """A new token for an agent, whose conversations are of this kind: task or external. Raises UsageError."""
        if not Session.named(kind, name).agent or kind == "owner":
            advice = "the owner's token is printed by: notebook-sync token show"
            raise UsageError("a token is for an agent's task or external conversations", next=advice)
        with self._changing() as rows:
            if any(row.name.casefold() == name.casefold() for row in rows):
                raise UsageError(f"there is a token for {name!r} already", next=f"notebook-sync token revoke {name}")
            return _new(rows, name, kind)

    def revoke(self, name: str) -> bool:
        """Remove the tokens of a name; False where there is none. The owner's is made again when it is asked for."""
        with self._changing() as rows:
            revoked = [row for row in rows if row.name == name]
            rows[:] = [row for row in rows if row.name != name]
            return bool(revoked)

    def check(self, secret: str) -> Session | None:
        """Who asks with this bearer token; None for one that is not valid."""
        found = _same(self._read(), secret, KINDS)
        return _session_of(found[0]) if found else None

    def check_cookie(self, secret: str, host: str) -> Session | None:
        """Who asks from a browser with this cookie at `host`; None for one that is not valid there."""
        found = [row for row in _same(self._read(), secret, _COOKIE) if row.host == host]
        return _session_of(found[0]) if found else None

    def _read(self) -> list[Token]:
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
                advice = f"revoke its tokens, or run: chmod 600 {self._path}"
                raise Refused(f"{self._path} can be read by other users, so its tokens are not valid", next=advice)
            try:
                return [row for row in msgspec.json.decode(file.read(), type=list[Token]) if _session_of(row)]
            except (msgspec.DecodeError, UsageError):
                advice = "delete it; new tokens are made when they are asked for"
                raise NotebookError(f"{self._path} cannot be read as tokens", next=advice) from None

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """The tokens, to be changed by one process at a time, and written where all went well. Raises Busy."""
        lock = FileLock(self._path.with_suffix(".lock"))
        if not lock.acquire(_LOCK_SECONDS):
            raise Busy(lock.describe_holder())
        try:
            rows = [row for row in self._read() if _is_valid(row)]
            yield rows
            write_private(self._path, msgspec.json.format(msgspec.json.encode(rows)))
        except OSError as error:
            raise NotebookError(f"{self._path} cannot be written: {error.strerror}") from None
        finally:
            lock.release()


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _session_of(row: Token) -> Session:
    """Who asks with a token. Raises UsageError for a row that nobody wrote with this program."""
    if not row.token or (row.name == "owner") != (row.kind in _OWNERS):
        raise UsageError(f"a token of {row.name!r} cannot be {row.kind}")
    return Session.owner() if row.kind in _OWNERS else Session.named(row.kind, row.name)


def _is_valid(row: Token) -> bool:
    """Whether it has not expired."""
    return row.expires_at is None or row.expires_at > datetime.now(UTC)


def _same(rows: Iterable[Token], secret: str, kinds: Collection[TokenKind]) -> list[Token]:
    """The valid rows of these kinds with this secret. All are compared, in constant time: how long it takes says
    nothing about any."""
    given = _digest(secret)
    same = [row for row in rows if hmac.compare_digest(given, _digest(row.token))]
    return [row for row in same if row.kind in kinds and _is_valid(row)]


def _new(rows: list[Token], name: str, kind: TokenKind, *, life: timedelta | None = None, host: str = "") -> Token:
    """Add a token."""
    now = datetime.now(UTC)
    rows.append(Token(name, kind, now, secrets.token_urlsafe(32), now + life if life else None, host))
    return rows[-1]
