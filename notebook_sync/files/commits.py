"""One commit of exactly the bytes that were written, on top of what is there, whatever else the work tree holds.

Made of git's plumbing and an index of its own: what a person has staged stays as it is, and no hook runs. None is made
while a merge or the like stands open, or on no branch: it would go with that. The files are written before and stay
written, whatever git says.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import new
from pathlib import Path

from notebook_sync.errors import GitFailed
from notebook_sync.files.branch import NO_BRANCH, what_stands_open
from notebook_sync.files.git import first_line, run_git, why

NOBODY = "notebook-sync <notebook-sync@localhost>"
_TRIES = 8
_PAUSE_SECONDS = 0.02
_INDEX_SECONDS = 1.0
_DEADLINE_SECONDS = 15.0
_TEXTS_A_SECOND = 500
_MOST_NAMED = 500
_FEW_TEXTS = 20
_SHA1_DIGITS = 40
# An index that git writes for us is one whole file, whatever the repository is set to.
_OWN_INDEX = ("-c", "core.splitIndex=false", "-c", "index.sparse=false")


class HeadMoved(GitFailed):
    """What is checked out is no longer what the commit was to follow."""


def commit(
    root: Path,
    changes: Mapping[str, bytes | None],
    message: str,
    *,
    author: str | None = None,
    onto: str | None = None,
) -> str | None:
    """Commit `changes`, by path relative to `root`, None for a file that is gone. The new commit's id.

    None where there is nothing to do: no git, no repository, files that git is to ignore or that are in a repository
    of their own, or bytes that the last commit holds already. `author` is "Name <mail>"; without it, it is whom git's
    settings name, and NOBODY when they name nobody. With `onto`, it follows that commit, "" for none, or HeadMoved is
    raised. Raises GitFailed, also where the commit would not stay on a branch: a merge or the like stands open, or none
    is checked out.
    """
    own = {path: raw for path, raw in changes.items() if not _is_in_another_repository(root, path)}
    if not own:
        return None
    deadline = time.monotonic() + _DEADLINE_SECONDS + len(own) / _TEXTS_A_SECOND
    try:
        repository = _Repository.around(root, deadline)
        return repository.commit(own, message, author, onto) if repository else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GitFailed(f"git could not be asked: {error.strerror}") from None


def why_no_commit(root: Path, paths: Collection[str]) -> str:
    """Why a commit of what these files now say was not made, in words. Raises GitFailed."""
    own = [path for path in paths if not _is_in_another_repository(root, path)]
    if not own:
        return "it lies in a repository of its own, which is left to you" if paths else "nothing was changed"
    try:
        repository = _Repository.around(root, time.monotonic() + _DEADLINE_SECONDS)
    except FileNotFoundError:
        return "git is not installed"
    return repository.why_no_commit(own) if repository else "the folder is in no git repository"


def _is_in_another_repository(root: Path, path: str) -> bool:
    return any(os.path.lexists(root / above / ".git") for above in Path(path).parents if above != Path())


# By path from the top of the repository: mode and object id; None where there is nothing.
_Entries = dict[str, tuple[str, str] | None]


@dataclass(frozen=True, slots=True)
class _Repository:
    """A work tree. `top` is its folder, `prefix` leads from there to the notebook, `folder` is what git keeps of it and
    `index` the person's; `no_object` is the id that stands for nothing."""

    top: Path
    prefix: str
    folder: Path
    index: Path
    no_object: str
    deadline: float

    @classmethod
    def around(cls, root: Path, deadline: float) -> _Repository | None:
        asked = (
            "--is-inside-work-tree",
            "--show-object-format",
            "--show-prefix",
            "--show-toplevel",
            "--absolute-git-dir",
        )
        answer = run_git(root, "rev-parse", *asked, "--git-path", "index", seconds=deadline - time.monotonic())
        complaint = answer.stderr.decode(errors="replace")
        if answer.returncode == 0:
            _, form, prefix, top, folder, index = os.fsdecode(answer.stdout).split("\n")[:6]
            no_object = "0" * (64 if form == "sha256" else 40)
            return cls(Path(top), prefix, Path(folder), root / index, no_object, deadline)
        if "not a git repository" in complaint or "must be run in a work tree" in complaint:
            return None
        raise GitFailed(why(complaint))

    def commit(
        self, changes: Mapping[str, bytes | None], message: str, author: str | None, onto: str | None
    ) -> str | None:
        changes = self._not_ignored({self.prefix + path: raw for path, raw in changes.items()})
        if not changes:
            return None
        blobs = self._blobs(changes)
        for _ in range(_TRIES):
            head = self._head()
            if onto not in {None, head}:
                raise HeadMoved("another commit is checked out by now")
            with self._index_of(head) as scratch:
                before = self._entries(blobs, scratch)
                after: _Entries = {
                    path: None if oid is None else (_mode_like(before[path]), oid) for path, oid in blobs.items()
                }
                if after == before:
                    return None
                if told := what_stands_open(self.top, self.folder):
                    step = "check one out, then commit it" if told == NO_BRANCH else "commit it when that is over"
                    raise GitFailed(f"{told}; {step}")
                self._put(after, scratch)
                tree = _id(self._told("write-tree", "--missing-ok", index=scratch))
            made = self._commit_of(tree, head, message, author)
            if self._moved_head(made, head):
                self._tell_the_persons_index(before, after)
                return made
            time.sleep(_PAUSE_SECONDS)
        raise GitFailed("the branch moved at every try, or git keeps it locked; the next commit is tried as usual")

    def why_no_commit(self, paths: Collection[str]) -> str:
        kept = self._not_ignored(dict.fromkeys(self.prefix + path for path in paths))
        if not kept:
            return "git ignores it; see: git check-ignore -v PATH"
        said = {
            path: self._id_of(place.read_bytes()) if (place := self.top / path).is_file() else None for path in kept
        }
        with self._index_of(self._head()) as scratch:
            held = {path: entry[1] if entry else None for path, entry in self._entries(kept, scratch).items()}
        if held == said:
            return "the last commit has it like this already"
        return what_stands_open(self.top, self.folder) or "the warning says why"

    # The new commit.

    def _not_ignored(self, changes: dict[str, bytes | None]) -> dict[str, bytes | None]:
        given = b"".join(os.fsencode(path) + b"\0" for path in changes)
        answer = self._run("check-ignore", "-z", "--stdin", given=given)
        if answer.returncode not in {0, 1}:
            raise GitFailed(first_line(answer.stderr.decode(errors="replace")))
        ignored = {os.fsdecode(path) for path in answer.stdout.split(b"\0")}
        return {path: raw for path, raw in changes.items() if path not in ignored}

    def _blobs(self, changes: Mapping[str, bytes | None]) -> dict[str, str | None]:
        """The object id of each text, which git has from now on. A process for each of many would take too long: of
        texts that go back to what they were it has them all, and many new ones it is given at once."""
        ids = {path: None if raw is None else self._id_of(raw) for path, raw in changes.items()}
        held = self._held({oid for oid in ids.values() if oid}) if len(ids) > 1 else set()
        new = {path: raw for path, raw in changes.items() if raw is not None and ids[path] not in held}
        if len(new) > _FEW_TEXTS:
            given = b"".join(b"blob\ndata %d\n%s\n" % (len(raw), raw) for raw in new.values())
            self._told("fast-import", "--quiet", "--done", "--depth=0", given=given + b"done\n")
            return ids
        for path, raw in new.items():
            ids[path] = _id(self._told("hash-object", "-w", "--no-filters", "--stdin", given=raw))
        return ids

    def _id_of(self, raw: bytes, kind: bytes = b"blob") -> str:
        form = "sha1" if len(self.no_object) == _SHA1_DIGITS else "sha256"
        return new(form, b"%s %d\0" % (kind, len(raw)) + raw, usedforsecurity=False).hexdigest()

    def _held(self, ids: Collection[str]) -> set[str]:
        """Those of the objects that git has."""
        answer = self._told("cat-file", "--batch-check=%(objectname)", given="\n".join([*ids, ""]).encode())
        return {line for line in answer.decode().split("\n") if line in ids}

    def _head(self) -> str:
        """The commit that is checked out; "" on a branch without one."""
        answer = self._run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return _id(answer.stdout) if answer.returncode == 0 else ""

    @contextlib.contextmanager
    def _index_of(self, head: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="notebook-sync-") as folder:
            scratch = Path(folder) / "index"
            if head:
                self._told(*_OWN_INDEX, "read-tree", head, index=scratch)
            yield scratch

    def _commit_of(self, tree: str, head: str, message: str, author: str | None) -> str:
        parents = ("-p", head) if head else ()
        asked = ("commit-tree", "--no-gpg-sign", tree, *parents, "-F", "-")
        # Whom git makes up from the machine's name is nobody; better to say so.
        settings = ("-c", "user.useConfigOnly=true", "-c", "i18n.commitEncoding=UTF-8")
        given = message.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace")
        named = _identity("AUTHOR", author) if author else {}
        answer = self._run(*settings, *asked, given=given, variables=named)
        if answer.returncode != 0:
            named = _identity("AUTHOR", author or NOBODY) | _identity("COMMITTER", author or NOBODY)
            return _id(self._told(*settings, *asked, given=given, variables=named))
        return _id(answer.stdout)

    def _moved_head(self, made: str, head: str) -> bool:
        """Make `made` what is checked out, if that still is `head`; False when it is another by now."""
        answer = self._run("update-ref", "-m", "notebook-sync", "HEAD", made, head or self.no_object)
        if answer.returncode == 0:
            return True
        complaint = answer.stderr.decode(errors="replace")
        if self._head() == head and ".lock" not in complaint:
            raise GitFailed(first_line(complaint))
        return False

    # The person's own index.

    def _tell_the_persons_index(self, before: _Entries, after: _Entries) -> None:
        """Let the index follow where it held what the commit before held; what a person has staged stays staged.

        git's own way: whoever has made `index.lock` may put it in the index's place. Where another has it for long, or
        anything fails, the index stays as it is: the commit stands, and git shows the difference.
        """
        with contextlib.suppress(OSError, GitFailed), _locked(self.index) as lock:
            with tempfile.TemporaryDirectory(prefix="notebook-sync-") as folder:
                scratch = Path(folder) / "index"
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy(self.index, scratch)
                held = self._entries(before, scratch)
                self._put({path: entry for path, entry in after.items() if held[path] == before[path]}, scratch)
                shutil.copy(scratch, lock)
            lock.replace(self.index)

    # An index, the person's or our own.

    def _entries(self, paths: Mapping[str, object], index: Path) -> _Entries:
        """What an index holds at `paths`. A path in conflict holds nothing that any commit holds."""
        found: _Entries = dict.fromkeys(paths)
        if index.exists():
            named = paths if len(paths) <= _MOST_NAMED else ()  # a command line has an end
            answer = self._told("--literal-pathspecs", "ls-files", "-s", "-z", "--", *named, index=index)
            for line in answer.split(b"\0"):
                entry, _, name = line.partition(b"\t")
                path = os.fsdecode(name)
                if path in found:
                    mode, oid, stage = entry.decode().split()
                    found[path] = (mode, oid if stage == "0" else stage)
        nothing = self._id_of(b"")
        if empty := [path for path, entry in found.items() if entry and entry[1] == nothing]:
            found |= dict.fromkeys(set(empty) - self._staged(empty, index))
        return found

    def _staged(self, paths: Sequence[str], index: Path) -> set[str]:
        """Those of the paths that a commit of the index would hold; not those that are only meant to be added."""
        named = paths if len(paths) <= _MOST_NAMED else ()
        asked = ("diff-index", "--cached", "--ita-invisible-in-index", "--no-renames", "--name-only", "-z")
        answer = self._told("--literal-pathspecs", *asked, self._id_of(b"", b"tree"), "--", *named, index=index)
        return {os.fsdecode(path) for path in answer.split(b"\0")}

    def _put(self, entries: _Entries, index: Path) -> None:
        lines = sorted(self._index_line(path, entry) for path, entry in entries.items())  # what goes comes first
        self._told(*_OWN_INDEX, "update-index", "--add", "-z", "--index-info", given=b"".join(lines), index=index)

    def _index_line(self, path: str, entry: tuple[str, str] | None) -> bytes:
        mode, oid = entry or ("0", self.no_object)
        return f"{mode} {oid}\t".encode() + os.fsencode(path) + b"\0"

    # Asking git.

    def _told(
        self,
        *arguments: str,
        given: bytes = b"",
        index: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> bytes:
        answer = self._run(*arguments, given=given, index=index, variables=variables)
        if answer.returncode != 0:
            raise GitFailed(first_line(answer.stderr.decode(errors="replace")))
        return answer.stdout

    def _run(
        self,
        *arguments: str,
        given: bytes = b"",
        index: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        known = dict(variables or {}) | ({"GIT_INDEX_FILE": str(index)} if index else {})
        return run_git(self.top, *arguments, given=given, variables=known, seconds=self.deadline - time.monotonic())


def _id(told: bytes) -> str:
    return told.decode().strip()


def _mode_like(entry: tuple[str, str] | None) -> str:
    return "100755" if entry and entry[0] == "100755" else "100644"


def _identity(role: str, who: str) -> dict[str, str]:
    name, _, mail = who.replace("\0", "").partition("<")
    return {f"GIT_{role}_NAME": name.strip() or "notebook-sync", f"GIT_{role}_EMAIL": mail.partition(">")[0].strip()}


@contextlib.contextmanager
def _locked(index: Path) -> Iterator[Path]:
    """The lock of an index, to be filled and renamed. Raises FileExistsError where another has it for long."""
    lock = index.with_name(index.name + ".lock")
    end = time.monotonic() + _INDEX_SECONDS
    while True:
        try:
            lock.touch(exist_ok=False)
            break
        except FileExistsError:
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)
    ours = lock.stat().st_ino
    try:
        yield lock
    finally:
        with contextlib.suppress(FileNotFoundError):
            if lock.stat().st_ino == ours:
                lock.unlink()
