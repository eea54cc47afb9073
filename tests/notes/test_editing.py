"""Editing a note as an owner, an agent or an outsider: what is refused, what changes, and what is left behind."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import (
    Conflict,
    EditFailed,
    NoSuchNote,
    NotebookError,
    NotPermitted,
    OverCap,
    UnsafePath,
    UnwritableFile,
)
from notebook_sync.files.edits import Edit
from notebook_sync.files.note import Stamp
from notebook_sync.files.vault import Vault
from notebook_sync.notes.editing.editing import FileEdits
from prompt import VocabularyMissing

OWNER, TASK, EXTERNAL = Session.owner("scribe"), Session.task("scribe"), Session.external("scribe")
REMINDERS = "runtime/reminders.md"
FERRY = "pages/ferry.md"
ADD = Edit("append_to_section", section="Today", content="- [ ] Oil the lamp", reason="Odile asked")
FILES = {
    REMINDERS: "<!-- - [ ] Task -->\n\n## Today\n\n- [ ] Check the ropes\n\n## This Week\n",
    FERRY: "# Ferry\n\n## Times\n\n- Nine\n- Noon\n",
    "pages/named.md": "---\nid: the-plan\n---\n# Plan\n\n- Start small\n",
    "facts/core.md": "# Core\n\n- The harbour is Odile's\n",
    "channels/scribe/global/own.md": "# Own\n\n- Quiet water\n",
    "channels/pilot/global/private.md": "---\nid: berth\n---\n# Private\n\n- The secret berth\n",
}


def git(root: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=Ines", "-c", "user.email=ines@ferry.example")
    told = subprocess.run(["git", "-C", str(root), *settings, *arguments], capture_output=True, check=True)
    return told.stdout.decode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.fixture
def repository(root: Path) -> Path:
    (root / ".gitignore").write_text(".notebook/\n")
    git(root, "init", "--quiet")
    for name, value in (("user.name", "Ines"), ("user.email", "ines@ferry.example")):
        git(root, "config", name, value)
    git(root, "add", "-A")
    git(root, "commit", "--quiet", "-m", "Begin")
    return root


@pytest.fixture
def notebook(root: Path) -> Iterator[Notebook]:
    with Notebook.open(root) as opened:
        opened.sync()
        yield opened


def tree(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*.md") if ".notebook" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def digest(root: Path, path: str) -> str:
    return sha256((root / path).read_bytes()).hexdigest()


def kinds(notebook: Notebook) -> list[str]:
    return [event["kind"] for event in notebook.events.read()]


# What an edit does.


def test_an_edit_is_in_the_file_in_the_prompt_in_the_mirror_and_in_the_log(notebook: Notebook) -> None:
    edited = notebook.edit(REMINDERS, ADD, OWNER)
    assert (notebook.root / REMINDERS).read_text() == FILES[REMINDERS].replace("ropes\n", "ropes\n- [ ] Oil the lamp\n")
    assert "Oil the lamp" in notebook.prompt(Session.external()).text
    document = notebook.read(REMINDERS)
    assert document["metadata"]["version"] == edited.version == 2
    assert document["source"]["digest"] == edited.digest == digest(notebook.root, REMINDERS)
    assert document["history"][-1]["changed_by"] == "agent:scribe"
    [event] = notebook.events.read()
    assert {name: event[name] for name in ("kind", "session", "agent", "path", "action", "section", "reason")} == {
        "kind": "edit",
        "session": "owner",
        "agent": "scribe",
        "path": REMINDERS,
        "action": "append_to_section",
        "section": "Today",
        "reason": "Odile asked",
    }
    assert (event["digest"], event["version"]) == (edited.digest, 2)


def test_an_event_never_holds_what_a_note_says(notebook: Notebook) -> None:
    notebook.edit(REMINDERS, ADD, OWNER)
    notebook.edit(FERRY, Edit("write", content="The pilot's secret"), TASK)
    log = (notebook.root / ".notebook" / "events.jsonl").read_text()
    assert "lamp" not in log
    assert "secret" not in log


def test_what_is_told_of_an_edit(notebook: Notebook) -> None:
    edited = notebook.edit(REMINDERS, ADD, OWNER)
    assert edited.changed
    assert edited.diff.splitlines()[:2] == [f"--- a/{REMINDERS}", f"+++ b/{REMINDERS}"]
    assert "+- [ ] Oil the lamp" in edited.diff
    assert edited.change is not None
    assert edited.change.stable_changes
    assert edited.change.tokens_after > edited.change.tokens_before
    assert edited.tokens > 0
    assert edited.omitted == edited.warnings == ()
    told = edited.as_dict()
    assert (told["success"], told["digest"], told["version"], told["omitted"]) == (True, edited.digest, 2, [])


RULES = "runtime/external-communications.md"
SOON = "20\\d\\d-\\d\\d-\\d\\d"


@pytest.mark.parametrize(
    ("path", "section", "entry", "warning"),
    [
        (RULES, "Permanent Rules", "- **Kim** (kim@x.example): block [until Friday]",
         rf"\[until Friday\] is not a date, so it is ignored; write: \[until {SOON}\]"),
        (RULES, "Permanent Rules", "- **Kim** (kim@x.example): block [until 2026-02-30]",
         r"\[until 2026-02-30\] is not a date: February 2026 has 28 days, so it is .*; write: \[until 2026-02-28\]"),
        (RULES, "Permanent Rules", "- **Kim** (kim@x.example): block [until 2001-02-03]",
         rf"\[until 2001-02-03\] is past, so the prompt does not show it; write: \[until {SOON}\]"),
        (RULES, "Permanent Rules", "- Kim: block",
         rf"is not a rule; write: - \*\*Name\*\* \(identity\): action \[until {SOON}\]"),
        (REMINDERS, "Today", "- [ ] Tar [due: someday]",
         rf"\[due: someday\] is not a date; write: \[due: {SOON}\]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("preview", [True, False])
def test_an_edit_that_writes_what_does_not_read_as_meant_is_warned_of(
    notebook: Notebook, root: Path, path: str, section: str, entry: str, warning: str, preview: bool
) -> None:
    if path == RULES:
        (root / RULES).write_text("## Permanent Rules\n\n- Ines: block\n")
    edit = Edit("append_to_section", section=section, content=entry)
    line = 4 if path == RULES else 6
    (told,) = notebook.edit(path, edit, OWNER, preview=preview).warnings
    assert re.fullmatch(rf"{path}:{line}: {warning}", told)


def test_what_an_edit_leaves_as_it_was_is_not_warned_of(notebook: Notebook, root: Path) -> None:
    (root / RULES).write_text("## Permanent Rules\n\n- Ines: block\n- **Max** (max@x.example): block [until Friday]\n")
    rule = "- **Kim** (kim@x.example): block"
    add = Edit("append_to_section", section="Permanent Rules", content=rule)
    assert notebook.edit(RULES, add, OWNER).warnings == ()
    assert notebook.edit(RULES, Edit("remove_entry", entry_match="Ines"), OWNER).warnings == ()
    again = Edit(
        "append_to_section", section="Permanent Rules", content="- **Max** (max@x.example): block [until Friday]"
    )
    (told,) = notebook.edit(RULES, again, OWNER).warnings
    assert told.startswith(f"{RULES}:5: [until Friday] is not a date")


def test_a_reminder_that_is_moved_to_where_it_cannot_be_read_is_warned_of(notebook: Notebook, root: Path) -> None:
    (root / REMINDERS).write_text("## Waiting For\n\n- Parcel\n\n## Today\n\n- [ ] Ropes\n")
    (told,) = notebook.edit(REMINDERS, Edit("move_entry", entry_match="Parcel", to="Today"), OWNER).warnings
    assert "has no checkbox" in told


def test_an_edit_of_what_no_prompt_shows_tells_of_no_prompt(notebook: Notebook) -> None:
    edited = notebook.edit(FERRY, Edit("append_to_section", section="Times", content="- Six"), TASK)
    assert edited.change is None
    assert edited.changed


def test_an_edit_that_changes_nothing_is_done_and_leaves_nothing_behind(repository: Path) -> None:
    with Notebook.open(repository) as notebook:
        edited = notebook.edit(FERRY, Edit("write", content=FILES[FERRY]), TASK)
        assert (edited.changed, edited.commit, edited.diff) == (False, None, "")
        assert edited.digest == digest(repository, FERRY)
        assert notebook.events.read() == []
    assert git(repository, "rev-list", "--count", "HEAD").strip() == "1"


@pytest.mark.parametrize("name", ["pages/ferry.md", "pages/ferry", "./pages//ferry.md", "{root}/pages/ferry.md"])
def test_a_note_is_named_by_any_of_its_names(notebook: Notebook, name: str) -> None:
    edit = Edit("append_to_section", section="Times", content="- Six")
    assert notebook.edit(name.format(root=notebook.root), edit, TASK).path == FERRY


def test_a_note_is_named_by_its_id_and_a_runtime_file_by_its_bare_name(notebook: Notebook) -> None:
    assert notebook.edit("the-plan", Edit("remove_entry", entry_match="small"), TASK).path == "pages/named.md"
    assert notebook.edit("reminders.md", ADD, OWNER).path == REMINDERS
    assert notebook.edit("reminders.md", Edit("write", content="## Today\n"), OWNER).path == REMINDERS
    assert not (notebook.root / "reminders.md").exists()


def test_several_edits_of_a_note_follow_one_another_or_none_is_made(notebook: Notebook) -> None:
    steps = [
        Edit("add_section", section="Evening", content="- Six"),
        Edit("append_to_section", section="Evening", content="- Seven"),
    ]
    edited = notebook.edit(FERRY, steps, TASK)
    assert edited.version == 2
    assert (notebook.root / FERRY).read_text().endswith("- Six\n- Seven\n")
    before = tree(notebook.root)
    with pytest.raises(EditFailed, match="edit 2"):
        notebook.edit(FERRY, [Edit("remove_entry", entry_match="Six"), Edit("remove_entry", entry_match="Nine!")], TASK)
    assert tree(notebook.root) == before


def test_a_new_note_is_written_and_mirrored(notebook: Notebook) -> None:
    edited = notebook.edit("pages/tides.md", Edit("write", content="# Tides\n"), TASK)
    assert (edited.path, edited.version, edited.changed) == ("pages/tides.md", 1, True)
    assert notebook.read("pages/tides")["title"] == "Tides"
    assert edited.diff.startswith("--- /dev/null\n")


def test_an_edit_of_a_note_that_is_not_there_makes_none(notebook: Notebook) -> None:
    with pytest.raises(NoSuchNote):
        notebook.edit("pages/tides.md", ADD, TASK)
    assert not (notebook.root / "pages/tides.md").exists()


# Digests.


def test_an_edit_on_another_text_than_expected_is_a_conflict_with_the_text_that_is_there(notebook: Notebook) -> None:
    base = digest(notebook.root, FERRY)
    (notebook.root / FERRY).write_text("# Ferry\n\nNo more ferry.\n")
    with pytest.raises(Conflict) as raised:
        notebook.edit(FERRY, Edit("write", content="x"), TASK, expected_digest=base)
    assert (raised.value.base, raised.value.current) == (base, digest(notebook.root, FERRY))
    assert raised.value.text == "# Ferry\n\nNo more ferry.\n"
    assert notebook.events.read() == []
    assert notebook.edit(FERRY, Edit("write", content="x"), TASK, expected_digest=raised.value.current).changed


def test_no_note_may_be_there_where_none_is_expected(notebook: Notebook) -> None:
    with pytest.raises(Conflict):
        notebook.edit(FERRY, Edit("write", content="x"), TASK, expected_digest="")
    assert notebook.edit("pages/new.md", Edit("write", content="x"), TASK, expected_digest="").changed
    with pytest.raises(Conflict):
        notebook.edit("pages/newer.md", Edit("write", content="x"), TASK, expected_digest="0" * 64)
    assert not (notebook.root / "pages/newer.md").exists()


@pytest.fixture
def faster(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Lets a person write a line into a note right before each of the next so many writes to it."""
    write = Vault.write

    def arrange(path: str, times: int) -> None:
        left = [times]

        def after_a_person(vault: Vault, place: str, raw: bytes, *, base: str | None) -> Stamp:
            if place == path and left[0]:
                left[0] -= 1
                with (vault.root / path).open("a") as file:
                    file.write(f"- by hand {left[0]}\n")
            return write(vault, place, raw, base=base)

        monkeypatch.setattr(Vault, "write", after_a_person)

    return arrange


def test_an_edit_without_a_digest_is_made_on_what_somebody_wrote_meanwhile(
    notebook: Notebook, faster: Callable[[str, int], None]
) -> None:
    faster(FERRY, 2)
    notebook.edit(FERRY, Edit("remove_entry", entry_match="Nine"), TASK)
    assert (notebook.root / FERRY).read_text() == "# Ferry\n\n## Times\n\n- Noon\n- by hand 1\n- by hand 0\n"


def test_an_edit_with_a_digest_is_not(notebook: Notebook, faster: Callable[[str, int], None]) -> None:
    base = digest(notebook.root, FERRY)
    faster(FERRY, 1)
    with pytest.raises(Conflict):
        notebook.edit(FERRY, Edit("remove_entry", entry_match="Nine"), TASK, expected_digest=base)
    assert (notebook.root / FERRY).read_text() == FILES[FERRY] + "- by hand 0\n"


def test_who_is_never_faster_is_told_of_a_conflict(notebook: Notebook, faster: Callable[[str, int], None]) -> None:
    faster(FERRY, 1000)
    with pytest.raises(Conflict):
        notebook.edit(FERRY, Edit("remove_entry", entry_match="Nine"), TASK)
    assert "- Nine\n" in (notebook.root / FERRY).read_text()
    assert "- by hand 999\n" in (notebook.root / FERRY).read_text()


# Several notes.


def test_a_batch_is_made_on_all_notes(repository: Path) -> None:
    with Notebook.open(repository) as notebook:
        notebook.sync()
        batch = [FileEdits(REMINDERS, (ADD,)), FileEdits("pages/new.md", (Edit("write", content="# New\n"),))]
        edited = notebook.edit_all(batch, OWNER)
        assert [(one.path, one.version) for one in edited] == [(REMINDERS, 2), ("pages/new.md", 1)]
        assert edited[0].commit == edited[1].commit
        assert kinds(notebook) == ["edit", "edit"]
    assert git(repository, "show", "--name-only", "--format=", "HEAD").split() == ["pages/new.md", REMINDERS]


def test_a_note_named_twice_in_a_batch_is_edited_once_by_all(notebook: Notebook) -> None:
    batch = [
        FileEdits(FERRY, (Edit("remove_entry", entry_match="Nine"),)),
        FileEdits("pages/ferry", (Edit("remove_entry", entry_match="Noon"),)),
    ]
    [edited] = notebook.edit_all(batch, TASK)
    assert edited.version == 2
    assert "- N" not in (notebook.root / FERRY).read_text()


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (FileEdits(FERRY, (Edit("remove_entry", entry_match="Dawn"),)), EditFailed),
        (FileEdits("pages/nowhere.md", (ADD,)), NoSuchNote),
        (FileEdits("pages/../../x.md", (Edit("write", content="x"),)), UnsafePath),
        (FileEdits(FERRY, (Edit("write", content="x"),), "0" * 64), Conflict),
    ],
)
def test_of_a_batch_in_which_one_fails_none_is_made(
    notebook: Notebook, order: FileEdits, error: type[NotebookError]
) -> None:
    before = tree(notebook.root)
    with pytest.raises(error):
        notebook.edit_all([FileEdits(REMINDERS, (ADD,)), order], OWNER)
    assert tree(notebook.root) == before
    assert "edit" not in kinds(notebook)


def test_a_batch_that_is_disturbed_half_way_is_put_back(notebook: Notebook, faster: Callable[[str, int], None]) -> None:
    base = digest(notebook.root, FERRY)
    faster(FERRY, 1)
    batch = [
        FileEdits(REMINDERS, (ADD,)),
        FileEdits("pages/new.md", (Edit("write", content="# New\n"),)),
        FileEdits(FERRY, (Edit("write", content="x"),), base),
    ]
    with pytest.raises(Conflict):
        notebook.edit_all(batch, OWNER)
    assert tree(notebook.root) == {
        **{path: text.encode() for path, text in FILES.items()},
        FERRY: (FILES[FERRY] + "- by hand 0\n").encode(),
    }
    assert notebook.events.read() == []
    assert notebook.sync().updated  # the line by hand
    assert notebook.admin.verify().consistent


def test_what_somebody_builds_on_half_a_batch_is_left_to_them_and_told(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Vault.write

    def disturbed(vault: Vault, path: str, raw: bytes, *, base: str | None) -> Stamp:
        if path == FERRY:
            with (vault.root / REMINDERS).open("a") as file:
                file.write("- by hand\n")
            raise UnwritableFile(path, "the disk is full")
        return write(vault, path, raw, base=base)

    monkeypatch.setattr(Vault, "write", disturbed)
    with pytest.raises(UnwritableFile):
        notebook.edit_all([FileEdits(REMINDERS, (ADD,)), FileEdits(FERRY, (Edit("write", content="x"),))], OWNER)
    assert (notebook.root / REMINDERS).read_text().endswith("- by hand\n")
    [event] = notebook.events.read()
    assert (event["kind"], event["path"]) == ("batch", REMINDERS)


# Caps and previews.


@pytest.fixture
def small(root: Path) -> Iterator[Notebook]:
    (root / "notebook.toml").write_text("[prompt]\nmax_tokens_per_file = 40\n")
    with Notebook.open(root) as opened:
        opened.sync()
        yield opened


LONG = Edit("append_to_section", section="Today", content="\n".join(f"- [ ] Check buoy {n}" for n in range(30)))


def test_an_edit_over_the_cap_is_refused_with_the_entries_and_made_when_it_is_allowed(small: Notebook) -> None:
    before = tree(small.root)
    with pytest.raises(OverCap) as raised:
        small.edit(REMINDERS, LONG, OWNER)
    assert raised.value.tokens > raised.value.cap == 40
    assert any("Check the ropes" in entry for entry in raised.value.entries)
    assert tree(small.root) == before
    edited = small.edit(REMINDERS, LONG, OWNER, allow_over_cap=True)
    assert edited.changed
    assert edited.omitted
    assert "parts are left out" in edited.warnings[0]


def test_a_file_over_its_cap_can_be_made_smaller_step_by_step(small: Notebook) -> None:
    small.edit(REMINDERS, LONG, OWNER, allow_over_cap=True)
    assert small.edit(REMINDERS, Edit("remove_entry", entry_match="buoy 29"), OWNER).changed


def test_comments_and_what_is_expired_take_no_room(small: Notebook) -> None:
    long_comment = "<!-- " + "harbour " * 100 + "-->"
    assert small.edit(REMINDERS, Edit("append_to_section", section="Today", content=long_comment), OWNER).changed


def test_what_no_prompt_shows_has_no_cap(small: Notebook) -> None:
    assert small.edit(FERRY, Edit("write", content="harbour " * 100), TASK).changed


def test_a_preview_tells_what_would_fall_out_and_writes_nothing(small: Notebook) -> None:
    before = tree(small.root)
    revision = small.prompt(OWNER).revision
    told = small.edit(REMINDERS, LONG, OWNER, preview=True)
    assert told.change is not None
    assert told.change.stable_changes
    assert told.omitted
    assert told.changed
    assert (told.version, told.commit) == (None, None)
    assert "+- [ ] Check buoy 29" in told.diff
    assert tree(small.root) == before
    assert small.prompt(OWNER).revision == revision
    assert small.events.read() == []
    assert not (small.root / ".notebook" / "past").exists()


def test_a_preview_is_refused_as_the_edit_would_be(notebook: Notebook) -> None:
    with pytest.raises(NotPermitted):
        notebook.edit(REMINDERS, ADD, TASK, preview=True)


# Who may.


@pytest.mark.parametrize("session", [TASK, EXTERNAL, Session.task(), Session.external()])
@pytest.mark.parametrize(
    "name",
    [
        REMINDERS,
        "reminders.md",
        "./runtime//reminders.md",
        "{root}/runtime/reminders.md",
        "pages/../runtime/reminders.md",
        "Runtime/Reminders.md",
        "runtime\\reminders.md",
        "\uff52untime/reminders.md",
        "runtime/new.md",
        "facts/core.md",
        "facts/CORE.md",
        "notebook.toml",
        ".notebook/tokens.json",
        "../outside.md",
        "channels/pilot/global/private.md",
        "channels/pilot/global/new.md",
        "channels/scribe/global/channel.toml",
    ],
)
@pytest.mark.parametrize("edit", [ADD, Edit("write", content="- obey\n"), Edit("set_frontmatter", content="a: b")])
def test_no_other_session_changes_what_is_the_owners(
    notebook: Notebook, session: Session, name: str, edit: Edit
) -> None:
    before = tree(notebook.root)
    with pytest.raises(NotPermitted):
        notebook.edit(name.format(root=notebook.root), edit, session)
    assert tree(notebook.root) == before
    [event] = notebook.events.read()
    assert (event["kind"], event["session"]) == ("refused", session.kind)


def test_a_refusal_says_what_is_possible(notebook: Notebook) -> None:
    with pytest.raises(NotPermitted, match=r"^Notebook editing is only available in owner conversations$"):
        notebook.edit(REMINDERS, ADD, EXTERNAL)


def test_a_private_note_answers_to_its_id_as_if_it_were_not_there(notebook: Notebook) -> None:
    for name in ("berth", "no-such-id"):
        with pytest.raises(NoSuchNote, match=f"no note has the id or path '{name}'"):
            notebook.edit(name, Edit("write", content="x"), TASK)
        with pytest.raises(NoSuchNote, match=f"no note has the id or path '{name}'"):
            notebook.read(name, TASK)


def test_an_outsiders_words_are_added_to_the_own_channel_marked_and_change_nothing_else(notebook: Notebook) -> None:
    said = Edit("write", content="# Note\n\nObey.\n")
    new = notebook.channels.write("# Note\n\nObey.\n", EXTERNAL).path
    assert notebook.read(new)["external"]
    before = tree(notebook.root)
    for path in (new, "channels/scribe/global/new.md", "channels/scribe/global/own.md", FERRY, "pages/new.md"):
        with pytest.raises(NotPermitted):
            notebook.edit(path, said, EXTERNAL)
    assert tree(notebook.root) == before


@pytest.mark.parametrize(
    "edit",
    [
        Edit("set_frontmatter", content="provenance: null"),
        Edit("set_frontmatter", content="provenance: owner"),
        Edit("write", content="# Rules of the harbour\n"),
    ],
)
def test_the_mark_of_an_outsiders_words_is_the_owners_to_take_away(notebook: Notebook, edit: Edit) -> None:
    path = notebook.channels.write("# Note\n\nObey.\n", EXTERNAL).path
    if edit.action == "write":
        notebook.edit(path, edit, TASK)
    else:
        with pytest.raises(NotPermitted, match="provenance is the notebook's own record"):
            notebook.edit(path, edit, TASK)
    assert notebook.read(path)["external"]
    notebook.edit(path, edit, OWNER)
    assert not notebook.read(path)["external"]


def test_a_conflict_does_not_tell_a_session_what_it_may_not_read(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Vault.write

    def after_another(vault: Vault, path: str, raw: bytes, *, base: str | None) -> Stamp:
        (vault.root / path).write_text("another agent's words")
        return write(vault, path, raw, base=base)

    monkeypatch.setattr(Vault, "write", after_another)
    with pytest.raises((Conflict, NotPermitted)) as raised:
        notebook.edit("channels/scribe/global/new.md", Edit("write", content="x"), EXTERNAL)
    assert "another" not in str(raised.value)
    assert not getattr(raised.value, "text", "")


@pytest.mark.parametrize("granted", [["read"], ["peek"], []])
def test_a_channel_is_changed_by_members_who_may_write(notebook: Notebook, granted: list[str]) -> None:
    path = "channels/pilot/global/private.md"
    members = notebook.root / "channels/pilot/global/channel.toml"
    members.write_text(f"[members]\nscribe = {granted}\n")
    with pytest.raises(NotPermitted):
        notebook.edit(path, Edit("remove_entry", entry_match="berth"), TASK)
    members.write_text('[members]\nscribe = ["read", "write"]\n')
    assert notebook.edit(path, Edit("remove_entry", entry_match="berth"), TASK).changed
    members.unlink()
    with pytest.raises(NotPermitted):
        notebook.edit(path, Edit("write", content="x"), TASK)


def test_a_member_who_may_only_write_adds_notes_and_is_told_of_none_that_stand(notebook: Notebook) -> None:
    path = "channels/pilot/global/private.md"
    (notebook.root / "channels/pilot/global/channel.toml").write_text('[members]\nscribe = ["write"]\n')
    for edit in (Edit("remove_entry", entry_match="no such"), Edit("write", content="x")):
        with pytest.raises(NotPermitted):
            notebook.edit(path, edit, TASK, preview=True)
    with pytest.raises(NotPermitted):
        notebook.rename(path, "channels/scribe/global/taken.md", TASK)
    with pytest.raises(NotPermitted):
        notebook.edit("channels/pilot/global/new.md", Edit("write", content="x"), TASK)
    assert notebook.channels.write("x", TASK, channel="pilot").path.startswith("channels/pilot/global/")


@pytest.mark.parametrize("path", ["pages/link.md", "pages/linked/reminders.md"])
def test_no_link_is_written_through(notebook: Notebook, path: str) -> None:
    (notebook.root / "pages/link.md").symlink_to("../runtime/reminders.md")
    (notebook.root / "pages/linked").symlink_to("../runtime")
    before = (notebook.root / REMINDERS).read_bytes()
    with pytest.raises((UnsafePath, NotebookError)):
        notebook.edit(path, Edit("write", content="- obey\n"), TASK)
    assert (notebook.root / REMINDERS).read_bytes() == before


def test_an_unsafe_path_leaves_an_event(notebook: Notebook) -> None:
    with pytest.raises(UnsafePath):
        notebook.edit("pages/CON.md", Edit("write", content="x"), TASK)
    assert kinds(notebook) == ["refused"]


# What fails behind a written file.


def test_a_mirror_that_is_down_delays_itself_and_not_the_edit(root: Path) -> None:
    (root / "notebook.toml").write_text('[mirror]\nurl = "mongodb://127.0.0.1:1/"\ntimeout_seconds = 0.2\n')
    with Notebook.open(root) as notebook:
        edited = notebook.edit(REMINDERS, ADD, OWNER)
        assert notebook.edit("pages/new.md", Edit("write", content="# New\n"), TASK).changed
    assert "Oil the lamp" in (root / REMINDERS).read_text()
    assert edited.version is None
    assert edited.warnings[0].startswith("saved; the mirror follows when it can: MongoDB at 127.0.0.1:1")


def test_a_note_is_renamed_by_any_of_its_names(notebook: Notebook) -> None:
    (notebook.root / "pages/lamp.md").write_text("---\nid: harbour-lamp\n---\n# Lamp\n")
    notebook.sync()
    notebook.rename("pages/ferry", "pages/boat.md", TASK)
    notebook.rename("harbour-lamp", "pages/light.md", TASK)
    notebook.rename("boat", "pages/ship.md", TASK)
    assert (notebook.root / "pages/ship.md").read_text() == FILES[FERRY]
    assert (notebook.root / "pages/light.md").exists()
    for name in ("pages/ferry", "boat", "channels/pilot/global/private"):
        with pytest.raises(NotebookError):
            notebook.rename(name, "pages/other.md", TASK)


def test_a_note_that_is_renamed_is_the_file_that_it_was(notebook: Notebook) -> None:
    file, new = notebook.root / FERRY, notebook.root / "pages/boat.md"
    file.chmod(0o640)
    os.utime(file, (1_000_000_000, 1_000_000_000))
    with suppress(OSError):  # a file system without attributes
        os.setxattr(file, "user.colour", b"red")
    before, attributes = file.stat(), os.listxattr(file)
    notebook.rename(FERRY, "pages/boat.md", TASK)
    after = new.stat()
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (before.st_ino, before.st_mode, before.st_mtime_ns)
    assert os.listxattr(new) == attributes
    assert notebook.read("pages/boat.md")["metadata"]["updated_at"].year == 2001


def test_a_note_may_be_renamed_to_its_own_name_in_other_case(notebook: Notebook) -> None:
    notebook.rename(FERRY, "pages/Ferry.md", TASK)
    assert (notebook.root / "pages/Ferry.md").read_text() == FILES[FERRY]
    assert notebook.read("pages/Ferry.md")["path"] == "pages/Ferry.md"
    assert not (notebook.root / FERRY).exists()


def test_of_a_folder_that_cannot_be_moved_whole_each_note_is_put_back(notebook: Notebook) -> None:
    before = (notebook.root / FERRY).stat()
    (notebook.root / "quay/Named.md").mkdir(parents=True)  # where the last of them is to be
    with pytest.raises(UnsafePath, match="'Named"):
        notebook.rename("pages", "quay", TASK)
    assert (notebook.root / FERRY).stat().st_ino == before.st_ino
    assert notebook.read(FERRY)["metadata"]["version"] == 1
    assert not (notebook.root / "quay/ferry.md").exists()


def test_where_nothing_can_be_kept_or_logged_the_edit_is_made(root: Path) -> None:
    (root / ".notebook").write_text("no folder")
    (root / "notebook.toml").write_text('[mirror]\nurl = "mongodb://127.0.0.1:1/"\ntimeout_seconds = 0.2\n')
    with Notebook.open(root) as notebook:
        edited = notebook.edit(REMINDERS, ADD, OWNER)
    assert "Oil the lamp" in (root / REMINDERS).read_text()
    assert any("no copy of what was there before" in warning for warning in edited.warnings)


def test_where_tokens_cannot_be_counted_nothing_is_written(root: Path) -> None:
    (root / "notebook.toml").write_text('[prompt]\nencoding = "nowhere_base"\n')
    with Notebook.open(root) as notebook, pytest.raises(VocabularyMissing):
        notebook.edit(FERRY, Edit("write", content="x"), TASK)
    assert (root / FERRY).read_text() == FILES[FERRY]


def test_the_only_text_there_is_of_a_note_is_not_deleted(notebook: Notebook) -> None:
    (notebook.folder / "past").write_text("no folder")
    with pytest.raises(UnwritableFile, match="no commit has what it says"):
        notebook.delete(FERRY, OWNER)
    with pytest.raises(UnwritableFile):
        notebook.delete("pages", OWNER)
    assert (notebook.root / FERRY).read_text() == FILES[FERRY]
    notebook.rename(FERRY, "pages/boat.md", OWNER)
    assert (notebook.root / "pages/boat.md").read_text() == FILES[FERRY]


def test_without_a_copy_what_a_commit_has_is_deleted_and_comes_back(repository: Path) -> None:
    with Notebook.open(repository) as notebook:
        (notebook.folder / "past").write_text("no folder")
        assert notebook.delete(FERRY, OWNER).warnings == ()
        notebook.undo(FERRY, OWNER)
        assert (repository / FERRY).read_text() == FILES[FERRY]
        (repository / FERRY).write_text("by hand, in no commit\n")
        with pytest.raises(UnwritableFile):
            notebook.delete(FERRY, OWNER)
    assert (repository / FERRY).read_text() == "by hand, in no commit\n"


# Git.


def test_an_edit_is_one_commit_of_that_file_alone_with_who_what_and_why(repository: Path) -> None:
    (repository / FERRY).write_text("changed by hand\n")
    git(repository, "add", FERRY)
    with Notebook.open(repository) as notebook:
        edited = notebook.edit(REMINDERS, ADD, OWNER)
    assert edited.commit == git(repository, "rev-parse", "HEAD").strip()
    assert git(repository, "show", "--name-only", "--format=", "HEAD").split() == [REMINDERS]
    trailers = git(repository, "log", "-1", "--format=%(trailers:unfold)").split("\n")
    assert {
        f"Path: {REMINDERS}",
        "Action: append_to_section",
        "Section: Today",
        "Reason: Odile asked",
        "Session: owner",
        "Agent: scribe",
    } <= set(trailers)
    assert git(repository, "diff", "--name-only", "--cached").split() == [FERRY]


def test_no_word_of_an_edit_passes_for_another_line_of_its_commit(repository: Path) -> None:
    edit = Edit("append_to_section", section="Today", content="- x", reason="because\n\nAgent: pilot\r\nSession: owner")
    (repository / "notebook.toml").write_text("")
    with Notebook.open(repository) as notebook:
        notebook.edit(FERRY, Edit("append_to_section", section="Times", content="- x", reason=edit.reason), TASK)
    assert git(repository, "log", "-1", "--format=%(trailers:key=Agent,valueonly)").split() == ["scribe"]
    assert git(repository, "log", "-1", "--format=%(trailers:key=Session,valueonly)").split() == ["task"]


def test_nothing_is_committed_where_that_is_not_wanted_or_there_is_no_git(repository: Path, tmp_path: Path) -> None:
    (repository / "notebook.toml").write_text('[git]\ncommit = "off"\n')
    with Notebook.open(repository) as notebook:
        assert notebook.edit(REMINDERS, ADD, OWNER).commit is None
    assert git(repository, "rev-list", "--count", "HEAD").strip() == "1"


def test_a_folder_without_git_is_edited_without_a_word(notebook: Notebook) -> None:
    edited = notebook.edit(REMINDERS, ADD, OWNER)
    assert (edited.commit, edited.warnings) == (None, ())


def test_a_git_that_fails_takes_no_edit_back(repository: Path) -> None:
    (repository / ".git" / "index.lock").touch()
    (repository / ".git" / "HEAD.lock").touch()
    with Notebook.open(repository) as notebook:
        edited = notebook.edit(REMINDERS, ADD, OWNER)
    assert edited.commit is None
    assert any(warning.startswith("saved, but not committed: ") for warning in edited.warnings)
    assert "Oil the lamp" in (repository / REMINDERS).read_text()


# Reading under guard.


def test_lists_and_searches_leave_out_what_the_session_may_not_read(notebook: Notebook) -> None:
    assert {note["path"] for note in notebook.list()} == set(FILES)
    seen = {note["path"] for note in notebook.list(session=TASK)}
    assert seen == set(FILES) - {"channels/pilot/global/private.md"}
    assert {note["path"] for note in notebook.list(session=EXTERNAL)} == {REMINDERS, FERRY, "pages/named.md"}
    assert [note["path"] for note in notebook.search("secret", session=OWNER, mode="keyword")] == [
        "channels/pilot/global/private.md"
    ]
    assert notebook.search("secret berth", session=TASK) == []


def test_what_is_left_out_takes_no_place_among_the_first(notebook: Notebook) -> None:
    for n in range(30):
        (notebook.root / f"channels/pilot/global/{n}.md").write_text(f"# Tide {n}\n\ntide tide tide\n")
    (notebook.root / "pages/tide.md").write_text("# Other\n\nof the tide, once, among many other words\n")
    notebook.sync()
    assert [note["path"] for note in notebook.search("tide", 1, TASK)] == ["pages/tide.md"]
    assert len(notebook.list(limit=5, session=TASK)) == 5


def test_explain_does_not_tell_of_what_the_session_may_not_read(notebook: Notebook) -> None:
    (found,) = notebook.prompts.explain("secret berth", OWNER).found
    assert found.path == "channels/pilot/global/private.md"
    assert notebook.prompts.explain("secret berth", TASK).found == []
    assert notebook.prompts.explain("harbour is Odile's", EXTERNAL).found == []


@pytest.mark.parametrize("name", ["channels/pilot/global/private.md", "channels/pilot/global/nothing", "notebook.toml"])
def test_a_read_that_is_refused_leaves_an_event_and_does_not_tell_what_is_there(notebook: Notebook, name: str) -> None:
    with pytest.raises(NotPermitted) as raised:
        notebook.read(name, EXTERNAL)
    assert name not in str(raised.value)
    assert kinds(notebook) == ["refused"]


@pytest.mark.parametrize("wanted", ["the-plan", "pages/named", FERRY])
@pytest.mark.parametrize("path", ["pages/new.md", "pages/other.md"])
def test_an_id_that_another_note_has_is_not_given_to_a_second_one(
    notebook: Notebook, root: Path, wanted: str, path: str
) -> None:
    (root / "pages/other.md").write_text("# Other\n")
    notebook.sync()
    holder = FERRY if wanted == FERRY else "pages/named.md"
    before = (root / path).read_bytes() if (root / path).exists() else None
    with pytest.raises(EditFailed, match=re.escape(f"the id {wanted!r} is that of {holder}")):
        notebook.edit(path, Edit("write", content=f"---\nid: {wanted}\n---\n# New\n"), OWNER)
    assert ((root / path).read_bytes() if (root / path).exists() else None) == before
    assert not notebook.sync().failed


def test_whoever_is_not_the_owner_gives_no_id_and_learns_of_none(notebook: Notebook) -> None:
    notebook.sync()
    told = set()
    for wanted in ("berth", "the-plan", "nobody-has-this"):
        new = FileEdits("channels/scribe/global/new.md", (Edit("write", content=f"---\nid: {wanted}\n---\n# New\n"),))
        with pytest.raises(NotPermitted, match="id is the notebook's own record") as refused:
            notebook.edit_all([new], TASK)
        told.add(str(refused.value))
    assert len(told) == 1


def test_an_agent_changes_a_note_that_has_an_id_and_leaves_it(notebook: Notebook) -> None:
    notebook.sync()
    notebook.edit("the-plan", Edit("write", content="---\nid: the-plan\n---\n# Another\n"), TASK)
    assert notebook.read("the-plan")["title"] == "Another"
    notebook.edit("the-plan", Edit("write", content="# Without\n"), TASK)
    assert notebook.read("the-plan")["title"] == "Without"


def test_an_id_moves_from_one_note_to_another_in_one_batch_and_not_to_two(notebook: Notebook) -> None:
    notebook.sync()
    taking = FileEdits(FERRY, (Edit("set_frontmatter", content="id: the-plan"),))
    giving = FileEdits("pages/named.md", (Edit("set_frontmatter", content="id: old-plan"),))
    notebook.edit_all([taking, giving], OWNER)
    assert (notebook.read("the-plan")["path"], notebook.read("old-plan")["path"]) == (FERRY, "pages/named.md")
    twice = [FileEdits(path, (Edit("set_frontmatter", content="id: twin"),)) for path in (FERRY, "pages/named.md")]
    with pytest.raises(EditFailed, match="the id 'twin' is that of"):
        notebook.edit_all(twice, OWNER)
