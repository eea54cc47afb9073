"""A reminder that falls due is told of once: by one of several processes, and not again after a restart."""

from __future__ import annotations

import fcntl
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from notebook_sync.events import Events
from notebook_sync.notes.runtime.due import Due, standing_at
from notebook_sync.notes.runtime.entries import contents_of
from notebook_sync.notes.runtime.reminders import read_reminders
from notebook_sync.notes.runtime.telling import FILE, Telling

ZONE = ZoneInfo("Europe/Lisbon")
TEXT = """\
## Today
- [ ] Oil the lamp
- [ ] Call Odile [due: 2026-03-01 09:00]
- [x] Coil the ropes [due: 2026-03-01 09:00]

## Recurring
- Every day at 18:00: Light the lantern
"""


def at(day: int, hour: int, text: str = TEXT) -> list[Due]:
    now = datetime(2026, 3, day, hour, tzinfo=ZONE)
    return standing_at(now, read_reminders(contents_of(text), now.date())[0], ZONE)


def tell(folder: Path, reminders: list[Due]) -> list[str]:
    return [one.text for one in Telling(folder, Events(folder)).tell(reminders)]


def test_each_occurrence_is_told_of_once(tmp_path: Path) -> None:
    assert tell(tmp_path, at(1, 8)) == []
    assert tell(tmp_path, at(1, 9)) == ["Call Odile"]
    assert tell(tmp_path, at(1, 10)) == []
    assert tell(tmp_path, at(1, 18)) == ["Light the lantern"]
    assert tell(tmp_path, at(2, 9)) == []
    assert tell(tmp_path, at(2, 19)) == ["Light the lantern"]
    told = Events(tmp_path).read()
    assert [event["kind"] for event in told] == ["reminder_due"] * 3
    assert told[0]["when"] == "2026-03-01T09:00:00+00:00"
    assert len({event["occurrence"] for event in told}) == 3


def test_the_event_does_not_hold_what_the_reminder_says(tmp_path: Path) -> None:
    tell(tmp_path, at(1, 9))
    assert "Odile" not in (tmp_path / "events.jsonl").read_text()


def test_a_reminder_that_is_put_off_is_told_of_again(tmp_path: Path) -> None:
    tell(tmp_path, at(1, 9))
    assert tell(tmp_path, at(2, 9, TEXT.replace("03-01 09:00", "03-02 09:00"))) == ["Call Odile"]


def test_while_another_process_tells_nothing_is_told_twice(tmp_path: Path) -> None:
    with (tmp_path / FILE).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert tell(tmp_path, at(1, 9)) == []
    assert tell(tmp_path, at(1, 9)) == ["Call Odile"]


def test_what_could_not_be_logged_is_told_the_next_time(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").mkdir()
    assert tell(tmp_path, at(1, 9)) == []
    (tmp_path / "events.jsonl").rmdir()
    assert tell(tmp_path, at(1, 9)) == ["Call Odile"]


@pytest.mark.parametrize("text", ["", "{", "{}", "[3]", "\x00"])
def test_where_what_was_told_is_lost_it_is_told_once_more(tmp_path: Path, text: str) -> None:
    tell(tmp_path, at(1, 9))
    (tmp_path / FILE).write_text(text)
    assert tell(tmp_path, at(1, 9)) == ["Call Odile"]
    assert tell(tmp_path, at(1, 9)) == []
