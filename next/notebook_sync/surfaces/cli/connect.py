"""`connect`: the MCP server, the prompt hook and the recall hook in the settings of an agent program.

Files of other programs are changed only with --write, after the difference was shown, and only by adding our entry.
"""

from __future__ import annotations

import difflib
import json
import shlex
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from notebook_sync.errors import Refused, UsageError
from notebook_sync.files.state import find_root
from notebook_sync.surfaces.cli.index import PROGRAM

NAME = "notebook"
_IS_OURS = "context hook"


@dataclass(frozen=True, slots=True)
class Client:
    """Where an agent program keeps its MCP servers: a file below the home or the project folder, and a key in it.

    `hook` is how its start-of-session hook prints the prompt, "" where it has none. `hooks_file` is where it keeps
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
        ".mcp.json", "mcpServers", hook="SessionStart in .claude/settings.json", hooks_file=".claude/settings.json"
    ),
    "codex": Client(
        ".codex/config.toml",
        "mcp_servers",
        in_home=True,
        hook="the top of AGENTS.md",
        hooks_file=".codex/hooks.json",
    ),
    "cursor": Client(".cursor/mcp.json", "mcpServers", hook="sessionStart in .cursor/hooks.json"),
    "vscode": Client(".vscode/mcp.json", "servers"),
    "gemini": Client(
        ".gemini/settings.json",
        "mcpServers",
        in_home=True,
        hook="SessionStart in .gemini/settings.json",
        hooks_file=".gemini/settings.json",
        events=("BeforeAgent", "SessionStart", "PreCompress"),
    ),
    "opencode": Client("opencode.json", "mcp", hook="instructions in opencode.json"),
}


def connect(folder: Path, name: str, who: list[str], *, tools: str, recall: bool, write: bool, ask: bool) -> None:
    """Print the configuration for a client, or merge it into the client's file: with `recall` that of the hook, else
    that of the server. `who` are the options that say who asks. Raises UsageError, Refused."""
    root = find_root(folder, adopt=True)
    command = [PROGRAM, "-C", str(root), "mcp", *who, "--tools", tools]
    prompt = f"{PROGRAM} -C {shlex.quote(str(root))} prompt {' '.join(who[:2])}"
    client = CLIENTS.get(name)
    if recall:
        _connect_recall(client, name, shlex.join([PROGRAM, "-C", str(root), "context", "hook", *who]), write, ask=ask)
    elif client is None:
        print(f"{_block('other', 'mcpServers', command)}\n\nAt the start of a session, add the output of: {prompt}")
    elif write:
        file = _place(client, client.file)
        _write(file, partial(_merged, name, client, command, file), ask=ask)
    else:
        place = f"~/{client.file}" if client.in_home else client.file
        print(f"Add to {place}, or repeat the command with --write:\n\n{_block(name, client.key, command)}")
        if client.hook:
            print(f"\nTo have the prompt in each session, run this in {client.hook}:\n\n  {prompt}")


def _connect_recall(client: Client | None, name: str, command: str, write: bool, *, ask: bool) -> None:
    if client is None or not client.hooks_file:
        able = ", ".join(each for each, known in CLIENTS.items() if known.hooks_file)
        raise UsageError(
            f"no hook of {name} is known that may add to a message",
            next=f"use one of {able}, or have its hook run this and add the output: {command}",
        )
    file = _place(client, client.hooks_file)
    if write:
        _write(file, partial(_with_hooks, client, command, file), ask=ask)
    else:
        print(
            f"Add to {file}, or repeat the command with --write:\n\n{_with_hooks(client, command, file, '').rstrip()}"
        )


def _with_hooks(client: Client, command: str, file: Path, before: str) -> str:
    """The settings with our command at each event, once; what else is there stays. Raises UsageError."""

    def add(settings: dict[str, Any]) -> None:
        hooks = settings.setdefault("hooks", {})
        for event in client.events:
            others = [each for each in hooks.get(event, []) if _IS_OURS not in json.dumps(each)]
            hooks[event] = [*others, {"hooks": [{"type": "command", "command": command}]}]

    return _changed_json(before, file, add)


def _entry(client: str, command: list[str]) -> dict[str, Any]:
    if client == "opencode":
        return {"type": "local", "command": command, "enabled": True}
    entry: dict[str, Any] = {"command": command[0], "args": command[1:]}
    return {"type": "stdio", **entry} if client == "vscode" else entry


def _block(client: str, key: str, command: list[str]) -> str:
    if client == "codex":
        args = json.dumps(command[1:], ensure_ascii=False)  # TOML has no escaped surrogates
        return f"[{key}.{NAME}]\ncommand = {json.dumps(command[0])}\nargs = {args}"
    return json.dumps({key: {NAME: _entry(client, command)}}, indent=2, ensure_ascii=False)


def _place(client: Client, file: str) -> Path:
    return (Path.home() if client.in_home else Path.cwd()) / file


def _write(file: Path, change: Callable[[str], str], *, ask: bool) -> None:
    before = _text_of(file)
    after = change(before)
    if after == before:
        print(f"{file} is up to date")
        return
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(file), str(file), lineterm="")
    print("\n".join(lines))
    if ask:
        if not sys.stdin or not sys.stdin.isatty():
            raise UsageError("connect --write asks before it changes the file", next="add --yes")
        if input("Write it? [y/N] ").strip().lower() not in ("y", "yes"):
            return
    if _text_of(file) != before:
        raise Refused(f"{file} was changed in the meantime", next="repeat the command")
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.new")
    temporary.touch(mode=0o600)  # such files often hold keys
    temporary.write_bytes(after.encode())
    if file.exists():
        temporary.chmod(file.stat().st_mode)
    temporary.replace(file)
    print(f"wrote {file}")


def _text_of(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", next="add the block by hand") from None


def _merged(name: str, client: Client, command: list[str], file: Path, before: str) -> str:
    """The client's settings with our entry. Raises UsageError for a file that cannot be changed safely."""
    if name != "codex":
        return _changed_json(
            before, file, lambda settings: settings.setdefault(client.key, {}).update({NAME: _entry(name, command)})
        )
    block = _block(name, client.key, command)
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    merged = before if block in before else f"{before}{gap}{block}\n"
    try:
        tomllib.loads(merged)  # refuses an entry of ours that says something else, too
    except ValueError as error:
        raise _unchangeable(file, error) from None
    return merged


def _changed_json(before: str, file: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """Settings in JSON, changed; as they are written where nothing changes. Raises UsageError."""
    try:
        settings = json.loads(before or "{}")
        change(settings)
        merged = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
        return before if before and json.loads(before) == settings else merged
    except (ValueError, AttributeError, TypeError) as error:
        raise _unchangeable(file, error) from None


def _unchangeable(file: Path, error: Exception) -> UsageError:
    return UsageError(f"{file} cannot be changed: {error}", next="fix it, or add the block by hand")
