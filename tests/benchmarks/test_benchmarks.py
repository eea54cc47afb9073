"""The benchmarks' own parts: what the table says, and that each limit does its work."""

from pathlib import Path

import pytest

from tests.benchmarks import limits
from tests.benchmarks.corpus import note_paths, queries, write_corpus
from tests.benchmarks.measure import Result, percentile, table


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (Result("r", "w", "s", 3, 1, bar=3, is_ratio=True), "ok"),
        (Result("r", "w", "s", 3.1, 1, bar=3, is_ratio=True), "OVER"),
        (Result("r", "w", "ms", 3, 10, bar=2), "OVER"),
        (Result("r", "w", "ms", 3), ""),
    ],
)
def test_a_bar_is_a_ratio_or_an_amount(result: Result, verdict: str) -> None:
    assert table([result]).splitlines()[-1].split("|")[-2].strip() == verdict


def test_a_percentile_is_one_of_the_amounts() -> None:
    assert [percentile([4, 1, 3, 2], percent) for percent in (0, 50, 95)] == [1, 2, 4]


def test_the_corpus_is_the_same_each_time_and_the_limits_index_it(folder: Path, tmp_path: Path) -> None:
    size = write_corpus(folder, 20)
    assert size == write_corpus(tmp_path / "again", 20) > 20 * 2000
    note = note_paths(20)[7]
    assert (folder / note).read_bytes() == (tmp_path / "again" / note).read_bytes()
    database = tmp_path / "limit.db"
    assert limits.cold_sync(folder, database).wall > 0
    assert len(limits.search(database, queries(3), 5)) == 3
