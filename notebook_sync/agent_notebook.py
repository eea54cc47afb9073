"""What agents do with a notebook beside reading and editing it: one method for each use case.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from notebook_sync.folder import FOLDER
from notebook_sync.parts import part
from notebook_sync.sessions import OWNER
from notebook_sync.wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from notebook_sync.notes.archive.archive import Archive, Exported
    from notebook_sync.notes.editing.written import Written
    from notebook_sync.notes.stream.rolled_back import Checkpoint, Foreseen, RolledBack
    from notebook_sync.notes.stream.stream import Day
    from notebook_sync.notes.upkeep import Upkeep
    from notebook_sync.operations.channels import ChannelService
    from notebook_sync.operations.context import ContextService
    from notebook_sync.operations.facts import FactService
    from notebook_sync.operations.memories import MemoryService
    from notebook_sync.refs.base import Entry
    from notebook_sync.sessions import Session

# `list` names a method of a notebook, so the type needs a name of its own.
Documents = list[dict[str, Any]]
# What is meant where a caller does not say, of what is logged.
USUAL_SCORE = 0.5
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class AgentNotebook(Wiring):
    """The use cases of agents. A `Notebook` has them all."""

    # Pages, code snippets and research notes.

    def create(
        self,
        collection: str,
        title: str,
        content: str,
        session: Session,
        *,
        summary: str = "",
        tags: Sequence[str] = (),
        status: str = "",
        fields: Mapping[str, Any] = _NO_FIELDS,
    ) -> Written:
        """Make a page, a code snippet or a research note. `fields` are those that only its collection has.

        Code without a fence around it gets one. Raises UsageError, NotPermitted, and as `edit_all`.
        """
        from notebook_sync.notes.page_text import Wanted

        wanted = Wanted(content, title, summary or None, tags or None, status or None, fields)
        return self._pages.create(collection, wanted, session)

    def update(
        self,
        name: str,
        session: Session,
        *,
        content: str | None = None,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        summary: str | None = None,
        status: str | None = None,
        fields: Mapping[str, Any] | None = None,
        expected_digest: str | None = None,
    ) -> Written:
        """Change of a note what is given, and no other byte; `content` is all of its text. "" and [] take away.

        Raises UsageError, NotPermitted, NoSuchNote, and as `edit_all`; Conflict where it is not the one expected.
        """
        from notebook_sync.notes.page_text import Wanted

        wanted = Wanted(content, title, summary, tags, status, fields)
        return self._pages.update(name, wanted, session, expected_digest)

    # The daily stream, and going back in time.

    def log(
        self,
        content: str,
        session: Session,
        *,
        source: str = "",
        tags: Sequence[str] = (),
        score: float = USUAL_SCORE,
        keep: bool = False,
    ) -> Entry:
        """Add an entry to today's stream, with `keep` to long-term memory; the entry. `score` is how much it matters, 0
        to 1; `source` is where it is from, the session itself unless said. Raises NotPermitted, UsageError."""
        return self._stream.log(content, session, source=source, tags=tags, score=score, keep=keep)

    def today(self, session: Session, day: str = "", limit: int = 1000) -> Day:
        """The stream of a day, as 2026-03-01, in the notebook's timezone; of today for "". Of more entries than `limit`
        the last, oldest first. Raises NotPermitted, UsageError."""
        return self._stream.today(session, day, limit)

    def recall(
        self, query: str, session: Session, *, tags: Sequence[str] = (), since: datetime | None = None, limit: int = 10
    ) -> dict[str, Any]:
        """`{results, partial}`: what of the stream, long-term memory and the notes' refs fits `query`, best first, each
        an entry with its `relevance`; `partial` is why not all was looked through. A `since` without a zone is
        UTC. Raises NotPermitted, UsageError."""
        return self._stream.recall(query, session, tags=tags, since=since, limit=limit)

    def checkpoint(self, session: Session, name: str = "") -> Checkpoint:
        """Keep the stream of the last seven days, long-term memory, the versions of notes, and by git the files as they
        are. Its counts are of what the session may read. Raises NotPermitted, UsageError."""
        return self._checkpoints.take(session, name)

    def checkpoints(self, session: Session) -> Sequence[Checkpoint]:
        """The last fifty checkpoints, the latest first. Raises NotPermitted."""
        return self._checkpoints.list(session)

    def checkpoints_lost(self, session: Session) -> str:
        """That checkpoints are gone, because hot memory was emptied, and of before when; "" where none can be. Raises
        NotPermitted."""
        return self._checkpoints.lost(session)

    def rollback(
        self, checkpoint_id: str, session: Session, *, files: bool = False, foreseen: str | None = None
    ) -> RolledBack:
        """Bring back the stream and long-term memory of a checkpoint, and with `files` the notes, all or none, after
        keeping what is now as another checkpoint; tells which notes changed since. `foreseen` is the digest of what
        `foresee_rollback` told: nothing else is done then.

        Raises NotPermitted, NoSuchCheckpoint, UsageError where it has no files, Refused where something else would be
        done than was foreseen, Conflict where a note was changed meanwhile, GitFailed.
        """
        return self._checkpoints.rollback(checkpoint_id, session, files=files, foreseen=foreseen)

    def foresee_rollback(self, checkpoint_id: str, session: Session, *, files: bool = False) -> Foreseen:
        """What `rollback` would do now, entry by entry and file by file; nothing is changed. Raises as that, but no
        Conflict."""
        return self._checkpoints.foresee(checkpoint_id, session, files=files)

    # The whole notebook in one file; `Notebook.import_archive` makes it anew.

    def export(
        self, to: str | Path, session: Session = OWNER, *, progress: Callable[[int, int], None] | None = None
    ) -> Exported:
        """Make an archive of the notebook at `to`, where nothing is yet. `progress(done, total)` counts files. Raises
        as `Archive.export`."""
        return self._archive.export(Path(to), session, progress)

    def do_chores(self) -> float:
        """Let facts fade and memories be scored, where that was not done for `recalculate_hours`; in how many seconds
        to ask again. For whoever keeps running; raises nothing that a file or a store can do."""
        return self._upkeep.look()

    # The services and the parts.

    @part
    def facts(self) -> FactService:
        """The operations on facts."""
        from notebook_sync.operations.facts import FactService

        return FactService(self)

    @part
    def memories(self) -> MemoryService:
        """The operations on memories."""
        from notebook_sync.operations.memories import MemoryService

        return MemoryService(self)

    @part
    def context(self) -> ContextService:
        """The operations on task briefs and their syntheses."""
        from notebook_sync.operations.context import ContextService

        return ContextService(self, self.memories)

    @part
    def channels(self) -> ChannelService:
        """The operations on private notes."""
        from notebook_sync.operations.channels import ChannelService

        return ChannelService(self)

    @part
    def _archive(self) -> Archive:
        """Makes archives."""
        from notebook_sync.notes.archive.archive import Archive

        return Archive(
            self.vault,
            self.guard,
            lambda: self.mirror,
            lambda: self.refs,
            lambda: self.fact_rows,
            lambda: self.memory_rows,
            lambda: self._new_engine().reconcile(),
        )

    @part
    def _upkeep(self) -> Upkeep:
        """Does what is due by the clock."""
        from notebook_sync.files.facts import FOLDER as FACTS
        from notebook_sync.notes.memories.text import FOLDER as MEMORIES
        from notebook_sync.notes.upkeep import Chore, Upkeep
        from notebook_sync.sessions import PROGRAM

        def fade() -> bool:
            if self.vault.scan([FACTS]).seen:
                self.facts.decay(PROGRAM)
            return True

        def score() -> bool:
            files = len(self.vault.scan([MEMORIES]).seen)
            scored = self.memories.score(PROGRAM).scored if files else 0
            return 2 * int(scored) >= files  # most of them may not be mirrored yet

        chores = (
            Chore("facts.faded", "facts could not fade", fade),
            Chore("memories.scored", "memories could not be scored", score),
        )
        return Upkeep(self.root / FOLDER, self.settings.memory.recalculate_hours, chores)
