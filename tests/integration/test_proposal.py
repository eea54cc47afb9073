"""What an agent notebook is for: start a proposal, resume it another day, refer to it while doing something else.

Each day is a process of its own, over MCP: an agent knows only what its prompt and its tools tell it.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from mcp.client import Client
from mcp_types import TextContent

from notebook_sync import Notebook, Session
from tests.integration.world import World
from tests.surfaces.mcp_clients import process

# Of the proposal's text, what no prompt and no list may hold: it is read when it is asked for.
DETAIL = "nineteen lanterns on the upper deck"
PROPOSAL = f"""# Night ferry

A last crossing at half past ten, from May to September.

## What it needs

- {DETAIL}
- a second pilot

## What it brings

Forty passengers a night.
"""
WORLDS = ("embedded", "servers")


@pytest.fixture(params=WORLDS)
def office(request: pytest.FixtureRequest, embedded: World) -> World:
    """A notebook that `init` made, embedded, and on MongoDB and Redis Stack."""
    Notebook.init(embedded.root)
    if request.param == "embedded":
        return embedded
    return embedded.on(request.getfixturevalue("mongodb_url"), request.getfixturevalue("redis_stack_url"))


class Day:
    """One conversation of an agent."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.told = ""

    async def prompt(self) -> str:
        """What the agent is told before its first word."""
        (message,) = (await self._client.get_prompt("notebook", {"include": "refs"})).messages
        text = cast(TextContent, message.content).text
        self.told += text
        return text

    async def does(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that answers without an error."""
        answer = cast(dict[str, Any], (await self._client.call_tool(tool, arguments)).structured_content)
        assert "error" not in answer, answer
        if tool != "notebook_read":
            self.told += str(answer)
        return answer


def test_a_proposal_is_started_resumed_and_referred_to(office: World) -> None:
    anyio.run(_days, office)
    with _opened(office) as notebook:
        page = notebook.read("pages/night-ferry.md")
        assert page["metadata"]["created_by"] == "agent:scribe"
        assert page["metadata"]["status"] == "in_progress"
        assert [crumb["changed_by"] for crumb in page["history"]] == ["agent:scribe"] * len(page["history"])
        assert page["metadata"]["version"] == len(page["history"]) == 3
        assert "- a mooring for the night" in page["content"]
        assert DETAIL in page["content"]
        today = notebook.stream.show(Session.owner())
        told = [(entry.action, entry.path) for entry in today.results if entry.action]
        mine = [action for action, path in told if path == "pages/night-ferry.md"]
        assert mine[0] == "created"
        assert mine.count("updated") == 2
        assert "opened" in mine
        assert DETAIL not in str(today)
        assert notebook.sync().updated == 0
        assert notebook.admin.verify().consistent
    log = subprocess.run(
        ["git", "-C", str(office.root), "log", "--format=%s", "--", "pages/night-ferry.md"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(log.stdout.splitlines()) == 3
    assert (office.root / "pages/night-ferry.md").read_text(encoding="utf-8").endswith("Forty passengers a night.\n")


async def _days(office: World) -> None:
    async with _day(office, "scribe") as scribe:
        assert "Night ferry" not in await scribe.prompt()
        made = await scribe.does("notebook_create", collection="pages", title="Night ferry", content=PROPOSAL)
        assert made["path"] == "pages/night-ferry.md"
        assert made["version"] == 1
        await scribe.does(
            "notebook_log", content="Began the proposal for a night ferry; the pilots are to be asked", tags=["ferry"]
        )
        assert DETAIL not in scribe.told

    async with _day(office, "scribe") as scribe:
        assert f"Night ferry (`{made['notebook_id']}`, draft): A last crossing" in await scribe.prompt()
        recalled = await scribe.does("notebook_recall", query="proposal pilots")
        assert any("pilots are to be asked" in entry["content"] for entry in recalled["results"])
        assert DETAIL not in scribe.told  # it knows of the page, and has not seen its text
        part = await scribe.does("notebook_read", id=made["notebook_id"], section="what-it-needs")
        assert DETAIL in part["text"]
        assert "Forty passengers" not in part["text"]
        edited = await scribe.does(
            "notebook_edit",
            file=made["notebook_id"],
            action="append_to_section",
            section="What it needs",
            content="- a mooring for the night",
            expected_digest=part["digest"],
        )
        assert edited["version"] == 2
        updated = await scribe.does("notebook_update", id=made["notebook_id"], status="in_progress")
        assert updated["version"] == 3

    async with _day(office, "pilot") as pilot:
        assert "Night ferry" in await pilot.prompt()
        found = await pilot.does("notebook_recall", query="night ferry")
        refs = [entry for entry in found["results"] if entry.get("ref")]
        assert made["notebook_id"] in {entry["ref"]["notebook_id"] for entry in refs}
        finding = await pilot.does(
            "notebook_create",
            collection="research_notes",
            title="Crew hours at night",
            content="A pilot may stand watch for nine hours, see [[night-ferry]].\n",
            source_url="https://harbour.example/hours",
            confidence=0.8,
            related_pages=[made["notebook_id"]],
        )
        assert finding["path"].startswith("research_notes/")
        rows = (await pilot.does("notebook_search", query="night"))["results"]
        assert {row["collection"] for row in rows} >= {"pages", "research_notes"}
        assert DETAIL not in pilot.told


@asynccontextmanager
async def _day(office: World, agent: str) -> AsyncIterator[Day]:
    environment = {"MONGODB_URL": office.mongodb_url, "REDIS_URL": office.redis_url}
    given = {name: url for name, url in environment.items() if url}
    async with Client(process(office.root, "--session", "task", "--agent", agent, environment=given)) as client:
        yield Day(client)


def _opened(office: World) -> Notebook:
    with pytest.MonkeyPatch.context() as patched:
        for name, url in (("MONGODB_URL", office.mongodb_url), ("REDIS_URL", office.redis_url)):
            patched.setenv(name, url)
        return Notebook.open(office.root)
