"""The commands that list and search notes: their rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.cli_table import JSON, SINCE, STATUSES, TAGS, UNTIL, Argument, Command, limit

_SEEN_BY = (
    Argument("--session", "show what this kind of session may see; else everything", {"metavar": "KIND"}),
    Argument("--agent", "the name of the agent of that session", {"metavar": "NAME", "default": ""}),
    JSON,
)
_COLLECTION = "pages, code_snippets, research_notes, …"
_STATUS = Argument("--status", STATUSES, {"metavar": "STATUS"})
_AUTHOR = Argument(
    "--author", "only those that this one made: owner, or an agent as agent:scribe", {"metavar": "NAME", "default": ""}
)

FINDING = (
    Command(
        "list",
        "list notes, the latest change first",
        "Titles and dates, never content. Dates are days of the notebook's timezone. A row of JSON has `provenance`\n"
        "too where somebody else wrote the note, and what its collection has: `language`, `source_url`, `confidence`,\n"
        "and of private notes `topic`, `session_id` and `created_at`.",
        (
            "notebook-sync list",
            "notebook-sync list pages --status draft --limit 5",
            "notebook-sync list --tags ferry,harbour --author scribe --since 7d",
        ),
        """\
[{"id": "pages/plan", "path": "pages/plan.md", "collection": "pages", "title": "Plan", "summary": "…", "tags": [],
  "updated_at": "2026-03-01T09:00:00+00:00", "status": "draft", "created_by": "owner", "word_count": 9,
  "version": 1}]""",
        (
            Argument("collection", _COLLECTION, {"metavar": "COLLECTION", "nargs": "?"}),
            _STATUS,
            TAGS,
            _AUTHOR,
            SINCE,
            UNTIL,
            limit(50),
            *_SEEN_BY,
        ),
    ),
    Command(
        "search",
        "find notes by their words, best first",
        "Every mark in QUERY is text: nothing in it is an operator. The mirror is searched as it is; see `sync` and\n"
        "`watch`.",
        (
            'notebook-sync search "race condition" --limit 5',
            "notebook-sync search ferry --collection research_notes --tags winter --since 2026-02-01",
        ),
        """\
[{"id": "pages/plan", "path": "pages/plan.md", "title": "Plan", …as for list…, "score": 3.21}]""",
        (
            Argument("query", "words", {"metavar": "QUERY"}),
            Argument("--collection", _COLLECTION, {"metavar": "COLLECTION"}),
            _STATUS,
            TAGS,
            _AUTHOR,
            SINCE,
            UNTIL,
            limit(10),
            *_SEEN_BY,
        ),
    ),
)
