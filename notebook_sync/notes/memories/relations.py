"""The links in a memory's file: one is put there, put in another's place, or led on, and no byte of the rest changes.
Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields as fields_in
from dataclasses import replace
from typing import Any

import yaml

from notebook_sync.errors import EditFailed
from notebook_sync.files.edits import Edit, edited
from notebook_sync.files.frontmatter import Frontmatter, read_frontmatter
from notebook_sync.files.memories import relations_from
from notebook_sync.files.new_note import as_yaml
from notebook_sync.mirror.memories import Link
from notebook_sync.notes.memories.text import fields_of

FIELD = "relations"
ADDED, UPDATED, KEPT = "added", "updated", "kept"
_KNOWN = frozenset(one.name for one in fields_in(Link))
# What no reader of YAML takes for anything but text, also within braces.
_PLAIN = re.compile(r"(?!(?:true|false|null|yes|no|on|off|y|n)\Z)[A-Za-z][\w-]*", re.IGNORECASE)

Settled = Callable[[Link, Link], Link]


def with_link(path: str, raw: bytes, link: Link, settled: Settled) -> tuple[bytes, str, Link]:
    """The file with the link in it, what was done (added, updated, kept), and the link that it has then.

    A file has one link of each type to each memory: `settled`, given the one that stands there and the one that is
    said, tells which it is to be. Raises EditFailed where the frontmatter, or `relations` in it, is to be mended first.
    """
    front = read_frontmatter(_decoded(path, raw))
    if front.problem is not None:
        raise EditFailed(path, "the frontmatter must be mended first:", (str(front.problem),))
    entries: Any = front.metadata.get(FIELD) or []
    if not isinstance(entries, list):
        raise EditFailed(path, f"its {FIELD} are no list of links; mend that first")
    number = next((at for at, entry in enumerate(entries) if _says(entry, link)), None)
    more: dict[str, Any] = {}
    if number is not None:
        known = _link(entries[number])
        link = settled(known, link)
        if link == known:
            return raw, KEPT, known
        more = {name: value for name, value in entries[number].items() if name not in _KNOWN}
    fields = fields_of(link) | more
    meant = [*entries, fields] if number is None else [*entries[:number], fields, *entries[number + 1 :]]
    after = _in_place(front, number, fields) if entries else None
    if after is None or not _reads_as(after, front, meant):
        field = as_yaml({FIELD: meant}) if entries else f"{FIELD}:\n- {_flow(fields)}\n"
        after = edited(raw, Edit("set_frontmatter", content=field), path).decode()
    return after.encode(), ADDED if number is None else UPDATED, link


def with_targets(path: str, raw: bytes, targets: Mapping[int, str]) -> bytes:
    """The file with other targets for some of its links, by their numbers. Raises EditFailed where its frontmatter is
    to be mended first."""
    front = read_frontmatter(_decoded(path, raw))
    pieces = []
    meant = list(front.metadata[FIELD])
    for number, to in sorted(targets.items()):
        node = _value_of(front.metadata.nodes[FIELD].value[number], "to")
        start, end = node.start_mark.index, _end_of(_source_of(front), node)
        pieces.append((start, end, json.dumps(to, ensure_ascii=False) if node.style in ("'", '"') else _spelt(to)))
        meant[number] = {**meant[number], "to": to}
    after = _spliced(front, pieces)
    if _reads_as(after, front, meant):
        return after.encode()
    return edited(raw, Edit("set_frontmatter", content=as_yaml({FIELD: meant})), path)


def merged(known: Link, said: Link) -> Link:
    """The link as it is said now; what is not said now, as it was known. The same again is no news, in whichever
    synthesis; and what is said otherwise, outside of any, is no longer a synthesis's."""
    meant = replace(said, reasoning=said.reasoning or known.reasoning, source=said.source or known.source)
    if meant == replace(known, synthesis_id=said.synthesis_id):
        return known
    if known.synthesis_id and not said.synthesis_id:
        return replace(meant, source=said.source)
    return meant


def _decoded(path: str, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise EditFailed(path, f"it is not UTF-8 at byte {error.start:,}; mend that first") from error


def _says(entry: Any, link: Link) -> bool:
    read = relations_from([entry]).read
    return bool(read) and (read[0]["type"], read[0]["to"]) == (link.type, link.to)


def _link(entry: Any) -> Link:
    return Link(**relations_from([entry]).read[0])


def _in_place(front: Frontmatter, number: int | None, fields: dict[str, Any]) -> str | None:
    """The text with one entry of the list more, or another in its place; None where that cannot be done so."""
    node = front.metadata.nodes[FIELD]
    if not isinstance(node, yaml.SequenceNode):
        return None
    source, new = _source_of(front), _flow(fields)
    if number is not None:
        entry = node.value[number]
        return _spliced(front, [(entry.start_mark.index, _end_of(source, entry), new)])
    if node.flow_style:
        inside = source[: node.end_mark.index - 1].rstrip()
        return _spliced(front, [(len(inside), len(inside), f"{'' if inside.endswith(',') else ','} {new}")])
    line_end = source.find("\n", _end_of(source, node.value[-1]))
    at = len(source) if line_end < 0 else line_end + 1
    eol = "\r\n" if front.head.partition("\n")[0].endswith("\r") else "\n"
    return _spliced(front, [(at, at, f"{' ' * node.start_mark.column}- {new}{eol}")])


def _value_of(entry: yaml.MappingNode, name: str) -> yaml.ScalarNode:
    found: yaml.ScalarNode = next(value for key, value in entry.value if key.value == name)
    return found


def _source_of(front: Frontmatter) -> str:
    """The YAML, in which its nodes have their places."""
    return front.head[front.head.index("\n") + 1 : front.head.rindex("---")]


def _spliced(front: Frontmatter, pieces: Sequence[tuple[int, int, str]]) -> str:
    """The text with other pieces in its YAML, each from its start to its end, in order."""
    source, offset, done = _source_of(front), front.head.index("\n") + 1, 0
    kept = []
    for start, end, new in pieces:
        kept += [source[done:start], new]
        done = end
    return front.head[:offset] + "".join(kept) + front.head[offset + done :] + front.content


def _end_of(source: str, node: yaml.Node) -> int:
    """Where an entry ends, without what stands below it: its last value tells."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    end: int = node.end_mark.index
    is_block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    return len(source[:end].rstrip()) if is_block else end


def _flow(fields: dict[str, Any]) -> str:
    """A link on one line."""
    return "{" + ", ".join(f"{name}: {_spelt(value)}" for name, value in fields.items()) + "}"


def _spelt(value: Any) -> str:
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) is not None
    return value if is_plain else json.dumps(value, ensure_ascii=False, default=str)


def _reads_as(text: str, was: Frontmatter, relations: list[Any]) -> bool:
    now = read_frontmatter(text)
    return now.problem is None and now.content == was.content and now.metadata == {**was.metadata, FIELD: relations}
