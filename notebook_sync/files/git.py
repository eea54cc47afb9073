"""One git repository that keeps notes, which may be anyone's: no hook, filter, pager or other program that it names is
run, no network is reached, and nothing waits for ever.

A commit holds exactly the bytes it is given, on top of what is there; what a person has staged stays staged.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import new as new_hash
from pathlib import Path
from shutil import which
from typing import NamedTuple

from notebook_sync.errors import GitFailed

NO_GIT = "git is not installed"
NOBODY = "notebook-sync <notebook-sync@localhost>"
GIT_SECONDS = 60.0
# For all notes at once.
LONG_SECONDS = 300.0
# A prompt may wait for the answer.
ANSWER_SECONDS = 3.0
_SETTINGS = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.alternateRefsCommand=true", "diff.orderFile=/dev/null"),
    *("log.showRoot=true", "gc.auto=0", "maintenance.auto=false", "user.useConfigOnly=true"),
    "fastimport.unpackLimit=100",
)
# Others, which a hook has, name the hook's repository, which need not be the notebook's.
_KEPT_VARIABLES = frozenset(
    {
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"),
        *(f"GIT_{role}_{what}" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")),
    }
)
# No protocol is allowed: a partial clone would fetch what it lacks, by a program that its settings name.
_OWN_VARIABLES = {"LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
_LOG = (
    *("--literal-pathspecs", "log", "-z", "--raw", "--no-abbrev", "--no-renames", "-c", "--full-history"),
    *("--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-notes", "--encoding=UTF-8"),
    *("--no-follow", "--ignore-submodules=all", "--format=%x00commit%x00%H%x00%at%x00%B"),
)
# A command line has an end.
_MOST_NAMED = 500
_SUBMODULE = "160000"
# Where a new commit is, until the branch has it.
_NEW_REF = "refs/notebook-sync/new"
_FOUND = "Keep what was edited by hand\n\n"
# What files hold, by path; None for no file.
Texts = Mapping[str, bytes | None]
_FILE, _EXECUTABLE, _NO_FILE = "100644", "100755", "000000"
_NOTHING = ("", "")
# What `cat-file --batch` prints above an object.
_OBJECT = re.compile(rb"[0-9a-f]+ ([a-z]+) ([0-9]+)\n")
_LATEST = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())
# An editor that waits for a commit message is believed for so long.
_MESSAGE_SECONDS = 3600.0
# What git keeps while it is in the middle of something.
_UNDER_WAY = {
    "rebase-merge": "a rebase is open",
    "rebase-apply": "a rebase is open",
    "MERGE_HEAD": "a merge is open",
    "CHERRY_PICK_HEAD": "a cherry-pick is open",
    "REVERT_HEAD": "a revert is open",
    "BISECT_LOG": "a bisection is open",
    "index.lock": "another git command is at work, or has left index.lock behind",
}


def has_git() -> bool:
    """Whether git is installed."""
    return which("git") is not None


def run_git(
    folder: Path,
    *arguments: str,
    given: bytes = b"",
    fine: Collection[int] = (0,),
    seconds: float = GIT_SECONDS,
) -> bytes:
    """What a command of git prints in `folder`.

    Raises GitFailed for an exit code that is not in `fine`, for no git, and after so many seconds.
    """
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    command = ["git", "--no-pager", "--no-optional-locks", *settings, *arguments]
    inherited = {name: value for name, value in os.environ.items() if name in _KEPT_VARIABLES or name[:4] != "GIT_"}
    pipe = subprocess.PIPE
    try:
        running = subprocess.Popen(
            command, cwd=folder, env=inherited | _OWN_VARIABLES, stdin=pipe, stdout=pipe, stderr=pipe
        )
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError) and folder.is_dir()
        raise GitFailed(NO_GIT if is_missing else f"{folder}: {error.strerror}") from None
    with running:
        try:
            printed, complaint = running.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired:
            running.terminate()  # it removes its locks then, which a killed git leaves
            with suppress(subprocess.TimeoutExpired):
                running.communicate(timeout=1)
            raise GitFailed(f"git {' '.join(arguments[:2])} took longer than {seconds:g} s and was stopped") from None
        finally:
            running.kill()
    if running.returncode not in fine:
        raise GitFailed(_worded(complaint.decode(errors="replace")))
    return printed


class Entry(NamedTuple):
    """What a commit did to a regular file: A (added), M or D (deleted), its blob before, in its first parent, and
    after."""

    status: str
    old: str
    new: str


class Commit(NamedTuple):
    """A commit and what it did to files, by path relative to the notebook. `at` is the author's time, UTC."""

    rev: str
    at: datetime
    message: str
    entries: Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Repository:
    """`folder` is the top of the work tree, `git_dir` what git keeps of it, `common` what linked work trees share; all
    are one for the private repository. `prefix` leads from the top to the notebook. Paths are relative to the notebook.
    Methods raise GitFailed."""

    folder: Path
    git_dir: Path
    common: Path
    prefix: str
    object_format: str
    is_private: bool = False

    @classmethod
    def around(cls, root: Path) -> Repository | None:
        """The repository in whose work tree `root` is; None for no repository."""
        asked = (
            *("--is-inside-work-tree", "--show-object-format", "--show-prefix", "--show-toplevel"),
            *("--absolute-git-dir", "--git-common-dir"),
        )
        try:
            answer = os.fsdecode(run_git(root, "rev-parse", *asked, seconds=ANSWER_SECONDS))
        except GitFailed as error:
            if "not a git repository" in error.message or "must be run in a work tree" in error.message:
                return None
            raise
        is_inside, object_format, prefix, top, git_dir, common = answer.split("\n")[:6]
        return cls(Path(top), Path(git_dir), root / common, prefix, object_format) if is_inside == "true" else None

    @classmethod
    def private(cls, folder: Path) -> Repository:
        """The bare repository in `folder`, made where it is missing."""
        if not (folder / "HEAD").exists():
            folder.mkdir(0o700, parents=True, exist_ok=True)
            asked = ("--quiet", "--bare", "--initial-branch=notes", "--object-format=sha1", "--template=")
            run_git(folder, "init", *asked, ".")
        return cls(folder, folder, folder, "", "sha1", is_private=True)

    def branch(self) -> str:
        """The ref that is checked out; "" for none."""
        return os.fsdecode(self._git("symbolic-ref", "--quiet", "HEAD", fine=(0, 1))).strip()

    def head(self, ref: str = "HEAD") -> str:
        """The commit that `ref` names, else the one that is checked out; "" for none."""
        asked = ("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        return self._git(*asked, fine=(0, 1), seconds=ANSWER_SECONDS).decode().strip()

    def head_stamp(self) -> object:
        """A value that changes when another commit is checked out, from files alone. Raises GitFailed."""
        try:
            head = (self.git_dir / "HEAD").read_bytes()
            names = (os.fsdecode(head[5:].strip()), "packed-refs", "reftable/tables.list")
            found = [file.stat() for file in (self.common / name for name in names) if file.exists()]
        except OSError as error:
            raise GitFailed(f"the repository cannot be read: {error.strerror}") from None
        return head, *((each.st_ino, each.st_mtime_ns) for each in found)

    def why_wait(self) -> str:
        """Why a commit made now could disturb what somebody does with git; "" when it is free."""
        for name, what in _UNDER_WAY.items():
            if (self.git_dir / name).exists():
                return what
        if os.environ.get("GIT_INDEX_FILE"):
            return "this process was started by a git command"
        with suppress(OSError):
            begun = (self.git_dir / "COMMIT_EDITMSG").stat().st_mtime
            log = self.git_dir / "logs" / "HEAD"
            if begun > (log.stat().st_mtime if log.exists() else 0) and time.time() - begun < _MESSAGE_SECONDS:
                return "a commit message is being written"
        return ""

    def left_out(self, paths: Collection[str]) -> set[str]:
        """Those of the paths that git ignores, or that are in a repository of their own."""
        root = self.folder / self.prefix
        nested = {path for path in paths for above in Path(path).parents[:-1] if (root / above / ".git").exists()}
        # With ./ in front, a colon at the start of a name is no command.
        given = b"".join(os.fsencode(f"./{self.prefix}{path}\0") for path in paths if path not in nested)
        ignored = self._git("check-ignore", "-z", "--stdin", given=given, fine=(0, 1)) if given else b""
        return nested | {os.fsdecode(path)[len(f"./{self.prefix}") :] for path in ignored.split(b"\0")}

    def blob_id(self, raw: bytes) -> str:
        """The name that git gives to these bytes."""
        return new_hash(self.object_format, b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()

    def blobs(self, names: Sequence[str], seconds: float = ANSWER_SECONDS) -> Iterator[bytes | None]:
        """The bytes of each blob, by its id or as `COMMIT:PATH` (with `prefix`); None where git has none."""
        given = "".join("\n" if "\n" in name else f"{name}\n" for name in names)
        printed, at = self._git("cat-file", "--batch", given=os.fsencode(given), seconds=seconds), 0
        for _ in names:
            end = printed.index(b"\n", at) + 1
            found = _OBJECT.fullmatch(printed, at, end)  # else it is missing
            at = end + int(found[2]) + 1 if found else end
            yield printed[end : at - 1] if found and found[1] == b"blob" else None

    def entries(self, commit: str, paths: Collection[str]) -> dict[str, tuple[str, str]]:
        """Mode and id of each of the paths that a commit has; a path may also be a folder or a submodule."""
        asked = ("ls-tree", "-z", "--full-tree", commit)
        return self._listed(paths, *asked, seconds=ANSWER_SECONDS) if commit else {}

    def commit(self, texts: Texts, message: str, author: str = "", found: Texts | None = None, *, at: datetime) -> str:
        """Commit what these paths hold now, None for no file, on top of a commit of what was found there before; return
        the last commit, "" where nothing is new.

        `author` is "Name <mail>", else git's own setting. `at` is when: the message says it too, since git counts whole
        seconds. The caller has asked `why_wait` and `left_out`. Raises GitFailed also where the branch moves
        meanwhile.
        """
        head = self.head()
        held = self._held(head, {**(found or {}), **texts})
        if found and self._news(found, held):
            # It was there before, also where the other commit is in another repository.
            earlier = self.commit(found, _FOUND, author, at=at - timedelta(milliseconds=1))
            return self.commit(texts, message, author, at=at) or earlier
        new = self._news(texts, held)
        if not new:
            return ""
        known = self._git("var", "GIT_COMMITTER_IDENT", fine=(0, 128)).decode(errors="replace")
        committer = " ".join(known.split(" ")[:-2]) or author or NOBODY
        author, date = author or committer, time.strftime(f"{int(at.timestamp())} %z")
        people = f"author {author} {date}\ncommitter {committer} {date}\n"
        files = {path: (mode, texts[path]) for path, (mode, _) in new.items()}
        commit = self._write(_NEW_REF, people, f"{message}Time: {at.isoformat()}\n", files, head)
        if not self.is_private:
            self._stage(held, new)
        moved = f"update HEAD {commit} {head or '0' * len(commit)}\ndelete {_NEW_REF}\n"
        self._git("update-ref", "--stdin", given=moved.encode())
        return commit

    def commit_apart(self, ref: str, texts: Mapping[str, bytes], message: str) -> str:
        """Commit exactly these texts, without a parent, as what `ref` names, which is on no branch; return the commit.
        In a tree that nobody checks out, any name will do."""
        files = {path: (_FILE, raw) for path, raw in texts.items()}
        people = f"committer {NOBODY} {int(time.time())} +0000\n"
        lax = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")
        return self._write(ref, people, message, files, options=lax)

    def forget(self, refs: Collection[str]) -> None:
        """Delete refs; git removes what only they name when it next tidies up."""
        self._git("update-ref", "--stdin", given="".join(f"delete {ref}\n" for ref in refs).encode())

    def log(self, *arguments: str, start: str = "HEAD", path: str = "") -> Iterator[Commit]:
        """The commits that `git log ARGUMENTS START` finds, with what they did to files at or below `path`."""
        if start == "HEAD" and not self.head():
            return
        below = self.prefix + path
        printed = self._git(*_LOG, *arguments, start, *(["--", below] if below else []))
        # Between commits are empty tokens and line ends.
        tokens = filter(bytes.strip, printed.split(b"\0"))
        token = next(tokens, None)
        while token is not None:
            rev, seconds, message = (next(tokens, b"").decode(errors="replace") for _ in range(3))
            # Any program can write a commit: its time may be missing, or beyond what a datetime holds.
            at = datetime.fromtimestamp(min(int(seconds), _LATEST) if seconds.isdigit() else 0, UTC)
            entries = {}
            while (token := next(tokens, None)) not in (None, b"commit"):
                # Of a merge: what no parent has, with mode and blob of each parent.
                *fields, _ = token.decode().strip().lstrip(":").split()
                half = len(fields) // 2
                (*were, mode), (old, *_, new) = fields[:half], fields[half:]
                status = "D" if mode == _NO_FILE else "A" if max(were) == _NO_FILE else "M"
                changed = os.fsdecode(next(tokens, b""))
                if (max(were) if status == "D" else mode).startswith("100"):
                    entries[changed[len(self.prefix) :]] = Entry(status, old, new)
            yield Commit(rev, at, message, entries)

    def pack(self) -> None:
        """Let git tidy up, if it finds that worthwhile."""
        self._git("-c", "gc.auto=6700", "gc", "--auto", "--quiet")

    def _write(
        self,
        ref: str,
        people: str,
        message: str,
        files: Mapping[str, tuple[str, bytes | None]],
        parent: str = "",
        options: Sequence[str] = (),
    ) -> str:
        """Make a commit that `ref` names, of the mode and the text of each path, None for no file; its id."""
        said = message.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace")
        stream = [f"commit {ref}\nmark :1\n{people}".encode(), _data(said)]
        stream += [f"from {parent}\n".encode()] if parent else []
        for path, (mode, raw) in files.items():
            name = _quoted(self.prefix + path)
            stream += [b"D %s\n" % name] if raw is None else [b"M %s inline %s\n" % (mode.encode(), name), _data(raw)]
        given = b"".join([*stream, b"get-mark :1\ndone\n"])
        asked = (*options, "fast-import", "--quiet", "--force", "--done", "--date-format=raw")
        return self._git(*asked, given=given, seconds=LONG_SECONDS).decode().strip()

    def _git(
        self, *arguments: str, given: bytes = b"", fine: Collection[int] = (0,), seconds: float = GIT_SECONDS
    ) -> bytes:
        where = ("--git-dir=.",) if self.is_private else ()
        return run_git(self.folder, *where, *arguments, given=given, fine=fine, seconds=seconds)

    def _listed(
        self, paths: Collection[str], *arguments: str, seconds: float = GIT_SECONDS
    ) -> dict[str, tuple[str, str]]:
        """What a command lists of the paths as `MODE … ID …<tab>PATH`: mode and id, by path."""
        found, names = {}, [self.prefix + path for path in paths]
        for start in range(0, len(names), _MOST_NAMED):
            some = names[start : start + _MOST_NAMED]
            listed = self._git("--literal-pathspecs", *arguments, "--", *some, seconds=seconds)
            for line in listed.split(b"\0")[:-1]:
                fields, _, name = line.partition(b"\t")
                mode, *rest = fields.decode().split()
                found[os.fsdecode(name)[len(self.prefix) :]] = (mode, max(rest, key=len))
        return found

    def _held(self, head: str, paths: Collection[str]) -> dict[str, tuple[str, str]]:
        """Mode and blob that each path has in the commit, "" for none. Raises GitFailed for a submodule."""
        above = {str(folder) for path in paths for folder in Path(path).parents[:-1]}
        held = self.entries(head, {*paths, *above})
        if any(mode == _SUBMODULE for mode, _ in held.values()):
            raise GitFailed("one of the files is in a submodule")
        return {path: held.get(path, _NOTHING) for path in paths}

    def _news(self, texts: Texts, held: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
        """Mode and blob of each of the texts that is not what is held."""
        ids = {path: "" if raw is None else self.blob_id(raw) for path, raw in texts.items()}
        modes = {path: mode if mode == _EXECUTABLE else _FILE for path, (mode, _) in held.items()}
        return {path: (modes[path], oid) for path, oid in ids.items() if oid != held[path][1]}

    def _stage(self, held: Mapping[str, tuple[str, str]], new: Mapping[str, tuple[str, str]]) -> None:
        """Let the index follow to what is new, where it has what the last commit has. It is before the branch moves: a
        commit that a person makes now takes the change along, and does not revert it."""
        index = self._listed(new, "ls-files", "--stage", "-z", "--full-name")
        # An empty file that no commit has may be one that is only meant to be added.
        meant = (_FILE, self.blob_id(b""))
        lines = [
            f"{mode if oid else 0} {oid or '0' * len(meant[1])}\t{self.prefix}{path}\0"
            for path, (mode, oid) in new.items()
            if (has := index.get(path, _NOTHING)) == held[path] or (has == meant and held[path] == _NOTHING)
        ]
        if lines:
            self._git("update-index", "--add", "-z", "--index-info", given=os.fsencode("".join(lines)))


def _worded(complaint: str) -> str:
    """The line of a complaint that says what is wrong, or what helps."""
    lines = [line.strip() for line in complaint.splitlines()] or ["git gave no reason"]
    trust = [line for line in lines if "--add safe.directory" in line]
    if trust:
        return f"git does not trust this repository, which is another user's; if you do, run: {trust[0]}"
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0])


def _data(raw: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(raw), raw)


def _quoted(path: str) -> bytes:
    return b'"' + os.fsencode(path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) + b'"'
