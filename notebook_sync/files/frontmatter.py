"""YAML between `---` lines: where it ends, and what it says, as values that BSON and JSON hold.

The loader is small and safe, and reads as YAML 1.2 does (`no` and `1:30` are text). It refuses aliases, merge keys,
duplicate keys, tags beyond the core, and what is too large or too deep; what it refuses never hides the text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from notebook_sync.files.note import Problem
from prompt.hidden import LARGEST_FRONTMATTER, end_of_frontmatter

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

DEEPEST = 32  # mappings and lists inside each other


class Metadata(dict[str, Any]):
    """Frontmatter's values, and where each key stood: `lines` are 1-based in the file."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}
        self.nodes: dict[str, yaml.Node] = {}

    def text(self, key: str) -> str | None:
        """A scalar as it is written, `1.10` and not 1.1; None where there is none, or something else."""
        node = self.nodes.get(key)
        return _written(node) if node is not None else None

    def texts(self, key: str) -> list[str] | None:
        """The entries of a list of scalars as they are written, empty ones left out; None for anything else."""
        node = self.nodes.get(key)
        if not isinstance(node, yaml.SequenceNode):
            return None
        if not all(isinstance(entry, yaml.ScalarNode) for entry in node.value):
            return None
        return [text for entry in node.value if (text := _written(entry))]

    def line_in(self, key: str, index: int) -> int:
        """Where in the file an entry of a list stands; the key's own line where the value is no list."""
        node = self.nodes[key]
        if not isinstance(node, yaml.SequenceNode) or index >= len(node.value):
            return self.lines[key]
        return int(node.value[index].start_mark.line) + _FIRST_LINE


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """`head` (byte order mark and frontmatter) and `content`, joined, are the text, to the character."""

    head: str
    content: str
    metadata: Metadata
    problem: Problem | None = None


class NoteHandler(YAMLHandler):
    """python-frontmatter's YAML handler with this module's loader in place of its own."""

    def load(self, fm: str, **_: object) -> Metadata:
        """The values of `fm`, the text between the two `---` lines. Raises yaml.YAMLError, with a mark in `fm`."""
        metadata = Metadata()
        _refuse_depth(fm)
        loader = _Loader(fm)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
        if root is None or root.tag == _NULL:
            return metadata
        if not isinstance(root, yaml.MappingNode):
            raise _refusal(_NO_MAPPING, root)
        _Builder(may_have_aliases="&" in fm).fill(metadata, root)
        return metadata


_OPENING = re.compile(r"\ufeff?---[ \t]*(?:\r?\n|\Z)")
_CLOSING = re.compile(r"^---[ \t]*\r?$\n?", re.MULTILINE)
_HANDLER = NoteHandler()


def read_frontmatter(text: str) -> Frontmatter:
    """Split `text` as the prompt does and read its frontmatter; errors in it are not raised but put in `problem`."""
    end = end_of_frontmatter(text)
    head, content = text[:end], text[end:]
    opening = _OPENING.match(text)
    if opening is None:
        return Frontmatter(head, content, Metadata())
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        return _unread(head, content, 1, "frontmatter is opened by --- and never closed")
    source = text[opening.end() : closing.start()]
    if len(source.encode(errors="replace")) > LARGEST_FRONTMATTER:
        return _unread(head, content, 1, f"frontmatter is larger than {LARGEST_FRONTMATTER // 1024} KiB")
    if end < closing.end():
        return _unread(head, content, _FIRST_LINE, f"frontmatter is ignored: {_NO_MAPPING}")
    try:
        return Frontmatter(head, content, _HANDLER.load(source))
    except yaml.YAMLError as error:
        line, reason = _place_and_reason(error, source)
        return _unread(head, content, line, f"frontmatter is ignored: {reason}")


def _unread(head: str, content: str, line: int, reason: str) -> Frontmatter:
    return Frontmatter(head, content, Metadata(), Problem(line, reason, severe=True))


_NO_MAPPING = "frontmatter is not a mapping of names to values"
_FIRST_LINE = 2  # of the YAML, in the file: below the opening ---


def _place_and_reason(error: yaml.YAMLError, source: str) -> tuple[int, str]:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        return (mark.line if mark else 0) + _FIRST_LINE, error.problem or error.context or "it is not YAML"
    # The reader's own error (a character YAML does not allow) has no mark, and its position is in no fixed unit.
    found = _NOT_YAML.search(source)
    line = source.count("\n", 0, found.start() if found else 0) + _FIRST_LINE
    return line, "it holds a character that YAML does not allow"


_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_TOO_DEEP = f"it nests deeper than {DEEPEST} levels"


def _refusal(reason: str, where: yaml.Node | yaml.Event) -> yaml.YAMLError:
    mark: Any = where.start_mark  # libyaml's own Mark, which the stubs do not let an error hold
    return yaml.constructor.ConstructorError(None, None, reason, mark)


_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_NESTS_ON_ITS_LINE = re.compile(r"[\[{]|[-?][ \t]")
_SURELY_SHALLOW = 100


def _refuse_depth(source: str) -> None:
    """Raise where composing would go too deep: libyaml's composer recurses in C and takes the process with it."""
    bound = len(_NESTS_ON_ITS_LINE.findall(source)) + 2 * max(map(len, _INDENT.findall(source)), default=0)
    if bound <= _SURELY_SHALLOW:
        return
    depth = 0
    for event in yaml.parse(source, Loader=_Loader):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise _refusal(_TOO_DEEP, event)


_CORE = "tag:yaml.org,2002:"
_STR, _NULL, _BOOL, _INT, _FLOAT, _TIMESTAMP, _MERGE = (
    _CORE + name for name in ("str", "null", "bool", "int", "float", "timestamp", "merge")
)
_PLAIN = re.compile(
    r"(?P<null>~|null|Null|NULL|)"
    r"|(?P<bool>true|True|TRUE|false|False|FALSE)"
    r"|(?P<int>[-+]?[0-9]+)"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"
    r"|(?P<timestamp>[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)"
    r"|(?P<merge><<)"
)
_STARTS_NO_STR = frozenset("~nNtTfF<.-+0123456789")


class _Loader(_SafeLoader):
    """YAML 1.2's idea of which plain scalars are not text; dates are the one addition."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            if implicit[0] and (not value or value[0] in _STARTS_NO_STR) and (match := _PLAIN.fullmatch(value)):
                return f"{_CORE}{match.lastgroup}"
            return _STR
        return _CORE + ("seq" if kind is yaml.SequenceNode else "map")


class _Builder:
    """From composed nodes to values."""

    def __init__(self, may_have_aliases: bool) -> None:
        self._seen: set[int] | None = set() if may_have_aliases else None

    def fill(self, metadata: Metadata, root: yaml.MappingNode) -> None:
        for key_node, value_node in root.value:
            key = self._key(key_node, metadata)
            metadata[key] = self._value(value_node, 2)
            metadata.nodes[key] = value_node
            metadata.lines[key] = key_node.start_mark.line + _FIRST_LINE

    def _value(self, node: yaml.Node, depth: int) -> Any:
        self._refuse_alias(node)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if depth > DEEPEST:
            raise _refusal(_TOO_DEEP, node)
        if node.tag == _CORE + "seq" and isinstance(node, yaml.SequenceNode):
            return [self._value(entry, depth + 1) for entry in node.value]
        if node.tag != _CORE + "map" or not isinstance(node, yaml.MappingNode):
            raise _refusal(f"the tag {node.tag} is not allowed", node)
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, mapping)
            mapping[key] = self._value(value_node, depth + 1)
        return mapping

    def _refuse_alias(self, node: yaml.Node) -> None:
        if self._seen is None:
            return
        if id(node) in self._seen:
            raise _refusal("aliases are not allowed", node)
        self._seen.add(id(node))

    def _key(self, node: yaml.Node, mapping: dict[str, Any]) -> str:
        """Keys are text as written, whatever type they would have as values: `2026-02-18`, `7`, `true`."""
        if node.tag == _MERGE:
            raise _refusal("merge keys (<<) are not allowed", node)
        if not isinstance(node, yaml.ScalarNode):
            raise _refusal("a key must be a single value", node)
        self._refuse_alias(node)
        key = storable(node.value).replace("\0", "\ufffd")
        if key in mapping:
            raise _refusal(f"the key {key!r} is there twice", node)
        return key


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    tag = node.tag
    if tag in (_STR, _MERGE):
        return storable(text)
    match = _PLAIN.fullmatch(text)
    if match is None or f"{_CORE}{match.lastgroup}" != tag:
        raise _refusal(f"{tag.removeprefix(_CORE)} is not a tag for {text!r} here", node)
    if tag == _NULL:
        return None
    if tag == _BOOL:
        return text[0] in "tT"
    if tag == _INT:
        number = int(text) if len(text) <= 20 else None
        return number if number is not None and -(2**63) <= number < 2**63 else text
    if tag == _FLOAT:
        real = float(text.replace(".i", "i").replace(".I", "I").replace(".n", "n").replace(".N", "N"))
        return real if math.isfinite(real) else text
    return moment_from(text) or text


_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[Tt \t]+([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]*))?)?"
    r"[ \t]*(?:Z|([-+])([0-9]{1,2})(?::?([0-9]{2}))?)?)?"
)


def moment_from(text: str) -> datetime | None:
    """An aware UTC datetime in whole milliseconds from an ISO date or time (UTC where it names no zone), or None."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    milliseconds = int((match[7] or "")[:3].ljust(3, "0"))
    try:
        offset = timedelta(hours=int(match[9] or 0), minutes=int(match[10] or 0))
        zone = timezone(-offset if match[8] == "-" else offset) if match[8] else UTC
        return datetime(year, month, day, hour, minute, second, milliseconds * 1000, zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_SURROGATE = re.compile("[\ud800-\udfff]")


def storable(text: str) -> str:
    """`text` without lone surrogates, which no UTF-8 store can hold."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _written(node: yaml.Node) -> str | None:
    if not isinstance(node, yaml.ScalarNode) or node.tag == _NULL:
        return None
    return storable(node.value)
