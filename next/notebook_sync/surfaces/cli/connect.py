"""`connect`: the MCP server and the prompt hook in the settings of an agent program.

Files of other programs are changed only with --write, after the difference was shown, and only by adding our entry.
"""

from __future__ import annotations

import difflib
import json
import shlex
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notebook_sync.errors import Refused, UsageError
from notebook_sync.files.state import find_root
from notebook_sync.surfaces.cli.index import PROGRAM

NAME = "notebook"


@dataclass(frozen=True, slots=True)
class Client:
    """Where an agent program keeps its MCP servers: a file below the home or the project folder, and a key in it.

    `hook` is how its start-of-session hook prints the prompt, "" where it has none.
    """

    file: str
    key: str
    in_home: bool = False
    hook: str = ""


CLIENTS = {
    "claude": Client(".mcp.json", "mcpServers", hook="SessionStart in .claude/settings.json"),
    "codex": Client(".codex/config.toml", "mcp_servers", in_home=True, hook="the top of AGENTS.md"),
    "cursor": Client(".cursor/mcp.json", "mcpServers", hook="sessionStart in .cursor/hooks.json"),
    "vscode": Client(".vscode/mcp.json", "servers"),
    "gemini": Client(".gemini/settings.json", "mcpServers", in_home=True, hook="SessionStart in .gemini/settings.json"),
    "opencode": Client("opencode.json", "mcp", hook="instructions in opencode.json"),
}


def connect(folder: Path, name: str, options: list[str], *, write: bool, ask: bool) -> None:
    """Print the configuration for a client, or merge it into the client's file. `options` are those of `mcp`. Raises
    UsageError, Refused."""
    root = find_root(folder, adopt=True)
    command = [PROGRAM, "-C", str(root), "mcp", *options]
    prompt = f"{PROGRAM} -C {shlex.quote(str(root))} prompt {' '.join(options[:2])}"
    client = CLIENTS.get(name)
    if client is None:
        print(f"{_block('other', 'mcpServers', command)}\n\nAt the start of a session, add the output of: {prompt}")
    elif write:
        _write(client, name, command, ask=ask)
    else:
        place = f"~/{client.file}" if client.in_home else client.file
        print(f"Add to {place}, or repeat the command with --write:\n\n{_block(name, client.key, command)}")
        if client.hook:
            print(f"\nTo have the prompt in each session, run this in {client.hook}:\n\n  {prompt}")


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


def _write(client: Client, name: str, command: list[str], *, ask: bool) -> None:
    file = (Path.home() if client.in_home else Path.cwd()) / client.file
    before = _text_of(file)
    after = _merged(name, client, before, command, file)
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


def _merged(name: str, client: Client, before: str, command: list[str], file: Path) -> str:
    """The client's settings with our entry. Raises UsageError for a file that cannot be changed safely."""
    block = _block(name, client.key, command)
    try:
        if name == "codex":
            gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
            merged = before if block in before else f"{before}{gap}{block}\n"
            tomllib.loads(merged)  # refuses an entry of ours that says something else, too
            return merged
        settings = json.loads(before or "{}")
        settings.setdefault(client.key, {})[NAME] = _entry(name, command)
        merged = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
        return before if before and json.loads(before) == settings else merged
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageError(f"{file} cannot be changed: {error}", next="fix it, or add the block by hand") from None
