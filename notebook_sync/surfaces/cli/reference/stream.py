"""The commands of the daily stream, and of going back in time: their rows of the table."""

from __future__ import annotations

from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, SINCE, TAGGED, TAGS, Argument, Command, limit

_ENTRY = """\
{"id": "5b1c3e…", "content": "…", "source": "agent:scribe", "tags": ["ferry"], "score": 0.5,
 "timestamp": "2026-02-18T10:30:00+00:00", "agent": "scribe"}"""

STREAM = (
    Command(
        "log",
        "add a line to today's stream",
        "The stream is hot memory, in Redis or the embedded file: what happened, a day at a time, beside an entry for\n"
        "each note that was made, opened, changed or deleted. It is no file; what has to last belongs into a note.\n"
        "With --keep the line goes into long-term memory in place of the day.",
        (
            "notebook-sync log 'Odile moved the ferry to pier 3' --tags ferry",
            "notebook-sync log 'The harbour closes at ten' --keep --score 0.9",
        ),
        _ENTRY,
        (
            Argument("text", "what happened; - reads it from standard input", {"metavar": "TEXT"}),
            TAGGED,
            Argument(
                "--score", "how much it matters, from 0 to 1 (0.5)", {"metavar": "N", "type": "share", "default": 0.5}
            ),
            Argument("--keep", "for good, and not with the day", {"action": "store_true"}),
            SESSION,
            AGENT,
            JSON,
        ),
    ),
    Command(
        "today",
        "show the stream of a day",
        "What was logged and what became of notes, as it came about. Where hot memory was emptied since, `lost` says\n"
        "so: what is gone is gone. A day is one of the notebook's timezone. What tells of a note has an `action`,\n"
        "which is created, opened, updated, moved or deleted, and the note's `ref`. Of more entries than the limit\n"
        "the last are told; `earlier` is how many are left out.",
        ("notebook-sync today", "notebook-sync today 2026-02-18 --json"),
        f'{{"day": "2026-02-18", "entries": [{_ENTRY}],\n "lost": "", "earlier": 0}}',
        (
            Argument("day", "the day, as 2026-02-18; else today", {"metavar": "DAY", "nargs": "?", "default": ""}),
            limit(1000),
            SESSION,
            AGENT,
            JSON,
        ),
    ),
    Command(
        "recall",
        "search the stream, long-term memory and refs",
        "Best first, by words and, where there are vectors, by meaning; what is older counts less, and what says the\n"
        "same only once. Every mark in QUERY is text. Where not all could be looked through, `partial` says why.",
        ("notebook-sync recall 'pier 3'", "notebook-sync recall ferry --tags ferry --since 7d --limit 5"),
        '{"results": [{"content": "…", …as for log…, "relevance": 0.82}], "partial": ""}',
        (Argument("query", "words", {"metavar": "QUERY"}), TAGS, SINCE, limit(10), SESSION, AGENT, JSON),
    ),
    Command(
        "checkpoint",
        "save the current state, for `rollback`",
        "The last seven days of the stream, long-term memory, the version of each note, and the files, also with what\n"
        "is not committed. The last 50 checkpoints are kept. Private notes are not listed in one.",
        (
            "notebook-sync checkpoint 'before the regatta'",
            "notebook-sync checkpoint --list",
        ),
        """\
{"id": "6f1c…", "name": "before the regatta", "at": "2026-02-18T10:30:00+00:00", "notes": 12, "entries": 40,
 "longterm": 3, "commit": "4f2a91…", "warnings": []}; with --list, an array of them, the latest first""",
        (
            Argument("name", "what to know it by", {"metavar": "NAME", "nargs": "?", "default": ""}),
            Argument("--list", "list those there are", {"action": "store_true"}),
            SESSION,
            AGENT,
            JSON,
        ),
    ),
    Command(
        "rollback",
        "restore the stream and long-term memory of a checkpoint; with --files the notes too",
        "First makes a checkpoint of now, so that another rollback takes this one back. Then it brings back the\n"
        "stream of that week and long-term memory, and tells which notes were created, updated or deleted since. With\n"
        "--files it also gives the notes the text that they had then, all of them or none, as a new commit: no commit\n"
        "is lost. Only an owner may; in a script, with --session owner. ID may be cut after four characters.",
        ("notebook-sync rollback 6f1c", "notebook-sync rollback 6f1c --files --session owner"),
        """\
{"id": "6f1c…", "before": "a09e…", "entries": 40, "longterm": 3,
 "changed": [{"id": "pages/plan", "path": "pages/plan.md", "collection": "pages", "change": "updated"}],
 "restored": ["pages/plan.md"], "commit": "77b0c2…", "warnings": []}""",
        (
            Argument("id", "the checkpoint, as `checkpoint --list` names it", {"metavar": "ID"}),
            Argument("--files", "the notes too", {"action": "store_true"}),
            SESSION,
            AGENT,
            JSON,
        ),
    ),
)
