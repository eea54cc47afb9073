"""What the notes of a work tree said at one moment, kept by git as a commit of its own, also what was never committed.

Its ref is no branch: nothing is checked out, staged or pushed by it, and no hook or filter runs. Made from the bytes
that are given, so that no link is followed.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from hashlib import new
from pathlib import Path
from typing import IO

from notebook_sync.errors import GitFailed
from notebook_sync.files.branch import branch_of
from notebook_sync.files.commits import NOBODY
from notebook_sync.files.git import command, environment, first_line, run_git

REFS = "refs/notebook/checkpoints"
SECONDS = 300.0
_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
# What other systems take for something else is a name like any other in a tree that nobody checks out.
_ANY_NAME = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")
_LEFT_OUT = "Left-Out: "


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A commit that holds notes, each at its path from the notebook's root.

    `blobs` are their object ids by path. `left_out` are places of which it says nothing: they could not be read,
    or were left out.
    """

    commit: str
    blobs: dict[str, str]
    left_out: frozenset[str]

    def holds(self, path: str, raw: bytes) -> bool:
        """Whether these are the bytes that it has at `path`."""
        form = "sha1" if len(self.commit) == len("0" * 40) else "sha256"
        return self.blobs.get(path) == new(form, b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()

    def is_silent_about(self, path: str) -> bool:
        """Whether it cannot tell that there was no note at `path`."""
        return any(not place or path == place or path.startswith(place + "/") for place in self.left_out)


def take(root: Path, name: str, notes: Iterable[tuple[str, bytes]], subject: str, left_out: Collection[str]) -> str:
    """Keep these notes, by path, as a commit under the ref of `name`; its id, "" where there is no repository.

    `notes` is read once, and then `left_out`, to which the reading may have added. Raises GitFailed.
    """
    if branch_of(root) is None:
        return ""
    ref = _ref(name)
    try:
        with tempfile.TemporaryFile() as stream:
            for piece in _told_to_import(ref, notes, subject, left_out):
                stream.write(piece)
            stream.seek(0)
            _import(root, stream)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise GitFailed(f"git could not be told: {error.strerror or error}") from None
    return _asked(root, "rev-parse", "--verify", ref).decode().strip()


def read(root: Path, commit: str) -> Snapshot | None:
    """The snapshot with this commit; None where no repository has it. Raises GitFailed."""
    if not _ID.fullmatch(commit) or branch_of(root) is None:
        return None
    if run_git(root, "cat-file", "-e", f"{commit}^{{commit}}").returncode != 0:
        return None
    blobs = {}
    for line in _asked(root, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        entry, _, path = line.partition(b"\t")
        if entry:
            blobs[os.fsdecode(path)] = entry.split()[2].decode()
    message = os.fsdecode(_asked(root, "cat-file", "commit", commit)).partition("\n\n")[2]
    lines = [line for line in message.split("\n") if line.startswith(_LEFT_OUT)]
    return Snapshot(commit, blobs, frozenset(_unquoted(line.removeprefix(_LEFT_OUT)) for line in lines))


def contents(root: Path, snapshot: Snapshot, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """What the snapshot has at each of the paths, which it must have. Raises GitFailed."""
    wanted = list(paths)
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as answer:
        asked.write(b"".join(snapshot.blobs[path].encode() + b"\n" for path in wanted))
        asked.seek(0)
        _run(root, asked, answer, "cat-file", "--batch")
        answer.seek(0)
        for path in wanted:
            _, kind, size, *_ = (*answer.readline().split(), b"", b"")
            if kind != b"blob":
                raise GitFailed(f"git lacks what {path} said in {snapshot.commit[:12]}; see: git fsck")
            yield path, answer.read(int(size))
            answer.read(1)


def drop(root: Path, names: Iterable[str]) -> None:
    """Let the snapshots under these names go: git forgets them when it next tidies up. Raises GitFailed."""
    with contextlib.suppress(FileNotFoundError):
        for name in names:
            run_git(root, "update-ref", "-d", _ref(name))


def _ref(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise GitFailed(f"{name!r} cannot be the name of a snapshot; use letters, digits and hyphens")
    return f"{REFS}/{name}"


def _message(subject: str, left_out: Collection[str]) -> bytes:
    told = " ".join(subject.encode(errors="replace").decode().replace("\0", " ").split())
    return os.fsencode("\n".join([told, "", *(_LEFT_OUT + _quoted(path) for path in sorted(left_out))]) + "\n")


def _told_to_import(
    ref: str, notes: Iterable[tuple[str, bytes]], subject: str, left_out: Collection[str]
) -> Iterator[bytes]:
    """The snapshot in the language of `git fast-import`: all bytes first, then the commit that puts them in place."""
    paths = []
    for mark, (path, raw) in enumerate(notes, 1):
        paths.append(path)
        yield b"blob\nmark :%d\ndata %d\n%s\n" % (mark, len(raw), raw)
    message = _message(subject, left_out)
    yield b"commit %s\ncommitter %s %d +0000\n" % (ref.encode(), NOBODY.encode(), int(time.time()))
    yield b"data %d\n%s\n" % (len(message), message)
    for mark, path in enumerate(paths, 1):
        yield b"M 100644 :%d %s\n" % (mark, os.fsencode(_quoted(path)))
    yield b"\ndone\n"


def _quoted(path: str) -> str:
    """A path on one line, as git quotes it."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _unquoted(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], quoted[1:-1])


def _import(root: Path, stream: IO[bytes]) -> None:
    with tempfile.TemporaryFile() as told:
        _run(root, stream, told, *_ANY_NAME, "fast-import", "--quiet", "--done", "--date-format=raw")


def _run(root: Path, given: IO[bytes], answer: IO[bytes], *arguments: str) -> None:
    """One command of git that is given, and answers, more than fits in memory. Raises GitFailed."""
    with tempfile.TemporaryFile() as complaints:
        with subprocess.Popen(
            command(root, *arguments), env=environment(), stdin=given, stdout=answer, stderr=complaints
        ) as running:
            try:
                status = running.wait(SECONDS)
            except subprocess.TimeoutExpired:
                raise GitFailed(f"git took longer than {SECONDS:g} seconds and was stopped") from None
            finally:
                running.kill()
        complaints.seek(0)
        if status != 0:
            raise GitFailed(first_line(complaints.read(1 << 16).decode(errors="replace")))


def _asked(root: Path, *arguments: str) -> bytes:
    answer = run_git(root, *arguments)
    if answer.returncode != 0:
        raise GitFailed(first_line(answer.stderr.decode(errors="replace")))
    return answer.stdout
