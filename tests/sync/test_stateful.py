"""Whatever happens to the files, the stores and the process: once all is quiet, mirror = refs = files.

Hypothesis shrinks a failure to its shortest life and prints how to replay it. `python -m tests.soak` lives longer ones.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.soak import run_round
from tests.sync.play import FOLDERS, PATHS, WORDS
from tests.sync.world import World

paths = st.sampled_from(PATHS)
folders = st.sampled_from(FOLDERS)
ids = st.sampled_from(("", "x", "y", "a", "d/a"))
operations = st.integers(1, 25)
# The checks live five hundred of them besides, beside the tests.
LIVES = 5


@st.composite
def notes(draw: Callable[..., str]) -> bytes:
    """A note, half of one, one that is broken, or none."""
    note_id, word = draw(ids), draw(st.sampled_from(WORDS))
    head = f"---\nid: {note_id}\n---\n" if note_id else ""
    good = (head + f"# {word}\n").encode()
    return bytes(
        draw(st.sampled_from((good, good, good, b"", b"---\nid: x\n", b"---\nid: [\n---\n", good + b"\xff\xfe")))
    )


class Notebooks(RuleBasedStateMachine):
    """One notebook's life."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._no_sleep = patch("notebook_sync.sync.engine.sleep")
        self._no_sleep.start()

    @initialize(batch=st.sampled_from((1, 2, 500)))
    def open(self, batch: int) -> None:
        self.world = World(Path(self._folder.name), batch=batch)

    def teardown(self) -> None:
        self._no_sleep.stop()
        if hasattr(self, "world"):
            self.world.close()
        self._folder.cleanup()

    @rule(path=paths, raw=notes())
    def write_in_place(self, path: str, raw: bytes) -> None:
        self.world.write(path, raw)

    @rule(path=paths, raw=notes())
    def replace_atomically(self, path: str, raw: bytes) -> None:
        self.world.replace(path, raw)

    @rule(old=paths, new=paths)
    def rename_file(self, old: str, new: str) -> None:
        self.world.rename(old, new)

    @rule(old=folders, new=folders)
    def rename_folder(self, old: str, new: str) -> None:
        self.world.rename(old, new)

    @rule(one=paths, two=paths)
    def swap(self, one: str, two: str) -> None:
        self.world.swap(one, two)

    @rule(path=st.one_of(paths, folders))
    def delete(self, path: str) -> None:
        self.world.delete(path)

    @rule(path=st.one_of(paths, folders), to=st.sampled_from((*PATHS, *FOLDERS, "nowhere", "..")))
    def link(self, path: str, to: str) -> None:
        self.world.link(path, to)

    @rule(path=paths, second=st.integers(0, 2**33))
    def touch(self, path: str, second: int) -> None:
        self.world.touch(path, second * 10**9)

    @precondition(lambda _: os.geteuid() != 0)
    @rule(path=paths, mode=st.sampled_from((0o000, 0o600)))
    def forbid(self, path: str, mode: int) -> None:
        self.world.chmod(path, mode)

    @rule(rules=st.sampled_from(("", "d/\n", "a.md\n", "*.md\n!b.md\n")))
    def ignore(self, rules: str) -> None:
        self.world.ignore(rules)

    @rule(back=st.integers(0, 2))
    def commit_or_checkout(self, back: int) -> None:
        if back:
            self.world.checkout(back)
        else:
            self.world.commit()

    @rule()
    def reconcile(self) -> None:
        self.world.reconcile()

    @rule(places=st.sets(st.one_of(paths, folders), min_size=1, max_size=5))
    def look_at_some(self, places: set[str]) -> None:
        self.world.look(places)

    @rule()
    def rebuild(self) -> None:
        self.world.rebuild()

    @rule()
    def lose_refs(self) -> None:
        self.world.lose_refs()

    @rule(at=operations, after=st.booleans())
    def break_down(self, at: int, after: bool) -> None:
        self.world.break_down(at, after=after, whose=self.world.mirror.name)

    @rule(at=operations, after=st.booleans())
    def crash(self, at: int, after: bool) -> None:
        self.world.crash(at, after=after)

    @rule(at=operations, path=paths, raw=notes())
    def change_meanwhile(self, at: int, path: str, raw: bytes) -> None:
        self.world.meanwhile(lambda: self.world.replace(path, raw), at)

    @rule(at=operations, path=paths, raw=notes())
    def another_process_meanwhile(self, at: int, path: str, raw: bytes) -> None:
        self.world.meanwhile(lambda: (self.world.write(path, raw), self.world.other_reconciles()), at)

    @rule()
    def all_is_quiet(self) -> None:
        self.world.check()


def test_the_stores_follow_whatever_happens() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Notebooks,
        settings=settings(
            max_examples=int(os.environ.get("NOTEBOOK_TEST_EXAMPLES", "30")),
            stateful_step_count=40,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("seed", range(LIVES))
def test_longer_lives_drawn_from_a_seed(seed: int) -> None:
    run_round(seed)


def test_a_life_with_commits_and_checkouts() -> None:
    run_round(random.Random(1).randrange(2**32), git=True)
