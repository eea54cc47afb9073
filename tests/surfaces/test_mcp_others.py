"""What others wrote for MCP, against the server: the TypeScript SDK's client, and the protocol's own scenarios."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from notebook_sync import Notebook
from tests.processes import quick_command
from tests.surfaces.serving import OWNER, mcp_on_a_port, npm_file, token_of

# Those that need no tools, resources and prompts of the suite's own.
SCENARIOS = (
    *("server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams"),
    "dns-rebinding-protection",
)


def test_the_typescript_client_over_stdio(notebook: Notebook) -> None:
    started = (*quick_command(), "-C", str(notebook.root), "mcp", "--session", "owner")
    check(conversation(notebook.root, "stdio", *started), notebook.root)


def test_the_typescript_client_over_http(notebook: Notebook, url: str) -> None:
    check(conversation(notebook.root, "http", url, token_of(notebook, OWNER)), notebook.root)


def conversation(root: Path, *how: str) -> dict[str, Any]:
    """What the client was answered, by step. A rule is changed by hand as soon as it has subscribed to the prompt."""
    npm_file("@modelcontextprotocol/sdk/package.json")
    answers: dict[str, Any] = {}
    with subprocess.Popen(
        ["node", str(Path(__file__).with_name("mcp_client.mjs")), *how],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdout is not None
        for line in client.stdout:
            step = json.loads(line)
            answers[step["step"]] = step["answer"]
            if step["step"] == "subscribed":
                with (root / "runtime/standing-orders.md").open("a") as orders:
                    orders.write("\n- Ask Odile before the ferry sails\n")
        assert client.wait(60) == 0
    return answers


def check(answers: dict[str, Any], root: Path) -> None:
    assert answers["server"] == "notebook-sync"
    assert "Never pay" in answers["instructions"]
    assert {"notebook_edit", "notebook_read", "notebook_search", "notebook_list"} <= set(answers["tools"])
    text = (root / "pages/plan.md").read_text()
    assert answers["read"]["structuredContent"]["text"] == text
    assert answers["conflict"]["isError"] is True
    error = answers["conflict"]["structuredContent"]["error"]
    assert (error["type"], error["text"]) == ("conflict", text)
    assert answers["missing"]["type"] == "no_such_note"
    assert answers["resources"][0] == "notebook://prompt"
    assert answers["templates"] == ["notebook://note/{id}", "notebook://runtime/{file}"]
    assert answers["prompt"] == answers["resource"]
    assert answers["updated"] == "notebook://prompt"


def test_the_scenarios_of_the_protocols_own_suite_pass(notebook: Notebook, tmp_path: Path) -> None:
    token = token_of(notebook, OWNER)
    with mcp_on_a_port(notebook, lambda app: Sending(app, token)) as url:
        program = npm_file("@modelcontextprotocol/conformance/dist/index.js")
        command = ("node", str(program), "server", "--url", url, "-o", str(tmp_path))
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    for scenario in SCENARIOS:
        (found,) = tmp_path.glob(f"*{scenario}*/checks.json")
        assert {check["status"] for check in json.loads(found.read_text())} == {"SUCCESS"}, scenario + done.stdout


class Sending:
    """The app as a client finds it that sends this token: the suite can send none."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._header = (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "headers": [*scope.get("headers", ()), self._header]}, receive, send)
