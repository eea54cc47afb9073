"""A notebook with a dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync.notebook import Notebook
from tests.dashboard.browsing import Browsing, browsing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A notebook as `init` makes it, without git, with one page, in step with its mirror."""
    root = tmp_path / "notebook"
    Notebook.init(root, git=False)
    (root / "pages/plan.md").write_text("# Plan\n\nStart small.\n\n## Budget\n\n100\n")
    with Notebook.open(root) as notebook:
        notebook.sync()
    return root


@pytest.fixture
def browser(root: Path) -> Iterator[Browsing]:
    """Logged in as the owner."""
    with browsing(root) as found:
        yield found
