"""What is done with memories: one method for each use case, and the parts that do them.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from notebook_sync.folder import FOLDER
from notebook_sync.wiring import Wiring, part

if TYPE_CHECKING:
    from pathlib import Path

    from notebook_sync.files.note import Stamp
    from notebook_sync.mirror.memories import MemoryRows
    from notebook_sync.notes.archive.archive import Archive
    from notebook_sync.notes.memories.audit import MemoryAudit
    from notebook_sync.notes.memories.fix import MemoryFix
    from notebook_sync.notes.memories.graph.graph import MemoryGraph
    from notebook_sync.notes.memories.importing.importing import MemoryImport
    from notebook_sync.notes.memories.infer import MemoryInfer
    from notebook_sync.notes.memories.intake import MemoryIntake
    from notebook_sync.notes.memories.links import MemoryLinks
    from notebook_sync.notes.memories.memories import Memories
    from notebook_sync.notes.memories.reach import MemoryReach
    from notebook_sync.notes.memories.scores import MemoryScores
    from notebook_sync.notes.upkeep import Upkeep
    from notebook_sync.operations.facts import FactService
    from notebook_sync.sessions import Session

Row = dict[str, Any]
Rows = list[Row]


class Remembering(Wiring):
    """The use cases of memories. A `Notebook` has them all.

    A row is `{notebook_id, path, title, kind, domain, tags, agent, priority, score, created_at, needs_review,
    relations, accesses}`: `kind` is "" for a memory without structure, `relations` how many there are; and
    `provenance` where somebody else's words stand in its file. A memory is named by its id or its path.
    """

    def memory_add(
        self,
        text: str,
        session: Session,
        *,
        title: str = "",
        kind: str = "",
        domain: str = "",
        tags: Sequence[str] = (),
        agent: str = "",
        priority: int | None = None,
        created_at: str = "",
        strict: bool = False,
    ) -> Row:
        """Keep a memory: `{notebook_id, path, title, kind, domain, tags, agent, priority, version, status,
        needs_review, structured, warnings}`.

        A text that follows the template ([DECISION] title, CONTEXT:, REASONING:, OUTCOME:, TAGS:) is `structured`
        "given". Another is restructured by the language model, "model", with the original below it; or, where there is
        none or its answer will not do, kept as it is, "none", to be reviewed. `strict` refuses a time, an agent or a
        priority that cannot be taken, which is otherwise replaced and marked for review, and a priority beyond 1 to
        10, which otherwise becomes the nearest of them. An agent's own session tells
        who the agent is. Raises UsageError, NotPermitted, and as `Notebook.edit_all`.
        """
        return self._memory_intake.add(
            text,
            session,
            title=title,
            kind=kind,
            domain=domain,
            tags=tags,
            agent=agent,
            priority=priority,
            created_at=created_at,
            strict=strict,
        )

    def memories(
        self,
        session: Session,
        *,
        kind: str = "",
        domain: str = "",
        tags: Sequence[str] = (),
        needs_review: bool | None = None,
        limit: int = 50,
    ) -> Rows:
        """Rows of memories, those with the highest score first; with any of `tags`. Raises UsageError, BackendDown."""
        return self._memories.list(session, kind=kind, domain=domain, tags=tags, needs_review=needs_review, limit=limit)

    def memory_search(
        self,
        query: str,
        session: Session,
        *,
        kind: str = "",
        domain: str = "",
        tags: Sequence[str] = (),
        limit: int = 10,
        counts_use: bool = True,
    ) -> Rows:
        """Rows of the memories that fit `query`, best first, each with `similarity`, 0 to 1: the cosine of the two
        meanings, or the share of the query's words that the memory says, whichever is more. What is as like as
        `memory.related` counts as used, except by somebody else's message, and with `counts_use` False. Raises as
        `memories`."""
        return self._memories.search(
            query, session, kind=kind, domain=domain, tags=tags, limit=limit, counts_use=counts_use
        )

    def memory_link(
        self,
        from_id: str,
        type: str,  # noqa: A002 - so it is called in the file, too
        to_id: str,
        session: Session,
        *,
        confidence: float = 1.0,
        reasoning: str = "",
        source: str = "",
        synthesis_id: str = "",
    ) -> Row:
        """Say in a memory's file how it is linked to another: `{from, to, type, confidence, reasoning, source,
        synthesis_id, action, warnings}`, `action` being added, updated or kept. `type` is one of RELATIONS.

        Nothing but `relations` in its frontmatter changes. Raises UsageError, NoSuchNote, NotPermitted, and as
        `Notebook.edit_all`.
        """
        return self._memory_links.link(
            from_id,
            type,
            to_id,
            session,
            confidence=confidence,
            reasoning=reasoning,
            source=source,
            synthesis_id=synthesis_id,
        )

    def memory_links(self, links: object, session: Session) -> dict[str, Any]:
        """Take in links that somebody suggests, any JSON, as `{from, to, type, confidence, reasoning, source,
        synthesis_id}` each: `{ingested, kept, dropped, warnings}`. `kept` stood there already, said by somebody;
        `dropped` are `{link, reason}`. Raises NotPermitted, BackendDown."""
        return self._memory_links.take_in(links, session)

    def memory_infer(self, session: Session, *, apply: bool = False, limit: int = 20) -> dict[str, Any]:
        """Ask the language model how the memories that are most alike are linked: `{links, dropped, pairs, trouble}`;
        with `apply`, write its links down as `memory_links` does. Where the model goes away midway, what it had said
        counts, and `trouble` tells why that is not all, else "". Raises LlmNotConfigured, LlmDown where it said
        nothing, UsageError where there are no embeddings, NotPermitted, BackendDown."""
        return self._memory_infer.infer(session, apply=apply, limit=limit)

    def memory_scores(self, session: Session) -> dict[str, Any]:
        """Compute every memory's score anew: `{scored, mean, sigma, at}`. Raises NotPermitted, BackendDown."""
        return self._memory_scores.compute(session)

    def do_chores(self) -> float:
        """Let facts fade and memories be scored, where that was not done for `recalculate_hours`; in how many seconds
        to ask again. For whoever keeps running; raises nothing that a file or a store can do."""
        return self._upkeep.look()

    def memory_audit(self, session: Session) -> dict[str, Any]:
        """What memories lack: `{memories, timestamps: {missing, unparsable}, agents: {unknown}, unstructured,
        needs_review, importance: {mean, sigma, saturated}, similar_share, links, links_broken, tags: {per_memory,
        none}, score: {mean, sigma}, findings: [{path, line, what, fix}], findings_left_out}`.

        `saturated` is the share of the most frequent priority, `similar_share` that of the links that only say
        similar; shares, means and deviations are None of nothing. Raises BackendDown.
        """
        return self._memory_audit.audit(session)

    def memory_fix(
        self, session: Session, *, dry_run: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> dict[str, Any]:
        """Write into the files of memories what git, tags and they themselves can prove of what they lack: `{changes:
        [{path, field, before, after, because}], applied, left, left_out, backup, trouble, warnings}`; `left` are
        findings as of `memory_audit`, and `left_out` counts, of very many `changes` and `left`, what is not told.

        One edit, so one commit, of each thousand files: where there are more, a checkpoint is taken first, `backup`,
        and `trouble` tells what kept it from going on after the first, else "". `progress(done, total)` counts files.
        Raises NotPermitted, BackendDown, and as `Notebook.edit_all`: then nothing was changed.
        """
        return self._memory_fix.fix(session, dry_run=dry_run, progress=progress)

    def memory_graph(
        self,
        session: Session,
        *,
        format: str = "svg",  # noqa: A002 - so the option is called
        kind: str = "",
        domain: str = "",
        around: str = "",
        limit: int = 80,
    ) -> str:
        """A picture of memories and their links: an SVG without a script, or with "mermaid" a diagram for Markdown.

        Of many, those that are linked and count for most; with `around`, an id or a path, those nearest to that one.
        Raises UsageError, NoSuchNote, NotPermitted, BackendDown.
        """
        return self._memory_graph.draw(session, format=format, kind=kind, domain=domain, around=around, limit=limit)

    def memory_import(
        self,
        file: Path,
        session: Session,
        *,
        dry_run: bool = False,
        again: bool = False,
        names: Mapping[str, str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Any]:
        """Bring in the memories of another program, from JSON lines, a JSON list or SQLite, each once: `{read, added,
        already, deleted, needs_review, failed: [{line, reason}], links_dropped: [{line, link, reason}], columns,
        not_taken, backup, lossless, left_in, warnings}`. `deleted` were imported before and deleted since: they stay
        away unless `again`.

        `names` renames columns of the export to documented ones, as `{"body": "content"}`. `columns` has, by field of a
        memory, the column that it was read from; `not_taken` are the other columns, a thousand at most, which are kept
        in the frontmatter under their names. `read` is the sum of added, already, deleted and failed; what failed
        stands as it was in the file `left_in`; `backup` is the checkpoint that was taken first. `progress(done, total)`
        counts records. Raises UsageError for a file that is no export, NotPermitted, BackendDown.
        """
        return self._memory_import.bring_in(file, session, dry_run=dry_run, again=again, names=names, progress=progress)

    # The parts.

    @part
    def facts(self) -> FactService:
        """The operations on facts."""
        from notebook_sync.operations.facts import FactService

        return FactService(self)

    @part
    def memory_rows(self) -> MemoryRows:
        """What is known of memories beside their text. Raises as `mirror`."""
        from notebook_sync.stores import open_memories

        rows = open_memories(self.settings, lambda: self.folder)
        self._open.append(rows)
        return rows

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
    def _memory_reach(self) -> MemoryReach:
        """Knows which memories a session may know of."""
        from notebook_sync.notes.memories.reach import MemoryReach

        find = self._lookup.find_path
        return MemoryReach(self.vault, self.settings, self.guard, lambda: self.memory_rows, find)

    @part
    def _memory_intake(self) -> MemoryIntake:
        """Takes memories in."""
        from notebook_sync.notes.memories.intake import MemoryIntake

        return MemoryIntake(self.vault, self.settings, self.guard, self._door, self.llm)

    @part
    def _memories(self) -> Memories:
        """Tells of memories."""
        from notebook_sync.notes.memories.memories import Memories

        listing, related = self._listing, float(self.settings.memory.related)
        return Memories(self._memory_reach, listing.search, listing.texts, lambda: self.memory_rows, related)

    @part
    def _memory_links(self) -> MemoryLinks:
        """Links memories."""
        from notebook_sync.notes.memories.links import MemoryLinks

        return MemoryLinks(self.guard, self._editing, self._memory_reach)

    @part
    def _memory_infer(self) -> MemoryInfer:
        """Finds out how memories are linked."""
        from notebook_sync.notes.memories.infer import MemoryInfer

        return MemoryInfer(
            self.vault,
            self.settings.memory.infer_above,
            self.guard,
            self.llm,
            self._memory_reach,
            self._memory_links,
            lambda: self.embedder,
            lambda: self.vectors,
            lambda: self._backlog,
        )

    @part
    def _memory_scores(self) -> MemoryScores:
        """Scores memories."""
        from notebook_sync.notes.memories.scores import MemoryScores

        return MemoryScores(self.settings.memory, self.guard, self._memory_reach, lambda: self.memory_rows)

    @part
    def _memory_audit(self) -> MemoryAudit:
        """Finds what memories lack."""
        from notebook_sync.notes.memories.audit import MemoryAudit

        return MemoryAudit(self.vault, self._memory_reach, lambda: self.mirror, self._follow_memories)

    @part
    def _memory_fix(self) -> MemoryFix:
        """Repairs memories."""
        from notebook_sync.notes.memories.fix import MemoryFix

        return MemoryFix(self.vault, self.guard, self._editing, self._memory_audit, self._checkpoints)

    @part
    def _memory_graph(self) -> MemoryGraph:
        """Draws memories."""
        from notebook_sync.notes.memories.graph.graph import MemoryGraph

        return MemoryGraph(self._memory_reach, self._follow_memories)

    @part
    def _memory_import(self) -> MemoryImport:
        """Brings in another program's memories."""
        from notebook_sync.notes.memories.importing.importing import MemoryImport

        return MemoryImport(
            self.vault,
            self.settings,
            self.guard,
            self.events,
            self._checkpoints,
            lambda: self.mirror,
            lambda: self.memory_rows,
            lambda: self._new_engine().reconcile(),
            self._mirror_new,
        )

    def _mirror_new(
        self,
        stamps: Mapping[str, Stamp],
        authors: Mapping[tuple[str, str], str],
        progress: Callable[[int, int], None],
    ) -> str:
        """Mirror notes that were made just now; why hot memory was not told, "" where it was."""
        from notebook_sync.sync.sweep import Task

        task = Task(frozenset(stamps), settled=dict(stamps), authors=authors, progress=progress)
        return self._new_engine().look(task).report.refs_trouble

    def _follow_memories(self) -> None:
        """Bring the rows of memories in step with their files."""
        from notebook_sync.notes.memories.text import FOLDER as MEMORIES
        from notebook_sync.sync.sweep import Task

        self._new_engine().look(Task(frozenset((MEMORIES,))))

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
            scored = self.memory_scores(PROGRAM)["scored"] if files else 0
            return 2 * int(scored) >= files  # most of them may not be mirrored yet

        chores = (
            Chore("facts.faded", "facts could not fade", fade),
            Chore("memories.scored", "memories could not be scored", score),
        )
        return Upkeep(self.root / FOLDER, self.settings.memory.recalculate_hours, chores)
