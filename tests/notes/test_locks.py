"""Locks on notes: one holder at a time, thread or process, and no wait without end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Collection
from pathlib import Path

import pytest

from notebook_sync.errors import Refused
from notebook_sync.notes.editing.locks import FOLDER, NoteLocks
from tests.processes import PROCESSES

FERRY, PLAN = "pages/ferry.md", "pages/plan.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".notebook"


def count_up(folder: Path, counter: Path, paths: Collection[str], times: int) -> None:
    """Add 1 to the number in a file, in a way that loses counts when two do it at once."""
    locks = NoteLocks(folder)
    for _ in range(times):
        with locks.hold(paths):
            number = int(counter.read_text())
            os.sched_yield()
            counter.write_text(str(number + 1))


def die_holding(folder: Path) -> None:
    with NoteLocks(folder).hold([FERRY]):
        os.kill(os.getpid(), signal.SIGKILL)


def test_one_process_at_a_time_holds_a_note(folder: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    processes = [PROCESSES.Process(target=count_up, args=(folder, counter, [FERRY], 50)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert counter.read_text() == "150"


def test_threads_that_name_several_notes_in_any_order_do_not_block_each_other(folder: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    orders = ([FERRY, PLAN], [PLAN, FERRY], [PLAN, "pages/ropes.md", FERRY], [FERRY])
    threads = [threading.Thread(target=count_up, args=(folder, counter, paths, 50)) for paths in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_text() == "200"


def test_a_thread_may_hold_a_lock_twice(folder: Path) -> None:
    locks = NoteLocks(folder)
    with locks.hold([FERRY]):
        with locks.hold([FERRY, PLAN]):
            assert not is_free(folder, FERRY)
        assert not is_free(folder, FERRY)
        assert is_free(folder, PLAN)
    assert is_free(folder, FERRY)


def test_waiting_ends_with_an_error_that_names_the_note_and_the_lock_file(folder: Path) -> None:
    hasty = NoteLocks(folder, timeout=0)
    with NoteLocks(folder).hold([FERRY]):
        (file,) = (folder / FOLDER).iterdir()
        with pytest.raises(Refused) as refused, hasty.hold([FERRY]):
            pass
        assert str(refused.value).startswith(f"{FERRY} was locked by another writer")
        assert f"lsof {file}" in str(refused.value)
    with hasty.hold([FERRY]):
        assert not is_free(folder, FERRY)


def test_what_was_locked_before_a_timeout_is_released(folder: Path) -> None:
    last = max([FERRY, PLAN], key=lambda path: lock_of(folder, path).name)
    (first,) = {FERRY, PLAN} - {last}
    with NoteLocks(folder).hold([last]):
        with pytest.raises(Refused), NoteLocks(folder, timeout=0).hold([FERRY, PLAN]):
            pass
        assert is_free(folder, first)


def test_a_holder_that_is_killed_frees_its_lock(folder: Path) -> None:
    process = PROCESSES.Process(target=die_holding, args=(folder,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert is_free(folder, FERRY)


def test_an_error_frees_the_lock(folder: Path) -> None:
    with pytest.raises(KeyError), NoteLocks(folder).hold([FERRY]):
        raise KeyError(FERRY)
    assert is_free(folder, FERRY)


def test_where_nothing_can_be_locked_work_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".notebook").write_text("no folder")
    with NoteLocks(tmp_path / ".notebook").hold([FERRY, PLAN]):
        assert (tmp_path / ".notebook").read_text() == "no folder"


def test_a_link_in_place_of_a_lock_is_not_followed(folder: Path, tmp_path: Path) -> None:
    lock = lock_of(folder, FERRY)
    lock.unlink()
    lock.symlink_to(tmp_path / "target")
    with NoteLocks(folder).hold([FERRY]):
        assert not (tmp_path / "target").exists()


def test_any_number_of_notes_leaves_a_few_files(folder: Path) -> None:
    locks = NoteLocks(folder)
    for number in range(300):
        with locks.hold([f"pages/{number}.md"]):
            pass
    assert len(list((folder / FOLDER).iterdir())) <= 64


def test_another_thread_can_release_all_locks_before_their_end(folder: Path) -> None:
    locks = NoteLocks(folder)
    with locks.hold([FERRY, PLAN]), locks.hold(["pages/ropes.md"]):
        other = threading.Thread(target=locks.releaser())
        other.start()
        other.join()
        assert all(is_free(folder, path) for path in (FERRY, PLAN, "pages/ropes.md"))


def lock_of(folder: Path, path: str) -> Path:
    """The lock file of this note."""
    elsewhere = folder.parent / path.replace("/", "-") / folder.name
    elsewhere.parent.mkdir()
    with NoteLocks(elsewhere).hold([path]):
        (lock,) = (elsewhere / FOLDER).iterdir()
    with NoteLocks(folder).hold([path]):
        return folder / FOLDER / lock.name


def is_free(folder: Path, path: str) -> bool:
    """Whether another process could lock this note."""
    try:
        with NoteLocks(folder, timeout=0).hold([path]):
            return True
    except Refused:
        return False
