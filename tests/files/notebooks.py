"""A notebook's folder with what reads and writes it, and systems on which single steps fail."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.files import beneath, save
from notebook_sync.files.private import FOLDER
from notebook_sync.files.save import Saver
from notebook_sync.files.state import Place
from notebook_sync.files.tree import Tree
from notebook_sync.settings import NotebookTable

# Steps that cannot fail, or whose failure is no state of the disk.
_NO_STEPS = frozenset({"close", "fsencode", "fsdecode", "urandom"})


def digest(raw: bytes) -> str:
    return sha256(raw).hexdigest()


def write(root: Path, files: dict[str, bytes | str]) -> None:
    for path, raw in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(raw.encode() if isinstance(raw, str) else raw)


def files_in(root: Path) -> dict[str, bytes]:
    """All files but the program's own."""
    found = (path for path in root.rglob("*") if path.is_file() and FOLDER not in path.relative_to(root).parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def tree_of(root: Path, **settings: Any) -> Tree:
    return Tree(root, NotebookTable(**settings))


def saver_of(root: Path, **settings: Any) -> Saver:
    return Saver(tree_of(root, **settings), Place.open(root))


class Steps:
    """Counts the system calls of a change; before or after the one numbered `at` it calls `act`."""

    def __init__(self, act: Callable[[], None], at: int, *, after: bool = False) -> None:
        self._act = act
        self._left = at
        self._after = after

    @property
    def all_done(self) -> bool:
        """Whether the change ended before `act` was called."""
        return self._left > 0

    def count(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                self._act()
            result = function(*arguments, **options)
            if self._left == 0 and self._after:
                self._act()
            return result

        return step

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        return self.count(found) if callable(found) and name not in _NO_STEPS and name[0].islower() else found

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Let every step that a `Saver` takes go through this."""
        for module in (save, beneath):
            patch.setattr(module, "os", self)
        patch.setattr(save, "_rename", self.count(save._rename))


def fail_with(error: OSError) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act
