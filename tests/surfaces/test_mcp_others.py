"""What others wrote for MCP, against the server: the TypeScript SDK's client, and the protocol's own scenarios."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from notebook_sync import Notebook
from notebook_sync.folder import FOLDER
from notebook_sync.tokens import Tokens
from tests.servers import unavailable
from tests.surfaces.mcp_clients import REPOSITORY, serving

SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
)


@pytest.fixture(scope="session")
def node_modules() -> Path:
    folder = os.environ.get("NOTEBOOK_TEST_NODE_MODULES")
    if not folder:
        unavailable("NOTEBOOK_TEST_NODE_MODULES names no folder")
    return Path(folder)


@pytest.fixture
def url(root: Path) -> Iterator[str]:
    with Notebook.open(root) as notebook, serving(notebook) as url:
        yield url


def test_the_typescript_client_over_stdio(root: Path, node_modules: Path) -> None:
    started = (sys.executable, "-m", "notebook_sync", "-C", str(root), "mcp", "--session", "owner")
    check(conversation(node_modules, root, "stdio", *started), root)


def test_the_typescript_client_over_http(root: Path, url: str, node_modules: Path) -> None:
    token = Tokens(root / FOLDER).owner()
    check(conversation(node_modules, root, "http", url, token), root)


def conversation(node_modules: Path, root: Path, *how: str) -> dict[str, Any]:
    """What the client was answered, by step. A rule is changed by hand as soon as it has subscribed to the prompt."""
    told: dict[str, Any] = {}
    with subprocess.Popen(
        ["node", str(Path(__file__).with_name("mcp_client.mjs")), *how],
        env={**os.environ, "NOTEBOOK_TEST_NODE_MODULES": str(node_modules), "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdout is not None
        for line in client.stdout:
            step = json.loads(line)
            told[step["step"]] = step["answer"]
            if step["step"] == "subscribed":
                with (root / "runtime/standing-orders.md").open("a") as orders:
                    orders.write("\n- Ask Odile before the ferry sails\n")
        assert client.wait(60) == 0
    return told


def check(told: dict[str, Any], root: Path) -> None:
    assert told["server"] == "notebook-sync"
    assert {"notebook_edit", "notebook_read", "notebook_search", "notebook_list"} <= set(told["tools"])
    assert told["read"]["structuredContent"]["text"] == (root / "pages/plan.md").read_text()
    assert told["conflict"]["isError"] is True
    error = told["conflict"]["structuredContent"]["error"]
    assert (error["type"], error["current_text"]) == ("conflict", (root / "pages/plan.md").read_text())
    assert told["missing"]["type"] == "no_such_note"
    assert told["resources"][0] == "notebook://prompt"
    assert told["templates"] == ["notebook://note/{id}", "notebook://runtime/{file}"]
    assert told["prompt"] == told["resource"]
    assert told["updated"] == "notebook://prompt"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_scenarios_of_the_protocols_own_suite_pass(
    root: Path, tmp_path: Path, node_modules: Path, scenario: str
) -> None:
    tokens = Tokens(root / FOLDER)
    with Notebook.open(root) as notebook, serving(notebook, lambda app: Sending(app, tokens.owner())) as url:
        program = node_modules / "@modelcontextprotocol/conformance/dist/index.js"
        command: Sequence[str] = ("node", str(program), "server", "--url", url, "--scenario", scenario)
        done = subprocess.run([*command, "-o", str(tmp_path)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = tmp_path.glob(f"*{scenario}*/checks.json")
    checks = json.loads(found.read_text())
    assert checks
    assert {check["status"] for check in checks} == {"SUCCESS"}


class Sending:
    """The app as a client finds it that sends this token: the suite can send none."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._header = (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "headers": [*scope.get("headers", ()), self._header]}, receive, send)
