"""One notebook, and one method for each thing a user can do with it: what surfaces translate arguments for.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from notebook_sync import config
from notebook_sync.errors import ConfigError, NotANotebook
from notebook_sync.finding import FindingNotebook
from notebook_sync.folder import FOLDER, make_private
from notebook_sync.sessions import OWNER, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notebook_sync.files.edits import Edit
    from notebook_sync.importing import ImportedArchive
    from notebook_sync.initialize import Initialized
    from notebook_sync.notes.editing.by_hand import ByHand
    from notebook_sync.notes.editing.door import Entered
    from notebook_sync.notes.editing.editing import FileEdits
    from notebook_sync.notes.editing.effects import Edited
    from notebook_sync.notes.editing.filing import File
    from notebook_sync.notes.editing.undoing import Revision
    from notebook_sync.operations.admin import SyncReport
    from notebook_sync.sync.watch import Watch
    from prompt import Prompt

_log = logging.getLogger(__name__)
_WAS_OPEN = (
    "%s was open to other users of this machine; made private: %d. If one of them may have read it, revoke its tokens: "
    "notebook-sync token list"
)


class Notebook(FindingNotebook):
    """An open notebook, for any number of threads. Close it, or use it in a `with`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "plan.md").write_text("# The plan\\n\\nStart small.\\n")
    >>> with Notebook.open(folder) as notebook:
    ...     report = notebook.sync()
    ...     found = notebook.search("small")
    >>> report.added, found[0]["title"]
    (1, 'The plan')
    """

    @classmethod
    def open(cls, path: str | Path) -> Notebook:
        """The notebook at `path`: any folder of Markdown. Raises NotANotebook, ConfigError."""
        root = Path(path).expanduser().resolve()
        if root.exists() and not root.is_dir():
            raise NotANotebook(f"{root} is a file; name the notebook's folder")
        if not root.is_dir():
            raise NotANotebook(
                f"{root} is not a folder; make a notebook with: notebook-sync init {shlex.quote(str(path))}"
            )
        settings = config.load(root)
        try:
            if opened := make_private(root / FOLDER):
                _log.warning(_WAS_OPEN, root / FOLDER, len(opened))
        except OSError as error:
            _log.warning("%s may be open to other users of this machine: %s", root / FOLDER, error)
        return cls(root, settings)

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

    @staticmethod
    def import_archive(
        archive: str | Path,
        folder: str | Path,
        *,
        progress: Callable[[int, int], None] | None = None,
        trust_settings: bool = False,
    ) -> ImportedArchive:
        """Make an exported notebook anew in `folder`, which is not there or empty. `progress(done, total)` counts what
        is unpacked, then files. trust_settings: also where its settings start programs or reach other machines. Raises
        as `place`, and as `bring_into_stores`: the same call then goes on from there.
        """
        from notebook_sync.importing import bring_into_stores
        from notebook_sync.notes.archive.placing import place

        placed = place(Path(archive), Path(folder), progress, trust_settings=trust_settings)
        with Notebook.open(placed.root) as made:
            return bring_into_stores(
                placed,
                made._new_engine,
                lambda: made.mirror,
                lambda: made.refs,
                lambda: made.fact_rows,
                lambda: made.memory_rows,
                progress,
            )

    def __enter__(self) -> Notebook:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Files → mirror → refs.

    def sync(
        self, *, allow_empty: bool = False, embed: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> SyncReport:
        """As `admin.sync`. `progress(done, total)` counts files. Raises as `Engine.reconcile`."""
        return self.admin.sync(allow_empty=allow_empty, embed=embed, progress=progress)

    def watch(self) -> Watch:
        """A watch over this notebook, not yet begun: iterate over its `events()`."""
        from notebook_sync.sync.watch import Watch

        sync = self.settings.sync
        return Watch(
            self.vault,
            self._new_engine(),
            self.folder,
            settle_seconds=sync.settle_ms / 1000,
            reconcile_seconds=sync.reconcile_seconds,
            full_hash_seconds=sync.full_hash_hours * 3600,
            has_new_settings=self._has_new_settings,
            alarm=self._alarm,
            upkeep=self.do_chores,
            commits=self._commits_by_hand() if self.settings.git.commit == "all" else None,
            log=self.events,
        )

    def _commits_by_hand(self) -> ByHand:
        from notebook_sync.notes.editing.by_hand import ByHand
        from notebook_sync.notes.editing.past import Past

        author, skipped = self.settings.git.author or None, self._trust.paths if self._trust else ()
        return ByHand(self.vault, Past(self.root / FOLDER), lambda: self.mirror, author, skipped)

    def _has_new_settings(self) -> bool:
        """Whether notebook.toml now asks the watch for something else than this notebook does."""
        try:
            now = config.load(self.root)
        except ConfigError:
            return True
        known = self.settings
        commits_all = "all" in {now.git.commit, known.git.commit}
        holds_back = commits_all and "committed" in {now.prompt.trust, known.prompt.trust}
        git, prompt = now.git if commits_all else known.git, now.prompt if holds_back else known.prompt
        return replace(now, prompt=prompt, git=git, server=known.server, source=known.source) != known

    # Editing, and what was edited.

    def edit(
        self,
        file: str,
        edits: Edit | Sequence[Edit],
        session: Session,
        *,
        expected_digest: str | None = None,
        allow_over_cap: bool = False,
        preview: bool = False,
    ) -> Edited:
        """Edit one note, all edits or none; with `preview`, only tell what they would do. As `edit_all`."""
        from notebook_sync.files.edits import Edit
        from notebook_sync.notes.editing.editing import FileEdits

        asked = FileEdits(file, (edits,) if isinstance(edits, Edit) else tuple(edits), expected_digest)
        return self.edit_all([asked], session, allow_over_cap=allow_over_cap, preview=preview)[0]

    def edit_all(
        self, batch: Sequence[FileEdits], session: Session, *, allow_over_cap: bool = False, preview: bool = False
    ) -> Sequence[Edited]:
        """Edit several notes, all of them or none. One `Edited` for each note, in order.

        A file is written first and mirrored, committed and logged behind that; what fails there is a warning.
        Raises NotPermitted, NoSuchNote, EditFailed, Conflict, OverCap, UnsafePath, UnreadableFile, UnwritableFile.
        """
        return self._editing.edit(batch, session, allow_over_cap=allow_over_cap, preview=preview)

    def files(self, session: Session, place: str = "") -> dict[str, int]:
        """The notes at `place` and below that the session may read: the size of each in bytes, by path."""
        return self._filing.sizes(place, session)

    def file(self, path: str, session: Session) -> File:
        """A note's file to the character, by its exact path. Raises NotPermitted, NoSuchNote, UnreadableFile."""
        return self._filing.file(path, session)

    def delete(self, path: str, session: Session, *, expected_digest: str | None = None) -> Entered:
        """Take away a note, or all notes of a folder; what they said is kept. With an expected digest, one note alone.

        Raises NotPermitted, NoSuchNote, and Conflict where somebody was faster; then nothing was taken away."""
        return self._filing.delete(path, session, expected_digest)

    def rename(self, old: str, new: str, session: Session) -> Entered:
        """Give a note, or all notes of a folder, a path where nothing is yet. Raises as `delete`, and UnsafePath."""
        return self._filing.rename(old, new, session)

    def undo(self, name: str, session: Session, *, expected_digest: str | None = None, rev: str = "") -> Edited:
        """Give a note the text it had before the one it has now, or in the version `rev`, as a new edit; "" expects it
        to be gone. Raises as `edit_all`."""
        return self._undoing.undo(name, session, expected_digest, rev)

    def history(self, name: str, session: Session = OWNER, limit: int = 50) -> Sequence[Revision]:
        """The versions of a note, the latest first; also of one that is gone. Raises NotPermitted, NoSuchNote."""
        return self._undoing.history(name, session, limit)

    def diff(self, name: str, rev: str = "", session: Session = OWNER) -> str:
        """What changed in a note since the version `rev`, "" for the one before. Raises as `history`, and NotPermitted
        for a file of the prompt that the session may not change: what was taken out of it is not shown either."""
        return self._undoing.diff(name, rev, session)

    def version(self, name: str, rev: str, session: Session = OWNER) -> File:
        """What a note said in the version `rev` of its history. Raises as `diff`."""
        return self._undoing.version(name, rev, session)

    def refuse(self, session: Session, tool: str, sentence: str, path: str = "") -> NoReturn:
        """Leave an event of a call that is refused, and raise NotPermitted with this sentence."""
        self.guard.refuse(session, tool, sentence, path)

    # The prompt.

    def prompt(
        self,
        session: Session = OWNER,
        *,
        max_tokens: int | None = None,
        include: Sequence[str] = (),
        task: str = "",
        as_: str = "",
    ) -> Prompt:
        """The system prompt for `session`, from the files as they are now.

        `include` names what is added after the files: refs, facts and notes (those of the session's agent); `task` is
        shown last. `as_`, for the owner, shows the prompt of another session: `task`, `external:scribe`. Expired
        entries are listed with their text only for sessions that may change the file. Only refs, and facts that do not
        all fit, need the mirror; if it does not answer, the prompt's `problems` say what is missing. Raises UsageError
        for what cannot be included, NotPermitted, and prompt.VocabularyMissing.
        """
        return self.prompts.assemble(session, max_tokens=max_tokens, include=include, task=task, as_=as_)

    # Looking after the notebook.


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
