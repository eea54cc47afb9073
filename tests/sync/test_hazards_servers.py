"""The hazards that only real servers have: what BSON cannot hold, and servers that go away while a notebook changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook
from tests.fault_proxy import FaultProxy
from tests.sync.following import following
from tests.sync.test_hazards_files import POISON
from tests.waiting import eventually


def settings(mirror: str, database: str, refs: str, prefix: str) -> str:
    return (
        f'[mirror]\nurl = "{mirror}"\ndatabase = "{database}"\ntimeout_seconds = 0.5\n'
        f'[refs]\nurl = "{refs}"\nprefix = "{prefix}"\ntimeout_seconds = 0.5\n'
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notebook"
    folder.mkdir()
    return folder


def test_poison_goes_through_bson(
    root: Path, mongodb_url: str, mongo_database: str, redis_url: str, redis_prefix: str
) -> None:
    (root / "notebook.toml").write_text(
        settings(mongodb_url, mongo_database, redis_url, redis_prefix) + "[sync]\nsettle_ms = 1\n"
    )
    for number, yaml in enumerate(POISON.values()):
        (root / f"{number}.md").write_text(f"---\n{yaml}\n---\nthe text\n")
    with Notebook.open(root) as notebook:
        report = notebook.sync()
        assert report.added == len(POISON)
        assert notebook.admin.verify().consistent
        again = notebook.sync()
        assert (again.added, again.updated) == (0, 0)
        assert again.failed == report.failed


@pytest.fixture
def proxies(mongodb_url: str, redis_url: str) -> Iterator[tuple[FaultProxy, FaultProxy]]:
    def before(url: str) -> FaultProxy:
        host, _, port = url.partition("://")[2].partition("/")[0].partition(":")
        return FaultProxy(host, int(port))

    with before(mongodb_url) as mongodb, before(redis_url) as redis:
        yield mongodb, redis


@pytest.mark.parametrize("mode", ["refuse", "hang", "reset"])
@pytest.mark.parametrize("whose", ["mirror", "refs"])
def test_a_server_that_goes_away_delays_its_store_and_loses_nothing(
    root: Path,
    proxies: tuple[FaultProxy, FaultProxy],
    mongo_database: str,
    redis_prefix: str,
    whose: str,
    mode: str,
) -> None:
    mongodb, redis = proxies
    urls = f"mongodb://127.0.0.1:{mongodb.port}/?directConnection=true", f"redis://127.0.0.1:{redis.port}"
    (root / "a.md").write_text("---\nid: a\n---\nold")
    (root / "b.md").write_text("b")
    with following(root, settings(urls[0], mongo_database, urls[1], redis_prefix)) as watch:
        broken = mongodb if whose == "mirror" else redis
        broken.mode = mode  # type: ignore[assignment]
        (root / "a.md").write_text("---\nid: a\n---\nnew")
        eventually(watch.troubles, "the trouble is told")
        (root / "b.md").unlink()
        (root / "c.md").write_text("c")
        broken.mode = "pass"
        eventually(watch.recoveries, "the recovery is told")
        eventually(lambda: set(watch.texts()) == {"a.md", "c.md"}, "the mirror follows")
        eventually(lambda: watch.notebook.mirror.pending() == [], "hot memory follows")
        assert watch.notebook.admin.verify().differences == []
        document = watch.notebook.mirror.get("a")
        assert document is not None
        assert document["metadata"]["version"] == 2
