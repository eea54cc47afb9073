"""Redis as a mirror: refs of notes, the daily stream, long-term memory and checkpoints, under the original's keys.

Keys of other programs are never touched. One key a command, so that a cluster serves as well. The driver is imported
when the first request is made.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from notebook_sync.errors import BackendDown
from notebook_sync.files.names import is_announced
from notebook_sync.files.parse import parse
from notebook_sync.settings import PromptTable, RefsTable
from notebook_sync.store.index import Index
from notebook_sync.store.others import OF_NOTE, REFILL, read_line, row_of_other
from notebook_sync.store.owner import FOREIGN, Mark, Refusals, Revs, name_of, without_secrets
from notebook_sync.store.rows import Change, Is, Row
from notebook_sync.store.tables import as_json

_SUMMARY = 200
_SCORE = 0.8
_BATCH = 500
_MOST_FOUND = 1000
# The action, or the maker of a checkpoint, of what was read from a Redis of others: it is not published back to one.
IMPORTED = "imported"
_SCHEMA = (
    *("content", "TEXT", "WEIGHT", "2"),
    *("source", "TEXT"),
    *("timestamp", "TEXT"),
    *("tags", "TAG"),
    *("score", "NUMERIC"),
)
_OF_LINE = frozenset(("id", "content", "source", "tags", "score", "timestamp"))

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
        self._has_index = False

    def read_mark(self) -> Mark | None:
        """The owner's mark. Raises BackendDown, as every method that asks the server does."""
        (found,) = self._ask([("GET", self._key("notebook", "owner"))])
        if found is None:  # an emptied server has lost its search index
            self._has_index = False
        return None if found is None else Mark.read(found)

    def write_mark(self, mark: Mark) -> None:
        """Record owner and cursor."""
        self._ask([("SET", self._key("notebook", "owner"), msgspec.json.encode(mark))])

    def write(self, changes: Sequence[Change], mark: Mark, *, claim: bool = False) -> Refusals:
        """Write a batch; by "COLLECTION:ID", why a row was refused. `claim`: also over refs of others.

        The line of a stream entry is pushed if its rev is beyond `mark.published_through` and its list lacks it."""
        if not self._has_index:
            self._make_index()
        changes = [each for each in changes if not _is_imported(each.row)]
        of = {name: [each for each in changes if each.collection == name] for name in self.collections}
        commands = list(self._for_refs(of["documents"], claim=claim, is_pending=mark.pending_from > 0))
        commands += self._for_stream(of["stream"], mark.published_through)
        for change in of["longterm"]:
            key = self._key("longterm", change.id)
            commands.append((change, _set_hash(key, hash_of(change.row)) if change.row else ("DEL", key)))
        bodies = self._index.checkpoints.get([each.id for each in of["checkpoints"]]) if of["checkpoints"] else {}
        for change in of["checkpoints"]:
            key, row = self._key("checkpoint", change.id), bodies.get(change.id)
            commands.append((change, ("SET", key, checkpoint_of(row)) if row else ("DEL", key)))
        refused = {change.key: FOREIGN for change, command in commands if not command}
        todo = [(change, command) for change, command in commands if command]
        for (change, _), answer in zip(todo, self._ask([command for _, command in todo]), strict=True):
            if isinstance(answer, Exception):  # another program uses the key for something else
                refused[change.key] = ("WRONGTYPE", str(answer))
        return refused

    def known(self) -> Revs:
        """The rev of every ref of ours, by the list of ids that we keep; no scan of the keys."""
        with self._asking() as client:
            recent = client.zrange(self._key("notebook", "recent"), 0, -1)
        ids = list({_text(each) for each in recent} | {id for (id,) in self._index.documents.tuples(("id",))})
        revs = self._ask([("HGET", self._ref(id), "rev") for id in ids])
        return {"documents": {id: int(rev) for id, rev in zip(ids, revs, strict=True) if _text(rev).isdigit()}}

    def publishes(self, row: Row) -> bool:
        """Whether a document belongs on this server: what no kind of session is denied as a whole."""
        path, audience = row["path"], row["audience"]
        return bool(path) and (not audience or (audience == "apart" and is_announced(path, self._prompt)))

    def take_over(self) -> None:
        """Fetch what only the server has of ours: lines of the last days, long-term memory and checkpoints."""
        today = datetime.now(UTC).date() + timedelta(days=1)  # there is one somewhere
        days = [str(today - timedelta(days=age)) for age in range(REFILL.days + 2)]
        lists = self._ask([("LRANGE", self._key("daily", day), 0, -1) for day in days])
        for day, lines in zip(days, lists, strict=True):
            self._load("stream", row_of_line, [(line, day) for line in lines if isinstance(line, bytes)])
        for name, part, command, read in (
            ("longterm", "longterm", "HGETALL", row_of_hash),
            ("checkpoints", "checkpoint", "GET", row_of_checkpoint),
        ):
            with self._asking() as client:
                keys = list(client.scan_iter(keys_below(self._key(part)), count=1000))
            self._load(name, read, zip(keys, self._ask([(command, key) for key in keys]), strict=True))

    def _load(self, name: str, read: Callable[..., Row], values: Iterable[tuple[Any, ...]]) -> None:
        """Put what the index lacks; what is none of our rows is left out."""
        lines: list[str] = []
        for each in values:
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                lines.append(as_json({"in": name, "row": read(*each)}))
        self._index.load(lines)

    # ---- what other programs wrote, read when somebody asks

    def read_days(self, days: Sequence[str]) -> tuple[Mark | None, dict[str, list[bytes]]]:
        """The owner's mark, and the lines of each of these days; a day whose key is no list is left out."""
        lists = [("LRANGE", self._key("daily", day), 0, -1) for day in days]
        mark, *found = self._ask([("GET", self._key("notebook", "owner")), *lists])
        here = {day: lines for day, lines in zip(days, found, strict=True) if isinstance(lines, list)}
        return Mark.read(mark) if isinstance(mark, bytes) else None, here

    def find_hashes(self, words: Sequence[str]) -> dict[str, dict[str, str]]:
        """The hashes of others in which the search index finds one of these words, by key without the prefix; none
        without the module. `words` have letters and digits only."""
        from redis.exceptions import ResponseError

        asked = ("FT.SEARCH", self._key("memory", "idx"), f"@content:({'|'.join(words)})", "NOCONTENT")
        with self._asking() as client:
            try:
                found = client.execute_command(*asked, "LIMIT", 0, _MOST_FOUND, "DIALECT", 2)
            except ResponseError:
                return {}
        # By protocol 2 a number and the keys, by protocol 3 an object.
        return self._hashes(found[1:] if isinstance(found, list) else [each[b"id"] for each in found[b"results"]])

    def read_longterm(self) -> dict[str, dict[str, str]]:
        """What others keep in long-term memory, as `find_hashes`."""
        with self._asking() as client:
            return self._hashes(list(client.scan_iter(keys_below(self._key("longterm")), count=1000)))

    def exchange_lines(self, gone: Sequence[tuple[str, bytes]], back: Sequence[tuple[str, bytes]]) -> None:
        """Remove lines from the lists of their days, and append others."""
        removed = [("LREM", self._key("daily", day), 0, line) for day, line in gone]
        self._ask([*removed, *(("RPUSH", self._key("daily", day), line) for day, line in back)])

    def _hashes(self, keys: Sequence[bytes]) -> dict[str, dict[str, str]]:
        """Hashes of others: those whose id the index does not know. A key is KIND:PART:ID, or longterm:ID."""
        start, index = len(self._key("")), self._index
        names = [_text(key)[start:] for key in keys]
        ids = {name: name.split(":", 1 if name.startswith("longterm:") else 2)[-1] for name in names}
        ours = set[str]()
        for rows, kind in ((index.stream, "daily:"), (index.longterm, "longterm:"), (index.documents, "notebook:")):
            known = rows.known([ids[name] for name in names if name.startswith(kind)])
            ours |= {name for name in names if name.startswith(kind) and ids[name] in known}
        wanted = [(key, name) for key, name in zip(keys, names, strict=True) if name not in ours]
        found = self._ask([("HGETALL", key) for key, _ in wanted])
        return {
            name: {_text(field): _text(value) for field, value in each.items()}
            for (_, name), each in zip(wanted, found, strict=True)
            if isinstance(each, dict)
        }

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()

    # ---- what is written

    def _for_refs(
        self, changes: Sequence[Change], *, claim: bool, is_pending: bool
    ) -> Iterator[tuple[Change, Command]]:
        """Refs, but for those that another program wrote: they have no rev. They stay; no command: ours is refused."""
        there = self._ask([("HMGET", self._ref(each.id), "rev", "content") for each in changes])
        recent = self._key("notebook", "recent")
        for change, found in zip(changes, there, strict=True):
            row, ref = change.row, self._ref(change.id)
            is_wanted = row is not None and self.publishes(row)
            if isinstance(found, list) and found[0] is None and found[1] is not None and not claim:
                if is_wanted:
                    yield change, ()
            elif row is None or not is_wanted:
                yield change, ("DEL", ref)
                yield change, ("ZREM", recent, change.id)
            else:
                yield change, ("HSET", ref, "pending", "1") if is_pending else ("HDEL", ref, "pending")
                yield change, _set_hash(ref, ref_of(self._shown(row), change.rev))
                yield change, ("ZADD", recent, int(row["updated_at"].timestamp()), change.id)

    def _shown(self, row: Row) -> Row:
        """The row; of a file that is shown in part, with no more of its text than what is visible says."""
        if not row["audience"]:
            return row
        from prompt import visible

        whole = self._index.documents.one(row["id"]) or {"content": ""}
        note = parse(row["path"], visible(whole["content"] or "", now=None).text.encode(), timezone=UTC)
        return {**row, "title": note.title, "summary": note.summary, "tags": [], "digest": ""}

    def _for_stream(self, changes: Sequence[Change], published: int) -> Iterator[tuple[Change, Command]]:
        """Hashes and lines. A line is pushed once, though a batch may be repeated: its list is asked for it first."""
        oldest = datetime.now(UTC) - REFILL
        here = [each for each in changes if each.row and each.row["at"] > oldest]
        lines = {each.id: json.dumps(line_of(each.row), ensure_ascii=False) for each in here if each.row}
        of = {each.id: self._key("daily", each.row["day"]) for each in here if each.row}
        there = self._ask([("LPOS", of[each.id], lines[each.id]) for each in here])
        for change, position in zip(here, there, strict=True):
            yield change, _set_hash(f"{of[change.id]}:{change.id}", hash_of(change.row or {}))
            if change.rev > published and not isinstance(position, int):
                yield change, ("RPUSH", of[change.id], lines[change.id])
        ended = {each.id: each for each in changes if each.row is None}
        gone = self._index.stream.ended(Is("id", "in", list(ended))) if ended else []
        days = {row["id"]: self._key("daily", row["day"]) for row in gone if row["day"]}
        lists = sorted(set(days.values()))
        for key, found in zip(lists, self._ask([("LRANGE", key, 0, -1) for key in lists]), strict=True):
            for line in found if isinstance(found, list) else ():
                if (id := read_line(line, "").id) in ended and days.get(id) == key:
                    yield ended[id], ("LREM", key, 0, line)
        for id, key in days.items():
            yield ended[id], ("DEL", f"{key}:{id}")

    def _make_index(self) -> None:
        """Make the original's search index where the server has the module and nobody made it."""
        from redis.exceptions import ResponseError

        prefixes = [self._key(part, "") for part in ("daily", "longterm", "notebook")]
        command = ("FT.CREATE", self._key("memory", "idx"), "ON", "HASH", "PREFIX", len(prefixes), *prefixes)
        with self._asking() as client, suppress(ResponseError):  # it exists, or the server has no such module
            client.execute_command(*command, "SCHEMA", *_SCHEMA)
        self._has_index = True

    # ---- the server

    def _key(self, *parts: str) -> str:
        return ":".join((self._settings.prefix, *parts))

    def _ref(self, id: str) -> str:
        return self._key("notebook", "ref", id)

    def _ask(self, commands: Sequence[Command]) -> list[Any]:
        """The answers, of which an error can only be that a key has another type."""
        answers: list[Any] = []
        with self._asking() as client:
            for at in range(0, len(commands), _BATCH):
                pipe = client.pipeline(transaction=False)
                for command in commands[at : at + _BATCH]:
                    pipe.execute_command(*command)
                answers += pipe.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, Exception) and "WRONGTYPE" not in str(answer):
                    raise answer
        return answers

    @contextmanager
    def _asking(self) -> Iterator[Any]:
        """The client, each request with a deadline. Raises BackendDown with the driver's reason, without secrets."""
        import redis.backoff
        import redis.retry

        url, seconds = self._settings.url, self._settings.timeout_seconds
        # A connection that was closed meanwhile is made again once; nothing else is repeated.
        once = redis.retry.Retry(redis.backoff.NoBackoff(), 1, (redis.ConnectionError,))
        try:
            with self._lock:
                self._client = self._client or redis.Redis.from_url(
                    url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=once
                )
            yield self._client
        except (redis.RedisError, OSError, ValueError) as error:
            raise BackendDown(self.name, without_secrets(str(error), url)) from None


def keys_below(key: str) -> str:
    """The pattern of all keys that begin with this one and a colon."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", key) + ":*"


# ---- the shapes of values, and back


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


def row_of_hash(key: bytes, value: Any) -> Row:
    """A hash of ours as a row of long-term memory. Raises KeyError for one without our number of its time."""
    found = {_text(name): _text(each) for name, each in value.items()}
    at = datetime.fromtimestamp(float(found["at"]), UTC)
    return row_of_other(_text(key).rpartition(":")[2], str(at.date()), found, at)


def line_of(row: Row) -> dict[str, Any]:
    """The line of a day's list: an entry, flat, with the fields of the note that it names."""
    line = {name: row[name] for name in ("id", "content", "source", "tags", "score")}
    line |= {"timestamp": row["at"].isoformat(), **{name: row[name] for name in ("agent", "provenance") if row[name]}}
    if row["note"]:
        line |= {"type": "notebook_ref", "action": row["action"], "notebook_id": row["note"], "path": row["path"]}
        line |= {name: (row["ref"] or {}).get(name) for name in OF_NOTE}
    return line


def row_of_line(line: bytes, day: str) -> Row:
    """A line of ours as a row of the stream, of which `line_of` makes the same line. Raises KeyError, TypeError or
    ValueError for a line of another program."""
    found = json.loads(line)
    if missing := _OF_LINE.difference(found):
        raise KeyError(*missing)
    row = row_of_other(str(found["id"]), day, found, datetime.fromisoformat(found["timestamp"]))
    as_written = {name: found[name] for name in OF_NOTE} if row["note"] else None
    return {**row, "score": None if found["score"] is None else row["score"], "ref": as_written}


def checkpoint_of(row: Row) -> str:
    """The blob of a checkpoint, with what its body holds of the stream and the notes."""
    own = {"uuid": row["id"], "name": row["name"], "timestamp": row["at"].isoformat(), "commit": row["commit"]}
    return json.dumps({**own, **(row["body"] or {})}, default=str, ensure_ascii=False)


def row_of_checkpoint(key: bytes, value: Any) -> Row:
    """A checkpoint as a row. Raises as `row_of_line`."""
    found = json.loads(value)
    own = {"id": found.pop("uuid"), "name": found.pop("name"), "at": found.pop("timestamp")}
    return {**own, "commit": found.pop("commit", None), "created_by": "", "body": found}


def _is_imported(row: Row | None) -> bool:
    return row is not None and IMPORTED in (row.get("action"), row.get("created_by"))


def _set_hash(key: str, fields: Mapping[str, str]) -> Command:
    return ("HSET", key, *(each for pair in fields.items() for each in pair))


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
