"""The text that an edit is based on, as it travels in a form: small enough for one, and known again by its digest.

So a form that was open for days can still be told from what the file says by now, wherever the server was meanwhile.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Final
from urllib.parse import quote_plus

from notebook_sync.errors import UsageError
from notebook_sync.notes.editing.door import digest_of
from notebook_sync.notes.editing.filing import File
from notebook_sync.surfaces.http.guard import LARGEST_BODY

# The rest is for the other fields, and for what is typed.
MOST_OF_A_FORM: Final = LARGEST_BODY * 3 // 4
_MOST_PACKED: Final = 64 << 20
_LEVEL: Final = 6


def packed(text: str) -> str:
    """A text for a hidden field."""
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), _LEVEL)).decode()


def unpacked(field: str, digest: str) -> str:
    """The text that was packed; "" for the digest "", which is that of no note. Raises UsageError for any other text
    than the one of this digest."""
    if not digest:
        return ""
    try:
        raw = zlib.decompressobj().decompress(base64.urlsafe_b64decode(field.encode()), _MOST_PACKED)
        text = raw.decode()
    except (ValueError, binascii.Error, zlib.error):
        text = ""
    if digest_of(text.encode()) != digest:
        raise UsageError(
            "what this form was made from did not come with it; copy what you wrote, open the page again, and put it in"
        )
    return text


def reason_against(file: File) -> str:
    """Why a browser cannot be given this text to edit, so that it comes back as it is; "" where it can."""
    if digest_of(file.text.encode(errors="replace")) != file.digest:
        return "it is not UTF-8, and what is not could only be lost here; save it as UTF-8 with your editor first"
    if "\0" in file.text:
        line = file.text.count("\n", 0, file.text.index("\0")) + 1
        return f"it holds a NUL character in line {line:,}, which no browser keeps; take it out with your editor first"
    return ""


def fits_a_form(shown: str, base: str) -> bool:
    """Whether a text can be sent back beside its packed base."""
    size = len(shown.encode())
    if size * 3 + len(base) < MOST_OF_A_FORM:  # as large as an encoded text can be
        return True
    return len(quote_plus(shown.replace("\n", "\r\n"))) + len(base) < MOST_OF_A_FORM
