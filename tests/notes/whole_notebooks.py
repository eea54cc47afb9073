"""What there is of a notebook, to compare it with one that came out of an archive."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from notebook_sync import Notebook
from notebook_sync.mirror.document import canonical


def git(root: Path, *arguments: str) -> str:
    who = {f"GIT_{role}_{what}": "ines@ferry.example" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    asked = ["git", "-C", str(root), *arguments]
    return subprocess.run(asked, env={**os.environ, **who}, capture_output=True, text=True, check=True).stdout


def git_of(root: Path) -> list[str]:
    """What a person asks git about its history and its files."""
    asked = (("status", "--porcelain", "--branch"), ("for-each-ref",), ("log", "--all", "--format=fuller", "--stat"))
    known = [git(root, *each) for each in asked if each[0] != "log" or git(root, "for-each-ref")]
    return [*known, git(root, "rev-parse", "--abbrev-ref", "HEAD") if git(root, "for-each-ref") else ""]


def files_of(root: Path) -> dict[str, tuple[bytes, int, int]]:
    """Bytes, time and mode of every file that is the notebook's own."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode & 0o100)
        for path in root.rglob("*")
        if path.is_file() and not {".git", ".notebook"} & {*path.relative_to(root).parts} and path.suffix != ".log"
    }


def told_by(notebook: Notebook) -> dict[str, Any]:
    """What the stores hold, as far as it is to be the same elsewhere."""
    notebook.sync()
    operational = ("version", "created_at", "created_from")
    refs = notebook.refs
    return {
        "notes": {
            document["id"]: {
                **canonical(document),
                "history": document["history"],
                **{name: document["metadata"][name] for name in operational},
            }
            for document in notebook.mirror.documents()
        },
        "refs": {note_id: refs.get(note_id) for note_id, _, _ in refs.digests()},
        "stream": [(day, entry) for day in refs.days() for entry in refs.day(day)],
        "longterm": refs.longterm(),
        "checkpoints": [refs.checkpoint(light["id"]) for light in refs.checkpoints()],
        "facts": notebook.fact_rows.rows(),
        "use": [(one.id, one.accesses, one.last_accessed, one.score) for one in notebook.memory_rows.all()],
    }


def members_of(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {info.name: opened.extractfile(info).read() for info in opened}  # type: ignore[union-attr]
