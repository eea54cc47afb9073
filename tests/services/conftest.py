"""A small notebook of a harbour office, as real files, and the notebook opened on it.

root       its folder, not synced yet; `write_files` adds more
notebook   opened and synced, as the owner; nothing follows the files
committed  the same in a git repository
synced     a function for notebooks of other files; `copied` for those that many tests begin with
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.files.locks import write_lock
from notebook_sync.store import publish
from notebook_sync.store.rows import Is
from tests.conftest import Copies

OWNER, SCRIBE, PILOT = Session.owner(), Session.task("scribe"), Session.task("pilot")
NAMELESS, STRANGER = Session.task(), Session.external("scribe")

FILES = {
    "notebook.toml": '[notebook]\ntimezone = "UTC"\n[search]\nembeddings = "off"\n',
    "pages/ferry.md": "# Ferry\n\nThe ferry needs rope.\n\n## Fares\n\n- Three crowns\n",
    "pages/idea.md": "Only an idea.\n",
    "pages/index.md": "See [[idea]], [[idea|this]] and [x](idea.md#top).\n",
    "research_notes/ice.md": "---\ntags: [winter]\nsource_url: https://ice.example\n---\n# Ice\n\nRope freezes.\n",
    "facts/core.md": "# Core\n\n## Identity\n\n- The harbour is called Quay\n",
    "runtime/standing-orders.md": "# Standing Orders\n\n## Boundaries\n\n- Never pay\n<!-- the safe is blue -->\n",
    "runtime/reminders.md": "# Reminders\n\n## Today\n\n- [ ] Call the mill\n",
    "runtime/external-communications.md": "# External\n\n## Permanent Rules\n\n- **Odile** (o@q.example): draft only\n",
    "channels/scribe/global/plan.md": "---\ntype: note\n---\n# Plan\n\nBuy rope.\n",
    "channels/pilot/global/berth.md": "---\ntype: note\n---\n# Berth\n\nRope lies at the berth.\n",
}


def write_files(root: Path, *files: Mapping[str, str]) -> Path:
    """Write files, and the folders above them."""
    for path, text in chain.from_iterable(each.items() for each in files):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, newline="")
    return root


def add_files(notebook: Notebook, *files: Mapping[str, str]) -> None:
    """Write files, and index them."""
    write_files(notebook.root, *files)
    notebook.core.engine.sync()


def sync_files(notebook: Notebook, files: Mapping[str, str]) -> None:
    """Write files, and do all that a sync does."""
    write_files(notebook.root, files)
    notebook.sync()


def assert_raises(error: Any, call: Callable[..., object], *given: Any, match: str | None = None, **named: Any) -> Any:
    """The error that a call ends with, of this class and with this text in its message."""
    with pytest.raises(error, match=match) as raised:
        call(*given, **named)
    return raised.value


@contextmanager
def synced(root: Path, *files: Mapping[str, str]) -> Iterator[Notebook]:
    """The notebook of a folder, to which these files are added first."""
    with Notebook.open(write_files(root, *files)) as opened:
        opened.sync()
        yield opened


@contextmanager
def copied(copies: Copies, root: Path, *files: Mapping[str, str]) -> Iterator[Notebook]:
    """The same for files that many tests begin with: made once, and copied."""
    with Notebook.open(copies.put(_make_synced, root, *files)) as opened:
        assert opened.core.index.rev()
        yield opened


def _make_synced(root: Path, *files: Mapping[str, str]) -> None:
    with synced(root, *files):
        pass


def on_mongodb(url: str, database: str) -> str:
    """Settings of a notebook whose mirror is there."""
    return f'[mirror]\nurl = "{url}"\ndatabase = "{database}"\ntimeout_seconds = 60\n'


def on_redis(url: str, prefix: str) -> str:
    """Settings of a notebook whose refs are there."""
    return f'[refs]\nurl = "{url}"\nprefix = "{prefix}"\ntimeout_seconds = 60\n'


def add_settings(root: Path, text: str) -> None:
    """Add lines to the settings."""
    with (root / "notebook.toml").open("a") as settings:
        settings.write(text)


def text_of(notebook: Notebook, path: str) -> str:
    """What a note's file says."""
    return (notebook.root / path).read_bytes().decode()


def row_of(notebook: Notebook, id: str) -> dict[str, Any]:
    """What the index has of a note."""
    return notebook.core.index.documents.find(Is("id", "=", id), heavy=True)[0]


def make_repository(root: Path) -> None:
    """A git repository of all that is in the folder, committed a while ago."""
    for arguments in (
        ["init", "--quiet"],
        ["add", "-A"],
        ["commit", "--quiet", "-m", "Begin", "--date=2026-01-01T12:00Z"],
    ):
        git(root, *arguments)


def git(root: Path, *arguments: str) -> str:
    """What a git command prints."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *arguments], cwd=root, env={**os.environ, **settings}, check=True, capture_output=True
    )
    return done.stdout.decode()


@pytest.fixture(autouse=True)
def patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not a failure: git, locks, and servers that are there get a minute to answer."""
    monkeypatch.setattr("notebook_sync.files.git.ANSWER_SECONDS", 60.0)
    monkeypatch.setattr("notebook_sync.services.writing.write_lock", partial(write_lock, timeout=60.0))
    if {"mongodb_url", "redis_url", "plain_redis_url"} & set(request.fixturenames):
        monkeypatch.setattr("notebook_sync.services.originals._SECONDS", 60.0)
        run_for = publish._run_for
        monkeypatch.setattr(publish, "_run_for", lambda _, works: run_for(60.0, works))


@pytest.fixture
def root(folder: Path) -> Path:
    return write_files(folder, FILES)


@pytest.fixture
def committed(root: Path) -> Iterator[Notebook]:
    """The same in a git repository that has all of it."""
    make_repository(root)
    with Notebook.open(root) as opened:
        opened.core.engine.sync()
        yield opened


@pytest.fixture
def notebook(copies: Copies, root: Path) -> Iterator[Notebook]:
    with copied(copies, root, FILES) as opened:
        yield opened
