"""What every route refuses: a table over all routes there are, so that a new one cannot be forgotten."""

import logging
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx2
import pytest

from notebook_sync.notebook import load_operations
from notebook_sync.registry import OPERATIONS
from notebook_sync.surfaces.http.guard import LARGEST_BODY, MCP_SESSIONS, REQUESTS, STREAMS, Quota, is_own_host
from tests.surfaces.serving import BASE, OWNER, SCRIBE, STRANGER, Served, make_notebook, refusals, served, unchanged

load_operations()
API = "/api/v1"
_FILLED = {"id": "pages/plan.md", "name": "notebook_read"}


def _filled(path: str) -> str:
    """A path with a value for each of its parameters."""
    return re.sub(r"\{(\w+)[^}]*\}", lambda found: _FILLED.get(found[1], "scribe"), path)


OPEN = [("GET", f"{API}/health"), ("GET", f"{API}/openapi.json")]
BY_HAND = [
    *[("GET", f"{API}/{name}") for name in ("tools", "events", "metrics")],
    ("POST", f"{API}/tools/notebook_read"),
    *[(method, "/mcp") for method in ("GET", "POST", "DELETE")],
]
ROUTED = [each for each in OPERATIONS.values() if each.route]
GUARDED = [
    *[(method, _filled(f"{API}{path}")) for method, path in (each.route.split() for each in ROUTED)],
    *BY_HAND,
]
ROUTES = [*OPEN, *GUARDED]
WRITING = {"POST", "PUT", "PATCH"}


def sent(server: Served, method: str, path: str, headers: dict[str, Any], **more: Any) -> tuple[int, str]:
    """The answer to one request, by status and error type."""
    return typed(server.client.request(method, path, headers=headers, **(more or body_for(method))))


def body_for(method: str) -> dict[str, Any]:
    return {"json": {}} if method in WRITING else {}


def typed(answer: httpx2.Response) -> tuple[int, str]:
    """Status and error type of an answer; one that is no typed JSON error with all headers fails here."""
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["content-type"].split(";")[0] == "application/json"
    error = answer.json()["error"]
    assert {"type", "message", "next"} <= error.keys()
    assert "Traceback" not in answer.text
    return answer.status_code, error["type"]


def assert_all_answer(
    server: Served, routes: list[Any], expected: tuple[int, str], headers: dict[str, Any], query: str = "", **more: Any
) -> None:
    """Every one of the routes answers so. They are asked in the event loop of the application: the test's client goes
    there and back for each message."""

    async def ask_all() -> dict[Any, Any]:
        transport = httpx2.ASGITransport(server.client.app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
            return {
                (method, path): typed(
                    await client.request(method, path + query, headers=headers, **(more or body_for(method)))
                )
                for method, path in routes
            }

    found = server.client.portal.call(ask_all)
    assert {route: answer for route, answer in found.items() if answer != expected} == {}


def test_the_table_holds_every_route_of_the_application(server: Served) -> None:
    app: Any = server.client.app
    assert {_filled(route.path) for route in app._app.routes} == {path for _, path in ROUTES}
    assert len(ROUTES) >= 20


@pytest.mark.parametrize(
    "authorization",
    [
        *(
            None,
            "",
            "Bearer",
            "Bearer ",
            "Bearer wrong",
            "Bearer \udcff",
            "Basic {token}",
            "{token}",
            "Bearer {token}x",
        ),
        *("Bearer {half}", "Token {token}"),
    ],
)
def test_without_a_valid_token_nothing_is_answered(server: Served, authorization: str | None) -> None:
    token = server.bearer(OWNER)["Authorization"].removeprefix("Bearer ")
    headers = {}
    if authorization is not None:
        headers["Authorization"] = authorization.format(token=token, half=token[:20]).encode("utf-8", "surrogateescape")
    assert_all_answer(server, GUARDED, (401, "unauthorized"), headers)


def test_a_token_in_the_query_or_a_cookie_is_none(server: Served) -> None:
    token = server.bearer(OWNER)["Authorization"].removeprefix("Bearer ")
    query = f"?token={token}&access_token={token}"
    assert_all_answer(server, GUARDED, (401, "unauthorized"), {"Cookie": f"token={token}"}, query)


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "127.0.0.2"),
        *("[::2]", "127.0.0.1:80@evil.example", "[::1]evil.example", "localhost evil.example"),
    ],
)
def test_a_foreign_host_is_refused_with_a_valid_token_too(server: Served, host: str) -> None:
    assert_all_answer(server, ROUTES, (403, "not_permitted"), {**server.bearer(OWNER), "Host": host})


@pytest.mark.parametrize(
    "headers",
    [
        *({"Origin": origin} for origin in ("http://evil.example", "null", "", "http://127.0.0.1:1", "file://")),
        *({"Origin": origin} for origin in ("http://localhost:8765", f"{BASE}.evil.example", "http://[evil")),
        *({"Sec-Fetch-Site": site} for site in ("cross-site", "same-site")),
    ],
    ids=str,
)
def test_a_foreign_page_is_refused_with_a_valid_token_too(server: Served, headers: dict[str, str]) -> None:
    assert_all_answer(server, ROUTES, (403, "not_permitted"), {**server.bearer(OWNER), **headers})


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization", "Cookie", "Content-Type"])
def test_a_header_that_is_given_twice_is_refused(server: Served, name: str) -> None:
    value = {"Host": "127.0.0.1:8765", "Origin": BASE, **server.bearer(OWNER)}.get(name, "application/json")
    headers = [*server.bearer(OWNER).items(), (name, value)]
    headers += [] if name == "Authorization" else [(name, value)]
    assert server.client.get(f"{API}/notes", headers=headers).status_code == 400


@pytest.mark.parametrize("session", [SCRIBE, STRANGER], ids=lambda one: one.kind)
@pytest.mark.parametrize("operation", ROUTED, ids=lambda one: one.words)
def test_a_route_is_refused_to_whom_the_operation_is(server: Served, operation: Any, session: Any) -> None:
    if operation.is_listed_for(session, server.notebook.settings):
        return
    method, path = next(pair for pair in GUARDED if pair == _sent_as(operation))
    before = len(refusals(server.notebook))
    body = {"json": _usual(operation)} if method in WRITING else {}
    with unchanged(server.notebook.root):
        assert sent(server, method, path, server.bearer(session), **body) == (403, "not_permitted")
    assert len(refusals(server.notebook)) == before + 1


@pytest.mark.parametrize(
    ("path", "allowed"), [("metrics", [OWNER]), ("events", [OWNER, SCRIBE])], ids=["metrics", "events"]
)
def test_what_is_no_operation_has_sessions_too(server: Served, path: str, allowed: list[Any]) -> None:
    for session in {SCRIBE, STRANGER} - set(allowed):
        assert sent(server, "GET", f"{API}/{path}", server.bearer(session)) == (403, "not_permitted")


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", ""],
)
def test_a_body_is_taken_as_json_alone(server: Served, kind: str) -> None:
    writing = [route for route in GUARDED if route[0] in WRITING]
    headers = {**server.bearer(OWNER), "Content-Type": kind}
    assert_all_answer(server, writing, (400, "usage_error"), headers, content=b"{}")


@pytest.mark.parametrize(
    "body",
    [
        *(b'{"content": "\xff"}', b'{"content": "\\ud800"}', b'{"\\udfff": 1}', b"[" * 100_000, b"{", b"[1]", b"nul"),
        *(b'{"text":', b'{"text": NaN}', b"\xff"),
    ],
)
def test_a_body_that_is_no_json_is_an_error_of_its_client(server: Served, body: bytes) -> None:
    writing = [route for route in GUARDED if route[0] in WRITING and route[1] != "/mcp"]
    headers = {**server.bearer(OWNER), "Content-Type": "application/json"}
    assert_all_answer(server, writing, (400, "usage_error"), headers, content=body)


def test_a_body_has_a_limit_announced_or_not(server: Served) -> None:
    headers = {**server.bearer(OWNER), "Content-Type": "application/json"}
    chunk = b" " * (LARGEST_BODY // 4)
    writing = [route for route in GUARDED if route[0] in WRITING]
    assert_all_answer(server, writing, (413, "request_too_large"), headers, content=chunk * 4 + b" ")
    for method, path in writing:
        assert sent(server, method, path, headers, content=(chunk for _ in range(5)))[0] == 413
    assert server.client.post(OPEN[0][1], content=b" " * 9000).status_code == 413


def test_the_target_and_the_headers_have_limits(server: Served) -> None:
    token = server.bearer(OWNER)
    assert_all_answer(server, ROUTES, (413, "request_too_large"), token, query=f"?x={'x' * 9000}")
    assert_all_answer(server, ROUTES, (413, "request_too_large"), {**token, "X-Long": "x" * 17_000})


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/api/v1/", "/api/v2/prompt", "/api/%2e%2e/x", "/mcp/x", "/"])
def test_what_does_not_exist_is_known_to_those_with_a_token(server: Served, path: str) -> None:
    assert sent(server, "GET", path, {}) == (401, "unauthorized")
    assert sent(server, "GET", path, server.bearer(SCRIBE)) == (404, "not_found")


def test_another_method_is_not_allowed(server: Served) -> None:
    assert sent(server, "DELETE", f"{API}/prompt", server.bearer(OWNER)) == (405, "wrong_method")
    assert server.ask("OPTIONS", "/edit").headers["allow"] == "POST"


def test_the_open_routes_say_nothing_of_the_notebook(server: Served) -> None:
    assert server.ask("GET", "/health", None).json().keys() == {"ok", "version"}
    assert str(server.notebook.root) not in server.ask("GET", "/openapi.json", None).text


@pytest.mark.parametrize(
    ("call", "found"), [("statvfs", Mock(f_bavail=8, f_frsize=4096)), ("access", False)], ids=["full", "read-only"]
)
def test_it_is_not_healthy_while_the_index_cannot_be_written(
    server: Served, monkeypatch: pytest.MonkeyPatch, call: str, found: object
) -> None:
    monkeypatch.setattr(f"notebook_sync.files.state.os.{call}", lambda *_: found)
    answer = server.ask("GET", "/health", None)
    assert (answer.status_code, answer.json()["ok"]) == (503, False)
    assert str(server.notebook.core.place.state) in str(server.ask("GET", "/status").json()["attention"])


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        *((name, True) for name in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8765", "notebook-x.localhost:1")),
        *((name, True) for name in ("ferry.example", "Ferry.Example:443")),
        *((name, False) for name in ("localhostx", "::1", "[::1", "localhost:port", ".localhost@evil", "quay.example")),
    ],
)
def test_hosts_of_this_machine_and_of_the_settings_are_its_own(host: str, is_own: bool) -> None:
    assert is_own_host(host, {"ferry.example"}) == is_own


def test_allowed_hosts_are_those_of_the_settings_and_of_the_caller(folder: Path) -> None:
    toml = '[search]\nembeddings = "off"\n[server]\nallowed_hosts = ["ferry.example"]\n'
    make_notebook(folder).joinpath("notebook.toml").write_text(toml)
    with served(folder, allowed_hosts=["Pier.Example"]) as server:
        for host, status in {"ferry.example": 200, "pier.example:80": 200, "quay.example": 403}.items():
            for origin in ({}, {"Origin": f"http://{host}"}):
                assert server.ask("GET", "/notes", headers={"Host": host, **origin}).status_code == status


def test_tokens_that_others_can_read_are_worth_nothing(folder: Path) -> None:
    with served(make_notebook(folder)) as server:
        server.bearer(OWNER)
        (server.notebook.core.place.state / "tokens.json").chmod(0o644)
        assert server.ask("GET", "/notes").status_code == 409


def test_a_revoked_token_is_worth_nothing_at_once(folder: Path) -> None:
    with served(make_notebook(folder)) as server:
        assert server.ask("GET", "/notes", SCRIBE).status_code == 200
        server.notebook.admin.revoke_token("scribe")
        assert server.ask("GET", "/notes", SCRIBE).status_code == 401


def test_a_fault_is_answered_without_a_word_of_its_cause(
    server: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("rope 4711")

    monkeypatch.setattr("notebook_sync.services.finding.search_notes", fail)
    assert sent(server, "GET", f"{API}/search?query=x", server.bearer(OWNER)) == (500, "notebook_error")
    assert "4711" in caplog.text


def test_nothing_secret_and_nothing_asked_is_logged(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for path in (
        "/search?query=quiet-harbour",
        "/nowhere?query=quiet-harbour",
        "/search",
        "/notes/a%0d%0aforged%20line",
    ):
        server.ask("GET", path)
    server.ask("GET", "/notes", None, headers={"Authorization": "Bearer x-quiet-harbour"})
    server.ask("POST", "/explain", SCRIBE, json={"text": "quiet-harbour"})
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("notebook_sync")]
    assert any(line.startswith("owner GET /api/v1/search 200") for line in logged)
    assert any(line.startswith("agent:scribe POST /api/v1/explain 200") for line in logged)
    for secret in (server.bearer(OWNER)["Authorization"], "quiet-harbour", "Bearer"):
        assert secret not in "\n".join(logged)
    assert not any("\n" in line or "\r" in line for line in logged)


@pytest.mark.parametrize("quota", [REQUESTS, STREAMS, MCP_SESSIONS])
def test_a_quota_keeps_a_reserve_for_the_owner(quota: Quota) -> None:
    from collections import Counter

    from notebook_sync import Session

    held = Counter({SCRIBE: quota.each})
    assert not quota.allows(SCRIBE, held)
    assert quota.allows(STRANGER, held)
    for number in range((quota.total - quota.reserve) // quota.each):
        held[Session.task(f"agent-{number}")] = quota.each
    del held[SCRIBE]
    assert not quota.allows(STRANGER, held)
    held[OWNER] = quota.reserve - 1
    assert quota.allows(OWNER, held)
    held[OWNER] += 1
    assert not quota.allows(OWNER, held)


def _sent_as(operation: Any) -> tuple[str, str]:
    method, path = operation.route.split()
    return method, _filled(f"{API}{path}")


def _usual(operation: Any) -> dict[str, Any]:
    """What the operation needs in its body."""
    usual = {"id": "pages/plan.md", "title": "x", "text": "x", "to": "pages/x.md", "action": "write", "content": "x"}
    names = operation.arguments.__struct_fields__
    in_path = re.findall(r"{(\w+)", operation.route)
    return {
        name: usual[name] for name in names if name in usual and name not in in_path and _is_needed(operation, name)
    }


def _is_needed(operation: Any, name: str) -> bool:
    return operation.parameters[name].default is operation.parameters[name].empty
