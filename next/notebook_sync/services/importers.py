"""What other programs kept, record by record: memories and private notes, in JSON and SQLite. Sources are only read.

Nothing that a record says is dropped: what a note has no field for stays in its frontmatter, under `older` where the
name is the notebook's own. A record without an id that lasts gets one of what it says, so that it is added once.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

from notebook_sync.errors import UsageError
from notebook_sync.files.fields import KINDS, RelationType
from notebook_sync.files.frontmatter import EXTERNAL, storable
from notebook_sync.files.new_note import slug
from notebook_sync.files.parse import PARTS
from notebook_sync.model import STATUSES
from notebook_sync.services.channels import GENERAL, is_reserved, scope_of, title_for
from notebook_sync.services.core import Core
from notebook_sync.services.importing import Failure, Item, NewNote, Warned
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

# What says nothing; what is computed here, or belongs to one copy of a document.
EMPTY: tuple[Any, ...] = (None, "", [], {})
_DERIVED = frozenset(
    (
        *("embedding", "vector", "score", "dynamic_score", "word_count", "notebook", "rev", "published", "digest"),
        *("audience", "collection", "collection_type", "stale", "links"),
    )
)
_CHANGING = frozenset((*_DERIVED, "access_count", "usage_count", "last_accessed", "last_accessed_at"))
_LINK = frozenset(("from_memory_id", "to_memory_id", "relationship_type"))
_TIMES = ("created_at", "timestamp", "created", "at")
_ID = re.compile(r"(?=.*[^\W\d])\w[\w:.@+/-]{0,126}\w")
_PROJECT = re.compile(r"proj_(.+?):agent-notes:(.+)")
# Ten digits are seconds until the year 2286, thirteen are milliseconds.
_SINCE_1970, _LATEST = re.compile(r"[1-9]\d{9}(?:\d{3})?(?:\.\d{1,9})?"), 1e11
_LARGEST, _DEEPEST = 512 << 20, 20
_SECONDS = 5.0

Record = Mapping[str, Any]


class Fields:
    """The fields of a record that say something; each is taken once, and `rest` is what was not taken."""

    def __init__(self, record: Record) -> None:
        inner = _decoded(record.get("metadata"))
        inner = inner if isinstance(inner, dict) else {}
        same = all(record.get(name, value) == value for name, value in inner.items())
        outer = {name: value for name, value in record.items() if name != "metadata" or not (same and inner)}
        self.left = {str(name): value for name, value in {**inner, **outer}.items() if value not in EMPTY}

    def take(self, *names: str) -> Any:
        """The first of these that is there."""
        return next((self.left.pop(name) for name in names if name in self.left), None)

    def line(self, *names: str) -> str:
        """The first of these that is text or a number, on one line; "" for none."""
        name = next((each for each in names if isinstance(self.left.get(each), str | int | float)), "")
        return " ".join(storable(str(self.left.pop(name))).split()) if name else ""

    def moment(self, *names: str) -> datetime | None:
        """The first of these that is a time, in any form; without a zone, in UTC."""
        for name in names:
            value = self.left.get(name)
            found = value if isinstance(value, datetime) else str(value)
            moment = any_moment(found)
            if moment is not None and value is not None:
                del self.left[name]
                return moment
        return None

    def number(self, *names: str) -> float | None:
        """The first of these that is a finite number."""
        for name in names:
            try:
                number = float(self.left.get(name, "x"))
            except (TypeError, ValueError):
                continue
            if math.isfinite(number):
                del self.left[name]
                return number
        return None

    def choice(self, name: str, allowed: Sequence[str]) -> str | None:
        """The field in small letters and without brackets, if it is one of these."""
        value = str(self.left.get(name)).strip(" []").casefold()
        if value not in allowed:
            return None
        del self.left[name]
        return value

    def provenance(self) -> str | None:
        """Whether the field says that the words are those of others; any other value stays."""
        is_external = str(self.left.get("provenance")).strip().casefold().startswith(EXTERNAL)
        return EXTERNAL if is_external and self.take("provenance") else None

    def tags(self) -> list[str]:
        """Tags of a list, of JSON, or separated by commas."""
        found = _decoded(self.left.get("tags"))
        found = found.split(",") if isinstance(found, str) else found
        if not isinstance(found, list):
            return []
        del self.left["tags"]
        return list(plain_tags(str(each) for each in found))

    def rest(self, *own: str) -> dict[str, Any]:
        """What was not taken, as frontmatter can hold it; under `older` what has one of a note's `own` names."""
        extra: dict[str, Any] = {}
        older: dict[str, Any] = {}
        for name, value in self.left.items():
            is_own = is_reserved(name) or name.casefold() in (*own, "older") or not name.isprintable()
            if name not in _DERIVED:
                (older if is_own else extra)[storable(name)] = as_field(value)
        return {**extra, **({"older": older} if older else {})}


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


def _decoded(value: Any) -> Any:
    """A list or an object that is in a text; anything else as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def stable_id(own: Any, *said: Any) -> str:
    """A record's own id, where it is one that lasts, else a digest of what it says."""
    if isinstance(own, str) and _ID.fullmatch(own) and not own.casefold().endswith(".md"):
        return own
    raw = json.dumps([own, *said], sort_keys=True, default=str)
    return f"m{sha256(raw.encode(errors='replace')).hexdigest()[:16]}"


# ---- memories


def memories_in(core: Core, file: str) -> Iterator[Item]:
    """Memories in a file of JSON: one a line, or one list of them."""
    records = list(_json_records(file))
    yield from (each for each in records if isinstance(each, Failure))
    yield from _memories(core, [each for each in records if not isinstance(each, Failure)], [])


def _memories(core: Core, records: Sequence[tuple[str, Record]], links: Iterable[Record]) -> Iterator[Item]:
    """Each record as a memory, with the links to those that are there or come."""
    ids = {place: _memory_id(record) for place, record in records}
    by_own = {str(record["id"]): ids[place] for place, record in records if record.get("id") is not None}
    own_of = {ids[place]: str(record.get("id", "")) for place, record in records}
    of: dict[str, list[Record]] = {}
    for link in links:
        of.setdefault(str(link["from_memory_id"]), []).append(link)
    lost = 0
    for place, record in records:
        given = _decoded(record.get("relations"))
        wanted = [*(given if isinstance(given, list) else ()), *of.pop(own_of[ids[place]], ())]
        found = [relation for each in wanted if (relation := _relation(core, each, by_own))]
        lost += len(wanted) - len(found)
        yield _memory(core, place, ids[place], {**record, "relations": found})
    lost += sum(map(len, of.values()))
    if lost:
        yield Warned(f"{lost:,} links lead to no memory, or are none, and were left out")


def _memory_id(record: Record) -> str:
    lasting = {name: value for name, value in record.items() if value not in EMPTY and name not in _CHANGING}
    return stable_id(record.get("id"), lasting)


def _relation(core: Core, link: Any, ids: Mapping[str, str]) -> dict[str, Any] | None:
    """A link as frontmatter has it; None for what leads to no memory."""
    if not isinstance(link, Mapping):
        return None
    fields = Fields(link)
    own, kind = fields.line("to_memory_id", "to"), fields.line("relationship_type", "type").casefold()
    to = ids.get(own) or (own if core.index.documents.one(own, heavy=False) else "")
    if not to or kind not in get_args(RelationType):
        return None
    confidence = fields.number("confidence")
    sure = 0.5 if confidence is None else min(max(confidence, 0.0), 1.0)
    texts = {name: fields.line(name) for name in ("reasoning", "source", "synthesis_id")}
    return {"type": kind, "to": to, "confidence": sure, **{name: text for name, text in texts.items() if text}}


def _memory(core: Core, place: str, id: str, record: Record) -> Item:
    fields = Fields(record)
    fields.take("id")
    parts = [f"{part.upper()}: {said}" for part in PARTS if (said := fields.take(part))]
    text = storable("\n".join(map(str, filter(None, [fields.take("content", "text"), *parts]))))
    if not text.strip():
        return Failure(place, "it has no text in `content`")
    read = read_template(text).named(fields.line("title"), fields.choice("kind", KINDS) or "", fields.tags())
    title, created_at = title_of(read, text), fields.moment("created_at", "timestamp")
    agent = agent_of(fields.line("agent", "agent_type", "created_by"), read.tags)
    importance = fields.left.get("importance")
    priority = fields.number("initial_priority", "priority", "importance")
    if priority is not None and importance is not None and not 1 <= priority <= 10:
        fields.left["importance"] = importance
    about, assumed = guarded(created_at=created_at, agent=agent, priority=priority, now=core.now(), zone=UTC)
    used = fields.number("access_count", "usage_count")
    head = {
        "id": id,
        "title": title,
        "kind": read.kind or None,
        "domain": plain_title(fields.line("domain")) or None,
        "tags": list(read.tags) or None,
        **about,
        "status": fields.choice("status", STATUSES),
        "created_by": f"agent:{agent}" if is_agent_name(agent) else "owner",
        "provenance": fields.provenance(),
        "needs_review": bool(assumed.keys() - {"priority"} or read.missing) or None,
        "relations": fields.take("relations"),
    }
    kept = {"access_count": int(used or 0), "last_accessed": fields.moment("last_accessed", "last_accessed_at")}
    stem = f"memories/{read.kind or 'unstructured'}/{about['created_at']:%Y-%m-%d}-{slug(title, 'memory')}"
    body = body_of(title, read.parts) if read.parts else text
    return NewNote(place, id, stem, {**head, **fields.rest(*head)}, body, kept)


# ---- private notes


def v2_items(core: Core, file: str) -> Iterator[Item]:
    """Private notes of an older program: messages with their `channel_id`, or channels with their `messages`, as one
    list, one object or one a line."""
    for record in _json_records(file):
        if isinstance(record, Failure):
            yield record
            continue
        place, value = record
        channels = value["channels"] if isinstance(value.get("channels"), list) else [value]
        for channel in channels:
            messages = channel.get("messages") if isinstance(channel, dict) else None
            if not isinstance(messages, list):
                yield private_note(place, value, str(value.get("channel_id") or ""))
                continue
            for number, message in enumerate(messages, 1):
                where, id = f"{place}, message {number}", str(channel.get("id") or "")
                is_record = isinstance(message, dict)
                yield private_note(where, message, id) if is_record else Failure(where, "it is no message")


def private_note(place: str, message: Record, channel: str) -> Item:
    """A message as a note in its agent's channel."""
    found = _PROJECT.fullmatch(channel)
    start, _, rest = channel.partition(":")
    agent, _, project = rest.partition(":") if start == "notes" else ("", "", "")
    if found:
        project, agent = found.groups()
    elif channel.startswith("global:agent-notes:"):
        agent, project = channel.removeprefix("global:agent-notes:"), ""
    if not is_agent_name(agent):
        return Failure(place, f"the channel {channel[:100]!r} has no agent's notes")
    fields = Fields(message)
    content, at = fields.take("content"), fields.moment(*_TIMES)
    if not isinstance(content, str) or not content.strip() or at is None:
        return Failure(place, "it has no text in `content`" if at else f"it has no time in any of {', '.join(_TIMES)}")
    try:
        scope = scope_of("" if project == "global" else project)
    except UsageError as error:
        return Failure(place, str(error))
    own = fields.take("id")
    id = stable_id(own, channel, at.isoformat(), content, {} if own else dict(message))
    fields.take("channel_id", "channel")
    if fields.left.get("type") == "note":
        fields.take("type")
    head = {
        "id": id,
        "title": title_for(storable(content)),
        "type": "note",
        "topic": fields.line("topic_name", "topic") or GENERAL,
        "tags": fields.tags() or None,
        "session_id": fields.line("session_id", "session") or None,
        "provenance": fields.provenance() or "task",
        "created_by": f"agent:{agent}",
        "created_at": at,
        "confidence": fields.number("confidence"),
    }
    stem = f"channels/{agent}/{scope}/{at:%Y-%m-%dT%H%M%SZ}-{slug(' '.join(content.split()[:6]))}"
    return NewNote(place, id, stem, {**head, **fields.rest(*head)}, storable(content))


def _json_records(file: str) -> Iterator[tuple[str, Record] | Failure]:
    """Every object of a file of JSON with its place: one a line, those of one list, or one object."""
    path = Path(file).expanduser()
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{file} is larger than {_LARGEST:,} bytes", next="split it")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read as text: {error}", next="give JSON in UTF-8") from None
    whole = _decoded(text)
    if isinstance(whole, list | dict):
        numbered = enumerate(whole if isinstance(whole, list) else [whole], 1)
        values = [(f"{path.name}, record {number}", value) for number, value in numbered]
    else:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        values = [(f"{path.name}:{number}", _decoded(line)) for number, line in lines]
    for place, value in values:
        yield (place, value) if isinstance(value, dict) else Failure(place, "it is no JSON object")


# ---- SQLite


def sqlite_items(core: Core, file: str) -> Iterator[Item]:
    """Memories with their links, and messages of channels. Raises UsageError where there are neither."""
    path = Path(file).expanduser()
    try:
        uri = f"file:{quote(str(path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=_SECONDS)) as db:
            db.execute("PRAGMA trusted_schema = OFF")
            db.text_factory = lambda raw: raw.decode(errors="replace")
            tables = dict(_tables(db))
    except sqlite3.Error as error:
        raise UsageError(f"{file} cannot be read: {error}", next="close the program that writes to it") from None
    memories, links, messages, members = list[tuple[str, Record]](), list[Record](), 0, list[Record]()
    notes: list[Item] = []
    for name, (columns, rows) in tables.items():
        numbered = [(f"{path.name}, {name} row {number}", row) for number, row in enumerate(rows, 1)]
        if {"channel_id", "content"} <= columns:
            messages += 1
            notes += [private_note(place, row, str(row["channel_id"])) for place, row in numbered]
        elif columns >= {"channel_id", "agent_name"}:
            members += rows
        elif columns >= _LINK:
            links += rows
        elif "content" in columns and ("memor" in name.casefold() or columns & {"importance", "initial_priority"}):
            memories += numbered
    if not (messages or memories or any("memor" in name.casefold() for name in tables)):
        names = ", ".join(tables) or "none"
        raise UsageError(f"{file} has no table of memories or messages; it has: {names}", next="check the file")
    yield from _memories(core, memories, links)
    yield from notes
    for row in members:
        if f":{row['agent_name']}" not in str(row["channel_id"]):
            yield Warned(f"{row['agent_name']} is a member of {row['channel_id']}: to grant that, write a channel.toml")


def _tables(db: sqlite3.Connection) -> Iterator[tuple[str, tuple[set[str], list[Record]]]]:
    """The plain tables: their columns and rows."""
    for schema, name, kind, *_ in sorted(db.execute("PRAGMA table_list").fetchall()):
        if (schema, kind) == ("main", "table") and not name.startswith("sqlite_"):
            quoted = '"' + name.replace('"', '""') + '"'
            found = db.execute(f"SELECT * FROM {quoted}")  # noqa: S608 - a name that the file gave, in quotes
            columns = [each[0] for each in found.description]
            yield name, (set(columns), [dict(zip(columns, row, strict=True)) for row in found])
