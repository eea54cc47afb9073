"""MCP over streamable HTTP, on a real port: who asks is whose token it is, and nothing is told without one."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from mcp_types import CallToolResult

from notebook_sync import Notebook, Session
from notebook_sync.folder import FOLDER
from notebook_sync.tokens import Tokens
from tests.surfaces.mcp_clients import ERAS, over_http, serving, token_of
from tests.surfaces.test_tools_permissions import bytes_of, refusals

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@pytest.fixture
def tokens(root: Path) -> Tokens:
    return Tokens(root / FOLDER)


@pytest.fixture
def url(root: Path, tokens: Tokens) -> Iterator[str]:
    with Notebook.open(root) as notebook, serving(notebook) as url:
        yield url


def post(url: str, body: object, method: str = "POST", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One request as a program would write it that knows nothing of MCP's SDK: status, headers, body."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, parts.path, raw, sent)
        answer = connection.getresponse()
        # A stream that stays open is not waited for.
        told = answer.read() if answer.status != 200 or method == "POST" else b""
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, told
    finally:
        connection.close()


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("session", [Session.owner(), Session.task("scribe"), Session.external("scribe")], ids=str)
def test_the_token_decides_what_is_offered(root: Path, url: str, tokens: Tokens, session: Session, mode: str) -> None:
    async def run() -> CallToolResult:
        async with over_http(url, token_of(tokens, session), mode=mode) as client:
            assert {"notebook_edit"} & {tool.name for tool in (await client.list_tools()).tools} == (
                set() if session.kind == "external" else {"notebook_edit"}
            )
            change = {
                "file": "reminders.md",
                "action": "append_to_section",
                "section": "Today",
                "content": "- [ ] Ropes",
            }
            return await client.call_tool("notebook_edit", change)

    before = bytes_of(root)
    answer = anyio.run(run)
    assert bool(answer.is_error) == (session.kind != "owner")
    assert (bytes_of(root) == before) == (session.kind != "owner")
    assert [(event["session"], event["agent"]) for event in refusals(root)] == (
        [] if session.kind == "owner" else [(session.kind, "scribe")]
    )


def test_a_token_that_was_revoked_is_worth_nothing_at_once(url: str, tokens: Tokens) -> None:
    bearer = {"Authorization": f"Bearer {tokens.add('scribe', 'task')}"}
    status, told, _ = post(url, HELLO, **bearer)
    assert status == 200
    tokens.revoke("scribe")
    assert post(url, LIST, mcp_session_id=told["mcp-session-id"], **bearer)[0] == 401


def test_nobody_uses_the_mcp_session_of_another(url: str, tokens: Tokens) -> None:
    owner = {"Authorization": f"Bearer {tokens.owner()}"}
    agent = {"Authorization": f"Bearer {tokens.add('scribe', 'task')}"}
    session = post(url, HELLO, **owner)[1]["mcp-session-id"]
    assert post(url, LIST, mcp_session_id=session, **agent)[0] == 404
    assert post(url, LIST, "DELETE", mcp_session_id=session, **agent)[0] == 404
    assert post(url, LIST, mcp_session_id=session, **owner)[0] == 200


def test_many_agents_at_once_are_each_their_own(root: Path, url: str, tokens: Tokens) -> None:
    secrets = {name: tokens.add(name, "task") for name in ("scribe", "pilot", "cook")}
    seen: dict[str, Any] = {}

    async def one(name: str) -> None:
        async with over_http(url, secrets[name], mode="legacy") as client:
            note = f"channels/{name}/global/own.md"
            change = {"file": note, "action": "write", "content": f"# Of {name}\n"}
            assert not (await client.call_tool("notebook_edit", change)).is_error
            answers = [
                await client.call_tool("notebook_read", {"id": f"channels/{other}/global/own.md"}) for other in secrets
            ]
            seen[name] = [other for other, answer in zip(secrets, answers, strict=True) if not answer.is_error]

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for name in secrets:
                tasks.start_soon(one, name)

    anyio.run(run)
    assert seen == {name: [name] for name in secrets}
