"""Who is told of which event: of a note that a session may not read, nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.files.edits import Edit
from notebook_sync.notes.runtime.audience import told_to

OWNER, TASK, OTHER, EXTERNAL = (
    Session.owner(),
    Session.task("scribe"),
    Session.task("pilot"),
    Session.external("scribe"),
)


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    with Notebook.open(tmp_path) as opened:
        yield opened


def told(notebook: Notebook, session: Session) -> list[dict[str, Any]]:
    events = notebook.events.read()
    found = (told_to(session, event, lambda path: notebook.guard.may(session, "read", path)) for event in events)
    return [event for event in found if event is not None]


def test_of_a_private_note_its_agent_and_the_owner_are_told(notebook: Notebook) -> None:
    notebook.edit("channels/scribe/global/berth.md", Edit("write", content="Quiet.\n", reason="why"), TASK)
    assert [event["path"] for event in told(notebook, OWNER)] == ["channels/scribe/global/berth.md"]
    assert [event["reason"] for event in told(notebook, TASK)] == ["why"]
    assert told(notebook, OTHER) == []
    assert told(notebook, EXTERNAL) == []


def test_of_a_shared_note_others_are_told_that_it_changed_and_not_why(notebook: Notebook) -> None:
    notebook.edit("pages/ferry.md", Edit("write", content="Six.\n", reason="why"), TASK)
    (event,) = told(notebook, OTHER)
    assert (event["path"], event["action"], "reason" in event) == ("pages/ferry.md", "write", False)


@pytest.mark.parametrize("kind", ["edit", "undo", "rollback"])
def test_whatever_changed_a_note_others_are_told(kind: str) -> None:
    event = {
        "kind": kind,
        "session": "owner",
        "agent": "",
        "path": "pages/ferry.md",
        "reason": "to the checkpoint then",
    }
    assert told_to(OTHER, event, lambda _: True) == {key: event[key] for key in event if key != "reason"}
    assert told_to(OTHER, event, lambda _: False) is None
    assert told_to(OTHER, {**event, "path": ""}, lambda _: True) is None


def test_refusals_are_told_to_the_owner_and_to_who_was_refused(notebook: Notebook) -> None:
    with pytest.raises(Exception, match="owner conversations"):
        notebook.edit("runtime/reminders.md", Edit("write", content="x\n"), TASK)
    assert [len(told(notebook, session)) for session in (OWNER, TASK, OTHER, EXTERNAL)] == [1, 1, 0, 0]


@pytest.mark.parametrize("event", [{"id": "1"}, {"id": "1", "kind": "edit"}, {"id": "1", "kind": "changed"}])
def test_a_line_that_lacks_what_is_asked_for_is_told_to_nobody_else(event: dict[str, Any]) -> None:
    assert told_to(TASK, event, lambda _: True) is None


def test_of_many_changed_notes_those_that_may_be_read_are_named() -> None:
    event = {"id": "1", "kind": "changed", "paths": ["a.md", "b.md"], "digests": ["x", "y"]}
    found = told_to(TASK, event, lambda path: path == "b.md")
    assert found is not None
    assert (found["paths"], "digests" in found) == (["b.md"], False)
