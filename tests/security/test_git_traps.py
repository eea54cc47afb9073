"""Rule: nothing in an archive makes the user's git run a program. Unless the archive's settings are trusted, an import
refuses folders that git would read as a repository, in the files and in the history, and attributes and submodules that
name programs. `doctor` looks for the same in a notebook.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.doctor import examine
from notebook_sync.errors import UsageError
from tests.notes.test_archive_reading import _announced, _member

HEAD = b"ref: refs/heads/main\n"
BARE = {"HEAD": HEAD, "config": b"", "objects/x": b"", "refs/x": b""}
WORKTREE = {"HEAD": HEAD, "commondir": b"../elsewhere\n"}
FOLDERS = {
    "a bare repository": {f"pages/tides/{name}": raw for name, raw in BARE.items()},
    "the notebook itself": BARE,
    "a worktree's folder": {f"pages/tides/{name}": raw for name, raw in WORKTREE.items()},
    "in other case": {f"pages/tides/{name.title()}": raw for name, raw in BARE.items()},
    "with dots that Windows drops": {"pages/head.": HEAD, "pages/objects ./x": b"", "pages/Refs/x": b""},
    "files for folders": {"pages/HEAD": HEAD, "pages/objects": b"", "pages/refs": b""},
}
PROGRAMS = {
    "a filter": {".gitattributes": b"*.md filter=tide\n"},
    "a filter far below": {"pages/a/b/.gitattributes": b"# notes\n*.md text\r\n*.png  diff=exif -text\r\n"},
    "a macro": {"pages/.gitattributes": b"[attr]tide merge=tide\n"},
    "in other case": {"pages/.GitAttributes": b"* filter=tide\n"},
    "a submodule's command": {".gitmodules": b'[submodule "x"]\n\tpath = x\n\tupdate = !touch stolen\n'},
    "a command in quotes": {".gitmodules": b'[submodule "x"]\n\tpath = x\n\tupdate = "\\\n!touch stolen"\n'},
    "a submodule by a program": {".gitmodules": b'[submodule "x"]\n\tpath = x\n\turl = ex"t:":sh -c stolen\n'},
}
HARMLESS = {
    "pages/HEAD": HEAD,
    "pages/objects/a.md": b"",
    "pages/deep/refs/a.md": b"",
    ".gitattributes": b"* text=auto\n*.md diff=markdown merge=union -filter\n# filter = x\n",
    ".gitmodules": b'[submodule "x"]\n\tpath = x\n\turl = https://away.example/x\n\tupdate = rebase\n',
    "pages/attributes.md": b"* filter=tide\n",
}


def archive_of(tmp_path: Path, files: dict[str, bytes]) -> Path:
    archive = tmp_path / "ferry.tar.gz"
    archive.write_bytes(_announced(*(_member(f"files/{path}", raw, mode=0o755) for path, raw in files.items())))
    return archive


def write(root: Path, files: dict[str, bytes]) -> None:
    for path, raw in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(raw)


def git(root: Path, *arguments: str) -> str:
    identity = {"GIT_AUTHOR_NAME": "Ines", "GIT_AUTHOR_EMAIL": "i@x", "GIT_COMMITTER_NAME": "Ines"}
    environment = {**os.environ, **identity, "GIT_COMMITTER_EMAIL": "i@x", "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(
        ["git", "-C", str(root), *arguments], env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("files", [*FOLDERS.values(), *PROGRAMS.values()], ids=[*FOLDERS, *PROGRAMS])
def test_what_git_would_obey_is_imported_from_a_trusted_archive_only(tmp_path: Path, files: dict[str, bytes]) -> None:
    archive, folder = archive_of(tmp_path, files), tmp_path / "new"
    with pytest.raises(UsageError, match=r"(is a git repository|names ).*nothing was imported.*--trust-settings"):
        Notebook.import_archive(archive, folder)
    assert [path.name for path in tmp_path.iterdir()] == [archive.name]
    Notebook.import_archive(archive, folder, trust_settings=True)
    assert all((folder / path).read_bytes() == raw for path, raw in files.items())


def test_files_that_are_only_like_it_are_imported(tmp_path: Path) -> None:
    Notebook.import_archive(archive_of(tmp_path, HARMLESS), tmp_path / "new")
    assert (tmp_path / "new/.gitattributes").read_bytes() == HARMLESS[".gitattributes"]


def test_a_repository_that_a_checkout_would_bring_back_is_refused_too(tmp_path: Path) -> None:
    root = tmp_path / "office"
    Notebook.init(root)
    write(root, FOLDERS["a bare repository"])
    git(root, "add", "--force", "pages")
    git(root, "commit", "--quiet", "-m", "A trap")
    git(root, "rm", "-r", "--quiet", "pages/tides")
    git(root, "commit", "--quiet", "-m", "Not to be seen")
    with Notebook.open(root) as notebook:
        archive = notebook.admin.export(tmp_path / "ferry.tar.gz").path
    with pytest.raises(UsageError, match=r"pages/tides in its history is a git repository.*--trust-settings"):
        Notebook.import_archive(archive, tmp_path / "new")
    Notebook.import_archive(archive, tmp_path / "new", trust_settings=True)


@pytest.mark.parametrize("files", [*FOLDERS.values(), *PROGRAMS.values()], ids=[*FOLDERS, *PROGRAMS])
def test_doctor_looks_for_the_same(tmp_path: Path, files: dict[str, bytes]) -> None:
    Notebook.init(tmp_path / "notebook")
    write(tmp_path / "notebook", HARMLESS if files is BARE else {})
    assert check_of(tmp_path / "notebook") == (True, "")
    write(tmp_path / "notebook", files)
    is_ok, step = check_of(tmp_path / "notebook")
    assert not is_ok
    assert "before you run git" in step


def check_of(root: Path) -> tuple[bool, str]:
    (found,) = [each for each in examine(root) if each.check == "git files"]
    return found.ok, found.next


def test_the_reproduction_runs_nothing(tmp_path: Path) -> None:
    """What the attack did: the user's `git status` in a folder of the imported notebook."""
    stolen = tmp_path / "stolen"
    config = f'[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = "touch {stolen}; false"\n'
    trap = {"HEAD": HEAD, "config": config.encode(), "objects/x.md": b"", "refs/x.md": b""}
    write(tmp_path / "trap", trap)
    subprocess.run(["git", "status"], cwd=tmp_path / "trap", capture_output=True, check=False)
    assert stolen.exists()  # it does work
    with pytest.raises(UsageError):
        Notebook.import_archive(
            archive_of(tmp_path, {f"pages/{name}": raw for name, raw in trap.items()}), tmp_path / "new"
        )
    assert not (tmp_path / "new").exists()
