"""Rule: concurrent requests, event streams and MCP sessions have a quota for each agent and a reserve that only the
owner can use. A request over the quota is refused at once, with an error that says to try again later. Of an agent's
requests that may take seconds, two run at once and others wait for their turn; a client that leaves has no more done
for it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.responses import EventSourceResponse
from fastapi.routing import iter_route_contexts

from notebook_sync import Notebook, Session
from notebook_sync.surfaces.http import quotas
from notebook_sync.surfaces.http.guard import Guard
from notebook_sync.surfaces.http.quotas import COSTLY_AT_ONCE, REQUESTS, STREAMS, Quota
from notebook_sync.surfaces.serving.app import http_app
from tests.security.real_server import Running, running
from tests.surfaces.test_mcp_http import HELLO
from tests.waiting import eventually

OWNER, SCRIBE = Session.owner(), Session.task("scribe")
LIST, READ, SEARCH = "/api/v1/notes", "/api/v1/notes/standing-orders.md", "/api/v1/search?query=x"
SEARCH_BY_MCP = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "notebook_search", "arguments": {"query": "x"}},
}
AGENTS = [Session.task(f"agent{number}") for number in range(20)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    Notebook.init(tmp_path / "notebook", git=False)
    with running(tmp_path / "notebook") as found:
        yield found


@pytest.mark.parametrize("quota", [REQUESTS, STREAMS, quotas.MCP_SESSIONS], ids=str)
def test_agents_leave_room_for_the_owner_however_many_they_are(quota: Quota) -> None:
    held: Counter[Session] = Counter()
    for agent in AGENTS:
        while quota.allows(agent, held):
            held[agent] += 1
    assert max(held.values()) <= quota.each
    assert held.total() == quota.most - quota.reserve
    while quota.allows(OWNER, held):
        held[OWNER] += 1
    assert held[OWNER] == quota.reserve
    held.subtract(AGENTS[:1])
    assert quota.allows(OWNER, held)


def test_every_route_that_streams_is_counted_as_a_stream(tmp_path: Path) -> None:
    with Notebook.open(tmp_path) as notebook:
        app = http_app(notebook)
        streaming = {
            context.path
            for context in iter_route_contexts(app.routes)
            if getattr(context, "response_class", None) is EventSourceResponse
        }
        (counted,) = (each.kwargs["streams"] for each in app.user_middleware if each.cls is Guard)
    assert streaming == set(counted)


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def begun(go_on: threading.Event, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What began: a search or a read of a note, each of which waits until it may go on."""
    found: list[str] = []

    def waits(work: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        found.append(work.__name__)
        assert go_on.wait(60)
        return work(*arguments, **options)

    for work in (Notebook.read, Notebook.search_report):
        monkeypatch.setattr(Notebook, work.__name__, partialmethod(partial(waits, work)))
    return found


@pytest.fixture
def threads(go_on: threading.Event) -> Iterator[ThreadPoolExecutor]:
    """For clients. They are not waited for before what they ask for may go on."""
    with ThreadPoolExecutor(REQUESTS.most) as found:
        yield found
        go_on.set()


def assert_refused(answer: httpx2.Response) -> None:
    assert (answer.status_code, answer.json()["error"]["type"]) == (429, "too_many_requests")
    assert answer.headers["retry-after"].isdecimal()


def asking_mcp(server: Running, token: str) -> httpx2.Response:
    """The answer to a search by MCP, which is not waited for."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    opened = server.client.post(f"{server.url}/mcp", json=HELLO, headers=headers)
    headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
    request = server.client.build_request("POST", f"{server.url}/mcp", json=SEARCH_BY_MCP, headers=headers)
    return server.client.send(request, stream=True)


def test_requests_of_one_agent_do_not_take_the_threads_of_the_owner(
    server: Running, begun: list[str], go_on: threading.Event, threads: ThreadPoolExecutor
) -> None:
    tokens = [server.token(agent) for agent in AGENTS[:3]] * REQUESTS.each
    asked = [threads.submit(server.get, READ, token) for token in tokens]
    eventually(lambda: len(begun) == len(asked), "all are read")
    other = server.token(AGENTS[3])
    for token in (tokens[0], other):  # its own quota, and what all agents share
        assert_refused(server.get(LIST, token))
    assert server.get(LIST, server.token(OWNER)).status_code == 200
    go_on.set()
    assert {each.result().status_code for each in asked} == {200}
    assert server.get(LIST, other).status_code == 200


def test_what_is_costly_waits_for_its_turn(
    server: Running, begun: list[str], go_on: threading.Event, threads: ThreadPoolExecutor
) -> None:
    agent, owner = server.token(SCRIBE), server.token(OWNER)
    asked = [threads.submit(server.get, SEARCH, agent) for _ in range(COSTLY_AT_ONCE + 1)]
    asked += [threads.submit(server.get, SEARCH, owner) for _ in range(COSTLY_AT_ONCE + 1)]
    eventually(lambda: len(begun) == 2 * COSTLY_AT_ONCE + 1, "two of the agent's and all of the owner's began")
    assert server.get(LIST, agent).status_code == 200  # what is quick has no turn
    assert len(begun) == 2 * COSTLY_AT_ONCE + 1
    go_on.set()
    assert {each.result().status_code for each in asked} == {200}


def test_a_turn_that_does_not_come_is_told(
    server: Running, begun: list[str], threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "TURN_SECONDS", 0.2)
    token = server.token(SCRIBE)
    threads.map(server.get, [SEARCH] * COSTLY_AT_ONCE, [token] * COSTLY_AT_ONCE)
    eventually(lambda: len(begun) == COSTLY_AT_ONCE, "all turns are taken")
    assert_refused(server.get(SEARCH, token))
    assert b"too_many_requests" in asking_mcp(server, token).read()


def test_what_waits_for_its_turn_is_not_begun_for_a_client_that_left(
    server: Running, begun: list[str], go_on: threading.Event, threads: ThreadPoolExecutor
) -> None:
    token = server.token(SCRIBE)
    asked = [threads.submit(server.get, SEARCH, token) for _ in range(COSTLY_AT_ONCE)]
    eventually(lambda: len(begun) == COSTLY_AT_ONCE, "all turns are taken")
    raw = f"GET {SEARCH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    with ExitStack() as clients:

        def is_full() -> bool:
            clients.enter_context(server.connect()).sendall(raw)
            return server.get(LIST, token).status_code == 429

        eventually(is_full, "as many wait as may")
    for _ in range(2):
        assert_refused(server.get(LIST, token))  # by then, the server knows that they left
    go_on.set()
    assert {each.result().status_code for each in asked} == {200}
    eventually(lambda: server.get(SEARCH, token).status_code == 200, "the others gave up their turns")
    assert len(begun) == COSTLY_AT_ONCE + 1


def test_who_leaves_and_asks_again_by_mcp_has_no_more_done(
    server: Running, begun: list[str], go_on: threading.Event
) -> None:
    token = server.token(SCRIBE)
    for _ in range(REQUESTS.each):
        asking_mcp(server, token).close()
    eventually(lambda: server.get(LIST, token).status_code == 429, "all keep their places")
    assert len(begun) == COSTLY_AT_ONCE
    go_on.set()
    eventually(lambda: server.get(LIST, token).status_code == 200, "their places are given back")


def test_streams_of_one_agent_leave_some_for_others(server: Running) -> None:
    def follow(session: Session) -> int:
        asked = server.client.stream("GET", f"{server.url}/api/v1/events", headers=server.headers(session))
        return opened.enter_context(asked).status_code

    with ExitStack() as opened:
        assert [follow(SCRIBE) for _ in range(STREAMS.each + 1)] == [200] * STREAMS.each + [503]
        assert [follow(OWNER), follow(AGENTS[0])] == [200, 200]
        assert server.get("/api/v1/notes", server.token(SCRIBE)).status_code == 200  # a stream is no request
        opened.close()
        eventually(lambda: follow(SCRIBE) == 200, "closed streams are given back")


def test_mcp_sessions_of_one_agent_leave_some_for_others(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_sync.surfaces.mcp.http.MCP_SESSIONS", Quota(most=6, each=2, reserve=3))

    def opened(session: Session) -> int:
        headers = {**server.headers(session), "Accept": "application/json, text/event-stream"}
        return server.client.post(f"{server.url}/mcp", json=HELLO, headers=headers).status_code

    assert [opened(SCRIBE) for _ in range(3)] == [200, 200, 503]
    assert [opened(AGENTS[0]) for _ in range(2)] == [200, 503]
    assert [opened(OWNER) for _ in range(4)] == [200, 200, 200, 503]


def test_what_fails_is_given_back(server: Running) -> None:
    for _ in range(REQUESTS.each + 1):
        assert server.get("/api/v1/nowhere", server.token(SCRIBE)).status_code == 404
