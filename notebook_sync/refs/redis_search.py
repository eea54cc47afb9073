"""The search index of a Redis that has the search module, loaded or built in: made, checked, and asked for candidates.

{prefix}:memory:idx    over the hashes of refs, of logged entries and of what was kept

No key but the index is ever dropped, and nothing that is looked for is part of a query's grammar: a query is made of
words, and a tag goes beside it as a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import floor
from typing import Any

from redis.exceptions import ResponseError

from notebook_sync.refs.base import Entry
from notebook_sync.refs.entry import entry_from_hash, entry_of_ref
from notebook_sync.refs.ranking import POOL, words
from notebook_sync.refs.redis_connection import Connection

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
_NO_INDEX = re.compile(r"no such index|unknown index name", re.IGNORECASE)
_NO_MODULE = re.compile(r"unknown command", re.IGNORECASE)


def for_search(fields: dict[str, str]) -> dict[str, str]:
    """A hash with the `words` that the module would not find in its texts: it knows ASCII's marks between words, no
    others and no end of a line, and ends at a NUL."""
    texts = [fields["content"], fields["source"]]
    hidden = not all(map(_PLAIN.fullmatch, texts))
    return {**fields, "words": " ".join(words(" ".join(texts))) if hidden else ""}


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

    def prepare(self) -> None:
        """Make the index where it is not there, or is another than it should be. Raises NoSearch, BackendDown."""
        if self._redis.is_cluster():
            raise NoSearch("a Redis Cluster is not searched")
        with self._redis.asking() as client:
            try:
                self._make(client)
            except ResponseError as refusal:
                raise self._no_search(refusal) from None

    def candidates(self, asked: Sequence[str], tags: Sequence[str], since: datetime | None) -> tuple[list[Entry], bool]:
        """The best matches, or the newest where no word is asked for; and whether the index has all that there is.

        Raises NoSearch, BackendDown.
        """
        if not self._is_whole:
            self.prepare()
        command = self._query(asked, tags, since)
        with self._redis.asking() as client:
            try:
                reply = client.execute_command(*command)
            except ResponseError as refusal:
                if not _NO_INDEX.search(str(refusal)):
                    raise self._no_search(refusal) from None
                reply = None
        if reply is None:  # emptied since it was made
            self._is_whole = False
            self.prepare()
            with self._redis.asking() as client:
                reply = client.execute_command(*command)
        found = (self._entry(key, fields) for key, fields in _rows(reply))
        return [entry for entry in found if entry is not None], self._is_whole

    def _query(self, asked: Sequence[str], tags: Sequence[str], since: datetime | None) -> list[str | int]:
        parts = [f"@content|words|source:({'|'.join(asked)})"] if asked else []
        if tags:
            parts.append(f"@tags:{{{'|'.join(f'$tag{n}' for n in range(len(tags)))}}}")
        if since is not None:
            parts.append(f"@timestamp:[{floor(since.timestamp() * 1000) / 1000:.3f} +inf]")
        command: list[str | int] = ["FT.SEARCH", self._name, " ".join(parts) or "*"]
        command += ["LIMIT", 0, POOL, "DIALECT", 2]  # numbers that RETURN names are told in twelve digits
        if tags:
            command += ["PARAMS", 2 * len(tags)]
            for n, tag in enumerate(tags):
                command += [f"tag{n}", tag]
        return command if asked else [*command, "SORTBY", "timestamp", "DESC"]

    def _make(self, client: Any) -> None:
        try:
            told = _pairs(client.execute_command("FT.INFO", self._name))
        except ResponseError as refusal:
            if not _NO_INDEX.search(str(refusal)):
                raise
            told = None
        if told is not None and not self._fits(told):
            client.execute_command("FT.DROPINDEX", self._name)  # without DD: the hashes stay
            told = None
        if told is None:
            create = ["FT.CREATE", self._name, "ON", "HASH", "PREFIX", len(self._prefixes), *self._prefixes]
            schema = [part for name, definition in _SCHEMA.items() for part in (name, *definition)]
            try:
                client.execute_command(*create, "STOPWORDS", 0, "SCHEMA", *schema)
            except ResponseError as refusal:
                if "already exists" not in str(refusal):  # another process was as quick
                    raise
            told = _pairs(client.execute_command("FT.INFO", self._name))
        self._is_whole = not int(told["indexing"])

    def _fits(self, told: Mapping[str, Any]) -> bool:
        """Whether an index that is there finds what ours would; it may know more fields."""
        definition = _pairs(told["index_definition"])
        fields = {field["identifier"]: field for field in map(_pairs, told["attributes"])}
        return (
            definition["key_type"] == "HASH"
            and sorted(definition["prefixes"]) == sorted(self._prefixes)
            and not told.get("stopwords_list", [""])
            and all(
                name in fields
                and fields[name]["type"] == kind
                and (kind != "TEXT" or float(fields[name]["WEIGHT"]) == float(more[1] if more else 1))
                for name, (kind, *more) in _SCHEMA.items()
            )
        )

    def _entry(self, key: str, fields: Mapping[str, str]) -> Entry | None:
        for prefix, read in self._kinds.items():
            if key.startswith(prefix):
                return read(key.removeprefix(prefix), fields)
        return None

    def _no_search(self, refusal: ResponseError) -> NoSearch:
        reason = str(refusal)
        return NoSearch(
            "this Redis has no search module" if _NO_MODULE.search(reason) else f"this Redis makes no index ({reason})"
        )


def _of_ref(_: str, fields: Mapping[str, str]) -> Entry | None:
    """None for a hash of others: whose note it is could not be told."""
    return entry_of_ref(fields) if {"notebook_id", "path"} <= fields.keys() else None


def _rows(reply: Any) -> list[tuple[str, dict[str, str]]]:
    """Key and fields of each hit, as either protocol tells them."""
    if isinstance(reply, dict):
        return [(hit["id"], hit["extra_attributes"]) for hit in reply["results"]]
    return list(zip(reply[1::2], map(_pairs, reply[2::2]), strict=True))


def _pairs(told: Any) -> dict[str, Any]:
    """A map, which the older protocol tells as a list of names and values; names without a value stand at its end."""
    return told if isinstance(told, dict) else dict(zip(told[::2], told[1::2], strict=False))
