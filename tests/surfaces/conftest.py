"""A small notebook, and the servers over it that the tests of HTTP and MCP speak to."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.surfaces.mcp import resources
from tests.conftest import Copies
from tests.surfaces.serving import SESSIONS, Served, make_notebook, mcp_on_a_port, served


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """What asynchronous tests run on."""
    return "asyncio"


@pytest.fixture
def root(folder: Path) -> Path:
    """Its folder, not synced yet."""
    return make_notebook(folder)


def make_synced(root: Path) -> None:
    """The notebook with its index."""
    with Notebook.open(make_notebook(root)) as notebook:
        notebook.sync()


@pytest.fixture
def make() -> Callable[[Path], None]:
    """What makes the notebook; some modules have another one."""
    return make_synced


@pytest.fixture
def notebook(copies: Copies, folder: Path, make: Callable[[Path], None]) -> Iterator[Notebook]:
    """The notebook, synced."""
    with Notebook.open(copies.put(make, folder)) as notebook:
        assert notebook.core.index.rev()
        yield notebook


@pytest.fixture
def url(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where MCP is served, which looks for changes all the time."""
    monkeypatch.setattr(resources, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(resources, "_SEND_SECONDS", 30.0)  # this machine may be busy
    with mcp_on_a_port(notebook) as url:
        yield url


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The HTTP application for all tests of a module, and a token for each session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOTEBOOK_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        with served(make_notebook(tmp_path_factory.mktemp("harbour"))) as found:
            for session in SESSIONS:
                found.bearer(session)
            yield found
