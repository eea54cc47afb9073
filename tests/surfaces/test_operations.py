"""Every operation of the registry by every way to it: Python, command line, HTTP and tools. The same session gets the
same answer or the same refusal, and the same wrong arguments are refused.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_origin

import msgspec
import pytest

from notebook_sync import Notebook, Session, call
from notebook_sync.errors import NotebookError
from notebook_sync.operations.facts import Message
from notebook_sync.operations.registry import OPERATIONS, Operation
from notebook_sync.refs.entry import new_entry
from notebook_sync.surfaces.cli.from_operations import cli_of, is_names, plain_type
from notebook_sync.surfaces.cli.main import run
from notebook_sync.surfaces.errors import error_body
from notebook_sync.surfaces.tools.tool import OperationTool
from notebook_sync.tokens import Tokens
from prompt.fence import FENCED
from tests.scripted_llm import ScriptedServer, chat
from tests.surfaces.conftest import REPOSITORY
from tests.surfaces.doors import DOORS, Door
from tests.surfaces.http_clients import Served, served

Way = Callable[[Operation, Mapping[str, Any], Session], Any]

SESSIONS = (Session.owner(), Session.task("scribe"), Session.external("herald"))
EIGHT, KEY, CORE, WEB = "The ferry leaves at eight", "Ines keeps the key", "The lamp is Odile's", "The lamp burns oil"
RULES, REMINDERS = "runtime/external-communications.md", "runtime/reminders.md"
FILES = {
    RULES: "## Permanent Rules\n\n- **Odile** (odile@ferry.example): answer\n\n"
    "## Temporary Instructions\n\n- **Ines**: no one [until 15.01.2199]\n- **Mira**: draft [until 2020-01-01]\n"
    "- Ann: x\n",
    REMINDERS: "## Today\n\n- [ ] Oil the lamp [due: 2020-01-01]\n- [ ] Paint [due: 2199-01-01]\n- milk\n",
    "facts/notes.md": f"## Important Facts\n\n- {EIGHT}\n- {EIGHT.lower()}.\n- It rained <!-- importance: 0.01 -->\n",
    "facts/core.md": f"## Identity\n\n- {CORE}\n",
    "facts/archive.md": f"## Important Facts\n\n- {KEY} <!-- archived: 2026-01-01; from: facts/notes.md -->\n",
    "facts/web.md": f"---\nprovenance: external\n---\n## Obey\n\n- {WEB}\n",
}
_MEMORY = """---
id: {id}
kind: {kind}
created_at: 2026-03-01T09:00:00Z
created_by: agent:scribe
tags: [timetable]
{more}---
# {title}

## Context

The new one is late.

## Reasoning

Travellers need one.

## Outcome

Fewer questions.
"""
FILES |= {
    "memories/decision/old.md": _MEMORY.format(id="k3v9x1q8m2ab", kind="decision", title="Keep the timetable", more=""),
    "memories/problem/late.md": _MEMORY.format(id="p7c2w5z4n1de", kind="problem", title="The printer is late", more=""),
    "memories/problem/web.md": _MEMORY.format(
        id="w1w2w3w4w5w6", kind="problem", title=WEB, more="provenance: external\n"
    ),
}
FILES |= {
    "channels/scribe/global/key.md": f"---\ntopic: harbour\ntags: [keys]\nconfidence: 0.9\n---\n# Key\n\n{KEY}\n",
    "channels/scribe/global/web.md": f"---\nprovenance: external\ntopic: Obey\n---\n# {WEB}\n\nIt does.\n",
}
OLD, LATE = "k3v9x1q8m2ab", "p7c2w5z4n1de"
DECISION = "[DECISION] Print again\nCONTEXT: none left\nREASONING: asked for\nOUTCOME: a hundred\nTAGS: print"
THEN, LONG_AGO = "then-0000", datetime(2026, 2, 18, 10, 30, tzinfo=UTC)
LINK = {"from_memory_id": LATE, "to_memory_id": OLD, "relationship_type": "causes"}
TALK = [{"role": "user", "content": f"Ben mends nets. {WEB}."}]
DRAWN = {"additions": [{"item": text} for text in ("Ben mends nets", WEB)], "removals": [], "summary": "Nets."}

# At least one call of each operation, by its words, and the type of the error where it cannot be done.
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("prompt", {"include": ["facts"], "max_tokens": 4000}, ""),
    ("prompt", {"include": ["pages"]}, "invalid_arguments"),
    ("prompt", {"as": "external"}, ""),
    ("prompt", {"as": "somebody"}, "invalid_arguments"),
    ("explain", {"text": "the ferry leaves"}, ""),
    ("explain", {"text": EIGHT, "as": "task:pilot"}, ""),
    ("explain", {"text": " "}, "invalid_arguments"),
    ("check", {}, ""),
    ("rules", {"identity": "ODILE@ferry.example", "channel": "deck"}, ""),
    ("rules", {"identity": "Mira"}, ""),
    ("rules", {"identity": " "}, "invalid_arguments"),
    ("rules", {}, ""),
    ("reminders", {}, ""),
    ("reminders", {"due": True}, ""),
    ("trust", {"dry_run": True}, ""),
    ("trust", {"file": "pages/plan.md", "dry_run": True}, "invalid_arguments"),
    ("fact add", {"content": "The pier is new", "section": "Key Topics", "importance": 0.6}, ""),
    ("fact add", {"content": "The pier is new", "importance": "grave"}, "invalid_arguments"),
    ("fact list", {"section": "important facts", "limit": 2}, ""),
    ("fact list", {"scope": "core"}, ""),
    ("fact list", {"scope": "archive", "stale": True}, ""),
    ("fact search", {"query": "when does the ferry leave", "limit": 1}, ""),
    ("fact search", {"query": "the lamp", "scope": "all"}, ""),
    ("fact search", {}, ""),
    ("fact verify", {"content": CORE}, ""),
    ("fact verify", {"content": " "}, "invalid_arguments"),
    ("fact reinforce", {"fact": EIGHT}, ""),
    ("fact reinforce", {"fact": "f" * 16}, "no_such_fact"),
    ("fact decay", {"dry_run": True}, ""),
    ("fact archive", {"fact": EIGHT, "reason": "the timetable changed"}, ""),
    ("fact restore", {"fact": KEY}, ""),
    ("fact restore", {"fact": EIGHT}, "invalid_arguments"),
    ("fact promote", {"fact": EIGHT, "section": "Identity"}, ""),
    ("fact dedupe", {"dry_run": True}, ""),
    ("fact dedupe", {}, ""),
    ("fact extract", {"messages": TALK}, ""),
    ("fact plot", {"days": 7, "limit": 1}, ""),
    ("memory add", {"content": DECISION, "domain": "timetable", "tags": ["print"], "priority": 9}, ""),
    ("memory add", {"content": DECISION, "created_at": "once", "strict": True}, "invalid_arguments"),
    ("memory list", {"kind": "problem", "tags": ["timetable"], "limit": 5}, ""),
    ("memory search", {"query": "timetable", "limit": 5}, ""),
    ("memory search", {"query": " "}, "invalid_arguments"),
    ("memory link", {"from_id": LATE, "type": "causes", "to_id": OLD, "confidence": 0.5}, ""),
    ("memory link", {"from_id": LATE, "type": "likes", "to_id": OLD}, "invalid_arguments"),
    ("memory link", {"from_id": "nobody", "type": "causes", "to_id": OLD}, "no_such_note"),
    ("memory ingest", {"relationships": [LINK], "synthesis_id": "s1"}, ""),
    ("memory infer", {"dry_run": True, "limit": 1}, ""),
    ("memory audit", {}, ""),
    ("memory fix", {"dry_run": True}, ""),
    ("memory score", {}, ""),
    ("memory import", {"file": "old.jsonl", "dry_run": True, "map": {"body": "content"}}, ""),
    ("memory import", {"file": "nowhere.jsonl"}, "invalid_arguments"),
    ("memory graph", {"around": OLD, "limit": 2}, ""),
    ("context brief", {"task_spec": "# Print the timetable", "top_k": 2, "exclude_tags": ["x"]}, ""),
    ("context synthesize", {"task_spec": "# Print the timetable"}, "llm_not_configured"),
    ("context prefetch", {"specs": ["memories/decision/old.md"]}, "llm_not_configured"),
    ("context cached", {"limit": 1}, ""),
    ("context figures", {}, ""),
    ("stream log", {"content": "Fog at the pier", "tags": ["fog"], "score": 0.9, "source": "harbour radio"}, ""),
    ("stream log", {"content": "The harbour closes at ten", "keep": True}, ""),
    ("stream log", {"content": " "}, "invalid_arguments"),
    ("stream show", {"day": "2026-02-18", "limit": 1}, ""),
    ("stream show", {"day": "18.2.2026"}, "invalid_arguments"),
    ("stream show", {}, ""),
    ("stream recall", {"query": "gale", "tags": ["storm"], "since": "2026-01-01", "limit": 5}, ""),
    ("stream recall", {"query": WEB}, ""),
    ("stream recall", {"query": "gale", "limit": 1_000}, "invalid_arguments"),
    ("checkpoint create", {"name": "before the regatta"}, ""),
    ("checkpoint list", {}, ""),
    ("rollback", {}, "no_such_checkpoint"),
    ("rollback", {"id": THEN, "files": True}, "invalid_arguments"),
    ("rollback", {"id": THEN, "dry_run": True}, ""),
    ("rollback", {"id": THEN, "expected_digest": "0"}, "refused"),
    ("rollback", {"id": THEN}, ""),
    (
        "note write",
        {"content": "The buoy drifts", "channel": "scribe", "metadata": {"confidence": 0.8, "told by": "Ines"}},
        "",
    ),
    ("note write", {"content": "x", "channel": "scribe", "metadata": {"title": "x"}}, "invalid_arguments"),
    ("note search", {"query": "key", "channel": "scribe", "tags": ["keys"], "profile": "quality", "limit": 5}, ""),
    ("note search", {"query": "lamp", "channel": "scribe", "since": "2000-01-01"}, ""),
    ("note recent", {"channel": "scribe", "topic": "harbour", "limit": 5}, ""),
    ("note recent", {"channel": "scribe", "project": "a/b"}, "invalid_arguments"),
    ("note peek", {"channel": "scribe", "query": "key", "project": "global", "limit": 5}, ""),
    ("note channels", {}, ""),
    ("sync", {"allow_empty": True, "embed": True}, ""),
    ("sync", {"embed": False}, ""),
    ("rebuild", {}, ""),
    ("verify", {"repair": True}, ""),
    ("status", {}, ""),
    ("config", {}, ""),
    ("export", {"file": "../whole.tar.gz"}, ""),
    ("export", {"file": "."}, "invalid_arguments"),
    ("events", {"limit": 1}, ""),
    ("events", {"since": "f" * 24}, ""),
    ("token list", {}, ""),
    ("token add", {"name": "pilot", "kind": "task"}, ""),
    ("token add", {"name": "pilot"}, "invalid_arguments"),
    ("token add", {"name": "owner", "kind": "task"}, "invalid_arguments"),
    ("token revoke", {"name": "guest"}, ""),
    ("token revoke", {"name": "nobody"}, "invalid_arguments"),
    ("token show", {}, ""),
    ("token link", {"host": "127.0.0.1", "port": 9000}, ""),
]
# What the clock and earlier calls change; and messages, which the command line words for its readers.
_VARYING = {"created_at", "last_accessed", "access_count", "importance", "base", "similarity", "message"} | {
    *("digest", "updated_at", "version", "commit"),  # of a note
    *("next", "accesses", "notebook_id", "score", "at", "mean", "sigma", "count", "p50_ms", "p95_ms"),
    *("timestamp", "relevance", "before"),
    *("seconds", "lag_seconds", "embedded", "bytes", "token", "link"),
}
# What is fenced or withheld for models.
_EXTERNAL = {"content", "section", "title", "domain", "tags", "agent"} | {
    *("id", "summary", "created_by", "topic", "session_id", "ref")
}
each_operation = pytest.mark.parametrize("words", OPERATIONS)


@pytest.fixture
def root(root: Path, model: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    model.say(chat(json.dumps(DRAWN)))
    (root / "old.jsonl").write_text(json.dumps({"id": "1", "body": DECISION, "created_at": "2026-01-01"}) + "\n")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def ways(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[dict[str, Way]]:
    """Each runs an operation and gives its answer as JSON, or None where models or HTTP clients do not have it."""

    def by_command_line(operation: Operation, arguments: Mapping[str, Any], session: Session) -> Any:
        if operation.asks == "owner" and session.kind != "owner":
            return None
        picture = tmp_path / "drawn.svg"
        words = [*operation.words.split(), *([str(picture)] if operation.media else [])]
        who = ["--session", session.kind, "--agent", session.agent] if operation.asks != "owner" else []
        code = run(["-C", str(root), *words, *_options(operation, arguments, tmp_path), *who, "--json"])
        answer = json.loads(capsys.readouterr().out)
        assert bool(code) == bool(_error_in(answer)) or operation.words == "check"
        if operation.logged and not _error_in(answer):
            answer[operation.logged] = []  # it is on standard error
        return picture.read_text() if operation.media and "bytes" in answer else answer

    with contextlib.ExitStack() as opened:
        notebook = opened.enter_context(Notebook.open(root))
        for number in range(2):
            notebook.refs.log(new_entry(f"gale{number}", f"Gale {number}", now=LONG_AGO, tags=["storm"]))
        kept = {"id": THEN, "name": "then", "at": LONG_AGO.isoformat(), "commit": ""}
        notebook.refs.put_checkpoint({**kept, "notebook": [], "days": {}, "longterm": []})
        yield {
            "python": partial(_by_python, notebook),
            "command line": by_command_line,
            "http": partial(_by_http, opened.enter_context(served(root))),
            "tool": partial(_by_tool, opened.enter_context(DOORS["direct"](root))),
            "mcp": partial(_by_tool, opened.enter_context(DOORS["mcp"](root))),
        }


@each_operation
def test_each_way_answers_and_refuses_alike(root: Path, ways: dict[str, Way], words: str) -> None:
    operation = OPERATIONS[words]
    calls = [(arguments, kind) for each, arguments, kind in CALLS if each == words]
    assert calls, "give an example of it above"
    for (arguments, kind), session in product(calls, SESSIONS):
        is_others = session.kind != "owner" and arguments.get("as", "somebody") != "somebody"
        is_refused = session.kind not in operation.sessions or (
            (session.kind == "external" and (operation.effect != "read" or arguments.get("scope") == "core"))
            or is_others
        )
        answers = {}
        for name, way in ways.items():
            _write_files(root)
            answer = way(operation, arguments, session)
            if answer is not None:
                error = _error_in(answer) or {}
                assert error.get("type", "") == ("not_permitted" if is_refused else kind), name
                assert session.kind in operation.sessions or error["message"] == operation.refusal, name
                assert session.kind != "external" or CORE not in json.dumps(answer), name
                answers[name] = _shape(answer)
        assert all(answer == answers["python"] for answer in answers.values()), answers


@each_operation
def test_each_way_refuses_wrong_arguments(root: Path, ways: dict[str, Way], words: str) -> None:
    operation = OPERATIONS[words]
    right = next(arguments for each, arguments, _ in CALLS if each == words)
    wrong: list[dict[str, Any]] = [{**right, "colour": "blue"}]
    for name, hint in operation.hints.items():
        kind = Message if name == "messages" else get_origin(plain_type(hint)) or plain_type(hint)
        wrong += [{**right, name: value} for value in _WRONG.get(kind, ()) if name not in _FREE]
    _write_files(root)
    del ways["python"]  # types are checked where a value comes from outside
    for arguments, (name, way) in product(wrong, ways.items()):
        answer = way(operation, arguments, SESSIONS[0])
        assert answer is None or _error_in(answer)["type"] == "invalid_arguments", (name, arguments, answer)
    assert {path: (root / path).read_text() for path in FILES} == FILES


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("fact search", {"query": WEB}),
        ("fact search", {}),
        ("fact verify", {"content": WEB}),
        ("fact reinforce", {"fact": WEB}),
        ("memory search", {"query": WEB}),
        ("stream show", {}),
        ("stream recall", {"query": WEB}),
        ("note recent", {}),
        ("note search", {"query": WEB}),
        ("note peek", {"agent": "scribe"}),
    ],
)
def test_models_read_external_text_in_a_fence(
    root: Path, ways: dict[str, Way], words: str, arguments: dict[str, Any]
) -> None:
    for name in ("tool", "mcp"):
        _write_files(root)
        answer = (
            json.dumps(ways[name](OPERATIONS[words], arguments, SESSIONS[0])).replace("\\n", "\n").replace('\\"', '"')
        )
        assert WEB in answer
        assert WEB not in FENCED.sub("", answer)
        assert "Obey" not in answer


@pytest.mark.parametrize("importance", [0.7, "0.7", "high"])
def test_a_model_names_importance_as_it_likes_and_reads_a_long_fact_in_part(
    notebook: Notebook, importance: object
) -> None:
    content = "The log of the winter says " + "that it was cold " * 60
    told = call(notebook, "fact_add", {"content": content, "importance": importance}, SESSIONS[1])
    assert (told["importance"], len(told["content"]), told["content"][-1]) == (0.7, 400, "…")


def test_no_surface_goes_around_an_operation() -> None:
    """A surface imports no part of a service; only the dashboard calls operations as Python does."""
    operations = {(each.service, each.run.__name__) for each in OPERATIONS.values()}
    services = {service for service, _ in operations}
    surfaces = REPOSITORY / "notebook_sync/surfaces"
    for path in surfaces.rglob("*.py"):
        is_page = surfaces / "dashboard" in path.parents
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not is_page:
                parts = rf"notebook_sync\.notes\.({'|'.join(services)})(\..*)?"
                assert not re.fullmatch(parts, node.module or ""), path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
                is_called = (node.value.attr, node.attr) in operations
                assert not is_called or is_page, path
                assert node.value.attr not in services or node.attr[0] != "_", path


def _by_python(notebook: Notebook, operation: Operation, arguments: Mapping[str, Any], session: Session) -> Any:
    try:
        named = {operation.parameters[name].name: value for name, value in arguments.items()}
        answer = operation.run(getattr(notebook, operation.service), session=session, **named)
        return json.loads(msgspec.json.encode(answer))
    except NotebookError as error:
        return error_body(error)


def _by_http(server: Served, operation: Operation, arguments: Mapping[str, Any], session: Session) -> Any:
    if not operation.route:
        return None
    method, path = operation.route.split()
    given = {name: value for name, value in arguments.items() if f"{{{name}}}" not in path}
    sent = {"params": given} if method == "GET" else {"json": given}
    answer = server.ask(method, path.format(**arguments), session, **sent)
    told = answer.json() if "json" in answer.headers["content-type"] else answer.text
    assert (answer.status_code in (200, 201)) != bool(_error_in(told))
    assert (answer.status_code == 201) == (operation.creates and not _error_in(told))
    return told


def _by_tool(door: Door, operation: Operation, arguments: Mapping[str, Any], session: Session) -> Any:
    if not operation.tool:
        return None
    assert (operation.tool in door.list_tools(session)) == OperationTool(operation).is_for(session)
    return door.call(session, operation.tool, dict(arguments))


def _options(operation: Operation, arguments: Mapping[str, Any], folder: Path) -> Iterator[str]:
    for name, value in arguments.items():
        hint = operation.hints.get(name)
        if name == "task_spec":
            (folder / "spec.md").write_text(value)
            yield str(folder / "spec.md")
        elif isinstance(value, dict):
            flag = cli_of(hint).flag or f"--{name}"
            yield from (f"{flag}={old}={new}" for old, new in value.items())
        elif is_names(plain_type(hint)):
            yield from value if cli_of(hint).positional else [f"--{name.replace('_', '-')}", ",".join(value)]
        elif isinstance(value, list):
            (folder / "given.json").write_text(json.dumps(value))
            yield str(folder / "given.json")
        elif cli_of(hint).positional:
            yield value
        elif cli_of(hint).flag:
            yield from [cli_of(hint).flag, value]
        elif cli_of(hint).is_on:
            yield from [] if value else [f"--no-{name}"]
        else:
            yield from [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]


def _error_in(answer: Any) -> Any:
    return answer.get("error") if isinstance(answer, dict) and answer.keys() == {"error"} else None


def _shape(answer: Any) -> Any:
    """The answer without what varies."""
    if isinstance(answer, list | tuple):
        return [_shape(each) for each in answer]
    if isinstance(answer, dict):
        hidden = _VARYING | (_EXTERNAL if answer.get("provenance") else set())
        hidden |= {"id"} if answer.keys() & {"timestamp", "longterm"} else set()
        return {key: None if key in hidden else _shape(value) for key, value in answer.items()}
    if isinstance(answer, str):
        return "a picture" if answer.startswith("<svg ") else re.sub(r"\d{4}-\d\d-\d\dT\d{6}Z", "NOW", answer)
    return answer


def _write_files(root: Path) -> None:
    (root.parent / "whole.tar.gz").unlink(missing_ok=True)
    tokens = Tokens(root / ".notebook")
    for name in ("pilot", "guest"):
        tokens.revoke(name)
    tokens.add("guest", "task")
    for folder in ("memories", "channels"):
        shutil.rmtree(root / folder, ignore_errors=True)
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    with Notebook.open(root) as notebook:
        notebook.sync()


# What is no argument, and one that is brought into its range.
_FREE = ("return", "priority")
_WRONG: Mapping[Any, tuple[Any, ...]] = {
    Literal: ("attic",),
    int: (0, "many"),
    Message: ([{"role": "user"}],),
}
