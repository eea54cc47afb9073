"""The benchmark's replay of a day, with a few sessions of it."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.compiling import specs, write_memories
from tests.benchmarks.product import cold_sync
from tests.benchmarks.replay import SPECS, events, hit_rate, lived


def test_a_day_happens_in_the_same_way_each_time() -> None:
    assert events(30, 7) == events(30, 7)
    assert events(30, 7) != events(30, 8)
    assert {event for event, _ in events(400)} == {
        *("session", "spec saved", "memory written", "memory edited", "memory in use edited", "scored")
    }


def test_whoever_asks_the_same_while_nothing_changes_needs_no_reasoner(tmp_path: Path) -> None:
    write_memories(tmp_path, 20)
    settings = tmp_path / "notebook.toml"
    off = '[search]\nembeddings = "off"\n[git]\ncommit = "off"\n[tier2]\nenabled = true\n'
    settings.write_text(f"{settings.read_text()}{off}")
    cold_sync(tmp_path)
    day = lived(tmp_path, [("session", 0), ("memory written", 0), ("session", 0), ("session", 0)], specs(SPECS))
    assert [(session.is_hit, session.is_quiet) for session in day] == [(False, False), (False, False), (True, True)]
    assert hit_rate(day) == 1 / 3
