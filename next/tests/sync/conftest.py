"""Fixtures: `world`, a notebook with one note `good.md`; `following`, which starts a watcher over a world."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.sync.following import Following
from tests.sync.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.write("good.md", "good")
    yield made
    made.close()


@pytest.fixture
def following(tmp_path: Path) -> Callable[..., AbstractContextManager[Following]]:
    """`with following() as watch`: a watcher that is ready, over `tmp_path/notebook`, and has ended well afterwards."""

    @contextlib.contextmanager
    def follow(folder: Path = tmp_path) -> Iterator[Following]:
        found = Following(folder)
        try:
            yield found
        finally:
            found.stop()

    return follow
