"""Setting fields of the frontmatter. Pure.

The bytes of the other fields, comments and order stay as they are, and a new value is written as the caller spells it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from notebook_sync.files.frontmatter import Frontmatter, YamlRefused, as_yaml, load_yaml, read_frontmatter
from notebook_sync.files.page import Page


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
