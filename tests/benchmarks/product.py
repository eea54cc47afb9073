"""The product's side of each row, through its public face only: the command line and `Notebook`.

The functions run in a process of their own and return seconds, or a list of them; imports are not counted.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path


def command() -> list[str]:
    """The installed `notebook-sync`, else the module that it runs."""
    script = shutil.which("notebook-sync", path=str(Path(sys.executable).parent))
    return [script] if script else [sys.executable, "-m", "notebook_sync"]


def cold_sync(root: Path) -> float:
    from notebook_sync import Notebook

    begun = time.perf_counter()
    notebook = Notebook.open(root)
    report = notebook.sync()
    notebook.close()
    seconds = time.perf_counter() - begun
    if report.failed or not report.added:
        raise RuntimeError(f"this was no cold sync: {report}")
    return seconds


def reconcile(root: Path, runs: int) -> list[float]:
    from notebook_sync import Notebook

    notebook = Notebook.open(root)
    notebook.sync()
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        report = notebook.sync()
        seconds.append(time.perf_counter() - begun)
        if report.added or report.updated or report.failed:
            raise RuntimeError(f"something changed: {report}")
    notebook.close()
    return seconds


def search(root: Path, queries: list[str], limit: int, agent: str = "", tags: tuple[str, ...] = ()) -> list[float]:
    """By words, as the owner, or as an agent in a task session; of notes with any of the tags, where there are tags."""
    from notebook_sync import Notebook, Session

    notebook = Notebook.open(root)
    session = Session.task(agent) if agent else Session.owner()
    notebook.search(queries[0], limit, session, mode="keyword", tags=tags)
    seconds = []
    for query in queries:
        begun = time.perf_counter()
        notebook.search(query, limit, session, mode="keyword", tags=tags)
        seconds.append(time.perf_counter() - begun)
    notebook.close()
    return seconds


def create(root: Path, count: int) -> list[float]:
    """So many pages, one after another; they are taken away again."""
    from notebook_sync import Notebook, Session

    notebook = Notebook.open(root)
    session = Session.task("scribe")
    seconds, made = [], []
    for number in range(count):
        begun = time.perf_counter()
        written = notebook.create("pages", f"Crossing {number}", f"# Crossing {number}\n\nAt noon.\n", session)
        seconds.append(time.perf_counter() - begun)
        made.append(written.path)
    for path in made:
        notebook.delete(path, session)
    notebook.close()
    return seconds


def recall(root: Path, queries: list[str], limit: int) -> list[float]:
    """The first takes longer: it gives what was written since the last its vectors, so many at a time, and embedded
    indexes its words."""
    from notebook_sync import Notebook, Session

    notebook = Notebook.open(root)
    notebook.sync()
    seconds = []
    for query in queries:
        begun = time.perf_counter()
        found = notebook.stream.recall(query, Session.owner(), limit=limit)
        while not seconds and "have no vectors yet" in (found.degraded or ""):
            found = notebook.stream.recall(query, Session.owner(), limit=limit)
        seconds.append(time.perf_counter() - begun)
        if found.degraded:
            raise RuntimeError(f"this was no recall of everything: {found.degraded}")
    notebook.close()
    return seconds


def prompts(root: Path, runs: int, orders: bytes = b"") -> list[float]:
    """The prompt of an owner's session; where there are `orders`, after they were written with one more each time."""
    from notebook_sync import Notebook, Session

    notebook = Notebook.open(root)
    file = root / "runtime/standing-orders.md"
    before = file.read_bytes()
    notebook.prompt(Session.owner())
    seconds = []
    for number in range(runs):
        if orders:
            _replace(file, b"## Today\n<!-- pin -->\n\n- Order %d.\n\n" % number + orders)
        begun = time.perf_counter()
        prompt = notebook.prompt(Session.owner())
        seconds.append(time.perf_counter() - begun)
        if orders and f"Order {number}." not in prompt.text:
            raise RuntimeError("the prompt is stale")
    _replace(file, before)
    notebook.close()
    return seconds


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_bytes(content)
    os.replace(beside, path)  # noqa: PTH105  # as an editor does
