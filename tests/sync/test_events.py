"""The watcher of the operating system, faked at its one seam: what it loses is found, and its end is not the end."""

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sync.conftest import Follow, Following
from tests.waiting import eventually


class FakeWatcher:
    """Yields what it is given, instead of what happens. A batch that is an error ends it."""

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
def watcher(monkeypatch: pytest.MonkeyPatch) -> FakeWatcher:
    fake = FakeWatcher()
    monkeypatch.setattr("notebook_sync.sync.watch.watch_files", fake)
    return fake


def test_of_very_many_events_some_may_be_lost_so_everything_is_looked_at(
    root: Path, watcher: FakeWatcher, watch: Following
) -> None:
    (root / "a.md").write_text("written without an event")
    watcher.batches.put({(1, str(root / f"gone/{number}.md")) for number in range(1000)})
    watch.becomes({"a.md": "written without an event"})


@pytest.mark.parametrize(
    "error",
    [UnicodeDecodeError("utf-8", b"\xe9", 0, 1, "a name"), OSError(28, "no more watches"), BaseException("panic")],
)
def test_a_watcher_that_ends_is_started_again_and_the_gap_is_looked_at(
    root: Path, watcher: FakeWatcher, watch: Following, error: BaseException
) -> None:
    (root / "a.md").write_text("written without an event")
    watcher.batches.put(error)
    watch.becomes({"a.md": "written without an event"})
    eventually(lambda: watcher.begun == 2, "it is started again")
    (root / "b.md").write_text("b")
    watcher.batches.put({(1, str(root / "b.md"))})
    watch.becomes({"a.md": "written without an event", "b.md": "b"})


def test_an_event_is_no_proof(root: Path, watcher: FakeWatcher, following: Follow) -> None:
    """One path both added and deleted, in no order; a deletion that did not happen; a place that never was."""
    (root / "a.md").write_text("a")
    with following() as watch:
        (root / "b.md").write_text("b")
        names = ("a.md", "b.md", "nowhere/c.md", ".git/index", ".hidden.md")
        watcher.batches.put({(kind, str(root / name)) for kind in (1, 2, 3) for name in names})
        watch.becomes({"a.md": "a", "b.md": "b"})
        assert watch.deleted() == 0


@pytest.mark.parametrize("place", ["", ".gitignore", "d/.gitignore", "../elsewhere.md"])
def test_an_event_of_the_root_of_rules_or_outside_is_a_doubt(
    root: Path, watcher: FakeWatcher, watch: Following, place: str
) -> None:
    (root / "a.md").write_text("a")
    watcher.batches.put({(3, f"{root.parent}/elsewhere.md" if ".." in place else str(root / place))})
    watch.becomes({"a.md": "a"})


def test_a_machine_without_watches_to_spare_says_so_and_the_rest_is_watched(
    root: Path, monkeypatch: pytest.MonkeyPatch, watcher: FakeWatcher, following: Follow
) -> None:
    strict: list[bool] = []

    def few_watches(folder: Path, *, ignore_permission_denied: bool, **more: Any) -> Iterator[set[tuple[int, str]]]:
        strict.append(not ignore_permission_denied)
        if not ignore_permission_denied:
            raise OSError("OS file watch limit reached. about [...]")
        return watcher(folder, **more)

    monkeypatch.setattr("notebook_sync.sync.watch.watch_files", few_watches)
    with following() as watch:
        assert "fs.inotify.max_user_watches" in watch.of("trouble")[0]["message"]
        assert strict == [True, False]
