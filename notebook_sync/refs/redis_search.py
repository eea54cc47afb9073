"""The search index of a Redis that has the search module, loaded or built in: made, checked, and asked for candidates.

{prefix}:memory:idx    over the hashes of refs, of logged entries and of what was kept

No key but the index is ever dropped, and nothing that is looked for is part of a query's grammar: a query is made of
words, and a tag goes beside it as a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor
from typing import TYPE_CHECKING, Any

from redis.exceptions import ResponseError

from notebook_sync.refs.base import Entry, Meaning, Model
from notebook_sync.refs.entry import entry_from_hash, entry_of_ref
from notebook_sync.refs.ranking import NEAREST, POOL, Candidates, words
from notebook_sync.refs.redis_connection import Connection
from notebook_sync.refs.redis_vectors import (
    EMBEDDED,
    PIECE,
    embed_at,
    field_of,
    kind_of,
    raw_hits_of,
    text_in,
    texts_in,
    total_of,
    vector_in,
)

if TYPE_CHECKING:
    from notebook_sync.refs.base import Embed, Vector

_TEXT_WEIGHT = 2.0
# `words` has those of a text in which the module would not find them all. No word is left out of the index: a query
# leaves common ones out by itself.
_SCHEMA: dict[str, tuple[str, ...]] = {
    "content": ("TEXT", "WEIGHT", str(_TEXT_WEIGHT)),
    "words": ("TEXT", "WEIGHT", str(_TEXT_WEIGHT)),
    "source": ("TEXT",),
    "tags": ("TAG",),
    "score": ("NUMERIC",),
    "timestamp": ("NUMERIC", "SORTABLE"),
}
_PLAIN = re.compile(r"[ -\[\]-~]*")
NO_INDEX = re.compile(r"no such index|unknown index name", re.IGNORECASE)
NO_MODULE = re.compile(r"unknown command", re.IGNORECASE)


def for_search(fields: dict[str, str]) -> dict[str, str]:
    """A hash with the `words` that the module would not find in its texts: it knows ASCII's marks between words, no
    others and no end of a line, and ends at a NUL. A vector that the hash has is from now on none of what it says."""
    texts = [fields["content"], fields["source"]]
    hidden = not all(map(_PLAIN.fullmatch, texts))
    return {**fields, "words": " ".join(words(" ".join(texts))) if hidden else "", EMBEDDED: ""}


@dataclass(frozen=True, slots=True)
class Found:
    """is_whole: whether the index has all that there is. behind: how many of it have no vector yet."""

    candidates: Candidates
    is_whole: bool
    behind: int = 0


class NoSearch(Exception):
    """Why this Redis cannot be searched. Stays within the adapter."""


class SearchIndex:
    """The index below one prefix. Nothing is asked of the server before it is needed."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._redis = connection
        self._name = f"{prefix}:memory:idx"
        self._kinds = {
            f"{prefix}:notebook:ref:": _of_ref,
            f"{prefix}:daily:D:": entry_from_hash,
            f"{prefix}:longterm:": entry_from_hash,
        }
        self._prefixes = [f"{prefix}:daily:", f"{prefix}:longterm:", f"{prefix}:notebook:ref:"]
        self._is_whole = False
        self._dimensions = 0

    def prepare(self, dimensions: int = 0) -> None:
        """Make the index where it is not there, or is another than it should be. dimensions: of the vectors that it
        shall have. Raises NoSearch, BackendDown."""
        if self._redis.is_cluster():
            raise NoSearch("a Redis Cluster is not searched")
        with self._redis.asking() as client:
            try:
                self._make(client, dimensions)
            except ResponseError as refusal:
                raise no_search(refusal) from None

    def candidates(
        self, asked: Sequence[str], tags: Sequence[str], since: datetime | None, meaning: Meaning | None
    ) -> Found:
        """The best matches, or the newest where no word is asked for; with a meaning, the nearest too. Raises NoSearch,
        BackendDown."""
        model = meaning.model if meaning else None
        commands = [self._by_words(asked, tags, since)]
        if meaning:
            commands += [self._by_meaning(meaning, tags, since), self._behind(meaning.model, 0)]
        replies = self._ask(commands, model)
        found: dict[str, Entry] = {}
        vectors: dict[str, Vector] = {}
        for key, fields in (hit for reply in replies[:2] for hit in raw_hits_of(reply)):
            entry = self._entry(key, texts_in(fields))
            if entry is None or key in found:
                continue
            found[key] = entry
            if model and (vector := vector_in(fields, model)) is not None:
                vectors[key] = vector
        behind = total_of(replies[2]) if meaning else 0
        return Found(_candidates(found, vectors), self._is_whole, behind)

    def embed(self, model: Model, embed: Embed, limit: int) -> int:
        """Give what is behind its vectors, the newest first, `limit` at the most; how many. Raises as `candidates`."""
        done = 0
        while done < limit:
            (reply,) = self._ask([self._behind(model, min(PIECE, limit - done))], model)
            hits = raw_hits_of(reply)
            if not hits:
                break
            _, kept = embed_at(self._redis, model, embed, {key: _said(fields) for key, fields in hits})
            if not kept:
                break
            done += kept
        return done

    def _ask(self, commands: Sequence[Sequence[Any]], model: Model | None) -> list[Any]:
        """What an index that has all these fields answers, not taken for text: vectors are none."""
        dimensions = model.dimensions if model else 0
        if not self._is_whole or dimensions not in (0, self._dimensions):
            self.prepare(dimensions)
        for is_last in (False, True):
            with self._redis.pipeline() as pipeline:
                for command in commands:
                    pipeline.execute_command(*command, NEVER_DECODE=True)
                replies: list[Any] = pipeline.execute(raise_on_error=False)
            refusal = next((reply for reply in replies if isinstance(reply, ResponseError)), None)
            if refusal is None:
                break
            if is_last or not NO_INDEX.search(str(refusal)):
                raise no_search(refusal)
            self._is_whole = False  # emptied since it was made
            self.prepare(dimensions)
        return replies

    def _by_words(self, asked: Sequence[str], tags: Sequence[str], since: datetime | None) -> list[Any]:
        parts = [f"@content|words|source:({'|'.join(asked)})"] if asked else []
        command = self._query([*parts, *_narrowed(tags, since)], POOL, _named_tags(tags))
        return command if asked else [*command, "SORTBY", "timestamp", "DESC"]

    def _by_meaning(self, meaning: Meaning, tags: Sequence[str], since: datetime | None) -> list[Any]:
        among = " ".join([f"@{EMBEDDED}:{{{kind_of(meaning.model)}}}", *_narrowed(tags, since)])
        given: dict[str, str | bytes] = {**_named_tags(tags), "query": meaning.vector.astype("<f4").tobytes()}
        nearest = f"({among})=>[KNN {NEAREST} @{field_of(meaning.model)} $query AS distance]"
        return [*self._query([nearest], NEAREST, given), "SORTBY", "distance"]

    def _behind(self, model: Model, count: int) -> list[Any]:
        command = self._query([f"-@{EMBEDDED}:{{{kind_of(model)}}}"], count, {})
        return [*command, "SORTBY", "timestamp", "DESC", "RETURN", 3, "content", "title", "summary"]

    def _query(self, parts: Sequence[str], count: int, given: Mapping[str, str | bytes]) -> list[Any]:
        command: list[Any] = ["FT.SEARCH", self._name, " ".join(parts) or "*"]
        command += ["LIMIT", 0, count, "DIALECT", 2]  # numbers that RETURN names are told in twelve digits
        parameters = [part for pair in given.items() for part in pair]
        return [*command, "PARAMS", len(parameters), *parameters] if parameters else command

    def _make(self, client: Any, dimensions: int) -> None:
        try:
            told = pairs(client.execute_command("FT.INFO", self._name))
        except ResponseError as refusal:
            if not NO_INDEX.search(str(refusal)):
                raise
            told = None
        wanted = {**_SCHEMA, **_of_vectors(dimensions)} if dimensions else _SCHEMA
        if told is not None and not self._fits(told, wanted):
            client.execute_command("FT.DROPINDEX", self._name)  # without DD: the hashes stay
            told = None
        if told is None:
            create = ["FT.CREATE", self._name, "ON", "HASH", "PREFIX", len(self._prefixes), *self._prefixes]
            schema = [part for name, definition in wanted.items() for part in (name, *definition)]
            try:
                client.execute_command(*create, "STOPWORDS", 0, "SCHEMA", *schema)
            except ResponseError as refusal:
                if "already exists" not in str(refusal):  # another process was as quick
                    raise
            told = pairs(client.execute_command("FT.INFO", self._name))
        self._is_whole = not int(told["indexing"])
        self._dimensions = dimensions

    def _fits(self, told: Mapping[str, Any], wanted: Mapping[str, Sequence[Any]]) -> bool:
        """Whether an index that is there finds what ours would; it may know more fields."""
        definition = pairs(told["index_definition"])
        fields = {field["identifier"]: field for field in map(pairs, told["attributes"])}
        return (
            definition["key_type"] == "HASH"
            and sorted(definition["prefixes"]) == sorted(self._prefixes)
            and not told.get("stopwords_list", [""])
            and all(
                name in fields
                and fields[name]["type"] == kind
                and (kind != "TEXT" or float(fields[name]["WEIGHT"]) == float(more[1] if more else 1))
                for name, (kind, *more) in wanted.items()
            )
        )

    def _entry(self, key: str, fields: Mapping[str, str]) -> Entry | None:
        for prefix, read in self._kinds.items():
            if key.startswith(prefix):
                return read(key.removeprefix(prefix), fields)
        return None


def _of_vectors(dimensions: int) -> dict[str, tuple[Any, ...]]:
    """What an index of vectors has beside the rest. They are compared one by one, which is exact: what is hot is not so
    much, and is written more often than it is asked for."""
    of = ("VECTOR", "FLAT", 6, "TYPE", "FLOAT32", "DIM", dimensions, "DISTANCE_METRIC", "COSINE")
    return {EMBEDDED: ("TAG",), field_of(Model("", dimensions)): of}


def _candidates(entries: Mapping[str, Entry], vectors: Mapping[str, Vector]) -> Candidates:
    if not vectors:
        return Candidates(list(entries.values()))
    from notebook_sync.refs.likeness import key_of  # which imports arrays

    return Candidates(list(entries.values()), {key_of(entries[key]): vector for key, vector in vectors.items()})


def _narrowed(tags: Sequence[str], since: datetime | None) -> list[str]:
    parts = [f"@tags:{{{'|'.join(f'$tag{n}' for n in range(len(tags)))}}}"] if tags else []
    if since is not None:
        parts.append(f"@timestamp:[{floor(since.timestamp() * 1000) / 1000:.3f} +inf]")
    return parts


def _named_tags(tags: Sequence[str]) -> dict[str, str]:
    return {f"tag{n}": tag for n, tag in enumerate(tags)}


def _said(fields: Mapping[str, bytes]) -> tuple[bytes, str]:
    """What a hash says, and what of it is embedded: as `likeness.text_of` of its entry."""
    content = fields.get("content", b"")
    if "title" in fields:
        return content, f"{text_in(fields['title'])}\n{text_in(fields.get('summary', b''))}"
    return content, text_in(content)


def no_search(refusal: ResponseError) -> NoSearch:
    """What a refusal says of this Redis."""
    reason = str(refusal)
    return NoSearch(
        "this Redis has no search module" if NO_MODULE.search(reason) else f"this Redis makes no index ({reason})"
    )


def _of_ref(_: str, fields: Mapping[str, str]) -> Entry | None:
    """None for a hash of others: whose note it is could not be told."""
    return entry_of_ref(fields) if {"notebook_id", "path"} <= fields.keys() else None


def hits_of(reply: Any) -> list[tuple[str, dict[str, str]]]:
    """Key and fields of each hit, as either protocol tells them."""
    if isinstance(reply, dict):
        return [(hit["id"], hit["extra_attributes"]) for hit in reply["results"]]
    return list(zip(reply[1::2], map(pairs, reply[2::2]), strict=True))


def pairs(told: Any) -> dict[str, Any]:
    """A map, which the older protocol tells as a list of names and values; names without a value stand at its end."""
    return told if isinstance(told, dict) else dict(zip(told[::2], told[1::2], strict=False))
