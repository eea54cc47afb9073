"""A notebook as one plain tar: its files, its history as git bundles, and what only the index holds as JSON lines.

An archive may be anyone's. It is unpacked and checked apart from the notebook, and moved into its place when all of it
is sound: no name leads out of the folder, no member is anything but a plain file, and nothing in it starts a program or
names a server unless the owner trusts it. A tar that is not compressed holds no more than its size.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
import secrets
import shutil
import tarfile
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated, Literal

import msgspec

from notebook_sync.errors import NotebookError, Refused, UsageError
from notebook_sync.files.git import LONG_SECONDS, Repository, has_git, run_git
from notebook_sync.files.history import PRIVATE
from notebook_sync.files.names import GITIGNORE, NO_NAMES, UNPRINTABLE, folded, is_hidden, is_too_long
from notebook_sync.files.private import FOLDER, make_private, write_private
from notebook_sync.files.state import Place, expanded
from notebook_sync.model import ADOPTED, SETTINGS_FILE
from notebook_sync.permissions import CHANNEL_FILE, is_ignorable
from notebook_sync.services.core import Core
from notebook_sync.services.importing import Exported, Failure, Imported
from notebook_sync.services.upkeep import finish_open_writes, sync_notebook
from notebook_sync.settings import parse_settings, settings_that_reach_out
from notebook_sync.store.rows import Is, Not
from notebook_sync.store.tables import as_json, from_json
from notebook_sync.sync.project import with_words

FORMAT = 1
INFO, FILES, ROWS, END = "archive.json", "files/", "index.jsonl", "end"
HISTORY, PRIVATE_HISTORY = "history.bundle", "private.bundle"
CHECKED = "checked.json"
# What a line of ROWS may be of: an open write belongs to the files of the machine that it was begun on.
_LOADED = frozenset(("documents", "history", "facts", "stream", "longterm", "checkpoints", "events"))
# The last good rows of a file that is broken now: more than their file.
_GOOD = ("documents", "facts", "fact_places")
# So many files and folders.
_MOST = 200_000
_LONGEST_LINE, _LARGEST_TEXT, _LARGEST_HEAD = 64 << 20, 1 << 20, 1 << 20
_SETTINGS_OF_GIT = (".gitattributes", ".gitmodules")
_OWN = frozenset((".git", FOLDER))
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")
# A driver that is not git's own, a command of a submodule, a transport that is a program.
_PROGRAM = re.compile(rb"(?<!\S)(?:filter|diff|merge)=(?!(?:text|binary|union|markdown|python)\b)|update\W+!|::")


class Info(msgspec.Struct, frozen=True):
    """The first member. `id` is the archive's own; `notebook` is the notebook's; `head` is what was checked out in its
    repository, a branch or a commit, "" without one, and `object_format` how that names its objects."""

    format: int
    id: str
    notebook: Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{16})?$")] = ""
    head: Annotated[str, msgspec.Meta(pattern=r"^(refs/heads/\w.*|[0-9a-f]{40,64})?$")] = ""
    object_format: Literal["sha1", "sha256"] = "sha1"


class Checked(msgspec.Struct, frozen=True):
    """An archive that is unpacked and sound: its first member, and what its import will have done."""

    info: bytes
    done: Imported


# ---- out


def export_notebook(core: Core, file: str) -> Exported:
    """Write the archive, whole or not at all. Raises UsageError for a place that cannot be."""
    if file == "-":
        raise UsageError("an archive is not written to standard output", next="name a new file, outside the notebook")
    target = expanded(file).absolute()
    is_inside = core.root in (target.parent.resolve(), *target.parent.resolve().parents)
    if is_inside or os.path.lexists(target) or not target.parent.is_dir():
        raise UsageError(
            f"{target} cannot be the archive",
            next="name a new file, in a folder that exists and is outside of the notebook",
        )
    core.engine.sync()
    finish_open_writes(core)
    rows = core.index.dump(core.place.state / "dump")
    left_out: list[Failure] = []
    warnings: list[str] = []
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            made = Path(folder) / "archive"
            with tarfile.open(made, "x", format=tarfile.PAX_FORMAT) as tar, made.with_name(ROWS).open("x+b") as lines:
                made.chmod(0o600)
                repository = Repository.around(core.root) if has_git() else None
                if repository and repository.prefix:
                    warnings.append(f"the history in {repository.folder}, around the notebook, is not in the archive")
                    repository = None
                head = repository.branch() or repository.head() if repository else ""
                of = repository.object_format if repository else "sha1"
                info = {"format": FORMAT, "id": secrets.token_hex(8), "notebook": core.place.notebook_id}
                _add(tar, INFO, io.BytesIO(msgspec.json.encode({**info, "head": head, "object_format": of})))
                files = _add_files(core, tar, repository, left_out)
                lines.write(rows.read_bytes())
                lines.writelines(_good_rows(core))
                lines.seek(0)
                row_count = sum(1 for _ in lines)
                _add(tar, ROWS, lines)
                if repository:
                    _add_bundle(tar, made.with_name(HISTORY), repository.common, warnings)
                _add_bundle(tar, made.with_name(PRIVATE_HISTORY), core.place.state / PRIVATE, warnings)
                _add(tar, END, io.BytesIO())
            target.touch(exist_ok=False)  # a file that came meanwhile is not replaced
            made.rename(target)
    except OSError as error:
        raise NotebookError(
            f"the archive cannot be written: {error}",
            next="name a file in a folder that you can write, on a disk with room",
        ) from None
    counts = {"files": files, "rows": row_count, "bytes": target.stat().st_size}
    return Exported(path=str(target), **counts, left_out=left_out, warnings=warnings)


def _add_files(core: Core, tar: tarfile.TarFile, repository: Repository | None, left_out: list[Failure]) -> int:
    """Add every file that is not ignored or that git tracks; how many these are."""
    scan, tree = core.tree.scan(), core.tree
    paths = {*scan.seen, *scan.attachments, *scan.refused}  # refused are also notes that are too large
    if repository:
        paths |= {os.fsdecode(path) for path in run_git(core.root, "ls-files", "-z").split(b"\0") if path}
    folders = {str(above) for path in paths for above in Path(path).parents}
    agents = [f"channels/{agent}" for agent in tree.folders("channels")]
    folders |= {".", *(f"{agent}/{scope}" for agent in agents for scope in tree.folders(agent))}
    names = (SETTINGS_FILE, CHANNEL_FILE, GITIGNORE, *_SETTINGS_OF_GIT)
    paths |= {posixpath.normpath(f"{folder}/{name}") for folder in folders for name in names}
    known: dict[str, str] = {}
    for path in sorted(paths):
        is_file = tree.stat(path) is not None
        if reason := why_not_plain(path, known) if is_file else scan.refused.get(path, ""):
            left_out.append(Failure(path, reason))
        elif is_file:
            with (core.root / path).open("rb") as file:
                # A note is never half of what somebody writes.
                _add(tar, FILES + path, io.BytesIO(tree.read(path).raw) if path in scan.seen else file, file)
    return sum(name.startswith(FILES) for name in tar.getnames())


def _good_rows(core: Core) -> Iterator[bytes]:
    """The rows that say what files said before they broke."""
    paths = [path for (path,) in core.index.documents.tuples(("path",), Not(Is("stale", "=", "")))]
    for name in _GOOD if paths else ():
        for row in core.index.collections[name].find(Is("path", "in", paths), heavy=True):
            yield as_json({"in": name, "good": row}).encode() + b"\n"


def _add_bundle(tar: tarfile.TarFile, bundle: Path, git_dir: Path, warnings: list[str]) -> None:
    """Add all that a repository holds, where it holds anything."""
    if (git_dir / "shallow").exists():
        warnings.append(f"the history in {git_dir} is not in the archive: it is a shallow clone")
    elif (git_dir / "HEAD").exists() and has_git() and run_git(git_dir, "--git-dir=.", "rev-list", "--all", "-n1"):
        run_git(git_dir, "--git-dir=.", "bundle", "create", "--quiet", str(bundle), "--all", seconds=LONG_SECONDS)
        with bundle.open("rb") as file:
            _add(tar, bundle.name, file)


def _add(tar: tarfile.TarFile, name: str, data: IO[bytes], file: IO[bytes] | None = None) -> None:
    """Add a member, with mode and time of a file, to the microsecond."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = data.seek(0, io.SEEK_END), 0o600
    data.seek(0)
    if file is not None:
        found = os.fstat(file.fileno())
        info.mode, info.mtime = found.st_mode & 0o777, found.st_mtime_ns // 1_000 / 1e6
    tar.addfile(info, data)


# ---- in


def is_archive(file: str) -> bool:
    """Whether a file is an archive, as far as its first bytes say. Raises UsageError for one that cannot be read."""
    try:
        with expanded(file).open("rb") as raw:
            if not raw.seekable():
                raise UsageError(f"{file} is a pipe", next="save it in a file, and name that")
            begin = raw.read(len(INFO))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", next="name a file") from None
    if begin.startswith(_COMPRESSED):
        raise UsageError(f"{file} is compressed, and no archive is", next="unpack it first, for example with gunzip")
    return begin == INFO.encode()


def import_archive(core: Core, file: Path, *, trust: bool, dry_run: bool) -> Imported:
    """Make the notebook of an archive in the core's folder, which is empty, or complete an import that was interrupted
    there. Raises Refused before anything is written."""
    with _staging(core.root) as staging:
        mark = staging / CHECKED
        try:
            with file.open("rb") as raw:
                checked = _begun(raw, mark) if mark.exists() else _checked(raw, staging, trust=trust)
        except (tarfile.TarError, ValueError, OverflowError, EOFError, RecursionError, OSError, NotebookError) as error:
            advice = error.next if isinstance(error, Refused) else "make it again with: notebook-sync export FILE"
            reason = f"{file} is not imported: {getattr(error, 'message', error)}; nothing was written"
            raise Refused(reason, next=advice) from None
        if dry_run:
            return msgspec.structs.replace(checked.done, dry_run=True)
        write_private(mark, msgspec.json.encode(checked))
        _place(core, staging, msgspec.json.decode(checked.info, type=Info))
        mark.unlink()
    report = sync_notebook(core)
    warnings = [*(f"{each['path']}: {each['error']}" for each in report.failed), *report.warnings, *report.hints]
    return msgspec.structs.replace(checked.done, warnings=warnings)


@contextmanager
def _staging(root: Path) -> Iterator[Path]:
    """A folder in `.notebook` for what is unpacked; what was not checked to its end is removed. Raises Refused where
    the root holds anything else."""
    staging = root / FOLDER / "import"
    if not (staging / CHECKED).exists():
        if others := [each.name for each in root.iterdir() if each.name != FOLDER]:
            raise Refused(f"{root} holds {min(others)}", next="import into an empty folder, named with -C DIR")
        shutil.rmtree(staging, ignore_errors=True)
        make_private(staging)
    try:
        yield staging
    finally:
        if not (staging / CHECKED).exists():
            shutil.rmtree(staging)
            if [each.name for each in staging.parent.iterdir()] == [GITIGNORE]:
                shutil.rmtree(staging.parent)


def _begun(raw: IO[bytes], mark: Path) -> Checked:
    """What an import that was interrupted had checked. Raises ValueError for that of another archive."""
    checked = msgspec.json.decode(mark.read_bytes(), type=Checked)
    if next(_members(raw))[1].read(_LARGEST_TEXT) != checked.info:
        raise ValueError("the import of another archive was interrupted here; repeat that one")
    return checked


def _checked(raw: IO[bytes], staging: Path, *, trust: bool) -> Checked:
    """Unpack an archive, and make its repositories. Raises ValueError and others for what cannot be, or reaches out."""
    files, known = staging / FILES, dict[str, str]()
    files.mkdir()
    for member, data in _members(raw):
        path = member.name.removeprefix(FILES)
        if path != member.name and (reason := why_not_plain(path, known)):
            raise ValueError(f"{path[:200]!r} {reason}")
        to = staging / member.name
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("xb") as out:
            shutil.copyfileobj(data, out)
        moment = round(member.mtime * 1e6) * 1_000
        os.utime(to, ns=(moment, moment))
        to.chmod(member.mode & 0o755 | 0o600)
    info = msgspec.json.decode(_text_of(staging / INFO), type=Info)
    if info.format != FORMAT:
        raise ValueError(f"it has format {info.format}, and this version of the program knows {FORMAT}")
    paths = [path for path in known.values() if not path.endswith("/")]
    reaching = [trap for path in paths for trap in _traps_in(path, files / path)]
    for above in (key[:-4] for key in known if posixpath.basename(key) == "head"):
        if {f"{above}objects", f"{above}refs"} <= known.keys():
            reaching.append(f"{above or 'the folder itself'} is a git repository")
    if reaching and not trust:
        raise Refused("; ".join(reaching[:5]), next="if it is your own, import it with --trust-settings")
    _restore(files, staging / HISTORY, info)
    _restore(staging / PRIVATE, staging / PRIVATE_HISTORY, None)
    lines = list(map(bool, _rows_in(staging)))
    added, failed = len(paths) + sum(lines), lines.count(False)
    failures = [Failure(ROWS, "a line is no row that is imported")] * failed
    done = Imported(read=added + failed, added=added, failed=failed, failures=failures)
    return Checked((staging / INFO).read_bytes(), done)


def _members(raw: IO[bytes]) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """Every member that may be in an archive, and its bytes, to be read before the next one is asked for. Raises
    ValueError for any other."""
    bounded, name, names = _Bounded(raw), "", set[str]()
    with tarfile.open(fileobj=bounded, mode="r|") as tar:  # type: ignore[call-overload]
        for member in iter(tar.next, None):
            tar.members = []
            bounded.left = member.size + _LARGEST_HEAD
            name = member.name
            is_known = name.startswith(FILES) or name in (INFO, ROWS, HISTORY, PRIVATE_HISTORY, END)
            if (name == INFO) == bool(names) or not is_known or name in names:
                raise ValueError(f"{name[:200]!r} is not what belongs there; it is no archive of this program")
            data = tar.extractfile(member) if member.isreg() and not member.issparse() else None
            if data is None:
                raise ValueError(f"{name[:200]!r} is a link, a device or a sparse file")
            names.add(name)
            yield member, data
    if name != END:
        raise ValueError("its end is missing")


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


def why_not_plain(path: str, known: dict[str, str]) -> str:
    """Why no archive holds a file at this path, next to those that are `known`, to which it is added with the folders
    that it is in; "" where one may."""
    parts = path.split("/")
    if not NO_NAMES.isdisjoint(parts) or "\\" in path or any(unicodedata.category(c) in UNPRINTABLE for c in path):
        return "is no plain path"
    if is_too_long(path):
        return "is too long"
    if len(known) >= _MOST:
        return f"is one too many: an archive holds up to {_MOST:,} files and folders"
    seen = [folded("".join(each for each in part if not is_ignorable(each))) for part in parts]
    if not _OWN.isdisjoint(seen) or any(part.rstrip(". ") != part for part in parts):
        return "belongs to git or to this program, or ends in what some systems drop"
    above = ["/".join(parts[:end]) + "/" for end in range(1, len(parts))]
    if folded(path) in known or any(known.setdefault(folded(each[:-1]), each) != each for each in above):
        return "is there twice, or differs from another path only in a way that some systems ignore"
    known[folded(path)] = path
    return ""


def _traps_in(path: str, file: Path) -> list[str]:
    """What in a file starts a program or names another machine, in words. Raises ConfigError."""
    name = folded(posixpath.basename(path))
    if folded(path) == SETTINGS_FILE:
        keys = settings_that_reach_out(parse_settings(_text_of(file).decode(), path))
        return [f"{path} sets {key}" for key in keys]
    if name in _SETTINGS_OF_GIT:
        return [f"{path} names a program"] if _PROGRAM.search(_text_of(file)) else []
    is_obeyed = name != GITIGNORE and any(map(is_hidden, path.split("/")))
    return [f"{path} is hidden, and other programs may obey it"] if is_obeyed else []


def _text_of(file: Path) -> bytes:
    if file.stat().st_size > _LARGEST_TEXT:
        raise ValueError(f"{file.name} is too large for what it is")
    return file.read_bytes()


def _restore(folder: Path, bundle: Path, info: Info | None) -> None:
    """Make the repository of a bundle: with `info` the notebook's, and an index for what was checked out; else the
    private one. Raises GitFailed."""
    if not bundle.exists():
        return
    folder.mkdir(0o700, exist_ok=True)
    options = [f"--object-format={info.object_format}"] if info else ["--bare", "--initial-branch=notes"]
    run_git(folder, "init", "--quiet", "--template=", *options, ".")
    listed = run_git(folder, "bundle", "unbundle", str(bundle), seconds=LONG_SECONDS).splitlines()
    refs = [line.partition(b" ") for line in listed]
    given = b"".join(b"create %s %s\n" % (ref, oid) for oid, _, ref in refs if ref.startswith(b"refs/"))
    run_git(folder, "update-ref", "--stdin", given=given, seconds=LONG_SECONDS)
    if info:
        is_branch = info.head.startswith("refs/")
        run_git(folder, *(("symbolic-ref",) if is_branch else ("update-ref", "--no-deref")), "HEAD", info.head)
        run_git(folder, "read-tree", "HEAD", fine=(0, 128), seconds=LONG_SECONDS)  # 128: a branch without a commit


def _rows_in(staging: Path) -> Iterator[bytes]:
    """Every line of rows; an empty one for what is no row that may be loaded."""
    if (staging / ROWS).exists():
        with (staging / ROWS).open("rb") as lines:
            while line := lines.readline(_LONGEST_LINE):
                try:
                    found = from_json(line)
                    may_be = found["in"] in (_GOOD if "good" in found else _LOADED) and line.endswith(b"\n")
                except (ValueError, TypeError, KeyError, RecursionError):
                    may_be = False
                yield line if may_be else b""


def _place(core: Core, staging: Path, info: Info) -> None:
    """Put everything in its place. An import that was interrupted goes on from here."""
    if info.notebook and not Place.find(core.root).notebook_id:
        write_private(core.root / FOLDER / "id", f"{info.notebook}\n".encode())
    for each in sorted((staging / FILES).iterdir()):
        each.rename(core.root / each.name)
    core.forget()
    if (staging / PRIVATE).exists() and not (core.place.state / PRIVATE).exists():
        shutil.move(staging / PRIVATE, core.place.state / PRIVATE)
    index, analyzer = core.index, core.analyzer
    for found in map(from_json, filter(None, _rows_in(staging))):
        if "good" in found:
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                row = found["good"]
                row = with_words(row, analyzer) if found["in"] in ("documents", "facts") else row
                index.collections[found["in"]].put([row])
    core.engine.sync(force=True, allow_empty=True)  # the files are no news: what happened to them is in the rows
    index.load(filter(None, _rows_in(staging)))
    index.counters.put([{"id": ADOPTED, "value": 1}])
