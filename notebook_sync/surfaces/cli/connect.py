"""`connect`: the MCP server, the prompt hook and the recall hook in the settings of an agent program.

Files of other programs are changed only with --write, after the difference was shown, and only by adding our entry.
"""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.files.edits import unified_diff
from notebook_sync.files.private import read_private
from notebook_sync.files.state import find_root, home_folder
from notebook_sync.services.setup import replace_file
from notebook_sync.surfaces.cli.arguments import confirmed
from notebook_sync.surfaces.cli.index import PROGRAM

NAME = "notebook"
_IS_OURS = "context hook"


@dataclass(frozen=True, slots=True)
class Client:
    """Where an agent program keeps its MCP servers: a file below the home or the project folder, and a key in it.

    `hook` is how the prompt gets into each session, "" where it cannot. `hooks_file` is where it keeps
    hooks that may add to a conversation, "" where it has no such, and `events` are those that recall needs.
    """

    file: str
    key: str
    in_home: bool = False
    hook: str = ""
    hooks_file: str = ""
    events: tuple[str, ...] = ("UserPromptSubmit", "SessionStart", "PreCompact")


CLIENTS = {
    "claude": Client(
        ".mcp.json",
        "mcpServers",
        hook="as a SessionStart hook in .claude/settings.json",
        hooks_file=".claude/settings.json",
    ),
    "codex": Client(
        ".codex/config.toml",
        "mcp_servers",
        in_home=True,
        hook="as a SessionStart hook in ~/.codex/hooks.json",
        hooks_file=".codex/hooks.json",
    ),
    "cursor": Client(
        ".cursor/mcp.json", "mcpServers", hook="as additional_context of a sessionStart hook in .cursor/hooks.json"
    ),
    "vscode": Client(".vscode/mcp.json", "servers"),
    "gemini": Client(
        ".gemini/settings.json",
        "mcpServers",
        in_home=True,
        hook="as additionalContext of a SessionStart hook in ~/.gemini/settings.json",
        hooks_file=".gemini/settings.json",
        events=("BeforeAgent", "SessionStart", "PreCompress"),
    ),
    "opencode": Client("opencode.json", "mcp", hook="from a plugin in .opencode/plugin"),
}
_OTHER = Client("", "mcpServers")


def connect(folder: Path, name: str, who: list[str], *, tools: str, recall: bool, write: bool, ask: bool) -> None:
    """Print the configuration for a client, or merge it into the client's file: with `recall` that of the hook, else
    that of the server. `who` are the options that say who asks. Raises UsageError, Refused,
    NotANotebook."""
    # An agent program that was started from a desktop has another PATH than the shell.
    called = Path(sys.argv[0]).absolute()
    program = [str(called) if called.name == PROGRAM else PROGRAM, "-C", str(find_root(folder))]
    prompt, hook = (shlex.join([*program, *each]) for each in (["prompt", *who[:2]], ["context", "hook", *who]))
    client = CLIENTS.get(name, _OTHER)
    if recall and not client.hooks_file:
        able = ", ".join(each for each, known in CLIENTS.items() if known.hooks_file)
        raise UsageError(
            f"no hook of {name} is known that may add to a message",
            next=f"use one of {able}, or have its hook run this and add the output: {hook}",
        )
    change = partial(_with_server, name, client, [*program, "mcp", *who, "--tools", tools])
    if recall:
        change = partial(_with_hooks, client, hook)
    place = client.hooks_file if recall else client.file
    if client is _OTHER and write:
        raise UsageError(f"the file of {name} is not known", next="leave --write out, and paste the block")
    if client is _OTHER:
        print(f"{change('')}\nAt the start of a session, add the output of: {prompt}")
    elif write:
        _write((home_folder() if client.in_home else Path.cwd()) / place, change, ask=ask)
    else:
        shown = f"~/{place}" if client.in_home else place
        print(f"Add to {shown}, or repeat the command with --write:\n\n{change('')}", end="")
        if client.hook and not recall:
            print(f"\nTo have the prompt in each session, add the output of this {client.hook}:\n\n  {prompt}")


def _with_hooks(client: Client, command: str, before: str) -> str:
    """The settings with our command at each event, once."""

    def add(settings: dict[str, Any]) -> None:
        hooks = settings.setdefault("hooks", {})
        for event in client.events:
            others = [each for each in hooks.get(event, []) if _IS_OURS not in json.dumps(each)]
            hooks[event] = [*others, {"hooks": [{"type": "command", "command": command}]}]

    return _changed_json(before, add)


def _with_server(name: str, client: Client, command: list[str], before: str) -> str:
    """The settings with our entry among the servers."""
    entry: dict[str, Any] = {"command": command[0], "args": command[1:]}
    if name == "codex":
        return _with_toml(client.key, entry, before)
    if name == "vscode":
        entry = {"type": "stdio", **entry}
    elif name == "opencode":
        entry = {"type": "local", "command": command, "enabled": True}
    return _changed_json(before, lambda settings: settings.setdefault(client.key, {}).update({NAME: entry}))


def _with_toml(key: str, entry: dict[str, Any], before: str) -> str:
    # TOML has no escaped surrogates.
    rows = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()]
    block = "\n".join([f"[{key}.{NAME}]", *rows])
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    merged = before if block in before else f"{before}{gap}{block}\n"
    tomllib.loads(merged)  # refuses an entry of ours that says something else, too
    return merged


def _changed_json(before: str, change: Callable[[dict[str, Any]], None]) -> str:
    """Settings in JSON, changed; what else is there stays, and all of it as it is written where nothing changes."""
    settings = json.loads(before or "{}")
    change(settings)
    is_same = settings == json.loads(before or "{}")
    return before if is_same else json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _write(file: Path, change: Callable[[str], str], *, ask: bool) -> None:
    """Change a file, after the difference was shown. Raises UsageError for one that cannot be changed safely."""
    try:
        raw = read_private(file.resolve())
        before = (raw or b"").decode()
        after = change(before)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UsageError(f"{file} cannot be changed: {error}", next="fix it, or add the block by hand") from None
    if after == before:
        print(f"{file} is up to date")
        return
    show = partial(print, unified_diff(before, after, str(file)), end="")
    if not ask:
        show()
    elif not confirmed("connect --write", show):
        return
    replace_file(file, raw, after.encode(), mode=0o600)  # such files often hold keys
    print(f"wrote {file}")
