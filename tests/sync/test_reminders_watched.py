"""A watch tells of reminders as they fall due: each occurrence once, whatever restarts, and not by asking on and on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.notes.alarm import Alarm
from notebook_sync.notes.runtime.due import Due
from notebook_sync.sync.watch import ReminderDue
from tests.sync.following import Following, following
from tests.waiting import eventually

TEXT = "## Today\n\n- [ ] Call Odile [due: 2026-03-01 09:00]\n"
LATER = "- [ ] Grease the winch [due: 2026-03-02]\n"


@pytest.fixture
def reminders(tmp_path: Path) -> Path:
    path = tmp_path / "runtime" / "reminders.md"
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


def told(watch: Following) -> list[str]:
    return [event.reminder["text"] for event in watch.events if isinstance(event, ReminderDue)]


def events(root: Path) -> list[str]:
    with Notebook.open(root) as notebook:
        return [event["when"] for event in notebook.events.read() if event["kind"] == "reminder_due"]


def test_what_is_due_is_told_at_the_start_and_after_a_save_and_not_again_after_a_restart(
    tmp_path: Path, reminders: Path
) -> None:
    with following(tmp_path) as watch:
        eventually(lambda: told(watch) == ["Call Odile"], "the one that is due")
        reminders.write_text(TEXT + LATER)
        eventually(lambda: told(watch) == ["Call Odile", "Grease the winch"], "the one that was added")
    reminders.write_text(TEXT + LATER + LATER.replace("Grease", "Oil"))
    with following(tmp_path) as watch:
        eventually(lambda: told(watch) == ["Oil the winch"], "only what is new")
    assert len(events(tmp_path)) == len(set(events(tmp_path))) + 1 == 3  # two of the same day


def test_of_many_that_look_at_once_one_tells(tmp_path: Path, reminders: Path) -> None:
    found: list[str] = []
    together = threading.Barrier(8)

    def look() -> None:
        with Notebook.open(tmp_path) as notebook:
            together.wait()
            found.extend(due.text for due in notebook.prompts.tell_due())

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["Call Odile"]
    assert len(events(tmp_path)) == 1


def test_between_two_looks_it_waits_for_as_long_as_the_alarm_says(
    tmp_path: Path, reminders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lantern = Due(3, "Recurring", "recurring", "Light the lantern", "due", datetime(2026, 3, 1, 18, tzinfo=UTC))
    rings: list[tuple[Sequence[Due], float]] = [([], 0.05), ([lantern], 3600.0)]
    # One look more than there are rings would end the watch with an error.
    monkeypatch.setattr(Alarm, "ring", lambda _: rings.pop(0))
    with following(tmp_path) as watch:
        eventually(lambda: told(watch) == ["Light the lantern"], "no file was saved, and yet it is told")
        (tmp_path / "page.md").write_text("A save of something else.\n")
        eventually(lambda: "page.md" in watch.texts(), "the page is mirrored")
    assert not rings
