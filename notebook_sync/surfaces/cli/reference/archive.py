"""The command `import`: its row of the table."""

from __future__ import annotations

from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, Argument, Command

ARCHIVE = (
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
)
