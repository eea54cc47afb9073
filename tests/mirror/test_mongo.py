"""The content store on a real MongoDB: the contract, and what only a server can do to it."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pymongo
import pytest
from bson.errors import InvalidDocument
from pymongo.collection import Collection
from pymongo.errors import AutoReconnect, ExecutionTimeout, OperationFailure, PyMongoError, WriteError

from notebook_sync.address import Address
from notebook_sync.errors import BackendDown, ConfigError, UnreadableFile
from notebook_sync.files.note import COLLECTIONS, Ref
from notebook_sync.mirror import mongo_connection, mongo_write
from notebook_sync.mirror.base import Mirror, Put, Remove
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.mirror.mongo_connection import Connection, mirror_errors
from notebook_sync.patience import Silence
from tests.fault_proxy import FaultProxy, Mode
from tests.mirror.contract import T0, Opener, WholeMirrorContract, many, note, put, version
from tests.servers import Server, free_port
from tests.waiting import eventually

A_REF = Ref("a", "Plan", "", "pages", T0, "draft", 1, "digest", "owner", "pages/a.md", serial=1)
CALLS: dict[str, Callable[[Mirror], object]] = {
    "known": lambda mirror: mirror.known(),
    "known places": lambda mirror: mirror.known(["pages"]),
    "claimants": lambda mirror: mirror.claimants(["a"]),
    "put": lambda mirror: mirror.apply([put(note())]),
    "remove": lambda mirror: mirror.apply([Remove("a", "b")]),
    "pending": lambda mirror: mirror.pending(),
    "refs_written": lambda mirror: mirror.refs_written([A_REF]),
    "refs": lambda mirror: list(mirror.refs()),
    "get": lambda mirror: mirror.get("a"),
    "get_many": lambda mirror: mirror.get_many(["a", "b"]),
    "documents": lambda mirror: list(mirror.documents()),
    "light": lambda mirror: mirror.light(),
    "light_many": lambda mirror: mirror.light_many(["a"]),
    "search": lambda mirror: mirror.search("word"),
    "counts": lambda mirror: mirror.counts(),
    "note_count": lambda mirror: mirror.note_count(),
    "store_id": lambda mirror: mirror.store_id(),
}
MODES: tuple[Mode, ...] = ("reset", "refuse", "hang")
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


class TestMongo(WholeMirrorContract):
    @pytest.fixture
    def open_mirror(self, mongodb_url: str, mongo_database: str) -> Opener:
        return partial(MongoMirror, mongodb_url, mongo_database, timeout_seconds=30.0)

    @pytest.fixture
    def database(self, mongodb_url: str, mongo_database: str) -> Iterator[Any]:
        with pymongo.MongoClient(mongodb_url) as client:
            yield client[mongo_database]

    def test_connecting_makes_the_indexes(self, mirror: Mirror, database: Any) -> None:
        mirror.known()
        for name in COLLECTIONS:
            indexes = database[name].index_information()
            fields = {field for index in indexes.values() for field, _ in index["key"]}
            assert {"metadata.created_by", "metadata.tags", "metadata.updated_at", "path", "wants"} <= fields
            assert indexes["words"]["weights"].keys() == {"title", "summary", "content", "code", "words"}
            assert indexes["path_unique"]["unique"]
            assert ("language" in fields) == (name == "code_snippets")
            assert ("source_url" in fields) == (name == "research_notes")

    def test_the_index_of_words_that_an_earlier_version_made_is_replaced(
        self, mongodb_url: str, new_mongo_database: str
    ) -> None:
        with (
            pymongo.MongoClient[dict[str, Any]](mongodb_url) as client,
            contextlib.closing(MongoMirror(mongodb_url, new_mongo_database, timeout_seconds=30.0)) as mirror,
        ):
            pages = client[new_mongo_database].pages
            pages.create_index([("title", "text"), ("content", "text")], name="words", weights={"title": 8})
            mirror.apply([put(note(title="IT budget"))])
            assert [hit["id"] for hit in mirror.search("it")] == ["pages/plan"]

    def test_where_a_unique_path_cannot_be_had_a_plain_index_does(
        self, mongodb_url: str, new_mongo_database: str
    ) -> None:
        twins = [{"_id": n, "path": "pages/twin.md", "gone": True} for n in ("a", "b")]
        with (
            pymongo.MongoClient[dict[str, Any]](mongodb_url) as client,
            contextlib.closing(MongoMirror(mongodb_url, new_mongo_database, timeout_seconds=30.0)) as mirror,
        ):
            pages = client[new_mongo_database].pages
            pages.insert_many(twins)
            mirror.apply([put(note())])
            assert "path_plain" in pages.index_information()
            assert [known.id for known in mirror.known()] == ["pages/plan"]

    def test_trouble_while_indexes_are_made_does_not_cost_the_unique_one(
        self, mirror: Mirror, database: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in COLLECTIONS:
            database[name].drop_indexes()
        create_indexes, failures = Collection.create_indexes, [OperationFailure("stepping down", 189)]

        def first_failing(*arguments: Any) -> Any:
            if failures:
                raise failures.pop()
            return create_indexes(*arguments)

        monkeypatch.setattr(Collection, "create_indexes", first_failing)
        with pytest.raises(BackendDown, match="stepping down"):
            mirror.known()
        mirror.known()
        for name in COLLECTIONS:
            assert "path_unique" in database[name].index_information()

    def test_the_server_refuses_rows_that_are_none(self, mirror: Mirror, database: Any) -> None:
        mirror.apply([put(note())])
        with pytest.raises(WriteError):
            database.pages.insert_one({"_id": "a", "title": "no row"})
        with pytest.raises(WriteError):
            database.pages.update_one({"_id": "pages/plan"}, {"$set": {"metadata.version": "one"}})

    def test_known_places_are_found_by_an_index(self, mirror: Mirror, database: Any) -> None:
        mirror.apply(many(3))
        condition = {"path": {"$gte": "pages/", "$lt": "pages0"}, "gone": False}
        plan = database.pages.find(condition).explain()["queryPlanner"]["winningPlan"]
        assert "COLLSCAN" not in str(plan)

    def test_no_index_holds_what_changes_when_a_ref_is_told(self, mirror: Mirror, database: Any) -> None:
        """One that did would have the server cut the whole note into words again."""
        mirror.apply(many(3))
        for collection in COLLECTIONS:
            for index in database[collection].index_information().values():
                held = {field for field, _ in index["key"]} | index.get("partialFilterExpression", {}).keys()
                assert not held & {"pending", "awaits_ref"}

    @pytest.mark.parametrize(
        ("poison", "reason"),
        [
            (note("pages/bad.md", "x" * 17_000_000), "limit"),
            (note("pages/bad.md", "\ud800"), "surrogates"),
            (note("pages/bad.md", extra={"n": 2**64}), "8-byte"),
        ],
    )
    def test_a_note_that_cannot_be_stored_is_named_after_the_others_were_written(
        self, mirror: Mirror, poison: Any, reason: str
    ) -> None:
        with pytest.raises(UnreadableFile, match=reason) as refusal:
            mirror.apply([put(note("pages/a.md", "a")), put(poison), put(note("facts/b.md", "b"))])
        assert refusal.value.path == "pages/bad.md"
        assert sorted(known.id for known in mirror.known()) == ["facts/b", "pages/a"]

    def test_a_row_that_grows_too_large_keeps_its_last_good_note(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        with pytest.raises(UnreadableFile):
            mirror.apply([put(note(content="x" * 17_000_000), note().digest)])
        assert mirror.known()[0].digest == note().digest

    def test_a_note_the_server_refuses_is_named_after_the_others_were_written(self, mirror: Mirror) -> None:
        deep: dict[str, Any] = {}
        for _ in range(190):
            deep = {"deeper": deep}
        with pytest.raises(UnreadableFile, match="nesting"):
            mirror.apply([put(note("pages/a.md", "a")), put(note("pages/bad.md", extra=deep)), *many(2)])
        assert len(mirror.known()) == 3

    def test_a_row_is_the_document_under_its_id(self, mirror: Mirror, database: Any) -> None:
        mirror.apply([put(note())])
        document, row = mirror.get("pages/plan"), database.pages.find_one({"_id": "pages/plan"})
        assert document is not None
        assert row.keys() - document.keys() == {
            "_id",
            "words",
            "serial",
            "event",
            "written",
            "pending",
            "awaits_ref",
            "gone",
        }
        assert document.keys() - row.keys() == {"id"}

    def test_usage_is_carried_along(self, mirror: Mirror, database: Any) -> None:
        mirror.apply([put(note())])
        database.pages.update_one({"_id": "pages/plan"}, {"$set": {"usage": {"opened": 7}}})
        mirror.apply([put(note(content="x"), note().digest)])
        mirror.apply([put(note("facts/plan.md", "x"), replaces="pages/plan", action="moved")])
        document = mirror.get("facts/plan")
        assert document is not None
        assert document["usage"] == {"opened": 7}

    def test_a_late_reader_does_not_clear_the_ref_of_a_note_that_began_anew(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        late = mirror.pending()
        mirror.apply([Remove("pages/plan", note().digest)])
        mirror.refs_written(mirror.pending())
        mirror.apply([put(note())])
        mirror.refs_written(late)
        assert [ref.action for ref in mirror.pending()] == ["created"]

    def test_databases_do_not_see_each_other(self, mirror: Mirror, mongodb_url: str, mongo_database: str) -> None:
        other = MongoMirror(mongodb_url, f"{mongo_database}_2")
        try:
            mirror.apply([put(note())])
            assert other.known() == []
            assert other.store_id() != mirror.store_id()
        finally:
            other.close()
            with pymongo.MongoClient(mongodb_url) as client:
                client.drop_database(f"{mongo_database}_2")

    @pytest.mark.parametrize("renamed", [False, True])
    def test_a_move_that_breaks_off_anywhere_is_finished_by_the_next_one(
        self, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, renamed: bool
    ) -> None:
        send = mongo_write._send
        for broken_at in itertools.count(1):
            home = note(f"pages/{broken_at}.md", wants=f"note {broken_at}")
            new_id = f"renamed {broken_at}" if renamed else home.wants
            away = note(f"facts/{broken_at}.md", "changed", wants=new_id)
            mirror.apply([put(home)])
            countdown = itertools.count(1)

            def sends_until(*arguments: Any, broken_at: int = broken_at, countdown: Any = countdown) -> set[int]:
                if next(countdown) == broken_at:
                    raise BackendDown("MongoDB", "the cable was cut")
                return send(*arguments)

            monkeypatch.setattr(mongo_write, "_send", sends_until)
            completed = settle(mirror, home.wants, away)
            monkeypatch.setattr(mongo_write, "_send", send)
            assert settle(mirror, home.wants, away)
            (known,) = mirror.known([f"pages/{broken_at}.md", f"facts/{broken_at}.md"])
            assert (known.id, known.path, known.version) == (new_id, away.path, 2)
            live = [ref.id for ref in mirror.pending() if not ref.deleted]
            assert live == [new_id]
            assert [ref.id for ref in mirror.pending() if ref.deleted] == ([home.wants] if renamed else [])
            mirror.refs_written(mirror.pending())
            if completed:
                assert broken_at > 2
                return


def settle(mirror: Mirror, old_id: str, away: Any) -> bool:
    """Plan from what is known, as the engine does: put the note where it now is. Whether nothing broke."""
    rows = {known.id: known for known in mirror.claimants([old_id, away.wants])}
    own, old = rows.get(away.wants), rows.get(old_id)
    replaces = old_id if old is not None and old_id != away.wants else None
    move: Put = put(away, own.digest if own else None, note_id=away.wants, action="moved", replaces=replaces)
    try:
        assert mirror.apply([move]) == []
    except BackendDown:
        return False
    return True


class TestTrouble:
    """A server that is gone, hangs, breaks connections or lost everything."""

    @pytest.fixture
    def server(self, mongod_to_break: Server) -> Iterator[Server]:
        yield mongod_to_break
        mongod_to_break.restart()

    @pytest.fixture
    def mirror(self, server: Server) -> Iterator[MongoMirror]:
        mirror = MongoMirror(server.url, "trouble", timeout_seconds=0.5)
        with pymongo.MongoClient(server.url) as client:
            client.drop_database("trouble")
            MongoMirror(server.url, "trouble", client=client).store_id()  # makes the schema, however slowly
        yield mirror
        mirror.close()

    @each_call
    def test_no_driver_error_gets_out_where_nobody_listens(self, call: Callable[[Mirror], object]) -> None:
        mirror = MongoMirror(f"mongodb://127.0.0.1:{free_port()}", timeout_seconds=0.1)
        with pytest.raises(BackendDown, match=r"MongoDB at 127\.0\.0\.1:\d+/aether_notebook does not answer"):
            call(mirror)
        mirror.close()

    def test_no_driver_error_gets_out_while_it_hangs(
        self, mirror: MongoMirror, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Silence, "trouble", "")  # each call is the first to find out
        mirror.apply(many(3))
        server.pause()
        leaked = {}
        for name, call in CALLS.items():
            try:
                call(mirror)
                leaked[name] = "an answer"
            except BackendDown:
                continue
            except Exception as error:
                leaked[name] = repr(error)
        server.resume()
        assert leaked == {}
        eventually(lambda: answered(mirror), "an answer after it went on")
        assert len(mirror.known()) == 3

    def test_opening_asks_nothing_of_a_server_that_hangs(self, server: Server) -> None:
        server.pause()
        mirror = MongoMirror(server.url, "trouble", timeout_seconds=3600)
        mirror.close()

    def test_it_comes_back_with_what_it_had(self, mirror: MongoMirror, server: Server) -> None:
        mirror.apply([put(note())])
        with pymongo.MongoClient(server.url) as client:
            client.admin.command("fsync")
        store_id = mirror.store_id()
        server.kill()
        with pytest.raises(BackendDown):
            mirror.known()
        server.restart()
        eventually(lambda: answered(mirror), "an answer after the restart")
        assert [known.id for known in mirror.known()] == ["pages/plan"]
        assert mirror.store_id() == store_id

    def test_a_store_that_was_lost_has_another_id_and_its_indexes_again(
        self, mirror: MongoMirror, server: Server
    ) -> None:
        mirror.apply([put(note())])
        store_id = mirror.store_id()
        server.restart(emptied=True)
        eventually(lambda: answered(mirror), "an answer after the restart")
        assert mirror.store_id() != store_id
        assert mirror.known() == []
        mirror.apply([put(note(content="numbat"))])
        assert [hit["id"] for hit in mirror.search("numbat")] == ["pages/plan"]

    def test_a_broken_connection_is_down_and_then_works(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Silence, "trouble", "")  # as above
        with FaultProxy("127.0.0.1", server.port) as proxy:
            mirror = MongoMirror(f"mongodb://127.0.0.1:{proxy.port}", "trouble", timeout_seconds=1.0)
            eventually(lambda: answered(mirror), "an answer through the proxy")
            for mode in MODES:
                proxy.mode = mode
                with pytest.raises(BackendDown):
                    mirror.apply([put(note())])
                with pytest.raises(BackendDown):
                    mirror.known()
                proxy.mode = "pass"
                eventually(lambda: answered(mirror), f"an answer after {mode}")
            mirror.apply([put(note())])
            assert version(mirror) == 1
            mirror.close()


class EntryCounter:
    """A lock that tells how many have come to it, those who wait included."""

    def __init__(self) -> None:
        self.entries = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.entries += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class TestSchema:
    def test_a_second_first_request_waits_and_does_not_make_it_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        connection, lock = Connection("mongodb://127.0.0.1:1", "any", 0.1, None), EntryCounter()
        made = 0

        def request() -> None:
            with connection.telling():
                pass

        second = threading.Thread(target=request)

        def make_schema(_: Any) -> None:
            nonlocal made
            made += 1
            if made == 1:
                second.start()
                eventually(lambda: lock.entries == 2, "the second request at the lock")

        monkeypatch.setattr(mongo_connection, "make_schema", make_schema)
        monkeypatch.setattr(connection, "_making_schema", lock)
        request()
        second.join()
        connection.close()
        assert made == 1

    def test_whoever_waits_for_an_attempt_that_fails_does_not_try_again_after_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connection, lock = Connection("mongodb://127.0.0.1:1", "any", 0.1, None), EntryCounter()
        attempts, failed = 0, []

        def request() -> None:
            with pytest.raises(BackendDown, match="nobody there") as down, connection.telling():
                pass
            failed.append(down.value.backend)

        def make_schema(_: Any) -> None:
            nonlocal attempts
            attempts += 1
            eventually(lambda: lock.entries == 8 or attempts > 1, "all requests at the lock")
            raise PyMongoError("nobody there")

        monkeypatch.setattr(mongo_connection, "make_schema", make_schema)
        monkeypatch.setattr(connection, "_making_schema", lock)
        threads = [threading.Thread(target=request) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (attempts, len(failed)) == (1, 8)
        request()
        connection.close()
        assert attempts == 2


class TestNames:
    URL = "mongodb://reader:p%40ss-w0rd@127.0.0.1:1/?authSource=admin"

    def test_no_secret_is_in_the_name_or_a_message(self) -> None:
        mirror = MongoMirror(self.URL, timeout_seconds=0.1)
        assert mirror.name == "MongoDB at 127.0.0.1:1/aether_notebook"
        with pytest.raises(BackendDown) as down:
            mirror.known()
        assert not any(secret in str(down.value) for secret in ("p%40ss-w0rd", "p@ss-w0rd", "reader"))
        mirror.close()

    @pytest.mark.parametrize(
        "url", ["mongodb://u:s3cret@host:port/", "mongodb://u:s3cret@", "http://u:s3cret@host", "s3cret"]
    )
    def test_what_is_no_address_is_a_config_error_without_the_secret(self, url: str) -> None:
        with pytest.raises(ConfigError) as error:
            MongoMirror(url)
        assert "u:s3cret" not in str(error.value)

    @pytest.mark.parametrize(
        "error",
        [AutoReconnect("u:pw@host"), OperationFailure("pw"), ExecutionTimeout("pw", 50), InvalidDocument("pw")],
    )
    def test_every_error_of_the_driver_is_translated(self, error: Exception) -> None:
        with pytest.raises(BackendDown) as down, mirror_errors("MongoDB", Address.of("mongodb://u:pw@host")):
            raise error
        assert "pw" not in str(down.value)


def answered(mirror: Mirror) -> bool:
    try:
        mirror.known([])
        mirror.store_id()
    except BackendDown:
        return False
    return True
