"""Every session × tool × spelling of a path, through every door: what is shown, what is done, what is refused."""

from __future__ import annotations

import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Session
from notebook_sync.events import Events
from notebook_sync.folder import FOLDER
from notebook_sync.surfaces.tools.calling import TOOLS
from tests.surfaces.doors import DOORS, Door
from tests.together import together

OWNER, TASK, EXTERNAL = Session.owner(), Session.task("scribe"), Session.external("scribe")
SESSIONS = (OWNER, TASK, EXTERNAL)
FOR_STRANGERS = {
    *("notebook_read", "notebook_search", "notebook_list", "write_note"),
    *("fact_search", "fact_verify", "memory_search", "compile_context", "notebook_rules", "notebook_reminders"),
}
NOT_FOR_STRANGERS = {tool.name for tool in TOOLS} - FOR_STRANGERS
FOR_THE_OWNER = {"rollback"}
EDITING = {"notebook_edit", "notebook_create", "notebook_update", "notebook_delete"}

FILES = {
    "runtime/reminders.md": "<!-- - [ ] Task -->\n\n## Today\n\n- [ ] Check the ropes\n",
    "pages/ferry.md": "# Ferry\n\n## Times\n\n- Nine\n- Noon\n",
    "facts/core.md": "# Core\n\n- The harbour is Odile's\n",
    "facts/notes.md": "# Facts\n\n- Tides turn twice\n",
    "channels/scribe/global/own.md": "# Own\n\nQuiet water.\n",
    "channels/pilot/global/private.md": "# Private\n\nThe pilot's secret berth.\n",
}
RUNTIME = "runtime/reminders.md"
LINKS = ("pages/link.md", "pages/linked/reminders.md")
# Other names for a runtime file, here or on some system that a notebook may be copied to.
SPELLINGS = (
    RUNTIME,
    "reminders.md",
    "reminders",
    "./runtime/reminders.md",
    "runtime//reminders.md",
    "runtime/./reminders.md",
    "pages/../runtime/reminders.md",
    "Runtime/Reminders.md",
    "RUNTIME/REMINDERS.MD",
    "runtime./reminders.md",
    "runtime/reminders.md.",
    "runtime\\reminders.md",
    "runtime/remind\u200bers.md",
    "\uff52\uff55\uff4e\uff54\uff49\uff4d\uff45/reminders.md",
    "runtime/another.md",
    *LINKS,
    "../outside.md",
    "/etc/passwd.md",
    ".git/hooks/x.md",
    ".notebook/tokens.md",
    "notebook.toml",
    "channels/pilot/global/private.md",
    "channels/PILOT/global/new.md",
    "facts/core.md",
)
CHANGES: tuple[dict[str, Any], ...] = (
    {"action": "write", "content": "# Obey the message\n"},
    {"action": "append_to_section", "section": "Today", "content": "- Obey the message"},
    {"action": "remove_entry", "entry_match": "ropes"},
    {"action": "set_frontmatter", "content": "title: Obey"},
)
# What names its note by `id`.
BY_ID = {"notebook_update", "notebook_delete"}


@pytest.fixture
def root(root: Path) -> Path:
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "pages/link.md").symlink_to("../runtime/reminders.md")
    (root / "pages/linked").symlink_to("../runtime")
    return root


@pytest.mark.parametrize("session", SESSIONS, ids=lambda one: one.kind)
def test_a_session_is_shown_the_tools_that_it_may_call(door: Door, session: Session) -> None:
    shown = {EXTERNAL: FOR_STRANGERS, TASK: (FOR_STRANGERS | NOT_FOR_STRANGERS) - FOR_THE_OWNER}
    # The owner names no agent here, whose note a private one would be.
    assert door.list_tools(session) == shown.get(session, (FOR_STRANGERS | NOT_FOR_STRANGERS) - {"write_note"})


@pytest.mark.parametrize("way", ["direct", "mcp"])  # over HTTP a token names its agent, and the owner's is tried above
@pytest.mark.parametrize("session", [Session.owner(), Session.task(), Session.external()], ids=lambda one: one.kind)
def test_a_session_of_no_agent_is_not_shown_what_keeps_notes_of_one(root: Path, way: str, session: Session) -> None:
    lacking = {"write_note": {"content": "x"}}
    if session.kind == "task":
        lacking |= {"search_my_notes": {"query": "x"}, "get_recent_notes": {}, "peek_agent_notes": {"agent": "pilot"}}
    with DOORS[way](root) as door:
        assert door.list_tools(session) == door.list_tools(Session.named(session.kind, "scribe")) - lacking.keys()
        told = {name: door.call(session, name, arguments)["error"] for name, arguments in lacking.items()}
    assert told.pop("peek_agent_notes", {"type": "not_permitted"})["type"] == "not_permitted"
    assert {error["type"] for error in told.values()} == {"no_agent"}
    assert all("ask the owner" in error["next"] for error in told.values())


def test_a_tool_that_is_not_shown_is_refused_whatever_it_is_called_with(door: Door, root: Path) -> None:
    before = bytes_of(root)
    given: tuple[dict[str, Any], ...] = (
        {"file": "pages/ferry.md", "action": "write", "content": "x"},
        {"id": "pages/ferry.md", "content": "x", "title": "x", "collection": "pages"},
        {"query": "ferry", "agent": "scribe"},
        {},
        {"?": 1},
    )
    with together() as check:
        for name, arguments in product(sorted(NOT_FOR_STRANGERS), given):
            refused = len(refusals(root))
            with check((name, arguments)):
                error = door.call(EXTERNAL, name, arguments)["error"]
                assert error["type"] == "not_permitted"
                if name in EDITING:
                    assert error["message"] == "Notebook editing is only available in owner conversations"
                assert bytes_of(root) == before
                (event,) = refusals(root)[refused:]
                assert (event["session"], event["agent"], event["tool"]) == ("external", "scribe", name)
                assert event["path"] == arguments.get("file", arguments.get("id", ""))


@pytest.mark.parametrize("session", [TASK, EXTERNAL], ids=lambda one: one.kind)
def test_no_spelling_and_no_action_changes_what_is_the_owners(door: Door, root: Path, session: Session) -> None:
    before = bytes_of(root)
    calls = [("notebook_edit", change) for change in CHANGES]
    calls += [("notebook_update", {"content": "Obey"}), ("notebook_update", {"title": "Obey"}), ("notebook_delete", {})]
    with together() as check:
        for path, (tool, change) in product(SPELLINGS, calls):
            refused = len(refusals(root))
            with check((path, tool, change)):
                error = door.call(session, tool, {"id" if tool in BY_ID else "file": path, **change})["error"]
                assert bytes_of(root) == before
                assert error["type"] in {"not_permitted", "unsafe_path"}, error
                assert len(refusals(root)) == refused + 1


def test_a_batch_with_a_guarded_file_in_it_changes_nothing(door: Door, root: Path) -> None:
    before = bytes_of(root)
    more = [{"action": "append_to_section", "section": "Today", "content": "- x"}]
    arguments = {"file": RUNTIME, "action": "remove_entry", "entry_match": "ropes", "more": more}
    assert door.call(TASK, "notebook_edit", arguments)["error"]["type"] == "not_permitted"
    assert bytes_of(root) == before
    assert len(refusals(root)) == 1


@pytest.mark.parametrize("session", [OWNER, TASK], ids=lambda one: one.kind)
def test_what_a_session_may_change_it_changes(door: Door, root: Path, session: Session) -> None:
    changed_by = {
        "owner": (RUNTIME, "facts/core.md", "channels/pilot/global/private.md", "pages/ferry.md"),
        "task": ("pages/ferry.md", "facts/notes.md", "channels/scribe/global/own.md"),
    }
    with together() as check:
        for path in changed_by[session.kind]:
            with check(path):
                read = door.call(session, "notebook_read", {"id": path.removeprefix("runtime/")})
                change = {"action": "set_frontmatter", "content": "status: complete", "expected_digest": read["digest"]}
                answer = door.call(session, "notebook_edit", {"file": path, **change})
                assert "error" not in answer, answer
                assert b"status: complete" in (root / answer["path"]).read_bytes()
                assert answer["digest"] != read["digest"]
    assert refusals(root) == []


@pytest.mark.parametrize("session", SESSIONS, ids=lambda one: one.kind)
def test_who_reads_what(door: Door, root: Path, session: Session) -> None:
    readers = {
        RUNTIME: {"owner", "task", "external"},
        "pages/ferry.md": {"owner", "task", "external"},
        "facts/core.md": {"owner", "task"},
        "channels/scribe/global/own.md": {"owner", "task"},
        "channels/pilot/global/private.md": {"owner"},
        "channels/./pilot//global/private": {"owner"},
        "pages/../channels/pilot/global/private.md": {"owner"},
    }
    with together() as check:
        for path, kinds in readers.items():
            refused = len(refusals(root))
            with check(path):
                answer = door.call(session, "notebook_read", {"id": path})
                if session.kind in kinds:
                    assert answer["text"]
                    assert len(refusals(root)) == refused
                else:
                    assert answer["error"]["type"] == "not_permitted"
                    assert "secret" not in json.dumps(answer)
                    assert len(refusals(root)) == refused + 1


@pytest.mark.parametrize("session", [TASK, EXTERNAL], ids=lambda one: one.kind)
def test_nothing_private_is_found_or_listed_or_guessed(door: Door, session: Session) -> None:
    found = door.call(session, "notebook_search", {"query": "secret berth"})
    listed = door.call(session, "notebook_list", {"limit": 100})
    assert "pilot" not in json.dumps([found, listed])
    there = door.call(session, "notebook_read", {"id": "channels/pilot/global/private.md"})
    guessed = door.call(session, "notebook_read", {"id": "channels/pilot/global/other.md"})
    assert there == guessed


def bytes_of(root: Path) -> dict[str, bytes]:
    """Every file of the notebook but what can be made again."""
    found = {}
    for folder, folders, names in os.walk(root):
        if ".notebook" in folders:
            folders.remove(".notebook")
        for name in names:
            path = Path(folder, name)
            found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


def refusals(root: Path) -> list[dict[str, Any]]:
    return [event for event in Events(root / FOLDER).read() if event["kind"] == "refused"]
