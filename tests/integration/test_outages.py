"""Servers that die, hang, break connections, answer late or lose everything, while people go on writing files.

Files and prompts do not notice; the watch says once what is wrong, and everything is in step by itself afterwards.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import SimpleNamespace

import psutil
import pytest

from notebook_sync import Notebook, Session, patience
from notebook_sync.errors import BackendDown
from notebook_sync.mirror.base import Write
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.patience import SILENT_SECONDS, Silence
from tests.fault_proxy import FaultProxy, Mode
from tests.integration.world import Watching, World
from tests.servers import Server, start_redis_stack
from tests.waiting import eventually

ORDERS = "runtime/standing-orders.md"


@dataclass(frozen=True)
class Broken:
    """A server that tests may break, behind a proxy that they may break too."""

    server: Server
    proxy: FaultProxy

    @property
    def url(self) -> str:
        return self.server.url.replace(str(self.server.port), str(self.proxy.port))


@pytest.fixture(scope="module")
def redis_stack() -> Iterator[Server]:
    server = start_redis_stack()
    yield server
    server.stop()


@pytest.fixture
def mongodb(mongod_to_break: Server) -> Iterator[Broken]:
    with FaultProxy("127.0.0.1", mongod_to_break.port) as proxy:
        yield Broken(mongod_to_break, proxy)


@pytest.fixture
def redis(request: pytest.FixtureRequest) -> Iterator[Broken]:
    """Plain, where a test does not ask for the one with the search module."""
    server = request.getfixturevalue(getattr(request, "param", "redis_to_break"))
    with FaultProxy("127.0.0.1", server.port) as proxy:
        yield Broken(server, proxy)


@pytest.fixture
def world(embedded: World, mongodb: Broken, redis: Broken) -> World:
    """Some notes, in step on both servers."""
    world = embedded.on(mongodb.url, redis.url)
    world.write(ORDERS, "# Standing Orders\n\n- Order 0.\n")
    for name in ("kept", "edited", "renamed", "deleted"):
        world.write(f"pages/{name}.md", f"# {name}\n\nBefore.\n")
    assert world.run("sync").code == 0
    return world


@contextlib.contextmanager
def paused(broken: Broken) -> Iterator[None]:
    broken.server.pause()
    try:
        yield
    finally:
        broken.server.resume()


@contextlib.contextmanager
def killed(broken: Broken) -> Iterator[None]:
    broken.server.kill()
    try:
        yield
    finally:
        broken.server.restart()


@contextlib.contextmanager
def resetting(broken: Broken) -> Iterator[None]:
    with _in_mode(broken, "reset"):
        yield


@contextlib.contextmanager
def silent(broken: Broken) -> Iterator[None]:
    with _in_mode(broken, "hang"):
        yield


@contextlib.contextmanager
def late(broken: Broken) -> Iterator[None]:
    """What is asked is done, and nobody waits for the answer any more."""
    broken.proxy.delay = 0.7
    try:
        yield
    finally:
        broken.proxy.delay = 0.0


@contextlib.contextmanager
def _in_mode(broken: Broken, mode: Mode) -> Iterator[None]:
    broken.proxy.mode = mode
    try:
        yield
    finally:
        broken.proxy.mode = "pass"


Fault = Callable[[Broken], AbstractContextManager[None]]
FAULTS: tuple[Fault, ...] = (paused, killed, resetting, silent, late)
STORES = {
    "MongoDB": (("mongodb",), "redis_to_break"),
    "Redis": (("redis",), "redis_to_break"),
    "Redis Stack": (("redis",), "redis_stack"),
    "both": (("mongodb", "redis"), "redis_to_break"),
}
# Each fault of both stores at once, and of each store alone one that is told in another way; the rest take minutes.
_ALWAYS = {*((fault, "both") for fault in FAULTS), (silent, "MongoDB"), (paused, "Redis"), (killed, "Redis Stack")}
OUTAGES = [
    pytest.param(
        *(fault, victims, redis),
        id=f"{fault.__name__}-{name}",
        marks=() if (fault, name) in _ALWAYS else pytest.mark.soak,
    )
    for fault in FAULTS
    for name, (victims, redis) in STORES.items()
]


@pytest.mark.parametrize(("fault", "victims", "redis"), OUTAGES, indirect=["redis"])
def test_people_go_on_writing_and_all_is_in_step_afterwards(
    world: World, mongodb: Broken, redis: Broken, fault: Fault, victims: tuple[str, ...]
) -> None:
    broken = [{"mongodb": mongodb, "redis": redis}[name] for name in victims]
    with world.watching() as watching:
        with ExitStack() as outage:
            for one in broken:
                outage.enter_context(fault(one))
            write_on(world)
            watching.tells("trouble")
            prompts_are_current(world)
            status = world.run("status", "--json")
            assert status.code == 4
            assert not all(status.json[store]["ok"] for store in ("mirror", "refs"))
            prompts_are_current(world)
        watching.tells("recovered")
        world.converges()
    world.assert_whole()
    assert told_once(watching)
    assert world.whole()["pages/edited.md"]["metadata"]["version"] == 2
    stream_ends_with_what_is_there(world)


@pytest.mark.parametrize(
    "fault", [killed, resetting, pytest.param(paused, marks=pytest.mark.soak)], ids=lambda fault: fault.__name__
)
def test_an_outage_is_no_reason_to_be_busy(world: World, mongodb: Broken, redis: Broken, fault: Fault) -> None:
    with ExitStack() as outage:
        watching = outage.enter_context(world.watching())
        process = psutil.Process(world.run("status", "--json").json["watcher"]["pid"])
        outage.enter_context(fault(mongodb))
        outage.enter_context(fault(redis))
        world.write("pages/edited.md", "# edited\n\nMeanwhile.\n")
        watching.tells("trouble")
        asked, used = mongodb.proxy.accepted + redis.proxy.accepted, sum(process.cpu_times()[:2])
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(4)
        assert mongodb.proxy.accepted + redis.proxy.accepted - asked < 40
        assert sum(process.cpu_times()[:2]) - used < 2
        assert len(watching.told("trouble")) == 1


def test_an_emptied_redis_gets_its_refs_again_and_no_invented_stream(world: World, redis: Broken) -> None:
    world.write("pages/edited.md", "# edited\n\nAfter.\n")
    assert world.run("sync").code == 0
    assert world.stream()
    with world.watching():
        redis.server.restart(emptied=True)
        world.write("pages/kept.md", "# kept\n\nThe first news.\n")
        world.converges()
    world.assert_whole()
    assert world.stream() == [("pages/kept", "updated", "2")]


def test_an_emptied_mongodb_gets_its_rows_again_and_their_past_from_git(world: World, mongodb: Broken) -> None:
    world.commit_all("Begin")
    world.write("pages/edited.md", "# edited\n\nAfter.\n")
    world.commit_all("Edit")
    assert world.run("sync").code == 0
    before = world.documents()
    with world.notebook() as notebook:
        store_id = notebook.mirror.store_id()
    with world.watching():
        mongodb.server.restart(emptied=True)
        world.write("pages/new.md", "# New\n")
        world.converges()
    world.assert_whole()
    edited = world.whole()["pages/edited.md"]
    assert [crumb["summary"] for crumb in edited["history"]] == ["Begin", "Edit"]
    after = world.documents()
    assert after.pop("pages/new.md")["title"] == "New"
    assert after == before
    with world.notebook() as notebook:
        assert notebook.mirror.store_id() != store_id
        assert notebook.refs.owner() == notebook.mirror.store_id()


def test_slow_servers_are_no_trouble(world: World, mongodb: Broken, redis: Broken) -> None:
    with world.watching() as watching:
        mongodb.proxy.delay = redis.proxy.delay = 0.02
        write_on(world)
        eventually(lambda: world.stream()[-1][1] == "deleted", "the last change is told")
        world.converges()
        assert not watching.told("trouble")
    world.assert_whole()


@pytest.mark.parametrize("victim", ["mongodb", "redis"])
def test_a_command_without_its_server_says_so_and_shows_no_password(
    world: World, mongodb: Broken, redis: Broken, victim: str
) -> None:
    secret = "s3cr3t-p@ss"  # noqa: S105
    with_password = f"//someone:{secret.replace('@', '%40')}@"
    urls = {"mongodb": mongodb.url, "redis": redis.url}
    urls[victim] = urls[victim].replace("//", with_password)
    {"mongodb": mongodb, "redis": redis}[victim].proxy.mode = "refuse"
    without = world.on(urls["mongodb"], urls["redis"])
    for command in ("sync", "rebuild", "verify", "status", "doctor"):
        done = without.run(command)
        said = done.out + done.err
        assert done.code == 4, (command, said)
        assert {"mongodb": "MongoDB at 127.0.0.1", "redis": "Redis at 127.0.0.1"}[victim] in said, command
        assert "s3cr3t" not in said, command
        assert "p%40ss" not in said, command


def test_no_file_waits_for_a_mongodb_that_never_answers_another_writer(embedded: World, mongodb: Broken) -> None:
    settings = embedded.root / "notebook.toml"
    settings.write_text(settings.read_text().replace("timeout_seconds = 1\n", "timeout_seconds = 15\n"))
    world = embedded.on(mongodb.url)
    world.commit_all("Begin")
    ferry, owner = world.root / "pages/ferry.md", Session.owner()
    with silent(mongodb), world.notebook() as one, world.notebook() as other:
        first = threading.Thread(target=one.create, args=("pages", "Ferry", "It leaves at 0.\n", owner))
        writers = [first] + [
            threading.Thread(
                target=notebook.update,
                args=("pages/ferry.md", owner),
                kwargs={"content": f"It leaves at {hour}.\n"},
            )
            for hour, notebook in enumerate((other, one, other), 1)
        ]
        for hour, writer in enumerate(writers):
            writer.start()
            eventually(lambda: ferry.exists() and f"at {hour}." in ferry.read_text(), f"it leaves at {hour}")  # noqa: B023 - called at once
        assert first.is_alive()
        mongodb.proxy.mode = "reset"
        for writer in writers:
            writer.join()
    assert world.git("show", "HEAD:pages/ferry.md") == ferry.read_text()
    assert world.git("rev-list", "--count", "HEAD").strip() == "5"
    assert world.run("sync").code == 0
    world.assert_whole()


def test_a_mirror_that_is_down_is_not_asked_by_each_writer_and_told_all_of_it_later(
    world: World, mongodb: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    store_id = MongoMirror.store_id

    def counting(mirror: MongoMirror) -> str:
        nonlocal asked
        asked += 1
        return store_id(mirror)

    monkeypatch.setattr(MongoMirror, "store_id", counting)
    owner = Session.owner()
    with world.notebook() as notebook:
        mongodb.proxy.mode = "refuse"
        down = notebook.update("pages/kept.md", owner, content="At nine.\n")
        assert asked == 1
        told = [
            notebook.update("pages/edited.md", owner, content="At ten.\n"),
            notebook.create("pages", "Ferry", "At eleven.\n", owner),
        ]
        assert asked == 1
        for written in (down, *told):
            assert written.version is None
            assert "the mirror follows when it can: MongoDB at 127.0.0.1" in written.warnings[0]
        mongodb.proxy.mode = "pass"
        eventually(lambda: answers(notebook, "pages/renamed.md"), "a read is answered")
        assert notebook.update("pages/renamed.md", owner, content="At twelve.\n").version == 2
    world.assert_whole()
    assert {path: document["metadata"]["version"] for path, document in world.whole().items()} == {
        ORDERS: 1,
        "pages/kept.md": 2,
        "pages/edited.md": 2,
        "pages/renamed.md": 2,
        "pages/deleted.md": 1,
        "pages/ferry.md": 1,
    }


def test_a_redis_that_is_down_is_not_asked_by_each_writer_and_told_all_of_it_later(
    world: World, redis: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Session.owner()
    with world.notebook() as notebook:
        assert notebook.update("pages/kept.md", owner, content="At eight.\n").warnings == ()
        redis.proxy.mode = "refuse"
        assert "Redis" in notebook.update("pages/kept.md", owner, content="At nine.\n").warnings[0]
        redis.proxy.mode = "pass"
        quiet = notebook.update("pages/edited.md", owner, content="At ten.\n")
        assert (quiet.version, len(quiet.warnings)) == (2, 1)
        monkeypatch.setattr(Silence, "trouble", "")  # some time later
        assert notebook.update("pages/renamed.md", owner, content="At eleven.\n").warnings == ()
    world.assert_whole()


def test_a_redis_that_answers_again_is_asked_again_by_writers_who_never_rest(
    embedded: World, redis: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = embedded.on(redis_url=redis.url)
    now, seconds = 0.0, 0.0
    apply = SqliteMirror.apply

    def taking_a_while(mirror: SqliteMirror, writes: Sequence[Write]) -> list[Write]:
        nonlocal now
        now += seconds
        return apply(mirror, writes)

    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(SqliteMirror, "apply", taking_a_while)
    owner = Session.owner()
    with world.notebook() as notebook:
        redis.proxy.mode = "refuse"
        assert "Redis" in notebook.create("pages", "Ferry", "At nine.\n", owner).warnings[0]
        redis.proxy.mode = "pass"
        seconds = 2 * SILENT_SECONDS  # it runs out while the next is written
        assert "Redis" in notebook.update("pages/ferry.md", owner, content="At ten.\n").warnings[0]
        assert notebook.update("pages/ferry.md", owner, content="At eleven.\n").warnings == ()
    world.assert_whole()


def answers(notebook: Notebook, path: str) -> bool:
    with contextlib.suppress(BackendDown):
        return bool(notebook.read(path))
    return False


def write_on(world: World) -> None:
    """A save, a rename, a deletion and a new note."""
    world.write("pages/edited.md", "# edited\n\nMeanwhile.\n")
    (world.root / "pages/renamed.md").rename(world.root / "pages/moved.md")
    world.write("pages/new.md", "# New\n")
    (world.root / "pages/deleted.md").unlink()


def prompts_are_current(world: World) -> None:
    orders = world.root / ORDERS
    number = orders.read_text().count("Order ")
    world.write(ORDERS, f"{orders.read_text()}- Order {number}.\n")
    assert f"Order {number}." in world.prompt()


def told_once(watching: Watching) -> bool:
    """No trouble was told twice, and the last one has ended."""
    kinds = [event for event in watching.events if event["event"] in {"trouble", "recovered"}]
    messages = [event["message"] for event in kinds if event["event"] == "trouble"]
    assert len(messages) == len(set(messages)), messages
    assert kinds[-1]["event"] == "recovered", kinds
    return True


def stream_ends_with_what_is_there(world: World) -> None:
    """Each note's last entry tells its version of now; no entry is there twice."""
    entries = world.stream()
    assert len(entries) == len(set(entries)), entries
    last = {note_id: (action, version) for note_id, action, version in entries}
    del last["pages/renamed"]  # what ends because the note moved is told as the move
    now = {ref["notebook_id"]: ref["version"] for ref in world.refs().values()}
    assert {note_id: version for note_id, (action, version) in last.items() if action != "deleted"} == now
    assert last["pages/deleted"][0] == "deleted"
    assert last["pages/moved"] == ("moved", "1")
