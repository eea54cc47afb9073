"""The YAML of frontmatter, read and written: small, and safe whatever it says.

Aliases, merge keys, duplicate keys, tags and deep nesting are refused. What is read is text; `typed` makes of it what
YAML 1.2 and dates mean, as values that BSON and JSON can hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any, NamedTuple, NoReturn

import yaml

from notebook_sync.errors import UsageError

DEEPEST = 32  # mappings and lists inside each other


class YamlRefused(ValueError):
    """`args` are the 0-based line in the source, and what is wrong there and what to do."""


class Plain(str):
    """A text without quotes: `typed` decides what it is."""

    __slots__ = ()


class Place(NamedTuple):
    """Where a field is: the parser's events for its key and for the begin of its value, and the mark of its end."""

    key: Any
    value: Any
    end: Any


class YamlFields(NamedTuple):
    """A mapping, and where its fields are. Values are None, str, Plain, and lists and dicts of these."""

    values: dict[str, Any]
    places: dict[str, Place]
    in_braces: bool = False


def load_yaml(source: str) -> YamlFields:
    """The fields of a YAML mapping, none for an empty source. Raises YamlRefused."""
    if found := re.search(_NOT_YAML, source):
        line = source.count("\n", 0, found.start())
        raise YamlRefused(line, "it holds a character that YAML does not allow; remove it")
    # Events, not nodes: libyaml composes nodes by recursion in C, and deep ones end the process.
    try:
        return _Reader(yaml.parse(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))).fields()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise YamlRefused(line, f"{error.problem}; put the value in quotes, or indent with spaces") from None


class _Reader:
    """From events to values. It recurses no deeper than DEEPEST."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._last: Any = None

    def _next(self) -> Any:
        self._last = next(self._events)
        return self._last

    def fields(self) -> YamlFields:
        read = YamlFields({}, {})
        root = next((event for event in self._events if isinstance(event, yaml.NodeEvent)), None)
        if root is None or (isinstance(root, yaml.ScalarEvent) and not root.value):
            return read
        if not isinstance(root, yaml.MappingStartEvent):
            _refuse(root, "it is not a mapping of names to values")
        for key, event in self._keys(read.values):
            value = self._next()
            read.values[key] = self._value(value, 2)
            read.places[key] = Place(event, value, self._last.end_mark)
        if second := next((event for event in self._events if isinstance(event, yaml.NodeEvent)), None):
            _refuse(second, "it is a second document; keep one")
        return read._replace(in_braces=bool(root.flow_style))

    def _keys(self, taken: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Keys are text as written, whatever they would be as values: `2026-02-18`, `7`, `true`."""
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                _refuse(event, "a key must be a single value; put it in quotes")
            key = storable(event.value)
            if key == "<<" and event.implicit[0]:
                _refuse(event, "merge keys (<<) are not allowed; write the fields out")
            if key in taken:
                _refuse(event, f"the key {key!r} is there twice; keep one")
            yield key, event

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            _refuse(event, "aliases are not allowed; write the value out, or put it in quotes")
        if event.tag not in _TEXT_TAGS:
            _refuse(event, f"the tag {event.tag} is not allowed; put the value in quotes")
        if isinstance(event, yaml.ScalarEvent):
            text = storable(event.value)
            return text if not event.implicit[0] else None if text in _NULLS else Plain(text)
        if depth > DEEPEST:
            _refuse(event, f"it nests deeper than {DEEPEST} levels; make it flatter")
        if isinstance(event, yaml.MappingStartEvent):
            mapping: dict[str, Any] = {}
            for key, _ in self._keys(mapping):
                mapping[key] = self._value(self._next(), depth + 1)
            return mapping
        entries = []
        while not isinstance(entry := self._next(), yaml.SequenceEndEvent):
            entries.append(self._value(entry, depth + 1))
        return entries


def _refuse(event: Any, reason: str) -> NoReturn:
    raise YamlRefused(event.start_mark.line, reason)


def typed(value: Any, zone: tzinfo) -> Any:
    """What a value that was read means, as JSON and BSON can hold it: each Plain in it is a number, a time, or text."""
    if isinstance(value, dict):
        return {key: typed(each, zone) for key, each in value.items()}
    if isinstance(value, list):
        return [typed(each, zone) for each in value]
    return value if type(value) is not Plain else _meaning_of(str(value), zone)


def _meaning_of(text: str, zone: tzinfo) -> Any:
    """A boolean, a number, a date, a time in UTC, or text.

    A number that would not print as it is written (`01234`, `1.10`, `+49`) stays text, so that no digit is lost.
    """
    if text[0] not in "tTfF-0123456789":
        return text
    if text in _TRUTHS:
        return _TRUTHS[text]
    if _INTEGER.fullmatch(text):
        number = int(text)
        return number if -(2**63) <= number < 2**63 else text
    if _REAL.fullmatch(text):
        return real if repr(real := float(text)) == text else text
    return read_time(text, zone) or text


def read_time(text: str, zone: tzinfo) -> date | datetime | None:
    """A date, or a time as UTC in whole milliseconds, from ISO text; None for anything else.

    A time without a zone is in `zone`.
    """
    if not _TIME.match(text):
        return None
    try:
        return date.fromisoformat(text) if len(text) == _DAY else as_utc(datetime.fromisoformat(text), zone)
    except ValueError:
        return None


def as_utc(moment: date, zone: tzinfo) -> datetime | None:
    """The moment in UTC and whole milliseconds: the first of a day, and in `zone` without a zone of its own. None for
    one beyond the calendar."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=zone)
    try:
        utc = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        return None
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


def storable(text: str) -> str:
    """`text` without what no store can hold: NUL and lone surrogates."""
    return _UNSTORABLE.sub("\ufffd", text)


def as_yaml(fields: Mapping[str, Any]) -> str:
    """The fields as lines of YAML, in this order; "" for none. A time without a zone is written without one.

    Raises UsageError naming a field whose value no frontmatter can hold.
    """
    lines = []
    for name, value in fields.items():
        try:
            if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
                entries = "".join(f"  - {_written(each)}\n" for each in value)  # one line each, for readable diffs
                lines.append(f"{_written(name)}:\n{entries}")
            else:
                lines.append(f"{_written(name)}: {_written(value)}\n")
        except (TypeError, ValueError, RecursionError) as error:
            advice = "use text, finite numbers, true, false, times, and lists and mappings of these"
            raise UsageError(f"the field {name!r} cannot be written: {error}", next=advice) from None
    return "".join(lines)


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_written(key)}: {_written(each)}' for key, each in value.items())}}}"
    if isinstance(value, datetime):
        utc = as_utc(value, UTC) if value.tzinfo else value
        return (utc or value).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    is_value = type(value) is Plain and not isinstance(_meaning_of(str(value), UTC), str)
    if is_value or (isinstance(value, str) and _PLAIN.fullmatch(value) and value.casefold() not in _NO_TEXT):
        return str.__str__(value)
    written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return re.sub(_ESCAPED, lambda found: f"\\u{ord(found[0]):04x}", written)


_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
# 4 ms to compile, which a text without frontmatter need not wait for.
_NOT_YAML = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_REAL = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[-+][0-9]{1,3})?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9]{2}:[0-9]{2}|\Z)")
_DAY = len("2026-02-18")
# What may be without quotes: no reader of YAML, of whatever version, takes a text that begins so for a number.
_PLAIN = re.compile(r"[^\W\d_](?:[\w ./@+-]*[\w./@+-])?")
# What some reader of YAML takes for something other than text.
_NO_TEXT = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
# Beyond what JSON escapes, YAML ends lines at some characters and refuses others. Only writing compiles it: 4 ms.
_ESCAPED = "[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
