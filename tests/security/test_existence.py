"""Existence: a note that is withheld from a session gives the same answers as a note that does not exist, and a refused
write does not reveal whether a note exists.

A path in another agent's channel is refused with the same answer, whatever the path.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Edit, MemoryTool, Notebook, Session
from notebook_sync.errors import NoSuchNote, NotebookError, NotPermitted
from tests.surfaces.doors import DOORS

TASK, EXTERNAL = Session.task("scribe"), Session.external("scribe")
HIDDEN, ABSENT = "pages/board.md", "pages/nobod.md"
WITHHELD = f'\n[[prompt.files]]\npath = "{HIDDEN}"\nsessions = ["owner"]\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notebook"
    Notebook.init(root)
    settings = root / "notebook.toml"
    settings.write_text(settings.read_text() + WITHHELD)
    (root / "pages").mkdir(exist_ok=True)
    (root / HIDDEN).write_text("---\nid: salaries\n---\n# Board\n")
    (root / "pages/ferry.md").write_text("# Ferry\n")
    (root / "channels/pilot/global").mkdir(parents=True)
    (root / "channels/pilot/global/channel.toml").write_text('[members]\nscribe = ["write"]\n')
    (root / "channels/pilot/global/secret.md").write_text("# Secret\n")
    with Notebook.open(root) as notebook:
        notebook.sync()
    return root


SPELLED: tuple[Callable[[str], str], ...] = (
    str,
    lambda path: path.removesuffix(".md"),
    lambda path: path.removeprefix("pages/").removesuffix(".md"),
    lambda path: f"./{path}",
    lambda path: f"runtime/../{path}",
)
CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("notebook_read", "id", {}),
    ("notebook_edit", "file", {"action": "read"}),
    ("notebook_edit", "file", {"action": "append_to_section", "section": "Board", "content": "x"}),
    ("notebook_update", "id", {"title": "x"}),
    ("notebook_delete", "id", {}),
    ("notebook_delete", "id", {"expected_digest": "0"}),
)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("spelled", SPELLED)
def test_every_tool_gives_one_answer(root: Path, door: str, spelled: Callable[[str], str]) -> None:
    with DOORS[door](root) as opened:
        for tool, key, more in CALLS:
            hidden, absent = (opened.call(TASK, tool, {key: spelled(path), **more}) for path in (HIDDEN, ABSENT))
            assert hidden["error"]["type"] == "no_such_note"
            assert repr(hidden).replace("board", "nobod") == repr(absent), tool


USES: dict[str, Callable[[Notebook, str, Session], object]] = {
    "read": lambda notebook, name, session: notebook.read(name, session),
    "find": lambda notebook, name, session: notebook.find_path(name, session),
    "file": lambda notebook, name, session: notebook.file(name, session),
    "history": lambda notebook, name, session: notebook.history(name, session),
    "diff": lambda notebook, name, session: notebook.diff(name, session=session),
    "undo": lambda notebook, name, session: notebook.undo(name, session),
    "delete": lambda notebook, name, session: notebook.delete(name, session),
    "rename": lambda notebook, name, session: notebook.rename(name, "pages/new.md", session),
}


@pytest.mark.parametrize("spelled", [str, lambda path: path.removesuffix(".md")], ids=["path", "name"])
@pytest.mark.parametrize("use", USES)
def test_every_operation_gives_one_answer(root: Path, use: str, spelled: Callable[[str], str]) -> None:
    told = []
    with Notebook.open(root) as notebook:
        for path in (HIDDEN, ABSENT):
            with pytest.raises(NoSuchNote) as missing:
                USES[use](notebook, spelled(path), TASK)
            told.append(str(missing.value))
    assert told[0].replace("board", "nobod") == told[1]


@pytest.mark.parametrize("command", ["view", "delete", "str_replace", "insert", "rename"])
def test_the_memory_tool_gives_one_answer(root: Path, command: str) -> None:
    more: dict[str, dict[str, Any]] = {
        "str_replace": {"old_str": "Board", "new_str": "x"},
        "insert": {"insert_line": 0, "insert_text": "x"},
        "rename": {"new_path": "/memories/pages/new.md"},
    }
    key = "old_path" if command == "rename" else "path"
    with Notebook.open(root) as notebook:
        memory = MemoryTool(notebook, TASK)
        hidden, absent = (
            memory.tool_result("", {"command": command, key: f"/memories/{path}", **more.get(command, {})})
            for path in (HIDDEN, ABSENT)
        )
    assert repr(hidden).replace("board", "nobod") == repr(absent)


def test_a_title_is_numbered_alike_whether_the_withheld_note_exists(root: Path) -> None:
    paths = []
    with Notebook.open(root) as notebook:
        paths.append(notebook.create("pages", "Board", "x", TASK).path)
        (root / HIDDEN).unlink()
        (root / paths[0]).unlink()
        paths.append(notebook.create("pages", "Board", "x", TASK).path)
    assert paths[0] == paths[1]


@pytest.mark.parametrize("path", ["channels/pilot/global/{}.md", "channels/scribe/global/{}.md"])
def test_who_cannot_read_a_channel_learns_nothing_of_guessed_paths(root: Path, path: str) -> None:
    session = TASK if "pilot" in path else EXTERNAL
    (root / "channels/scribe/global").mkdir(parents=True)
    (root / "channels/scribe/global/secret.md").write_text("# Secret\n")
    told = []
    with Notebook.open(root) as notebook:
        for name in ("secret", "guessed"):
            place = path.format(name)
            for edit in (Edit("write", content="x"), Edit("append_to_section", section="Secret", content="x")):
                with pytest.raises(NotPermitted) as refused:
                    notebook.edit(place, edit, session)
                told.append(str(refused.value))
            memory = MemoryTool(notebook, session)
            command = {"command": "create", "path": f"/memories/{place}", "file_text": "x"}
            told.append(memory.tool_result("", command)["content"])
        assert told[:3] == told[3:]
        assert notebook.channels.write("Tide at nine", session, channel="pilot" if "pilot" in path else "").path


def test_refused_names_leave_events_that_the_owner_sees(root: Path) -> None:
    with Notebook.open(root) as notebook:
        with pytest.raises(NotebookError):
            notebook.read(HIDDEN, TASK)
        (event,) = notebook.events.read()
    assert (event["kind"], event["path"]) == ("refused", HIDDEN)
