"""Hot memory on fakeredis; never the only proof. It has no search module."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any

import fakeredis
import pytest

from notebook_sync.refs.redis import RedisRefs
from tests.refs.contract import Opener, RefsContract
from tests.refs.contract_memory import Teller


class TestFakeredis(RefsContract):
    looks_through_all = False

    @pytest.fixture
    def client(self) -> Any:
        return fakeredis.FakeRedis(server=fakeredis.FakeServer(), decode_responses=True)

    @pytest.fixture
    def tell(self, client: Any) -> Teller:
        def told(day: str, line: str) -> list[str]:
            client.rpush(f"test:daily:{day}", line)
            return list(client.lrange(f"test:daily:{day}", 0, -1))

        return told

    @pytest.fixture
    def open_refs(self, client: Any) -> Opener:
        def opened(timezone: tzinfo = UTC) -> RedisRefs:
            return RedisRefs("redis://fake", "test", timezone=timezone, client=client)

        return opened
