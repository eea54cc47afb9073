"""What the original kept in MongoDB and Redis: documents and facts, the stream, long-term memory and checkpoints.

Both are only read. What comes from Redis is not published back to a Redis, where it may still be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import Any

from notebook_sync.errors import BackendDown
from notebook_sync.files.compose import code_block, slug
from notebook_sync.files.fact_text import fact_id, fact_text
from notebook_sync.files.fields import FIELDS
from notebook_sync.files.frontmatter import storable
from notebook_sync.model import STATUSES
from notebook_sync.services.core import Core
from notebook_sync.services.importers import Fields, Record, any_moment, as_field, number_in, one_of, stable_id, tags_in
from notebook_sync.services.importing import Failure, Item, NewNote, NewRow
from notebook_sync.store.others import read_line, row_of_other
from notebook_sync.store.owner import name_of, without_secrets
from notebook_sync.store.redis import IMPORTED, keys_below, row_of_checkpoint

_SECONDS = 5.0

# ---- the original's MongoDB


def mongo_items(core: Core, url: str) -> Iterator[Item]:
    """Documents and facts of the original's database, by their ids."""
    from pymongo import MongoClient
    from pymongo.errors import PyMongoError

    names = ("serverSelectionTimeoutMS", "connectTimeoutMS", "socketTimeoutMS")
    options: dict[str, Any] = dict.fromkeys(names, int(_SECONDS * 1000))
    # Texts that are not UTF-8 and times after the year 9999 are there too.
    options |= {"tz_aware": True, "unicode_decode_error_handler": "replace", "datetime_conversion": "DATETIME_AUTO"}
    try:
        client: MongoClient[dict[str, Any]] = MongoClient(url, **options)
        with client:
            database = client.get_default_database(core.settings.mirror.database)
            for collection in ("pages", "code_snippets", "research_notes", "notes"):
                for found in database[collection].find({}, {"embedding": 0}, sort=[("_id", 1)]):
                    place = f"{collection} {found['_id']}"
                    yield _fact(place, found) if collection == "notes" else _document(core, place, collection, found)
    except (PyMongoError, ValueError) as error:
        raise BackendDown(name_of(url, "MongoDB"), without_secrets(str(error), url)[:300]) from None


def _document(core: Core, place: str, collection: str, found: Record) -> Item:
    fields = Fields(found)
    version, own = fields.left.get("version"), fields.left.get("published")
    if found.get("notebook") == core.place.notebook_id and own != version:
        reason = "another program changed what this notebook published; compare, then run: notebook-sync sync --claim"
        return Failure(place, reason)
    id = stable_id(str(fields.take("_id")), place)
    title, language = fields.line("title"), fields.line("language")
    head = {
        "id": id,
        "title": title or None,
        "summary": fields.line("summary") or None,
        "tags": fields.take("tags", read=tags_in) or None,
        "status": fields.take("status", read=partial(one_of, STATUSES)),
        "created_by": fields.line("created_by") or None,
        "created_at": fields.take("created_at", read=any_moment),
        **{name: as_field(fields.take(name)) for name in FIELDS.get(collection, {})},
        "language": language or None,
    }
    content, code = str(fields.take("content") or ""), fields.take("code")
    texts = [code_block(code, language)] if isinstance(code, str) and code not in content else []
    for each in fields.take("sections", read=_records) or ():
        heading, text = str(each.get("heading") or ""), str(each.get("content") or "")
        if text.strip() not in content:
            texts.append(text if text.lstrip().startswith("#") else f"## {heading}\n\n{text}")
    crumbs = [_crumb(id, each) for each in fields.take("history", read=_records) or ()]
    used, last = fields.take("access_count", read=number_in), fields.take("last_accessed", read=any_moment)
    kept = {
        "version": int(fields.take("version", read=number_in) or 1),
        "access_count": int(used or 0),
        "last_accessed": last,
    }
    stem = f"{collection}/{slug(title, collection.removesuffix('s'))}"
    body = storable("\n\n".join(filter(None, [content, *texts])))
    return NewNote(place, id, stem, {**head, **fields.rest(*head)}, body, kept, [each for each in crumbs if each["at"]])


def _records(value: Any) -> list[Record] | None:
    return value if isinstance(value, list) and all(isinstance(each, Mapping) for each in value) else None


def _crumb(id: str, said: Record) -> dict[str, Any]:
    fields = Fields(said)
    version, at = int(fields.take("version", read=number_in) or 0), fields.take("timestamp", "at", read=any_moment)
    return {
        "id": f"{id}@{version}",
        "note": id,
        "version": version,
        "at": at,
        **{name: fields.line(name) for name in ("summary", "changed_by")},
    }


def _fact(place: str, found: Record) -> Item:
    fields = Fields({**found, "metadata": None})
    content, said = fields.take("content"), found.get("metadata")
    metadata = said if isinstance(said, Mapping) else {"metadata": said or None}
    if not isinstance(content, str) or not content.strip():
        return Failure(place, "it has no text in `content`")
    own = ("base", "pin", "embedding_model")
    kept = {
        "base": fields.take("importance", read=number_in),
        "decay_rate": fields.take("decay_rate", read=number_in),
        "access_count": int(fields.take("access_count", read=number_in) or 0),
        "metadata": {name: as_field(each) for name, each in metadata.items() if name not in own and each is not None}
        or None,
        **{name: fields.take(name, read=any_moment) for name in ("created_at", "updated_at", "last_accessed")},
    }
    text = fact_text(content)
    row = {"id": fact_id(text), "content": text, "section": fields.line("section")}
    return NewRow(place, "facts", {**row, **{name: each for name, each in kept.items() if each is not None}})


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
                for key in sorted(client.scan_iter(keys_below(f"{prefix}:{part}"), count=1000)):
                    name = key.decode(errors="replace")
                    try:
                        yield from _rows(core, client, key, prefix, part)
                    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                        yield Failure(name, "it is not what the original has at this key")
    except (RedisError, OSError, ValueError) as error:
        raise BackendDown(name_of(url, "Redis"), without_secrets(str(error), url)[:300]) from None


def _rows(core: Core, client: Any, key: bytes, prefix: str, part: str) -> list[Item]:
    """What is at a key. Raises ValueError and others for anything that does not belong there."""
    name = key.decode(errors="replace")
    rest = name.removeprefix(f"{prefix}:{part}:")
    day, _, id = rest.partition(":") if part == "daily" else ("", "", rest)
    last = datetime.fromisoformat(day).replace(tzinfo=UTC) if day else core.now()
    rows: list[dict[str, Any]] = []
    match part, client.type(key):
        case "daily", b"list":
            for line in (read_line(raw, day) for raw in client.lrange(key, 0, -1)):
                rows.append(row_of_other(line.id, day, line.value, last))
                last = rows[-1]["at"]
        case "daily" | "longterm", b"hash" if id:
            found = {name.decode(errors="replace"): text for name, text in client.hgetall(key).items()}
            said = {name: text.decode(errors="replace") for name, text in found.items()}
            row = row_of_other(id, day, said, last)
            rows.append({**row, "day": day or row["at"].date().isoformat()})
        case "checkpoint", b"string":
            row = row_of_checkpoint(key, client.get(key))
            own = {"id": str(row["id"]), "name": str(row["name"]), "at": any_moment(row["at"])}
            rows.append({**row, **own, "created_by": IMPORTED})
        case _:
            raise ValueError(key)
    collection = {"daily": "stream", "longterm": "longterm", "checkpoint": "checkpoints"}[part]
    mark = {} if collection == "checkpoints" else {"action": IMPORTED}
    return [NewRow(f"{name}, {number}", collection, {**row, **mark}) for number, row in enumerate(rows, 1)]
