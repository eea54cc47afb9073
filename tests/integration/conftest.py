"""A notebook for each test, with a database and a key prefix of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.integration.world")

from tests.integration.world import SETTINGS, World  # noqa: E402 - after its asserts are told to explain themselves


@pytest.fixture
def mongo_database(new_mongo_database: str) -> str:
    """One that was never there: here a name is used on several servers, and databases are dropped."""
    return new_mongo_database


@pytest.fixture
def embedded(tmp_path: Path, mongo_database: str, redis_prefix: str) -> World:
    """A notebook without servers."""
    root = tmp_path / "notebook"
    root.mkdir()
    (root / "notebook.toml").write_text(SETTINGS.format(database=mongo_database, prefix=redis_prefix))
    return World(root)


@pytest.fixture
def world(embedded: World, mongodb_url: str, redis_url: str) -> World:
    """A notebook on both servers."""
    return embedded.on(mongodb_url, redis_url)
