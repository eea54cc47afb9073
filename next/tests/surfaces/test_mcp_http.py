"""MCP over streamable HTTP, on a real port: who asks is whose token it is, and nothing is answered without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp_types import CallToolResult

from notebook_sync import Notebook, Session
from notebook_sync.registry import OPERATIONS
from notebook_sync.surfaces.background import following
from notebook_sync.surfaces.http.guard import MCP_SESSIONS
from tests.surfaces.mcp_clients import ACCEPT, ERAS, HELLO, mcp_on_a_port, over_http
from tests.surfaces.serving import OWNER, SCRIBE, SESSIONS, STRANGER, bytes_of, make_notebook, token_of
from tests.waiting import eventually

LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@pytest.fixture
def notebook(folder: Path) -> Iterator[Notebook]:
    with Notebook.open(make_notebook(folder)) as notebook:
        notebook.sync()
        yield notebook


@pytest.fixture
def url(notebook: Notebook) -> Iterator[str]:
    with mcp_on_a_port(notebook) as url:
        yield url


def post(url: str, token: str, body: Any, session_id: str = "", method: str = "POST") -> httpx2.Response:
    """One request as a program would write it that knows nothing of MCP's SDK."""
    headers = ACCEPT | {"Authorization": f"Bearer {token}"} | ({"Mcp-Session-Id": session_id} if session_id else {})
    return httpx2.request(method, url, json=body, headers=headers, timeout=30)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("session", SESSIONS, ids=lambda one: one.kind)
def test_the_token_decides_what_is_listed_and_done(notebook: Notebook, url: str, session: Session, mode: str) -> None:
    tools = {each.tool: each for each in OPERATIONS.values() if each.tool}
    allowed = {name for name, each in tools.items() if each.is_listed_for(session, notebook.settings)}
    # Without an agent, a session is not refused such a tool: it has to say whose notes it means.
    nobodys = {name for name, each in tools.items() if not session.agent and session.kind in each.needs_agent}
    refused = tools.keys() - allowed - nobodys
    before = bytes_of(notebook.root)
    change = {"id": "reminders.md", "action": "write", "content": "x", "title": "x"}

    async def run() -> dict[str, CallToolResult]:
        async with over_http(f"{url}?tools=all", token_of(notebook, session), mode=mode) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == allowed
            assert ("safe is blue" in (client.instructions or "")) is False
            return {name: await client.call_tool(name, _fitting(tools[name], change)) for name in refused}

    for name, answer in anyio.run(run).items():
        assert answer.is_error, name
        assert answer.structured_content is not None
        assert answer.structured_content["error"]["type"] == "not_permitted", name
    assert bytes_of(notebook.root) == before
    events = [each for each in notebook.core.events.read() if each["kind"] == "refused"]
    assert len(events) == len(refused)
    assert {(each["session"], each["agent"]) for each in events} <= {(session.kind, session.agent)}


@pytest.mark.parametrize("mode", ERAS)
def test_rules_that_changed_ride_on_the_next_result_once(notebook: Notebook, url: str, mode: str) -> None:
    async def run() -> None:
        async with over_http(url, token_of(notebook, SCRIBE), mode=mode) as client:
            assert "Never pay" in (client.instructions or "")
            (notebook.root / "runtime/standing-orders.md").write_text("# Standing Orders\n\n- Ask Odile\n")
            results = [await client.call_tool("notebook_read", {"id": "pages/plan"}) for _ in range(3)]
        shown = [" ".join(getattr(each, "text", "") for each in result.content[1:]) for result in results]
        assert ["Ask Odile" in each for each in shown] == [True, False, False]

    anyio.run(run)


def test_results_say_that_the_index_is_behind(folder: Path) -> None:
    async def run(url: str, token: str) -> CallToolResult:
        async with over_http(url, token) as client:
            return await client.call_tool("notebook_list", {})

    with Notebook.open(make_notebook(folder)) as notebook, mcp_on_a_port(notebook) as url:
        token = token_of(notebook, SCRIBE)
        assert "not indexed yet" in getattr(anyio.run(run, url, token).content[-1], "text", "")
        with following(notebook):
            eventually(lambda: notebook.core.lag == "" and not notebook.core.behind(), "it is synced")
            assert len(anyio.run(run, url, token).content) == 1
            with following(notebook):
                assert notebook.core.lag == ""


def test_a_revoked_token_is_worth_nothing_at_once(notebook: Notebook, url: str) -> None:
    token = token_of(notebook, SCRIBE)
    opened = post(url, token, HELLO)
    assert opened.status_code == 200
    notebook.admin.revoke_token("scribe")
    assert post(url, token, LIST, opened.headers["mcp-session-id"]).status_code == 401


def test_nobody_uses_the_mcp_session_of_another(notebook: Notebook, url: str) -> None:
    owner, agent = token_of(notebook, OWNER), token_of(notebook, SCRIBE)
    session_id = post(url, owner, HELLO).headers["mcp-session-id"]
    assert post(url, agent, LIST, session_id).status_code == 404
    assert post(url, agent, None, session_id, "DELETE").status_code == 404
    assert post(url, owner, LIST, session_id).status_code == 200


def test_an_agent_has_so_many_mcp_sessions(notebook: Notebook, url: str) -> None:
    token = token_of(notebook, SCRIBE)
    statuses = [post(url, token, HELLO).status_code for _ in range(MCP_SESSIONS.each + 1)]
    assert statuses == [200] * MCP_SESSIONS.each + [503]
    assert post(url, token_of(notebook, STRANGER), HELLO).status_code == 200


def test_many_agents_at_once_are_each_their_own(notebook: Notebook, url: str) -> None:
    tokens = {name: token_of(notebook, Session.task(name)) for name in ("scribe", "pilot", "cook")}
    seen: dict[str, bool] = {}

    async def one(name: str) -> None:
        async with over_http(url, tokens[name], mode="legacy") as client:
            answer = await client.call_tool("notebook_read", {"id": "channels/pilot/global/berth.md"})
            seen[name] = not answer.is_error

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for name in tokens:
                tasks.start_soon(one, name)

    anyio.run(run)
    assert seen == {"scribe": False, "pilot": True, "cook": False}


def _fitting(operation: Any, given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in operation.arguments.__struct_fields__}
