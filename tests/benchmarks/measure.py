"""What a measurement is and how one is taken: in a process of its own, three times, by its median."""

import json
import os
import platform
import queue
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, TypeVar

import psutil

T = TypeVar("T")
PATIENCE_SECONDS = 120.0
RUNS = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of wall time and of CPU time, processes started by it included."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table. `limit` is the least that the same work costs, on the same machine in the same run.

    `bar` is the most allowed: as a ratio to `limit` if `is_ratio`, else in `unit`.
    """

    row: str
    work: str
    unit: str
    measured: float
    limit: float | None = None
    bar: float | None = None
    is_ratio: bool = False

    @property
    def ratio(self) -> float | None:
        return self.measured / self.limit if self.limit else None

    @property
    def within(self) -> bool | None:
        """None where there is no bar."""
        amount = self.ratio if self.is_ratio else self.measured
        return None if self.bar is None or amount is None else amount <= self.bar


def timed(work: Callable[[], object]) -> Cost:
    """What `work` costs in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def alone(work: Callable[..., T], *arguments: Any) -> T:
    """What `work` returns in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """Run a command to its end, its start included."""
    before, begun = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command, check=True, stdin=subprocess.DEVNULL, capture_output=True, env={**os.environ, **(environment or {})}
    )
    wall, after = time.perf_counter() - begun, getrusage(RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def peak_of(command: Sequence[str]) -> float:
    """The most that a command and the processes it starts hold at once, in MB; shared pages count once."""
    process = psutil.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    peak = 0.0
    while process.poll() is None:
        try:
            family = [process, *process.children(recursive=True)]
            peak = max(peak, sum(member.memory_full_info().pss for member in family) / 1e6)
        except psutil.Error:
            continue  # one of them ended between two looks
        time.sleep(0.05)  # between two samples
    if process.returncode:
        raise RuntimeError(f"{command!r} ended with {process.returncode}")
    return peak


def medians(work: Callable[[], Cost], runs: int = RUNS) -> Cost:
    """The medians of `runs` calls."""
    costs = [work() for _ in range(runs)]
    return Cost(statistics.median(cost.wall for cost in costs), statistics.median(cost.cpu for cost in costs))


def percentile(amounts: Sequence[float], percent: int) -> float:
    """The smallest amount that at least `percent` of 100 do not exceed."""
    return sorted(amounts)[max(0, -(-len(amounts) * percent // 100) - 1)]


class Follower:
    """A process that prints one JSON object a line: `ready`, then events with `paths` after each change."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._events: queue.SimpleQueue[tuple[float, dict[str, Any]]] = queue.SimpleQueue()
        self.pid = process.pid

    def read(self) -> None:
        for line in self._process.stdout or ():
            self._events.put((time.perf_counter(), json.loads(line)))

    def wait_for(self, event: str, names: Collection[str] = ()) -> float:
        """The moment of the event after which each of `names`, paths or servers, has been in one of its kind."""
        missing, deadline = set(names), time.perf_counter() + PATIENCE_SECONDS
        while True:
            moment, found = self._events.get(timeout=max(0.0, deadline - time.perf_counter()))
            if found.get("event") == event:
                missing.difference_update(found.get("paths", found))
                if not missing:
                    return moment

    def forget(self, quiet_seconds: float = 0.05) -> None:
        """Drop what was printed so far, once nothing more has come for a while."""
        try:
            while True:
                self._events.get(timeout=quiet_seconds)
        except queue.Empty:
            return


@contextmanager
def following(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Follower]:
    """A follower that is ready; it ends with the block."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    ) as process:
        follower = Follower(process)
        threading.Thread(target=follower.read, daemon=True).start()
        try:
            follower.wait_for("ready")
            yield follower
        finally:
            process.terminate()


def table(results: Sequence[Result]) -> str:
    """The results as a Markdown table."""
    lines = ["| row | work | measured | limit | ratio | bar | |", "|---|---|--:|--:|--:|--:|---|"]
    for one in results:
        limit, ratio = (f"{one.limit:.3g} {one.unit}", f"{one.ratio:.2f} ×") if one.limit and one.ratio else ("", "")
        bar = "" if one.bar is None else f"≤ {one.bar:g} {'×' if one.is_ratio else one.unit}"
        verdict = {True: "ok", False: "OVER", None: ""}[one.within]
        measured = f"{one.measured:.3g} {one.unit}"
        lines.append(f"| {one.row} | {one.work} | {measured} | {limit} | {ratio} | {bar} | {verdict} |")
    return "\n".join(lines)


def as_json(results: Sequence[Result], notes: int) -> str:
    """The results and what they were measured on."""
    machine = f"{platform.system()} {platform.release()} {platform.machine()}"
    facts = {"python": platform.python_version(), "machine": machine, "cpus": os.cpu_count(), "notes": notes}
    rows = [{**asdict(one), "ratio": one.ratio, "within": one.within} for one in results]
    return json.dumps({"taken_at": datetime.now(UTC).isoformat(timespec="seconds"), **facts, "results": rows}, indent=2)
