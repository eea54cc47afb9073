"""What the prompt's files hide from who may not change them is told by no method, no route and no tool."""

from __future__ import annotations

import inspect
import json
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from notebook_sync import Notebook, Session
from notebook_sync.errors import NotebookError, NotPermitted
from notebook_sync.files.edits import Edit
from notebook_sync.notes.editing.editing import FileEdits
from notebook_sync.operations import OPERATIONS, SERVICES
from notebook_sync.operations.registry import call as run_operation
from notebook_sync.search.searching import MODES
from notebook_sync.surfaces.http.from_operations import operation_routes
from notebook_sync.surfaces.http.routes.agents import agent_routes
from notebook_sync.surfaces.http.routes.notes import routes
from notebook_sync.surfaces.tools.calling import TOOLS, call
from tests.surfaces.http_clients import Served, served

OWNER, TASK, EXTERNAL = Session.owner(), Session.task("scribe"), Session.external("herald")
RULES, REMINDERS, EXTRA = "runtime/external-communications.md", "runtime/reminders.md", "runtime/extra.md"

# Each hidden word has this in it, and nothing that is shown does.
MARK = "canary"
SPEC = "Odile rules reminders: answer at once"
REMOVED = "---\ntitle: Rules\n---\n## Permanent Rules\n\n- **Canaryremoved** (gone@ferry.example): answer\n"
HIDDEN = """---
title: Canarytitle
summary: canarysummary
tags: [canarytag]
nickname: canaryextra
---
<!-- canarygrammar -->

## Permanent Rules

- **Odile** (odile@ferry.example): answer at once <!-- canaryinline -->
<!-- canarycomment -->

## Temporary Instructions

- **Canaryexpired** (ines@ferry.example): block [until 2001-01-01] #canaryhash [[canarylink]]
"""
REMINDING = "## Today\n\n- [ ] Check the ropes <!-- canaryrope -->\n- [ ] Canarysail [until 2001-01-01]\n"
ASKED = (
    *("canarygrammar", "canaryinline", "canarycomment", "Canaryexpired", "canarytitle", "canarysummary", "canaryextra"),
    *("canarytag", "canaryrope", "canarysail", "canaryremoved"),
)


@pytest.fixture
def root(root: Path) -> Path:
    def commit(message: str) -> None:
        identity = ("-c", "user.name=Odile", "-c", "user.email=odile@ferry.example")
        for command in (("init", "-q"), ("add", "runtime"), ("commit", "-q", "-m", message)):
            subprocess.run(["git", *identity, *command], cwd=root, check=True, capture_output=True)

    (root / RULES).write_text(REMOVED)
    commit("Begin")
    for path, text in ((RULES, HIDDEN), (EXTRA, HIDDEN), (REMINDERS, REMINDING)):
        (root / path).write_text(text)
    commit("Change")
    return root


@pytest.fixture
def notebook(root: Path) -> Iterator[Notebook]:
    with Notebook.open(root) as opened:
        opened.sync()
        yield opened


Asking = Callable[[Notebook, Session], Any]


def _each_file(ask: Callable[[str], Any]) -> list[Any]:
    return [_told(partial(ask, path)) for path in (RULES, REMINDERS, EXTRA)]


def _each_word(ask: Callable[[str], Any]) -> list[Any]:
    return [_told(partial(ask, word)) for word in ASKED]


def _told(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except NotebookError as error:
        return [type(error).__name__, str(error), vars(error)]


def _searched(notebook: Notebook, session: Session) -> list[Any]:
    return [notebook.search(word, session=session, mode="keyword") for word in ASKED]


def _reported(notebook: Notebook, session: Session) -> list[Any]:
    asked = [(word, mode) for word in (*ASKED, "Odile") for mode in MODES]
    return [
        notebook.search_report(word, session=session, mode=mode, section=section, snippet=True, explain=True)
        for word, mode in asked
        for section in ("", "Rules")
    ]


def _explained(notebook: Notebook, session: Session) -> list[Any]:
    texts = (*ASKED, "answer at once <!-- canaryinline", "answer at once canaryinline")
    return [found for text in texts for found in notebook.prompts.explain(text, session).found]


def _all_revisions(notebook: Notebook, session: Session) -> list[Any]:
    revisions = notebook.history(RULES)
    return [_told(partial(notebook.diff, RULES, rev, session)) for rev in ("", *(one.rev for one in revisions))]


def _all_versions(notebook: Notebook, session: Session) -> list[Any]:
    return [_told(partial(notebook.version, RULES, one.rev, session)) for one in notebook.history(RULES)]


def _edited(notebook: Notebook, session: Session) -> list[Any]:
    edits = [Edit("write", content="x"), Edit("remove_entry", entry_match="answer")]
    return _each_file(lambda path: [_told(partial(notebook.edit, path, edit, session, preview=True)) for edit in edits])


METHODS: dict[str, Asking] = {
    "find_path": lambda notebook, session: _each_file(lambda path: notebook.find_path(path, session)),
    "read": lambda notebook, session: _each_file(lambda path: notebook.read(path, session)),
    "list": lambda notebook, session: notebook.list(limit=100, session=session),
    "shelf": lambda notebook, session: [_told(partial(notebook.shelf, at, session)) for at in ("", "runtime", "pages")],
    "linking_to": lambda notebook, session: _each_file(lambda path: notebook.linking_to(path, session)),
    "broken_links": lambda notebook, session: _each_word(
        lambda word: list(notebook.broken_links("pages/plan.md", [word, RULES], session).values())
    ),
    "search": lambda notebook, session: [*_searched(notebook, session), notebook.search("Odile", session=session)],
    "search_report": _reported,
    "edit": _edited,
    "edit_all": lambda notebook, session: _each_file(
        lambda path: notebook.edit_all([FileEdits(path, (Edit("remove_entry", entry_match="a"),))], session)
    ),
    "files": lambda notebook, session: notebook.files(session),
    "file": lambda notebook, session: _each_file(lambda path: notebook.file(path, session).shown),
    "delete": lambda notebook, session: _each_file(lambda path: notebook.delete(path, session)),
    "rename": lambda notebook, session: _each_file(lambda path: notebook.rename(path, "pages/x.md", session)),
    "undo": lambda notebook, session: _each_file(lambda path: notebook.undo(path, session)),
    "omitted": lambda notebook, session: _each_file(lambda path: notebook.prompts.omitted(path, session)),
    "history": lambda notebook, session: _each_file(lambda path: notebook.history(path, session)),
    "diff": _all_revisions,
    "version": _all_versions,
    "rules": lambda notebook, session: [
        notebook.prompts.rules(name, session)
        for name in ("ines@ferry.example", "odile@ferry.example", "gone@ferry.example", "")
    ],
    "assemble": lambda notebook, session: notebook.prompts.assemble(session, include=["refs", "facts"], task=SPEC),
    "unread_reminders": lambda notebook, session: notebook.prompts.unread_reminders(session),
    "refuse": lambda notebook, session: _told(lambda: notebook.refuse(session, "test", "No")),
    "prompt": lambda notebook, session: [
        notebook.prompt(session, include=["refs", "facts"]),
        notebook.prompt(session).as_json(),
        _told(lambda: notebook.prompt(session, as_="owner" if session.kind != "owner" else "task")),
    ],
    "explain": _explained,
    "create": lambda notebook, session: _told(lambda: notebook.create("pages", "Odile", "Of the ferry", session)),
    "update": lambda notebook, session: _each_file(lambda path: notebook.update(path, session, title="x")),
    "import_notes": lambda notebook, session: _told(
        lambda: notebook.channels.import_notes(Path("older.json"), session)
    ),
}


# One or more calls of each operation: its words and arguments.
OPERATION_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("fact add", {"content": "Odile has the key"}),
    ("fact list", {"scope": "all"}),
    *(("fact search", {"query": word, "scope": "all"}) for word in ASKED),
    *(("fact verify", {"content": word}) for word in ASKED),
    *((f"fact {change}", {"fact": "Odile"}) for change in ("reinforce", "archive", "restore", "promote")),
    ("fact extract", {"messages": [{"role": "user", "content": "Odile has the key"}]}),
    *((f"fact {name}", {}) for name in ("decay", "dedupe", "plot")),
    ("memory add", {"content": "Odile has the key"}),
    *(("memory search", {"query": word}) for word in ASKED),
    *(("memory link", {"from_id": path, "type": "similar", "to_id": RULES}) for path in (RULES, REMINDERS, EXTRA)),
    ("memory ingest", {"relationships": [{"from": RULES, "to": EXTRA, "type": "similar"}]}),
    ("memory import", {"file": RULES}),
    *((f"memory {name}", {}) for name in ("list", "infer", "score", "audit", "fix", "graph")),
    ("prompt", {"include": ["refs", "facts"], "task": SPEC}),
    *(("explain", {"text": word}) for word in (*ASKED, "answer at once <!-- canaryinline")),
    *(("rules", {"identity": name}) for name in ("ines@ferry.example", "odile@ferry.example", "gone@ferry.example")),
    *((words, {"as": "owner"} if words == "prompt" else {}) for words in ("prompt", "check", "rules", "reminders")),
    ("explain", {"text": "answer at once", "as": "owner"}),
    ("reminders", {"due": True}),
    ("trust", {"dry_run": True}),
    ("context brief", {"task_spec": f"# {SPEC}", "explain": True}),
    ("context synthesize", {"task_spec": SPEC}),
    ("context prefetch", {"specs": [RULES, REMINDERS]}),
    *((f"context {name}", {}) for name in ("cached", "figures")),
    ("stream log", {"content": "Asked Odile"}),
    ("stream show", {}),
    *(("stream recall", {"query": word, "limit": 100}) for word in (*ASKED, "Odile rules reminders")),
    *((f"checkpoint {name}", {}) for name in ("create", "list")),
    *(("rollback", {"id": name, "dry_run": tried}) for name in ("", "0000") for tried in (False, True)),
    ("note write", {"content": "Odile"}),
    *(("note search", {"query": word}) for word in (*ASKED, "Odile rules reminders")),
    ("note recent", {}),
    ("note peek", {"channel": "pilot"}),
    ("note channels", {}),
    *((name, {}) for name in ("sync", "rebuild", "verify", "status", "config", "events")),
    ("export", {"file": "office.tar.gz"}),
    *((f"token {name}", {}) for name in ("list", "show", "link")),
    *((f"token {name}", {"name": "scribe"}) for name in ("add", "revoke")),
)


def test_the_tables_have_every_method_and_operation_that_a_session_may_call() -> None:
    found = {
        name
        for name, method in inspect.getmembers(Notebook, inspect.isfunction)
        if not name.startswith("_") and "session" in inspect.signature(method).parameters
    }
    found |= {
        name
        for service in SERVICES
        for name, method in inspect.getmembers(service, inspect.isfunction)
        if not (name.startswith("_") or hasattr(method, "declared"))
        and "session" in inspect.signature(method).parameters
    }
    assert set(METHODS) == found | {"explain", "rules"}
    assert {words for words, _ in OPERATION_CALLS} == OPERATIONS.keys()


@pytest.mark.parametrize("session", [TASK, EXTERNAL], ids=lambda one: one.kind)
@pytest.mark.parametrize("name", METHODS)
def test_no_method_tells_what_is_hidden(notebook: Notebook, session: Session, name: str) -> None:
    assert MARK not in repr(METHODS[name](notebook, session)).casefold()


@pytest.mark.parametrize("session", [TASK, EXTERNAL], ids=lambda one: one.kind)
def test_no_operation_tells_what_is_hidden(notebook: Notebook, session: Session) -> None:
    for words, arguments in OPERATION_CALLS:
        told = _told(partial(run_operation, notebook, OPERATIONS[words], arguments, session))
        assert MARK not in repr(told).casefold(), (words, arguments)


@pytest.mark.parametrize("name", ["read", "search", "diff", "version", "rules", "prompt", "explain", "list"])
def test_the_owner_is_told(notebook: Notebook, name: str) -> None:
    told = repr(METHODS[name](notebook, OWNER)).casefold()
    assert MARK in told or "reason='comment'" in told


@pytest.mark.parametrize("session", [TASK, EXTERNAL], ids=lambda one: one.kind)
class TestHiddenTextAnswersAsWhatIsNotThere:
    def test_no_search_finds_it(self, notebook: Notebook, session: Session) -> None:
        assert [each for each in _searched(notebook, session) if each] == []
        assert all(_searched(notebook, OWNER)[:4])
        paths = {row["path"] for row in notebook.search("Odile", session=session)}
        assert {RULES, EXTRA} <= paths

    def test_what_it_means_finds_nothing_of_it(self, notebook: Notebook, session: Session) -> None:
        for word in (*ASKED, "Odile", "rules and reminders"):
            found = notebook.search(word, 100, session, mode="semantic", explain=True)
            assert not {RULES, REMINDERS, EXTRA} & {row["path"] for row in found}
            both = {row["path"]: row["explain"] for row in notebook.search(word, 100, session, explain=True)}
            assert not any(both[path]["meaning"] for path in both.keys() & {RULES, REMINDERS, EXTRA})
        owners = notebook.search("Odile", 100, OWNER, mode="semantic")
        assert RULES in {row["path"] for row in owners}

    def test_it_is_explained_nowhere(self, notebook: Notebook, session: Session) -> None:
        assert _explained(notebook, session) == []
        with pytest.raises(NotPermitted):
            notebook.prompts.explain("answer at once", session, as_="owner")
        assert {one.path for one in notebook.prompts.explain("answer at once", session).found} == {RULES, EXTRA}

    def test_a_difference_is_refused_and_leaves_one_event(self, notebook: Notebook, session: Session) -> None:
        for rev in ("", notebook.history(RULES)[-1].rev):
            before = len(_refusals(notebook))
            with pytest.raises(NotPermitted, match="only available in owner conversations"):
                notebook.diff(RULES, rev, session)
            (event,) = _refusals(notebook)[before:]
            assert (event["tool"], event["path"], event["session"]) == ("diff", RULES, session.kind)
        assert notebook.history(RULES, session)

    def test_a_rule_that_ended_is_no_rule(self, notebook: Notebook, session: Session) -> None:
        assert notebook.prompts.rules("ines@ferry.example").others
        ended = notebook.prompts.rules("ines@ferry.example", session)
        never = notebook.prompts.rules("nobody@ferry.example", session)
        assert (ended.rule, ended.reason, ended.others) == (None, never.reason, [])

    def test_the_prompt_tells_where_something_expired(self, notebook: Notebook, session: Session) -> None:
        part = next(part for part in notebook.prompt(session).parts if part.path == RULES)
        assert [(one.line, one.text, one.until) for one in part.expired] == [(16, "", "2001-01-01")]


def _refusals(notebook: Notebook) -> list[Any]:
    return [event for event in notebook.events.read() if event["kind"] == "refused"]


def _tool_calls() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in (RULES, REMINDERS, EXTRA):
        yield "notebook_read", {"id": path}
        yield "notebook_edit", {"file": path, "action": "read"}
        yield "notebook_edit", {"file": path, "action": "remove_entry", "entry_match": "a"}
        for command in (
            {"command": "view", "path": f"/memories/{path}"},
            {"command": "str_replace", "path": f"/memories/{path}", "old_str": "Odile", "new_str": "Ines"},
        ):
            yield "memory", command
        yield "notebook_update", {"id": path, "title": "x"}
        yield "notebook_delete", {"id": path}
    yield "notebook_list", {"limit": 100}
    yield "notebook_create", {"collection": "pages", "title": "Odile", "content": "Of the ferry"}
    for word in (*ASKED, "Odile rules reminders"):
        for mode in MODES:
            yield "notebook_search", {"query": word, "mode": mode, "snippet": True, "limit": 100}
    yield from ((OPERATIONS[words].tool, given) for words, given in OPERATION_CALLS if OPERATIONS[words].tool)


@pytest.mark.parametrize("session", [TASK, EXTERNAL], ids=lambda one: one.kind)
def test_no_tool_tells_what_is_hidden(notebook: Notebook, session: Session) -> None:
    calls = list(_tool_calls())
    assert {tool.name for tool in TOOLS} <= {name for name, _ in calls}
    for name, arguments in calls:
        assert MARK not in json.dumps(call(notebook, name, arguments, session)).casefold(), (name, arguments)
    for word in ASKED:
        found = call(notebook, "notebook_search", {"query": word, "mode": "keyword"}, session)
        assert found == {"results": [], "mode": "keyword"}


def _requests() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """One or more of each route that answers at once."""
    for path in (RULES, REMINDERS, EXTRA):
        for route in ("notes", "history", "diff"):
            yield "GET", f"/{route}/{path}", {}
        yield "PATCH", f"/notes/{path}", {"json": {"title": "x"}}
        yield "DELETE", f"/notes/{path}", {}
        yield "POST", "/undo", {"json": {"file": path}}
        yield "POST", "/edit", {"json": {"file": path, "action": "remove_entry", "entry_match": "a"}}
    for name, arguments in _tool_calls():
        yield "POST", f"/tools/{name}", {"json": arguments}
    for word in ASKED:
        for route in ("/search", "/recall", "/channels/scribe/notes"):
            yield "GET", route, {"params": {"query": word}}
        for mode in MODES:
            asked = {"query": word, "mode": mode, "snippet": True, "explain": True}
            yield "GET", "/search", {"params": asked}
    for path in ("/status", "/notes", "/tools", "/metrics", "/today", "/checkpoints"):
        yield "GET", path, {}
    for words, arguments in OPERATION_CALLS:
        if route := OPERATIONS[words].route:
            method, path = route.split()
            yield method, path, {"params" if method == "GET" else "json": arguments}
    yield "POST", "/sync", {"json": {}}
    yield "POST", "/log", {"json": {"content": "Asked Odile"}}
    yield "POST", "/checkpoints", {"json": {}}
    yield "POST", "/rollback", {"json": {"id": "0000"}}


@pytest.fixture
def server(root: Path) -> Iterator[Served]:
    with served(root) as found:
        assert found.ask("POST", "/sync", OWNER, json={}).status_code == 200
        yield found


@pytest.mark.parametrize("session", [TASK, EXTERNAL], ids=lambda one: one.kind)
def test_no_route_tells_what_is_hidden(server: Served, session: Session) -> None:
    asked = list(_requests())
    each = (*routes.routes, *agent_routes.routes, *operation_routes())
    known = {route.path.split("/")[3] for route in each if isinstance(route, APIRoute)}
    assert {path.split("/")[1] for _, path, _ in asked} == known - {"events"}
    for method, path, arguments in asked:
        assert MARK not in server.ask(method, path, session, **arguments).text.casefold(), (method, path, arguments)
    revisions = server.ask("GET", f"/history/{RULES}", OWNER).json()
    for one in revisions:
        answer = server.ask("GET", f"/diff/{RULES}", session, params={"rev": one["rev"]})
        assert (answer.status_code, answer.json()["error"]["type"]) == (403, "not_permitted")
