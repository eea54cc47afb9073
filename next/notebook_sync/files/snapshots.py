"""What all notes said at one moment, kept in the private repository as a commit of its own, which is on no branch.

It holds exactly the bytes it is given, private notes included, so it is never in the user's repository.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from notebook_sync.errors import GitFailed
from notebook_sync.files.git import LONG_SECONDS, Repository, run_git
from notebook_sync.files.names import is_hidden, is_note_name, is_system_folder
from notebook_sync.files.tree import is_at_or_below

REFS = "refs/notebook/checkpoints"
_LEFT_OUT = "Left-Out: "


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The notes of one commit: `blobs` are git's ids by path. Of `left_out`, files and folders, it says nothing: they
    could not be read."""

    commit: str
    blobs: Mapping[str, str]
    left_out: frozenset[str]

    def is_silent_about(self, path: str) -> bool:
        """Whether it cannot say that there was no note at `path`."""
        return is_at_or_below(path, self.left_out)


class Snapshots:
    """The snapshots of one notebook, by name. Every method raises GitFailed where git is missing or fails."""

    def __init__(self, folder: Path) -> None:
        """`folder` is that of the private repository."""
        self._folder = folder

    def take(self, name: str, texts: Mapping[str, bytes], left_out: Collection[str], subject: str) -> str:
        """Keep texts by path, and return the commit."""
        lines = [" ".join(subject.split()), "", *(_LEFT_OUT + json.dumps(path) for path in sorted(left_out))]
        return Repository.private(self._folder).commit_apart(_ref(name), texts, "\n".join(lines))

    def read(self, name: str) -> Snapshot | None:
        """The snapshot of this name; None for none."""
        if not (self._folder / "HEAD").exists():
            return None
        commit = self._git("rev-parse", "--verify", "--quiet", _ref(name), fine=(0, 1)).decode().strip()
        if not commit:
            return None
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
        entries = (line.partition(b"\t") for line in listed if line)
        blobs = {os.fsdecode(path): entry.split()[2].decode() for entry, _, path in entries}
        message = self._git("log", "-1", "--format=%B", commit).decode(errors="replace")
        said = [line.removeprefix(_LEFT_OUT) for line in message.split("\n") if line.startswith(_LEFT_OUT)]
        return Snapshot(commit, blobs, frozenset(map(json.loads, said)))

    def differing(self, snapshot: Snapshot, now: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
        """What the snapshot has at those of the paths that hold something else now; None where it has no note."""
        new_id, blobs = Repository.private(self._folder).blob_id, snapshot.blobs
        other = [path for path, raw in now.items() if path in blobs and (raw is None or new_id(raw) != blobs[path])]
        return {**dict.fromkeys(now.keys() - blobs.keys()), **dict(self._texts(snapshot, other))}

    def drop(self, names: Collection[str]) -> None:
        """Forget snapshots: git removes them when it next tidies up."""
        if names and (self._folder / "HEAD").exists():
            given = "".join(f"delete {_ref(name)}\n" for name in names)
            self._git("update-ref", "--stdin", given=given.encode())

    def _texts(self, snapshot: Snapshot, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """What the snapshot has at each of these paths."""
        asked = "".join(f"{snapshot.blobs[path]}\n" for path in paths)
        answer, at = self._git("cat-file", "--batch", given=asked.encode()), 0
        for path in paths:
            end = answer.index(b"\n", at) + 1
            _, kind, *size = answer[at:end].split()
            if kind != b"blob":
                raise GitFailed(f"the private history lacks what {path} said in {snapshot.commit[:12]}")
            yield path, answer[end : end + int(size[0])]
            at = end + int(size[0]) + 1

    def _git(self, *arguments: str, given: bytes = b"", fine: Collection[int] = (0,)) -> bytes:
        return run_git(self._folder, "--git-dir=.", *arguments, given=given, fine=fine, seconds=LONG_SECONDS)


def _ref(name: str) -> str:
    """The ref of a snapshot; a name may come from another program."""
    if not re.fullmatch(r"[0-9A-Za-z-]{1,64}", name):
        raise GitFailed(f"{name[:64]!r} cannot be the name of a snapshot")
    return f"{REFS}/{name}"


def unseen_notes(root: Path, seen: Collection[str]) -> set[str]:
    """Files with a note's name that are no notes now, such as ignored ones: a snapshot says nothing of them."""
    found = set[str]()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not is_hidden(name) and not is_system_folder(name)]
        above = os.path.relpath(folder, root)
        found |= {posixpath.normpath(f"{above}/{name}") for name in names if is_note_name(name)}
    return found.difference(seen)
