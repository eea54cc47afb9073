"""A person saves while an agent writes: at every step of the write, in every way that editors save."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notebook_sync.errors import Conflict
from notebook_sync.files import writing as module
from notebook_sync.files.disk import Disk
from notebook_sync.files.vault import Vault
from tests.files import persons
from tests.files.disks import OldDisk, fused_disk
from tests.files.persons import Save
from tests.sync.faults import Fuse

OLD, NEW, HERS, LATER = b"old\n", b"the agent's\n", b"Odile's\n", b"Odile's, again\n"
# A program that is kept waiting has come to wait well before this; one that is not kept waiting has ended.
_COME_TO_WAIT_SECONDS = 0.05

SAVES: list[Save] = [
    persons.rename_over,
    persons.write_in_place,
    persons.append,
    persons.sed,
    persons.delete_then_write,
    persons.rename_away_then_write,
]


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


class Person:
    """Saves in threads of its own, one save after the other, since the agent's lease may keep it waiting."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads: list[threading.Thread] = []

    def save(self, how: Save, text: bytes) -> None:
        before = self._threads[-1:]

        def run() -> None:
            for thread in before:
                thread.join()
            how(self._path, text)

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()
        thread.join(_COME_TO_WAIT_SECONDS)

    def is_done(self) -> None:
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()


class Desk:
    """A note that an agent changes with a person at hand."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.path = root / "a.md"
        self.path.write_bytes(OLD)
        self.vault = Vault(root)
        self.fuse = Fuse()
        self.vault.disk = fused_disk(self.fuse)
        self.person = Person(self.path)

    def change(self, act: Callable[[Vault], object]) -> bool:
        """Whether the change was made; the person is done then too."""
        try:
            act(self.vault)
        except Conflict:
            return False
        else:
            return True
        finally:
            self.person.is_done()

    def notes(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.path.parent.iterdir() if path.suffix == ".md"}

    def leftovers(self) -> list[str]:
        return [path.name for path in self.path.parent.iterdir() if path.name.startswith(".")]


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.3)


def edit(vault: Vault) -> None:
    vault.write("a.md", NEW, base=digest(OLD))


def steps_of(tmp_path: Path, act: Callable[[Vault], object]) -> int:
    """How many steps the undisturbed change takes."""
    desk = Desk(tmp_path / "undisturbed")
    assert desk.change(act)
    return desk.fuse.count


def each_moment(tmp_path: Path, act: Callable[[Vault], object]) -> Iterator[tuple[int, bool, Desk]]:
    for at in range(1, steps_of(tmp_path, act) + 1):
        for after in (False, True):
            yield at, after, Desk(tmp_path / f"{at}-{after}")


def lost(tmp_path: Path, save: Save, text: bytes = HERS) -> list[tuple[int, bool]]:
    """At which moments of an edit a person's save is lost."""
    gone = []
    for at, after, desk in each_moment(tmp_path, edit):
        desk.fuse.set(lambda desk=desk: desk.person.save(save, text), at=at, after=after)  # type: ignore[misc]
        desk.change(edit)
        found = desk.path.read_bytes()
        # What a person appends to the agent's text, once the edit is made, stands below it.
        kept = {text, OLD + text, NEW + text} if save is persons.append else {text}
        if found not in kept:
            gone.append((at, after))
    return gone


@pytest.mark.parametrize("save", SAVES)
def test_what_a_person_saves_at_any_step_of_an_edit_is_in_the_file(tmp_path: Path, save: Save) -> None:
    assert lost(tmp_path, save) == []


@pytest.mark.parametrize("save", [persons.rename_over, persons.write_in_place, persons.append])
@pytest.mark.parametrize("gap", [1, 2, 3])
def test_what_a_person_saves_next_is_in_the_file_too(tmp_path: Path, save: Save, gap: int) -> None:
    came_back = 0
    for at, after, desk in each_moment(tmp_path, edit):

        def twice(desk: Desk = desk, after: bool = after) -> None:
            desk.person.save(persons.rename_over, HERS)
            desk.fuse.set(lambda: desk.person.save(save, LATER), at=gap, after=after)

        desk.fuse.set(twice, at=at, after=after)
        desk.change(edit)
        if desk.fuse.is_set:
            continue  # the edit came to its end before the second save
        found = desk.path.read_bytes()
        assert found == (HERS + LATER if save is persons.append else LATER), (at, after)
        assert desk.leftovers() == []
        came_back += 1
    assert came_back > 5


@pytest.mark.parametrize("save", SAVES)
def test_an_edit_that_gives_way_leaves_nothing_behind(tmp_path: Path, save: Save) -> None:
    for at, after, desk in each_moment(tmp_path, edit):
        desk.fuse.set(lambda desk=desk: desk.person.save(save, HERS), at=at, after=after)  # type: ignore[misc]
        desk.change(edit)
        assert desk.leftovers() == [], (at, after)
        assert set(desk.notes()) == {"a.md"}


@pytest.mark.parametrize("save", [persons.rename_over, persons.write_in_place, persons.append, persons.sed])
@pytest.mark.parametrize("what", ["delete", "rename"])
def test_what_a_person_saves_at_any_step_of_a_deletion_or_a_rename_is_in_a_note(
    tmp_path: Path, save: Save, what: str
) -> None:
    def act(vault: Vault) -> None:
        if what == "delete":
            vault.delete("a.md", base=digest(OLD))
        else:
            vault.rename("a.md", "b.md", base=digest(OLD))

    for at, after, desk in each_moment(tmp_path, act):
        said: list[str] = []

        def try_to_save(desk: Desk = desk, said: list[str] = said) -> None:
            def trying(path: Path, text: bytes) -> None:
                try:
                    save(path, text)
                except Exception as error:  # the program tells the person that nothing was saved
                    said.append(str(error))

            desk.person.save(trying, HERS)

        desk.fuse.set(try_to_save, at=at, after=after)
        desk.change(act)
        found = desk.notes()
        assert said or any(HERS in raw for raw in found.values()), (at, after, found)


# The proof that these tests see a loss.


class _Anything:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_without_the_look_at_what_came_out_a_save_would_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "inode_of", lambda folder, name: _Anything())
    assert lost(tmp_path, persons.rename_over)


def test_without_the_look_for_who_waits_a_save_would_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Disk, "has_waiting_writer", lambda self, fd: False)
    assert lost(tmp_path, persons.write_in_place)


# Programs that keep a file open, and systems that lack something.


def test_an_edit_waits_for_a_program_that_writes_and_then_conflicts_with_what_it_wrote(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "notebook")
    with desk.path.open("wb") as file:
        file.write(HERS[:3])
        file.flush()
        with pytest.raises(Conflict, match=r"being written|changed") as early:
            edit(desk.vault)
        file.write(HERS[3:])
    assert early.value.current == digest(HERS[:3])
    with pytest.raises(Conflict) as late:
        edit(desk.vault)
    assert late.value.text == HERS.decode()
    assert desk.notes() == {"a.md": HERS}


def test_a_program_that_only_holds_the_file_open_is_told_of_as_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "notebook")
    with desk.path.open("ab"), pytest.raises(Conflict, match="is being written by another program"):
        edit(desk.vault)
    edit(desk.vault)
    assert desk.notes() == {"a.md": NEW}


@pytest.mark.parametrize("save", [persons.rename_over, persons.write_in_place])
def test_a_system_without_exchange_and_leases_looks_again_right_before_it_replaces(tmp_path: Path, save: Save) -> None:
    class Disturbed(OldDisk):
        def exchange(self, folder: int, one: str, other: str) -> None:
            save(tmp_path / "a.md", HERS)
            super().exchange(folder, one, other)

    (tmp_path / "a.md").write_bytes(OLD)
    vault = Vault(tmp_path)
    vault.disk = Disturbed()
    with pytest.raises(Conflict):
        edit(vault)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.md": HERS}


def test_the_signal_of_a_lease_ends_no_process(tmp_path: Path) -> None:
    """Whoever opens the note while it is held sends one."""
    desk = Desk(tmp_path / "notebook")
    fd = os.open(desk.path, os.O_RDONLY)
    try:
        assert Disk().lease(fd)
        desk.person.save(persons.write_in_place, HERS)
        assert Disk().has_waiting_writer(fd)
    finally:
        os.close(fd)
    desk.person.is_done()
    assert desk.notes() == {"a.md": HERS}
