"""The operations that compile what a task needs to know, and the parts that carry them out."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from notebook_sync.errors import BackendDown
from notebook_sync.operations.memories import IngestedLinks, MemoryService, Spread, Tag
from notebook_sync.operations.registry import NOT_EXTERNAL, OWNER_ONLY, Cli, Model, Results, Service, operation
from notebook_sync.parts import part
from notebook_sync.sessions import OWNER, Session

if TYPE_CHECKING:
    from notebook_sync.context.compiler import Compiler
    from notebook_sync.context.kept import Kept
    from notebook_sync.context.prefetch import Prefetch
    from notebook_sync.context.reasoner import Reasoner
    from notebook_sync.context.synthesis import Synthesizing
    from notebook_sync.wiring import Wiring

Spec = Annotated[
    str,
    Meta(description="the task, in Markdown"),
    Cli("SPEC.md", positional=True),
]
MaxTokens = Annotated[int, Meta(ge=1, description="at most this many tokens, default 8000"), Cli("N")]
TopK = Annotated[int, Meta(ge=1, description="at most this many memories, default 15"), Cli("N")]
Domains = Annotated[list[Tag], Meta(description="only memories of these domains"), Cli("A,B")]
Excluded = Annotated[list[Tag], Meta(description="no memories with these tags"), Cli("A,B")]


class Used(Model):
    """A memory that a brief uses, for the task itself or in support."""

    id: str
    path: str
    title: str
    score: float
    contribution: Literal["primary", "supporting"]


class Related(Model):
    id: str
    path: str
    title: str


class Brief(Model):
    """`context_hash` covers the spec, the options, and the memories used with their digests: equal for equal input.
    `partial` says why not everything was searched; `explain` has an entry for each step."""

    task_brief_md: str
    context_hash: str
    token_count: int
    memories_used: list[Used]
    related: list[Related]
    partial: str | None = None
    explain: dict[str, Any] | None = None


class Synthesis(Model):
    """`source`: bridge or llm; local where the model could not be asked, and then `trouble` says why and the brief
    itself is returned."""

    synthesis_md: str
    synthesis_id: str
    source: Literal["bridge", "llm", "local"]
    cached: bool
    context_hash: str
    memories_used: list[Used]
    links: IngestedLinks
    calls_today: int
    daily_limit: int
    trouble: str | None = None
    warnings: list[str] = msgspec.field(default_factory=list)


class Prefetched(Model):
    """`source` is empty for a spec that the model was not asked about; `trouble` says why."""

    spec: str
    source: str
    cached: bool
    trouble: str | None = None


class CachedSynthesis(Model):
    """One that no longer `holds` is not returned again: a memory that it uses has changed, or it is too old."""

    synthesis_id: str
    synthesis_md: str
    source: str
    made_at: datetime
    hits: int
    holds: bool
    rests_on: list[dict[str, str]]


class CompileFigures(Model):
    """Median and 95th percentile in milliseconds."""

    count: int
    p50_ms: float | None
    p95_ms: float | None


class SynthesisFigures(Model):
    """`hit_…_ms` are answers from the cache, the others those of the model; `waited` counts hits that another caller
    was asking for at that moment."""

    asked: int
    hits: int
    hit_rate: float | None
    waited: int
    p50_ms: float | None
    p95_ms: float | None
    hit_p50_ms: float | None
    hit_p95_ms: float | None
    answered: int
    failed: int
    today: int
    daily_limit: int


class Figures(Model):
    memories: int
    structured_share: float | None
    needs_review: int
    causal_links: int
    score: Spread
    compile: CompileFigures
    synthesis: SynthesisFigures


class ContextService(Service):
    """Compile what the notebook knows about a task

    A brief is selected from memories and notes without asking a model. A synthesis is what your configured model makes
    of a brief; it is cached. See docs/context.md and docs/synthesis.md.
    """

    name = "context"
    words = "context"
    examples = ("notebook-sync context brief SPEC.md", "notebook-sync context synthesize SPEC.md")

    @operation(
        "context brief",
        tool="compile_context",
        route="POST /compile_context",
        unlisted=("top_k", "include_domains", "exclude_tags", "explain"),
        open_world=True,
        hint="Call it before you start a task.",
        examples=(
            "notebook-sync context brief SPEC.md",
            "notebook-sync context brief specs/timetable.md --max-tokens 2000 --include-domains timetable --explain",
            "notebook-sync context brief - --json",
        ),
    )
    def compile(
        self,
        task_spec: Spec,
        session: Session = OWNER,
        *,
        max_tokens: MaxTokens | None = None,
        top_k: TopK | None = None,
        include_domains: Domains | None = None,
        exclude_tags: Excluded | None = None,
        explain: Annotated[bool, Meta(description="also show how the memories were selected")] = False,
    ) -> Brief:
        """Compile what the notebook knows about a task: decisions, problems, patterns, risks.

        The frontmatter of the spec may name domain, tags, components and related notes. The brief is Markdown, selected
        from memories that are similar to the task and have a high score, within --max-tokens. Compiling twice gives the
        same context_hash until the spec or a memory it uses changes. It never contains private notes or somebody else's
        words.
        """
        from notebook_sync.mirror.syntheses import Timing

        began = time.perf_counter()
        compiled = self._compiler.compile(
            task_spec, session, **_options(max_tokens, top_k, include_domains, exclude_tags)
        )
        with suppress(BackendDown):  # the brief is there all the same
            self.wiring.syntheses.timed("compile", Timing("compiled", (time.perf_counter() - began) * 1000))
        brief = compiled.as_dict(explain=explain)
        return msgspec.convert({**_hashed(brief), "partial": brief["partial"] or None}, Brief)

    @operation(
        "context synthesize",
        tool="synthesize",
        route="POST /synthesize",
        unlisted=("refresh", "max_tokens", "top_k", "include_domains", "exclude_tags"),
        sessions=NOT_EXTERNAL,
        refusal="Syntheses are not available in this conversation",
        effect="write",
        open_world=True,
        hint="Slow and limited per day; try compile_context first.",
        examples=(
            "notebook-sync context synthesize SPEC.md",
            "notebook-sync context synthesize SPEC.md --refresh --json",
        ),
    )
    def synthesize(
        self,
        task_spec: Spec,
        session: Session = OWNER,
        *,
        refresh: Annotated[bool, Meta(description="ask again, even if an answer is cached")] = False,
        max_tokens: MaxTokens | None = None,
        top_k: TopK | None = None,
        include_domains: Domains | None = None,
        exclude_tags: Excluded | None = None,
    ) -> Synthesis:
        """Send the brief to your configured model and cache the answer.

        The model is an MCP server with the tool ask_question that tier2.command starts, for example a NotebookLM
        bridge; otherwise the language model of [llm]. Set tier2.enabled (docs/synthesis.md). Links that it suggests
        between memories are checked and saved. The answer is cached until the spec or a memory it uses changes, or
        tier2.cache_ttl_hours (24) have passed. At most tier2.daily_limit (50) calls are made a day. If the model does
        not answer, the brief itself is returned: `source` is local and `trouble` says why.
        """
        options = _options(max_tokens, top_k, include_domains, exclude_tags)
        found = self._synthesizing.synthesize(task_spec, session, options, refresh=refresh)
        return msgspec.convert({**_hashed(found), "trouble": found["trouble"] or None}, Synthesis)

    @operation(
        "context prefetch",
        route="POST /prefetch",
        effect="write",
        open_world=True,
        examples=("notebook-sync context prefetch specs/timetable.md specs/pier.md --json",),
    )
    def prefetch(
        self,
        specs: Annotated[
            list[Annotated[str, Meta(max_length=4_096)]],
            Meta(min_length=1, max_length=100, description="notes that describe tasks, by id or path"),
            Cli("SPEC.md", positional=True),
        ],
        session: Session = OWNER,
    ) -> Results[Prefetched]:
        """Synthesize specs ahead of time, so that their answers are cached.

        As `context synthesize` for each, within the daily limit. `watch` and `serve` do this for saved files that
        tier2.specs names, and for a new git branch.
        """
        found = self._prefetch.prefetch(specs, session)
        rows = [{**each, "trouble": each["trouble"] or None} for each in found]
        return Results(results=msgspec.convert(rows, list[Prefetched]))

    @operation(
        "context cached",
        route="GET /syntheses",
        sessions=OWNER_ONLY,
        refusal="Cached syntheses are only available in owner conversations",
        nothing_found="no syntheses are cached; make one with: notebook-sync context synthesize SPEC.md",
        examples=("notebook-sync context cached --json",),
    )
    def cached(
        self,
        session: Session = OWNER,
        *,
        limit: Annotated[int, Meta(ge=1, le=1_000, description="at most this many results"), Cli("N")] = 20,
    ) -> Results[CachedSynthesis]:
        """List cached syntheses, the last used first."""
        found = [
            CachedSynthesis(
                one.synthesis_id,
                one.synthesis_md,
                one.source,
                one.made_at,
                one.hits,
                holds,
                [{"id": each.id, "path": each.path} for each in one.rests_on],
            )
            for one, holds in self._kept.latest(session, limit)
        ]
        return Results(results=found)

    @operation(
        "context figures",
        route="GET /memories/figures",
        sessions=NOT_EXTERNAL,
        refusal="Figures of memories are not available in this conversation",
        examples=("notebook-sync context figures --json",),
    )
    def figures(self, session: Session = OWNER) -> Figures:
        """Show figures about memories, briefs and syntheses.

        How many memories have a structure or need a review, links and the spread of scores; the p50 and p95 of the last
        thousand compilations and syntheses; the cache's hit rate; calls made today.
        """
        from notebook_sync.context.figures import figures

        wiring = self.wiring
        compiled, syntheses = (wiring.syntheses.timings(what) for what in ("compile", "synthesis"))
        today, limit = self._synthesizing.spent_today(), wiring.settings.tier2.daily_limit
        memories = self._memories.reach.all(session)
        return msgspec.convert(figures(memories, compiled, syntheses, today, limit), Figures)

    def __init__(self, wiring: Wiring, memories: MemoryService) -> None:
        super().__init__(wiring)
        self._memories = memories

    # The parts.

    @part
    def _reasoner(self) -> Reasoner:
        tier2 = self.wiring.settings.tier2
        if tier2.command:
            from notebook_sync.context.bridge import Bridge

            return Bridge(tier2)
        from notebook_sync.context.reasoner import LlmReasoner

        return LlmReasoner(self.wiring.llm, tier2.timeout_seconds)

    @part
    def _kept(self) -> Kept:
        from notebook_sync.context.kept import Kept

        wiring = self.wiring
        return Kept(wiring.vault, wiring.settings, wiring.guard, lambda: wiring.syntheses, lambda: wiring.memory_rows)

    @part
    def _synthesizing(self) -> Synthesizing:
        from notebook_sync.context.synthesis import Synthesizing
        from notebook_sync.context.turns import Turns
        from notebook_sync.folder import FOLDER

        wiring = self.wiring
        turns = Turns(wiring.root / FOLDER, lambda: wiring.syntheses, wiring.settings.tier2.timeout_seconds)
        return Synthesizing(
            wiring.vault,
            wiring.settings,
            wiring.guard,
            self._compiler,
            lambda: wiring.syntheses,
            self._kept,
            turns,
            lambda: self._reasoner,
            self._memories.links.take_in,
        )

    @part
    def _prefetch(self) -> Prefetch:
        from notebook_sync.context.prefetch import Prefetch

        wiring, synthesizing = self.wiring, self._synthesizing

        def synthesize(task_spec: str, session: Session) -> dict[str, Any]:
            return synthesizing.synthesize(task_spec, session, _options(), counts_use=False)

        return Prefetch(
            synthesizing.require,
            wiring._lookup.find_path,
            wiring._filing.file,
            synthesize,
            synthesizing.spent_today,
            wiring.settings.tier2.daily_limit,
        )

    @part
    def _compiler(self) -> Compiler:
        from notebook_sync.context.candidates import Candidates
        from notebook_sync.context.compiler import Compiler
        from notebook_sync.context.intent_reading import IntentReading
        from notebook_sync.context.kept_answers import KeptAnswers
        from notebook_sync.context.meaning import Meaning
        from notebook_sync.context.related import RelatedNotes
        from notebook_sync.folder import FOLDER

        wiring = self.wiring
        settings, guard, lookup = wiring.settings, wiring.guard, wiring._lookup
        meaning = Meaning(lambda: wiring.embedder, lambda: wiring.vectors, lambda: wiring._backlog)
        return Compiler(
            settings,
            IntentReading(settings, lambda: wiring.llm, KeptAnswers(wiring.root / FOLDER, "intents")),
            Candidates(settings, guard, lambda: wiring.mirror, lambda: wiring.memory_rows, meaning, lookup.freshen),
            RelatedNotes(
                wiring.vault, settings, guard, lambda: wiring.mirror, lambda: wiring._searching, lookup.freshen
            ),
            lambda: wiring.memory_rows,
        )


def _hashed(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, "context_hash": f"sha256:{told['context_hash']}"}


def _options(
    max_tokens: int | None = None,
    top_k: int | None = None,
    include_domains: Domains | None = None,
    exclude_tags: Excluded | None = None,
) -> dict[str, Any]:
    """What selects, by name: the same whether a synthesis is asked for now or ahead of time."""
    return {
        "max_tokens": max_tokens,
        "top_k": top_k,
        "include_domains": include_domains or (),
        "exclude_tags": exclude_tags or (),
    }
