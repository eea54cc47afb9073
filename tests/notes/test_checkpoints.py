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
    UnwritableFile,
    UsageError,
)
from notebook_sync.files import snapshots
from notebook_sync.files.edits import Edit
from notebook_sync.files.vault import Vault
from notebook_sync.notes.stream.rolled_back import RolledBack
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
    return [entry["content"] for entry in notebook.today(OWNER).entries if "action" not in entry]


def kept(notebook: Notebook) -> list[str]:
    return [entry["content"] for entry in notebook.refs.longterm()]


def write(notebook: Notebook, path: str, text: str | None) -> None:
    place = notebook.root / path
    if text is None:
        place.unlink()
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def changed(rolled: RolledBack) -> dict[str, str]:
    return {change.path: change.change for change in rolled.changed}


def refs_of_git(root: Path) -> set[str]:
    return set(git(root, "for-each-ref", "--format=%(refname:lstrip=3)", snapshots.REFS).split())


# Checkpoints.


def test_a_checkpoint_holds_what_is_now(everywhere: Notebook) -> None:
    everywhere.log("High water", TASK)
    everywhere.log("The harbour closes at ten", TASK, keep=True)
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    made = everywhere.checkpoint(TASK, "  before\tthe regatta ")
    entries = len(everywhere.today(OWNER).entries)
    assert (made.name, made.notes, made.entries, made.longterm) == ("before the regatta", LISTED, entries, 1)
    assert before <= made.at <= datetime.now(UTC)
    assert made.as_dict() == {
        "id": made.id,
        "name": "before the regatta",
        "at": made.at.isoformat(),
        "notes": LISTED,
        "entries": entries,
        "longterm": 1,
        "commit": git(everywhere.root, "rev-parse", f"{snapshots.REFS}/{made.id}").strip(),
        "warnings": [],
    }
    later = everywhere.checkpoint(OWNER)
    assert list(everywhere.checkpoints(OWNER)) == [later, made]
    assert list(everywhere.checkpoints(TASK)) == [later, made]


def test_a_checkpoint_lists_notes_as_their_files_are(notebook: Notebook) -> None:
    write(notebook, FERRY, "# Ferry\n\nIt leaves at ten.\n")
    write(notebook, "pages/new.md", "---\nid: quay\n---\nNew\n")
    write(notebook, "pages/named.md", None)
    whole = notebook.refs.checkpoint(notebook.checkpoint(OWNER).id)
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
    made = notebook.checkpoint(OWNER)
    assert "channels" not in json.dumps(notebook.refs.checkpoint(made.id))
    snapshot = snapshots.read(notebook.root, made.commit)
    assert snapshot is not None
    assert snapshot.blobs.keys() == tree(notebook).keys()


def test_seven_days_are_kept(notebook: Notebook) -> None:
    now = datetime.now(UTC)
    for age in range(9):
        notebook.refs.log(new_entry(f"age{age}", f"{age} days ago", now=now - timedelta(days=age)))
    whole = notebook.refs.checkpoint(notebook.checkpoint(OWNER).id)
    assert whole is not None
    days = [(now - timedelta(days=age)).date().isoformat() for age in reversed(range(7))]
    assert sorted(whole["days"]) == days
    assert [entry["content"] for entry in whole["days"][days[0]]] == ["6 days ago"]


def test_the_counts_tell_a_session_of_nothing_that_it_may_not_read(repository: Path) -> None:
    for notebook in opened(repository, WITHHELD):
        entries = len(notebook.today(OWNER).entries)
        made = notebook.checkpoint(TASK)
        assert (made.notes, made.entries) == (LISTED - 1, len(notebook.today(TASK).entries))
        assert list(notebook.checkpoints(TASK)) == [made]
        (owned,) = notebook.checkpoints(OWNER)
        assert (owned.notes, owned.entries) == (LISTED, entries)


def test_fifty_are_kept_and_git_forgets_the_others(notebook: Notebook) -> None:
    made = [notebook.checkpoint(OWNER, str(number)).id for number in range(52)]
    assert [one.id for one in notebook.checkpoints(OWNER)] == made[:1:-1]
    assert refs_of_git(notebook.root) == set(made[2:])


def test_agents_push_out_none_of_the_owners(notebook: Notebook) -> None:
    first = notebook.checkpoint(OWNER, "the owner's")
    for number in range(52):
        notebook.checkpoint(TASK, str(number))
    names = [one.name for one in notebook.checkpoints(OWNER)]
    assert names == [*map(str, range(51, 2, -1)), "the owner's"]
    assert notebook.rollback(first.id, OWNER, files=True).id == first.id


def test_the_checkpoint_that_is_gone_back_to_is_kept_where_nothing_came_of_it(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = notebook.checkpoint(OWNER, "then")
    for number in range(49):
        notebook.checkpoint(OWNER, str(number))
    write(notebook, FERRY, "other")
    meanwhile(monkeypatch, lambda: write(notebook, FERRY, "a person's words"))
    with pytest.raises(Conflict):
        notebook.rollback(then.id, OWNER, files=True)
    assert notebook.checkpoints(OWNER)[-1] == then
    notebook.rollback(then.id, OWNER, files=True)
    assert (notebook.root / FERRY).read_text() == "# Ferry\n\nIt leaves at nine.\n"


@pytest.mark.parametrize("name", ["x" * 201, "\ud800", "a\0b", "\u202e"])
def test_a_name_is_one_line(notebook: Notebook, name: str) -> None:
    with pytest.raises(UsageError, match="one line"):
        notebook.checkpoint(OWNER, name)
    assert list(notebook.checkpoints(OWNER)) == []
    assert refs_of_git(notebook.root) == set()


def test_without_git_a_checkpoint_has_no_files(without_git: Notebook) -> None:
    without_git.log("High water", OWNER)
    made = without_git.checkpoint(OWNER, "first")
    assert (made.commit, made.warnings) == ("", ())
    with pytest.raises(UsageError, match=r"no git; roll back without files.*git init /"):
        without_git.rollback(made.id, OWNER, files=True)
    assert [one.name for one in without_git.checkpoints(OWNER)] == ["first"]
    assert without_git.rollback(made.id, OWNER).restored == ()


def test_a_git_that_fails_costs_the_files_alone(notebook: Notebook) -> None:
    first = notebook.checkpoint(OWNER)
    (notebook.root / ".git" / "config").write_text("[core\n")
    made = notebook.checkpoint(OWNER)
    assert made.commit == ""
    assert "kept without the files" in made.warnings[0]
    with pytest.raises(GitFailed):
        notebook.rollback(first.id, OWNER, files=True)


def test_no_commit_is_left_of_a_checkpoint_that_hot_memory_did_not_take(repository: Path) -> None:
    for _ in opened(repository):
        pass
    (repository / "notebook.toml").write_text(f'[refs]\nurl = "redis://127.0.0.1:{free_port()}"\n')
    with Notebook.open(repository) as notebook:
        for call in (notebook.checkpoint, notebook.checkpoints):
            with pytest.raises(BackendDown):
                call(OWNER)
    assert refs_of_git(repository) == set()


# Rolling back.


def test_stream_and_long_term_memory_come_back(everywhere: Notebook) -> None:
    everywhere.log("High water", OWNER)
    everywhere.log("Closes at ten", OWNER, keep=True)
    day = everywhere.today(OWNER)
    then = everywhere.checkpoint(OWNER, "then")
    everywhere.log("Low water", TASK)
    everywhere.log("Closes at eleven", TASK, keep=True)
    rolled = everywhere.rollback(then.id, OWNER)
    assert everywhere.today(OWNER) == day
    assert kept(everywhere) == ["Closes at ten"]
    assert [one["content"] for one in everywhere.recall("water closes", OWNER)["results"] if "ref" not in one] != []
    assert "Low water" not in str(everywhere.recall("water", OWNER))
    assert (rolled.id, rolled.entries, rolled.longterm) == (then.id, len(day.entries), 1)
    assert (rolled.changed, rolled.restored, rolled.commit, rolled.warnings) == ((), (), "", ())
    newest = everywhere.checkpoints(OWNER)[0]
    assert (newest.id, newest.name) == (rolled.before, "before rollback to then")


def test_a_rollback_of_a_rollback_brings_everything_back(everywhere: Notebook) -> None:
    then = everywhere.checkpoint(OWNER)
    everywhere.log("Low water", TASK)
    everywhere.log("Closes at eleven", TASK, keep=True)
    write(everywhere, FERRY, "# Ferry\n\nIt leaves at ten.\r\n")
    write(everywhere, "pages/new.md", "never committed")
    write(everywhere, "pages/named.md", None)
    write(everywhere, "channels/pilot/global/private.md", None)
    everywhere.sync()
    files, memory, day = tree(everywhere), everywhere.refs.longterm(), everywhere.today(OWNER)
    rolled = everywhere.rollback(then.id, OWNER, files=True)
    assert stream(everywhere) == []
    assert tree(everywhere) != files
    everywhere.rollback(rolled.before, OWNER, files=True)
    assert [one.name for one in everywhere.checkpoints(OWNER)] == [
        f"before rollback to {rolled.before}",
        f"before rollback to {then.id}",
        "",
    ]
    assert tree(everywhere) == files
    assert everywhere.refs.longterm() == memory
    assert everywhere.today(OWNER).entries[: len(day.entries)] == day.entries
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
    notebook.log("Today", OWNER)
    rolled = notebook.rollback("0000-then", OWNER)
    assert [entry["id"] for entry in notebook.today(OWNER, long_ago.date().isoformat()).entries] == ["old"]
    assert notebook.today(OWNER, since.date().isoformat()).entries == []
    assert notebook.today(OWNER).entries == []
    notebook.rollback(rolled.before, OWNER)
    assert [entry["id"] for entry in notebook.today(OWNER, since.date().isoformat()).entries] == ["mid"]
    assert stream(notebook) == ["Today"]


def test_what_became_of_notes_since_is_told(everywhere: Notebook) -> None:
    then = everywhere.checkpoint(OWNER)
    write(everywhere, FERRY, "# Ferry\n\nIt leaves at ten.\n")
    everywhere.edit("pages/new.md", Edit("write", content="New\n"), TASK)
    write(everywhere, "code_snippets/tide.md", None)
    (everywhere.root / "pages/named.md").rename(everywhere.root / "pages/moved.md")
    write(everywhere, "channels/scribe/global/own.md", "Other water\n")
    rolled = everywhere.rollback(then.id, OWNER)
    assert changed(rolled) == {
        "code_snippets/tide.md": "deleted",
        FERRY: "updated",
        "pages/moved.md": "updated",
        "pages/new.md": "created",
    }
    assert rolled.as_dict()["changed"][0] == {
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
    then = notebook.checkpoint(OWNER, "then")
    write(notebook, FERRY, "other")
    write(notebook, "notes/deep/er.md", None)
    (notebook.root / "notes/deep").rmdir()
    write(notebook, "pages/new.md", "made since")
    write(notebook, "channels/pilot/global/private.md", "other")
    git(notebook.root, "add", "-A")
    git(notebook.root, "commit", "--quiet", "-m", "Since")
    head = git(notebook.root, "rev-parse", "HEAD").strip()
    rolled = notebook.rollback(then.id, OWNER, files=True)
    assert tree(notebook) == files
    assert rolled.restored == ("channels/pilot/global/private.md", "notes/deep/er.md", FERRY, "pages/new.md")
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
    then = notebook.checkpoint(OWNER)
    for path in others:
        write(notebook, path, others[path] + "# since\n")
    notebook.rollback(then.id, OWNER, files=True)
    for path, text in others.items():
        assert (notebook.root / path).read_text() == text + "# since\n"


def test_a_note_that_is_none_any_more_is_left_and_told(notebook: Notebook) -> None:
    then = notebook.checkpoint(OWNER)
    write(notebook, ".gitignore", ".notebook/\ncode_snippets/\n")
    write(notebook, "code_snippets/tide.md", "other")
    (notebook.root / FERRY).unlink()
    (notebook.root / FERRY).symlink_to("named.md")
    write(notebook, "pages/named.md", "other")
    rolled = notebook.rollback(then.id, OWNER, files=True)
    assert rolled.restored == ("pages/named.md",)
    assert [path for path in ("code_snippets/tide.md", FERRY) if any(path in told for told in rolled.warnings)] == [
        "code_snippets/tide.md",
        FERRY,
    ]
    assert (notebook.root / "code_snippets/tide.md").read_text() == "other"


def test_what_could_not_be_read_then_is_not_taken_away(repository: Path) -> None:
    write_large = "x" * 3000
    for notebook in opened(repository, "[notebook]\nmax_file_bytes = 2000\n"):
        write(notebook, "pages/large.md", write_large)
        then = notebook.checkpoint(OWNER)
    for notebook in opened(repository):
        rolled = notebook.rollback(then.id, OWNER, files=True)
        assert rolled.restored == ()
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
        then = notebook.checkpoint(OWNER)
    (repository / ".gitignore").write_text(".notebook/\n")
    for notebook in opened(repository):
        write(notebook, "pages/new.md", "Made since\n")
        rolled = notebook.rollback(then.id, OWNER, files=True)
        assert rolled.restored == ("pages/new.md",)
        assert [(notebook.root / path).read_text() for path in there] == ["Never kept\n"] * 2
        (warning,) = rolled.warnings
        assert warning.startswith("left as it is: drafts/deep/idea.md, pages/own.md: no note then")


def test_a_note_that_became_a_folder_is_left_with_what_is_in_it(notebook: Notebook) -> None:
    then = notebook.checkpoint(OWNER)
    (notebook.root / FERRY).unlink()
    (notebook.root / FERRY).mkdir()
    (notebook.root / FERRY / "in.md").write_text("made since\n")
    (notebook.root / "pages/new.md").write_text("made since\n")
    rolled = notebook.rollback(then.id, OWNER, files=True)
    assert (notebook.root / FERRY / "in.md").read_text() == "made since\n"
    assert any(warning.startswith(f"left as it is: {FERRY}") for warning in rolled.warnings)
    assert rolled.restored == ("pages/new.md",)


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
    then = notebook.checkpoint(OWNER)
    write(notebook, "code_snippets/tide.md", "other")
    write(notebook, FERRY, "other")
    write(notebook, "pages/new.md", "made since")
    notebook.log("Low water", OWNER)
    head, files, day = git(notebook.root, "rev-parse", "HEAD"), tree(notebook), stream(notebook)
    meanwhile(monkeypatch, lambda: write(notebook, FERRY, "a person's words"))
    with pytest.raises(
        Conflict, match=r"pages/ferry.md was changed.*nothing was brought back: roll back again"
    ) as conflict:
        notebook.rollback(then.id, OWNER, files=True)
    assert conflict.value.path == FERRY
    assert tree(notebook) == files | {FERRY: b"a person's words"}
    assert stream(notebook) == day
    assert git(notebook.root, "rev-parse", "HEAD") == head
    notebook.rollback(then.id, OWNER, files=True)
    assert (notebook.root / FERRY).read_text() == "# Ferry\n\nIt leaves at nine.\n"


def test_a_disk_that_takes_one_note_and_not_the_next_keeps_all_as_they_were(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = notebook.checkpoint(OWNER)
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
        notebook.rollback(then.id, OWNER, files=True)
    assert tree(notebook) == files


def test_what_is_told_while_a_rollback_runs_stays(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    then = notebook.checkpoint(OWNER)
    notebook.log("Since", OWNER)
    write(notebook, FERRY, "other")
    notebook.sync()

    def log() -> None:
        notebook.log("Meanwhile", TASK)
        notebook.log("For good", TASK, keep=True)

    meanwhile(monkeypatch, log)
    notebook.rollback(then.id, OWNER, files=True)
    assert stream(notebook) == ["Meanwhile"]
    assert kept(notebook) == ["For good"]
    told = [one for one in notebook.today(OWNER).entries if one.get("ref", {}).get("path") == FERRY]
    assert [one["action"] for one in told] == ["created", "updated"]
    assert told[-1]["content"] == "[Ferry] It leaves at nine."


def test_notes_that_were_all_deleted_come_back(notebook: Notebook) -> None:
    files = tree(notebook)
    then = notebook.checkpoint(OWNER)
    for path in files:
        write(notebook, path, None)
    rolled = notebook.rollback(then.id, OWNER, files=True)
    assert tree(notebook) == files
    assert set(changed(rolled).values()) == {"deleted"}


def test_a_checkpoint_of_another_clone_has_no_files_here(notebook: Notebook, tmp_path: Path) -> None:
    then = notebook.checkpoint(OWNER)
    snapshots.drop(notebook.root, [then.id])
    git(notebook.root, "gc", "--quiet", "--prune=now")
    with pytest.raises(UsageError, match=rf"not in this repository; fetch {snapshots.REFS}/{then.id}"):
        notebook.rollback(then.id, OWNER, files=True)
    assert len(notebook.checkpoints(OWNER)) == 1
    assert notebook.rollback(then.id, OWNER).id == then.id


def test_an_id_may_be_cut(notebook: Notebook) -> None:
    then = notebook.checkpoint(OWNER)
    assert notebook.rollback(then.id[:4].upper(), OWNER).id == then.id
    for name in ("abcd-one", "abcd-two"):
        whole = notebook.refs.checkpoint(then.id)
        assert whole is not None
        notebook.refs.put_checkpoint({**whole, "id": name})
    with pytest.raises(UsageError, match=r"several checkpoints begin with 'abcd'"):
        notebook.rollback("abcd", OWNER)
    assert notebook.rollback("abcd-two", OWNER).id == "abcd-two"


@pytest.mark.parametrize("name", ["", "abc", "no such", "*", "\ud800\0", "x" * 10_000, "a\nb", "0000-0000"])
def test_an_unknown_checkpoint_is_told(notebook: Notebook, name: str) -> None:
    notebook.checkpoint(OWNER)
    with pytest.raises(NoSuchCheckpoint, match=r"see: notebook-sync checkpoint --list") as told:
        notebook.rollback(name, OWNER)
    assert len(str(told.value)) < 500
    assert len(notebook.checkpoints(OWNER)) == 1


@pytest.mark.parametrize("session", [TASK, Session.task(), Session.external("scribe")])
def test_only_an_owner_goes_back(notebook: Notebook, session: Session) -> None:
    then = notebook.checkpoint(OWNER)
    events = len(notebook.events.read())
    for name in (then.id, "no such"):
        with pytest.raises(
            NotPermitted, match=r"^Going back to a checkpoint is only available in owner conversations$"
        ):
            notebook.rollback(name, session)
    refused = notebook.events.read()[events:]
    assert [(event["kind"], event["tool"]) for event in refused] == [("refused", "rollback")] * 2
    assert len(notebook.checkpoints(OWNER)) == 1


def test_a_rollback_is_in_the_event_log(notebook: Notebook) -> None:
    then = notebook.checkpoint(OWNER)
    write(notebook, FERRY, "other")
    rolled = notebook.rollback(then.id, OWNER, files=True)
    told = [event for event in notebook.events.read() if event["kind"] in {"checkpoint", "rollback"}]
    assert [(event["kind"], event.get("path", ""), event.get("checkpoint")) for event in told] == [
        ("checkpoint", "", then.id),
        ("rollback", FERRY, None),
        ("rollback", "", then.id),
    ]
    assert told[-1]["before"] == rolled.before


# Foreseeing a rollback.


def test_a_rollback_is_foreseen_as_it_then_is(everywhere: Notebook) -> None:
    everywhere.log("High water", OWNER)
    everywhere.log("Closes at ten", OWNER, keep=True)
    then = everywhere.checkpoint(OWNER, "then")
    everywhere.log("Low water", TASK)
    everywhere.log("Closes at eleven", TASK, keep=True)
    write(everywhere, FERRY, "# Ferry\n\nIt leaves at ten.\n")
    write(everywhere, "pages/new.md", "New\n")
    write(everywhere, "pages/named.md", None)
    everywhere.sync()
    seen = everywhere.foresee_rollback(then.id[:8], OWNER, files=True)
    assert [one["content"] for one in seen.stream.gone if "action" not in one] == ["Low water"]
    assert {one["ref"]["path"] for one in seen.stream.gone if "action" in one} == {
        FERRY,
        "pages/new.md",
        "pages/named.md",
    }
    assert (seen.stream.back, seen.stream.stay) == ((), then.entries)
    assert [one["content"] for one in seen.longterm.gone] == ["Closes at eleven"]
    assert (seen.longterm.back, seen.longterm.stay) == ((), 1)
    assert {one.path: one.change for one in seen.files} == {
        FERRY: "updated",
        "pages/new.md": "deleted",
        "pages/named.md": "created",
    }
    assert (seen.checkpoint, seen.latest, seen.warnings) == (then, then.id, ())
    rolled = everywhere.rollback(then.id, OWNER, files=True)
    assert rolled.changed == seen.changed
    assert rolled.restored == tuple(one.path for one in seen.files)
    undone = everywhere.foresee_rollback(rolled.before, OWNER, files=True)
    assert {one["id"] for one in undone.stream.back} == {one["id"] for one in seen.stream.gone}
    assert {one["id"] for one in undone.longterm.back} == {one["id"] for one in seen.longterm.gone}


def test_foreseeing_changes_nothing(notebook: Notebook) -> None:
    then = notebook.checkpoint(OWNER)
    notebook.log("Low water", TASK)
    write(notebook, FERRY, "other")
    before = tree(notebook), notebook.today(OWNER), list(notebook.checkpoints(OWNER)), refs_of_git(notebook.root)
    assert [one.change for one in notebook.foresee_rollback(then.id, OWNER).changed] == ["updated"]
    assert notebook.foresee_rollback(then.id, OWNER).files == ()
    notebook.foresee_rollback(then.id, OWNER, files=True)
    assert before == (
        tree(notebook),
        notebook.today(OWNER),
        list(notebook.checkpoints(OWNER)),
        refs_of_git(notebook.root),
    )


def test_what_cannot_be_gone_back_to_cannot_be_foreseen(without_git: Notebook) -> None:
    made = without_git.checkpoint(OWNER)
    with pytest.raises(UsageError, match="no git"):
        without_git.foresee_rollback(made.id, OWNER, files=True)
    with pytest.raises(NoSuchCheckpoint):
        without_git.foresee_rollback("0000", OWNER)
    with pytest.raises(NotPermitted):
        without_git.foresee_rollback(made.id, TASK)
