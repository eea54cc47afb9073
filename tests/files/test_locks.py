"""One writer and one follower at a time, named to the others, and gone with their process."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from notebook_sync.errors import Busy, ReadOnly
from notebook_sync.files import locks
from notebook_sync.files.locks import FollowLock, write_lock
from notebook_sync.files.state import Place
from tests.processes import repeating, start_process
from tests.waiting import eventually


@pytest.fixture
def place(folder: Path) -> Place:
    return Place.open(folder)


def hold(root: Path) -> None:
    with write_lock(Place.open(root), "import"):
        (root / "held").touch()
        signal.pause()


def test_a_second_writer_learns_who_holds_the_lock(place: Place) -> None:
    holder = start_process(hold, place.root)
    eventually((place.root / "held").exists, "the other process has the lock")
    with (
        pytest.raises(Busy, match=rf"import, process {holder.pid} on .*, since 20"),
        write_lock(place, "edit", timeout=0),
    ):
        pass
    holder.kill()
    with write_lock(place, "edit"):
        assert not FollowLock(place).holds()


def test_threads_of_one_process_exclude_each_other_and_nobody_starves(place: Place) -> None:
    inside: list[int] = []
    turns = dict.fromkeys(range(8), 0)

    def work(number: int) -> None:
        for _ in range(10_000):
            with write_lock(place, "edit", timeout=60):
                inside.append(number)
                assert inside == [number]
                inside.clear()
            turns[number] += 1
            if min(turns.values()) > 2:
                return

    with ThreadPoolExecutor(len(turns)) as threads:
        list(threads.map(work, turns))
    assert max(turns.values()) < 10_000


def test_a_waiter_that_gave_up_does_not_keep_the_lock(place: Place) -> None:
    with write_lock(place, "edit"):
        for _ in range(3):
            with pytest.raises(Busy), write_lock(place, "edit", timeout=0.01):
                pass
    with write_lock(place, "edit", timeout=5):
        pass
    waiting = [thread for thread in threading.enumerate() if thread.name == "notebook-sync lock"]
    eventually(lambda: not any(thread.is_alive() for thread in waiting), "the waiting threads have ended")


def test_a_waiter_gets_the_lock_when_it_is_free(place: Place) -> None:
    lock = FollowLock(place)
    assert lock.acquire()
    other = FollowLock(place)
    with ThreadPoolExecutor(1) as thread:
        got = thread.submit(other.acquire, timeout=30)
        lock.release()
        assert got.result()
    other.release()


def test_the_follower_says_who_it_is_and_what_it_does(place: Place) -> None:
    lock, other = FollowLock(place), FollowLock(place)
    assert (other.holder(), lock.acquire()) == (None, True)
    lock.say(last_reconcile="12:00", trouble="")
    assert other.acquire() is other.acquire(timeout=0.01) is False
    said = other.holder() or {}
    assert (said["pid"], said["last_reconcile"]) == (os.getpid(), "12:00")
    assert f"process {os.getpid()}" in other.describe_holder()
    for _ in range(2):
        lock.release()
    assert (lock.holds(), other.holder()) == (False, None)


def test_asking_for_the_holder_never_makes_the_lock_look_taken(place: Place) -> None:
    with repeating(lambda: FollowLock(place).holder()):
        for _ in range(200):
            lock = FollowLock(place)
            assert lock.acquire(timeout=5)
            lock.release()


def test_a_lock_whose_file_was_removed_is_taken_again_on_the_new_file(place: Place) -> None:
    lock, other = FollowLock(place), FollowLock(place)
    assert lock.acquire()
    (place.private / "follow.lock").unlink()
    assert (lock.holds(), other.acquire()) == (False, True)
    assert (lock.acquire(), other.holds()) == (False, True)
    other.release()


def test_a_file_that_is_removed_between_opening_and_locking_is_not_believed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, removed = locks.open_private, []

    def remove_once(path: Path) -> int:
        fd = opened(path)
        if not removed:
            path.unlink()
            removed.append(path)
        return fd

    monkeypatch.setattr(locks, "open_private", remove_once)
    lock = FollowLock(place)
    assert (lock.acquire(), lock.holds()) == (True, True)
    lock.release()


def test_a_folder_without_locks_is_refused_with_the_reason(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", no_locks)
    with pytest.raises(ReadOnly, match="no locks available"), write_lock(place, "edit"):
        pass
