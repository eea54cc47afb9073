"""The operations on memories: decisions, problems, patterns, insights. Other modules do the work."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from notebook_sync import services
from notebook_sync.registry import NOT_EXTERNAL, OWNER_ONLY, Arg, DryRun, Limit, Results, found_any, operation
from notebook_sync.services.core import NotebookService
from notebook_sync.sessions import OWNER, Session

_NOT_CHANGED = "Memories are not changed in this conversation"

Word = Annotated[str, Meta(max_length=256)]
Kind = Annotated[Literal["decision", "problem", "pattern", "insight"] | None, Arg("KIND")]
Domain = Annotated[Word, Meta(description="what it is about, one word"), Arg("WORD")]
Tags = Annotated[list[Word], Meta(max_length=100, description="any of them"), Arg("TAGS")]
NewTags = Annotated[list[Word], Meta(max_length=100), Arg("TAGS")]
Links = Annotated[list[Any], Meta(max_length=1_000, description="the links, as JSON"), Arg("JSON", True, True)]
Id = Annotated[str, Meta(max_length=4_096, description="a memory's id or path")]


class MemoryService(NotebookService):
    """Decisions, problems, patterns and insights, with links between them."""

    name = "memories"

    @operation(
        "memory add",
        tool="memory_add",
        toolset="memory",
        route="POST /memories",
        creates=True,
        sessions=NOT_EXTERNAL,
        refusal=_NOT_CHANGED,
        effect="write",
        asks="caller",
        aliases={"importance": "priority", "agent_type": "said_by", "agent": "said_by"},
        unlisted=("title", "kind", "said_by", "priority", "created_at", "strict"),
        hint="Write [DECISION] Title, then lines CONTEXT: REASONING: OUTCOME: TAGS: a, b.",
        examples=(
            "notebook-sync memory add '[INSIGHT] Fog comes in May' --domain weather",
            "notebook-sync memory add --content-file draft.md --kind insight --tags ferry,train",
        ),
    )
    def add(
        self,
        content: Annotated[str, Meta(max_length=10_000_000), Arg("TEXT", positional=True, from_file=True)],
        session: Session = OWNER,
        *,
        title: Annotated[str, Meta(max_length=1_000), Arg("TITLE")] = "",
        kind: Kind = None,
        domain: Domain = "",
        tags: NewTags | None = None,
        said_by: Annotated[Word, Meta(description="the agent who says so"), Arg("NAME")] = "",
        priority: Annotated[float | None, Meta(description="1 to 10; default 7"), Arg("N")] = None,
        created_at: Annotated[Word, Meta(description="ISO 8601; default now"), Arg("DATE")] = "",
        strict: Annotated[bool, Meta(description="refuse a wrong date, agent or priority")] = False,
    ) -> services.remembering.AddedMemory:
        """Save a decision, problem, pattern or insight with its reasons.

        The text begins with [DECISION], [PROBLEM], [PATTERN] or [INSIGHT] and a title, and goes on with CONTEXT:,
        REASONING:, OUTCOME: and TAGS:, each at the beginning of a line. It becomes a file in memories/KIND/. A text
        that lacks kind, context or reasoning is restructured by the language model of [llm], with the original below;
        without a model, it is saved as far as it goes and marked needs_review.

        A wrong date, agent or priority is replaced with a warning, and the memory marked; --strict refuses it instead.
        """
        return services.remembering.add_memory(
            self.core,
            session,
            content,
            title=title,
            kind=kind,
            domain=domain,
            tags=tags or (),
            agent=said_by,
            priority=priority,
            created_at=created_at,
            strict=strict,
        )

    @operation(
        "memory list",
        route="GET /memories",
        columns=("score", "kind", "path", "title"),
        nothing_found="no memories match",
        examples=("notebook-sync memory list", "notebook-sync memory list --kind problem --needs-review --json"),
    )
    def list(
        self,
        session: Session = OWNER,
        *,
        kind: Kind = None,
        domain: Domain = "",
        tags: Tags | None = None,
        needs_review: Annotated[bool | None, Meta(description="only those marked for review")] = None,
        limit: Limit = 50,
    ) -> Results[services.remembering.Memory]:
        """List memories, the highest score first."""
        return services.remembering.search_memories(
            self.core, session, "", limit=limit, kind=kind, domain=domain, tags=tags or (), needs_review=needs_review
        )

    @operation(
        "memory search",
        tool="memory_search",
        toolset="memory",
        route="GET /memories/search",
        unlisted=("kind", "domain", "tags", "counts_use"),
        columns=("similarity", "kind", "path", "title"),
        nothing_found="no memory matches",
        exit_code=found_any,
        examples=("notebook-sync memory search lamps", "notebook-sync memory search 'dark pier' --kind problem --json"),
    )
    def search(
        self,
        query: Annotated[str, Meta(max_length=4_096), Arg("QUERY", positional=True)],
        session: Session = OWNER,
        *,
        kind: Kind = None,
        domain: Domain = "",
        tags: Tags | None = None,
        limit: Limit = 10,
        counts_use: Annotated[bool, Meta(description="count good matches as used")] = True,
    ) -> Results[services.remembering.Memory]:
        """Search memories by words and meaning, the best first.

        `similarity`, 0 to 1, is the cosine of the two meanings or the share of the query's words that the memory has,
        whichever is greater. Matches of at least memory.related (0.6) count as used, unless the session is external.
        The exit code is 1 if nothing is found.
        """
        return services.remembering.search_memories(
            self.core, session, query, limit=limit, counts_use=counts_use, kind=kind, domain=domain, tags=tags or ()
        )

    @operation(
        "memory link",
        tool="memory_link",
        toolset="memory",
        route="POST /memories/link",
        sessions=NOT_EXTERNAL,
        refusal=_NOT_CHANGED,
        effect="write",
        asks="caller",
        aliases={"from": "from_id", "to": "to_id"},
        unlisted=("confidence", "source", "synthesis_id"),
        examples=("notebook-sync memory link k3v9x1q8m2ab solves p7c2w5z4n3de --reasoning 'they are lit now'",),
    )
    def link(
        self,
        from_id: Annotated[Id, Arg("FROM", positional=True)],
        type: Annotated[  # noqa: A002 - so the file names it
            Literal["causes", "solves", "contradicts", "expands", "supersedes", "similar"], Arg("TYPE", positional=True)
        ],
        to_id: Annotated[Id, Arg("TO", positional=True)],
        session: Session = OWNER,
        *,
        confidence: Annotated[float, Meta(ge=0, le=1), Arg("0..1")] = 1.0,
        reasoning: Annotated[str, Meta(description="why, in one sentence"), Arg("TEXT")] = "",
        source: Annotated[Word, Meta(description="who says so")] = "",
        synthesis_id: Annotated[Word, Meta(description="the synthesis that says so"), Arg("ID")] = "",
    ) -> services.memory_links.Link:
        """Link a memory to another.

        The link is saved in the frontmatter of FROM; a link of the same type to the same memory is replaced.
        """
        said = {"confidence": confidence, "reasoning": reasoning, "source": source, "synthesis_id": synthesis_id}
        return services.memory_links.link_memories(self.core, session, from_id, to_id, {"type": type, **said})

    @operation(
        "memory ingest",
        route="POST /relationships/ingest_synthesis",
        sessions=NOT_EXTERNAL,
        refusal=_NOT_CHANGED,
        effect="write",
        asks="caller",
        aliases={"links": "relationships"},
        examples=(
            """notebook-sync memory ingest '[{"from": "k3v9x1q8m2ab", "to": "p7c2w5z4n3de", "type": "solves"}]'""",
        ),
    )
    def ingest(
        self,
        relationships: Links,
        session: Session = OWNER,
        *,
        source: Annotated[Word, Meta(description="who says so, where a link does not say it")] = "",
        synthesis_id: Annotated[Word, Meta(description="the synthesis, where a link does not say it"), Arg("ID")] = "",
    ) -> services.memory_links.IngestedLinks:
        """Save the links that a synthesis or another program suggests.

        Each is {from, to, type, confidence, reasoning, source, synthesis_id}; the original's names from_memory_id,
        to_memory_id and relationship_type are known, too. A link without a confidence has 0.5. Invalid links are
        dropped and reported, and a link that another source has given is kept as it is.
        """
        source = source or ("" if session.kind == "owner" else session.changed_by)
        shared = {name: value for name, value in (("source", source), ("synthesis_id", synthesis_id)) if value}
        return services.memory_links.ingest_links(self.core, session, relationships, shared)

    @operation(
        "memory infer",
        route="POST /memories/infer",
        sessions=NOT_EXTERNAL,
        refusal=_NOT_CHANGED,
        effect="write",
        asks="caller",
        examples=("notebook-sync memory infer --dry-run --limit 50",),
    )
    def infer(
        self,
        session: Session = OWNER,
        *,
        dry_run: DryRun = False,
        limit: Annotated[int, Meta(ge=1, le=500, description="ask about at most this many pairs"), Arg("N")] = 20,
    ) -> services.memory_links.InferredLinks:
        """Ask the language model of [llm] how similar memories are linked.

        It is asked about pairs whose cosine is at least memory.infer_above (0.7) and that are not linked, the nearest
        first. Wrong answers are dropped and reported; if the model fails, what it answered before is saved.
        """
        return services.memory_links.infer_links(self.core, session, dry_run=dry_run, limit=limit)

    @operation(
        "memory score",
        route="POST /memories/score",
        sessions=NOT_EXTERNAL,
        refusal=_NOT_CHANGED,
        effect="write",
        examples=("notebook-sync memory score",),
    )
    def score(self, session: Session = OWNER) -> services.memory_care.Scored:
        """Compute what each memory counts for.

        The score, 0 to 1, depends on use, priority and age, with the weights of [memory]. The process that follows the
        notebook computes it every memory.recalculate_hours (6).
        """
        return services.memory_care.score_memories(self.core, session)

    @operation(
        "memory audit",
        route="GET /memories/audit",
        examples=("notebook-sync memory audit",),
    )
    def audit(self, session: Session = OWNER) -> services.memory_care.Audit:
        """Count what memories lack.

        It counts missing and wrong timestamps, unknown agents, memories without structure (a kind, and text below the
        headings Context and Reasoning), equal priorities, broken links and tags. Each finding has its path and line.
        """
        return services.memory_care.audit_memories(self.core, session)

    @operation(
        "memory fix",
        route="POST /memories/fix",
        sessions=OWNER_ONLY,
        refusal="Memories are only repaired in owner conversations",
        effect="write",
        examples=("notebook-sync memory fix --dry-run",),
    )
    def fix(self, session: Session = OWNER, *, dry_run: DryRun = False) -> services.memory_care.Repaired:
        """Repair what `memory audit` finds, where git and tags prove the value.

        A time comes from its own text in another form, else from the first commit; agent and kind come from tags. A
        thousand files make one commit. `left` lists what nothing proves.
        """
        return services.memory_care.fix_memories(self.core, session, dry_run=dry_run)

    @operation(
        "memory graph",
        route="GET /memories/graph",
        shows="text",
        examples=("notebook-sync memory graph memories.svg", "notebook-sync memory graph --format mermaid"),
    )
    def graph(
        self,
        session: Session = OWNER,
        *,
        format: Annotated[Literal["svg", "mermaid"] | None, Arg("FORMAT")] = None,  # noqa: A002 - so it is called
        kind: Kind = None,
        domain: Domain = "",
        limit: Limit = 80,
        links: Annotated[Word, Meta(description="make boxes links: what is before the path"), Arg("ADDRESS")] = "",
    ) -> services.memory_care.Picture:
        """Draw memories and their links, as SVG or for Mermaid.

        The picture has no script and loads nothing. Memories with links and the highest scores are drawn. The command
        writes FILE, in the format of its ending (.svg, .mmd or .md); it replaces no file.
        """
        return services.memory_care.draw_memories(
            self.core, session, format or "svg", limit=limit, links=links, kind=kind, domain=domain
        )
