"""One notebook: opens a folder, wires the parts together, and has one method for each thing a user can do.

Surfaces only translate arguments and results. Stores are opened when they are first needed: a prompt needs none.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notebook_sync import config
from notebook_sync.errors import ConfigError, NoSuchNote, NotANotebook, NotebookError, UnreadableFile, UsageError
from notebook_sync.files.note import COLLECTIONS, STATUSES
from notebook_sync.files.vault import RACY_SECONDS, Vault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notebook_sync.initialize import Initialized
    from notebook_sync.mirror.base import Document, Mirror
    from notebook_sync.notes.prompt_changes import PromptChanges
    from notebook_sync.notes.system_prompt import SystemPrompt
    from notebook_sync.refs.base import Refs
    from notebook_sync.sessions import Session
    from notebook_sync.sync.engine import Engine
    from notebook_sync.sync.report import Report
    from notebook_sync.sync.sweep import Outcome
    from notebook_sync.sync.verify import Verdict
    from notebook_sync.sync.watch import Watch
    from prompt import Found, Prompt

FOLDER = ".notebook"
# What every store can count to.
_LARGEST_LIMIT = 2**31 - 1
# `list` names a method here, so the type needs a name of its own.
Documents = list[dict[str, Any]]


class Notebook:
    """An open notebook. Close it, or use it in a `with`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "plan.md").write_text("# The plan\\n\\nStart small.\\n")
    >>> with Notebook.open(folder) as notebook:
    ...     report = notebook.sync()
    ...     found = notebook.search("small")
    >>> report.added, found[0]["title"]
    (1, 'The plan')
    """

    def __init__(self, root: Path, settings: config.Settings) -> None:
        self.root = root
        self.settings = settings
        self.vault = Vault(root, exclude=settings.notebook.exclude, max_file_bytes=settings.notebook.max_file_bytes)
        self._open: list[Mirror | Refs] = []

    @classmethod
    def open(cls, path: str | Path) -> Notebook:
        """The notebook at `path`: any folder of Markdown. Raises NotANotebook, ConfigError."""
        root = Path(path).expanduser().resolve()
        if not root.is_dir():
            raise NotANotebook(f"{root} is not a folder; make a notebook with: notebook-sync init {path}")
        return cls(root, config.load(root))

    @classmethod
    def find(cls, start: Path) -> Notebook:
        """The notebook whose notebook.toml is nearest, in `start` or above it. Raises NotANotebook."""
        return cls.open(find_root(start))

    @staticmethod
    def init(path: str | Path, *, git: bool = True, brain: str | Path | None = None) -> Initialized:
        """Make a notebook at `path`, or what it lacks; overwrites nothing. Raises as `initialize`."""
        from notebook_sync.initialize import initialize

        told = Path(brain).expanduser().absolute() if brain is not None else None
        return initialize(Path(path).expanduser().resolve(), git=git, brain=told)

    def __enter__(self) -> Notebook:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release what was opened. Twice is allowed."""
        while self._open:
            self._open.pop().close()

    # The stores, opened on first use.

    @cached_property
    def folder(self) -> Path:
        """`.notebook`, made and hidden from git when it is not there: everything in it can be made again."""
        folder = self.root / FOLDER
        try:
            folder.mkdir(exist_ok=True)
            ignore = folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
        except OSError as error:
            raise NotebookError(f"{folder} cannot be made: {error.strerror}; see: notebook-sync doctor") from None
        return folder

    @cached_property
    def mirror(self) -> Mirror:
        """The content store. Raises ConfigError; BackendDown where the embedded file cannot be opened."""
        from notebook_sync.stores import open_mirror

        mirror = open_mirror(self.settings, lambda: self.folder)
        self._open.append(mirror)
        return mirror

    @cached_property
    def refs(self) -> Refs:
        """Hot memory. Raises as `mirror`."""
        from notebook_sync.stores import open_refs

        refs = open_refs(self.settings, lambda: self.folder)
        self._open.append(refs)
        return refs

    @cached_property
    def _engine(self) -> Engine:
        from notebook_sync.sync.engine import Engine

        return Engine(
            self.vault,
            self.mirror,
            self.refs,
            settle_seconds=self.settings.sync.settle_ms / 1000,
            batch=self.settings.sync.batch,
            encoding=self.settings.prompt.encoding,
        )

    # Files → mirror → refs.

    def sync(self, *, allow_empty: bool = False, progress: Callable[[int, int], None] | None = None) -> Report:
        """One full reconcile. `progress(done, total)` counts files. Raises as `Engine.reconcile`."""
        from notebook_sync.sync.sweep import Task

        return self._engine.reconcile(Task(allow_empty=allow_empty, progress=progress))

    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> Report:
        """Write every row and ref anew from the files; version, history and usage are kept."""
        from notebook_sync.sync.sweep import Task

        return self._engine.reconcile(Task(rehash=True, force=True, progress=progress))

    def watch(self) -> Watch:
        """A watch over this notebook, not yet begun: iterate over its `events()`."""
        from notebook_sync.sync.watch import Watch

        sync = self.settings.sync
        return Watch(
            self.vault,
            self._engine,
            self.folder,
            settle_seconds=sync.settle_ms / 1000,
            reconcile_seconds=sync.reconcile_seconds,
            full_hash_seconds=sync.full_hash_hours * 3600,
            has_new_settings=self._has_new_settings,
        )

    def _has_new_settings(self) -> bool:
        """Whether notebook.toml now asks for something else than this notebook does, prompts apart."""
        try:
            now = config.load(self.root)
        except ConfigError:
            return True
        return replace(now, prompt=self.settings.prompt, source=self.settings.source) != self.settings

    def verify(self, *, repair: bool = False, progress: Callable[[int, int], None] | None = None) -> Verdict:
        """Compare files, mirror and refs by digest; with `repair`, after a reconcile that rewrites what differs.

        What the repair could not mend is among the differences. `progress(done, total)` counts files, of the repair
        and then of the comparison.
        """
        from notebook_sync.sync.verify import verify

        if repair:
            from notebook_sync.sync.sweep import Task

            self._engine.reconcile(Task(rehash=True, progress=progress))
            self._engine.rewrite_refs()
        return verify(self.vault, self.mirror, self.refs, encoding=self.settings.prompt.encoding, progress=progress)

    # Reading.

    def find_path(self, name: str) -> str:
        """The path of a note, given its path, its id, or a runtime file's bare name. Raises NoSuchNote."""
        for spelled in (name, f"{name}.md", f"runtime/{name}"):
            path = self.vault.relative(spelled)
            if path and path in self.vault.scan([path]).seen:
                return path
        for row in self.mirror.claimants([name]):
            if row.id == name:
                return row.path
        raise NoSuchNote(f"no note has the id or path {name!r}; see: notebook-sync list")

    def read(self, name: str) -> Document:
        """The document of a note, given its id, its path or a runtime file's bare name: as the file is now.

        Where that cannot be had the document is the last good one, and its `stale` says why. Raises NoSuchNote,
        UnreadableFile.
        """
        path = self.find_path(name)
        rows = {row.path: row for row in self.mirror.known([path])}
        why = ""
        if path not in rows or rows[path].stamp != self.vault.stamp(path):
            outcome = self._look_at(path)
            if path in outcome.report.failed and path not in rows:
                raise UnreadableFile(path, outcome.report.failed[path])
            why = "it is being written, or went away" if path in outcome.waiting else ""
            rows = {row.path: row for row in self.mirror.known([path])}
        document = self.mirror.get(rows[path].id) if path in rows else None
        if document is None:
            raise NoSuchNote(f"{path} went away, or is being written; try again")
        return {**document, "stale": document["stale"] or why or None}

    def _look_at(self, path: str) -> Outcome:
        """Bring one row in step, also with a write that its file's stamp does not show."""
        from notebook_sync.sync.sweep import Task

        outcome = self._engine.look(Task(frozenset({path})))
        if path in outcome.racy:
            time.sleep(RACY_SECONDS)
            self._engine.look(Task(frozenset({path}), rehash=True), outcome)
        return outcome

    def section(self, document: Document, name: str) -> dict[str, Any]:
        """The section of a document with this anchor or heading. Raises NoSuchNote naming the anchors there are."""
        wanted = name.lstrip("#")
        found = [s for s in document["sections"] if s["anchor"] == wanted] or [
            s for s in document["sections"] if s["heading"].casefold() == wanted.casefold()
        ]
        if len(found) == 1:
            return dict(found[0])
        anchors = ", ".join(s["anchor"] for s in found or document["sections"]) or "none"
        what = "several sections" if found else "no section"
        raise NoSuchNote(f"{document['path']} has {what} named {name!r}; anchors: {anchors}")

    def list(self, collection: str | None = None, status: str | None = None, limit: int = 50) -> Documents:
        """Light fields of notes, the latest change first; never content. Raises UsageError for what is unknown."""
        _must_be_known("collection", collection, COLLECTIONS)
        _must_be_known("status", status, STATUSES)
        _must_be_count(limit)
        return self.mirror.light(collection, status, limit)

    def search(self, query: str, limit: int = 10) -> Documents:
        """Notes that match the words of `query`, best first; never content. Raises UsageError for a wrong limit."""
        _must_be_count(limit)
        return self.mirror.search(query, limit)

    # The prompt.

    @cached_property
    def _system_prompt(self) -> SystemPrompt:
        return self._prompt_with(self.settings)

    def _prompt_with(self, settings: config.Settings) -> SystemPrompt:
        from notebook_sync.notes.system_prompt import SystemPrompt

        folder = self.root / FOLDER
        with contextlib.suppress(NotebookError):  # where nothing can be written, the prompt is assembled all the same
            folder = self.folder
        return SystemPrompt(self.vault, folder, settings)

    def prompt(
        self, session: Session, *, max_tokens: int | None = None, include: Sequence[str] = (), task: str = ""
    ) -> Prompt:
        """The system prompt for `session`, from the files as they are now.

        `include` names what stands behind them, of refs, facts and notes (those of the session's agent); `task` is
        shown last. Only refs need the mirror, and a mirror that does not answer costs them alone: the prompt's
        `problems` say so. Raises UsageError for what cannot be included, and prompt.VocabularyMissing.
        """
        from notebook_sync.notes.volatile import LIMIT_OF_REFS, Wish

        def recent() -> Sequence[str]:
            from notebook_sync.notes.recent import recent_paths

            return recent_paths(lambda: self.mirror, LIMIT_OF_REFS, self.settings.mirror.timeout_seconds)

        wish = Wish(tuple(include), task, recent)
        return self._system_prompt.assemble(session, max_tokens=max_tokens, wish=wish)

    def prompt_changes(self) -> PromptChanges:
        """Tells, after each save that it is told of, what the save does to the owner's prompt."""
        from notebook_sync.notes.prompt_changes import PromptChanges

        return PromptChanges(self._system_prompt)

    def explain(self, text: str, session: Session, *, asking: Session | None = None) -> Sequence[Found]:
        """Where `text` stands, whether it reaches the session's prompt, and if not, why. UsageError for a blank text.

        Who is `asking`, the session itself unless said, is told of no place that they may not read.
        """
        from notebook_sync.permissions import may

        found = self._system_prompt.explain(text, session)
        return [one for one in found if one.in_prompt or may(asking or session, "read", one.path, self.settings.prompt)]

    # Looking after the notebook.

    def status(self) -> dict[str, Any]:
        """Counts, backlog, watcher, token use; an answer also when both databases are down. As `status_of`."""
        from notebook_sync.notes.prompt_use import prompt_use
        from notebook_sync.status import status_of

        return status_of(
            self.vault,
            self.root / FOLDER,
            self.settings.notebook.name,
            lambda: self.mirror,
            lambda: self.refs,
            lambda: prompt_use(self.root, self.settings, self._prompt_with),
        )

    def check(self) -> Documents:
        """What a person may want to mend in the files: `{path, line, severity, message}` each. Needs no database."""
        from datetime import datetime

        from notebook_sync.notes.check import check

        today = datetime.now(self.settings.timezone).date()
        return [finding.as_dict() for finding in check(self.vault, self.settings.prompt, today)]

    def resolved_settings(self) -> dict[str, Any]:
        """The settings in force, passwords masked, and where each comes from."""
        return {"root": str(self.root), "file": self.settings.source or None, "settings": config.origins(self.settings)}


def _must_be_known(what: str, name: str | None, known: tuple[str, ...]) -> None:
    if name is not None and name not in known:
        raise UsageError(f"there is no {what} {name!r}; use one of {', '.join(known)}")


def _must_be_count(limit: int) -> None:
    if not 0 <= limit <= _LARGEST_LIMIT:
        raise UsageError(f"a limit is a number from 0 to {_LARGEST_LIMIT:,}")


def find_root(start: Path) -> Path:
    """The nearest folder with a notebook.toml, `start` or above it. Raises NotANotebook."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / config.FILE).is_file():
            return folder
    raise NotANotebook(
        f"no {config.FILE} in {start} or above it; "
        "name a folder with -C, or make a notebook with: notebook-sync init DIR"
    )
