"""Notes that the program itself writes: their text, and a name for their file.

What is written reads back as it was given, or is refused: nothing is bent to fit.
"""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Mapping
from datetime import UTC
from typing import Any

import regex

from notebook_sync.errors import UsageError
from notebook_sync.files.fields import read_fields
from notebook_sync.files.frontmatter import as_yaml, read_frontmatter, storable, typed
from notebook_sync.files.names import why_not

_LONGEST_SLUG = 80  # bytes: with a time before it and a number behind it, a name stays far below what systems allow
# Without what is mistaken for something else when read aloud or typed; a letter first, so that YAML reads it as text.
_LETTERS = "abcdefghjkmnpqrstuvwxyz"
_ALPHABET = _LETTERS + "23456789"
_ID_LENGTH = 12
# Letters with their marks, which some scripts write vowels by, and digits; none that nobody sees.
_WORD = regex.compile(r"[[\p{L}\p{M}\p{N}]--\p{Default_Ignorable_Code_Point}]+", regex.V1)


def note_text(fields: Mapping[str, Any], body: str, *, collection: str = "pages") -> bytes:
    """A note with these fields, in this order, above `body` to the character. Fields that are None are left out.

    Raises UsageError naming the field, or the line, that would not read back as given, and what to do.
    """
    kept = {name: value for name, value in fields.items() if value is not None}
    inner = read_frontmatter(body)
    if kept and (inner.values or inner.problems):
        given = ", ".join(inner.values) or "what it says"
        raise UsageError(
            "the content opens frontmatter of its own on line 1, which would not be read",
            next=f"give {given} as fields, and the content without it",
        )
    yaml = as_yaml(kept)
    text = f"---\n{yaml}---\n{body}" if kept or inner.body_start else body
    read = read_frontmatter(text)
    problems = (*read.problems, *read_fields(read, collection, UTC)[2])
    if problems:
        raise UsageError(f"the note cannot be written: {problems[0]}", next="correct or shorten that field")
    if kept and (as_yaml(typed(read.values, UTC)) != as_yaml(typed(kept, UTC)) or text[read.body_start :] != body):
        raise UsageError("the fields would not read back as they are", next="give plain text, numbers and times")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise UsageError(f"line {line} holds half a character", next="remove it") from None


def slug(title: str, otherwise: str = "note") -> str:
    """The words of a title as a file's name: small letters and digits with `-` between them, at most 80 bytes.

    `otherwise` for a title without any, or one that some system keeps for a device.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", storable(title)).casefold())
    name = "-".join(_WORD.findall(folded))
    if len(name.encode()) > _LONGEST_SLUG:
        whole_words = name.encode()[: _LONGEST_SLUG + 1].decode(errors="ignore").rpartition("-")[0]
        name = whole_words or name.encode()[:_LONGEST_SLUG].decode(errors="ignore")
    return otherwise if not name or why_not(f"{name}.md") else name


def new_id() -> str:
    """A random id of 12 characters that is text in YAML and easy to read aloud: a letter first, no 0 1 i l o."""
    return secrets.choice(_LETTERS) + "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH - 1))
