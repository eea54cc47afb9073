"""What every store of memories must do: each sentence of `mirror/memories.py` as a test.

A store is tested by a subclass whose `stores` fixture returns two picklable functions without arguments that open the
mirror and the memories of this test: once more for each call, also in another process.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.files.note import Note
from notebook_sync.mirror import memory_search
from notebook_sync.mirror.base import LARGEST_LIMIT, Mirror, Put, Remove
from notebook_sync.mirror.memories import KINDS, UNSCORED, Link, Memory, MemoryRows, Sought
from tests.memories.users import TIMES, use
from tests.mirror.contract import T0, note, put
from tests.processes import PROCESSES

Stores = tuple[Callable[[], Mirror], Callable[[], MemoryRows]]

DAY = timedelta(days=1)
NOTHING: dict[str, Any] = {
    "kind": None,
    "domain": None,
    "agent": None,
    "priority": 7,
    "relations": [],
    "needs_review": False,
    "missing": [],
}
BERTHS = {"type": "causes", "to": "pier", "confidence": 0.8, "reasoning": "It was full.", "source": "odile"}
AWKWARD = ("$ne", "\ud800", "\0", "", "'; --", "*", "ф" * 1000, "🛶")


def memory(name: str, content: str = "At noon.", tags: Sequence[str] = (), **fields: Any) -> Note:
    """A note in memories/ that names its id; `fields` are what its frontmatter says of it as a memory."""
    own = {key: fields.pop(key) for key in ("provenance", "created_at", "status") if key in fields}
    path = fields.pop("path", f"memories/{name}.md")
    return note(path, content, wants=name, tags=tuple(tags), fields={**NOTHING, **fields}, **own)


def link(of: dict[str, Any]) -> dict[str, Any]:
    return {"reasoning": "", "source": "", "synthesis_id": "", "confidence": 1.0, **of}


def keep(mirror: Mirror, *notes: Note) -> list[Put]:
    puts = [put(each) for each in notes]
    assert mirror.apply(puts) == []
    return puts


def ids(found: Sequence[Memory]) -> list[str]:
    return [each.id for each in found]


class MemoryRowsContract:
    @pytest.fixture
    def stores(self) -> Stores:
        raise NotImplementedError

    @pytest.fixture
    def mirror(self, stores: Stores) -> Iterator[Mirror]:
        mirror = stores[0]()
        yield mirror
        mirror.close()

    @pytest.fixture
    def rows(self, stores: Stores) -> Iterator[MemoryRows]:
        rows = stores[1]()
        yield rows
        rows.close()

    # What files say.

    def test_what_the_file_says_is_told(self, mirror: Mirror, rows: MemoryRows) -> None:
        said: dict[str, Any] = {
            "kind": "decision",
            "domain": "Harbour",
            "agent": "odile",
            "priority": 9,
            "needs_review": True,
            "missing": ["context", "outcome"],
        }
        told = memory(
            "ferry",
            tags=("Berths", "été"),
            **said,
            relations=[link(BERTHS), link({"type": "similar", "to": "ferry"})],
            provenance="external",
            created_at=T0 - DAY,
            status="archived",
        )
        keep(mirror, told)
        expected = Memory(
            *("ferry", "memories/ferry.md", "Plan", "First.", "decision", "Harbour", ("Berths", "été"), "odile"),
            priority=9,
            needs_review=True,
            provenance="external",
            status="archived",
            created_at=T0 - DAY,
            created_from="frontmatter",
            updated_at=T0,
            version=1,
            digest=told.digest,
            relations=(Link("causes", "pier", 0.8, "It was full.", "odile", ""), Link("similar", "ferry")),
            missing=("context", "outcome"),
        )
        assert rows.of(["ferry"]) == {"ferry": expected}
        assert rows.sought(Sought(), 10) == list(rows.all()) == [expected]
        document = mirror.get("ferry")
        assert document is not None
        assert {key: document[key] for key in NOTHING} == {**said, "relations": [link(BERTHS), link(document_link())]}
        assert not document.keys() & {"marks", "memory_score"}

    def test_it_has_its_form_where_it_is_of_a_kind_and_lacks_no_part(self, mirror: Mirror, rows: MemoryRows) -> None:
        keep(
            mirror,
            memory("ferry", kind="problem"),
            memory("mast"),
            memory("pier", kind="problem", missing=["outcome"]),
        )
        assert [each.id for each in rows.all() if each.is_structured] == ["ferry"]

    def test_what_it_does_not_say_is_not_told(self, mirror: Mirror, rows: MemoryRows) -> None:
        keep(mirror, memory("plain"))
        found = rows.of(["plain"])["plain"]
        assert (found.kind, found.domain, found.agent, found.priority) == ("", "", "", 7)
        assert (found.needs_review, found.provenance, found.relations) == (False, None, ())
        assert (found.created_from, found.accesses, found.last_accessed, found.score) == ("file", 0, None, None)

    def test_only_memories_are_told(self, mirror: Mirror, rows: MemoryRows) -> None:
        keep(mirror, memory("ferry"), memory("pier"), note("pages/plan.md"), note("facts/notes.md"))
        assert list(rows.of(["ferry", "pier", "pages/plan", "facts/notes", "nobody", "ferry", *AWKWARD])) == [
            "ferry",
            "pier",
        ]
        assert rows.of([]) == {}
        assert ids(list(rows.all())) == ["ferry", "pier"]
        assert ids(rows.sought(Sought(), LARGEST_LIMIT)) == ["ferry", "pier"]
        assert rows.sought(Sought(), 0) == rows.sought(Sought(), -1) == []

    def test_an_edit_is_told_at_once_and_leaves_nothing_of_before(self, mirror: Mirror, rows: MemoryRows) -> None:
        before = memory("ferry", tags=("berths",), kind="decision", domain="harbour", relations=[link(BERTHS)])
        keep(mirror, before)
        other = link({"type": "solves", "to": "quay"})
        after = memory("ferry", "Other.", tags=("tides",), kind="problem", domain="sea", relations=[other])
        assert mirror.apply([put(after, before.digest, n=1)]) == []
        (found,) = rows.sought(Sought(), 10)
        assert (found.kind, found.domain, found.tags, found.version) == ("problem", "sea", ("tides",), 2)
        assert rows.linking_to(["pier", "quay"]) == {"quay": [("ferry", Link("solves", "quay"))]}
        for gone in (Sought(without_tags=frozenset({"tides"})), Sought(only_domains=frozenset({"harbour"}))):
            assert rows.sought(gone, 10) == []
        assert ids(rows.sought(Sought(without_tags=frozenset({"berths"})), 10)) == ["ferry"]

    def test_a_memory_that_is_gone_or_is_one_no_more_is_not_told(self, mirror: Mirror, rows: MemoryRows) -> None:
        said: dict[str, Any] = {"tags": ("a",), "relations": [link(BERTHS)], "needs_review": True}
        ferry, pier = (memory(name, **said) for name in ("ferry", "pier"))
        keep(mirror, ferry, pier)
        elsewhere = note("pages/pier.md", "Other.", wants="pier")
        assert mirror.apply([Remove("ferry", ferry.digest), put(elsewhere, pier.digest, action="moved")]) == []
        for tell in (
            lambda: [*rows.all(), *rows.for_review()],
            lambda: rows.of(["ferry", "pier"]),
            lambda: rows.linking_to(["pier"]),
        ):
            assert not tell()
        assert rows.sought(Sought(tags=frozenset({"a"})), 10) == []
        mirror.refs_written(mirror.pending())
        keep(mirror, ferry)
        assert mirror.apply([put(replace(pier, content="New."), elsewhere.digest, action="moved")]) == []
        assert ids(list(rows.all())) == ["ferry", "pier"]
        assert ids(rows.sought(Sought(tags=frozenset({"a"})), 10)) == ["ferry", "pier"]

    def test_those_that_wait_for_a_review_are_told_apart(self, mirror: Mirror, rows: MemoryRows) -> None:
        seen, *waiting = (memory(f"n{at}", needs_review=at > 0) for at in range(4))
        keep(mirror, *reversed(waiting), seen)
        mirror.apply([put(memory("n2"), waiting[1].digest, n=1)])
        assert ids(list(rows.for_review())) == ["n1", "n3"]
        assert [*rows.for_review()] == [each for each in rows.all() if each.needs_review]

    # What is sought.

    def test_those_that_match_most_come_first(self, mirror: Mirror, rows: MemoryRows) -> None:
        keep(
            mirror,
            memory("kind-and-tag", kind="decision", tags=("tides",)),
            memory("nothing", kind="insight", domain="other", tags=("other",)),
            memory("kind", kind="decision"),
            memory("all", kind="decision", domain="harbour", tags=("tides", "berths", "other")),
            memory("two-tags", tags=("tides", "berths")),
            memory("domain", domain="harbour"),
            memory("domain-and-tag", domain="sea", tags=("berths",)),
            memory("bare"),
        )
        sought = Sought(
            tags=frozenset({"Tides", "berths"}), domains=frozenset({"harbour", " SEA "}), kinds=frozenset({"decision"})
        )
        expected = ["all", "domain-and-tag", "domain", "kind-and-tag", "two-tags", "kind", "bare", "nothing"]
        assert ids(rows.sought(sought, 10)) == expected
        for limit in range(1, 8):
            assert ids(rows.sought(sought, limit)) == expected[:limit]

    def test_of_even_ones_the_highest_score_comes_first(self, mirror: Mirror, rows: MemoryRows) -> None:
        keep(mirror, *(memory(name, tags=("tides",)) for name in ("new", "b", "a", "low", "high")), memory("other"))
        rows.put_scores({"high": 0.9, "low": 0.1, "a": 0.3, "b": 0.3, "other": 1.0}, T0)
        assert UNSCORED == 0.5
        for sought in (Sought(tags=frozenset({"tides"})), Sought(tags=frozenset({"tides"}), kinds=frozenset(KINDS))):
            assert ids(rows.sought(sought, 10)) == ["high", "new", "a", "b", "low", "other"]
        assert ids(rows.sought(Sought(), 10)) == ["other", "high", "new", "a", "b", "low"]
        assert ids(rows.sought(Sought(without_tags=frozenset({"tides"})), 10)) == ["other"]

    def test_some_may_be_left_out(self, mirror: Mirror, rows: MemoryRows) -> None:
        keep(
            mirror,
            memory("ferry", domain="Harbour", tags=("Old", "berths")),
            memory("pier", domain="harbour", tags=("older",)),
            memory("told", domain="sea", provenance="external"),
            memory("bare"),
        )
        cases = {
            ("bare", "ferry", "pier"): Sought(own_words=True),
            ("bare", "pier", "told"): Sought(without_tags=frozenset({"OLD", "nowhere"})),
            ("ferry", "pier"): Sought(only_domains=frozenset({"HARBOUR"})),
            ("ferry", "pier", "told"): Sought(only_domains=frozenset({"harbour", "sea", "lake"})),
            ("pier",): Sought(only_domains=frozenset({"harbour"}), without_tags=frozenset({"old"}), own_words=True),
            (): Sought(only_domains=frozenset({"lake", ""})),
        }
        assert rows.sought(Sought(only_domains=frozenset({""})), 10) == []
        for expected, sought in cases.items():
            assert ids(rows.sought(sought, 10)) == list(expected)
            first = replace(sought, tags=frozenset({"older"}), kinds=frozenset(KINDS))
            assert sorted(ids(rows.sought(first, 10))) == list(expected)

    def test_what_is_sought_is_data(self, mirror: Mirror, rows: MemoryRows) -> None:
        keep(mirror, memory("ferry", domain="$ne", tags=("'; --", "🛶", "ф" * 1000)), memory("pier", domain="x"))
        odd = frozenset(AWKWARD)
        for sought in (Sought(tags=odd, domains=odd, kinds=odd), Sought(only_domains=odd, kinds=odd)):
            assert ids(rows.sought(sought, 10))[0] == "ferry"
        assert ids(rows.sought(Sought(without_tags=odd), 10)) == ["pier"]
        assert rows.linking_to(list(AWKWARD)) == {}
        assert rows.of(list(AWKWARD)) == {}

    @pytest.mark.parametrize("many", [memory_search._MANY, 2])
    def test_whatever_is_sought_is_what_comparing_with_each_finds(
        self, mirror: Mirror, rows: MemoryRows, monkeypatch: pytest.MonkeyPatch, many: int
    ) -> None:
        monkeypatch.setattr(memory_search, "_MANY", many)
        monkeypatch.setattr(memory_search, "_STEP", 5)
        chance = random.Random(7)
        tags, domains = [f"t{n}" for n in range(6)], ["harbour", "sea", "town", ""]
        notes = [
            memory(
                f"n{n:03}",
                tags=chance.sample(tags, chance.randrange(4)),
                kind=chance.choice([*KINDS, None]),
                domain=chance.choice(domains) or None,
                provenance=chance.choice(["external", None, None]),
            )
            for n in range(120)
        ]
        keep(mirror, *notes)
        rows.put_scores({each.wants: chance.randrange(11) / 10 for each in notes[:100]}, T0)
        everything = list(rows.all())
        assert ids(everything) == [each.wants for each in notes]

        def some(of: Sequence[str]) -> frozenset[str]:
            return frozenset(chance.sample(of, chance.randrange(3))) - {""}

        for _ in range(40):
            sought = Sought(some(tags), some(domains), some(KINDS), some(domains), some(tags), chance.random() < 0.5)
            limit = chance.choice([1, 5, 30, 200])
            assert rows.sought(sought, limit) == by_comparing(everything, sought)[:limit]

    # Links.

    def test_who_links_to_a_memory_is_told(self, mirror: Mirror, rows: MemoryRows) -> None:
        two = [link(BERTHS), link({"type": "similar", "to": "pier"}), link({"type": "causes", "to": "nobody"})]
        keep(mirror, memory("ferry", relations=two), memory("pier"), memory("buoy", relations=two[:1]))
        causes, similar = Link("causes", "pier", 0.8, "It was full.", "odile"), Link("similar", "pier")
        assert rows.linking_to(["pier", "ferry", "nobody", "pier"]) == {
            "pier": [("buoy", causes), ("ferry", causes), ("ferry", similar)],
            "nobody": [("ferry", Link("causes", "nobody"))],
        }
        assert rows.linking_to([]) == {}

    # Usage and scores.

    def test_uses_are_counted_of_memories_that_there_are(self, mirror: Mirror, rows: MemoryRows) -> None:
        keep(mirror, memory("ferry"), memory("pier"), note("pages/plan.md"))
        rows.used(["ferry", "ferry", "nobody", "pages/plan", *AWKWARD], T0)
        rows.used(["ferry"], T0 - DAY)
        rows.used([], T0)
        found = rows.of(["ferry", "pier"])
        assert [(each.accesses, each.last_accessed) for each in found.values()] == [(2, T0), (0, None)]
        keep(mirror, memory("nobody"))
        assert rows.of(["nobody"])["nobody"].accesses == 0

    def test_usage_and_score_outlive_edits_and_a_new_name(self, mirror: Mirror, rows: MemoryRows) -> None:
        old = note("memories/old.md", fields=NOTHING)
        keep(mirror, old, memory("other"))
        rows.used([old.wants], T0)
        rows.put_scores({old.wants: 0.75, "other": 0.6}, T0)
        assert mirror.apply([put(replace(old, digest="d" * 64), old.digest)]) == []
        new = note("memories/new.md", digest="d" * 64, fields=NOTHING)
        mirror.apply([put(new, replaces=old.wants, action="moved")])
        first, second = rows.sought(Sought(), 10)
        assert (first.id, first.accesses, first.last_accessed, first.score) == (new.wants, 1, T0, 0.75)
        assert second.id == "other"
        assert rows.of([old.wants]) == {}

    def test_a_memory_that_comes_back_has_its_usage_until_it_was_gone_for_a_year(
        self, mirror: Mirror, rows: MemoryRows
    ) -> None:
        names = ["away", "long", "there"]
        (*gone, _) = keep(mirror, *map(memory, names))
        rows.used(names, T0)
        rows.put_scores(dict.fromkeys(names, 0.9), T0)
        mirror.apply([Remove(each.id, each.note.digest) for each in gone])
        mirror.refs_written(mirror.pending())
        rows.put_scores({"there": 0.8, "away": 0.1, "long": 0.1}, T0)
        rows.put_scores({}, T0 + 364 * DAY)
        keep(mirror, memory("away"))
        assert (rows.of(["away"])["away"].accesses, rows.of(["away"])["away"].score) == (1, 0.9)
        rows.put_scores({}, T0 + 366 * DAY)
        keep(mirror, memory("long"))
        found = rows.of(names)
        assert {name: (each.accesses, each.score) for name, each in found.items()} == {
            "away": (1, 0.9),
            "long": (0, None),
            "there": (1, 0.8),
        }
        assert ids(rows.sought(Sought(), 3)) == ["away", "there", "long"]

    def test_usage_is_restored_of_memories_that_have_none(self, mirror: Mirror, rows: MemoryRows) -> None:
        keep(mirror, memory("ferry"), memory("pier"), memory("scored"))
        rows.used(["ferry"], T0)
        rows.put_scores({"scored": 0.25}, T0)
        told = [(name, 7, T0 - DAY) for name in ("ferry", "pier", "scored")]
        for _ in range(2):
            rows.restore_usage([*told, ("later", 3, None), ("less", -1, None), ("\ud800", 1, None)])
        keep(mirror, memory("later"), memory("less"))
        found = rows.of(["ferry", "pier", "scored", "later", "less"])
        assert {name: (each.accesses, each.last_accessed) for name, each in found.items()} == {
            "ferry": (1, T0),
            "pier": (7, T0 - DAY),
            "scored": (7, T0 - DAY),
            "later": (3, None),
            "less": (0, None),
        }
        assert found["scored"].score == 0.25

    def test_processes_that_use_one_memory_at_once_are_all_counted(
        self, mirror: Mirror, rows: MemoryRows, stores: Stores
    ) -> None:
        keep(mirror, memory("ferry"), memory("pier"))
        with ProcessPoolExecutor(2, PROCESSES) as pool:
            for done in [pool.submit(use, stores[1], ["ferry", "pier"], T0) for _ in range(2)]:
                done.result()
        assert [each.accesses for each in rows.of(["ferry", "pier"]).values()] == [2 * TIMES, 2 * TIMES]

    def test_a_use_while_the_memory_is_edited_is_counted(self, mirror: Mirror, rows: MemoryRows) -> None:
        base = memory("ferry")
        keep(mirror, base)
        for n in range(5):
            edited = memory("ferry", f"text {n}")
            rows.used(["ferry"], T0)
            assert mirror.apply([put(edited, base.digest, n=n)]) == []
            base = edited
        assert rows.of(["ferry"])["ferry"].accesses == 5

    def test_after_close_it_is_down(self, rows: MemoryRows) -> None:
        rows.close()
        rows.close()
        with pytest.raises(BackendDown):
            rows.of(["ferry"])


def document_link() -> dict[str, Any]:
    return {"type": "similar", "to": "ferry"}


def by_comparing(memories: Sequence[Memory], sought: Sought) -> list[Memory]:
    """What is sought, found the slow way."""

    def may_be_told(one: Memory) -> bool:
        tags = set(one.tags)
        return (
            (not sought.only_domains or one.domain in sought.only_domains)
            and not tags & sought.without_tags
            and not (sought.own_words and one.provenance)
        )

    def order(one: Memory) -> tuple[float, float, str]:
        points = len(sought.tags & set(one.tags)) + 2 * (one.domain in sought.domains) + (one.kind in sought.kinds)
        return -points, -(UNSCORED if one.score is None else one.score), one.id

    return sorted(filter(may_be_told, memories), key=order)
