"""A notebook as one plain tar: its files, its history as git bundles, and what only the index holds as JSON lines.

An archive may be anyone's. It is read to its end and checked before anything is written: no name leads out of the
folder, no member is anything but a plain file, and nothing in it starts a program or names a server unless the owner
trusts it. A tar that is not compressed holds no more than its size, so none unpacks to more than the disk has.
"""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import re
import secrets
import shutil
import tarfile
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Literal, NamedTuple

import msgspec

from notebook_sync.errors import ConfigError, GitFailed, NotebookError, Refused, UsageError
from notebook_sync.files.git import LONG_SECONDS, Repository, has_git, run_git
from notebook_sync.files.history import PRIVATE
from notebook_sync.files.ignore import GITIGNORE
from notebook_sync.files.names import LONGEST_NAME, folded, is_hidden
from notebook_sync.files.private import FOLDER, write_private
from notebook_sync.files.state import Place, state_home
from notebook_sync.model import SETTINGS_FILE
from notebook_sync.permissions import CHANNEL_FILE, is_ignorable
from notebook_sync.services.core import Core
from notebook_sync.services.importing import Exported, Failure, Imported
from notebook_sync.services.upkeep import finish_open_writes, sync_notebook
from notebook_sync.settings import parse_settings, settings_that_reach_out
from notebook_sync.store.tables import from_json

FORMAT = 1
INFO, FILES, ROWS, END = "archive.json", "files/", "index.jsonl", "end"
HISTORY, PRIVATE_HISTORY = "history.bundle", "private.bundle"
# What a line of ROWS may be of: an open write belongs to the files of the machine that it was begun on.
_LOADED = frozenset(("documents", "history", "facts", "stream", "longterm", "checkpoints", "events"))
_MOST_MEMBERS, _LONGEST_PATH, _SECOND = 200_000, 4_000, 1_000_000_000
_LONGEST_LINE, _LARGEST_TEXT, _LARGEST_HEAD = 64 << 20, 1 << 20, 1 << 20
_SETTINGS_OF_GIT = (".gitattributes", ".gitmodules")
_OF_GIT = (GITIGNORE, *_SETTINGS_OF_GIT)
_OWN = frozenset((".git", FOLDER))
# Control characters, bytes that are not UTF-8, line and paragraph separators.
_CONTROL = frozenset(("Cc", "Cs", "Zl", "Zp"))
# A driver that is not git's own, a command of a submodule, a transport that is a program.
_PROGRAM = re.compile(r"(?<!\S)(?:filter|diff|merge)=(?!(?:text|binary|union|markdown|python)\b)|update\W+!|::")


class Info(msgspec.Struct, frozen=True):
    """The first member. `id` is the archive's own; `notebook` is the notebook's; `branch` is what was checked out in
    its repository, "" without one, and `object_format` how that names its objects."""

    format: int
    id: str
    notebook: str = ""
    branch: Annotated[str, msgspec.Meta(pattern=r"^(refs/heads/\w.*)?$")] = ""
    object_format: Literal["sha1", "sha256"] = "sha1"


class _Member(NamedTuple):
    """One member, whose bytes can be read until the next one is asked for. `path` is "" for what is no file of the
    notebook; `mtime` is in ns."""

    name: str
    path: str
    mode: int
    mtime: int
    data: IO[bytes]


class _Contents(NamedTuple):
    """What an archive holds: its files and those that are there already, its rows, and lines that are none; what in it
    starts programs or names other machines."""

    info: Info
    paths: set[str]
    same: set[str]
    rows: int
    unreadable: int
    reaching: list[str]


# ---- out


def export_notebook(core: Core, file: str) -> Exported:
    """Write the archive, whole or not at all. Raises UsageError for a place that cannot be."""
    target = Path(file).expanduser().absolute()
    is_inside = core.root in (target.parent.resolve(), *target.parent.resolve().parents)
    if is_inside or os.path.lexists(target) or not target.parent.is_dir():
        advice = "name a new file, in a folder that exists and is outside of the notebook"
        raise UsageError(f"{target} cannot be the archive", next=advice)
    core.engine.sync()
    finish_open_writes(core)
    rows = core.index.dump(core.place.state / "dump")
    left_out: list[Failure] = []
    warnings: list[str] = []
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            made = Path(folder) / "archive"
            with tarfile.open(made, "x", format=tarfile.PAX_FORMAT) as tar:
                made.chmod(0o600)
                repository = _repository_of(core, warnings)
                branch = repository.branch() if repository else ""
                own = {"format": FORMAT, "id": secrets.token_hex(8), "notebook": core.place.notebook_id}
                own |= {"branch": branch, "object_format": repository.object_format if repository else "sha1"}
                _add(tar, INFO, io.BytesIO(msgspec.json.encode(own)))
                files = _add_files(core, tar, repository, left_out)
                with rows.open("rb") as lines:
                    row_count = sum(1 for _ in lines)
                    _add(tar, ROWS, lines)
                _add_bundle(tar, made.with_name(HISTORY), repository.common if repository else made, warnings)
                _add_bundle(tar, made.with_name(PRIVATE_HISTORY), core.place.state / PRIVATE, warnings)
                _add(tar, END, io.BytesIO())
            made.rename(target)
    except OSError as error:
        raise NotebookError(f"the archive cannot be written: {error}", next="repeat the command") from None
    size = target.stat().st_size
    return Exported(path=str(target), files=files, rows=row_count, bytes=size, left_out=left_out, warnings=warnings)


def _repository_of(core: Core, warnings: list[str]) -> Repository | None:
    """The repository of which the notebook is the top."""
    repository = Repository.around(core.root) if has_git() else None
    if repository is not None and repository.prefix:
        warnings.append(f"the history in {repository.folder} is not in the archive: the notebook is a part of it")
        return None
    return repository


def _add_files(core: Core, tar: tarfile.TarFile, repository: Repository | None, left_out: list[Failure]) -> int:
    """Add every file that is not ignored or that git tracks; how many these are."""
    scan = core.tree.scan()
    paths = {*scan.seen, *scan.attachments, *scan.refused}  # refused are also notes that are too large
    if repository:
        paths |= {os.fsdecode(path) for path in run_git(core.root, "ls-files", "-z").split(b"\0") if path}
    agents = [f"channels/{agent}" for agent in core.tree.folders("channels")]
    folders = {"", *(f"{each}/{scope}" for each in agents for scope in core.tree.folders(each))}
    folders |= {posixpath.dirname(path) for path in paths}
    folders |= {str(above) for folder in folders for above in Path(folder).parents if str(above) != "."}
    named = {posixpath.join(folder, name) for folder in folders for name in (SETTINGS_FILE, CHANNEL_FILE, *_OF_GIT)}
    known: dict[str, str] = {}
    count = 0
    for path in sorted(paths | named):
        is_file = core.tree.stat(path) is not None
        reason = why_not_plain(path, known) if is_file else scan.refused.get(path, "")
        if reason:
            left_out.append(Failure(path, reason))
        elif is_file:
            with (core.root / path).open("rb") as file:
                # A note is never half of what somebody writes.
                _add(tar, FILES + path, io.BytesIO(core.tree.read(path).raw) if path in scan.seen else file, file)
            count += 1
    return count


def _add_bundle(tar: tarfile.TarFile, bundle: Path, git_dir: Path, warnings: list[str]) -> None:
    """Add all that a repository holds, where it holds anything."""
    if (git_dir / "shallow").exists():
        warnings.append(f"the history in {git_dir} is not in the archive: it is a shallow clone")
    elif (git_dir / "HEAD").exists() and has_git():
        git = ("--git-dir=.",)
        if run_git(git_dir, *git, "rev-list", "--all", "--max-count=1", seconds=LONG_SECONDS):
            run_git(git_dir, *git, "bundle", "create", "--quiet", str(bundle), "--all", seconds=LONG_SECONDS)
            with bundle.open("rb") as file:
                _add(tar, bundle.name, file)


def _add(tar: tarfile.TarFile, name: str, data: IO[bytes], file: IO[bytes] | None = None) -> None:
    """Add a member, with mode and time of a file."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = data.seek(0, io.SEEK_END), 0o600
    data.seek(0)
    if file is not None:
        found = os.fstat(file.fileno())
        info.mode = found.st_mode & 0o777
        info.pax_headers = {"mtime": f"{found.st_mtime_ns // _SECOND}.{found.st_mtime_ns % _SECOND:09}"}
    tar.addfile(info, data)


# ---- in


def is_archive(file: str) -> bool:
    """Whether a file is an archive, as far as its first bytes say. Raises UsageError for one that cannot be read."""
    try:
        with Path(file).expanduser().open("rb") as raw:
            return raw.read(len(INFO)) == INFO.encode()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", next="name a file") from None


def import_archive(core: Core, file: Path, *, trust: bool, dry_run: bool) -> Imported:
    """Make the notebook of an archive in the core's folder, which is empty, or holds what an import that was
    interrupted has written. Raises Refused before anything is written."""
    state_home().mkdir(0o700, parents=True, exist_ok=True)
    with file.open("rb") as raw, tempfile.TemporaryDirectory(prefix="import-", dir=state_home()) as folder:
        staging = Path(folder)
        try:
            found = _checked(core.root, raw, staging)
            nested = [
                *_restored(staging / "top", staging / HISTORY, found.info.branch, found.info.object_format),
                *_restored(staging / "private", staging / PRIVATE_HISTORY, "", "sha1"),
            ]
        except (tarfile.TarError, ValueError, EOFError, RecursionError, ConfigError, GitFailed) as error:
            raise _refusal(file, str(error), "make it again with: notebook-sync export FILE") from None
        if not trust and (reaching := [*found.reaching, *nested]):
            raise _refusal(file, "; ".join(reaching[:5]), "if it is your own, import it with --trust-settings")
        below = ((path, path.relative_to(core.root)) for path in core.root.rglob("*"))
        there = {str(name) for path, name in below if path.is_symlink() or not path.is_dir()}
        if others := sorted(each for each in there - found.same if each.split("/")[0] not in _OWN):
            raise Refused(f"{core.root} has {others[0]}", next="import into an empty folder, named with -C DIR")
        return _place(core, raw, staging, found, dry_run=dry_run)


def why_not_plain(path: str, known: dict[str, str]) -> str:
    """Why no archive holds a file at this path, next to those that are `known`, to which it is added; "" where one
    may."""
    parts = path.split("/")
    if (
        any(unicodedata.category(each) in _CONTROL for each in path)
        or "\\" in path
        or not {"", ".", ".."}.isdisjoint(parts)
    ):
        return "is no plain path"
    if len(path.encode()) > _LONGEST_PATH or max(len(part.encode()) for part in parts) > LONGEST_NAME:
        return "is too long"
    seen = [folded("".join(each for each in part if not is_ignorable(each))) for part in parts]
    if not _OWN.isdisjoint(seen) or any(part.rstrip(". ") != part for part in parts):
        return "belongs to git or to this program, or ends in what some systems drop"
    above = ["/".join(parts[:end]) + "/" for end in range(1, len(parts))]
    if folded(path) in known or any(known.setdefault(folded(each[:-1]), each) != each for each in above):
        return "is there twice, or differs from another path only in a way that some systems ignore"
    known[folded(path)] = path
    return ""


def repositories_among(paths: Iterable[str]) -> list[str]:
    """What git would take for a repository, if these were files and folders."""
    children: defaultdict[str, set[str]] = defaultdict(set)
    for path in paths:
        parts = folded(path).split("/")
        for depth, name in enumerate(parts):
            children["/".join(parts[:depth])].add(name)
    found = [each for each, names in children.items() if "head" in names and {"objects", "refs"} <= names]
    return [f"{each or 'the folder itself'} is a git repository" for each in sorted(found)]


def _refusal(file: Path, reason: str, advice: str) -> Refused:
    return Refused(f"{file} is not imported: {reason}; nothing was written", next=advice)


class _Bounded:
    """A stream that gives no more than was allowed: no header asks for more than fits in memory."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self.left = _LARGEST_HEAD

    def read(self, size: int) -> bytes:
        read = self._raw.read(size)
        self.left -= len(read)
        if self.left < 0:
            raise ValueError("a header is too large")
        return read


def _members(raw: IO[bytes]) -> Iterator[_Member]:
    """Every member that may be in an archive. Raises ValueError for any other."""
    raw.seek(0)
    bounded, name, known, names = _Bounded(raw), "", dict[str, str](), set[str]()
    with tarfile.open(fileobj=bounded, mode="r|") as tar:  # type: ignore[call-overload]
        for info in iter(tar.next, None):
            tar.members = []
            bounded.left = info.size + _LARGEST_HEAD
            name, path = info.name, info.name[len(FILES) :] if info.name.startswith(FILES) else ""
            is_known = path or name in (INFO, ROWS, HISTORY, PRIVATE_HISTORY, END)
            if (name == INFO) == bool(names) or not is_known or name in names or len(names) > _MOST_MEMBERS:
                raise ValueError(f"{name[:200]!r} is not what belongs there; it is no archive of this program")
            data = tar.extractfile(info) if info.isreg() and not info.issparse() else None
            if data is None:
                raise ValueError(f"{name[:200]!r} is a link, a device or a sparse file")
            if reason := why_not_plain(path, known) if path else "":
                raise ValueError(f"{path[:200]!r} {reason}")
            names.add(name)
            seconds, _, rest = info.pax_headers.get("mtime", "0").partition(".")
            yield _Member(name, path, info.mode, int(seconds) * _SECOND + int(rest[:9].ljust(9, "0")), data)
    if name != END:
        raise ValueError("its end is missing")


def _checked(root: Path, raw: IO[bytes], staging: Path) -> _Contents:
    """Read the archive to its end, and compare it with what is there; rows and bundles go to `staging`. Raises
    ValueError for what cannot be."""
    info, rows, unreadable = Info(0, ""), 0, 0
    paths, same, reaching = set[str](), set[str](), list[str]()
    for name, path, _, _, data in _members(raw):
        if name == INFO:
            info = msgspec.json.decode(data.read(_LARGEST_TEXT), type=Info)
            if info.format != FORMAT:
                raise ValueError(f"it has format {info.format}, and this version of the program knows {FORMAT}")
        elif path:
            paths.add(path)
            text = data.read(_LARGEST_TEXT) if _is_obeyed(path) else b""
            if len(text) == _LARGEST_TEXT:
                raise ValueError(f"{path} is too large for what it is")
            reaching += _traps_in(path, text)
            if _is_same(root / path, io.BytesIO(text) if text else data):
                same.add(path)
        elif name == ROWS:
            with (staging / ROWS).open("xb") as out:
                while line := data.readline(_LONGEST_LINE):
                    is_row = _is_row(line)
                    out.write(line if is_row else b"")
                    rows, unreadable = rows + is_row, unreadable + (not is_row)
        elif name != END:
            with (staging / name).open("xb") as out:
                shutil.copyfileobj(data, out)
    return _Contents(info, paths, same, rows, unreadable, [*reaching, *repositories_among(paths)])


def _is_obeyed(path: str) -> bool:
    return path == SETTINGS_FILE or folded(posixpath.basename(path)) in _SETTINGS_OF_GIT


def _traps_in(path: str, text: bytes) -> list[str]:
    """What in a file starts a program or names another machine, in words. Raises ConfigError."""
    if path == SETTINGS_FILE:
        return [f"{path} sets {key}" for key in settings_that_reach_out(parse_settings(text.decode(), path))]
    if _is_obeyed(path):
        return [f"{path} names a program"] if _PROGRAM.search(text.decode(errors="replace")) else []
    is_hidden_file = folded(posixpath.basename(path)) != GITIGNORE and any(map(is_hidden, path.split("/")))
    return [f"{path} is hidden, and other programs may obey it"] if is_hidden_file else []


def _is_same(file: Path, data: IO[bytes]) -> bool:
    if file.is_symlink() or not file.is_file():
        return False
    with file.open("rb") as there:
        digests = [hashlib.file_digest(each, "sha256").digest() for each in (there, data)]  # type: ignore[arg-type]
    return digests[0] == digests[1]


def _is_row(line: bytes) -> bool:
    try:
        return from_json(line)["in"] in _LOADED and line.endswith(b"\n")
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _restored(folder: Path, bundle: Path, branch: str, object_format: str) -> list[str]:
    """Make the repository of a bundle: the private one bare, the other with an index for what was checked out. What
    git would take for repositories in it. Raises GitFailed."""
    if not bundle.exists():
        return []
    folder.mkdir()
    is_bare = bundle.name == PRIVATE_HISTORY
    options = ("--bare", "--initial-branch=notes") if is_bare else ()
    run_git(folder, "init", "--quiet", "--template=", f"--object-format={object_format}", *options, ".")
    listed = run_git(folder, "bundle", "unbundle", str(bundle), seconds=LONG_SECONDS).splitlines()
    refs = [line.partition(b" ") for line in listed]
    given = b"".join(b"create %s %s\n" % (ref, oid) for oid, _, ref in refs if ref.startswith(b"refs/"))
    run_git(folder, "update-ref", "--stdin", given=given, seconds=LONG_SECONDS)
    heads = [oid.decode() for oid, _, ref in refs if ref == b"HEAD"]
    if branch:
        run_git(folder, "symbolic-ref", "HEAD", branch)
    elif heads and not is_bare:
        run_git(folder, "update-ref", "--no-deref", "HEAD", heads[0])
    if heads and not is_bare:
        run_git(folder, "read-tree", "HEAD", seconds=LONG_SECONDS)
    objects = run_git(folder, "rev-list", "--objects", "--all", seconds=LONG_SECONDS).splitlines()
    paths = (os.fsdecode(line.partition(b" ")[2]) for line in objects)
    return [f"in its history, {each}" for each in repositories_among(filter(None, paths))]


def _place(core: Core, raw: IO[bytes], staging: Path, found: _Contents, *, dry_run: bool) -> Imported:
    """Put everything in its place. What is there already stays, so an import that was interrupted can be repeated."""
    root, added, already = core.root, len(found.paths - found.same) + found.rows, len(found.same)
    counts: dict[str, Any] = {"read": added + already + found.unreadable, "failed": found.unreadable}
    failures = [Failure(ROWS, "a line is no row that is imported")] * found.unreadable
    if dry_run:
        return Imported(added=added, already=already, failures=failures, dry_run=True, **counts)
    if re.fullmatch(r"[0-9a-f]{16}", found.info.notebook) and not Place.find(root).notebook_id:
        write_private(root / FOLDER / "id", f"{found.info.notebook}\n".encode())
    half = root / FOLDER / "import"
    for _, path, mode, mtime, data in _members(raw):
        if path and path not in found.same:
            write_private(half, b"", durable=False)
            with half.open("wb") as out:
                shutil.copyfileobj(data, out)
            half.chmod(mode & 0o755 | 0o600)
            os.utime(half, ns=(mtime, mtime))
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            half.replace(root / path)
    core.forget()
    for made, place in ((staging / "top" / ".git", root / ".git"), (staging / "private", core.place.state / PRIVATE)):
        if made.exists() and not place.exists():
            shutil.move(made, place)
    done = f"archive:{found.info.id}"
    if core.index.counters.one(done) is None:
        for _ in range(2 if found.rows else 0):  # what came back with the files was noted as an event of theirs
            with (staging / ROWS).open("rb") as lines:
                core.index.load(lines)
            core.engine.sync()
        core.index.counters.put([{"id": done, "value": found.rows}])
    else:
        added, already = added - found.rows, already + found.rows
    report = sync_notebook(core)
    warnings = [*(f"{each['path']}: {each['error']}" for each in report.failed), *report.warnings, *report.hints]
    return Imported(added=added, already=already, failures=failures, warnings=warnings, **counts)
