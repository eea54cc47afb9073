"""Numbers for Prometheus: what the API was asked, and how the notebook is at this moment. Never a path, never a name
of a note: the labels are bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from http import HTTPMethod
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_METHODS = frozenset(HTTPMethod)


class Metrics:
    """The numbers of one server. `status` gives what `Notebook.status` does."""

    def __init__(self, status: Callable[[], Mapping[str, Any]]) -> None:
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
        self._registry.register(_Notebook(status))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer. `route` is the path of the route as it is written, "" for none."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route or "none", str(status)).inc()
        self._seconds.labels(route or "none").observe(seconds)

    def text(self) -> bytes:
        """The exposition, in Prometheus' text format."""
        return generate_latest(self._registry)


class _Notebook(Collector):
    """How the notebook is, asked at each scrape. What a store that is down would say is left out."""

    def __init__(self, status: Callable[[], Mapping[str, Any]]) -> None:
        self._status = status

    def describe(self) -> Iterator[GaugeMetricFamily]:
        return iter(())  # else the notebook would be asked before the first scrape

    def collect(self) -> Iterator[GaugeMetricFamily]:
        status = self._status()
        mirror, refs = status["mirror"], status["refs"]
        for name, help_text, value in (
            ("notebook_mirror_up", "Whether the mirror answers", mirror["ok"]),
            ("notebook_refs_up", "Whether hot memory answers", refs["ok"]),
            ("notebook_watched", "Whether a process follows the files", status["watcher"] is not None),
            ("notebook_refused_files", "Files that cannot be taken as they are", len(status["stale"])),
            ("notebook_notes", "Notes in the mirror", mirror.get("notes")),
            ("notebook_behind_files", "Files that differ from the mirror", status["behind"]),
            ("notebook_lag_seconds", "Age of the oldest such change", status["lag_seconds"]),
            ("notebook_pending_refs", "Changes that hot memory was not told yet", refs["pending"]),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, help_text, float(value))
