"""Rows go in, and come out as they were; what the database keeps stays."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from notebook_sync.errors import NotebookError
from notebook_sync.store.index import Index
from notebook_sync.store.rows import EVERYTHING, Has, Is, Row, Where
from tests.store.rows_for_tests import T0, document, entry, fact

ALL_KEPT = {
    "version": 1,
    "created_at": T0,
    "access_count": 3,
    "last_accessed": T0 + timedelta(hours=1),
    "score": 0.25,
}


def test_a_row_comes_back_as_it_was(index: Index) -> None:
    row = document(
        needs_review=True,
        tags=["a", "a/b"],
        links=["other"],
        fields={"kind": "x", "n": [1, None, 2.5]},
        problems=[[3, "odd", False]],
        code="x = 1",
        sections=[["Plan", 1, "plan", 1, 0, 34]],
        extra={"mood": "calm"},
        terms=" of the title \n" * 300,
        score=0.5,
    )
    index.documents.put([row])
    found = index.documents.get(["pages/plan"])["pages/plan"]
    computed = {"needs_review": 1, "aliases": [], "version": 1, "status": None, "rev": 1}
    assert {name: found[name] for name in {**row, **computed}} == {**row, **computed}
    light = index.documents.get(["pages/plan"], heavy=False)["pages/plan"]
    assert not light.keys() & {"content", "code", "sections", "extra", "terms"}
    assert index.documents.one("nobody") is None
    assert index.documents.find(fields=("id", "content")) == [{"id": "pages/plan", "content": "first text"}]


@pytest.mark.parametrize(
    "text", ["$set", "a\0b", "x\ud800y", "'; DROP TABLE documents;--", '"', "🧑‍🚀 naïve ﷽", "%", ""]
)
def test_text_is_data(index: Index, text: str) -> None:
    stored = text.replace("\0", "\ufffd").replace("\ud800", "?")
    row_id, heavy = f"pages/{text}", {"extra": {text: [text]}, "code": text}
    index.documents.put([document(id=row_id, title=text, content=text, tags=[text], topic=text, **heavy)])
    found = index.documents.get([f"pages/{stored}"])[f"pages/{stored}"]
    assert (found["title"], found["content"], found["tags"], len(found["extra"])) == (stored, stored, [stored], 1)
    for where in (Is("title", "=", text), Is("topic", "in", [text, None]), Has("tags", (text,)), Is("id", "=", row_id)):
        assert index.documents.count(where) == 1
    assert index.documents.distinct("tags") == {stored: 1}
    index.documents.delete([row_id])
    assert index.documents.count() == 0


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (2**70, 2**70),
        ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "None": "b", "(1, 2)": "c"}),
        ({"when": date(2026, 1, 2), "at": T0}, {"when": "2026-01-02", "at": "2026-03-01T09:00:00.123000Z"}),
        ({"set": {1}, "big": [-(2**64)], "odd": "\ud800"}, {"set": [1], "big": [-(2**64)], "odd": "?"}),
        (float("nan"), None),
    ],
)
def test_odd_values_of_frontmatter_are_stored(index: Index, value: Any, stored: Any) -> None:
    index.documents.put([document(extra=value)])
    assert index.documents.get(["pages/plan"])["pages/plan"]["extra"] == stored


def test_endless_nesting_is_cut(index: Index) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    index.documents.put([document(extra={"deep": deep, "flat": 1})])
    assert index.documents.find(fields=("extra",))[0]["extra"]["flat"] == 1


def test_numbers_are_clamped(index: Index) -> None:
    index.attachments.put([{"id": "a", "size": 2**64, "mtime_ns": -(2**64)}])
    index.documents.put([document(score=float("inf"))])
    index.counters.put([{"id": "n", "value": 2**63 - 2}])
    index.counters.update(EVERYTHING, inc={"value": 5})
    assert index.attachments.tuples(("size", "mtime_ns")) == [(2**63 - 1, -(2**63))]
    assert (index.documents.tuples(("score",)), index.counters.tuples(("value",))) == ([(None,)], [(2**63 - 1,)])


def test_a_row_that_cannot_be_stored_changes_nothing(index: Index) -> None:
    with pytest.raises(TypeError):
        index.documents.put([document("fine"), document(updated_at=datetime(2026, 1, 1))])
    assert index.documents.count() == index.rev() == 0


def test_put_sets_what_comes_from_the_file_and_nothing_else(index: Index) -> None:
    index.documents.put([document(topic="sea", tags=["a"], **ALL_KEPT)])
    index.documents.put([document(content="second text", tags=["b"], access_count=99, created_at=T0 + timedelta(1))])
    assert index.documents.find(fields=(*ALL_KEPT,)) == [{**ALL_KEPT, "version": 2}]
    assert index.documents.find(fields=("topic", "tags", "content")) == [
        {"topic": None, "tags": ["b"], "content": "second text"}
    ]
    assert index.documents.count(Has("tags", ("a",))) == 0


def test_an_equal_row_is_no_change(index: Index) -> None:
    index.documents.put([document()])
    index.documents.put([document("other", "replaced in the batch"), document(), document("other")])
    assert sorted(index.documents.tuples(("rev", "id"))) == [(1, "pages/plan"), (2, "pages/other")]
    index.documents.update(Is("id", "=", "pages/plan"), set={"stale": "unreadable"}, stamp=True)
    index.documents.put([document()])  # equal to what was put, but not to what is there
    assert index.documents.tuples(("stale", "rev"), Is("id", "=", "pages/plan")) == [(None, 4)]


def test_a_path_goes_to_the_row_that_is_put(index: Index) -> None:
    index.documents.put([document("a"), document("b")])
    index.documents.put([document("a", path="pages/b.md")])
    assert sorted(index.documents.tuples(("id", "path"))) == [("pages/a", "pages/b.md"), ("pages/b", None)]
    assert [change.id for change in index.changes(2, 10)] == ["pages/a", "pages/b"]
    index.documents.put([document("a", path="pages/b.md"), document("b", path="pages/a.md")])
    index.documents.put([document("a", path="pages/a.md"), document("b", path="pages/b.md")])  # exchanged in one batch
    assert sorted(index.documents.tuples(("id", "path"))) == [("pages/a", "pages/a.md"), ("pages/b", "pages/b.md")]


def test_an_event_happens_once(index: Index) -> None:
    index.events.put([{"id": "1", "key": "a"}, {"id": "2", "key": "a"}, {"id": "3"}, {"id": "4"}])
    index.events.put([{"id": "5", "key": "a"}, {"id": "6", "key": "b"}])
    assert sorted(index.events.tuples(("id", "key"))) == [("1", "a"), ("3", None), ("4", None), ("6", "b")]


def test_update_changes_kept_and_observed_columns(index: Index) -> None:
    index.documents.put([document("a"), document("b")])
    where = Is("id", "=", "pages/a")
    assert index.documents.update(where, set={"score": 0.5, "stamp": [9, 9, 9, 9]}, inc={"access_count": 2}) == 1
    index.documents.update(where, inc={"access_count": 1}, set={"last_accessed": None})
    assert index.documents.tuples(("score", "access_count", "stamp"), where) == [(0.5, 3, [9, 9, 9, 9])]
    assert index.rev() == 2
    assert index.documents.update(EVERYTHING, stamp=True) == 2
    assert [change.rev for change in index.changes(2, 9)] == [3, 4]


@pytest.mark.parametrize(
    ("collection", "column"),
    [
        ("documents", "title"),
        ("documents", "content"),
        ("documents", "audience"),
        ("documents", "path"),
        ("documents", "digest"),
        ("documents", "tags"),
        ("documents", "topic"),
        ("facts", "content"),
        ("stream", "content"),
        ("events", "key"),
        ("counters", "rev"),
    ],
)
def test_update_refuses_what_only_a_file_may_say(index: Index, collection: str, column: str) -> None:
    with pytest.raises(ValueError, match="is set by put only"):
        index.collections[collection].update(EVERYTHING, set={column: "x"})


def test_a_rename_takes_everything_along(index: Index) -> None:
    index.documents.put([document("a", "anchor", **ALL_KEPT), document("b", "boat")])
    index.history.put([{"id": f"pages/{n}@1", "note": f"pages/{n}", "version": 1, "summary": n} for n in "ab"])
    index.vectors.put([{"id": "documents:pages/a", "model": "m", "codes": b"1"}])
    index.documents.rename({"pages/a": "pages/b", "pages/b": "pages/a"})
    assert index.documents.tuples(("id", "access_count", "rev")) == [("pages/b", 3, 3), ("pages/a", 0, 4)]
    assert index.history.tuples(("id", "note", "summary")) == [
        ("pages/b@1", "pages/b", "a"),
        ("pages/a@1", "pages/a", "b"),
    ]
    assert index.vectors.find(fields=("id", "codes")) == [{"id": "documents:pages/b", "codes": b"1"}]
    index.documents.rename({"pages/b": "pages/c", "nobody": "pages/d"})
    assert [(change.id, change.row is None) for change in index.changes(4, 9)] == [
        ("pages/c", False),
        ("pages/b", True),
    ]
    assert (index.documents.ended(), list(index.documents.search(["anchor"]))) == ([], ["pages/c"])
    with pytest.raises(NotebookError, match="UNIQUE"):
        index.documents.rename({"pages/c": "pages/a"})
    assert index.documents.count() == 2


def test_an_ended_row_comes_back_with_what_was_kept(index: Index) -> None:
    index.documents.put([document(tags=["a"], **ALL_KEPT)])
    index.history.put([{"id": "pages/plan@1", "note": "pages/plan", "version": 1}])
    index.vectors.put([{"id": "documents:pages/plan", "model": "m", "codes": b"1", "scales": b"1234"}])
    index.documents.delete(["pages/plan", "nobody"])
    assert (index.documents.count(), index.vectors.count(), index.documents.distinct("tags")) == (0, 0, {})
    assert [(change.id, change.row) for change in index.changes(0, 9)] == [("pages/plan", None)]
    (gone,) = index.documents.ended(Is("id", "=", "pages/plan"))
    digest = document()["digest"]
    about = {"id": "pages/plan", "path": "pages/plan.md", "digest": digest, "rev": 2}
    assert gone == {**ALL_KEPT, **about, "ended_at": gone["ended_at"]}
    later = Is("ended_at", ">=", datetime.now(UTC) + timedelta(hours=1))
    assert index.documents.ended(Is("digest", "in", [digest, "x"])) == [gone]
    assert index.documents.ended(later) == index.documents.ended(Is("digest", "=", "x")) == []
    index.documents.rename({"pages/plan": "pages/moved"})
    index.documents.put([document("moved", access_count=0)])
    assert index.documents.find(fields=(*ALL_KEPT,)) == [ALL_KEPT]
    assert (index.history.tuples(("note",)), index.documents.ended()) == ([("pages/moved",)], [])


def test_rows_without_a_feed_are_deleted(index: Index) -> None:
    index.cache.put([{"id": "a", "value": {"x": 1}}, {"id": "b"}])
    index.cache.delete(["a"])
    index.cache.put([{"id": "b", "value": 1}, {"id": "c", "value": 2}])
    index.cache.put([{"id": "b"}])
    assert (sorted(index.cache.tuples(("id", "value"))), index.changes(0, 9)) == ([("b", None), ("c", 2)], [])


def test_the_feed_has_each_row_once_at_its_last_change(index: Index) -> None:
    index.documents.put([document(f"n{n}") for n in range(3)])
    index.facts.put([fact("f1"), fact("f2")])
    index.stream.put([entry("s1", "said")])
    index.cache.put([{"id": "not published"}])
    index.documents.put([document("n1", "changed")])
    index.facts.delete(["f1"])
    changes = index.changes(0, 99)
    assert [(change.rev, change.id, change.row and change.row["content"]) for change in changes] == [
        (1, "pages/n0", "first text"),
        (3, "pages/n2", "first text"),
        (5, "f2", "the sea is wide"),
        (6, "s1", "said"),
        (7, "pages/n1", "changed"),
        (8, "f1", None),
    ]
    assert [change.collection for change in index.changes(5, 2, ["facts", "stream"], heavy=False)] == [
        "stream",
        "facts",
    ]
    index.raise_rev(100)
    index.documents.put([document("n9")])
    assert (index.rev(), index.changes(0, 9, [])) == (101, [])


PAGES: list[tuple[list[str], Where]] = [
    (["-updated_at", "id"], EVERYTHING),
    (["updated_at", "title", "id"], Is("title", "!=", "n3")),
    (["status", "-updated_at", "id"], EVERYTHING),
    (["-status", "id"], EVERYTHING),
    (["id"], Has("tags", ("odd", "none"))),
]


@pytest.mark.parametrize(("order", "where"), PAGES)
def test_pages_have_each_row_once_in_order(index: Index, order: list[str], where: Where) -> None:
    rows = [
        document(f"n{n}", day=n // 3, status=[None, "draft", "done"][n % 3], tags=["odd"] if n % 2 else [])
        for n in range(20)
    ]
    rows += [document("timeless", updated_at=None), document("also timeless", updated_at=None)]
    index.documents.put(rows)
    whole = index.documents.find(where, order=order)
    pages: list[Row] = []
    while page := index.documents.find(
        where, order=order, limit=3, after=[pages[-1][name.lstrip("-")] for name in order] if pages else None
    ):
        pages += page
    assert (pages, len(pages)) == (whole, index.documents.count(where))
    assert index.documents.find(where, limit=0) == []


def test_an_unknown_column_is_an_error(index: Index) -> None:
    for call in (
        lambda: index.documents.find(Is("x", "=", 1)),
        lambda: index.documents.find(order=["x"]),
        lambda: index.documents.tuples(["x"]),
        lambda: index.documents.update(EVERYTHING, set={"x": 1}),
        lambda: index.documents.find(Has("title", ("x",))),
    ):
        with pytest.raises((KeyError, ValueError), match=r"x|title|not in"):
            call()
