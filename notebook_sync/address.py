"""Where a server is, as people may see it: a URL without what is secret in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

_CUTS = re.compile(r"[/?#@]")
_URL = re.compile(r"^[^:]+://(?:(?P<credentials>.*)@)?(?P<place>[^?]*)")


@dataclass(frozen=True, slots=True)
class Address:
    """`place` is the hosts and the path of the URL; `secrets` are the texts that no message may contain."""

    place: str
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> Address:
        found = _URL.match(url)
        if found is None:
            return cls("an address that is not a URL", ())
        credentials = found["credentials"] or ""
        password = credentials.partition(":")[2]
        # A driver cuts a password that is not escaped at these marks, and shows the pieces as a host or a port.
        secrets = {credentials, password, unquote(password), *_CUTS.split(password)}
        return cls(found["place"].rstrip("/"), tuple(sorted(filter(None, secrets), key=len, reverse=True)))

    def without_secrets(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text
