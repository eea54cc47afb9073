"""Remote clients of MCP: they register, the owner lets them in, and what an attacker tries instead is refused."""

import base64
import html
import re
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import httpx2
import msgspec
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl
from starlette.testclient import TestClient

from notebook_sync import Notebook
from notebook_sync.errors import UsageError
from notebook_sync.services import tokens
from notebook_sync.surfaces.http import oauth
from notebook_sync.surfaces.http.app import API, asgi
from tests.surfaces.serving import ACCEPT, ERAS, HELLO, OWNER, make_notebook, token_of
from tests.surfaces.test_serve import serving

PUBLIC, BACK, STATE = "https://notes.example", "http://127.0.0.1:5000/back?app=1", "s t&=ä"
VERIFIER = "v" * 50
CHALLENGE = base64.urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
NAME = "Far <b>agent</b>"


@pytest.fixture
def browser(notebook: Notebook) -> Iterator[TestClient]:
    """The owner's browser at the public address, logged in. Clients send their requests with it too."""
    app = asgi(notebook, dashboard=True, public_url="https://Notes.example:443/")
    with TestClient(app, base_url=PUBLIC, raise_server_exceptions=False) as client:
        log_in(client, token_of(notebook, OWNER))
        yield client


def log_in(browser: httpx2.Client, token: str) -> None:
    browser.headers["Origin"] = PUBLIC
    assert browser.post("/login", data={"token": token}, follow_redirects=False).status_code == 303


def register(browser: httpx2.Client, name: str = NAME, *uris: str) -> str:
    answer = browser.post("/register", json={"client_name": name, "redirect_uris": uris or [BACK]})
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["client_id"]
    return found


def asked(client_id: str, /, **changed: str) -> dict[str, str]:
    """The parameters of a good request to be let in, but for what is changed; "" leaves one out."""
    good = {"response_type": "code", "client_id": client_id, "redirect_uri": BACK, "state": STATE}
    good |= {"code_challenge": CHALLENGE, "code_challenge_method": "S256", "resource": f"{PUBLIC}/mcp"}
    return {name: value for name, value in (good | changed).items() if value}


def onward(page: httpx2.Response) -> str:
    """Where a page leads."""
    found = re.search(r'id="onward" href="([^"]*)"', page.text)
    assert found, page.text
    assert f"url={found[1]}" in page.text
    return html.unescape(found[1])


def consent(browser: httpx2.Client, address: str, **choice: str) -> httpx2.Response:
    """The answer to the form of the page that an address leads to, as a browser would send it."""
    page = browser.get(onward(browser.get(address)))
    assert page.status_code == 200, page.text
    hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.text)
    chosen = {"session": "task", "agent": "far", "answer": "allow"} | choice
    return browser.post("/consent", data={name: html.unescape(value) for name, value in hidden} | chosen)


def code_of(browser: httpx2.Client, client_id: str, **choice: str) -> str:
    answer = consent(browser, f"/authorize?{urlencode(asked(client_id))}", **choice)
    back = onward(answer)
    query = dict(parse_qsl(urlsplit(back).query))
    assert back.startswith(f"{BACK}&")
    assert (query["state"], query["iss"]) == (STATE, PUBLIC)
    return query["code"]


def redeem(browser: httpx2.Client, client_id: str, code: str, /, **changed: str) -> Any:
    good = {"grant_type": "authorization_code", "client_id": client_id, "code": code, "redirect_uri": BACK}
    good |= {"code_verifier": VERIFIER, "resource": f"{PUBLIC}/mcp"}
    return browser.post("/token", data=good | changed).json()


def refresh(browser: httpx2.Client, client_id: str, token: str) -> Any:
    given = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": token}
    return browser.post("/token", data=given).json()


def status_at_mcp(browser: httpx2.Client, token: str) -> int:
    return browser.post("/mcp", json=HELLO, headers=ACCEPT | {"Authorization": f"Bearer {token}"}).status_code


class Proxy(httpx2.AsyncHTTPTransport):
    """What is between the world and `serve` at a port of this machine: it ends TLS."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self._port)
        passed = httpx2.Request(request.method, url, headers=request.headers, stream=request.stream)
        passed.extensions = request.extensions
        return await super().handle_async_request(passed)


@pytest.mark.parametrize("mode", ERAS)
def test_a_client_registers_itself_and_works_with_what_it_was_given(folder: Path, mode: str) -> None:
    root, answers = make_notebook(folder), list[str]()
    storage = AsyncMock(get_tokens=AsyncMock(return_value=None), get_client_info=AsyncMock(return_value=None))
    with (
        Notebook.open(root) as notebook,
        serving(root, "--public-url", PUBLIC) as (_, url),
        httpx2.Client(base_url=url.removesuffix(API), headers={"Host": "notes.example"}, timeout=30) as browser,
    ):
        log_in(browser, token_of(notebook, OWNER))

        async def open_browser(address: str) -> None:
            answers.append(onward(consent(browser, address.removeprefix(PUBLIC), session="external")))

        async def wait_for_answer() -> AuthorizationCodeResult:
            query = dict(parse_qsl(urlsplit(answers[-1]).query))
            return AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query["iss"])

        async def run() -> None:
            metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(BACK)], client_name=NAME)
            provider = OAuthClientProvider(f"{PUBLIC}/mcp", metadata, storage, open_browser, wait_for_answer)
            async with (
                httpx2.AsyncClient(auth=provider, transport=Proxy(browser.base_url.port or 0), timeout=30) as sender,
                Client(streamable_http_client(f"{PUBLIC}/mcp", http_client=sender), mode=mode) as client,
            ):
                assert "notebook_delete" not in {tool.name for tool in (await client.list_tools()).tools}
                first = provider.context.current_tokens
                provider.context.token_expiry_time = 1.0
                assert (await client.call_tool("notebook_read", {"id": "channels/pilot/global/berth.md"})).is_error
            last, known = provider.context.current_tokens, provider.context.client_info
            assert last
            assert known
            assert (last == first, len(answers)) == (False, 1)
            rows = notebook.admin.list_tokens().results
            assert [(row.name, row.kind) for row in rows if row.client.startswith(f"{NAME} [")] == [("far", "external")]
            assert last.refresh_token
            assert not {last.refresh_token, last.access_token} & {
                value for row in rows for value in msgspec.structs.asdict(row).values()
            }
            notebook.admin.revoke_token("far")
            assert status_at_mcp(browser, last.access_token) == 401
            assert refresh(browser, known.client_id, last.refresh_token)["error"] == "invalid_grant"

        anyio.run(run)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"client_id": "nobody"}, "not known"),
        ({"client_id": "bnVsbA.00"}, "not known"),
        ({"redirect_uri": "https://evil.example/back"}, "redirect_uri"),
        ({"redirect_uri": f"{BACK}2"}, "redirect_uri"),
        ({"redirect_uri": BACK.replace("127.0.0.1", "127.0.0.1.evil.example")}, "redirect_uri"),
        ({"redirect_uri": ""}, "redirect_uri"),
        ({"response_type": "token"}, "response_type"),
        ({"code_challenge_method": "plain"}, "S256"),
        ({"code_challenge_method": ""}, "S256"),
        ({"code_challenge": "short"}, "code_challenge"),
        ({"code_challenge": ""}, "code_challenge"),
        ({"resource": "https://evil.example/mcp"}, "resource"),
    ],
)
def test_a_bad_request_is_shown_and_leads_nowhere(browser: TestClient, changed: dict[str, str], says: str) -> None:
    query = urlencode(asked(register(browser), **changed))
    answer = browser.get(f"/consent?{query}", follow_redirects=False)
    assert answer.status_code == 400
    assert says in answer.text
    assert "evil.example" not in answer.text
    assert 'name="proof"' not in answer.text
    twice = browser.get(f"/consent?{urlencode(asked(register(browser)))}&state=other")
    assert (twice.status_code, "given twice" in twice.text) == (400, True)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_verifier": "w" * 50}, "invalid_grant"),
        ({"code_verifier": CHALLENGE}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:5001/other"}, "invalid_grant"),
        ({"code": "x"}, "invalid_grant"),
        ({"client_id": "other"}, "invalid_grant"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"resource": "https://evil.example/mcp"}, "invalid_target"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
    ],
)
def test_a_code_is_worth_nothing_to_others(browser: TestClient, changed: dict[str, str], error: str) -> None:
    client_id, other = register(browser), register(browser, "Other")
    given = {name: other if value == "other" else value for name, value in changed.items()}
    assert redeem(browser, client_id, code_of(browser, client_id), **given)["error"] == error


@pytest.mark.parametrize("theft", ["code again", "refresh token again", "refresh token by another client"])
def test_what_was_copied_ends_all_that_came_of_the_consent(browser: TestClient, theft: str) -> None:
    client_id, other = register(browser), register(browser, "Other")
    code = code_of(browser, client_id)
    first = redeem(browser, client_id, code)
    second = refresh(browser, client_id, first["refresh_token"])
    assert [status_at_mcp(browser, each["access_token"]) for each in (first, second)] == [401, 200]
    if theft == "code again":
        stolen = redeem(browser, client_id, code)
    elif theft == "refresh token again":
        stolen = refresh(browser, client_id, first["refresh_token"])
    else:
        stolen = refresh(browser, other, second["refresh_token"])
    assert stolen["error"] == "invalid_grant"
    assert status_at_mcp(browser, second["access_token"]) == 401
    assert refresh(browser, client_id, second["refresh_token"])["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("module", "name", "life", "statuses"),
    [
        (oauth, "CODE_SECONDS", -1, [200, 401, 401]),
        (tokens, "ACCESS_LIFE", timedelta(0), [200, 401, 200]),
        (tokens, "GRANT_LIFE", timedelta(0), [200, 401, 401]),
        (oauth, "CLIENT_SECONDS", -1, [400, 200, 200]),
    ],
)
def test_all_of_it_expires(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, life: Any, statuses: list[int]
) -> None:
    client_id, unused = register(browser), f"/consent?{urlencode(asked(register(browser)))}"
    if name != "CLIENT_SECONDS":
        monkeypatch.setattr(module, name, life)
    given = redeem(browser, client_id, code_of(browser, client_id))
    monkeypatch.setattr(module, name, life)
    found = [browser.get(unused).status_code, status_at_mcp(browser, given.get("access_token", "none"))]
    monkeypatch.setattr(tokens, "ACCESS_LIFE", timedelta(hours=1))
    again = refresh(browser, client_id, given.get("refresh_token", "none"))
    assert [*found, status_at_mcp(browser, again.get("access_token", "none"))] == statuses


def test_a_client_s_token_counts_at_mcp_only_and_at_this_address(notebook: Notebook, browser: TestClient) -> None:
    client_id = register(browser)
    given = redeem(browser, client_id, code_of(browser, client_id))["access_token"]
    bearer = {"Authorization": f"Bearer {given}"}
    assert browser.get("/api/v1/status", headers=bearer).status_code == 401
    with TestClient(
        asgi(notebook, dashboard=True, public_url="https://other.example"), base_url="http://[::1]"
    ) as other:
        assert other.post("/mcp", json=HELLO, headers=ACCEPT | bearer).status_code == 401


def test_the_owner_chooses_session_and_name_and_an_owner_s_needs_a_second_yes(
    notebook: Notebook, browser: TestClient
) -> None:
    client_id, address = register(browser), f"/authorize?{urlencode(asked(register(browser)))}"
    page = browser.get(onward(browser.get(address))).text
    assert html.escape(NAME) in page
    assert NAME not in page
    assert "127.0.0.1:5000" in page
    assert page.index('value="task"') < page.index('value="external"') < page.index('value="owner"')
    notebook.admin.add_token("scribe", kind="task")
    for choice in ({"session": "owner"}, {"agent": "scribe"}, {"agent": "owner"}, {"agent": " "}, {"session": "link"}):
        answer = consent(browser, address, **choice)
        assert (answer.status_code, 'role="alert"' in answer.text) == (400, True), choice
    assert "error=access_denied" in onward(consent(browser, address, answer="deny"))
    code = code_of(browser, client_id, session="owner", confirmed="yes")
    given = redeem(browser, client_id, code)["access_token"]
    assert status_at_mcp(browser, given) == 200
    assert [each.kind for each in notebook.admin.list_tokens().results if each.name == "far"] == ["owner"]
    notebook.admin.revoke_token("owner")
    assert status_at_mcp(browser, given) == 401


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"proof": ""}, 403),
        ({"state": "other"}, 403),
        ({"headers": {"Origin": "https://evil.example"}}, 403),
        (
            {"headers": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}},
            403,
        ),
        ({"cookie": "none"}, 401),
        ({"cookie": "another login"}, 403),
    ],
)
def test_consent_is_given_from_the_page_s_form_only(
    notebook: Notebook, browser: TestClient, change: dict[str, Any], status: int
) -> None:
    page = browser.get(f"/consent?{urlencode(asked(register(browser)))}")
    fields = {name: html.unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', page.text)}
    sent = fields | {"session": "task", "answer": "allow"} | change
    headers = sent.pop("headers", {})
    if other := sent.pop("cookie", ""):
        browser.cookies.clear()
        if other != "none":
            log_in(browser, token_of(notebook, OWNER))
    answer = browser.post("/consent", data=sent, headers=headers)
    assert answer.status_code == status
    assert "code=" not in answer.text


def test_pages_cannot_be_framed_and_only_the_first_is_open_to_other_sites(browser: TestClient) -> None:
    query = urlencode(asked(register(browser)))
    arrival = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    del browser.headers["Origin"]
    for path in ("/authorize", "/consent"):
        policy = browser.get(f"{path}?{query}").headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy
    assert browser.get(f"/authorize?{query}", headers=arrival).status_code == 200
    assert browser.get(f"/authorize?{query}", headers=arrival | {"Sec-Fetch-Dest": "iframe"}).status_code == 403
    assert browser.get(f"/consent?{query}", headers=arrival).status_code == 403
    browser.cookies.clear()
    answer = browser.get(f"/consent?{query}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"][:18]) == (303, "/login?next=/conse")


@pytest.mark.parametrize(
    "uris",
    [
        *([], ["http://evil.example/"], ["javascript:alert(1)"], ["https://a.example/#x"], ["https://u:p@a.example/"]),
        *(
            ["https:///x"],
            ["http://localhost.evil.example/"],
            ['https://a.example/"><script>'],
            ["https://a.example\\@b"],
        ),
        *(["https://a.example/\n"], [f"https://a.example/{'x' * 500}"], [BACK] * 6, "https://a.example/", [1], None),
    ],
)
def test_registration_refuses_addresses_that_are_not_safe(browser: TestClient, uris: Any) -> None:
    answer = browser.post("/register", json={"redirect_uris": uris})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")


def test_registration_keeps_nothing_and_takes_little(notebook: Notebook, browser: TestClient) -> None:
    state = {path: path.read_bytes() for path in notebook.core.place.state.glob("tokens.*")}
    name = "\u202e\x00 x" * 400
    answer = browser.post("/register", json={"client_name": name, "redirect_uris": ["https://a.example/cb"]}).json()
    assert len(answer["client_name"]) <= 60
    assert answer["client_name"].isprintable()
    assert {path: path.read_bytes() for path in state} == state
    assert browser.post("/register", json={"client_name": "x" * 9000, "redirect_uris": [BACK]}).status_code == 413
    for body in (b"[" * 5000, b'{"client_name": "\xff"}'):
        assert browser.post("/register", content=body).status_code == 400
    port = register(browser, "Native", "http://127.0.0.1/cb")
    asking = asked(port, redirect_uri="http://127.0.0.1:61000/cb")
    assert browser.get(f"/consent?{urlencode(asking)}").status_code == 200


def test_without_a_public_url_nothing_of_it_exists(notebook: Notebook, browser: TestClient) -> None:
    paths = ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/authorize")
    assert [browser.get(path).status_code for path in paths] == [200] * 3
    wanted = f'resource_metadata="{PUBLIC}{paths[0]}"'
    assert wanted in browser.post("/mcp", json=HELLO, headers=ACCEPT).headers["www-authenticate"]
    for dashboard in (True, False):
        app = asgi(notebook, dashboard=dashboard)
        with TestClient(app, base_url="http://127.0.0.1:8765", raise_server_exceptions=False) as plain:
            assert [plain.get(path).status_code for path in paths] == [404] * 3
            assert [plain.post(path, data={"a": "b"}).status_code for path in ("/register", "/token")] == [404] * 2
            assert plain.post("/mcp", json=HELLO, headers=ACCEPT).headers["www-authenticate"] == "Bearer"
            assert plain.get("/login", headers={"Host": "notes.example"}).status_code == 403


@pytest.mark.parametrize(
    "url",
    ["notes.example", "http://notes.example", "https://a.example/sub", "https://u@a.example", "https://", "ftp://a"],
)
def test_a_public_url_that_is_not_safe_is_refused(notebook: Notebook, url: str) -> None:
    with pytest.raises(UsageError, match="public-url"):
        asgi(notebook, dashboard=True, public_url=url)
    with pytest.raises(UsageError, match="dashboard"):
        asgi(notebook, public_url=PUBLIC)
