"""A picture as an answer: it can do nothing, wherever it is opened."""

from __future__ import annotations

from typing import Any

from fastapi import Response

SVG, TEXT = "image/svg+xml", "text/plain"  # text for Mermaid
PICTURE: dict[str, Any] = {
    "description": "a picture",
    "content": {media: {"schema": {"type": "string"}} for media in (SVG, TEXT)},
}
# Its style stands in it; nothing else of it does anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"


def picture(drawn: str, media_type: str = SVG) -> Response:
    """The answer that brings it."""
    return Response(drawn, media_type=media_type, headers={"Content-Security-Policy": _POLICY})
