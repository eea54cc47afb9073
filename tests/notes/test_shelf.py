"""What lies in a folder, page by page, as far as who asks may know of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NoSuchNote, UnsafePath
from notebook_sync.notes.shelf import MOST


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Notebook.init(tmp_path / "notebook", git=False)
    root = tmp_path / "notebook"
    (root / "pages/harbour/old").mkdir(parents=True)
    for name in ("quay", "ferry", "Lamp"):
        (root / f"pages/harbour/{name}.md").write_text(f"# {name}\n")
    (root / "pages/harbour/chart.png").write_bytes(b"")
    (root / "pages/harbour/.hidden.md").write_text("x")
    Path(os.fsdecode(bytes(root / "pages/harbour") + b"/\xff.md")).write_text("x")
    (root / "pages/harbour/linked.md").symlink_to("quay.md")
    (root / "channels/scribe/global").mkdir(parents=True)
    (root / "channels/scribe/global/a.md").write_text("oars\n")
    return root


def test_a_folder_holds_its_folders_and_its_notes_and_nothing_below(root: Path) -> None:
    with Notebook.open(root) as notebook:
        found = notebook.shelf("pages/harbour/")
    assert found.path == "pages/harbour"
    assert found.folders == ("pages/harbour/old",)
    assert found.notes == tuple(f"pages/harbour/{name}.md" for name in ("Lamp", "ferry", "quay"))
    assert found.following == ""


def test_the_notebook_itself_is_a_folder(root: Path) -> None:
    with Notebook.open(root) as notebook:
        assert {"pages", "channels", "runtime", "memories"} <= set(notebook.shelf().folders)


def test_many_notes_come_a_page_at_a_time(root: Path) -> None:
    for number in range(2 * MOST):
        (root / f"pages/n{number:04}.md").write_text("x\n")
    with Notebook.open(root) as notebook:
        first = notebook.shelf("pages")
        second = notebook.shelf("pages", after=first.following)
    assert (len(first.notes), first.count) == (MOST, 2 * MOST)
    assert [*first.notes, *second.notes] == [f"pages/n{number:04}.md" for number in range(2 * MOST)]
    assert second.following == ""


@pytest.mark.parametrize("session", [Session.task("pilot"), Session.external("herald")], ids=str)
def test_a_folder_of_private_notes_is_not_told_of(root: Path, session: Session) -> None:
    with Notebook.open(root) as notebook:
        for place in ("channels", "channels/scribe/global", "channels/nobody/global"):
            with pytest.raises(NoSuchNote, match=place):
                notebook.shelf(place, session)


@pytest.mark.parametrize("place", ["../", "/etc", ".notebook", "pages/.."])
def test_nothing_outside_is_a_folder(root: Path, place: str) -> None:
    with Notebook.open(root) as notebook:
        if place == "pages/..":
            assert notebook.shelf(place).path == ""
        else:
            with pytest.raises(UnsafePath):
                notebook.shelf(place)


@pytest.mark.parametrize("place", ["nowhere", "pages/harbour/quay.md", "a\0b", "\ud800", "x" * 5000])
def test_what_is_no_folder_is_said_to_be_none(root: Path, place: str) -> None:
    with Notebook.open(root) as notebook, pytest.raises(NoSuchNote, match="there is no folder"):
        notebook.shelf(place)


def test_a_link_to_a_folder_elsewhere_is_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_text("x\n")
    (root / "pages/away").symlink_to(tmp_path / "outside")
    with Notebook.open(root) as notebook:
        assert "pages/away" not in notebook.shelf("pages").folders
        with pytest.raises(UnsafePath):
            notebook.shelf("pages/away")
