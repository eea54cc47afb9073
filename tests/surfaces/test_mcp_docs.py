"""What docs/mcp.md tells agent programs to start is started, and what it tells them to call is called."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from notebook_sync import Notebook
from notebook_sync.folder import FOLDER
from notebook_sync.tokens import Tokens
from tests.docs_shell import blocks_of
from tests.surfaces.mcp_clients import REPOSITORY, over_http, serving
from tests.surfaces.mcp_transcript import transcript

PAGE = (REPOSITORY / "docs/mcp.md").read_text(encoding="utf-8")
BLOCKS = [block for block in blocks_of(PAGE) if block.language in {"json", "toml", "sh"}]
VARIABLE = "NOTEBOOK_TOKEN"


def entries() -> Iterator[dict[str, Any]]:
    """What each snippet says of the server named notebook."""
    for block in BLOCKS:
        if block.language == "sh":
            _, _, started = block.text.partition(" -- ")
            yield {"command": shlex.split(started)}
            continue
        found = json.loads(block.text) if block.language == "json" else tomllib.loads(block.text)
        (servers,) = (value for key, value in found.items() if key != "$schema")
        yield servers["notebook"]


def command_of(entry: dict[str, Any]) -> list[str]:
    command = entry["command"]
    return list(command) if isinstance(command, list) else [command, *entry["args"]]


STARTED = sorted({tuple(command_of(entry)) for entry in entries() if "command" in entry})
CALLED = [entry for entry in entries() if "command" not in entry]


def test_every_snippet_is_tried() -> None:
    assert len(STARTED) + len(CALLED) >= 9
    assert {"claude", "codex", "cursor", "copilot", "gemini", "opencode", "zed"} == {words[-1] for words in STARTED}


@pytest.mark.parametrize("words", STARTED, ids=lambda words: f"{words[-1]} {Path(words[0]).parent.name}")
def test_the_command_of_a_snippet_serves(root: Path, words: tuple[str, ...], shell_environment: dict[str, str]) -> None:
    program, *arguments = words
    assert Path(program).name == "notebook-sync"
    client = Client(
        StdioServerParameters(
            command=str(Path(shell_environment["HOME"]) / "bin/notebook-sync"),
            args=[str(root) if each == "/home/me/notebook" else each for each in arguments],
            env=shell_environment,
        )
    )
    assert "notebook_edit" in tools_of(client)


@pytest.mark.parametrize("entry", CALLED, ids=lambda entry: next(iter(entry)))
def test_the_address_of_a_snippet_answers(root: Path, entry: dict[str, Any]) -> None:
    tokens = Tokens(root / FOLDER)
    with Notebook.open(root) as notebook, serving(notebook) as url:
        assert entry.get("url", entry.get("httpUrl")) == re.sub(r":\d+/", f":{notebook.settings.server.port}/", url)
        if "headers" in entry:
            assert entry["headers"] == {"Authorization": f"Bearer ${{{VARIABLE}}}"}
        else:
            assert entry["bearer_token_env_var"] == VARIABLE
        assert "notebook_edit" in tools_of(over_http(url, tokens.owner()))


def tools_of(connecting: AbstractAsyncContextManager[Client]) -> set[str]:
    async def listed() -> set[str]:
        async with connecting as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    return anyio.run(listed)


@pytest.mark.filterwarnings("ignore:resources/subscribe:mcp.MCPDeprecationWarning")
def test_the_transcript_is_what_is_said() -> None:
    assert (REPOSITORY / "docs/mcp-transcript.md").read_text(encoding="utf-8") == transcript()
