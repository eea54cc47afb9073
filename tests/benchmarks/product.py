"""The product's side of what is measured inside one process, through `Notebook` alone.

Each function runs in a process of its own and returns seconds.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from notebook_sync import Notebook, Session
from notebook_sync.store.rows import Is
from tests.benchmarks.measure import timed

EDITS = 10


def prompts(root: Path, runs: int, orders: bytes = b"") -> list[float]:
    """Task prompts; with `orders`, each after they were saved again with one line changed."""
    file = root / "runtime/standing-orders.md"
    before = file.read_bytes()
    seconds = []
    with Notebook.open(root) as notebook:
        notebook.prompt(Session.task())
        for number in range(runs):
            if orders:
                file.write_bytes(b"## Today\n\n- Order %d.\n\n" % number + orders)
            seconds.append(timed(lambda: notebook.prompt(Session.task())).wall)
    file.write_bytes(before)
    return seconds


def searches(root: Path, queries: list[str], limit: int, mode: str) -> list[float]:
    with Notebook.open(root) as notebook:
        return _each([partial(notebook.search, query, limit=limit, mode=mode) for query in queries])


def edits(root: Path, note: str) -> int:
    """Edit one note ten times; how many of the edits it has then."""
    with Notebook.open(root) as notebook:
        for _ in range(EDITS):
            notebook.notes.edit(note, "add_section", section=f"By tool at {time.time_ns()}", content="An edit.\n")
        return notebook.read(note).text.count("By tool")


def briefs(root: Path, specs: list[str]) -> list[float]:
    with Notebook.open(root) as notebook:
        notebook.sync()
        return _each([partial(notebook.context.brief, spec, Session.task()) for spec in specs])


def scores(root: Path) -> float:
    """CPU seconds to score all memories, each of which moved."""
    with Notebook.open(root) as notebook:
        notebook.sync()
        notebook.core.index.documents.update(Is("collection", "=", "memories"), set={"score": 1.0})
        begun = time.process_time()
        notebook.memories.score()
        return time.process_time() - begun


def statuses(root: Path, runs: int) -> list[float]:
    with Notebook.open(root) as notebook:
        return _each([notebook.admin.status] * runs)


def _each(calls: list[Callable[[], object]]) -> list[float]:
    """Seconds of each call, after one that does not count."""
    calls[0]()
    return [timed(call).wall for call in calls]
