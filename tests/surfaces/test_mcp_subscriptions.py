"""Being told that a resource changed: by both eras' ways, over both transports, without any other process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification

from notebook_sync import Notebook, Session
from notebook_sync.folder import FOLDER
from notebook_sync.surfaces.mcp import subscriptions as mcp_subscriptions
from notebook_sync.surfaces.mcp.server import NotebookServer
from notebook_sync.surfaces.mcp.subscriptions import Subscriptions
from notebook_sync.tokens import Tokens
from tests.surfaces.mcp_clients import ERAS, over_http, process, serving
from tests.surfaces.test_tools_permissions import refusals

pytestmark = pytest.mark.filterwarnings("ignore:resources/(un)?subscribe:mcp.MCPDeprecationWarning")

DEADLINE = 60.0
PROMPT = "notebook://prompt"
REMINDERS = "notebook://runtime/reminders.md"
PLAN = "notebook://note/pages/plan"
# How a client of this era is made; it is given the options.
Made = Callable[..., AbstractAsyncContextManager[Client]]


class Told:
    """What a client was told, in order."""

    def __init__(self) -> None:
        self.uris: list[str] = []
        self._more = anyio.Event()

    def add(self, uri: str) -> None:
        self.uris.append(uri)
        self._more.set()

    async def until(self, uri: str) -> None:
        """Return once this was told, and forget what was told so far."""
        with anyio.fail_after(DEADLINE):
            while uri not in self.uris:
                await self._more.wait()
                self._more = anyio.Event()
        self.uris.clear()


@contextlib.asynccontextmanager
async def subscribed(made: Made, mode: str, *uris: str) -> AsyncIterator[Told]:
    """A client that has subscribed to these resources, the way its era does."""
    told = Told()

    async def take(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            told.add(message.params.uri)

    async with made(mode=mode, message_handler=take) as client, anyio.create_task_group() as tasks:
        if mode == "legacy":
            for uri in uris:
                await client.subscribe_resource(uri)
            yield told
        else:
            listening = anyio.Event()

            async def listen() -> None:
                async with client.listen(resource_subscriptions=list(uris)) as events:
                    listening.set()
                    async for event in events:
                        told.add(event.uri)

            tasks.start_soon(listen)
            await listening.wait()
            yield told
        tasks.cancel_scope.cancel()


def by_process(root: Path, *arguments: str) -> Made:
    return lambda **options: Client(process(root, *arguments), **options)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_edit_by_hand_is_told(root: Path, mode: str, transport: str) -> None:
    async def run(made: Made) -> None:
        async with subscribed(made, mode, PROMPT, REMINDERS, PLAN) as told:
            with (root / "runtime/reminders.md").open("a") as reminders:
                reminders.write("\n- [ ] Check the ropes\n")
            await told.until(PROMPT)
            (root / "pages/plan.md").write_text("# Plan\n\nSail at nine.\n")
            await told.until(PLAN)
            # As editors save: a new file takes the place of the old one.
            (root / "runtime/new").write_text("## Today\n\n- [ ] Ring Ines\n")
            (root / "runtime/new").replace(root / "runtime/reminders.md")
            await told.until(REMINDERS)
            (root / "pages/plan.md").unlink()
            await told.until(PLAN)

    if transport == "stdio":
        anyio.run(run, by_process(root, "--session", "owner"))
        return
    tokens = Tokens(root / FOLDER)
    with Notebook.open(root) as notebook, serving(notebook) as url:
        anyio.run(run, lambda **options: over_http(url, tokens.owner(), **options))


def in_this_process(root: Path, talking: Callable[[Callable[[Session], Made], Notebook], Awaitable[None]]) -> None:
    """Clients of one server within this process, each for a session of its own."""
    with Notebook.open(root) as notebook:
        subscriptions: dict[Session, Subscriptions] = {}

        def of(session: Session) -> Made:
            one = subscriptions.setdefault(session, Subscriptions(notebook))
            return lambda **options: Client(NotebookServer(notebook, lambda _: session, one), **options)

        anyio.run(talking, of, notebook)


@pytest.mark.parametrize("mode", ERAS)
def test_what_says_nothing_else_is_not_told(root: Path, mode: str) -> None:
    async def talking(of: Callable[[Session], Made], _: Notebook) -> None:
        async with subscribed(of(Session.owner()), mode, PROMPT, REMINDERS, PLAN) as told:
            reminders = root / "runtime/reminders.md"
            os.utime(reminders)
            reminders.write_bytes(reminders.read_bytes())
            (root / "pages/other.md").write_text("# Other\n")
            (root / "pages/plan.md").write_text("# Plan\n\nSail at nine.\n")
            with anyio.fail_after(DEADLINE):
                while not told.uris:
                    await anyio.sleep(0.01)
            assert set(told.uris) == {PLAN}

    in_this_process(root, talking)


@pytest.mark.parametrize("mode", ERAS)
def test_who_wants_to_be_told_of_a_page_has_not_opened_it(root: Path, mode: str) -> None:
    scribe = Session.task("scribe")

    async def talking(of: Callable[[Session], Made], _: Notebook) -> None:
        async with subscribed(of(scribe), mode, PLAN), of(scribe)() as client:
            await client.read_resource("notebook://note/pages/other")

    (root / "pages/plan.md").write_text("# Plan\n")
    (root / "pages/other.md").write_text("# Other\n")
    in_this_process(root, talking)
    with Notebook.open(root) as notebook:
        entries = notebook.stream.show(Session.owner()).results
    assert [entry.path for entry in entries if entry.action == "opened"] == ["pages/other.md"]


@pytest.mark.parametrize("mode", ERAS)
def test_each_session_is_told_of_its_own_prompt(root: Path, mode: str) -> None:
    (root / "pages/berths.md").write_text("# Berths\n\nOne.\n")
    settings = root / "notebook.toml"
    settings.write_text(
        '[[prompt.files]]\npath = "pages/berths.md"\nheading = "Berths"\nsessions = ["owner", "task"]\n'
    )

    async def talking(of: Callable[[Session], Made], _: Notebook) -> None:
        async with (
            subscribed(of(Session.task()), mode, PROMPT) as task,
            subscribed(of(Session.external()), mode, PROMPT) as external,
        ):
            (root / "pages/berths.md").write_text("# Berths\n\nTwo.\n")
            await task.until(PROMPT)
            assert external.uris == []
            with (root / "runtime/standing-orders.md").open("a") as orders:
                orders.write("\n- Ask Odile first\n")
            await external.until(PROMPT)

    in_this_process(root, talking)


def test_after_unsubscribing_nothing_is_told(root: Path) -> None:
    told = Told()

    async def take(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            told.add(message.params.uri)

    async def talking(of: Callable[[Session], Made], _: Notebook) -> None:
        async with of(Session.owner())(mode="legacy", message_handler=take) as client:
            await client.subscribe_resource(PROMPT)
            await client.subscribe_resource(PLAN)
            await client.unsubscribe_resource(PROMPT)
            with (root / "runtime/reminders.md").open("a") as reminders:
                reminders.write("\n- [ ] Check the ropes\n")
            (root / "pages/plan.md").write_text("# Plan\n\nSail at nine.\n")
            with anyio.fail_after(DEADLINE):
                while not told.uris:
                    await anyio.sleep(0.01)
            assert told.uris == [PLAN]

    in_this_process(root, talking)


def test_a_stream_names_what_it_tells_and_leaves_out_what_is_refused(root: Path) -> None:
    (root / "facts/core.md").write_text("# Core\n\n- The harbour is Odile's\n")

    async def talking(of: Callable[[Session], Made], _: Notebook) -> None:
        wanted = [PROMPT, "notebook://note/facts/core", "notebook://note/none"]
        async with (
            of(Session.external())() as client,
            client.listen(resource_subscriptions=wanted, tools_list_changed=True) as events,
        ):
            assert events.honored.resource_subscriptions == [PROMPT]
            assert not events.honored.tools_list_changed

    in_this_process(root, talking)
    (event,) = refusals(root)
    assert event["session"] == "external"


def test_whose_token_was_revoked_is_told_nothing_more(root: Path) -> None:
    tokens = Tokens(root / FOLDER)

    async def run(url: str) -> None:
        scribe, pilot = tokens.add("scribe", "task"), tokens.add("pilot", "task")
        async with (
            subscribed(lambda **options: over_http(url, scribe, **options), "auto", PROMPT) as revoked,
            subscribed(lambda **options: over_http(url, pilot, **options), "auto", PROMPT) as kept,
        ):
            tokens.revoke("scribe")
            with (root / "runtime/reminders.md").open("a") as reminders:
                reminders.write("\n- [ ] Check the ropes\n")
            await kept.until(PROMPT)
            assert revoked.uris == []

    with Notebook.open(root) as notebook, serving(notebook) as url:
        anyio.run(run, url)


def test_a_connection_that_ended_takes_its_subscriptions_along(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_subscriptions, "_MOST_SUBSCRIPTIONS", 1)

    async def talking(of: Callable[[Session], Made], _: Notebook) -> None:
        for uri in (PROMPT, PLAN):
            async with of(Session.owner())(mode="legacy") as client:
                await client.subscribe_resource(uri)
                with pytest.raises(MCPError, match="too many"):
                    await client.subscribe_resource(REMINDERS)

    in_this_process(root, talking)


def test_one_client_is_told_of_a_hundred_resources_at_most(root: Path) -> None:
    spellings = [f"notebook://note/{'./' * number}pages/plan" for number in range(120)]

    async def talking(of: Callable[[Session], Made], _: Notebook) -> None:
        async with of(Session.owner())() as client, client.listen(resource_subscriptions=spellings) as events:
            assert events.honored.resource_subscriptions == spellings[:100]
        async with of(Session.owner())(mode="legacy") as client:
            for uri in spellings[:100]:
                await client.subscribe_resource(uri)
            with pytest.raises(MCPError, match="too many"):
                await client.subscribe_resource(spellings[100])

    in_this_process(root, talking)
