"""What of the prompt's files waits for the owner's trust, where prompt.trust is "committed", and accepting it.

An edit in an owner session is trusted as it is made; other writes through tools add nothing that is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from notebook_sync.errors import Conflict, EditFailed, GitFailed, NoSuchNote
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.files.unified import unified_diff
from notebook_sync.services.assembling import files_of
from notebook_sync.services.core import Core
from notebook_sync.services.prompts import Trusted, TrustedFile
from notebook_sync.services.shown_files import is_same, lines_of
from notebook_sync.sessions import PROGRAM, Session


@dataclass(frozen=True, slots=True)
class Waiting:
    """A file that is not as it is trusted; None is a version that does not exist."""

    path: str
    trusted: bytes | None
    found: bytes | None

    def added(self) -> list[tuple[int, str]]:
        """The 1-based line in the file, and the text, of each line that the trusted version does not have."""
        known = set(lines_of(self.trusted))
        return [(n, line) for n, line in enumerate(lines_of(self.found), 1) if line.strip() and line not in known]

    def diff(self) -> str:
        """The unified difference from the trusted version."""
        before, after = ("\n".join(lines_of(raw)) for raw in (self.trusted, self.found))
        return unified_diff(before, after, self.path)


def waiting_files(core: Core) -> Iterator[Waiting]:
    """The prompt's files with changes that wait; none unless prompt.trust is "committed". Raises GitFailed."""
    files = files_of(core)
    for path in files.paths if files.shown.needs_trust else ():
        found, trusted = files.shown.found(path)[0], files.shown.trusted(path)
        if not is_same(trusted, found):
            yield Waiting(path, trusted, found)


def accept_changes(core: Core, session: Session, file: str, *, dry_run: bool, seen: Trusted | None) -> Trusted:
    """Accept what waits in `file`, or in all files of the prompt; with `dry_run`, only show it.

    Of what was `seen`, only that is accepted. Raises Conflict where a file changed since, NoSuchNote, GitFailed.
    """
    files = files_of(core)
    place = core.tree.place(file) if file else ""
    wanted = [path for path in files.paths if place in ("", path, path.removesuffix(".md"))]
    if not wanted:
        raise NoSuchNote(file)
    rows, differences = [], []
    digests = None if seen is None else {each.path: each.digest for each in seen.results}
    for each in [each for each in waiting_files(core) if each.path in wanted]:
        digest, diff = "" if each.found is None else sha256(each.found).hexdigest(), each.diff()
        if digests is not None and digests.get(each.path) != digest:
            raise Conflict(each.path, digests.get(each.path, ""), digest)
        changed = sum(line.startswith(("-", "+")) for line in diff.splitlines()[2:])
        rows.append(TrustedFile(each.path, digest, changed, accepted=not dry_run))
        differences.append(diff)
        if not dry_run:
            files.shown.accept(each.path, each.found)
            core.events.record("trusted", session, path=each.path, digest=digest)
    return Trusted(rows, "".join(differences))


def is_trusted(core: Core, path: str, raw: bytes | None) -> bool:
    """Whether this text of a note may be committed: all of it is trusted, or nobody asks for trust."""
    files = files_of(core)
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
    files = files_of(core)
    if not files.shown.needs_trust or path not in files.paths or session.kind != "owner" or session == PROGRAM:
        return
    trusted = files.shown.trusted(path)
    if is_same(trusted, before):
        files.shown.accept(path, after)
    elif edits:
        with suppress(EditFailed):
            edited = apply_edits(path, trusted or b"", edits)
            waiting = {line for _, line in Waiting(path, trusted, before).added()}
            if waiting.isdisjoint(lines_of(edited)):
                files.shown.accept(path, edited)
