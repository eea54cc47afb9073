"""Random lives of a notebook: operations drawn from a seed, checked whenever all is quiet.

`python -m tests.sync.soak --operations 1000000 --seed 7` is a long run. It ends with an AssertionError and the seed to
replay when files and index ever disagree. Each round of operations has a seed of its own, which is printed, so that a
failure is replayed by itself.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.sync.world import World

OPERATIONS_A_ROUND = 200
PATHS = ("a.md", "b.md", "x.md", "d/a.md", "d/b.md", "d/x.md", "e/a.md", "d/e/a.md", "b.MD", "facts/a.md", "facts/b.md")
FOLDERS = ("d", "e", "d/e", "f")
# Ids that are also what files without an id of their own are called.
IDS = ("", "", "x", "y", "a", "b", "d/a")
WORDS = ("one", "two", "three")
FACTS = ("- The ferry leaves at eight\n", "- The ferry leaves at nine\n", "- Omar has the key\n", "")


def raw_note(chance: random.Random) -> bytes:
    """The bytes of a note, of one that is broken, or of one that is not finished."""
    note_id, word = chance.choice(IDS), chance.choice(WORDS)
    head = f"---\nid: {note_id}\n---\n" if note_id else ""
    text = f"{head}# {word}\n{chance.choice(FACTS)}{chance.choice(FACTS)}".encode()
    broken = (b"---\nid: [\n---\n" + word.encode(), text + b"\xff\xfe", b"", b"---\nid: x\n", text + b"\0")
    return chance.choice((*broken, text.replace(b"\n", b"\r\n"), *[text] * 8))


def play_round(folder: Path, chance: random.Random, *, git: bool = False) -> None:
    """Live through `OPERATIONS_A_ROUND` operations and prove that the index followed."""
    with closing(World(folder, batch=chance.choice((1, 2, 500)))) as world:
        for _ in range(OPERATIONS_A_ROUND):
            play_one(world, chance, git=git)
            if chance.random() < 0.05:
                world.check()
        world.check()


def play_one(world: World, chance: random.Random, *, git: bool = False) -> None:
    """One operation."""
    path, other = chance.choice(PATHS), chance.choice(PATHS)
    folder, another = chance.choice(FOLDERS), chance.choice(FOLDERS)
    operations: list[tuple[int, Callable[[], object]]] = [
        (24, lambda: world.write(path, raw_note(chance))),
        (24, lambda: world.replace(path, raw_note(chance))),
        (12, lambda: world.rename(path, other)),
        (4, lambda: world.rename(folder, another)),
        (6, lambda: world.swap(path, other)),
        (10, lambda: world.delete(path)),
        (2, lambda: world.delete(folder)),
        (1, lambda: world.link(path, chance.choice((other, folder, "nowhere", "..")))),
        (1, lambda: world.link(folder, chance.choice((another, "nowhere")))),
        (3, lambda: world.touch(path, chance.randrange(2**31) * 10**9)),
        (2, lambda: world.ignore(chance.choice(("", "d/\n", "a.md\n", "*.md\n!b.md\n", "/x.md\n")))),
        (8, lambda: world.survive(world.sync)),
        (4, lambda: world.survive(lambda: world.sync(allow_empty=False))),
        (14, lambda: world.look(chance.sample((*PATHS, *FOLDERS), chance.randrange(1, 6)))),
        (2, lambda: world.survive(lambda: world.engine.sync(force=True, allow_empty=True))),
        (6, lambda: world.crash(chance.randrange(1, 40), is_after=chance.random() < 0.5)),
        (8, lambda: world.fuse.set(_happening(world, chance), at=chance.randrange(1, 40))),
        (4, lambda: world.fuse.set(_other(world, chance), at=chance.randrange(1, 40), is_outside=True)),
        (git, lambda: world.commit() if chance.random() < 0.5 else world.checkout(chance.randrange(1, 4))),
    ]
    weights, acts = zip(*operations, strict=True)
    chance.choices(acts, weights)[0]()


def _happening(world: World, chance: random.Random) -> Callable[[], object]:
    """What somebody does to the files in the middle of a look."""
    path, other, raw = chance.choice(PATHS), chance.choice(PATHS), raw_note(chance)
    return chance.choice(
        (
            lambda: world.write(path, raw),
            lambda: world.replace(path, raw),
            lambda: world.rename(path, other),
            lambda: world.swap(path, other),
            lambda: world.delete(path),
        )
    )


def _other(world: World, chance: random.Random) -> Callable[[], object]:
    """What another process does to files and index in the middle of a look."""
    path, other, raw = chance.choice(PATHS), chance.choice(PATHS), raw_note(chance)
    return chance.choice(
        (
            lambda: world.other_looks((path, other)),
            lambda: world.other.sync(allow_empty=True),
            lambda: (world.write(path, raw), world.other_looks((path,))),
            lambda: (world.delete(path), world.other.sync(allow_empty=True)),
        )
    )


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
