"""The benchmarks measure what they say, on a notebook small enough for the test run."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import pytest
import yaml

from . import limits, product
from .compiling import compile_all, specs, write_memories
from .corpus import note_paths, queries, write_corpus
from .follow import Follower, peak_of
from .measure import Bar, Result, alone, as_json, median_of, percentile, table
from .retrieval import packages_in, scores
from .vectors import embed


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.md")}


def test_a_note_is_the_same_whatever_the_size_of_the_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path / "small", 20)
    write_corpus(tmp_path / "large", 120)

    small, large = contents(tmp_path / "small"), contents(tmp_path / "large")

    assert set(note_paths(20)) < set(small)
    assert small.items() <= large.items()


def test_another_seed_gives_other_notes(tmp_path: Path) -> None:
    write_corpus(tmp_path / "one", 5, seed=1)
    write_corpus(tmp_path / "two", 5, seed=2)

    [first] = note_paths(1)
    assert (tmp_path / "one" / first).read_bytes() != (tmp_path / "two" / first).read_bytes()
    assert queries(5, seed=1) != queries(5, seed=2)


def test_notes_have_the_size_and_the_parts_that_are_announced(tmp_path: Path) -> None:
    size = write_corpus(tmp_path, 300)

    texts = [(tmp_path / path).read_text() for path in note_paths(300)]

    assert size == sum(map(len, contents(tmp_path).values()))
    assert 2600 < size / 300 < 2900
    for text in texts:
        _, front, body = text.split("---\n", 2)
        assert len(yaml.safe_load(front)) == 6
        assert body.count("\n## ") == 5
        assert body.count("\n# ") == 2  # the title, and a comment inside the fence
        assert body.count("\n```") == 2
        assert "[[" in body


def test_the_limit_finds_what_was_written(tmp_path: Path) -> None:
    root, database = tmp_path / "notebook", tmp_path / "raw.db"
    write_corpus(root, 20)

    assert alone(limits.cold_sync, root, database) > 0

    with sqlite3.connect(database) as connection:
        paths = {path for (path,) in connection.execute("SELECT path FROM notes")}
        word = (root / note_paths(1)[0]).read_text().split("# ")[1].split()[0]
        found = connection.execute(limits.SEARCH, (f'"{word}"', 20)).fetchall()
    connection.close()
    assert paths == set(contents(root))
    assert note_paths(1)[0] in {path for path, _, _ in found}
    assert len(limits.reconcile(root, 3)) == 3
    assert len(limits.search(database, queries(7), 5)) == 7


def test_a_follower_sees_a_save_and_ends_its_process(tmp_path: Path) -> None:
    write_corpus(tmp_path, 20)
    path = note_paths(7)[6]

    with Follower([sys.executable, limits.__file__, str(tmp_path)]) as follower:
        (tmp_path / path).write_text("changed")
        moment = follower.wait_for([path])
        assert 1 < follower.held() <= follower.peak()
        follower.forget()

    assert moment > 0
    assert follower.ended


def test_a_follower_whose_process_ends_early_says_so() -> None:
    with pytest.raises(RuntimeError, match="ended with 3"), Follower([sys.executable, "-c", "raise SystemExit(3)"]):
        pass


def test_peak_memory_counts_what_was_given_back() -> None:
    small = peak_of([sys.executable, "-c", "pass"])
    # It lives on (asleep) for several samples after it gave the memory back, so that only a high-water mark can tell.
    large = peak_of([sys.executable, "-c", "b = bytearray(60_000_000); del b; import time; time.sleep(0.3)"])

    assert large - small > 50


def test_a_bar_is_met_or_not() -> None:
    def result(measured: float, *bars: Bar) -> Result:
        return Result("row", "work", "s", measured, limit=2.0, bars=bars)

    assert result(7.0).within is None
    assert result(7.0, Bar(4, of_limit=True)).within
    assert not result(9.0, Bar(4, of_limit=True)).within
    assert not result(7.0, Bar(4, of_limit=True), Bar(5)).within
    assert not Result("row", "work", "s", 1.0, bars=(Bar(4, of_limit=True),)).within
    assert result(2.0, Bar(1, of_limit=True, is_floor=True)).within
    assert not result(1.9, Bar(1, of_limit=True, is_floor=True)).within


def test_medians_and_percentiles() -> None:
    amounts = iter([5.0, 1.0, 3.0])

    assert median_of(lambda: next(amounts), runs=3) == (3.0, 3)
    assert median_of(lambda: 4.0, runs=3, patience=0.0) == (4.0, 1)
    assert percentile(range(1, 101), 95) == 95
    assert percentile([1, 2], 50) == 1
    assert percentile([1], 95) == 1


def test_notes_are_found_by_what_packages_say_of_themselves(tmp_path: Path) -> None:
    said = {
        "ferry": "Timetable of boats to islands",
        "@pier/paint": "Lacquer for hulls and decks",
        "@pier/tide": "",
    }
    for name, description in {**said, "bare": "It has no readme"}.items():
        package = tmp_path / name
        package.mkdir(parents=True)
        (package / "package.json").write_text(json.dumps({"description": description}))
        if name in said:
            (package / "README.md").write_text(
                f"# {name}\n\n{description}. Made daily by {name}." + " By the sea." * 20
            )

    packages = packages_in(tmp_path)
    found = list(scores(packages))

    assert [one.name for one in packages] == ["@pier/paint", "@pier/tide", "ferry"]
    assert "Timetable" in packages[2].readme
    assert "Timetable" not in packages[2].reworded
    assert "Made daily by ferry." in packages[2].reworded
    assert len({(one.texts, one.half, one.by) for one in found}) == len(found) == 12
    assert [one.queries for one in found] == [1] * 12
    assert all(one.recall_1 == one.recall_10 == one.mrr == 1 for one in found if one.texts == "as they are")
    assert all(one.recall_1 == one.mrr == 0 for one in found if one.texts == "reworded" and one.by == "words")


def test_the_table_and_the_json_tell_the_same() -> None:
    results = [
        Result("cold-sync", "10 notes", "s", 9.0, limit=2.0, bars=(Bar(4, of_limit=True),), runs=5),
        Result("memory", "idle", "MB", 71.0, bars=(Bar(90),)),
        Result("retrieval", "recall@1", "", 0.55, limit=0.5, bars=(Bar(1, of_limit=True, is_floor=True),)),
    ]

    lines = table(results).splitlines()
    told = json.loads(as_json(results, notes=10, seed=3))

    assert lines[2] == "| cold-sync | 10 notes | 9 s | 2 s | 4.50 × | ≤ 4 × | OVER |"
    assert lines[3] == "| memory | idle | 71 MB |  |  | ≤ 90 MB | ok |"
    assert lines[4] == "| retrieval | recall@1 | 0.55 | 0.5 | 1.10 × | ≥ 1 × | ok |"
    assert [entry["within"] for entry in told["results"]] == [False, True, True]
    assert told["results"][0]["ratio"] == 4.5
    assert told["seed"] == 3


def test_briefs_are_compiled_among_memories_that_say_something_else_each(tmp_path: Path) -> None:
    write_memories(tmp_path, 12)
    product.cold_sync(tmp_path)
    embed(tmp_path)

    first, again, tokens = compile_all(tmp_path, specs(3))

    texts = contents(tmp_path)
    assert len(texts) == len(set(texts.values())) == 12
    assert len(set(specs(3))) == 3
    assert [len(seconds) for seconds in (first, again, tokens)] == [2, 2, 2]
    assert min(tokens) > 500
