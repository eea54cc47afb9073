"""The YAML at the top of a note: where it ends, what it says, and how fields are written. It never hides the text.

It is small, and safe whatever it says: aliases, merge keys, duplicate keys, tags and deep nesting are refused. What is
read is text; `typed` makes of it what YAML 1.2 and dates mean, as values that BSON and JSON can hold. Text between two
rules that names no field is text; TOML and JSON are reported and not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any, NamedTuple, NoReturn

from notebook_sync.errors import UsageError
from notebook_sync.model import Problem
from prompt.hidden import HEAD, LARGEST_FRONTMATTER, has_fields

EXTERNAL = "external"
DEEPEST = 32  # mappings and lists inside each other


class YamlRefused(ValueError):
    """`args` are the 0-based line in the source, and what is wrong there and what to do."""


class Plain(str):
    """A text without quotes: `typed` decides what it is."""

    __slots__ = ()


class Place(NamedTuple):
    """Where a field is: the parser's events for its key, for the begin of its value and for the end of its value."""

    key: Any
    value: Any
    end: Any


class Frontmatter(NamedTuple):
    """`text[:body_start]` is the head of a text: byte order mark, blank lines above frontmatter, and frontmatter.

    `source` is the YAML between its marks, which begins on the 1-based `line` of the text; `values` are its fields in
    their order: None, str, Plain, and lists and dicts of these; and `places` say where they are. With a problem there
    are none.
    """

    body_start: int
    line: int = 0
    source: str = ""
    values: Mapping[str, Any] = {}
    places: Mapping[str, Place] = {}
    in_braces: bool = False
    problems: tuple[Problem, ...] = ()

    def line_of(self, key: str) -> int:
        """The 1-based line of the text that a key is on."""
        return self.line + int(self.places[key].key.start_mark.line)

    def key_of(self, name: str) -> str | None:
        """The key that is `name`, else the first that is it in other capitals; None without one."""
        return name if name in self.values else next((key for key in self.values if key.casefold() == name), None)


def read_frontmatter(text: str) -> Frontmatter:
    """The frontmatter of a text. Never raises: what is wrong is in `problems`."""
    begin = 1 if text.startswith("\ufeff") else 0
    head = HEAD.match(text)
    if head is None:
        if _JSON.match(text):
            return _unread(begin, 1, "it is JSON; write it as YAML between --- lines", severe=False)
        opened = _OPENED.match(text)
        return _unread(begin, 1, f"it is opened by {opened[1]} and never closed") if opened else Frontmatter(begin)
    mark = head.lastgroup or ""
    source, line = head[mark], text.count("\n", 0, head.start(mark)) + 1
    if not has_fields(head):
        is_meant = "\n\n" not in source and _KNOWN_FIELD.search(source)
        reason = "its first line is no field, like title: Plan"
        return _unread(begin, line, reason, severe=False) if is_meant else Frontmatter(begin)
    if len(source.encode(errors="replace")) > LARGEST_FRONTMATTER:
        return _unread(begin, line - 1, f"it is larger than {LARGEST_FRONTMATTER // 1024} KiB")
    if mark == "toml":
        return _unread(head.end(), line - 1, "it is TOML; write it as YAML between --- lines", severe=False)
    try:
        return load_yaml(source)._replace(body_start=head.end(), line=line)
    except YamlRefused as refused:
        below, reason = refused.args
        is_template = "{{" in source or "<%" in source
        if is_template:
            reason = "it is a template; its fields are read once its placeholders are filled in"
        return _unread(head.end(), line + below, reason, severe=not is_template)


# Without a closing mark, only a field right below the opening one shows that it is meant as frontmatter.
_OPENED = re.compile(r"\ufeff?(---|\+\+\+)[ \t]*(?:\Z|\r?\n(?:\s*\Z|[^\s:#\-\[][^\n]*?(?::(?:\s|\Z)|[ \t]=)))")
_JSON = re.compile(r'\ufeff?\{[ \t]*\r?\n\s*"')
_KNOWN_FIELD = re.compile(
    r"^(?:id|title|summary|tags?|alias(?:es)?|status|created_\w+|provenance)[ \t]*[:=]", re.M | re.I
)


def _unread(body_start: int, line: int, reason: str, *, severe: bool = True) -> Frontmatter:
    return Frontmatter(body_start, problems=(Problem(line, f"frontmatter is not read: {reason}", severe),))


def is_external(raw: bytes) -> bool:
    """Whether frontmatter says `provenance: external`, or may say it and cannot be read."""
    text = raw.decode(errors="replace")
    return says_external(text, read_frontmatter(text))


def says_external(text: str, front: Frontmatter) -> bool:
    """As `is_external`, for a text whose frontmatter is read already. In doubt, it does."""
    if front.problems:
        return "provenance" in text.casefold() or "\\" in text  # an escape may spell the key
    value = front.values.get(front.key_of("provenance") or "")
    return isinstance(value, list | dict) or str(value or "").strip().casefold().startswith(EXTERNAL)


def load_yaml(source: str) -> Frontmatter:
    """The fields of a YAML mapping, none for an empty source, as if it were the head of a text. Raises YamlRefused."""
    import yaml  # 11 ms, and most commands read no frontmatter

    try:
        return _Reader(yaml, source).fields()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise YamlRefused(line, f"{error.problem}; put the value in quotes, or indent with spaces") from None
    except (yaml.reader.ReaderError, UnicodeEncodeError) as error:
        at = error.start if isinstance(error, UnicodeEncodeError) else error.position
        line = source.encode(errors="replace").count(b"\n", 0, at)
        raise YamlRefused(line, "it holds a character that YAML does not allow; remove it") from None


class _Reader:
    """From the parser's events to values. It recurses no deeper than DEEPEST.

    Not from nodes: libyaml makes them by recursion in C, and deep ones end the process.
    """

    def __init__(self, yaml: Any, source: str) -> None:
        self._yaml, self._source = yaml, source
        self._next = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(source).get_event
        # What no store can hold is refused by the parser, unless it is written as an escape.
        self._text = storable if "\\" in source else str
        self._places: dict[str, Place] = {}
        self._end: Any = None

    def fields(self) -> Frontmatter:
        root = self._node()
        values: dict[str, Any] = {}
        if isinstance(root, self._yaml.MappingStartEvent):
            values = self._mapping(1)
        elif root and (not isinstance(root, self._yaml.ScalarEvent) or root.value):
            _refuse(root, "it is not a mapping of names to values")
        if second := self._node():
            _refuse(second, "it is a second document; keep one")
        return Frontmatter(0, 1, self._source, values, self._places, in_braces=bool(values and root.flow_style))

    def _node(self) -> Any:
        """The next node at top level, None for none."""
        while (event := self._next()) and not isinstance(event, self._yaml.NodeEvent):
            pass
        return event

    def _mapping(self, depth: int) -> dict[str, Any]:
        """Keys are text as written, whatever they would be as values: `2026-02-18`, `7`, `true`."""
        values: dict[str, Any] = {}
        while not isinstance(event := self._next(), self._yaml.MappingEndEvent):
            if not isinstance(event, self._yaml.ScalarEvent):
                _refuse(event, "a key must be a single value; put it in quotes")
            key = self._text(event.value)
            if key == "<<" and event.implicit[0]:
                _refuse(event, "merge keys (<<) are not allowed; write the fields out")
            if key in values:
                _refuse(event, f"the key {key!r} is there twice; keep one")
            value = self._next()
            values[key] = self._value(value, depth + 1)
            if depth == 1:
                self._places[key] = Place(event, value, self._end.end_mark)
        self._end = event
        return values

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, self._yaml.AliasEvent):
            _refuse(event, "aliases are not allowed; write the value out, or put it in quotes")
        if event.tag not in _TEXT_TAGS:
            _refuse(event, f"the tag {event.tag} is not allowed; put the value in quotes")
        if isinstance(event, self._yaml.ScalarEvent):
            self._end = event
            text = self._text(event.value)
            return text if not event.implicit[0] else None if text in _NULLS else Plain(text)
        if depth > DEEPEST:
            _refuse(event, f"it nests deeper than {DEEPEST} levels; make it flatter")
        if isinstance(event, self._yaml.MappingStartEvent):
            return self._mapping(depth)
        entries = []
        while not isinstance(entry := self._next(), self._yaml.SequenceEndEvent):
            entries.append(self._value(entry, depth + 1))
        self._end = entry
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
