"""A folder that is not what it was: nothing is deleted, in no store, because of what is only missing for now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import WouldDeleteEverything
from notebook_sync.mirror.base import Remove, Write
from notebook_sync.refs.sqlite import SqliteRefs
from notebook_sync.sync import announce

OWNER = Session.owner()


@pytest.mark.parametrize("tries", [1, 2])
def test_a_stray_note_on_an_empty_mount_point_does_not_pass_for_the_notebook(tmp_path: Path, tries: int) -> None:
    (tmp_path / ".notebook").mkdir()
    for number in range(5):
        (tmp_path / f"{number}.md").write_text(f"# {number}\n")
    with Notebook.open(tmp_path) as notebook:
        notebook.sync()
    for number in range(5):
        (tmp_path / f"{number}.md").unlink()
    (tmp_path / "NOT MOUNTED.md").write_text("The disk is not mounted.\n")
    for _ in range(tries):
        with Notebook.open(tmp_path) as notebook:
            with pytest.raises(WouldDeleteEverything):
                notebook.sync()
            assert notebook.mirror.counts()["notes"] == 5
    with Notebook.open(tmp_path) as notebook:
        report = notebook.sync(allow_empty=True)
        assert (report.added, report.deleted) == (1, 5)


def test_the_only_note_that_stands_is_gone_for_all_when_a_tool_deletes_it_and_what_is_missing_beside_it_stays(
    tmp_path: Path,
) -> None:
    (tmp_path / "missing.md").write_text("# Missing\n")
    with Notebook.open(tmp_path) as notebook:
        notebook.sync()
        path = notebook.create("pages", "The tide", "Low at four.", OWNER).path
        (tmp_path / "missing.md").unlink()
        assert notebook.delete(path, OWNER).warnings == ()
        assert list(notebook.mirror.paths()) == ["missing.md"]
        assert [row.path for row in notebook.stream.recall("tide", OWNER).results] == []
        assert notebook.stream.show(OWNER).results[-1].action == "deleted"
        with pytest.raises(WouldDeleteEverything):
            notebook.sync()


def test_a_folder_whose_notes_were_all_renamed_is_the_same_notebook(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for number in range(3):
        (tmp_path / "old" / f"{number}.md").write_text(f"# {number}\n")
    with Notebook.open(tmp_path) as notebook:
        notebook.sync()
        (tmp_path / "old").rename(tmp_path / "new")
        (tmp_path / "new" / "2.md").unlink()
        (tmp_path / "new" / "more.md").write_text("# More\n")
        report = notebook.sync()
        assert (report.moved, report.added, report.deleted) == (2, 1, 1)


def test_a_new_store_on_an_empty_mount_point_takes_no_refs_away(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n")
    with Notebook.open(tmp_path) as notebook:
        notebook.sync()
    elsewhere = tmp_path / "elsewhere.db"
    empty = tmp_path / "empty"
    empty.mkdir()
    refs = SqliteRefs(elsewhere, UTC)
    with Notebook.open(tmp_path) as notebook:
        announce.adopt(notebook.mirror, refs)
        assert len(list(refs.digests())) == 1
    with Notebook.open(empty) as other:
        announce.adopt(other.mirror, refs)
        assert len(list(refs.digests())) == 1
        announce.adopt(other.mirror, refs, even_empty=True)
        assert list(refs.digests()) == []
    refs.close()


def test_a_file_that_comes_back_while_it_is_being_deleted_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(f"# {name}\n")
    with Notebook.open(tmp_path) as notebook:
        notebook.sync()
        (tmp_path / "a.md").unlink()
        apply = notebook.mirror.apply

        def apply_late(writes: Sequence[Write]) -> list[Write]:
            if any(isinstance(write, Remove) for write in writes):
                (tmp_path / "a.md").write_text("# a.md\n")
            return apply(writes)

        monkeypatch.setattr(notebook.mirror, "apply", apply_late)
        notebook.sync()
        assert [row.path for row in notebook.mirror.known(["a.md"])] == ["a.md"]


def test_a_rebuild_keeps_the_last_good_note_of_a_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "z.md"
    path.write_text("---\nid: winter\n---\n# Winter\n")
    with Notebook.open(tmp_path) as notebook:
        notebook.sync()
        path.write_text("---\nid: [winter\n---\n# Broken\n")
        report = notebook.admin.rebuild()
        assert [each.path for each in report.failed] == ["z.md"]
        document = notebook.mirror.get("winter")
        assert document is not None
        assert document["content"] == "# Winter\n"
        assert document["stale"]
