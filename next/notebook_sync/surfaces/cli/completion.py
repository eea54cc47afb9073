"""Completion scripts of shells, made from the commands and their arguments."""

from __future__ import annotations

from collections.abc import Mapping

from notebook_sync.notebook import load_operations
from notebook_sync.registry import OPERATIONS
from notebook_sync.surfaces.cli.arguments import parser_of
from notebook_sync.surfaces.cli.commands import BY_HAND
from notebook_sync.surfaces.cli.index import ALIASES, COMMANDS, NAMES, PROGRAM

_FUNCTION = "_notebook_sync"


def script(shell: str) -> str:
    """The completion script for bash, zsh or fish."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](_words())


def _words() -> dict[str, list[str]]:
    """By command, what may follow it: the commands of its group, or its options."""
    load_operations()
    words: dict[str, list[str]] = {name: ["--help"] for name in NAMES}
    for operation in (*OPERATIONS.values(), *BY_HAND.values()):
        command, _, member = operation.words.partition(" ")
        if member:
            words[command].append(member)
        elif command:
            actions = parser_of(operation)._option_string_actions
            words[command] = sorted(each for each in actions if each.startswith("--"))
    return words | {alias: words[name] for alias, name in ALIASES.items()}


def _bash(words: Mapping[str, list[str]]) -> str:
    cases = "\n".join(f'    {name}) options="{" ".join(follow)}" ;;' for name, follow in words.items())
    return f"""{_FUNCTION}() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" options="{" ".join(words)}" command="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in -*) ;; *) command="$word"; break ;; esac
  done
  case "$command" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$options" -- "$current"))
}}
complete -o default -F {_FUNCTION} {PROGRAM}"""


def _zsh(words: Mapping[str, list[str]]) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(words)}"


def _fish(words: Mapping[str, list[str]]) -> str:
    summaries = {name: summary for _, commands in COMMANDS for name, (_, summary) in commands.items()}
    lines = [
        f"complete -c {PROGRAM} -n __fish_use_subcommand -a {name} -d '{_quoted(summaries.get(name, ''))}'"
        for name in words
    ]
    for name, follow in words.items():
        lines += [f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from {name}' -a '{each}'" for each in follow]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
