"""Servers that die while a page is open: what needs them says so, the rest goes on; all is well once they are back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect

from tests.dashboard.browser.serving import Address, serving
from tests.dashboard.browser.tab import Tab
from tests.servers import Server

# A store that was away is asked again after a while, and a page looks again after another.
_UNTIL_ASKED_AGAIN_MS: Final = 90_000


@pytest.fixture
def address(
    root: Path, mongod_to_break: Server, redis_to_break: Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Address]:
    settings = root / "notebook.toml"
    text = settings.read_text(encoding="utf-8")
    patient = ("# timeout_seconds = 5.0", "# timeout_seconds = 2.0")
    assert all(line in text for line in patient)
    for line in patient:
        text = text.replace(line, "timeout_seconds = 1.0", 1)
    settings.write_text(text, encoding="utf-8")
    monkeypatch.setenv("MONGODB_URL", mongod_to_break.url)
    monkeypatch.setenv("REDIS_URL", redis_to_break.url)
    with serving(root, watch=True) as address:
        yield address


def test_a_dead_database_is_told_and_survived(
    open_tab: Callable[[Address], Tab], address: Address, mongod_to_break: Server, redis_to_break: Server
) -> None:
    tab = open_tab(address)
    tab.log_in()
    expect(tab.page.get_by_text("has been told everything")).to_be_visible()
    mongod_to_break.kill()
    redis_to_break.kill()
    tab.open("/")
    expect(tab.page.get_by_text("Connection refused").first).to_be_visible(timeout=_UNTIL_ASKED_AGAIN_MS)

    tab.open("/notes")
    expect(tab.page.get_by_role("heading", name="The list cannot be shown")).to_be_visible()
    tab.open("/prompt")
    expect(tab.page.get_by_text("The stable part")).to_be_visible()
    tab.open("/edit/pages/tides.md")
    tab.page.locator("textarea.text").fill("# Tides\n\nWritten while all were away.\n")
    tab.page.get_by_role("button", name="Save").click()
    expect(tab.page.get_by_text("saved; the mirror follows when it can")).to_be_visible()
    tab.open("/notes/pages/tides.md")
    expect(tab.page.get_by_text("Written while all were away.")).to_be_visible()
    expect(tab.page.get_by_text("What the file says is shown all the same")).to_be_visible()
    assert "Written while all were away." in (address.root / "pages/tides.md").read_text(encoding="utf-8")

    mongod_to_break.restart()
    redis_to_break.restart()
    tab.open("/")
    for said in ("The mirror is what the files say", "has been told everything"):
        expect(tab.page.get_by_text(said)).to_be_visible(timeout=_UNTIL_ASKED_AGAIN_MS)
    tab.open("/notes/pages/tides.md")
    expect(tab.page.get_by_text("Written while all were away.")).to_be_visible()
    expect(tab.page.get_by_text("is shown all the same")).to_have_count(0)
