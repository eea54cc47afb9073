"""Is the environment fit, and if not, what is to be done? What it makes to try things out, it removes."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from notebook_sync import config
from notebook_sync.doctor_stores import mirror_told, refs_told
from notebook_sync.embedded import is_damage
from notebook_sync.errors import BackendDown, ConfigError
from notebook_sync.settings import Settings
from notebook_sync.stores import EMBEDDED_FILE

_OLDEST_PYTHON = (3, 11)
_SKEW_SECONDS = 2.0
_INOTIFY = Path("/proc/sys/fs/inotify")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `next` is a command or a step that helps, "" where nothing is wrong."""

    check: str
    ok: bool
    message: str
    next: str = ""
    is_backend: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {key: value for key, value in asdict(self).items() if key != "is_backend"}


def examine(root: Path | None) -> list[Check]:
    """Every check, for the notebook at `root`; of the machine alone where there is no notebook (None)."""
    checks = [_python(), _sqlite(), _git(root)]
    if root is None or not root.is_dir():
        what = "no notebook.toml here or above" if root is None else f"{root} is not a folder"
        return [*checks, _vocabulary(""), Check("notebook", False, what, "notebook-sync init DIR, or name one with -C")]
    try:
        settings = config.load(root)
    except ConfigError as error:
        return [*checks, _vocabulary(""), Check("settings", False, str(error), f"edit {root / config.FILE}")]
    where = settings.source or "defaults; there is no notebook.toml"
    checks += [_vocabulary(settings.prompt.encoding), Check("settings", True, where)]
    folder = root / ".notebook"
    writable = _writable(folder if folder.is_dir() else root)
    checks.append(writable)
    if writable.ok:
        checks += [_clock(root), *_watches(root), _events(root)]
    checks.append(_git_traps(root))
    mirror = _store("mirror", mirror_told, settings, folder, settings.mirror.url and "MONGODB_URL")
    refs = _store("refs", refs_told, settings, folder, settings.refs.url and "REDIS_URL")
    return [*checks, mirror, refs, _embeddings(settings)]


def _python() -> Check:
    running = f"Python {platform.python_version()} at {sys.executable}"
    is_fit = sys.version_info >= _OLDEST_PYTHON
    return Check("python", is_fit, running, "" if is_fit else "install Python 3.11 or newer")


def _sqlite() -> Check:
    version = f"SQLite {sqlite3.sqlite_version}"
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")
        except sqlite3.OperationalError:
            return Check("sqlite", False, f"{version} without FTS5", "use a Python whose SQLite has FTS5")
    return Check("sqlite", True, f"{version} with FTS5")


def _git(root: Path | None) -> Check:
    from notebook_sync.files.history import is_tracked_by_git

    if shutil.which("git") is None:
        return Check("git", False, "git is not on PATH: notes have no history", "install git, as in: apt install git")
    version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    if root is not None and root.is_dir() and not is_tracked_by_git(root):
        # No fault: a folder of notes needs no git. Only versions and history of a lost store cannot be made again then.
        return Check("git", True, f"{version}; the notebook lies in no repository", f"git -C {root} init")
    return Check("git", True, version)


def _git_traps(root: Path) -> Check:
    """The program itself runs none of these; the user's own git does."""
    from notebook_sync.notes.archive.git_traps import paths_below, traps_among

    if traps := traps_among(root, list(paths_below(root))):
        step = "look at what they name before you run git here; move away what is not yours"
        return Check("git files", False, f"git may run programs for {'; '.join(traps)}", step)
    return Check("git files", True, "no file makes git run a program")


def _vocabulary(encoding: str) -> Check:
    from prompt.budget import DEFAULT_ENCODING, count_tokens
    from prompt.errors import VocabularyMissing

    encoding = encoding or DEFAULT_ENCODING
    try:
        count_tokens("a notebook", encoding)
    except VocabularyMissing as error:
        return Check("vocabulary", False, str(error), 'set prompt.encoding = "cl100k_base"')
    return Check("vocabulary", True, f"{encoding} is on this machine")


def _writable(folder: Path) -> Check:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check("folder", True, f"{folder} can be written to")
    except OSError as error:
        message = f"{folder} cannot be written to: {error.strerror}"
        return Check("folder", False, message, f"make {folder} writable for this user")


def _clock(folder: Path) -> Check:
    """Files get their times from where they are stored, which need not be here."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        skew = abs(os.fstat(probe.fileno()).st_mtime - time.time())
    if skew > _SKEW_SECONDS:
        message = f"the folder's clock is {skew:.0f} s apart from this machine's"
        return Check("clock", False, message, "timedatectl status")
    return Check("clock", True, "the folder's clock is this machine's")


def _watches(root: Path, limits: Path = _INOTIFY) -> Iterator[Check]:
    """Linux watches folder by folder, up to a limit of the user's."""
    try:
        limit = int((limits / "max_user_watches").read_text())
    except (OSError, ValueError):
        return
    folders = sum(1 for _ in os.walk(root))
    message = f"{folders:,} folders, {limit:,} watches allowed"
    wanted = 1 << max(19, (2 * folders).bit_length())
    step = f"sudo sysctl fs.inotify.max_user_watches={wanted}"
    yield Check("watches", folders < limit, message, "" if folders < limit else step)


def _events(root: Path) -> Check:
    from notebook_sync.sync.events import EventSource

    # In a folder of its own: where nothing was synced yet there is no `.notebook` for the probe of the watch.
    with tempfile.TemporaryDirectory(prefix=".notebook-doctor-", dir=root) as own:
        (Path(own) / ".notebook").mkdir()
        source = EventSource(Path(own))
        try:
            arrive = source.start()
        finally:
            source.close()
    if arrive:
        return Check("events", True, "file events arrive")
    step = "`watch` finds changes by its timer all the same; lower sync.reconcile_seconds to find them sooner"
    return Check("events", False, "no file event arrives from this folder", step)


def _embeddings(settings: Settings) -> Check:
    """Search by meaning goes on by words where this is amiss."""
    from notebook_sync.search.embedder import open_embedder

    embedder = open_embedder(settings.search)
    if embedder is None:
        return Check("embeddings", True, "off: notes are found by their words alone")
    try:
        dimensions = embedder.embed(["a notebook"]).shape[1]
    except BackendDown as error:
        if embedder.is_local:
            return Check("embeddings", False, str(error), 'say embeddings = "off" below [search] meanwhile')
        step = f"start the server, or correct base_url, embeddings or {settings.search.api_key_env} for [search]"
        return Check("embeddings", False, str(error), step, is_backend=True)
    finally:
        embedder.close()
    return Check("embeddings", True, f"{embedder.model} answers, with vectors of {dimensions}")


def _store(name: str, ask: Callable[[Settings, Path], str], settings: Settings, folder: Path, variable: str) -> Check:
    """One database. `variable` is what names a server's address, "" for the embedded file."""
    try:
        return Check(name, True, ask(settings, folder), is_backend=True)
    except (BackendDown, ConfigError) as error:
        if variable:
            step = f"start the server, or correct {variable} or [{name}] url in {config.FILE}"
        elif is_damage(error.__cause__):
            step = f"rm {folder / EMBEDDED_FILE}* && notebook-sync -C {folder.parent} sync"
        else:
            step = f"see that {folder} has room, can be written to, and that no other program holds {EMBEDDED_FILE}"
        return Check(name, False, str(error), step, is_backend=True)
