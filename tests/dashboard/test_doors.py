"""Who is let in to the dashboard, by what, and what a request has to show."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from fastapi.routing import iter_route_contexts

from notebook_sync import Session
from notebook_sync.folder import FOLDER
from notebook_sync.logins import COOKIE_SECONDS, LINK_SECONDS, Logins
from notebook_sync.spent import Spent
from notebook_sync.surfaces.dashboard.door import LOGIN, STATIC
from notebook_sync.surfaces.dashboard.pages import POLICY, sentence, version_of
from notebook_sync.tokens import Tokens
from tests.dashboard.browsing import Browsing, browsing, text_of
from tests.surfaces.http_clients import served

NAMED = {"{note:path}": "pages/plan.md"}


def page_routes(app: object) -> list[tuple[str, str]]:
    """Every method and path of the dashboard that not everybody may see, with something for what a path names."""
    found = []
    for context in iter_route_contexts(app.routes):  # type: ignore[attr-defined]
        if context.path.startswith(("/api/", LOGIN, STATIC)):
            continue
        path = context.path
        for name, value in NAMED.items():
            path = path.replace(name, value)
        found += [(method, path.replace("{", "").replace("}", "")) for method in context.methods or ()]
    return sorted(found)


@pytest.fixture
def stranger(root: Path) -> Iterator[Browsing]:
    """Not logged in."""
    with served(root) as found:
        yield Browsing(found)


def test_a_stranger_is_led_to_the_login_and_told_nothing(stranger: Browsing) -> None:
    found = page_routes(stranger.served.app)
    assert ("GET", "/") in found
    for method, path in found:
        answer = stranger.get(path) if method == "GET" else stranger.post(path)
        assert answer.status_code == (303 if method == "GET" else 401), (method, path)
        assert "Plan" not in answer.text
        if method == "GET":
            assert answer.headers["Location"].startswith(LOGIN)


@pytest.mark.parametrize("session", [Session.owner(), Session.task("scribe"), Session.external("herald")], ids=str)
def test_a_token_opens_no_page(stranger: Browsing, session: Session) -> None:
    headers = {"Authorization": f"Bearer {stranger.served.token(session)}"}
    for method, path in page_routes(stranger.served.app):
        answer = stranger.get(path, **headers) if method == "GET" else stranger.post(path, **headers)
        assert answer.status_code == (303 if method == "GET" else 401), (method, path)


def test_the_cookie_is_worth_nothing_to_the_api(browser: Browsing) -> None:
    assert browser.get("/").status_code == 200
    assert browser.get("/api/v1/status").status_code == 401
    assert browser.served.client.post("/api/v1/sync", json={}, headers={"Origin": browser.origin}).status_code == 401


def test_every_form_has_to_come_from_a_page_of_the_dashboard(browser: Browsing) -> None:
    posts = [path for method, path in page_routes(browser.served.app) if method == "POST"]
    assert posts
    for path in posts:
        sent = browser.served.client.post(
            path, content="a=b", headers={"Content-Type": "application/x-www-form-urlencoded"}
        )
        assert (path, sent.status_code) == (path, 403)
        for origin in ("null", "http://evil.example", "http://127.0.0.1:1"):
            assert (path, browser.post(path, Origin=origin).status_code) == (path, 403)
        for kind in ("text/plain", "application/json", "multipart/form-data; boundary=x"):
            assert (path, browser.post(path, {}, **{"Content-Type": kind}).status_code) == (path, 415)


def test_a_link_is_good_once(root: Path) -> None:
    with served(root) as found:
        code = found.app.state.logins.link_code()
        first = Browsing(found).get(f"/login?code={code}&next=/prompt")
        cookie = first.headers["Set-Cookie"]
        assert (first.status_code, first.headers["Location"]) == (303, "/prompt")
        assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={COOKIE_SECONDS}"))
        again = found.client.get(f"/login?code={code}", follow_redirects=False)
        assert again.status_code == 403
        assert "used already" in text_of(again.text)
        assert "notebook-sync token link" in text_of(again.text)


def test_a_link_and_a_cookie_end(root: Path) -> None:
    with served(root) as found:
        logins = found.app.state.logins
        code, proof = logins.link_code(), f"a {logins.cookie('a')}"
        now = time.time()
        with patch("notebook_sync.logins.time.time", lambda: now + LINK_SECONDS + 1):
            assert not logins.spend(code)
            assert logins.session_of(proof) is not None
        with patch("notebook_sync.logins.time.time", lambda: now + COOKIE_SECONDS + 1):
            assert logins.session_of(proof) is None


def test_behind_a_proxy_with_tls_the_cookie_is_sent_by_tls_alone(stranger: Browsing) -> None:
    token = stranger.served.token(Session.owner())
    plain, behind = (
        stranger.post("/login", {"token": token}, **said).headers["Set-Cookie"]
        for said in ({}, {"X-Forwarded-Proto": "https"})
    )
    assert "Secure" not in plain
    assert "Secure" in behind


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "https://evil.example", "/\\evil.example", "/\nx", "javascript:x"]
)
def test_a_login_leads_to_no_other_place(stranger: Browsing, wanted: str) -> None:
    token = stranger.served.token(Session.owner())
    assert stranger.post("/login", {"token": token, "next": wanted}).headers["Location"] == "/"


def test_the_owners_token_logs_in_and_an_agents_does_not(stranger: Browsing) -> None:
    agent = stranger.post("/login", {"token": stranger.served.token(Session.task("scribe"))})
    assert (agent.status_code, "Set-Cookie" in agent.headers) == (403, False)
    assert "not the owner's token" in text_of(agent.text)
    owner = stranger.post("/login", {"token": f" {stranger.served.token(Session.owner())}\n"})
    assert stranger.follow(owner).status_code == 200


def test_what_was_signed_for_one_thing_is_worth_nothing_for_another(root: Path) -> None:
    with served(root) as found:
        logins = found.app.state.logins
        cookie = logins.cookie("a")
        assert logins.session_of(f"a {logins.link_code()}") is None
        assert not logins.spend(cookie)
        for forged in ("", ".", "..", "99999999999.x.y", cookie[:-1], "9" + cookie, "\udcff.a.b"):
            assert logins.session_of(f"a {forged}") is None


def test_a_cookie_survives_a_restart_and_not_a_revoked_token(root: Path) -> None:
    with served(root) as found:
        proof = f"a {found.app.state.logins.cookie('a')}"
    with browsing(root) as again:
        assert again.served.app.state.logins.session_of(proof) is not None
        assert again.get("/").status_code == 200
        Tokens(root / FOLDER).revoke("owner")
        assert again.get("/").status_code == 303
        assert again.served.app.state.logins.session_of(proof) is None


def test_a_form_of_who_is_logged_out_is_answered_with_a_way_back_to_its_page(stranger: Browsing) -> None:
    answer = stranger.post("/new", {"title": "Tides"}, Referer=f"{stranger.origin}/new?folder=pages")
    assert answer.status_code == 401
    assert "You are not logged in any more. What you wrote is still in the page before:" in text_of(answer.text)
    assert 'href="/login?next=/new%3Ffolder%3Dpages"' in answer.text
    for elsewhere in ("http://evil.example/x", "http://[", ""):
        assert 'href="/login" ' in stranger.post("/new", Referer=elsewhere).text


def test_logged_out_is_out_and_so_is_every_copy_of_the_cookie(browser: Browsing) -> None:
    (cookie,) = browser.served.client.cookies.values()
    host = browser.served.app.state.logins.own_host()
    other = browser.served.app.state.logins.cookie(host)
    assert browser.post("/logout").headers["Location"] == LOGIN
    assert browser.get("/").status_code == 303
    later = Logins(Tokens(browser.root / FOLDER))
    assert tuple(later.session_of(f"{host} {each}") for each in (cookie, other)) == (None, Session.owner())


def test_what_was_spent_is_forgotten_once_it_proves_nothing(root: Path) -> None:
    spent = Spent(root / FOLDER)
    now = int(time.time())
    assert spent.add("old", now - 100)
    assert spent.add("being made", now - 1)
    assert spent.add("new", now + 100)
    assert [each in spent for each in ("old", "being made", "new")] == [False, True, True]
    assert not spent.add("new", now + 100)


def test_to_look_at_a_proof_makes_no_token(browser: Browsing) -> None:
    tokens = Tokens(browser.root / FOLDER)
    tokens.revoke("owner")
    assert (browser.get("/").status_code, browser.get("/login?code=9.x.y").status_code) == (303, 403)
    assert tokens.known_owner() is None


def test_what_a_page_may_load_and_run_is_its_own(browser: Browsing) -> None:
    for answer in (browser.get("/"), browser.get("/nowhere"), browser.get("/login")):
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["Cache-Control"] == "no-store"
        assert "<script>" not in answer.text
    assert browser.get("/nowhere").status_code == 404


def test_the_page_of_an_error_names_the_next_step(browser: Browsing) -> None:
    said = text_of(browser.get("/nowhere").text)
    assert "There is nothing at this path." in said
    assert "egin at the first page" in said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("that form cannot be read; go back", "That form cannot be read; go back."),
        ("it's over, wait!", "It's over, wait!"),
        ("Looking …", "Looking …"),
        ("pages/plan.md was changed", "pages/plan.md was changed."),
        ("`serve` is away", "`serve` is away."),
        ("notebook-sync is not set up", "notebook-sync is not set up."),
        ("server.port is no number", "server.port is no number."),
        ("it is gone; see: notebook-sync token list", "It is gone; see: notebook-sync token list"),
        (" two, at once ", "Two, at once."),
        ("", ""),
    ],
)
def test_what_an_error_says_stands_as_a_sentence(message: str, said: str) -> None:
    assert sentence(message) == said


def test_static_files_are_kept_by_their_version_and_nothing_else_is_there(stranger: Browsing) -> None:
    style = stranger.get("/static/style.css")
    assert style.headers["Content-Type"] == "text/css; charset=utf-8"
    assert "immutable" in style.headers["Cache-Control"]
    assert f"style.css?v={version_of('style.css')}" in stranger.get("/login").text
    for name in ("%2e%2e%2fpages.py", "layout.html", "style.css.bak", "pages.py", ".css", "x" * 65):
        assert stranger.get(f"/static/{name}").status_code in {404, 422}
