"""The notebook in an asyncio host: the same face, nothing that holds up the loop, and an end when it is asked for."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import runpy
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import anyio
import pymongo
import pytest
from starlette.testclient import TestClient

from notebook_sync import AsyncNotebook, Edit, Notebook, Session, stores
from notebook_sync.errors import BackendDown, NoSuchNote, NotANotebook, WatchLocked
from notebook_sync.files.disk import Disk
from notebook_sync.sync.watch import Batch, Ready
from tests import forked
from tests.docs_shell import REPOSITORY, Reader, blocks_of
from tests.servers import drop_keys

OWNER = Session.owner()
# What opens, or follows, in a way of its own.
_OWN = {"open", "find", "close", "watch"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "notebook.toml").write_text("[sync]\nsettle_ms = 40\n[git]\ncommit = 'off'\n")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "ferry.md").write_text("# The ferry\n\n## Log\n\n- It leaves at six.\n")
    return tmp_path


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work(), 120)

    return asyncio.run(bounded())


def _public_methods_of_notebook() -> list[str]:
    kinds = (FunctionType, staticmethod, classmethod)
    return [
        name for name in dir(Notebook) if name[0] != "_" and isinstance(inspect.getattr_static(Notebook, name), kinds)
    ]


@pytest.mark.parametrize("name", _public_methods_of_notebook())
def test_every_method_of_a_notebook_can_be_awaited_with_its_own_arguments(name: str) -> None:
    ours = inspect.getattr_static(AsyncNotebook, name, None)
    assert ours is not None, f"AsyncNotebook lacks {name}: add `{name} = _reads(Notebook.{name})`, or _writes"
    if name in _OWN:
        return
    assert inspect.iscoroutinefunction(getattr(AsyncNotebook, name))
    assert type(ours) is type(inspect.getattr_static(Notebook, name))
    assert inspect.signature(getattr(AsyncNotebook, name)) == inspect.signature(getattr(Notebook, name))
    assert getattr(AsyncNotebook, name).__doc__ == getattr(Notebook, name).__doc__


def test_answers_are_those_of_a_notebook(root: Path) -> None:
    async def work() -> None:
        async with AsyncNotebook.opened(root) as notebook:
            assert notebook.root == root
            assert (await notebook.sync()).added == 1
            with Notebook.open(root) as plain:
                assert await notebook.search("leaves") == plain.search("leaves")
                assert await notebook.list("pages", limit=1) == plain.list("pages", limit=1)
                assert (await notebook.prompt(OWNER)).text == plain.prompt(OWNER).text

    run(work)


def test_errors_are_those_of_a_notebook(root: Path) -> None:
    async def work() -> None:
        async with AsyncNotebook.opened(root) as notebook:
            with pytest.raises(NoSuchNote):
                await notebook.read("pages/lighthouse")
        with pytest.raises(NotANotebook):
            await AsyncNotebook.open(root / "nowhere")

    run(work)


def test_what_needs_no_open_notebook_is_awaited_too(tmp_path: Path) -> None:
    async def work() -> None:
        made = await AsyncNotebook.init(tmp_path / "office", git=False)
        assert "notebook.toml" in made.created
        async with await AsyncNotebook.find(tmp_path / "office" / "pages") as notebook:
            assert notebook.root == made.root

    run(work)


def test_the_loop_goes_on_while_a_call_waits_and_others_are_answered(root: Path) -> None:
    async def work() -> None:
        async with AsyncNotebook.opened(root) as notebook:
            await notebook.sync()
            async with _editing(notebook, "It is late.") as edit:
                assert await _beats_of_the_loop(1000) == 1000
                found = await asyncio.gather(*(notebook.search("leaves") for _ in range(50)))
                assert all(len(one) == 1 for one in found)
                assert not edit.done()
            assert (await edit).version == 2

    run(work)


def test_an_edit_that_is_cancelled_comes_to_its_end_first(root: Path) -> None:
    async def work() -> None:
        async with AsyncNotebook.opened(root) as notebook:
            async with _editing(notebook, "It is late.") as edit:
                for _ in range(3):
                    edit.cancel()
                    await _beats_of_the_loop(100)
                assert not edit.done()
            with pytest.raises(asyncio.CancelledError):
                await edit
            assert "It is late." in (root / "pages" / "ferry.md").read_text()

    run(work)


def test_what_is_cancelled_before_it_begins_never_begins(root: Path) -> None:
    async def work() -> None:
        async with await AsyncNotebook.open(root, threads=1) as notebook:
            async with _editing(notebook, "It is late.") as first:
                second = asyncio.create_task(notebook.edit("pages/ferry.md", _line("It is early."), OWNER))
                await _beats_of_the_loop(100)
                second.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await second
            await first
        text = (root / "pages" / "ferry.md").read_text()
        assert "It is late." in text
        assert "early" not in text

    run(work)


def test_who_cancels_a_reader_waits_no_longer_and_closing_lets_its_thread_end(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, may_go_on = threading.Event(), threading.Event()
    really_open = stores.open_mirror

    def open_slowly(*arguments: Any) -> Any:
        asked.set()
        assert may_go_on.wait(30)
        return really_open(*arguments)

    async def work() -> None:
        notebook = await AsyncNotebook.open(root)
        slow = asyncio.create_task(notebook.search("leaves"))
        await anyio.to_thread.run_sync(asked.wait)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        closing = asyncio.create_task(notebook.close())
        await _beats_of_the_loop(100)
        assert not closing.done()
        may_go_on.set()
        await closing
        with pytest.raises(BackendDown):
            await notebook.search("leaves")

    monkeypatch.setattr(stores, "open_mirror", open_slowly)
    run(work)


def test_closing_waits_for_a_write_however_long_it_takes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_sync.async_notebook._CLOSING_SECONDS", 0.0)

    async def work() -> None:
        notebook = await AsyncNotebook.open(root)
        await notebook.sync()
        async with _editing(notebook, "It is late.") as edit:
            closing = asyncio.create_task(notebook.close())
            await _beats_of_the_loop(100)
            assert not closing.done()
        await closing
        assert edit.done()
        assert (await edit).version == 2

    run(work)


def test_a_watch_tells_what_happens_and_ends_when_it_is_cancelled(root: Path) -> None:
    async def work() -> None:
        async with AsyncNotebook.opened(root) as notebook:
            told: asyncio.Queue[object] = asyncio.Queue()

            async def follow() -> None:
                async for event in notebook.watch():
                    await told.put(event)

            following = asyncio.create_task(follow())
            while not isinstance(await told.get(), Ready):
                pass
            (root / "pages" / "tide.md").write_text("# Tide\n\nHigh at nine.\n")
            while not (isinstance(event := await told.get(), Batch) and event.report.added):
                pass
            assert [row["path"] for row in await notebook.search("nine", mode="keyword")] == ["pages/tide.md"]
            following.cancel()
            with pytest.raises(asyncio.CancelledError):
                await following
            async with aclosing(notebook.watch()) as again:  # the lock was let go
                assert isinstance(await anext(again), Batch | Ready)

    run(work)


def test_closing_ends_a_watch_that_nobody_ended(root: Path) -> None:
    async def work() -> None:
        notebook = await AsyncNotebook.open(root)
        events = notebook.watch()
        while not isinstance(await anext(events), Ready):
            pass
        with pytest.raises(WatchLocked):
            await anext(notebook.watch())
        waiting = asyncio.ensure_future(anext(events, None))
        await _beats_of_the_loop(10)
        await notebook.close()
        assert await waiting is None

    run(work)


def test_stores_that_are_away_keep_no_host_from_starting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_URL", "mongodb://127.0.0.1:9/")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:9")
    (root / "notebook.toml").write_text("[mirror]\ntimeout_seconds = 0.2\n[refs]\ntimeout_seconds = 0.2\n")

    async def work() -> None:
        async with AsyncNotebook.opened(root) as notebook:
            assert (await notebook.prompt(OWNER)).text
            with pytest.raises(BackendDown):
                await notebook.search("leaves")

    run(work)


def test_indexes_are_made_when_a_host_starts(
    root: Path, mongodb_url: str, mongo_database: str, redis_stack_url: str, redis_prefix: str
) -> None:
    async def work() -> None:
        async with AsyncNotebook.opened(root):
            with pymongo.MongoClient[Any](mongodb_url) as client:
                assert "words" in client[mongo_database]["pages"].index_information()

    with _on_servers(root, mongodb_url, mongo_database, redis_stack_url, redis_prefix):
        run(work)


def test_hosts_in_three_processes_share_a_folder_and_its_servers(
    root: Path, mongodb_url: str, mongo_database: str, redis_stack_url: str, redis_prefix: str
) -> None:
    """Each adds lines to one note, all at once: no line is lost, no version is told twice, and each finds its own."""
    names, lines = ("ines", "odile", "pilot"), 3
    with _on_servers(root, mongodb_url, mongo_database, redis_stack_url, redis_prefix):
        with Notebook.open(root) as notebook:
            notebook.sync()
        hosts = [
            subprocess.Popen(
                [*forked.command("tests.async_host"), str(root), name, str(lines)],
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in names
        ]
        answers = [host.communicate(timeout=100)[0] for host in hosts]
        assert [host.returncode for host in hosts] == [0, 0, 0]
        told = [json.loads(answer) for answer in answers]
        said = [line for line in (root / "pages" / "ferry.md").read_text().splitlines() if " says " in line]
        assert sorted(said) == sorted(f"- {name} says {number}" for name in names for number in range(lines))
        assert sorted(one for each in told for one in each["versions"]) == list(range(2, 2 + len(said)))
        assert [each["found"] for each in told] == [[1] * lines] * len(names)
        with Notebook.open(root) as notebook:
            assert notebook.admin.verify().consistent


def test_the_page_on_asyncio_is_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program prints what is shown below it, and its host answers."""
    home = tmp_path / "home"
    home.mkdir()
    with Reader(home) as reader:
        for block in blocks_of((REPOSITORY / "docs" / "asyncio.md").read_text(encoding="utf-8")):
            reader.follow(block)
    monkeypatch.chdir(home)
    Notebook.init("harbour", git=False)
    with TestClient(runpy.run_path("app.py")["app"]) as client:
        assert client.post("/notes", params={"title": "The lamp", "text": "Ines has it."}).json()["version"] == 1
        assert [row["title"] for row in client.get("/notes", params={"q": "Ines"}).json()] == ["The lamp"]
        assert client.post("/notes", params={"title": "", "text": ""}).status_code == 400
        assert "Reminders" in client.get("/prompt").json()


def _line(text: str) -> Edit:
    return Edit("append_to_section", section="Log", content=f"- {text}")


async def _beats_of_the_loop(wanted: int) -> int:
    beats = 0
    while beats < wanted:
        await asyncio.sleep(0)
        beats += 1
    return beats


class _HeldDisk(Disk):
    """Keeps who makes a file waiting."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.may_go_on = threading.Event()

    def create(self, folder: int, name: str, mode: int) -> int:
        self.asked.set()
        assert self.may_go_on.wait(30)
        return super().create(folder, name, mode)


@asynccontextmanager
async def _editing(notebook: AsyncNotebook, text: str) -> AsyncIterator[asyncio.Task[Any]]:
    """An edit that has begun, and does not come to its end meanwhile."""
    disk = _HeldDisk()
    notebook.notebook.vault.disk = disk
    edit = asyncio.create_task(notebook.edit("pages/ferry.md", _line(text), OWNER))
    try:
        assert await anyio.to_thread.run_sync(disk.asked.wait, 30)
        yield edit
    finally:
        disk.may_go_on.set()


@contextlib.contextmanager
def _on_servers(root: Path, mongodb_url: str, database: str, redis_url: str, prefix: str) -> Iterator[None]:
    settings = root / "notebook.toml"
    settings.write_text(f"{settings.read_text()}[mirror]\ndatabase = '{database}'\n[refs]\nprefix = '{prefix}'\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MONGODB_URL", mongodb_url)
        patch.setenv("REDIS_URL", redis_url)
        yield
    drop_keys(redis_url, prefix)
