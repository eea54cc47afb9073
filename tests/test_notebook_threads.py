"""One notebook used from several threads: each part is made once, and a part that is slow to make holds up no other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from notebook_sync import Notebook, Session, stores
from notebook_sync.files.edits import Edit
from notebook_sync.mirror.base import Mirror

# So many that the last of those who edit one note has a try left: each loses at most once to each of the others.
_THREADS = 5
_Told = TypeVar("_Told")


def at_once(ask: Callable[[int], _Told]) -> list[_Told]:
    """What each of several threads is told that ask at the same moment."""
    together = threading.Barrier(_THREADS)

    def wait_and_ask(number: int) -> _Told:
        together.wait(30)
        return ask(number)

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(wait_and_ask, range(_THREADS)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "reminders.md").write_text("## Today\n\n- [ ] Oil the lamp\n")
    (tmp_path / "ferry.md").write_text("# The ferry\n\nIt leaves at six.\n")
    return tmp_path


def test_threads_that_ask_at_once_share_one_mirror(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    first_is_opening, others_may_come = threading.Event(), threading.Event()
    really_open = stores.open_mirror

    def open_slowly(*arguments: object) -> Mirror:
        opened.append(arguments)
        first_is_opening.set()
        others_may_come.wait(30)
        return really_open(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(stores, "open_mirror", open_slowly)
    with Notebook.open(root) as notebook, ThreadPoolExecutor(_THREADS) as pool:
        asked = [pool.submit(lambda: notebook.mirror) for _ in range(_THREADS)]
        assert first_is_opening.wait(30)
        others_may_come.set()
        assert len({id(one.result(30)) for one in asked}) == 1
    assert len(opened) == 1


def test_a_store_that_is_slow_to_open_keeps_no_prompt_waiting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opening, go_on = threading.Event(), threading.Event()
    really_open = stores.open_mirror

    def hang(*arguments: object) -> Mirror:
        opening.set()
        go_on.wait(60)
        return really_open(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(stores, "open_mirror", hang)
    with Notebook.open(root) as notebook, ThreadPoolExecutor(2) as pool:
        searching = pool.submit(notebook.search, "ferry")
        try:
            assert opening.wait(30)
            assert "Oil the lamp" in pool.submit(notebook.prompt, Session.owner()).result(30).text
        finally:
            go_on.set()
        assert searching.result(30) == []


def test_a_part_that_could_not_be_made_is_made_by_the_next_who_asks(root: Path) -> None:
    (root / ".notebook").write_text("in the way")
    with Notebook.open(root) as notebook:
        with pytest.raises(Exception, match="cannot be made"):
            notebook.sync()
        (root / ".notebook").unlink()
        assert notebook.sync().added == 2


def test_everything_may_be_asked_for_the_first_time_by_several_threads(root: Path) -> None:
    session = Session.owner()

    def use(number: int) -> str:
        notebook.edit(f"pages/{number}.md", Edit("write", content=f"# Boat {number}\n"), session)
        notebook.history("ferry.md")
        notebook.prompt(session, include=["refs"])
        notebook.search("boat")
        return str(notebook.read(f"pages/{number}.md")["title"])

    with Notebook.open(root) as notebook:
        assert at_once(use) == [f"Boat {number}" for number in range(_THREADS)]
        assert notebook.admin.verify(repair=True).consistent
        assert len(notebook.search("boat", limit=20, mode="keyword")) == _THREADS


def test_edits_of_one_note_from_several_threads_are_all_made(root: Path) -> None:
    def append(number: int) -> None:
        edit = Edit("append_to_section", section="The ferry", content=f"- {number}")
        notebook.edit("ferry.md", edit, Session.owner())

    with Notebook.open(root) as notebook:
        at_once(append)
        lines = (root / "ferry.md").read_text().splitlines()
    assert sorted(line for line in lines if line.startswith("- ")) == [f"- {number}" for number in range(_THREADS)]
