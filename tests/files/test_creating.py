"""Many new notes at once: all that were free to be made, whole and durable, or none where the disk fails."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from notebook_sync.errors import TooLarge, UnsafePath, UnwritableFile
from notebook_sync.files.vault import Vault
from tests.files.disks import TellingDisk, fused_disk
from tests.sync.faults import Fuse, raising

NOTES = {f"{name}.md": f"# {name}\n".encode() for name in ("gate", "rope", "tide")}
FOLDER = "memories/pattern"


def files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / FOLDER).glob("*")} if (root / FOLDER).exists() else {}


def test_all_notes_are_made_with_the_stamps_of_their_files(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    made = vault.create_all(FOLDER, NOTES)
    assert files(tmp_path) == NOTES
    assert made == {f"{FOLDER}/{name}": vault.stamp(f"{FOLDER}/{name}") for name in NOTES}


def test_no_note_is_written_over_another_or_beside_one_of_nearly_the_same_name(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.create_all(FOLDER, {"gate.md": b"a person's", "Tide.md": b"a person's"})
    assert [*vault.create_all(FOLDER, NOTES)] == [f"{FOLDER}/rope.md"]
    assert files(tmp_path) == {"gate.md": b"a person's", "Tide.md": b"a person's", "rope.md": NOTES["rope.md"]}


def test_of_two_that_some_systems_take_for_one_the_first_is_made(tmp_path: Path) -> None:
    assert [*Vault(tmp_path).create_all(FOLDER, {"A.md": b"1", "a.md": b"2"})] == [f"{FOLDER}/A.md"]
    assert files(tmp_path) == {"A.md": b"1"}


def test_the_bytes_are_durable_before_the_names_and_the_names_before_the_answer(tmp_path: Path) -> None:
    vault, disk = Vault(tmp_path), TellingDisk()
    vault.disk = disk
    (tmp_path / FOLDER).mkdir(parents=True)
    vault.create_all(FOLDER, NOTES)
    told = [one for one in disk.told if one != "remove"]
    assert told == ["sync all", "name", "name", "name", "sync folder"]


@pytest.mark.parametrize("name", ["../gate.md", ".gate.md", "gate.txt", "a\0b.md", "con.md", "x/../gate.md"])
def test_a_name_that_no_note_may_have_makes_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsafePath):
        Vault(tmp_path).create_all(FOLDER, {"rope.md": b"", name: b""})
    assert files(tmp_path) == {}


def test_a_text_that_is_too_large_and_a_folder_that_is_a_link_make_none(tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        Vault(tmp_path, max_file_bytes=3).create_all(FOLDER, NOTES)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "memories").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePath):
        Vault(tmp_path).create_all(FOLDER, NOTES)
    assert files(tmp_path) == {}


@pytest.mark.parametrize("after", [False, True])
def test_whichever_step_fails_all_notes_are_there_or_none(tmp_path: Path, after: bool) -> None:
    failed = 0
    for at in range(1, 100):
        root = tmp_path / str(at)
        root.mkdir()
        vault, fuse = Vault(root), Fuse()
        vault.disk = fused_disk(fuse)
        fuse.set(raising(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))), at=at, after=after)
        refusal = None
        try:
            vault.create_all(FOLDER, NOTES)
        except UnwritableFile as error:
            refusal = error
        if refusal:
            assert "no space left" in str(refusal)
            assert files(root) == {}
            failed += 1
        else:
            assert {name: raw for name, raw in files(root).items() if not name.startswith(".")} == NOTES
            if fuse.is_set:
                break
    assert failed > 10
