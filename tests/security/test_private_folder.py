"""Rule: `.notebook` and its folders have mode 0700 and the files in it 0600, whatever the umask is. If an earlier
version or another program left any of them open to other users, opening the notebook corrects the modes and logs a
warning.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Edit, Notebook, Session
from notebook_sync.doctor import examine
from notebook_sync.folder import FOLDER
from notebook_sync.sync.lock import watch_lock
from notebook_sync.tokens import Tokens
from tests.surfaces.http_clients import served

OWNER, SCRIBE = Session.owner(), Session.task("scribe")


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Everything that does not ask for a mode is open to everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notebook"
    Notebook.init(root)
    return root


def open_to_others(root: Path) -> dict[str, str]:
    places = [root / FOLDER, *(root / FOLDER).rglob("*")]
    modes = {str(place.relative_to(root)): stat.S_IMODE(place.lstat().st_mode) for place in places}
    return {place: oct(mode) for place, mode in modes.items() if mode & 0o077}


def use(root: Path) -> None:
    """Have every kind of file made that a notebook keeps for itself."""
    with Notebook.open(root) as notebook, watch_lock(root / FOLDER):
        notebook.sync()
        notebook.create("pages", "The night ferry", "It leaves at ten.", SCRIBE)
        notebook.channels.write("Low water", SCRIBE)
        notebook.edit("runtime/standing-orders.md", Edit("add_section", section="Ferries", content="Ask."), OWNER)
        notebook.stream.checkpoint()
        notebook.stream.log("Low water", SCRIBE)
        notebook.prompt(SCRIBE)
        notebook.prompts.tell_due()
        notebook.do_chores()
        assert {f"{FOLDER}/{name}" for name in ("mirror.db", "mirror.db-wal", "mirror.db-shm", "counts.json")} <= {
            str(path.relative_to(root)) for path in (root / FOLDER).iterdir()
        }
        assert open_to_others(root) == {}


def test_all_that_is_made_is_private(root: Path) -> None:
    use(root)
    with served(root) as found:
        logins = found.app.state.logins
        assert logins.spend(logins.link_code())
    examine(root)
    assert open_to_others(root) == {}


def test_a_folder_made_by_whatever_comes_first_is_private(tmp_path: Path) -> None:
    for first in (lambda root: Tokens(root / FOLDER).owner(), lambda root: Notebook.open(root).sync()):
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        root.mkdir()
        first(root)
        assert open_to_others(root) == {}
        assert (root / FOLDER / ".gitignore").read_text() == "*\n"


def test_what_was_left_open_is_closed_with_a_message(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    use(root)
    with Notebook.open(root):
        assert caplog.records == []
    for place in (root / FOLDER, *(root / FOLDER).rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    with Notebook.open(root):
        assert open_to_others(root) == {}
    (said,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "open to other users" in said.getMessage()


def test_a_file_left_open_in_a_closed_folder_is_closed(root: Path) -> None:
    use(root)
    (root / FOLDER / "mirror.db").chmod(0o644)
    with Notebook.open(root):
        assert open_to_others(root) == {}


def test_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "shared.md").write_text("For everybody.\n")
    (root / FOLDER / "link").symlink_to(elsewhere)
    Notebook.open(root).close()
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o777
    assert stat.S_IMODE((elsewhere / "shared.md").stat().st_mode) == 0o666


def test_an_archive_is_private_and_so_is_what_is_imported(root: Path, tmp_path: Path) -> None:
    use(root)
    with Notebook.open(root) as notebook:
        exported = notebook.admin.export(tmp_path / "office.tar.gz")
    assert stat.S_IMODE(Path(exported.path).stat().st_mode) == 0o600
    Notebook.import_archive(exported.path, tmp_path / "copy")
    assert open_to_others(tmp_path / "copy") == {}
