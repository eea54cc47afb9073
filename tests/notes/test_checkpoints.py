"""Going back in time: what a checkpoint holds, what a rollback brings back, and that it can be taken back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import (
    BackendDown,
    Conflict,
    GitFailed,
    NoSuchCheckpoint,
    NotPermitted,
    Refused,
    UnwritableFile,
    UsageError,
)
from notebook_sync.files import snapshots
from notebook_sync.files.edits import Edit
from notebook_sync.files.vault import Vault
from notebook_sync.operations.registry import plain
from notebook_sync.operations.stream import Rollback
from notebook_sync.refs.entry import new_entry
from tests.notes.conftest import opened
from tests.repositories import git
from tests.servers import free_port

pytestmark = pytest.mark.usefixtures("no_git_settings")

OWNER, TASK = Session.owner(), Session.task("scribe")
WITHHELD = '[[prompt.files]]\npath = "pages/withheld.md"\nsessions = ["owner"]\n'
FERRY = "pages/ferry.md"
# All of the harbour's notes that are in no channel.
LISTED = 6


@pytest.fixture
def repository(harbour: Path) -> Path:
    git(harbour, "init", "--quiet", "--initial-branch=main")
    for name, value in (("user.name", "Ines"), ("user.email", "ines@ferry.example")):
        git(harbour, "config", name, value)
    (harbour / ".gitignore").write_text(".notebook/\ndrafts/\n")
    git(harbour, "add", "-A")
    git(harbour, "commit", "--quiet", "-m", "Begin")
    return harbour


@pytest.fixture
def everywhere(repository: Path, hot: str) -> Iterator[Notebook]:
    """In a repository, on each hot memory in turn."""
    yield from opened(repository, hot)


@pytest.fixture
def notebook(repository: Path) -> Iterator[Notebook]:
    yield from opened(repository)


@pytest.fixture
def without_git(harbour: Path) -> Iterator[Notebook]:
    yield from opened(harbour)


def tree(notebook: Notebook) -> dict[str, bytes]:
    return {path: (notebook.root / path).read_bytes() for path in notebook.files(OWNER)}


def stream(notebook: Notebook) -> list[str]:
    return [entry.content for entry in notebook.stream.show(OWNER).results if not entry.action]


def kept(notebook: Notebook) -> list[str]:
    return [entry["content"] for entry in notebook.refs.longterm()]


def write(notebook: Notebook, path: str, text: str | None) -> None:
    place = notebook.root / path
    if text is None:
        place.unlink()
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def changed(rolled: Rollback) -> dict[str, str]:
    return {change.path: change.change for change in rolled.changed}


def refs_of_git(root: Path) -> set[str]:
    return set(git(root, "for-each-ref", "--format=%(refname:lstrip=3)", snapshots.REFS).split())


# Checkpoints.


def test_a_checkpoint_holds_what_is_now(everywhere: Notebook) -> None:
    everywhere.stream.log("High water", TASK)
    everywhere.stream.log("The harbour closes at ten", TASK, keep=True)
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    made = everywhere.stream.checkpoint("  before\tthe regatta ", TASK)
    entries = len(everywhere.stream.show(OWNER).results)
    assert (made.name, made.notes, made.entries, made.longterm) == ("before the regatta", LISTED, entries, 1)
    assert before <= made.at <= datetime.now(UTC)
    kept_as = git(everywhere.root, "rev-parse", f"{snapshots.REFS}/{made.id}").strip()
    assert (made.commit, made.warnings) == (kept_as, ())
    later = everywhere.stream.checkpoint()
    assert everywhere.stream.checkpoints(OWNER).results == [later, made]
    assert everywhere.stream.checkpoints(TASK).results == [later, made]


def test_a_checkpoint_lists_notes_as_their_files_are(notebook: Notebook) -> None:
    write(notebook, FERRY, "# Ferry\n\nIt leaves at ten.\n")
    write(notebook, "pages/new.md", "---\nid: quay\n---\nNew\n")
    write(notebook, "pages/named.md", None)
    whole = notebook.refs.checkpoint(notebook.stream.checkpoint().id)
    assert whole is not None
    listed = {one["path"]: one for one in whole["notebook"]}
    assert listed.keys() == notebook.files(OWNER).keys() - {
        path for path in tree(notebook) if path.startswith("channels")
    }
    for path, one in listed.items():
        assert one["digest"] == sha256((notebook.root / path).read_bytes()).hexdigest()
    assert listed["pages/new.md"] == {**listed["pages/new.md"], "id": "quay", "collection": "pages", "version": 0}
    assert listed[FERRY] == {**listed[FERRY], "id": "pages/ferry", "version": 1}


def test_hot_memory_is_told_of_no_private_note(notebook: Notebook) -> None:
    made = notebook.stream.checkpoint()
    assert "channels" not in json.dumps(notebook.refs.checkpoint(made.id))
    snapshot = snapshots.read(notebook.root, made.commit)
    assert snapshot is not None
    assert snapshot.blobs.keys() == tree(notebook).keys()


def test_seven_days_are_kept(notebook: Notebook) -> None:
    now = datetime.now(UTC)
    for age in range(9):
        notebook.refs.log(new_entry(f"age{age}", f"{age} days ago", now=now - timedelta(days=age)))
    whole = notebook.refs.checkpoint(notebook.stream.checkpoint().id)
    assert whole is not None
    days = [(now - timedelta(days=age)).date().isoformat() for age in reversed(range(7))]
    assert sorted(whole["days"]) == days
    assert [entry["content"] for entry in whole["days"][days[0]]] == ["6 days ago"]


def test_the_counts_tell_a_session_of_nothing_that_it_may_not_read(repository: Path) -> None:
    for notebook in opened(repository, WITHHELD):
        entries = len(notebook.stream.show(OWNER).results)
        made = notebook.stream.checkpoint("", TASK)
        assert (made.notes, made.entries) == (LISTED - 1, len(notebook.stream.show(TASK).results))
        assert notebook.stream.checkpoints(TASK).results == [made]
        (owned,) = notebook.stream.checkpoints(OWNER).results
        assert (owned.notes, owned.entries) == (LISTED, entries)


def test_fifty_are_kept_and_git_forgets_the_others(notebook: Notebook) -> None:
    made = [notebook.stream.checkpoint(str(number), OWNER).id for number in range(52)]
    assert [one.id for one in notebook.stream.checkpoints(OWNER).results] == made[:1:-1]
    assert refs_of_git(notebook.root) == set(made[2:])


def test_agents_push_out_none_of_the_owners(notebook: Notebook) -> None:
    first = notebook.stream.checkpoint("the owner's", OWNER)
    for number in range(52):
        notebook.stream.checkpoint(str(number), TASK)
    names = [one.name for one in notebook.stream.checkpoints(OWNER).results]
    assert names == [*map(str, range(51, 2, -1)), "the owner's"]
    assert notebook.stream.rollback(first.id, OWNER, files=True).id == first.id


def test_the_checkpoint_that_is_gone_back_to_is_kept_where_nothing_came_of_it(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = notebook.stream.checkpoint("then", OWNER)
    for number in range(49):
        notebook.stream.checkpoint(str(number), OWNER)
    write(notebook, FERRY, "other")
    meanwhile(monkeypatch, lambda: write(notebook, FERRY, "a person's words"))
    with pytest.raises(Conflict):
        notebook.stream.rollback(then.id, OWNER, files=True)
    assert notebook.stream.checkpoints(OWNER).results[-1] == then
    notebook.stream.rollback(then.id, OWNER, files=True)
    assert (notebook.root / FERRY).read_text() == "# Ferry\n\nIt leaves at nine.\n"


@pytest.mark.parametrize("name", ["x" * 201, "\ud800", "a\0b", "\u202e"])
def test_a_name_is_one_line(notebook: Notebook, name: str) -> None:
    with pytest.raises(UsageError, match="one line"):
        notebook.stream.checkpoint(name, OWNER)
    assert notebook.stream.checkpoints(OWNER).results == []
    assert refs_of_git(notebook.root) == set()


def test_without_git_a_checkpoint_has_no_files(without_git: Notebook) -> None:
    without_git.stream.log("High water", OWNER)
    made = without_git.stream.checkpoint("first", OWNER)
    assert (made.commit, made.warnings) == ("", ())
    with pytest.raises(UsageError, match=r"no git; roll back without files.*git init /"):
        without_git.stream.rollback(made.id, OWNER, files=True)
    assert [one.name for one in without_git.stream.checkpoints(OWNER).results] == ["first"]
    assert without_git.stream.rollback(made.id, OWNER).restored == []


def test_a_git_that_fails_costs_the_files_alone(notebook: Notebook) -> None:
    first = notebook.stream.checkpoint()
    (notebook.root / ".git" / "config").write_text("[core\n")
    made = notebook.stream.checkpoint()
    assert made.commit == ""
    assert "kept without the files" in made.warnings[0]
    with pytest.raises(GitFailed):
        notebook.stream.rollback(first.id, OWNER, files=True)


def test_no_commit_is_left_of_a_checkpoint_that_hot_memory_did_not_take(repository: Path) -> None:
    for _ in opened(repository):
        pass
    (repository / "notebook.toml").write_text(f'[refs]\nurl = "redis://127.0.0.1:{free_port()}"\n')
    with Notebook.open(repository) as notebook:
        for call in (notebook.stream.checkpoint, notebook.stream.checkpoints):
            with pytest.raises(BackendDown):
                call()
    assert refs_of_git(repository) == set()


# Rolling back.


def test_stream_and_long_term_memory_come_back(everywhere: Notebook) -> None:
    everywhere.stream.log("High water", OWNER)
    everywhere.stream.log("Closes at ten", OWNER, keep=True)
    day = everywhere.stream.show(OWNER)
    then = everywhere.stream.checkpoint("then", OWNER)
    everywhere.stream.log("Low water", TASK)
    everywhere.stream.log("Closes at eleven", TASK, keep=True)
    rolled = everywhere.stream.rollback(then.id, OWNER)
    assert everywhere.stream.show(OWNER) == day
    assert kept(everywhere) == ["Closes at ten"]
    assert [one.content for one in everywhere.stream.recall("water closes", OWNER).results if not one.ref] != []
    assert "Low water" not in str(everywhere.stream.recall("water", OWNER))
    assert (rolled.id, rolled.entries, rolled.longterm) == (then.id, len(day.results), 1)
    assert (rolled.changed, rolled.restored, rolled.commit, rolled.warnings) == ([], [], "", [])
    newest = everywhere.stream.checkpoints(OWNER).results[0]
    assert (newest.id, newest.name) == (rolled.before, "before rollback to then")


def test_a_rollback_of_a_rollback_brings_everything_back(everywhere: Notebook) -> None:
    then = everywhere.stream.checkpoint()
    everywhere.stream.log("Low water", TASK)
    everywhere.stream.log("Closes at eleven", TASK, keep=True)
    write(everywhere, FERRY, "# Ferry\n\nIt leaves at ten.\r\n")
    write(everywhere, "pages/new.md", "never committed")
    write(everywhere, "pages/named.md", None)
    write(everywhere, "channels/pilot/global/private.md", None)
    everywhere.sync()
    files, memory, day = tree(everywhere), everywhere.refs.longterm(), everywhere.stream.show(OWNER)
    rolled = everywhere.stream.rollback(then.id, OWNER, files=True)
    assert stream(everywhere) == []
    assert tree(everywhere) != files
    everywhere.stream.rollback(rolled.before, OWNER, files=True)
    assert [one.name for one in everywhere.stream.checkpoints(OWNER).results] == [
        f"before rollback to {rolled.before}",
        f"before rollback to {then.id}",
        "",
    ]
    assert tree(everywhere) == files
    assert everywhere.refs.longterm() == memory
    assert everywhere.stream.show(OWNER).results[: len(day.results)] == day.results
    assert stream(everywhere) == ["Low water"]
    assert everywhere.admin.verify().consistent


def test_days_since_an_old_checkpoint_are_emptied_and_come_back(notebook: Notebook) -> None:
    now = datetime.now(UTC)
    long_ago, since = now - timedelta(days=30), now - timedelta(days=20)
    notebook.refs.log(new_entry("old", "Long ago", now=long_ago))
    first = (long_ago - timedelta(days=6)).date()
    days = {
        (first + timedelta(days=n)).isoformat(): notebook.refs.day((first + timedelta(days=n)).isoformat())
        for n in range(7)
    }
    target = {
        "id": "0000-then",
        "name": "",
        "at": long_ago.isoformat(),
        "commit": "",
        "notebook": [],
        "days": days,
        "longterm": [],
    }
    notebook.refs.put_checkpoint(target)
    notebook.refs.log(new_entry("mid", "Since then", now=since))
    notebook.stream.log("Today", OWNER)
    rolled = notebook.stream.rollback("0000-then", OWNER)
    assert [entry.id for entry in notebook.stream.show(OWNER, day=long_ago.date().isoformat()).results] == ["old"]
    assert notebook.stream.show(OWNER, day=since.date().isoformat()).results == []
    assert notebook.stream.show(OWNER).results == []
    notebook.stream.rollback(rolled.before, OWNER)
    assert [entry.id for entry in notebook.stream.show(OWNER, day=since.date().isoformat()).results] == ["mid"]
    assert stream(notebook) == ["Today"]


def test_what_became_of_notes_since_is_told(everywhere: Notebook) -> None:
    then = everywhere.stream.checkpoint()
    write(everywhere, FERRY, "# Ferry\n\nIt leaves at ten.\n")
    everywhere.edit("pages/new.md", Edit("write", content="New\n"), TASK)
    write(everywhere, "code_snippets/tide.md", None)
    (everywhere.root / "pages/named.md").rename(everywhere.root / "pages/moved.md")
    write(everywhere, "channels/scribe/global/own.md", "Other water\n")
    rolled = everywhere.stream.rollback(then.id, OWNER)
    assert changed(rolled) == {
        "code_snippets/tide.md": "deleted",
        FERRY: "updated",
        "pages/moved.md": "updated",
        "pages/new.md": "created",
    }
    assert plain(rolled)["changed"][0] == {
        "id": "code_snippets/tide",
        "path": "code_snippets/tide.md",
        "collection": "code_snippets",
        "change": "deleted",
    }
    assert (everywhere.root / FERRY).read_text() == "# Ferry\n\nIt leaves at ten.\n"


def test_the_files_come_back_in_one_commit(notebook: Notebook) -> None:
    write(notebook, FERRY, "# Ferry\r\n\r\nnot committed, no final newline")
    write(notebook, "notes/deep/er.md", "not committed either")
    files = tree(notebook)
    then = notebook.stream.checkpoint("then", OWNER)
    write(notebook, FERRY, "other")
    write(notebook, "notes/deep/er.md", None)
    (notebook.root / "notes/deep").rmdir()
    write(notebook, "pages/new.md", "made since")
    write(notebook, "channels/pilot/global/private.md", "other")
    git(notebook.root, "add", "-A")
    git(notebook.root, "commit", "--quiet", "-m", "Since")
    head = git(notebook.root, "rev-parse", "HEAD").strip()
    rolled = notebook.stream.rollback(then.id, OWNER, files=True)
    assert tree(notebook) == files
    assert rolled.restored == ["channels/pilot/global/private.md", "notes/deep/er.md", FERRY, "pages/new.md"]
    assert rolled.commit == git(notebook.root, "rev-parse", "HEAD").strip()
    assert git(notebook.root, "rev-parse", "HEAD^").strip() == head
    assert git(notebook.root, "status", "--porcelain").split() == []
    assert "Reason: to the checkpoint then" in git(notebook.root, "log", "-1", "--format=%B")
    assert notebook.admin.verify().consistent


def test_files_that_are_no_notes_stay(notebook: Notebook) -> None:
    others = {
        "notebook.toml": "",
        "table.csv": "1\n",
        "drafts/idea.md": "ignored",
        ".obsidian/x.md": "hidden",
        "made.py": "1",
    }
    then = notebook.stream.checkpoint()
    for path in others:
        write(notebook, path, others[path] + "# since\n")
    notebook.stream.rollback(then.id, OWNER, files=True)
    for path, text in others.items():
        assert (notebook.root / path).read_text() == text + "# since\n"


def test_a_note_that_is_none_any_more_is_left_and_told(notebook: Notebook) -> None:
    then = notebook.stream.checkpoint()
    write(notebook, ".gitignore", ".notebook/\ncode_snippets/\n")
    write(notebook, "code_snippets/tide.md", "other")
    (notebook.root / FERRY).unlink()
    (notebook.root / FERRY).symlink_to("named.md")
    write(notebook, "pages/named.md", "other")
    rolled = notebook.stream.rollback(then.id, OWNER, files=True)
    assert rolled.restored == ["pages/named.md"]
    assert [path for path in ("code_snippets/tide.md", FERRY) if any(path in told for told in rolled.warnings)] == [
        "code_snippets/tide.md",
        FERRY,
    ]
    assert (notebook.root / "code_snippets/tide.md").read_text() == "other"


def test_what_could_not_be_read_then_is_not_taken_away(repository: Path) -> None:
    write_large = "x" * 3000
    for notebook in opened(repository, "[notebook]\nmax_file_bytes = 2000\n"):
        write(notebook, "pages/large.md", write_large)
        then = notebook.stream.checkpoint()
    for notebook in opened(repository):
        rolled = notebook.stream.rollback(then.id, OWNER, files=True)
        assert rolled.restored == []
        assert (notebook.root / "pages/large.md").read_text() == write_large


@pytest.mark.parametrize(
    ("settings", "ignored"),
    [('[notebook]\nexclude = ["drafts/", "pages/own.md"]\n', ""), ("", "drafts/\npages/own.md\n")],
)
def test_what_was_no_note_then_is_not_taken_away(repository: Path, settings: str, ignored: str) -> None:
    there = ("drafts/deep/idea.md", "pages/own.md")
    (repository / ".gitignore").write_text(f".notebook/\n{ignored}")
    for notebook in opened(repository, settings):
        for path in there:
            write(notebook, path, "Never kept\n")
        then = notebook.stream.checkpoint()
    (repository / ".gitignore").write_text(".notebook/\n")
    for notebook in opened(repository):
        write(notebook, "pages/new.md", "Made since\n")
        rolled = notebook.stream.rollback(then.id, OWNER, files=True)
        assert rolled.restored == ["pages/new.md"]
        assert [(notebook.root / path).read_text() for path in there] == ["Never kept\n"] * 2
        (warning,) = rolled.warnings
        assert warning.startswith("left as it is: drafts/deep/idea.md, pages/own.md: no note then")


def test_a_note_that_became_a_folder_is_left_with_what_is_in_it(notebook: Notebook) -> None:
    then = notebook.stream.checkpoint()
    (notebook.root / FERRY).unlink()
    (notebook.root / FERRY).mkdir()
    (notebook.root / FERRY / "in.md").write_text("made since\n")
    (notebook.root / "pages/new.md").write_text("made since\n")
    rolled = notebook.stream.rollback(then.id, OWNER, files=True)
    assert (notebook.root / FERRY / "in.md").read_text() == "made since\n"
    assert any(warning.startswith(f"left as it is: {FERRY}") for warning in rolled.warnings)
    assert rolled.restored == ["pages/new.md"]


def meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Let a person be faster, right before the first note is written."""
    writing = Vault.write

    def slower(vault: Vault, path: str, raw: bytes, *, base: str | None) -> object:
        monkeypatch.setattr(Vault, "write", writing)
        change()
        return vault.write(path, raw, base=base)

    monkeypatch.setattr(Vault, "write", slower)


def test_a_person_who_is_faster_keeps_their_words_and_nothing_is_done(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = notebook.stream.checkpoint()
    write(notebook, "code_snippets/tide.md", "other")
    write(notebook, FERRY, "other")
    write(notebook, "pages/new.md", "made since")
    notebook.stream.log("Low water", OWNER)
    head, files, day = git(notebook.root, "rev-parse", "HEAD"), tree(notebook), stream(notebook)
    meanwhile(monkeypatch, lambda: write(notebook, FERRY, "a person's words"))
    with pytest.raises(
        Conflict, match=r"pages/ferry.md was changed.*nothing was brought back: roll back again"
    ) as conflict:
        notebook.stream.rollback(then.id, OWNER, files=True)
    assert conflict.value.path == FERRY
    assert tree(notebook) == files | {FERRY: b"a person's words"}
    assert stream(notebook) == day
    assert git(notebook.root, "rev-parse", "HEAD") == head
    notebook.stream.rollback(then.id, OWNER, files=True)
    assert (notebook.root / FERRY).read_text() == "# Ferry\n\nIt leaves at nine.\n"


def test_a_disk_that_takes_one_note_and_not_the_next_keeps_all_as_they_were(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = notebook.stream.checkpoint()
    write(notebook, "code_snippets/tide.md", "other")
    write(notebook, FERRY, "other")
    files = tree(notebook)
    writing = Vault.write

    def full(vault: Vault, path: str, raw: bytes, *, base: str | None) -> object:
        if path == FERRY:
            raise UnwritableFile(path, "no space left on device")
        return writing(vault, path, raw, base=base)

    monkeypatch.setattr(Vault, "write", full)
    with pytest.raises(UnwritableFile):
        notebook.stream.rollback(then.id, OWNER, files=True)
    assert tree(notebook) == files


def test_what_is_told_while_a_rollback_runs_stays(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    then = notebook.stream.checkpoint()
    notebook.stream.log("Since", OWNER)
    write(notebook, FERRY, "other")
    notebook.sync()

    def log() -> None:
        notebook.stream.log("Meanwhile", TASK)
        notebook.stream.log("For good", TASK, keep=True)

    meanwhile(monkeypatch, log)
    notebook.stream.rollback(then.id, OWNER, files=True)
    assert stream(notebook) == ["Meanwhile"]
    assert kept(notebook) == ["For good"]
    told = [one for one in notebook.stream.show(OWNER).results if one.path == FERRY]
    assert [one.action for one in told] == ["created", "updated"]
    assert told[-1].content == "[Ferry] It leaves at nine."


def test_notes_that_were_all_deleted_come_back(notebook: Notebook) -> None:
    files = tree(notebook)
    then = notebook.stream.checkpoint()
    for path in files:
        write(notebook, path, None)
    rolled = notebook.stream.rollback(then.id, OWNER, files=True)
    assert tree(notebook) == files
    assert set(changed(rolled).values()) == {"deleted"}


def test_a_checkpoint_of_another_clone_has_no_files_here(notebook: Notebook, tmp_path: Path) -> None:
    then = notebook.stream.checkpoint()
    snapshots.drop(notebook.root, [then.id])
    git(notebook.root, "gc", "--quiet", "--prune=now")
    with pytest.raises(UsageError, match=rf"not in this repository; fetch {snapshots.REFS}/{then.id}"):
        notebook.stream.rollback(then.id, OWNER, files=True)
    assert len(notebook.stream.checkpoints(OWNER).results) == 1
    assert notebook.stream.rollback(then.id, OWNER).id == then.id


def test_an_id_may_be_cut(notebook: Notebook) -> None:
    then = notebook.stream.checkpoint()
    assert notebook.stream.rollback(then.id[:4].upper(), OWNER).id == then.id
    for name in ("abcd-one", "abcd-two"):
        whole = notebook.refs.checkpoint(then.id)
        assert whole is not None
        notebook.refs.put_checkpoint({**whole, "id": name})
    with pytest.raises(UsageError, match=r"several checkpoints begin with 'abcd'"):
        notebook.stream.rollback("abcd", OWNER)
    assert notebook.stream.rollback("abcd-two", OWNER).id == "abcd-two"


@pytest.mark.parametrize("name", ["", "abc", "no such", "*", "\ud800\0", "x" * 10_000, "a\nb", "0000-0000"])
def test_an_unknown_checkpoint_is_told(notebook: Notebook, name: str) -> None:
    made = notebook.stream.checkpoint("the ebb")
    with pytest.raises(NoSuchCheckpoint, match=r"see: notebook-sync checkpoint list") as told:
        notebook.stream.rollback(name, OWNER)
    assert len(str(told.value)) < 500
    (candidate,) = told.value.candidates
    assert candidate.startswith(f"{made.id} ")
    assert candidate.endswith(" the ebb")
    assert len(notebook.stream.checkpoints(OWNER).results) == 1


@pytest.mark.parametrize("session", [TASK, Session.task(), Session.external("scribe")])
def test_only_an_owner_goes_back(notebook: Notebook, session: Session) -> None:
    then = notebook.stream.checkpoint()
    events = len(notebook.events.read())
    for name in (then.id, "no such"):
        with pytest.raises(
            NotPermitted, match=r"^Going back to a checkpoint is only available in owner conversations$"
        ):
            notebook.stream.rollback(name, session)
    refused = notebook.events.read()[events:]
    assert [(event["kind"], event["tool"]) for event in refused] == [("refused", "rollback")] * 2
    assert len(notebook.stream.checkpoints(OWNER).results) == 1


def test_a_rollback_is_in_the_event_log(notebook: Notebook) -> None:
    then = notebook.stream.checkpoint()
    write(notebook, FERRY, "other")
    rolled = notebook.stream.rollback(then.id, OWNER, files=True)
    told = [event for event in notebook.events.read() if event["kind"] in {"checkpoint", "rollback"}]
    assert [(event["kind"], event.get("path", ""), event.get("checkpoint")) for event in told] == [
        ("checkpoint", "", then.id),
        ("rollback", FERRY, None),
        ("rollback", "", then.id),
    ]
    assert told[-1]["before"] == rolled.before


# Foreseeing a rollback.


def test_a_rollback_is_foreseen_as_it_then_is(everywhere: Notebook) -> None:
    everywhere.stream.log("High water", OWNER)
    everywhere.stream.log("Closes at ten", OWNER, keep=True)
    then = everywhere.stream.checkpoint("then", OWNER)
    everywhere.stream.log("Low water", TASK)
    everywhere.stream.log("Closes at eleven", TASK, keep=True)
    write(everywhere, FERRY, "# Ferry\n\nIt leaves at ten.\n")
    write(everywhere, "pages/new.md", "New\n")
    write(everywhere, "pages/named.md", None)
    everywhere.sync()
    seen = everywhere.stream.rollback(then.id[:8], OWNER, files=True, dry_run=True)
    plan = seen.plan
    assert plan is not None
    assert [one.content for one in plan.stream.gone if not one.action] == ["Low water"]
    assert {one.path for one in plan.stream.gone if one.action} == {FERRY, "pages/new.md", "pages/named.md"}
    assert (plan.stream.back, plan.stream.stay) == ([], then.entries)
    assert [one.content for one in plan.longterm.gone] == ["Closes at eleven"]
    assert (plan.longterm.back, plan.longterm.stay) == ([], 1)
    assert {one.path: one.change for one in plan.files} == {
        FERRY: "updated",
        "pages/new.md": "deleted",
        "pages/named.md": "created",
    }
    assert (plan.checkpoint, plan.latest, seen.before, seen.warnings) == (then, then.id, "", [])
    with pytest.raises(Refused, match="Nothing was brought back"):
        everywhere.stream.rollback(then.id, OWNER, expected_digest=plan.digest)
    rolled = everywhere.stream.rollback(then.id, OWNER, files=True, expected_digest=plan.digest)
    assert rolled.changed == seen.changed
    assert rolled.restored == seen.restored == [one.path for one in plan.files]
    undone = everywhere.stream.rollback(rolled.before, OWNER, files=True, dry_run=True).plan
    assert undone is not None
    assert {one.id for one in undone.stream.back} == {one.id for one in plan.stream.gone}
    assert {one.id for one in undone.longterm.back} == {one.id for one in plan.longterm.gone}


def test_foreseeing_changes_nothing(notebook: Notebook) -> None:
    then = notebook.stream.checkpoint()
    notebook.stream.log("Low water", TASK)
    write(notebook, FERRY, "other")
    before = (
        tree(notebook),
        notebook.stream.show(OWNER),
        notebook.stream.checkpoints(OWNER).results,
        refs_of_git(notebook.root),
    )
    assert [one.change for one in notebook.stream.rollback(then.id, OWNER, dry_run=True).changed] == ["updated"]
    assert notebook.stream.rollback(then.id, OWNER, dry_run=True).restored == []
    notebook.stream.rollback(then.id, OWNER, files=True, dry_run=True)
    assert before == (
        tree(notebook),
        notebook.stream.show(OWNER),
        notebook.stream.checkpoints(OWNER).results,
        refs_of_git(notebook.root),
    )


def test_what_cannot_be_gone_back_to_cannot_be_foreseen(without_git: Notebook) -> None:
    made = without_git.stream.checkpoint()
    with pytest.raises(UsageError, match="no git"):
        without_git.stream.rollback(made.id, OWNER, files=True, dry_run=True)
    with pytest.raises(NoSuchCheckpoint):
        without_git.stream.rollback("0000", OWNER, dry_run=True)
    with pytest.raises(NotPermitted):
        without_git.stream.rollback(made.id, TASK, dry_run=True)
