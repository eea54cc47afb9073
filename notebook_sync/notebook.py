"""One notebook, and one method for each thing a user can do with it: what surfaces translate arguments for.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from notebook_sync import config
from notebook_sync.errors import ConfigError, NotANotebook
from notebook_sync.finding import Documents, FindingNotebook
from notebook_sync.folder import FOLDER, make_private
from notebook_sync.sessions import OWNER, Session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notebook_sync.files.edits import Edit
    from notebook_sync.files.facts import Bullet
    from notebook_sync.importing import ImportedArchive
    from notebook_sync.initialize import Initialized
    from notebook_sync.notes.editing.by_hand import ByHand
    from notebook_sync.notes.editing.door import Entered
    from notebook_sync.notes.editing.editing import FileEdits
    from notebook_sync.notes.editing.effects import Edited
    from notebook_sync.notes.editing.filing import File
    from notebook_sync.notes.editing.trusting import Trusted
    from notebook_sync.notes.editing.undoing import Revision
    from notebook_sync.notes.prompting.changes import PromptChanges
    from notebook_sync.notes.prompting.omitted import Omitted
    from notebook_sync.notes.prompting.trust import Waiting
    from notebook_sync.notes.runtime.due import Due
    from notebook_sync.notes.runtime.standing import Standing
    from notebook_sync.operations.admin import SyncReport
    from notebook_sync.sync.watch import Watch
    from prompt import Found, Prompt

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

    def rules_for(self, identity: str, channel: str = "", *, session: Session = OWNER) -> Standing:
        """Which rule of external-communications.md holds today for somebody, and why that one. Raises NotPermitted."""
        from notebook_sync.notes.runtime.rules import PATH

        self.guard.require(session, "read", PATH, "rules")
        return self._agenda.rules_for(identity, session, channel)

    def reminders(self, *, due: bool = False, session: Session = OWNER) -> Sequence[Due]:
        """The reminders as they stand now, or those that are due or overdue: the most pressing first. Raises
        NotPermitted."""
        from notebook_sync.notes.runtime.reminders import PATH

        self.guard.require(session, "read", PATH, "reminders")
        return self._agenda.reminders(due=due)

    def unread_reminders(self, session: Session = OWNER) -> Sequence[int]:
        """The lines of reminders.md that stand where reminders do and cannot be read as ones. Raises NotPermitted."""
        from notebook_sync.notes.runtime.reminders import PATH

        self.guard.require(session, "read", PATH, "reminders")
        return self._agenda.unread_reminders()

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
        shown last. The text of what expired is told to who may change its file. Only refs, and facts that do not all
        fit, need the mirror: where it does not answer there are no refs, and facts as they stand in their file, and the
        prompt's `problems` say so. Raises UsageError for what cannot be included, and prompt.VocabularyMissing.
        """
        from notebook_sync.notes.prompting.volatile import LIMIT_OF_REFS, Wish
        from notebook_sync.notes.showing import prompt_shown_to

        def recent() -> Sequence[str]:
            from notebook_sync.notes.prompting.recent import recent_paths

            return recent_paths(lambda: self.mirror, LIMIT_OF_REFS, self.settings.mirror.timeout_seconds)

        def weigh(facts: Sequence[Bullet]) -> Mapping[str, float]:
            from notebook_sync.notes.prompting.fact_choice import weights

            return weights(lambda: self.fact_rows, facts, self.settings.mirror.timeout_seconds)

        wish = Wish(tuple(include), task, recent, weigh)
        assembled = self._system_prompt.assemble(session, max_tokens=max_tokens, wish=wish)
        return prompt_shown_to(session, assembled, self.settings.prompt)

    def omitted(
        self, name: str, session: Session, *, section: str = "", max_tokens: int = 0, offset: int = 0
    ) -> Omitted:
        """What the session's prompt leaves out of one of its files, or of one section and all below it: `name` is the
        file's path and may end in `#section`, as in an omission line. With `max_tokens` it is one page, the first or
        the one at `offset`. Needs no database. Raises NoSuchNote for a file that is not in the prompt, UsageError."""
        from notebook_sync.notes.prompting.omitted import omitted_of

        return omitted_of(self.prompt(session), name, section, max_tokens=max_tokens, offset=offset)

    def prompt_changes(self) -> PromptChanges:
        """Tells, after each save that it is told of, what the save does to the owner's prompt."""
        from notebook_sync.notes.prompting.changes import PromptChanges

        return PromptChanges(self._system_prompt)

    def explain(self, text: str, session: Session, *, asking: Session | None = None) -> Sequence[Found]:
        """Where `text` stands, whether it reaches the session's prompt, and if not, why. UsageError for a blank text.

        Who is `asking`, the session itself unless said, is told of no place that they may not read, and of none where
        a file of the prompt hides the text from them.
        """
        asker = asking or session
        found = self._system_prompt.explain(text, session, partial(self.guard.permitted, asker, "read"))
        return self._listing.places_told(found, text, asker, is_own=asking in (None, session))

    def waiting_for_trust(self) -> Sequence[Waiting]:
        """The lines of the prompt's files that wait for trust: with `prompt.trust = "committed"`, those that are not
        committed, and that no owner session wrote or accepted. Raises GitFailed."""
        return [line for one in self._system_prompt.untrusted() for line in one.lines]

    def trust(
        self,
        session: Session,
        file: str = "",
        *,
        dry_run: bool = False,
        expected_digests: Mapping[str, str] | None = None,
    ) -> Sequence[Trusted]:
        """Accept what waits in `file`, in all files of the prompt for ""; with `dry_run`, only tell what it is. With
        the digests of these files, only if they still have them. Raises NotPermitted for who is no owner, UsageError
        where no prompt shows such a file, Conflict, UnwritableFile, GitFailed."""
        return self._trusting.accept(session, file, dry_run=dry_run, expected_digests=expected_digests)

    # Looking after the notebook.

    def check(self) -> Documents:
        """What a person may want to mend in the files: `{path, line, severity, message}` each. Needs no database."""

        from notebook_sync.notes.finding import Finding

        waiting = [
            Finding(one.path, one.line, "warning", f"{one.what} waits for trust: notebook-sync trust {one.path}")
            for one in self.waiting_for_trust()
        ]
        return [finding.as_dict() for finding in sorted([*self._checks.findings(self.settings.local_now()), *waiting])]


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
