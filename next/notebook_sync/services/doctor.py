"""Is the environment fit for the notebook, and if not, what helps? What is made to try things out is removed."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from notebook_sync.errors import ConfigError, NotebookError
from notebook_sync.files.names import copy_of
from notebook_sync.files.state import file_system
from notebook_sync.model import SETTINGS_FILE
from notebook_sync.services.admin import Check
from notebook_sync.services.core import Core

_SKEW_SECONDS, _PROBE_SECONDS = 2.0, 1.0
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_watches")
_MOST_NAMED = 3
# What editors and sync clients leave next to a file, and what helps.
_LEFT_BEHIND = (
    (
        re.compile(r"\..+\.sw[a-p]|#.+#|\.~lock\..+#"),
        "text that an editor has not saved, or has open",
        "recover it, as in: vim -r FILE; then delete it",
    ),
    (re.compile(r"\..+\.icloud"), "notes that are in the cloud only", "download them in the sync client"),
)


def examine(core: Core) -> list[Check]:
    """Every check of the machine and of a notebook."""
    file, problem = core.root / SETTINGS_FILE, ""
    looks: tuple[Callable[[Core], Iterator[Check]], ...] = (_python, _git, _folder, _state, _watches, _events, _editors)
    try:
        core.settings  # noqa: B018 - read, or in error
        looks += (_vocabulary, _servers, _embeddings)
    except ConfigError as error:
        problem = str(error)
    problem = problem or core.settings_problem
    settings = Check("settings", False, problem, f"edit {file}") if problem else Check("settings", True, str(file))
    checks = [settings]
    for look in looks:
        try:
            checks += look(core)
        except NotebookError as error:
            checks.append(Check(look.__name__.strip("_"), False, error.message, error.next))
    return checks


def _python(_: Core) -> Iterator[Check]:
    running = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")
            yield Check("python", True, running)
        except sqlite3.OperationalError:
            yield Check("python", False, f"{running} without FTS5", "use a Python whose SQLite has FTS5")


def _git(_: Core) -> Iterator[Check]:
    found = shutil.which("git")
    if found is None:
        yield Check("git", False, "git is not on PATH, so notes have no history", "install git, as in: apt install git")
    else:
        yield Check("git", True, found)


def _folder(core: Core) -> Iterator[Check]:
    """Files get their times from where they are stored, which need not be this machine."""
    shown = f"{core.root} {file_system(core.root)}".rstrip()
    try:
        with tempfile.TemporaryFile(dir=core.root) as probe:
            skew = abs(os.fstat(probe.fileno()).st_mtime - time.time())
    except OSError as error:
        message = f"{shown} cannot be written: {error.strerror}; notes can be read and indexed"
        yield Check("folder", False, message, f"chmod u+w {core.root}")
        return
    if skew > _SKEW_SECONDS:
        yield Check("folder", False, f"its clock is {skew:.0f} s from this machine's", "timedatectl status")
    yield Check("folder", True, f"{shown} can be written")


def _state(core: Core) -> Iterator[Check]:
    yield Check("state", True, f"{core.place.state} can be written")


def _watches(core: Core) -> Iterator[Check]:
    """Linux watches folder by folder, up to a limit for each user."""
    with suppress(OSError, ValueError):
        limit, folders = int(_INOTIFY.read_text()), sum(1 for _ in os.walk(core.root))
        step = f"sudo sysctl fs.inotify.max_user_watches={1 << max(19, (2 * folders).bit_length())}"
        message = f"{folders:,} folders, {limit:,} watches allowed"
        yield Check("watches", folders < limit, message, "" if folders < limit else step)


def _events(core: Core) -> Iterator[Check]:
    """Whether a file event arrives from a folder in the notebook."""
    from watchfiles import watch  # not before a folder is there to watch

    with suppress(OSError), tempfile.TemporaryDirectory(prefix=".notebook-doctor-", dir=core.root) as folder:
        changes = watch(folder, step=1, debounce=10, rust_timeout=200, yield_on_timeout=True, watch_filter=None)
        arrived, end = False, time.monotonic() + _PROBE_SECONDS
        while not arrived and time.monotonic() < end:
            (Path(folder) / "probe").write_text(f"{time.time_ns()}")
            arrived = bool(next(changes, None))
        changes.close()
        step = "lower sync.reconcile_seconds: `watch` finds changes by its timer"
        message = "file events arrive" if arrived else "no file event arrives from this folder"
        yield Check("events", arrived, message, "" if arrived else step)


def _editors(core: Core) -> Iterator[Check]:
    """What editors and sync clients left next to notes."""
    seen: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    copies = ("conflict copies", "notebook-sync check names the file that each belongs to")
    for folder, folders, names in os.walk(core.root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            place = os.path.relpath(f"{folder}/{name}", core.root)
            found = [(what, step) for pattern, what, step in _LEFT_BEHIND if pattern.fullmatch(name)]
            for each in found or ([copies] if copy_of(place) else []):
                seen[each].append(place)
    for (what, step), places in seen.items():
        named = ", ".join(places[:_MOST_NAMED]) + ", …" * (len(places) > _MOST_NAMED)
        yield Check("editors", False, f"{what}: {named}", step)
    if not seen:
        yield Check("editors", True, "no editor or sync client left anything behind")


def _vocabulary(core: Core) -> Iterator[Check]:
    from prompt import VocabularyMissing, count_tokens  # 200 ms, once everything else is known

    encoding = core.settings.prompt.encoding
    try:
        count_tokens("a notebook", encoding)
        yield Check("vocabulary", True, f"{encoding} is on this machine")
    except VocabularyMissing as error:
        yield Check("vocabulary", False, str(error), 'set prompt.encoding = "cl100k_base"')


def _servers(core: Core) -> Iterator[Check]:
    if not core.has_targets:
        yield Check("servers", True, "none is set, and none is needed")
        return
    step = f"start the server, or correct its url in {SETTINGS_FILE}"
    for state in core.publisher.state():
        trouble = state["trouble"]
        message = f"{state['name']}: {trouble}" if trouble else state["name"]
        yield Check("servers", not trouble, message, step if trouble else "", is_server=True)


def _embeddings(core: Core) -> Iterator[Check]:
    """Search by words goes on where this is wrong."""
    from notebook_sync.search.embed import embedder_of  # no other check needs a model

    embedder = embedder_of(core.settings.search)
    if embedder is None:
        yield Check("embeddings", True, "off: notes are found by their words")
        return
    try:
        dimensions = embedder.embed(["a notebook"]).shape[1]
        yield Check("embeddings", True, f"{embedder.model} answers, with vectors of {dimensions}")
    except NotebookError as error:
        step = error.next or f'correct [search] in {SETTINGS_FILE}, or set embeddings = "off"'
        yield Check("embeddings", False, error.message, step, is_server=not embedder.is_local)
