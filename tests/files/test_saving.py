"""Changing one note: what is asked for and nothing else, durable, and as it was when anything fails."""

import ctypes
import errno
import os
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from notebook_sync.errors import Conflict, ReadOnly, RootLost, TooLarge, UnsafePath, UnwritableFile
from notebook_sync.files import save
from notebook_sync.files.save import Saver
from notebook_sync.files.state import Place
from tests.files.notebooks import Steps, digest, fail_with, files_in, saver_of, tree_of, write
from tests.processes import start_process

OLD, NEW = b"the ferry leaves at nine\n", b"the ferry leaves at ten\n"
NOTE = "harbour/ferry.md"


@pytest.fixture(params=["exchange", "no exchange", "no flags"])
def saver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Saver:
    """On a system of today, and on file systems that lack something."""

    def rename(source: int, name: bytes, target: int, new: bytes, how: int) -> int:
        if how == 2 or request.param == "no flags":
            ctypes.set_errno(errno.EINVAL)
            return -1
        return renameat2(source, name, target, new, how)

    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    if request.param != "exchange":
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(renameat2=rename))
    write(folder, {NOTE: OLD})
    return saver_of(folder)


CHANGES: dict[str, Callable[[Saver], object]] = {
    "create": lambda saver: saver.create("port/of/call.md", NEW),
    "replace": lambda saver: saver.replace(NOTE, NEW, digest(OLD)),
    "delete": lambda saver: saver.delete(NOTE, digest(OLD)),
    "rename": lambda saver: saver.rename(NOTE, "port/boat.md", digest(OLD)),
}
AFTER = {
    "create": {NOTE: OLD, "port/of/call.md": NEW},
    "replace": {NOTE: NEW},
    "delete": {},
    "rename": {"port/boat.md": OLD},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_does_what_is_asked_and_makes_the_folders_above_it(saver: Saver, folder: Path, change: str) -> None:
    CHANGES[change](saver)
    assert files_in(folder) == AFTER[change]


@pytest.mark.parametrize("change", ["replace", "delete", "rename"])
@pytest.mark.parametrize("there", [b"other\n", None], ids=["changed", "gone"])
def test_a_note_that_is_another_one_by_now_stays(saver: Saver, folder: Path, change: str, there: bytes | None) -> None:
    (folder / NOTE).unlink()
    if there:
        write(folder, {NOTE: there})
    before = (files_in(folder), [path.stat() for path in (folder / "harbour").iterdir()])
    with pytest.raises(Conflict) as conflict:
        CHANGES[change](saver)
    assert (files_in(folder), [path.stat() for path in (folder / "harbour").iterdir()]) == before
    assert not (folder / "port").exists()
    expected = (NOTE, digest(OLD), digest(there) if there else "", (there or b"").decode())
    assert (conflict.value.path, conflict.value.base, conflict.value.current_digest, conflict.value.text) == expected


def test_nothing_is_created_or_renamed_over_another_note(saver: Saver, folder: Path) -> None:
    write(folder, {"boat.md": NEW})
    for change in (lambda: saver.create("boat.md", OLD), lambda: saver.rename(NOTE, "boat.md", digest(OLD))):
        with pytest.raises(Conflict) as conflict:
            change()
        assert (conflict.value.path, conflict.value.current_digest) == ("boat.md", digest(NEW))
    assert files_in(folder) == {NOTE: OLD, "boat.md": NEW}


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_replaced_note_keeps_mode_owner_and_attributes(saver: Saver, folder: Path, mode: int) -> None:
    note = folder / NOTE
    note.chmod(mode)
    os.setxattr(note, "user.colour", b"blue")
    if os.getuid() == 0:
        os.chown(note, 1234, 4321)
    before = note.stat()
    saver.replace(NOTE, NEW, digest(OLD))
    after = note.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert os.getxattr(note, "user.colour") == b"blue"


def test_a_new_note_has_the_mode_of_the_umask_and_the_group_of_a_shared_folder(saver: Saver, folder: Path) -> None:
    group = 4321 if os.getuid() == 0 else os.getgid()
    os.chown(folder / "harbour", -1, group)
    (folder / "harbour").chmod(0o2775)
    before = os.umask(0o027)
    try:
        saver.create("harbour/a.md", NEW)
    finally:
        os.umask(before)
    made = (folder / "harbour/a.md").stat()
    assert (stat.S_IMODE(made.st_mode), made.st_gid) == (0o640, group)


def test_what_cannot_be_written_is_refused(folder: Path) -> None:
    write(folder, {NOTE: OLD})
    place = Place.open(folder)
    for saver, error in (
        (saver_of(folder, max_file_bytes=10), TooLarge),
        (Saver(tree_of(folder), Place(folder, place.state, read_only=True)), ReadOnly),
        (Saver(tree_of(folder / "gone"), place), RootLost),
    ):
        with pytest.raises(error):
            saver.create("a.md", b"x" * 11)
    assert files_in(folder) == {NOTE: OLD}
    saver_of(folder, max_file_bytes=10).create("a.md", b"x" * 10)


# Durable: the text before its name, the name before the old text goes.


def test_the_order_of_steps_survives_a_power_cut(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, {NOTE: OLD})
    saver = saver_of(folder)
    steps: list[str] = []

    def synced(fd: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        steps.append("sync folder" if is_folder else f"sync {os.fstat(fd).st_size}")

    def renamed(folder: int, name: str, target: int, new: str, how: int) -> None:
        steps.append("exchange" if how == 2 else "name")
        rename(folder, name, target, new, how)

    rename = save._rename
    monkeypatch.setattr(save.os, "fsync", synced)
    monkeypatch.setattr(save, "_rename", renamed)
    for change, expected in (
        ("replace", [f"sync {len(NEW)}", "exchange", "sync folder"]),
        ("create", ["sync folder"] * 2 + [f"sync {len(NEW)}", "name"] + ["sync folder"] * 2),
    ):
        CHANGES[change](saver)
        assert steps == expected
        steps.clear()


# Every step can fail.


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_disk_that_fails_at_any_step_leaves_the_old_notes_and_nothing_else(
    folder: Path, change: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = 0
    for at in range(1, 200):
        root = folder / str(at)
        write(root, {NOTE: OLD})
        saver = saver_of(root)
        steps = Steps(fail_with(OSError(code, os.strerror(code))), at)
        with monkeypatch.context() as patch:
            steps.install(patch)
            try:
                CHANGES[change](saver)
                was_refused = False
            except (UnwritableFile, RootLost):
                was_refused = True
        assert files_in(root) == ({NOTE: OLD} if was_refused else AFTER[change]), at
        assert not was_refused or not (root / "port").exists() or change == "replace", at
        assert _tidy(saver, monkeypatch) == []
        assert not list((root / ".notebook/replaced").glob("*")), at
        refused += was_refused
        if steps.all_done:
            break
    else:
        pytest.fail("the change never came to an end")
    assert refused >= 8


def _tidy(saver: Saver, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """As a minute later."""
    with monkeypatch.context() as patch:
        patch.setattr(save, "KEEP_SECONDS", -1.0)
        return saver.tidy()


def kill_at_every_step(top: Path, change: str) -> None:
    """Run one change again and again, in a process that is killed one step later each time, until it is not."""
    for after in (False, True):
        at, status = 0, -1
        while status:
            at += 1
            root = top / f"{'after' if after else 'before'}-{at}"
            write(root, {NOTE: OLD})
            saver = saver_of(root)
            if (child := os.fork()) == 0:
                steps = Steps(lambda: os.kill(os.getpid(), signal.SIGKILL), at, after=after)
                steps.install(pytest.MonkeyPatch())
                CHANGES[change](saver)
                os._exit(0)
            _, status = os.waitpid(child, 0)
    (top / "done").touch()


@pytest.mark.parametrize("change", CHANGES)
def test_a_process_killed_at_any_step_leaves_old_or_new(
    folder: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_process(kill_at_every_step, folder, change).join()
    assert (folder / "done").exists()
    seen = []
    for root in (path for path in folder.iterdir() if path.is_dir()):
        saver = saver_of(root)
        assert all(NEW.startswith(Path(path).read_bytes()) for path in _tidy(saver, monkeypatch))
        seen.append(files_in(root))
        assert seen[-1] in ({NOTE: OLD}, AFTER[change]), root.name
        saver.create("harbour/other.md", b"goes on\n")
    assert [each for each in ({NOTE: OLD}, AFTER[change]) if each not in seen] == []


# A person saves at the same moment.


def save_before_rename(note: Path, texts: list[bytes], patch: pytest.MonkeyPatch) -> None:
    """Let a person save the next of these texts, as a new file, right before each change of names."""
    rename = save._rename

    def renamed(*arguments: object) -> None:
        if texts:
            write(note.parent, {"4913": texts.pop(0)})
            (note.parent / "4913").replace(note)
        rename(*arguments)  # type: ignore[arg-type]

    patch.setattr(save, "_rename", renamed)


@pytest.mark.parametrize("texts", [[b"first\n"], [b"first\n", b"second\n"]], ids=len)
@pytest.mark.parametrize("change", ["replace", "delete", "rename"])
def test_a_save_right_before_the_names_change_stays_and_one_right_after_it_is_kept(
    folder: Path, change: str, texts: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {NOTE: OLD})
    saver = saver_of(folder)
    with monkeypatch.context() as patch:
        save_before_rename(folder / NOTE, list(texts), patch)
        with pytest.raises(Conflict) as conflict:
            CHANGES[change](saver)
    recovered = {Path(path).read_bytes() for path in _tidy(saver, monkeypatch)}
    assert {*files_in(folder).values(), *recovered} == set(texts)
    if len(texts) == 1:
        assert (files_in(folder), recovered, conflict.value.text) == ({NOTE: texts[0]}, set(), texts[0].decode())


def test_text_written_into_the_new_file_while_it_had_the_name_is_recovered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {NOTE: OLD})
    saver, rename, in_place = saver_of(folder), save._rename, [b"in place\n"]

    def then_in_place(*arguments: object) -> None:
        if (folder / NOTE).read_bytes() == NEW and in_place:
            (folder / NOTE).write_bytes(in_place.pop())
        rename(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(save, "_rename", then_in_place)
    save_before_rename(folder / NOTE, [b"by rename\n"], monkeypatch)
    with pytest.raises(Conflict):
        saver.replace(NOTE, NEW, digest(OLD))
    assert files_in(folder) == {NOTE: b"by rename\n"}
    assert [Path(path).read_bytes() for path in _tidy(saver, monkeypatch)] == [b"in place\n"]


# What was displaced is kept for a minute.


def test_a_write_to_the_displaced_file_is_recovered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, {NOTE: OLD})
    saver = saver_of(folder)
    with (folder / NOTE).open("ab", buffering=0) as editor:
        saver.replace(NOTE, NEW, digest(OLD))
        editor.write(b"typed meanwhile\n")
        assert _tidy(saver, monkeypatch) == []
        assert list((folder / ".notebook/replaced").iterdir())
    (recovered,) = _tidy(saver, monkeypatch)
    assert Path(recovered).read_bytes() == OLD + b"typed meanwhile\n"
    assert recovered.endswith("-harbour%2Fferry.md")
    assert stat.S_IMODE(Path(recovered).stat().st_mode) == 0o600
    assert (list((folder / ".notebook/replaced").iterdir()), files_in(folder)) == ([], {NOTE: NEW})


def test_a_displaced_file_is_kept_a_minute_and_a_day_where_leases_are_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {NOTE: OLD})
    saver = saver_of(folder)
    saver.replace(NOTE, NEW, digest(OLD))
    saver.tidy()
    assert list((folder / ".notebook/replaced").iterdir())
    monkeypatch.setattr(save.fcntl, "fcntl", lambda *_: fail_with(PermissionError())())
    _tidy(saver, monkeypatch)
    assert list((folder / ".notebook/replaced").iterdir())
    later = time.time() + 90_000
    monkeypatch.setattr(save.time, "time", lambda: later)
    assert (saver.tidy(), list((folder / ".notebook/replaced").iterdir())) == ([], [])


def test_files_of_others_are_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, {".notebook/replaced/mine.md": b"x"})
    assert _tidy(saver_of(folder), monkeypatch) == []
    assert (folder / ".notebook/replaced/mine.md").exists()


@pytest.mark.parametrize("change", CHANGES)
def test_a_note_on_another_file_system_is_refused_with_the_reason(
    folder: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {NOTE: OLD})
    monkeypatch.setattr(save, "_rename", lambda *_: fail_with(OSError(errno.EXDEV, ""))())
    with pytest.raises(UnwritableFile, match="another file system"):
        CHANGES[change](saver_of(folder))
    assert files_in(folder) == {NOTE: OLD}


def test_a_folder_that_is_moved_away_meanwhile_gets_no_text(saver: Saver, folder: Path) -> None:
    def must_hold(*arguments: object) -> None:
        (folder / "harbour").rename(folder / "moved")
        held(*arguments)  # type: ignore[arg-type]

    held = saver._must_hold
    saver._must_hold = must_hold  # type: ignore[method-assign]
    for change in (lambda: saver.create("harbour/new.md", NEW), lambda: saver.replace(NOTE, NEW, digest(OLD))):
        with pytest.raises(Conflict):
            change()
        assert files_in(folder) == {"moved/ferry.md": OLD}
        (folder / "moved").rename(folder / "harbour")


# Where no note is written.

TWINS = ["HARBOUR/new.md", "harbour/FERRY.md", "cafe\u0301.md", "i\u0302le/new.md", "STRASSE.md"]
NEVER = ["", ".", "a.txt", "harbour", "harbour/", "../a.md", "harbour/../../a.md", "/etc/a.md", "./a.md", "a//b.md"]
HIDDEN = [".hidden.md", ".md", ".git/a.md", ".notebook/a.md", "harbour/.git/a.md", "@eaDir/a.md", "#recycle/a.md"]
LEFT_OUT = ["secret.md", "left-out/a.md", "drafts/deep/a.md"]


@pytest.fixture
def guarded(folder: Path) -> Saver:
    files = (NOTE, "café.md", "île/a.md", "straße.md", "secret.md", "left-out/a.md")
    write(folder, dict.fromkeys(files, OLD) | {".gitignore": "secret.md\nleft-out/\n"})
    return saver_of(folder, exclude=("drafts/",))


@pytest.mark.parametrize("path", [*NEVER, *HIDDEN, *LEFT_OUT, *TWINS, "con.md", "a\n.md"])
def test_a_path_that_is_no_safe_name_is_refused_by_every_change(guarded: Saver, folder: Path, path: str) -> None:
    before = files_in(folder)
    changes = [lambda: guarded.create(path, NEW), lambda: guarded.rename(NOTE, path, digest(OLD))]
    if path not in (*TWINS, "con.md", "a\n.md"):
        changes += [lambda: guarded.replace(path, NEW, digest(OLD)), lambda: guarded.delete(path, digest(OLD))]
    for change in changes if path != "harbour/FERRY.md" else changes[:1]:
        with pytest.raises(UnsafePath):
            change()
    assert files_in(folder) == before


def test_names_that_exist_are_legal_and_a_note_can_take_its_own_twin(guarded: Saver, folder: Path) -> None:
    write(folder, {"con.md": OLD, "harbour/Ferry.md": OLD})
    guarded.replace("con.md", NEW, digest(OLD))
    guarded.replace("harbour/Ferry.md", NEW, digest(OLD))
    guarded.delete(NOTE, digest(OLD))
    guarded.rename("harbour/Ferry.md", "harbour/FERRY.md", digest(NEW))
    assert files_in(folder)["harbour/FERRY.md"] == files_in(folder)["con.md"] == NEW


def _hard_link(path: Path) -> None:
    write(path.parent.parent, {"outside.md": OLD})
    os.link(path.parent.parent / "outside.md", path)


@pytest.mark.parametrize(
    "make",
    [lambda path: path.symlink_to(NOTE), lambda path: path.symlink_to("nowhere"), _hard_link, os.mkfifo, Path.mkdir],
    ids=["link", "dangling link", "hard link", "pipe", "folder"],
)
def test_what_is_no_plain_file_is_no_target(guarded: Saver, folder: Path, make: Callable[[Path], object]) -> None:
    make(folder / "target.md")
    before = (folder / "target.md").lstat()
    for change in (
        lambda: guarded.create("target.md", NEW),
        lambda: guarded.replace("target.md", NEW, digest(OLD)),
        lambda: guarded.delete("target.md", digest(OLD)),
        lambda: guarded.rename("target.md", "moved.md", digest(OLD)),
        lambda: guarded.rename(NOTE, "target.md", digest(OLD)),
    ):
        with pytest.raises(UnsafePath):
            change()
    assert (folder / "target.md").lstat() == before


@pytest.mark.parametrize("leads_to", ["harbour", "..", "nowhere", "café.md"])
def test_a_linked_folder_or_a_file_on_the_way_is_refused(guarded: Saver, folder: Path, leads_to: str) -> None:
    (folder / "way").symlink_to(leads_to)
    for change in (
        lambda: guarded.create("way/new.md", NEW),
        lambda: guarded.create("café.md/new.md", NEW),
        lambda: guarded.replace("way/ferry.md", NEW, digest(OLD)),
        lambda: guarded.rename(NOTE, "way/boat.md", digest(OLD)),
    ):
        with pytest.raises(UnsafePath):
            change()
    assert (folder / NOTE).read_bytes() == OLD
