"""How a MongoDB's database is asked: each request has a deadline, and errors are worded. No password is shown."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pymongo
from bson.errors import BSONError
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import PyMongoError

from notebook_sync.address import Address
from notebook_sync.errors import BackendDown
from notebook_sync.files.note import COLLECTIONS
from notebook_sync.mirror.mongo_schema import make_schema
from notebook_sync.mirror.mongo_server import Server

# What pymongo appends to the first cause: the timeouts it was given and all it knows of every server.
_APPENDIX = re.compile(r"( \(configured timeouts:|, Timeout: |, full error: ).*", re.DOTALL)

Condition = Mapping[str, Any]


class Connection:
    """One database of one server. Opening asks nothing of the server; the first request makes what it lacks."""

    def __init__(self, url: str, database: str, timeout_seconds: float, client: MongoClient[Any] | None) -> None:
        self._address = Address.of(url)
        self.name = f"MongoDB at {self._address.place.partition('/')[0]}/{database}"
        self._timeout = timeout_seconds
        self._is_closed = False
        self._server = (
            Server.at(url, timeout_seconds) if client is None else Server(client, timeout_seconds, closes_client=False)
        )
        self._database: Database[dict[str, Any]] = self._server.client[database]
        self._has_schema = False
        self._making_schema = threading.Lock()
        self._failed_attempts = 0
        self._why_failed = ""

    @contextmanager
    def asking(self) -> Iterator[Database[dict[str, Any]]]:
        """The database, for one read: answered in time, repetitions included, or `BackendDown`."""
        with self.telling() as database, pymongo.timeout(self._timeout):
            yield database

    def found(self, condition: Condition, fields: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """What of every collection meets the condition, whole or these fields of it, by one request: seven collections
        asked one by one are what saving a note would wait for."""
        steps: list[dict[str, Any]] = [{"$match": condition}]
        if fields is not None:
            steps.append({"$project": dict.fromkeys(fields, 1)})
        first, *others = COLLECTIONS
        unions = [{"$unionWith": {"coll": name, "pipeline": steps}} for name in others]
        with self.asking() as database:
            return list(database[first].aggregate([*steps, *unions]))

    def first(self, asked: Mapping[str, Sequence[Any]], order: Mapping[str, int], limit: int) -> list[dict[str, Any]]:
        """Of the rows that a pipeline for each of some collections finds, the first in `order`, by one request."""
        if not asked:
            return []
        (name, steps), *others = asked.items()
        unions = [{"$unionWith": {"coll": other, "pipeline": more}} for other, more in others]
        with self.asking() as database:
            return list(database[name].aggregate([*steps, *unions, {"$sort": order}, {"$limit": limit}]))

    @contextmanager
    def telling(self) -> Iterator[Database[dict[str, Any]]]:
        """The database, for one write. The server is not told to break it off when time is up, only no longer waited
        for: what it finishes late is found made by the next attempt, which else would be too late again.
        """
        if self._is_closed:  # the client may go on for others
            raise BackendDown(self.name, "it was closed here")
        with mirror_errors(self.name, self._address), self._server.answering():
            self._make_schema()
            yield self._database

    def forget_schema(self) -> None:
        """The database turned out to be empty: make collections and indexes at the next request."""
        self._has_schema = False

    def close(self) -> None:
        """Leave the server; a client that was passed in stays open. A later use is `BackendDown`. Twice is allowed."""
        if not self._is_closed:
            self._server.leave()
        self._is_closed = True

    def _make_schema(self) -> None:
        """Like a write, not broken off when time is up: an index over many notes takes longer to make than a request
        is waited for, and a later one finds it made.

        Whoever waited for an attempt that failed has waited long enough: it failed for them, too.
        """
        if self._has_schema:
            return
        failed_before = self._failed_attempts
        with self._making_schema:
            if self._has_schema:
                return
            if self._failed_attempts != failed_before:
                raise PyMongoError(self._why_failed)
            try:
                make_schema(self._database)
            except (PyMongoError, BSONError) as error:
                self._why_failed = str(error)
                self._failed_attempts += 1
                raise
            self._has_schema = True


@contextmanager
def mirror_errors(name: str, address: Address) -> Iterator[None]:
    """Turn whatever the driver raises into `BackendDown`."""
    try:
        yield
    except (PyMongoError, BSONError) as error:
        reason = address.without_secrets(_APPENDIX.sub("", str(error)))
        raise BackendDown(name, reason) from None
