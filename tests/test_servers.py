"""The server fixtures themselves: what a test asks of a server is what happens to it."""

from __future__ import annotations

import pymongo
import pytest
import redis

from tests.servers import Server, answers, start_mongod, start_redis_stack, unavailable


def test_a_paused_server_does_not_answer_until_it_goes_on(redis_to_break: Server) -> None:
    redis_to_break.pause()
    assert not answers(redis_to_break.url)
    redis_to_break.resume()
    assert answers(redis_to_break.url)


def test_a_killed_server_comes_back_at_its_port_with_its_data(redis_to_break: Server) -> None:
    with redis.Redis.from_url(redis_to_break.url) as client:
        client.set("a", "b")
        redis_to_break.kill()
        assert not answers(redis_to_break.url)
        redis_to_break.restart()
        assert client.get("a") == b"b"


def test_an_emptied_server_comes_back_with_nothing(redis_to_break: Server) -> None:
    with redis.Redis.from_url(redis_to_break.url) as client:
        client.set("a", "b")
        redis_to_break.restart(emptied=True)
        assert client.dbsize() == 0


def test_the_stack_has_search_and_json() -> None:
    server = start_redis_stack()
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        assert {"search", "ReJSON"} <= {module["name"] for module in client.module_list()}
    server.stop()


def test_a_replica_set_has_change_streams() -> None:
    server = start_mongod(replica_set=True)
    with pymongo.MongoClient(server.url) as client, client.test.notes.watch() as changes:
        client.test.notes.insert_one({"_id": 1})
        assert next(changes)["documentKey"] == {"_id": 1}
    server.stop()


def test_a_missing_server_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTEBOOK_TEST_REQUIRE_SERVERS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="not here"):
        unavailable("not here")
    monkeypatch.setenv("NOTEBOOK_TEST_REQUIRE_SERVERS", "1")
    with pytest.raises(pytest.fail.Exception, match="not here"):
        unavailable("not here")
