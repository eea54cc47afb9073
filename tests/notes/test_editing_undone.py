"""Taking edits back, and looking at what a note said: by git, or by the copies that edits leave."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import Conflict, EditFailed, NoSuchNote, NotPermitted
from notebook_sync.files.edits import Edit
from notebook_sync.files.revisions import revisions
from notebook_sync.notes.editing.past import KEPT, Past
from tests.repositories import git

OWNER, TASK, EXTERNAL = Session.owner("scribe"), Session.task("scribe"), Session.external("scribe")
RULES = "runtime/external-communications.md"
FERRY = "pages/ferry.md"
FIRST = "# Ferry\n\n- Nine\n"


def write(text: str) -> Edit:
    return Edit("write", content=text)


def commit_by_hand(root: Path, text: str, message: str, path: str = FERRY) -> None:
    (root / path).write_text(text)
    git(root, "add", path)
    git(root, "commit", "--quiet", "-m", message)


@pytest.fixture(params=["git", "git, commits off", "no git"])
def notebook(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Notebook]:
    (tmp_path / "pages").mkdir()
    (tmp_path / "runtime").mkdir()
    (tmp_path / FERRY).write_text(FIRST)
    (tmp_path / RULES).write_text("## Temporary Instructions\n")
    off = request.param == "git, commits off"
    (tmp_path / "notebook.toml").write_text('[git]\ncommit = "off"\n' if off else "")
    if request.param != "no git":
        make_repository(tmp_path)
    with Notebook.open(tmp_path) as opened:
        yield opened


def make_repository(root: Path) -> None:
    (root / ".gitignore").write_text(".notebook/\n")
    git(root, "init", "--quiet")
    git(root, "config", "user.name", "Ines")
    git(root, "config", "user.email", "ines@ferry.example")
    git(root, "add", "-A")
    git(root, "commit", "--quiet", "-m", "Begin")


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Notebook]:
    (tmp_path / "pages").mkdir()
    (tmp_path / FERRY).write_text(FIRST)
    make_repository(tmp_path)
    with Notebook.open(tmp_path) as opened:
        yield opened


def text(notebook: Notebook, path: str = FERRY) -> str:
    return (notebook.root / path).read_text()


def test_an_edit_is_taken_back_and_the_taking_back_too(notebook: Notebook) -> None:
    notebook.edit(FERRY, write("second"), TASK)
    undone = notebook.undo(FERRY, TASK)
    assert text(notebook) == FIRST
    assert undone.changed
    assert "-second" in undone.diff
    notebook.undo("pages/ferry", TASK)
    assert text(notebook) == "second"
    assert [event["kind"] for event in notebook.events.read()] == ["edit", "undo", "undo"]
    assert notebook.read(FERRY)["metadata"]["version"] >= 2


def test_of_several_edits_the_last_is_taken_back(notebook: Notebook) -> None:
    for number in ("second", "third", "fourth"):
        notebook.edit(FERRY, write(number), TASK)
    notebook.undo(FERRY, TASK)
    assert text(notebook) == "third"


def test_what_a_person_wrote_between_two_edits_is_what_comes_back(notebook: Notebook) -> None:
    notebook.edit(FERRY, write("second"), TASK)
    (notebook.root / FERRY).write_text("by hand, in no commit\n")
    notebook.edit(FERRY, write("third"), TASK)
    notebook.undo(FERRY, TASK)
    assert text(notebook) == "by hand, in no commit\n"


def test_what_a_person_wrote_after_an_edit_is_kept_when_it_is_taken_back(notebook: Notebook) -> None:
    notebook.edit(FERRY, write("second"), TASK)
    (notebook.root / FERRY).write_text("by hand\n")
    notebook.undo(FERRY, TASK)
    assert text(notebook) == "second"
    notebook.undo(FERRY, TASK)
    assert text(notebook) == "by hand\n"


def test_a_note_that_is_gone_comes_back(notebook: Notebook) -> None:
    notebook.edit(FERRY, write("second"), TASK)
    (notebook.root / FERRY).unlink()
    assert notebook.undo("pages/ferry", TASK).path == FERRY
    assert text(notebook) == "second"


def test_a_note_that_comes_back_goes_on_where_it_stopped(notebook: Notebook) -> None:
    page = notebook.create("pages", "Fares", "Three crowns.", TASK).path
    notebook.update(page, TASK, content="Four crowns.")
    notebook.update(page, TASK, content="Five crowns.")
    before = notebook.read(page)
    notebook.delete(page, TASK)
    assert notebook.undo(page, TASK).version == 3
    after = notebook.read(page)
    assert after["metadata"]["created_at"] == before["metadata"]["created_at"]
    assert [crumb["version"] for crumb in after["history"]] == [1, 2, 3]
    assert {crumb["changed_by"] for crumb in after["history"]} == {"agent:scribe"}
    notebook.update(page, TASK, content="Six crowns.")
    assert notebook.read(page)["history"][-1]["version"] == 4


def test_a_runtime_file_is_for_the_owner_to_restore(notebook: Notebook) -> None:
    rule = "- **Odile** (odile@ferry.example): block [until 2026-03-06]"
    edit = Edit("append_to_section", section="Temporary Instructions", content=rule)
    notebook.edit(RULES, edit, OWNER)
    for session in (TASK, EXTERNAL):
        with pytest.raises(NotPermitted, match=r"^Notebook editing is only available in owner conversations$"):
            notebook.undo(RULES, session)
    assert "Odile" in text(notebook, RULES)
    notebook.undo("external-communications.md", OWNER)
    assert text(notebook, RULES) == "## Temporary Instructions\n"
    assert [event["kind"] for event in notebook.events.read()] == ["edit", "refused", "refused", "undo"]


def test_taking_a_note_away_is_named_where_a_tool_made_it_and_nowhere_else(tmp_path: Path) -> None:
    def refusal(path: str) -> str:
        with pytest.raises(EditFailed) as caught:
            notebook.undo(path, OWNER)
        return str(caught.value)

    by_hand, made, moved = "pages/by hand.md", "pages/the lamp.md", "pages/the boat.md"
    (tmp_path / "pages").mkdir()
    with Notebook.open(tmp_path) as notebook:
        for said in (FIRST, LIKE):
            (tmp_path / by_hand).write_text(said)
            notebook.sync()
        assert refusal(by_hand).endswith("neither to git nor from an edit by a tool")
        notebook.edit(made, write(FIRST), OWNER)
        assert refusal(made).endswith(f": notebook-sync delete '{made}'")
        notebook.rename(made, moved, OWNER)
        assert refusal(moved).endswith(f": notebook-sync rename '{moved}' '{made}'")
        notebook.delete(by_hand, OWNER)
        notebook.undo(by_hand, OWNER)
        assert "delete" not in refusal(by_hand)


def test_a_note_without_a_past_says_so(tmp_path: Path) -> None:
    (tmp_path / "new.md").write_text("# New\n")
    with Notebook.open(tmp_path) as notebook:
        with pytest.raises(EditFailed, match="no earlier text of it is known"):
            notebook.undo("new.md", OWNER)
        assert notebook.history("new.md") == []
        with pytest.raises(NoSuchNote):
            notebook.undo("nowhere.md", OWNER)


def test_the_history_names_who_and_what(notebook: Notebook) -> None:
    notebook.edit(FERRY, write("second"), TASK)
    notebook.edit(FERRY, write("third"), OWNER)
    newest, before, *_ = notebook.history(FERRY)
    assert (newest.changed_by, before.changed_by) == ("agent:scribe", "agent:scribe")
    assert newest.summary.startswith("Write")
    assert newest.timestamp >= before.timestamp
    assert abs((datetime.now(UTC) - newest.timestamp).total_seconds()) < 600
    assert len(notebook.history(FERRY)) == 3
    assert len(notebook.history(FERRY, limit=1)) == 1


def test_the_difference_is_to_the_version_before_or_to_one_that_is_named(notebook: Notebook) -> None:
    notebook.edit(FERRY, write("second\n"), TASK)
    notebook.edit(FERRY, write("third\n"), TASK)
    assert notebook.diff(FERRY).splitlines()[-2:] == ["-second", "+third"]
    oldest = notebook.history(FERRY)[-1]
    assert notebook.diff(FERRY, oldest.rev).splitlines()[-4:] == ["-# Ferry", "-", "-- Nine", "+third"]
    with pytest.raises(NoSuchNote, match="notebook-sync history"):
        notebook.diff(FERRY, "no-such-version")


def test_a_version_that_is_named_is_read_and_put_there_again_to_the_byte(notebook: Notebook) -> None:
    raw = b"\xef\xbb\xbf# Ferry\r\n\xff\r\n"
    (notebook.root / FERRY).write_bytes(raw)
    notebook.edit(FERRY, write("second\n"), TASK)
    notebook.edit(FERRY, write("third\n"), TASK)
    kept = next(one.rev for one in notebook.history(FERRY) if "\ufffd" in notebook.version(FERRY, one.rev).text)
    assert notebook.version(FERRY, kept).text == raw.decode(errors="replace")
    with pytest.raises(Conflict):
        notebook.undo(FERRY, OWNER, rev=kept, expected_digest="0")
    notebook.undo(FERRY, OWNER, rev=kept)
    assert (notebook.root / FERRY).read_bytes() == raw
    with pytest.raises(NoSuchNote):
        notebook.version(FERRY, "no-such-version")


def test_what_no_commit_has_stays_in_the_history_of_a_note_that_is_committed_later(repository: Notebook) -> None:
    (repository.root / FERRY).write_text("by hand\n")
    repository.edit(FERRY, write("second\n"), TASK)
    past = datetime.now(UTC) - timedelta(hours=1)
    copies = [replace(copy, at=past) for copy in Past(repository.folder).copies(FERRY)]
    assert b"by hand\n" in [copy.read() for copy in copies]
    with patch.object(Past, "copies", return_value=copies):
        texts = [repository.version(FERRY, one.rev).text for one in repository.history(FERRY)]
    assert sorted(texts) == sorted([FIRST, "by hand\n", "second\n"])


def test_the_history_of_one_second_has_what_an_edit_found_below_that_edit(repository: Notebook) -> None:
    for number in range(3):
        (repository.root / FERRY).write_text(f"by hand {number}\n")
        repository.edit(FERRY, write(f"by tool {number}\n"), TASK)
    (repository.root / "notebook.toml").write_text('[git]\ncommit = "off"\n')
    with Notebook.open(repository.root) as uncommitted:
        uncommitted.edit(FERRY, write("in no commit\n"), TASK)
    second = datetime(2026, 3, 1, 9, tzinfo=UTC)
    copies = [replace(copy, at=second) for copy in Past(repository.folder).copies(FERRY)]
    commits = [replace(one, timestamp=second) for one in revisions(repository.root, FERRY, 10, lambda _: True)]
    with (
        patch.object(Past, "copies", return_value=copies),
        patch("notebook_sync.notes.editing.undoing.revisions", return_value=commits),
    ):
        told = [repository.version(FERRY, one.rev).text for one in repository.history(FERRY)]
    rounds = [f"by {who} {number}\n" for number in (2, 1, 0) for who in ("tool", "hand")]
    assert told == ["in no commit\n", *rounds, FIRST]


def an_hour_ahead() -> AbstractContextManager[object]:
    """The clock by which copies are dated."""
    clock = SimpleNamespace(time_ns=lambda: time.time_ns() + 3600 * 10**9)
    return patch("notebook_sync.notes.editing.past.time", clock)


def test_after_the_clock_went_back_the_last_text_is_what_comes_back(notebook: Notebook) -> None:
    with an_hour_ahead():
        for number in range(KEPT + 1):
            notebook.edit(FERRY, write(f"ahead {number}"), TASK)
    notebook.edit(FERRY, write("right 1"), TASK)
    notebook.edit(FERRY, write("right 2"), TASK)
    notebook.undo(FERRY, TASK)
    assert text(notebook) == "right 1"
    notebook.delete(FERRY, TASK)
    notebook.undo(FERRY, TASK)
    assert text(notebook) == "right 1"


def test_copies_of_a_time_to_come_are_no_later_than_what_a_person_committed_since(repository: Notebook) -> None:
    with an_hour_ahead():
        repository.edit(FERRY, write("ahead 1"), TASK)
        repository.edit(FERRY, write("ahead 2"), TASK)
    commit_by_hand(repository.root, "by hand 1\n", "One")
    commit_by_hand(repository.root, "by hand 2\n", "Two")
    repository.undo(FERRY, OWNER)
    assert text(repository) == "by hand 1\n"


def test_a_short_history_is_the_beginning_of_the_long_one(repository: Notebook) -> None:
    for number in range(4):
        repository.edit(FERRY, Edit("append_to_section", section="Ferry", content=f"- {number}"), OWNER)
    known = repository.history(FERRY)
    assert len(known) == 5
    for limit in range(6):
        assert repository.history(FERRY, limit=limit) == known[:limit]


def test_a_persons_commits_are_history_and_can_be_taken_back(repository: Notebook) -> None:
    commit_by_hand(repository.root, "by hand, twice\n", "Rewrite the timetable")
    assert [(one.changed_by, one.summary) for one in repository.history(FERRY)] == [
        ("owner", "Rewrite the timetable"),
        ("owner", "Begin"),
    ]
    undone = repository.undo(FERRY, OWNER)
    assert text(repository) == FIRST
    assert undone.commit == git(repository.root, "rev-parse", "HEAD").strip()
    assert repository.history(FERRY)[0].changed_by == "agent:scribe"


def test_commits_of_other_files_are_not_its_history(repository: Notebook) -> None:
    repository.edit("pages/other.md", write("x"), TASK)
    assert [one.summary for one in repository.history(FERRY)] == ["Begin"]


def test_the_past_of_another_agents_note_is_as_private_as_the_note(repository: Notebook) -> None:
    path = "channels/pilot/global/a.md"
    repository.edit(path, write("secret"), Session.task("pilot"))
    repository.edit(path, write("more secret"), Session.task("pilot"))
    for use in (repository.history, repository.undo):
        with pytest.raises(NotPermitted):
            use(path, TASK)
    with pytest.raises(NotPermitted):
        repository.diff(path, session=TASK)
    assert text(repository, path).endswith("more secret")


def test_copies_are_few(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("0")
    with Notebook.open(tmp_path) as notebook:
        for number in range(KEPT + 5):
            notebook.edit("a.md", write(f"{number + 1}"), TASK)
        assert len(notebook.history("a.md")) == KEPT
    copies = [path for path in (tmp_path / ".notebook" / "past").rglob("*") if path.is_file()]
    assert len(copies) == KEPT


def test_a_copy_that_was_damaged_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("first")
    with Notebook.open(tmp_path) as notebook:
        notebook.edit("a.md", write("second"), TASK)
        notebook.edit("a.md", write("third"), TASK)
        newest_first = sorted((tmp_path / ".notebook" / "past").rglob("*-*"), reverse=True)
        newest_first[1].write_bytes(newest_first[1].read_bytes() + b"!")
        newest_first[0].write_bytes(b"nothing that can be read")
        notebook.undo("a.md", TASK)
    assert (tmp_path / "a.md").read_text() == "first"


def test_a_note_that_was_private_once_keeps_that_past_for_those_who_had_it(repository: Notebook) -> None:
    text = "# Berth\n\n" + "The harbour master will not know.\n" * 9
    private, public = "channels/pilot/global/berth.md", "pages/berth.md"
    (repository.root / private).parent.mkdir(parents=True)
    named = "---\nid: the-berth\n---\n"
    commit_by_hand(repository.root, f"{named}{text}A secret.\n", "Write it down", private)
    git(repository.root, "mv", private, public)
    commit_by_hand(repository.root, named + text, "Publish it", public)
    assert [one.summary for one in repository.history(public)] == ["Publish it", "Write it down"]
    assert "-A secret." in repository.diff(public)
    assert [one.summary for one in repository.history(public, TASK)] == ["Publish it"]
    with pytest.raises(EditFailed):
        repository.diff(public, session=TASK)
    with pytest.raises(EditFailed):
        repository.undo(public, TASK)
    private_rev = repository.history(public)[-1].rev
    with pytest.raises(NoSuchNote):
        repository.version(public, private_rev, TASK)
    for session in (OWNER, TASK):
        with pytest.raises((EditFailed, NoSuchNote)):
            repository.undo(public, session, rev=private_rev)


def test_what_an_edit_found_is_no_version_of_its_own(repository: Notebook) -> None:
    git(repository.root, "commit", "--quiet", "--amend", "--no-edit", "--date", "2026-01-01T00:00:00Z")
    for _ in range(3):
        repository.edit(FERRY, write("second"), TASK)
        repository.undo(FERRY, TASK)
    told = [one.changed_by for one in repository.history(FERRY)]
    assert told == ["agent:scribe"] * 6 + ["owner"]


LIKE = "".join(f"{number}. The lamp at the pier is lit at dusk by Odile\n" for number in range(20))
EVERYBODY = (OWNER, Session.task("pilot"), EXTERNAL)


def told_of(notebook: Notebook, path: str) -> list[list[str]]:
    return [[one.summary for one in notebook.history(path, session)] for session in EVERYBODY]


@pytest.mark.parametrize("secret", ["", "\nAnd a secret.\n"])
def test_a_page_that_is_like_another_note_has_no_other_past(repository: Notebook, secret: str) -> None:
    repository.channels.write(LIKE + secret, TASK)
    repository.edit("pages/template.md", write(LIKE), TASK)
    repository.edit("pages/guess.md", write(LIKE), Session.task("pilot"))
    assert told_of(repository, "pages/guess.md") == [["Write: pages/guess.md"]] * 3
    for session in EVERYBODY[:2]:
        with pytest.raises(EditFailed, match="no earlier text of it is known"):
            repository.undo("pages/guess.md", session)
        with pytest.raises(EditFailed, match="no earlier text of it is known"):
            repository.diff("pages/guess.md", session=session)
    assert text(repository, "pages/guess.md").endswith(LIKE)


def test_a_renamed_note_keeps_its_past(repository: Notebook) -> None:
    repository.edit(FERRY, write(LIKE), TASK)
    repository.rename(FERRY, "pages/boat.md", TASK)
    repository.edit("pages/boat.md", write("other words"), TASK)
    assert [one.summary for one in repository.history("pages/boat.md", TASK)][-1] == "Begin"
    repository.undo("pages/boat.md", TASK)
    assert text(repository, "pages/boat.md") == LIKE


def test_a_renamed_note_keeps_its_past_with_git_or_without(notebook: Notebook) -> None:
    notebook.edit(FERRY, write("other words"), TASK)
    before = len(notebook.history(FERRY, TASK))
    notebook.rename(FERRY, "pages/boat.md", TASK)
    assert len(notebook.history("pages/boat.md", TASK)) == before + 1
    assert notebook.diff("pages/boat.md", session=TASK)
    notebook.rename("pages/boat.md", FERRY, TASK)
    notebook.undo(FERRY, TASK)
    assert text(notebook, FERRY) == FIRST


def test_a_note_that_comes_to_where_another_was_has_its_own_past_alone(notebook: Notebook) -> None:
    notebook.create("pages", "Boat", "A secret.\n", OWNER)
    notebook.update("pages/boat.md", OWNER, content="Another secret.\n")
    notebook.edit(FERRY, write("other words"), TASK)
    own = len(notebook.history(FERRY, TASK))
    notebook.delete("pages/boat.md", OWNER)
    notebook.rename(FERRY, "pages/boat.md", TASK)
    assert len(notebook.history("pages/boat.md", TASK)) == own + 1
    assert notebook.undo("pages/boat.md", TASK).changed
    assert text(notebook, "pages/boat.md") == FIRST


def test_what_was_said_in_a_channel_is_its_readers_alone_with_git_or_without(notebook: Notebook) -> None:
    path = notebook.channels.write(LIKE, TASK).path
    notebook.edit(path, write(LIKE + "more"), TASK)
    own = len(notebook.history(path, TASK))
    notebook.rename(path, "pages/lamp.md", TASK)
    assert len(notebook.history("pages/lamp.md", TASK)) == own + 1
    assert [one.changed_by for one in notebook.history("pages/lamp.md", Session.task("pilot"))] == ["agent:scribe"]
    with pytest.raises(EditFailed, match="is not for all who may read it here"):
        notebook.undo("pages/lamp.md", TASK)
    with pytest.raises(EditFailed):
        notebook.undo("pages/lamp.md", Session.task("pilot"))


@pytest.mark.parametrize("hidden", [True, False])
def test_a_note_that_went_when_an_equal_one_came_is_told_of_to_its_readers_alone(
    repository: Notebook, hidden: bool
) -> None:
    went = "channels/pilot/global/lamp.md" if hidden else "pages/lamp.md"
    (repository.root / went).parent.mkdir(parents=True, exist_ok=True)
    commit_by_hand(repository.root, LIKE, "Write it down", went)
    (repository.root / went).unlink()
    git(repository.root, "add", "-A")
    commit_by_hand(repository.root, LIKE, "Begin a page", "pages/new.md")
    long = ["Begin a page", "Write it down"]
    assert [one.summary for one in repository.history("pages/new.md", TASK)] == (long[:1] if hidden else long)


def test_what_becomes_of_a_hidden_note_does_not_decide_whose_past_a_page_has(repository: Notebook) -> None:
    hidden = repository.root / "channels/pilot/global/lamp.md"
    hidden.parent.mkdir(parents=True)
    hidden.write_text(LIKE)
    commit_by_hand(repository.root, LIKE, "Write it down", "pages/lamp.md")
    git(repository.root, "add", "-A")
    git(repository.root, "commit", "--quiet", "--amend", "--no-edit")
    hidden.unlink()
    (repository.root / "pages/lamp.md").unlink()
    git(repository.root, "add", "-A")
    commit_by_hand(repository.root, LIKE, "Move it", "pages/new.md")
    assert [one.summary for one in repository.history("pages/new.md", TASK)] == ["Move it", "Write it down"]


def test_a_rename_out_of_a_channel_is_told_as_a_beginning(repository: Notebook) -> None:
    path = repository.channels.write(LIKE, TASK).path
    repository.rename(path, "pages/lamp.md", TASK)
    assert len(repository.history("pages/lamp.md", TASK)) == 2
    told = [one.summary for one in repository.history("pages/lamp.md", Session.task("pilot"))]
    assert told == ["Edit pages/lamp.md"]


def test_another_note_where_one_was_has_a_past_of_its_own(notebook: Notebook) -> None:
    first, second = (f"---\nid: {name}\n---\n{LIKE}" for name in ("first", "second"))
    path = "pages/lamp.md"
    notebook.edit(path, write(first), OWNER)
    notebook.delete(path, OWNER)
    notebook.edit(path, write(second), OWNER)
    assert len(notebook.history(path)) == 1
    with pytest.raises(EditFailed, match="no earlier text of it is known"):
        notebook.undo(path, OWNER)
    notebook.edit(path, write(second + "more"), OWNER)
    notebook.undo(path, OWNER)
    assert text(notebook, path) == second
    assert [event["kind"] for event in notebook.events.read()].count("undo") == 1


def test_a_note_that_is_gone_is_found_by_the_id_that_it_had(notebook: Notebook) -> None:
    made = notebook.create("pages", "Lamp", LIKE, TASK)
    notebook.delete(made.path, TASK)
    assert notebook.history(made.notebook_id, TASK)[-1].summary
    assert LIKE.splitlines()[0] in notebook.diff(made.notebook_id, session=TASK)
    undone = notebook.undo(made.notebook_id, TASK)
    assert (undone.path, undone.changed) == (made.path, True)
    assert notebook.read(made.notebook_id)["content"].strip() == LIKE.strip()


def test_what_a_person_deleted_and_committed_is_found_by_its_id(repository: Notebook) -> None:
    commit_by_hand(repository.root, f"---\nid: the-lamp\n---\n{LIKE}", "Begin", "pages/lamp.md")
    git(repository.root, "rm", "--quiet", "pages/lamp.md")
    git(repository.root, "commit", "--quiet", "-m", "Drop it")
    assert repository.undo("the-lamp", TASK).path == "pages/lamp.md"


def test_a_private_note_that_is_gone_is_no_note_to_others(notebook: Notebook) -> None:
    path = "channels/scribe/global/lamp.md"
    notebook.edit(path, write(f"---\nid: the-lamp\n---\n{LIKE}"), OWNER)
    notebook.delete(path, TASK)
    for session in EVERYBODY[1:]:
        for use in (notebook.history, notebook.undo):
            told = []
            for name in ("the-lamp", "no-lamp"):
                with pytest.raises(NoSuchNote) as missing:
                    use(name, session)
                told.append(str(missing.value).replace(name, ""))
            assert told[0] == told[1]
    assert notebook.undo("the-lamp", TASK).path == path


def test_undoing_a_page_does_not_put_there_what_it_said_in_a_channel(repository: Notebook) -> None:
    path = repository.channels.write("A secret.\n", TASK).path
    repository.edit(path, Edit("set_frontmatter", content="title: Lamp"), TASK)
    repository.rename(path, "pages/lamp.md", TASK)
    for session in (OWNER, TASK):
        with pytest.raises(EditFailed, match=rf"what it said before, at {path}"):
            repository.undo("pages/lamp.md", session)
    with pytest.raises(EditFailed, match="no earlier text of it is known"):
        repository.undo("pages/lamp.md", Session.task("pilot"))


def test_a_copy_of_what_changed_with_very_many_notes_is_kept_like_any_other(tmp_path: Path) -> None:
    together = {f"facts/{number}.md": ("0" * 64, "1" * 64) for number in range(1000)}
    past = Past(tmp_path / ".notebook")
    past.keep(FERRY, b"new", "owner", "Edit", together=together)
    assert [(copy.read(), dict(copy.together)) for copy in past.copies(FERRY)] == [(b"new", {})]


def test_what_git_knows_of_a_note_that_is_first_mirrored_with_an_edit_counts(repository: Notebook) -> None:
    for text in ("first", "second", "third"):
        (repository.root / "pages/winter.md").write_text(text)
        git(repository.root, "add", "-A")
        git(repository.root, "commit", "--quiet", "-m", text)
    assert repository.edit("pages/winter.md", write("fourth"), OWNER).version == 4
    assert len(repository.history("pages/winter.md")) == 4
