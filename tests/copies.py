"""Notebooks that are made once in a run and copied for each test, which takes less time than to make them again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

import pytest


class Copies:
    """The notebooks that were made so far, below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, make: Callable[[Path], object], root: Path) -> Path:
        """Copy the notebook that `make` makes in an empty folder to `root`, and its state to the test's."""
        kept = self._folder / f"{make.__name__}-{datetime.now(UTC):%Y-%m-%d}"  # notes may name today
        if not kept.exists():
            self._make(make, kept)
        shutil.copytree(kept / "notebook", root, dirs_exist_ok=True)
        shutil.copytree(kept / "state", os.environ["NOTEBOOK_STATE_DIR"])
        return root

    def _make(self, make: Callable[[Path], object], kept: Path) -> None:
        work = Path(mkdtemp(dir=self._folder))
        (work / "made").mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NOTEBOOK_STATE_DIR", str(work / "state"))
            make(work / "made")
        (work / "made").rename(work / "notebook")  # a copy then is a notebook that has moved, which keeps its state
        work.rename(kept)
