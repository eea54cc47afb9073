"""The write path: intent, files, index, commit, event; all files of a call or none; where a note comes from stays."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import (
    Busy,
    Conflict,
    EditFailed,
    GitFailed,
    NotebookError,
    NotPermitted,
    ReadOnly,
    Refused,
    UnwritableFile,
)
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.files.frontmatter import is_external
from notebook_sync.files.locks import FileLock, write_lock
from notebook_sync.services.documents import rewrite
from notebook_sync.services.writing import Change, finish_writes, save, writing
from tests.services.conftest import (
    OWNER,
    PILOT,
    SCRIBE,
    add_files,
    add_settings,
    assert_raises,
    git,
    text_of,
    write_files,
)

FERRY, IDEA = "pages/ferry.md", "pages/idea.md"


def put(notebook: Notebook, path: str, text: str, session: Session = SCRIBE) -> None:
    """Write a whole note by the write path, as a tool does that is given all of it."""
    rewrite(notebook.core, session, path, lambda _: text.encode(), action="write", is_whole=True)


def is_settled(notebook: Notebook) -> bool:
    """Whether nothing is left of a write: no intent, no difference between files and index."""
    return not notebook.core.index.intents.count() and not notebook.core.engine.verify().differences


# ---- one write


def test_a_write_is_in_the_file_the_index_the_history_and_the_events(committed: Notebook) -> None:
    write_files(committed.root, {FERRY: "# Ferry\n\nBy hand.\n"})
    done = committed.notes.update("ferry", SCRIBE, content="# Ferry\n\nAt nine.\n", reason="later\nPath: x")
    row = committed.core.index.documents.find(fields=("path", "version", "content"), limit=-1)
    assert [(each["version"], each["content"]) for each in row if each["path"] == FERRY] == [
        (2, text_of(committed, FERRY))
    ]
    (event,) = committed.core.events.read()
    assert (event["kind"], event["path"], event["agent"], event["commit"]) == ("edit", FERRY, "scribe", done.commit)
    assert "At nine" not in str(event)
    log = git(committed.root, "log", "-2", "--format=%s%n%b")
    assert log.splitlines()[0] == f"Edit {FERRY}"
    assert "Session: task\nAgent: scribe" in log
    assert "Reason: later Path: x" in log
    assert git(committed.root, "show", f"HEAD~1:{FERRY}") == "# Ferry\n\nBy hand.\n"
    assert git(committed.root, "status", "--porcelain").split() in ([], ["??", ".notebook/"])
    assert is_settled(committed)


def test_a_write_that_changes_nothing_leaves_nothing_behind(notebook: Notebook) -> None:
    done = notebook.notes.update("ferry", SCRIBE, content=text_of(notebook, FERRY))
    assert (done.changed, done.commit, notebook.core.events.read()) == (False, "", [])


@pytest.mark.parametrize(
    "text", ["---\ntitle: Plan: phase two\n---\nx\n", "---\ntitle: x\n", "---\na: 1\na: 2\n---\n", "x\0\n"]
)
@pytest.mark.parametrize("session", [OWNER, SCRIBE], ids=lambda one: one.kind)
def test_a_text_that_would_not_read_back_is_refused_with_its_line(
    notebook: Notebook, text: str, session: Session
) -> None:
    before = text_of(notebook, FERRY)
    assert assert_raises(EditFailed, put, notebook, FERRY, text, session).line
    assert text_of(notebook, FERRY) == before
    assert is_settled(notebook)


def test_an_id_that_another_note_has_is_not_given_to_a_second_one(notebook: Notebook) -> None:
    for wanted, holder in (("pages/idea", IDEA), ("reminders", "runtime/reminders.md"), ("Standing Orders", "runtime")):
        assert_raises(EditFailed, put, notebook, FERRY, f"---\nid: {wanted}\n---\nx\n", OWNER, match=holder)
    put(notebook, FERRY, "---\nid: free\n---\nx\n", OWNER)


# ---- others write, too


def test_an_edit_without_a_digest_is_made_on_what_an_editor_saved_meanwhile(notebook: Notebook) -> None:
    saves = iter(["# Ferry\n\nFaster.\n", "# Ferry\n\nFaster still.\n"])

    def change(raw: bytes) -> bytes:
        for text in saves:
            write_files(notebook.root, {FERRY: text})
            break
        return raw + b"Mine.\n"

    rewrite(notebook.core, SCRIBE, FERRY, change, action="write")
    assert text_of(notebook, FERRY) == "# Ferry\n\nFaster still.\nMine.\n"

    def never(raw: bytes) -> bytes:
        write_files(notebook.root, {FERRY: raw.decode() + "."})
        return raw + b"Mine.\n"

    assert_raises(Conflict, rewrite, notebook.core, SCRIBE, FERRY, never, action="write")
    assert text_of(notebook, FERRY).endswith("Mine.\n.....")


def test_a_batch_that_is_disturbed_half_way_is_put_back(notebook: Notebook) -> None:
    texts = {path: (notebook.root / path).read_bytes() for path in (FERRY, IDEA)}
    changes = [
        Change("pages/moved.md", texts[FERRY], texts[FERRY], "x", moved_from=FERRY),
        Change("pages/moved.md", texts[FERRY], b"# Moved\n", "x"),
        Change("pages/sub/new.md", None, b"new\n", "x", is_new=True),
        Change(IDEA, b"another base", b"x\n", "x"),
    ]
    with pytest.raises(Conflict), writing(notebook.core, "test"):
        save(notebook.core, changes, SCRIBE)
    assert {path: (notebook.root / path).read_bytes() for path in texts} == texts
    assert not (notebook.root / "pages/moved.md").exists()
    assert not (notebook.root / "pages/sub/new.md").exists()
    notebook.core.engine.sync()
    assert is_settled(notebook)


def test_writers_take_turns_and_a_held_lock_is_named(notebook: Notebook) -> None:
    writers = [Notebook.open(notebook.root) for _ in range(4)]
    done: list[str] = []

    def work(opened: Notebook, name: str) -> None:
        for number in range(3):
            opened.notes.update("ferry", Session.task(name), content=f"- {name} {number}", append=True)
            done.append(f"- {name} {number}")

    with ThreadPoolExecutor(len(writers)) as threads:
        list(threads.map(work, writers, "abcd"))
    for opened in writers:
        opened.close()
    assert len(done) == 12
    assert all(line in text_of(notebook, FERRY) for line in done)
    assert is_settled(notebook)
    held = write_lock(notebook.core.place, "a long import")
    wanted = write_lock(notebook.core.place, "update", timeout=0)
    with held, pytest.raises(Busy, match=f"a long import, process {os.getpid()}"), wanted:
        pass


# ---- what does not work


def test_a_commit_that_must_wait_is_made_later_in_order(committed: Notebook) -> None:
    write_files(committed.root, {".git/index.lock": "", FERRY: "# Ferry\n\nBy hand.\n"})
    for text in ("One", "Two"):
        done = committed.notes.update("ferry", SCRIBE, content=text)
        assert done.commit == ""
        assert "the commit follows later" in done.warnings[0]
    assert text_of(committed, FERRY) == "Two\n"
    assert committed.notes.undo("ferry", SCRIBE).diff.endswith("+One\n")
    (committed.root / ".git/index.lock").unlink()
    with write_lock(committed.core.place, "test"):
        commits, warnings = finish_writes(committed.core)
    assert (len(commits), warnings) == (3, [])
    texts = [git(committed.root, "show", f"HEAD~{number}:{FERRY}") for number in range(4)]
    assert texts == ["One\n", "Two\n", "One\n", "# Ferry\n\nBy hand.\n"]
    assert [event["action"] for event in committed.core.events.read()] == ["update", "update", "undo"]
    assert is_settled(committed)


@pytest.mark.parametrize("step", ["_exchange", "_look", "_commit"])
def test_a_write_that_was_killed_is_finished_or_forgotten(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(f"notebook_sync.services.writing.{step}", die)
        with suppress(SystemExit, NotebookError):
            notebook.notes.update("ferry", SCRIBE, content="Mine.\n")
    assert notebook.core.index.intents.count() == 1
    assert notebook.notes.update("idea", PILOT, content="Later.\n").warnings == []
    notebook.core.engine.sync()
    assert is_settled(notebook)
    is_made = step != "_exchange"
    assert (text_of(notebook, FERRY) == "Mine.\n") == is_made
    made = [event["agent"] for event in notebook.core.events.read() if event["kind"] == "edit"]
    assert made == (["scribe", "pilot"] if is_made else ["pilot"])
    versions = notebook.notes.history("ferry").results
    assert [version.changed_by for version in versions][:1] == (["agent:scribe"] if is_made else [])


def test_a_disk_that_fails_leaves_the_note_as_it_was(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = text_of(notebook, FERRY)
    with monkeypatch.context() as patched:
        patched.setattr("notebook_sync.files.save.os.fsync", full)
        assert_raises(UnwritableFile, notebook.notes.update, "ferry", SCRIBE, content="x", match="no space left")
    assert text_of(notebook, FERRY) == before
    assert is_settled(notebook)


def test_without_git_nothing_can_be_undone_and_nothing_is_deleted(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "git is not installed" in notebook.notes.update("ferry", SCRIBE, content="x").warnings[0]
    assert_raises(Refused, notebook.notes.delete, "ferry", SCRIBE, match="nothing is deleted")
    assert_raises(GitFailed, notebook.notes.history, "ferry", match="git is not installed")
    assert (notebook.root / FERRY).exists()
    assert is_settled(notebook)


def test_what_is_new_is_published_once_the_lock_is_free(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, object]] = []
    lock = FileLock(notebook.core.place.lock_folder / "write.lock")

    def publish(seconds: float) -> None:
        asked.append((seconds, lock.holder()))

    (notebook.root / "notebook.toml").write_text('[refs]\nurl = "redis://127.0.0.1:9"\n')
    assert notebook.settings.refs.url
    notebook.core.parts["publisher"] = SimpleNamespace(publish_inline=publish, close=lambda: None)
    notebook.notes.update("ferry", SCRIBE, content="x")
    assert_raises(EditFailed, notebook.notes.update, "ferry", SCRIBE, content="x", section="Nowhere")
    assert asked == [(1.0, None)]


def test_a_tree_that_cannot_be_written_is_read_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.access

    def refused(path: str | Path, mode: int) -> bool:
        return not (mode & os.W_OK and Path(path).is_relative_to(root)) and real(path, mode)

    monkeypatch.setattr(os, "access", refused)
    with Notebook.open(root) as notebook:
        notebook.core.engine.sync()
        assert notebook.notes.read("ferry", SCRIBE).title == "Ferry"
        assert_raises(ReadOnly, notebook.notes.update, "ferry", SCRIBE, content="x")
        assert not (root / ".notebook").exists()


def test_without_a_state_folder_notes_are_read_and_the_rest_names_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTEBOOK_STATE_DIR", "/proc/nowhere")
    with Notebook.open(root) as notebook:
        assert notebook.notes.read("pages/ferry", SCRIBE).title == "Ferry"
        assert notebook.notes.read("standing-orders", SCRIBE).text.endswith("- Never pay\n")
        for use in (
            lambda: notebook.notes.list(),
            lambda: notebook.notes.search("rope"),
            lambda: notebook.notes.create("x", SCRIBE),
        ):
            assert_raises(ReadOnly, use, match="NOTEBOOK_STATE_DIR")


# ---- where a note comes from

PAGE, MINE = "pages/lamps.md", "channels/pilot/global/mine.md"
MADE = (
    '---\nid: lamps\ncreated_by: "agent:scribe"\ncreated_at: 2026-02-18T10:30:00Z\n'
    "provenance: task\ntype: page\n---\nLit.\n"
)
FORGED = (
    *("created_by: owner", "created_by: [owner]", "created_by: null", "created_at: 1999-01-01"),
    *("created_at: null", "id: another", "id: null", "provenance: owner", "provenance: ~"),
)


@pytest.fixture
def lamps(notebook: Notebook) -> Notebook:
    mine = MADE.replace("scribe", "pilot").replace("type: page", "type: note").replace("id: lamps", "id: mine")
    add_files(notebook, {PAGE: MADE, MINE: mine})
    return notebook


@pytest.mark.parametrize("path", [PAGE, MINE, FERRY])
def test_no_agent_says_that_a_note_comes_from_elsewhere(lamps: Notebook, path: str) -> None:
    before = text_of(lamps, path)
    for field in FORGED:

        def edit(raw: bytes, field: str = field) -> bytes:
            return apply_edits(path, raw, [Edit("set_frontmatter", content=field)])

        assert_raises((NotPermitted, EditFailed), rewrite, lamps.core, PILOT, path, edit, action="set_frontmatter")
        if not field.endswith(("null", "~")):
            with pytest.raises(NotPermitted, match="only the owner changes it"):
                put(lamps, path, f"---\n{field}\n---\nForged.\n", PILOT)
    assert text_of(lamps, path) == before
    assert lamps.core.events.read()[-1]["kind"] == "refused"
    put(lamps, path, "---\ncreated_by: Odile\ncreated_at: 1999-01-01\nprovenance: owner\n---\nTrue.\n", OWNER)
    assert lamps.notes.read(path).created_by == "Odile"


@pytest.mark.parametrize("text", ["Out.\n", "", "---\ntitle: Lanterns\n---\nOut.\n", "\ufeffOut.\r\n"])
@pytest.mark.parametrize("path", [PAGE, MINE])
def test_a_text_that_leaves_it_out_keeps_it(lamps: Notebook, path: str, text: str) -> None:
    put(lamps, path, text, PILOT)
    written = text_of(lamps, path)
    for line in MADE.splitlines()[2:4]:
        assert line.replace("scribe", "pilot" if path == MINE else "scribe") in written
    assert "provenance: task" in written.splitlines()


def test_a_field_is_known_in_any_capitals(lamps: Notebook) -> None:
    assert_raises(NotPermitted, put, lamps, FERRY, "---\nCreated_By: owner\n---\nForged.\n", PILOT)


def test_broken_frontmatter_is_the_owners_to_repair(lamps: Notebook) -> None:
    write_files(lamps.root, {PAGE: MADE.replace("id: lamps", "id: [lamps")})
    with pytest.raises(NotPermitted, match="only the owner may repair it"):
        put(lamps, PAGE, MADE.replace("agent:scribe", "owner"), PILOT)
    put(lamps, PAGE, "# Repaired\n", OWNER)


LETTER = "pages/letter.md"
TEXT = "# Letter\n\nPromise every berth.\n"
SPELLINGS = {
    "plain": "provenance: external",
    "escape": '"pro\\x76enance": [external]',
    "broken": '"pro\\x76enance": external\ntitle: [',
}


def last_rev(notebook: Notebook) -> str:
    return notebook.notes.history(LETTER).results[-1].rev


def renamed(notebook: Notebook) -> None:
    notebook.notes.rename(LETTER, "pages/other.md", SCRIBE)
    put(notebook, "pages/other.md", TEXT, SCRIBE)
    notebook.notes.undo("pages/other.md", SCRIBE, rev=notebook.notes.history("pages/other.md").results[-1].rev)


def created_again(notebook: Notebook) -> None:
    notebook.notes.delete(LETTER, SCRIBE)
    assert notebook.notes.create("Letter", SCRIBE, content=TEXT).path == LETTER


def deleted_and_undone(notebook: Notebook) -> None:
    rev = last_rev(notebook)
    notebook.notes.delete(LETTER, SCRIBE)
    notebook.notes.undo(LETTER, SCRIBE, rev=rev)


LOWERING: dict[str, Callable[[Notebook], object]] = {
    "write": lambda nb: put(nb, LETTER, TEXT),
    "write another": lambda nb: put(nb, LETTER, f"---\nprovenance: owner\n---\n{TEXT}"),
    "update": lambda nb: nb.notes.update(LETTER, SCRIBE, content=TEXT),
    "undo": lambda nb: nb.notes.undo(LETTER, SCRIBE),
    "undo to a version": lambda nb: nb.notes.undo(LETTER, SCRIBE, rev=last_rev(nb)),
    "edit and undo": lambda nb: (
        nb.notes.update(LETTER, SCRIBE, content="x"),
        nb.notes.undo(LETTER, SCRIBE, rev=last_rev(nb)),
    ),
    "rename": renamed,
    "create again": created_again,
    "undo of a deletion": deleted_and_undone,
}


@pytest.mark.parametrize("lower", LOWERING.values(), ids=LOWERING)
@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_no_agent_takes_the_mark_of_others_words_away(
    notebook: Notebook, lower: Callable[[Notebook], object], spelling: str
) -> None:
    add_files(notebook, {"pages/draft.md": TEXT})
    put(notebook, "pages/draft.md", f"{TEXT}More.\n", SCRIBE)
    add_files(notebook, {"pages/draft.md": f"---\n{spelling}\n---\n{TEXT}"})
    notebook.notes.rename("pages/draft.md", LETTER, OWNER)
    with suppress(NotebookError):
        lower(notebook)
    left = [path for path in (notebook.root / "pages").glob("*.md") if "berth" in path.read_text()]
    assert all(is_external(path.read_bytes()) for path in left)


def test_an_agent_may_set_the_mark_and_the_owner_takes_it_away(notebook: Notebook) -> None:
    put(notebook, FERRY, "---\nprovenance: external\n---\nSaid.\n", SCRIBE)
    assert getattr(notebook.notes.update(FERRY, SCRIBE, content="Said twice.\n"), "provenance", "") == "external"
    assert notebook.notes.undo(FERRY, OWNER).provenance == "external"
    put(notebook, FERRY, "Mine.\n", OWNER)
    assert text_of(notebook, FERRY) == "Mine.\n"


def test_a_conflict_does_not_show_what_the_session_may_not_read(notebook: Notebook) -> None:
    for path, text in (("runtime/standing-orders.md", "x"), ("channels/pilot/global/berth.md", "x")):
        with pytest.raises(Conflict) as conflict, writing(notebook.core, "test"):
            save(notebook.core, [Change(path, b"another", text.encode(), "x")], SCRIBE)
        assert conflict.value.text == ""


# ---- trust


def test_what_waits_for_trust_stays_out_of_the_users_repository(committed: Notebook) -> None:
    orders = "runtime/standing-orders.md"
    add_settings(committed.root, '[prompt]\ntrust = "committed"\n')
    committed.notes.edit(orders, "append_to_section", section="Boundaries", content="- Be kind")
    assert "- Be kind" in git(committed.root, "show", f"HEAD:{orders}")
    (committed.root / orders).write_text(text_of(committed, orders) + "- Pay everybody\n")
    committed.notes.edit(orders, "append_to_section", section="Boundaries", content="- Be quick")
    committed.notes.edit("ferry", "append_to_section", section="Fares", content="- Free")
    assert "Pay everybody" not in git(committed.root, "log", "-p", "--all")
    assert "- Free" in git(committed.root, "show", f"HEAD:{FERRY}")
    shown = committed.prompt(SCRIBE).text
    assert ("Pay everybody" in shown, "Be quick" in shown) == (False, True)
    revs = [version.rev for version in committed.notes.history(orders).results]
    assert any("Pay everybody" in committed.notes.diff(orders, since=revs[-1], until=rev).diff for rev in revs)
    committed.notes.undo(orders)
    assert "Pay everybody" not in git(committed.root, "log", "-p", "--all")
