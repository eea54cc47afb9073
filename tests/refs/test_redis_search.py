"""The search index: how it is made, when it is made anew, and what recall does where it cannot be had."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from notebook_sync.refs.base import Refs
from notebook_sync.refs.redis import RedisRefs
from notebook_sync.refs.redis_search import SearchIndex
from tests.refs.contract import CALLS
from tests.refs.contract_memory import NOW, await_index, entry, found
from tests.refs.meanings import Axes
from tests.servers import drop_keys
from tests.waiting import eventually

SPEC = ["content", "TEXT", "WEIGHT", "2", "source", "TEXT", "tags", "TAG", "score", "NUMERIC", "timestamp", "NUMERIC"]


@pytest.fixture
def client(redis_stack_url: str, redis_prefix: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_stack_url, decode_responses=True) as client:
        yield client
        for index in client.execute_command("FT._LIST"):
            if index.startswith(redis_prefix):
                client.execute_command("FT.DROPINDEX", index)
    drop_keys(redis_stack_url, redis_prefix)


@pytest.fixture
def refs(client: redis.Redis, redis_stack_url: str, redis_prefix: str) -> Iterator[RedisRefs]:
    refs = RedisRefs(redis_stack_url, redis_prefix, timezone=UTC, timeout_seconds=30.0)
    yield refs
    refs.close()


def made(client: redis.Redis, prefix: str) -> dict[str, Any]:
    """What the server tells of the index."""
    told: dict[str, Any] = client.execute_command("FT.INFO", f"{prefix}:memory:idx")
    return told


def test_adopting_makes_the_index_so_that_other_programs_find_it(
    refs: RedisRefs, client: redis.Redis, redis_prefix: str
) -> None:
    refs.adopt("store", [])
    told = made(client, redis_prefix)
    prefixes = ["daily:", "longterm:", "notebook:ref:"]
    assert told["index_definition"]["prefixes"] == [f"{redis_prefix}:{prefix}" for prefix in prefixes]
    fields = {field["identifier"]: field for field in told["attributes"]}
    types = {name: fields[name]["type"] for name in ("content", "source", "tags", "score", "timestamp")}
    assert types == {"content": "TEXT", "source": "TEXT", "tags": "TAG", "score": "NUMERIC", "timestamp": "NUMERIC"}
    assert fields["content"]["WEIGHT"] == 2.0


def test_recall_looks_through_everything_there_is(refs: RedisRefs) -> None:
    refs.log(entry("old", age=timedelta(days=100)))
    refs.log(entry("new"))
    eventually(lambda: refs.recall("ferry", now=NOW).partial == "", "an index of all")
    assert found(refs, "ferry") == ["new", "old"]


def test_an_index_that_fits_is_left_alone_also_where_it_has_more_fields(
    refs: RedisRefs, client: redis.Redis, redis_stack_url: str, redis_prefix: str
) -> None:
    refs.recall("ferry", now=NOW)
    client.execute_command("FT.ALTER", f"{redis_prefix}:memory:idx", "SCHEMA", "ADD", "agent", "TAG")
    other = RedisRefs(redis_stack_url, redis_prefix, timezone=UTC)
    other.recall("ferry", now=NOW)
    other.close()
    assert "agent" in {field["identifier"] for field in made(client, redis_prefix)["attributes"]}


@pytest.mark.parametrize("schema", [SPEC, [*SPEC, "words", "TAG"], ["else", "TEXT"]])
@pytest.mark.parametrize("prefixes", [["daily:"], ["daily:", "longterm:", "notebook:ref:"]])
def test_an_index_of_another_kind_is_made_anew_and_no_key_is_lost(
    refs: RedisRefs, client: redis.Redis, redis_prefix: str, schema: list[str], prefixes: list[str]
) -> None:
    refs.log(entry("a", "The harbour\nferry."))
    below = [f"{redis_prefix}:{prefix}" for prefix in prefixes]
    create = ["FT.CREATE", f"{redis_prefix}:memory:idx", "ON", "HASH", "PREFIX", str(len(below)), *below]
    client.execute_command(*create, "SCHEMA", *schema)
    keys = sorted(client.scan_iter(f"{redis_prefix}:*"))
    assert found(refs, "ferry") == ["a"]
    assert "words" in {field["identifier"] for field in made(client, redis_prefix)["attributes"]}
    assert sorted(client.scan_iter(f"{redis_prefix}:*")) == keys


def test_an_index_has_vectors_once_somebody_recalls_by_meaning(
    refs: RedisRefs, client: redis.Redis, redis_prefix: str
) -> None:
    refs.adopt("store", [])
    refs.log(entry("a", "A boat."))
    refs.keep(entry("b", "A boat."))
    of_vectors = {}
    for axes in (Axes(), Axes("longer", 12)):
        meaning = axes.meaning("vessel")
        eventually(lambda meaning=meaning: refs.recall("vessel", now=NOW, meaning=meaning).partial == "", "of all")
        assert sorted(found(refs, "vessel", meaning=meaning)) == ["a", "b"]
        assert sorted(found(refs, "boat")) == ["a", "b"]
        fields = {field["identifier"]: field for field in made(client, redis_prefix)["attributes"]}
        of_vectors = {name: field for name, field in fields.items() if name.startswith("vector_")}
        for key in ("daily:D:a", "longterm:b"):
            names = {name for name in client.hkeys(f"{redis_prefix}:{key}") if name.startswith("vector_")}
            assert names == of_vectors.keys()
    assert [(name, field["type"]) for name, field in of_vectors.items()] == [("vector_12", "VECTOR")]


def test_an_index_that_has_vectors_is_left_alone_by_who_recalls_by_words(
    refs: RedisRefs, client: redis.Redis, redis_stack_url: str, redis_prefix: str
) -> None:
    refs.recall("boat", now=NOW, meaning=Axes().meaning("boat"))
    other = RedisRefs(redis_stack_url, redis_prefix, timezone=UTC)
    other.recall("boat", now=NOW)
    other.close()
    assert "embedded" in {field["identifier"] for field in made(client, redis_prefix)["attributes"]}


def test_who_may_not_write_recalls_by_words_and_says_so(
    refs: RedisRefs, client: redis.Redis, redis_stack_url: str, redis_prefix: str
) -> None:
    refs.log(entry("a", "A boat."))
    rights = ["on", ">s3cret", f"~{redis_prefix}:*", "-@all", "+ft.info", "+ft.search", "+ft.create", "+ft.dropindex"]
    rights += [f"+{right}" for right in ("hmget", "zrange", "zrevrange", "lrange")]
    client.execute_command("ACL", "SETUSER", "odile", "reset", *rights)
    reader = RedisRefs(redis_stack_url.replace("//", "//odile:s3cret@"), redis_prefix, timezone=UTC)
    told = "1 entries and notes have no vectors yet and are found by their words alone: notebook-sync sync"
    meaning = Axes().meaning("boat")
    eventually(lambda: reader.recall("boat", now=NOW, meaning=meaning).partial == told, "an index of all")
    assert found(reader, "boat", meaning=meaning) == ["a"]
    assert found(reader, "vessel", meaning=Axes().meaning("vessel")) == []
    reader.close()
    client.execute_command("ACL", "DELUSER", "odile")


def test_what_comes_into_an_index_while_others_are_embedded_is_embedded_too(
    refs: RedisRefs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5):
        refs.log(entry(f"{n}", "A boat."))
    await_index(refs, axes := Axes())
    embed = SearchIndex.embed
    monkeypatch.setattr(SearchIndex, "embed", lambda search, model, made, limit: embed(search, model, made, 1))
    recalled = refs.recall("vessel", now=NOW, meaning=axes.meaning("vessel"))
    assert (len(recalled.results), recalled.partial) == (5, "")


def test_without_the_module_what_is_looked_through_is_compared_all_the_same(redis_url: str, redis_prefix: str) -> None:
    refs = RedisRefs(redis_url, redis_prefix, timezone=UTC, timeout_seconds=30.0)
    refs.log(entry("new", "A boat."))
    refs.log(entry("old", "A boat.", age=timedelta(days=7)))
    by_server = refs.recall("vessel", now=NOW, meaning=Axes().meaning("vessel", is_local=False))
    assert by_server.results == []
    assert by_server.partial.endswith(
        "were looked through; 1 entries and notes have no vectors yet and are found by their words alone: "
        "notebook-sync sync"
    )
    axes = Axes()
    for _ in range(2):
        recalled = refs.recall("vessel", now=NOW, meaning=axes.meaning("vessel"))
        assert [one["id"] for one in recalled.results] == ["new"]
        assert recalled.partial.endswith("were looked through")
    assert axes.made == ["A boat."]
    drop_keys(redis_url, redis_prefix)
    refs.close()


def test_an_index_that_is_gone_is_made_again(refs: RedisRefs, client: redis.Redis, redis_prefix: str) -> None:
    refs.log(entry("a"))
    eventually(lambda: refs.recall("ferry", now=NOW).partial == "", "an index of all")
    client.execute_command("FT.DROPINDEX", f"{redis_prefix}:memory:idx")
    assert found(refs, "ferry") == ["a"]
    assert made(client, redis_prefix)["attributes"]


def test_hashes_that_others_wrote_there_do_no_harm(refs: RedisRefs, client: redis.Redis, redis_prefix: str) -> None:
    refs.log(entry("a"))
    for n, fields in enumerate([{"content": "ferry"}, {"content": "ferry", "timestamp": "soon", "score": "much"}]):
        client.hset(f"{redis_prefix}:longterm:theirs {n}", mapping=fields)
    client.hset(f"{redis_prefix}:daily:theirs", mapping={"content": "ferry"})
    client.hset(f"{redis_prefix}:notebook:ref:theirs", mapping={"content": "ferry"})
    client.rpush(f"{redis_prefix}:daily:{NOW.date().isoformat()}", "no json", "[]", '{"content": "no time"}')
    assert found(refs, "ferry")[0] == "a"
    assert [one["id"] for one in refs.day(NOW.date().isoformat())] == ["a"]


@pytest.mark.parametrize("protocol", [2, 3])
def test_both_protocols_are_understood(
    client: redis.Redis, redis_stack_url: str, redis_prefix: str, protocol: int
) -> None:
    refs = RedisRefs(f"{redis_stack_url}?protocol={protocol}", redis_prefix, timezone=UTC)
    told = entry("a", tags=["pier"])
    refs.log(told)
    eventually(lambda: refs.recall("ferry", now=NOW).partial == "", "an index of all")
    for meaning in (None, Axes().meaning("ferry")):
        eventually(lambda meaning=meaning: refs.recall("ferry", now=NOW, meaning=meaning).partial == "", "of all")
        (result,) = refs.recall("ferry", tags=["pier"], now=NOW, meaning=meaning).results
        assert {**result, "relevance": 0} == {**told, "relevance": 0}
    created = made(client, redis_prefix)["num_docs"]
    RedisRefs(f"{redis_stack_url}?protocol={5 - protocol}", redis_prefix, timezone=UTC).recall("ferry", now=NOW)
    assert made(client, redis_prefix)["num_docs"] == created
    refs.close()


def test_a_redis_without_the_module_says_what_was_looked_through(redis_url: str, redis_prefix: str) -> None:
    refs = RedisRefs(redis_url, redis_prefix, timezone=UTC, timeout_seconds=30.0)
    refs.log(entry("new"))
    refs.log(entry("week", age=timedelta(days=6)))
    refs.log(entry("old", age=timedelta(days=7)))
    refs.keep(entry("kept", age=timedelta(days=400)))
    recalled = refs.recall("ferry", now=NOW)
    assert [one["id"] for one in recalled.results] == ["new", "week", "kept"]
    assert recalled.partial == (
        "this Redis has no search module: only the last 7 days, long-term memory and the 1,000 notes changed last "
        "were looked through"
    )
    drop_keys(redis_url, redis_prefix)
    refs.close()


def test_where_no_index_may_be_made_recall_says_so_and_works(redis_stack_url: str, redis_prefix: str) -> None:
    refs = RedisRefs(f"{redis_stack_url}/3", redis_prefix, timezone=UTC, timeout_seconds=30.0)
    refs.adopt("store", [])
    refs.log(entry("a"))
    recalled = refs.recall("ferry", now=NOW)
    assert [one["id"] for one in recalled.results] == ["a"]
    assert recalled.partial.startswith("this Redis makes no index (Cannot create index on db != 0): only the last")
    drop_keys(f"{redis_stack_url}/3", redis_prefix)
    refs.close()


def test_a_user_who_may_not_search_recalls_all_the_same(
    client: redis.Redis, redis_stack_url: str, redis_prefix: str
) -> None:
    rights = ["on", ">s3cret", f"~{redis_prefix}:*", "-@all"]
    rights += [f"+{right}" for right in ("hset", "hmget", "zadd", "zrange", "zrevrange", "rpush", "lrange", "get")]
    client.execute_command("ACL", "SETUSER", "ines", *rights)
    refs = RedisRefs(redis_stack_url.replace("//", "//ines:s3cret@"), redis_prefix, timezone=UTC)
    refs.log(entry("a"))
    recalled = refs.recall("ferry", now=NOW)
    assert [one["id"] for one in recalled.results] == ["a"]
    assert "this Redis makes no index" in recalled.partial
    assert "s3cret" not in recalled.partial
    refs.close()
    client.execute_command("ACL", "DELUSER", "ines")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_rights_that_the_manual_names_are_enough(
    client: redis.Redis, redis_stack_url: str, redis_prefix: str, call: Callable[[Refs], object]
) -> None:
    manual = (Path(__file__).parents[2] / "docs/operations.md").read_text()
    rights = manual.partition("ACL SETUSER ferry on >PASSWORD ~ferry:* ")[2].partition("```")[0].split()
    client.execute_command("ACL", "SETUSER", "ferry", "reset", "on", ">s3cret", f"~{redis_prefix}:*", *rights)
    refs = RedisRefs(redis_stack_url.replace("//", "//ferry:s3cret@"), redis_prefix, timezone=UTC)
    call(refs)
    assert "no index" not in refs.recall("ferry", now=NOW).partial
    refs.close()
    client.execute_command("ACL", "DELUSER", "ferry")
