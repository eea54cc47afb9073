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
    from datetime import date, datetime

    from notebook_sync.notes.archive.archive import Archive, Exported
    from notebook_sync.notes.channels.importing import Imported
    from notebook_sync.notes.editing.written import Written
    from notebook_sync.notes.stream.rolled_back import Checkpoint, Foreseen, RolledBack
    from notebook_sync.notes.stream.stream import Day
    from notebook_sync.notes.upkeep import Upkeep
    from notebook_sync.operations.context import ContextService
    from notebook_sync.operations.facts import FactService
    from notebook_sync.operations.memories import MemoryService
    from notebook_sync.operations.prompts import PromptService
    from notebook_sync.refs.base import Entry
    from notebook_sync.search.query_meaning import Ranked
    from notebook_sync.sessions import Session

# `list` names a method of a notebook, so the type needs a name of its own.
Documents = list[dict[str, Any]]
# What is meant where a caller does not say: of a private note, of a search in them, of what is logged.
GENERAL, BALANCED, USUAL_SCORE = "general", "balanced", 0.5
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

    # Private notes.

    def write_note(
        self,
        content: str,
        session: Session,
        *,
        topic: str = GENERAL,
        tags: Sequence[str] = (),
        session_id: str = "",
        project: str = "",
        metadata: Mapping[str, Any] = _NO_FIELDS,
        agent: str = "",
    ) -> Written:
        """Keep a private note in the channel of the session's agent, or of `agent`, which the owner and members of its
        channel may; for `project`, or for all ("").

        `metadata` are further fields, of which `confidence`, 0 to 1, counts in searches. Raises UsageError for what
        cannot be kept and for names that are the notebook's own; NotPermitted, UnsafePath, UnwritableFile.
        """
        return self._channels.write(
            content,
            session,
            topic=topic,
            tags=tags,
            session_id=session_id,
            project=project,
            metadata=metadata,
            agent=agent,
        )

    def search_notes(
        self,
        query: str,
        session: Session,
        *,
        agent: str = "",
        tags: Sequence[str] = (),
        since: date | None = None,
        until: date | None = None,
        topic: str = "",
        session_id: str = "",
        project: str = "",
        profile: str = BALANCED,
        limit: int = 50,
    ) -> Ranked:
        """Private notes with a word of `query`, or all for "", best first: light fields, topic, session_id, created_at,
        score; never content.

        They are those of `agent`, of the session's agent for "", of all agents where the owner names none. `since` and
        `until` are days or aware times: made at `since` or later, and before `until`. `project`: its notes and global
        ones, "global" for these alone, "" for all. `profile`: recent, quality, balanced or similarity. The list's
        `degraded` is why words alone told how like the query they are, else "". Raises UsageError, NotPermitted,
        BackendDown.
        """
        from notebook_sync.notes.channels.search import Wanted

        wanted = Wanted(tags, since, until, topic, session_id, project)
        return self._note_search.search(query, session, wanted, agent=agent, profile=profile, limit=limit)

    def recent_notes(
        self,
        session: Session,
        *,
        agent: str = "",
        limit: int = 20,
        session_id: str = "",
        topic: str = "",
        project: str = "",
    ) -> Documents:
        """The latest private notes, the newest first: rows as of `search_notes`, without a score. Raises as that."""
        from notebook_sync.notes.channels.search import Wanted

        wanted = Wanted(topic=topic, session_id=session_id, project=project)
        return self._note_search.recent(session, wanted, agent=agent, limit=limit)

    def peek_notes(
        self,
        agent: str,
        session: Session,
        *,
        query: str = "",
        tags: Sequence[str] = (),
        topic: str = "",
        project: str = "",
        limit: int = 20,
    ) -> Ranked:
        """Notes of another agent that shares its channel: by `query` as `search_notes`, else as `recent_notes`."""
        from notebook_sync.notes.channels.search import Wanted

        return self._note_search.peek(agent, query, session, Wanted(tags, topic=topic, project=project), limit=limit)

    def channels(self, session: Session) -> Documents:
        """The channels that the session may use: `{id, name, agent, scope, notes, members}`, `notes` None where it may
        not read them."""
        return self._channels.list(session)

    def import_notes(self, file: Path, session: Session) -> Imported:
        """Bring the notes of an older program's export into channels, each once however often this is done; with
        their times, tags, conversations and metadata. What cannot be taken is listed in `failed`, and the rest goes
        on. Raises NotPermitted for who is no owner, UsageError for a file that is no export."""
        return self._note_import.bring_in(file, session)

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
    def prompts(self) -> PromptService:
        """The operations on the prompt and its rules."""
        from notebook_sync.operations.prompts import PromptService

        return PromptService(self)

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
