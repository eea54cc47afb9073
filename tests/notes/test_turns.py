"""Turns at a note: one at a time, by any thread or process, and never for ever."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Collection
from pathlib import Path

import psutil
import pytest

from notebook_sync.notes.editing import turns
from notebook_sync.notes.editing.turns import FOLDER, Turns
from tests.processes import PROCESSES
from tests.waiting import eventually

FERRY, PLAN = "pages/ferry.md", "pages/plan.md"
SHORT = 0.05


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".notebook"


def count_up(folder: Path, counter: Path, paths: Collection[str], times: int) -> None:
    """Add 1 to the number in a file, in a way that loses counts when two do it at once."""
    turns = Turns(folder)
    for _ in range(times):
        with turns.of(paths):
            number = int(counter.read_text())
            os.sched_yield()
            counter.write_text(str(number + 1))


def test_processes_take_turns(folder: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    processes = [PROCESSES.Process(target=count_up, args=(folder, counter, [FERRY], 50)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert counter.read_text() == "150"


def test_threads_take_turns_at_several_notes_in_whatever_order_they_are_named(folder: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    orders = ([FERRY, PLAN], [PLAN, FERRY], [PLAN, "pages/ropes.md", FERRY], [FERRY])
    threads = [threading.Thread(target=count_up, args=(folder, counter, paths, 50)) for paths in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_text() == "200"


def test_who_has_a_turn_may_take_it_again(folder: Path) -> None:
    turns = Turns(folder, patience=3600)
    with turns.of([FERRY]):
        with turns.of([FERRY, PLAN]):
            assert not is_free(folder, FERRY)
        assert not is_free(folder, FERRY)
        assert is_free(folder, PLAN)
    assert is_free(folder, FERRY)


def test_a_turn_that_is_not_given_up_is_gone_without(folder: Path) -> None:
    with Turns(folder).of([FERRY]), Turns(folder, patience=SHORT).of([FERRY]):
        assert not is_free(folder, FERRY)


def test_a_queue_that_moves_is_not_left_however_long_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = [folder, folder]
    with contextlib.ExitStack() as held:
        held.enter_context(Turns(folder).of([FERRY]))

        def pass_on(event: threading.Event, _: float) -> bool:
            """The time runs out, and meanwhile another has the turn; at the end whoever asks here."""
            if not ahead:
                held.close()
                return event.wait()
            ahead.pop()
            (lock,) = (folder / FOLDER).iterdir()
            lock.write_bytes(os.urandom(8))
            return False

        monkeypatch.setattr(turns, "is_set_within", pass_on)
        with Turns(folder).of([FERRY]):
            assert not ahead
            assert not is_free(folder, FERRY)
            (lock,) = (folder / FOLDER).iterdir()
            mark = lock.read_bytes()
    with Turns(folder).of([FERRY]):
        assert lock.read_bytes() != mark


def test_who_goes_without_a_turn_does_not_wait_for_it_again(folder: Path) -> None:
    with Turns(folder).of([FERRY]), (turns := Turns(folder, patience=SHORT)).of([FERRY]):
        queueing = threading.active_count()
        with turns.of([FERRY]):
            assert threading.active_count() == queueing


def test_who_was_out_of_patience_keeps_nobody_waiting(folder: Path) -> None:
    with Turns(folder).of([FERRY]), Turns(folder, patience=SHORT).of([FERRY]):
        pass
    eventually(lambda: is_free(folder, FERRY), "the turn is free")


def test_a_turn_ends_with_what_it_was_taken_for(folder: Path) -> None:
    with pytest.raises(KeyError), Turns(folder).of([FERRY]):
        raise KeyError(FERRY)
    assert is_free(folder, FERRY)


def test_where_nothing_can_be_locked_work_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".notebook").write_text("no folder")
    with Turns(tmp_path / ".notebook", patience=3600).of([FERRY, PLAN]):
        assert (tmp_path / ".notebook").read_text() == "no folder"


def test_a_link_in_place_of_a_lock_is_not_followed(folder: Path, tmp_path: Path) -> None:
    with Turns(folder).of([FERRY]):
        (lock,) = (folder / FOLDER).iterdir()
    lock.unlink()
    lock.symlink_to(tmp_path / "target")
    with Turns(folder).of([FERRY]):
        assert not (tmp_path / "target").exists()


def test_any_number_of_notes_leaves_a_few_files(folder: Path) -> None:
    turns = Turns(folder)
    for number in range(300):
        with turns.of([f"pages/{number}.md"]):
            pass
    assert len(list((folder / FOLDER).iterdir())) <= 64


def test_whoever_waits_has_the_turn_as_soon_as_it_is_given_up(folder: Path) -> None:
    had = threading.Event()

    def wait() -> None:
        with Turns(folder, patience=3600).of([FERRY]):
            had.set()

    with Turns(folder).of([FERRY]):
        queues = count_of_queueing()
        waiting = threading.Thread(target=wait)
        waiting.start()
        eventually(lambda: count_of_queueing() > queues, "it queues for the turn")
        assert not had.is_set()
    eventually(had.is_set, "the turn is had")
    waiting.join()


def test_a_turn_can_be_given_up_from_another_thread_before_its_end(folder: Path) -> None:
    turns = Turns(folder)
    with turns.of([FERRY, PLAN]):
        with turns.of(["pages/ropes.md"]):
            other = threading.Thread(target=turns.mine())
            other.start()
            other.join()
            assert all(is_free(folder, path) for path in (FERRY, PLAN, "pages/ropes.md"))
        with Turns(folder).of([FERRY]), turns.of([FERRY]):
            assert not is_free(folder, FERRY)


def test_however_many_run_out_of_patience_only_a_few_stay_in_the_queue(folder: Path) -> None:
    hasty = Turns(folder, patience=0)
    queues, descriptors = count_of_queueing(), psutil.Process().num_fds()
    with Turns(folder).of([FERRY]):
        for _ in range(50):
            with hasty.of([FERRY]):
                pass
        assert 0 < count_of_queueing() - queues < 10
        assert psutil.Process().num_fds() - descriptors < 12
    eventually(lambda: count_of_queueing() == queues, "the queue is left")
    assert is_free(folder, FERRY)
    with hasty.of([FERRY]):
        assert not is_free(folder, FERRY)


def count_of_queueing() -> int:
    return sum(thread.name == "turn" for thread in threading.enumerate())


def is_free(folder: Path, path: str) -> bool:
    """Whether another program could have the turn at this note."""
    elsewhere = folder.parent / "elsewhere" / path
    elsewhere.mkdir(parents=True, exist_ok=True)
    with Turns(elsewhere).of([path]):
        (lock,) = (elsewhere / FOLDER).iterdir()
    try:
        with (folder / FOLDER / lock.name).open() as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError) as error:
        return isinstance(error, FileNotFoundError)
    return True
