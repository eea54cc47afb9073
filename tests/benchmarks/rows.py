"""The rows of the table, each the product's work beside the limit's, in the same run on the same files."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random

from tests.servers import free_port

from . import limits, product
from .compiling import compiling
from .corpus import CODE, LISTS, NESTED, PLAIN, SEED, TABLES, note_paths, queries, standing_orders, write_corpus
from .follow import Follower, peak_of
from .measure import Bar, Result, alone, median_of, percentile
from .replay import replay
from .retrieval import packages_in, scores
from .servers import Servers
from .vectors import vectors

SAVES = 100
SEARCHES = 200
FOUND = 5
CREATED = 50
FLAGS = "🇫🇷🇯🇵".encode() * 6_250


@dataclass
class Bench:
    """Notebooks of one size, made when first asked for, in a folder that the caller removes."""

    folder: Path
    notes: int
    seed: int = SEED
    servers: Servers | None = None
    sizes: dict[int, int] = field(default_factory=dict)

    def corpus(self, notes: int = 0) -> Path:
        """A notebook that nothing has mirrored yet or may lose its mirror; the same one for the same size."""
        count = notes or self.notes
        root = self.folder / f"corpus-{count}"
        if count not in self.sizes:
            self.sizes[count] = write_corpus(root, count, self.seed)
        return root

    @cached_property
    def mirrored(self) -> Path:
        """A notebook of its own with its mirror."""
        root = self.folder / "mirrored"
        shutil.copytree(self.corpus(), root, ignore=shutil.ignore_patterns(".notebook"))
        alone(product.cold_sync, root)
        return root

    @cached_property
    def raw(self) -> Path:
        """The limit's database of the same notes."""
        database = self.folder / "raw.db"
        alone(limits.cold_sync, self.corpus(), database)
        return database

    def watching(self, root: Path, environment: dict[str, str] | None = None) -> Follower:
        return Follower([*product.command(), "-C", str(root), "watch", "--json"], environment)


def cold_sync(bench: Bench) -> Iterator[Result]:
    yield _cold_sync(bench, bench.notes, (Bar(4, of_limit=True),))


def cold_sync_servers(bench: Bench) -> Iterator[Result]:
    if bench.servers is None:
        return
    root = bench.corpus()
    with _environment(bench.servers.environment):
        _forget(root, bench.servers)
        measured = alone(product.cold_sync, root)
        limit = alone(limits.servers, bench.servers.mongodb, "aether_notebook", bench.servers.redis)
    yield Result("cold-sync-servers", "MongoDB and Redis filled", "s", measured, limit, (Bar(2, of_limit=True),))


def reconcile(bench: Bench) -> Iterator[Result]:
    yield _reconcile(bench.mirrored, bench.notes, (Bar(5, of_limit=True),))


def save(bench: Bench) -> Iterator[Result]:
    yield from _saves(bench, bench.mirrored, "save", (25, 75))


def save_servers(bench: Bench) -> Iterator[Result]:
    if bench.servers is None:
        return
    root = bench.corpus()
    with _environment(bench.servers.environment):
        _forget(root, bench.servers)
        alone(product.cold_sync, root)
        yield from _saves(bench, root, "save-servers", (40, 100), bench.servers.environment)


def burst(bench: Bench) -> Iterator[Result]:
    root, chosen = bench.mirrored, _chosen(bench, "burst", 50)

    def once(follower: Follower) -> float:
        follower.forget()
        begun = time.perf_counter()
        for path in chosen:
            _save_in_place(root / path)
        return follower.wait_for(chosen) - begun

    with bench.watching(root) as follower:
        measured, runs = median_of(lambda: once(follower))
    yield Result("burst", "50 saves, all mirrored", "s", measured, bars=(Bar(0.3),), runs=runs)


def checkout(bench: Bench) -> Iterator[Result]:
    root, chosen = bench.mirrored, _chosen(bench, "checkout", 1000)
    (root / ".gitignore").write_text(".notebook/\n")
    _git(root, "init", "--quiet", "--initial-branch=before")
    _commit_all(root, "Before")
    _git(root, "checkout", "--quiet", "-b", "after")
    for path in chosen:
        _save_in_place(root / path)
    _commit_all(root, "After")
    git_alone: list[float] = []

    def once(follower: Follower, branch: str) -> float:
        follower.forget()
        begun = time.perf_counter()
        _git(root, "checkout", "--quiet", branch)
        git_alone.append(time.perf_counter() - begun)
        return follower.wait_for(chosen) - begun

    branches = ["before", "after"] * 3
    with bench.watching(root) as follower:
        measured, runs = median_of(lambda: once(follower, branches.pop(0)))
    work = f"git checkout of {len(chosen)} notes, all mirrored (limit: git itself)"
    yield Result("checkout", work, "s", measured, statistics.median(git_alone), (Bar(1.5),), runs)
    shutil.rmtree(root / ".git")


def prompt(bench: Bench) -> Iterator[Result]:
    seconds = alone(product.prompts, bench.mirrored, 500)
    measured = percentile(seconds, 50) * 1000
    yield Result("prompt", "nothing changed, p50", "ms", measured, bars=(Bar(0.2),), runs=len(seconds))
    small = alone(product.prompts, bench.mirrored, 50, standing_orders(500))
    yield _prompt("small edit, p50", standing_orders(500), small, 2)
    for kind, bar in ((PLAIN, 10), (NESTED, 10)):
        orders = standing_orders(10_000, kind)
        seconds = alone(product.prompts, bench.mirrored, 50, orders)
        yield _prompt(f"10 KB of {kind}, over the cap, p50", orders, seconds, bar)
    for kind, bar in ((PLAIN, 0.5), (LISTS, 1), (CODE, 1), (TABLES, 1)):
        orders = standing_orders(2_000_000, kind)
        seconds = alone(product.prompts, bench.mirrored, 5, orders)
        yield _prompt(f"2 MB of {kind}, over the cap, each MB", orders, seconds, bar, each_mb=True)
    for work, text in (("100 KB of flag emoji", FLAGS), ("1.9 MB of <", b"<" * 1_900_000)):
        seconds = alone(product.prompts, bench.mirrored, 5, text + b"\n")
        yield _prompt(f"{work}, each MB", text, seconds, 1, each_mb=True)


def _prompt(work: str, orders: bytes, seconds: list[float], bar: float, *, each_mb: bool = False) -> Result:
    """A prompt after an edit; `seconds` are its runs."""
    limit = alone(limits.prompt, orders, len(seconds))
    unit, scale = ("s", 1e6 / len(orders)) if each_mb else ("ms", 1000)
    each = [statistics.median(one) * scale for one in (seconds, limit)]
    return Result("prompt", f"{work} (limit: sha256, count tokens)", unit, *each, bars=(Bar(bar),), runs=len(seconds))


def prompt_without_servers(bench: Bench) -> Iterator[Result]:
    if bench.servers is None:
        return
    nobody = {
        "MONGODB_URL": f"mongodb://127.0.0.1:{free_port()}",
        "REDIS_URL": f"redis://127.0.0.1:{free_port()}",
    }
    tails: dict[str, list[float]] = {"up": [], "down": []}
    for _ in range(5):  # by turns, so that both have the same neighbours on the machine
        for state, environment in (("up", bench.servers.environment), ("down", nobody)):
            with _environment(environment):
                tails[state].append(
                    percentile(alone(product.prompts, bench.mirrored, 300, standing_orders(2_000)), 99) * 1000
                )
    down, up = statistics.median(tails["down"]), statistics.median(tails["up"])
    work = "after an edit, both databases down, p99 (limit: both up)"
    yield Result("prompt-without-servers", work, "ms", down, up, (Bar(1.1, of_limit=True),), 5)


def keyword_search(bench: Bench) -> Iterator[Result]:
    yield from _searches(bench, bench.mirrored, bench.raw, bench.notes, 10)


def start_up(bench: Bench) -> Iterator[Result]:
    root = bench.mirrored
    for work, arguments, times in (("--version", ["--version"], 6), ("prompt", ["-C", str(root), "prompt"], 15)):
        pairs = [(_run([*product.command(), *arguments]), _run([sys.executable, "-c", "pass"])) for _ in range(15)]
        ours, bare = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
        name = f"notebook-sync {work}, a process"
        yield Result("start-up", name, "ms", ours, bare, (Bar(times, of_limit=True),), len(pairs))


def memory(bench: Bench) -> Iterator[Result]:
    root, chosen = bench.mirrored, _chosen(bench, "memory", 10)
    with bench.watching(root) as follower:
        follower.forget()
        yield Result("memory", "watch, idle, resident", "MB", follower.held(), bars=(Bar(90),))
        for path in chosen:
            _save_in_place(root / path)
            follower.wait_for([path])
        work = "watch, ten notes edited, peak"
        yield Result("memory", work, "MB", follower.peak(), bars=(Bar(120),))


def database_size(bench: Bench) -> Iterator[Result]:
    alone(product.cold_sync, _without_mirror(bench.corpus()))
    yield _database_size(bench, bench.notes)


def scaling(bench: Bench, sizes: tuple[int, ...] = (1_000, 10_000, 100_000)) -> Iterator[Result]:
    """Cold sync, its memory, reconcile, search and size at each size: what grows faster than the notes shows here."""
    for notes in sizes:
        largest = notes >= 100_000
        root = bench.corpus(notes)
        yield _cold_sync(bench, notes, (Bar(4, of_limit=True),))
        yield _reconcile(root, notes, (Bar(5, of_limit=True), *((Bar(2.5),) if largest else ())))
        raw = bench.folder / f"raw-{notes}.db"
        yield from _searches(bench, root, raw, notes, 50 if largest else 10)
        yield _database_size(bench, notes)
        peak = peak_of([*product.command(), "-C", str(_without_mirror(root)), "sync", "--no-embed"])
        yield Result("cold-sync-memory", f"{notes:,} notes, peak", "MB", peak, bars=(Bar(400),) if largest else ())
        raw.unlink()
        if notes != bench.notes:
            shutil.rmtree(root)
            del bench.sizes[notes]


def agents(bench: Bench, sizes: tuple[int, ...] = (1_000, 10_000, 100_000)) -> Iterator[Result]:
    """What agents do among so many notes: make a page, search, recall; embedded, and with MongoDB and Redis Stack."""
    for notes in sizes:
        root = bench.corpus(notes)
        alone(product.cold_sync, _without_mirror(root))
        yield from _agents(root, notes, "embedded", bench.seed)
        if bench.servers is not None:
            _forget(root, bench.servers)
            with _environment(bench.servers.environment):
                alone(product.cold_sync, root)
                yield from _agents(root, notes, "MongoDB, Redis Stack", bench.seed)
        _without_mirror(root)


def retrieval(bench: Bench, readmes: Path | None = None) -> Iterator[Result]:
    """How often a note is found by words and meaning (limit: by the better of the two alone), where there are READMEs
    of installed packages to search."""
    if readmes is None:
        return
    found = {(one.texts, one.half, one.by): one for one in scores(packages_in(readmes))}
    for (texts, half, by), score in found.items():
        if by != "both":
            continue
        alone = [found[texts, half, other] for other in ("words", "meaning")]
        for name, measure in (("recall@1", "recall_1"), ("recall@10", "recall_10"), ("MRR", "mrr")):
            yield Result(
                "retrieval",
                f"{name}, texts {texts}, queries {half} (limit: the better of words and meaning alone)",
                "",
                getattr(score, measure),
                max(getattr(one, measure) for one in alone),
                (Bar(1, of_limit=True, is_floor=True),),
                score.queries,
            )


ROWS: dict[str, Callable[[Bench], Iterator[Result]]] = {
    "cold-sync": cold_sync,
    "database-size": database_size,
    "reconcile": reconcile,
    "save": save,
    "burst": burst,
    "checkout": checkout,
    "prompt": prompt,
    "keyword-search": keyword_search,
    "agents": agents,
    "vectors": vectors,
    "compile": compiling,
    "replay": replay,
    "start-up": start_up,
    "memory": memory,
    "cold-sync-servers": cold_sync_servers,
    "save-servers": save_servers,
    "prompt-without-servers": prompt_without_servers,
    "scaling": scaling,
    "retrieval": retrieval,
}


def _cold_sync(bench: Bench, notes: int, bars: tuple[Bar, ...]) -> Result:
    root, raw = bench.corpus(notes), bench.folder / f"raw-{notes}.db"

    def limit_once() -> float:
        raw.unlink(missing_ok=True)
        return alone(limits.cold_sync, root, raw)

    limit, _ = median_of(limit_once)
    measured, runs = median_of(lambda: alone(product.cold_sync, _without_mirror(root)))
    return Result("cold-sync", f"{notes:,} notes, embedded", "s", measured, limit, bars, runs)


def _reconcile(root: Path, notes: int, bars: tuple[Bar, ...]) -> Result:
    limit = statistics.median(alone(limits.reconcile, root, 5))
    seconds = alone(product.reconcile, root, 5)
    measured = statistics.median(seconds)
    return Result("reconcile", f"{notes:,} notes, nothing changed", "s", measured, limit, bars, len(seconds))


def _saves(
    bench: Bench, root: Path, row: str, at_most: tuple[int, int], environment: dict[str, str] | None = None
) -> Iterator[Result]:
    alone_arguments = [sys.executable, limits.__file__, str(root)]
    for way, write in (("replaced", _save_by_replacing), ("in place", _save_in_place)):
        chosen = _chosen(bench, f"{row} {way}", SAVES)
        with Follower(alone_arguments) as follower:
            bare = [_latency(follower, root, path, write) for path in chosen]
        with bench.watching(root, environment) as follower:
            ours = [_latency(follower, root, path, write) for path in chosen]
        for percent, bar in zip((50, 95), at_most, strict=True):
            yield Result(
                row,
                f"one save ({way}) until mirrored and in refs, p{percent} (limit: watchfiles alone)",
                "ms",
                percentile(ours, percent) * 1000,
                percentile(bare, percent) * 1000,
                (Bar(bar),),
                len(ours),
            )


def _latency(follower: Follower, root: Path, path: str, write: Callable[[Path], None]) -> float:
    follower.forget(quiet=0.03)
    begun = time.perf_counter()
    write(root / path)
    return follower.wait_for([path]) - begun


def _searches(bench: Bench, root: Path, raw: Path, notes: int, at_most: int) -> Iterator[Result]:
    asked = queries(SEARCHES, bench.seed)
    limit = alone(limits.search, raw, asked, FOUND)
    ours = alone(product.search, root, asked, FOUND)
    for percent, bars in ((50, ()), (95, (Bar(at_most),))):
        yield Result(
            "keyword-search",
            f"{notes:,} notes, p{percent} (limit: a raw FTS5 query)",
            "ms",
            percentile(ours, percent) * 1000,
            percentile(limit, percent) * 1000,
            bars,
            len(ours),
        )
    for work, agent, tags in (("in a task session", "scribe", ()), ("of one tag", "", (asked[0].split()[0],))):
        ours = alone(product.search, root, asked, FOUND, agent, tags)
        name = f"{notes:,} notes, {work}, p95"
        yield Result("keyword-search", name, "ms", percentile(ours, 95) * 1000, bars=(Bar(at_most),), runs=len(ours))


def _agents(root: Path, notes: int, where: str, seed: int) -> Iterator[Result]:
    asked = queries(SEARCHES, seed)
    first, *recalled = alone(product.recall, root, asked, FOUND)
    works = {
        "create": alone(product.create, root, CREATED),
        "search": alone(product.search, root, asked, FOUND, "scribe"),
        "recall": recalled,
    }
    yield Result("agents", f"{notes:,} notes, {where}: the first recall", "ms", first * 1000)
    for work, seconds in works.items():
        for percent in (50, 95):
            measured = percentile(seconds, percent) * 1000
            yield Result("agents", f"{notes:,} notes, {where}: {work}, p{percent}", "ms", measured, runs=len(seconds))


def _database_size(bench: Bench, notes: int) -> Result:
    stores = (bench.corpus(notes) / ".notebook").glob("mirror.db*")
    measured = sum(store.stat().st_size for store in stores) / 1e6
    work = f"{notes:,} notes (limit: their own bytes)"
    return Result("database-size", work, "MB", measured, bench.sizes[notes] / 1e6, (Bar(3, of_limit=True),))


def _chosen(bench: Bench, purpose: str, count: int) -> list[str]:
    paths = note_paths(bench.notes)
    return Random(f"{bench.seed} {purpose}").sample(paths, min(count, len(paths)))


def _save_in_place(path: Path) -> None:
    path.write_bytes(_longer(path))


def _save_by_replacing(path: Path) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_bytes(_longer(path))
    os.replace(beside, path)  # noqa: PTH105  # as an editor does


def _longer(path: Path) -> bytes:
    return path.read_bytes() + f"\nSaved at {time.time_ns()}.\n".encode()


def _without_mirror(root: Path) -> Path:
    shutil.rmtree(root / ".notebook", ignore_errors=True)
    return root


def _forget(root: Path, servers: Servers) -> None:
    import pymongo
    import redis

    _without_mirror(root)
    with pymongo.MongoClient[dict[str, object]](servers.mongodb) as client:
        client.drop_database("aether_notebook")
    with redis.Redis.from_url(servers.redis) as hot:
        hot.flushdb()


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Processes started inside find their servers."""
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _run(arguments: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(arguments, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return time.perf_counter() - begun


def _git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.org", "-c", "gc.auto=0"]
    subprocess.run(["git", "-C", root, *identity, *arguments], check=True, stdin=subprocess.DEVNULL)


def _commit_all(root: Path, message: str) -> None:
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "-m", message)
