"""Which text of the prompt's files is trusted, with `prompt.trust = "committed"`: what the last commit holds, what an
owner session wrote, and what the owner accepted. Everything else waits, and the trusted version is shown.

Accepted versions are in `.notebook/trusted/`. Without them accepted text waits again; nothing untrusted is ever shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from notebook_sync.errors import EditFailed, GitFailed
from notebook_sync.files.branch import head_stamp, stamp_of
from notebook_sync.files.comparing import Steps, opcodes
from notebook_sync.files.git import blobs_of
from notebook_sync.notes.conflict_marks import why_unusable
from notebook_sync.notes.prompting.sources import GIT_SECONDS, as_source, copy_name, keep_copy
from notebook_sync.notes.runtime.answers import WaitingLine
from prompt import FileText

if TYPE_CHECKING:
    from notebook_sync.files.edits import Edit

FOLDER = "trusted"


@dataclass(frozen=True, slots=True)
class Untrusted:
    """A file that is not as it is trusted; None is a version that does not exist."""

    path: str
    trusted: bytes | None
    found: bytes | None

    @property
    def lines(self) -> list[WaitingLine]:
        """The lines, but blank ones, by which it differs from its trusted version."""
        return list(_waiting(self.path, _lines(self.trusted), _lines(self.found)))


@dataclass(frozen=True, slots=True)
class _Known:
    """What a source was shown as. `stamp` changes with HEAD and with the accepted version."""

    stamp: object
    source: FileText
    shown: FileText


class Trust:
    """The trusted versions of one notebook's prompt files. `folder` is its `.notebook`. For any number of threads.

    A missing file counts as an empty one: accepting that a file is gone accepts an empty version.
    """

    def __init__(self, root: Path, folder: Path, paths: Collection[str]) -> None:
        self._root = root
        self.paths = frozenset(paths)
        self._copies = {path: folder / FOLDER / copy_name(path) for path in paths}
        self._known: dict[str, _Known] = {}

    def shown(self, sources: Iterable[FileText]) -> list[FileText]:
        """The sources, those of the prompt's files with their trusted version as `content`."""
        head = head_stamp(self._root)  # once: each prompt asks it
        return [self._shown(source, head) if source.path in self.paths else source for source in sources]

    def _shown(self, source: FileText, head: object) -> FileText:
        stamp = head, stamp_of(str(self._copies[source.path]))
        known = self._known.get(source.path)
        if known is None or known.stamp != stamp or known.source != source:
            try:
                known = _Known(stamp, source, self._trusted(source))
            except GitFailed as error:  # asked again by the next call
                return known.shown if known else as_source(source.path, _waits(source.path), str(error), source.content)
            self._known[source.path] = known
        return known.shown

    def _trusted(self, source: FileText) -> FileText:
        waiting = self.untrusted(source)
        if waiting is None:
            return source
        count = len(waiting.lines)
        lines = "1 line waits" if count == 1 else f"{count:,} lines wait"
        problem = f"{lines} for trust: notebook-sync trust {source.path}"
        problem = f"{source.problem}; {problem}" if source.problem else problem
        shown = _waits(source.path) if waiting.trusted is None else waiting.trusted
        return as_source(source.path, shown, problem, source.content if source.found is None else source.found)

    def untrusted(self, source: FileText) -> Untrusted | None:
        """The file with its trusted version; None where that is what it says. Raises GitFailed."""
        trusted = self._version(source.path, source.content)
        return None if self.same(trusted, source.content) else Untrusted(source.path, trusted, source.content)

    def after(
        self, path: str, before: bytes | None, after: bytes | None, edits: Sequence[Edit], *, is_owners: bool
    ) -> bytes | None:
        """What is trusted once `after` is written in place of `before`. What the owner did not write adds nothing.
        Lines of `before` that wait go on waiting: the owner's edits are then made on the trusted version, which stays
        as it is where they do not apply. Raises GitFailed."""
        from notebook_sync.files.edits import edited_by_all  # it brings the parser along

        waiting = Untrusted(path, self._version(path, before), before)
        if not is_owners:
            return waiting.trusted
        if self.same(waiting.trusted, before):
            return after
        try:
            edited = edited_by_all(waiting.trusted or b"", edits, path) if edits else waiting.trusted
        except EditFailed:
            return waiting.trusted
        texts = {one.text for one in waiting.lines if not one.removed}
        return waiting.trusted if texts.intersection(_lines(edited)) else edited

    @staticmethod
    def same(one: bytes | None, other: bytes | None) -> bool:
        """Whether these are one text, in a file or in none: git may keep other line ends than the file has."""
        return (one or b"") == (other or b"") or _lines(one) == _lines(other)

    def accept(self, path: str, raw: bytes | None) -> None:
        """Trust this version until HEAD has another one than now. Raises OSError, GitFailed."""
        base = sha256(self._committed(path) or b"").hexdigest().encode()
        keep_copy(self._copies[path], base + b"\n" + (raw or b""))

    def _version(self, path: str, found: bytes | None) -> bytes | None:
        """What is trusted of the file that says `found`: `found` itself, else what was accepted since the version in
        HEAD, else that version; None for neither."""
        committed = self._committed(path)
        base, accepted = self._accepted(path)
        if base != sha256(committed or b"").hexdigest().encode():
            accepted = None  # another version was committed since
        if any(self.same(version, found) for version in (committed, accepted) if version is not None):
            return found
        return committed if accepted is None else accepted

    def _committed(self, path: str) -> bytes | None:
        name = f"HEAD:./{path}"
        try:
            raw = blobs_of(self._root, [name], seconds=GIT_SECONDS).get(name)
        except FileNotFoundError:
            return None
        return None if raw is None or why_unusable(raw) else raw

    def _accepted(self, path: str) -> tuple[bytes, bytes | None]:
        """The digest of the version in HEAD when it was accepted, and the accepted version."""
        try:
            base, _, raw = self._copies[path].read_bytes().partition(b"\n")
        except OSError:
            return b"", None
        return base, raw


def _waits(path: str) -> bytes:
    return f"[{path} waits for the owner's trust]\n".encode()


def _waiting(path: str, old: Sequence[str], new: Sequence[str]) -> Iterator[WaitingLine]:
    for tag, old_start, old_end, start, end in opcodes(old, new, Steps()):
        if tag != "equal":
            gone = ((start + 1, text, True) for text in old[old_start:old_end])
            added = ((number, text, False) for number, text in enumerate(new[start:end], start + 1))
            yield from (WaitingLine(path, *one) for one in (*gone, *added) if one[1].strip())


def _lines(raw: bytes | None) -> list[str]:
    return (raw or b"").decode(errors="replace").replace("\r\n", "\n").split("\n")
