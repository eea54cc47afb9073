"""Fixtures: the dashboard in this process, logged in (`pages`), and in Chromium at a real port (`browser`, `site`)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from starlette.testclient import TestClient

from notebook_sync import Notebook
from notebook_sync.surfaces.http.app import asgi
from tests.surfaces.serving import make_notebook, on_a_port

PORT = 8765
HOSTILE = """# Hostile

<script>alert(1)</script> <img src="https://evil.example/a.png" onerror="alert(2)">

[link](javascript:alert(3)) [data](data:text/html,<script>alert(4)</script>) ![far](https://evil.example/b.png)

<a href="javascript:alert(5)">tag</a> [[javascript:alert(6)]] [quote](<x" onmouseover="alert(7)>)

- [ ] Buy rope
- [x] Sell <b>ice</b>

"""


@dataclass
class Site:
    """The dashboard at a port: its address without a path, and the notebook that it shows."""

    notebook: Notebook
    base: str
    link: str


@pytest.fixture
def notebook(folder: Path) -> Iterator[Notebook]:
    root = make_notebook(folder)
    (root / "pages/hostile.md").write_text(HOSTILE)
    (root / "pages/deep.md").write_text(HOSTILE + ">" * 40_000 + "\n")
    with Notebook.open(root) as opened:
        opened.sync()
        opened.facts.add("The ferry leaves at nine")
        opened.facts.add("<script>alert('fact')</script> is a fact")
        opened.memories.add("Rope does not rust, and chain does.", title="Rope over chain", kind="decision")
        yield opened


@pytest.fixture
def guest(notebook: Notebook) -> Iterator[TestClient]:
    """A browser that is not logged in, at the dashboard's host name."""
    host = urlsplit(notebook.admin.login_link(PORT)).netloc
    app = asgi(notebook, dashboard=True)
    with TestClient(app, base_url=f"http://{host}", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def pages(notebook: Notebook, guest: TestClient) -> TestClient:
    """A browser that is logged in, and sends its forms as browsers do."""
    guest.get(notebook.admin.login_link(PORT))
    guest.headers["Origin"] = str(guest.base_url).rstrip("/")
    return guest


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Chromium as it is installed."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None and "NOTEBOOK_TEST_REQUIRE_SERVERS" not in os.environ:
        pytest.skip("there is no Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def site(notebook: Notebook) -> Iterator[Site]:
    with on_a_port(asgi(notebook, dashboard=True)) as (_, port):
        link = notebook.admin.login_link(port)
        yield Site(notebook, link.partition("/login")[0], link)


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context()
    context.set_default_timeout(20_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, site: Site) -> Page:
    """A tab that is logged in."""
    page = context.new_page()
    page.goto(site.link)
    return page
