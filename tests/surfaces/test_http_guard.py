"""What every route refuses, whoever asks: a table over all routes there are, so that a new one cannot be forgotten."""

from __future__ import annotations

import contextlib
import logging
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from notebook_sync import Notebook, Session
from notebook_sync.surfaces.http.doors import OPEN_PATHS, host_name, token_in
from notebook_sync.surfaces.http.errors import Answer
from notebook_sync.surfaces.http.guard import LARGEST_BODY, GuardedApp, is_own_origin
from notebook_sync.surfaces.serving.app import http_app
from notebook_sync.tokens import FILE
from tests.surfaces.http_clients import BASE, Served, served
from tests.surfaces.test_tools_permissions import bytes_of, refusals
from tests.together import together

OWNER, TASK, EXTERNAL = Session.owner(), Session.task("scribe"), Session.external("herald")
OWNER_ONLY = {
    *(("GET", "/api/v1/status"), ("GET", "/api/v1/metrics"), ("POST", "/api/v1/sync")),
    ("POST", "/api/v1/rollback"),
}
NOT_FOR_STRANGERS = OWNER_ONLY | {
    *(("GET", "/api/v1/events"), ("GET", "/api/v1/today"), ("GET", "/api/v1/recall?query=x")),
    *(("GET", "/api/v1/checkpoints"), ("POST", "/api/v1/checkpoints")),
    *(("GET", f"/api/v1/channels/pilot/{what}") for what in ("notes", "recent", "peek")),
    *(("GET", f"/api/v1/channels/herald/{what}") for what in ("notes", "recent")),
}
# What changes something, with a body that an agent's own session may send.
CHANGING: dict[str, dict[str, Any]] = {
    "facts": {"content": "Obey"},
    "facts/reinforce": {"fact": "Obey"},
    "facts/archive": {"fact": "Obey"},
    "facts/restore": {"fact": "Obey"},
    "facts/promote": {"fact": "Obey"},
    "facts/decay": {},
    "facts/dedupe": {},
    "facts/extract": {"messages": [{"role": "user", "content": "Obey"}]},
    "memories": {"content": "Obey"},
    "memories/link": {"from": "a", "type": "similar", "to": "b"},
    "memories/infer": {},
    "memories/fix": {},
    "memories/score": {},
    "relationships/ingest_synthesis": {"links": []},
    "synthesize": {"task_spec": "Obey"},
    "prefetch": {"specs": ["specs/pier.md"]},
}
# In place of what a path may name.
NAMED = {"{note:path}": "pages/plan.md", "{name}": "notebook_read", "{channel}": "scribe"}
WRITING = {"POST", "PUT", "PATCH", "DELETE"}


class Reached:
    """In place of another app, as MCP is one: it checks nothing by itself."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await Answer({"reached": True})(scope, receive, send)


BESIDE = GuardedApp("/mcp", Reached(), contextlib.nullcontext)


def routes_of(app: FastAPI) -> list[tuple[str, str]]:
    """Every method and path for programs that the app answers, with something in place of what a path may name."""

    def named(path: str) -> str:
        return re.sub(r"\{[^}]*\}", lambda parameter: NAMED[parameter[0]], path)

    found = {
        (method, named(context.path))
        for context in iter_route_contexts(app.routes)
        for method in context.methods or {"GET", "POST", "DELETE"}
        if context.path.startswith(("/api/", "/mcp"))
    }
    return sorted(found)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("harbour") / "notebook"
    Notebook.init(root, git=False)
    (root / "pages/plan.md").write_text("# Plan\n\nStart small.\n")
    with served(root, beside=[BESIDE]) as found:
        yield found


def all_routes() -> list[tuple[str, str]]:
    """Asked of an app that nobody is served by: which routes there are depends on no notebook's content."""
    folder = Path(tempfile.mkdtemp())
    with Notebook.open(folder) as notebook:
        found = routes_of(http_app(notebook, beside=[BESIDE]))
    folder.rmdir()
    return found


ROUTES = all_routes()
GUARDED = [(method, path) for method, path in ROUTES if path not in OPEN_PATHS]


def sent(server: Served, method: str, path: str, headers: dict[str, Any], **more: Any) -> Any:
    """The answer, by status and error type; what is no typed JSON error fails here."""
    if method in WRITING and not more:
        more = {"json": {}}
    answer = server.client.request(method, path, headers=headers, **more)
    for name, value in {
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    }.items():
        assert answer.headers[name] == value
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["content-type"].split(";")[0] == "application/json"
    if method == "HEAD":
        return answer.status_code, None
    error = answer.json()["error"]
    assert {"type", "message", "next"} <= error.keys()
    assert "Traceback" not in answer.text
    return answer.status_code, error["type"]


def assert_all_answer(
    server: Served,
    routes: list[tuple[str, str]],
    expected: tuple[int, str],
    headers: dict[str, Any],
    *,
    query: str = "",
    **more: Any,
) -> None:
    """Every one of the routes answers so; to HEAD without a body."""
    with together() as check:
        for method, path in routes:
            with check((method, path)):
                status, kind = sent(server, method, path + query, headers, **more)
                assert (status, kind) == expected or (method == "HEAD" and (status, kind) == (expected[0], None))


def bearer(server: Served, session: Session) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token(session)}"}


def test_the_table_is_not_empty() -> None:
    assert len(ROUTES) >= 20
    assert ("POST", "/api/v1/edit") in GUARDED
    assert ("POST", "/mcp") in GUARDED
    assert {path for _, path in ROUTES} >= OPEN_PATHS


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer \udcff",
        "Basic {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer {half}",
        "Token {token}",
    ],
)
def test_without_a_valid_token_nothing_is_answered(server: Served, authorization: str | None) -> None:
    token = server.token(OWNER)
    headers = {}
    if authorization is not None:
        headers["Authorization"] = authorization.format(token=token, half=token[:20]).encode("utf-8", "surrogateescape")
    assert_all_answer(server, GUARDED, (401, "unauthorized"), headers)


def test_a_token_in_the_query_is_none(server: Served) -> None:
    token = server.token(OWNER)
    assert_all_answer(server, GUARDED, (401, "unauthorized"), {}, query=f"?token={token}&access_token={token}")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "",
        "127.0.0.2",
        "[::2]",
    ],
)
def test_a_foreign_host_is_refused_with_a_valid_token_too(server: Served, host: str) -> None:
    assert_all_answer(server, ROUTES, (403, "foreign_host"), {**bearer(server, OWNER), "Host": host})


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:8765"},
        {"Origin": "file://"},
        {"Origin": "http://127.0.0.1:8765.evil.example"},
        {"Origin": "http://[evil"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_foreign_page_is_refused_with_a_valid_token_too(server: Served, headers: dict[str, str]) -> None:
    assert_all_answer(server, ROUTES, (403, "foreign_origin"), {**bearer(server, OWNER), **headers})


@pytest.mark.parametrize(("method", "path"), sorted(OWNER_ONLY))
@pytest.mark.parametrize("session", [TASK, EXTERNAL], ids=lambda one: one.kind)
def test_what_is_the_owners_is_refused_to_an_agent(server: Served, method: str, path: str, session: Session) -> None:
    assert sent(server, method, path, bearer(server, session)) == (403, "not_permitted")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        *((method, path, {}) for method, path in sorted(NOT_FOR_STRANGERS)),
        *(("POST", f"/api/v1/{path}", body) for path, body in CHANGING.items()),
    ],
)
def test_what_is_not_for_who_acts_on_anothers_message_is_refused(
    server: Served, method: str, path: str, body: dict[str, Any]
) -> None:
    refused, files = len(refusals(server.root)), bytes_of(server.root)
    more = {"json": body} if body else {}
    assert sent(server, method, path, bearer(server, EXTERNAL), **more) == (403, "not_permitted")
    assert len(refusals(server.root)) == refused + 1
    assert bytes_of(server.root) == files


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/jsonx"},
        {"Content-Type": ""},
        {},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
    ids=str,
)
def test_a_body_is_taken_as_json_alone(server: Served, headers: dict[str, str]) -> None:
    writing = [route for route in GUARDED if route[0] in WRITING]
    assert_all_answer(server, writing, (415, "not_json"), {**bearer(server, OWNER), **headers}, content=b"{}")


def test_a_body_has_a_limit_announced_or_not(server: Served) -> None:
    headers = {**bearer(server, OWNER), "Content-Type": "application/json"}
    chunk = b" " * (LARGEST_BODY // 4)
    with together() as check:
        for method, path in (route for route in GUARDED if route[0] in {"POST", "PUT", "PATCH"}):
            for body in (chunk * 4 + b" ", (chunk for _ in range(5))):
                with check((method, path, type(body))):
                    assert sent(server, method, path, headers, content=body) == (413, "body_too_large")


def test_the_target_and_the_headers_have_limits(server: Served) -> None:
    token = bearer(server, OWNER)
    assert_all_answer(server, ROUTES, (414, "target_too_long"), token, query=f"?x={'x' * 9000}")
    assert_all_answer(server, ROUTES, (431, "headers_too_large"), {**token, "X-Long": "x" * 17_000})


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/api/v1/", "/api/v2/prompt", "/api/%2e%2e/x", "/mcp/x"])
def test_what_is_not_there_is_known_to_those_with_a_token(server: Served, path: str) -> None:
    assert sent(server, "GET", path, {}) == (401, "unauthorized")
    assert sent(server, "GET", path, bearer(server, TASK)) == (404, "no_such_route")


def test_another_method_is_told_which_there_are(server: Served) -> None:
    assert sent(server, "DELETE", "/api/v1/prompt", bearer(server, OWNER)) == (405, "method_not_allowed")
    answer = server.ask("OPTIONS", "/edit", OWNER)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_the_open_routes_tell_nothing_of_the_notebook(server: Served) -> None:
    assert server.ask("GET", "/health", None).json().keys() == {"ok", "version"}
    told = server.ask("GET", "/openapi.json", None).text
    assert str(server.root) not in told
    assert "127.0.0.1" not in told


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8765", "ferry.example", "Ferry.Example:443"]
)
def test_names_of_this_machine_and_those_of_the_settings_are_its_own(root: Path, host: str) -> None:
    (root / "notebook.toml").write_text('[server]\nallowed_hosts = ["ferry.example"]\n')
    with served(root) as server:
        for origin in ({}, {"Origin": f"http://{host}"}, {"Origin": f"https://{host.lower()}"}):
            assert server.ask("GET", "/notes", OWNER, headers={"Host": host, **origin}).status_code == 200
        server.client.headers["Host"] = host
        assert server.ask("GET", "/notes", OWNER, headers={"Origin": "http://quay.example"}).status_code == 403


def test_tokens_that_others_can_read_are_worth_nothing(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    with served(root) as server:
        server.token(OWNER)
        (root / ".notebook" / FILE).chmod(0o644)
        answer = server.ask("GET", "/notes", OWNER)
        assert (answer.status_code, answer.json()["error"]["type"]) == (503, "tokens_unusable")
        assert answer.headers["retry-after"].isdecimal()
        assert str(root) not in answer.text
    assert "can be read by others" in caplog.text


def test_a_fault_is_an_answer_without_a_word_of_its_cause(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("rope 4711")

    monkeypatch.setattr(Notebook, "search_report", fail)
    with served(root) as server:
        answer = server.ask("GET", "/search", OWNER, params={"query": "x"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "internal")
    assert "4711" not in answer.text
    assert "4711" in caplog.text


def test_nothing_secret_and_nothing_asked_is_logged(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with served(root) as server:
        for path in ("/search?query=quiet-harbour", "/nowhere?query=quiet-harbour", "/search"):
            server.ask("GET", path, OWNER)
        server.ask("GET", "/notes", None, headers={"Authorization": f"Bearer x{server.token(OWNER)}"})
        server.ask("POST", "/explain", TASK, json={"text": "quiet-harbour"})
        server.ask("GET", "/notes/a%0d%0aforged%20line", OWNER)
        logged = [record.getMessage() for record in caplog.records if record.name.startswith("notebook_sync")]
        assert len(logged) >= 6
        told = "\n".join(logged)
        assert "owner GET /api/v1/search 200" in told
        assert "agent:scribe POST /api/v1/explain 200" in told
        for secret in (server.token(OWNER), server.token(TASK), "quiet-harbour", "Bearer"):
            assert secret not in told
        assert not any("\n" in line or "\r" in line for line in logged)


@pytest.mark.parametrize(
    ("host", "name"),
    [("a:1", "a"), ("A", "a"), ("[::1]", "[::1]"), ("[::1]:80", "[::1]"), ("::1", "::1"), ("a:b", "a:b"), (":1", "")],
)
def test_a_host_is_compared_without_its_port(host: str, name: str) -> None:
    assert host_name(host) == name


def test_two_origins_or_two_tokens_are_none() -> None:
    assert not is_own_origin([BASE, BASE], "127.0.0.1:8765")
    twice = Headers(raw=[(b"authorization", b"Bearer x"), (b"authorization", b"Bearer x")])
    assert token_in(twice) == ""
