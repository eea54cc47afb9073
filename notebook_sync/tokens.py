"""The tokens by which a surface knows who is asking: the owner's, and one for each agent, in `.notebook/tokens.json`.

They are kept as they are, not hashed: the owner has to be able to read theirs, and whoever can read this file can
change the notes beside it anyway. So the file is readable to nobody else, at no moment, or it is not used at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from notebook_sync.errors import NotebookError, Refused, UsageError
from notebook_sync.folder import opened_private, replace_private
from notebook_sync.sessions import Kind, Session

FILE = "tokens.json"
OWNER = "owner"
_LOCK = "tokens.lock"
_KINDS: tuple[Kind, ...] = ("task", "external")


@dataclass(frozen=True, slots=True)
class Listed:
    """One token as it may be shown: whose it is, never the token itself."""

    name: str
    kind: Kind
    created_at: str


@dataclass(frozen=True, slots=True)
class _Token:
    name: str
    kind: Kind
    secret: str
    created_at: str

    def __post_init__(self) -> None:
        Session.named(self.kind, "" if self.name == OWNER else self.name)
        if (self.name == OWNER) != (self.kind == "owner") or not isinstance(self.secret, str) or not self.secret:
            raise ValueError(self.name)


# `list` names a method below, so the types need names of their own.
_Known = list[_Token]
_AllListed = list[Listed]


class Tokens:
    """The tokens of one notebook; `folder` is its `.notebook`. Each method looks at the file: a token that was revoked
    by another process is worth nothing at once.

    Every method raises Refused for a file that others can read or that is another user's, NotebookError for one that
    cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / FILE

    @property
    def folder(self) -> Path:
        """Where they are kept."""
        return self._folder

    def owner(self) -> str:
        """The owner's token; it is made when there is none."""
        if (secret := self.known_owner()) is not None:
            return secret
        with self._changing() as known:
            if (secret := _owners(known)) is None:
                known.append(made := _made(OWNER, "owner"))
                secret = made.secret
        return secret

    def known_owner(self) -> str | None:
        """The owner's token, None where there is none: to look for it makes no other."""
        return _owners(self._read())

    def add(self, name: str, kind: str) -> str:
        """A new token for the agent `name`, whose sessions are of this kind: task or external. Raises UsageError."""
        session = Session.named(kind, name)
        if session.kind not in _KINDS:
            raise UsageError(f"an agent's token is for {' or '.join(_KINDS)} sessions; the owner has a token already")
        if not name:
            raise UsageError("a token is for an agent; name it, as in: scribe")
        with self._changing() as known:
            if any(token.name.casefold() == name.casefold() for token in known):
                raise UsageError(f"there is a token for {name!r} already; revoke it first")
            made = _made(name, session.kind)
            known.append(made)
        return made.secret

    def revoke(self, name: str) -> bool:
        """Make the token of `name` worthless. False when there is none. The owner's is made anew when asked for."""
        with self._changing() as known:
            kept = [token for token in known if token.name != name]
            is_known = len(kept) < len(known)
            known[:] = kept
        return is_known

    def list(self) -> _AllListed:
        """Whose tokens there are, by name."""
        known = sorted(self._read(), key=lambda token: token.name)
        return [Listed(token.name, token.kind, token.created_at) for token in known]

    def session_of(self, secret: str) -> Session | None:
        """Who asks with this token; None for one that is not, or no longer, among them."""
        given = _digest(secret)
        found: Session | None = None
        # All are compared, and in constant time: how long it takes tells nothing about any of them.
        for token in self._read():
            if hmac.compare_digest(given, _digest(token.secret)):
                found = Session(token.kind, "" if token.name == OWNER else token.name)
        return found

    def _read(self) -> _Known:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise NotebookError(f"{self._path}: {error.strerror}") from None
        with os.fdopen(fd, encoding="utf-8") as file:
            self._must_be_private(os.fstat(fd))
            try:
                return [_Token(**each) for each in json.load(file)["tokens"]]
            except (ValueError, KeyError, TypeError):
                raise NotebookError(
                    f"{self._path} cannot be read as tokens; delete it, and new ones are made when they are asked for"
                ) from None

    def _must_be_private(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode) or os.geteuid() not in {0, found.st_uid}:
            raise Refused(f"{self._path} is not a file of yours, so its tokens count for nothing; delete it")
        if found.st_mode & 0o077:
            raise Refused(f"{self._path} can be read by others; revoke its tokens, or run: chmod 600 {self._path}")

    @contextlib.contextmanager
    def _changing(self) -> Iterator[_Known]:
        """The tokens, to be changed by one process at a time, and written when all went well."""
        need = f"tokens are kept there, so make {self._folder} writable"
        with opened_private(self._folder / _LOCK, need) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self._read()
            yield known
            self._write(known)

    def _write(self, tokens: _Known) -> None:
        raw = json.dumps({"tokens": [asdict(token) for token in tokens]}, indent=1)
        try:
            replace_private(self._path, raw.encode(), durably=True)
        except OSError as error:
            raise NotebookError(f"{self._path}: {error.strerror}") from None


def _owners(known: Sequence[_Token]) -> str | None:
    return next((token.secret for token in known if token.name == OWNER), None)


def _made(name: str, kind: Kind) -> _Token:
    return _Token(name, kind, secrets.token_urlsafe(32), datetime.now(UTC).isoformat(timespec="seconds"))


def _digest(secret: str) -> bytes:
    """Of one length for all, whatever the one given looks like."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
