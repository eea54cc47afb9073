"""Rule: other servers on this machine never receive the dashboard's cookie. Browsers send a host's cookies to all ports
of the host, so the dashboard sets and accepts no cookie at a host name that local servers share. It has a host name of
its own with a key in it, which only the owner is shown. tests/dashboard/browser shows the same with a real browser.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.logins import Logins
from notebook_sync.tokens import Tokens
from tests.dashboard.browsing import Browsing, browsing, text_of
from tests.surfaces.http_clients import BASE, served


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Notebook.init(tmp_path / "notebook", git=False)
    return tmp_path / "notebook"


def test_a_cookie_counts_at_no_other_host(root: Path) -> None:
    with browsing(root) as browser:
        (cookie,) = browser.served.client.cookies.jar
        for host in ("127.0.0.1:8765", "localhost:8765", "[::1]:8765", "other.localhost:8765"):
            answer = browser.get("/", Host=host, Cookie=f"{cookie.name}={cookie.value}")
            assert (host, answer.status_code) == (host, 303)
            assert answer.headers["Location"] == "/login"


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "[::1]:8765", "other.localhost:8765"])
def test_nobody_logs_in_at_a_name_that_other_servers_share(root: Path, host: str) -> None:
    with served(root) as found:
        browser = Browsing(found)
        code = found.app.state.logins.link_code()
        for answer in (
            browser.post("/login", {"token": found.token(Session.owner())}, Host=host, Origin=f"http://{host}"),
            browser.get(f"/login?code={code}", Host=host),
        ):
            assert (answer.status_code, "Set-Cookie" in answer.headers) == (403, False)
            assert all(told in text_of(answer.text) for told in ("notebook-sync token link", "/etc/hosts"))
        assert browser.get(f"/login?code={code}").status_code == 303  # the link still counts


def test_nobody_learns_the_name_without_a_proof(root: Path) -> None:
    with served(root) as found:
        browser = Browsing(found)
        name = found.app.state.logins.own_host()
        for answer in (
            *(browser.get(path, Host="127.0.0.1:8765") for path in ("/", "/login", "/login?code=9.x.y", "/nowhere")),
            browser.post("/login", {"token": "wrong"}, Host="127.0.0.1:8765", Origin=BASE),
        ):
            assert name not in f"{answer.text} {answer.headers}"


def test_each_notebook_has_its_own_name_and_a_new_one_after_its_token_was_revoked(tmp_path: Path) -> None:
    first, second = (Tokens(tmp_path / name) for name in ("a", "b"))
    assert Logins(first).own_host() != Logins(first).own_host()  # no token, no name that anybody could guess
    known = [Logins(tokens).link("::1", 80).partition("?")[0] for tokens in (first, first, second)]
    assert known[0] == known[1] != known[2]
    first.revoke("owner")
    assert Logins(first).link("::1", 80).partition("?")[0] not in known
