"""What a list has to say of itself, which is a plain array: a header, left out where there is nothing to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from fastapi import Response

# What a header may hold, without the sign of what it may not.
_PLAIN: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


@dataclass(frozen=True, slots=True)
class Beside:
    """A header of an answer, and what it tells."""

    name: str
    description: str

    @property
    def documented(self) -> dict[int | str, dict[str, Any]]:
        """The `responses` of a route that may send it."""
        told = f"{self.description}; percent-encoded where it is not ASCII; left out where there is nothing to tell"
        return {200: {"headers": {self.name: {"description": told, "schema": {"type": "string"}}}}}

    def tell(self, response: Response, text: str) -> None:
        """Send it, unless the text is ""."""
        if text:
            response.headers[self.name] = quote(text, safe=_PLAIN, errors="replace")


DEGRADED: Final = Beside("Notebook-Degraded", "why words alone decided what is found, or not all that was asked for")
LOST: Final = Beside("Notebook-Lost", "that checkpoints are gone, and of before when")
