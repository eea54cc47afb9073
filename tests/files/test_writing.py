"""Writing one note: what is asked for and nothing else, durable, and as it was when anything fails."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from notebook_sync.errors import Conflict, RootLost, TooLarge, UnreadableFile, UnwritableFile
from notebook_sync.files import folder as folder_module
from notebook_sync.files import writing as module
from notebook_sync.files.vault import Vault
from tests import forked
from tests.files.disks import OldDisk, TellingDisk, fused_disk
from tests.sync.faults import Fuse, raising

OLD, NEW = b"the ferry leaves at nine\n", b"the ferry leaves at ten\n"


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


@pytest.fixture(params=["exchange and leases", "neither"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Vault:
    made = Vault(tmp_path)
    if request.param == "neither":
        made.disk = OldDisk()
    return made


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "harbour" / "ferry.md"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


def files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_new_note_is_written_with_the_folders_above_it(vault: Vault) -> None:
    stamp = vault.write("harbour/ferry/plan.md", NEW, base=None)
    assert files(vault.root) == {"harbour/ferry/plan.md": NEW}
    assert stamp == vault.stamp("harbour/ferry/plan.md")
    assert vault.digest("harbour/ferry/plan.md") == digest(NEW)


def test_a_note_is_replaced_when_it_is_the_one_that_was_meant(vault: Vault, note: Path) -> None:
    stamp = vault.write("harbour/ferry.md", NEW, base=digest(OLD))
    assert files(vault.root) == {"harbour/ferry.md": NEW}
    assert stamp == vault.stamp("harbour/ferry.md")


@pytest.mark.parametrize(
    ("base", "there"),
    [(digest(b"something else"), OLD), (None, OLD), (digest(OLD), None)],
    ids=["changed", "there already", "gone"],
)
def test_a_note_that_is_another_one_by_now_stays_and_is_told(
    vault: Vault, note: Path, base: str | None, there: bytes | None
) -> None:
    if there is None:
        note.unlink()
    with pytest.raises(Conflict) as conflict:
        vault.write("harbour/ferry.md", NEW, base=base)
    assert files(vault.root) == ({} if there is None else {"harbour/ferry.md": there})
    assert conflict.value.base == (base or "")
    assert conflict.value.current == ("" if there is None else digest(there))
    assert conflict.value.text == (there or b"").decode()


def test_nothing_is_left_of_folders_made_for_a_note_that_was_refused(vault: Vault, note: Path) -> None:
    with pytest.raises(Conflict):
        vault.rename("harbour/ferry.md", "port/of/call.md", base=digest(NEW))
    assert {path.name for path in vault.root.iterdir()} == {"harbour"}


def test_a_note_is_deleted_when_it_is_the_one_that_was_meant(vault: Vault, note: Path) -> None:
    with pytest.raises(Conflict):
        vault.delete("harbour/ferry.md", base=digest(NEW))
    assert files(vault.root) == {"harbour/ferry.md": OLD}
    vault.delete("harbour/ferry.md", base=digest(OLD))
    assert files(vault.root) == {}
    assert vault.digest("harbour/ferry.md") is None


@pytest.mark.parametrize("new", ["harbour/boat.md", "port/boat.md", "boat.md", "harbour/Ferry.md"])
def test_a_note_is_renamed_when_it_is_the_one_that_was_meant(vault: Vault, note: Path, new: str) -> None:
    with pytest.raises(Conflict):
        vault.rename("harbour/ferry.md", new, base=digest(NEW))
    assert files(vault.root) == {"harbour/ferry.md": OLD}
    stamp = vault.rename("harbour/ferry.md", new, base=digest(OLD))
    assert files(vault.root) == {new: OLD}
    assert stamp == vault.stamp(new)


def test_nothing_is_renamed_over_another_note(vault: Vault, note: Path) -> None:
    (vault.root / "boat.md").write_bytes(NEW)
    with pytest.raises(Conflict) as conflict:
        vault.rename("harbour/ferry.md", "boat.md", base=digest(OLD))
    assert (conflict.value.path, conflict.value.current) == ("boat.md", digest(NEW))
    assert files(vault.root) == {"harbour/ferry.md": OLD, "boat.md": NEW}


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_replaced_note_keeps_its_mode_and_owner(vault: Vault, note: Path, mode: int) -> None:
    note.chmod(mode)
    with contextlib.suppress(PermissionError):  # only root may give a file away
        os.chown(note, 1234, 4321)
    before = note.stat()
    vault.write("harbour/ferry.md", NEW, base=digest(OLD))
    after = note.stat()
    assert stat.S_IMODE(after.st_mode) == mode
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


def test_a_new_note_has_the_mode_that_the_users_umask_gives(vault: Vault) -> None:
    before = os.umask(0o027)
    try:
        vault.write("a.md", NEW, base=None)
    finally:
        os.umask(before)
    assert stat.S_IMODE((vault.root / "a.md").stat().st_mode) == 0o640


def test_a_note_that_is_too_large_is_neither_written_nor_replaced(tmp_path: Path) -> None:
    vault = Vault(tmp_path, max_file_bytes=10)
    with pytest.raises(TooLarge, match="max_file_bytes"):
        vault.write("a.md", b"x" * 11, base=None)
    (tmp_path / "a.md").write_bytes(b"x" * 11)
    with pytest.raises(UnreadableFile, match="max_file_bytes"):
        vault.write("a.md", b"x", base=digest(b"x" * 11))
    assert files(tmp_path) == {"a.md": b"x" * 11}


def test_a_notebook_that_is_gone_is_told_and_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(RootLost):
        Vault(tmp_path / "gone").write("a.md", NEW, base=None)
    assert list(tmp_path.iterdir()) == []


# Durable: the text before its name, the name before the answer.


def test_the_text_is_on_the_medium_before_it_has_the_name_and_the_name_before_the_old_text_goes(
    tmp_path: Path, note: Path
) -> None:
    vault = Vault(tmp_path)
    vault.disk = disk = TellingDisk()
    vault.write("harbour/ferry.md", NEW, base=digest(OLD))
    assert disk.told == [f"sync {len(NEW)} bytes", "exchange", "sync folder", "remove"]


def test_a_new_note_and_the_folders_above_it_are_on_the_medium(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.disk = disk = TellingDisk()
    vault.write("harbour/ferry.md", NEW, base=None)
    assert disk.told == ["sync folder", f"sync {len(NEW)} bytes", "name", "sync folder"]


def test_a_deletion_is_on_the_medium_before_the_bytes_go(tmp_path: Path, note: Path) -> None:
    vault = Vault(tmp_path)
    vault.disk = disk = TellingDisk()
    vault.delete("harbour/ferry.md", base=digest(OLD))
    assert disk.told == ["unname", "sync folder", "remove"]


# Every step can fail.

CHANGES: dict[str, Callable[[Vault], object]] = {
    "create": lambda vault: vault.write("port/new.md", NEW, base=None),
    "replace": lambda vault: vault.write("harbour/ferry.md", NEW, base=digest(OLD)),
    "delete": lambda vault: vault.delete("harbour/ferry.md", base=digest(OLD)),
    "rename": lambda vault: vault.rename("harbour/ferry.md", "port/boat.md", base=digest(OLD)),
}
AFTER = {
    "create": {"harbour/ferry.md": OLD, "port/new.md": NEW},
    "replace": {"harbour/ferry.md": NEW},
    "delete": {},
    "rename": {"port/boat.md": OLD},
}
BEFORE = {"harbour/ferry.md": OLD}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_disk_that_fails_at_any_step_leaves_the_old_notes_and_nothing_else(
    tmp_path: Path, change: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = 0
    for at in range(1, 100):
        root = tmp_path / str(at)
        (root / "harbour").mkdir(parents=True)
        (root / "harbour" / "ferry.md").write_bytes(OLD)
        vault = Vault(root)
        fuse = Fuse()
        vault.disk = fused_disk(fuse)
        fuse.set(raising(OSError(code, os.strerror(code))), at=at)
        refusal = None
        try:
            CHANGES[change](vault)
        except UnwritableFile as error:
            refusal = error
        if refusal:
            assert os.strerror(code).lower() in str(refusal)
            assert files(root) == BEFORE
            failed += 1
        else:
            left = {path: raw for path, raw in files(root).items() if not Path(path).name.startswith(".")}
            assert left == AFTER[change]
            if fuse.is_set:
                break
            # Only what was no longer needed could not be removed, and the next write does that.
            monkeypatch.setattr(folder_module, "LEFTOVER_SECONDS", -1)
            vault.write("harbour/other.md", b"", base=None)
            assert files(root) == AFTER[change] | {"harbour/other.md": b""}
    else:
        pytest.fail("it never came to an end")
    assert failed >= 5


@pytest.mark.parametrize("change", CHANGES)
def test_a_process_killed_at_any_step_leaves_old_or_new_and_the_next_write_cleans_up(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = subprocess.run(
        [*forked.command("tests.files.killed"), tmp_path, change],
        env={**os.environ, "PYTHONPATH": str(forked.REPOSITORY)},
        check=True,
        capture_output=True,
        text=True,
    )
    ends = json.loads(told.stdout)
    assert [end for end in ends if end["signal"]]
    assert {end["signal"] for end in ends} == {0, signal.SIGKILL}
    monkeypatch.setattr(folder_module, "LEFTOVER_SECONDS", -1)
    seen = []
    for end in ends:
        root = tmp_path / end["folder"]
        for place in ("harbour", "port"):
            Vault(root).write(f"{place}/other.md", b"", base=None)
        others = {"harbour/other.md": b"", "port/other.md": b""}
        found = {path: raw for path, raw in files(root).items() if path not in others}
        assert found in (BEFORE, AFTER[change]), end
        assert end["signal"] or found == AFTER[change]
        seen.append(found)
    assert BEFORE in seen


# What a killed writer leaves.


def left_by_a_killed_writer(folder: Path, name: str, raw: bytes) -> Path:
    path = folder / name
    path.write_bytes(raw)
    return path


def test_a_hidden_file_that_is_not_old_or_not_ours_is_left_alone(vault: Vault, note: Path) -> None:
    for name in (module.new_name(), ".notebook-new-x~", ".ferry.md.swp"):
        left_by_a_killed_writer(note.parent, name, b"x")
    before = set(files(vault.root))
    vault.write("harbour/ferry.md", NEW, base=digest(OLD))
    assert set(files(vault.root)) == before


def test_bytes_that_only_a_person_can_have_written_are_never_cleaned_away(
    vault: Vault, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "LEFTOVER_SECONDS", -1)
    names = [module.swap_name(digest(OLD), digest(NEW)) for _ in range(3)]
    for name, raw in zip(names, (OLD, NEW, b"Odile's own words"), strict=True):
        left_by_a_killed_writer(note.parent, name, raw)
    vault.write("harbour/other.md", b"", base=None)
    found = files(vault.root)
    assert found.pop("harbour/ferry.md") == OLD
    assert found.pop("harbour/other.md") == b""
    ((name, raw),) = found.items()
    assert name.startswith("harbour/recovered-")
    assert raw == b"Odile's own words"
    assert name in vault.scan().seen
