"""`edit`: one place of a note, several steps or none, and what an edit does to the prompt."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import Conflict, EditFailed, NotebookError, NotPermitted, OverCap, UsageError
from notebook_sync.notebook import load_operations
from notebook_sync.registry import OPERATIONS, call
from tests.services.conftest import (
    NAMELESS,
    OWNER,
    PILOT,
    SCRIBE,
    STRANGER,
    add_settings,
    assert_raises,
    synced,
    text_of,
    write_files,
)

REMINDERS = "runtime/reminders.md"
load_operations()


def edit(notebook: Notebook, id: str, action: str, session: Session = OWNER, **given: Any) -> Any:
    return call(notebook, OPERATIONS["edit"], {"id": id, "action": action, **given}, session)


def test_an_edit_changes_one_place_and_says_what_it_did(notebook: Notebook) -> None:
    done = edit(notebook, "reminders", "append_to_section", section="Today", content="- [ ] Paint", reason="spring")
    assert text_of(notebook, REMINDERS) == "# Reminders\n\n## Today\n\n- [ ] Call the mill\n- [ ] Paint\n"
    assert (done.status, done.path, done.version, done.changed) == ("updated", REMINDERS, 2, True)
    assert "+- [ ] Paint" in done.diff
    assert done.tokens > 0
    assert done.cap == 2000
    assert done.omitted == []
    assert done.prompt_change["tokens_after"] > done.prompt_change["tokens_before"]
    (event,) = notebook.core.events.read()
    assert (event["action"], event["section"], event["reason"]) == ("append_to_section", "Today", "spring")


def test_an_edit_warns_of_a_reminder_that_cannot_be_read_once(notebook: Notebook) -> None:
    given = {"section": "Today", "content": "- [ ] Paint [due: soon]"}
    for dry_run in (True, False):
        done = edit(notebook, "reminders", "append_to_section", dry_run=dry_run, **given)
        assert [each.partition("; ")[0] for each in done.warnings] == [f"{REMINDERS}:6: [due: soon] is not a date"]
    assert edit(notebook, "reminders", "append_to_section", section="Today", content="- [ ] Row").warnings == []


def test_steps_follow_one_another_or_none_is_made(notebook: Notebook) -> None:
    more = '[{"action": "toggle_checkbox", "entry_match": "Paint"}, {"action": "remove_entry", "entry_match": "mill"}]'
    given = {"section": "Today", "content": "- [ ] Paint", "more": more}
    edit(notebook, "reminders", "append_to_section", **given)
    assert text_of(notebook, REMINDERS).endswith("## Today\n\n- [x] Paint\n")
    failed = assert_raises(EditFailed, edit, notebook, "reminders", "append_to_section", **given)
    assert "edit 2 (toggle_checkbox)" in str(failed)
    assert text_of(notebook, REMINDERS).endswith("## Today\n\n- [x] Paint\n")


WRONG: list[tuple[dict[str, Any], type[NotebookError]]] = [
    ({"action": "append_to_section"}, UsageError),
    ({"action": "remove_entry"}, UsageError),
    ({"action": "write", "content": " \n"}, EditFailed),  # the index would keep the last good text
    ({"action": "add_section"}, UsageError),
    ({"action": "burn"}, UsageError),
    ({"action": "remove_entry", "entry_match": "mountain"}, EditFailed),
    ({"action": "append_to_section", "section": "Tomorrow", "content": "x"}, EditFailed),
    ({"action": "write", "content": "---\ntitle: Plan: phase two\n---\n"}, EditFailed),
    ({"action": "append_to_section", "section": "Today", "content": "x", "expected_digest": "0" * 64}, Conflict),
]


def test_what_cannot_be_done_is_refused_alike_with_and_without_a_preview(notebook: Notebook) -> None:
    before = text_of(notebook, REMINDERS)
    for given, error in WRONG:
        previewed, refused = (
            assert_raises(error, edit, notebook, "reminders", dry_run=dry_run, **given) for dry_run in (True, False)
        )
        assert str(previewed) == str(refused)
    assert text_of(notebook, REMINDERS) == before


def test_a_section_may_be_named_with_the_note(notebook: Notebook) -> None:
    edit(notebook, "reminders#today", "append_to_section", content="- [ ] Paint")
    assert text_of(notebook, REMINDERS).endswith("- [ ] Paint\n")


# ---- the prompt


@pytest.fixture
def small(root: Path) -> Iterator[Notebook]:
    """Reminders of at most 60 tokens are shown."""
    write_files(root, {REMINDERS: "# Reminders\n\n## Today\n\n" + "".join(f"- [ ] Paint boat {n}\n" for n in range(6))})
    add_settings(root, f'[[prompt.files]]\npath = "{REMINDERS}"\nmax_tokens = 60\n')
    with synced(root) as notebook:
        yield notebook


def test_an_edit_over_the_cap_is_refused_with_the_entries_unless_it_is_allowed(small: Notebook) -> None:
    given = {"section": "Today", "content": "- [ ] " + "paint the boat " * 20}
    over = assert_raises(OverCap, edit, small, "reminders", "append_to_section", **given)
    assert (over.cap, over.entries[:2]) == (60, ("Paint boat 0", "Paint boat 1"))
    assert_raises(OverCap, small.notes.update, "reminders", content=given["content"], append=True)
    tried = edit(small, "reminders", "append_to_section", **given, allow_over_cap=True, dry_run=True)
    assert tried.status == "dry_run"
    assert tried.tokens > tried.cap
    assert tried.omitted
    assert tried.prompt_change["fell_out"]
    assert "paint" not in text_of(small, REMINDERS)
    edit(small, "reminders", "append_to_section", **given, allow_over_cap=True)
    edit(small, "reminders", "remove_entry", entry_match="boat 0")  # smaller, and still over
    edit(small, "reminders", "append_to_section", section="Today", content="<!-- no room is taken by comments -->")
    assert small.notes.undo("reminders").changed


def test_what_no_prompt_shows_has_no_cap(small: Notebook) -> None:
    done = edit(small, "ferry", "append_to_section", section="Fares", content="- x " * 1000)
    assert (done.cap, done.omitted, done.prompt_change) == (None, [], None)
    assert done.tokens > 1000


# ---- who may


@pytest.mark.parametrize("session", [SCRIBE, NAMELESS, STRANGER], ids=lambda one: one.kind)
def test_the_tool_is_the_owners(notebook: Notebook, session: Session) -> None:
    for path in ("pages/ferry.md", REMINDERS, "channels/scribe/global/plan.md", "pages/nowhere.md"):
        refused = assert_raises(NotPermitted, edit, notebook, path, "write", session, content="x")
        assert str(refused) == "Notebook editing is only available in owner conversations"
        assert notebook.core.events.read()[-1]["operation"] == "notebook_edit"


def test_wrong_arguments_of_a_forbidden_tool_are_refused_like_right_ones(notebook: Notebook) -> None:
    assert_raises(NotPermitted, edit, notebook, "pages/ferry.md", "burn", STRANGER)
    event = notebook.core.events.read()[-1]
    assert (event["operation"], event["path"]) == ("notebook_edit", "pages/ferry.md")


def test_the_tool_is_opened_for_notes_by_the_settings(root: Path) -> None:
    add_settings(root, '[permissions]\nnotebook_edit = "notes"\n')
    with Notebook.open(root) as notebook:
        for path in ("pages/ferry.md", "channels/scribe/global/plan.md"):
            assert edit(notebook, path, "set_frontmatter", SCRIBE, content="mood: calm").changed
        for session, path in (
            (SCRIBE, REMINDERS),
            (SCRIBE, "facts/core.md"),
            (SCRIBE, "channels/pilot/global/berth.md"),
            (PILOT, "channels/scribe/global/plan.md"),
            (STRANGER, "pages/ferry.md"),
        ):
            assert_raises(NotPermitted, edit, notebook, path, "write", session, content="x")
