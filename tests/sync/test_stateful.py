"""Whatever happens to the files and the process: once all is quiet, the index is what the files say.

Hypothesis shrinks a failure to its shortest life and prints how to replay it. `python -m tests.sync.soak` lives longer
ones.
"""

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.sync.soak import play_one, play_round
from tests.sync.world import World

# What an operation is made of: each number is one choice, so that Hypothesis makes choices smaller and fewer.
choices = st.randoms(note_method_calls=True, use_true_random=False)


class Notebooks(RuleBasedStateMachine):
    """One notebook's life."""

    folder = Path()

    @initialize(batch=st.sampled_from((1, 2, 500)))
    def open(self, batch: int) -> None:
        self.home = Path(tempfile.mkdtemp(dir=self.folder))
        self.world = World(self.home, batch=batch)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()
            shutil.rmtree(self.home)

    @rule(random=choices)
    def something_happens(self, random: random.Random) -> None:
        play_one(self.world, random)

    @rule()
    def all_is_quiet(self) -> None:
        self.world.check()


def test_the_index_follows_whatever_happens(tmp_path: Path) -> None:
    Notebooks.folder = tmp_path
    few = settings(max_examples=8, stateful_step_count=30, print_blob=True, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Notebooks, settings=few)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("seed", range(3))
def test_longer_lives_drawn_from_a_seed(tmp_path: Path, seed: int) -> None:
    play_round(tmp_path, random.Random(seed))


def test_a_life_with_commits_and_checkouts(tmp_path: Path) -> None:
    play_round(tmp_path, random.Random(1), git=True)
