"""Hot memory on fakeredis; never the only proof. It has no search module."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any

import fakeredis
import pytest

from notebook_sync.refs.redis import RedisRefs
from tests.refs.contract import Opener, RefsContract


class TestFakeredis(RefsContract):
    @pytest.fixture
    def open_refs(self) -> Opener:
        server = fakeredis.FakeServer()

        def opened(timezone: tzinfo = UTC) -> RedisRefs:
            client: Any = fakeredis.FakeRedis(server=server, decode_responses=True)
            return RedisRefs("redis://fake", "test", timezone=timezone, client=client)

        return opened
