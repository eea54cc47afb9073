"""The group `note`, an agent's private notes: its rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, SINCE, TAGGED, TAGS, UNTIL, Argument, Command, limit

_ASKING = Argument(
    "--agent",
    "the agent that asks, whose notes they are; an owner without it sees all",
    {"metavar": "NAME", "default": ""},
)
_CHANNEL = Argument(
    "--channel", "of another agent, which shares its channel with this one", {"metavar": "AGENT", "default": ""}
)
_TOPIC = Argument("--topic", "only those on this topic", {"metavar": "TOPIC", "default": ""})
_SESSION_ID = Argument("--session-id", "only those of this conversation", {"metavar": "ID", "default": ""})
_PROJECT = Argument(
    "--project",
    "only those of this project, and those of none; global for the latter",
    {"metavar": "ID", "default": ""},
)
_ROWS = """\
[{"id": "channels/scribe/global/2026-02-18T103000Z-ferry-lights", "path": "channels/scribe/global/….md",
  "collection": "channels", "title": "Ferry lights", "summary": "…", …as for list…, "topic": "ferry",
  "session_id": "", "confidence": 0.9, "created_at": "2026-02-18T10:30:00+00:00"}]"""

NOTE = Command(
    "note",
    "an agent's private notes: write, search, recent, peek, channels",
    "What an agent writes down for itself, by topic, tag and conversation. Each note is a file below\n"
    "channels/AGENT/PROJECT/, or channels/AGENT/global/ for notes of no project. Another agent sees nothing of them,\n"
    "unless a channel.toml beside them names it. The owner sees all.\n"
    "\n"
    "Whose notes they are is said by --agent. Like every command, `note` runs as --session, else NOTEBOOK_SESSION,\n"
    "else owner at a terminal and task elsewhere.",
    (
        "notebook-sync note write 'Ines has the key of the boathouse' --topic harbour --agent scribe",
        "notebook-sync note search boathouse --agent scribe",
        "notebook-sync note recent --agent scribe --limit 5",
    ),
    "",
    commands=(
        Command(
            "write",
            "write a private note down",
            "The channel is made with its first note. In an external session the note is kept as somebody else's\n"
            "words: `provenance: external`. --meta keeps further fields in the note's frontmatter; a VALUE that is\n"
            "JSON is kept as what it says, as in confidence=0.8, and anything else as text.",
            (
                "notebook-sync note write 'Ines has the key of the boathouse' --topic harbour --agent scribe",
                "notebook-sync note write - --tags tides,winter --project harbour-2026 --agent scribe",
                "notebook-sync note write 'The buoy drifts' --session-id morning --meta confidence=0.8 --agent scribe",
            ),
            """\
{"notebook_id": "channels/scribe/global/2026-02-18T103000Z-ines-has-the-key", "path": "channels/scribe/global/….md",
 "title": "Ines has the key of the boathouse", "collection": "channels", "version": 1, …as for create…}""",
            (
                Argument("text", "the note; - reads it from standard input", {"metavar": "TEXT"}),
                Argument(
                    "--topic", "what it is about, in a word (general)", {"metavar": "TOPIC", "default": "general"}
                ),
                TAGGED,
                Argument("--session-id", "the conversation it belongs to", {"metavar": "ID", "default": ""}),
                Argument("--project", "the project it belongs to; else none", {"metavar": "ID", "default": ""}),
                Argument(
                    "--meta",
                    "a further field; give it once for each",
                    {"metavar": "KEY=VALUE", "action": "append", "default": []},
                ),
                Argument(
                    "--channel",
                    "into the notes of another agent, which shares its channel with this one",
                    {"metavar": "AGENT", "default": ""},
                ),
                SESSION,
                Argument("--agent", "the agent that writes, whose note it is", {"metavar": "NAME", "default": ""}),
                JSON,
            ),
        ),
        Command(
            "search",
            "find private notes, best first",
            "By words and meaning, and by how new and how sure a note is: --profile says what counts more. recent:\n"
            "new ones; quality: sure ones; similarity: words and meaning alone; balanced: all of it. Without QUERY,\n"
            "all that the options leave, in the same order. --since and --until are of when a note was made. Of a\n"
            "row, `confidence` and `provenance` are there where the note says them.",
            (
                "notebook-sync note search 'key of the boathouse' --agent scribe",
                "notebook-sync note search --tags tides --since 7d --profile recent --agent scribe --json",
            ),
            _ROWS.removesuffix("}]") + ', "score": 0.71}]',
            (
                Argument("query", "words", {"metavar": "QUERY", "nargs": "?", "default": ""}),
                TAGS,
                SINCE,
                UNTIL,
                _TOPIC,
                _SESSION_ID,
                _PROJECT,
                Argument(
                    "--profile",
                    "balanced (unless said), recent, quality or similarity",
                    {"metavar": "PROFILE", "default": "balanced"},
                ),
                limit(50),
                _CHANNEL,
                SESSION,
                _ASKING,
                JSON,
            ),
        ),
        Command(
            "recent",
            "list private notes, the latest first",
            "The options are looked at before the limit is.",
            (
                "notebook-sync note recent --agent scribe",
                "notebook-sync note recent --agent scribe --session-id morning --limit 5",
            ),
            _ROWS,
            (_TOPIC, _SESSION_ID, _PROJECT, limit(20), _CHANNEL, SESSION, _ASKING, JSON),
        ),
        Command(
            "peek",
            "look at another agent's notes, as far as its channel lets you",
            "What a channel.toml beside the notes grants to --agent, read or peek; the owner may always. Where it\n"
            "grants nothing, the answer is the same whether there are notes or not. With QUERY the best comes first,\n"
            "else the latest.",
            (
                "notebook-sync note peek scribe --session task --agent pilot",
                "notebook-sync note peek scribe boathouse --agent pilot --limit 5",
            ),
            _ROWS,
            (
                Argument("of", "whose notes", {"metavar": "AGENT"}),
                Argument("query", "words", {"metavar": "QUERY", "nargs": "?", "default": ""}),
                TAGS,
                _TOPIC,
                _PROJECT,
                limit(20),
                SESSION,
                AGENT,
                JSON,
            ),
        ),
        Command(
            "channels",
            "list the channels, and who else may read them",
            "All of them for the owner; for an agent its own and those that it is a member of. `notes` is null where\n"
            "it may write and not read.",
            ("notebook-sync note channels", "notebook-sync note channels --session task --agent scribe --json"),
            """\
[{"id": "notes:scribe:global", "name": "notes-scribe", "agent": "scribe", "scope": "global", "notes": 12,
  "members": {"pilot": ["read"]}}]""",
            (SESSION, AGENT, JSON),
        ),
    ),
)
