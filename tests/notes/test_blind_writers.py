"""A member that may write to a channel and not read it: it adds notes, and learns of none that stand there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Edit, MemoryTool, Notebook, Session, call
from notebook_sync.errors import NotPermitted
from tests.notes.conftest import NOTES

SCRIBE = Session.task("scribe")
CHANNEL = "channels/pilot/global"
THERE, NOWHERE = f"{CHANNEL}/private.md", f"{CHANNEL}/nothing.md"
OWN = "channels/scribe/global/own.md"


@pytest.fixture
def notebook(harbour: Path) -> Iterator[Notebook]:
    (harbour / CHANNEL / "channel.toml").write_text('[members]\nscribe = ["write"]\n')
    with Notebook.open(harbour) as notebook:
        notebook.sync()
        yield notebook


def _tool(name: str, **arguments: Any) -> Callable[[Notebook, str], Any]:
    return lambda notebook, path: call(
        notebook, name, {key: path if value is ... else value for key, value in arguments.items()}, SCRIBE
    )


def _method(name: str, *arguments: Any, **keywords: Any) -> Callable[[Notebook, str], Any]:
    def asked(notebook: Notebook, path: str) -> Any:
        with pytest.raises(NotPermitted) as refused:
            getattr(notebook, name)(*(path if one is ... else one for one in arguments), SCRIBE, **keywords)
        return {"error": {"type": "not_permitted", "message": str(refused.value)}}

    return asked


ASKED: dict[str, Callable[[Notebook, str], Any]] = {
    "delete": _tool("notebook_delete", id=...),
    "delete what says something else": _tool("notebook_delete", id=..., expected_digest="0"),
    "edit": _tool("notebook_edit", file=..., action="append_to_section", section="Private", content="x"),
    "write on another text": _tool("notebook_edit", file=..., action="write", content="x", expected_digest="0"),
    "update": _tool("notebook_update", id=..., title="Ours"),
    "update what says something else": _tool("notebook_update", id=..., title="Ours", expected_digest="0"),
    "delete from Python": _method("delete", ..., expected_digest="0"),
    "rename": _method("rename", ..., "channels/scribe/global/taken.md"),
    "rename onto it": _method("rename", OWN, ...),
    "undo": _method("undo", ...),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("spelled", [str, lambda path: path.removesuffix(".md")], ids=["path", "name"])
def test_what_changes_a_note_is_refused_alike_whether_it_is_there_or_not(
    notebook: Notebook, asked: Callable[[Notebook, str], Any], spelled: Callable[[str], str]
) -> None:
    told = asked(notebook, spelled(THERE))
    assert told["error"]["type"] == "not_permitted"
    assert asked(notebook, spelled(NOWHERE)) == told
    assert [event["kind"] for event in notebook.events.read()] == ["refused"] * 2
    assert (notebook.root / THERE).read_text() == NOTES[THERE]
    assert (notebook.root / OWN).read_text() == NOTES[OWN]
    assert not (notebook.root / NOWHERE).exists()


@pytest.mark.parametrize("command", ["delete", "str_replace", "insert", "rename", "view"])
def test_the_memory_tool_refuses_alike_whether_a_note_is_there_or_not(notebook: Notebook, command: str) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "str_replace": {"old_str": "berth", "new_str": "x"},
        "insert": {"insert_line": 0, "insert_text": "x"},
        "rename": {"new_path": "/memories/channels/scribe/global/taken.md"},
    }
    memory = MemoryTool(notebook, SCRIBE)
    path = "old_path" if command == "rename" else "path"
    told = [
        memory.tool_result("", {"command": command, path: f"/memories/{place}", **arguments.get(command, {})})
        for place in (THERE, NOWHERE)
    ]
    assert told[0] == told[1]
    assert told[0]["is_error"]
    assert (notebook.root / THERE).read_text() == NOTES[THERE]


def test_a_member_that_may_read_too_is_told_what_is_there(notebook: Notebook) -> None:
    (notebook.root / CHANNEL / "channel.toml").write_text('[members]\nscribe = ["read", "write"]\n')
    asked = {"id": NOWHERE}
    assert call(notebook, "notebook_delete", asked, SCRIBE)["error"]["type"] == "no_such_note"
    stale = {"id": THERE, "expected_digest": "0"}
    assert call(notebook, "notebook_delete", stale, SCRIBE)["error"]["type"] == "conflict"
    notebook.edit(THERE, Edit("append_to_section", section="Private", content="Seen."), SCRIBE)
    notebook.delete(THERE, SCRIBE)
    assert not (notebook.root / THERE).exists()
