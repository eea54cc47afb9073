"""Every file of a notebook's folder, notes or not, for who takes all of it along. Follows no symbolic link, writes
nothing, and never sees `.notebook` or a repository's own folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.git import run_git
from notebook_sync.files.ignore import GITIGNORE, Rules, is_hidden, is_ignored
from notebook_sync.files.vault import Vault, printable
from notebook_sync.folder import FOLDER

_OWN = frozenset({FOLDER, ".git"})


@dataclass(slots=True)
class EveryFile:
    """Paths of regular files, in order. `left_out` are those of what cannot be taken along, with the reason."""

    paths: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def every_file(vault: Vault) -> EveryFile:
    """What is neither hidden nor ignored by a `.gitignore`, each `.gitignore`, and what git tracks all the same.

    What `exclude` in notebook.toml names is no note, and a file like any other. Raises RootLost.
    """
    vault.identity()
    found = EveryFile()
    for path in sorted({*_walk(vault, found), *_tracked(vault)}):
        try:
            mode = os.lstat(vault.root / path).st_mode
        except OSError:
            continue  # git tracks it, and it is not there
        if not is_takeable(path):
            found.left_out[printable(path)] = "its name is not UTF-8; rename it"
        elif stat.S_ISREG(mode):
            found.paths.append(path)
        elif not stat.S_ISDIR(mode):
            kind = "a symbolic link; links are not followed" if stat.S_ISLNK(mode) else "not a regular file"
            found.left_out[path] = kind
    return found


def is_takeable(path: str) -> bool:
    """Whether the name can be written down."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _walk(vault: Vault, found: EveryFile) -> Iterator[str]:
    folders: list[tuple[str, list[Rules]]] = [("", [])]
    while folders:
        folder, rules = folders.pop()
        try:
            with os.scandir(vault.root / folder) as listing:
                entries = list(listing)
        except OSError as error:
            found.left_out[printable(folder) or "."] = f"{error.strerror or error}".lower()
            continue
        prefix = f"{folder}/" if folder else ""
        if any(entry.name == GITIGNORE for entry in entries):
            yield prefix + GITIGNORE
            rules = [*rules, *_rules_in(vault, folder)]
        for entry in entries:
            path = prefix + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_hidden(entry.name) or is_ignored(rules, path, is_dir=is_folder):
                continue
            if is_folder:
                folders.append((path, rules))
            else:
                yield path


def _rules_in(vault: Vault, folder: str) -> list[Rules]:
    try:
        raw, _ = vault.read(f"{folder}/{GITIGNORE}" if folder else GITIGNORE)
    except (FileNotFoundError, UnreadableFile):
        return []
    return [Rules.read(folder, raw.decode(errors="replace").splitlines())]


def _tracked(vault: Vault) -> Iterator[str]:
    """What git has in its index, below the notebook's folder; nothing where there is no git or no repository."""
    try:
        answer = run_git(vault.root, "ls-files", "-z", "--cached")
    except FileNotFoundError:
        return
    for name in answer.stdout.split(b"\0"):
        path = os.fsdecode(name)
        if path and _OWN.isdisjoint(path.split("/")):
            yield path
