"""Every command of the command line as a value: its words, its arguments, an example, what `--json` prints.

The parser, `--help` and docs/cli.md are all made from this one table, so that they cannot say different things.
"""

from __future__ import annotations

from notebook_sync.operations import SERVICES
from notebook_sync.surfaces.cli.from_operations import group_of, single_commands
from notebook_sync.surfaces.cli.reference.archive import ARCHIVE
from notebook_sync.surfaces.cli.reference.channels import NOTE
from notebook_sync.surfaces.cli.reference.editing import EDITING
from notebook_sync.surfaces.cli.reference.finding import FINDING
from notebook_sync.surfaces.cli.reference.pages import MAKING
from notebook_sync.surfaces.cli.reference.stream import STREAM
from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, Argument, Command

_SYNC_SHAPE = """\
{"added": 1, "updated": 0, "moved": 0, "deleted": 0, "unchanged": 7,
 "failed": [{"path": "pages/bad.md", "error": "line 2: …"}], "seconds": 0.021}"""

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
        "sync",
        "sync files to the database once",
        "Looks at every file and repairs every difference. One bad file never stops the run: its last good version\n"
        "stays, and the run ends with exit code 1. A look that finds none of the known notes deletes nothing, because\n"
        "a lost mount looks the same; --allow-empty says that it is meant. Where only the refs or what is known of\n"
        "facts could not be written, the run ends with exit code 4 and its JSON has one more key, `refs_trouble` or\n"
        "`facts_trouble`, that says why.",
        ("notebook-sync sync", "notebook-sync -C ~/notebook sync --json"),
        _SYNC_SHAPE,
        (
            Argument("--allow-empty", "let a folder without notes empty the mirror", {"action": "store_true"}),
            JSON,
        ),
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
        "status",
        "show counts, databases, backlog, watcher and token use",
        "Works with both databases down, and then ends with exit code 4. `behind` counts files that differ from the\n"
        "mirror, `lag_seconds` is the age of the oldest such change, `stale` are notes whose file was refused.\n"
        "`search` is null where embeddings are off; its `trouble` is why notes could not be embedded the last time.\n"
        "`facts_refused` counts facts that the model makes no vector of: they are found by their words alone.\n"
        "\n"
        "`prompt` is the use of each file in the owner's prompt, `left_out` the anchors of what its cap took.\n"
        "`sessions` is the prompt of each kind of session as a whole. `since_commit` tells what the edits since the\n"
        "last commit, also of notebook.toml, do to it: what falls out, and whether its stable part, and so a\n"
        "provider's cache, changes; null where there is no commit. `problem` is why a file is not shown as it is, and\n"
        "`waiting` are the lines that wait for `trust`.",
        ("notebook-sync status",),
        """\
{"root": "/home/me/notebook", "name": "notebook",
 "mirror": {"name": "SQLite (embedded)", "ok": true, "error": "", "notes": 8, "stale": 0, "problems": 0,
            "pending": 0, "collection:pages": 3, …},
 "refs": {"name": "SQLite (embedded)", "ok": true, "error": "", "pending": 0},
 "behind": 0, "lag_seconds": 0.0, "last_reconcile": "2026-03-01T09:00:00+00:00",
 "watcher": {"pid": 4711, "host": "desk", "since": "2026-03-01T08:00:00+00:00", "trouble": ""},
 "stale": [{"path": "pages/bad.md", "error": "line 2: …"}],
 "search": {"model": "wordllama-256", "embedded": 8, "behind": 0, "facts_behind": 0, "facts_refused": 0,
            "trouble": ""},
 "prompt": {"runtime/reminders.md": {"tokens": 120, "cap": 2000, "omitted": 0, "left_out": [],
                                     "problem": ""}},
 "waiting": [{"path": "runtime/reminders.md", "line": 9, "text": "- [ ] Pay the mooring", "removed": false}],
 "sessions": {"owner": {"tokens": 812, "max_tokens": 16000, "revision": "9f86d0…",
                        "since_commit": {"tokens_before": 790, "tokens_after": 812, "fell_out": […as for watch…],
                                         "came_back": [], "stable_changes": true, "kept_prefix_tokens": 402}}, …}}""",
        (JSON,),
    ),
    Command(
        "verify",
        "compare files, mirror and refs by digest",
        "Reads every file anew and changes nothing; exit code 1 when something differs. With --repair it first mends\n"
        "what differs.",
        ("notebook-sync verify", "notebook-sync verify --repair"),
        """\
{"consistent": false, "files": 8, "mirror": 8, "refs": 7,
 "differences": [{"path": "pages/plan.md", "what": "no ref", "detail": "hot memory has no ref of this note"}]}""",
        (Argument("--repair", "mend what differs, then compare", {"action": "store_true"}), JSON),
    ),
    Command(
        "rebuild",
        "rewrite the mirror and the refs from the files",
        "Every row and ref is written again; version, history and usage are kept.",
        ("notebook-sync rebuild",),
        _SYNC_SHAPE,
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
    NOTE,
    *single_commands(),
    *(group_of(each) for each in SERVICES if each.words),
    *STREAM,
    *ARCHIVE,
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
        "config",
        "show the settings, and where each comes from",
        "Of the address of a server, the user, the password and the values of options are masked.",
        ("notebook-sync config", "notebook-sync config --json"),
        """\
{"root": "/home/me/notebook", "file": "/home/me/notebook/notebook.toml",
 "settings": [{"key": "mirror.url", "value": "mongodb://***@db", "source": "MONGODB_URL"}]}""",
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
    Command(
        "token",
        "manage the tokens of `serve`, and print a login link",
        "`show` prints the owner's token, and makes it the first time. `add NAME` makes one for an agent and prints\n"
        "it; its conversations are what --session says, whatever the agent says itself: task (on its own) or external\n"
        "(on somebody else's message). `revoke NAME` makes one worthless at once; `revoke owner` logs all browsers\n"
        "out, too. `list` tells whose there are, and no token.\n"
        "\n"
        "`link` prints a link that logs a browser in to the dashboard, once, within ten minutes, while `serve` runs\n"
        "at that address.",
        (
            "notebook-sync token show",
            "notebook-sync token add scribe --session task",
            "notebook-sync token revoke scribe",
            "notebook-sync token list --json",
            "notebook-sync token link --port 9000",
        ),
        """\
[{"name": "owner", "session": "owner", "created_at": "2026-03-01T09:00:00+00:00"}]; for show and add
{"name": "scribe", "session": "task", "token": "…"}; for revoke {"name": "scribe", "revoked": true};
for link {"link": "http://notebook-….localhost:8765/login?code=…", "seconds": 600}""",
        (
            Argument("action", "list, add, revoke, show or link", {"metavar": "ACTION"}),
            Argument("name", "the agent, for add and revoke", {"metavar": "NAME", "nargs": "?"}),
            Argument("--session", "for add: task or external", {"metavar": "KIND"}),
            Argument("--host", "for link: what `serve` was given; else server.host (127.0.0.1)", {"metavar": "HOST"}),
            Argument(
                "--port", "for link: in the same way; else server.port (8765)", {"metavar": "PORT", "type": "count"}
            ),
            JSON,
        ),
    ),
)

# Every command but the groups' own, as `--help` and docs/cli.md list them.
GROUPS = (
    ("Start", ("init", "demo", "sync", "embed", "watch", "status", "doctor", "config")),
    (
        "Notes",
        ("search", "list", "read", "create", "update", "edit", "delete", "rename", "history", "diff", "undo"),
    ),
    ("Prompt", ("prompt", "explain", "check", "rules", "reminders", "trust")),
    ("Agents", ("note", "log", "today", "recall", "checkpoint", "rollback", "events", "token")),
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
