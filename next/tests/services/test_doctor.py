"""`doctor`: what is wrong is named with the step that helps, and nothing is left behind."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.registry import OPERATIONS
from notebook_sync.services.admin import Check
from tests.services.conftest import write_files

EXIT = OPERATIONS["doctor"].exit_code


def wrong(notebook: Notebook) -> dict[str, Check]:
    return {each.check: each for each in notebook.admin.doctor().results if not each.ok}


def test_a_sound_notebook_is_right_and_left_as_it_was(notebook: Notebook) -> None:
    before = sorted(path.name for path in notebook.root.iterdir())
    found = notebook.admin.doctor()
    assert [each for each in found.results if not each.ok] == []
    names = {"settings", "python", "git", "folder", "state", "editors", "servers"}
    assert names <= {each.check for each in found.results}
    assert (sorted(path.name for path in notebook.root.iterdir()), EXIT(found)) == (before, 0)


def test_settings_in_error_are_named_and_the_rest_is_still_checked(folder: Path) -> None:
    write_files(folder, {"notebook.toml": "[prompt\n", "a.md": "x"})
    with Notebook.open(folder) as notebook:
        found = wrong(notebook)
        assert "notebook.toml:1" in found["settings"].message
        assert found["settings"].next == f"edit {folder / 'notebook.toml'}"
        assert EXIT(notebook.admin.doctor()) == 1


def test_what_editors_and_sync_clients_left_behind(notebook: Notebook) -> None:
    names = ("pages/.ferry.md.swp", "pages/.idea.md.icloud", "facts/core.sync-conflict-20261120-093012-ABCD123.md")
    write_files(notebook.root, dict.fromkeys(names, ""))
    found = [each for each in notebook.admin.doctor().results if each.check == "editors"]
    assert [(name in each.message, bool(each.next)) for name, each in zip(sorted(names), found, strict=True)]
    assert {each.next.split(",")[0] for each in found} >= {"download them in the sync client", "recover it"}


def test_a_server_that_does_not_answer_is_a_kind_of_its_own(notebook: Notebook) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    write_files(
        notebook.root,
        {"notebook.toml": f'[refs]\nurl = "redis://u:secret@127.0.0.1:{port}"\n[search]\nembeddings = "off"\n'},
    )
    found = notebook.admin.doctor()
    (server,) = (each for each in found.results if not each.ok)
    assert (server.check, server.is_server, "secret" in str(found), EXIT(found)) == ("servers", True, False, 4)


def test_a_state_folder_that_cannot_be_made(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTEBOOK_STATE_DIR", "/dev/null/state")
    with Notebook.open(root) as notebook:
        assert "NOTEBOOK_STATE_DIR" in wrong(notebook)["state"].next
