"""The commands that list and search notes: their rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.cli.table import JSON, SINCE, STATUSES, TAGS, UNTIL, Argument, Command, limit

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
        "search notes by words and meaning, best match first",
        "Every mark in QUERY is text: nothing in it is an operator. The mirror is searched as it is; see `sync` and\n"
        "`watch`. By meaning a note is found that says the same in other words; where that cannot be had, words\n"
        "alone answer, and a line on standard error says why. `score` is from 0 to 1; in mode keyword what the store\n"
        "gives, in mode semantic the cosine.\n"
        "\n"
        "With --explain a row has `explain`: its `score` is (1 - share) x words.part + share x meaning.part, each\n"
        "part 1 for the best that was found so; words.score and words.rank are the store's, meaning.similarity is\n"
        "the cosine of the nearest `passage`. With --snippet it has `snippet`: `text`, the `section` and `line` where\n"
        "it stands; or null. With --report, JSON is an object: the rows as `results`, the `mode` that was used,\n"
        "`degraded`, why that is less than was asked for, and `behind`, how many notes have no vectors yet; see\n"
        "`sync`.",
        (
            'notebook-sync search "race condition" --limit 5',
            'notebook-sync search "boat to the island" --mode semantic --snippet --explain',
            "notebook-sync search ferry --collection research_notes --tags winter --since 2026-02-01",
            'notebook-sync search oak --section "Important Facts" --report',
        ),
        """\
[{"id": "pages/plan", "path": "pages/plan.md", "title": "Plan", …as for list…, "score": 0.83,
  "snippet": {"text": "… before the ferry leaves …", "section": "steps", "line": 12},
  "explain": {"words": {"score": 3.21, "rank": 2, "part": 0.72}, "meaning": {"similarity": 0.62, "part": 1.0},
              "share": 0.4, "score": 0.83, "passage": {"section": "steps", "line": 12}}}]""",
        (
            Argument("query", "words, or a sentence", {"metavar": "QUERY"}),
            Argument("--mode", "keyword, semantic or hybrid (hybrid, where embeddings are on)", {"metavar": "MODE"}),
            Argument("--section", "only what stands below this heading or anchor", {"metavar": "S", "default": ""}),
            Argument("--snippet", "quote of each note what fits best", {"action": "store_true"}),
            Argument("--explain", "tell of each note how it came to its place", {"action": "store_true"}),
            Argument("--report", "print JSON, of the rows and of how they were found", {"action": "store_true"}),
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
