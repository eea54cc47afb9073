"""Putting an archive in its place as a notebook: whole, or not at all. No database is asked.

What only the stores can take is kept in `.notebook` until they have it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from notebook_sync import config
from notebook_sync.errors import GitFailed, NotebookError, Refused, UnreadableFile, UsageError
from notebook_sync.files import bundle
from notebook_sync.folder import FOLDER, lock, make_folder, replace_private
from notebook_sync.notes.archive.format import BUNDLE, MANIFEST, Manifest
from notebook_sync.notes.archive.git_traps import repositories_among, traps_among
from notebook_sync.notes.archive.lines import CHECKS, lines_in
from notebook_sync.notes.archive.reading import Progress, manifest_of, unpack
from notebook_sync.tokens import Tokens

_KEPT = "importing"


@dataclass(frozen=True, slots=True)
class Placed:
    """The notebook of an archive, in its place at `root`. `kept` is where the lines for the stores are."""

    archive: Path
    root: Path
    kept: Path
    manifest: Manifest


def place(archive: Path, folder: Path, progress: Progress | None = None, *, trust_settings: bool = False) -> Placed:
    """Make a notebook of the archive in `folder`, which is not there or empty; or find it there already, when the
    stores did not take what is theirs. `progress(done, total)` counts members. Whoever trusts its settings lets it
    start programs and reach other machines.

    Raises Refused where another import makes it, UsageError, ConfigError, UnreadableFile, GitFailed, NotebookError;
    then everything is as it was.
    """
    archive = archive.expanduser().absolute()
    root = Path(os.path.realpath(folder.expanduser()))
    kept = root / FOLDER / _KEPT
    known, raw = manifest_of(archive)
    if _holds(kept / MANIFEST, raw):
        return Placed(archive, root, kept, known)
    _must_be_free(root)
    try:
        with _made(root.parent), _staging(root) as staging:
            _must_be_free(root)  # another import may have just ended
            made = staging / "notebook"
            made.mkdir()
            manifest = _fill(made, staging, archive, progress, trust_settings)
            made.rename(root)
    except OSError as error:
        raise NotebookError(f"{error.filename or root}: {error.strerror or error}; nothing was imported") from None
    return Placed(archive, root, kept, manifest)


def _fill(made: Path, staging: Path, archive: Path, progress: Progress | None, trusted: bool) -> Manifest:
    beside = staging / "beside"
    beside.mkdir()
    manifest, raw = unpack(archive, made, beside, progress)
    reaching = _reaching_keys(made / config.FILE, archive)
    reaching += traps_among(made, [member.path for member in manifest.members])
    if not trusted:  # before git is run there
        _must_not_reach(archive, reaching)
    lines = [member.name for member in manifest.members if member.name in CHECKS]
    for name in lines:
        _must_be_lines(beside / name, archive)
    if manifest.git is not None:
        packed = beside / BUNDLE
        try:
            bundle.unpack(packed if packed.exists() else None, manifest.git, made)
        except GitFailed as failure:
            raise GitFailed(f"{archive}: its history cannot be made again: {failure}; nothing was imported") from None
        if manifest.git.commits and not trusted:
            places = repositories_among(bundle.paths_of(made))
            _must_not_reach(archive, [f"{place} in its history is a git repository" for place in places])
    own = made / FOLDER
    make_folder(own)
    Tokens(own).owner()
    make_folder(own / _KEPT)
    for name in lines:
        (beside / name).rename(own / _KEPT / name)
    replace_private(own / _KEPT / MANIFEST, raw)
    return manifest


def _holds(file: Path, raw: bytes) -> bool:
    try:
        return file.read_bytes() == raw
    except OSError:
        return False


def _must_be_free(root: Path) -> None:
    if os.path.lexists(root) and not _is_empty(root):
        raise UsageError(f"{root} is not an empty folder, and is left as it is; name one, or a place where nothing is")


def _is_empty(root: Path) -> bool:
    try:
        return not any(root.iterdir())
    except OSError:
        return False


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """The folder, with those above it; what of them is new is gone again where something fails."""
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for place in new:
            with contextlib.suppress(OSError):
                place.rmdir()
        raise


@contextlib.contextmanager
def _staging(root: Path) -> Iterator[Path]:
    """A folder beside the root, gone again at the end. What an import that was killed left there goes at the beginning.
    Its name comes of the root's, so that of two imports at once the second finds the first: Refused."""
    folder = root.parent / f".{root.name[:100]}.importing-{sha256(os.fsencode(root)).hexdigest()[:8]}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    with alone_in(folder, root) as found:
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise NotebookError(f"{folder} is not of this import, or open to others; nothing was imported: remove it")
        try:
            for left in folder.iterdir():
                shutil.rmtree(left)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def alone_in(folder: Path, root: Path) -> Iterator[os.stat_result]:
    """Have a folder for this import, which makes `root`, as it is found: whoever is killed no longer holds what was
    theirs. Raises Refused where another import has it, or has just ended and taken it away. On a file system without
    locks nobody is kept out."""
    taken = Refused(f"another import into {root} is under way; wait for that to end")
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise taken from None
    try:
        with contextlib.suppress(OSError):  # no locks of folders here
            if not lock(fd):
                raise taken
        found, is_there = os.fstat(fd), False
        with contextlib.suppress(FileNotFoundError):
            is_there = os.path.samestat(found, folder.lstat())
        if not is_there:
            raise taken
        yield found
    finally:
        os.close(fd)


def _must_not_reach(archive: Path, reaching: Sequence[str]) -> None:
    if reaching:
        raise UsageError(
            f"{archive}: {'; '.join(reaching)}: such settings start programs or reach other machines, and nothing was "
            "imported; where the archive is your own, or you have looked at them, import it with --trust-settings"
        )


def _reaching_keys(file: Path, archive: Path) -> list[str]:
    try:
        settings = config.parse(file.read_text(encoding="utf-8"), f"{archive}: its {config.FILE}")
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise UnreadableFile(str(archive), f"its {config.FILE} is not UTF-8 text; nothing was imported") from None
    keys = config.reaching_out(settings)
    return [f"its {config.FILE} sets {', '.join(keys)}"] if keys else []


def _must_be_lines(file: Path, archive: Path) -> None:
    try:
        with file.open("rb") as opened:
            for _ in lines_in(opened, CHECKS[file.name]):
                pass
    except ValueError as error:
        advice = (
            "nothing was changed: export that notebook again with the latest notebook-sync, and import what it makes"
        )
        raise UnreadableFile(str(archive), f"cannot be imported: {file.name}: {error}; {advice}") from None
