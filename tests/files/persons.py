"""A person and an agent who write one note as fast as they can, a process each, and what each of them knows of it."""

import json
import os
import random
import re
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from notebook_sync.errors import Conflict, NoSuchNote, UnsafePath
from tests.files.notebooks import digest, saver_of, tree_of
from tests.waiting import eventually

NOTE = "a.md"
_EDITS = 6
_LONG = 10_000


def rename_over(path: Path, text: bytes) -> None:
    """vim, and most others: a new file takes the name."""
    new = path.with_name("4913")
    new.write_bytes(text)
    new.replace(path)


def write_in_place(path: Path, text: bytes) -> None:
    """VS Code: the file is emptied, then filled."""
    with path.open("wb") as file:
        file.write(text)


def append(path: Path, text: bytes) -> None:
    """`>>` in a shell."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


def sed(path: Path, text: bytes) -> None:
    """`sed -i`: a copy with another first line takes the name."""
    subprocess.run(["sed", "-i", f"1c\\{text.decode().rstrip()}", str(path)], check=True)


def rename_away(path: Path, text: bytes) -> None:
    """Backups by renaming: for a moment there is no note."""
    path.rename(path.with_name("a.md~"))
    path.write_bytes(text)


SAVES: dict[str, Callable[[Path, bytes], None]] = {
    each.__name__: each for each in (rename_over, write_in_place, append, sed, rename_away)
}


def person(root: Path, kind: str, saves: int) -> None:
    """Save numbered texts; write down which were never seen in the file.

    An agent's edit keeps what it is based on, so that each save can be seen until the next one.
    """
    pace = random.Random(kind)
    unseen = []
    eventually((root / "begun").exists, "the agent has begun")
    for number in range(1, saves + 1):
        SAVES[kind](root / NOTE, b"person %d\n" % number)
        if not _is_seen(root / NOTE, number):
            unseen.append(number)
        time.sleep(pace.choice((0, 0.0002, 0.001)))  # a person's pace; nothing is waited for
    (root / "unseen.json").write_text(json.dumps(unseen))


def agent(root: Path) -> None:
    """Edit the note until the person is done."""
    tree, saver = tree_of(root), saver_of(root)
    made = 0
    while not (root / "unseen.json").exists():
        try:
            raw = tree.read(NOTE).raw
            kept = raw if len(raw) < _LONG else b"".join(re.findall(rb"^person .*\n", raw, re.MULTILINE))
            saver.replace(NOTE, kept + b"agent %d\n" % made, digest(raw))
            made += 1
            if made == _EDITS:
                (root / "begun").touch()
        except (Conflict, NoSuchNote, UnsafePath):  # UnsafePath: the person's file has two names for a moment
            continue


def numbers_in(raw: bytes) -> set[int]:
    """The person's saves that a text has."""
    return {int(number) for number in re.findall(rb"^person (\d+)$", raw, re.MULTILINE)}


def _is_seen(path: Path, number: int) -> bool:
    """Whether a save is in the note, if not at once, then before the agent has made some more edits: what the agent was
    doing meanwhile is done by then."""
    texts = [b""]

    def is_decided() -> bool:
        with suppress(FileNotFoundError):
            texts.append(path.read_bytes())
        return number in numbers_in(texts[-1]) or len(set(texts)) > _EDITS

    eventually(is_decided, "the agent edits the note")
    return number in numbers_in(texts[-1])
