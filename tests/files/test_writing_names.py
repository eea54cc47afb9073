"""Where no note is ever written: a table of paths, and what may stand in a path's way."""

from __future__ import annotations

import hashlib
import os
import socket
import unicodedata
from pathlib import Path

import pytest

from notebook_sync.errors import UnsafePath
from notebook_sync.files.vault import Vault

TEXT = b"the ferry leaves at nine\n"
BASE = hashlib.sha256(TEXT).hexdigest()
LONG = "x" * 253 + ".md"

# New notes that some systems would take for a note, or a folder, that is there.
TWINS = [
    "HARBOUR/new.md",
    unicodedata.normalize("NFD", "café.md"),
    unicodedata.normalize("NFD", "île") + "/new.md",
    "STRASSE.md",
]
REFUSED = [
    "",
    ".",
    "a.txt",
    "a",
    "harbour/",
    "harbour",
    "../a.md",
    "harbour/../../a.md",
    "harbour/../a.md",
    "/etc/a.md",
    "{root}/a.md",
    "./a.md",
    "harbour//a.md",
    "a.md/",
    "a\0.md",
    "a\n.md",
    "a\x1b[2J.md",
    "a\x7f.md",
    "a\x85.md",
    "a\u2028.md",
    "dm.\u202egpj.md",
    "a\udcff.md",
    "harbour\\a.md",
    "..\\a.md",
    ".hidden.md",
    ".md",
    ".obsidian/a.md",
    ".git/a.md",
    ".notebook/a.md",
    "harbour/.git/a.md",
    ".GIT/a.md",
    "CON.md",
    "con.md",
    "Aux.notes.md",
    "nul .md",
    "lpt1.md",
    "COM¹.md",
    "prn/a.md",
    "harbour./a.md",
    "harbour /a.md",
    " a.md",
    "a.md ",
    "a.md.",
    LONG,
    "é" * 127 + ".md",
    "/".join(["folder"] * 700) + "/a.md",
    "secret.md",
    "left-out/a.md",
    "drafts/deep/a.md",
    *TWINS,
]
ALLOWED = ["a.md", "deep/er/a.md", "x" * 252 + ".md", "what is this? #1: yes.md", "comet.md", "日本/港.md", "a..b.md"]


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    root = tmp_path / "notebook"
    for path in ("harbour/ferry.md", "café.md", "île/a.md", "straße.md", "secret.md", "left-out/a.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(TEXT)
    (root / ".gitignore").write_text("secret.md\nleft-out/\n")
    return Vault(root, exclude=["drafts/"])


def listing(root: Path) -> list[str]:
    return sorted(str(path) for path in root.parent.rglob("*"))


@pytest.mark.parametrize("path", REFUSED)
def test_a_path_that_is_no_safe_name_of_a_note_is_refused_by_every_change(vault: Vault, path: str) -> None:
    before = listing(vault.root)
    given = path.replace("{root}", str(vault.root))
    with pytest.raises(UnsafePath):
        vault.write(given, TEXT, base=None)
    with pytest.raises(UnsafePath):
        vault.rename("harbour/ferry.md", given, base=BASE)
    assert listing(vault.root) == before


@pytest.mark.parametrize("path", [path for path in REFUSED if path not in TWINS])
def test_what_stands_at_such_a_path_is_neither_replaced_nor_deleted(vault: Vault, path: str) -> None:
    before = listing(vault.root)
    given = path.replace("{root}", str(vault.root))
    with pytest.raises(UnsafePath):
        vault.write(given, b"other", base=BASE)
    with pytest.raises(UnsafePath):
        vault.delete(given, base=BASE)
    assert listing(vault.root) == before


@pytest.mark.parametrize("path", ALLOWED)
def test_any_other_name_is_a_notes(vault: Vault, path: str) -> None:
    vault.write(path, TEXT, base=None)
    assert path in vault.scan([path]).seen
    vault.delete(path, base=BASE)
    assert path not in vault.scan().seen


@pytest.mark.parametrize("path", ["harbour/FERRY.md", "harbour/ferry.MD"])
def test_a_note_can_be_renamed_to_its_own_twin_but_none_made_beside_it(vault: Vault, path: str) -> None:
    with pytest.raises(UnsafePath, match=r"ferry\.md"):
        vault.write(path, TEXT, base=None)
    vault.rename("harbour/ferry.md", path, base=BASE)
    assert set(vault.scan(["harbour"]).seen) == {path}


def test_a_note_that_has_a_twin_already_can_be_changed(vault: Vault) -> None:
    (vault.root / "harbour" / "Ferry.md").write_bytes(TEXT)
    vault.write("harbour/ferry.md", b"other", base=BASE)
    assert (vault.root / "harbour" / "ferry.md").read_bytes() == b"other"
    assert (vault.root / "harbour" / "Ferry.md").read_bytes() == TEXT


def link_to_a_note(path: Path) -> None:
    path.symlink_to("harbour/ferry.md")


def dangling_link(path: Path) -> None:
    path.symlink_to("nowhere.md")


def link_out(path: Path) -> None:
    (path.parent.parent / "outside.md").write_bytes(TEXT)
    path.symlink_to("../outside.md")


def hard_link(path: Path) -> None:
    (path.parent.parent / "outside.md").write_bytes(TEXT)
    os.link(path.parent.parent / "outside.md", path)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(path.parent)
        try:
            listening.bind(path.name)
        finally:
            os.chdir(before)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [link_to_a_note, dangling_link, link_out, hard_link, pipe, unix_socket, folder])
def test_what_is_no_plain_file_is_no_target(vault: Vault, make: object) -> None:
    target = vault.root / "target.md"
    make(target)  # type: ignore[operator]
    before = [(path, path.lstat()) for path in sorted(vault.root.parent.rglob("*")) if not path.is_dir()]
    for change in (
        lambda: vault.write("target.md", b"other", base=None),
        lambda: vault.write("target.md", b"other", base=BASE),
        lambda: vault.delete("target.md", base=BASE),
        lambda: vault.rename("target.md", "moved.md", base=BASE),
        lambda: vault.rename("harbour/ferry.md", "target.md", base=BASE),
    ):
        with pytest.raises(UnsafePath):
            change()
    after = [(path, path.lstat()) for path in sorted(vault.root.parent.rglob("*")) if not path.is_dir()]
    assert [(path, found.st_ino, found.st_mtime_ns) for path, found in after] == [
        (path, found.st_ino, found.st_mtime_ns) for path, found in before
    ]


@pytest.mark.parametrize("leads_to", ["harbour", "..", "nowhere", "/"])
def test_a_linked_folder_on_the_way_is_refused(vault: Vault, leads_to: str) -> None:
    (vault.root / "link").symlink_to(leads_to)
    for change in (
        lambda: vault.write("link/new.md", TEXT, base=None),
        lambda: vault.write("link/ferry.md", b"other", base=BASE),
        lambda: vault.rename("harbour/ferry.md", "link/boat.md", base=BASE),
        lambda: vault.delete("link/ferry.md", base=BASE),
    ):
        with pytest.raises(UnsafePath, match="link"):
            change()
    assert (vault.root / "harbour" / "ferry.md").read_bytes() == TEXT


def test_a_file_on_the_way_is_refused(vault: Vault) -> None:
    with pytest.raises(UnsafePath):
        vault.write("café.md/new.md", TEXT, base=None)
