"""Notes that the program itself writes: their frontmatter, and a name for their file.

What is written reads back as it was given, or is refused: nothing is bent to fit.
"""

from __future__ import annotations

import math
import re
import secrets
import unicodedata
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import regex
import yaml

from notebook_sync.errors import UsageError
from notebook_sync.files.frontmatter import read_frontmatter, storable

_DEEPEST = 16
_LONGEST_SLUG = 80  # bytes: with a time before it and a number behind it, a name stays far below what systems allow
# Letters with their marks, which some scripts write vowels by, and digits; none that nobody sees.
_WORD = regex.compile(r"[[\p{L}\p{M}\p{N}]--\p{Default_Ignorable_Code_Point}]+", regex.V1)
# What may stand without quotes: no reader of YAML, of whatever version, takes a text that begins so for a number.
_PLAIN = re.compile(r"[^\W\d_][\w ./@+-]*")
# Without what is mistaken for something else when read aloud or typed; a letter first, so that YAML reads it as text.
_LETTERS = "abcdefghjkmnpqrstuvwxyz"
_ALPHABET = _LETTERS + "23456789"
_ID_LENGTH = 12


def note_text(fields: Mapping[str, Any], content: str) -> str:
    """A note with these fields, in this order, above `content` to the character. Fields that are None are left out.

    Raises UsageError naming the field whose value frontmatter cannot hold.
    """
    kept = {name: _kept(name, value) for name, value in fields.items() if value is not None}
    head = f"---\n{as_yaml(kept)}---\n"
    read = read_frontmatter(head + content)
    if read.problem is not None:
        raise UsageError(f"these fields cannot be written: {read.problem.message}; give fewer or shorter ones")
    for name, value in kept.items():
        if read.metadata.get(name, read) != value:
            raise UsageError(f"the field {name!r} cannot be written so that it reads back as it is; give plain text")
    return head + content


def slug_of(text: str, otherwise: str = "note") -> str:
    """The words of `text` as a file's name: small letters and digits with `-` between them; `otherwise` for none."""
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", storable(text)).casefold())
    slug = ""
    for word in _WORD.findall(plain):
        longer = f"{slug}-{word}" if slug else word
        if len(longer.encode()) > _LONGEST_SLUG:
            return slug or word.encode()[:_LONGEST_SLUG].decode(errors="ignore")
        slug = longer
    return slug or otherwise


def new_id() -> str:
    """One that no other note has: of so many, nobody meets one twice, and no store need be asked."""
    return secrets.choice(_LETTERS) + "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH - 1))


def _kept(name: str, value: Any, depth: int = 0) -> Any:
    """The value as the reader gives it back. Raises UsageError for what no frontmatter holds."""
    match value:
        case None | bool():
            return value
        case str():
            return storable(str.__str__(value))
        case int() if -(2**63) <= value < 2**63:
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case datetime():
            return _moment(name, value)
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case Mapping() | list() | tuple() if depth >= _DEEPEST:
            raise UsageError(f"the field {name!r} nests deeper than {_DEEPEST} levels; give it flatter")
        case Mapping():
            if not all(isinstance(key, str) for key in value):
                raise UsageError(f"the field {name!r} has a key that is no text; use text for keys")
            return {storable(str.__str__(key)): _kept(name, each, depth + 1) for key, each in value.items()}
        case list() | tuple():
            return [_kept(name, each, depth + 1) for each in value]
        case int():
            raise UsageError(f"the field {name!r} holds a number beyond 64 bits; give it as text")
        case float():
            raise UsageError(f"the field {name!r} holds a number that is not finite; give it as text")
    raise UsageError(
        f"the field {name!r} holds {type(value).__name__}; use text, numbers, true, false, times, and lists and "
        "mappings of these"
    )


def _moment(name: str, value: datetime) -> datetime:
    """In UTC, which a time without a zone is taken for, and whole milliseconds."""
    try:
        moment = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except OverflowError:
        raise UsageError(f"the field {name!r} holds a time that no calendar in UTC has; give it as text") from None
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


_STR = "tag:yaml.org,2002:str"


class _Dumper(yaml.SafeDumper):
    """Block style outside, lists of single values on one line, and every doubtful text in double quotes."""

    def ignore_aliases(self, _: Any) -> bool:
        return True

    def serialize(self, node: yaml.Node) -> None:
        """As it is done, but a line for each field, also where all of them would fit into a pair of braces."""
        if isinstance(node, yaml.MappingNode):
            node.flow_style = False
        super().serialize(node)


def _text_node(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    if _PLAIN.fullmatch(text):
        return dumper.represent_scalar(_STR, text)
    # In double quotes PyYAML writes such characters, emoji among them, as numbers, which people cannot read.
    return dumper.represent_scalar(_STR, text, style="'" if max(text, default="") > "\uffff" else '"')


def _moment_node(dumper: _Dumper, moment: datetime) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:timestamp", _written(moment))


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_Dumper.add_representer(str, _text_node)
_Dumper.add_representer(datetime, _moment_node)


def as_yaml(fields: Mapping[str, Any]) -> str:
    """The fields as lines of YAML, in this order; "" for none."""
    return "".join(_plain_line(name, value) or _dumped(name, value) for name, value in fields.items())


# What some reader of YAML takes for something else than text.
_SPECIAL = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_NUMBER = re.compile(r"-?\d+\.\d+")
_LONGEST_NAME = 100  # PyYAML begins a longer one with a question mark


def _plain_line(name: str, value: Any) -> str:
    """The line of a field with a plain name and value, as `_dumped` writes it: most are, and PyYAML takes ten times as
    long for them. "" for any other."""
    written = _plain(value)
    return f"{name}: {written}\n" if written and len(name) <= _LONGEST_NAME and _is_plain(name) else ""


def _plain(value: Any) -> str:
    match value:
        case str() if _PLAIN.fullmatch(value):
            return value if _is_plain(value) else ""
        case str():
            return f'"{value}"' if _is_quotable(value) else ""
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return written if _NUMBER.fullmatch(written := repr(value)) else ""
        case datetime():
            return _written(value)
        case list() if value and all(isinstance(each, str) and _is_plain(each) for each in value):
            return f"[{', '.join(value)}]"
    return ""


def _is_plain(text: str) -> bool:
    is_on_its_own = not text.endswith(" ") and text.casefold() not in _SPECIAL
    return text.isascii() and _PLAIN.fullmatch(text) is not None and is_on_its_own


def _is_quotable(text: str) -> bool:
    """Whether double quotes around it are all it needs."""
    return text.isprintable() and max(text, default=" ") < "\ud800" and not {'"', "\\"} & set(text)


def _dumped(name: str, value: Any) -> str:
    dumped: str = yaml.dump(
        {name: value}, Dumper=_Dumper, allow_unicode=True, sort_keys=False, default_flow_style=None, width=math.inf
    )
    return dumped
