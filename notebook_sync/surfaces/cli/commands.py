"""Running a command: an operation, or one of those written by hand."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from notebook_sync.errors import UsageError, missing_extra
from notebook_sync.files.state import expanded
from notebook_sync.notebook import Notebook, load_operations
from notebook_sync.registry import OPERATIONS, Arg, Operation, as_json, call
from notebook_sync.sessions import Kind, Session
from notebook_sync.surfaces.cli import render
from notebook_sync.surfaces.cli.arguments import confirmed, given_in, parser_of
from notebook_sync.surfaces.cli.index import ALIASES, NAMES, PROGRAM

SESSION_VARIABLE = "NOTEBOOK_SESSION"
_LONG_SECONDS = 0.5
Tools = Annotated[str, Meta(description="all, or names of sets separated by commas"), Arg("SETS")]


def run_operation(operation: Operation, folder: str | None, argv: list[str]) -> int:
    """Parse, call, print. Returns the exit code."""
    parser = parser_of(operation)
    if operation.words == "events":
        parser.add_argument("--follow", action="store_true", help="print new events until stopped")
    if operation.words == "memory graph":
        parser.add_argument("picture", metavar="FILE", nargs="?", help="where to write it; default standard output")
    parsed = parser.parse(argv)
    session = session_of(parsed.session, parsed.agent, asks=operation.asks)
    given = given_in(operation, parsed)
    file = Path(parsed.picture) if getattr(parsed, "picture", None) not in (None, "-") else None
    if file and file.suffix in (".mmd", ".md"):
        given.setdefault("format", "mermaid")
    with Notebook.find(folder or ".", adopt=operation.adopts) as notebook:
        if getattr(parsed, "follow", False):
            if "limit" in given:
                raise UsageError("--follow prints every event", next="leave --limit out")
            for event in notebook.admin.follow_events(session, since=given.get("since", "")):
                line = render.json_line(event) if parsed.json else render.table([as_json(event)], operation.columns)
                print(line, flush=True)
            return 0
        unchecked: dict[str, Any] = {}
        if operation.is_confirmed and not given.get("dry_run"):
            seen = call(notebook, operation, {**given, "dry_run": True}, session, from_text=True)
            is_asked = not parsed.yes and getattr(seen, "results", True)
            if is_asked and not confirmed(operation.words, partial(show, operation, seen, as_json_text=False)):
                return 0
            unchecked["seen"] = seen
        with _progress(operation) as progress:
            if progress:
                unchecked["progress"] = progress
            result = call(notebook, operation, given, session, from_text=True, **unchecked)
    if file:
        _write_new(file, result.text)
    else:
        show(operation, result, as_json_text=parsed.json)
    return operation.exit_code(result)


def run_by_hand(command: str, folder: str | None, argv: list[str]) -> int:
    """Parse and run a command that is no operation. Returns the exit code."""
    operation = BY_HAND[command]
    parsed = parser_of(operation).parse(argv)
    return int(operation.run(folder, **operation.checked(given_in(operation, parsed), from_text=True)) or 0)


def session_of(named: str | None, agent: str, *, asks: str = "owner") -> Session:
    """Who asks: --session, else the variable, else the owner; for what a caller answers for, the owner on a terminal
    and a task session elsewhere. Raises UsageError."""
    if named := named or os.environ.get(SESSION_VARIABLE, ""):
        kind, _, named_agent = named.partition(":")
        return Session.named(kind, agent or named_agent)
    if asks == "caller" and (agent or not sys.stdin or not sys.stdin.isatty()):
        return Session.task(agent)
    return Session.owner(agent)


def show(operation: Operation, result: Any, *, as_json_text: bool) -> None:
    """Print a result, and what it lacks to standard error."""
    answer = as_json(result)
    if as_json_text:
        print(render.json_line(answer))
        return
    if text := render.rendered(operation, answer):
        print(text)
    sys.stdout.flush()
    for line in render.complaints_of(answer):
        sys.stderr.write(f"notebook-sync: {render.safe(line)}\n")


@contextmanager
def _progress(operation: Operation) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal for work that lasts; None where nobody would see it."""
    if "progress" not in operation.parameters or not sys.stderr or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # 30 ms that short work need not pay

    with tqdm(desc=operation.words, unit=" files", leave=False, delay=_LONG_SECONDS) as bar:

        def update(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield update


def _write_new(file: Path, text: str) -> None:
    """Write a file that does not exist yet. Raises UsageError."""
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None


# ---- written by hand: typed functions, whose parameters and docstrings are their arguments and help


def _init(
    folder: str | None,
    dir_: Annotated[str, Meta(description="the folder"), Arg("DIR", positional=True)] = "",
    *,
    name: Annotated[str, Meta(description="the notebook's name")] = "",
    no_git: Annotated[bool, Meta(description="make no git repository")] = False,
    brain: Annotated[str, Meta(description="keep a block about the notebook in this file"), Arg("FILE")] = "",
    json: Annotated[bool, Meta(description="print JSON")] = False,
) -> None:
    """Create a notebook, or add the owner's files to a folder of notes"""
    from notebook_sync.services.setup import initialize  # no other command creates a notebook

    root = expanded(dir_ or folder or ".")
    made = as_json(initialize(root, name=name, git=not no_git, brain=Path(brain) if brain else None))
    print(render.json_line(made) if json else render.fields_of(made))


def _demo(
    folder: str | None, dir_: Annotated[str, Meta(description="a new folder"), Arg("DIR", positional=True)] = ""
) -> None:
    """Play an example in a notebook of its own"""
    from notebook_sync.surfaces.cli.demo import play  # starts other commands

    play(Path(dir_ or folder or "") if dir_ or folder else None)


def _watch(
    folder: str | None, *, json: Annotated[bool, Meta(description="print one JSON object a line")] = False
) -> None:
    """Sync every save until stopped"""
    from notebook_sync.surfaces.background import stopped_by_signals  # loads what servers need

    stopping = threading.Event()
    with stopped_by_signals(stopping.set), Notebook.find(folder or ".", adopt=True) as notebook:
        for event in notebook.admin.watch(stop=stopping):
            row = event.as_json()
            print(render.json_line(row) if json else render.of_watch(row), flush=True)


def _mcp(
    folder: str | None,
    *,
    session_: Annotated[str, Meta(description="who asks: owner, task or external"), Arg("KIND")] = "",
    agent: Annotated[str, Meta(description="the agent that asks"), Arg("NAME")] = "",
    tools: Tools = "core",
) -> int:
    """Serve MCP over standard input and output"""
    # It never depends on a terminal.
    session = session_of(session_ or os.environ.get(SESSION_VARIABLE) or "external", agent)
    with missing_extra("MCP", "mcp"):
        from notebook_sync.surfaces.mcp.server import serve_stdio
    with Notebook.find(folder or ".", adopt=True) as notebook:
        return serve_stdio(notebook, session, toolsets=tools)


def _serve(
    folder: str | None,
    *,
    host: Annotated[str, Meta(description="where it listens (default server.host)")] = "",
    port: Annotated[int | None, Meta(description="0 chooses a free one (default server.port)")] = None,
    no_watch: Annotated[bool, Meta(description="do not follow the files")] = False,
    no_dashboard: Annotated[bool, Meta(description="without the pages for a browser")] = False,
    public_url: Annotated[str, Meta(description="https://… where remote MCP clients may get tokens"), Arg("URL")] = "",
) -> int:
    """Serve HTTP, MCP and the dashboard on this machine"""
    with missing_extra("serving HTTP", "serve"):
        from notebook_sync.surfaces.http.serve import serve
    with Notebook.find(folder or ".", adopt=True) as notebook:
        options: dict[str, Any] = {"watch": not no_watch, "dashboard": not no_dashboard, "public_url": public_url}
        return serve(notebook, host=host, port=port, **options)


def _connect(
    folder: str | None,
    client: Annotated[str, Meta(description="its name"), Arg("CLIENT", positional=True)],
    *,
    session_: Annotated[Kind, Meta(description="of the agent")] = "task",
    agent: Annotated[str, Meta(description="the agent's name"), Arg("NAME")] = "",
    tools: Tools = "core",
    recall: Annotated[bool, Meta(description="the hook that points to notes at each message")] = False,
    write: Annotated[bool, Meta(description="change the client's file, after showing the difference")] = False,
    yes: Annotated[bool, Meta(description="do not ask")] = False,
) -> None:
    """Set up an agent program: claude, codex, cursor, vscode, gemini, opencode"""
    from notebook_sync.surfaces.cli.connect import connect  # knows other programs' files

    who = ["--session", session_, *(["--agent", agent] if agent else [])]
    connect(Path(folder or "."), client, who, tools=tools, recall=recall, write=write, ask=not yes)


def _context_hook(
    folder: str | None,
    *,
    session_: Annotated[Kind | None, Meta(description="who asks (default task)")] = None,
    agent: Annotated[str, Meta(description="the agent that asks"), Arg("NAME")] = "",
) -> None:
    """Answer an agent program's hook with pointers to notes

    Reads the hook's JSON from standard input. For a message, it prints at most five pointers in 600 tokens, or nothing.
    Before the conversation is compacted, it takes a checkpoint. A message is held up for a second at most, and the exit
    code is always 0.
    """
    from notebook_sync.surfaces.cli.hook import answer_hook  # asks the search, which other commands by hand do not

    answer_hook(folder, session_of(session_ or os.environ.get(SESSION_VARIABLE) or "task", agent))


def _completion(
    folder: str | None, shell: Annotated[Literal["bash", "zsh", "fish"], Arg("SHELL", positional=True)]
) -> None:
    """Print the completion script of a shell"""
    load_operations()
    words: dict[str, list[str]] = {name: [] for name in NAMES}
    for operation in (*OPERATIONS.values(), *BY_HAND.values()):
        command, _, member = operation.words.partition(" ")
        words[command] += [member] if member else parser_of(operation).flags
    words |= {alias: words[name] for alias, name in ALIASES.items()}
    if shell == "fish":
        print(f"complete -c {PROGRAM} -n __fish_use_subcommand -a '{' '.join(words)}'")
        for name, follow in words.items():
            print(f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from {name}' -a '{' '.join(follow)}'")
        return
    cases = "\n".join(f'    {name}) options="{" ".join(follow)}" ;;' for name, follow in words.items())
    before = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    print(before + _COMPLETION.format(commands=" ".join(words), cases=cases, program=PROGRAM))


_COMPLETION = """_notebook_sync() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" options="{commands}" command="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in -*) ;; *) command="$word"; break ;; esac
  done
  case "$command" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$options" -- "$current"))
}}
complete -o default -F _notebook_sync {program}"""


_WRITTEN: tuple[Callable[..., Any], ...] = (_init, _demo, _watch, _serve, _mcp, _connect, _context_hook, _completion)
BY_HAND = {words: Operation(run=run, words=words) for run in _WRITTEN if (words := run.__name__[1:].replace("_", " "))}
