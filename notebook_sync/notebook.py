"""One notebook, and one method for each thing a user can do with it: what surfaces translate arguments for.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from notebook_sync import config
from notebook_sync.agent_notebook import AgentNotebook
from notebook_sync.errors import ConfigError, NotANotebook
from notebook_sync.folder import FOLDER
from notebook_sync.sessions import OWNER, Session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from notebook_sync.files.edits import Edit
    from notebook_sync.importing import ImportedArchive
    from notebook_sync.initialize import Initialized
    from notebook_sync.mirror.base import Document
    from notebook_sync.notes.by_hand import ByHand
    from notebook_sync.notes.door import Entered
    from notebook_sync.notes.due import Due
    from notebook_sync.notes.editing import Edited, FileEdits
    from notebook_sync.notes.filing import File
    from notebook_sync.notes.prompt_changes import PromptChanges
    from notebook_sync.notes.standing import Standing
    from notebook_sync.notes.undoing import Revision
    from notebook_sync.sync.report import Report
    from notebook_sync.sync.verify import Verdict
    from notebook_sync.sync.watch import Watch
    from prompt import Found, Prompt

# `list` names a method here, so the type needs a name of its own.
Documents = list[dict[str, Any]]


class Notebook(AgentNotebook):
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

    @staticmethod
    def import_archive(
        archive: str | Path, folder: str | Path, *, progress: Callable[[int, int], None] | None = None
    ) -> ImportedArchive:
        """Make an exported notebook anew in `folder`, which is not there or empty. `progress(done, total)` counts what
        is unpacked, then files. Raises as `place`, and as `bring_into_stores`: the same call then goes on from there.
        """
        from notebook_sync.importing import bring_into_stores
        from notebook_sync.notes.archive_placing import place

        placed = place(Path(archive), Path(folder), progress)
        with Notebook.open(placed.root) as made:
            return bring_into_stores(placed, made._new_engine, lambda: made.mirror, lambda: made.refs, progress)

    def __enter__(self) -> Notebook:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Files → mirror → refs.

    def sync(self, *, allow_empty: bool = False, progress: Callable[[int, int], None] | None = None) -> Report:
        """One full reconcile. `progress(done, total)` counts files. Raises as `Engine.reconcile`."""
        from notebook_sync.sync.sweep import Task

        return self._new_engine().reconcile(Task(allow_empty=allow_empty, progress=progress))

    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> Report:
        """Write every row and ref anew from the files; version, history and usage are kept."""
        from notebook_sync.sync.sweep import Task

        return self._new_engine().reconcile(Task(rehash=True, force=True, progress=progress))

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
            commits=self._commits_by_hand() if self.settings.git.commit == "all" else None,
            log=self.events,
        )

    def _commits_by_hand(self) -> ByHand:
        from notebook_sync.notes.by_hand import ByHand
        from notebook_sync.notes.past import Past

        return ByHand(self.vault, Past(self.root / FOLDER), lambda: self.mirror, self.settings.git.author or None)

    def _has_new_settings(self) -> bool:
        """Whether notebook.toml now asks the watch for something else than this notebook does."""
        try:
            now = config.load(self.root)
        except ConfigError:
            return True
        known = self.settings
        git = now.git if "all" in {now.git.commit, known.git.commit} else known.git
        return replace(now, prompt=known.prompt, git=git, server=known.server, source=known.source) != known

    def verify(self, *, repair: bool = False, progress: Callable[[int, int], None] | None = None) -> Verdict:
        """Compare files, mirror and refs by digest; with `repair`, after a reconcile that rewrites what differs.

        What the repair could not mend is among the differences. `progress(done, total)` counts files, of the repair
        and then of the comparison.
        """
        from notebook_sync.sync.verify import verify

        if repair:
            from notebook_sync.sync.sweep import Task

            engine = self._new_engine()
            engine.reconcile(Task(rehash=True, progress=progress))
            engine.rewrite_refs()
        return verify(self.vault, self.mirror, self.refs, encoding=self.settings.prompt.encoding, progress=progress)

    # Reading.

    def find_path(self, name: str, session: Session = OWNER) -> str:
        """The path of a note, given its path, its id, or a runtime file's bare name. Raises NoSuchNote, UnsafePath."""
        return self._lookup.find_path(name, session)

    def read(self, name: str, session: Session = OWNER) -> Document:
        """The document of a note, given its id, its path or a runtime file's bare name: as the file is now.

        Where that cannot be had the document is the last good one, and its `stale` says why. `external` says whether
        somebody else wrote it: a model is to be shown title, summary and text of such a note only in a fence. Of a
        file of the prompt, `content` and `sections` hold what the session is shown there: who may not change it, no
        comments and no expired rules; a surface need not look again. That an agent opened a page, a snippet or a
        finding the daily stream is told, behind the answer. Raises NotPermitted, NoSuchNote, UnsafePath,
        UnreadableFile.
        """
        document = self._lookup.read(name, session)
        self._opened.tell(document, session)
        return document

    def section(self, document: Document, name: str) -> dict[str, Any]:
        """The section of a document with this anchor or heading. Raises NoSuchNote naming the anchors there are."""
        from notebook_sync.lookup import section_of

        return section_of(document, name)

    def list(
        self,
        collection: str | None = None,
        status: str | None = None,
        limit: int = 50,
        session: Session = OWNER,
        *,
        tags: Sequence[str] = (),
        created_by: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Documents:
        """Light fields of notes, the latest change first; never content. Raises UsageError for what is unknown.

        tags: notes that have any of them. created_by: `owner`, or `agent:NAME`. since, until: changed at `since` or
        later, and before `until`; a time without a zone is UTC.
        """
        from notebook_sync.listing import wanted_notes

        wanted = wanted_notes(collection, status, tags, created_by, since, until)
        return self._listing.list(wanted, limit, session)

    def search(
        self,
        query: str,
        limit: int = 10,
        session: Session = OWNER,
        *,
        collection: str | None = None,
        status: str | None = None,
        tags: Sequence[str] = (),
        created_by: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Documents:
        """Notes that match the words of `query`, best first; never content. Narrowed, and raises, as `list`."""
        from notebook_sync.listing import wanted_notes

        wanted = wanted_notes(collection, status, tags, created_by, since, until)
        return self._listing.search(query, wanted, limit, session)

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
        from notebook_sync.notes.editing import FileEdits

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

    def undo(self, name: str, session: Session) -> Edited:
        """Give a note the text it had before the one it has now, as a new edit. Raises as `edit_all`."""
        return self._undoing.undo(name, session)

    def history(self, name: str, session: Session = OWNER, limit: int = 50) -> Sequence[Revision]:
        """The versions of a note, the latest first; also of one that is gone. Raises NotPermitted, NoSuchNote."""
        return self._undoing.history(name, session, limit)

    def diff(self, name: str, rev: str = "", session: Session = OWNER) -> str:
        """What changed in a note since the version `rev`, "" for the one before. Raises as `history`, and NotPermitted
        for a file of the prompt that the session may not change: what was taken out of it is not shown either."""
        return self._undoing.diff(name, rev, session)

    def rules_for(self, identity: str, channel: str = "", *, session: Session = OWNER) -> Standing:
        """Which rule of external-communications.md holds today for somebody, and why that one. Raises NotPermitted."""
        from notebook_sync.notes.rules import PATH

        self.guard.require(session, "read", PATH, "rules")
        return self._agenda.rules_for(identity, session, channel)

    def reminders(self, *, due: bool = False, session: Session = OWNER) -> Sequence[Due]:
        """The reminders as they stand now, or those that are due or overdue: the most pressing first. Raises
        NotPermitted."""
        from notebook_sync.notes.reminders import PATH

        self.guard.require(session, "read", PATH, "reminders")
        return self._agenda.reminders(session, due=due)

    def tell_due(self) -> Sequence[Due]:
        """Record one event for each reminder that has fallen due since the last call, by whatever process."""
        return self._alarm.ring()[0]

    def refuse(self, session: Session, tool: str, sentence: str, path: str = "") -> NoReturn:
        """Leave an event of a call that is refused, and raise NotPermitted with this sentence."""
        self.guard.refuse(session, tool, sentence, path)

    # The prompt.

    def prompt(
        self, session: Session, *, max_tokens: int | None = None, include: Sequence[str] = (), task: str = ""
    ) -> Prompt:
        """The system prompt for `session`, from the files as they are now.

        `include` names what stands behind them, of refs, facts and notes (those of the session's agent); `task` is
        shown last. The text of what expired is told to who may change its file. Only refs need the mirror, and a
        mirror that does not answer costs them alone: the prompt's `problems` say so. Raises UsageError for what cannot
        be included, and prompt.VocabularyMissing.
        """
        from notebook_sync.notes.showing import prompt_shown_to
        from notebook_sync.notes.volatile import LIMIT_OF_REFS, Wish

        def recent() -> Sequence[str]:
            from notebook_sync.notes.recent import recent_paths

            return recent_paths(lambda: self.mirror, LIMIT_OF_REFS, self.settings.mirror.timeout_seconds)

        wish = Wish(tuple(include), task, recent)
        assembled = self._system_prompt.assemble(session, max_tokens=max_tokens, wish=wish)
        return prompt_shown_to(session, assembled, self.settings.prompt)

    def prompt_changes(self) -> PromptChanges:
        """Tells, after each save that it is told of, what the save does to the owner's prompt."""
        from notebook_sync.notes.prompt_changes import PromptChanges

        return PromptChanges(self._system_prompt)

    def explain(self, text: str, session: Session, *, asking: Session | None = None) -> Sequence[Found]:
        """Where `text` stands, whether it reaches the session's prompt, and if not, why. UsageError for a blank text.

        Who is `asking`, the session itself unless said, is told of no place that they may not read, and of none where
        a file of the prompt hides the text from them.
        """
        found = self._system_prompt.explain(text, session)
        return self._listing.places_told(found, text, asking or session, is_own=asking in (None, session))

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
