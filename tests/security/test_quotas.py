"""Rule: concurrent requests, event streams and MCP sessions have a quota for each agent and a reserve that only the
owner can use. A request over the quota is refused at once, with an error that says to try again later.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.responses import EventSourceResponse
from fastapi.routing import iter_route_contexts

from notebook_sync import Notebook, Session
from notebook_sync.surfaces.http import quotas
from notebook_sync.surfaces.http.guard import Guard
from notebook_sync.surfaces.http.quotas import REQUESTS, STREAMS, Quota
from notebook_sync.surfaces.serving.app import http_app
from tests.security.real_server import Running, running
from tests.surfaces.test_mcp_http import HELLO
from tests.waiting import eventually

OWNER, SCRIBE = Session.owner(), Session.task("scribe")
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
    assert streaming
    assert streaming == set(counted)


def test_requests_of_one_agent_do_not_take_the_threads_of_the_owner(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, begun = threading.Event(), threading.Semaphore(0)
    status = Notebook.search_report

    def wait(self: Notebook, *arguments: Any, **options: Any) -> Any:
        begun.release()
        assert go_on.wait(60)
        return status(self, *arguments, **options)

    monkeypatch.setattr(Notebook, "search_report", wait)
    waiting: list[Future[httpx2.Response]] = []
    with ThreadPoolExecutor(REQUESTS.most) as threads:
        try:
            for agent in AGENTS[:3]:
                token = server.token(agent)
                waiting += [threads.submit(server.get, "/api/v1/search?query=x", token) for _ in range(REQUESTS.each)]
            for _ in waiting:
                assert begun.acquire(timeout=30)
            for agent in (AGENTS[0], AGENTS[3]):  # its own quota, and what all agents share
                refused = server.get("/api/v1/notes", server.token(agent))
                assert (refused.status_code, refused.json()["error"]["type"]) == (429, "too_many_requests")
                assert refused.headers["retry-after"].isdecimal()
            assert server.get("/api/v1/notes", server.token(OWNER)).status_code == 200
        finally:
            go_on.set()
        assert {each.result().status_code for each in waiting} == {200}
    assert server.get("/api/v1/notes", server.token(AGENTS[3])).status_code == 200


def test_streams_of_one_agent_leave_some_for_others(server: Running) -> None:
    def follow(session: Session) -> int:
        asked = server.client.stream("GET", f"{server.url}/api/v1/events", headers=server.headers(session))
        return opened.enter_context(asked).status_code

    with ExitStack() as opened:
        assert [follow(SCRIBE) for _ in range(STREAMS.each + 1)] == [200] * STREAMS.each + [503]
        assert [follow(OWNER), follow(AGENTS[0])] == [200, 200]
        assert server.get("/api/v1/notes", server.token(SCRIBE)).status_code == 200  # a stream is no request
    eventually(lambda: follow_once(server, SCRIBE) == 200, "closed streams are given back")


def follow_once(server: Running, session: Session) -> int:
    with server.client.stream("GET", f"{server.url}/api/v1/events", headers=server.headers(session)) as answer:
        return answer.status_code


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
