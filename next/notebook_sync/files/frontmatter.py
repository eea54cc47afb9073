"""What is at the top of a note between two marks: where it ends, and what it says. It never hides the text.

    ---  YAML  --- or ...          +++  TOML  +++

Text between two rules that names no field is text, and so is JSON between braces.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, NamedTuple

from notebook_sync.errors import UsageError
from notebook_sync.files.strict_yaml import YamlFields, YamlRefused, as_yaml, load_yaml
from notebook_sync.model import Problem
from prompt.hidden import LARGEST_FRONTMATTER, end_of_frontmatter

EXTERNAL = "external"


class Frontmatter(NamedTuple):
    """`text[:body_start]` is the head of a text: byte order mark, blank lines above frontmatter, and frontmatter.

    `values` are the fields, in their order, as written: None, str, Plain (without quotes), and lists and dicts of
    these; `lines` are the 1-based lines of their keys. With a problem there are no values. `source` is what is between
    the two marks, and `yaml` knows the places in it where the opening `mark` is ---.
    """

    body_start: int
    values: dict[str, Any]
    lines: dict[str, int]
    problems: tuple[Problem, ...] = ()
    mark: str = ""
    source: str = ""
    yaml: YamlFields | None = None

    def key_of(self, name: str) -> str | None:
        """The key that is `name`, else the first that is it in other capitals; None without one."""
        return name if name in self.values else next((key for key in self.values if key.casefold() == name), None)


def read_frontmatter(text: str) -> Frontmatter:
    """The frontmatter of a text. Never raises: what is wrong is in `problems`."""
    front = Frontmatter(end_of_frontmatter(text), {}, {})
    opening = _OPENING.match(text)
    if opening is None:
        return front
    mark = opening[1]
    line = text.count("\n", 0, opening.start(1)) + 1
    closing = _CLOSING[mark].search(text, opening.end())
    if closing is None:
        is_first = not text[: opening.start(1)].strip("\ufeff")  # below a blank line it is a rule
        is_field = is_first and _OPEN_FIELD.match(text, opening.end())
        return _unread(front, line, f"it is opened by {mark} and never closed") if is_field else front
    source = text[opening.end() : closing.start()]
    front = front._replace(mark=mark, source=source)
    if len(source.encode(errors="replace")) > LARGEST_FRONTMATTER:
        return _unread(front, line, f"it is larger than {LARGEST_FRONTMATTER // 1024} KiB")
    if mark == "{":
        is_json = _JSON_FIELD.match(source)
        return (
            _unread(front, line, "it is JSON; write it as YAML between --- lines", severe=False) if is_json else front
        )
    if front.body_start == closing.end():
        return _read(front, line + 1)
    if "\n\n" not in source and _KNOWN_FIELD.search(source):
        return _unread(front, line + 1, "its first line is no field, like title: Plan", severe=False)
    return front


_OPENING = re.compile(r"\ufeff?(?:[ \t]*\r?\n)*+(---|\+\+\+|\{)[ \t]*(?:\r?\n|\Z)")
_CLOSING = {
    mark: re.compile(rf"^(?:{end})[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
    for mark, end in (("---", r"---|\.\.\."), ("+++", r"\+\+\+"), ("{", r"\}"))
}
_JSON_FIELD = re.compile(r'\s*"')
# Without a closing mark, only a field right below the opening one shows that it is meant as frontmatter.
_OPEN_FIELD = re.compile(r"\s*\Z|[^\s:#\-\[][^\n]*?(?::(?:\s|\Z)|[ \t]=)")
_KNOWN_FIELD = re.compile(
    r"^(?:id|title|summary|tags?|alias(?:es)?|status|created_\w+|provenance)[ \t]*[:=]", re.M | re.I
)


def _unread(front: Frontmatter, line: int, reason: str, *, severe: bool = True) -> Frontmatter:
    return front._replace(problems=(Problem(line, f"frontmatter is not read: {reason}", severe),))


def _read(front: Frontmatter, first_line: int) -> Frontmatter:
    """`front` with what its source says, which begins on this line of the file."""
    source = front.source
    try:
        read = load_yaml(source if front.mark == "---" else _toml_as_yaml(source))
    except YamlRefused as refused:
        line, reason = refused.args
        is_template = "{{" in source or "<%" in source
        if is_template:
            reason = "it is a template; its fields are read once its placeholders are filled in"
        return _unread(front, first_line + line, reason, severe=not is_template)
    lines = {key: first_line + place.key.start_mark.line for key, place in read.places.items()}
    if front.mark != "---":
        lines = {key: first_line + source.count("\n", 0, max(source.find(key), 0)) for key in lines}
    return front._replace(values=read.values, lines=lines, yaml=read)


def _toml_as_yaml(source: str) -> str:
    try:
        return as_yaml(tomllib.loads(source.replace("\r\n", "\n")))
    except (ValueError, RecursionError, UsageError) as error:
        found = re.search(r"\bline (\d+)", str(error))
        raise YamlRefused(int(found[1]) - 1 if found else 0, f"{error}; put the value in quotes") from None


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
