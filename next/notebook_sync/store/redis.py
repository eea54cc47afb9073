"""Redis as a mirror: refs of notes, the daily stream, long-term memory and checkpoints, under the original's keys.

Keys of other programs are never touched. One key a command, so that a cluster serves as well. The driver is imported
when the first request is made.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from notebook_sync.errors import BackendDown
from notebook_sync.files.parse import parse
from notebook_sync.permissions import may
from notebook_sync.sessions import Session
from notebook_sync.settings import PromptTable, RefsTable
from notebook_sync.store.index import Index
from notebook_sync.store.owner import Mark, name_of, without_secrets
from notebook_sync.store.publish import FOREIGN, REFILL, Key, Refusals
from notebook_sync.store.rows import Change, Is, Row

_SUMMARY = 200
_SCORE = 0.8
_BATCH = 500
_SESSIONS = (Session.task(), Session.external())
_SCHEMA = (
    *("content", "TEXT", "WEIGHT", "2"),
    *("source", "TEXT"),
    *("timestamp", "TEXT"),
    *("tags", "TAG"),
    *("score", "NUMERIC"),
)
# Fields of a stream entry about the note that it names, written flat into its line.
_OF_NOTE = ("title", "summary", "collection", "status", "updated_at", "version")
# What every line of ours has.
_OF_LINE = ("id", "content", "source", "tags", "score", "timestamp")

Command = tuple[Any, ...]


class RedisTarget:
    """The keys below one prefix of one server."""

    kind = "redis"
    collections = frozenset(("documents", "stream", "longterm", "checkpoints"))
    needs_text = False

    def __init__(self, settings: RefsTable, prompt: PromptTable, index: Index) -> None:
        self.name = name_of(settings.url, "Redis")
        self._settings = settings
        self._prompt = prompt
        self._index = index
        self._client: Any = None
        self._lock = threading.Lock()
        self._is_prepared = False
        # The mark that followed the last batch: while the server has it, no line can be there that we do not know of.
        self._written: Mark | None = None

    def read_mark(self) -> Mark | None:
        """The owner's mark. Raises BackendDown, as every method that asks the server does."""
        with self._asking() as client:
            found = client.get(self._key("notebook", "owner"))
        mark = None if found is None else Mark.read(found)
        if mark is None:  # an emptied server has lost its search index
            self._is_prepared = False
        if mark != self._written:
            self._written = None
        return mark

    def write_mark(self, mark: Mark) -> None:
        """Record owner and cursor."""
        with self._asking() as client:
            client.set(self._key("notebook", "owner"), json.dumps(mark.as_json()))
        self._written = mark

    def prepare(self) -> None:
        """Make the original's search index where the server has the module and nobody made it."""
        if self._is_prepared:
            return
        from redis.exceptions import ResponseError

        name = self._key("memory", "idx")
        prefixes = [f"{self._key(part)}:" for part in ("daily", "longterm", "notebook")]
        command = ["FT.CREATE", name, "ON", "HASH", "PREFIX", len(prefixes), *prefixes, "SCHEMA", *_SCHEMA]
        with self._asking() as client, suppress(ResponseError):  # it exists, or the server has no such module
            client.execute_command(*command)
        self._is_prepared = True

    def write(self, changes: Sequence[Change], mark: Mark, *, claim: bool = False) -> Refusals:
        """Write a batch; by "COLLECTION:ID", why a row was refused. `claim`: also over refs of others.

        The line of a stream entry is pushed if its rev is beyond `mark.published_through` and its list lacks it."""
        in_doubt = self._written is None or not mark.published_through
        self._written = None
        of: dict[str, list[Change]] = {
            name: [each for each in changes if each.collection == name] for name in self.collections
        }
        commands = list(self._ref_commands(of["documents"], claim=claim, is_pending=mark.pending_from > 0))
        commands += self._stream_commands(of["stream"], mark.published_through, in_doubt=in_doubt)
        for change in of["longterm"]:
            key = self._key("longterm", change.id)
            commands.append((change, _set_hash(key, hash_of(change.row)) if change.row else ("DEL", key)))
        bodies = self._index.checkpoints.get([each.id for each in of["checkpoints"]])
        for change in of["checkpoints"]:
            key, row = self._key("checkpoint", change.id), bodies.get(change.id)
            commands.append((change, ("SET", key, checkpoint_of(row)) if row else ("DEL", key)))
        return self._run(commands)

    def known(self) -> dict[Key, int]:
        """("documents", id) → rev of every ref of ours, by the list of ids that we keep; no scan of the keys."""
        with self._asking() as client:
            recent = {_text(each) for each in client.zrange(self._key("notebook", "recent"), 0, -1)}
        ids = sorted(recent | {id for (id,) in self._index.documents.tuples(("id",))})
        revs = self._ask([("HGET", self._ref(id), "rev") for id in ids])
        return {("documents", id): int(rev) for id, rev in zip(ids, revs, strict=True) if _text(rev).isdigit()}

    def publishes(self, collection: str, row: Row) -> bool:
        """Whether a row belongs on this server: no private note, and none that some session is denied as a whole."""
        if collection != "documents" or not row["audience"]:
            return collection != "documents" or bool(row["path"])
        path = row["path"] or ""
        is_private = row["collection"] == "channels" or row["audience"].startswith("channels")
        return bool(path) and not is_private and all(may(each, "read", path, self._prompt) for each in _SESSIONS)

    def take_over(self) -> None:
        """Fetch what only the server has of ours: lines of the last days, long-term memory and checkpoints."""
        days = [datetime.now(UTC).date() + timedelta(days=1 - age) for age in range(REFILL.days + 2)]
        found: dict[str, list[Row]] = {"stream": [], "longterm": [], "checkpoints": []}
        for day in map(str, days):
            with self._asking() as client:
                lines = client.lrange(self._key("daily", day), 0, -1)
            found["stream"] += [row for line in lines if (row := _row_of_line(line, day))]
        with self._asking() as client:
            longterm = list(client.scan_iter(f"{_escaped(self._key('longterm'))}:*", count=1000))
            checkpoints = list(client.scan_iter(f"{_escaped(self._key('checkpoint'))}:*", count=1000))
        for key, fields in zip(longterm, self._ask([("HGETALL", key) for key in longterm]), strict=True):
            found["longterm"] += [row] if (row := _row_of_hash(_text(key).rpartition(":")[2], fields)) else []
        for value in self._ask([("GET", key) for key in checkpoints]):
            found["checkpoints"] += [row] if (row := _row_of_checkpoint(value)) else []
        for name, rows in found.items():
            collection = self._index.collections[name]
            there = collection.get([row["id"] for row in rows])
            collection.put([row for row in rows if row["id"] not in there])

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()

    # ---- what is written

    def _ref_commands(
        self, changes: Sequence[Change], *, claim: bool, is_pending: bool
    ) -> Iterator[tuple[Change, Command]]:
        """Refs, but for those that another program wrote: they have no rev. They stay, and FOREIGN refuses ours."""
        there = self._ask([("HMGET", self._ref(each.id), "rev", "content") for each in changes])
        recent = self._key("notebook", "recent")
        for change, found in zip(changes, there, strict=True):
            row, ref = change.row, self._ref(change.id)
            is_wanted = row is not None and self.publishes("documents", row)
            is_foreign = isinstance(found, list) and found[0] is None and found[1] is not None
            if is_foreign and not claim:
                if is_wanted:
                    yield change, ()
            elif row is None or not is_wanted:
                yield change, ("DEL", ref)
                yield change, ("ZREM", recent, change.id)
            else:
                fields = ref_of(self._shown(row), change.rev)
                yield change, ("HSET", ref, "pending", "1") if is_pending else ("HDEL", ref, "pending")
                yield change, _set_hash(ref, fields)
                yield change, ("ZADD", recent, int(row["updated_at"].timestamp()), change.id)

    def _shown(self, row: Row) -> Row:
        """The row; of a file that is shown in part, with no more of its text than what is visible says."""
        if not row["audience"]:
            return row
        from prompt import visible

        (whole,) = self._index.documents.find(Is("id", "=", row["id"]), fields=("content",)) or [{"content": ""}]
        note = parse(row["path"], visible(whole["content"] or "", now=None).text.encode(), timezone=UTC)
        return {**row, "title": note.title, "summary": note.summary, "tags": [], "digest": ""}

    def _stream_commands(
        self, changes: Sequence[Change], published: int, *, in_doubt: bool
    ) -> Iterator[tuple[Change, Command]]:
        """Hashes and lines. A list is read only where it may have the line already, or where a line has to go."""
        gone = [each.id for each in changes if each.row is None]
        ended = {row["id"]: row["day"] for row in self._index.gone(gone, collection="stream")} if gone else {}
        days = {each.row["day"] for each in changes if each.row and in_doubt} | set(ended.values())
        lists = self._ask([("LRANGE", self._key("daily", day), 0, -1) for day in sorted(days)])
        there: dict[tuple[str, str], bytes] = {}
        for day, lines in zip(sorted(days), lists, strict=True):
            there |= {(day, row["id"]): line for line in lines if (row := _row_of_line(line, day))}
        for change in changes:
            row = change.row
            day = row["day"] if row else ended.get(change.id, "")
            if row is not None:
                yield change, _set_hash(self._key("daily", day, change.id), hash_of(row))
                if change.rev > published and (day, change.id) not in there:
                    yield change, ("RPUSH", self._key("daily", day), json.dumps(line_of(row), ensure_ascii=False))
            elif day:
                yield change, ("DEL", self._key("daily", day, change.id))
                if (day, change.id) in there:
                    yield change, ("LREM", self._key("daily", day), 0, there[day, change.id])

    def _run(self, commands: Sequence[tuple[Change, Command]]) -> Refusals:
        """Run the commands. One whose key another program uses for something else refuses its row; the rest raises."""
        refused = {_name(change): FOREIGN for change, command in commands if not command}
        todo = [(change, command) for change, command in commands if command]
        for (change, _), answer in zip(todo, self._ask([command for _, command in todo]), strict=True):
            if isinstance(answer, Exception):
                refused[_name(change)] = ("WRONGTYPE", str(answer))
        return refused

    # ---- the server

    def _key(self, *parts: str) -> str:
        return ":".join((self._settings.prefix, *parts))

    def _ref(self, id: str) -> str:
        return self._key("notebook", "ref", id)

    def _ask(self, commands: Sequence[Command]) -> list[Any]:
        """The answers, of which an error can only be that a key has another type."""
        from redis.exceptions import RedisError

        answers: list[Any] = []
        with self._asking() as client:
            for at in range(0, len(commands), _BATCH):
                pipe = client.pipeline(transaction=False)
                for command in commands[at : at + _BATCH]:
                    pipe.execute_command(*command)
                answers += pipe.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, RedisError) and "WRONGTYPE" not in str(answer):
                    raise answer
        return answers

    @contextmanager
    def _asking(self) -> Iterator[Any]:
        """The client, each request with a deadline. Raises BackendDown with the driver's reason, without secrets."""
        from redis.exceptions import RedisError

        try:
            yield self._connected()
        except (RedisError, OSError, ValueError) as error:
            raise BackendDown(self.name, without_secrets(str(error), self._settings.url)) from None

    def _connected(self) -> Any:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.exceptions import ConnectionError as Broken
        from redis.retry import Retry

        seconds = self._settings.timeout_seconds
        with self._lock:
            if self._client is None:
                self._client = Redis.from_url(
                    self._settings.url,
                    socket_timeout=seconds,
                    socket_connect_timeout=seconds,
                    # A connection that was closed meanwhile is made again once; nothing else is repeated.
                    retry=Retry(NoBackoff(), 1, (Broken,)),
                )
            return self._client


def ref_of(row: Row, rev: int) -> dict[str, str]:
    """The hash of a note's ref: text only."""
    title, summary = row["title"], (row["summary"] or "")[:_SUMMARY]
    return {
        "type": "notebook_ref",
        "notebook_id": row["id"],
        "title": title,
        "summary": summary,
        **{name: row[name] or "" for name in ("collection", "status", "digest", "path", "provenance")},
        "updated_at": row["updated_at"].isoformat(),
        "version": str(row["version"]),
        "agent": (row["created_by"] or "").removeprefix("agent:"),
        "content": f"[Notebook {'CREATED' if row['version'] == 1 else 'UPDATED'}] {title}: {summary}",
        "source": "notebook",
        "tags": ",".join(row["tags"]),
        "score": str(_SCORE),
        "timestamp": row["updated_at"].isoformat(),
        "at": f"{row['updated_at'].timestamp():.3f}",
        "rev": str(rev),
    }


def hash_of(row: Row) -> dict[str, str]:
    """The hash of a stream or long-term entry: text only."""
    return {
        **{name: row[name] or "" for name in ("content", "source", "agent", "provenance")},
        "tags": ",".join(row["tags"]),
        "score": str(0.5 if row["score"] is None else row["score"]),
        "timestamp": row["at"].isoformat(),
        "at": f"{row['at'].timestamp():.3f}",
    }


def line_of(row: Row) -> dict[str, Any]:
    """The line of a day's list: an entry, flat, with the fields of the note that it names."""
    line = {**{name: row[name] for name in _OF_LINE if name != "timestamp"}, "timestamp": row["at"].isoformat()}
    line |= {name: row[name] for name in ("agent", "provenance") if row[name]}
    if row["note"]:
        line |= {"type": "notebook_ref", "action": row["action"], "notebook_id": row["note"], "path": row["path"]}
        line |= {name: (row["ref"] or {}).get(name) for name in _OF_NOTE}
    return line


def checkpoint_of(row: Row) -> str:
    """The blob of a checkpoint, with what its body holds of the stream and the notes."""
    own = {"uuid": row["id"], "name": row["name"], "timestamp": row["at"].isoformat(), "commit": row["commit"]}
    return json.dumps({**own, **(row["body"] or {})}, default=str, ensure_ascii=False)


def _row_of_line(line: bytes, day: str) -> Row | None:
    """A line of ours as a row of the stream; None for a line that another program wrote."""
    found = _decoded(line)
    row = _row_of(found, day) if found.keys() >= set(_OF_LINE) else None
    if row is not None:
        row |= {"action": str(found.get("action") or ""), "note": str(found.get("notebook_id") or "")}
        row["path"] = str(found.get("path") or "")
        row["ref"] = {name: found[name] for name in _OF_NOTE if name in found} or None
    return row


def _row_of_hash(id: str, fields: Any) -> Row | None:
    """A hash of ours as a row of long-term memory; None for one without our number of its time."""
    found = {_text(name): _text(value) for name, value in fields.items()} if isinstance(fields, dict) else {}
    return _row_of({**found, "id": id}, found.get("timestamp", "")[:10]) if "at" in found else None


def _row_of_checkpoint(value: Any) -> Row | None:
    found = _decoded(value)
    try:
        own = {"id": found.pop("uuid"), "at": _moment(found.pop("timestamp")), "name": str(found.pop("name"))}
    except (KeyError, ValueError, TypeError):
        return None
    return {**own, "commit": str(found.pop("commit", "") or ""), "created_by": "", "body": found}


def _row_of(found: Mapping[str, Any], day: str) -> Row | None:
    """What a line and a hash have in common, as columns; None where it is no entry."""
    texts = ("id", "content", "source", "agent", "provenance")
    tags = found.get("tags") or []
    try:
        own = {"day": day, "at": _moment(found["timestamp"]), "score": float(found.get("score") or 0.5)}
    except (KeyError, ValueError, TypeError):
        return None
    own["tags"] = [str(tag) for tag in (tags.split(",") if isinstance(tags, str) else tags)]
    return {**own, **{name: str(found.get(name) or "") for name in texts}}


def _decoded(value: Any) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except (ValueError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _set_hash(key: str, fields: Mapping[str, str]) -> Command:
    return ("HSET", key, *(each for pair in fields.items() for each in pair))


def _name(change: Change) -> str:
    return f"{change.collection}:{change.id}"


def _escaped(pattern: str) -> str:
    return re.sub(r"([*?\[\]\\])", r"\\\1", pattern)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
