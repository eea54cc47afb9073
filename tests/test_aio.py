"""The notebook in an asyncio program: the same answers, a loop that never waits, and an end when it is asked for."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing, asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import AsyncNotebook, Notebook, Session
from notebook_sync.errors import FollowLocked, NoSuchNote, NotANotebook
from notebook_sync.services.notes import NoteService
from tests.services.conftest import FILES, write_files

_DEADLINE = 60


@pytest.fixture
def root(folder: Path) -> Path:
    return write_files(folder, FILES)


class Gate:
    """Where calls wait in their threads."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Semaphore(0), threading.Event()

    def before(self, method: Any) -> Any:
        def wait(*args: Any, **kwargs: Any) -> Any:
            self.reached.release()
            assert self.opened.wait(_DEADLINE)
            return method(*args, **kwargs)

        wait.declared = method.declared  # type: ignore[attr-defined]
        return wait

    async def is_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.acquire, timeout=_DEADLINE)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Lets no read and no create pass until it is opened."""
    made = Gate()
    for name in ("read", "create"):
        monkeypatch.setattr(NoteService, name, made.before(getattr(NoteService, name)))
    yield made
    made.opened.set()


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, run to its end."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**fixtures), _DEADLINE))

    return run


async def turns_of_the_loop() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def assert_cancelled(task: asyncio.Task[Any]) -> None:
    with pytest.raises(asyncio.CancelledError):
        await task


@in_a_loop
async def test_answers_and_errors_are_those_of_a_notebook(root: Path) -> None:
    async with await AsyncNotebook.find(root / "pages") as notebook:
        assert (await notebook.sync()).added == len(FILES) - 1
        with Notebook.open(root) as plain:
            assert await notebook.search("rope") == plain.search("rope")
            assert await notebook.notes.list(collection="pages") == plain.notes.list(collection="pages")
            assert (await notebook.prompt()).text == plain.prompt().text
            assert (notebook.root, notebook.settings) == (plain.root, plain.settings)
        with pytest.raises(NoSuchNote):
            await notebook.read("pages/lighthouse")
    with pytest.raises(NotANotebook):
        await AsyncNotebook.open(root / "nowhere")


@in_a_loop
async def test_a_cancelled_read_is_abandoned_and_closing_lets_it_end(root: Path, gate: Gate) -> None:
    notebook = await AsyncNotebook.open(root)
    reading = asyncio.create_task(notebook.notes.read("pages/ferry"))
    await gate.is_reached()
    reading.cancel()
    await assert_cancelled(reading)
    closing = asyncio.create_task(notebook.close())
    await turns_of_the_loop()
    assert not closing.done()
    gate.opened.set()
    await closing


@in_a_loop
async def test_a_cancelled_write_finishes_first_and_the_loop_goes_on(root: Path, gate: Gate) -> None:
    async with await AsyncNotebook.open(root) as notebook:
        writing = asyncio.create_task(notebook.notes.create("Fog", content="In May."))
        await gate.is_reached()
        for _ in range(3):
            writing.cancel()
            await turns_of_the_loop()
        assert not writing.done()
        gate.opened.set()
        await assert_cancelled(writing)
        assert (root / "pages/fog.md").exists()


@in_a_loop
async def test_a_write_that_is_cancelled_while_it_waits_for_a_thread_never_starts(root: Path, gate: Gate) -> None:
    async with await AsyncNotebook.open(root, threads=1) as notebook:
        first = asyncio.create_task(notebook.notes.create("Fog", content="In May."))
        await gate.is_reached()
        second = asyncio.create_task(notebook.notes.create("Ice", content="In March."))
        await turns_of_the_loop()
        second.cancel()
        await assert_cancelled(second)
        gate.opened.set()
        await first
    assert [(root / f"pages/{name}.md").exists() for name in ("fog", "ice")] == [True, False]


@asynccontextmanager
async def ready(notebook: AsyncNotebook) -> AsyncIterator[AsyncIterator[Any]]:
    async with aclosing(notebook.watch()) as events:
        async for event in events:
            if event.kind == "ready":
                break
        yield events


@in_a_loop
async def test_a_watch_reports_saves_and_releases_its_lock_when_it_is_cancelled(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_sync.sync.watch._LOCK_SECONDS", 0.1)  # for the second watch to give up
    async with await AsyncNotebook.open(root) as notebook:
        following, reported = asyncio.Event(), asyncio.Event()

        async def follow() -> None:
            async with ready(notebook) as events:
                following.set()
                async for event in events:
                    if event.kind == "batch":
                        assert event.fields["paths"] == ["pages/fog.md"]
                        reported.set()

        task = asyncio.create_task(follow())
        await following.wait()
        (root / "pages/fog.md").write_text("# Fog\n")
        await reported.wait()
        with pytest.raises(FollowLocked):
            await anext(notebook.watch())
        task.cancel()
        await assert_cancelled(task)
        async with ready(notebook):
            pass


@in_a_loop
async def test_closing_ends_a_watch(root: Path) -> None:
    notebook = await AsyncNotebook.open(root)
    async with ready(notebook) as events:
        waiting = asyncio.ensure_future(anext(events, None))
        await turns_of_the_loop()
        await notebook.close()
        assert await waiting is None


@in_a_loop
async def test_events_are_followed_without_keeping_the_loop_waiting(root: Path) -> None:
    async with (
        await AsyncNotebook.open(root) as notebook,
        aclosing(notebook.admin.follow_events()) as following,
    ):
        first = asyncio.create_task(anext(following))
        while not first.done():
            notebook.notebook.core.events.record("refused", Session.task("scribe"), path="a")
            await asyncio.sleep(0)
        assert first.result()["agent"] == "scribe"
