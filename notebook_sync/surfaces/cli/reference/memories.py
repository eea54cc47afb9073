"""The group `memory`, structured memories and how they are linked: its rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, TAGGED, TAGS, Argument, Command, limit

_ASKED = (SESSION, AGENT, JSON)
_OF_KIND = Argument("--kind", "only these: pattern, decision, problem or insight", {"metavar": "KIND", "default": ""})
_IN_DOMAIN = Argument("--domain", "only those of this domain", {"metavar": "D", "default": ""})
_DRY_RUN = Argument("--dry-run", "only tell what would happen", {"action": "store_true"})
_MEMORY = "a memory, by its id or path"
_FIELDS = """\
{"notebook_id": "k3v9x1q8m2ab", "path": "memories/decision/2026-03-01-serve-the-old-timetable.md",
 "title": "Serve the old timetable", "kind": "decision", "domain": "timetable", "tags": ["cache"],
 "agent": "scribe", "priority": 7,"""
_ROW = f"""\
{_FIELDS} "score": 0.61, "created_at": "2026-03-01T09:00:00+00:00",
 "needs_review": false, "relations": 2, "accesses": 3}}"""
_LINK = """\
{"from": "k3v9x1q8m2ab", "to": "p7c2w5z4n1de", "type": "solves", "confidence": 0.9,
 "reasoning": "…", "source": "owner\""""

_ADD = Command(
    "add",
    "write a decision, a problem, a pattern or an insight down, with its reasons",
    "TEXT begins with [DECISION], [PROBLEM], [PATTERN] or [INSIGHT] and a title, and goes on with CONTEXT:,\n"
    "REASONING:, OUTCOME: and TAGS:, each at the beginning of a line. It becomes a file below memories/KIND/. A text\n"
    "that is not of this form is restructured by the language model of [llm], and the text as it was stands below\n"
    "that; where there is no model, or its answer will not do, the text is kept as it is and marked needs_review.\n"
    "`structured` tells which: given, model or none. Nothing of TEXT is ever lost.\n"
    "\n"
    "A time, an agent or a priority that cannot be taken is replaced, `warnings` tell, and the memory waits for a\n"
    "review. A priority beyond 1 to 10 becomes the nearest of them, and `warnings` tell. With --strict each of these\n"
    "is an error, and nothing is written.",
    (
        "notebook-sync memory add --content-file decision.txt --domain timetable",
        "notebook-sync memory add 'The ferry waits for the night train' --kind insight --tags ferry,train",
    ),
    f"""\
{_FIELDS} "version": 1, "status": "draft",
 "needs_review": false, "structured": "given", "warnings": []}}""",
    (
        Argument("text", "the memory; - reads it from standard input", {"metavar": "TEXT", "nargs": "?"}),
        Argument("--content-file", "read it from a file", {"metavar": "F"}),
        Argument("--title", "else as TEXT has it", {"metavar": "T", "default": ""}),
        Argument(
            "--kind", "pattern, decision, problem or insight; else as TEXT has it", {"metavar": "KIND", "default": ""}
        ),
        Argument("--domain", "what it is about, in a word", {"metavar": "D", "default": ""}),
        TAGGED,
        Argument("--priority", "from 1 to 10 (7)", {"metavar": "N", "type": "count"}),
        Argument("--created-at", "when it was, as 2026-03-01T09:00; else now", {"metavar": "DATE", "default": ""}),
        Argument(
            "--strict",
            "refuse a date, an agent or a priority that cannot be taken",
            {"action": "store_true", "default": False},
        ),
        Argument(
            "--lenient",
            "fill in what is lacking (the default)",
            {"action": "store_false", "dest": "strict", "default": False},
        ),
        *_ASKED,
    ),
)

_READING = (
    Command(
        "list",
        "list memories, those first that count for most",
        "A line for each: its score, its id, its kind, its domain, its title. --needs-review leaves those that nobody\n"
        "has put into form.",
        (
            "notebook-sync memory list",
            "notebook-sync memory list --kind problem --domain timetable --json",
            "notebook-sync memory list --needs-review",
        ),
        f"[{_ROW}]",
        (
            _OF_KIND,
            _IN_DOMAIN,
            TAGS,
            Argument("--needs-review", "only those that wait for a review", {"action": "store_true"}),
            limit(50),
            *_ASKED,
        ),
    ),
    Command(
        "search",
        "find memories by meaning and words, the most alike first",
        "`similarity`, 0 to 1, is by itself, whatever else is found: the cosine of the two meanings, or the share of\n"
        "QUERY's words that the memory says, small ones aside, whichever is more. What has nothing in common with\n"
        "QUERY is not listed. From 0.6 on (memory.related) what is found counts as used, unless the session is\n"
        "external.",
        (
            "notebook-sync memory search 'why is the old timetable still served'",
            "notebook-sync memory search timetable --kind decision --limit 3 --json",
        ),
        f'[{_ROW.removesuffix("}")}, "similarity": 0.82}}]',
        (
            Argument("query", "words", {"metavar": "QUERY"}),
            _OF_KIND,
            _IN_DOMAIN,
            TAGS,
            limit(10),
            *_ASKED,
        ),
    ),
)

_LINKING = (
    Command(
        "link",
        "say how one memory bears on another",
        "TYPE is causes, solves, contradicts, expands, supersedes or similar. The link is written into the\n"
        "frontmatter of FROM, and no other byte of that file changes. A link of the same type to the same memory is\n"
        "made anew where it says something else, and else kept: `action` is added, updated or kept.",
        (
            "notebook-sync memory link k3v9x1q8m2ab solves p7c2w5z4n1de",
            "notebook-sync memory link k3v9x1q8m2ab supersedes p7c2w5z4n1de --confidence 0.9 --reasoning 'since May'",
        ),
        f'{_LINK}, "synthesis_id": "", "action": "added", "warnings": []}}',
        (
            Argument("from_id", _MEMORY, {"metavar": "FROM"}),
            Argument("type", "how it bears on the other", {"metavar": "TYPE"}),
            Argument("to_id", _MEMORY, {"metavar": "TO"}),
            Argument(
                "--confidence", "how sure that is, from 0 to 1 (1)", {"metavar": "N", "type": "share", "default": 1.0}
            ),
            Argument("--reasoning", "why, in a sentence", {"metavar": "R", "default": ""}),
            Argument("--source", "who says so", {"metavar": "S", "default": ""}),
            *_ASKED,
        ),
    ),
    Command(
        "ingest",
        "write down the links that a synthesis, or anybody else, suggests",
        "FILE is JSON: a list of {from, to, type, confidence, reasoning, source, synthesis_id}, or an object with\n"
        "such a list as `links`. A link with both ends among the memories, of one of the six types, and with a\n"
        "confidence that is a number (0.5 where it has none) is written into the file of the memory that it starts\n"
        "from. What is known already is kept. The others are dropped, with the reason, and then the exit code is 1.",
        ("notebook-sync memory ingest links.json", "notebook-sync memory ingest - --session owner"),
        f"""\
{{"ingested": [{_LINK}, "synthesis_id": "", "action": "added"}}], "kept": [],
 "dropped": [{{"link": {{…}}, "reason": "…"}}], "warnings": []}}""",
        (Argument("file", "the links, JSON; - reads them from standard input", {"metavar": "FILE"}), *_ASKED),
    ),
    Command(
        "infer",
        "ask a language model how memories that are alike are linked",
        "Asked are those pairs whose meanings are as near as memory.infer_above (0.7), the nearest first. What the\n"
        "model says beside the six types is dropped, and told. Without --apply nothing is written. Where the\n"
        "model goes away midway, what it had said counts, and `trouble` tells why that is not all. Needs a model,\n"
        "named in [llm] of notebook.toml.",
        ("notebook-sync memory infer", "notebook-sync memory infer --apply --limit 50 --session owner"),
        f"""\
{{"links": [{_LINK}, "action": "added"}}],
 "dropped": [{{"link": {{…}}, "reason": "…"}}], "pairs": 12, "trouble": ""}}""",
        (
            Argument("--apply", "write the links down", {"action": "store_true"}),
            Argument(
                "--limit", "ask about at most so many pairs (20)", {"metavar": "N", "type": "count", "default": 20}
            ),
            *_ASKED,
        ),
    ),
)

_REPAIRING = (
    Command(
        "audit",
        "count what memories lack, and with --fix mend what git and tags can prove",
        "Counted are timestamps that are missing or cannot be read, agents that nobody knows, memories that have no\n"
        "form (a kind, and Context, Reasoning and Outcome as headings with something below), priorities that are all\n"
        "the same, links that lead nowhere, tags, and how far scores lie apart; each finding has its path and line.\n"
        "--fix makes the edits that --fix --dry-run shows, a thousand files in one commit: a timestamp from git, an\n"
        "agent from a tag. Where there are more, a checkpoint is made first, and what was interrupted goes on when it\n"
        "is run again. What it cannot prove it leaves, and tells in `left`.",
        (
            "notebook-sync memory audit",
            "notebook-sync memory audit --fix --dry-run",
            "notebook-sync memory audit --fix --session owner",
        ),
        """\
{"memories": 1161, "timestamps": {"missing": 3, "unparsable": 1}, "agents": {"unknown": 12}, "unstructured": 40,
 "needs_review": 31, "importance": {"mean": 7.1, "sigma": 0.4, "saturated": 0.93}, "similar_share": 0.6,
 "links": 210, "links_broken": 2, "tags": {"per_memory": 2.4, "none": 17}, "score": {"mean": 0.31, "sigma": 0.12},
 "findings": [{"path": "memories/…", "line": 4, "what": "…", "fix": "…"}], "findings_left_out": 0}; with --fix
{"changes": [{"path": "memories/…", "field": "created_at", "before": null, "after": "2026-03-01T09:00:00+00:00",
              "because": "…"}],
 "applied": true, "left": [{"path": "memories/…", "line": 4, "what": "…", "fix": "…"}],
 "left_out": {"changes": 0, "left": 0}, "backup": "", "trouble": "", "warnings": []}; `trouble` says what stopped very
many changes midway""",
        (
            Argument("--fix", "mend what can be proved", {"action": "store_true"}),
            Argument("--dry-run", "with --fix: only tell what would be mended", {"action": "store_true"}),
            *_ASKED,
        ),
    ),
    Command(
        "score",
        "compute anew what each memory counts for",
        "From how often and when it was used last, its priority and its age; docs/memories.md has the formula.\n"
        "`watch` and `serve` do this every memory.recalculate_hours (6).",
        ("notebook-sync memory score", "notebook-sync memory score --json"),
        '{"scored": 1161, "mean": 0.31, "sigma": 0.12, "at": "2026-03-01T09:00:00+00:00"}',
        _ASKED,
    ),
    Command(
        "import",
        "take in the memories that another program exported",
        "FILE is JSON lines, a JSON list or an SQLite database. Columns are read by their documented names\n"
        "(docs/memories.md); --map body=content renames one. A checkpoint is made first. Each record becomes one\n"
        "file; a record that is here is not written twice, and one that was deleted since it was imported stays\n"
        "away without --again. Records that cannot become a memory are reported and put into a file next to FILE:\n"
        "read = added + already + deleted + failed, and `lossless` says so. `columns` says which column each field\n"
        "was read from; columns in `not_taken` are kept in the frontmatter. Links of no known type, with a\n"
        "confidence that is no number, or to a memory that is neither in FILE nor in the notebook are reported as\n"
        "`links_dropped`, the first thousand, and stay in the frontmatter too.",
        (
            "notebook-sync memory import memories.jsonl --dry-run",
            "notebook-sync memory import old.db --map body=content --map ts=created_at",
        ),
        """\
{"read": 1161, "added": 1150, "already": 9, "deleted": 1, "needs_review": 40, "failed": [{"line": 7, "reason": "…"}],
 "columns": {"id": "id", "text": "content", "created_at": "created_at", "priority": "importance"},
 "not_taken": ["mood"],
 "links_dropped": [{"line": 3, "link": {"to": "m9", "type": "likes"}, "reason": "there is no relation 'likes'"}],
 "backup": "5b1c3e…", "lossless": true, "left_in": "/home/me/memories.jsonl.left.jsonl", "warnings": []}""",
        (
            Argument("file", "JSON lines or SQLite", {"metavar": "FILE"}),
            _DRY_RUN,
            Argument(
                "--map",
                "read the column OLD as the documented column NEW; repeatable",
                {"metavar": "OLD=NEW", "action": "append", "default": []},
            ),
            Argument("--again", "bring in what was deleted since it was imported, too", {"action": "store_true"}),
            *_ASKED,
        ),
    ),
)

_SEEING = (
    Command(
        "graph",
        "draw memories and their links, as an SVG or for Mermaid",
        "The picture has no script and loads nothing, and is the same for the same memories. --around draws one\n"
        "memory and what is linked to it. With --mermaid the drawing is text for a Markdown file. At OUT it takes\n"
        "the place of an older picture that nobody has changed, and of nothing else; - prints it.",
        (
            "notebook-sync memory graph memories.svg",
            "notebook-sync memory graph - --mermaid --domain timetable",
            "notebook-sync memory graph near.svg --around k3v9x1q8m2ab",
        ),
        '{"path": "/home/me/memories.svg", "bytes": 18230}',
        (
            Argument("file", "where it goes: a name in .svg, with --mermaid in .mmd or .md", {"metavar": "OUT"}),
            Argument("--mermaid", "as text for Mermaid", {"action": "store_true"}),
            _OF_KIND,
            _IN_DOMAIN,
            Argument("--around", f"only {_MEMORY}, and what is near it", {"metavar": "ID", "default": ""}),
            limit(80),
            *_ASKED,
        ),
    ),
    Command(
        "figures",
        "tell how memories, briefs and syntheses do",
        "The share of memories that have a form, how many wait for a review, links and how far scores lie apart; how\n"
        "long compiling and synthesising took, at most, half of them and 19 of 20; how often a synthesis was in the\n"
        "cache; how many were asked for today.",
        ("notebook-sync memory figures", "notebook-sync memory figures --json"),
        """\
{"memories": 1161, "structured_share": 0.97, "needs_review": 31, "causal_links": 210,
 "score": {"mean": 0.31, "sigma": 0.12}, "compile": {"count": 50, "p50_ms": 21.0, "p95_ms": 40.5},
 "synthesis": {"asked": 30, "hits": 21, "hit_rate": 0.7, "waited": 2, "answered": 8, "failed": 1, "p50_ms": 9000.0,
               "p95_ms": 17000.0, "hit_p50_ms": 3.1, "hit_p95_ms": 7.9, "today": 4, "daily_limit": 50}}""",
        _ASKED,
    ),
)

MEMORY = Command(
    "memory",
    "decisions, problems, patterns and insights, and how they bear on each other: add, search, audit, …",
    "A memory is a file below memories/: what was decided, why, and what came of it, with tags, a priority and links\n"
    "to other memories. `brief` takes from them what a task has to know. What these commands change is an ordinary\n"
    "edit of a file, in git like any other. docs/memories.md tells the rest.\n"
    "\n"
    "Like every command, `memory` runs as --session, else NOTEBOOK_SESSION, else owner at a terminal and task\n"
    "elsewhere.",
    (
        "notebook-sync memory add --content-file decision.txt",
        "notebook-sync memory search 'why is the old timetable still served'",
        "notebook-sync memory audit",
    ),
    "",
    commands=(_ADD, *_READING, *_LINKING, *_REPAIRING, *_SEEING),
)
