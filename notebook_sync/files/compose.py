"""What the program itself writes: the text of a new note, a name for its file, and fields set in frontmatter. Pure.

What is written reads back as it was given, or is refused: nothing is bent to fit. The bytes of the other fields,
comments and order stay as they are, and a new value is written as the caller spells it.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Mapping
from datetime import UTC
from typing import Any, NamedTuple

from notebook_sync.errors import UsageError
from notebook_sync.files.fields import read_fields
from notebook_sync.files.frontmatter import (
    Frontmatter,
    YamlRefused,
    as_yaml,
    load_yaml,
    read_frontmatter,
    storable,
    typed,
)
from notebook_sync.files.names import why_not
from notebook_sync.files.page import Page

_LONGEST_SLUG = 80  # bytes: with a time before it and a number behind it, a name stays far below what systems allow
# Without what is mistaken for something else when read aloud or typed; a letter first, so that YAML reads it as text.
_LETTERS = "abcdefghjkmnpqrstuvwxyz"
_ID_LENGTH = 12
# Letters with their marks, which some scripts write vowels by, and digits; none that nobody sees.
_WORD = r"[[\p{L}\p{M}\p{N}]--\p{Default_Ignorable_Code_Point}]+"


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
    import regex  # takes longer to load than most edits, which name no file

    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", storable(title)).casefold())
    name = "-".join(regex.findall(_WORD, folded, regex.V1))
    if len(name.encode()) > _LONGEST_SLUG:
        whole_words = name.encode()[: _LONGEST_SLUG + 1].decode(errors="ignore").rpartition("-")[0]
        name = whole_words or name.encode()[:_LONGEST_SLUG].decode(errors="ignore")
    return otherwise if not name or why_not(f"{name}.md") else name


def code_block(code: str, language: str) -> str:
    """Code to the character in a fenced block that nothing in it ends, on lines of its own."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    last = "" if code.endswith("\n") or not code else "\n"
    return f"{fence}{language}\n{code}{last}{fence}\n"


def new_id() -> str:
    """A random id of 12 characters that is text in YAML and easy to read aloud: a letter first, no 0 1 i l o."""
    return secrets.choice(_LETTERS) + "".join(secrets.choice(_LETTERS + "23456789") for _ in range(_ID_LENGTH - 1))


def set_frontmatter(page: Page, mapping: str, fields: Mapping[str, Any]) -> str:
    """The page's text with the fields of `mapping` (YAML) and `fields` set, and those that are null removed.

    A key in other capitals is the same field: `status` sets `Status:`. Raises EditFailed.
    """
    try:
        wanted = load_yaml(mapping.replace("\r\n", "\n").strip("\n") + "\n" + as_yaml(fields))
    except YamlRefused as refused:
        line, reason = refused.args
        raise page.error(f"line {line + 1} of the content: {reason}") from None
    if not wanted.values:
        raise page.error("there is no field to set; give them as YAML, a line each, as in: status: complete")
    if wanted.in_braces:
        wanted = load_yaml(as_yaml(wanted.values))
    old = read_frontmatter(page.text)
    if old.problems:
        raise page.error("the frontmatter must be corrected first:", [str(problem) for problem in old.problems])
    if old.in_braces:
        raise page.error("the frontmatter has no field a line in YAML; write the whole file instead")
    names = {name: old.key_of(name) or name for name in wanted.values}
    for name, value in wanted.values.items():
        if value is None and names[name] not in old.values:
            raise page.error(f"there is no field {name!r} to remove; there is:", [*old.values])
    text = _head_with(page, old, wanted, names) + page.body
    new = read_frontmatter(text)
    meant = dict(old.values) | {names[name]: value for name, value in wanted.values.items()}
    meant = {key: value for key, value in meant.items() if value is not None or key not in names.values()}
    if new.problems or text[new.body_start :] != page.body or new.values != meant:
        raise page.error("the frontmatter would not read as meant; write the whole file instead")
    return text


def _head_with(page: Page, old: Frontmatter, wanted: Frontmatter, names: Mapping[str, str]) -> str:
    """The head of the page with the wanted fields as they are spelt; `names` are their keys in the page."""
    there = _fields_in(old)
    changes = []
    for name, new in _fields_in(wanted).items():
        field = there.get(names[name])
        if field is None:
            changes.append((len(old.source), len(old.source), new.text))
            continue
        kept, spelt = field.key, new.text[len(new.key) :]
        if field.value and new.value:
            kept, spelt = field.text[: field.value], new.text[new.value :]
        line, end, rest = spelt.partition("\n")
        comment = "" if field.comment in line else field.comment
        text = "" if wanted.values[name] is None else f"{kept}{line}{comment}{end}{rest}"
        changes.append((field.start, field.start + len(field.text), text))
    head, start = page.head, 0
    if old.line:
        start = head.index("\n", head.index("---")) + 1
    eol = "\r\n" if (head[:start] or page.body.partition("\n")[0]).endswith(("\r\n", "\r")) else "\n"
    if not start:
        head, start = f"{head}---{eol}---{eol}", len(f"{head}---{eol}")
    changes.reverse()  # of several at one place, the first is put in last
    for first, last, text in sorted(changes, key=lambda change: -change[0]):
        head = head[: start + first] + text.replace("\n", eol) + head[start + last :]
    return head


class _Field(NamedTuple):
    """A field in its YAML: `text` is its lines, which begin at `start`, without comments and blank lines below it.

    `key` is how it begins. On its first line, `value` is where in `text` the value begins, 0 where it has lines of its
    own, and `comment` what follows the value, or the begin of it.
    """

    start: int
    text: str
    key: str
    value: int
    comment: str


_COMMENT = re.compile(r"(?:[ \t]*:)?(?:[ \t]*[|>][-+0-9]*)?([ \t]+#.*)")


def _fields_in(read: Frontmatter) -> dict[str, _Field]:
    fields: dict[str, _Field] = {}
    source, after = read.source, len(read.source)
    for name, (key, value, end) in reversed([*read.places.items()]):
        start = key.start_mark.index
        lines = source[start:after].splitlines(keepends=True)
        after = start - key.start_mark.column
        while len(lines) > 1 and (lines[-1].startswith("#") or not lines[-1].strip()):
            lines.pop()
        begin, line = value.start_mark, key.start_mark.line
        is_inline = begin.line == line and begin.index < end.index and getattr(value, "style", "") not in ("|", ">")
        behind = source[end.index if is_inline and end.line == line else key.end_mark.index : start + len(lines[0])]
        comment = _COMMENT.fullmatch(behind.rstrip())
        fields[name] = _Field(
            start,
            "".join(lines),
            source[start : key.end_mark.index],
            begin.index - start if is_inline else 0,
            comment[1] if comment else "",
        )
    return dict(reversed(fields.items()))
