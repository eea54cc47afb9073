"""The commands that make of a spec what a task has to know: their rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, Argument, Command

_SPEC = Argument("spec", "a file, else a note by its id or path; - reads standard input", {"metavar": "SPEC.md"})
_WANTED = (
    Argument(
        "--max-tokens", "at most so many tokens; else context.max_tokens (8000)", {"metavar": "N", "type": "count"}
    ),
    Argument("--top-k", "rest on at most so many memories; else context.top_k (15)", {"metavar": "N", "type": "count"}),
    Argument("--domains", "only memories of any of these domains, parted by commas", {"metavar": "A,B"}),
    Argument("--exclude-tags", "no memories with any of these tags, parted by commas", {"metavar": "A,B"}),
)
_USED = """\
"memories_used": [{"id": "k3v9x1q8m2ab", "path": "memories/decision/2026-03-01-….md",
                    "title": "Serve the old timetable", "score": 0.71, "contribution": "primary"}]"""

BRIEFS = (
    Command(
        "brief",
        "compile what the notebook knows that matters for a task",
        "SPEC.md says what is to be done; its frontmatter may name domain, tags, components and related notes. The\n"
        "brief is Markdown: the task, decisions, known problems, patterns, risks and related notes, out of memories\n"
        "that are near it and count for much, at most --max-tokens real tokens of it. Compiling twice gives the same\n"
        "context_hash, as long as neither the spec nor a memory that was used changes. --explain tells each step:\n"
        "what was looked for, found, taken and left, with scores. Nothing private, nothing quarantined and no word\n"
        "that somebody else wrote is in it. docs/context.md tells the rest.",
        (
            "notebook-sync brief SPEC.md",
            "notebook-sync brief specs/timetable.md --max-tokens 2000 --domains timetable,ferry --explain",
            "notebook-sync brief - --json",
        ),
        f"""\
{{"task_brief_md": "# …", "context_hash": "9f86d0…", {_USED},
 "token_count": 1890, "related": [{{"id": "pages/plan", "path": "pages/plan.md", "title": "Plan"}}],
 "partial": ""}}; with --explain also
 "explain": {{"intent": {{…}}, "prefilter": …, "search": …, "combined": …, "mmr": …, "cut": …}}""",
        (
            _SPEC,
            *_WANTED,
            Argument("--explain", "tell each step with its scores", {"action": "store_true"}),
            SESSION,
            AGENT,
            JSON,
        ),
    ),
    Command(
        "synthesize",
        "have a task brief thought through, once, by a reasoner",
        "The reasoner is an MCP server with a tool ask_question that tier2.command starts, a NotebookLM bridge for\n"
        "instance; without one, the language model of [llm]. tier2.enabled has to say so: docs/synthesis.md shows\n"
        "how. The answer has fixed headings; the links that it suggests between memories are checked and written\n"
        "down. It is kept, and told again until the spec or a memory that was used changes, or tier2.cache_ttl_hours\n"
        "(24) have passed; --refresh asks anew. At most tier2.daily_limit (50) calls are made a day. Where the\n"
        "reasoner is away, late or over the limit, the brief itself is given in its place: `source` is local, and\n"
        "`trouble` says why.",
        ("notebook-sync synthesize SPEC.md", "notebook-sync synthesize SPEC.md --refresh --json"),
        f"""\
{{"synthesis_md": "# …", "synthesis_id": "…", "source": "bridge", "cached": false, "context_hash": "9f86d0…",
 {_USED},
 "links": {{"ingested": [{{…}}], "kept": [], "dropped": [{{"link": {{…}}, "reason": "…"}}]}},
 "calls_today": 4, "daily_limit": 50, "trouble": "", "warnings": []}}""",
        (
            _SPEC,
            Argument("--refresh", "ask anew, whatever is kept", {"action": "store_true"}),
            *_WANTED,
            SESSION,
            AGENT,
            JSON,
        ),
    ),
    Command(
        "prefetch",
        "have the syntheses of specs ready before anybody asks",
        "As `synthesize` for each, within the daily limit. `watch` and `serve` do so by themselves for a saved file\n"
        "that tier2.specs names, and for a new git branch.",
        ("notebook-sync prefetch specs/timetable.md", "notebook-sync prefetch specs/timetable.md specs/pier.md --json"),
        '[{"spec": "specs/timetable.md", "source": "bridge", "cached": false, "trouble": ""}]',
        (
            Argument("specs", "notes, by their ids or paths", {"metavar": "SPEC.md", "nargs": "+"}),
            SESSION,
            AGENT,
            JSON,
        ),
    ),
)
