"""One random life of a notebook: operations drawn from a seed, checked whenever all is quiet."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from tests.sync.world import World

OPERATIONS_A_ROUND = 200
PATHS = ("a.md", "b.md", "x.md", "d/a.md", "d/b.md", "d/x.md", "e/a.md", "d/e/a.md", "b.MD", "memories/a.md")
FOLDERS = ("d", "e", "d/e", "f")
# Ids that are also what files without an id of their own are called.
IDS = ("", "", "x", "y", "a", "b", "d/a", "b.md")
WORDS = ("one", "two", "three")


def raw_note(random: random.Random) -> bytes:
    """The bytes of a note, of one that is broken, or of one that is not finished."""
    note_id, word = random.choice(IDS), random.choice(WORDS)
    head = f"---\nid: {note_id}\n---\n" if note_id else ""
    text = (head + f"# {word}\n").encode()
    match random.randrange(12):
        case 0:
            return b"---\nid: [\n---\n" + word.encode()
        case 1:
            return text + b"\xff\xfe"
        case 2:
            return b""
        case 3:
            return b"---\nid: x\n"
        case 4:
            return text.replace(b"\n", b"\r\n")
        case _:
            return text


def play_round(folder: Path, random: random.Random, *, git: bool = False) -> None:
    """Live through `OPERATIONS_A_ROUND` operations and prove that the stores followed."""
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
    match random.choices(range(20), weights=_WEIGHTS)[0]:
        case 0:
            world.write(path, raw_note(random))
        case 1:
            world.replace(path, raw_note(random))
        case 2:
            world.rename(path, other)
        case 3:
            world.rename(folder, another)
        case 4:
            world.swap(path, other)
        case 5:
            world.delete(path)
        case 6:
            world.delete(folder)
        case 7:
            world.link(path, random.choice((other, folder, "nowhere", "..")))
        case 8:
            world.link(folder, random.choice((another, "nowhere")))
        case 9:
            world.touch(path, random.randrange(2**31) * 10**9)
        case 10:
            world.ignore(random.choice(("", "d/\n", "a.md\n", "*.md\n!b.md\n", "/x.md\n")))
        case 11:
            world.reconcile()
        case 12:
            world.reconcile_cautiously()
        case 13:
            world.look(random.sample((*PATHS, *FOLDERS), random.randrange(1, 6)))
        case 14:
            world.rebuild()
        case 15:
            world.lose_refs()
        case 16:
            store = random.choice((world.mirror, world.refs))
            world.break_down(random.randrange(1, 20), after=random.random() < 0.5, whose=store.name)
        case 17:
            world.crash(random.randrange(1, 20), after=random.random() < 0.5)
        case 18:
            world.meanwhile(_happening(world, random), random.randrange(1, 20))
        case 19 if git:
            world.commit() if random.random() < 0.5 else world.checkout(random.randrange(1, 4))


_WEIGHTS = (24, 24, 12, 4, 6, 10, 2, 1, 1, 3, 2, 8, 4, 14, 2, 1, 4, 6, 12, 1)


def _happening(world: World, random: random.Random) -> Callable[[], object]:
    """What somebody else does in the middle of a pass."""
    path, other = random.choice(PATHS), random.choice(PATHS)
    raw = raw_note(random)
    return random.choice(
        (
            lambda: world.write(path, raw),
            lambda: world.replace(path, raw),
            lambda: world.rename(path, other),
            lambda: world.swap(path, other),
            lambda: world.delete(path),
            lambda: world.other_looks((path, other)),
            world.other_reconciles,
            lambda: (world.write(path, raw), world.other_looks((path,))),
            lambda: (world.delete(path), world.other_reconciles()),
            lambda: (world.lose_refs(), world.other_reconciles()),
        )
    )
