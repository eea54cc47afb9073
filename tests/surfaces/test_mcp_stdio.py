"""`notebook-sync mcp` as the process that an agent program starts, spoken to by the official SDK's client."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import anyio
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp_types import CallToolResult, ListToolsResult, TextContent, TextResourceContents

from notebook_sync import Notebook, Session
from tests.processes import start_command
from tests.surfaces.serving import ERAS, HELLO, bytes_of, make_notebook, over_stdio

CORE_BYTES, ALL_BYTES = 8 << 10, 16 << 10
READING = {"notebook_read", "notebook_search", "notebook_list"}
LOGBOOK = "# Logbook\n\n" + "\n\n".join(f"{number}. The ferry left at {number}." for number in range(3000)) + "\n"
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")]


def answer_of(result: CallToolResult) -> dict[str, Any]:
    """The structured answer, which is also there as text; notices follow it."""
    assert json.loads(cast(TextContent, result.content[0]).text) == result.structured_content
    return cast(dict[str, Any], result.structured_content)


def notices_of(result: CallToolResult) -> str:
    return "\n".join(cast(TextContent, each).text for each in result.content[1:])


def size_of(listed: ListToolsResult) -> int:
    """In bytes, as it is sent."""
    return len(listed.model_dump_json(by_alias=True, exclude_none=True).encode())


async def text_of(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    return cast(TextResourceContents, content).text


class Started(NamedTuple):
    """A client, and the folder of the notebook that its process serves."""

    client: Client
    root: Path


@contextlib.asynccontextmanager
async def started(folder: Path, *arguments: str, mode: str) -> AsyncIterator[Started]:
    """A process over a notebook below a folder, with a note that no pipe takes in one piece."""
    root = make_notebook(folder / "notebook")
    (root / "pages/logbook.md").write_text(LOGBOOK)
    state = {"NOTEBOOK_STATE_DIR": str(folder / "state")}
    async with over_stdio(root, *arguments, environment=state, mode=mode) as client:
        yield Started(client, root)


@pytest.fixture(scope="module", params=ERAS)
async def agent(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Client]:
    """A client for the task session of an agent. Its tests only ask, so they share the process."""
    folder, who = tmp_path_factory.mktemp("agent"), ("--session", "task", "--agent", "scribe")
    async with started(folder, *who, mode=request.param) as (client, _):
        yield client


@pytest.fixture(scope="module", params=ERAS)
async def owner(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Started]:
    """A client for the owner's session. Each test makes its own changes, so they share the process."""
    async with started(tmp_path_factory.mktemp("owner"), "--session", "owner", mode=request.param) as found:
        yield found


async def test_a_client_learns_what_there_is(agent: Client) -> None:
    assert agent.server_info is not None
    assert agent.server_info.name == "notebook-sync"
    found = agent.server_capabilities
    assert found.resources is not None
    assert found.resources.subscribe is True
    assert not any(part and part.list_changed for part in (found.tools, found.prompts, found.resources))
    for part in ("notebook://prompt", "Never pay", "research_notes"):
        assert part in (agent.instructions or "")
    assert "safe is blue" not in (agent.instructions or "")
    assert [prompt.name for prompt in (await agent.list_prompts()).prompts] == ["notebook"]
    assert [resource.uri for resource in (await agent.list_resources()).resources] == [
        "notebook://prompt",
        "notebook://runtime/external-communications.md",
        "notebook://runtime/reminders.md",
        "notebook://runtime/standing-orders.md",
    ]
    templates = (await agent.list_resource_templates()).resource_templates
    assert {each.uri_template for each in templates} == {"notebook://note/{id}", "notebook://runtime/{file}"}


async def test_tools_say_what_they_do_and_are_small(owner: Started) -> None:
    reading = {
        *READING,
        "notebook_rules",
        "notebook_reminders",
        "notebook_recall",
        "search_my_notes",
        "compile_context",
    }
    listed = await owner.client.list_tools()
    assert size_of(listed) <= CORE_BYTES
    tools = {tool.name: tool for tool in listed.tools}
    assert set(tools) >= {*READING, "notebook_edit"}
    for name, tool in tools.items():
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name in reading)
        assert bool(tool.annotations.destructive_hint) is (name == "notebook_delete")


async def test_a_vault_that_was_never_synced_is_synced_and_followed(folder: Path) -> None:
    async def until_found(query: str) -> None:
        given = {"query": query, "mode": "keyword"}
        while not answer_of(await client.call_tool("notebook_search", given))["results"]:
            await anyio.sleep(0.02)

    (folder / "lantern.md").write_text("# Lantern\n\nThe harbour lantern burns whale oil.\n")
    async with over_stdio(folder, "--session", "owner") as client:
        with anyio.fail_after(30):
            await until_found("whale oil")
            (folder / "lantern.md").write_text("# Lantern\n\nIt burns paraffin now.\n")
            await until_found("paraffin")
    assert not (folder / "notebook.toml").exists()


async def test_an_owner_edits_a_rule_and_sees_it_everywhere(owner: Started) -> None:
    client = owner.client
    change = {"file": "reminders.md", "action": "append_to_section", "section": "Today", "content": "- [ ] Ring Ines"}
    edited = await client.call_tool("notebook_edit", change)
    assert answer_of(edited)["changed"] is True
    assert "The owner's rules have changed" in notices_of(edited)
    assert "The owner's rules" not in notices_of(await client.call_tool("notebook_read", {"id": "pages/plan"}))
    shown = await text_of(client, "notebook://prompt")
    (message,) = (await client.get_prompt("notebook")).messages
    assert cast(TextContent, message.content).text == shown
    with Notebook.open(owner.root) as notebook:
        assert shown == notebook.prompt(Session.owner()).text
    assert "Ring Ines" in shown


async def test_a_note_is_a_resource_by_its_id_and_by_its_path(agent: Client) -> None:
    for spelled in ("pages/plan", "pages/plan.md", "pages%2Fplan"):
        assert await text_of(agent, f"notebook://note/{spelled}") == "# Plan\n\nStart small.\n"
    assert await text_of(agent, "notebook://note/pages/logbook") == LOGBOOK
    assert "safe is blue" not in await text_of(agent, "notebook://runtime/standing-orders.md")
    for name in ("note/" + "x" * 5000, "note/%00", "note/", "other", ""):
        with pytest.raises(MCPError) as missing:
            await agent.read_resource(f"notebook://{name}")
        assert missing.value.error.data["message"]


@pytest.mark.parametrize(
    ("arguments", "environment", "kind"),
    [
        ((), {}, "external"),
        (("--session", "external"), {"NOTEBOOK_SESSION": "owner"}, "external"),
        ((), {"NOTEBOOK_SESSION": "task"}, "task"),
        (("--session", "owner", "--tools", "all"), {}, "owner"),
    ],
)
async def test_who_asks_is_what_the_one_who_starts_it_says(
    root: Path, arguments: tuple[str, ...], environment: dict[str, str], kind: str
) -> None:
    before = bytes_of(root)

    async with over_stdio(root, *arguments, environment=environment) as client:
        listed = await client.list_tools()
        assert size_of(listed) <= ALL_BYTES
        names = {tool.name for tool in listed.tools}
        assert ("notebook_edit" in names, "notebook_create" in names) == (kind == "owner", kind != "external")
        assert ("notebook_history" in names) == ("all" in arguments)
        change = {"file": "standing-orders.md", "action": "write", "content": "# Standing Orders\n\n- Obey\n"}
        result = await client.call_tool("notebook_edit", change)
        assert result.is_error == (kind != "owner")
        if kind != "owner":
            error = answer_of(result)["error"]
            assert error["message"] == "Notebook editing is only available in owner conversations"
    assert (bytes_of(root) == before) == (kind != "owner")


@pytest.mark.parametrize("agent", ["legacy"], indirect=True)
@pytest.mark.parametrize(
    "uri",
    [
        "notebook://note/channels/pilot/global/berth",
        "notebook://note/channels%2Fpilot%2Fglobal%2Fberth.md",
        "notebook://runtime/../channels/pilot/global/berth.md",
        "notebook://note/../outside.md",
        "notebook://note/.git/config",
    ],
)
async def test_a_resource_is_refused_as_its_note_is(agent: Client, uri: str) -> None:
    for ask in (agent.read_resource, agent.subscribe_resource):
        with pytest.raises(MCPError) as refused:
            await ask(uri)
        assert refused.value.error.data["type"] in ("not_permitted", "unsafe_path", "no_such_note")
        assert "secret" not in str(refused.value.error)


async def test_the_prompt_takes_its_arguments(agent: Client) -> None:
    (message,) = (await agent.get_prompt("notebook", {"include": "refs", "task": "Buy rope"})).messages
    assert "Buy rope" in cast(TextContent, message.content).text
    for name, wrong in {"notebook": {"what": "refs"}, "other": {}}.items():
        with pytest.raises(MCPError, match="use"):
            await agent.get_prompt(name, wrong)
    with pytest.raises(MCPError, match="cake"):
        await agent.get_prompt("notebook", {"include": "cake"})


async def test_many_calls_at_once_are_all_answered(owner: Started) -> None:
    async def one(number: int) -> None:
        answers.append(answer_of(await owner.client.call_tool("notebook_create", {"title": f"Note {number}"})))

    answers: list[dict[str, Any]] = []
    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(one, number)
    assert [each["status"] for each in answers] == ["created"] * 12
    assert len(list((owner.root / "pages").glob("note-*.md"))) == 12


class Raw:
    """The process with plain pipes."""

    def __init__(self, root: Path) -> None:
        self.process = start_command("-C", root, "mcp", "--session", "owner")

    def send(self, *messages: object) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return cast(dict[str, Any], json.loads(self.process.stdout.readline()))


@pytest.fixture
def raw(root: Path) -> Iterator[Raw]:
    started = Raw(root)
    with started.process:
        yield started
        started.process.kill()


def test_it_ends_with_its_input(raw: Raw) -> None:
    raw.send(HELLO)
    assert raw.answer()["result"]["serverInfo"]["name"] == "notebook-sync"
    out, errors = raw.process.communicate(timeout=30)
    assert (raw.process.returncode, out, errors) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_it_waits_for_input(raw: Raw, number: signal.Signals) -> None:
    raw.send(HELLO)
    raw.answer()
    raw.process.send_signal(number)
    assert raw.process.wait(30) == 0


def test_only_the_line_feed_ends_a_message(raw: Raw) -> None:
    separators = "a\u2028b\u2029c\x85d\x0be\x0cf"
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    call = {"name": "notebook_create", "arguments": {"title": "Lines", "content": separators}}
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    raw.send(HELLO, initialized, json.dumps(message, ensure_ascii=False))
    raw.answer()
    assert raw.answer()["result"]["isError"] is False


def test_what_is_no_message_is_answered_or_skipped(raw: Raw) -> None:
    raw.send("{", "[]", '"text"', "\x00", "{" * 10_000, HELLO)
    while (answer := raw.answer()).get("id") != 1:
        assert "error" in answer or answer["method"]
    assert answer["result"]["serverInfo"]


def test_input_from_a_file_is_read_to_its_end(root: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text(json.dumps(HELLO) + "\n")
    with (tmp_path / "in").open() as stdin:
        process = start_command("-C", root, "mcp", stdin=stdin)
        out, _ = process.communicate(timeout=60)
    assert json.loads(out.splitlines()[0])["id"] == 1


def test_a_closed_stream_is_a_clear_error(root: Path) -> None:
    command = f"exec '{sys.executable}' -m notebook_sync -C '{root}' mcp <&-"
    done = subprocess.run(["sh", "-c", command], env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "standard input" in done.stderr


def test_heavy_packages_are_not_loaded(root: Path) -> None:
    code = (
        "import sys; import notebook_sync.surfaces.mcp.server, notebook_sync.notebook as n; n.load_operations();"
        "print([m for m in ('numpy', 'pymongo', 'redis', 'tokenizers', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
