"""What does not depend on how many notes there are: the steps of SQLite for a save, a page of a list, a name."""

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import NoSuchNote
from tests.services.conftest import NAMELESS, OWNER, assert_raises, synced
from tests.waiting import eventually

FEW, MANY = 40, 400
NOTES = "pages/note-{:03}.md"
# A table that is read row by row, not by an index that has all that is asked for.
_WHOLE = re.compile(r"SCAN documents\b(?! USING COVERING INDEX)")
_WANTED = {"notebook.toml": '[notebook]\ntimezone = "UTC"\n[search]\nembeddings = "off"\n', "facts/core.md": "# Core\n"}


class Asked:
    """What SQLite did: `steps` of its virtual machine, and the statements with their plans."""

    def __init__(self) -> None:
        self.steps = 0
        self.statements: list[str] = []
        self._connections: list[sqlite3.Connection] = []

    def follow(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        connection.set_progress_handler(self._step, 1)
        connection.set_trace_callback(self.statements.append)
        self._connections.append(connection)
        return connection

    def steps_of(self, call: Callable[[], object]) -> int:
        before = self.steps
        call()
        return self.steps - before

    def plans_of(self, call: Callable[[], object]) -> dict[str, str]:
        """How each question of `call` is answered."""
        self.statements.clear()
        call()
        asked = [each for each in self.statements if each.startswith("SELECT")]
        db = self._connections[-1]
        return {each: " · ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {each}")) for each in asked}

    def _step(self) -> int:
        self.steps += 1
        return 0


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found, connect = Asked(), sqlite3.connect

    def connect_followed(*given: Any, **named: Any) -> sqlite3.Connection:
        return found.follow(connect(*given, **named))

    monkeypatch.setattr("notebook_sync.store.sqlite.sqlite3.connect", connect_followed)
    return found


def notes(count: int) -> dict[str, str]:
    text = "---\ntitle: Title {0}\nstatus: draft\ntags: [rope]\n---\nRope and ferry {0}. See [[note-{1:03}]].\n"
    return {NOTES.format(each): text.format(each, each // 2) for each in range(count)}


def calls(notebook: Notebook) -> Iterator[tuple[str, Callable[[], object]]]:
    """What people, agents and editors do all the time, in this order."""
    root, core = notebook.root, notebook.core
    new, old = root / "pages/new.md", root / NOTES.format(7)

    def save(path: Path, text: str) -> None:
        path.write_text(text)
        core.engine.look({str(path.relative_to(root))})

    def is_gone() -> bool:
        if time.monotonic() < core.engine.due:
            return False
        core.engine.look()
        return core.index.documents.one("pages/new") is None

    def remove() -> None:
        new.unlink()
        core.engine.look({"pages/new.md"})
        eventually(is_gone, "the note is deleted")

    yield "a save", lambda: save(old, "Another text.\n")
    yield "a new file", lambda: save(new, "A new text.\n")
    yield "a deleted file", remove
    yield "a page of the list", lambda: notebook.notes.list(OWNER)
    yield "a page of a status", lambda: notebook.notes.list(OWNER, status="draft")
    yield "a page since a day", lambda: notebook.notes.list(OWNER, since="2000-01-01")
    yield "a page of a small collection", lambda: notebook.notes.list(OWNER, collection="facts")
    yield "a page of an agent, after a change", lambda: notebook.notes.list(NAMELESS)
    for session in (OWNER, Session.task("scribe")):
        yield (
            f"an unknown title, {session.kind}",
            lambda session=session: assert_raises(  # type: ignore[misc]
                NoSuchNote, notebook.notes.read, "No such title", session
            ),
        )
    yield "a rename", lambda: notebook.notes.rename(NOTES.format(9), "pages/moved.md", OWNER, links=True)


def test_what_is_done_all_the_time_takes_no_more_steps_where_there_are_more_notes(tmp_path: Path, asked: Asked) -> None:
    steps = dict[str, list[int]]()
    for count in (FEW, MANY):
        with synced(tmp_path / str(count), _WANTED, notes(count)) as notebook:
            for name, call in calls(notebook):
                steps.setdefault(name, []).append(asked.steps_of(call))
    assert {name: pair for name, pair in steps.items() if pair[1] > 1.5 * pair[0] + 1_000} == {}


def test_counts_of_all_notes_read_an_index_and_no_table(tmp_path: Path, asked: Asked) -> None:
    with synced(tmp_path / "some", _WANTED, notes(FEW)) as notebook:
        documents, search = notebook.core.index.documents, notebook.core.searcher
        plans = asked.plans_of(notebook.admin.status)
        plans |= asked.plans_of(lambda: (documents.distinct("folder"), documents.distinct("collection")))
        plans |= asked.plans_of(lambda: search.search("rope", mode="keyword"))
    assert {question: plan for question, plan in plans.items() if _WHOLE.search(plan)} == {}
    assert sum("COVERING INDEX documents_" in plan for plan in plans.values()) >= 3  # notes, folders, words


def test_many_notes_of_one_collection_are_no_reason_to_read_them_for_some_ids(tmp_path: Path, asked: Asked) -> None:
    with synced(tmp_path / "some", _WANTED, notes(FEW)) as notebook:
        plans = asked.plans_of(lambda: notebook.notes.search("rope", OWNER, collection="pages", mode="keyword"))
    of_ids = [plan for question, plan in plans.items() if 'documents."id" IN' in question]
    assert of_ids
    assert all("(id=?)" in plan for plan in of_ids)


def test_a_look_asks_only_for_rows_that_the_scan_does_not_prove(tmp_path: Path, asked: Asked) -> None:
    with synced(tmp_path / "some", _WANTED, notes(FEW)) as notebook:
        engine, changed = notebook.core.engine, notebook.root / NOTES.format(3)
        engine.sync()  # what was written right before the first look is proven by this one
        assert {*_ids_known(asked.plans_of(engine.sync))} == {"[]"}
        changed.write_text("Another text.\n")
        assert '["pages/note-003"]' in _ids_known(asked.plans_of(engine.sync))


def _ids_known(plans: dict[str, str]) -> list[str]:
    """The ids that rows with their stamps were asked for by."""
    return re.findall(r"documents\.\"stamp\".*\"id\" IN \(SELECT value FROM json_each\('(.*?)'\)\)", "\n".join(plans))
