"""The group `fact`, short statements that live: its rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, Argument, Command, limit

_SCOPE = Argument(
    "--scope",
    "notes (unless said), core, archive or all",
    {"metavar": "SCOPE", "default": "notes"},
)
_FACT = Argument("fact", "the fact: its id, or its whole text", {"metavar": "FACT"})
_ROW = """\
{"note_id": "9f86d081884c7d65", "content": "The ferry leaves at eight", "section": "Important Facts",
 "path": "facts/notes.md", "line": 7, "importance": 0.61, "base": 0.6, "access_count": 3,
 "created_at": "2026-02-18T10:30:00+00:00", "last_accessed": "2026-03-01T09:00:00+00:00", "pinned": false,
 "core": false}"""
_ROWS = f"[{_ROW}]"
_FOUND = f'[{_ROW.removesuffix("}")}, "similarity": 0.82}}]'


def _changed(action: str) -> str:
    return f'{_ROW.removesuffix("}")},\n "action": "{action}", "warnings": []}}'


FACT = Command(
    "fact",
    "short facts that matter more when used, and fade when not: add, list, search, …",
    "A fact is one bullet of a file below facts/: notes.md, any other, core.md for what is to last, archive.md for\n"
    "what is spent. A bullet that a person writes, rewords, moves or deletes is one more, another, or one less fact;\n"
    "what these commands change is an ordinary edit of a file, and `undo` takes it back. docs/facts.md tells the\n"
    "rest.\n"
    "\n"
    "How much a fact matters, its importance from 0 to 1, is computed when it is asked for. It rises with use and\n"
    "falls with time; what stands in core.md does not fade. FACT is a fact's id, as much of its beginning as `fact\n"
    "list` shows, or its whole text. Like every command, `fact` runs as --session, else NOTEBOOK_SESSION, else owner\n"
    "at a terminal and task elsewhere.",
    (
        "notebook-sync fact add 'The ferry leaves at eight' --importance high",
        "notebook-sync fact list",
        "notebook-sync fact search 'when does the ferry leave'",
    ),
    "",
    commands=(
        Command(
            "add",
            "write a fact down, or strengthen the one that says so already",
            "It becomes a bullet at the end of its section of facts/notes.md; a text of several lines stays one\n"
            "bullet. Where a fact says the same, in these words or in others, that one is strengthened in its place,\n"
            "and `action` is reinforced; one that was archived comes back, and `action` is restored. Texts that\n"
            "differ in a number, a name, a date or a `not` are never the same.",
            (
                "notebook-sync fact add 'The ferry leaves at eight' --importance high",
                "notebook-sync fact add 'Odile runs the ferry' --section 'People & Entities' --agent scribe",
                "notebook-sync fact add --content-file fact.txt",
            ),
            _changed("added"),
            (
                Argument("text", "the fact; - reads it from standard input", {"metavar": "TEXT", "nargs": "?"}),
                Argument("--content-file", "read the fact from a file", {"metavar": "F"}),
                Argument(
                    "--section",
                    "the heading it goes under (Important Facts); one that is not there is made",
                    {"metavar": "S", "default": "Important Facts"},
                ),
                Argument(
                    "--importance",
                    "what it starts with: core, high, medium, low, or a number from 0 to 1 (0.5)",
                    {"metavar": "N"},
                ),
                SESSION,
                AGENT,
                JSON,
            ),
        ),
        Command(
            "list",
            "list facts, the most important first",
            "A line for each: what it matters now, the beginning of its id, its section, its text. --stale leaves\n"
            "those that nobody used for memory.stale_days (30).",
            ("notebook-sync fact list", "notebook-sync fact list --scope all --section 'Key Topics' --stale --json"),
            _ROWS,
            (
                _SCOPE,
                Argument("--section", "only those under this heading", {"metavar": "S", "default": ""}),
                Argument("--stale", "only those that are not used any more", {"action": "store_true"}),
                limit(50),
                SESSION,
                AGENT,
                JSON,
            ),
        ),
        Command(
            "search",
            "find facts by meaning and words, the most alike first",
            "What an agent finds counts as used, unless the session is external. `similarity` is from 0 to 1.",
            (
                "notebook-sync fact search 'when does the ferry leave'",
                "notebook-sync fact search Odile --scope all --limit 3 --json",
            ),
            _FOUND,
            (Argument("query", "words", {"metavar": "QUERY"}), _SCOPE, limit(10), SESSION, AGENT, JSON),
        ),
        Command(
            "verify",
            "see whether something is known, before you rely on it",
            "CONFIRMED: a fact says so. RELATED: something near it is known, which may also contradict it. NEW:\n"
            "nothing is. `matches` are the facts that were compared, the nearest first; `degraded` is why words alone\n"
            "were, where meaning cannot be had.",
            (
                "notebook-sync fact verify 'The ferry leaves at eight'",
                "notebook-sync fact verify - --json",
            ),
            f'{{"verdict": "CONFIRMED", "similarity": 0.82, "matches":\n {_FOUND}, "degraded": ""}}',
            (
                Argument("text", "what may be known; - reads it from standard input", {"metavar": "TEXT"}),
                SESSION,
                AGENT,
                JSON,
            ),
        ),
        Command(
            "reinforce",
            "strengthen a fact that proved right",
            "Adds 0.1 to its importance, and counts as a use. A text that no fact has exactly names the one that is\n"
            "most like it, where that is clear.",
            (
                "notebook-sync fact reinforce 9f86d081884c7d65",
                "notebook-sync fact reinforce 'The ferry leaves at eight'",
            ),
            _changed("reinforced"),
            (_FACT, SESSION, AGENT, JSON),
        ),
        Command(
            "decay",
            "archive what has faded, and promote what has proved itself",
            "Fading itself needs no command: importance is computed from a fact's use and age. What fell below\n"
            "memory.archive_below (0.05) moves to archive.md; what rose above memory.promote_above (0.8) and was used\n"
            "memory.promote_accesses (3) times is proposed for core.md, or moves there with memory.promote =\n"
            '"auto" if the owner reinforced it too. A second run finds nothing left to do.\n'
            "`watch` and `serve` do this every\n"
            "memory.recalculate_hours (6).",
            ("notebook-sync fact decay --dry-run", "notebook-sync fact decay --session owner"),
            '{"archived": [{"note_id": "…", …as for fact list…}], "promoted": [], "proposed": []}',
            (
                Argument("--dry-run", "only tell what would happen", {"action": "store_true"}),
                SESSION,
                AGENT,
                JSON,
            ),
        ),
        Command(
            "archive",
            "put a fact aside, into archive.md",
            "It keeps its use and its history, and says below its section when and why it went. Nothing is deleted;\n"
            "`fact restore` brings it back.",
            ("notebook-sync fact archive 9f86d081884c7d65 --reason 'the timetable changed'",),
            _changed("archived"),
            (
                _FACT,
                Argument("--reason", "why, in a few words", {"metavar": "R", "default": ""}),
                SESSION,
                AGENT,
                JSON,
            ),
        ),
        Command(
            "restore",
            "bring a fact back from archive.md",
            "To the file and the section that it came from, and adds 0.1 to its importance.",
            ("notebook-sync fact restore 'The ferry leaves at eight'",),
            _changed("restored"),
            (_FACT, SESSION, AGENT, JSON),
        ),
        Command(
            "promote",
            "move a fact to core.md, where it does not fade",
            "What stands in core.md is in every prompt of the owner and of agents, and is the owner's to change. In a\n"
            "task session the fact stays where it is, and `action` is proposed: `fact decay` shows what is proposed.",
            (
                "notebook-sync fact promote 9f86d081884c7d65 --session owner",
                "notebook-sync fact promote 'Odile runs the ferry' --section Relationships --session owner",
            ),
            _changed("promoted"),
            (
                _FACT,
                Argument("--section", "the heading of core.md it goes under", {"metavar": "S", "default": ""}),
                SESSION,
                AGENT,
                JSON,
            ),
        ),
        Command(
            "dedupe",
            "find facts that say the same, and with --apply merge them",
            "Of two, the more important text stays where it is; it takes over the other's uses, the earlier date and\n"
            "the history, and the other goes to archive.md. Without --apply nothing changes. `how` is by what they\n"
            "were found.",
            ("notebook-sync fact dedupe", "notebook-sync fact dedupe --apply --session owner"),
            """\
{"pairs": [{"keep": {"note_id": "…", …as for fact list…}, "drop": {…}, "similarity": 0.91, "how": "meaning"}],
 "merged": 1, "warnings": []}""",
            (
                Argument("--apply", "merge them", {"action": "store_true"}),
                SESSION,
                AGENT,
                JSON,
            ),
        ),
        Command(
            "extract",
            "let a language model draw facts from the last messages of a conversation",
            'MESSAGES is a JSON array as chat APIs take it, [{"role": "user", "content": "…"}]; the last 20\n'
            "count. Needs an OpenAI-compatible model, named in [llm] of notebook.toml; docs/facts.md shows how. What\n"
            "is new is added as by `fact add`. What somebody in the conversation says no longer holds is archived; a\n"
            "fact that they do not name is not, and nothing in core.md is. With --dry-run only the answer is shown.\n"
            "Where the model's answer cannot be used, `error` says why, nothing changes, and the exit code is 1.",
            (
                "notebook-sync fact extract messages.json --dry-run",
                "notebook-sync fact extract - --agent scribe",
            ),
            """\
{"additions": [{"note_id": "…", …as for fact add…}], "removals": [{"note_id": "…", …as for fact archive…}],
 "skipped": [{"what": "removal", "text": "The harbour is Odile's", "reason": "…"}],
 "summary": "The timetable changed.", "error": "", "applied": true, "warnings": []}""",
            (
                Argument("messages", "a file of JSON; - reads standard input", {"metavar": "MESSAGES.json"}),
                Argument("--dry-run", "change nothing", {"action": "store_true"}),
                SESSION,
                AGENT,
                JSON,
            ),
        ),
        Command(
            "plot",
            "draw the importance of facts over time, as an SVG",
            "A line for each of the most important facts, as far back as --days, with where it was used. The picture\n"
            "has no script and loads nothing. At OUT.svg it takes the place of an older picture that nobody has\n"
            "changed, and of nothing else; - prints it.",
            ("notebook-sync fact plot facts.svg", "notebook-sync fact plot facts.svg --days 30 --limit 5"),
            '{"path": "/home/me/facts.svg", "bytes": 18230}',
            (
                Argument("file", "where the picture goes, a name that ends in .svg", {"metavar": "OUT.svg"}),
                Argument("--days", "how far back (90)", {"metavar": "N", "type": "count", "default": 90}),
                limit(12),
                SESSION,
                AGENT,
                JSON,
            ),
        ),
    ),
)
