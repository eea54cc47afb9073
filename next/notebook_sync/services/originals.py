"""What the original kept in MongoDB and Redis: documents and facts, the stream, long-term memory and checkpoints.

Both are only read. What comes from Redis is not published back to a Redis, where it may still be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from notebook_sync.errors import BackendDown
from notebook_sync.files.fields import FIELDS
from notebook_sync.files.frontmatter import storable
from notebook_sync.files.new_note import slug
from notebook_sync.model import STATUSES
from notebook_sync.services.core import Core
from notebook_sync.services.importers import Fields, Record, any_moment, as_field, stable_id
from notebook_sync.services.importing import Failure, Item, NewFact, NewNote, NewRow
from notebook_sync.store.others import read_line, row_of_other
from notebook_sync.store.owner import name_of, without_secrets
from notebook_sync.store.redis import IMPORTED, row_of_checkpoint

_SECONDS = 5.0

# ---- the original's MongoDB


def mongo_items(core: Core, url: str) -> Iterator[Item]:
    """Documents and facts of the original's database, by their ids."""
    from pymongo import MongoClient
    from pymongo.errors import PyMongoError

    names = ("serverSelectionTimeoutMS", "connectTimeoutMS", "socketTimeoutMS")
    waits: dict[str, Any] = dict.fromkeys(names, int(_SECONDS * 1000))
    try:
        client: MongoClient[dict[str, Any]] = MongoClient(url, tz_aware=True, **waits)
        with client:
            database = client.get_default_database(core.settings.mirror.database)
            for collection in ("pages", "code_snippets", "research_notes"):
                for found in database[collection].find({}, sort=[("_id", 1)]):
                    yield _document(core, f"{collection} {found['_id']}", collection, found)
            for found in database["notes"].find({}, {"embedding": 0}, sort=[("_id", 1)]):
                yield _fact(f"notes {found['_id']}", found)
    except (PyMongoError, ValueError) as error:
        raise BackendDown(name_of(url, "MongoDB"), without_secrets(str(error)[:300], url)) from None


def _document(core: Core, place: str, collection: str, found: Record) -> Item:
    metadata = found.get("metadata")
    version = metadata.get("version") if isinstance(metadata, dict) else None
    if found.get("notebook") == core.place.notebook_id and found.get("published") != version:
        reason = "another program changed what this notebook published; compare, then run: notebook-sync sync --claim"
        return Failure(place, reason)
    fields = Fields(found)
    id = stable_id(str(fields.take("_id")), place)
    title, language = fields.line("title"), fields.line("language")
    head = {
        "id": id,
        "title": title or None,
        "summary": fields.line("summary") or None,
        "tags": fields.tags() or None,
        "status": fields.choice("status", STATUSES),
        "created_by": fields.line("created_by") or None,
        "created_at": fields.moment("created_at"),
        "language": language or None,
        **{name: as_field(fields.take(name)) for name in FIELDS.get(collection, {}) if name != "language"},
    }
    code, content = fields.take("code"), str(fields.take("content") or "")
    parts = [content, _in_fence(code, language) if isinstance(code, str) and code not in content else ""]
    sections = fields.left.get("sections")
    if isinstance(sections, list) and all(isinstance(each, dict) for each in sections):
        fields.take("sections")
        said = [(str(each.get("heading") or ""), str(each.get("content") or "")) for each in sections]
        more = [(heading, text) for heading, text in said if text.strip() not in content]
        parts += [text if text.lstrip().startswith("#") else f"## {heading}\n\n{text}" for heading, text in more]
    history, version = fields.take("history"), fields.number("version")
    crumbs = [_crumb(id, each) for each in history if isinstance(each, dict)] if isinstance(history, list) else []
    kept: dict[str, Any] = {"version": int(version or 1), "access_count": int(fields.number("access_count") or 0)}
    kept |= {"last_accessed": fields.moment("last_accessed"), "created_at": head["created_at"]}
    kept = {name: value for name, value in kept.items() if value is not None}
    stem = f"{collection}/{slug(title, collection.removesuffix('s'))}"
    body = storable("\n\n".join(filter(None, parts)))
    crumbs = [each for each in crumbs if each["at"]]
    return NewNote(place, id, stem, {**head, **fields.rest(*head)}, body, kept, crumbs)


def _crumb(id: str, said: Record) -> dict[str, Any]:
    fields = Fields(said)
    version, at = int(fields.number("version") or 0), fields.moment("timestamp", "at")
    return {
        "id": f"{id}@{version}",
        "note": id,
        "version": version,
        "at": at,
        **{name: fields.line(name) for name in ("summary", "changed_by")},
    }


def _in_fence(code: str, language: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code.rstrip()}\n{fence}\n"


def _fact(place: str, found: Record) -> Item:
    fields = Fields({name: value for name, value in found.items() if name != "metadata"})
    content, metadata = fields.take("content"), found.get("metadata")
    if not isinstance(content, str) or not content.strip():
        return Failure(place, "it has no text in `content`")
    own = ("base", "pin", "embedding_model")
    metadata = metadata if isinstance(metadata, dict) else {}
    said = {name: as_field(value) for name, value in metadata.items() if name not in own}
    kept = {
        "base": fields.number("importance"),
        "decay_rate": fields.number("decay_rate"),
        "access_count": int(fields.number("access_count") or 0),
        "metadata": said or None,
        **{name: fields.moment(name) for name in ("created_at", "updated_at", "last_accessed")},
    }
    kept = {name: each for name, each in kept.items() if each is not None}
    return NewFact(place, content, fields.line("section"), kept)


# ---- the original's Redis


def redis_items(core: Core, url: str) -> Iterator[Item]:
    """The stream, long-term memory and checkpoints of the original. Refs are made of notes, and not read."""
    from redis import Redis
    from redis.exceptions import RedisError

    prefix = core.settings.refs.prefix
    try:
        client: Any = Redis.from_url(url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS)
        with closing(client):
            for part in ("daily", "longterm", "checkpoint"):
                pattern = re.sub(r"([*?\[\]\\])", r"\\\1", f"{prefix}:{part}:") + "*"
                for key in sorted(client.scan_iter(pattern, count=1000)):
                    kind, name = client.type(key), key.decode(errors="replace")
                    rest = name.removeprefix(f"{prefix}:{part}:")
                    if kind == b"list" and part == "daily":
                        yield from _day(name, rest, client.lrange(key, 0, -1))
                    elif kind == b"hash" and part != "checkpoint":
                        yield _hash(name, part, rest, client.hgetall(key))
                    elif kind == b"string" and part == "checkpoint":
                        yield _checkpoint(name, key, client.get(key))
                    else:
                        yield Failure(name, f"a {kind.decode()} is not what this key has")
    except (RedisError, OSError, ValueError) as error:
        raise BackendDown(name_of(url, "Redis"), without_secrets(str(error)[:300], url)) from None


def _day(place: str, day: str, lines: Sequence[bytes]) -> Iterator[Item]:
    last = _first_moment(day)
    for number, raw in enumerate(lines, 1):
        line = read_line(raw, day)
        if last is None:
            yield Failure(f"{place}, line {number}", f"{day[:40]!r} is no day")
            continue
        row = row_of_other(line.id, day, line.value, last)
        last = row["at"]
        yield NewRow(f"{place}, line {number}", "stream", {**row, "action": IMPORTED})


def _hash(place: str, part: str, rest: str, value: Mapping[bytes, bytes]) -> Item:
    day, _, id = rest.partition(":") if part == "daily" else ("", "", rest)
    found = {name.decode(errors="replace"): text.decode(errors="replace") for name, text in value.items()}
    first = _first_moment(day) if day else datetime.now(UTC)
    if first is None or not id:
        return Failure(place, "the key names no day and no entry")
    row = row_of_other(id, day, found, first)
    row = {**row, "day": day or row["at"].date().isoformat(), "action": IMPORTED}
    return NewRow(place, "stream" if part == "daily" else "longterm", row)


def _checkpoint(place: str, key: bytes, value: bytes) -> Item:
    try:
        row = row_of_checkpoint(key, value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Failure(place, "it is no checkpoint: JSON with uuid, name and timestamp")
    at = any_moment(str(row["at"]))
    own = {"id": str(row["id"]), "name": str(row["name"]), "at": at, "created_by": IMPORTED}
    return NewRow(place, "checkpoints", {**row, **own})


def _first_moment(day: str) -> datetime | None:
    try:
        return datetime.fromisoformat(day).replace(tzinfo=UTC)
    except ValueError:
        return None
