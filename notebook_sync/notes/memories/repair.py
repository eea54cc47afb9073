"""What can be proved of what a memory lacks: by what its own field says in another form, by its tags, by git. Pure.

What nothing proves is left as it is, and what is written over without being told again is kept under another name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from notebook_sync.errors import EditFailed
from notebook_sync.files.edits import Edit, edited
from notebook_sync.files.frontmatter import Frontmatter, Metadata, read_frontmatter
from notebook_sync.files.memories import KINDS
from notebook_sync.files.new_note import as_yaml
from notebook_sync.files.note import Seed, id_from_path
from notebook_sync.mirror.memories import Memory
from notebook_sync.notes.memories.findings import AGENT, CREATED_AT, KIND, RELATIONS, has_known_agent
from notebook_sync.notes.memories.importing.record import IMPORTED
from notebook_sync.notes.memories.importing.values import as_time
from notebook_sync.notes.memories.metadata import agent_of
from notebook_sync.notes.memories.relations import with_targets

# What a time of creation said that could not be read, where git's came instead.
_SAID_BEFORE = "created_at_before"
_SLASHES = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})")
_KIND_TAG = re.compile(rf"(?:kind:|type:)?({'|'.join(KINDS)})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Change:
    """One field of one file. `before` is what it said, None for nothing; `because` is the proof."""

    path: str
    field: str
    before: Any
    after: Any
    because: str

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "path": self.path,
            "field": self.field,
            "before": _jsonable(self.before),
            "after": _jsonable(self.after),
            "because": self.because,
        }


def by_path(memories: Iterable[Memory]) -> dict[str, str]:
    """The ids of memories by what may stand for them in a link: their paths, with and without the ending."""
    known = {memory.path: memory.id for memory in memories}
    names = {name: memory_id for path, memory_id in known.items() for name in (path, id_from_path(path))}
    taken = set(known.values())
    return {name: memory_id for name, memory_id in names.items() if name not in taken}


def repaired(memory: Memory, raw: bytes, past: Seed | None, ids: Mapping[str, str]) -> tuple[bytes, list[Change]]:
    """The file with what can be proved, and what is new in it. `past` is what git knows of it, `ids` is `by_path` of
    all memories. Raises EditFailed where the file has to be mended by hand first."""
    try:
        front = read_frontmatter(raw.decode())
    except UnicodeDecodeError as error:
        raise EditFailed(memory.path, f"it is not UTF-8 at byte {error.start:,}; mend that first") from error
    changes = list(_changes(memory, front, past))
    if changes:
        content = as_yaml({change.field: change.after for change in changes})
        raw = edited(raw, Edit("set_frontmatter", content=content), memory.path)
    entries = front.metadata.get(RELATIONS)
    if isinstance(entries, list) and (targets := _led_on(entries, ids)):
        raw = with_targets(memory.path, raw, targets)
        links = [{**each, "to": targets[at]} if at in targets else each for at, each in enumerate(entries)]
        changes.append(
            Change(memory.path, RELATIONS, entries, links, "they name the paths of memories, which have ids")
        )
    return raw, changes


def _changes(memory: Memory, front: Frontmatter, past: Seed | None) -> Iterator[Change]:
    said = front.metadata
    # The first commit of an import is of the import, not of what was imported.
    own_past = None if said.get(IMPORTED) is not None else past
    if memory.created_from != "frontmatter":
        yield from _times(memory.path, said, own_past)
    if not has_known_agent(memory) and (who := _agent(memory, own_past)) is not None:
        yield Change(memory.path, AGENT, said.get(AGENT), who[0], who[1])
    if not memory.kind and (kind := _kind(memory)):
        yield Change(memory.path, KIND, said.get(KIND), kind, f"it is tagged {kind}")


def _times(path: str, said: Metadata, past: Seed | None) -> Iterator[Change]:
    value = said.get(CREATED_AT)
    before = None if value is None else said.text(CREATED_AT) or value
    if (own := _own_time(value)) is not None:
        yield Change(path, CREATED_AT, before, own, "that is what it says, in another form")
    elif past is not None and past.created_from == "git" and (before is None or said.get(_SAID_BEFORE) is None):
        yield Change(path, CREATED_AT, before, past.created_at.astimezone(UTC), "its first commit is of then")
        if before is not None:
            yield Change(path, _SAID_BEFORE, None, before, f"nothing else says what {CREATED_AT} said")


def _own_time(said: Any) -> datetime | None:
    """The time that a field tells in a form that stands for one time alone."""
    if (found := as_time(said)) is not None or not isinstance(said, str):
        return found
    try:
        if slashes := _SLASHES.fullmatch(said.strip()):
            year, month, day = map(int, slashes.groups())
            return datetime(year, month, day, tzinfo=UTC)
        found = parsedate_to_datetime(said)
    except (ValueError, OverflowError):
        return None
    return found.astimezone(UTC) if found.tzinfo else None


def _agent(memory: Memory, past: Seed | None) -> tuple[str, str] | None:
    if tagged := agent_of(None, memory.tags):
        return tagged, f"it is tagged agent:{tagged}"
    first = next(iter(past.history), None) if past is not None else None
    if first is not None and first["version"] == 1:
        made_by = agent_of(None, [first["changed_by"]])
        if made_by:
            return made_by, "its first commit is by that agent"
    return None


def _kind(memory: Memory) -> str:
    """The one kind that its tags name, "" for none or several."""
    kinds = {found[1].casefold() for tag in memory.tags if (found := _KIND_TAG.fullmatch(tag))}
    return kinds.pop() if len(kinds) == 1 else ""


def _led_on(entries: Sequence[Any], ids: Mapping[str, str]) -> dict[int, str]:
    """By the number of a link that names a memory by its path, the memory's id: one that another link leads to in the
    same way is left for a person to take out."""
    there = {*map(told_by, entries)}
    targets = {}
    for number, entry in enumerate(entries):
        kind, said = told_by(entry)
        to = ids.get(said)
        if to is not None and (told := (kind, to)) not in there:
            there.add(told)
            targets[number] = to
    return targets


def told_by(entry: Any) -> tuple[str, str]:
    """What no two links of a memory may tell: the type of an entry of `relations` and where it leads, "" for what is
    no link."""
    kind, to = (entry.get("type"), entry.get("to")) if isinstance(entry, dict) else ("", "")
    return str(kind).strip().casefold(), to.strip() if isinstance(to, str) else ""


def _jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return [_jsonable(each) for each in value]
    return {name: _jsonable(each) for name, each in value.items()} if isinstance(value, dict) else value
