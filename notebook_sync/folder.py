"""`.notebook`, the folder of what can be made again: never in git, and it may be deleted at any time."""

from __future__ import annotations

from pathlib import Path

FOLDER = ".notebook"


def make_folder(folder: Path) -> None:
    """Make it, and hide it from git, where it is not there. Raises OSError."""
    folder.mkdir(exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
