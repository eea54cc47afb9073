"""Hot memory on real Redis servers: plain, and with the search module."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, tzinfo
from typing import Any

import pytest
import redis
from redis.commands.core import ScriptCommands

from notebook_sync.errors import BackendDown, ConfigError
from notebook_sync.refs.base import Refs, Swap
from notebook_sync.refs.redis import RedisRefs
from tests.fault_proxy import FaultProxy, Mode
from tests.refs.contract import CALLS, RefsContract, gone, ref
from tests.refs.contract_memory import TODAY, Opener, Teller, entry, found
from tests.servers import Server, drop_keys, every_node, free_port
from tests.waiting import eventually


class RedisContract(RefsContract):
    """The contract, and what is stored where."""

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def open_refs(self, url: str, redis_prefix: str) -> Iterator[Opener]:
        def opened(timezone: tzinfo = UTC) -> RedisRefs:
            return RedisRefs(url, redis_prefix, timezone=timezone, timeout_seconds=30.0)

        yield opened
        drop_keys(url, redis_prefix)

    @pytest.fixture
    def tell(self, url: str, redis_prefix: str) -> Teller:
        def told(day: str, line: str) -> list[str]:
            key = f"{redis_prefix}:daily:{day}"
            with every_node(url) as nodes:
                for node in nodes:
                    with contextlib.suppress(redis.exceptions.MovedError):
                        node.rpush(key, line)
                        return [str(line) for line in node.lrange(key, 0, -1)]
            raise AssertionError("no node has the key")

        return told

    def test_a_restore_whose_answer_was_lost_and_that_is_sent_again_does_no_more(
        self, refs: Refs, tell: Teller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for n in range(5):
            refs.log(entry(f"old {n}"))
        send = ScriptCommands.eval

        def sent_twice(client: Any, *arguments: Any) -> Any:
            send(client, *arguments)
            return send(client, *arguments)

        monkeypatch.setattr(ScriptCommands, "eval", sent_twice)
        new = [entry(f"new {n}") for n in range(8)]
        refs.restore({TODAY: Swap(new, {f"old {n}" for n in range(5)})})
        assert [json.loads(line) for line in tell(TODAY, "0")] == [*new, 0]

    def test_what_is_told_while_a_restore_looks_stays_once(
        self, refs: Refs, open_refs: Opener, tell: Teller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refs.log(entry("old"))
        other = open_refs()
        swap = Swap([entry("new")], {"old"})
        meanwhile = [lambda: other.log(entry("logged")), lambda: other.restore({TODAY: swap})]
        send = ScriptCommands.eval

        def sent_late(client: Any, *arguments: Any) -> Any:
            if meanwhile:
                meanwhile.pop()()
            return send(client, *arguments)

        monkeypatch.setattr(ScriptCommands, "eval", sent_late)
        refs.restore({TODAY: swap})
        assert meanwhile == []
        assert [json.loads(line) for line in tell(TODAY, "0")] == [entry("new"), entry("logged"), 0]
        assert sorted(found(refs, "ferry")) == ["logged", "new"]
        other.close()

    def test_keys_and_their_types(self, refs: Refs, url: str, redis_prefix: str) -> None:
        refs.write([ref("pages/plan")])
        refs.adopt("store 1", ["pages/plan"])
        with every_node(url) as nodes:
            found = {key: node.type(key) for node in nodes for key in node.scan_iter(f"{redis_prefix}:*")}
        types = {key.removeprefix(redis_prefix): kind for key, kind in found.items()}
        (day,) = [key for key in types if key.startswith(":daily:")]
        assert types == {
            ":notebook:ref:pages/plan": "hash",
            ":notebook:recent": "zset",
            ":notebook:owner": "string",
            ":memory:days": "zset",
            day: "list",
        }

    def test_prefixes_do_not_see_each_other(self, refs: Refs, url: str, redis_prefix: str) -> None:
        other = RedisRefs(url, f"{redis_prefix}:other", timezone=UTC)
        refs.write([ref()])
        refs.adopt("store 1", ["pages/plan"])
        assert list(other.digests()) == []
        assert other.owner() == ""
        other.write([ref("theirs")])
        other.adopt("store 2", [])
        assert [note_id for note_id, _, _ in refs.digests()] == ["pages/plan"]
        other.close()

    def test_an_evicted_ref_is_as_good_as_never_written(self, refs: Refs, url: str, redis_prefix: str) -> None:
        refs.write([ref("pages/a", n=1), ref("pages/b", n=2)])
        with every_node(url) as nodes:
            for node in nodes:
                with contextlib.suppress(redis.exceptions.MovedError):
                    node.delete(f"{redis_prefix}:notebook:ref:pages/a")
        assert [note_id for note_id, _, _ in refs.digests()] == ["pages/b"]
        assert [entry["notebook_id"] for entry in refs.recent()] == ["pages/b"]

    def test_every_command_is_about_one_key(
        self, refs: Refs, url: str, redis_prefix: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What a cluster could not take is a command, or a transaction, over keys in different slots."""
        sent: list[tuple[str, ...]] = []
        send, pack = redis.connection.Connection.send_command, redis.connection.Connection.pack_commands

        def remember(connection: redis.connection.Connection, *arguments: Any, **options: Any) -> Any:
            sent.append(tuple(map(str, arguments)))
            return send(connection, *arguments, **options)

        def remember_all(connection: redis.connection.Connection, commands: Any) -> Any:
            commands = [tuple(command) for command in commands]
            sent.extend(tuple(map(str, command)) for command in commands)
            return pack(connection, commands)

        monkeypatch.setattr(redis.connection.Connection, "send_command", remember)
        monkeypatch.setattr(redis.connection.Connection, "pack_commands", remember_all)
        refs.write([ref("pages/a"), ref("pages/b"), gone("pages/c")])
        for call in CALLS.values():
            call(refs)
        ours = [command for command in sent if any(redis_prefix in argument for argument in command)]
        assert {command[0] for command in ours} >= {"HSET", "ZADD", "RPUSH", "DEL", "ZREM", "HMGET", "GET", "ZSCAN"}
        of_keys = [command for command in ours if not command[0].startswith("FT.")]  # a cluster is not asked to search
        assert all(sum(redis_prefix in argument for argument in command) == 1 for command in of_keys)
        assert {command[0] for command in sent}.isdisjoint({"MULTI", "EXEC", "KEYS", "SCAN"})


class TestPlainRedis(RedisContract):
    looks_through_all = False

    @pytest.fixture
    def url(self, redis_url: str) -> str:
        return redis_url


class TestRedisWithSearch(RedisContract):
    looks_through_all = True

    @pytest.fixture
    def url(self, redis_stack_url: str) -> Iterator[str]:
        yield redis_stack_url
        with redis.Redis.from_url(redis_stack_url, decode_responses=True) as client:
            for index in client.execute_command("FT._LIST"):
                client.execute_command("FT.DROPINDEX", index)


class TestRedisCluster(RedisContract):
    looks_through_all = False

    @pytest.fixture
    def url(self, redis_cluster_url: str) -> str:
        return redis_cluster_url


class TestTrouble:
    """A server that is gone, hangs, breaks connections or lost everything."""

    @pytest.fixture
    def server(self, redis_to_break: Server) -> Iterator[Server]:
        yield redis_to_break
        redis_to_break.restart(emptied=True)

    @pytest.fixture
    def refs(self, server: Server) -> Iterator[RedisRefs]:
        refs = RedisRefs(server.url, timezone=UTC, timeout_seconds=0.5)
        yield refs
        refs.close()

    @pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
    def test_no_driver_error_gets_out_where_nobody_listens(self, call: Callable[[Refs], object]) -> None:
        refs = RedisRefs(f"redis://127.0.0.1:{free_port()}", timezone=UTC, timeout_seconds=0.1)
        with pytest.raises(BackendDown, match=r"Redis at 127\.0\.0\.1:\d+ does not answer"):
            call(refs)
        refs.close()

    def test_no_driver_error_gets_out_while_it_hangs(self, refs: RedisRefs, server: Server) -> None:
        refs.write([ref()])
        server.pause()
        leaked = {}
        for name, call in CALLS.items():
            try:
                call(refs)
                leaked[name] = "an answer"
            except BackendDown:
                continue
            except Exception as error:
                leaked[name] = repr(error)
        server.resume()
        assert leaked == {}
        eventually(lambda: answered(refs), "an answer after it went on")
        assert refs.get("pages/plan") is not None

    def test_opening_asks_nothing_of_a_server_that_hangs(self, server: Server) -> None:
        server.pause()
        RedisRefs(server.url, timezone=UTC, timeout_seconds=3600).close()

    def test_a_connection_that_broke_while_idle_is_made_anew_unnoticed(self, refs: RedisRefs, server: Server) -> None:
        refs.write([ref()])
        with redis.Redis.from_url(server.url) as client:
            client.client_kill_filter(_type="normal", skipme=True)
        assert refs.get("pages/plan") is not None
        server.restart()
        refs.write([ref("pages/b")])
        assert len(list(refs.digests())) == 2

    def test_a_memory_that_was_emptied_has_no_owner(self, refs: RedisRefs, server: Server) -> None:
        refs.write([ref()])
        refs.adopt("store 1", ["pages/plan"])
        server.restart(emptied=True)
        assert refs.owner() == ""
        assert list(refs.digests()) == []

    @pytest.mark.parametrize("mode", ["reset", "refuse", "hang"])
    def test_a_broken_connection_is_down_and_then_works(self, server: Server, mode: Mode) -> None:
        with FaultProxy("127.0.0.1", server.port) as proxy:
            refs = RedisRefs(f"redis://127.0.0.1:{proxy.port}", timezone=UTC, timeout_seconds=0.5)
            refs.write([ref()])
            proxy.mode = mode
            with pytest.raises(BackendDown):
                refs.write([ref("pages/b")])
            proxy.mode = "pass"
            eventually(lambda: answered(refs), f"an answer after {mode}")
            refs.write([ref("pages/c")])
            assert refs.get("pages/c") is not None
            refs.close()

    def test_a_refused_command_is_down_too(self, refs: RedisRefs, server: Server) -> None:
        with redis.Redis.from_url(server.url) as client:
            client.set("aether:notebook:recent", "not a sorted set")
        with pytest.raises(BackendDown, match="WRONGTYPE"):
            refs.recent()


class TestNames:
    def test_no_secret_is_in_the_name_or_a_message(self) -> None:
        refs = RedisRefs("redis://reader:p%40ss-w0rd@127.0.0.1:1/3", timezone=UTC, timeout_seconds=0.1)
        assert refs.name == "Redis at 127.0.0.1:1/3"
        with pytest.raises(BackendDown) as down:
            refs.owner()
        assert not any(secret in str(down.value) for secret in ("p%40ss-w0rd", "p@ss-w0rd", "reader"))
        refs.close()

    @pytest.mark.parametrize("url", ["http://u:s3cret@host", "redis://u:s3cret@host:port/0", "s3cret"])
    def test_what_is_no_address_is_a_config_error_without_the_secret(self, url: str) -> None:
        with pytest.raises(ConfigError) as error:
            RedisRefs(url, timezone=UTC)
        assert "s3cret" not in str(error.value)


def answered(refs: Refs) -> bool:
    try:
        refs.owner()
    except BackendDown:
        return False
    return True
