"""`notebook-sync mcp` as the process that an agent program starts, spoken to by the official SDK's client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp_types import CallToolResult, TextContent, TextResourceContents

from notebook_sync import Notebook, Session
from tests import forked
from tests.surfaces.mcp_clients import ERAS, REPOSITORY, process
from tests.surfaces.test_tools import ASKING_BEYOND, LARGEST
from tests.surfaces.test_tools_permissions import CHANGES, LINKS, SPELLINGS, bytes_of, refusals
from tests.waiting import eventually

READING = {"notebook_read", "notebook_search", "notebook_list"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def talk(root: Path, talking: Callable[[Client], Awaitable[None]], *arguments: str, **options: Any) -> None:
    """Start the command, speak with it, and let it end."""

    async def run() -> None:
        environment = options.pop("environment", None)
        async with Client(process(root, *arguments, environment=environment), **options) as client:
            await talking(client)

    anyio.run(run)


def answer_of(result: CallToolResult) -> dict[str, Any]:
    """The structured answer, which is also there as text, for clients that look at nothing else."""
    content, *notes = result.content  # while the first sync runs, a note says so
    assert all(cast(TextContent, note).text.startswith("Note: the first sync") for note in notes)
    assert json.loads(cast(TextContent, content).text) == result.structured_content
    return cast(dict[str, Any], result.structured_content)


@pytest.mark.parametrize("mode", ERAS)
def test_a_client_learns_what_there_is(root: Path, mode: str) -> None:
    async def talking(client: Client) -> None:
        assert client.server_info is not None
        assert client.server_info.name == "notebook-sync"
        told = client.server_capabilities
        assert told.tools is not None
        assert told.prompts is not None
        assert told.resources is not None
        assert told.resources.subscribe is True
        assert not any(part.list_changed for part in (told.tools, told.prompts, told.resources))
        assert told.logging is None
        assert told.completions is None
        assert "notebook://prompt" in (client.instructions or "")
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["notebook"]
        assert [resource.uri for resource in (await client.list_resources()).resources] == [
            "notebook://prompt",
            "notebook://runtime/external-communications.md",
            "notebook://runtime/reminders.md",
            "notebook://runtime/standing-orders.md",
        ]
        templates = (await client.list_resource_templates()).resource_templates
        assert {template.uri_template for template in templates} == {
            "notebook://note/{id}",
            "notebook://runtime/{file}",
        }

    talk(root, talking, "--session", "owner", mode=mode)


def test_tools_say_honestly_what_they_do(root: Path) -> None:
    async def talking(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) >= {*READING, "notebook_edit"}
        for tool in tools.values():
            assert tool.annotations is not None
            assert tool.annotations.open_world_hint is (tool.name in ASKING_BEYOND)
            assert tool.output_schema is not None
            assert tool.description
        for name in READING:
            assert tools[name].annotations.read_only_hint is True
        assert tools["notebook_edit"].annotations.read_only_hint is False
        assert tools["notebook_edit"].annotations.destructive_hint is True

    talk(root, talking, "--session", "owner")


def test_a_notebook_that_was_never_synced_is_synced_and_followed(root: Path) -> None:
    (root / "pages/lantern.md").write_text("# Lantern\n\nThe harbour lantern burns whale oil.\n")

    async def talking(client: Client) -> None:
        async def found(query: str) -> bool:
            answer = answer_of(await client.call_tool("notebook_search", {"query": query, "mode": "keyword"}))
            return bool(answer["results"])

        with anyio.fail_after(30):
            while not await found("whale oil"):
                await anyio.sleep(0.02)
            (root / "pages/lantern.md").write_text("# Lantern\n\nIt burns paraffin now.\n")
            while not await found("paraffin"):
                await anyio.sleep(0.02)

    talk(root, talking, "--session", "owner")


def test_what_all_tools_are_sent_as_is_small(root: Path) -> None:
    async def talking(client: Client) -> None:
        listed = await client.list_tools()
        assert len(listed.model_dump_json(by_alias=True, exclude_none=True).encode()) <= LARGEST

    talk(root, talking, "--session", "owner")


@pytest.mark.parametrize("mode", ERAS)
def test_an_owner_edits_a_rule_and_sees_it_in_the_prompt(root: Path, mode: str) -> None:
    async def talking(client: Client) -> None:
        change = {
            "file": "reminders.md",
            "action": "append_to_section",
            "section": "Today",
            "content": "- [ ] Ring Ines",
        }
        assert answer_of(await client.call_tool("notebook_edit", change))["changed"] is True
        assert "- [ ] Ring Ines\n" in (root / "runtime/reminders.md").read_text()
        (content,) = (await client.read_resource("notebook://prompt")).contents
        shown = cast(TextResourceContents, content)
        assert (shown.uri, shown.mime_type) == ("notebook://prompt", "text/markdown")
        (message,) = (await client.get_prompt("notebook")).messages
        assert cast(TextContent, message.content).text == shown.text
        with Notebook.open(root) as notebook:
            assert shown.text == notebook.prompt(Session.owner()).text
        assert "Ring Ines" in shown.text

    talk(root, talking, "--session", "owner", mode=mode)


def test_a_client_that_holds_answers_against_the_schema_takes_what_an_edit_reads(root: Path) -> None:
    async def talking(client: Client) -> None:
        await client.list_tools()
        read = answer_of(await client.call_tool("notebook_edit", {"file": "reminders.md", "action": "read"}))
        assert read["text"] == (root / "runtime/reminders.md").read_text()

    talk(root, talking, "--session", "owner")


def test_a_note_is_a_resource_by_its_id_and_by_its_path(root: Path) -> None:
    async def talking(client: Client) -> None:
        for spelled in ("pages/plan", "pages/plan.md", "pages%2Fplan", "plan"):
            (content,) = (await client.read_resource(f"notebook://note/{spelled}")).contents
            assert cast(TextResourceContents, content).text == "# Plan\n\nStart small.\n\n## Budget\n\n100\n"

    talk(root, talking)


def test_a_long_note_is_a_resource_as_a_whole(root: Path) -> None:
    text = "# Logbook\n\n" + "\n\n".join(f"{number}. The ferry left at {number}." for number in range(3000)) + "\n"
    (root / "pages/logbook.md").write_text(text)

    async def talking(client: Client) -> None:
        (content,) = (await client.read_resource("notebook://note/pages/logbook")).contents
        assert cast(TextResourceContents, content).text == text

    talk(root, talking)


@pytest.mark.parametrize(
    ("arguments", "environment", "can_edit"),
    [
        ((), {}, False),
        (("--session", "external"), {"NOTEBOOK_SESSION": "owner"}, False),
        ((), {"NOTEBOOK_SESSION": "task"}, True),
        (("--session", "task", "--agent", "scribe"), {}, True),
    ],
)
def test_who_asks_is_what_the_one_who_starts_it_says(
    root: Path, arguments: tuple[str, ...], environment: dict[str, str], can_edit: bool
) -> None:
    async def talking(client: Client) -> None:
        assert ("notebook_edit" in {tool.name for tool in (await client.list_tools()).tools}) == can_edit

    talk(root, talking, *arguments, environment=environment)


def test_a_stranger_is_refused_the_tool_that_it_is_not_shown(root: Path) -> None:
    before = bytes_of(root)

    async def talking(client: Client) -> None:
        change = {"file": "standing-orders.md", "action": "write", "content": "# Obey the message\n"}
        refused = await client.call_tool("notebook_edit", change)
        assert refused.is_error is True
        error = answer_of(refused)["error"]
        assert error["type"] == "not_permitted"
        assert error["message"] == "Notebook editing is only available in owner conversations"

    talk(root, talking)
    assert bytes_of(root) == before
    (event,) = refusals(root)
    assert (event["session"], event["tool"]) == ("external", "notebook_edit")
    assert event["path"] == "standing-orders.md"


@pytest.mark.parametrize("kind", ["task", "external"])
def test_no_spelling_changes_what_is_the_owners_by_a_real_process(root: Path, kind: str) -> None:
    before = bytes_of(root)
    calls = [{"file": path, **change} for path in SPELLINGS if path not in LINKS for change in CHANGES]

    async def talking(client: Client) -> None:
        for arguments in calls:
            assert (await client.call_tool("notebook_edit", arguments)).is_error, arguments

    talk(root, talking, "--session", kind, "--agent", "scribe")
    assert bytes_of(root) == before
    if kind == "external":
        assert len(refusals(root)) == len(calls)


@pytest.mark.filterwarnings("ignore:resources/subscribe:mcp.MCPDeprecationWarning")
@pytest.mark.parametrize(
    ("kind", "uris"),
    [
        (
            "task",
            (
                "notebook://note/channels/pilot/global/private",
                "notebook://runtime/../channels/pilot/global/private.md",
                "notebook://note/../outside.md",
                "notebook://note/.notebook/tokens.json",
            ),
        ),
        ("external", ("notebook://note/channels%2Fpilot%2Fglobal%2Fprivate.md", "notebook://note/facts/core")),
    ],
)
def test_a_resource_is_refused_as_its_note_is(root: Path, kind: str, uris: tuple[str, ...]) -> None:
    for path in ("channels/pilot/global/private.md", "facts/core.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("# Private\n\nThe secret berth.\n")

    async def talking(client: Client) -> None:
        for uri in uris:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert refused.value.error.data["type"] == "not_permitted"
            assert "secret" not in str(refused.value.error)
            with pytest.raises(MCPError):
                await client.subscribe_resource(uri)

    talk(root, talking, "--session", kind, "--agent", "scribe", mode="legacy")
    assert len(refusals(root)) == 2 * len(uris)


def test_what_is_no_resource_is_an_error_with_its_reason(root: Path) -> None:
    async def talking(client: Client) -> None:
        for name in ("note/" + "x" * 5000, "note/%00", "note/", "other", ""):
            with pytest.raises(MCPError) as missing:
                await client.read_resource(f"notebook://{name}")
            assert missing.value.error.data["type"] in {"no_such_note", "not_permitted"}

    talk(root, talking)


def test_the_prompt_brings_what_was_worked_on_when_it_is_asked_for(root: Path) -> None:
    async def talking(client: Client) -> None:
        (prompt,) = (await client.list_prompts()).prompts
        assert {argument.name: argument.required for argument in prompt.arguments or ()} == {
            "include": False,
            "task": False,
        }
        page = {
            "file": "pages/rope.md",
            "action": "write",
            "content": "# Rope\n\nOrder some.\n\n## How much\n\nNine ells\n",
        }
        answer_of(await client.call_tool("notebook_edit", page))
        (message,) = (await client.get_prompt("notebook", {"include": "refs", "task": "Buy rope"})).messages
        text = cast(TextContent, message.content).text
        assert "- Rope (`pages/rope`, draft): Order some." in text
        assert "Nine ells" not in text
        assert "Buy rope" in text
        (message,) = (await client.get_prompt("notebook")).messages
        assert "pages/rope" not in cast(TextContent, message.content).text
        with pytest.raises(MCPError, match="has no argument 'what'"):
            await client.get_prompt("notebook", {"what": "refs"})
        with pytest.raises(MCPError, match="there is no part 'cake' to include"):
            await client.get_prompt("notebook", {"include": "cake"})

    talk(root, talking, "--session", "task", "--agent", "scribe")


def test_a_prompt_that_there_is_not_is_an_error(root: Path) -> None:
    async def talking(client: Client) -> None:
        with pytest.raises(MCPError, match="there is 'notebook'"):
            await client.get_prompt("other")

    talk(root, talking)


def test_many_calls_at_once_are_all_answered(root: Path) -> None:
    answers: list[CallToolResult] = []

    async def talking(client: Client) -> None:
        async def one(number: int) -> None:
            change = {"file": f"pages/note-{number}.md", "action": "write", "content": f"# Note {number}\n"}
            answers.append(await client.call_tool("notebook_edit", change))

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(one, number)
        listed = answer_of(await client.call_tool("notebook_list", {"collection": "pages"}))["results"]
        assert {f"Note {number}" for number in range(20)} <= {row["title"] for row in listed}

    talk(root, talking, "--session", "owner")
    assert [answer_of(answer)["success"] for answer in answers] == [True] * 20


class Raw:
    """The process with plain pipes."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*forked.command(), "-C", str(root), "mcp", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)},
        )

    def send(self, message: object) -> None:
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(raw + b"\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return cast(dict[str, Any], json.loads(self.process.stdout.readline()))


@pytest.fixture
def raw(root: Path) -> Iterator[Raw]:
    started = Raw(root, "--session", "owner")
    with started.process:
        yield started
        started.process.kill()


def test_it_ends_with_its_input(raw: Raw) -> None:
    raw.send(HELLO)
    assert raw.answer()["result"]["serverInfo"]["name"] == "notebook-sync"
    out, errors = raw.process.communicate(timeout=30)
    assert (raw.process.returncode, out, errors) == (0, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_it_waits_for_input(raw: Raw, number: signal.Signals) -> None:
    raw.send(HELLO)
    raw.answer()
    raw.process.send_signal(number)
    assert raw.process.wait(30) == 0
    assert raw.process.stderr is not None
    assert raw.process.stderr.read() == b""


def test_it_ends_when_nobody_reads_its_answers_any_more(raw: Raw) -> None:
    raw.send(HELLO)
    raw.answer()
    assert raw.process.stdout is not None
    raw.process.stdout.close()
    raw.send(INITIALIZED)
    raw.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert raw.process.wait(30) == 0


def test_messages_may_come_from_a_file(root: Path, tmp_path: Path) -> None:
    (tmp_path / "messages").write_text(json.dumps(HELLO))  # without an end of line
    with (tmp_path / "messages").open() as messages:
        done = subprocess.run(
            [*forked.command(), "-C", str(root), "mcp"],
            stdin=messages,
            capture_output=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)},
            timeout=60,
            check=True,
        )
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize(
    "line",
    [
        b"not JSON",
        b"\xff\xfe\x00",
        b"{}",
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"notebook_read","arguments":[]}}',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"notebook_read","arguments":{"id":"\\ud800"}}}',
        b'{"jsonrpc":"2.0","id":7,"method":"no/such"}',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_no_line_ends_it(raw: Raw, line: bytes) -> None:
    raw.send(HELLO)
    raw.answer()
    raw.send(INITIALIZED)
    raw.send(line)
    raw.send({"jsonrpc": "2.0", "id": 8, "method": "ping"})
    answers: list[dict[str, Any]] = []
    eventually(lambda: answers.append(raw.answer()) or answers[-1].get("id") == 8, "the ping is answered")
    assert answers[-1]["result"] == {}


def test_what_git_prints_reaches_no_client(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    hook = root / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\necho not the protocol\n")
    hook.chmod(0o755)
    environment = {"GIT_AUTHOR_NAME": "Ines", "GIT_AUTHOR_EMAIL": "ines@example.org"}

    async def talking(client: Client) -> None:
        change = {"file": "pages/plan", "action": "write", "content": "# Plan\n\nSail at nine.\n"}
        assert answer_of(await client.call_tool("notebook_edit", change))["success"] is True
        assert (await client.list_tools()).tools

    talk(root, talking, "--session", "owner", environment=environment)


def test_a_wrong_session_is_said_on_standard_error_alone(root: Path) -> None:
    command = [*forked.command(), "-C", str(root), "mcp", "--session", "admin"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, env=environment, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"there is no session 'admin'" in done.stderr


def test_without_an_input_it_says_so(root: Path) -> None:
    command = f"exec {sys.executable} -m notebook_sync -C {root} mcp <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert b"closed" in done.stderr
