"""`python -m tests.benchmarks [ROW…]`: measure the rows, print the table, and write JSON when asked to."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measure import Result, as_json, table
from tests.benchmarks.rows import ROWS, Bench


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}; all by default")
    parser.add_argument("--notes", type=int, default=10_000, help="notes in the corpus (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    asked = parser.parse_args()
    if unknown := set(asked.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")

    for name in ("MONGODB_URL", "REDIS_URL", "NOTEBOOK_SESSION", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="notebook-benchmark-") as folder:
        bench = Bench(Path(folder), asked.notes)
        os.environ["NOTEBOOK_STATE_DIR"] = str(bench.state)
        for name in asked.rows or ROWS:
            for result in ROWS[name](bench):
                print(f"{result.row}: {result.work}: {result.measured:.3g} {result.unit}", file=sys.stderr)
                results.append(result)
    print(table(results))
    if asked.json:
        asked.json.write_text(as_json(results, asked.notes) + "\n")
    return int(any(result.within is False for result in results))


if __name__ == "__main__":
    sys.exit(main())
