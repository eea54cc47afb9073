"""The event log: whole lines from many writers, torn ones skipped, put aside by size, followed over both."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from notebook_sync import Session
from notebook_sync.events import FILE, OLDER, Event, Events
from tests.processes import PROCESSES
from tests.waiting import eventually

TASK = Session.task("scribe")


def test_an_event_tells_when_what_and_who(tmp_path: Path) -> None:
    events = Events(tmp_path)
    recorded = events.record("edit", TASK, path="pages/plan.md", version=2)
    assert recorded is not None
    assert events.read() == [recorded]
    assert {name: recorded[name] for name in ("kind", "session", "agent", "path", "version")} == {
        "kind": "edit",
        "session": "task",
        "agent": "scribe",
        "path": "pages/plan.md",
        "version": 2,
    }
    assert recorded["at"].endswith("+00:00")


def test_a_long_text_is_cut(tmp_path: Path) -> None:
    Events(tmp_path).record("edit", TASK, reason="tide " * 1000)
    [event] = Events(tmp_path).read()
    assert len(event["reason"]) == 300


def test_line_ends_in_a_text_do_not_end_the_line(tmp_path: Path) -> None:
    Events(tmp_path).record("edit", TASK, reason="a\nb\u2028c\x85d")
    assert [event["reason"] for event in Events(tmp_path).read()] == ["a\nb\u2028c\x85d"]


def test_a_torn_line_is_skipped_and_does_not_take_the_next_one_along(tmp_path: Path) -> None:
    events = Events(tmp_path)
    events.record("edit", TASK, path="a.md")
    with (tmp_path / FILE).open("a") as log:
        log.write('{"id": "0", "kind": "ed')
    events.record("edit", TASK, path="b.md")
    assert [event["path"] for event in events.read()] == ["a.md", "b.md"]


@pytest.mark.parametrize("line", ["[]", "3", "{}", '{"id": 3}', "\udcff", "nonsense"])
def test_a_line_that_is_no_event_is_skipped(tmp_path: Path, line: str) -> None:
    (tmp_path / FILE).write_bytes(line.encode("utf-8", "surrogateescape") + b"\n")
    Events(tmp_path).record("edit", TASK, path="a.md")
    assert [event["path"] for event in Events(tmp_path).read()] == ["a.md"]


def test_reading_goes_on_after_an_event(tmp_path: Path) -> None:
    events = Events(tmp_path)
    ids = [(events.record("edit", TASK, n=n) or {})["id"] for n in range(5)]
    assert [event["n"] for event in events.read(since=ids[1])] == [2, 3, 4]
    assert [event["n"] for event in events.read(since=ids[1], limit=2)] == [3, 4]
    assert [event["n"] for event in events.read(limit=1)] == [4]
    assert events.read(limit=0) == []
    assert events.read(since=ids[4]) == []


def test_reading_goes_on_after_an_event_that_is_no_longer_kept(tmp_path: Path) -> None:
    events = Events(tmp_path)
    first = events.record("edit", TASK, n=0)
    assert first is not None
    (tmp_path / FILE).unlink()
    events.record("edit", TASK, n=1)
    assert [event["n"] for event in events.read(since=first["id"])] == [1]


def test_a_large_log_is_put_aside_and_still_read(tmp_path: Path) -> None:
    events = Events(tmp_path, largest_bytes=1000)
    for n in range(12):
        events.record("edit", TASK, n=n)
    assert (tmp_path / OLDER).exists()
    kept = [event["n"] for event in events.read()]
    assert kept == list(range(kept[0], 12))
    assert len(kept) > 6
    assert (tmp_path / FILE).stat().st_size + (tmp_path / OLDER).stat().st_size < 4000


def test_where_nothing_can_be_written_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    assert Events(tmp_path).record("edit", TASK) is None
    assert Events(tmp_path).read() == []
    assert Events(tmp_path).tail().new() == []


def test_a_link_in_the_logs_place_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    assert Events(tmp_path).record("edit", TASK) is None
    assert (tmp_path / "elsewhere").read_text() == ""


def _record_many(folder: Path, writer: int) -> None:
    events = Events(folder, largest_bytes=1 << 30)
    for n in range(200):
        events.record("edit", TASK, writer=writer, n=n, reason="x" * 250)


def test_writers_in_several_processes_lose_no_line(tmp_path: Path) -> None:
    writers = [PROCESSES.Process(target=_record_many, args=(tmp_path, writer)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    # A line that another process was writing may have looked unfinished, and an empty one follows it.
    lines = filter(None, (tmp_path / FILE).read_text().splitlines())
    told = [(event["writer"], event["n"]) for event in map(json.loads, lines)]
    assert len(told) == len(set(told)) == 600
    for writer in range(3):
        assert [n for who, n in told if who == writer] == list(range(200))


def test_a_tail_has_what_is_new_also_after_the_log_was_put_aside_or_deleted(tmp_path: Path) -> None:
    events = Events(tmp_path, largest_bytes=1000)
    events.record("edit", TASK, n=-1)
    tail = events.tail()
    assert tail.new() == []
    seen: list[Event] = []
    for n in range(30):
        events.record("edit", TASK, n=n)
        if n % 3 == 0:
            seen += tail.new()
    seen += tail.new()
    assert [event["n"] for event in seen] == list(range(30))
    (tmp_path / FILE).unlink()
    events.record("edit", TASK, n=30)
    assert [event["n"] for event in tail.new()] == [30]
    tail.close()
    tail.close()


def test_a_tail_waits_for_the_end_of_a_line(tmp_path: Path) -> None:
    events = Events(tmp_path)
    tail = events.tail()
    with (tmp_path / FILE).open("a") as log:
        log.write('{"id": "7", "k')
        log.flush()
        assert tail.new() == []
        log.write('ind": "edit"}\n')
        log.flush()
        assert tail.new() == [{"id": "7", "kind": "edit"}]
    tail.close()


def test_following_yields_each_event_once_until_it_is_stopped(tmp_path: Path) -> None:
    events = Events(tmp_path)
    events.record("edit", TASK, n=-1)
    stop = threading.Event()
    seen: list[Event] = []
    began = threading.Event()

    def follow() -> None:
        tail = events.follow(stop)
        began.set()
        for event in tail:
            seen.append(event)

    follower = threading.Thread(target=follow)
    follower.start()
    began.wait()
    # Nothing tells when the generator has opened the log, so events are recorded until one is seen.
    numbers = iter(range(10_000))
    eventually(lambda: events.record("edit", TASK, n=next(numbers)) and seen, "an event is followed")
    last = events.record("edit", TASK, n="last")
    eventually(lambda: last in seen, "the last event is followed")
    stop.set()
    follower.join()
    told = [event["id"] for event in seen]
    assert told == [event["id"] for event in events.read()][-len(told) :]
