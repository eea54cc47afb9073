"""docs/cli.md, made from the table that the parser is made from.

python -m notebook_sync.surfaces.cli.manual > docs/cli.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from notebook_sync.surfaces.cli.reference.commands import COMMANDS, EXIT_CODES, GROUPS
from notebook_sync.surfaces.cli.table import Argument, Command, each

_OPENING = """\
# The command line

<!-- Made by `python -m notebook_sync.surfaces.cli.manual`; edit notebook_sync/surfaces/cli/reference/*.py instead. -->

    notebook-sync [-C DIR] COMMAND [arguments]

`python -m notebook_sync` is the same program. `-C DIR` names the notebook's folder, which may be any folder of
Markdown; without it, the nearest folder upward with a `notebook.toml` is taken, as git does with `.git`.
`notebook-sync help COMMAND` shows what this page says. Options may come before or after the command. `ls`, `show`,
`find`, `mv` and `rm` are short for `list`, `read`, `search`, `rename` and `delete`; `-n` for `--limit`.

**Who is asking.** Commands that depend on it take `--session owner|task|external`; else `NOTEBOOK_SESSION` decides;
else it is `owner` where standard input is a terminal and `task` elsewhere. Whoever can run commands as the owner's
user can edit the files anyway: sessions protect tools, not the shell.

**Output.** Results go to standard output, errors and a progress bar (on a terminal, for long work) to standard error.
With `--json` the result is one JSON value on one line; times are ISO 8601 in UTC. A list is
`{"results": […], "degraded": null, "next": null}`; `degraded` says why it is less than you asked for. An error is then
printed on standard output, once, and nothing on standard error:

    {"error": {"type": "no_such_note", "message": "no note has the id or path 'x'", "next": "…"}}

The [types](tools.md#what-comes-back) are those of tools and HTTP. An error may have more fields: `path`;
`current_digest` and `current_text` of a conflict; `candidates` for what was not named clearly; `tokens` and `cap`;
`backend`.

**Exit codes.**

| code | means |
|---|---|
"""


def manual() -> str:
    """The text of docs/cli.md."""
    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES)
    chapters = ("\n".join(_chapter(words, command)) for words, command in each(COMMANDS))
    named = {command.name: command for command in COMMANDS}
    groups = (f"**{title}**\n\n{_listed([named[name] for name in names])}" for title, names in GROUPS)
    return "\n".join([_OPENING + codes, *groups, *chapters])


def _listed(commands: Sequence[Command], group: str = "") -> str:
    named = ((f"{group} {command.name}".lstrip(), command.summary) for command in commands)
    rows = (f"| [`{words}`](#{words.replace(' ', '-')}) | {_cell(summary)} |\n" for words, summary in named)
    return f"| command | does |\n|---|---|\n{''.join(rows)}"


def _chapter(words: str, command: Command) -> Iterator[str]:
    yield f"{'#' * (2 + words.count(' '))} {words}\n"
    yield f"    {_usage(words, command)}\n"
    yield f"{command.summary[0].upper()}{command.summary[1:]}.\n\n{command.about}\n"
    if command.commands:
        yield _listed(command.commands, words)
    if command.arguments:
        yield "| argument | means |\n|---|---|"
        yield from (f"| `{_shown(argument)}` | {_cell(argument.help)} |" for argument in command.arguments)
        yield ""
    yield "\n".join(f"    {example}" for example in command.examples) + "\n"
    if command.shape:
        yield f"`--json` prints:\n\n```text\n{command.shape}\n```\n"


def _usage(words: str, command: Command) -> str:
    usage = [f"notebook-sync {words}", *(["COMMAND"] if command.commands else [])]
    for argument in command.arguments:
        is_needed = not argument.name.startswith("-") and argument.options.get("nargs") != "?"
        usage.append(_shown(argument) if is_needed else f"[{_shown(argument)}]")
    return " ".join(usage)


def _shown(argument: Argument) -> str:
    value = argument.options.get("metavar", "")
    return f"{argument.name} {value}".strip() if argument.name.startswith("-") else value


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(manual(), end="")
