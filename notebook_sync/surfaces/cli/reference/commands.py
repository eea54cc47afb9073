"""Every command of the command line as a value: its words, its arguments, an example, what `--json` prints.

The parser, `--help` and docs/cli.md are all made from this one table, so that they cannot say different things.
"""

from __future__ import annotations

from notebook_sync.operations import SERVICES
from notebook_sync.surfaces.cli.from_operations import groups_of, single_commands
from notebook_sync.surfaces.cli.reference.editing import EDITING
from notebook_sync.surfaces.cli.reference.finding import FINDING
from notebook_sync.surfaces.cli.reference.pages import MAKING
from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, Argument, Command

COMMANDS = (
    Command(
        "init",
        "create a notebook, or add to a folder what a notebook needs",
        "Writes notebook.toml, .gitignore, the runtime files and the folders for notes, and makes the folder a git\n"
        "repository unless it already lies in one. A file that is there is kept as it is. With --brain, the text that\n"
        "tells an agent about its notebook is put into FILE between two markers; no other byte of FILE changes, and a\n"
        "second call only refreshes what stands between the markers. The rules themselves are not in it: they come\n"
        "from `prompt`, best called by a hook at the start of each conversation.",
        ("notebook-sync init ~/notebook", "notebook-sync init ~/notebook --brain ~/agent/AGENTS.md"),
        '{"root": "/home/me/notebook", "created": ["notebook.toml", "runtime/reminders.md"], "kept": [".gitignore"],\n'
        ' "git": "made", "brain": null}',
        (
            Argument("dir", "the folder; it is made when it is not there", {"metavar": "DIR"}),
            Argument("--no-git", "make no git repository", {"action": "store_true"}),
            Argument("--brain", "an agent's own instruction file, to be told of the notebook", {"metavar": "FILE"}),
            JSON,
        ),
    ),
    Command(
        "demo",
        "try it: make a notebook, sync it, watch an edit arrive, print the prompt",
        "Plays the commands init, sync, watch and prompt in a folder of its own, on the embedded store, and prints\n"
        "each before its output. The folder stays, to be looked at.",
        ("notebook-sync demo", "notebook-sync demo ~/notebook-demo"),
        "",
        (Argument("dir", "a new or empty folder; else a temporary one", {"metavar": "DIR", "nargs": "?"}),),
    ),
    Command(
        "watch",
        "sync, then follow every change until stopped",
        "Prints `ready` once later changes will be seen, then a line for each batch that has reached the mirror and\n"
        "the refs. A database that is away is told as trouble and waited for. Where a save changed the owner's\n"
        "prompt, one more line tells its tokens before and after, and what fell out of it or came back. A reminder\n"
        "that falls due is told once, also across restarts, here and in the event log; see `events`. SIGTERM or\n"
        "Ctrl-C ends it with exit code 0. One process watches a notebook; a second one is refused with exit code 3.",
        ("notebook-sync watch", "notebook-sync watch --json"),
        """\
{"event": "batch", "added": 1, "updated": 0, …as for sync…, "paths": ["pages/plan.md"]}
{"event": "prompt", "revision": "9f86d0…", "tokens": 812, "tokens_before": 790,
 "fell_out": [{"path": "runtime/reminders.md", "anchor": "this-week", "heading": "This Week", "tokens": 20}],
 "came_back": [], "stable_changes": true}
{"event": "ready", "file_events": true}
{"event": "reminder_due", "text": "Grease the winch", "state": "due", …as for reminders…}
{"event": "trouble", "message": "Redis at localhost:6379 does not answer: …"}
{"event": "recovered", "message": "Redis at localhost:6379 does not answer: …"}""",
        (JSON,),
    ),
    Command(
        "read",
        "show a note, or one of its sections",
        "ID is a note's id, its path, or the bare name of a runtime file, and may end in # and a section's anchor, as\n"
        "in the lines of a prompt that say what is left out. What is shown is what the file says now. With --omitted\n"
        "it is what the prompt of --session leaves out there for lack of room; that needs no database.",
        (
            "notebook-sync read pages/plan",
            "notebook-sync read runtime/reminders.md#this-week",
            "notebook-sync read runtime/reminders.md#this-week --omitted --session task",
        ),
        """\
{"id": "pages/plan", "path": "pages/plan.md", "collection": "pages", "title": "Plan", "summary": "…",
 "content": "…", "sections": [{"heading": "Budget", "level": 2, "anchor": "budget", "line": 9, "start": 24,
 "end": 41, "token_count": 5, "content": "…"}], "metadata": {"version": 2, "tags": [], "status": "draft", …},
 "history": […], "source": {…}, "problems": [], "stale": null}; of a section, that section alone; with --omitted
{"path": "runtime/reminders.md", "section": "this-week", "digest": "…", "text": "…", "tokens": 20, "next": 0}""",
        (
            Argument("id", "id, path, or the bare name of a runtime file", {"metavar": "ID"}),
            Argument("--section", "the anchor or the heading of one section", {"metavar": "ANCHOR"}),
            Argument("--omitted", "only what the prompt leaves out", {"action": "store_true"}),
            SESSION,
            AGENT,
            JSON,
        ),
    ),
    *FINDING,
    *MAKING,
    *EDITING,
    *single_commands(),
    *(group for each in SERVICES for group in groups_of(each)),
    Command(
        "import",
        "restore an exported notebook, or import older private notes",
        "Of an archive, DIR becomes the same notebook: files byte for byte, ids, versions, histories, the stream and\n"
        "git's commits. Where a database does not answer then, the files are in place all the same, and the same call\n"
        "goes on from there. One that makes git run a program, or whose notebook.toml starts one or names another\n"
        "machine or a key, may be somebody else's, and needs --trust-settings.\n"
        "\n"
        "With --v2, FILE is an export of private notes of an older version, as JSON, and each becomes a note of this\n"
        "notebook with its time, tags, conversation and other fields; a second time adds nothing. A note that cannot\n"
        "be taken is named, and the exit code is 1. Only an owner may; in a script, with --session owner.",
        ("notebook-sync import ferry.tar.gz ~/ferry", "notebook-sync import --v2 agent-notes.json --session owner"),
        """\
{"root": "/home/me/ferry", "files": 19, "bytes": 48211, "commits": 7, "notes": 12, "entries": 40, "longterm": 3,
 "checkpoints": 2}; with --v2
{"read": 40, "written": 38, "already": 1, "failed": [{"where": "…", "error": "…"}], "warnings": []}""",
        (
            Argument("file", "the archive, or with --v2 the older export", {"metavar": "FILE"}),
            Argument("dir", "the folder for the notebook; new or empty", {"metavar": "DIR", "nargs": "?"}),
            Argument(
                "--trust-settings",
                "let it start the programs and reach the machines it names",
                {"action": "store_true"},
            ),
            Argument("--v2", "FILE is an older export of private notes", {"action": "store_true"}),
            SESSION,
            AGENT,
            JSON,
        ),
    ),
    Command(
        "doctor",
        "check the environment, and say what to do next",
        "Python, SQLite, file events, git, the token vocabulary, the settings and the databases. Exit code 1 when a\n"
        "check fails, 4 when a database does not answer.",
        ("notebook-sync doctor",),
        '[{"check": "sqlite", "ok": true, "message": "SQLite 3.40.1 with FTS5", "next": ""}]',
        (JSON,),
    ),
    Command(
        "mcp",
        "run the MCP server over standard input and output",
        "Started by the agent program; docs/mcp.md shows how to tell it. Offers the session's tools, the assembled\n"
        "prompt, and notes as resources that tell when they change. Who asks is said by whoever writes the\n"
        "start command, and by nobody else: --session, else NOTEBOOK_SESSION, else external, also at a terminal. It\n"
        "ends with exit code 0 when its input ends, or at SIGTERM or Ctrl-C; what it logs goes to standard error.",
        ("notebook-sync -C ~/notebook mcp --session owner", "notebook-sync mcp --session task --agent scribe"),
        "",
        (
            Argument(
                "--session",
                "who asks through it: owner, task or external; else NOTEBOOK_SESSION, else external",
                {"metavar": "KIND"},
            ),
            AGENT,
        ),
    ),
    Command(
        "serve",
        "run the HTTP server and the dashboard, and follow the files",
        "The dashboard is at /, the HTTP API below /api/v1, MCP at /mcp; see docs/dashboard.md and docs/http.md.\n"
        "Programs are known by their token alone: see `token`. One line on standard output tells the address once\n"
        "it answers; on a terminal, a second one is a link that logs your browser in to the dashboard, once, within\n"
        "ten minutes. Requests and trouble are logged on standard error, without what a query, a body or a token\n"
        "says. Where another process follows the files already, this one goes on without, until that one ends.\n"
        "SIGTERM or Ctrl-C ends it within seconds with exit code 0.\n"
        "\n"
        "It listens on this machine alone unless --host or server.host says otherwise. Nothing is encrypted then: put\n"
        "a proxy with TLS before it, and name the proxy's host in server.allowed_hosts.",
        ("notebook-sync serve", "notebook-sync -C ~/notebook serve --port 0 --no-watch"),
        "",
        (
            Argument("--host", "the address to listen at; else server.host (127.0.0.1)", {"metavar": "HOST"}),
            Argument("--port", "0 for a free one; else server.port (8765)", {"metavar": "PORT", "type": "count"}),
            Argument("--no-watch", "do not follow the files", {"action": "store_true"}),
        ),
    ),
)

# Every command but the groups' own, as `--help` and docs/cli.md list them.
GROUPS = (
    ("Start", ("init", "demo", "sync", "watch", "status", "doctor", "config")),
    (
        "Notes",
        ("search", "list", "read", "create", "update", "edit", "delete", "rename", "history", "diff", "undo"),
    ),
    ("Prompt", ("prompt", "explain", "check", "rules", "reminders", "trust")),
    ("Agents", ("note", "stream", "checkpoint", "rollback", "events", "token")),
    ("Memory", ("fact", "memory", "context")),
    ("Servers", ("serve", "mcp", "verify", "rebuild", "export", "import")),
)
ALIASES = {"rm": "delete", "mv": "rename", "ls": "list", "show": "read", "find": "search"}
EXIT_CODES = (
    (0, "done"),
    (1, "done with failures, not consistent, or nothing found"),
    (2, "the call or a setting is wrong"),
    (3, "refused: permission or conflict; nothing was changed"),
    (4, "a database does not answer"),
    (130, "interrupted"),
    (141, "whoever read the output went away"),
)
