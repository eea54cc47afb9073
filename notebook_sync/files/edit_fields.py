"""Setting fields of the frontmatter. The bytes of the other fields, comments and order stay as they are, and a new
value is written the way the caller spelt it: nothing is ever dumped from parsed values. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

import yaml

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_places import Page
from notebook_sync.files.frontmatter import Metadata, read_frontmatter


def set_frontmatter(page: Page, mapping: str) -> str:
    """The page's text with the fields of `mapping` (YAML) set, and those that are null in it removed."""
    source = mapping.replace("\r\n", "\n").strip("\n") + "\n"
    wanted = read_frontmatter(f"---\n{source}---\n")
    if wanted.problem or wanted.content:
        reason = wanted.problem.message if wanted.problem else "it holds a line of ---"
        raise EditFailed(page.path, f"the content is no mapping of fields: {reason}")
    if not wanted.metadata:
        raise EditFailed(page.path, "there is no field to set; give them as YAML, a line each, as in: status: complete")
    old = read_frontmatter(page.head + page.content)
    if old.problem:
        # Why quotes the file, as candidates do, and is told to whom they are.
        raise EditFailed(page.path, "the frontmatter must be mended first:", (str(old.problem),))
    if unknown := [name for name, value in wanted.metadata.items() if value is None and name not in old.metadata]:
        seen = "there is:" if old.metadata else "there is none"
        raise EditFailed(page.path, f"there is no field {unknown[0]!r} to remove; {seen}", tuple(old.metadata))
    text = _head_with(page, _fields_in(source), wanted.metadata) + page.content
    new = read_frontmatter(text)
    meant = {**old.metadata, **wanted.metadata}
    meant = {name: value for name, value in meant.items() if value is not None or name not in wanted.metadata}
    if new.problem or new.content != old.content or new.metadata != meant:
        reason = new.problem.message if new.problem else "the frontmatter would not read as meant"
        raise EditFailed(page.path, f"{reason}; write the whole file instead")
    return text


def _head_with(page: Page, wanted: dict[str, _Field], values: Metadata) -> str:
    """The frontmatter, and the byte order mark before it, with the fields `wanted`."""
    opening, source, closing = _taken_apart(page)
    eol = "\r\n" if opening.endswith("\r\n") else "\n"
    there = _fields_in(source)
    if any(field.in_braces for field in there.values()):
        raise EditFailed(page.path, "the frontmatter is one pair of braces; write the whole file instead")
    changes: list[tuple[int, int, str]] = []
    for name, new in wanted.items():
        old = there.get(name)
        if old is None:
            changes.append((len(source), len(source), new.spelt))
        elif values[name] is None:
            changes.append((old.start, old.end, ""))
        elif old.value and new.value:
            changes.append((old.value_start, old.value_start + len(old.value), new.value))
        else:
            changes.append((old.start, old.end, old.comment + new.spelt))
    pieces = []
    done = 0
    for start, end, text in sorted(changes, key=lambda change: change[:2]):
        pieces += [source[done:start], text.replace("\n", eol)]
        done = end
    return opening + "".join(pieces) + source[done:] + closing


def _taken_apart(page: Page) -> tuple[str, str, str]:
    """What opens the frontmatter, its YAML, and what closes it; made where there is none."""
    head = page.head
    if "---" not in head:
        eol = "\r\n" if page.content.partition("\n")[0].endswith("\r") else "\n"
        return f"{head}---{eol}", "", f"---{eol}"
    start, end = head.index("\n") + 1, head.rindex("---")
    return head[:start], head[start:end], head[end:]


@dataclass(frozen=True, slots=True)
class _Field:
    """A field in its YAML: its lines from `start` to `end`, without comments and blank lines below it.

    `spelt` is all of it, to be put into other frontmatter. `value` is what can be put in place of another value on
    the same line, or "" where there is none. `comment` is the one on its first line, as a line of its own.
    """

    start: int
    end: int
    spelt: str
    value_start: int
    value: str
    comment: str
    in_braces: bool


# What libyaml takes for the end of a line.
_YAML_LINE = re.compile("[^\r\n\x85\u2028\u2029]*(?:\r\n|[\r\n\x85\u2028\u2029])|[^\r\n\x85\u2028\u2029]+")
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*")
_COMMENT = re.compile(r"(?:[ \t]*:)?[ \t]*(?:[|>][-+0-9]*)?[ \t]+(#.*)")


def _fields_in(source: str) -> dict[str, _Field]:
    """The fields of YAML that the strict reader has read as a mapping, or as nothing."""
    root = yaml.compose(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if not isinstance(root, yaml.MappingNode):
        return {}
    lines = _YAML_LINE.findall(source)
    starts = [0, *accumulate(map(len, lines))]
    firsts = [key.start_mark.line for key, _ in root.value]
    fields = {}
    for (key, value), first, after in zip(root.value, firsts, [*firsts[1:], len(lines)], strict=True):
        while after > first + 1 and (lines[after - 1].startswith("#") or not lines[after - 1].strip()):
            after -= 1
        start, end = key.start_mark.index, starts[after]
        text = source[value.start_mark.index : value.end_mark.index]
        fits = value.start_mark.line == key.start_mark.line and _is_inline(value)
        name = key.value if _PLAIN_NAME.fullmatch(key.value) else source[start : key.end_mark.index]
        spelt = f"{name}: {text}\n" if root.flow_style else source[start:end]
        comment = _COMMENT.fullmatch(
            source[value.end_mark.index if fits else key.end_mark.index : starts[first + 1]].rstrip()
        )
        fields[key.value] = _Field(
            start,
            end,
            spelt,
            value.start_mark.index,
            text if fits else "",
            f"{comment[1]}\n" if comment else "",
            bool(root.flow_style),
        )
    return fields


def _is_inline(value: yaml.Node) -> bool:
    if isinstance(value, yaml.ScalarNode):
        return value.style not in ("|", ">")
    return isinstance(value, yaml.CollectionNode) and bool(value.flow_style)
