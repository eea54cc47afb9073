"""A harbour with private notes in it and the same harbour without them, and all that an outsider can ask of either.

What the two answer must be alike, so neither a word of the notes nor their number can be in it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from notebook_sync import Edit, MemoryTool, Notebook, Session
from notebook_sync.search.searching import MODES

OWNER, SCRIBE = Session.owner(), Session.task("scribe")
# In place of each other; in nothing else that is written here.
CANARY, NONSENSE = "quillfeather", "brackenthorn"
FOLDER = "channels/scribe"
BY_HAND = f"{FOLDER}/{CANARY}-project/{CANARY}-hand.md"
OWN_ID = f"{CANARY}-id"

_NOON = 1_767_700_000
PUBLIC = {
    "pages/ferry.md": "---\nid: ferry-page\ntags: [rope]\n---\n# Ferry\n\nThe ferry needs rope.\n",
    "research_notes/ice.md": "---\ntags: [winter]\n---\n# Ice\n\nRope freezes in January.\n",
    "facts/notes.md": "# Facts\n\n## Important Facts\n\n- Rope is dear\n",
    "memories/decision/rope.md": (
        "---\nid: k3v9x1q8m2ab\ntags: [rope]\nagent: scribe\npriority: 5\ncreated_at: 2001-01-01\n---\n"
        "# Buy rope in May\n\n## Context\n\nRope is dear in January.\n"
    ),
    "channels/pilot/global/berth.md": "---\ntopic: berths\n---\n# Berth\n\nRope lies at the berth.\n",
    "channels/odile/global/channel.toml": '[members]\npilot = ["read", "peek"]\n',
    "channels/odile/global/shared.md": "# Shared\n\nRope that Odile shares.\n",
}


def build(root: Path, *, private: bool, settings: str = "") -> list[str]:
    """The notebook; the names of what is private in it, "" where it is not there."""
    Notebook.init(root)
    if settings:
        (root / "notebook.toml").write_text(settings)
    for path, text in PUBLIC.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for number, note in enumerate(sorted(root.rglob("*.md"))):
        os.utime(note, (_NOON + number, _NOON + number))
    with Notebook.open(root) as notebook:
        notebook.sync()
        notebook.stream.log("Asked Odile about rope", SCRIBE, tags=["rope"])
        notebook.stream.log("The harbour closes at ten", OWNER, keep=True)
        names = _keep_to_oneself(notebook) if private else []
        notebook.stream.checkpoint("before rope", SCRIBE)
        notebook.stream.checkpoint("before winter", OWNER)
        notebook.edit("pages/ferry.md", Edit("append_to_section", section="Ferry", content="Two coils."), SCRIBE)
        notebook.sync()
    return names


def _keep_to_oneself(notebook: Notebook) -> list[str]:
    """All that may be done with a private note is done with some."""

    def written(content: str, project: str) -> str:
        return notebook.channels.write(
            f"# {CANARY} {content}\n\nThe {CANARY} hides rope. [[{CANARY}]] #{CANARY}inline\n",
            SCRIBE,
            topic=f"{CANARY}-topic",
            tags=[f"{CANARY}tag", "rope"],
            session_id=f"{CANARY}-session",
            project=project,
            metadata={f"{CANARY}_key": CANARY, "confidence": 0.9},
        ).path

    kept, changed, moved, gone = (
        written(content, project)
        for content, project in (("plan", ""), ("chart", f"{CANARY}-project"), ("knot", ""), ("leak", ""))
    )
    hand = notebook.root / BY_HAND
    hand.write_text(f"---\nid: {OWN_ID}\nsummary: {CANARY}\n---\n# {CANARY} by hand\n\nRope.\n")
    (hand.parent / "channel.toml").write_text('[members]\nherring = ["read", "write"]\n')
    notebook.sync()
    notebook.edit(changed, Edit("add_section", section=f"{CANARY} section", content="Rope"), SCRIBE)
    notebook.undo(changed, SCRIBE)
    notebook.update(changed, SCRIBE, title=f"{CANARY} anew", summary=f"{CANARY} rope", tags=[CANARY])
    memory = MemoryTool(notebook, SCRIBE)
    target = f"{FOLDER}/global/{CANARY}-moved.md"
    memory.rename(f"/memories/{moved}", f"/memories/{target}")
    memory.str_replace(f"/memories/{target}", "hides", "has")
    notebook.delete(gone, SCRIBE)
    for path in (kept, changed, target, BY_HAND):
        assert CANARY in notebook.read(path, SCRIBE)["content"]
    assert notebook.channels.recent(SCRIBE).results
    assert notebook.channels.search(CANARY, SCRIBE).results
    notebook.stream.recall(CANARY, SCRIBE)
    with (hand.parent / f"{CANARY}-hand.md").open("a") as note:
        note.write(f"\nMore of the {CANARY}.\n")
    notebook.sync()
    return [kept, changed, target, BY_HAND, gone, OWN_ID]


Call = tuple[str, dict[str, Any]]
_WORDS = (CANARY, f"{CANARY}tag", f"{CANARY}-topic", f"the {CANARY} hides rope")


def plain_calls() -> Iterator[Call]:
    """Tools with arguments in which nobody guesses."""
    for arguments in ({}, {"limit": 100}, {"collection": "channels", "limit": 100}, {"author": "agent:scribe"},
                      {"tags": ["rope"]}, {"since": "7d"}, {"status": "draft", "limit": 1}):  # fmt: skip
        yield "notebook_list", arguments
        yield "notebook_search", {"query": "rope", **arguments}
    for mode in MODES:
        asked = {"mode": mode, "snippet": True, "limit": 100}
        for query in ("the plan chart knot hides rope", f"the {CANARY} hides rope", CANARY):
            yield "notebook_search", {"query": query, **asked}
            yield "notebook_search", {"query": query, "section": f"{CANARY} section", **asked}
    for arguments in ({}, {"limit": 100}, {"topic": "general"}, {"project": "global"}):
        yield "get_recent_notes", arguments
        yield "search_my_notes", {"query": "rope", **arguments}
        yield "peek_agent_notes", {"agent": "scribe", **arguments}
        yield "peek_agent_notes", {"agent": "scribe", "query": "rope", **arguments}
        yield "peek_agent_notes", {"agent": "odile", **arguments}
        for channel in ("scribe", "odile"):
            yield "get_recent_notes", {"channel": channel, **arguments}
            yield "search_my_notes", {"query": "rope", "channel": channel, **arguments}
    # How like an entry or a note is to a word depends on the word: both notebooks are asked the same.
    for query in ("rope", "Odile", "the plan chart knot hides", "notes channels scribe created updated", *_WORDS):
        yield "notebook_recall", {"query": query, "limit": 100}
        yield "search_my_notes", {"query": query}
    yield "notebook_recall", {"query": "rope", "tags": ["channels"], "limit": 100}
    yield "notebook_recall", {"query": "rope", "since": "7d"}
    for name in ("channels", FOLDER, f"{FOLDER}/global", f"{FOLDER}/global/channel.toml", "notes:scribe:global"):
        yield "notebook_read", {"id": name}
        yield "notebook_edit", {"file": name, "action": "read"}
        yield "notebook_delete", {"id": name}
    for arguments in ({}, {"limit": 100}, {"scope": "all"}, {"scope": "core"}, {"scope": "archive"}):
        yield "fact_search", arguments
        yield "fact_search", {"query": "the plan chart knot hides rope", **arguments}
    for content in ("Rope is dear", "The plan hides rope", ""):
        yield "fact_verify", {"content": content}
        yield "fact_reinforce", {"fact": content}
    # How like facts are to a word depends on the word: what is asked of both notebooks is one and the same.
    for word in (CANARY, f"{CANARY}tag", f"{CANARY}-topic"):
        yield "fact_search", {"query": word, "scope": "all"}
        yield "fact_verify", {"content": word}
    yield "fact_add", {"content": ""}
    for spec in ("Mend the ferry's rope", "the plan chart knot hides rope"):
        yield "compile_context", {"task_spec": spec}
        yield "synthesize", {"task_spec": spec}
    yield "memory_add", {"content": ""}
    for query in ("rope", "the plan chart knot hides rope", CANARY):
        yield "memory_search", {"query": query, "limit": 100}
    for arguments in ({}, {"identity": "odile@ferry.example"}, {"identity": "scribe"}, {"channel": "scribe"}):
        yield "notebook_rules", arguments
    yield "notebook_reminders", {}
    yield "checkpoint", {}
    yield "notebook_today", {}
    yield "rollback", {}
    yield "rollback", {"id": "0000"}


def guesses(names: list[str]) -> Iterator[Call]:
    """Tools asked for exactly what is there: names as they are, and the words in them."""
    for name in names:
        for spelled in (name, name.removesuffix(".md"), name.rpartition("/")[2], f"{name}#{CANARY}-section",
                        f"[[{name.rpartition('/')[2].removesuffix('.md')}]]", f"pages/../{name}"):  # fmt: skip
            yield "notebook_read", {"id": spelled}
        yield "notebook_edit", {"file": name, "action": "read"}
        yield "notebook_edit", {"file": name, "action": "remove_entry", "entry_match": "rope"}
        yield "notebook_edit", {"file": name, "action": "append_to_section", "section": "x", "content": "x"}
        yield "notebook_edit", {"file": name, "action": "set_frontmatter", "content": "x: 1", "preview": True}
        yield "notebook_update", {"id": name, "title": "x"}
        yield "notebook_delete", {"id": name, "expected_digest": "0" * 64}
        # Nobody learns by taking a name that it is taken.
        given = f"id: {name.removesuffix('.md')}"
        yield (
            "notebook_edit",
            {"file": "pages/ferry.md", "action": "set_frontmatter", "content": given, "preview": True},
        )
    for word in (CANARY, f"{CANARY}-topic", f"{CANARY}tag", f"{CANARY}-session", f"{CANARY}-project", *names):
        yield "notebook_search", {"query": word, "mode": "keyword"}  # by meaning, two words are not alike
        yield "notebook_search", {"query": "rope", "tags": [word]}
        yield "notebook_list", {"tags": [word]}
        yield "notebook_list", {"author": word}
        yield "search_my_notes", {"query": "rope", "topic": word, "session_id": word}
        yield "fact_reinforce", {"fact": word}
        yield "memory_link", {"from_id": "k3v9x1q8m2ab", "type": "similar", "to_id": word}
        yield "memory_link", {"from_id": word, "type": "similar", "to_id": "k3v9x1q8m2ab"}
        yield "compile_context", {"task_spec": f"---\nrelated: ['{word}']\n---\nOf the {word}: [[{word}]]"}
    for word in (f"{CANARY}-project", f"{CANARY}-topic"):
        yield "peek_agent_notes", {"agent": "scribe", "project": word}
        yield "peek_agent_notes", {"agent": "scribe", "topic": word, "query": CANARY}
        yield "peek_agent_notes", {"agent": word}
        yield "search_my_notes", {"query": "rope", "project": word}
        yield "search_my_notes", {"query": "rope", "channel": "scribe", "project": word}
        yield "get_recent_notes", {"channel": word}
        yield "write_note", {"content": "", "channel": "scribe", "project": word}
        yield "notebook_recall", {"query": "rope", "tags": [word]}


Request = tuple[str, str, dict[str, Any]]


def plain_requests() -> Iterator[Request]:
    """A method, a route, and what is sent, in which nobody guesses."""
    for route in ("status", "metrics", "reminders", "tools", "channels", "today", "checkpoints"):
        yield "GET", route, {}
    yield "GET", "rules", {"params": {"identity": "odile@ferry.example"}}
    for include in ([], ["refs"], ["refs", "facts", "notes"]):
        yield "GET", "prompt", {"params": {"include": include, "task": "Buy rope"}}
    yield "GET", "prompt", {"params": {"as": "owner:scribe", "include": ["notes"]}}
    yield "GET", "check", {}
    yield "GET", "rules", {}
    for params in ({}, {"limit": 1000}, {"collection": "channels"}, {"author": "agent:scribe"}, {"tags": "rope"}):
        yield "GET", "notes", {"params": params}
        for mode in MODES:
            asked = {"query": f"rope plan chart knot {CANARY}", "mode": mode, "snippet": True, "explain": True}
            yield "GET", "search", {"params": {**asked, **params}}
            yield "GET", "search", {"params": {**asked, **params}}
    for agent in ("scribe", "odile", "nobody"):
        for what in ("notes", "recent", "peek"):
            yield "GET", f"channels/{agent}/{what}", {}
        yield "POST", f"channels/{agent}/notes", {"json": {"content": ""}}
    for query in ("rope plan chart knot", *_WORDS):
        for route in ("recall", "channels/pilot/notes"):
            yield "GET", route, {"params": {"query": query, "limit": 100}}
    for text in ("rope", "hides rope", "the berth"):
        yield "POST", "explain", {"json": {"text": text}}
    yield "POST", "checkpoints", {"json": {}}
    yield "POST", "rollback", {"json": {"id": "0000"}}
    for params in ({}, {"limit": 1000}, {"scope": "all"}, {"stale": True}):
        yield "GET", "facts", {"params": params}
    yield "POST", "facts", {"json": {"content": ""}}
    for word in ("rope plan chart knot", CANARY, f"{CANARY}tag", f"{CANARY}-topic"):
        yield "GET", "facts/search", {"params": {"query": word, "scope": "all"}}
        yield "POST", "facts/verify", {"json": {"content": word}}
    yield "POST", "facts/verify", {"json": {"content": "The plan hides rope"}}
    for change in ("reinforce", "archive", "restore", "promote"):
        yield "POST", f"facts/{change}", {"json": {"fact": "f" * 16}}
    yield "POST", "facts/decay", {"json": {"dry_run": True}}
    yield "POST", "facts/dedupe", {"json": {}}
    yield "POST", "facts/extract", {"json": {"messages": []}}
    yield "GET", "facts/plot", {}
    for params in ({}, {"kind": "decision"}, {"tags": "rope"}, {"needs_review": True}):
        yield "GET", "memories", {"params": params}
    for what in ("audit", "graph", "figures"):
        yield "GET", f"memories/{what}", {}
    yield "POST", "memories", {"json": {"content": ""}}
    for query in ("rope plan chart knot", CANARY):
        yield "GET", "memories/search", {"params": {"query": query}}
    yield "POST", "memories/infer", {"json": {}}
    yield "POST", "memories/fix", {"json": {"dry_run": True}}
    yield "POST", "memories/score", {"json": {}}
    for spec in ("Mend the ferry's rope", "the plan chart knot hides rope"):
        yield "POST", "compile_context", {"json": {"task_spec": spec, "explain": True}}
        yield "POST", "synthesize", {"json": {"task_spec": spec}}
    yield "POST", "prefetch", {"json": {"specs": ["pages/plan.md"]}}
    yield "GET", "syntheses", {}
    yield "POST", "log", {"json": {"content": ""}}
    yield "POST", "notes", {"json": {"collection": "channels", "title": "x", "content": "x"}}
    yield "POST", "sync", {"json": {}}
    yield "POST", "tools/notebook_list", {"json": {}}


def guessing_requests(names: list[str]) -> Iterator[Request]:
    """Requests for exactly what is there."""
    for name in names:
        place = quote(name)
        for route in ("notes", "history", "diff"):
            yield "GET", f"{route}/{place}", {}
        yield "GET", f"notes/{place}", {"params": {"section": f"{CANARY}-section"}}
        yield "PATCH", f"notes/{place}", {"json": {"title": "x"}}
        yield "PATCH", f"notes/{place}", {"json": {"title": "x"}, "headers": {"If-Match": '"0"'}}
        yield "DELETE", f"notes/{place}", {}
        yield "DELETE", f"notes/{place}", {"headers": {"If-Match": '"0"'}}
        yield "POST", "undo", {"json": {"file": name}}
        yield "POST", "edit", {"json": {"file": name, "action": "write", "content": "x", "expected_digest": "0"}}
    for word in (CANARY, f"{CANARY}tag", f"{CANARY}-topic", f"{CANARY}-session", f"{CANARY}-project", *names):
        for route in ("search", "channels/scribe/notes", "channels/scribe/peek"):
            mode = {"mode": "keyword"} if route == "search" else {}
            yield "GET", route, {"params": {"query": word, **mode}}
        yield "POST", "facts/archive", {"json": {"fact": word}}
        for first, second in (("k3v9x1q8m2ab", word), (word, "k3v9x1q8m2ab")):
            link = {"from": first, "to": second, "type": "similar"}
            yield "POST", "memories/link", {"json": link}
            yield "POST", "relationships/ingest_synthesis", {"json": {"relationships": [link]}}
        yield "GET", "memories/graph", {"params": {"around": word}}
        spec = f"---\nrelated: ['{word}']\n---\nOf the {word}: [[{word}]]"
        yield "POST", "compile_context", {"json": {"task_spec": spec}}
        yield "GET", "notes", {"params": {"tags": word}}
        yield "GET", "prompt", {"params": {"task": word}}
        yield "POST", "explain", {"json": {"text": word}}
        yield "GET", "channels/scribe/recent", {"params": {"topic": word, "session_id": word}}
    for what in ("notes", "recent", "peek"):
        yield "GET", f"channels/scribe/{what}", {"params": {"project": f"{CANARY}-project"}}
        yield "GET", f"channels/{CANARY}/{what}", {}


def memory_commands(names: list[str]) -> Iterator[dict[str, Any]]:
    """Anthropic's memory tool, asked for what is there and for what lies around it."""
    folders = (FOLDER, f"{FOLDER}/global", f"{FOLDER}/{CANARY}-project")
    for place in (*folders, *names):
        path = f"/memories/{place}"
        yield {"command": "view", "path": path}
        yield {"command": "create", "path": path, "file_text": "x"}
        yield {"command": "str_replace", "path": path, "old_str": "rope", "new_str": "x"}
        yield {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"}
        yield {"command": "rename", "old_path": path, "new_path": "/memories/pages/taken.md"}
        yield {"command": "rename", "old_path": "/memories/pages/ferry.md", "new_path": path}
        yield {"command": "delete", "path": path}


def disguised(asked: Any) -> Any:
    """The same question about what is nowhere."""
    return json.loads(json.dumps(asked).replace(CANARY, NONSENSE))


def told(answer: Any) -> str:
    """An answer as a text, less what differs between two askings of the same thing."""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, sort_keys=True, default=str)
    for pattern, put in _PASSING:
        text = pattern.sub(put, text)
    return text


# What depends on a clock, on how much was asked before, or on the words that were asked for.
_MEASURED = "relevance|seconds|tokens|token_count|importance|similarity|access_count|count|p50_ms|p95_ms"
_PASSING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:?\d\d:?\d\d[.\d]*(Z|\+\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b(\d{4}-\d\d-\d\d )?\d\d:\d\d\b"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,64}\b"), "HEX"),
    (re.compile(rf'"({_MEASURED})": ?[-\d.e]+'), r'"\1": 0'),
    (re.compile(r"\b\d+ (compiled|ms)\b"), r"0 \1"),
    (re.compile(r'\b(d|c?[xy][12]?)="[-\w., ]+"|>\d\.\d+<'), "WHERE A CURVE IS"),
)


def alike(ask: Callable[[Any], Any], asked: Any) -> tuple[str, str]:
    """What is told of what is there, and of what is not, less the words that were asked for."""
    there, nowhere = told(ask(asked)), told(ask(disguised(asked)))
    return there.replace(CANARY, "WORD"), nowhere.replace(NONSENSE, "WORD")
