"""Taking edits back, and looking at what a note said: by git, or by the copies that edits leave."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import EditFailed, NoSuchNote, NotPermitted
from notebook_sync.files.edits import Edit
from notebook_sync.notes.past import KEPT

OWNER, TASK, EXTERNAL = Session.owner("scribe"), Session.task("scribe"), Session.external("scribe")
RULES = "runtime/external-communications.md"
FERRY = "pages/ferry.md"
FIRST = "# Ferry\n\n- Nine\n"


def write(text: str) -> Edit:
    return Edit("write", content=text)


def git(root: Path, *arguments: str) -> str:
    told = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True)
    return told.stdout.decode()


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


def test_copies_are_few_and_for_the_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("0")
    with Notebook.open(tmp_path) as notebook:
        for number in range(KEPT + 5):
            notebook.edit("a.md", write(f"{number + 1}"), TASK)
        assert len(notebook.history("a.md")) == KEPT
    copies = [path for path in (tmp_path / ".notebook" / "past").rglob("*") if path.is_file()]
    assert len(copies) == KEPT
    assert {path.stat().st_mode & 0o077 for path in copies} == {0}


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
    repository.write_note(LIKE + secret, TASK)
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
    path = repository.write_note(LIKE, TASK).path
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
    path = repository.write_note("A secret.\n", TASK).path
    repository.edit(path, Edit("set_frontmatter", content="title: Lamp"), TASK)
    repository.rename(path, "pages/lamp.md", TASK)
    for session in (OWNER, TASK):
        with pytest.raises(EditFailed, match=rf"what it said before, at {path}"):
            repository.undo("pages/lamp.md", session)
    with pytest.raises(EditFailed, match="no earlier text of it is known"):
        repository.undo("pages/lamp.md", Session.task("pilot"))
