"""Who gets into the dashboard, by what, and where."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from notebook_sync import Notebook
from notebook_sync.services import tokens
from notebook_sync.services.tokens import TokenFile
from tests.surfaces.dashboard.conftest import PORT, shown
from tests.surfaces.serving import OWNER, token_of


def path_of(link: str) -> str:
    return f"{urlsplit(link).path}?{urlsplit(link).query}"


def test_a_login_link_counts_once(notebook: Notebook, guest: TestClient) -> None:
    link = path_of(notebook.admin.login_link(PORT))
    answer = guest.get(link, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie
    shown(guest.get("/facts"))
    guest.cookies.clear()
    shown(guest.get(link), status=403)
    shown(guest.get("/facts", follow_redirects=False), status=303)


@pytest.mark.parametrize(("kind", "life"), [("link", "LINK_LIFE"), ("cookie", "COOKIE_LIFE")])
def test_links_and_cookies_expire(
    notebook: Notebook, guest: TestClient, monkeypatch: pytest.MonkeyPatch, kind: str, life: str
) -> None:
    monkeypatch.setattr(tokens, life, timedelta(seconds=-1))
    answer = guest.get(path_of(notebook.admin.login_link(PORT)), follow_redirects=False)
    if kind == "link":
        assert answer.status_code == 403
    assert guest.get("/facts", follow_redirects=False).headers["location"] == "/login?next=/facts"


def test_the_owner_s_token_logs_in_and_wrong_ones_are_throttled(notebook: Notebook, guest: TestClient) -> None:
    origin = {"Origin": str(guest.base_url).rstrip("/")}
    codes = [guest.post("/login", data={"token": f"wrong {at}"}, headers=origin).status_code for at in range(12)]
    assert codes == [403] * 10 + [429] * 2
    right = {"token": token_of(notebook, OWNER), "next": "/facts?query=x"}
    answer = guest.post("/login", data=right, headers=origin, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/facts?query=x")
    assert guest.get("/facts").status_code == 200


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example/", "/\\evil.example", "evil", "/a\nb", ""])
def test_a_login_leads_to_own_pages_only(notebook: Notebook, guest: TestClient, wanted: str) -> None:
    link = path_of(notebook.admin.login_link(PORT))
    answer = guest.get(f"{link}&{urlencode({'next': wanted})}", follow_redirects=False)
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "other.localhost:8765", "[::1]:8765", "[::1]"])
def test_nobody_logs_in_at_a_shared_host_name(notebook: Notebook, pages: TestClient, host: str) -> None:
    cookie = {"Cookie": f"notebook={pages.cookies['notebook']}", "Host": host}
    del pages.headers["Origin"]
    assert pages.get("/facts", headers=cookie, follow_redirects=False).status_code == 303
    answer = pages.get(path_of(notebook.admin.login_link(PORT)), headers=cookie)
    shown(answer, "token link", status=403)
    assert "set-cookie" not in answer.headers


def test_a_cookie_opens_no_api_and_a_token_no_page(notebook: Notebook, pages: TestClient) -> None:
    assert pages.get("/api/v1/status").status_code == 401
    pages.cookies.clear()
    bearer = {"Authorization": f"Bearer {token_of(notebook, OWNER)}"}
    assert pages.get("/api/v1/status", headers=bearer).status_code == 200
    assert pages.get("/facts", headers=bearer, follow_redirects=False).status_code == 303
    for row in TokenFile(notebook.core.place.state).rows():
        if row.kind in ("link", "cookie"):
            wrong = {"Authorization": f"Bearer {row.secret}"}
            assert pages.get("/api/v1/status", headers=wrong).status_code == 401


def test_logging_out_ends_every_copy_of_the_cookie(pages: TestClient) -> None:
    cookie = pages.cookies["notebook"]
    assert pages.post("/logout", data={"from": "/"}, follow_redirects=False).headers["location"] == "/login"
    pages.cookies.clear()
    pages.cookies["notebook"] = cookie
    assert pages.get("/facts", follow_redirects=False).status_code == 303


def test_revoking_the_owner_s_token_ends_the_logins(notebook: Notebook, pages: TestClient) -> None:
    notebook.admin.revoke_token("owner")
    assert pages.get("/facts", follow_redirects=False).status_code == 303


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": None}, 401),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "application/json"}, 400),
    ],
)
def test_a_form_is_taken_from_own_pages_only(
    notebook: Notebook, pages: TestClient, headers: dict[str, str | None], status: int
) -> None:
    for name in [name for name, value in headers.items() if value is None]:
        del pages.headers[name]
    given = {name: value for name, value in headers.items() if value}
    answer = pages.post(
        "/facts/fact-add",
        content="content=Forged",
        headers={"Content-Type": "application/x-www-form-urlencoded"} | given,
    )
    shown(answer, "<html", status=status)
    assert not [each for each in notebook.facts.list().results if "Forged" in each.content]


def test_every_answer_forbids_what_is_inline_or_from_elsewhere(pages: TestClient) -> None:
    for path in ("/facts", "/login", "/nowhere", "/note/none", "/note/pages/hostile"):
        answer = pages.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert " style=" not in answer.text
        assert " onclick=" not in answer.text


def test_files_of_pages_are_kept_by_their_digest(guest: TestClient) -> None:
    page = guest.get("/login").text
    address = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    answer = guest.get(address)
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-encoding"] == "gzip"
    assert guest.get("/static/000000000000-style.css").status_code == 404


def test_a_row_is_written_with_its_expiry(notebook: Notebook) -> None:
    notebook.admin.login_link(PORT)
    row = next(row for row in TokenFile(notebook.core.place.state).rows() if row.kind == "link")
    assert row.expires_at is not None
    assert timedelta(minutes=9) < row.expires_at - datetime.now(UTC) <= timedelta(minutes=10)
