"""What is known of facts, and done with them: one method for each use case, and the parts that do them.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from notebook_sync.wiring import Wiring, part

if TYPE_CHECKING:
    from notebook_sync.notes.facts.changes import FactChanges
    from notebook_sync.notes.facts.decay import FactDecay
    from notebook_sync.notes.facts.dedupe import FactDedupe
    from notebook_sync.notes.facts.extract import Extracting
    from notebook_sync.notes.facts.facts import Facts
    from notebook_sync.notes.facts.intake import FactIntake
    from notebook_sync.notes.facts.near import FactNear
    from notebook_sync.notes.facts.reach import FactReach
    from notebook_sync.patience import Silence
    from notebook_sync.search.query_meaning import Ranked
    from notebook_sync.sessions import Session

Row = dict[str, Any]
Rows = list[Row]
# Where a fact goes that names no section.
IMPORTANT = "Important Facts"


class Knowledge(Wiring):
    """The use cases of facts. A `Notebook` has them all.

    A row is `{note_id, content, section, path, line, importance, base, access_count, created_at, last_accessed, pinned,
    core}`: `importance` is what the fact counts for now, `base` what that is computed from; and `provenance` where
    somebody else's words stand in its file. A fact is named by its id, the beginning of that, or its exact text.
    """

    def fact_add(
        self, text: str, session: Session, *, section: str = IMPORTANT, importance: str | float | None = None
    ) -> Row:
        """Add a fact to facts/notes.md, or strengthen the one that says this already: its row, with `action` (added,
        reinforced, or restored from the archive) and `warnings`.

        `importance` is core, high, medium, low, or 0 to 1. Raises UsageError, NotPermitted, and as `Notebook.edit_all`.
        """
        return self._fact_intake.add(text, session, section=section, importance=importance)

    def facts(
        self, session: Session, *, scope: str = "notes", section: str = "", stale: bool = False, limit: int = 50
    ) -> Rows:
        """Rows of facts, those first that count for most now. `scope`: notes, core, archive or all. `stale`: those that
        nobody used for `stale_days`. Raises UsageError, NotPermitted, BackendDown."""
        return self._facts.list(session, scope=scope, section=section, stale=stale, limit=limit)

    def fact_search(self, query: str, session: Session, *, scope: str = "notes", limit: int = 10) -> Ranked:
        """Rows of the facts most like `query`, with `similarity`, best first; the list's `degraded` is why words alone
        decide, else "". What an agent finds so is used by that: the best, and each other that is related. Raises as
        `facts`."""
        return self._facts.search(query, session, scope=scope, limit=limit)

    def fact_verify(self, text: str, session: Session) -> Row:
        """`{verdict, similarity, matches, degraded}`: CONFIRMED where a fact says this, RELATED where one comes near,
        else NEW; `matches` are rows with `similarity`; `degraded` is why words alone decide, else "". What confirms an
        agent is used by that. Raises as `facts`."""
        return self._facts.verify(text, session)

    def fact_reinforce(self, text_or_id: str, session: Session) -> Row:
        """Count a use of a fact and let it count for more: its row, `action` and `warnings`. A text that is near enough
        will do. Raises NoSuchFact, UsageError, NotPermitted, BackendDown."""
        return self._facts.reinforce(text_or_id, session)

    def fact_decay(self, session: Session, *, dry_run: bool = False) -> dict[str, Rows]:
        """`{archived, promoted, proposed}`: the facts that faded go to archive.md; those that proved themselves are
        proposed for core.md, or with `[memory] promote = "auto"` moved there. Raises as `fact_archive`."""
        return self._fact_decay.decay(session, dry_run=dry_run)

    def fact_archive(self, fact: str, session: Session, *, reason: str = "") -> Row:
        """Move a fact to archive.md: its row, with `action` and `warnings`. Raises NoSuchFact, NotPermitted, and as
        `Notebook.edit_all`."""
        return self._fact_changes.archive(fact, session, reason=reason)

    def fact_restore(self, fact: str, session: Session) -> Row:
        """Move a fact from archive.md back to where it came from. As `fact_archive`; UsageError for one that is not
        archived."""
        return self._fact_changes.restore(fact, session)

    def fact_promote(self, fact: str, session: Session, *, section: str = "") -> Row:
        """Move a fact to core.md, into `section` or the one that its own corresponds to; a task session only proposes
        that. As `fact_archive`."""
        return self._fact_changes.promote(fact, session, section=section)

    def fact_dedupe(self, session: Session, *, apply: bool = False) -> dict[str, Any]:
        """`{pairs: [{keep, drop, similarity, how}], merged, warnings}`: facts that say the same, rows each; with
        `apply`, what is dropped goes to archive.md, and its usage to what is kept. Raises as `fact_archive`."""
        return self._fact_dedupe.dedupe(session, apply=apply)

    def fact_extract(self, messages: object, session: Session, *, dry_run: bool = False) -> dict[str, Any]:
        """Add what the last messages of a conversation tell, and archive what they say no longer holds, as a language
        model reads them: `{additions, removals, skipped, summary, error, applied, warnings}`.

        `messages` are `{role, content}`. Additions and removals are rows with `action`; skipped are `{what, text,
        reason}`. Where the model's answer will not do, `error` says why and nothing is done. Raises LlmNotConfigured,
        LlmDown, UsageError, and as `fact_archive`.
        """
        return self._fact_extracting.extract(messages, session, dry_run=dry_run).as_dict()

    def fact_plot(self, session: Session, *, days: int = 90, limit: int = 12) -> str:
        """An SVG of what the facts outside core.md that count for most counted for, and will, so many days back and
        ahead. Raises as `facts`."""
        from notebook_sync.notes.facts.plot import plot

        facts = self._fact_reach.seen(session, "notes").facts
        return plot(facts, datetime.now(UTC), self.settings.memory, days=days, limit=limit)

    # The parts.

    @part
    def _fact_reach(self) -> FactReach:
        """Knows which facts a session may know of."""
        from notebook_sync.notes.facts.reach import FactReach

        return FactReach(
            self.vault, self.settings, self.guard, lambda: self.fact_rows, lambda: self._fact_sync.follow()
        )

    @part
    def _fact_silence(self) -> Silence:
        """Knows for how long writers leave the rows of facts alone."""
        from notebook_sync.patience import Silence

        return Silence()

    @part
    def _fact_near(self) -> FactNear:
        """Tells how alike facts are."""
        from notebook_sync.notes.facts.near import FactNear
        from notebook_sync.patience import soon
        from notebook_sync.sync.facts import embed_facts

        rows, patience = lambda: self.fact_rows, soon(self.settings.mirror.timeout_seconds)
        hurry = soon(self.settings.search.timeout_seconds)
        return FactNear(rows, lambda: self.embedder, embed_facts, self._fact_silence, patience, hurry)

    @part
    def _facts(self) -> Facts:
        """Tells of facts."""
        from notebook_sync.notes.facts.facts import Facts

        return Facts(self.settings.memory, self.guard, self._fact_reach, self._fact_near, lambda: self.fact_rows)

    @part
    def _fact_changes(self) -> FactChanges:
        """Changes facts."""
        from notebook_sync.notes.facts.changes import FactChanges

        reach, facts, silence = self._fact_reach, self._facts, self._fact_silence
        return FactChanges(self.vault, self.settings, self.guard, self.events, self._editing, reach, facts, silence)

    @part
    def _fact_intake(self) -> FactIntake:
        """Takes facts in."""
        from notebook_sync.notes.facts.intake import FactIntake

        return FactIntake(self.vault, self.guard, self._fact_near, self._fact_changes)

    @part
    def _fact_decay(self) -> FactDecay:
        """Lets facts fade."""
        from notebook_sync.notes.facts.decay import FactDecay

        return FactDecay(self.settings.memory, self.guard, self._fact_reach, self._fact_changes)

    @part
    def _fact_dedupe(self) -> FactDedupe:
        """Finds facts that say the same."""
        from notebook_sync.notes.facts.dedupe import FactDedupe

        reach, near, changes = self._fact_reach, self._fact_near, self._fact_changes
        return FactDedupe(self.settings.memory, self.guard, reach, near, changes, lambda: self.fact_rows)

    @part
    def _fact_extracting(self) -> Extracting:
        """Draws facts from conversations."""
        from notebook_sync.notes.facts.batch import FactBatch
        from notebook_sync.notes.facts.extract import Extracting

        batch = FactBatch(self.vault, self._fact_reach, self._fact_near, self._fact_changes)
        return Extracting(self.guard, self.llm, batch, self.settings.prompt.encoding)
