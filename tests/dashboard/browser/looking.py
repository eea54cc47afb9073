"""Looking at one view after another, wide and light, then narrow and dark: each can be read, used and is calm."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import expect

from tests.dashboard.browser.axe import found_in
from tests.dashboard.browser.tab import NARROW, WIDE, Tab
from tests.dashboard.browser.views import View

_WIDER: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def assert_is_for_everybody(tab: Tab, view: View) -> None:
    """A heading tells what it is, axe finds nothing, and no page is wider than its window."""
    page = tab.page
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")
    tab.open(view.path)
    expect(page.get_by_role("heading", level=1, name=view.heading)).to_be_visible()
    expect(page.locator("[aria-busy=true], #preview:empty")).to_have_count(0)
    assert found_in(page) == []
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(NARROW)
    assert found_in(page, looks_alone=True) == []
    assert page.evaluate(_WIDER) <= 0
    tab.assert_calm()
