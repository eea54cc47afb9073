"""Every operation of the registry, by every way to it: the same call gets the same answer, or the same refusal."""

import json
import random
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NotebookError
from notebook_sync.notebook import load_operations
from notebook_sync.registry import OPERATIONS, Arg, Operation, annotation_of, as_json, call, plain_type
from notebook_sync.surfaces.cli.arguments import parser_of
from notebook_sync.surfaces.cli.commands import BY_HAND
from notebook_sync.surfaces.cli.index import COMMANDS
from notebook_sync.surfaces.cli.main import run
from notebook_sync.surfaces.http.app import API, openapi
from notebook_sync.surfaces.tools import ALL, call_tool, tool_definitions
from tests.conftest import Copies
from tests.context.bridge_server import bridge_command
from tests.llm_server import LlmServer, llm_server, says
from tests.services.conftest import FILES, add_settings, write_files

load_operations()
SESSIONS = (Session.owner(), Session.task("scribe"), Session.external("herald"))
# What differs from call to call: times, digests of what holds times, random ids.
_VOLATILE = re.compile(r'"(seconds|at|created_at|updated_at|commit|digest|rev|id|notebook_id|diff|since|dumped_at)":')

# One call of each operation that changes nothing, and what is wrong with it for everybody ("" for nothing).
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("search", {"query": "rope"}, ""),
    ("search", {"query": "ice", "mode": "keyword", "tags": ["winter"], "limit": 2}, ""),
    ("search", {}, "usage_error"),
    ("search", {"query": "rope", "limit": 0}, "usage_error"),
    ("list", {"collection": "pages"}, ""),
    ("list", {"since": "not a day"}, "usage_error"),
    ("read", {"id": "pages/ferry"}, ""),
    ("read", {"id": "pages/ferry", "section": "fares"}, ""),
    ("read", {"id": "pages/ferry", "section": "nowhere"}, "not_found"),
    ("read", {"id": "pages/none"}, "no_such_note"),
    ("read", {"id": "../etc/passwd"}, "unsafe_path"),
    ("history", {"id": "pages/ferry"}, ""),
    ("prompt", {}, ""),
    ("prompt", {"include": ["refs"]}, ""),
    ("explain", {"text": "three crowns"}, ""),
    ("rules", {"identity": "o@q.example"}, ""),
    ("reminders", {}, ""),
    ("context brief", {"task_spec": "# Ferry\n\nBuy rope in winter."}, ""),
    ("context brief", {"task_spec": "rope", "max_tokens": 200, "explain": True, "exclude_tags": ["winter"]}, ""),
    ("context brief", {"task_spec": " "}, "usage_error"),
    ("context brief", {"task_spec": "rope", "top_k": 0}, "usage_error"),
    ("context synthesize", {"task_spec": "rope"}, "usage_error"),
    ("context prefetch", {"specs": ["pages/ferry"]}, "usage_error"),
    ("context cached", {}, ""),
    ("context cached", {"id": "none", "clear": True}, "not_found"),
    ("check", {}, ""),
    ("config", {}, ""),
    ("fact list", {"scope": "core"}, ""),
    ("fact search", {"query": "", "scope": "all"}, ""),
    ("fact verify", {"content": "Nothing such"}, ""),
    ("fact archive", {"fact": "nothing such"}, "not_found"),
    ("fact add", {"content": "x", "importance": "great"}, "usage_error"),
    ("fact decay", {"dry_run": True}, ""),
    ("fact dedupe", {"dry_run": True}, ""),
    ("memory list", {"kind": "decision"}, ""),
    ("memory list", {"kind": "rumour"}, "usage_error"),
    ("memory search", {"query": "rope"}, ""),
    ("memory add", {"content": " "}, "usage_error"),
    ("memory link", {"from_id": "none", "type": "solves", "to_id": "none"}, "no_such_note"),
    ("memory infer", {}, "usage_error"),
    ("memory audit", {}, ""),
    ("memory graph", {"format": "mermaid"}, ""),
    ("update", {"id": "pages/none", "title": "x"}, "not_found"),
    ("delete", {"id": "pages/none"}, "not_found"),
    ("edit", {"id": "pages/ferry", "action": "remove_entry", "entry_match": "nothing such"}, "edit_failed"),
    ("edit", {"id": "pages/ferry", "action": "fly"}, "usage_error"),
    ("note search", {"query": "rope", "channel": "scribe"}, ""),
    ("note search", {"channel": "scribe", "profile": "best"}, "usage_error"),
    ("note recent", {"channel": "scribe", "limit": 3}, ""),
    ("note peek", {"channel": "pilot"}, ""),
    ("note channels", {}, ""),
    ("note write", {"content": " ", "channel": "scribe"}, "usage_error"),
    ("rename", {"id": "pages/ferry", "to": "pages/x\\y.md", "dry_run": True}, "unsafe_path"),
]


@pytest.fixture
def make() -> Callable[[Path], None]:
    return make_for_examples


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOTEBOOK_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        with Notebook.open(write_files(tmp_path_factory.mktemp("notebook"), FILES)) as notebook:
            notebook.sync()
            yield notebook


@pytest.fixture
def shared(opened: Notebook, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """One notebook for all tests that change no note of it."""
    monkeypatch.setenv("NOTEBOOK_STATE_DIR", str(opened.core.place.state.parent))
    return opened


def _by_call(notebook: Notebook, operation: Operation, given: Mapping[str, Any], session: Session) -> Any:
    try:
        return as_json(call(notebook, operation, given, session))
    except NotebookError as error:
        return error.as_json()


def _by_command(
    notebook: Notebook, operation: Operation, given: Mapping[str, Any], session: Session, printed: Any
) -> Any:
    words = [*operation.words.split()]
    for name, value in given.items():
        text = ",".join(value) if isinstance(value, list) else str(value)
        if (annotation_of(operation.hints[name], Arg) or Arg()).is_file:
            text = str(write_files(notebook.root.parent, {"given.md": text}) / "given.md")
        positional = any(action.dest == name and not action.option_strings for action in parser_of(operation)._actions)
        flag = f"--{name.replace('_', '-')}"
        words += [text] if positional else [flag] if value is True else [flag, text]
    agent = ["--agent", session.agent] if session.agent else []
    run(["-C", str(notebook.root), *words, "--session", session.kind, *agent, "--json"])
    return json.loads(printed.readouterr().out)


def _fault_of(answer: Any) -> str:
    """The type of the error in an answer, "" for none; the original tools answer an unknown id with a status."""
    error = answer.get("error", "")
    return str(error["type"] if isinstance(error, dict) else error and answer["status"])


def _plain(answer: Any) -> Any:
    """An answer without what differs from call to call."""
    text = json.dumps(answer, sort_keys=True, default=str)
    return re.sub(_VOLATILE.pattern + r' ("[^"]*"|[^,}\]]*)', "", text)


@pytest.mark.parametrize(("words", "given", "fault"), CALLS, ids=[f"{words}-{given}" for words, given, _ in CALLS])
@pytest.mark.parametrize("session", SESSIONS, ids=lambda each: each.kind)
def test_every_way_gives_the_same_answer(
    shared: Notebook,
    capsys: pytest.CaptureFixture[str],
    words: str,
    given: dict[str, Any],
    fault: str,
    session: Session,
) -> None:
    operation = OPERATIONS[words]
    answer = _by_call(shared, operation, given, session)
    if session.kind == "owner":
        assert _fault_of(answer) == fault
    assert _plain(_by_command(shared, operation, given, session, capsys)) == _plain(answer)
    if operation.tool:
        shown = call_tool(shared, operation.tool, {**operation.for_models, **given}, session)
        assert shown.get("error") == answer.get("error")


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_session_that_may_not_call_an_operation_does_not_see_it_and_is_refused(shared: Notebook, name: str) -> None:
    operation = OPERATIONS[name]
    for session in SESSIONS:
        listed = {each["name"] for each in tool_definitions(shared, session, "mcp", ALL)}
        is_allowed = operation.is_listed_for(session, shared.settings)
        assert (operation.tool in listed) == (bool(operation.tool) and is_allowed)
        if is_allowed or session.kind == "owner":
            continue
        needed = [
            each
            for each in operation.arguments.__struct_fields__
            if operation.parameters[each].default is operation.parameters[each].empty
        ]
        hints = {each: get_args(plain_type(operation.hints[each])) for each in needed}
        given = {each: next((one for one in values if isinstance(one, str)), "x") for each, values in hints.items()}
        assert _by_call(shared, operation, given, session)["error"]["message"] == operation.refusal
        assert shared.core.events.read()[-1]["kind"] == "refused"


def test_the_index_of_commands_is_the_registry_s() -> None:
    written = {name: row for _, commands in COMMANDS for name, row in commands.items()}
    every = [*OPERATIONS.values(), *BY_HAND.values()]
    singles = {each.words: each for each in every if each.words and " " not in each.words}
    groups = {each.words.split()[0] for each in every if " " in each.words}
    assert set(written) == set(singles) | groups
    assert {name: written[name][1] for name in singles} == {name: each.summary for name, each in singles.items()}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_explains_itself(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation.summary
    assert not operation.summary.endswith(".")
    assert set(operation.unlisted) <= set(operation.hints)
    assert set(operation.aliases.values()) <= set(operation.hints)
    if operation.words:
        parser = parser_of(operation)
        assert operation.examples
        assert operation.summary in parser.format_help()
        assert all(each.startswith(("notebook-sync ", "echo ")) for each in operation.examples)
    msgspec.json.schema(operation.arguments)
    if operation.route:
        method, path = operation.route.split()
        responses = openapi()["paths"][f"{API}{path}"][method.lower()]["responses"]
        assert "$ref" in responses["201" if operation.creates else "200"]["content"]["application/json"]["schema"]


@pytest.fixture(scope="module")
def llm() -> Iterator[LlmServer]:
    with llm_server() as running:
        running.say(says({"additions": [], "removals": [], "summary": ""}))
        yield running


def make_for_examples(root: Path) -> None:
    """A notebook that has what the examples name."""
    memory = "---\nid: {}\nkind: {}\n---\n# The dark pier and its lamps\n"
    files = {
        "pages/plan.md": (
            "---\ntags: [timetable]\nstatus: draft\n---\n# Plan\n\nThe ferry, a race condition.\n\n## Risks\n\n- Ice\n"
        ),
        "runtime/standing-orders.md": (f"{FILES['runtime/standing-orders.md']}- Always respond\n- No tea after nine\n"),
        "facts/notes.md": "- The ferry leaves at eight\n- Odile runs the ferry\n",
        "facts/archive.md": "- The toll is ten crowns\n",
        "memories/decision/k3v9x1q8m2ab.md": memory.format("k3v9x1q8m2ab", "decision"),
        "memories/problem/p7c2w5z4n3de.md": memory.format("p7c2w5z4n3de", "problem"),
        "draft.md": "A draft.\n",
        "talk.json": '[{"role": "user", "content": "The ferry is late."}]',
        "memories.jsonl": '{"content": "Fog"}\n',
        "notes.json": "[]",
    }
    with Notebook.open(write_files(root, FILES | files)) as notebook:
        notebook.sync()
        notebook.notes.update("pages/plan", content="- Fog", section="Risks")
        notebook.channels.write("A boathouse", Session.owner("scribe"), tags=["key"])
        notebook.admin.add_token("herald", kind="external")


# Without an end, and without a language model.
EXAMPLES = [
    example
    for name, operation in OPERATIONS.items()
    for example in operation.examples
    if "--follow" not in example and "infer" not in name
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_runs(
    copies: Copies,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    llm: LlmServer,
    example: str,
) -> None:
    bridge = f"[tier2]\nenabled = true\ncommand = {json.dumps(bridge_command())}\n"
    needs_bridge = "synthesize" in example or "prefetch" in example
    add_settings(copies.put(make_for_examples, folder), bridge if needs_bridge else llm.toml())
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("NOTEBOOK_SESSION", "owner")
    is_unknown = "1a2b3c4d" in example  # a brief, a version
    assert run(shlex.split(example.replace("revoke scribe", "revoke herald"))[1:]) == int(is_unknown)
    assert ("1a2b3c4d" in capsys.readouterr().err) == is_unknown


def test_the_lists_of_tools_are_short_and_use_common_keywords(shared: Notebook) -> None:
    owner = Session.owner()
    sizes = {sets: len(json.dumps(tool_definitions(shared, owner, "mcp", sets))) for sets in ("core", ALL)}
    assert sizes["core"] <= 8 * 1024
    assert sizes[ALL] <= 16 * 1024
    assert len(tool_definitions(shared, owner, "mcp", ALL)) <= 28
    known = {"type", "description", "enum", "format", "minimum", "maximum", "items", "properties", "required"}
    for definition in tool_definitions(shared, owner, "anthropic", ALL):
        waiting = [definition["input_schema"]]
        while waiting:
            schema = waiting.pop()
            assert schema.keys() <= known | {"additionalProperties"}
            assert isinstance(schema["type"], str)
            waiting += [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]


def test_tools_have_one_order_whatever_was_loaded_first(shared: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    services = dict.fromkeys(each.service for each in reversed(OPERATIONS.values()))
    shuffled = [pair for service in services for pair in OPERATIONS.items() if pair[1].service == service]
    before = tool_definitions(shared, Session.owner(), toolsets=ALL)
    monkeypatch.setattr("notebook_sync.surfaces.tools.OPERATIONS", dict(shuffled))
    assert tool_definitions(shared, Session.owner(), toolsets=ALL) == before


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"query": "rope", "limit": "2"}, ""),
        ({"query": "rope", "limit": 2.0}, ""),
        ({"query": "rope", "limit": None, "collection": None}, ""),
        ({"query": "rope", "tags": '["winter"]'}, ""),
        ({"query": "rope", "tags": "winter, ice"}, ""),
        ('{"query": "rope"}', ""),
        ({"query": "rope", "limit": "two"}, "usage_error"),
        ({"query": "rope", "limit": 2.5}, "usage_error"),
        ({"query": ["rope"]}, "usage_error"),
        ({"query": "rope", "limits": 2}, "usage_error"),
        ("[1]", "usage_error"),
        ("{", "usage_error"),
        ({"query": "rope", "tags": {"$ne": 1}}, "usage_error"),
        ({"query": "\ud800"}, "usage_error"),
        ('{"query": "rope", "tags": ["\\ud800"]}', "usage_error"),
        ("[" * 100_000, "usage_error"),
    ],
)
def test_arguments_as_models_send_them(shared: Notebook, arguments: Any, fault: str) -> None:
    answer = call_tool(shared, "notebook_search", arguments, Session.task("scribe"))
    assert _fault_of(answer) == fault


# What each argument is given, of whatever type it is.
_ODD: list[object] = [
    *(
        None,
        True,
        -1,
        2**70,
        1.5,
        float("nan"),
        "",
        "a\0b",
        "\ud800",
        "é" * 300,
        "[1]",
        "[]",
        [],
        ["a"],
        {},
        {"a": 1},
        [[]],
    ),
    *(
        "ferry",
        "pages/ferry#fares",
        "reminders",
        "../x",
        "pages/a:b",
        "channels/pilot/global/berth",
        ".",
        "*" * 50,
        "(",
    ),
    *("pages", "hybrid", "write", "remove_entry", "rope", "7d", "2026-13-45", [{"action": "write", "content": "x"}]),
]


def test_whatever_a_model_sends_is_answered_and_nothing_else_happens(notebook: Notebook, rng: random.Random) -> None:
    guarded = {path: path.read_bytes() for path in (notebook.root / "runtime").iterdir()}
    around = sorted(notebook.root.parent.iterdir())
    tools = {each.tool: each.arguments.__struct_fields__ for each in OPERATIONS.values() if each.tool}
    for _ in range(400):
        name, session = rng.choice(sorted(tools)), rng.choice(SESSIONS[1:])
        arguments = {each: rng.choice(_ODD) for each in tools[name] if rng.random() < 0.5}
        assert json.dumps(call_tool(notebook, name, arguments, session))
    assert notebook.admin.verify().consistent
    assert {path: path.read_bytes() for path in guarded} == guarded
    assert sorted(notebook.root.parent.iterdir()) == around


def test_the_original_calls_of_the_agent_notebook(notebook: Notebook) -> None:
    scribe = Session.task("scribe")
    given = {"collection": "pages", "title": "Fog", "content": "Fog in May.", "tags": ["weather"], "summary": "Fog"}
    made = call_tool(notebook, "notebook_create", given, scribe)
    assert (made["status"], made["title"], made["collection"]) == ("created", "Fog", "pages")
    same = {"notebook_id": made["notebook_id"], "collection": "pages"}
    assert call_tool(notebook, "notebook_read", same, scribe)["text"].endswith("Fog in May.")
    changed = call_tool(notebook, "notebook_update", {**same, "content": "Fog in June.", "status": "complete"}, scribe)
    assert (changed["status"], changed["version"]) == ("updated", 2)
    found = call_tool(notebook, "notebook_search", {"query": "", "tags": ["weather"]}, scribe)["results"]
    assert [each["id"] for each in found] == [made["notebook_id"]]
    assert call_tool(notebook, "notebook_delete", same, scribe)["status"] == "deleted"
    gone = call_tool(notebook, "notebook_delete", same, scribe)
    assert (gone["status"], gone["notebook_id"], bool(gone["error"])) == ("not_found", made["notebook_id"], True)
