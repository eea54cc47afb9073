"""What axe-core finds wrong with a page for people who do not see it, hear it or reach it as others do."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

from tests.servers import unavailable

# Rules whose answer depends on colours and on how wide the page is.
_OF_LOOKS: Final = ("color-contrast", "target-size", "scrollable-region-focusable", "link-in-text-block")
_RUN: Final = """async (rules) => {
  const only = rules.length ? {runOnly: {type: 'rule', values: rules}} : {};
  // A note's own headings begin where its author lets them.
  const enabled = {rules: {'target-size': {enabled: true}, 'heading-order': {enabled: false}}};
  const found = await axe.run(document, {resultTypes: ['violations'], ...enabled, ...only});
  return found.violations.map(({id, impact, help, nodes}) => ({id, impact, help, at: nodes.map((each) => each.html)}));
}"""


@cache
def source() -> str:
    """The program, as npm installs it below NOTEBOOK_TEST_NODE_MODULES."""
    folder = os.environ.get("NOTEBOOK_TEST_NODE_MODULES", "")
    program = Path(folder) / "axe-core" / "axe.min.js"
    if not folder or not program.is_file():
        unavailable("NOTEBOOK_TEST_NODE_MODULES names no folder with axe-core in it: npm install axe-core")
    return program.read_text(encoding="utf-8")


def found_in(page: Page, *, looks_alone: bool = False) -> list[dict[str, Any]]:
    """What is wrong with the page as it is now: rule, impact, what it is about, and the elements."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(source())
    told: list[dict[str, Any]] = page.evaluate(_RUN, list(_OF_LOOKS) if looks_alone else [])
    return told
