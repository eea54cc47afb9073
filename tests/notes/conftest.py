"""Notebooks on each hot memory, for tests of what lives there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook
from tests.servers import drop_keys

HOT = ("embedded", "redis", "redis with search")
_URLS = {"redis": "redis_url", "redis with search": "redis_stack_url"}


@pytest.fixture(params=HOT)
def hot(request: pytest.FixtureRequest, redis_prefix: str) -> Iterator[str]:
    """The lines of notebook.toml that ask for each hot memory in turn."""
    if request.param == "embedded":
        yield ""
        return
    url = request.getfixturevalue(_URLS[request.param])
    yield f'[refs]\nurl = "{url}"\nprefix = "{redis_prefix}"\ntimeout_seconds = 30\n'
    drop_keys(url, redis_prefix)


def opened(root: Path, settings: str = "") -> Iterator[Notebook]:
    """The notebook in the folder, mirrored, with these settings."""
    (root / "notebook.toml").write_text(settings)
    with Notebook.open(root) as notebook:
        notebook.sync()
        yield notebook


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    """A folder of notes without settings, in no repository."""
    root = tmp_path / "harbour"
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


NOTES = {
    "runtime/reminders.md": "<!-- the watchword is heron -->\n\n## Today\n\n- [ ] Check the ropes\n",
    "pages/ferry.md": "# Ferry\n\nIt leaves at nine.\n",
    "pages/named.md": "---\nid: the-plan\ntitle: Plan\n---\nStart small.\n",
    "pages/withheld.md": "# Salaries\n\nOdile pays the heron keeper.\n",
    "code_snippets/tide.md": "# Tide\n\n```python\ntide()\n```\n",
    "facts/core.md": "# Core\n\n- The harbour is Odile's\n",
    "channels/scribe/global/own.md": "# Own\n\nQuiet water\n",
    "channels/pilot/global/private.md": "# Private\n\nThe secret berth\n",
}
