"""Checkpoints in a browser: making one, what going back would do, going back, and undoing that."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from unittest.mock import patch

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import BackendDown, Conflict
from notebook_sync.notes.stream.rolled_back import Checkpoint
from tests.dashboard.browsing import Browsing, browsing, text_of

OWNER = Session.owner()
CHECKPOINTS = "/memory/checkpoints"
PLAN = "pages/plan.md"
DOWN = BackendDown("Redis at localhost:6379", "connection refused")


@pytest.fixture
def kept(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Browsing]:
    """A notebook with git and one checkpoint, since which a line was logged and the plan changed."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    with browsing(root) as found:
        notebook = notebook_of(found)
        notebook.stream.log("High water", OWNER)
        notebook.stream.checkpoint("before <b>the regatta</b>", OWNER)
        notebook.stream.log("Low <i>water</i>", OWNER)
        notebook.stream.log("The toll is twelve crowns", OWNER, keep=True)
        (root / PLAN).write_text("# Plan\n\nStart large.\n")
        notebook.sync()
        yield found


def notebook_of(browser: Browsing) -> Notebook:
    found: Notebook = browser.served.app.state.notebook
    return found


def checkpoints(browser: Browsing) -> list[Checkpoint]:
    return notebook_of(browser).stream.checkpoints(OWNER).results


def logged(browser: Browsing) -> list[str]:
    return [one.content for one in notebook_of(browser).stream.show(OWNER).results if not one.action]


def form_of(page: str, address: str) -> dict[str, str]:
    """The hidden fields of the form that is sent to an address."""
    found = re.search(rf'<form method="post" action="{re.escape(address)}".*?</form>', page, re.DOTALL)
    assert found, address
    return {
        name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', found[0])
    }


def question_of(browser: Browsing, files: bool = False) -> tuple[str, str]:
    """The address and the page that asks whether to go back to the latest checkpoint."""
    address = f"{CHECKPOINTS}/{checkpoints(browser)[0].id}"
    page = browser.get(f"{address}{'?files=yes' if files else ''}")
    assert page.status_code == 200
    return address, page.text


def test_without_checkpoints_the_page_says_what_to_do(browser: Browsing) -> None:
    assert "There are no checkpoints yet. Next: keep what is now" in text_of(browser.get(CHECKPOINTS).text)


def test_those_that_are_gone_are_told_of_with_what_to_do(browser: Browsing) -> None:
    browser.post(CHECKPOINTS, {"name": "before the ebb"})
    gone = checkpoints(browser)[0].id
    assert "gone" not in text_of(browser.get(CHECKPOINTS).text)
    with patch.object(notebook_of(browser).refs, "checkpoints", return_value=[]):
        notebook_of(browser).refs.note_loss(datetime.now(UTC))
        said = text_of(browser.get(CHECKPOINTS).text)
        assert re.search(r"checkpoints of before 2\d{3}-.{11} are gone: hot memory was emptied\.", said)
        assert "Next: keep what is now above." in said
        assert "There are no checkpoints yet" not in said
        assert "are gone: hot memory was emptied" in text_of(browser.get(f"{CHECKPOINTS}/{gone}").text)
    said = text_of(browser.follow(browser.post(CHECKPOINTS, {"name": "after it"})).text)
    assert "are gone: hot memory was emptied. What a note said before is in its history; where" in said
    assert "Next:" not in said
    assert "after it" in said


def test_one_is_made_with_a_name_and_listed(browser: Browsing) -> None:
    answer = browser.post(CHECKPOINTS, {"name": "before the ebb"})
    page = browser.follow(answer)
    assert answer.headers["Location"] == f"{CHECKPOINTS}?done=made"
    assert "Kept: you can go back" in text_of(page.text)
    assert "before the ebb" in page.text
    assert [one.name for one in checkpoints(browser)] == ["before the ebb"]


def test_a_name_that_is_none_is_shown_again(browser: Browsing) -> None:
    page = browser.post(CHECKPOINTS, {"name": 'two "\n' + "x" * 200})
    assert page.status_code == 422
    assert "one line of at most 200 characters" in text_of(page.text)
    assert f"two &#34;\n{'x' * 200}" in page.text
    assert checkpoints(browser) == []


def test_a_checkpoint_that_lacks_its_files_says_why(kept: Browsing) -> None:
    (kept.root / ".git/config").write_text("[core\n")
    page = kept.post(CHECKPOINTS)
    assert page.status_code == 200
    assert "kept without the files" in text_of(page.text)
    assert "no name without the files" in text_of(page.text)


def test_the_question_tells_what_goes_what_comes_back_and_what_stays(kept: Browsing) -> None:
    _, page = question_of(kept)
    said = text_of(page)
    entries = checkpoints(kept)[0].entries
    assert "Go back to “before <b>the regatta</b>”?" in said
    assert "the notes are left as they are" in said
    assert "the stream, which is what was logged day by day, and what is kept for long" in said
    assert f"the stream 2 0 {entries} what is kept for long 1 0 0" in said
    assert "1 note changed since, and is left as it is pages/plan.md updated" in said
    assert "Low <i>water</i>" in said
    assert "1 entry would go from what is kept for long" in said
    assert "<i>water" not in page
    assert "<b>the regatta" not in page
    assert "style=" not in page


def test_the_question_names_each_note_that_would_change(kept: Browsing) -> None:
    (kept.root / "pages/new.md").write_text("New\n")
    (kept.root / "runtime/reminders.md").unlink()
    _, page = question_of(kept, files=True)
    said = text_of(page)
    assert "and so do the notes" in said
    assert "runtime/reminders.md comes back" in said
    assert "pages/new.md goes" in said
    assert "pages/plan.md as it was then" in said


def test_asking_changes_nothing(kept: Browsing) -> None:
    before = checkpoints(kept), logged(kept), (kept.root / PLAN).read_bytes()
    question_of(kept, files=True)
    assert before == (checkpoints(kept), logged(kept), (kept.root / PLAN).read_bytes())


def test_going_back_leaves_the_notes_and_is_undone_by_one_press(kept: Browsing) -> None:
    address, page = question_of(kept)
    answer = kept.post(address, form_of(page, address))
    assert answer.headers["Location"] == f"{CHECKPOINTS}?done=back"
    done = kept.follow(answer).text
    assert "You went back. The notes are left as they are." in text_of(done)
    assert logged(kept) == ["High water"]
    assert (kept.root / PLAN).read_text() == "# Plan\n\nStart large.\n"
    before = f"{CHECKPOINTS}/{checkpoints(kept)[0].id}"
    undone = kept.post(before, form_of(done, before))
    assert undone.status_code == 303
    assert logged(kept) == ["High water", "Low <i>water</i>"]
    assert [one["content"] for one in notebook_of(kept).refs.longterm()] == ["The toll is twelve crowns"]


def test_going_back_with_the_notes_is_undone_with_the_notes(kept: Browsing) -> None:
    address, page = question_of(kept, files=True)
    done = kept.follow(kept.post(address, form_of(page, address))).text
    assert "and the notes with you" in text_of(done)
    assert (kept.root / PLAN).read_text().startswith("# Plan\n\nStart small.")
    before = f"{CHECKPOINTS}/{checkpoints(kept)[0].id}"
    kept.follow(kept.post(before, form_of(done, before)))
    assert (kept.root / PLAN).read_text() == "# Plan\n\nStart large.\n"


def test_a_second_press_does_not_go_back_again(kept: Browsing) -> None:
    address, page = question_of(kept)
    fields = form_of(page, address)
    kept.post(address, fields)
    made = checkpoints(kept)
    again = kept.post(address, fields)
    assert again.status_code == 409
    assert "Nothing was brought back: a checkpoint was made since" in text_of(again.text)
    assert form_of(again.text, address)["latest"] == made[0].id
    assert checkpoints(kept) == made
    assert kept.post(address, {}).status_code == 409


def changed_plan(browser: Browsing) -> None:
    (browser.root / PLAN).write_text("# Plan\n\nStart larger still.\n")


def new_note(browser: Browsing) -> None:
    (browser.root / "pages/berth.md").write_text("Five\n")


def logged_line(browser: Browsing) -> None:
    notebook_of(browser).stream.log("Slack water", OWNER)


@pytest.mark.parametrize("change", [changed_plan, new_note, logged_line])
def test_what_changed_since_the_question_is_asked_about_again(
    kept: Browsing, change: Callable[[Browsing], None]
) -> None:
    address, page = question_of(kept, files=True)
    change(kept)
    before = checkpoints(kept), logged(kept), (kept.root / PLAN).read_bytes()
    again = kept.post(address, form_of(page, address))
    assert again.status_code == 409
    assert "Nothing was brought back: something changed meanwhile. Look again" in text_of(again.text)
    assert before == (checkpoints(kept), logged(kept), (kept.root / PLAN).read_bytes())
    assert kept.post(address, form_of(again.text, address)).status_code == 303
    assert (kept.root / PLAN).read_text().startswith("# Plan\n\nStart small.")
    assert not (kept.root / "pages/berth.md").exists()


def test_what_changed_after_going_back_is_not_undone_unasked(kept: Browsing) -> None:
    address, page = question_of(kept, files=True)
    done = kept.follow(kept.post(address, form_of(page, address))).text
    before = f"{CHECKPOINTS}/{checkpoints(kept)[0].id}"
    new_note(kept)
    again = kept.post(before, form_of(done, before))
    assert again.status_code == 409
    assert "pages/berth.md goes" in text_of(again.text)
    assert (kept.root / "pages/berth.md").exists()


def test_a_note_that_is_being_changed_is_told_and_asked_about_again(kept: Browsing) -> None:
    address, page = question_of(kept, files=True)
    conflict = Conflict(PLAN, "a", "b", advice="nothing was brought back: roll back again")
    with patch.object(notebook_of(kept)._checkpoints, "rollback", side_effect=conflict):
        again = kept.post(address, form_of(page, address))
    assert again.status_code == 409
    assert "pages/plan.md was changed since it was read; nothing was brought back" in text_of(again.text)
    assert form_of(again.text, address)["files"] == "yes"


def test_what_could_not_be_brought_back_is_told(kept: Browsing) -> None:
    address, page = question_of(kept, files=True)
    (kept.root / PLAN).unlink()
    (kept.root / PLAN).symlink_to("elsewhere.md")
    address, page = question_of(kept, files=True)
    done = kept.post(address, form_of(page, address))
    assert done.status_code == 200
    assert "left as it is:" in text_of(done.text)
    assert "Undo: go to what was before" in text_of(done.text)


def test_a_checkpoint_without_files_goes_back_alone(browser: Browsing) -> None:
    browser.post(CHECKPOINTS, {"name": "ebb"})
    address, page = question_of(browser)
    assert "It has no notes" in text_of(page)
    asked = browser.get(f"{address}?files=yes").text
    assert "has no files, for there was no git" in text_of(asked)
    assert "files" not in form_of(asked, address)
    refused = browser.post(address, {**form_of(page, address), "files": "yes"})
    assert refused.status_code == 422
    assert len(checkpoints(browser)) == 1
    assert browser.post(address, form_of(page, address)).status_code == 303


@pytest.mark.parametrize("name", ["0000", "%00", "..%2f..", "x" * 64, "%F0%9F%9A%A2"])
def test_a_checkpoint_that_is_not_there_has_no_page(browser: Browsing, name: str) -> None:
    page = browser.get(f"{CHECKPOINTS}/{name}")
    assert page.status_code == 404
    assert browser.post(f"{CHECKPOINTS}/{name}", {"latest": ""}).status_code == 404


def test_done_without_a_rollback_offers_no_undo(kept: Browsing) -> None:
    assert "Undo" not in text_of(kept.get(f"{CHECKPOINTS}?done=back").text)
    assert 'role="status"' not in kept.get(f"{CHECKPOINTS}?done=%3Cscript%3E").text.partition("<main")[2]


def test_a_memory_that_is_away_costs_the_list_and_no_name_that_was_typed(browser: Browsing) -> None:
    with (
        patch.object(notebook_of(browser).stream, "checkpoints", side_effect=DOWN),
        patch.object(notebook_of(browser).stream, "checkpoint", side_effect=DOWN),
    ):
        page = browser.get(CHECKPOINTS)
        made = browser.post(CHECKPOINTS, {"name": "before the ebb"})
    assert page.status_code == 200
    assert "Redis at localhost:6379 does not answer" in text_of(page.text)
    assert made.status_code == 503
    assert 'value="before the ebb"' in made.text
