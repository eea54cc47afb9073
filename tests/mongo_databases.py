"""Databases that tests use one after the other: making the collections and indexes of one takes longer than most tests.

What a test leaves behind never reaches the next: rows go, and a database whose shape was changed is dropped.
"""

from __future__ import annotations

import uuid
from typing import Any

import pymongo

from notebook_sync.mirror.mongo import MongoMirror

Shape = dict[str, Any]


class EmptiedDatabases:
    """Of one server, for one process that runs one test at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(url)
        self._free: list[str] = []
        self._shape: Shape = {}

    def take(self) -> str:
        """The name of one that nobody uses."""
        return self._free.pop() if self._free else self._made()

    def give_back(self, name: str) -> None:
        """Empty it for the next, or drop it where it is no longer as it was made."""
        database = self._client[name]
        for collection in database.list_collection_names():
            if collection in self._shape:
                database[collection].delete_many({})
            else:
                database.drop_collection(collection)
        if self._shape_of(name) == self._shape:
            self._free.append(name)
        else:
            self._client.drop_database(name)

    def close(self) -> None:
        for name in self._free:
            self._client.drop_database(name)
        self._client.close()

    def _made(self) -> str:
        name = new_name()
        mirror = MongoMirror(self._url, name)
        mirror.note_count()
        mirror.close()
        if not self._shape:
            self._shape = self._shape_of(name)
        self.give_back(name)
        return self._free.pop()

    def _shape_of(self, name: str) -> Shape:
        database = self._client[name]
        return {
            one["name"]: (one["options"], sorted(database[one["name"]].index_information().items(), key=str))
            for one in database.list_collections()
        }


def new_name() -> str:
    """One that no other test has."""
    return f"notebook_test_{uuid.uuid4().hex}"
