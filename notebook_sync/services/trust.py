"""Which version of each prompt file is shown: the file as it is, its last good version, or the one the owner trusts.

`.notebook/good/` has a copy of the last good version of each file. With prompt.trust = "committed", trusted is what git
has, and what the owner accepted or wrote through a tool; a copy in the state folder serves while git does not answer.
Nothing here needs the index.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from notebook_sync.errors import Conflict, EditFailed, GitFailed, NoSuchNote, NotebookError, UnreadableFile, UnsafePath
from notebook_sync.files.beneath import digest_of, looks_unfinished, why_unusable
from notebook_sync.files.private import read_private, write_private
from notebook_sync.files.state import Place
from notebook_sync.files.tree import Tree
from notebook_sync.sessions import PROGRAM, Session
from notebook_sync.settings import Settings
from prompt import FileText

if TYPE_CHECKING:
    from notebook_sync.files.edits import Edit
    from notebook_sync.files.history import History
    from notebook_sync.services.core import Core

FOLDER = "good"
# What the problems of a prompt say of a file with waiting lines.
FOR_TRUST = "changes wait for trust"
_BEING_WRITTEN = "it is being written"
_EMPTY = why_unusable(b"")
# After git failed, prompts do without it for a while.
_PAUSE_SECONDS = 30.0


class TrustedFile(msgspec.Struct, frozen=True):
    """A file with changes that wait, or were accepted. `digest` is the file's now, "" for no file; `lines` counts the
    lines that were added or removed since the trusted version."""

    path: str
    digest: str
    lines: int
    accepted: bool


class Trusted(msgspec.Struct, frozen=True):
    """The files with changes that wait, and the unified difference of all of them from their trusted versions."""

    results: list[TrustedFile]
    diff: str


class ShownFiles:
    """Reads the files of one notebook's prompt. May be used from several threads."""

    def __init__(self, tree: Tree, place: Place, settings: Settings) -> None:
        self.needs_trust = settings.prompt.trust == "committed"
        self._tree, self._place, self._git = tree, place, settings.git
        self._good, self._vouched_for = place.lock_folder / FOLDER, place.state / "trusted"
        self._settle_ns = settings.sync.settle_ms * 1_000_000
        self._copies: dict[str, bytes] = {}
        self._trusted: dict[str, tuple[object, bytes | None]] = {}
        self._failed: tuple[float, str] | None = None

    def read(self, path: str) -> FileText:
        """The file as a prompt shows it. `problem` says why where that is not the file as it is."""
        found, problem = self.found(path)
        if self.needs_trust:
            return self._vouched(path, found, problem)
        if not problem:
            if found is not None and self._copies.get(path) != found:
                self._copies[path] = found  # also where no copy can be written
                keep_copy(_copy_in(self._good, path), found)
            return as_source(path, found)
        good = self._copy(path)
        if good is None and found is not None and problem != _BEING_WRITTEN:
            with suppress(GitFailed), self._asking():
                good = self._committed(path)
        if good is None and problem in (_BEING_WRITTEN, _EMPTY):  # it never said anything else
            return as_source(path, found, "" if problem == _EMPTY else problem)
        if good is None:
            return as_source(path, f"[{path} cannot be read and is not shown]\n".encode(), problem, found)
        meant = "; delete the file if it is meant to be empty" if problem == _EMPTY else ""
        return as_source(path, good, f"{problem}; its last good version is shown{meant}", found)

    def found(self, path: str) -> tuple[bytes | None, str]:
        """The bytes that are in the file now, None for no file, and why they cannot be shown."""
        try:
            read = self._tree.read(path)
        except NoSuchNote:
            # Editors may put the old file aside before the new one is there.
            if self._is_recent(_changed_at((self._tree.root / path).parent)) and self._copy(path) is not None:
                return None, _BEING_WRITTEN
            self._copies.pop(path, None)
            with suppress(OSError):
                _copy_in(self._good, path).unlink()
            return None, ""
        except (UnreadableFile, UnsafePath) as error:
            return None, error.reason
        if looks_unfinished(read.raw) and (not read.settled or self._is_recent(read.stamp.ctime_ns)):
            return read.raw, _BEING_WRITTEN
        return read.raw, "" if self._copies.get(path) == read.raw else why_unusable(read.raw)

    def trusted(self, path: str) -> bytes | None:
        """What the owner accepted since the last commit of the file, else what that commit has; None for neither.

        Raises GitFailed, after 3 s at most, and for a while at once.
        """
        with self._asking():
            stamp = (self._history.head_stamp(), _changed_at(self._place.state / "accepted"))
            known = self._trusted.get(path)
            if known is None or known[0] != stamp:
                raw = self._history.accepted(path)
                raw = self._committed(path) if raw is None else raw
                known = self._trusted[path] = stamp, raw
                keep_copy(_copy_in(self._vouched_for, path), raw or b"")
            return known[1]

    def accept(self, path: str, raw: bytes | None) -> None:
        """Trust this version until the last commit has another one; None for no file. Raises GitFailed."""
        self._history.accept(path, raw or b"")
        self._trusted.pop(path, None)

    def _vouched(self, path: str, found: bytes | None, problem: str) -> FileText:
        """The trusted version; while git does not answer, the one that was trusted last."""
        try:
            trusted, doubt = self.trusted(path), ""
        except GitFailed as error:
            trusted, doubt = None, f"git does not say what is trusted: {error}"
            with suppress(OSError):
                trusted = read_private(_copy_in(self._vouched_for, path)) or None
        if not doubt and is_same(trusted, found):
            return as_source(path, found)
        shown = f"[{path} waits for the owner's trust]\n".encode() if trusted is None else trusted
        problem = doubt or problem or f"{FOR_TRUST}: notebook-sync trust {path}"
        return as_source(path, shown, problem, found)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Ask git; for a while after it failed, raise GitFailed without asking."""
        if self._failed and time.monotonic() - self._failed[0] < _PAUSE_SECONDS:
            raise GitFailed(self._failed[1])
        try:
            yield
        except GitFailed as error:
            self._failed = time.monotonic(), error.message
            raise

    @cached_property
    def _history(self) -> History:
        from notebook_sync.files.history import History  # git is asked only about what is not as it should be

        return History(self._place, self._tree, self._git)

    def _committed(self, path: str) -> bytes | None:
        raw = self._history.head_text(path)
        return None if raw is None or why_unusable(raw) else raw

    def _is_recent(self, ctime_ns: int) -> bool:
        """Within the settle time of now. A ctime, since an mtime can be set to anything."""
        return abs(time.time_ns() - ctime_ns) < self._settle_ns

    def _copy(self, path: str) -> bytes | None:
        if path not in self._copies:
            with suppress(OSError):
                raw = read_private(_copy_in(self._good, path))
                if raw is not None and not why_unusable(raw):
                    self._copies[path] = raw
        return self._copies.get(path)


def waiting_files(core: Core) -> Iterator[tuple[str, bytes | None, bytes | None]]:
    """Each of the prompt's files with changes that wait, as it is trusted, and as it is found; None is a version that
    does not exist. None wait unless prompt.trust is "committed". Raises GitFailed."""
    files = core.prompt_files
    for path in files.paths if files.shown.needs_trust else ():
        found, trusted = files.shown.found(path)[0], files.shown.trusted(path)
        if not is_same(trusted, found):
            yield path, trusted, found


def lines_added(trusted: bytes | None, found: bytes | None) -> list[tuple[int, str]]:
    """The 1-based line in the file, and the text, of each line that the trusted version does not have."""
    known = set(lines_of(trusted))
    return [(n, line) for n, line in enumerate(lines_of(found), 1) if line.strip() and line not in known]


def accept_changes(core: Core, session: Session, file: str, *, dry_run: bool, seen: Trusted | None) -> Trusted:
    """Accept what waits in `file`, or in all files of the prompt; with `dry_run`, only show it.

    Of what was `seen`, only that is accepted. Raises Conflict where a file changed since, NoSuchNote, GitFailed.
    """
    files, place = core.prompt_files, core.tree.place(file) if file else ""
    wanted = [path for path in files.paths if place in ("", path, path.removesuffix(".md"))]
    if not wanted:
        raise NoSuchNote(file)
    rows, differences = [], []
    digests = None if seen is None else {each.path: each.digest for each in seen.results}
    for path, trusted, found in [each for each in waiting_files(core) if each[0] in wanted]:
        row, difference = compared(path, trusted, found)
        if digests is not None and digests.get(path) != row.digest:
            raise Conflict(path, digests.get(path, ""), row.digest)
        differences.append(difference)
        rows.append(msgspec.structs.replace(row, accepted=not dry_run))
        if not dry_run:
            files.shown.accept(path, found)
            core.events.record("trusted", session, path=path, digest=row.digest)
    return Trusted(rows, "".join(differences))


def compared(path: str, trusted: bytes | None, found: bytes | None) -> tuple[TrustedFile, str]:
    """What waits in a file, and the unified difference from its trusted version."""
    from notebook_sync.files.edits import unified_diff  # no prompt needs it

    before, after = ("\n".join(lines_of(raw)) for raw in (trusted, found))
    difference = unified_diff(before, after, path)
    changed = sum(line.startswith(("-", "+")) for line in difference.splitlines()[2:])
    return TrustedFile(path, digest_of(found), changed, accepted=False), difference


def is_trusted(core: Core, path: str, raw: bytes | None) -> bool:
    """Whether this text of a note may be committed: all of it is trusted, or nobody asks for trust."""
    files = core.prompt_files
    with suppress(GitFailed):
        asks = files.shown.needs_trust and path in files.paths
        return not asks or is_same(files.shown.trusted(path), raw)
    return False


def trust_edit(
    core: Core, session: Session, path: str, before: bytes | None, after: bytes | None, edits: Sequence[Edit]
) -> None:
    """After a write of one note, before it is committed: trust what the owner wrote, and nothing that waited before.

    Where lines wait, the owner's edits are made on the trusted version; where they do not apply to it, or give a text
    that has a waiting line, nothing is trusted. Writes of others and of the program are not trusted; nobody calls this
    for an undo or a rename. Raises GitFailed.
    """
    files = core.prompt_files
    if not files.shown.needs_trust or path not in files.paths or session.kind != "owner" or session == PROGRAM:
        return
    trusted = files.shown.trusted(path)
    if is_same(trusted, before):
        files.shown.accept(path, after)
    elif edits:
        from notebook_sync.files.edits import apply_edits  # no prompt needs it

        with suppress(EditFailed):
            edited = apply_edits(path, trusted or b"", edits)
            waiting = {line for _, line in lines_added(trusted, before)}
            if waiting.isdisjoint(lines_of(edited)):
                files.shown.accept(path, edited)


def as_source(path: str, content: bytes | None, problem: str = "", found: bytes | None = None) -> FileText:
    """A file's bytes as the prompt takes them."""
    if content is not None and content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"-", b"+", b"{"):
        from notebook_sync.files.frontmatter import is_external  # few files of a prompt have any frontmatter

        return FileText(path, content, problem, found, external=is_external(content))
    return FileText(path, content, problem, found)


def keep_copy(file: Path, raw: bytes) -> None:
    """Write a copy, which is checked when it is read, and made again where it is lost or could not be written."""
    with suppress(OSError, NotebookError):
        write_private(file, raw, durable=False)


def is_same(one: bytes | None, other: bytes | None) -> bool:
    """Whether these are one text, in a file or in none: git may keep other line ends than the file has."""
    return one == other or lines_of(one) == lines_of(other)


def lines_of(raw: bytes | None) -> list[str]:
    """The lines of a text without their ends."""
    return (raw or b"").decode(errors="replace").replace("\r\n", "\n").split("\n")


def _copy_in(folder: Path, path: str) -> Path:
    return folder / f"{sha256(path.encode()).hexdigest()[:16]}.md"


def _changed_at(folder: Path) -> int:
    """The ctime of a folder in ns, 0 where there is none."""
    with suppress(OSError):
        return folder.stat().st_ctime_ns
    return 0
