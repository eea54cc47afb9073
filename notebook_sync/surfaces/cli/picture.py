"""Where a picture goes that a command draws: into a file with the right name, or to standard output.

It is never put in the place of anything but a picture that a command drew and nobody has changed since.
"""

from __future__ import annotations

import os
import stat
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from notebook_sync.config import FILE as SETTINGS
from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.permissions import Resource, resources_of
from notebook_sync.sessions import Session
from notebook_sync.surfaces.cli.answers import session_of, show
from notebook_sync.surfaces.cli.text.notebook import counts, safe

OUTPUT = "-"

# What prompts and settings are made of, and what is no note: no picture goes there, whoever asks for it.
_NO_PLACE = frozenset[Resource](
    ("runtime", "in the prompt", "withheld", "core facts", "settings", "hidden", "outside"),
)
_MARK = "drawn by notebook-sync, "


def require_place(arguments: Namespace, *endings: str, example: str) -> None:
    """Raises UsageError where `file` is no name with one of these endings, and for `-` with --json."""
    if arguments.file == OUTPUT:
        if arguments.json:
            raise UsageError("- prints the picture itself; leave --json out, or name a file")
    elif Path(arguments.file).suffix.casefold() not in endings or "\0" in arguments.file:
        raise UsageError(f"name a file that ends in {' or '.join(endings)}, as in: {example}; - prints the picture")


def put_picture(arguments: Namespace, picture: str) -> int:
    """Write it there, and tell where it is. Raises UsageError where something else stands there, NotPermitted where the
    session may not write or no picture belongs, NotebookError."""
    if arguments.file == OUTPUT:
        print(picture, end="" if picture.endswith("\n") else "\n")
        return 0
    named, drawn = Path(arguments.file).expanduser(), _signed(picture)
    try:
        path = named.resolve()
        _must_be_permitted(path, session_of(arguments), f"{arguments.command} {arguments.subcommand}")
        _write(path, named, drawn)
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else "its links lead in a circle"
        raise NotebookError(f"{named} cannot be written: {why}; name another place for the picture") from None
    show(arguments, {"path": str(path), "bytes": len(drawn)}, _of_picture)
    return 0


def _must_be_permitted(path: Path, session: Session, tool: str) -> None:
    """Raises NotPermitted. Each notebook that the file would stand in is asked, not only the one that is drawn."""
    for root in path.parents:
        if not (root / SETTINGS).is_file():
            continue
        with Notebook.open(root) as notebook:
            inside = path.relative_to(root).as_posix()
            if resources_of(inside, session, notebook.settings.prompt) & _NO_PLACE:
                why = f"no picture is written to {inside}, which is part of the prompt, of the settings, or hidden"
            elif not notebook.guard.may(session, "write", inside):
                why = f"this session may not write {inside}"
            else:
                continue
            notebook.guard.refuse(session, tool, f"{why}; name another file for the picture", inside)


def _write(path: Path, named: Path, drawn: bytes) -> None:
    """Make the file, or put the picture in the place of an older one. Raises UsageError, OSError."""
    with suppress(FileExistsError), path.open("xb") as new:
        new.write(drawn)
        return
    # One and the same open file is looked at and written, whatever its name leads to meanwhile.
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "r+b") as old:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not _is_drawn(old.read()):
            raise UsageError(
                f"{named} is there, and is no picture as a command drew it; it is left as it is: name another file"
            )
        old.seek(0)
        old.write(drawn)
        old.truncate()


def _signed(picture: str) -> bytes:
    """With a comment as its last line, which tells whether all above it is as it was drawn."""
    text = picture if picture.endswith("\n") else f"{picture}\n"
    mark = f"{_MARK}{sha256(text.encode()).hexdigest()[:32]}"
    return f"{text}{f'<!-- {mark} -->' if text.startswith('<svg ') else f'%% {mark}'}\n".encode()


def _is_drawn(raw: bytes) -> bool:
    above, mark, _ = raw.rpartition(_MARK.encode())
    with suppress(UnicodeDecodeError):
        return bool(mark) and _signed(above[: above.rfind(b"\n") + 1].decode()) == raw
    return False


def _of_picture(drawn: Mapping[str, Any]) -> str:
    return safe(f"{drawn['path']} is drawn: {counts(drawn['bytes'], 'byte')}")
