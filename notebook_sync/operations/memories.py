"""The operations on memories, and the parts of the notebook that carry them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from notebook_sync.errors import UsageError
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.operations.registry import NOT_EXTERNAL, SVG, Cli, Limit, Model, Results, Service, operation
from notebook_sync.parts import part
from notebook_sync.sessions import OWNER, Session

if TYPE_CHECKING:
    from notebook_sync.files.note import Stamp
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

_NOT_CHANGED = "Memories are not changed in this conversation"

Word = Annotated[str, Meta(max_length=256)]
Kind = Annotated[Word, Meta(description="decision, problem, pattern or insight"), Cli("KIND")]
Domain = Annotated[Word, Meta(description="what it is about, one word"), Cli("D")]
Tag = Annotated[str, Meta(max_length=256)]
Tags = Annotated[list[Tag], Meta(max_length=100, description="any of these tags"), Cli("A,B")]
TagsGiven = Annotated[list[Tag], Meta(max_length=100, description="tags"), Cli("A,B")]
Id = Annotated[str, Meta(max_length=4_096, description="a memory's id or path")]
DryRun = Annotated[bool, Meta(description="show what would change, and change nothing")]
Progress = Callable[[int, int], None]


class Memory(Model, kw_only=True):
    """A memory without its text. `relations` counts its links, `accesses` its uses; `similarity` is to what was
    searched for. `provenance` is "external" for somebody else's words.
    """

    notebook_id: str
    path: str
    title: str
    kind: str
    domain: str
    tags: list[str]
    agent: str | None
    priority: int
    score: float | None
    created_at: datetime
    needs_review: bool
    relations: int
    accesses: int
    similarity: float | None = None
    provenance: str | None = None

    def for_model(self) -> Memory:
        """Of somebody else's memory only its path, and its title in a fence."""
        from prompt import fence_external

        if self.provenance != EXTERNAL:
            return self
        title = fence_external(self.title, EXTERNAL)
        return msgspec.structs.replace(self, notebook_id=self.path, title=title, domain="", tags=[], agent=None)


class AddedMemory(Model, kw_only=True):
    """`structured` says where its structure comes from: given in the text, made by a model, or none, and then it
    `needs_review`."""

    notebook_id: str
    path: str
    title: str
    kind: str
    domain: str
    tags: list[str]
    agent: str | None
    priority: int
    version: int | None
    status: str
    needs_review: bool
    structured: Literal["given", "model", "none"]
    warnings: list[str] = msgspec.field(default_factory=list)


class Link(Model, kw_only=True):
    """How one memory bears on another. `action`: added, updated or kept."""

    from_id: str = msgspec.field(name="from")
    to: str
    type: str
    confidence: float
    reasoning: str
    source: str
    synthesis_id: str = ""
    action: str
    warnings: list[str] = msgspec.field(default_factory=list)


class DroppedLink(Model):
    """`link` is what was suggested, whatever that was."""

    link: Any
    reason: str


class IngestedLinks(Model):
    """`kept` links were there before."""

    ingested: list[dict[str, Any]]
    kept: list[dict[str, Any]]
    dropped: list[DroppedLink]
    warnings: list[str] = msgspec.field(default_factory=list)


class InferredLinks(Model):
    """The model was asked about `pairs` of memories; `trouble` says why not about more. The links are saved if
    `applied`."""

    links: list[dict[str, Any]]
    dropped: list[DroppedLink]
    pairs: int
    applied: bool
    trouble: str | None = None


class Spread(Model):
    mean: float | None
    sigma: float | None


class Scored(Model):
    scored: int
    mean: float | None
    sigma: float | None
    at: datetime


class Timestamps(Model):
    missing: int
    unparsable: int


class Agents(Model):
    unknown: int


class Priorities(Model):
    """`saturated` is the share of memories that have the most frequent priority."""

    mean: float | None
    sigma: float | None
    saturated: float | None


class TagCounts(Model):
    per_memory: float | None
    none: int


class Finding(Model):
    """`provenance` is "external" where `what` may quote somebody else's words."""

    path: str
    line: int
    what: str
    fix: str
    provenance: str | None = None


class Audit(Model):
    """What memories lack. `similar_share` is the share of links whose type is "similar"."""

    memories: int
    timestamps: Timestamps
    agents: Agents
    unstructured: int
    needs_review: int
    importance: Priorities
    similar_share: float | None
    links: int
    links_broken: int
    tags: TagCounts
    score: Spread
    findings: list[Finding]
    findings_left_out: int


class Change(Model):
    path: str
    field: str
    before: Any
    after: Any
    because: str


class LeftOut(Model):
    changes: int
    left: int


class Fixed(Model):
    """`left` are findings that nothing proves. `left_out` counts changes and findings too many to list, `backup` is the
    checkpoint made before many changes, `trouble` is what stopped them midway."""

    changes: list[Change]
    applied: bool
    left: list[Finding]
    left_out: LeftOut
    backup: str
    trouble: str | None = None
    warnings: list[str] = msgspec.field(default_factory=list)


class FailedRecord(Model):
    line: int
    reason: str


class DroppedImportLink(Model):
    line: int
    link: Any
    reason: str


class Imported(Model):
    """read = added + already + deleted + failed; `lossless` says so. `deleted` were imported before and deleted since.
    `columns` maps each field to the column it was read from."""

    read: int
    added: int
    already: int
    deleted: int
    needs_review: int
    failed: list[FailedRecord]
    links_dropped: list[DroppedImportLink]
    columns: dict[str, str]
    not_taken: list[str]
    backup: str
    lossless: bool
    left_in: str
    warnings: list[str] = msgspec.field(default_factory=list)


Rows = list[Memory]
Links = Annotated[list[Any], Meta(max_length=1_000, description="the links, in any form described above"), Cli("FILE")]


class MemoryService(Service):
    """Decisions, problems, patterns and insights, with links between them

    A memory is a file in memories/: what was decided, why, and what came of it, with tags, a priority and links to
    other memories. `context brief` selects from them what a task needs. Changes made with these commands are ordinary
    edits, in git like any other. See docs/memories.md.
    """

    name = "memories"
    words = "memory"
    examples = (
        "notebook-sync memory add --content-file decision.txt",
        "notebook-sync memory search 'why is the old timetable still served'",
        "notebook-sync memory audit",
    )

    @operation(
        "memory add",
        tool="memory_add",
        route="POST /memories",
        sessions=NOT_EXTERNAL,
        refusal=_NOT_CHANGED,
        effect="write",
        open_world=True,
        creates=True,
        aliases={"importance": "priority", "agent_type": "agent"},
        unlisted=("title", "kind", "agent", "priority", "created_at", "strict"),
        hint="Write it as\n[DECISION] Title\nCONTEXT: …\n"
        "REASONING: …\nOUTCOME: …\nTAGS: a, b\nFor one lasting fact use fact_add.",
        examples=(
            "notebook-sync memory add --content-file decision.txt --domain timetable",
            "notebook-sync memory add 'The ferry waits for the night train' --kind insight --tags ferry,train",
        ),
    )
    def add(
        self,
        content: Annotated[str, Meta(description="the memory"), Cli("TEXT", positional=True, from_file=True)],
        session: Session = OWNER,
        *,
        title: Annotated[Word, Meta(description="default: as in the text")] = "",
        kind: Kind = "",
        domain: Domain = "",
        tags: TagsGiven | None = None,
        agent: Annotated[Word, Meta(description="for the owner: the agent who says so")] = "",
        priority: Annotated[int, Meta(description="1 to 10, default 7"), Cli("N")] | None = None,
        created_at: Annotated[Word, Meta(description="ISO 8601, default now"), Cli("DATE")] = "",
        strict: Annotated[bool, Meta(description="refuse an invalid date, agent or priority")] = False,
    ) -> AddedMemory:
        """Save a memory: a decision, problem, pattern or insight with its reasons.

        The text starts with [DECISION], [PROBLEM], [PATTERN] or [INSIGHT] and a title, and continues with CONTEXT:,
        REASONING:, OUTCOME: and TAGS:, each at the start of a line. It becomes a file in memories/KIND/. The language
        model of [llm] restructures other texts and keeps the original below; without a model, the text is saved as it
        is and marked needs_review. `structured` says which: given, model or none.

        An invalid date, agent or priority is replaced, with a warning, and the memory is marked for review; --strict
        refuses it instead.
        """
        added = self._intake.add(
            content,
            session,
            title=title,
            kind=kind,
            domain=domain,
            tags=tags or (),
            agent=agent,
            priority=priority,
            created_at=created_at,
            strict=strict,
        )
        return msgspec.convert(added, AddedMemory)

    @operation(
        "memory list",
        route="GET /memories",
        nothing_found="no memories match; add one with: notebook-sync memory add TEXT",
        examples=(
            "notebook-sync memory list",
            "notebook-sync memory list --kind problem --domain timetable --json",
            "notebook-sync memory list --needs-review",
        ),
    )
    def list(
        self,
        session: Session = OWNER,
        *,
        kind: Kind = "",
        domain: Domain = "",
        tags: Tags | None = None,
        needs_review: Annotated[bool, Meta(description="only memories marked for review")] | None = None,
        limit: Limit = 50,
    ) -> Results[Memory]:
        """List memories, the highest score first."""
        found = self._memories.list(
            session, kind=kind, domain=domain, tags=tags or (), needs_review=needs_review, limit=limit
        )
        return Results(results=msgspec.convert(found, Rows))

    @operation(
        "memory search",
        tool="memory_search",
        unlisted=("kind", "domain", "tags", "counts_use"),
        route="GET /memories/search",
        nothing_found="no memory matches; list all with: notebook-sync memory list",
        examples=(
            "notebook-sync memory search 'why is the old timetable still served'",
            "notebook-sync memory search timetable --kind decision --limit 3 --json",
        ),
    )
    def search(
        self,
        query: Annotated[str, Meta(max_length=4_096, description="words or a question"), Cli("QUERY", positional=True)],
        session: Session = OWNER,
        *,
        kind: Kind = "",
        domain: Domain = "",
        tags: Tags | None = None,
        limit: Limit = 10,
        counts_use: Annotated[bool, Meta(description="count good matches as used")] = True,
    ) -> Results[Memory]:
        """Search memories by meaning and words, best match first.

        `similarity`, from 0 to 1, is the cosine of the two meanings or the share of the query's words in the memory,
        whichever is higher. Matches of at least memory.related (0.6) count as used, unless the session is external.
        """
        found = self._memories.search(
            query, session, kind=kind, domain=domain, tags=tags or (), limit=limit, counts_use=counts_use
        )
        return Results(results=msgspec.convert(found, Rows))

    @operation(
        "memory link",
        tool="memory_link",
        route="POST /memories/link",
        sessions=NOT_EXTERNAL,
        refusal=_NOT_CHANGED,
        effect="write",
        aliases={"from": "from_id", "to": "to_id"},
        unlisted=("confidence", "source", "synthesis_id"),
        examples=(
            "notebook-sync memory link k3v9x1q8m2ab solves p7c2w5z4n1de",
            "notebook-sync memory link k3v9x1q8m2ab supersedes p7c2w5z4n1de --confidence 0.9 --reasoning 'since May'",
        ),
    )
    def link(
        self,
        from_id: Annotated[Id, Cli("FROM", positional=True)],
        type: Annotated[  # noqa: A002 - so it is called in the file, too
            Word,
            Meta(description="causes, solves, contradicts, expands, supersedes or similar"),
            Cli("TYPE", positional=True),
        ],
        to_id: Annotated[Id, Cli("TO", positional=True)],
        session: Session = OWNER,
        *,
        confidence: Annotated[float, Meta(ge=0, le=1, description="from 0 to 1"), Cli("N")] = 1.0,
        reasoning: Annotated[str, Meta(description="why, in one sentence")] = "",
        source: Annotated[Word, Meta(description="who says so")] = "",
        synthesis_id: Annotated[Word, Meta(description="the synthesis that suggests it")] = "",
    ) -> Link:
        """Link a memory to another.

        The link is saved in the frontmatter of FROM; no other byte of that file changes. An existing link of the same
        type to the same memory is updated.
        """
        linked = self.links.link(
            from_id,
            type,
            to_id,
            session,
            confidence=confidence,
            reasoning=reasoning,
            source=source,
            synthesis_id=synthesis_id,
        )
        return msgspec.convert(linked, Link)

    @operation(
        "memory ingest",
        route="POST /relationships/ingest_synthesis",
        effect="write",
        aliases={"links": "relationships"},
        examples=("notebook-sync memory ingest links.json", "notebook-sync memory ingest - --session owner"),
    )
    def ingest(
        self,
        relationships: Links,
        session: Session = OWNER,
        *,
        source: Annotated[Word, Meta(description="who says so, where a link does not say it")] = "",
        synthesis_id: Annotated[Word, Meta(description="the synthesis, where a link does not say it")] = "",
    ) -> IngestedLinks:
        """Save the links that a synthesis, or another program, suggests.

        Each is {from, to, type, confidence, reasoning, source, synthesis_id}, or has the original's names
        from_memory_id, to_memory_id and relationship_type. Invalid links are dropped and reported.
        """
        shared = {"source": source, "synthesis_id": synthesis_id}
        links = [_link_in(each, shared) for each in relationships]
        return msgspec.convert(self.links.take_in(links, session), IngestedLinks)

    @operation(
        "memory infer",
        route="POST /memories/infer",
        effect="write",
        open_world=True,
        examples=("notebook-sync memory infer --dry-run", "notebook-sync memory infer --limit 50 --session owner"),
    )
    def infer(
        self,
        session: Session = OWNER,
        *,
        dry_run: DryRun = False,
        limit: Annotated[int, Meta(ge=1, le=500, description="ask about at most this many pairs"), Cli("N")] = 20,
    ) -> InferredLinks:
        """Ask the language model how similar memories are linked.

        Asks about pairs whose similarity is at least memory.infer_above (0.7), the most similar first. Answers that are
        none of the six types are dropped and reported. If the model fails midway, its earlier answers are used and
        `trouble` says why the rest is missing. Needs a model in [llm] of notebook.toml.
        """
        found = self._infer.infer(session, apply=not dry_run, limit=limit)
        applied = bool(found["links"]) and not dry_run
        return msgspec.convert({**found, "applied": applied, "trouble": found["trouble"] or None}, InferredLinks)

    @operation("memory audit", route="GET /memories/audit", examples=("notebook-sync memory audit",))
    def audit(self, session: Session = OWNER) -> Audit:
        """Count what memories lack.

        Counts missing and invalid timestamps, unknown agents, memories without structure (a kind, and text below the
        headings Context, Reasoning and Outcome), equal priorities, broken links and tags. Each finding has its path and
        line. `memory fix` repairs what git and tags can prove.
        """
        return msgspec.convert(self._audit.audit(session), Audit)

    @operation(
        "memory fix",
        route="POST /memories/fix",
        effect="write",
        examples=("notebook-sync memory fix --dry-run", "notebook-sync memory fix --session owner"),
    )
    def fix(self, session: Session = OWNER, *, dry_run: DryRun = False, progress: Progress | None = None) -> Fixed:
        """Repair what `memory audit` found, where git and tags prove the value.

        A timestamp comes from git, an agent from a tag. A thousand files make one commit; before more than that, a
        checkpoint is made. Run it again after an interruption to continue. `left` lists what it cannot prove.
        """
        found = self._fix.fix(session, dry_run=dry_run, progress=progress)
        return msgspec.convert({**found, "trouble": found["trouble"] or None}, Fixed)

    @operation(
        "memory score",
        route="POST /memories/score",
        effect="write",
        examples=("notebook-sync memory score", "notebook-sync memory score --json"),
    )
    def score(self, session: Session = OWNER) -> Scored:
        """Recalculate the score of each memory.

        The score depends on use, priority and age; docs/memories.md has the formula. `watch` and `serve` do this every
        memory.recalculate_hours (6).
        """
        return msgspec.convert(self._scores.compute(session), Scored)

    @operation(
        "memory import",
        sessions=frozenset(("owner",)),
        refusal="Memories are only imported in owner conversations",
        effect="write",
        examples=(
            "notebook-sync memory import memories.jsonl --dry-run",
            "notebook-sync memory import old.db --map body=content --map ts=created_at",
        ),
    )
    def import_file(
        self,
        file: Annotated[str, Meta(description="JSON lines, a JSON list or SQLite"), Cli("FILE", positional=True)],
        session: Session = OWNER,
        *,
        dry_run: DryRun = False,
        again: Annotated[bool, Meta(description="also import what was deleted since its import")] = False,
        map: Annotated[  # noqa: A002 - so the option is called
            dict[str, str],
            Meta(description="read the column OLD as the documented column NEW; repeatable"),
            Cli("OLD=NEW"),
        ]
        | None = None,
        progress: Progress | None = None,
    ) -> Imported:
        """Import memories that another program exported.

        Columns are read by their documented names (docs/memories.md); --map body=content renames one. A checkpoint is
        made first. Each record becomes one file. Existing records are not written twice, and records deleted since
        their import are skipped without --again. Records that cannot become a memory are reported and copied into a
        file next to FILE. Columns in `not_taken` are kept in the frontmatter.
        """
        from pathlib import Path

        if not file or "\0" in file:
            raise UsageError("name a file, as in: notebook-sync memory import memories.jsonl")
        imported = self._import.bring_in(
            Path(file).expanduser(), session, dry_run=dry_run, again=again, names=map, progress=progress
        )
        return msgspec.convert(imported, Imported)

    @operation(
        "memory graph",
        route="GET /memories/graph",
        media=SVG,
        examples=(
            "notebook-sync memory graph memories.svg",
            "notebook-sync memory graph - --format mermaid --domain timetable",
            "notebook-sync memory graph near.svg --around k3v9x1q8m2ab",
        ),
    )
    def graph(
        self,
        session: Session = OWNER,
        *,
        format: Annotated[  # noqa: A002 - so the option is called
            Literal["svg", "mermaid"], Meta(description="a picture, or text for Mermaid (.mmd or .md)"), Cli("FORMAT")
        ] = "svg",
        kind: Kind = "",
        domain: Domain = "",
        around: Annotated[
            Word, Meta(description="only the memory with this id or path, and its links"), Cli("ID")
        ] = "",
        limit: Limit = 80,
    ) -> str:
        """Draw memories and their links, as SVG or for Mermaid.

        The picture has no script, loads nothing, and is the same for the same memories. Of many memories, those with
        links and the highest scores are drawn. An existing file is only replaced if it is an unchanged earlier picture.
        """
        return self._graph.draw(session, format=format, kind=kind, domain=domain, around=around, limit=limit)

    # The parts.

    @part
    def reach(self) -> MemoryReach:
        """Which memories a session may see."""
        from notebook_sync.notes.memories.reach import MemoryReach

        wiring = self.wiring
        find = wiring._lookup.find_path
        return MemoryReach(wiring.vault, wiring.settings, wiring.guard, lambda: wiring.memory_rows, find)

    @part
    def _intake(self) -> MemoryIntake:
        from notebook_sync.notes.memories.intake import MemoryIntake

        wiring = self.wiring
        return MemoryIntake(wiring.vault, wiring.settings, wiring.guard, wiring._door, wiring.llm)

    @part
    def _memories(self) -> Memories:
        from notebook_sync.notes.memories.memories import Memories

        wiring = self.wiring
        listing, related = wiring._listing, float(wiring.settings.memory.related)
        return Memories(self.reach, listing.search, listing.texts, lambda: wiring.memory_rows, related)

    @part
    def links(self) -> MemoryLinks:
        """Saves links between memories."""
        from notebook_sync.notes.memories.links import MemoryLinks

        return MemoryLinks(self.wiring.guard, self.wiring._editing, self.reach)

    @part
    def _infer(self) -> MemoryInfer:
        from notebook_sync.notes.memories.infer import MemoryInfer

        wiring = self.wiring
        return MemoryInfer(
            wiring.vault,
            wiring.settings.memory.infer_above,
            wiring.guard,
            wiring.llm,
            self.reach,
            self.links,
            lambda: wiring.embedder,
            lambda: wiring.vectors,
            lambda: wiring._backlog,
        )

    @part
    def _scores(self) -> MemoryScores:
        from notebook_sync.notes.memories.scores import MemoryScores

        wiring = self.wiring
        return MemoryScores(wiring.settings.memory, wiring.guard, self.reach, lambda: wiring.memory_rows)

    @part
    def _audit(self) -> MemoryAudit:
        from notebook_sync.notes.memories.audit import MemoryAudit

        return MemoryAudit(self.wiring.vault, self.reach, lambda: self.wiring.mirror, self._follow)

    @part
    def _fix(self) -> MemoryFix:
        from notebook_sync.notes.memories.fix import MemoryFix

        wiring = self.wiring
        return MemoryFix(wiring.vault, wiring.guard, wiring._editing, self._audit, wiring._checkpoints)

    @part
    def _graph(self) -> MemoryGraph:
        from notebook_sync.notes.memories.graph.graph import MemoryGraph

        return MemoryGraph(self.reach, self._follow)

    @part
    def _import(self) -> MemoryImport:
        from notebook_sync.notes.memories.importing.importing import MemoryImport

        wiring = self.wiring
        return MemoryImport(
            wiring.vault,
            wiring.settings,
            wiring.guard,
            wiring.events,
            wiring._checkpoints,
            lambda: wiring.mirror,
            lambda: wiring.memory_rows,
            lambda: wiring._new_engine().reconcile(),
            self._mirror_new,
        )

    def _mirror_new(
        self, stamps: Mapping[str, Stamp], authors: Mapping[tuple[str, str], str], progress: Progress
    ) -> str:
        """Mirror notes that were just made; why the refs were not updated, "" where they were."""
        from notebook_sync.sync.sweep import Task

        task = Task(frozenset(stamps), settled=dict(stamps), authors=authors, progress=progress)
        return self.wiring._new_engine().look(task).report.refs_trouble

    def _follow(self) -> None:
        """Update the rows of memories from their files."""
        from notebook_sync.notes.memories.text import FOLDER as MEMORIES
        from notebook_sync.sync.sweep import Task

        self.wiring._new_engine().look(Task(frozenset((MEMORIES,))))


_NAMES = {"from_memory_id": "from", "to_memory_id": "to", "relationship_type": "type"}


def _link_in(link: Any, shared: Mapping[str, str]) -> Any:
    """A suggested link by our names; what is no object is dropped later, with the reason."""
    if not isinstance(link, dict):
        return link
    named = {_NAMES.get(name, name): value for name, value in link.items()}
    return {**{name: value for name, value in shared.items() if value}, **named}
