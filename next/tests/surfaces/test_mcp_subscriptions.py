"""Which clients are notified of a change, and of which: those that subscribed, of what their session may read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError

from notebook_sync import Notebook
from notebook_sync.surfaces.mcp import resources
from tests.surfaces.mcp_clients import mcp_on_a_port, over_http
from tests.surfaces.serving import OWNER, SCRIBE, make_notebook, token_of

PROMPT, PLAN = "notebook://prompt", "notebook://note/pages/plan"
BERTH = "notebook://note/channels/pilot/global/berth"
pytestmark = pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")


@pytest.fixture
def notebook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    monkeypatch.setattr(resources, "_POLL_SECONDS", 0.02)
    with Notebook.open(make_notebook(folder)) as notebook:
        notebook.sync()
        yield notebook


@pytest.fixture
def url(notebook: Notebook) -> Iterator[str]:
    with mcp_on_a_port(notebook) as url:
        yield url


class Heard:
    """What a client is notified of."""

    def __init__(self) -> None:
        self.uris: list[str] = []

    async def __call__(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            self.uris.append(str(message.params.uri))

    async def until(self, *uris: str) -> None:
        with anyio.fail_after(30):
            while self.uris != list(uris):
                await anyio.sleep(0.02)


def rewrite(notebook: Notebook, path: str, text: str) -> None:
    (notebook.root / path).write_text(text)


def test_a_change_by_hand_is_sent_to_who_subscribed(notebook: Notebook, url: str) -> None:
    async def run() -> None:
        heard, other = Heard(), Heard()
        token = token_of(notebook, OWNER)
        async with (
            over_http(url, token, mode="legacy", message_handler=heard) as client,
            over_http(url, token, mode="legacy", message_handler=other),
        ):
            await client.subscribe_resource(PLAN)
            rewrite(notebook, "pages/plan.md", "# Plan\n\nStart big.\n")
            await heard.until(PLAN)
            await client.subscribe_resource(PROMPT)
            rewrite(notebook, "runtime/reminders.md", "# Reminders\n\n## Today\n\n- [ ] Ring Ines\n")
            await heard.until(PLAN, PROMPT)
            (notebook.root / "pages/plan.md").unlink()
            await heard.until(PLAN, PROMPT, PLAN)
            await client.unsubscribe_resource(PROMPT)
            rewrite(notebook, "runtime/reminders.md", "# Reminders\n")
            rewrite(notebook, "pages/plan.md", "# Plan\n\nAgain.\n")
            await heard.until(PLAN, PROMPT, PLAN, PLAN)
            assert other.uris == []

    anyio.run(run)


def test_a_session_that_lost_its_token_hears_nothing(notebook: Notebook, url: str) -> None:
    async def run() -> None:
        heard, owners = Heard(), Heard()
        async with (
            over_http(url, token_of(notebook, OWNER), mode="legacy", message_handler=owners) as owner,
            over_http(url, token_of(notebook, SCRIBE), mode="legacy", message_handler=heard) as client,
        ):
            for each in (owner, client):
                await each.subscribe_resource(PLAN)
            notebook.admin.revoke_token("scribe")
            rewrite(notebook, "pages/plan.md", "# Plan\n\nSecret.\n")
            await owners.until(PLAN)
            assert heard.uris == []

    anyio.run(run)


def test_what_a_session_may_not_read_cannot_be_subscribed_to(notebook: Notebook, url: str) -> None:
    async def run() -> None:
        async with over_http(url, token_of(notebook, SCRIBE), mode="legacy") as client:
            for uri in (BERTH, "notebook://note/none", "notebook://nothing"):
                with pytest.raises(MCPError):
                    await client.subscribe_resource(uri)

    anyio.run(run)


def test_subscriptions_are_limited(notebook: Notebook, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_MOST_OF_ONE", 2)
    for name in "abc":
        rewrite(notebook, f"pages/{name}.md", "x\n")

    async def run() -> None:
        async with over_http(url, token_of(notebook, SCRIBE), mode="legacy") as client:
            for name in "aab":
                await client.subscribe_resource(f"notebook://note/pages/{name}")
            with pytest.raises(MCPError, match="at most 2"):
                await client.subscribe_resource("notebook://note/pages/c")

    anyio.run(run)


def test_the_later_protocol_listens_on_a_stream(notebook: Notebook, url: str) -> None:
    async def run() -> None:
        token = token_of(notebook, SCRIBE)
        async with (
            over_http(url, token, mode="auto") as client,
            client.listen(resource_subscriptions=[PLAN, BERTH]) as first,
            client.listen(resource_subscriptions=[PLAN]),
            client.listen(resource_subscriptions=[PLAN]),
        ):
            # Streams take no turn from requests.
            assert not (await client.call_tool("notebook_search", {"query": "plan"})).is_error
            rewrite(notebook, "channels/pilot/global/berth.md", "# Berth\n\nMoved.\n")
            rewrite(notebook, "pages/plan.md", "# Plan\n\nStart big.\n")
            with anyio.fail_after(30):
                event: Any = await anext(aiter(first))
                assert event.uri == PLAN

    anyio.run(run)
