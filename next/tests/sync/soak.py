"""A long random run over one notebook: `python -m tests.sync.soak --operations 1000000 --seed 7`.

Ends with an AssertionError and the seed to replay when files and index ever disagree. Each round of operations has a
seed of its own, which is printed, so that a failure is replayed by itself.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.sync.play import OPERATIONS_A_ROUND, play_round


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--git", action="store_true", help="commits and checkouts too, which are slow")
    arguments = parser.parse_args()
    done, begun, seed = 0, time.monotonic(), arguments.seed
    while done < arguments.operations:
        try:
            run_round(seed, git=arguments.git)
        except BaseException:
            print(f"seed {seed} shows it: python -m tests.sync.soak --operations 1 --seed {seed}", file=sys.stderr)
            raise
        done += OPERATIONS_A_ROUND
        seed += 1
        if seed % 50 == 0:
            print(f"{done:,} operations, {time.monotonic() - begun:.0f} s, next seed {seed}", flush=True)
    print(f"{done:,} operations, 0 divergences, seeds {arguments.seed} to {seed - 1}")
    return 0


def run_round(seed: int, *, git: bool = False) -> None:
    """One notebook's life, from an empty folder; nothing of it is left."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NOTEBOOK_STATE_DIR"] = f"{folder}/state"
        play_round(Path(folder), random.Random(seed), git=git)


if __name__ == "__main__":
    sys.exit(main())
