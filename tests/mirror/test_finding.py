"""What is found, and in what order, on every store: filters, words, one ranking over all collections."""

from __future__ import annotations

import sqlite3
import unicodedata
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pymongo
import pytest

from notebook_sync.files.note import COLLECTIONS, Note
from notebook_sync.mirror import sqlite, sqlite_search
from notebook_sync.mirror.base import Filter, Mirror, Remove
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.mirror.mongo_queries import admitting
from notebook_sync.mirror.sqlite import SqliteMirror
from tests.mirror.contract import T0, MirrorContract, Opener, digest_of, many, note, put

# A note of each kind; `n` counts the seconds after T0 at which it was changed.
HARBOUR: tuple[tuple[int, Note], ...] = (
    (0, note("pages/lamp.md", "The lamp of the pier.", tags=("light", "pier"), status="complete")),
    (1, note("pages/boats/ferry.md", "The ferry at the pier.", created_by="agent:scribe", tags=("boats",))),
    (2, note("pages/boats-old.md", "The pier before.", tags=("Light",))),
    (3, note("code_snippets/tide.md", "pier", code="def tide(pier): ...", fields={"language": "python"})),
    (4, note("research_notes/fog.md", "Fog at the pier.", fields={"source_url": "https://example.org/fog"})),
    (5, note("facts/notes.md", "The pier has a lamp.", created_by="agent:pilot")),
    (6, note("channels/scribe/global/a.md", "pier, noted", extra={"topic": "storm", "session_id": "s-1"})),
    (7, note("channels/scribe/ferry/b.md", "pier, noted", extra={"topic": 1.5, "session_id": 42, "confidence": 0.8})),
    (8, note("channels/pilot/global/c.md", "pier, noted", extra={"topic": "storm", "confidence": "sure"})),
)
ALL_IDS = [each.wants for _, each in reversed(HARBOUR)]
SCRIBE = ["channels/scribe/ferry/b", "channels/scribe/global/a"]
NOT_PRIVATE = ALL_IDS[3:]
FILTERS: dict[str, tuple[Filter, list[str]]] = {
    "nothing": (Filter(), ALL_IDS),
    "a collection": (Filter(collections=("facts",)), ["facts/notes"]),
    "collections": (Filter(collections=("channels", "facts")), ALL_IDS[:4]),
    "no such collection": (Filter(collections=("boats",)), []),
    "a status": (Filter(status="complete"), ["pages/lamp"]),
    "a tag": (Filter(tags=("light",)), ["pages/lamp"]),
    "any of the tags": (Filter(tags=("boats", "pier", "none")), ["pages/boats/ferry", "pages/lamp"]),
    "an author": (Filter(created_by="agent:scribe"), ["pages/boats/ferry"]),
    "since": (Filter(since=T0 + timedelta(seconds=8)), ALL_IDS[:1]),
    "since, to the microsecond": (Filter(since=T0 + timedelta(seconds=8, microseconds=1)), []),
    "until": (Filter(until=T0 + timedelta(seconds=1)), ALL_IDS[-1:]),
    "until, to the microsecond": (Filter(until=T0 + timedelta(seconds=1, microseconds=1)), ALL_IDS[-2:]),
    "ever": (Filter(since=datetime.min.replace(tzinfo=UTC), until=datetime.max.replace(tzinfo=UTC)), ALL_IDS),
    "made since": (Filter(made_since=T0 + timedelta(seconds=8)), ALL_IDS[:1]),
    "made until, to the microsecond": (Filter(made_until=T0 + timedelta(seconds=1, microseconds=1)), ALL_IDS[-2:]),
    "a folder": (Filter(below=("pages/boats",)), ["pages/boats/ferry"]),
    "folders": (Filter(below=("channels/scribe", "facts")), [*SCRIBE, "facts/notes"]),
    "after a row": (Filter(after=(T0 + timedelta(seconds=2), "pages/boats-old")), ALL_IDS[-2:]),
    "after a row that is gone": (Filter(after=(T0 + timedelta(seconds=2), "pages/boats")), ALL_IDS[-3:]),
    "after a row, to the microsecond": (Filter(after=(T0 + timedelta(seconds=1, microseconds=1), "z")), ALL_IDS[-2:]),
    "after a row, in a folder": (
        Filter(below=("channels",), after=(T0 + timedelta(seconds=8), "channels/pilot/global/c")),
        SCRIBE,
    ),
    "not in folders": (Filter(not_below=("channels", "pages/boats")), [*ALL_IDS[3:7], "pages/lamp"]),
    "a topic": (Filter(topic="storm"), ["channels/pilot/global/c", "channels/scribe/global/a"]),
    "a topic that YAML takes for a number": (Filter(topic="1.5"), SCRIBE[:1]),
    "a session": (Filter(session_id="s-1"), SCRIBE[1:]),
    "a session that YAML takes for a number": (Filter(session_id="42"), SCRIBE[:1]),
    "not at paths": (Filter(not_at=("pages/lamp.md", "facts/notes.md")), [*ALL_IDS[:3], *ALL_IDS[4:8]]),
    "of channels one agent's": (Filter(of_channels=("channels/scribe",)), [*SCRIBE, *NOT_PRIVATE]),
    "of channels none": (Filter(of_channels=()), NOT_PRIVATE),
    "channels alone, of them none": (Filter(collections=("channels",), of_channels=()), []),
    "everything at once": (
        Filter(
            collections=("channels",),
            status="draft",
            created_by="owner",
            since=T0,
            until=T0 + timedelta(days=1),
            made_since=T0,
            made_until=T0 + timedelta(days=1),
            below=("channels",),
            not_below=("channels/pilot",),
            topic="storm",
            session_id="s-1",
            of_channels=("channels/scribe/global",),
            after=(T0 + timedelta(seconds=7), ""),
        ),
        SCRIBE[1:],
    ),
}
AWKWARD = [
    '{"$ne": 1}',
    "$ne",
    "' OR 1=1 --",
    "%",
    "*",
    "a\0b",
    "\ud800",
    "",
    " ",
    "😀",
    'x"y',
    "é" * 5000,
    "-1",
    "nan",
]
MOMENTS = ("since", "until", "made_since", "made_until")
each_filter = pytest.mark.parametrize(("filter", "ids"), FILTERS.values(), ids=FILTERS)


class FilterContract(MirrorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def harbour(cls) -> Iterator[Mirror]:
        """A store with HARBOUR in it, which no test changes: `stocked` with the one that is tested."""
        raise NotImplementedError

    @each_filter
    def test_a_list_has_what_the_filter_admits_the_newest_first(
        self, harbour: Mirror, filter: Filter, ids: list[str]
    ) -> None:
        assert [row["id"] for row in harbour.light(filter)] == ids

    def test_what_is_left_out_of_a_list_takes_no_place_of_what_is_in_it(self, mirror: Mirror) -> None:
        mirror.apply([put(note("pages/wanted.md", "text", tags=("x",)), n=-9), *many(60)])
        assert [row["id"] for row in mirror.light(Filter(tags=("x",)), 1)] == ["pages/wanted"]

    def test_a_list_goes_on_after_its_last_row_though_many_were_changed_at_once(self, mirror: Mirror) -> None:
        notes = [put(note(f"{folder}/n{n:02}.md", "x"), n=n // 10) for n in range(19) for folder in ("pages", "facts")]
        mirror.apply(notes)
        whole = [row["id"] for row in mirror.light(limit=100)]
        found: list[str] = []
        rows = mirror.light(limit=5)
        while rows:
            found += [row["id"] for row in rows]
            rows = mirror.light(Filter(after=(rows[-1]["updated_at"], rows[-1]["id"])), 5)
        assert (len(found), found) == (38, whole)

    @pytest.mark.parametrize("folders", [("channels",), ("channels/scribe", "channels/pilot")])
    def test_a_list_by_when_notes_were_made_has_the_newest_first_and_no_more_than_asked_for(
        self, mirror: Mirror, folders: tuple[str, ...]
    ) -> None:
        def made(name: str, minutes: float, n: int) -> Any:
            when = T0 + timedelta(minutes=minutes)
            return put(note(f"channels/{name}.md", name, created_at=when), n=n)

        mirror.apply([made("scribe/global/old", 1, 9), made("pilot/global/new", 3, 1), made("scribe/ferry/mid", 2, 5)])
        mirror.apply(
            [made("scribe/global/b", 2, 7), made("scribe/global/a", 2, 7), made("scribe/global/ms", 1.0001, 0)]
        )
        mirror.apply([put(note("pages/newest.md", "text", created_at=T0 + timedelta(days=1)))])
        newest = ["pilot/global/new", "scribe/global/a", "scribe/global/b", "scribe/ferry/mid", "scribe/global/ms"]
        newest.append("scribe/global/old")
        wanted = Filter(collections=("channels",), below=folders)
        for limit in range(8):
            found = mirror.light(wanted, limit, "made")
            assert [row["id"] for row in found] == [f"channels/{name}" for name in newest[:limit]]
        assert mirror.light(Filter(), 1, "made")[0]["id"] == "pages/newest"
        later = replace(wanted, made_since=T0 + timedelta(minutes=2), made_until=T0 + timedelta(minutes=3))
        assert [row["id"] for row in mirror.light(later, 9, "made")] == [f"channels/{name}" for name in newest[1:4]]

    @pytest.mark.parametrize("value", AWKWARD, ids=lambda value: ascii(value)[:20])
    def test_a_value_is_compared_and_nothing_else(self, harbour: Mirror, value: str) -> None:
        for name in (each.name for each in fields(Filter)):
            if name in MOMENTS or name in ("of_channels", "not_below", "not_at", "after") or not value:
                continue
            wanted: Any = value if name in ("status", "created_by", "topic", "session_id") else (value,)
            assert harbour.light(replace(Filter(), **{name: wanted})) == []
        left = [row["id"] for row in harbour.light(Filter(not_below=(value or "none",), of_channels=(value,)))]
        assert left == NOT_PRIVATE
        assert [row["id"] for row in harbour.light(Filter(after=(T0, value)))] in ([], ALL_IDS[-1:])

    @pytest.mark.parametrize(
        "tag", ["$ne", "' OR 1=1 --", "%", "😀", 'x"y', "\\", "é" * 500], ids=lambda value: ascii(value)[:20]
    )
    def test_any_tag_can_be_asked_for(self, mirror: Mirror, tag: str) -> None:
        mirror.apply([put(note(tags=("a", tag))), put(note("pages/b.md", "b", tags=("a",)))])
        assert [row["id"] for row in mirror.light(Filter(tags=(tag,)))] == ["pages/plan"]

    def test_a_note_is_found_by_the_tags_it_has_now(self, mirror: Mirror) -> None:
        first, second = note(content="one", tags=("a", "b")), note(content="two", tags=("b", "c"))
        mirror.apply([put(first), put(note("pages/other.md", "other", tags=("a",)))])
        mirror.apply([put(second, first.digest)])
        found = {tag: [row["id"] for row in mirror.light(Filter(tags=(tag,)))] for tag in "abc"}
        assert found == {"a": ["pages/other"], "b": ["pages/plan"], "c": ["pages/plan"]}
        mirror.apply([Remove("pages/plan", second.digest)])
        mirror.refs_written(mirror.pending())
        mirror.apply([put(note(content="three", tags=("d",)))])
        assert [row["id"] for row in mirror.light(Filter(tags=("b", "c", "d")))] == ["pages/plan"]
        assert mirror.light(Filter(tags=("b", "c"))) == []

    def test_rows_tell_what_is_looked_for_in_their_collection(self, harbour: Mirror) -> None:
        rows = {row["id"]: row for row in harbour.light()}
        beside = ("topic", "session_id", "confidence", "language", "source_url")
        assert {note_id: {key: row[key] for key in beside if key in row} for note_id, row in rows.items()} == {
            **{note_id: {} for note_id in ALL_IDS},
            "channels/scribe/global/a": {"topic": "storm", "session_id": "s-1"},
            "channels/scribe/ferry/b": {"topic": "1.5", "session_id": "42", "confidence": 0.8},
            "channels/pilot/global/c": {"topic": "storm"},
            "code_snippets/tide": {"language": "python"},
            "research_notes/fog": {"source_url": "https://example.org/fog"},
        }
        assert {note_id for note_id, row in rows.items() if "created_at" in row} == set(ALL_IDS[:3])
        assert rows["channels/pilot/global/c"]["created_at"] == T0 + timedelta(seconds=8)

    def test_a_note_whose_place_is_taken_is_below_no_folder_and_not_known_to_be_outside_of_one(
        self, mirror: Mirror
    ) -> None:
        one, two = note("pages/1.md", "one", wants="one"), note("pages/2.md", "two", wants="two")
        late = put(note("pages/3.md", "newer", wants="one"), digest_of("another"), action="moved")
        mirror.apply([put(one), put(two)])
        mirror.apply([late, put(note("pages/1.md", "two", wants="two"), two.digest, action="moved")])
        for filter in (Filter(below=("pages",)), Filter(not_below=("facts",))):
            assert [row["id"] for row in mirror.light(filter)] == ["two"]


class RankingContract(FilterContract):
    @each_filter
    def test_a_search_finds_what_the_filter_admits(self, harbour: Mirror, filter: Filter, ids: list[str]) -> None:
        found = harbour.search("pier", 50, filter)
        assert sorted(row["id"] for row in found) == sorted(ids)
        assert [row["score"] for row in found] == sorted((row["score"] for row in found), reverse=True)

    def test_what_is_left_out_of_a_search_takes_no_place_of_what_is_in_it(self, mirror: Mirror) -> None:
        weak = put(note("pages/wanted.md", "text " + "and other words " * 40, title="", summary="", tags=("x",)))
        mirror.apply([weak, *(put(note(f"pages/{n}.md", f"text {n}", title="Text")) for n in range(60))])
        assert [row["id"] for row in mirror.search("text", 1, Filter(tags=("x",)))] == ["pages/wanted"]

    @pytest.mark.parametrize("value", AWKWARD, ids=lambda value: ascii(value)[:20])
    def test_a_query_with_a_filter_is_data_as_well(self, harbour: Mirror, value: str) -> None:
        assert harbour.search("pier", 5, Filter(tags=(value,))) == []
        assert harbour.search(f"{value} pier {value}", 50, Filter(tags=("light",)))[0]["id"] == "pages/lamp"

    def test_all_collections_have_one_ranking_and_one_limit(self, mirror: Mirror) -> None:
        filler = "and nothing else of any weight in it " * 5
        mirror.apply([put(note(f"{name}/in-text.md", f"quokka {filler}", title=name)) for name in COLLECTIONS])
        mirror.apply([put(note(f"{name}/in-title.md", filler, title="Quokka")) for name in COLLECTIONS])
        found = mirror.search("quokka", 50)
        assert {row["id"] for row in found[: len(COLLECTIONS)]} == {f"{name}/in-title" for name in COLLECTIONS}
        assert len(found) == 2 * len(COLLECTIONS)
        for limit in range(1, len(found)):
            assert len(mirror.search("quokka", limit)) == limit

    def test_both_words_come_before_one_of_them(self, mirror: Mirror) -> None:
        filler = "of the harbour and all that lies in it " * 3
        mirror.apply([put(note(f"pages/{n}.md", f"ferry {filler}", title="", summary="")) for n in range(5)])
        mirror.apply([put(note(f"facts/{n}.md", f"lamp {filler}", title="", summary="")) for n in range(5)])
        mirror.apply([put(note("memories/both.md", f"ferry {filler} lamp", title="", summary=""))])
        assert mirror.search("lamp ferry", 3)[0]["id"] == "memories/both"

    @pytest.mark.parametrize("form", ["NFC", "NFD"])
    @pytest.mark.parametrize("word", ["Malmö", "malmö", "MALMÖ", "malmo"])
    def test_accents_and_case_make_no_difference(self, mirror: Mirror, word: str, form: Any) -> None:
        mirror.apply([put(note(content="The ferry to Malmö.", title="", summary=""))])
        assert [row["id"] for row in mirror.search(unicodedata.normalize(form, word))] == ["pages/plan"]

    def test_the_code_of_a_snippet_is_found(self, mirror: Mirror) -> None:
        mirror.apply([put(note("code_snippets/a.md", "a", code="def moor(ferry): ...")), put(note("pages/b.md", "b"))])
        assert [row["id"] for row in mirror.search("moor")] == ["code_snippets/a"]

    def test_no_private_note_has_a_part_in_what_others_are_told(self, mirror: Mirror) -> None:
        own = [put(note("channels/scribe/global/own.md", "ferry and lamp", title="Berth"))]
        public = [put(note(f"pages/{n}.md", "ferry " * n + "lamp", title="")) for n in range(1, 6)]
        mirror.apply([*own, *public])
        asked = [("ferry", 1), ("ferry lamp", 3), ("berth lamp ferry", 50), ("canary", 5)]
        shown = Filter(of_channels=("channels/scribe",))
        before = [mirror.search(query, limit, shown) for query, limit in asked]
        private = (note(f"channels/pilot/global/{n}.md", "ferry canary " * n, title="Ferry lamp") for n in range(1, 40))
        mirror.apply([put(each) for each in private])
        assert [mirror.search(query, limit, shown) for query, limit in asked] == before
        assert len(mirror.search("canary", 100)) == 39

    def test_a_note_that_moves_into_a_channel_is_found_there_and_only_there(self, mirror: Mirror) -> None:
        here, there = note("pages/a.md", "numbat", wants="a"), note("channels/scribe/global/a.md", "numbat", wants="a")
        for before, after, channels in ((here, there, 1), (there, here, 0)):
            mirror.apply([put(before)])
            mirror.apply([put(after, before.digest, action="moved")])
            assert [row["path"] for row in mirror.search("numbat")] == [after.path]
            assert len(mirror.search("numbat", 5, Filter(collections=("channels",)))) == channels
            assert len(mirror.search("numbat", 5, Filter(of_channels=()))) == 1 - channels

    def test_no_more_than_the_first_words_of_a_long_query_are_looked_for(self, mirror: Mirror) -> None:
        mirror.apply([put(note("pages/first.md", "w0", title="")), put(note("pages/last.md", "w64", title=""))])
        words = [f"w{n}" for n in range(65)]
        for between in (" ", ",", " - ", " w0 "):
            assert [row["id"] for row in mirror.search(between.join(words), 5)] == ["pages/first"]

    def test_more_of_the_same_search_begins_with_what_less_of_it_found(self, mirror: Mirror) -> None:
        mirror.apply(some_notes(Random(7)))
        for query in ("ferry", "ferry lamp", "fog tide ferry", "quay lamp ferry pier"):
            for filter in (Filter(), Filter(tags=("even",))):
                whole = [row["id"] for row in mirror.search(query, 500, filter)]
                for limit in (1, 2, 7, 40):
                    assert [row["id"] for row in mirror.search(query, limit, filter)] == whole[:limit]


def some_notes(rng: Random) -> list[Any]:
    """Words from everywhere ("ferry") to nearly nowhere ("quay"), in texts of many lengths."""
    words, weights = ("ferry", "lamp", "pier", "tide", "fog", "quay"), (200, 60, 20, 8, 3, 1)

    def text(length: int) -> str:
        return " ".join(rng.choices(words, weights, k=length))

    return [
        put(
            note(f"pages/{n:03}.md", text(rng.randint(1, 30)), title=text(1), summary="", tags=("even", "odd")[n % 2 :])
        )
        for n in range(120)
    ]


def mixed_notes(rng: Random) -> list[Any]:
    """Open and private notes, of which many say the same: so that scores are even, also at a limit."""
    words, weights = ("ferry", "lamp", "pier", "tide", "fog", "quay", "buoy"), (40, 40, 30, 20, 10, 5, 5)
    texts = [" ".join(rng.choices(words, weights, k=rng.randint(1, 4))) for _ in range(25)]
    folders = ("pages/even", "pages/odd", "channels/scribe/global", "channels/pilot/global")

    def any_text(share: float) -> str:
        return rng.choice(texts) if rng.random() < share else "and nothing of it"

    return [
        put(
            note(f"{rng.choice(folders)}/{n:03}.md", any_text(0.5), title=any_text(0.1), summary=""),
            n=rng.randint(0, 9),
        )
        for n in range(160)
    ]


def stocked(mirror: Mirror) -> Iterator[Mirror]:
    mirror.apply([put(each, n=n) for n, each in HARBOUR])
    yield mirror
    mirror.close()


class TestSqlite(RankingContract):
    @pytest.fixture
    def open_mirror(self, tmp_path: Path) -> Opener:
        return partial(SqliteMirror, tmp_path / ".notebook" / "mirror.db")

    @pytest.fixture(scope="class")
    @classmethod
    def harbour(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
        yield from stocked(SqliteMirror(tmp_path_factory.mktemp("harbour") / "mirror.db"))

    @pytest.mark.parametrize("query", ["ferry", "ferry lamp", "fog tide ferry", "quay lamp ferry pier", "quay nowhere"])
    @pytest.mark.parametrize("filter", [Filter(), Filter(tags=("even",)), Filter(below=("pages",))])
    def test_the_best_come_first_however_few_notes_are_scored(
        self, mirror: Mirror, few_scored: Callable[[int], None], query: str, filter: Filter
    ) -> None:
        mirror.apply(some_notes(Random(8)))
        exact = [row["id"] for row in mirror.search(query, 500, filter)]
        few_scored(60)
        assert [row["id"] for row in mirror.search(query, 10, filter)] == exact[:10]
        whole = [row["id"] for row in mirror.search(query, 20, filter)]
        assert len(whole) == min(20, len(exact))
        assert all([row["id"] for row in mirror.search(query, n, filter)] == whole[:n] for n in (1, 5, 19))

    @pytest.mark.parametrize("seed", range(6))
    def test_what_is_passed_over_is_not_among_the_best(
        self, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, seed: int
    ) -> None:
        rng = Random(seed)
        words = ("ferry", "lamp", "pier", "tide", "fog", "quay", "buoy", "ferries", "none", "_")
        filters = (Filter(), Filter(of_channels=("channels/scribe",)), Filter(below=("channels", "pages/even")))
        mirror.apply(mixed_notes(rng))
        asked = [
            (" ".join(rng.sample(words, rng.randint(1, 6))), rng.choice((1, 2, 3, 7, 20)), rng.choice(filters))
            for _ in range(60)
        ]
        found = []
        for few, spare in ((0, 50), (0, 0), (10**6, 50)):
            monkeypatch.setattr(sqlite_search, "_FEW", few)
            monkeypatch.setattr(sqlite_search, "_SPARE", spare)  # with none, a filter leaves out too many of the best
            found.append([[(row["id"], row["score"]) for row in mirror.search(*one)] for one in asked])
        assert found[0] == found[1] == found[2]

    def test_notes_without_the_words_that_tell_most_are_passed_over(
        self, mirror: Mirror, few_scored: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        few_scored(1000)
        rare = [put(note(f"pages/rare{n}.md", "quokka harbour", title="", summary="")) for n in range(3)]
        some = [put(note(f"pages/some{n}.md", "harbour pier", title="", summary="")) for n in range(30)]
        mirror.apply([*rare, *some, *many(60)])
        scored = []

        def counted(db: Any, *asked: Any) -> Any:
            scored.append(len(found := first(db, *asked)))
            return found

        first = sqlite_search._first
        monkeypatch.setattr(sqlite_search, "_first", counted)
        assert len(mirror.search("harbour quokka pier", 3)) == 3
        assert sum(scored) == 3
        scored.clear()
        assert len(mirror.search("harbour quokka pier", 4)) == 4
        assert sum(scored) == 33

    def test_a_word_that_half_of_the_notes_have_is_looked_for_where_room_is_left(self, mirror: Mirror) -> None:
        mirror.apply([put(note(f"pages/{n}.md", "harbour " * (n + 1), title="", summary="")) for n in range(5)])
        mirror.apply([put(note("pages/rare.md", "of the quokka and much else beside it", title="", summary=""))])
        assert [row["id"] for row in mirror.search("harbour quokka", 1)] == ["pages/rare"]
        found = mirror.search("harbour quokka", 4)
        assert found[0]["id"] == "pages/rare"
        assert len(found) == 4
        assert [row["score"] for row in found] == sorted((row["score"] for row in found), reverse=True)

    @pytest.mark.parametrize("folder", ["pages", "channels/scribe/global"])
    @pytest.mark.parametrize("are_few", [True, False])
    def test_what_is_found_does_not_depend_on_the_order_in_which_notes_came(
        self, tmp_path: Path, few_scored: Callable[[int], None], folder: str, are_few: bool
    ) -> None:
        texts = [note(f"{folder}/{n:03}.md", "harbour " * (1 + n % 3), title="", summary="") for n in range(150)]
        written = [put(each, n=each.path < f"{folder}/100") for each in texts]
        if are_few:
            few_scored(20)
        found = []
        for name, puts in (("one", written), ("other", written[::-1]), ("third", written[70:] + written[:70])):
            mirror = SqliteMirror(tmp_path / name / "mirror.db")
            mirror.apply(puts)
            found.append([row["id"] for row in mirror.search("harbour", 10)])
            mirror.close()
        assert len(found[0]) == 10
        assert found[0] == found[1] == found[2]

    @pytest.mark.parametrize("folder", ["pages", "channels/scribe/global"])
    def test_an_old_note_with_the_word_in_its_title_or_with_a_rare_word_is_not_missed(
        self, mirror: Mirror, few_scored: Callable[[int], None], folder: str
    ) -> None:
        old = note(f"{folder}/old.md", "and more", title="Harbour", summary="")
        rare = note(f"{folder}/rare.md", "the harbour of the quokka", title="", summary="")
        others = (note(f"{folder}/{n}.md", "harbour, harbour", title="", summary="") for n in range(60))
        mirror.apply([put(old), put(rare), *(put(each, n=9) for each in others)])
        few_scored(20)
        assert [row["id"] for row in mirror.search("harbour", 1)] == [f"{folder}/old"]
        assert f"{folder}/rare" in [row["id"] for row in mirror.search("quokka harbour", 2)]

    def test_a_number_that_has_come_to_be_another_notes_shows_nothing_of_that_note(
        self, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lamp, berth = note("pages/lamp.md", "lamp"), note("channels/pilot/global/berth.md", "the berth")
        mirror.apply([put(lamp)])

        def overtaken(*asked: Any) -> list[tuple[int, float]]:
            found = best(*asked)
            mirror.apply([Remove("pages/lamp", lamp.digest)])
            mirror.refs_written(mirror.pending())
            mirror.apply([put(berth)])
            return found

        best = sqlite_search.best
        monkeypatch.setattr(sqlite, "best", overtaken)
        assert mirror.search("lamp", 5, Filter(of_channels=())) == []

    def test_of_a_note_that_is_gone_for_good_no_row_is_left(self, mirror: Mirror, tmp_path: Path) -> None:
        secret = note("channels/pilot/global/berth.md", "the berth")
        mirror.apply([put(secret)])
        mirror.apply([Remove("channels/pilot/global/berth", secret.digest)])
        mirror.refs_written(mirror.pending())
        with closing(sqlite3.connect(tmp_path / ".notebook" / "mirror.db")) as file:
            assert file.execute("SELECT (SELECT count(*) FROM note), (SELECT count(*) FROM body)").fetchone() == (0, 0)


@pytest.fixture
def few_scored(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """From when it is called, a notebook of some dozen notes is searched as one of very many is."""

    def make_few(count: int) -> None:
        monkeypatch.setattr(sqlite_search, "_FEW", 0)
        monkeypatch.setattr(sqlite_search, "_MOST", count)
        monkeypatch.setattr(sqlite_search, "_NEWEST", count)

    return make_few


class TestMongo(RankingContract):
    @pytest.fixture
    def open_mirror(self, mongodb_url: str, mongo_database: str) -> Opener:
        return partial(MongoMirror, mongodb_url, mongo_database, timeout_seconds=30.0)

    @pytest.fixture(scope="class")
    @classmethod
    def harbour(cls, mongodb_url: str) -> Iterator[Mirror]:
        name = f"notebook_test_{uuid.uuid4().hex}"
        yield from stocked(MongoMirror(mongodb_url, name, timeout_seconds=30.0))
        client: pymongo.MongoClient[Any] = pymongo.MongoClient(mongodb_url)
        with client:
            client.drop_database(name)

    @pytest.mark.parametrize(
        ("filter", "index"),
        [
            (Filter(created_by="agent:scribe"), "metadata.created_by_1"),
            (Filter(tags=("light", "pier")), "metadata.tags_1"),
            (Filter(below=("pages/boats",)), "path_unique"),
            (Filter(since=T0 + timedelta(seconds=50)), "metadata.updated_at_-1__id_1"),
        ],
    )
    def test_an_index_answers_a_narrow_filter(
        self, mirror: Mirror, mongodb_url: str, mongo_database: str, filter: Filter, index: str
    ) -> None:
        mirror.apply([*many(60), *(put(each, n=n) for n, each in HARBOUR)])
        client: pymongo.MongoClient[Any] = pymongo.MongoClient(mongodb_url)
        with client:
            asked = client[mongo_database].pages.find(admitting(filter)["pages"])
            plan = str(asked.explain()["queryPlanner"]["winningPlan"])
        assert index in plan
        assert "COLLSCAN" not in plan

    def test_an_index_has_the_notes_of_channels_in_the_order_in_which_they_were_made(
        self, mirror: Mirror, mongodb_url: str, mongo_database: str
    ) -> None:
        mirror.apply([put(each, n=n) for n, each in HARBOUR])
        client: pymongo.MongoClient[Any] = pymongo.MongoClient(mongodb_url)
        order = {"metadata.created_at": -1, "metadata.updated_at": -1, "_id": 1}
        with client:
            asked = client[mongo_database].channels.find({"gone": False}).sort(order).limit(1)
            plan = str(asked.explain()["queryPlanner"]["winningPlan"])
        assert "metadata.created_at_-1_metadata.updated_at_-1__id_1" in plan
        assert "'SORT'" not in plan
