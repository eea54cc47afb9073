"""Numbers for Prometheus: what the API was asked, and how the notebook is at this moment. Never a path, never a name
of a note: the labels are bounded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPMethod
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from notebook_sync.errors import BackendDown

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_METHODS = frozenset(HTTPMethod)
_A_MINUTE = 60.0


class Metrics:
    """The numbers of one server. `status` and `figures` give what those operations do."""

    def __init__(self, status: Callable[[], Mapping[str, Any]], figures: Callable[[], Mapping[str, Any]]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "notebook_http_requests", "Requests answered", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "notebook_http_request_seconds",
            "Time until an answer was sent; of a stream, until it ended",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.streams = Gauge("notebook_event_streams", "Open event streams", registry=self._registry)
        self._registry.register(_Asked(status, _of_status))
        self._registry.register(_Asked(_Seldom(figures), _of_figures))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer. `route` is the path of the route as it is written, "" for none."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route or "none", str(status)).inc()
        self._seconds.labels(route or "none").observe(seconds)

    def text(self) -> bytes:
        """The exposition, in Prometheus' text format."""
        return generate_latest(self._registry)


_Numbers = Iterator[tuple[str, str, Any]]


class _Seldom:
    """Asks once a minute at the most, for what goes through all memories, and gives the same until then."""

    def __init__(self, ask: Callable[[], Mapping[str, Any]]) -> None:
        self._ask = ask
        self._asking = threading.Lock()
        self._until = 0.0
        self._told: Mapping[str, Any] = {}

    def __call__(self) -> Mapping[str, Any]:
        with self._asking:
            if not self._told or time.monotonic() >= self._until:
                self._told = self._ask()
                self._until = time.monotonic() + _A_MINUTE
            return self._told


class _Asked(Collector):
    """What is asked at each scrape. What a store that is down would say is left out."""

    def __init__(self, ask: Callable[[], Mapping[str, Any]], numbers: Callable[[Mapping[str, Any]], _Numbers]) -> None:
        self._ask = ask
        self._numbers = numbers

    def describe(self) -> Iterator[GaugeMetricFamily]:
        return iter(())  # else the notebook would be asked before the first scrape

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            answer = self._ask()
        except BackendDown:
            return
        for name, help_text, value in self._numbers(answer):
            if value is not None:
                yield GaugeMetricFamily(f"notebook_{name}", help_text, float(value))


def _of_status(status: Mapping[str, Any]) -> _Numbers:
    """How the notebook is."""
    mirror, refs = status["mirror"], status["refs"]
    yield "mirror_up", "Whether the mirror answers", mirror["ok"]
    yield "refs_up", "Whether hot memory answers", refs["ok"]
    yield "watched", "Whether a process follows the files", status["watcher"] is not None
    yield "refused_files", "Files that cannot be taken as they are", len(status["stale"])
    yield "notes", "Notes in the mirror", mirror.get("notes")
    yield "behind_files", "Files that differ from the mirror", status["behind"]
    yield "lag_seconds", "Age of the oldest such change", status["lag_seconds"]
    yield "pending_refs", "Changes that hot memory was not told yet", refs["pending"]


def _of_figures(figures: Mapping[str, Any]) -> _Numbers:
    """How memories, briefs and syntheses do; of these, the last thousand that were timed."""
    compiled, synthesis = figures["compile"], figures["synthesis"]
    yield "memories", "Memories", figures["memories"]
    yield "memories_structured_ratio", "Share of the memories that have a form", figures["structured_share"]
    yield "memories_needing_review", "Memories that wait for a review", figures["needs_review"]
    yield "memory_causal_links", "Links between memories", figures["causal_links"]
    yield "memory_score_sigma", "How far scores of memories lie apart", figures["score"]["sigma"]
    yield "briefs", "Task briefs compiled", compiled["count"]
    yield from _times("brief", "Time to compile a task brief", compiled)
    yield "syntheses", "Syntheses asked for", synthesis["asked"]
    yield "synthesis_hits", "Syntheses that were in the cache", synthesis["hits"]
    yield "synthesis_answered", "Syntheses that a reasoner made", synthesis["answered"]
    yield "synthesis_failed", "Syntheses that no reasoner made", synthesis["failed"]
    yield from _times("synthesis", "Time until there was a synthesis", synthesis)
    yield "synthesis_calls_today", "Calls to the reasoner today", synthesis["today"]
    yield "synthesis_daily_limit", "Calls that a day may have", synthesis["daily_limit"]


def _times(what: str, help_text: str, figures: Mapping[str, Any]) -> _Numbers:
    for share, name in (("p50", "median"), ("p95", "95th percentile")):
        milliseconds = figures[f"{share}_ms"]
        yield f"{what}_seconds_{share}", f"{help_text}, {name}", None if milliseconds is None else milliseconds / 1000
