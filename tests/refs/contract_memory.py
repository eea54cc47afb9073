"""What every hot memory must do beside refs: the stream, long-term memory, recall and checkpoints, as `refs/base.py`
says it. `RefsContract` has these tests too."""

from __future__ import annotations

import json
import string
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Protocol

import pytest

from notebook_sync.files.note import Ref
from notebook_sync.refs.base import CHECKPOINTS_KEPT, Entry, Refs, Swap
from notebook_sync.refs.entry import new_entry
from notebook_sync.search.base import Matrix
from tests.refs.meanings import Axes
from tests.waiting import eventually

NOW = datetime.now(UTC).replace(microsecond=250_000)
TODAY = NOW.date().isoformat()


class Opener(Protocol):
    def __call__(self, timezone: tzinfo = UTC) -> Refs: ...


class Teller(Protocol):
    """What another program writes into the list of a day; the lines of the day that are then there."""

    def __call__(self, day: str, line: str) -> list[str]: ...


def entry(entry_id: str, content: str = "The ferry is late.", age: timedelta = timedelta(), **fields: Any) -> Entry:
    """An entry of `age` before now."""
    return new_entry(entry_id, content, now=NOW - age, **fields)


def of_note(entry_id: str, action: str = "updated") -> Entry:
    """What the stream tells of a note."""
    told = {"notebook_id": "pages/plan", "title": "Plan", "collection": "pages", "path": "pages/plan.md"}
    return {**entry(entry_id, "[Plan] First.", source="notebook"), "action": action, "ref": told}


def checkpoint(number: int, **parts: Any) -> dict[str, Any]:
    return {
        "id": f"checkpoint-{number:03}",
        "name": f"number {number}",
        "at": (NOW + timedelta(seconds=number)).isoformat(),
        "commit": "",
        "notebook": [{"id": "pages/plan", "collection": "pages", "version": 3, "digest": "d"}],
        "days": {},
        "longterm": [],
        **parts,
    }


def found(refs: Refs, query: str, **options: Any) -> list[str]:
    """The ids that recall answers with, best first."""
    return [one["id"] for one in refs.recall(query, now=NOW, **options).results]


def await_index(refs: Refs, axes: Axes) -> None:
    """Where a server makes an index with vectors, it has all that there is."""
    meaning = axes.meaning("boat", is_local=False)
    eventually(lambda: "still being made" not in refs.recall("boat", now=NOW, meaning=meaning).partial, "it is made")


class MemoryContract:
    looks_through_all: bool
    """Whether recall finds what was logged however long ago."""

    @pytest.fixture
    def tell(self) -> Teller:
        raise NotImplementedError

    @pytest.fixture
    def refs(self, open_refs: Opener) -> Iterator[Refs]:
        refs = open_refs()
        yield refs
        refs.close()

    # The stream and long-term memory.

    def test_what_was_logged_is_in_the_stream_of_its_day(self, refs: Refs) -> None:
        told = entry("a", source="standup", tags=["ferry", "late"], score=0.9, agent="scribe", provenance="external")
        refs.log(told)
        assert refs.day(NOW.date().isoformat()) == [told]
        assert refs.days() == [NOW.date().isoformat()]

    def test_the_day_of_an_entry_is_that_of_its_timestamp_in_the_notebook(self, open_refs: Opener) -> None:
        refs = open_refs(timezone=timezone(timedelta(hours=9)))
        late = datetime(2026, 2, 18, 20, 30, tzinfo=UTC)
        refs.log(new_entry("a", "Ines has the key.", now=late))
        assert refs.days() == ["2026-02-19"]
        assert [one["id"] for one in refs.day("2026-02-19")] == ["a"]
        assert refs.day("2026-02-18") == []
        refs.close()

    def test_days_are_listed_oldest_first(self, refs: Refs) -> None:
        for n in (1, 40, 3, 3):
            refs.log(entry(f"{n}", age=timedelta(days=n)))
        assert refs.days() == [(NOW - timedelta(days=n)).date().isoformat() for n in (40, 3, 1)]

    def test_what_was_logged_twice_is_read_once(self, refs: Refs) -> None:
        for _ in range(3):
            refs.log(entry("a"))
        assert [one["id"] for one in refs.day(NOW.date().isoformat())] == ["a"]
        assert found(refs, "ferry") == ["a"]

    def test_what_is_kept_is_in_no_day(self, refs: Refs) -> None:
        kept = entry("a", tags=["keys"], agent="scribe")
        refs.keep(kept)
        refs.keep(entry("b", age=timedelta(days=400)))
        refs.keep(kept)
        assert [one["id"] for one in refs.longterm()] == ["b", "a"]
        assert refs.longterm()[1] == kept
        assert refs.days() == []

    def test_an_entry_kept_again_takes_the_place_of_the_earlier(self, refs: Refs) -> None:
        refs.keep(entry("a", "Odile has the key."))
        refs.keep(entry("a", "Ines has the key."))
        assert [one["content"] for one in refs.longterm()] == ["Ines has the key."]
        assert found(refs, "Odile") == []
        assert found(refs, "Ines") == ["a"]

    @pytest.mark.parametrize(
        "text",
        ["", "a\0b", "{{7*7}}", '"quoted" \\ back', "FLUSHALL\r\n", "naïve 🧑‍🚀", "\ud800", "x" * 100_000],
        ids=lambda text: repr(text[:20]),
    )
    def test_text_of_an_entry_is_data(self, refs: Refs, text: str) -> None:
        told = entry("a", text, source=text, tags=[text], agent="scribe")
        refs.log(told)
        refs.keep(told)
        assert refs.day(NOW.date().isoformat()) == [told]
        (kept,) = refs.longterm()
        assert kept["content"] == told["content"]

    def test_opening_a_note_is_told_and_leaves_its_ref_as_it_was(self, refs: Refs) -> None:
        refs.write([_ref("pages/plan", "The plan")], announce=False)
        before = refs.get("pages/plan")
        refs.write([_ref("pages/plan", "Else", action="opened")])
        assert refs.get("pages/plan") == before
        refs.write([_ref("pages/never", "Never", action="opened")])
        assert refs.get("pages/never") is None
        (today,) = refs.days()
        assert [one["action"] for one in refs.day(today)] == ["opened", "opened"]
        for _ in range(2):
            refs.write([_ref("pages/plan", "Else", action="opened", agent="scribe")])
        assert [one["agent"] for one in refs.day(today)] == ["owner", "owner", "scribe"]

    def test_a_ref_and_what_is_told_of_it_name_the_provenance(self, refs: Refs) -> None:
        refs.write([_ref("pages/a", "Ours"), _ref("pages/b", "Theirs", provenance="external")])
        (today,) = refs.days()
        assert [one.get("provenance") for one in refs.day(today)] == [None, "external"]
        stored = refs.get("pages/b")
        assert stored is not None
        assert stored["provenance"] == "external"
        refs.write([_ref("pages/b", "Theirs", n=1)])
        assert [one.get("provenance") for one in refs.recall("theirs", now=NOW).results] == [None]

    # Restoring.

    def test_a_restore_swaps_what_may_go_for_what_is_to_be_there(self, refs: Refs) -> None:
        for n in (0, 1, 2):
            refs.log(entry(f"old {n}", "The old harbour.", timedelta(days=n)))
        refs.keep(entry("old kept", "The old key."))
        refs.keep(entry("both", "The same lamp."))
        today, before = (NOW.date() - timedelta(days=n) for n in (0, 1))
        new = [entry("new 1", "A new harbour."), of_note("told"), entry("new 2", "A new pier.")]
        days = {today.isoformat(): Swap(new, {"old 0"}), before.isoformat(): Swap([], {"old 1"})}
        refs.restore(days, Swap([entry("both", "Another lamp.")], {"old kept", "both"}))
        assert refs.day(today.isoformat()) == new
        assert refs.day(before.isoformat()) == []
        assert refs.days() == [(NOW - timedelta(days=2)).date().isoformat(), today.isoformat()]
        assert [one["content"] for one in refs.longterm()] == ["Another lamp."]
        assert set(found(refs, "harbour")) == ({"new 1", "old 2"})
        assert found(refs, "key same") == []
        assert found(refs, "lamp") == ["both"]

    def test_the_same_restore_again_changes_nothing(self, refs: Refs) -> None:
        refs.log(entry("old"))
        refs.keep(entry("old kept"))
        for _ in range(3):
            refs.restore(
                {TODAY: Swap([entry("a"), of_note("b")], {"old"})}, Swap([entry("c", "A ferry.")], {"old kept"})
            )
            assert [one["id"] for one in refs.day(TODAY)] == ["a", "b"]
            assert [one["id"] for one in refs.longterm()] == ["c"]
            assert sorted(found(refs, "ferry")) == ["a", "c"]

    def test_what_was_told_since_the_caller_read_stays(self, refs: Refs) -> None:
        refs.log(entry("old"))
        refs.keep(entry("old kept"))
        read, kept = ({one["id"] for one in told} for told in (refs.day(TODAY), refs.longterm()))
        refs.log(entry("meanwhile", "Ines saw a whale."))
        refs.write([_ref("pages/plan", "Plan")], announce=False)
        refs.keep(entry("kept meanwhile", "Odile saw it too."))
        refs.restore({TODAY: Swap([entry("then", age=timedelta(seconds=1))], read)}, Swap([], kept))
        assert [one["id"] for one in refs.day(TODAY)] == ["then", "meanwhile"]
        assert [one["id"] for one in refs.longterm()] == ["kept meanwhile"]
        assert found(refs, "whale") == ["meanwhile"]
        assert found(refs, "ferry") == ["then"]

    def test_restores_of_two_who_read_the_same_leave_what_both_want(self, refs: Refs, open_refs: Opener) -> None:
        other = open_refs()
        for n in range(3):
            refs.log(entry(f"old {n}"))
        read = {one["id"] for one in refs.day(TODAY)}
        refs.restore({TODAY: Swap([entry("new"), entry("mine")], read)}, Swap([entry("kept")]))
        other.restore({TODAY: Swap([entry("new"), entry("theirs")], read)}, Swap([entry("kept")]))
        assert [one["id"] for one in refs.day(TODAY)] == ["new", "theirs", "mine"]
        assert sorted(found(refs, "ferry")) == ["kept", "mine", "new", "theirs"]
        other.close()

    def test_nothing_is_lost_to_restores_and_logs_at_once(self, open_refs: Opener) -> None:
        several = [open_refs() for _ in range(4)]
        for n in range(20):
            several[0].log(entry(f"old {n}"))
        read = {one["id"] for one in several[0].day(TODAY)}
        then = [entry(f"then {n}", "The buoy rings.", timedelta(milliseconds=n)) for n in range(8, 0, -1)]

        def restored(refs: Refs) -> None:
            for _ in range(5):
                refs.restore({TODAY: Swap(then, read)})

        def logged(refs: Refs) -> None:
            for n in range(20):
                refs.log(entry(f"since {n}"))

        with ThreadPoolExecutor(4) as pool:
            for done in [*(pool.submit(restored, refs) for refs in several[:3]), pool.submit(logged, several[3])]:
                done.result()
        expected = [*(one["id"] for one in then), *(f"since {n}" for n in range(20))]
        assert sorted(one["id"] for one in several[0].day(TODAY)) == sorted(expected)
        assert [one for one in several[0].day(TODAY) if one["id"].startswith("then")] == then
        assert len(found(several[0], "ferry buoy", limit=100)) == len(expected)
        for refs in several:
            refs.close()

    def test_what_comes_back_comes_where_it_was_told(self, refs: Refs) -> None:
        noon = NOW.replace(hour=12)
        several = [new_entry(f"{n}", "Bell.", now=noon + timedelta(seconds=n)) for n in range(9)]
        for n in (2, 5, 7):
            refs.log(several[n])
        refs.restore({TODAY: Swap([several[n] for n in (0, 4, 5, 6, 8)])})
        assert [one["id"] for one in refs.day(TODAY)] == ["0", "2", "4", "5", "6", "7", "8"]
        refs.restore({TODAY: Swap([], {"5", "0", "8"})})
        assert [one["id"] for one in refs.day(TODAY)] == ["2", "4", "6", "7"]
        refs.restore({TODAY: Swap(several)})
        assert refs.day(TODAY) == several

    def test_an_entry_that_may_not_go_stays_as_it_is(self, refs: Refs) -> None:
        refs.log(entry("a", "The ferry is here."))
        refs.keep(entry("b", "The key is here."))
        new = [Swap([entry(name, "The lamp is lit.")]) for name in ("a", "b")]
        refs.restore({TODAY: new[0]}, new[1])
        assert [one["content"] for one in (*refs.day(TODAY), *refs.longterm())] == [
            "The ferry is here.",
            "The key is here.",
        ]
        refs.restore({TODAY: Swap(new[0].there, {"a"})}, Swap(new[1].there, {"b"}))
        assert [one["content"] for one in (*refs.day(TODAY), *refs.longterm())] == ["The lamp is lit."] * 2
        assert sorted(found(refs, "lamp")) == ["a", "b"]

    def test_lines_that_are_no_entries_stay_where_they_are(self, refs: Refs, tell: Teller) -> None:
        theirs = ["no json", json.dumps({**entry("foreign"), "timestamp": 1772359200.0}), "[]"]
        tell(TODAY, theirs[0])
        refs.log(entry("old 1"))
        tell(TODAY, theirs[1])
        refs.log(entry("old 2"))
        tell(TODAY, theirs[2])
        for _ in range(2):
            refs.restore({TODAY: Swap([entry("new")], {"old 1", "old 2"})})
            assert [one["id"] for one in refs.day(TODAY)] == ["new"]
        refs.restore({TODAY: Swap([], {"new"})})
        assert refs.day(TODAY) == []
        assert tell(TODAY, "last") == [*theirs, "last"]

    def test_a_restore_without_long_term_memory_leaves_it_alone(self, refs: Refs) -> None:
        refs.keep(entry("kept"))
        refs.restore({TODAY: Swap([])})
        assert [one["id"] for one in refs.longterm()] == ["kept"]

    def test_a_restore_leaves_refs_alone(self, refs: Refs) -> None:
        refs.write([_ref("pages/plan", "The plan")], announce=False)
        refs.adopt("store 1", ["pages/plan"])
        refs.restore({TODAY: Swap([], {"pages/plan"})}, Swap([], {"pages/plan"}))
        assert refs.get("pages/plan") is not None
        assert refs.owner() == "store 1"

    # Recall.

    def test_recall_finds_what_was_logged_kept_and_refs(self, refs: Refs) -> None:
        refs.log(entry("a", "The ferry is late."))
        refs.keep(entry("b", "Odile repairs the ferry's engine."))
        refs.write([_ref("pages/ferry", "Ferry timetable")], announce=False)
        refs.log(entry("c", "Ines has the key."))
        assert sorted(found(refs, "ferry")) == ["a", "b", "pages/ferry"]
        assert found(refs, "nobody") == []

    def test_a_result_is_the_entry_with_its_relevance(self, refs: Refs) -> None:
        told = entry("a", source="standup", tags=["x", "y"], score=0.75, agent="scribe", provenance="external")
        refs.log(told)
        (result,) = refs.recall("ferry", now=NOW).results
        assert 0 < result.pop("relevance") <= 1
        assert result == told

    def test_a_note_is_recalled_as_its_ref_tells_it(self, refs: Refs) -> None:
        made = _ref("pages/plan", "The plan", provenance="external", agent="agent:scribe")
        refs.write([made], announce=False)
        (result,) = refs.recall("plan", now=NOW).results
        assert "agent" not in result  # that is who logged something, or opened a note
        assert (result["id"], result["content"], result["source"]) == ("pages/plan", "[The plan] Words.", "notebook")
        assert result["tags"] == ["pages"]
        assert result["provenance"] == "external"
        assert result["ref"] == {
            "notebook_id": "pages/plan",
            "title": "The plan",
            "collection": "pages",
            "status": "draft",
            "version": "1",
            "path": "pages/plan.md",
        }

    def test_what_the_stream_tells_of_a_note_is_not_found_beside_its_ref(self, refs: Refs) -> None:
        refs.write([_ref("pages/plan", "The plan")])
        assert found(refs, "plan") == ["pages/plan"]
        refs.write([_ref("pages/plan", "The plan", action="deleted", deleted=True)])
        assert found(refs, "plan") == []

    def test_a_ref_is_found_by_what_it_says_now(self, refs: Refs) -> None:
        for n, title in enumerate(["Harbour", "Lighthouse", "Boathouse"]):
            refs.write([_ref("pages/plan", title, n=n)], announce=False)
            assert found(refs, title) == ["pages/plan"]
        assert found(refs, "harbour lighthouse") == []
        refs.write([_ref("pages/plan", "", deleted=True)], announce=False)
        refs.write([_ref("pages/other", "Else")], announce=False)
        assert found(refs, "boathouse") == []

    def test_more_words_count_for_more(self, refs: Refs) -> None:
        refs.log(entry("one", "The harbour is closed."))
        refs.log(entry("both", "Gulls sleep on the harbour lights."))
        refs.log(entry("none", "Odile bakes."))
        assert found(refs, "harbour lights") == ["both", "one"]

    def test_a_rare_word_counts_for_more_than_a_frequent_one(self, refs: Refs) -> None:
        for n, boat in enumerate(("tug", "yawl", "ketch", "sloop")):
            refs.log(entry(f"ferry {n}", f"Ferry beside a {boat}."))
        refs.log(entry("rare", "Barnacles everywhere."))
        assert found(refs, "ferry barnacles")[0] == "rare"

    def test_age_makes_less_of_a_match(self, refs: Refs) -> None:
        refs.log(entry("old", "The ferry is late.", timedelta(days=60)))
        refs.keep(entry("older", "The ferry was painted.", timedelta(days=300)))
        refs.log(entry("new", "The ferry is early."))
        if self.looks_through_all:
            eventually(lambda: refs.recall("ferry", now=NOW).partial == "", "an index of all")
        results = {one["id"]: one["relevance"] for one in refs.recall("ferry", now=NOW).results}
        assert ("old" in results) is self.looks_through_all
        if self.looks_through_all:
            assert results["old"] == pytest.approx(results["new"] / 4, rel=0.001)
        assert results["older"] == pytest.approx(results["new"] / 1024, rel=0.01)

    def test_the_second_answer_says_something_else(self, refs: Refs) -> None:
        refs.log(entry("first", "The ferry engine stalls at the pier each morning."))
        refs.log(entry("again", "Each morning the ferry engine stalls at the pier.", timedelta(minutes=1)))
        refs.log(entry("other", "New ferry engine ordered from Odile.", timedelta(minutes=2)))
        assert found(refs, "ferry engine") == ["first", "other", "again"]

    def test_a_query_without_a_word_asks_for_what_matters_of_late(self, refs: Refs) -> None:
        refs.log(entry("minor", score=0.1))
        refs.log(entry("major", "Odile leaves.", score=0.9, age=timedelta(hours=1)))
        refs.keep(entry("old", "Ines came.", score=1.0, age=timedelta(days=120)))
        refs.write([_ref("pages/plan", "The plan")], announce=False)
        for query in ("", "  ", "?!", "\0"):
            assert found(refs, query) == ["major", "pages/plan", "minor", "old"]

    def test_any_of_the_tags_will_do_whatever_their_case(self, refs: Refs) -> None:
        refs.log(entry("a", tags=["Boats", "late"]))
        refs.log(entry("b", tags=["pier five"]))
        refs.log(entry("c", tags=["else"]))
        refs.write([_ref("pages/ferry", "Ferry")], announce=False)
        assert sorted(found(refs, "ferry", tags=["boats", "pier five"])) == ["a", "b"]
        assert found(refs, "ferry", tags=["PAGES"]) == ["pages/ferry"]
        assert sorted(found(refs, "", tags=["BOATS", "Pages"])) == ["a", "pages/ferry"]
        assert found(refs, "ferry", tags=["boat"]) == []
        assert sorted(found(refs, "ferry", tags=["", " "])) == ["a", "b", "c", "pages/ferry"]

    def test_since_leaves_out_what_is_older(self, refs: Refs) -> None:
        for hours in (1, 2, 3):
            refs.log(entry(f"{hours}", age=timedelta(hours=hours)))
        since = NOW - timedelta(hours=2)
        assert sorted(found(refs, "ferry", since=since)) == ["1", "2"]
        assert sorted(found(refs, "", since=since)) == ["1", "2"]
        assert found(refs, "ferry", since=since + timedelta(microseconds=1)) == ["1"]

    def test_the_limit_is_for_all_kinds_together(self, refs: Refs) -> None:
        for n in range(6):
            refs.log(entry(f"{n}"))
            refs.write([_ref(f"pages/{n}", "Ferry")], announce=False)
        assert len(found(refs, "ferry")) == 10
        assert len(found(refs, "ferry", limit=3)) == len(found(refs, "", limit=3)) == 3
        assert found(refs, "ferry", limit=0) == found(refs, "", limit=-1) == []
        assert len(found(refs, "ferry", limit=10_000)) == 12

    @pytest.mark.parametrize("mark", [*string.punctuation, "\n", "\t", "\0", " — ", "“", "’", "…", "·", "\u00ad"])
    def test_marks_are_no_part_of_words_nor_of_a_query(self, refs: Refs, mark: str) -> None:
        refs.log(entry("a", f"harbour{mark}lights", tags=[f"pier{mark}5"]))
        refs.log(entry("b", "harbourlights"))
        hits = ["a"] if mark != "_" else []
        assert found(refs, "harbour") == found(refs, "lights") == hits
        for query in (f"harbour{mark}lights", f"{mark}harbour{mark}{mark}lights{mark}"):
            assert "a" in found(refs, query) or mark == "_"
        assert found(refs, f"harbour{mark}lights") == ["a"]
        assert found(refs, mark * 3) == (["a", "b"] if mark != "_" else [])
        assert found(refs, "harbour_lights" if mark == "_" else "lights", tags=[f"pier{mark}5"]) == ["a"]
        assert found(refs, "harbour", tags=[f"pie{mark}"]) == []

    @pytest.mark.parametrize(
        "query",
        [
            "ferry -late", "ferry AND NOT late", "ferry|late", "%ferry%", "@content:ferry", "ferry*", '"ferry',
            "(ferry", "{ferry}", "$ferry", "ferry=>{$weight: 0}", "~ferry", "content:ferry", "NEAR(ferry)", "ferry ^2",
            "[ferry 5]", "ferry\\", "'; DROP TABLE ref; --", "ferry 🧑‍🚀 \ud800", "ferry " * 5000,
            "ferry " + "x" * 100_000,
        ],
        ids=lambda query: repr(query[:20]),
    )  # fmt: skip
    def test_a_query_is_data(self, refs: Refs, query: str) -> None:
        refs.log(entry("a"))
        refs.write([_ref("pages/plan", "Else")], announce=False)
        assert found(refs, query) == (["a"] if "ferry" in query else [])
        assert [one["id"] for one in refs.day(NOW.date().isoformat())] == ["a"]

    @pytest.mark.parametrize(
        ("said", "asked"),
        [
            ("Ferries", "ferry"), ("the FERRY", "Ferries"), ("Straße", "strasse"), ("café", "CAFE"),
            ("Ωmega", "ωmega"), ("ﬁsh", "fish"), ("naïve", "naïve"), ("port²", "port2"),
        ],
    )  # fmt: skip
    def test_words_are_found_as_people_write_them(self, refs: Refs, said: str, asked: str) -> None:
        refs.log(entry("a", f"About {said}, again."))
        refs.write([_ref("pages/a", said)], announce=False)
        assert sorted(found(refs, asked)) == ["a", "pages/a"]

    def test_common_words_are_looked_for_only_where_there_are_no_others(self, refs: Refs) -> None:
        refs.log(entry("a", "The ferry is not here."))
        refs.log(entry("b", "The pier."))
        assert found(refs, "the ferry") == ["a"]
        assert sorted(found(refs, "the")) == ["a", "b"]

    # Recall by meaning.

    def test_what_means_the_same_is_recalled_without_a_word_of_the_query(self, refs: Refs) -> None:
        refs.log(entry("a", "The vessel is delayed."))
        refs.keep(entry("b", "That boat again."))
        refs.write([_ref("pages/port", "The port")], announce=False)
        refs.log(entry("c", "Ines has the key."))
        axes = Axes()
        for asked, ids in (("late ferry", ["a", "b"]), ("quay", ["pages/port"]), ("gale", []), ("lock", ["c"])):
            assert found(refs, asked, meaning=axes.meaning(asked)) == ids
            assert found(refs, asked) == []
        assert sorted(axes.made) == [
            "Ines has the key.",
            "That boat again.",
            "The port\nWords.",
            "The vessel is delayed.",
        ]

    def test_words_count_for_three_tenths_and_meaning_for_the_rest(self, refs: Refs) -> None:
        refs.log(entry("both", "A boat, a lamp."))
        refs.log(entry("meaning", "One vessel."))
        refs.log(entry("words", "The boat of Odile and Ines.", timedelta(days=6)))
        refs.log(entry("not half as like", "A vessel of Odile and Ines, with lamp and lock."))
        results = refs.recall("boat", now=NOW, meaning=Axes().meaning("boat")).results
        assert {one["id"]: one["relevance"] for one in results} == {
            "both": pytest.approx(0.3 + 0.7 / 2**0.5, abs=0.001),
            "meaning": pytest.approx(0.7, abs=0.001),
            "words": pytest.approx((0.3 + 0.7 / 3**0.5) / 2 ** (6 / 30), abs=0.001),
        }

    def test_of_what_nothing_is_known_the_words_count_alone(self, refs: Refs) -> None:
        refs.log(entry("nothing known", "A gull."))
        refs.log(entry("known", "A gull and a boat."))
        results = refs.recall("gull boat", now=NOW, meaning=Axes().meaning("gull boat")).results
        worth = {one["id"]: one["relevance"] for one in results}
        by_words = {one["id"]: one["relevance"] for one in refs.recall("gull boat", now=NOW).results}
        assert worth == {"known": pytest.approx(1.0, abs=0.001), "nothing known": by_words["nothing known"]}

    def test_what_says_the_same_in_other_words_gives_way(self, refs: Refs) -> None:
        refs.log(entry("first", "The ferry is late."))
        refs.log(entry("again", "A vessel, delayed.", timedelta(minutes=1)))
        refs.log(entry("other", "Ferry, late, Odile, Ines.", timedelta(minutes=2)))
        assert found(refs, "late ferry", meaning=Axes().meaning("late ferry")) == ["first", "other", "again"]

    def test_a_vector_is_one_of_what_is_said_now(self, refs: Refs) -> None:
        axes = Axes()
        refs.write([_ref("pages/plan", "Boat")], announce=False)
        refs.keep(entry("a", "A lamp."))
        refs.log(entry("b", "A lock."))
        asked = "vessel light key"
        assert sorted(found(refs, asked, meaning=axes.meaning(asked))) == ["a", "b", "pages/plan"]
        refs.write([_ref("pages/plan", "Gale", n=1)], announce=False)
        refs.keep(entry("a", "A quay."))
        refs.restore({TODAY: Swap([entry("b", "Ines.")], {"b"})})
        assert found(refs, asked, meaning=axes.meaning(asked)) == []
        for asked, ids in (("storm", ["pages/plan"]), ("port", ["a"]), ("Ines", ["b"])):
            assert found(refs, asked, meaning=axes.meaning(asked)) == ids
        assert len(axes.made) == 6
        refs.write([_ref("pages/plan", "", deleted=True)], announce=False)
        assert found(refs, "storm", meaning=axes.meaning("storm")) == []

    def test_what_changes_while_its_vector_is_made_has_none_of_what_it_said(self, refs: Refs) -> None:
        refs.keep(entry("a", "A boat."))
        refs.write([_ref("pages/plan", "Lamp")], announce=False)
        axes = Axes()

        def made_meanwhile(texts: Sequence[str]) -> Matrix:
            refs.keep(entry("a", "A quay."))
            refs.write([_ref("pages/plan", "Gale", n=1)], announce=False)
            return axes.embed(texts)

        await_index(refs, axes)
        refs.embed(axes.model, made_meanwhile, 10)
        for asked, ids in (("vessel", []), ("light", []), ("port", ["a"]), ("storm", ["pages/plan"])):
            assert found(refs, asked, meaning=axes.meaning(asked)) == ids

    def test_vectors_are_told_by_nothing(self, refs: Refs) -> None:
        refs.log(entry("a", "A boat."))
        refs.keep(entry("b", "A boat, kept."))
        refs.write([_ref("pages/boat", "A boat, written")], announce=False)

        def everything() -> list[Any]:
            recalled = [refs.recall(query, now=NOW).results for query in ("boat", "")]
            return [*recalled, refs.day(TODAY), refs.longterm(), refs.recent(), refs.get("pages/boat")]

        before = everything()
        assert len(found(refs, "vessel", meaning=Axes().meaning("vessel"))) == 3
        assert everything() == before

    def test_vectors_of_two_models_are_not_compared(self, refs: Refs) -> None:
        refs.log(entry("a", "A vessel."))
        first, other, longer = Axes("first"), Axes("other"), Axes("first", 12)
        for axes in (first, other, longer):
            by_server = axes.meaning("boat", is_local=False)
            eventually(
                lambda meaning=by_server: (
                    "1 entries and notes" in refs.recall("boat", now=NOW, meaning=meaning).partial
                ),
                "it is told to have no vector of this model",
            )
            assert found(refs, "boat", meaning=by_server) == []
            assert found(refs, "boat", meaning=axes.meaning("boat")) == ["a"]
            assert axes.made == ["A vessel."]

    def test_what_has_no_vector_yet_is_found_by_its_words(self, refs: Refs) -> None:
        axes = Axes()
        refs.log(entry("a", "The boat of Odile."))
        await_index(refs, axes)
        assert refs.embed(axes.model, axes.embed, 100) == 1
        refs.log(entry("b", "A boat."))
        recalled = refs.recall("boat", now=NOW, meaning=axes.meaning("boat", is_local=False))
        assert [one["id"] for one in recalled.results] == ["b", "a"]
        assert "1 entries and notes have no vectors yet and are found by their words alone" in recalled.partial
        assert refs.embed(axes.model, axes.embed, 0) == 0
        assert refs.embed(axes.model, axes.embed, 100) == 1
        assert refs.embed(axes.model, axes.embed, 100) == 0
        assert axes.made == ["The boat of Odile.", "A boat."]

    def test_tags_since_and_limit_narrow_what_is_near(self, refs: Refs) -> None:
        for n in range(4):
            refs.log(entry(f"{n}", f"Vessel {n}.", timedelta(hours=n), tags=["Even" if n % 2 == 0 else "odd"]))
        refs.write([_ref("pages/a", "Boat")], announce=False)

        def near(**options: Any) -> list[str]:
            return sorted(found(refs, "ferry", meaning=Axes().meaning("ferry"), **options))

        assert near(tags=["even"]) == ["0", "2"]
        assert near(tags=["pages", "ODD"]) == ["1", "3", "pages/a"]
        assert near(since=NOW - timedelta(hours=1)) == ["0", "1", "pages/a"]
        assert near(since=NOW - timedelta(hours=2), tags=["even"]) == ["0", "2"]
        assert len(near(limit=2)) == 2
        assert near(limit=0) == []

    @pytest.mark.parametrize("text", ["", "a\0boat", "\ud800 boat", "boat" + "\n" * 9 + "🧑‍🚀", "boat " * 20_000])
    def test_any_text_has_a_vector(self, refs: Refs, text: str) -> None:
        refs.log(entry("a", text))
        refs.keep(entry("b", text))
        for _ in range(2):
            recalled = refs.recall("vessel", now=NOW, meaning=Axes().meaning("vessel"))
            assert sorted(one["id"] for one in recalled.results) == (["a", "b"] if text else [])
            assert "no vectors" not in recalled.partial

    def test_a_query_without_a_word_has_no_meaning(self, refs: Refs) -> None:
        refs.log(entry("minor", "A boat.", score=0.1))
        refs.log(entry("major", "Odile leaves.", score=0.9))
        axes = Axes()
        assert found(refs, "?!", meaning=axes.meaning("boat")) == ["major", "minor"]
        assert axes.made == []

    def test_only_what_may_be_told_has_a_part_in_the_order(self, refs: Refs) -> None:
        for n in range(3):
            refs.log(entry(f"secret {n}", "The ferry of Odile is late."))
        refs.log(entry("a", "The ferry is late."))
        refs.write([_ref("pages/a", "A boat", summary="")], announce=False)
        refs.write([_ref("pages/b", "A boat", summary="Again", n=1)], announce=False)

        def told(entries: Iterable[Entry]) -> Iterator[Entry]:
            for one in entries:
                if one["id"] == "pages/b":
                    yield {**one, "content": "[hidden]"}
                elif not one["id"].startswith("secret"):
                    yield one

        meaning = Axes().meaning("late ferry")
        with_secrets = refs.recall("late ferry", now=NOW, meaning=meaning, told=told).results
        by_words = refs.recall("late ferry", now=NOW, told=told).results
        assert [one["id"] for one in with_secrets] == ["a", "pages/a"]
        refs.restore({TODAY: Swap([], {f"secret {n}" for n in range(3)})})
        refs.write([_ref("pages/b", "", deleted=True)], announce=False)
        assert refs.recall("late ferry", now=NOW, meaning=meaning).results == with_secrets
        assert refs.recall("late ferry", now=NOW).results == by_words

    # Loss.

    def test_a_memory_that_lost_nothing_says_so(self, refs: Refs) -> None:
        refs.write([_ref("pages/plan", "The plan")])
        refs.adopt("store 1", ["pages/plan"])
        assert refs.lost() is None

    def test_a_loss_is_remembered_to_the_millisecond(self, open_refs: Opener, refs: Refs) -> None:
        refs.note_loss(NOW - timedelta(days=1))
        refs.note_loss(NOW)
        refs.adopt("store 1", [])
        other = open_refs()
        assert other.lost() == NOW
        other.close()

    # Checkpoints.

    def test_a_checkpoint_comes_back_whole(self, refs: Refs) -> None:
        day = NOW.date().isoformat()
        whole = checkpoint(1, days={day: [entry("a"), of_note("b")]}, longterm=[entry("c")], commit="abc")
        refs.put_checkpoint(whole)
        assert refs.checkpoint("checkpoint-001") == whole
        assert refs.checkpoint("nobody") is refs.checkpoint("") is None
        light = {"id": "checkpoint-001", "name": "number 1", "at": whole["at"], "commit": "abc", "created_by": ""}
        assert refs.checkpoints() == [{**light, "notes": 1, "entries": 2, "longterm": 1}]

    def test_checkpoints_are_listed_newest_first_and_the_oldest_dropped(self, refs: Refs) -> None:
        assert refs.checkpoints() == []
        order = [*range(1, CHECKPOINTS_KEPT + 3), 0]
        for number in order:
            refs.put_checkpoint(checkpoint(number))
        listed = [one["name"] for one in refs.checkpoints()]
        assert listed == [f"number {number}" for number in range(CHECKPOINTS_KEPT + 2, 2, -1)]
        assert refs.checkpoint("checkpoint-002") is None
        assert refs.checkpoint("checkpoint-000") is None
        assert refs.checkpoint("checkpoint-003") is not None

    def test_agents_checkpoints_push_out_none_of_the_owners(self, refs: Refs) -> None:
        for number in range(CHECKPOINTS_KEPT):
            refs.put_checkpoint(checkpoint(number, created_by="owner" if number % 2 else "agent:pilot"))
        for number in range(CHECKPOINTS_KEPT, 2 * CHECKPOINTS_KEPT):
            refs.put_checkpoint(checkpoint(number, created_by="agent:scribe"))
        kept = [(one["name"], one["created_by"]) for one in refs.checkpoints()]
        assert kept == [
            *((f"number {n}", "agent:scribe") for n in range(99, 74, -1)),
            *((f"number {n}", "owner") for n in range(49, 0, -2)),
        ]
        for number in range(100, 100 + CHECKPOINTS_KEPT):
            refs.put_checkpoint(checkpoint(number, created_by="owner"))
        refs.put_checkpoint(checkpoint(200, created_by="agent:scribe"))
        owners = [f"number {n}" for n in range(149, 99, -1)]
        assert [one["name"] for one in refs.checkpoints()] == ["number 200", *owners]
        refs.put_checkpoint(checkpoint(201, created_by="owner"), spare=["checkpoint-100"])
        assert [one["name"] for one in refs.checkpoints()] == ["number 201", "number 200", *owners]
        refs.put_checkpoint(checkpoint(202, created_by="owner"))
        assert [one["name"] for one in refs.checkpoints()][-1] == "number 102"

    def test_a_checkpoint_put_again_takes_its_own_place(self, refs: Refs) -> None:
        refs.put_checkpoint(checkpoint(1))
        refs.put_checkpoint(checkpoint(1, name="renamed"))
        assert [one["name"] for one in refs.checkpoints()] == ["renamed"]


def _ref(note_id: str, title: str, n: int = 0, **fields: Any) -> Ref:
    return Ref(
        **{
            "id": note_id,
            "title": title,
            "summary": "Words.",
            "collection": "pages",
            "updated_at": NOW,
            "status": "draft",
            "version": 1 + n,
            "digest": f"digest {n}",
            "agent": "owner",
            "path": f"{note_id}.md",
            "action": "updated",
            "event": n,
            **fields,
        }
    )
