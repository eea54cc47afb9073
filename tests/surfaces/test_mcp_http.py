"""MCP over streamable HTTP, on a real port: who asks is whose token it is, and who is notified of what."""

from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import MCPError
from mcp_types import CallToolResult

from notebook_sync import Notebook, Session
from notebook_sync.registry import OPERATIONS
from notebook_sync.surfaces.background import following
from notebook_sync.surfaces.http.guard import MCP_SESSIONS
from notebook_sync.surfaces.mcp import resources
from tests.surfaces.serving import (
    ACCEPT,
    ERAS,
    HELLO,
    NO_TLS,
    OWNER,
    SCRIBE,
    SESSIONS,
    STRANGER,
    bytes_of,
    mcp_on_a_port,
    over_http,
    token_of,
)
from tests.waiting import eventually

PROMPT, PLAN = "notebook://prompt", "notebook://note/pages/plan"
BERTH = "notebook://note/channels/pilot/global/berth"
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")]
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def post(url: str, token: str, body: Any, session_id: str = "", method: str = "POST") -> httpx2.Response:
    """One request as a program would write it that knows nothing of MCP's SDK."""
    headers = ACCEPT | {"Authorization": f"Bearer {token}"} | ({"Mcp-Session-Id": session_id} if session_id else {})
    return httpx2.request(method, url, json=body, headers=headers, timeout=30, verify=NO_TLS)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("session", SESSIONS, ids=lambda one: one.kind)
async def test_the_token_decides_what_is_listed_and_done(
    notebook: Notebook, url: str, session: Session, mode: str
) -> None:
    tools = {each.tool: each for each in OPERATIONS.values() if each.tool}
    allowed = {name for name, each in tools.items() if each.is_listed_for(session, notebook.settings)}
    # Without an agent, a session is not refused such a tool: it has to say whose notes it means.
    nobodys = {name for name, each in tools.items() if not session.agent and session.kind in each.needs_agent}
    refused = tools.keys() - allowed - nobodys
    before = bytes_of(notebook.root)
    change = {"id": "reminders.md", "action": "write", "content": "x", "title": "x"}

    async with over_http(f"{url}?tools=all", token_of(notebook, session), mode=mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == allowed
        assert ("safe is blue" in (client.instructions or "")) is False
        answers = {name: await client.call_tool(name, _fitting(tools[name], change)) for name in refused}
    for name, answer in answers.items():
        assert answer.is_error, name
        assert answer.structured_content is not None
        assert answer.structured_content["error"]["type"] == "not_permitted", name
    assert bytes_of(notebook.root) == before
    events = [each for each in notebook.core.events.read() if each["kind"] == "refused"]
    assert len(events) == len(refused)
    assert {(each["session"], each["agent"]) for each in events} <= {(session.kind, session.agent)}


async def test_instructions_are_short(notebook: Notebook, url: str) -> None:
    rewrite(notebook, "runtime/standing-orders.md", "# Standing Orders\n\n" + "- Never pay for the ferry\n" * 2000)
    async with over_http(url, token_of(notebook, STRANGER)) as client:
        assert len((client.instructions or "").split()) < 700


@pytest.mark.parametrize("mode", ERAS)
async def test_rules_that_changed_ride_on_the_next_result_once(notebook: Notebook, url: str, mode: str) -> None:
    async with over_http(url, token_of(notebook, SCRIBE), mode=mode) as client:
        assert "Never pay" in (client.instructions or "")
        rewrite(notebook, "runtime/standing-orders.md", "# Standing Orders\n\n- Ask Odile\n")
        results = [await client.call_tool("notebook_read", {"id": "pages/plan"}) for _ in range(3)]
    shown = [" ".join(getattr(each, "text", "") for each in result.content[1:]) for result in results]
    assert ["Ask Odile" in each for each in shown] == [True, False, False]


async def test_results_say_that_the_index_is_behind(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_sync.sync.watch._LOCK_SECONDS", 0.1)  # for the second one to give up

    async def listed() -> CallToolResult:
        async with over_http(url, token) as client:
            return await client.call_tool("notebook_list", {})

    with Notebook.open(root) as notebook, mcp_on_a_port(notebook) as url:
        token = token_of(notebook, SCRIBE)
        assert "not indexed yet" in getattr((await listed()).content[-1], "text", "")
        with following(notebook):
            eventually(lambda: notebook.core.lag == "" and not notebook.core.behind(), "it is synced")
            assert len((await listed()).content) == 1
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


async def test_many_agents_at_once_are_each_their_own(notebook: Notebook, url: str) -> None:
    tokens = {name: token_of(notebook, Session.task(name)) for name in ("scribe", "pilot", "cook")}
    seen: dict[str, bool] = {}

    async def one(name: str) -> None:
        async with over_http(url, tokens[name], mode="legacy") as client:
            answer = await client.call_tool("notebook_read", {"id": "channels/pilot/global/berth.md"})
            seen[name] = not answer.is_error

    async with anyio.create_task_group() as tasks:
        for name in tokens:
            tasks.start_soon(one, name)
    assert seen == {"scribe": False, "pilot": True, "cook": False}


def _fitting(operation: Any, given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in operation.arguments.__struct_fields__}


# ---- subscriptions


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
    """Replace a file at once: one that is empty first would be two changes."""
    new = notebook.root.parent / "new.md"
    new.write_text(text)
    new.replace(notebook.root / path)


async def test_a_change_by_hand_is_sent_to_who_subscribed(notebook: Notebook, url: str) -> None:
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


async def test_a_session_that_lost_its_token_hears_nothing(notebook: Notebook, url: str) -> None:
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


async def test_what_a_session_may_not_read_cannot_be_subscribed_to(notebook: Notebook, url: str) -> None:
    async with over_http(url, token_of(notebook, SCRIBE), mode="legacy") as client:
        for uri in (BERTH, "notebook://note/none", "notebook://nothing"):
            with pytest.raises(MCPError):
                await client.subscribe_resource(uri)


async def test_subscriptions_are_limited(notebook: Notebook, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_MOST_OF_ONE", 2)
    for name in "abc":
        rewrite(notebook, f"pages/{name}.md", "x\n")

    async with over_http(url, token_of(notebook, SCRIBE), mode="legacy") as client:
        for name in "aaba":
            await client.subscribe_resource(f"notebook://note/pages/{name}")
        with pytest.raises(MCPError, match="at most 2"):
            await client.subscribe_resource("notebook://note/pages/c")


async def test_the_later_protocol_listens_on_a_stream(notebook: Notebook, url: str) -> None:
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
