"""`python -m tests.dashboard_pictures` takes docs/pictures/dashboard-*.png: the dashboard of the invented ferry office,
in Debian's Chromium, on a day that never changes. With `--views FOLDER` it takes every view there instead, for looking
them over."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import NamedTuple, Self
from unittest.mock import patch

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

import notebook_sync
from notebook_sync import Notebook
from tests.dashboard import ferry_office
from tests.dashboard.browser import views
from tests.dashboard.browser.serving import Address, serving
from tests.dashboard.browser.tab import NARROW, WIDE

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
NOW = datetime(2026, 3, 3, 9, 30, tzinfo=UTC)
_WIDE = ViewportSize(width=1100, height=760)
_SWITCHES = ["--disable-gpu", "--font-render-hinting=none", *(["--no-sandbox"] if os.geteuid() == 0 else [])]


class Picture(NamedTuple):
    """`name` stands in the name of its file. `act` is done to the page before it is taken."""

    name: str
    path: str
    size: ViewportSize = _WIDE
    theme: str = "light"
    act: Callable[[Page], None] = lambda page: None


def _write(page: Page) -> None:
    text = page.get_by_label("Text", exact=True)
    text.fill(text.input_value().replace("- Answer in", "- Say at which pier, too\n- Answer in"))
    expect(page.locator("#preview")).to_contain_text("Say at which pier")


PICTURES = (
    Picture("home", "/"),
    Picture("prompt", "/prompt"),
    Picture("edit", "/edit/runtime/standing-orders.md", act=_write),
    Picture("notes", "/notes?query=crossing"),
    Picture("facts", "/memory"),
    Picture("phone", "/reminders", NARROW, "dark"),
)


def take() -> None:
    """Take all of them. They replace what is there."""
    with _office() as (browser, address):
        for picture in PICTURES:
            with _page(browser, address, picture.size, picture.theme) as page:
                page.goto(address.url + picture.path)
                picture.act(page)
                page.evaluate("document.activeElement.blur()")
                page.screenshot(path=FOLDER / f"dashboard-{picture.name}.png", animations="disabled")


def take_views(folder: Path) -> None:
    """Take every view as a whole into `folder`: wide and narrow, light and dark, as NAME-WIDTH-THEME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    with _office() as (browser, address):
        for width, size in (("wide", WIDE), ("narrow", NARROW)):
            for theme in ("light", "dark"):
                with _page(browser, address, size, theme) as page:
                    for view in views.ALL:
                        page.goto(address.url + view.path)
                        expect(page.locator("[aria-busy=true], #preview:empty")).to_have_count(0)
                        file = folder / f"{view.name}-{width}-{theme}.png"
                        page.screenshot(path=file, full_page=True, animations="disabled")


@contextmanager
def _office() -> Iterator[tuple[Browser, Address]]:
    """The ferry office, served at that moment, and a browser."""
    root = Path(tempfile.gettempdir()) / "ferry-office"  # the first page names it
    if root.exists():
        raise SystemExit(f"{root} is there already; move it away, and take the pictures again")
    try:
        with _at(NOW), sync_playwright() as playwright:
            ferry_office.make(root, NOW.date())
            _settle(root)
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_SWITCHES)
            with serving(root, watch=True) as address:
                yield browser, address
            browser.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def _page(browser: Browser, address: Address, size: ViewportSize, theme: str) -> Iterator[Page]:
    """One that is logged in."""
    context = browser.new_context(
        viewport=size, color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address.link())
    yield page
    context.close()


def _settle(root: Path) -> None:
    """All files of one age, and found by what they mean."""
    for file in root.rglob("*.md"):
        os.utime(file, (NOW.timestamp(), NOW.timestamp()))
    with Notebook.open(root) as notebook:
        notebook.sync()
        notebook.admin.embed()


@contextmanager
def _at(moment: datetime) -> Iterator[None]:
    """For all of the program it is this moment."""

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(moment.timestamp(), tz)

    for module in pkgutil.walk_packages(notebook_sync.__path__, "notebook_sync."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    patches = [
        patch.object(module, "datetime", Stopped)
        for name, module in sys.modules.items()
        if name.partition(".")[0] in {"notebook_sync", "prompt"} and getattr(module, "datetime", None) is datetime
    ]
    patches.append(patch.object(sys.modules["datetime"], "datetime", Stopped))  # for who imports it when it is called
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="Take pictures of the dashboard.")
    parser.add_argument("--views", metavar="FOLDER", type=Path, help="every view, into this folder")
    folder = parser.parse_args().views
    take_views(folder) if folder else take()


if __name__ == "__main__":
    main()
