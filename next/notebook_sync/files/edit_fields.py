"""Setting fields of the frontmatter. Pure.

The bytes of the other fields, comments and order stay as they are, and a new value is written as the caller spells it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from notebook_sync.files.frontmatter import (
    Frontmatter,
    YamlFields,
    YamlRefused,
    as_yaml,
    load_yaml,
    read_frontmatter,
)
from notebook_sync.files.page import Page


def set_frontmatter(page: Page, mapping: str, fields: Mapping[str, Any]) -> str:
    """The page's text with the fields of `mapping` (YAML) and `fields` set, and those that are null removed.

    A key in other capitals is the same field: `status` sets `Status:`. Raises EditFailed.
    """
    source = mapping.replace("\r\n", "\n").strip("\n") + "\n" + as_yaml(fields)
    try:
        wanted = load_yaml(source)
    except YamlRefused as refused:
        line, reason = refused.args
        raise page.error(f"line {line + 1} of the content: {reason}") from None
    if not wanted.values:
        raise page.error("there is no field to set; give them as YAML, a line each, as in: status: complete")
    if wanted.in_braces:
        source = as_yaml(wanted.values)
        wanted = load_yaml(source)
    old = read_frontmatter(page.text)
    if old.problems:
        raise page.error("the frontmatter must be corrected first:", [str(problem) for problem in old.problems])
    if page.head.strip("\ufeff") and (not old.line or old.yaml.in_braces):
        raise page.error("the frontmatter has no field a line in YAML; write the whole file instead")
    names = {name: old.key_of(name) or name for name in wanted.values}
    for name, value in wanted.values.items():
        if value is None and names[name] not in old.values:
            raise page.error(f"there is no field {name!r} to remove; there is:", [*old.values])
    text = _head_with(page, old, source, wanted, names) + page.body
    new = read_frontmatter(text)
    meant = old.values | {names[name]: value for name, value in wanted.values.items()}
    meant = {key: value for key, value in meant.items() if value is not None or key not in names.values()}
    if new.problems or text[new.body_start :] != page.body or new.values != meant:
        raise page.error("the frontmatter would not read as meant; write the whole file instead")
    return text


def _head_with(page: Page, old: Frontmatter, source: str, wanted: YamlFields, names: Mapping[str, str]) -> str:
    """The head of the page with the wanted fields as `source` spells them; `names` are their keys in the page."""
    there = _fields_in(old.source, old.yaml)
    changes = []
    for name, new in _fields_in(source, wanted).items():
        field = there.get(names[name])
        if field is None:
            changes.append((len(old.source), len(old.source), new.spelt))
        elif wanted.values[name] is None:
            changes.append((field.start, field.end, ""))
        elif field.value and new.value:
            changes.append((field.value_start, field.value_start + len(field.value), new.value))
        else:
            changes.append((field.start, field.end, field.comment + field.key + new.spelt[len(new.key) :]))
    head, start = page.head, 0
    if head.strip("\ufeff"):
        start = head.index("\n", head.index("---")) + 1
    eol = "\r\n" if (head[:start] or page.body.partition("\n")[0]).endswith(("\r\n", "\r")) else "\n"
    if not start:
        head, start = f"{head}---{eol}---{eol}", len(f"{head}---{eol}")
    changes.reverse()  # of several at one place, the first is put in last
    for first, last, text in sorted(changes, key=lambda change: -change[0]):
        head = head[: start + first] + text.replace("\n", eol) + head[start + last :]
    return head


class _Field(NamedTuple):
    """A field in its YAML: its lines from `start` to `end`, without comments and blank lines below it.

    `spelt` is all of it, to be put into other frontmatter, and begins with `key`. `value` can replace another value on
    its line; it is "" where it has lines of its own. `comment` is the one on its first line.
    """

    start: int
    end: int
    key: str
    spelt: str
    value_start: int
    value: str
    comment: str


# What libyaml takes for the end of a line.
_YAML_LINE = re.compile("[^\r\n\x85\u2028\u2029]*(?:\r\n|[\r\n\x85\u2028\u2029])|[^\r\n\x85\u2028\u2029]+")
_COMMENT = re.compile(r"(?:[ \t]*:)?[ \t]*(?:[|>][-+0-9]*)?[ \t]+(#.*)")


def _fields_in(source: str, read: YamlFields) -> dict[str, _Field]:
    """The fields of the YAML `source`, as it was read."""
    fields: dict[str, _Field] = {}
    lines = _YAML_LINE.findall(source)
    starts = [0, *accumulate(map(len, lines))]
    after = len(lines)
    for name, (key, value, end) in reversed(read.places.items()):
        first, last = key.start_mark.line, after
        while last > first + 1 and (lines[last - 1].startswith("#") or not lines[last - 1].strip()):
            last -= 1
        is_flow = value.style not in ("|", ">") if hasattr(value, "style") else value.flow_style
        value_start, value_end = value.start_mark.index, end.index
        is_inline = is_flow and value.start_mark.line == first
        line_end = source[value_end if is_inline else key.end_mark.index : starts[first + 1]]
        comment = _COMMENT.fullmatch(line_end.rstrip())
        fields[name] = _Field(
            key.start_mark.index,
            starts[last],
            source[key.start_mark.index : key.end_mark.index],
            source[key.start_mark.index : starts[last]],
            value_start,
            source[value_start:value_end] if is_inline else "",
            f"{comment[1]}\n" if comment else "",
        )
        after = first
    return dict(reversed(fields.items()))
