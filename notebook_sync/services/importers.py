"""What other programs kept, record by record: memories and private notes, in JSON and SQLite. Sources are only read.

Nothing that a record says is dropped: what a note has no field for stays in its frontmatter, under `older` where the
name is the notebook's own. A record without an id that lasts gets one of what it says, so that it is added once.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from notebook_sync.errors import UsageError
from notebook_sync.files.compose import slug
from notebook_sync.files.fields import KINDS, Relation
from notebook_sync.files.frontmatter import EXTERNAL, storable
from notebook_sync.files.parse import PARTS
from notebook_sync.files.state import expanded
from notebook_sync.model import STATUSES
from notebook_sync.services.channels import GENERAL, is_reserved, scope_of, title_for
from notebook_sync.services.core import Core
from notebook_sync.services.importing import Failure, Item, NewNote
from notebook_sync.services.memory_links import link_in
from notebook_sync.services.memory_text import (
    agent_of,
    body_of,
    go_moment,
    guarded,
    moment_of,
    plain_tags,
    plain_title,
    read_template,
    title_of,
)
from notebook_sync.sessions import is_agent_name

Record = Mapping[str, Any]
# What says nothing; what is computed here, or belongs to one copy of a document.
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_DERIVED = frozenset(
    (
        *("embedding", "vector", "score", "dynamic_score", "word_count", "notebook", "rev", "published", "digest"),
        *("audience", "collection", "collection_type", "stale", "links"),
    )
)
_USES, _LAST_USES = ("access_count", "usage_count"), ("last_accessed", "last_accessed_at")
_CHANGING = frozenset((*_DERIVED, *_USES, *_LAST_USES))
# What a table of SQLite has, by its columns.
_TABLES = (
    ("messages", {"channel_id", "content"}),
    ("members", {"channel_id", "agent_name"}),
    ("links", {"from_memory_id", "to_memory_id", "relationship_type"}),
    ("memories", {"content", "importance"}),
    ("memories", {"content", "initial_priority"}),
)
_TIMES = ("created_at", "timestamp", "created", "at")
_ID = re.compile(r"(?=.*[^\W\d])\w[\w:.@+/-]{0,126}\w")
# The channel of an agent's notes; a project's id ends at the first `:agent-notes:`.
_CHANNELS = [
    re.compile(pattern)
    for pattern in (
        r"notes:(?P<agent>[^:]+)(?::(?P<project>.*))?",
        r"proj_(?P<project>.+?):agent-notes:(?P<agent>.+)",
        r"(?P<project>global):agent-notes:(?P<agent>.+)",
    )
]
# Ten digits are seconds until the year 2286, thirteen are milliseconds.
_SINCE_1970, _LATEST = re.compile(r"[1-9]\d{9}(?:\d{3})?(?:\.\d{1,9})?"), 1e11
_LARGEST, _DEEPEST = 512 << 20, 20
_SECONDS = 5.0

# ---- fields


class Fields:
    """The fields of a record that say something; each is taken once, and `rest` is what was not taken."""

    def __init__(self, record: Record) -> None:
        metadata = _decoded(record.get("metadata"))
        inner = metadata if isinstance(metadata, dict) else {}
        other = {name: value for name, value in inner.items() if record.get(name, value) != value}
        said = {**inner, **record, "metadata": other if inner else metadata}
        self.left = {str(name): value for name, value in said.items() if value not in _EMPTY}

    def take(self, *names: str, read: Callable[[Any], Any] = lambda value: value) -> Any:
        """What `read` makes of the first of these fields that it can read, which is taken; None for none."""
        for name in names:
            value = read(self.left.get(name))
            if value is not None:
                del self.left[name]
                return value
        return None

    def line(self, *names: str) -> str:
        """The first of these that is text or a number, on one line; "" for none."""
        return str(self.take(*names, read=_line) or "")

    def rest(self, *own: str) -> dict[str, Any]:
        """What was not taken, as frontmatter can hold it; under `older` what has one of a note's `own` names."""
        found: dict[bool, dict[str, Any]] = {False: {}, True: {}}
        for name in self.left.keys() - _DERIVED:
            is_own = is_reserved(name) or name.casefold() in (*own, "older") or not name.isprintable()
            found[is_own][storable(name)] = as_field(self.left[name])
        return {**found[False], **({"older": found[True]} if found[True] else {})}


def any_moment(value: object) -> datetime | None:
    """A time in UTC, in the forms of frontmatter and of Go, or as seconds or milliseconds since 1970."""
    if _SINCE_1970.fullmatch(text := str(value).strip()):
        seconds = float(text)
        return datetime.fromtimestamp(seconds / (1000 if seconds >= _LATEST else 1), UTC).replace(microsecond=0)
    return moment_of(value, UTC) or go_moment(value, UTC)


def as_field(value: Any, depth: int = 0) -> Any:
    """A value as frontmatter can hold it."""
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {storable(str(name)): as_field(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple) and depth < _DEEPEST:
        return [as_field(each, depth + 1) for each in value]
    is_number = isinstance(value, int | float) and math.isfinite(value) and abs(value) < 1e15
    return value if value is None or is_number or isinstance(value, datetime) else storable(str(value))


def stable_id(own: Any, *said: Any) -> str:
    """A record's own id, where it is one that lasts, else a digest of what it says."""
    if isinstance(own, str) and _ID.fullmatch(own) and not own.casefold().endswith(".md"):
        return own
    raw = json.dumps([own, *said], sort_keys=True, default=str)
    return f"m{sha256(raw.encode(errors='replace')).hexdigest()[:16]}"


def _line(value: Any) -> str | None:
    return " ".join(storable(str(value)).split()) if isinstance(value, str | int | float) else None


def number_in(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def one_of(allowed: Sequence[str], value: Any) -> str | None:
    said = str(value).strip(" []").casefold()
    return said if said in allowed else None


def _external(value: Any) -> str | None:
    """Whether a provenance says that the words are those of others; any other one stays."""
    return EXTERNAL if str(value).strip().casefold().startswith(EXTERNAL) else None


def tags_in(value: Any) -> list[str] | None:
    found = _decoded(value)
    found = found.split(",") if isinstance(found, str) else found
    return list(plain_tags(map(str, found))) if isinstance(found, list) else None


def _decoded(value: Any) -> Any:
    """A list or an object that is in a text; anything else as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def json_values(file: Path) -> list[tuple[str, Any]]:
    """What a file of JSON holds, each with its place: the items of one list, one object, or one a line. A line that is
    no JSON is itself. Raises UsageError."""
    try:
        if file.stat().st_size > _LARGEST:
            raise UsageError(f"{file.name} is larger than {_LARGEST:,} bytes", next="split it")
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file.name} cannot be read as text: {error}", next="give JSON in UTF-8") from None
    whole = _decoded(text)
    if isinstance(whole, list | dict):
        values = whole if isinstance(whole, list) else [whole]
        return [(f"{file.name}, record {number}", value) for number, value in enumerate(values, 1)]
    lines = enumerate(text.split("\n"), 1)
    return [(f"{file.name}:{number}", _decoded(line)) for number, line in lines if line.strip()]


# ---- memories


def memories_in(core: Core, file: str) -> Iterator[Item]:
    """Memories in a file of JSON: one a line, or one list of them."""
    values = json_values(expanded(file))
    yield from (Failure(place, "it is no JSON object") for place, value in values if not isinstance(value, dict))
    yield from _memories(core, [(place, value) for place, value in values if isinstance(value, dict)], [])


def _memories(core: Core, records: Sequence[tuple[str, Record]], links: Iterable[Record]) -> Iterator[Item]:
    """Each record as a memory, with the links to those that are there or come."""
    ids, links_of, lost = dict[str, str](), defaultdict[str, list[Any]](list), 0
    for place, record in records:
        lasting = {name: value for name, value in record.items() if value not in _EMPTY and name not in _CHANGING}
        ids[str(record.get("id") or place)] = stable_id(record.get("id"), lasting)
    for link in links:
        links_of[str(link["from_memory_id"])].append(link)
    for place, record in records:
        own, given = str(record.get("id") or place), _decoded(record.get("relations"))
        wanted = [*(given if isinstance(given, list) else ()), *links_of.pop(own, ())]
        found = [relation for each in wanted if (relation := _relation(core, ids[own], each, ids))]
        lost += len(wanted) - len(found)
        yield _memory(core, place, ids[own], {**record, "relations": found})
    lost += sum(map(len, links_of.values()))
    if lost:
        yield f"{lost:,} links lead to no memory, or are none, and were left out"


def _relation(core: Core, id: str, link: Any, ids: Mapping[str, str]) -> dict[str, Any] | None:
    """A link as frontmatter has it; None for what leads to no memory."""
    if not isinstance(link, Mapping):
        return None
    own = str(link.get("to_memory_id", link.get("to")))
    to = ids.get(own, own)
    if own not in ids and core.index.documents.one(to, heavy=False) is None:
        return None
    try:
        found = link_in({**link, "from_memory_id": id, "to_memory_id": to})
    except UsageError:
        return None
    return {name: value for name in Relation.__struct_fields__ if (value := getattr(found, name)) != ""}


def _memory(core: Core, place: str, id: str, record: Record) -> Item:
    fields = Fields({**record, "id": None})
    parts = [f"{part.upper()}: {said}" for part in PARTS if (said := fields.take(part))]
    text = storable("\n".join(map(str, filter(None, [fields.take("content", "text"), *parts]))))
    if not text.strip():
        return Failure(place, "it has no text in `content`")
    kind, tags = fields.take("kind", read=partial(one_of, KINDS)), fields.take("tags", read=tags_in)
    read = read_template(text).named(fields.line("title"), kind or "", tags or [])
    title, created_at = title_of(read, text), fields.take("created_at", "timestamp", read=any_moment)
    agent = agent_of(fields.line("agent", "agent_type", "created_by"), read.tags)
    priority = fields.take("initial_priority", "priority", "importance", read=number_in)
    about, assumed = guarded(created_at=created_at, agent=agent, priority=priority, now=core.now(), zone=UTC)
    head = {
        "id": id,
        "title": title,
        "kind": read.kind or None,
        "domain": plain_title(fields.line("domain")) or None,
        "tags": list(read.tags) or None,
        **about,
        "status": fields.take("status", read=partial(one_of, STATUSES)),
        "created_by": f"agent:{agent}" if is_agent_name(agent) else "owner",
        "provenance": fields.take("provenance", read=_external),
        "needs_review": bool(assumed.keys() - {"priority"} or read.missing) or None,
        "relations": fields.take("relations"),
        "importance": priority if "priority" in assumed else None,
    }
    used, last = fields.take(*_USES, read=number_in), fields.take(*_LAST_USES, read=any_moment)
    stem = f"memories/{read.kind or 'unstructured'}/{about['created_at']:%Y-%m-%d}-{slug(title, 'memory')}"
    body = body_of(title, read.parts) if read.parts else text
    return NewNote(
        place, id, stem, {**head, **fields.rest(*head)}, body, {"access_count": int(used or 0), "last_accessed": last}
    )


# ---- private notes


def private_notes_in(_: Core, file: str) -> Iterator[Item]:
    """Private notes of an older program: messages with their `channel_id`, or channels with their `messages`, as one
    list, one object or one a line."""
    for place, value in json_values(expanded(file)):
        yield from _messages(place, value, "")


def _messages(place: str, value: Any, channel: str) -> Iterator[Item]:
    """The messages in a value of JSON, at whatever depth; `channel` is the one that they are in."""
    if not isinstance(value, dict):
        yield Failure(place, "it is no message")
        return
    within = next((value[name] for name in ("channels", "messages") if isinstance(value.get(name), list)), None)
    if within is None:
        yield _private_note(place, {"channel_id": channel, **value})
        return
    for number, each in enumerate(within, 1):
        yield from _messages(f"{place}, message {number}", each, str(value.get("id", channel)))


def _private_note(place: str, message: Record) -> Item:
    """A message as a note in its agent's channel."""
    fields = Fields(message)
    channel = fields.line("channel_id")
    found = next(filter(None, (pattern.fullmatch(channel) for pattern in _CHANNELS)), None)
    if found is None or not is_agent_name(found["agent"]):
        return Failure(place, f"the channel {channel[:100]!r} has no agent's notes")
    agent, project = found["agent"], found["project"] or ""
    content, at = fields.take("content"), fields.take(*_TIMES, read=any_moment)
    if not isinstance(content, str) or not content.strip() or at is None:
        return Failure(place, f"it needs text in `content`, and a time in one of {', '.join(_TIMES)}")
    try:
        scope = scope_of("" if project == "global" else project)
    except UsageError as error:
        return Failure(place, str(error))
    id = stable_id(fields.take("id"), channel, at.isoformat(), content)
    head = {
        "id": id,
        "title": title_for(storable(content)),
        "type": fields.take("type", read=partial(one_of, ("note",))) or "note",
        "topic": fields.line("topic_name", "topic") or GENERAL,
        "tags": fields.take("tags", read=tags_in) or None,
        "session_id": fields.line("session_id", "session") or None,
        "provenance": fields.take("provenance", read=_external) or "task",
        "created_by": f"agent:{agent}",
        "created_at": at,
        "confidence": fields.take("confidence", read=number_in),
    }
    stem = f"channels/{agent}/{scope}/{at:%Y-%m-%dT%H%M%SZ}-{slug(' '.join(content.split()[:6]))}"
    return NewNote(place, id, stem, {**head, **fields.rest(*head, "channel")}, storable(content))


# ---- SQLite


def sqlite_items(core: Core, file: str) -> Iterator[Item]:
    """Memories with their links, and messages of channels. Raises UsageError where there are neither."""
    path = expanded(file)
    try:
        uri = f"file:{quote(str(path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=_SECONDS)) as db:
            db.execute("PRAGMA trusted_schema = OFF")
            db.text_factory = lambda raw: raw.decode(errors="replace")
            tables = _rows_by_kind(db, path.name)
    except sqlite3.Error as error:
        raise UsageError(
            f"{file} cannot be read: {error}", next="name a SQLite file, while no program writes to it"
        ) from None
    if tables.keys().isdisjoint(("messages", "memories")):
        raise UsageError(f"{file} has no table of memories or messages, as far as columns say", next="check the file")
    yield from _memories(core, tables["memories"], [link for _, link in tables["links"]])
    yield from (_private_note(place, row) for place, row in tables["messages"])
    for _, row in tables["members"]:
        if f":{row['agent_name']}" not in str(row["channel_id"]):
            yield f"{row['agent_name']} is a member of {row['channel_id']}: to grant that, write a channel.toml"


def _rows_by_kind(db: sqlite3.Connection, file: str) -> defaultdict[str, list[tuple[str, Record]]]:
    """The rows of the plain tables that are known, with their places."""
    found = defaultdict[str, list[tuple[str, Record]]](list)
    for schema, name, type, *_ in sorted(db.execute("PRAGMA table_list").fetchall()):  # noqa: A001 - SQLite's word
        if (schema, type) == ("main", "table"):
            quoted = '"' + name.replace('"', '""') + '"'
            rows = db.execute(f"SELECT * FROM {quoted}")  # noqa: S608 - a name that the file gave, in quotes
            columns = [each[0] for each in rows.description]
            kind = next((kind for kind, known in _TABLES if known <= set(columns)), "")
            records = (dict(zip(columns, row, strict=True)) for row in (rows if kind else ()))
            found[kind] += [(f"{file}, {name} row {number}", row) for number, row in enumerate(records, 1)]
    return found
