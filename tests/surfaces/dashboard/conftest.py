"""Fixtures: the dashboard in this process, logged in (`pages`), and in Chromium at a real port (`browser`, `site`)."""

import html
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from httpx2 import Response
from jinja2 import Environment, FileSystemBytecodeCache
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from starlette.testclient import TestClient

from notebook_sync import Notebook, Session
from notebook_sync.store.rows import Is
from notebook_sync.surfaces.dashboard import shell
from notebook_sync.surfaces.http.app import asgi
from tests.services.conftest import add_settings, write_files
from tests.surfaces.serving import make_notebook, on_a_port

PORT = 8765
OWNER_PAGES = (
    *("/", "/prompt", "/prompt?session=task&text=safe", "/prompt/changes", "/reminders", "/rules?identity=bram"),
    *("/review/facts", "/review/pairs", "/review/memories", "/memory-graph"),
)
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


def days_from_now(days: int) -> str:
    """A day, as files name it."""
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}"


def make_harbour(root: Path) -> None:
    """The small notebook with hostile notes, facts and a memory."""
    make_notebook(root)
    (root / "pages/hostile.md").write_text(HOSTILE)
    (root / "pages/deep.md").write_text(HOSTILE + ">" * 40_000 + "\n")
    with Notebook.open(root) as notebook:
        notebook.sync()
        notebook.facts.add("The ferry leaves at nine")
        notebook.facts.add("<script>alert('fact')</script> is a fact")
        notebook.memories.add("Rope does not rust, and chain does.", title="Rope over chain", kind="decision")


def make_owned(root: Path) -> None:
    """The same with something on each of the owner's pages."""
    make_harbour(root)
    files = {
        "runtime/reminders.md": (
            f"# Reminders\n\n## Today\n\n- [ ] Call the mill\n- [ ] Pay the toll [due: {days_from_now(-2)}]\n"
            "- [x] Send the list\n\n## This Week\n\n"
            f"- [ ] <script>alert('reminder')</script> [due: {days_from_now(1)}]\n"
            f"- [ ] Paint the buoy [due: {days_from_now(20)}]\n\n## Recurring\n\n- Every day at 00:00: Status\n\n"
            f"## Waiting For\n\n- Answer of the insurer [expected: {days_from_now(5)}]\n"
        ),
        "runtime/external-communications.md": (
            "# External\n\n## Permanent Rules\n\n- **Odile** (odile@q.example): draft only\n\n"
            "## Temporary Instructions\n\n"
            f"- **Bram** (+31 20 555 0142): may move the ferry [until {days_from_now(2)}]\n"
            f"- **Press**: refer to Ines <script>alert('rule')</script> [until {days_from_now(30)}]\n"
        ),
        "pages/broken.md": "---\ntitle: [\n---\nx\n",
        "pages/plan (conflicted copy 2026-01-01).md": "# Copy\n",
    }
    with Notebook.open(write_files(root, files)) as notebook:
        for fact in ("The toll is ten crowns", "The toll is ten crowns each time", "Oil is sold"):
            notebook.facts.add(fact, section="Tolls" if "toll" in fact else "Trade")
        notes = root / "facts/notes.md"
        if "each time" not in notes.read_text():  # the second may have reinforced the first
            said = "ten crowns\n"
            notes.write_text(notes.read_text().replace(said, f"{said}- The toll is ten crowns each time\n"))
        notebook.sync()
        notebook.core.index.facts.update(Is("content", "=", "Oil is sold"), set={"base": 0.07})
        notebook.facts.promote("The ferry leaves at nine", Session.task("scribe"))
        notebook.memories.add("<script>alert('memory')</script> that nobody has confirmed", Session.task("scribe"))


def make_trusting(root: Path) -> None:
    """The same with a prompt that shows what is committed: everything, two days ago."""
    make_harbour(root)
    add_settings(root, '[prompt]\ntrust = "committed"\n')
    then = f"{datetime.now(UTC) - timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}"
    dated = os.environ | {"GIT_AUTHOR_DATE": then, "GIT_COMMITTER_DATE": then}
    who = ("-c", "user.name=owner", "-c", "user.email=owner@quay.example")
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "Begin"]):
        subprocess.run(["git", "-C", root, *words], check=True, env=dated)


@pytest.fixture(scope="session", autouse=True)
def _compiled_templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Templates are compiled once in a run, not once for each dashboard."""
    cache = FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shell, "Environment", partial(Environment, bytecode_cache=cache))
        yield


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """What makes the notebook: the harbour, or what the test asks for by `owned` or `trusting`."""
    makers = {"owned": make_owned, "trusting": make_trusting}
    return next((makers[name] for name in makers if name in request.fixturenames), make_harbour)


@pytest.fixture
def owned(notebook: Notebook) -> Notebook:
    """The notebook with something on each of the owner's pages."""
    return notebook


@pytest.fixture
def trusting(notebook: Notebook) -> Notebook:
    """The notebook with a prompt that shows what is committed."""
    return notebook


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
    guest.get(notebook.admin.login_link(PORT), follow_redirects=False)
    guest.headers["Origin"] = str(guest.base_url).rstrip("/")
    return guest


def shown(answer: Response, *texts: str, status: int = 200) -> str:
    """The text of an answer, which must have this status and show these texts."""
    assert answer.status_code == status, answer.text
    assert [each for each in texts if each not in answer.text] == []
    return answer.text


def texts_of(pages: TestClient, address: str, more: str) -> Iterator[str]:
    """The pages of a long list; `more` is what the link to the next one says."""
    while address:
        text = pages.get(address).text
        yield text
        link = re.search(rf'href="([^"]+)">{more}', text)
        address = html.unescape(link[1]) if link else ""


@pytest.fixture(scope="module")  # while it is there, an event loop runs in this thread
def chromium() -> Iterator[Browser]:
    """Chromium as it is installed."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None and "NOTEBOOK_TEST_REQUIRE_SERVERS" not in os.environ:
        pytest.skip("there is no Chromium")
    expect.set_options(timeout=20_000)
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


@contextmanager
def logged_in(chromium: Browser, site: Site, **options: Any) -> Iterator[Page]:
    """A tab that is logged in, of a browser with these options."""
    with chromium.new_context(**options) as context:
        page = context.new_page()
        page.goto(site.link)
        yield page


def faults_of(page: Page, site: Site) -> list[str]:
    """What a page does from now on that no note may make it do: ask others, open dialogs, break the policy."""
    found: list[str] = []
    page.on("request", lambda each: found.append(each.url) if not each.url.startswith(site.base) else None)
    page.on("dialog", lambda each: (found.append(each.message), each.dismiss()))
    page.on("console", lambda each: found.append(each.text) if each.type == "error" else None)
    return found
