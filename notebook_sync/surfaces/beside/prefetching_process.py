"""Syntheses made ahead beside a watch or a server, which they never hold up: of a spec that was saved, and for a new
branch in git.
"""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from notebook_sync.context.prefetch import Specs, latest_of
from notebook_sync.errors import GitFailed
from notebook_sync.files.branch import branch_of
from notebook_sync.files.git import run_git
from notebook_sync.files.vault import Vault
from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.beside.process import ProcessBeside

# Each text of a spec costs a call, of few a day: an editor that saves by itself saves many.
_QUIET_SECONDS = 10.0
_LOOK_SECONDS = 2.0
_GRACE_SECONDS = 1.0
# What fails may have asked, which costs a call each time.
_AGAIN_SECONDS = (60.0, 300.0)
_BRANCH = "ref: refs/heads/"

_log = logging.getLogger(__name__)


@contextmanager
def prefetching(notebook: Notebook) -> Iterator[Callable[[Collection[str]], None]]:
    """Gives what to call with the paths of notes that were saved. Nothing happens where syntheses are off, or no notes
    are specs. Raises ConfigError."""
    tier2 = notebook.settings.tier2
    if not (tier2.enabled and tier2.specs):
        yield lambda _: None
        return
    with PrefetchingProcess(notebook.vault, Specs.of(tier2.specs)) as process:
        yield process.saved


class PrefetchingProcess:
    """Runs `prefetch` in a process, some seconds after the last spec was saved, while the block lasts: for few specs,
    those that were saved last. What cannot be done is logged, and tried again a few times, later each time."""

    def __init__(self, vault: Vault, specs: Specs) -> None:
        self._vault = vault
        self._specs = specs
        self._process = ProcessBeside(vault.root)
        self._closing = threading.Event()
        self._noting = threading.Lock()
        self._due: set[str] = set()
        self._due_at = 0.0
        self._tries = 0
        self._thread = threading.Thread(target=self._follow, name="prefetching", daemon=True)

    def __enter__(self) -> PrefetchingProcess:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._process.close()
        self._thread.join(_GRACE_SECONDS)

    def saved(self, paths: Collection[str]) -> None:
        """Those of them that are specs are due."""
        self._note([path for path in paths if path in self._specs])

    def _note(self, specs: Collection[str], seconds: float | None = None) -> None:
        """They are due in so many seconds, once it has been quiet unless said."""
        if specs:
            with self._noting:
                self._due |= set(specs)
                self._due_at = time.monotonic() + (_QUIET_SECONDS if seconds is None else seconds)

    def _follow(self) -> None:
        branches = Branches(self._vault.root)
        while not self._closing.wait(min(_LOOK_SECONDS, _QUIET_SECONDS)):
            try:
                self._look(branches)
            except Exception:  # of whatever kind: what is saved next is prefetched all the same
                _log.exception("what there is to prefetch could not be looked for; the next look tries again")

    def _look(self, branches: Branches) -> None:
        if branch := branches.new():
            self._note(
                self._specs.for_branch(
                    branch, {path: stamp.mtime_ns for path, stamp in self._vault.scan().seen.items()}
                )
            )
        if due := self._taken():
            self._run(due)

    def _run(self, due: Sequence[str]) -> None:
        code = self._process.run("context", "prefetch", "--", *due)
        if code == 0 or self._closing.is_set():
            self._tries = 0
            return
        _log.warning("prefetch ended with exit code %d; see notebook-sync context prefetch %s", code, shlex.join(due))
        again = _AGAIN_SECONDS[self._tries : self._tries + 1]
        self._tries = self._tries + 1 if again else 0
        for seconds in again:
            self._note(due, seconds)

    def _taken(self) -> list[str]:
        """What is due, once it has been quiet; not what is gone since."""
        with self._noting:
            if not self._due or time.monotonic() < self._due_at:
                return []
            due, self._due = self._due, set()
        stamps = {path: self._vault.stamp(path) for path in due}
        return latest_of({path: stamp.mtime_ns for path, stamp in stamps.items() if stamp is not None})


class Branches:
    """Of the repository that `root` stands in. Which there are is asked of git once; after that, one small file is
    looked at."""

    def __init__(self, root: Path) -> None:
        self._head: Path | None = None
        self._text = ""
        self._known: set[str] = set()
        with suppress(GitFailed, OSError):
            if (branch := branch_of(root)) is not None:
                named = run_git(root, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").stdout
                self._head = branch.folder / "HEAD"
                self._text = self._read()
                self._known = {*named.decode(errors="replace").splitlines(), self._name()}

    def new(self) -> str:
        """The branch that is checked out, if nobody knew of it before; else ""."""
        text = self._read()
        if text == self._text:
            return ""
        self._text = text
        name = self._name()
        if not name or name in self._known:
            return ""
        self._known.add(name)
        return name

    def _read(self) -> str:
        try:
            return "" if self._head is None else self._head.read_text(encoding="utf-8", errors="replace")
        except OSError:  # git is writing it, or the repository went away
            return self._text

    def _name(self) -> str:
        return self._text.removeprefix(_BRANCH).strip() if self._text.startswith(_BRANCH) else ""
