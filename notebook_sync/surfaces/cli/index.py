"""The commands by group, written out so that help needs no other module. A test compares it with the registry."""

from __future__ import annotations

PROGRAM = "notebook-sync"

# title → command → (module of `services`, a module's whole name, or "" for one written by hand; summary)
COMMANDS: tuple[tuple[str, dict[str, tuple[str, str]]], ...] = (
    (
        "Start",
        {
            "init": ("", "Create a notebook, or add the owner's files to a folder of notes"),
            "demo": ("", "Play an example in a notebook of its own"),
            "sync": ("admin", "Sync files to the index, and publish the changes"),
            "watch": ("", "Sync every save until stopped"),
            "status": ("admin", "Show counts, servers, backlog and the use of the prompt"),
            "doctor": ("admin", "Check the environment, each problem with the command that helps"),
            "config": ("admin", "Show the settings and where each comes from"),
            "connect": ("", "Set up an agent program: claude, codex, cursor, vscode, gemini, opencode"),
            "completion": ("", "Print the completion script of a shell"),
        },
    ),
    (
        "Notes",
        {
            "search": ("notes", "Search notes by words and meaning"),
            "list": ("notes", "List notes, the latest change first"),
            "read": ("notes", "Read a note, or one section of it, as its file is now"),
            "create": ("notes", "Create a page, a code snippet or a research note"),
            "update": ("notes", "Change content or fields of a note; every other byte stays as it is"),
            "edit": ("notes", "Edit a note at one place, byte for byte as it is elsewhere"),
            "delete": ("notes", "Delete a note; its text stays in the history, and `undo` brings it back"),
            "rename": ("notes", "Rename a note, or move it to another folder"),
            "history": ("notes", "List the versions of a note, the newest first"),
            "diff": ("notes", "Compare a note with an earlier version, by default the last one that differs"),
            "undo": ("notes", "Go back to the last text that differs, or to `rev`; a second undo takes back the first"),
        },
    ),
    (
        "Prompt",
        {
            "prompt": ("prompts", "Print the assembled system prompt"),
            "explain": ("prompts", "Show where a text is, and whether it reaches the prompt"),
            "check": ("prompts", "Find problems in the files"),
            "rules": ("prompts", "Show which rule applies to somebody now, and why"),
            "reminders": ("prompts", "List reminders, the most urgent first"),
            "trust": ("prompts", "Show lines that are not trusted yet, and accept them"),
        },
    ),
    (
        "Agents",
        {
            "note": ("channels", "Keep and find the private notes of agents"),
            "stream": ("stream", "Log what happened, show a day, and recall it"),
            "checkpoint": ("stream", "Save the notebook's state, to go back to it with rollback"),
            "rollback": ("stream", "Restore the stream, and with --files the notes, of a checkpoint"),
            "events": ("admin", "Show what was done and refused, and by whom"),
            "token": ("admin", "Manage the tokens of `serve`"),
        },
    ),
    (
        "Memory",
        {
            "fact": ("facts", "Short facts that count for more with use, and for less without it"),
            "conversation": ("facts", "Keep what a conversation says that is worth knowing"),
            "memory": ("memories", "Save, search, link and look after decisions, problems, patterns and insights"),
            "context": ("notebook_sync.context.service", "Compile what the notebook knows about a task"),
        },
    ),
    (
        "Servers",
        {
            "serve": ("", "Serve HTTP, MCP and the dashboard on this machine"),
            "mcp": ("", "Serve MCP over standard input and output"),
            "verify": ("admin", "Compare files, index and mirrors"),
            "rebuild": ("admin", "Parse every file again and rewrite its rows in place"),
            "export": ("importing", "Write the whole notebook to one plain tar"),
            "purge": ("importing", "Remove a text for good, its file included"),
            "import": ("importing", "Bring in an archive, or what other programs kept"),
        },
    ),
)
ALIASES = {"ls": "list", "show": "read", "find": "search", "mv": "rename", "rm": "delete"}


def module_of(command: str) -> str:
    """The module that declares a command, by its name in `services` or its whole name; "" for one written by hand."""
    return next(commands[command][0] for _, commands in COMMANDS if command in commands)


NAMES = tuple(name for _, commands in COMMANDS for name in commands)


def overview() -> str:
    """What bare `notebook-sync` prints: every command, grouped."""
    groups = [
        "\n".join([title, *(f"  {name:<12} {summary}" for name, (_, summary) in commands.items())])
        for title, commands in COMMANDS
    ]
    usage = f"usage: {PROGRAM} [-C DIR] COMMAND [arguments]"
    about = "A notebook of Markdown files for AI agents. The files are the truth; databases mirror them."
    options = (
        "Options\n  -C DIR       the notebook's folder, by default the nearest one\n  --version    print the version"
    )
    end = f"`{PROGRAM} help COMMAND` explains a command. Start with: {PROGRAM} init ~/notebook"
    return "\n\n".join([usage, about, *groups, options, end])
