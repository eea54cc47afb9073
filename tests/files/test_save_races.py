"""Races of a person against an agent, and of links against reads and writes: nothing is lost, nothing gets out."""

import itertools
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from notebook_sync.errors import NoSuchNote, NotebookError
from notebook_sync.files import save
from notebook_sync.files.save import Saver
from notebook_sync.files.tree import Tree
from tests.files.notebooks import digest, files_in, saver_of, tree_of, write
from tests.files.persons import NOTE, SAVES, agent, numbers_in, person
from tests.processes import repeating, start_process

# So many saves and changes in each run, and in a soak.
COUNTS = [40, pytest.param(4_000, marks=pytest.mark.soak)]


@pytest.mark.parametrize("saves", COUNTS)
@pytest.mark.parametrize("kind", SAVES)
def test_no_save_of_a_person_is_lost_to_an_agent_that_writes_all_the_time(
    folder: Path, kind: str, saves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {NOTE: "person 0\n"})
    saver = saver_of(folder)
    for process in (start_process(agent, folder), start_process(person, folder, kind, saves)):
        process.join()
    monkeypatch.setattr(save, "KEEP_SECONDS", -1.0)
    saver.tidy()
    recovered = [path.read_bytes() for path in (saver._place.state / "recovered").glob("*")]
    unseen = json.loads((folder / "unseen.json").read_text())
    assert set(unseen) <= set().union(*map(numbers_in, recovered)), "a save is in no file"
    assert set(files_in(folder)) <= {NOTE, "a.md~", "begun", "unseen.json"}
    assert list((folder / ".notebook/replaced").iterdir()) == []


# Links that are put in the way.

SECRET = b"not of this notebook\n"


def folder_for_link(root: Path, outside: Path) -> None:
    """The note's folder is a link that leads out, and a folder again."""
    if not (root / ".link").is_symlink():
        (root / ".link").symlink_to(outside)
    fd = os.open(root, os.O_RDONLY)
    try:
        for _ in range(2):
            save._rename(fd, "harbour", fd, ".link", save._EXCHANGE)
    finally:
        os.close(fd)


def file_for_link(root: Path, outside: Path) -> None:
    """The note is a link that leads out, and a file again."""
    note, link, real = (root / "harbour" / name for name in ("a.md", "link", "real"))
    link.symlink_to(outside / "a.md")
    with suppress(FileNotFoundError):  # the agent has just deleted it
        note.rename(real)
    link.rename(note)
    with suppress(FileNotFoundError):
        real.rename(note)


def change(tree: Tree, saver: Saver, number: int) -> bytes:
    """One change of each kind, based on what is read; returns that."""
    path = "harbour/a.md"
    try:
        raw = tree.read(path).raw
    except NoSuchNote:
        saver.create(path, b"again\n")
        return b""
    if number % 4 == 0:
        saver.delete(path, digest(raw))
    elif number % 4 == 1:
        saver.rename(path, "harbour/b.md", digest(raw))
        saver.rename("harbour/b.md", path, digest(raw))
    else:
        saver.replace(path, b"%d\n" % number, digest(raw))
    return raw


@pytest.mark.parametrize("changes", COUNTS)
@pytest.mark.parametrize("swap", [folder_for_link, file_for_link])
def test_no_read_and_no_write_follows_a_link_that_is_put_in_its_way(
    folder: Path, swap: Callable[[Path, Path], None], changes: int
) -> None:
    root, outside = folder / "notebook", folder / "outside"
    write(folder, {"notebook/harbour/a.md": b"first\n", "outside/a.md": SECRET})
    before = (files_in(outside), (outside / "a.md").stat())
    tree, saver = tree_of(root), saver_of(root)
    numbers, seen = itertools.count(), list[bytes]()
    with repeating(lambda: swap(root, outside)):
        # Each kind in turn, whether or not it succeeds: a rename back that failed leaves the other name taken.
        while len(seen) < changes:
            with suppress(NotebookError):
                seen.append(change(tree, saver, next(numbers)))
    assert (files_in(outside), (outside / "a.md").stat()) == before
    assert SECRET not in seen
