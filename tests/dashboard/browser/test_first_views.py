"""The first views can be used by everybody; also what a stranger sees, and what is not there."""

from __future__ import annotations

import pytest

from tests.dashboard.browser.axe import found_in
from tests.dashboard.browser.looking import assert_is_for_everybody
from tests.dashboard.browser.tab import Tab
from tests.dashboard.browser.views import FIRST, OUTSIDE, View


@pytest.mark.parametrize("view", [*FIRST, *OUTSIDE], ids=lambda view: view.name)
def test_everybody_can_use(looking: Tab, view: View) -> None:
    assert_is_for_everybody(looking, view)


def test_what_is_wrong_with_a_page_is_found(looking: Tab) -> None:
    looking.open("/login")
    looking.page.emulate_media(color_scheme="light")
    looking.page.evaluate("document.querySelector('label').remove()")
    looking.page.evaluate("document.documentElement.style.setProperty('--ink', '#999')")
    assert {each["id"] for each in found_in(looking.page)} >= {"label", "color-contrast"}
