"""Whom a note's history names, whoever mirrors a text first: the tool that wrote it, or the watch beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import UnwritableFile
from notebook_sync.files.edits import Edit
from notebook_sync.files.vault import Vault
from notebook_sync.lookup import Lookup
from notebook_sync.notes.editing.authors import FOLDER, Authors
from notebook_sync.sync.watch import Batch, Ready

TASK = Session.task("scribe")
FERRY = "pages/ferry.md"
BEFORE, AFTER = "# Ferry\n\nAt ten.\n", "# Ferry\n\nAt noon.\n"


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    with Notebook.open(tmp_path) as opened:
        save(opened, BEFORE)
        yield opened


def save(notebook: Notebook, text: str) -> None:
    """Save by hand, and let a watch see it."""
    file = notebook.root / FERRY
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    mirror(notebook)


def mirror(notebook: Notebook) -> None:
    """What a watch in another process does."""
    with Notebook.open(notebook.root) as other:
        other.sync()


def history(notebook: Notebook, path: str = FERRY) -> list[tuple[str, str]]:
    return [(crumb["changed_by"], crumb["summary"]) for crumb in notebook.read(path)["history"]]


def waiting(notebook: Notebook) -> list[Path]:
    """What is told to whoever mirrors a note."""
    return list((notebook.root / ".notebook" / FOLDER).glob("*"))


@pytest.fixture
def watched_closely(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that mirrors each write before the tool that made it does."""
    write, rename = Vault.write, Vault.rename

    def write_and_mirror(vault: Vault, path: str, raw: bytes, *, base: str | None) -> Any:
        stamp = write(vault, path, raw, base=base)
        mirror(notebook)
        return stamp

    def rename_and_mirror(vault: Vault, old: str, new: str, *, base: str) -> Any:
        stamp = rename(vault, old, new, base=base)
        mirror(notebook)
        return stamp

    monkeypatch.setattr(Vault, "write", write_and_mirror)
    monkeypatch.setattr(Vault, "rename", rename_and_mirror)


@pytest.fixture
def unmirrored(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Tools whose mirror does not answer, until this is called."""
    monkeypatch.setattr(Lookup, "bring_in_step", lambda *_: ({}, "the mirror is away"))
    return monkeypatch.undo


WAYS: dict[str, Callable[[Notebook], object]] = {
    "update": lambda notebook: notebook.update(FERRY, TASK, content=AFTER),
    "edit": lambda notebook: notebook.edit(FERRY, Edit("write", content=AFTER), TASK),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("watched_closely")
def test_an_agent_is_named_where_the_watch_was_first(notebook: Notebook, way: str) -> None:
    WAYS[way](notebook)
    assert history(notebook) == [("owner", "Created"), ("agent:scribe", "Changed Ferry")]


@pytest.mark.usefixtures("watched_closely")
def test_a_note_that_is_renamed_keeps_its_past_where_the_watch_was_first(notebook: Notebook) -> None:
    made = notebook.create("pages", "Plan", "One.\n", TASK)
    notebook.update(made.path, Session.task("pilot"), content="Two.\n")
    notebook.rename(made.path, "pages/better.md", TASK)
    assert [who for who, _ in history(notebook, "pages/better.md")] == ["agent:scribe", "agent:pilot"]
    assert notebook.read(made.notebook_id)["metadata"]["version"] == 2


@pytest.mark.parametrize("place", ["pages/ferry.md", "pages"])
@pytest.mark.usefixtures("watched_closely")
def test_a_note_without_an_id_keeps_its_past_where_the_watch_was_first(notebook: Notebook, place: str) -> None:
    notebook.edit(FERRY, Edit("write", content=AFTER), TASK)
    notebook.rename(place, place.replace("pages", "quay"), TASK)
    moved = FERRY.replace("pages", "quay")
    assert history(notebook, moved) == [("owner", "Created"), ("agent:scribe", "Changed Ferry")]
    told = [entry.action for entry in notebook.stream.show(Session.owner()).results if entry.ref]
    assert told == ["created", "updated", "moved"]
    assert waiting(notebook) == []


def follow(notebook: Notebook, upto: Callable[[Batch], bool], work: Callable[[], object]) -> None:
    """Let a watch follow while this is done, until it tells of a batch like that."""
    with Notebook.open(notebook.root) as other:
        watch = other.watch()
        for event in watch.events():
            if isinstance(event, Ready):
                work()
            if isinstance(event, Batch) and upto(event):
                return


def by_hand(notebook: Notebook) -> list[list[str]]:
    return [event["paths"] for event in notebook.events.read() if event["kind"] == "changed"]


def test_what_a_tool_wrote_is_not_told_as_saved_by_hand(notebook: Notebook, unmirrored: Callable[[], None]) -> None:
    def work() -> None:
        notebook.update(FERRY, TASK, content=AFTER)
        notebook.create("pages", "Plan", "One.\n", TASK)
        notebook.rename("pages/plan.md", "pages/better.md", TASK)
        notebook.channels.write("The key hangs at the pier", TASK)
        (notebook.root / "pages/by-hand.md").write_text("By hand.\n")

    follow(notebook, lambda batch: "pages/by-hand.md" in batch.report.paths, work)
    assert by_hand(notebook) == [["pages/by-hand.md"]]


def test_what_a_tool_took_away_is_not_told_as_deleted_by_hand(
    notebook: Notebook, unmirrored: Callable[[], None]
) -> None:
    for name in ("one", "two", "three"):
        (notebook.root / f"pages/{name}.md").write_text(f"{name}\n")
    mirror(notebook)
    follow(notebook, lambda batch: batch.report.deleted > 0, lambda: notebook.delete("pages/one.md", TASK))
    assert by_hand(notebook) == []
    follow(notebook, lambda batch: batch.report.deleted > 0, (notebook.root / "pages/two.md").unlink)
    assert by_hand(notebook) == [["pages/two.md"]]


def test_of_a_tool_that_took_away_a_note_nothing_is_kept_once_that_is_mirrored(notebook: Notebook) -> None:
    notebook.create("pages", "Plan", "", TASK)
    notebook.delete("pages/plan.md", TASK)
    assert waiting(notebook) == []
    notebook.create("pages", "Plan", "", TASK)
    follow(notebook, lambda batch: batch.report.deleted > 0, (notebook.root / "pages/plan.md").unlink)
    assert by_hand(notebook) == [["pages/plan.md"]]


def test_an_agent_is_named_by_whoever_mirrors_it_later(notebook: Notebook, unmirrored: Callable[[], None]) -> None:
    told = notebook.update(FERRY, TASK, content=AFTER)
    assert told.version is None
    assert told.warnings == ("saved; the mirror follows when it can: the mirror is away",)
    unmirrored()
    mirror(notebook)
    assert history(notebook) == [("owner", "Created"), ("agent:scribe", "Changed Ferry")]


def test_a_person_is_named_who_wrote_over_it_before_it_was_mirrored(
    notebook: Notebook, unmirrored: Callable[[], None]
) -> None:
    notebook.update(FERRY, TASK, content=AFTER)
    unmirrored()
    save(notebook, "# Ferry\n\nNever.\n")
    assert history(notebook)[-1] == ("owner", "Changed Ferry")


def test_a_person_is_named_who_brings_back_what_an_agent_wrote(notebook: Notebook) -> None:
    notebook.update(FERRY, TASK, content=AFTER)
    save(notebook, BEFORE)
    save(notebook, AFTER)
    assert [who for who, _ in history(notebook)] == ["owner", "agent:scribe", "owner", "owner"]


def test_what_is_mirrored_is_told_no_longer(notebook: Notebook) -> None:
    notebook.update(FERRY, TASK, content=AFTER)
    notebook.create("pages", "Plan", "", TASK)
    assert waiting(notebook) == []


def test_what_was_not_written_is_told_of_nobody(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(vault: Vault, path: str, raw: bytes, *, base: str | None) -> Any:
        raise UnwritableFile(path, "no space left on device")

    monkeypatch.setattr(Vault, "write", fail)
    with pytest.raises(UnwritableFile):
        notebook.update(FERRY, TASK, content=AFTER)
    monkeypatch.undo()
    assert waiting(notebook) == []
    save(notebook, AFTER)
    assert history(notebook)[-1][0] == "owner"


def test_what_waits_for_a_mirror_is_little(notebook: Notebook, unmirrored: Callable[[], None]) -> None:
    for number in range(10):
        notebook.update(FERRY, TASK, content=f"{number}\n")
    (file,) = waiting(notebook)
    assert file.stat().st_size < 500


def test_where_nothing_can_be_kept_the_agent_is_named_all_the_same(notebook: Notebook) -> None:
    (notebook.root / ".notebook" / FOLDER).write_text("no folder")
    notebook.update(FERRY, TASK, content=AFTER)
    assert history(notebook)[-1][0] == "agent:scribe"


@pytest.mark.parametrize("kept", ["", "{", "[]", "[1]", '[["a"]]', "[[1, 2, 3]]", "\xff"])
def test_what_cannot_be_read_there_names_nobody(tmp_path: Path, kept: str) -> None:
    authors = Authors(tmp_path)
    authors.announce(FERRY, "digest", "agent:scribe")
    assert authors.of(FERRY, "digest") == "agent:scribe"
    (file,) = (tmp_path / FOLDER).iterdir()
    file.write_bytes(kept.encode("latin-1"))
    assert authors.of(FERRY, "digest") == ""
