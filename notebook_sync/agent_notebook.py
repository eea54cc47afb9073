"""What agents do with a notebook beside reading and editing it: one method for each use case.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from notebook_sync.folder import FOLDER
from notebook_sync.parts import part
from notebook_sync.wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notebook_sync.notes.editing.written import Written
    from notebook_sync.notes.upkeep import Upkeep
    from notebook_sync.operations.admin import AdminService
    from notebook_sync.operations.channels import ChannelService
    from notebook_sync.operations.context import ContextService
    from notebook_sync.operations.facts import FactService
    from notebook_sync.operations.memories import MemoryService
    from notebook_sync.operations.prompts import PromptService
    from notebook_sync.operations.stream import StreamService
    from notebook_sync.sessions import Session

# `list` names a method of a notebook, so the type needs a name of its own.
Documents = list[dict[str, Any]]
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

    def do_chores(self) -> float:
        """Let facts fade and memories be scored, where that was not done for `recalculate_hours`; in how many seconds
        to ask again. For whoever keeps running; raises nothing that a file or a store can do."""
        return self._upkeep.look()

    # The services and the parts.

    @part
    def admin(self) -> AdminService:
        """The operations that look after the notebook."""
        from notebook_sync.operations.admin import AdminService

        return AdminService(self)

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
    def stream(self) -> StreamService:
        """The operations on the daily stream and checkpoints."""
        from notebook_sync.operations.stream import StreamService

        return StreamService(self)

    @part
    def channels(self) -> ChannelService:
        """The operations on private notes."""
        from notebook_sync.operations.channels import ChannelService

        return ChannelService(self)

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
