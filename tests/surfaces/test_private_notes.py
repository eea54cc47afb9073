"""No output of any surface tells another agent of a private note: not a word of it, not that it exists, not how many
there are. The owner is told everything."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pymongo
import pytest
import redis
from fastapi.routing import iter_route_contexts
from mcp import MCPError
from mcp.client import Client

from notebook_sync import MemoryTool, Notebook, Session
from notebook_sync.search.searching import MODES
from notebook_sync.surfaces.cli.main import run
from notebook_sync.surfaces.http.from_operations import operation_routes
from notebook_sync.surfaces.http.routes.agents import agent_routes
from notebook_sync.surfaces.http.routes.notes import routes
from notebook_sync.surfaces.mcp.server import NotebookServer, resources
from notebook_sync.surfaces.mcp.subscriptions import Subscriptions
from tests.surfaces import private_world as world
from tests.surfaces.doors import DOORS, Door
from tests.surfaces.http_clients import Served, served
from tests.surfaces.private_world import CANARY, FOLDER, NONSENSE, OWN_ID, OWNER, SCRIBE, alike, told
from tests.together import together
from tests.waiting import eventually

PILOT, NOBODY, HERALD = Session.task("pilot"), Session.task(), Session.external("herald")
# The scribe itself, while it acts on somebody else's message, is no reader of its notes either.
TURNED = Session.external("scribe")


@dataclass(frozen=True)
class Harbour:
    """The two notebooks, and the names of what is private in the first."""

    with_notes: Path
    without: Path
    names: list[str]


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Harbour:
    """On the embedded store. Nobody changes what is in it, but by asking."""
    folder = tmp_path_factory.mktemp("harbour")
    names = world.build(folder / "with", private=True)
    world.build(folder / "without", private=False)
    return Harbour(folder / "with", folder / "without", names)


def every_one(calls: Iterator[world.Call]) -> Iterator[world.Call]:
    return calls


def assert_nothing_is_told(
    ask: Callable[[world.Call], Any],
    ask_without: Callable[[world.Call], Any],
    names: list[str],
    of: Callable[[Iterator[world.Call]], Iterator[world.Call]] = every_one,
) -> None:
    """Of the private notes, to who asks. `ask_without` asks the notebook that has none."""
    with together() as check:
        for asked in of(world.plain_calls()):
            with check(asked):
                answer = told(ask(asked))
                assert CANARY not in answer
                assert answer == told(ask_without(asked))
        for asked in of(world.guesses(names)):
            with check(asked):
                there, nowhere = alike(ask, asked)
                assert there == nowhere


def as_calls(door: Door, session: Session) -> Callable[[world.Call], Any]:
    return lambda asked: door.call(session, *asked)


def of_each_tool(calls: Iterator[world.Call]) -> Iterator[world.Call]:
    """Five or a few more of each tool, from among all that are asked of it."""
    by_tool = defaultdict[str, list[world.Call]](list)
    for asked in calls:
        by_tool[asked[0]].append(asked)
    for some in by_tool.values():
        yield from some[:: max(1, len(some) // 5)]


# A token is always an agent's, so nobody comes by HTTP.
BY_TOKEN = [(name, session) for name in ("http", "mcp over http") for session in (PILOT, TURNED)]
BY_NAME = [(name, session) for name in ("direct", "mcp") for session in (PILOT, NOBODY, HERALD, TURNED)]


def test_every_door_is_tried() -> None:
    assert {name for name, _ in (*BY_TOKEN, *BY_NAME)} == DOORS.keys()


@pytest.mark.parametrize(("name", "session"), [*BY_NAME, *BY_TOKEN], ids=lambda one: getattr(one, "changed_by", one))
def test_no_tool_tells_of_a_private_note(harbour: Harbour, name: str, session: Session) -> None:
    """What a tool answers is the same at every door: each but the first is asked some of it, for what it adds."""
    opened: Callable[[Path], AbstractContextManager[Door]] = DOORS[name]
    some = every_one if name == "direct" else of_each_tool
    with opened(harbour.with_notes) as door, opened(harbour.without) as other:
        assert_nothing_is_told(as_calls(door, session), as_calls(other, session), harbour.names, some)
        is_stranger = session.kind == "external"
        assert ("error" in door.call(session, "notebook_recall", {"query": "rope"})) == is_stranger
        found = told(door.call(session, "notebook_search", {"query": "rope"}))
        assert "pages/ferry.md" in found


@pytest.mark.parametrize("session", [PILOT, HERALD, TURNED], ids=lambda one: one.agent)
def test_no_route_tells_of_a_private_note(harbour: Harbour, session: Session) -> None:
    def asker(server: Served) -> Callable[[world.Request], str]:
        def ask(asked: world.Request) -> str:
            method, route, more = asked
            answer = server.ask(method, f"/{route}", session, **more)
            return f"{answer.status_code} {answer.headers.get('etag')} {answer.text}"

        return ask

    with served(harbour.with_notes) as server, served(harbour.without) as other, together() as check:
        ask, ask_without = asker(server), asker(other)
        for asked in world.plain_requests():
            with check(asked):
                answer = told(ask(asked))
                assert CANARY not in answer
                assert answer == told(ask_without(asked))
        assert "Buy rope in May" in ask(("GET", "memories", {"params": {"tags": "rope"}}))
        # Of who asks on behalf of others, a note that is there, one that is gone, and an id are enough.
        names = harbour.names if session == PILOT else [harbour.names[0], *harbour.names[4:]]
        for asked in world.guessing_requests(names):
            with check(asked):
                there, nowhere = alike(ask, asked)
                assert there == nowhere


def test_every_route_is_asked() -> None:
    asked = {(method, route) for method, route, _ in (*world.plain_requests(), *world.guessing_requests(["x"]))}
    for context in iter_route_contexts([*routes.routes, *agent_routes.routes, *operation_routes()]):
        pattern = re.compile(re.sub(r"\{[^}]*\}", ".+", context.path.removeprefix("/api/v1/")))
        for method in () if context.path.endswith("/events") else context.methods or ():
            assert any(method == one and pattern.fullmatch(route) for one, route in asked), (method, context.path)


@pytest.mark.parametrize("session", [PILOT, HERALD, TURNED], ids=lambda one: one.agent)
def test_no_stream_of_events_tells_of_a_private_note(harbour: Harbour, session: Session) -> None:
    def streamed(root: Path) -> list[str]:
        with served(root) as server, ThreadPoolExecutor(1) as pool:
            asking = pool.submit(server.ask, "GET", "/events", session, headers={"Last-Event-ID": "0"})
            eventually(
                lambda: asking.done() or "notebook_event_streams 1.0" in server.ask("GET", "/metrics", OWNER).text,
                "the stream is open",
            )
            assert server.client.portal is not None
            server.client.portal.call(server.app.state.streams.end)
            lines = asking.result(30).text.splitlines()
            # Which of its own calls were refused, it is told: here it guessed at one of the notebooks only.
            return [told(line) for line in lines if line.startswith(("data:", "{")) and '"refused"' not in line]

    there, nowhere = streamed(harbour.with_notes), streamed(harbour.without)
    assert CANARY not in "".join(there)
    assert there == nowhere
    assert any("pages/ferry.md" in line for line in there) == (session == PILOT)


@pytest.mark.filterwarnings("ignore:resources/(un)?subscribe:mcp.MCPDeprecationWarning")
@pytest.mark.parametrize("session", [PILOT, NOBODY, HERALD, TURNED], ids=lambda one: one.changed_by + one.kind)
def test_no_resource_and_no_prompt_of_mcp_tells_of_a_private_note(harbour: Harbour, session: Session) -> None:
    async def answers_of(root: Path, word: str) -> list[str]:
        found: list[str] = []

        async def ask(asking: Awaitable[Any]) -> None:
            try:
                found.append(told((await asking).model_dump(mode="json")))
            except MCPError as error:
                found.append(told([error.code, str(error), error.data]))

        with Notebook.open(root) as notebook:
            server = NotebookServer(notebook, lambda _: session, Subscriptions(notebook))
            async with Client(server, mode="legacy") as client:
                await ask(client.list_resources())
                await ask(client.list_resource_templates())
                await ask(client.list_prompts())
                for include in ("", "refs", "refs,notes,facts"):
                    await ask(client.get_prompt("notebook", {"include": include, "task": "Buy rope"}))
                for name in harbour.names:
                    place = name.replace(CANARY, word)
                    for spelled in (place, quote(place, safe=""), place.removesuffix(".md")):
                        uri = f"notebook://note/{spelled}"
                        await ask(client.read_resource(uri))
                        await ask(client.subscribe_resource(uri))
                        await ask(client.read_resource(f"notebook://runtime/{spelled}"))
        return [answer.replace(word, "WORD") for answer in found]

    there = anyio.run(answers_of, harbour.with_notes, CANARY)
    assert there == anyio.run(answers_of, harbour.with_notes, NONSENSE)
    assert there == anyio.run(answers_of, harbour.without, CANARY)


@pytest.mark.parametrize("session", [PILOT, NOBODY, HERALD, TURNED], ids=lambda one: one.changed_by + one.kind)
def test_nobody_is_notified_of_a_private_note(harbour: Harbour, tmp_path: Path, session: Session) -> None:
    """What a subscription compares stays as it is, whatever is written; a name of a note that comes is no other."""
    root = tmp_path / "harbour"
    shutil.copytree(harbour.with_notes, root)
    with Notebook.open(root) as notebook:
        uris = ("notebook://prompt", *(f"notebook://note/{quote(name)}" for name in harbour.names))
        before = [resources.state_of(notebook, uri, session) for uri in uris]
        for name in harbour.names[:4]:
            notebook.update(name, SCRIBE, status="complete")
        notebook.channels.write(f"More of the {CANARY}", SCRIBE)
        assert [resources.state_of(notebook, uri, session) for uri in uris] == before
        assert resources.state_of(notebook, uris[1], SCRIBE) not in ("", before[1])


@pytest.mark.parametrize("session", [PILOT, NOBODY, HERALD], ids=lambda one: one.changed_by + one.kind)
def test_the_memory_tool_knows_of_no_private_note(harbour: Harbour, session: Session) -> None:
    with Notebook.open(harbour.with_notes) as notebook, Notebook.open(harbour.without) as other, together() as check:
        memory, without = MemoryTool(notebook, session), MemoryTool(other, session)
        for place in ("", "/channels", f"/{FOLDER}", f"/{FOLDER}/global"):
            with check(place):
                shown = memory.call({"command": "view", "path": f"/memories{place}"})
                assert CANARY not in shown
                assert shown == without.call({"command": "view", "path": f"/memories{place}"})
        for command in world.memory_commands(harbour.names):
            with check(command):
                there, nowhere = alike(memory.call, command)
                assert there == nowhere


@pytest.mark.parametrize("session", [PILOT, NOBODY, HERALD], ids=lambda one: one.changed_by + one.kind)
def test_no_command_tells_of_a_private_note(
    harbour: Harbour, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    """`explain` is left out, where --session says whose prompt it is about and who asks has the files anyway."""
    who = ["--session", session.kind, *(["--agent", session.agent] if session.agent else [])]

    def ran(root: Path) -> Callable[[list[str]], str]:
        def ask(arguments: list[str]) -> str:
            code = run(["-C", str(root), *arguments, *who])
            printed = capsys.readouterr()
            return f"{code} {printed.out} {printed.err}".replace(str(root), "ROOT")

        return ask

    ask, ask_without = ran(harbour.with_notes), ran(harbour.without)
    with together() as check:
        for asked in (
            *(
                ["list", "--limit", "100"],
                ["search", "rope plan chart", "--limit", "100"],
                ["prompt"],
                ["stream", "show"],
            ),
            *(["prompt", "--include", "refs,facts,notes", "--task", "Buy rope"], ["note", "channels"]),
            *(
                ["note", "peek", "scribe"],
                ["note", "peek", "odile"],
                ["stream", "recall", "rope plan chart"],
                ["stream", "recall", CANARY],
            ),
            *(["checkpoint", "create"], ["checkpoint", "list"], ["rollback", "0000"], ["rollback"]),
            *(
                ["fact", "list", "--scope", "all"],
                ["fact", "search", CANARY],
                ["fact", "verify", f"{CANARY} hides rope"],
            ),
            *(["memory", what] for what in ("list", "audit", "infer")),
            *(["memory", "search", CANARY], ["memory", "graph", "-", "--format", "mermaid"]),
            *(["context", what, "pages/ferry.md"] for what in ("brief", "synthesize", "prefetch")),
            *(["context", what] for what in ("cached", "figures")),
            *(["search", "rope plan chart", "--mode", mode, "--snippet", "--explain", "--report"] for mode in MODES),
        ):
            for shape in ([], ["--json"]):
                with check([*asked, *shape]):
                    answer = told(ask([*asked, *shape]))
                    assert CANARY not in answer
                    assert answer == told(ask_without([*asked, *shape]))
        for name in (harbour.names[0], OWN_ID, CANARY):
            for guess in (
                *(["edit", name, "read"], ["edit", name, "write", "--content", "x"], ["update", name, "--title", "x"]),
                *(["delete", name], ["rename", name, "pages/taken.md"], ["undo", name]),
                *(["search", name, "--mode", "keyword"], ["search", "rope", "--section", name]),
                *(
                    ["rename", "pages/ferry.md", name],
                    ["stream", "recall", "rope", "--tags", CANARY],
                    ["list", "--tags", name],
                ),
                *(["note", "peek", "scribe", name], ["note", "peek", name], ["note", "search", name]),
                *(["memory", "link", "k3v9x1q8m2ab", "similar", name], ["memory", "graph", "-", "--around", name]),
                *(["context", what, name] for what in ("brief", "prefetch")),
            ):
                with check(guess):
                    there, nowhere = alike(ask, guess)
                    assert there == nowhere


def test_on_servers_no_tool_and_no_key_tells_of_a_private_note(
    tmp_path: Path, mongodb_url: str, redis_stack_url: str, mongo_database: str, redis_prefix: str
) -> None:
    def settings(name: str) -> str:
        return (
            f'[mirror]\nurl = "{mongodb_url}"\ndatabase = "{mongo_database[:40]}{name}"\n'
            f'[refs]\nurl = "{redis_stack_url}"\nprefix = "{redis_prefix}{name}"\n'
        )

    names = world.build(tmp_path / "with", private=True, settings=settings("a"))
    world.build(tmp_path / "without", private=False, settings=settings("b"))
    try:
        with DOORS["direct"](tmp_path / "with") as door, DOORS["direct"](tmp_path / "without") as other:
            for each in (door, other):
                eventually(
                    lambda each=each: each.call(PILOT, "notebook_recall", {"query": "rope"})["degraded"] is None,
                    "an index of all",
                )
            for session in (PILOT, HERALD):
                assert_nothing_is_told(as_calls(door, session), as_calls(other, session), names)
            assert "pages/ferry.md" in told(door.call(PILOT, "notebook_recall", {"query": "rope"}))
        kept = list(kept_in(redis_stack_url, redis_prefix))
        assert len(kept) > 10
        assert [each for each in kept if CANARY.encode() in each.lower()] == []
    finally:
        with pymongo.MongoClient(mongodb_url) as client:
            for name in "ab":
                client.drop_database(f"{mongo_database[:40]}{name}")


def kept_in(url: str, prefix: str) -> Iterator[bytes]:
    """Every key and every value of hot memory below a prefix."""
    with contextlib.closing(redis.Redis.from_url(url)) as client:
        for key in client.scan_iter(f"{prefix}*", count=1000):
            yield key
            kind = client.type(key)
            if kind == b"hash":
                yield from (part for pair in client.hgetall(key).items() for part in pair)
            elif kind == b"list":
                yield from client.lrange(key, 0, -1)
            elif kind == b"set":
                yield from client.smembers(key)
            elif kind == b"zset":
                yield from client.zrange(key, 0, -1)
            else:
                yield client.get(key)


def test_the_owner_is_told_everything(harbour: Harbour) -> None:
    kept = harbour.names[:4]
    with DOORS["direct"](harbour.with_notes) as door:
        for name, arguments in (
            ("notebook_list", {"limit": 100}),
            ("notebook_search", {"query": CANARY, "limit": 100}),
            ("search_my_notes", {"query": CANARY}),
            ("get_recent_notes", {}),
        ):
            assert set(kept) <= {row["path"] for row in door.call(OWNER, name, arguments)["results"]}, name
        for path in (*kept, OWN_ID):
            assert CANARY in door.call(OWNER, "notebook_read", {"id": path})["text"]
    with served(harbour.with_notes) as server:
        channels = {each["id"]: each["notes"] for each in server.ask("GET", "/channels", OWNER).json()["results"]}
        assert channels["notes:scribe:global"] == 2
        assert channels[f"notes:scribe:{CANARY}-project"] == 2
        assert CANARY in server.ask("POST", "/explain", OWNER, json={"text": "hides rope"}).text
    with Notebook.open(harbour.with_notes) as notebook:
        assert CANARY in json.dumps(notebook.events.read())
