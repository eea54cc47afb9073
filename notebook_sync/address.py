"""Where a server is, as people may see it: a URL without what is secret in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

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
        return cls(found["place"].rstrip("/"), tuple(filter(None, (credentials, password, unquote(password)))))

    def without_secrets(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text
