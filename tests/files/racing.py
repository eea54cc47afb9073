"""A person and an agent who write one note as fast as they can, a process each, and what was lost.

The person's saves are numbered, and each can be seen in the file until the person's own next one: an agent's edit
keeps what it is based on and adds a line. So a save is lost when it cannot be seen right before the next one.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
import time
from pathlib import Path

from notebook_sync.errors import Conflict
from notebook_sync.files.vault import Vault
from tests.files import persons
from tests.files.disks import UnsyncedDisk

NOTE = "a.md"
_DEADLINE_SECONDS = 2.0
_LATEST = re.compile(rb"^person (\d+)$", re.MULTILINE)


def agent(root: Path, edits: int) -> None:
    """Tries so many edits; prints how many were made and how many conflicted."""
    vault = Vault(root)
    vault.disk = UnsyncedDisk()
    made = conflicts = 0
    for number in range(edits):
        try:
            raw = vault.read(NOTE)[0]
            vault.write(NOTE, raw + b"agent %d\n" % number, base=hashlib.sha256(raw).hexdigest())
            made += 1
        except Conflict:
            conflicts += 1
    print(json.dumps({"made": made, "conflicts": conflicts}))


def person(root: Path, kind: str) -> None:
    """Saves until the file `stop` is there; prints how many saves there were, and which were lost."""
    path = root / NOTE
    save = getattr(persons, kind)
    pace = random.Random(kind)
    lost = []
    number = 0
    while not (root / "stop").exists():
        number += 1
        save(path, b"person %d\n" % number)
        if not _can_see(path, number, all_of_them=kind == "append"):
            lost.append(number)
        # Sometimes at once, sometimes long enough for an edit or two to be made.
        time.sleep(pace.choice((0, 0.0002, 0.001)))  # a person's pace; nothing is waited for
    print(json.dumps({"saves": number, "lost": lost}))


def _can_see(path: Path, number: int, *, all_of_them: bool) -> bool:
    """Whether the save is in the file. A text that is about to be taken back may be read for a moment."""
    end = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < end:
        try:
            found = [int(one) for one in _LATEST.findall(path.read_bytes())]
        except FileNotFoundError:
            continue
        if found == (list(range(1, number + 1)) if all_of_them else [number]):
            return True
    return False


if __name__ == "__main__":
    if sys.argv[1] == "agent":
        agent(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        person(Path(sys.argv[2]), sys.argv[3])
