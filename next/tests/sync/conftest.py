"""Fixtures: `world`, a notebook with one note `good.md`; `root`, an empty folder, and `watch`, which follows it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sync.following import Follow, Following
from tests.sync.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with contextlib.closing(World(tmp_path)) as made:
        made.write("good.md", "good")
        yield made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notebook"
    folder.mkdir()
    return folder


@pytest.fixture
def following(tmp_path: Path) -> Follow:
    """`with following() as watch`: a watcher that is ready, over `tmp_path/notebook`, and has ended well afterwards."""
    return lambda folder=tmp_path: contextlib.closing(Following(folder))


@pytest.fixture
def watch(root: Path, following: Follow) -> Iterator[Following]:
    """The watcher of `root`, which has what the fixtures before it have written."""
    with following() as found:
        yield found
