"""How a person's programs save a note, each a function of the path and what the person had in mind.

A program that finds the file held for a moment waits, as programs do.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

Save = Callable[[Path, bytes], None]


def rename_over(path: Path, text: bytes) -> None:
    """vim, and most others: a new file takes the name."""
    beside = path.with_name("4913")
    beside.write_bytes(text)
    beside.replace(path)


def write_in_place(path: Path, text: bytes) -> None:
    """VS Code, and every `open(path, "w")`: the file is emptied, then filled."""
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
    """`sed -i`: the first line becomes `text`, whatever the others are."""
    subprocess.run(["sed", "-i", f"1c\\{text.decode().rstrip()}", str(path)], check=True)


def delete_then_write(path: Path, text: bytes) -> None:
    path.unlink()
    path.write_bytes(text)


def rename_away_then_write(path: Path, text: bytes) -> None:
    """Backups by renaming."""
    path.rename(path.with_name(path.name + "~"))
    path.write_bytes(text)
