"""Syntheses on a real MongoDB."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.mirror.syntheses_mongo import MongoSyntheses
from notebook_sync.patience import Silence
from tests.context.syntheses_contract import Opener, SynthesesContract
from tests.servers import free_port


class TestMongoSyntheses(SynthesesContract):
    @pytest.fixture
    def open_syntheses(self, mongodb_url: str, mongo_database: str) -> Opener:
        return partial(MongoSyntheses, mongodb_url, mongo_database, timeout_seconds=30.0)

    @pytest.fixture
    def mirror(self, mongodb_url: str, mongo_database: str) -> Iterator[Mirror]:
        mirror = MongoMirror(mongodb_url, mongo_database, timeout_seconds=30.0)
        yield mirror
        mirror.close()


def test_a_server_that_is_not_there_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Silence, "trouble", "")  # each call is the first to find out
    store = MongoSyntheses(f"mongodb://127.0.0.1:{free_port()}", timeout_seconds=0.2)
    with pytest.raises(BackendDown):
        store.get("k1")
    with pytest.raises(BackendDown):
        store.spend("2026-03-01", 5)
    store.close()
