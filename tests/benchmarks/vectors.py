"""Search by meaning among many notes: embedding, the first search of a process, those after it, memory and disk."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from . import product
from .corpus import queries
from .measure import Bar, Result, alone, percentile

if TYPE_CHECKING:
    from .rows import Bench

SEARCHES = 100
FOUND = 10
# As many as a search by words and meaning asks for, to be told ten.
NEAREST = 50


def vectors(bench: Bench, sizes: tuple[int, ...] = (10_000, 100_000)) -> Iterator[Result]:
    """Embedded. The limit of the nearest: one multiplication with as many whole vectors, and taking the best."""
    for notes in sizes:
        root = bench.corpus(notes)
        alone(product.cold_sync, root)
        stores = sorted((root / ".notebook").glob("mirror.db*"))
        before = sum(store.stat().st_size for store in stores)
        seconds = alone(embed, root)
        yield Result("vectors", f"{notes:,} notes, embedding a thousand of them", "s", seconds * 1000 / notes)
        size = (sum(store.stat().st_size for store in stores) - before) / 1e6
        yield Result("vectors", f"{notes:,} notes, what they add to the file", "MB", size)
        asked = queries(SEARCHES, bench.seed)
        first, warm, held, passages = alone(nearest, root, asked)
        limit = alone(multiply, passages, SEARCHES // 5)
        work = f"{notes:,} notes of {passages:,} passages, the nearest {NEAREST}"
        yield Result("vectors", f"{work}: the first", "ms", first * 1000)
        for percent in (50, 95):
            ours, bare = (percentile(one, percent) * 1000 for one in (warm, limit))
            yield Result("vectors", f"{work}, p{percent}", "ms", ours, bare, runs=len(warm))
        yield Result("vectors", f"{work}: memory they take in the process that searches", "MB", held)
        hybrid = alone(search, root, asked)
        bars = {95: (Bar(200 if notes >= 100_000 else 40),)}
        for percent in (50, 95):
            name = f"{notes:,} notes, hybrid search, p{percent}"
            measured = percentile(hybrid, percent) * 1000
            yield Result("vectors", name, "ms", measured, bars=bars.get(percent, ()), runs=len(hybrid))


def embed(root: Path) -> float:
    from notebook_sync import Notebook

    notebook = Notebook.open(root)
    done = notebook.admin.embed()
    notebook.close()
    if done.behind or done.failed or not done.embedded:
        raise RuntimeError(f"this embedded not all: {done}")
    return done.seconds


def nearest(root: Path, asked: list[str]) -> tuple[float, list[float], float, int]:
    """Seconds of the first and of the others, what the first took of memory in MB, and how many passages there are."""
    import sqlite3

    from notebook_sync.search.static_words import StaticWords
    from notebook_sync.search.vectors_sqlite import SqliteVectors

    embedder = StaticWords()
    rows = embedder.embed(asked)
    vectors = SqliteVectors(root / ".notebook" / "mirror.db")
    before, seconds = _resident(), []
    for row in rows:
        begun = time.perf_counter()
        vectors.nearest(embedder.model, row, NEAREST)
        seconds.append(time.perf_counter() - begun)
    vectors.close()
    with sqlite3.connect(root / ".notebook" / "mirror.db") as counting:
        ((passages,),) = counting.execute("SELECT sum(passages) FROM vector").fetchall()
    return seconds[0], seconds[1:], _resident() - before, int(passages)


def multiply(passages: int, times: int) -> list[float]:
    import numpy as np

    matrix = np.random.default_rng(1).standard_normal((passages, 256), np.float32)
    seconds = []
    for n in range(times):
        begun = time.perf_counter()
        np.argpartition(matrix @ matrix[n], passages - NEAREST)
        seconds.append(time.perf_counter() - begun)
    return seconds


def search(root: Path, asked: list[str]) -> list[float]:
    from notebook_sync import Notebook, Session

    notebook = Notebook.open(root)
    notebook.search(asked[0], FOUND, Session.owner(), mode="hybrid")
    seconds = []
    for query in asked:
        begun = time.perf_counter()
        notebook.search(query, FOUND, Session.owner(), mode="hybrid")
        seconds.append(time.perf_counter() - begun)
    notebook.close()
    return seconds


def _resident() -> float:
    """The most that this process had in memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
