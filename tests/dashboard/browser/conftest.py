"""One browser for the files of this folder that a worker has in a row, one context for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.dashboard import ferry_office
from tests.dashboard.browser.serving import Address, serving
from tests.dashboard.browser.tab import PATIENCE_MS, WIDE, Tab
from tests.servers import unavailable

# Root may not start the browser in its own sandbox. The rest spares what no test needs.
_SWITCHES = ["--disable-gpu", "--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium: `apt-get install chromium`. The package scope matters: while Playwright runs, nothing else in
    this thread can run an event loop, and other files want to."""
    binary = shutil.which("chromium")
    if binary is None:
        unavailable("no chromium on PATH: apt-get install chromium")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=_SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The invented notebook, to be copied."""
    root = tmp_path_factory.mktemp("ferry") / "office"
    ferry_office.make(root, git=True)
    return root


@pytest.fixture
def root(office: Path, tmp_path: Path) -> Path:
    """One that a test may change."""
    return ferry_office.copy(office, tmp_path / "office")


@pytest.fixture
def open_tab(chromium: Browser) -> Iterator[Callable[[Address], Tab]]:
    """Opens a tab in a context of its own. What must never happen in it has not, when the test ends."""
    opened: list[Tab] = []

    def opening(address: Address) -> Tab:
        opened.append(Tab.of(chromium.new_context(viewport=WIDE), address))
        return opened[-1]

    yield opening
    for tab in opened:
        tab.page.context.close()
    for tab in opened:
        tab.assert_calm()


@pytest.fixture
def served(root: Path) -> Iterator[Address]:
    """The notebook, served; its files are not followed."""
    with serving(root) as address:
        yield address


@pytest.fixture
def tab(open_tab: Callable[[Address], Tab], served: Address) -> Tab:
    """Logged in, at the first page."""
    found = open_tab(served)
    found.log_in()
    return found


@pytest.fixture(scope="module")
def looking(chromium: Browser, office: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Logged in, for the tests of a file that only look."""
    with serving(ferry_office.copy(office, tmp_path_factory.mktemp("looking") / "office")) as address:
        found = Tab.of(chromium.new_context(viewport=WIDE), address)
        found.log_in()
        yield found
        found.page.context.close()
