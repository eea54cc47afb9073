"""Where a server is, as people may see it: an address without what is secret in it, and rather too little than that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

_HIDDEN = "***"
# The last @ counts: a password may hold one, or a /, though it should not.
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z0-9+.-]+://)?(?:(?P<credentials>.*)@)?(?P<place>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.DOTALL | re.IGNORECASE,
)
_CUTS = re.compile(r"[/?#@]")
_OPTIONS = re.compile(r"[&;]")
_SECRET_OPTION = re.compile(r"pass|secret|token|user|properties", re.IGNORECASE)
# A shorter piece stands in harmless words too: but for where it is quoted, hiding it would garble a message.
_SHORTEST_PIECE = 4


@dataclass(frozen=True, slots=True)
class Address:
    """`scheme` with its `://`; `place`: hosts and path; `options`: the names of the query, without their values.

    `secrets` are the texts that no message may contain, `has_credentials` says whether the address names a user.
    """

    scheme: str
    place: str
    options: tuple[str, ...]
    has_credentials: bool
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> Address:
        """The parts of `url`, which may be anything that stands where an address should."""
        found = _ADDRESS.fullmatch(url)
        if found is None:
            return cls("", _HIDDEN, (), False, (url,))
        scheme, place = found["scheme"] or "", found["place"].rstrip("/")
        credentials, query = found["credentials"] or "", found["query"] or ""
        before, mark, after = credentials.partition("?")
        if mark and "=" in after:  # is the last @ in a password, or in an option? What follows it may be secret
            return cls(scheme, _HIDDEN, (), True, _longest_first({credentials, place, *_secret_in(before)}))
        options = [option.partition("=") for option in _OPTIONS.split(query) if option]
        values = {value for name, _, value in options if _SECRET_OPTION.search(name)}
        secrets = _secret_in(credentials) | values | {unquote(value) for value in values}
        names = tuple(name for name, equals, _ in options if equals)
        return cls(scheme, place, names, found["credentials"] is not None, _longest_first(secrets))

    def shown(self) -> str:
        """The address for people: no credentials, and of the query the names alone."""
        user = f"{_HIDDEN}@" if self.has_credentials and self.place != _HIDDEN else ""
        query = "&".join(f"{name}={_HIDDEN}" for name in self.options)
        return f"{self.scheme}{user}{self.place}{'?' if query else ''}{query}"

    def without_secrets(self, text: str) -> str:
        """`text`, a driver's message as a rule, with every secret of the address hidden."""
        for secret in self.secrets:
            text = text.replace(secret, _HIDDEN)
        return text


def _secret_in(credentials: str) -> set[str]:
    password = credentials.partition(":")[2]
    # A driver cuts a password that is not escaped at these marks, and shows the pieces as a host or a port.
    pieces = {piece if len(piece) >= _SHORTEST_PIECE else f"'{piece}'" for piece in _CUTS.split(password) if piece}
    return {credentials, password, unquote(password), *pieces}


def _longest_first(secrets: set[str]) -> tuple[str, ...]:
    return tuple(sorted(filter(None, secrets), key=len, reverse=True))
