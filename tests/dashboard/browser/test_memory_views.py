"""The views of what agents remember can be used by everybody."""

from __future__ import annotations

import pytest

from tests.dashboard.browser.looking import assert_is_for_everybody
from tests.dashboard.browser.tab import Tab
from tests.dashboard.browser.views import MEMORY, View


@pytest.mark.parametrize("view", MEMORY, ids=lambda view: view.name)
def test_everybody_can_use(looking: Tab, view: View) -> None:
    assert_is_for_everybody(looking, view)
