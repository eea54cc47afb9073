"""The whole notebook in one file: its files, what git knows, and what the stores alone hold. Never a token, and no
settings with a password. It changes nothing in the notebook, and puts the archive in its place whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from notebook_sync import config
from notebook_sync.address import Address
from notebook_sync.errors import ConfigError, NotebookError, UnreadableFile, UsageError
from notebook_sync.files import bundle
from notebook_sync.files.disk import Disk
from notebook_sync.files.every_file import every_file
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.facts import FactRows
from notebook_sync.mirror.memories import MemoryRows
from notebook_sync.notes.archive.exported import Exported, LeftOut
from notebook_sync.notes.archive.format import (
    BUNDLE,
    CHECKPOINTS,
    FACTS,
    FILES,
    LARGEST_MANIFEST,
    LONGTERM,
    MIRROR,
    STREAM,
    USE,
    Counts,
    Manifest,
    reason_against,
    reason_against_name,
)
from notebook_sync.notes.archive.lines import CHECKS, fact_line, line_of, row_of, use_line
from notebook_sync.notes.archive.packing import Packing
from notebook_sync.notes.guard import Guard
from notebook_sync.refs.base import Refs
from notebook_sync.sessions import Session
from notebook_sync.version import __version__

TOOL = "export"
Progress = Callable[[int, int], None]


class Archive:
    """Makes archives of one notebook. `bring_in_step` lets the mirror say what the files say."""

    def __init__(
        self,
        vault: Vault,
        guard: Guard,
        mirror: Callable[[], Mirror],
        refs: Callable[[], Refs],
        facts: Callable[[], FactRows],
        memories: Callable[[], MemoryRows],
        bring_in_step: Callable[[], object],
    ) -> None:
        self._vault = vault
        self._guard = guard
        self._mirror = mirror
        self._refs = refs
        self._facts = facts
        self._memories = memories
        self._bring_in_step = bring_in_step

    def export(self, to: Path, session: Session, progress: Progress | None = None) -> Exported:
        """Make an archive at `to`, where nothing is yet, outside of the notebook. `progress(done, total)` counts files.

        Raises NotPermitted, UsageError, ConfigError, RootLost, GitFailed, BackendDown, and NotebookError where the disk
        does not take it; then nothing is at `to`.
        """
        if session.kind != "owner":
            self._guard.refuse(session, TOOL, "Only the owner may export the notebook, which holds all that is private")
        target = self._place_for(to)
        _must_hold_no_password(self._vault.root)
        self._bring_in_step()
        try:
            with _folder_beside(target) as folder, (folder / "body.tar").open("w+b") as body:
                return self._make(target, folder, Packing(body), progress)
        except OSError as error:
            raise NotebookError(f"{target}: {error.strerror or error}; nothing was exported") from None

    def _make(self, target: Path, folder: Path, packing: Packing, progress: Progress | None) -> Exported:
        left_out = self._add_files(packing, progress)
        files = len(packing.members)
        size = sum(member.size for member in packing.members)
        lines = _Lines(packing, folder)
        notes = lines.add(MIRROR, (row_of(one) for one in self._mirror().documents() if one["path"]))
        refs = self._refs()
        days = ({"day": day, "entry": entry} for day in refs.days() for entry in refs.day(day))
        entries = lines.add(STREAM, days)
        longterm = lines.add(LONGTERM, refs.longterm())
        kept = (refs.checkpoint(light["id"]) for light in reversed(refs.checkpoints()))
        checkpoints = lines.add(CHECKPOINTS, (one for one in kept if one is not None))
        lines.add(FACTS, (fact_line(one) for one in self._facts().rows()))
        lines.add(USE, (use_line(one) for one in self._memories().all()))
        git, warnings = self._add_history(packing, folder)
        commits = git.commits if git else 0
        counts = Counts(notes, files, size, entries, longterm, checkpoints, commits)
        members = tuple(packing.members)
        manifest = Manifest(f"notebook-sync {__version__}", counts, members, git, refs.lost()).as_json()
        _must_be_readable_again(reason_against(members), len(manifest))
        _put(packing, manifest, folder, target)
        not_there = [LeftOut(path, reason) for path, reason in sorted(left_out.items())]
        told = (*lines.warnings, *warnings)
        return Exported(str(target), notes, files, target.stat().st_size, commits, not_there, told)

    def _place_for(self, to: Path) -> Path:
        target = to.expanduser().absolute()
        if os.path.lexists(target):
            raise UsageError(f"{target} is there already, and is left as it is; name a file that is not")
        if not target.parent.is_dir():
            raise UsageError(f"{target.parent} is not a folder; make it first, or name another place")
        target = target.parent.resolve() / target.name
        if self._vault.root.resolve() in target.parents:
            raise UsageError(f"{target} is in the notebook, and would be in its own next archive; name a place outside")
        return target

    def _add_files(self, packing: Packing, progress: Progress | None) -> dict[str, str]:
        found = every_file(self._vault)
        left_out = dict(found.left_out)
        for done, path in enumerate(found.paths, 1):
            reason = reason_against_name(FILES + path)
            if not reason:
                try:
                    packing.add_file(self._vault, path)
                except FileNotFoundError:
                    reason = "was taken away meanwhile"
                except UnreadableFile as error:
                    reason = error.reason
            if reason:
                left_out[path] = reason
            if progress is not None:
                progress(done, len(found.paths))
        return left_out

    def _add_history(self, packing: Packing, folder: Path) -> tuple[bundle.History | None, tuple[str, ...]]:
        root = self._vault.root
        history = bundle.history_of(root)
        if history is None:
            return None, ()
        if bundle.is_shallow(root):
            advice = "run: git fetch --unshallow, then export again"
            return None, (f"git's history is not in the archive, because its older part is not here; {advice}",)
        if history.commits:
            file = folder / BUNDLE
            bundle.pack(root, history, file)
            packing.add_beside(BUNDLE, file)
        return history, tuple(_warnings_of(root))


class _Lines:
    """What the stores hold, added to an archive as lines. One that no import would take is left out, and told."""

    def __init__(self, packing: Packing, folder: Path) -> None:
        self._packing = packing
        self._folder = folder
        self.warnings: list[str] = []

    def add(self, name: str, lines: Iterable[Mapping[str, Any]]) -> int:
        """Add the file `name` with these lines; how many there are in it."""
        count, left_out, first = 0, 0, ""
        with (self._folder / name).open("wb") as file:
            for line in lines:
                try:
                    file.write(line_of(line, CHECKS[name]))
                    count += 1
                except ValueError as error:
                    left_out += 1
                    first = first or f"{_named(line)}: {error}"
        self._packing.add_beside(name, self._folder / name)
        (self._folder / name).unlink()
        if left_out:
            self.warnings.append(f"{name} lacks {left_out} that no import would take; the first is {first}")
        return count


def _named(line: Mapping[str, Any]) -> str:
    """What a person finds a line by."""
    told = line.get("path") or line.get("id") or line.get("entry", {}).get("id")
    return ascii(told)[:200]


def _must_hold_no_password(root: Path) -> None:
    try:
        secret = _names_with_secrets((root / config.FILE).read_bytes())
    except FileNotFoundError:
        return
    if secret:
        table, variable = secret
        raise UsageError(
            f"{config.FILE} has a password in {table}.url, and no archive may hold one; take it out of the file, "
            f"set {variable} instead, then export again"
        )


def _warnings_of(root: Path) -> Iterator[str]:
    for commit, raw in bundle.texts_of(root, config.FILE):
        with contextlib.suppress(ConfigError):  # what was no settings then was never used
            if _names_with_secrets(raw):
                yield (
                    f"git's history holds a password: commit {commit[:12]} of {config.FILE} names one; "
                    "change it on the server before you give the archive away"
                )
                return


def _names_with_secrets(raw: bytes) -> tuple[str, str] | None:
    """Which table of these settings holds a password, and what to set instead. Raises ConfigError."""
    try:
        settings = config.parse(raw.decode(), config.FILE)
    except UnicodeDecodeError:
        raise ConfigError(f"{config.FILE} is not UTF-8 text; mend it, for no import would take it") from None
    if Address.of(settings.mirror.url).secrets:
        return "mirror", "MONGODB_URL"
    return ("refs", "REDIS_URL") if Address.of(settings.refs.url).secrets else None


@contextlib.contextmanager
def _folder_beside(target: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name[:100]}.exporting-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _must_be_readable_again(reason: str, manifest_bytes: int) -> None:
    if not reason and manifest_bytes > LARGEST_MANIFEST:
        reason = f"its list of files has more than {LARGEST_MANIFEST:,} bytes"
    if reason:
        raise UsageError(f"no archive can be made: {reason}; rename or move away what is named, then export again")


def _put(packing: Packing, manifest: bytes, folder: Path, target: Path) -> None:
    """Write the archive, and give it its name in one step, which nothing may have meanwhile."""
    made = folder / "archive"
    with made.open("xb") as out:
        made.chmod(0o600)  # it holds what is private
        packing.write(out, manifest)
        out.flush()
        os.fsync(out.fileno())
    fds = [os.open(place, os.O_RDONLY | os.O_DIRECTORY) for place in (folder, target.parent)]
    try:
        Disk().move(fds[0], made.name, fds[1], target.name)
        os.fsync(fds[1])
    except FileExistsError:
        raise UsageError(f"{target} was made meanwhile; {shlex.quote(target.name)} is left as it is") from None
    finally:
        for fd in fds:
            os.close(fd)
