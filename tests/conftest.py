"""Fixtures for all tests.

Every test runs with an environment of its own: `state_dir` (autouse) points NOTEBOOK_STATE_DIR to a temporary folder,
clears NOTEBOOK_*, XDG_*, GIT_*, MONGODB_URL and REDIS_URL, and gives git an identity.

    folder              an empty folder for a notebook, outside `state_dir`
    copies              `Copies`: notebooks that are made once in a run, and copied for each test
    rng                 a `random.Random` seeded by the run's seed and the test's name
    cpu_limit           fails a test that works for longer than a text of its size may take, on however busy a machine
    mongodb_url         MongoDB shared by all workers; use it with one of these database names:
    mongo_database      this worker's, its documents deleted after each test, collections and indexes kept
    new_mongo_database  does not exist yet, dropped after the test: for tests that make or change indexes
    redis_url           Redis Stack (search, JSON) shared by all workers; use it with:
    redis_prefix        a key prefix of this test's own: keys `PREFIX:…` and such search indexes are dropped after it
    plain_redis_url     Redis without modules, shared; use it with redis_prefix too
    own_mongod          a `Server` of this worker's own, to pause, kill, restart or empty; repaired after the test
    own_redis           the same, Redis Stack
    proxy_to            proxy_to(url) -> `FaultProxy` before that server; proxy.url is the address to use

`tests.servers.hung(server)` stops a server for a `with` block. The seed is printed in the header; NOTEBOOK_TEST_SEED=N
replays or explores another. Seed 0, the default, gives Hypothesis the same examples in every run.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

import hypothesis
import pytest

from notebook_sync.files.state import Place
from tests.fault_proxy import FaultProxy
from tests.servers import (
    MongoClient,
    Server,
    begin_run,
    drop_keys,
    empty_database,
    shared_server,
    start_mongod,
    start_redis,
)

CPU_SECONDS = 10.0
SEED = int(os.environ.get("NOTEBOOK_TEST_SEED", "0"))
# A busy machine is not a failure: no example has a deadline.
_patient = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], derandomize=SEED == 0
)
hypothesis.settings.register_profile("default", _patient, max_examples=50)
hypothesis.settings.load_profile("default")


class Copies:
    """Notebooks that were made below a folder. To copy one takes less time than to make it again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, make: Callable[..., object], root: Path, *given: object) -> Path:
        """Copy the notebook that `make` makes of what is given in an empty folder to `root`, and its state to the
        test's."""
        key = sha256(repr(given).encode()).hexdigest()[:16]
        kept = self._folder / f"{make.__name__}-{key}-{datetime.now(UTC):%Y-%m-%d}"  # notes may name today
        if not kept.exists():
            self._make(make, kept, *given)
        shutil.copytree(kept / "notebook", root, dirs_exist_ok=True)
        shutil.copytree(kept / "state", os.environ["NOTEBOOK_STATE_DIR"], dirs_exist_ok=True)
        Place.open(root)  # before a copy of another notebook with the same id comes
        return root

    def _make(self, make: Callable[..., object], kept: Path, *given: object) -> None:
        work = Path(mkdtemp(dir=self._folder))
        (work / "made").mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NOTEBOOK_STATE_DIR", str(work / "state"))
            make(work / "made", *given)
        (work / "made").rename(work / "notebook")  # a copy then is a notebook that has moved, which keeps its state
        work.rename(kept)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the run a folder, in memory if there is room; seed Hypothesis."""
    # A shell starts its background jobs with SIGINT ignored, and the commands that tests interrupt would inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if SEED:
        config.option.hypothesis_seed = str(SEED)
    if hasattr(config, "workerinput"):
        return
    folder, end = begin_run()
    config.add_cleanup(end)
    if config.option.basetemp is None:
        config.option.basetemp = str(folder / "tmp")


def pytest_report_header() -> str:
    return f"seed: {SEED} (NOTEBOOK_TEST_SEED)"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long runs, unless -m names them."""
    if "soak" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_collection_finish() -> None:
    """What is loaded now stays loaded: to look for cycles in it, and often, would take a tenth of the run's time."""
    gc.freeze()
    gc.set_threshold(10_000)


@pytest.fixture(autouse=True)
def state_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """NOTEBOOK_STATE_DIR, in an environment that nothing of this machine reaches."""
    for name in list(os.environ):
        if name.startswith(("NOTEBOOK_", "XDG_", "GIT_")) and not name.startswith("NOTEBOOK_TEST_"):
            monkeypatch.delenv(name)
    for name in ("MONGODB_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Test")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "test@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    path = tmp_path / "state"
    monkeypatch.setenv("NOTEBOOK_STATE_DIR", str(path))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "notebook"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return Copies(tmp_path_factory.mktemp("copies"))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(f"{SEED} {request.node.nodeid}")


@pytest.fixture
def cpu_limit() -> Iterator[None]:
    """Ten seconds of this process's own work, many times what linear time needs."""

    def fail(*_: object) -> None:
        pytest.fail(f"more than {CPU_SECONDS:g} s of CPU time: time grows faster than the text")

    before = signal.signal(signal.SIGPROF, fail)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.fixture(scope="session")
def mongodb_url() -> str:
    return shared_server("mongod", "NOTEBOOK_TEST_MONGODB_URL", lambda lifeline: start_mongod(lifeline=lifeline))


@pytest.fixture(scope="session")
def _worker_database(mongodb_url: str) -> Iterator[str]:
    yield from _dropped_database(mongodb_url)


@pytest.fixture
def mongo_database(mongodb_url: str, _worker_database: str) -> Iterator[str]:
    yield _worker_database
    empty_database(mongodb_url, _worker_database)


@pytest.fixture
def new_mongo_database(mongodb_url: str) -> Iterator[str]:
    yield from _dropped_database(mongodb_url)


@pytest.fixture
def redis_prefix() -> str:
    return f"test-{uuid.uuid4().hex}"


@pytest.fixture
def redis_url(redis_prefix: str) -> Iterator[str]:
    url = shared_server("redis", "NOTEBOOK_TEST_REDIS_URL", lambda lifeline: start_redis(lifeline=lifeline))
    yield url
    drop_keys(url, redis_prefix)


@pytest.fixture
def plain_redis_url(redis_prefix: str) -> Iterator[str]:
    url = shared_server(
        "plain-redis", "NOTEBOOK_TEST_PLAIN_REDIS_URL", lambda lifeline: start_redis(stack=False, lifeline=lifeline)
    )
    yield url
    drop_keys(url, redis_prefix)


@pytest.fixture(scope="session")
def _worker_mongod() -> Iterator[Server]:
    yield from _stopped(start_mongod())


@pytest.fixture
def own_mongod(_worker_mongod: Server) -> Iterator[Server]:
    yield _worker_mongod
    _worker_mongod.repair()


@pytest.fixture(scope="session")
def _worker_redis() -> Iterator[Server]:
    yield from _stopped(start_redis())


@pytest.fixture
def own_redis(_worker_redis: Server) -> Iterator[Server]:
    yield _worker_redis
    _worker_redis.repair()


@pytest.fixture
def proxy_to() -> Iterator[Callable[[str], FaultProxy]]:
    with ExitStack() as proxies:
        yield lambda url: proxies.enter_context(FaultProxy(url))


def _dropped_database(url: str) -> Iterator[str]:
    name = f"notebook_test_{uuid.uuid4().hex}"
    yield name
    with MongoClient(url) as client:
        client.drop_database(name)


def _stopped(server: Server) -> Iterator[Server]:
    yield server
    server.stop()
