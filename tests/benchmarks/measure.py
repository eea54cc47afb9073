"""What a measurement is, and how one is taken: in a process of its own, several times, by its median."""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from os import cpu_count
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Unit = Literal["s", "ms", "MB", ""]


@dataclass(frozen=True, slots=True)
class Bar:
    """At most `amount`, in times the limit, or in units when `of_limit` is False; `is_floor`: at least so much."""

    amount: float
    of_limit: bool = False
    is_floor: bool = False

    def admits(self, measured: float | None) -> bool:
        if measured is None:
            return False
        return measured >= self.amount if self.is_floor else measured <= self.amount

    def shown(self, unit: Unit) -> str:
        amount = f"{self.amount:g} ×" if self.of_limit else _amount(self.amount, unit)
        return f"{'≥' if self.is_floor else '≤'} {amount}"


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table. `limit` is what the same work costs at the least, on the same machine in the same run."""

    row: str
    work: str
    unit: Unit
    measured: float
    limit: float | None = None
    bars: tuple[Bar, ...] = ()
    runs: int = 1

    @property
    def ratio(self) -> float | None:
        return self.measured / self.limit if self.limit else None

    @property
    def within(self) -> bool | None:
        """Whether every bar is met; None when there is none to meet."""
        if not self.bars:
            return None
        return all(bar.admits(self.ratio if bar.of_limit else self.measured) for bar in self.bars)


def alone(work: Callable[..., T], *arguments: Any) -> T:
    """What `work` returns in a fresh process, which may start processes of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


def median_of(work: Callable[[], float], runs: int = 5, patience: float = 20.0) -> tuple[float, int]:
    """The median of `runs` calls and how many were made: fewer once they have taken more than `patience` seconds."""
    amounts: list[float] = []
    begun = time.perf_counter()
    while len(amounts) < runs and (not amounts or time.perf_counter() - begun < patience):
        amounts.append(work())
    return statistics.median(amounts), len(amounts)


def percentile(amounts: Sequence[float], percent: int) -> float:
    """The smallest amount that at least `percent` of 100 do not exceed."""
    ordered = sorted(amounts)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def table(results: Sequence[Result]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| row | work | measured | limit | ratio | bar | |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for result in results:
        ratio = f"{result.ratio:.2f} ×" if result.ratio else ""
        limit = _amount(result.limit, result.unit) if result.limit else ""
        bars = ", ".join(bar.shown(result.unit) for bar in result.bars)
        verdict = {True: "ok", False: "OVER", None: ""}[result.within]
        measured = _amount(result.measured, result.unit)
        lines.append(f"| {result.row} | {result.work} | {measured} | {limit} | {ratio} | {bars} | {verdict} |")
    return "\n".join(lines)


def as_json(results: Sequence[Result], notes: int, seed: int) -> str:
    """The results and what they were measured on, for a machine."""
    return json.dumps(
        {
            "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "cpus": cpu_count(),
            "notes": notes,
            "seed": seed,
            "results": [{**asdict(r), "ratio": r.ratio, "within": r.within} for r in results],
        },
        indent=2,
    )


def _amount(amount: float, unit: Unit) -> str:
    return (f"{amount:.3g} {unit}" if amount < 100 else f"{amount:,.0f} {unit}").rstrip()
