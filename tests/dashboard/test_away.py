"""The dashboard of a notebook whose MongoDB is away: one question finds out, and no page waits for it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from tests.dashboard.browsing import Browsing, browsing, text_of
from tests.fault_proxy import FaultProxy
from tests.mirror.asked import listening
from tests.servers import Server
from tests.waiting import eventually

PAGES = ("/notes", "/notes?query=small", "/notes/pages/plan.md", "/memory", "/memory/memories", "/memory/checkpoints")
ROUTES = ("/notes", "/search?query=small", "/notes/pages/plan.md", "/status", "/facts")


@pytest.fixture
def proxy(mongod_to_break: Server) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", mongod_to_break.port) as proxy:
        yield proxy


@pytest.fixture
def asked() -> Iterator[Sequence[str]]:
    with listening() as asked:
        yield asked


@pytest.fixture
def browser(root: Path, proxy: FaultProxy, asked: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Browsing]:
    settings = root / "notebook.toml"
    settings.write_text(settings.read_text().replace("# timeout_seconds = 5.0", "timeout_seconds = 1.0", 1))
    monkeypatch.setenv("MONGODB_URL", f"mongodb://127.0.0.1:{proxy.port}")
    with Notebook.open(root) as notebook:
        eventually(lambda: notebook.admin.status().mirror["ok"], "a schema")
        notebook.sync()
    with browsing(root) as found:
        yield found


def test_no_page_and_no_route_asks_a_database_that_was_found_away(
    browser: Browsing, proxy: FaultProxy, asked: Sequence[str]
) -> None:
    for path in (*PAGES, "/"):
        assert browser.get(path).status_code == 200
    proxy.mode = "hang"
    assert "The list cannot be shown" in text_of(browser.get("/notes").text)
    sent = list(asked)
    for _ in range(3):
        for path in PAGES:
            assert "does not answer" in text_of(browser.get(path).text) or path == "/memory/checkpoints"
        for path in ROUTES:
            browser.served.ask("GET", path, Session.owner())
        assert "MongoDB" in text_of(browser.get("/").text)
    assert asked == sent
    proxy.mode = "pass"
    eventually(lambda: "The list cannot be shown" not in text_of(browser.get("/notes").text), "the list again")
    for path in PAGES:
        assert "does not answer" not in text_of(browser.get(path).text)
