"""The nearest vectors are those that a comparison with each would find, whatever changed meanwhile."""

import sys
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.errors import MissingExtra
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Row
from notebook_sync.store.vectors import VectorIndex

np = pytest.importorskip("numpy")
DIMENSIONS = 16


def unit(rng: Any, count: int) -> Any:
    vectors = rng.normal(size=(count, DIMENSIONS)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def row(name: str, vectors: Any, model: str = "m", collection: str = "documents") -> Row:
    scales = (np.abs(vectors).max(axis=1, initial=0.0) / 127).astype(np.float32)
    codes = np.rint(vectors / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    return {"id": f"{collection}:{name}", "model": model, "codes": codes.tobytes(), "scales": scales.tobytes()}


def agrees(found: list[tuple[str, float]], held: dict[str, Any], query: Any, count: int) -> None:
    exact = {name: float((vectors @ query).max()) for name, vectors in held.items()}
    wanted = sorted((cosine for cosine in exact.values() if cosine > 0), reverse=True)[:count]
    cosines = [cosine for _, cosine in found]
    assert cosines == sorted(cosines, reverse=True)
    assert cosines == pytest.approx(wanted, abs=0.01)
    assert cosines == pytest.approx([exact[name] for name, _ in found], abs=0.01)


def test_the_nearest_are_found_after_any_change(index: Index) -> None:
    rng = np.random.default_rng(1)
    held = {f"n{n}": unit(rng, n % 4 + 1) for n in range(60)}
    index.vectors.put([row(name, vectors) for name, vectors in held.items()])
    index.vectors.put([row("other", unit(rng, 1), "another model"), row("fact", unit(rng, 1), collection="facts")])
    index.vectors.put([row("empty", unit(rng, 0)), row("zero", np.zeros((1, DIMENSIONS), np.float32))])
    index.vectors.put([{**row("odd", unit(rng, 1)), "codes": b"123"}])
    vectors = VectorIndex(index, "documents", "m")
    for change in range(8):
        query = unit(rng, 1)[0]
        agrees(vectors.nearest(query, 10), held, query, 10)
        some = {name: found for name, found in held.items() if name.endswith("3")}
        agrees(vectors.nearest(query, 10, set(some)), some, query, 10)
        exact = {name: float((found @ query).max()) for name, found in some.items()}
        assert vectors.cosines(query, [*some, "empty", "odd", "none"]) == pytest.approx(exact, abs=0.01)
        if change % 3 == 0:
            held["n1"] = unit(rng, 2)
            index.vectors.put([row("n1", held["n1"])])
        elif change % 3 == 1:
            del held[f"n{change + 10}"]
            index.vectors.delete([f"documents:n{change + 10}"])
        else:
            held["moved"] = held.pop("n3", held.get("moved"))
            index.vectors.rename({"documents:n3": "documents:moved"})


def test_nothing_is_near_where_there_are_no_vectors(index: Index, tmp_path: Path) -> None:
    vectors = VectorIndex(index, "documents", "m")
    query = unit(np.random.default_rng(1), 1)[0]
    assert (vectors.nearest(query, 5), vectors.cosines(query, ["a"])) == ([], {})
    index.vectors.put([row("a", query[None])])
    assert [name for name, _ in vectors.nearest(query, 5)] == ["a"]
    (tmp_path / "index.db").unlink()
    assert vectors.nearest(query, 5) == []


@pytest.mark.parametrize("missing", ["numpy", "simsimd"])
def test_without_its_packages_the_extra_is_named(index: Index, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match="search by meaning"):
        VectorIndex(index, "documents", "m").nearest([], 1)
