"""`python -m tests.benchmarks`: measure every row, print the table, and write JSON when asked to."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from . import rows
from .corpus import SEED
from .measure import Result, as_json, table
from .servers import running


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000, help="notes in the corpus (default %(default)s)")
    parser.add_argument("--only", default="", metavar="ROW,…", help=f"of {', '.join(rows.ROWS)}")
    parser.add_argument("--servers", action="store_true", help="also measure MongoDB and Redis")
    parser.add_argument(
        "--scaling", default="1000,10000,100000", metavar="N,…", help="sizes of the rows scaling, agents, vectors"
    )
    parser.add_argument(
        "--readmes",
        type=Path,
        default=os.environ.get("NOTEBOOK_TEST_READMES") or None,
        metavar="NODE_MODULES",
        help="installed npm packages, for the row retrieval (default: NOTEBOOK_TEST_READMES; none: it is left out)",
    )
    parser.add_argument("--seed", type=int, default=SEED, help="of the corpus (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    asked = parser.parse_args()
    chosen = asked.only.split(",") if asked.only else list(rows.ROWS)
    if unknown := set(chosen) - set(rows.ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    sizes = tuple(map(int, asked.scaling.split(",")))
    available = rows.ROWS | {name: partial(rows.ROWS[name], sizes=sizes) for name in ("scaling", "agents", "vectors")}
    available["retrieval"] = partial(rows.retrieval, readmes=asked.readmes)

    for server in ("MONGODB_URL", "REDIS_URL"):
        os.environ.pop(server, None)  # the embedded rows are about the embedded stores
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled once, not by each command
    print(f"corpus: {asked.notes} notes, seed {asked.seed}", file=sys.stderr)
    results: list[Result] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="notebook-benchmark-")))
        servers = stack.enter_context(running()) if asked.servers else None
        bench = rows.Bench(folder, asked.notes, asked.seed, servers)
        for name in chosen:
            for result in available[name](bench):
                print(f"{result.row}: {result.work}: {result.measured:.3g} {result.unit}", file=sys.stderr)
                results.append(result)
    print(table(results))
    if asked.json:
        asked.json.write_text(as_json(results, asked.notes, asked.seed) + "\n")
    return 0 if all(result.within is not False for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
