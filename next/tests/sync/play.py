"""One random life of a notebook: operations drawn from a seed, checked whenever all is quiet."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from tests.sync.world import World

OPERATIONS_A_ROUND = 200
PATHS = ("a.md", "b.md", "x.md", "d/a.md", "d/b.md", "d/x.md", "e/a.md", "d/e/a.md", "b.MD", "facts/a.md", "facts/b.md")
FOLDERS = ("d", "e", "d/e", "f")
# Ids that are also what files without an id of their own are called.
IDS = ("", "", "x", "y", "a", "b", "d/a")
WORDS = ("one", "two", "three")
FACTS = ("- The ferry leaves at eight\n", "- The ferry leaves at nine\n", "- Omar has the key\n", "")


def raw_note(random: random.Random) -> bytes:
    """The bytes of a note, of one that is broken, or of one that is not finished."""
    note_id, word = random.choice(IDS), random.choice(WORDS)
    head = f"---\nid: {note_id}\n---\n" if note_id else ""
    text = f"{head}# {word}\n{random.choice(FACTS)}{random.choice(FACTS)}".encode()
    broken = (b"---\nid: [\n---\n" + word.encode(), text + b"\xff\xfe", b"", b"---\nid: x\n", text + b"\0")
    return random.choice((*broken, text.replace(b"\n", b"\r\n"), *[text] * 8))


def play_round(folder: Path, random: random.Random, *, git: bool = False) -> None:
    """Live through `OPERATIONS_A_ROUND` operations and prove that the index followed."""
    world = World(folder, batch=random.choice((1, 2, 500)))
    try:
        for _ in range(OPERATIONS_A_ROUND):
            play_one(world, random, git=git)
            if random.random() < 0.05:
                world.check()
        world.check()
    finally:
        world.close()


def play_one(world: World, random: random.Random, *, git: bool = False) -> None:
    """One operation."""
    path, other = random.choice(PATHS), random.choice(PATHS)
    folder, another = random.choice(FOLDERS), random.choice(FOLDERS)
    operations: list[tuple[int, Callable[[], object]]] = [
        (24, lambda: world.write(path, raw_note(random))),
        (24, lambda: world.replace(path, raw_note(random))),
        (12, lambda: world.rename(path, other)),
        (4, lambda: world.rename(folder, another)),
        (6, lambda: world.swap(path, other)),
        (10, lambda: world.delete(path)),
        (2, lambda: world.delete(folder)),
        (1, lambda: world.link(path, random.choice((other, folder, "nowhere", "..")))),
        (1, lambda: world.link(folder, random.choice((another, "nowhere")))),
        (3, lambda: world.touch(path, random.randrange(2**31) * 10**9)),
        (2, lambda: world.ignore(random.choice(("", "d/\n", "a.md\n", "*.md\n!b.md\n", "/x.md\n")))),
        (8, lambda: world.survive(world.sync)),
        (4, lambda: world.survive(lambda: world.sync(allow_empty=False))),
        (14, lambda: world.look(random.sample((*PATHS, *FOLDERS), random.randrange(1, 6)))),
        (2, lambda: world.survive(world.engine.rebuild)),
        (6, lambda: world.crash(random.randrange(1, 40), is_after=random.random() < 0.5)),
        (8, lambda: world.fuse.set(_happening(world, random), at=random.randrange(1, 40))),
        (4, lambda: world.fuse.set(_other(world, random), at=random.randrange(1, 40), is_outside=True)),
        (git, lambda: world.commit() if random.random() < 0.5 else world.checkout(random.randrange(1, 4))),
    ]
    weights, acts = zip(*operations, strict=True)
    random.choices(acts, weights)[0]()


def _happening(world: World, random: random.Random) -> Callable[[], object]:
    """What somebody does to the files in the middle of a look."""
    path, other, raw = random.choice(PATHS), random.choice(PATHS), raw_note(random)
    return random.choice(
        (
            lambda: world.write(path, raw),
            lambda: world.replace(path, raw),
            lambda: world.rename(path, other),
            lambda: world.swap(path, other),
            lambda: world.delete(path),
        )
    )


def _other(world: World, random: random.Random) -> Callable[[], object]:
    """What another process does to files and index in the middle of a look."""
    path, other, raw = random.choice(PATHS), random.choice(PATHS), raw_note(random)
    return random.choice(
        (
            lambda: world.other_looks((path, other)),
            lambda: world.other.sync(allow_empty=True),
            lambda: (world.write(path, raw), world.other_looks((path,))),
            lambda: (world.delete(path), world.other.sync(allow_empty=True)),
        )
    )
