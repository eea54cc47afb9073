"""What every store of syntheses must do: each sentence of `mirror/syntheses.py` as a test.

A store is tested by a subclass whose fixtures return functions that open the store of this test, and its mirror: once
more for each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.mirror.base import Mirror, Remove
from notebook_sync.mirror.syntheses import TIMINGS_KEPT, Rested, Syntheses, Synthesis, Timing
from tests.mirror.contract import note, put

Opener = Callable[[], Syntheses]

T0 = datetime(2026, 3, 1, 9, 0, 0, 123000, tzinfo=UTC)
AN_HOUR = timedelta(hours=1)
DAY = "2026-03-01"
LONG_AGO = T0 - timedelta(days=30)
BERTH, TIDE = Rested("berth", "memories/decision/berth.md", "d1"), Rested("tide", "memories/insight/tide.md", "d2")
WORKERS = 4


def synthesis(key: str = "k1", hours: float = 0.0, **fields: object) -> Synthesis:
    made = Synthesis(
        key,
        f"asked {key}",
        "s1",
        "0123456789ab",
        "## Executive Summary\n\nModerne Fähren 🛳\n",
        "bridge",
        "c1",
        T0 + hours * AN_HOUR,
        (BERTH, TIDE),
        ({"id": "berth", "score": 0.5}, {"id": "tide", "score": 0.25}),
        {"ingested": [{"from": "tide", "type": "causes", "to": "berth"}], "kept": [], "dropped": [{"$where.a": None}]},
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def keep(store: Syntheses, *kept: Synthesis, entries: int = 100, since: datetime = LONG_AGO) -> None:
    for one in kept:
        store.put(one, entries=entries, since=since)


def keys(store: Syntheses, *asked: str) -> list[str]:
    return [key for key in asked if store.get(key) is not None]


class SynthesesContract:
    @pytest.fixture
    def open_syntheses(self) -> Opener:
        raise NotImplementedError

    @pytest.fixture
    def mirror(self) -> Iterator[Mirror]:
        """The mirror in the same store."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, open_syntheses: Opener) -> Iterator[Syntheses]:
        store = open_syntheses()
        yield store
        store.close()

    def test_what_is_kept_is_found_again_as_it_was(self, store: Syntheses, open_syntheses: Opener) -> None:
        keep(store, synthesis())
        assert store.get("k1") == synthesis()
        other = open_syntheses()
        assert other.get("k1") == synthesis()
        other.close()

    def test_what_is_not_kept_is_not_found(self, store: Syntheses) -> None:
        assert store.get("k1") is None
        assert store.asked_for("asked k1") is None
        assert store.forget(["berth"]) == 0
        store.used("k1", "asked k1", "s1", T0)
        assert store.get("k1") is None

    def test_a_key_is_kept_once(self, store: Syntheses) -> None:
        keep(store, synthesis(), synthesis(hours=1, synthesis_md="Newer.", rests_on=(TIDE,)))
        assert store.get("k1") == synthesis(hours=1, synthesis_md="Newer.", rests_on=(TIDE,))
        assert store.forget(["berth"]) == 0

    def test_a_use_is_counted_and_told_by_what_was_asked_for(self, store: Syntheses) -> None:
        keep(store, synthesis())
        store.used("k1", "another way", "s2", T0 + AN_HOUR)
        store.used("k1", "another way", "s3", T0 + AN_HOUR)
        assert store.asked_for("asked k1") is None
        assert store.asked_for("another way") == synthesis(asked="another way", state="s3", hits=2)

    def test_who_asks_again_is_given_what_was_used_last(self, store: Syntheses) -> None:
        keep(store, synthesis("k1", asked="both"), synthesis("k2", 1, asked="both"))
        assert (found := store.asked_for("both")) is not None
        assert found.key == "k2"
        store.used("k1", "both", "s1", T0 + 2 * AN_HOUR)
        assert (found := store.asked_for("both")) is not None
        assert found.key == "k1"

    def test_those_that_were_used_last_are_told_first(self, store: Syntheses) -> None:
        keep(store, synthesis("k1", 0), synthesis("k2", 1), synthesis("k3", 2))
        store.used("k1", "asked k1", "s1", T0 + 3 * AN_HOUR)
        assert [one.key for one in store.latest(2)] == ["k1", "k3"]
        assert store.latest(9)[1:] == [synthesis("k3", 2), synthesis("k2", 1)]
        assert store.latest(0) == store.latest(-1) == []

    def test_those_that_were_used_last_are_kept(self, store: Syntheses) -> None:
        keep(store, synthesis("k1", 0), synthesis("k2", 1), synthesis("k3", 2), entries=3)
        store.used("k1", "asked k1", "s1", T0 + 3 * AN_HOUR)
        keep(store, synthesis("k4", 4), entries=3)
        assert keys(store, "k1", "k2", "k3", "k4") == ["k1", "k3", "k4"]

    def test_none_is_kept_where_none_may_be(self, store: Syntheses) -> None:
        keep(store, synthesis("k1"), synthesis("k2", 1), entries=0)
        assert keys(store, "k1", "k2") == []

    def test_what_was_made_too_long_ago_goes_also_where_it_was_used_since(self, store: Syntheses) -> None:
        keep(store, synthesis("k1", 0), synthesis("k2", 1))
        store.used("k1", "asked k1", "s1", T0 + 2 * AN_HOUR)
        keep(store, synthesis("k3", 3), since=T0 + AN_HOUR)
        assert keys(store, "k1", "k2", "k3") == ["k2", "k3"]

    def test_what_rests_on_a_memory_goes_with_it(self, store: Syntheses) -> None:
        keep(store, synthesis("k1", rests_on=(BERTH,)), synthesis("k2", rests_on=(BERTH, TIDE)))
        keep(store, synthesis("k3", rests_on=(TIDE,)), synthesis("k4", rests_on=()))
        assert store.forget(["berth", "nobody", "$where", "half a \ud800"]) == 2
        assert keys(store, "k1", "k2", "k3", "k4") == ["k3", "k4"]
        assert store.forget([]) == 0

    def test_half_a_character_takes_no_answer_away(self, store: Syntheses) -> None:
        links = {"dropped": [{"link": {"from": "\ud800"}, "reason": "unknown"}]}
        keep(store, synthesis(synthesis_md="half \ud800", links=links))
        assert (found := store.get("k1")) is not None
        assert found.synthesis_md == "half ?"
        assert found.links == {"dropped": [{"link": {"from": "?"}, "reason": "unknown"}]}

    def test_a_hundred_large_answers_are_no_trouble(self, store: Syntheses) -> None:
        keep(store, *(synthesis(f"k{n:03}", n, synthesis_md="ferry " * 5_000) for n in range(40)), entries=30)
        assert len(keys(store, *(f"k{n:03}" for n in range(40)))) == 30

    # The state of the notes.

    def test_each_change_of_a_note_gives_another_state(self, store: Syntheses, mirror: Mirror) -> None:
        states = [store.state()]
        first = put(note("memories/decision/berth.md", "Berth 4."))
        second = put(note("memories/decision/berth.md", "Berth 5."), first.note.digest, n=1)
        gone = Remove("memories/decision/berth", second.note.digest)
        for write in (first, second, gone):
            assert mirror.apply([write]) == []
            mirror.refs_written(mirror.pending())
            states.append(store.state())
        assert all(before != after for before, after in pairwise(states))

    def test_nothing_else_changes_it(self, store: Syntheses, mirror: Mirror) -> None:
        assert mirror.apply([put(note())]) == []
        before = store.state()
        keep(store, synthesis())
        store.used("k1", "asked k1", before, T0)
        store.spend(DAY, 1)
        store.timed("synthesis", Timing("hit", 1.0))
        mirror.refs_written(mirror.pending())
        assert store.state() == before

    # The limit.

    def test_as_many_as_the_limit_are_counted_in_a_day(self, store: Syntheses) -> None:
        assert store.spent(DAY) == 0
        assert [store.spend(DAY, 2) for _ in range(4)] == [True, True, False, False]
        assert store.spent(DAY) == 2
        assert store.spend(DAY, 3)
        assert not store.spend(DAY, 1)

    @pytest.mark.parametrize("limit", [0, -1])
    def test_no_limit_above_none_counts_none(self, store: Syntheses, limit: int) -> None:
        assert not store.spend(DAY, limit)
        assert store.spent(DAY) == 0

    def test_another_day_counts_anew_and_forgets_those_before(self, store: Syntheses) -> None:
        assert store.spend(DAY, 1)
        assert store.spend("2026-03-02", 1)
        assert (store.spent(DAY), store.spent("2026-03-02")) == (0, 1)

    def test_of_many_at_once_no_more_than_the_limit_are_counted(self, open_syntheses: Opener) -> None:
        stores = [open_syntheses() for _ in range(WORKERS)]
        with ThreadPoolExecutor(WORKERS) as pool:
            spent = pool.map(lambda store: [store.spend(DAY, 25) for _ in range(10)], stores)
        assert sum(sum(each) for each in spent) == 25
        assert stores[0].spent(DAY) == 25
        for store in stores:
            store.close()

    def test_one_holds_the_lease(self, store: Syntheses, open_syntheses: Opener) -> None:
        other = open_syntheses()
        assert store.lease("harbour", 60.0)
        assert store.lease("harbour", 60.0)
        assert not other.lease("lighthouse", 60.0)
        other.release("lighthouse")
        assert not other.lease("lighthouse", 60.0)
        store.release("harbour")
        assert other.lease("lighthouse", 60.0)
        other.close()

    def test_a_lease_whose_time_is_up_is_anybodys(self, store: Syntheses) -> None:
        assert store.lease("harbour", 0.0)
        assert store.lease("lighthouse", 60.0)
        assert not store.lease("harbour", 60.0)

    def test_of_many_at_once_one_holds_the_lease(self, open_syntheses: Opener) -> None:
        stores = [open_syntheses() for _ in range(WORKERS)]
        with ThreadPoolExecutor(WORKERS) as pool:
            had = list(pool.map(lambda n: stores[n].lease(f"machine {n}", 60.0), range(WORKERS)))
        assert sum(had) == 1
        for store in stores:
            store.close()

    # Figures.

    def test_timings_of_a_kind_are_told_in_their_order(self, store: Syntheses) -> None:
        assert list(store.timings("compile")) == []
        store.timed("synthesis", Timing("answered", 1234.5))
        store.timed("compile", Timing("compiled", 12.25))
        store.timed("synthesis", Timing("hit", 1.5))
        assert list(store.timings("synthesis")) == [Timing("answered", 1234.5), Timing("hit", 1.5)]
        assert list(store.timings("compile")) == [Timing("compiled", 12.25)]

    def test_the_last_thousand_timings_are_kept(self, store: Syntheses) -> None:
        store.timed("compile", Timing("compiled", 7.0))
        for n in range(TIMINGS_KEPT + 2):
            store.timed("synthesis", Timing("hit", float(n)))
        kept = store.timings("synthesis")
        assert (len(kept), kept[0].milliseconds, kept[-1].milliseconds) == (TIMINGS_KEPT, 2.0, TIMINGS_KEPT + 1.0)
        assert list(store.timings("compile")) == [Timing("compiled", 7.0)]

    def test_closed_twice_it_is_down(self, open_syntheses: Opener) -> None:
        store = open_syntheses()
        store.close()
        store.close()
        with pytest.raises(BackendDown):
            store.get("k1")
