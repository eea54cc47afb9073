"""The watcher of the operating system, faked at its one seam: what it loses is found, and its end is not the end."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.sync import events
from tests.sync.following import following
from tests.waiting import eventually


class FakeWatcher:
    """Yields what it is told to, instead of what happens. A batch that is an error ends it."""

    def __init__(self) -> None:
        self.batches: queue.SimpleQueue[set[tuple[int, str]] | BaseException] = queue.SimpleQueue()
        self.begun = 0

    def __call__(self, root: Path, *, stop_event: Any, **_: Any) -> Iterator[set[tuple[int, str]]]:
        self.begun += 1
        yield {(1, str(root / ".notebook" / "watch.probe"))}
        while not stop_event.is_set():
            try:
                batch = self.batches.get(timeout=0.02)
            except queue.Empty:
                continue
            if isinstance(batch, BaseException):
                raise batch
            yield batch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notebook"
    folder.mkdir()
    return folder


@pytest.fixture
def watcher(monkeypatch: pytest.MonkeyPatch) -> FakeWatcher:
    fake = FakeWatcher()
    monkeypatch.setattr(events, "watch_files", fake)
    return fake


def test_of_very_many_events_some_may_be_lost_so_everything_is_looked_at(root: Path, watcher: FakeWatcher) -> None:
    with following(root) as watch:
        expected = {f"{number}.md": "x" for number in range(1500)}
        for path in expected:
            (root / path).write_text("x")
        watcher.batches.put({(1, str(root / f"{number}.md")) for number in range(1000)})
        watch.becomes(expected)


@pytest.mark.parametrize(
    "error", [UnicodeDecodeError("utf-8", b"\xe9", 0, 1, "a name"), OSError(28, "no more watches")]
)
def test_a_watcher_that_ends_is_built_again_and_the_gap_is_looked_at(
    root: Path, watcher: FakeWatcher, error: BaseException
) -> None:
    with following(root) as watch:
        (root / "a.md").write_text("written without an event")
        watcher.batches.put(error)
        watch.becomes({"a.md": "written without an event"})
        assert watcher.begun == 2
        (root / "b.md").write_text("b")
        watcher.batches.put({(1, str(root / "b.md"))})
        watch.becomes({"a.md": "written without an event", "b.md": "b"})


def test_an_event_that_lies_is_no_proof(root: Path, watcher: FakeWatcher) -> None:
    """One path both added and deleted, in no order; a deletion that did not happen; a place that never was."""
    (root / "a.md").write_text("a")
    with following(root) as watch:
        (root / "b.md").write_text("b")
        paths = [(kind, str(root / name)) for kind in (1, 2, 3) for name in ("a.md", "b.md", "nowhere/c.md")]
        watcher.batches.put(set(paths))
        watch.becomes({"a.md": "a", "b.md": "b"})
        assert watch.deleted() == 0


def test_an_event_of_the_root_or_beside_it_is_a_doubt(root: Path, watcher: FakeWatcher) -> None:
    with following(root) as watch:
        (root / "a.md").write_text("a")
        watcher.batches.put({(3, str(root))})
        watch.becomes({"a.md": "a"})


def test_a_machine_without_watches_to_spare_is_told_and_the_rest_is_watched(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeWatcher()
    strict: list[bool] = []

    def few_watches(folder: Path, *, ignore_permission_denied: bool, **more: Any) -> Iterator[set[tuple[int, str]]]:
        strict.append(not ignore_permission_denied)
        if not ignore_permission_denied:
            raise OSError("OS file watch limit reached. about [...]")
        return fake(folder, **more)

    monkeypatch.setattr(events, "watch_files", few_watches)
    (root / ".notebook").mkdir()
    source = events.EventSource(root)
    try:
        assert source.start()
        assert "fs.inotify.max_user_watches" in source.shortfall
        assert strict == [True, False]
    finally:
        source.close()


def test_new_settings_are_told_to_need_a_new_start(root: Path, watcher: FakeWatcher) -> None:
    settings = root / "notebook.toml"
    with following(root) as watch:
        before = settings.read_text()
        settings.write_text(before + "[prompt]\nmax_tokens = 900\n")
        watcher.batches.put({(2, str(settings))})
        (root / "a.md").write_text("a")
        watcher.batches.put({(1, str(root / "a.md"))})
        watch.becomes({"a.md": "a"})
        assert watch.troubles() == []
        settings.write_text(before + '[notebook]\nexclude = ["pages/"]\n')
        watcher.batches.put({(2, str(settings))})
        eventually(lambda: any("start it again" in message for message in watch.troubles()), "the notice is told")
