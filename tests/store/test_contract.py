"""The index against simpler models of it: conditions, and what is kept whatever happens to the files."""

import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from notebook_sync.store.collections import DOCUMENTS
from notebook_sync.store.index import Index
from notebook_sync.store.rows import All, Either, Has, Is, Not, Row, Where
from notebook_sync.store.tables import Table
from tests.store.rows_for_tests import T0, document, open_index

NAMES = ["a", "a/b", "a/b/c", "a0", "ä", "", "A", "%", "漢"]
VALUES: dict[str, list[Any]] = {
    "title": [*NAMES, None],
    "topic": [*NAMES, None],
    "audience": [*NAMES, None],
    "updated_at": [None, *(T0 + timedelta(days=n) for n in range(3))],
    "word_count": [None, 0, 1, -1, 2**63 - 1, -(2**63)],
    "score": [None, 0.0, 0.25, -1.5],
}


def conditions() -> st.SearchStrategy[Where]:
    compared = st.sampled_from(sorted(VALUES)).flatmap(
        lambda name: (
            st.builds(Is, st.just(name), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), _one_of(name))
            | st.builds(Is, st.just(name), st.just("in"), st.lists(_one_of(name), max_size=3))
        )
    )
    under = st.builds(
        Is, st.sampled_from(["title", "topic"]), st.just("under"), st.sampled_from(["a", "a/b", "a/", "x"])
    )
    has = st.builds(Has, st.sampled_from(["tags", "links"]), st.lists(st.sampled_from(NAMES), max_size=2).map(tuple))
    return st.recursive(
        compared | under | has,
        lambda inner: (
            st.builds(Not, inner)
            | st.builds(All, st.lists(inner, max_size=3).map(tuple))
            | st.builds(Either, st.lists(inner, max_size=3).map(tuple))
        ),
        max_leaves=6,
    )


def matches(where: Where, row: Row) -> bool:
    """What `Where` says, in Python."""
    match where:
        case All(inner):
            return all(matches(each, row) for each in inner)
        case Either(inner):
            return any(matches(each, row) for each in inner)
        case Not(inner):
            return not matches(inner, row)
        case Has(field, wanted):
            return bool({*row[field]} & {*wanted})
    value, wanted = row[where.field], where.value
    if where.op in ("=", "!="):
        return bool((value == wanted) == (where.op == "="))
    if where.op == "in":
        return value in wanted
    if where.op == "under":
        return value is not None and value.startswith(wanted.rstrip("/") + "/")
    if value is None or wanted is None:
        return False
    return bool({"<": value < wanted, "<=": value <= wanted, ">": value > wanted, ">=": value >= wanted}[where.op])


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Every text, time and number in each column, and each pair of lists."""
    return [
        document(
            f"n{n}",
            **{name: found[(n * (at + 1) + n // 7) % len(found)] for at, (name, found) in enumerate(VALUES.items())},
            tags=NAMES[n % 9 : n % 9 + n % 3],
            links=NAMES[: n % 4],
        )
        for n in range(90)
    ]


@pytest.fixture(scope="module")
def filled(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    index = open_index(tmp_path_factory.mktemp("filled"))
    index.documents.put([*rows, document("ended", title="a")])
    index.documents.delete(["pages/ended"])
    yield index
    index.close()


@settings(max_examples=120)
@given(conditions())
def test_a_condition_admits_what_it_says(filled: Index, rows: list[Row], where: Where) -> None:
    wanted = sorted(row["id"] for row in rows if matches(where, row))
    assert sorted(row["id"] for row in filled.documents.find(where, fields=("id",))) == wanted
    assert filled.documents.count(where) == len(wanted)
    assert sum(filled.documents.distinct("title", where).values()) == len(wanted)


@given(st.sampled_from(["=", "<", "under", "in"]), st.text())
def test_no_value_is_ever_part_of_the_statement(op: Any, text: str) -> None:
    values: list[Any] = []
    table = Table(DOCUMENTS)
    statement = table.compile(Is("title", op, [text] if op == "in" else text), values)
    assert statement == table.compile(Is("title", op, ["x"] if op == "in" else "x"), [])
    assert values


class KeptColumns(RuleBasedStateMachine):
    """Notes are written, moved, deleted and come back; the index is lost and restored. Nothing that is kept is lost."""

    ids = st.sampled_from([f"pages/n{n}" for n in range(5)])

    @initialize()
    def start(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.index = open_index(self.folder)
        self.files: dict[str, str] = {}
        self.kept: dict[str, list[Any]] = {}  # id: version, uses, digest

    def teardown(self) -> None:
        with self.index.write() as db:  # FTS5 compares what it knows with what it should have been given
            db.execute("INSERT INTO documents_words (documents_words) VALUES ('integrity-check')")
        self.index.close()
        self.temporary.cleanup()

    @rule(row_id=ids, content=st.sampled_from(["one", "two", "three"]))
    def write(self, row_id: str, content: str) -> None:
        row = _page(row_id, content)
        self.index.documents.put([row])
        self.files[row_id] = content
        version, uses, digest = self.kept.get(row_id, [1, 0, row["digest"]])
        self.kept[row_id] = [version + (digest != row["digest"]), uses, row["digest"]]

    @rule(row_id=ids)
    def use(self, row_id: str) -> None:
        used = self.index.documents.update(Is("id", "=", row_id), inc={"access_count": 1})
        assert used == (row_id in self.files)
        if used:
            self.kept[row_id][1] += 1

    @rule(row_id=ids)
    def delete(self, row_id: str) -> None:
        self.index.documents.delete([row_id])
        self.files.pop(row_id, None)

    @rule(old=ids, new=ids)
    def move(self, old: str, new: str) -> None:
        if old == new or (new in self.files and old in self.kept):
            return
        self.index.documents.rename({old: new})
        if old in self.kept:
            self.kept[new] = self.kept.pop(old)
        if old in self.files:
            self.files[new] = self.files.pop(old)

    @rule(first=ids, second=ids)
    def exchange(self, first: str, second: str) -> None:
        if first != second and first in self.files and second in self.files:
            self.index.documents.rename({first: second, second: first})
            self.files[first], self.files[second] = self.files[second], self.files[first]
            self.kept[first], self.kept[second] = self.kept[second], self.kept[first]

    @precondition(lambda self: self.files)
    @rule()
    def lose_and_restore(self) -> None:
        self.index.dump(self.folder / "dump")
        (self.folder / "index.db").unlink()
        self.index.load_dump(self.folder / "dump")
        self.index.documents.put([_page(row_id, content) for row_id, content in self.files.items()])

    @rule()
    def sync_again(self) -> None:
        before = self.index.rev()
        self.index.documents.put([_page(row_id, content) for row_id, content in self.files.items()])
        assert [change for change in self.index.changes(before, 9) if change.row is None] == []

    @invariant()
    def all_is_there(self) -> None:
        rows = self.index.documents.find(heavy=True)
        assert {row["id"]: row["content"] for row in rows} == self.files
        kept = [*rows, *self.index.documents.ended()]
        found = {row["id"]: [row["version"], row["access_count"], row["digest"]] for row in kept}
        assert found == self.kept
        assert self.index.documents.search(["one"]).keys() == {
            row_id for row_id, content in self.files.items() if content == "one"
        }


TestKeptColumns = KeptColumns.TestCase
TestKeptColumns.settings = settings(max_examples=20, stateful_step_count=25, suppress_health_check=[*HealthCheck])


def _page(row_id: str, content: str) -> Row:
    return document(content=content, id=row_id, path=f"{row_id}.md", title="t")


def _one_of(name: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(VALUES[name])
