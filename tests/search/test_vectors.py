"""The nearest vectors are those that a comparison with each would find, whatever changed meanwhile."""

import math
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from notebook_sync.errors import MissingExtra
from notebook_sync.search.vectors import Vector, VectorIndex, cosine, pack_vector, sum_of
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Row

SIZE = 16


def some_numbers(random: Random, count: int = 1) -> list[list[float]]:
    return [[random.gauss(0, 1) for _ in range(SIZE)] for _ in range(count)]


def row(name: str, numbers: list[list[float]], model: str = "m", collection: str = "documents") -> Row:
    codes = b"".join(map(pack_vector, numbers))
    return {"id": f"{collection}:{name}", "model": model, "size": SIZE, "codes": codes}


def exact(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


def agrees(found: list[tuple[str, float]], held: dict[str, list[list[float]]], query: list[float], count: int) -> None:
    true = {name: max(exact(query, each) for each in passages) for name, passages in held.items()}
    cosines = [cosine for _, cosine in found]
    assert cosines == sorted(cosines, reverse=True)
    assert cosines == pytest.approx(sorted(true.values(), reverse=True)[: len(cosines)], abs=0.01)
    assert cosines == pytest.approx([true.pop(name) for name, _ in found], abs=0.01)
    assert len(found) == count or max(true.values(), default=0.0) < 0.01


def test_the_nearest_are_found_after_any_change(index: Index) -> None:
    random = Random(1)
    held = {f"n{n}": some_numbers(random, n % 4 + 1) for n in range(60)}
    index.vectors.put([row(name, numbers) for name, numbers in held.items()])
    other = some_numbers(random)
    index.vectors.put([row("other", other, "another model"), row("fact", other, collection="facts")])
    index.vectors.put(
        [row("empty", []), row("zero", [[0.0] * SIZE]), {**row("odd", other), "size": 3, "codes": b"123"}]
    )
    vectors = VectorIndex(index, "documents", "m")
    for change in range(8):
        (query,) = some_numbers(random)
        asked = pack_vector(query)
        agrees(vectors.nearest(asked, 10), held, query, 10)
        some = {name: found for name, found in held.items() if name.endswith("3")}
        agrees(vectors.nearest(asked, 10, set(some)), some, query, 10)
        true = {name: max(exact(query, each) for each in found) for name, found in some.items()}
        assert vectors.cosines(asked, [*some, "empty", "odd", "none"]) == pytest.approx(true, abs=0.01)
        if change % 3 == 0:
            held["n1"] = some_numbers(random, 2)
            index.vectors.put([row("n1", held["n1"])])
        elif change % 3 == 1:
            del held[f"n{change + 10}"]
            index.vectors.delete([f"documents:n{change + 10}"])
        else:
            held["moved"] = held.pop("n3", held.get("moved", []))
            index.vectors.rename({"documents:n3": "documents:moved"})


def test_a_row_with_many_near_passages_hides_no_other(index: Index) -> None:
    (query,) = some_numbers(Random(1))
    index.vectors.put([row("long", [query] * 100), *(row(f"n{n}", [[*query[:-1], n]]) for n in range(2, 5))])
    found = VectorIndex(index, "documents", "m").nearest(pack_vector(query), 4)
    assert [name for name, _ in found] == ["long", "n2", "n3", "n4"]


def test_the_nearest_of_many_are_those_of_a_comparison_with_each(index: Index) -> None:
    random = Random(2)
    (query,) = some_numbers(random)
    opposite = [-number for number in query]
    held = {f"n{n}": some_numbers(random, 1 + n % 30) for n in range(300)} | {"same": [query], "not": [opposite]}
    index.vectors.put([row(name, numbers) for name, numbers in held.items()])
    vectors = VectorIndex(index, "documents", "m")
    for count in (1, 10, 250):
        agrees(vectors.nearest(pack_vector(query), count), held, query, count)
    assert vectors.nearest(pack_vector(query), 1) == [("same", pytest.approx(1, abs=1e-4))]
    assert "not" not in dict(vectors.nearest(pack_vector(query), 400))


def test_nothing_is_near_where_there_are_no_vectors(index: Index, tmp_path: Path) -> None:
    vectors = VectorIndex(index, "documents", "m")
    numbers = some_numbers(Random(1))
    query = pack_vector(numbers[0])
    assert (vectors.nearest(query, 5), vectors.cosines(query, ["a"])) == ([], {})
    index.vectors.put([row("a", numbers)])
    assert [name for name, _ in vectors.nearest(query, 5)] == ["a"]
    (tmp_path / "index.db").unlink()
    assert vectors.nearest(query, 5) == []


@pytest.mark.parametrize("numbers", [[3.0, -4.0], [1e9, -1e-9], [5e-324, 0.0], [1e308, 1e308], [1, 2]])
def test_a_vector_keeps_the_direction_of_its_numbers(numbers: list[float]) -> None:
    vector, largest = array("b", pack_vector(numbers)), max(map(abs, numbers))
    assert max(map(abs, vector)) == 127
    assert exact(vector, [number / largest for number in numbers]) > 0.9999


def test_a_sum_has_the_direction_of_all() -> None:
    numbers = [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, 0.0, -1.0]]
    packed: list[Vector] = [pack_vector(each) for each in numbers]
    total = sum_of(b"".join(packed), 3)
    assert cosine(total, array("f", [1, 1, 0])) == pytest.approx(1, abs=0.01)
    assert cosine(sum_of(packed[0], 3), array("f", numbers[0])) == pytest.approx(1, abs=0.01)


def test_without_its_package_the_extra_is_named(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simsimd", None)
    index.vectors.put([row("a", some_numbers(Random(1)))])
    with pytest.raises(MissingExtra, match="search by meaning"):
        VectorIndex(index, "documents", "m").nearest(bytes(SIZE), 1)
