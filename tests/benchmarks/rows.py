"""The rows of the table: each measures the product and the limit, in the same run on the same files."""

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from random import Random

import psutil

from tests.benchmarks import limits, product
from tests.benchmarks.corpus import (
    SEED,
    note_paths,
    queries,
    specs,
    standing_orders,
    vocabulary,
    write_corpus,
    write_memories,
)
from tests.benchmarks.measure import Cost, Result, alone, following, medians, peak_of, percentile, run
from tests.processes import command
from tests.servers import start_mongod, start_redis

SAVES, SEARCHES, FOUND = 100, 200, 5
DATABASE = "aether_notebook"  # the default


@dataclass
class Bench:
    """Notebooks of one size in a folder that the caller removes, with their state folders next to them."""

    folder: Path
    notes: int
    sizes: dict[Path, int] = field(default_factory=dict)

    @property
    def is_large(self) -> bool:
        return self.notes >= 50_000

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def corpus(self, embeddings: str = "off") -> Path:
        """A notebook, synced by those who need it."""
        root = self.folder / f"notes-{embeddings}"
        if root not in self.sizes:
            self.sizes[root] = write_corpus(root, self.notes, embeddings)
        return root

    def synced(self, embeddings: str = "off") -> Path:
        run(self.command("sync", embeddings=embeddings))
        return self.corpus(embeddings)

    def command(self, *arguments: str, embeddings: str = "off") -> list[str]:
        return [*command(), "-C", str(self.corpus(embeddings)), *arguments]

    def forget(self) -> None:
        """Drop every index."""
        shutil.rmtree(self.state, ignore_errors=True)
        for root in self.sizes:
            shutil.rmtree(root / ".notebook", ignore_errors=True)

    def chosen(self, count: int) -> list[str]:
        return Random(SEED).sample(note_paths(self.notes), min(count, self.notes))


def cold_sync(bench: Bench) -> Iterator[Result]:
    runs = 1 if bench.is_large else 3

    def limit_once() -> Cost:
        (bench.folder / "limit.db").unlink(missing_ok=True)
        return alone(limits.cold_sync, bench.corpus(), bench.folder / "limit.db")

    def product_once() -> Cost:
        bench.forget()
        return run(bench.command("sync"))

    limit, ours = medians(limit_once, runs), medians(product_once, runs)
    yield Result("cold-sync", "wall", "s", ours.wall, limit.wall, 3.5 if bench.is_large else 3, is_ratio=True)
    yield Result("cold-sync", "CPU", "s", ours.cpu, limit.cpu, None if bench.is_large else 4.5, is_ratio=True)
    bench.forget()
    yield Result("cold-sync", "peak memory", "MB", peak_of(bench.command("sync")), bar=250)


def published_sync(bench: Bench) -> Iterator[Result]:
    bench.forget()
    with _environment_of_servers() as servers:
        ours = run(bench.command("sync"), servers)
        limit = alone(limits.published, servers["MONGODB_URL"], DATABASE, servers["REDIS_URL"])
    bench.forget()
    yield Result("published-sync", "MongoDB, Redis", "s", ours.wall, limit.wall, 1.5, is_ratio=True)


def unchanged_sync(bench: Bench) -> Iterator[Result]:
    limit = medians(lambda: alone(limits.unchanged_sync, bench.synced()))
    ours = medians(lambda: run(bench.command("sync")))
    bar = 3.5 if bench.is_large else 5
    yield Result("unchanged-sync", "command, wall", "s", ours.wall, limit.wall, bar, is_ratio=True)
    yield Result("unchanged-sync", "command, CPU", "s", ours.cpu, limit.cpu)


def ten_edits(bench: Bench) -> Iterator[Result]:
    root = bench.synced()

    def once() -> Cost:
        for path in bench.chosen(10):
            _save(root / path)
        return run(bench.command("sync"))

    ours = medians(once)
    yield Result("ten-edits", "command, wall", "s", ours.wall, bar=0.5)
    yield Result("ten-edits", "command, CPU", "s", ours.cpu)


def save(bench: Bench) -> Iterator[Result]:
    root = bench.synced()
    alone_watching = [sys.executable, "-m", "tests.benchmarks.limits", str(root)]
    limit, ours = _latencies(bench, alone_watching), _latencies(bench, bench.command("watch", "--json"))
    for percent, bar in ((50, 7), (95, 11)):
        measured, least = percentile(ours, percent) * 1000, percentile(limit, percent) * 1000
        yield Result("save", f"indexed, p{percent} (limit: watchfiles alone)", "ms", measured, least, bar)
    with _environment_of_servers() as servers:
        run(bench.command("sync"), servers)
        ours = _latencies(bench, bench.command("watch", "--json"), servers, ("mongodb", "redis"))
    for percent, bar in ((50, 20), (95, 35)):
        yield Result("save", f"published, p{percent}", "ms", percentile(ours, percent) * 1000, bar=bar)


def burst(bench: Bench) -> Iterator[Result]:
    root, chosen, seconds = bench.synced(), bench.chosen(50), []
    with following(bench.command("watch", "--json")) as follower:
        for _ in range(3):
            follower.forget(0.3)
            begun = time.perf_counter()
            for path in chosen:
                _save(root / path)
            seconds.append(follower.wait_for("batch", chosen) - begun)
    yield Result("burst", "50 saves, all indexed", "s", statistics.median(seconds), bar=0.12)


def edits(bench: Bench) -> Iterator[Result]:
    root = bench.synced()
    _git(root, "init", "--quiet")
    _git(root, "commit", "--quiet", "--allow-empty", "--message=Begin")
    notes = bench.chosen(8)
    with ProcessPoolExecutor(len(notes), mp_context=get_context("spawn")) as agents:
        list(agents.map(partial(product.edits, root), notes))  # processes and modules are there
        begun = time.perf_counter()
        kept = sum(agents.map(partial(product.edits, root), notes))
        seconds = (time.perf_counter() - begun) / (len(notes) * product.EDITS)
    if kept != 2 * len(notes) * product.EDITS:
        raise RuntimeError(f"{kept} edits are in the notes")
    yield Result("edits", "eight processes at once, an edit", "ms", seconds * 1000, bar=50)


def checkout(bench: Bench) -> Iterator[Result]:
    root, chosen = bench.synced(), bench.chosen(1000)
    _git(root, "init", "--quiet")
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "--message=Before")
    for path in chosen:
        _save(root / path)
    _git(root, "commit", "--quiet", "--all", "--message=After")
    run(bench.command("sync"))
    with following(bench.command("watch", "--json")) as follower:
        follower.forget(0.5)
        begun = time.perf_counter()
        _git(root, "checkout", "--quiet", "HEAD~1")
        seconds = follower.wait_for("batch", chosen) - begun
    yield Result("checkout", "git checkout of 1,000 notes, all indexed", "s", seconds, bar=1)


def prompt(bench: Bench) -> Iterator[Result]:
    root = bench.synced()
    yield Result("prompt", "unchanged, p50", "ms", statistics.median(alone(product.prompts, root, 500)) * 1000, bar=0.2)
    for work, size, nested, runs, bar in (
        ("small edit, p50", 500, False, 50, 2.0),
        ("10 KB plain, over its cap, p50", 10_000, False, 50, 10.0),
        ("10 KB nested, over its cap, p50", 10_000, True, 50, 15.0),
        ("2 MB plain, over its cap", 2_000_000, False, 5, 500.0),
        ("1 MB nested, over its cap", 1_000_000, True, 5, 1000.0),
    ):
        orders = standing_orders(size, nested=nested)
        ours = statistics.median(alone(product.prompts, root, runs, orders)) * 1000
        limit = statistics.median(alone(limits.prompt, orders, runs)) * 1000
        yield Result("prompt", f"{work} (limit: sha256, count tokens)", "ms", ours, limit, bar)


def search(bench: Bench) -> Iterator[Result]:
    asked, database = queries(SEARCHES), bench.folder / "searched.db"
    alone(limits.cold_sync, bench.corpus(), database)
    limit = percentile(alone(limits.search, database, asked, FOUND), 95) * 1000
    for mode, embeddings, bar in (("keyword", "off", 8), ("hybrid", "wordllama", 20)):
        seconds = alone(product.searches, bench.synced(embeddings), asked, FOUND, mode)
        most = bar * (5 if mode == "keyword" else 3.5) if bench.is_large else bar
        yield Result("search", f"{mode}, p95 (limit: raw FTS5)", "ms", percentile(seconds, 95) * 1000, limit, most)


def brief(bench: Bench) -> Iterator[Result]:
    root = bench.folder / "memories"
    bench.sizes[root] = write_memories(root, bench.notes)
    seconds = alone(product.briefs, root, specs(100))
    bar = 40 if bench.notes <= 1_500 else 120 if bench.notes <= 20_000 else None
    yield Result("brief", "of as many memories, p95", "ms", percentile(seconds, 95) * 1000, bar=bar)
    yield Result("brief", "scores of as many memories, CPU", "ms", alone(product.scores, root) * 1000, bar=1_000)


def status(bench: Bench) -> Iterator[Result]:
    seconds = alone(product.statuses, bench.synced(), 50)
    yield Result("status", "warm, p50", "ms", statistics.median(seconds) * 1000, bar=5)


def start_up(bench: Bench) -> Iterator[Result]:
    bench.synced()
    bench.synced("wordllama")
    note, word = bench.chosen(1)[0], vocabulary()[0][100]
    for arguments, embeddings, bar in (
        (("--version",), "off", 2),
        (("--help",), "off", 2.5),
        (("prompt",), "off", 10),
        (("read", note), "off", 10),
        (("search", word), "off", 10),
        (("status",), "off", 10),
        (("search", word), "wordllama", 20),
    ):
        words = [*command(), *arguments] if bar < 10 else bench.command(*arguments, embeddings=embeddings)
        ours, bare = medians(partial(run, words), 7), _bare_start()
        work = f"{arguments[0]}{', hybrid' if bar == 20 else ''} (limit: python -c pass)"
        yield Result("start-up", f"{work}, wall", "ms", ours.wall * 1000, bare.wall * 1000, bar, is_ratio=True)
        yield Result("start-up", f"{work}, CPU", "ms", ours.cpu * 1000, bare.cpu * 1000)


def memory(bench: Bench) -> Iterator[Result]:
    bench.synced()
    run(bench.command("prompt"))  # counts the tokens of the prompt's files, which are kept: the vocabulary has 50 MB
    with following(bench.command("watch", "--json")) as follower:
        follower.forget(0.5)
        yield Result("memory", "watch, idle", "MB", psutil.Process(follower.pid).memory_info().rss / 1e6, bar=70)


def index_size(bench: Bench) -> Iterator[Result]:
    for embeddings, work, bar in (("off", "without vectors", 2.6), ("wordllama", "with vectors", 4)):
        bench.forget()
        root = bench.synced(embeddings)
        measured = sum(path.stat().st_size for path in bench.state.rglob("index.db*")) / 1e6
        own = bench.sizes[root] / 1e6
        yield Result("index-size", f"{work} (limit: the notes)", "MB", measured, own, bar, is_ratio=True)


def _latencies(
    bench: Bench, watching: list[str], environment: dict[str, str] | None = None, servers: tuple[str, ...] = ()
) -> list[float]:
    """Seconds from each of some saves until it is indexed, or until the servers have it."""
    root, seconds = bench.corpus(), []
    with following(watching, environment) as follower:
        for path in bench.chosen(SAVES):
            follower.forget()
            begun = time.perf_counter()
            _save(root / path)
            moment = follower.wait_for("batch", [path])
            seconds.append((follower.wait_for("published", servers) if servers else moment) - begun)
    return seconds


@contextmanager
def _environment_of_servers() -> Iterator[dict[str, str]]:
    """Where a MongoDB and a Redis Stack, both new and empty, listen."""
    with ExitStack() as stack:
        servers = []
        for start in (start_mongod, start_redis):
            servers.append(start())
            stack.callback(servers[-1].stop)
        yield dict(zip(("MONGODB_URL", "REDIS_URL"), (server.url for server in servers), strict=True))


def _git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=A person", "-c", "user.email=person@ferry.example")
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, stdin=subprocess.DEVNULL)


def _save(path: Path) -> None:
    path.write_bytes(path.read_bytes() + f"\nSaved at {time.time_ns()}.\n".encode())


@cache
def _bare_start() -> Cost:
    return medians(lambda: run([sys.executable, "-c", "pass"]), 7)


ROWS: dict[str, Callable[[Bench], Iterator[Result]]] = {
    "cold-sync": cold_sync,
    "published-sync": published_sync,
    "unchanged-sync": unchanged_sync,
    "ten-edits": ten_edits,
    "save": save,
    "burst": burst,
    "edits": edits,
    "checkout": checkout,
    "prompt": prompt,
    "search": search,
    "brief": brief,
    "status": status,
    "start-up": start_up,
    "memory": memory,
    "index-size": index_size,
}
