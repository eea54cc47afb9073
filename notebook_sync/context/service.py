"""The operations on what a task needs to know. Other modules of this package do the work."""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, structs

from notebook_sync.registry import NOT_EXTERNAL, OWNER_ONLY, Arg, Limit, Result, Results, operation
from notebook_sync.services.core import NotebookService
from notebook_sync.sessions import OWNER, Session

if TYPE_CHECKING:
    from notebook_sync.context.compiler import Compiler, TaskBrief
    from notebook_sync.context.prefetch import Prefetched, Prefetcher
    from notebook_sync.context.records import CachedSynthesis, Figures
    from notebook_sync.context.synthesis import Synthesis, Synthesizer

Spec = Annotated[
    str,
    Meta(max_length=1 << 18, description="the task, in Markdown"),
    Arg("SPEC.md", positional=True, from_file=True, is_file=True),
]
MaxTokens = Annotated[
    Annotated[int, Meta(ge=1, le=1_000_000)] | None, Meta(description="at most this many tokens"), Arg("N")
]
TopK = Annotated[Annotated[int, Meta(ge=1, le=150)] | None, Meta(description="at most this many memories"), Arg("N")]
Name = Annotated[str, Meta(max_length=512)]
Names = Annotated[list[Name], Meta(max_length=100)]
Domains = Annotated[Names | None, Meta(description="only memories of these domains"), Arg("NAMES")]
Excluded = Annotated[Names | None, Meta(description="no notes with these tags"), Arg("TAGS")]


class Feedback(Result, frozen=True):
    """What was recorded of a brief: ids of memories that helped, and of others."""

    context_hash: str
    used: list[str]
    useless: list[str]


class ContextService(NotebookService):
    """Compile what the notebook knows about a task."""

    name = "context"

    @operation(
        "context brief",
        tool="compile_context",
        route="POST /compile_context",
        unlisted=("top_k", "include_domains", "exclude_tags", "explain"),
        shows="task_brief_md",
        result_in="notebook_sync.context.compiler",
        hint="Call it before you start a task.",
        examples=(
            "notebook-sync context brief pages/plan.md",
            "notebook-sync context brief pages/plan.md --max-tokens 2000 --include-domains timetable --json",
        ),
    )
    def brief(
        self,
        task_spec: Spec,
        session: Session = OWNER,
        *,
        max_tokens: MaxTokens = None,
        top_k: TopK = None,
        include_domains: Domains = None,
        exclude_tags: Excluded = None,
        explain: Annotated[bool, Meta(description="show how each memory was found and scored")] = False,
    ) -> TaskBrief:
        """Compile what the notebook knows about a task: decisions, problems, patterns, risks.

        The frontmatter of the spec may name domain, tags, components and related notes. The brief is Markdown of at
        most max_tokens tokens (default context.max_tokens), from at most top_k memories: those that have most to do
        with the task and the highest scores. No model is asked. It never has private notes, archived notes, or text
        that others wrote.
        """
        began = time.perf_counter()
        made = self.compiler.compile(
            task_spec,
            session,
            max_tokens=max_tokens,
            top_k=top_k,
            include_domains=include_domains,
            exclude_tags=exclude_tags,
        )
        found = made.brief
        self.core.events.record(
            "brief",
            session,
            hash=found.context_hash,
            memories=[each.id for each in found.memories_used],
            latency_ms=round((time.perf_counter() - began) * 1000, 2),
        )
        return found if explain else structs.replace(found, explain=None)

    @operation(
        "context feedback",
        route="POST /briefs/{context_hash}/feedback",
        sessions=NOT_EXTERNAL,
        refusal="Feedback is not available in this conversation",
        effect="write",
        asks="caller",
        examples=("notebook-sync context feedback sha256:1a2b3c4d --used memories/decision/rope",),
    )
    def feedback(
        self,
        context_hash: Annotated[str, Meta(max_length=128, description="of the brief"), Arg("HASH", positional=True)],
        session: Session = OWNER,
        *,
        used: Annotated[Names | None, Meta(description="memories that helped"), Arg("IDS")] = None,
        useless: Annotated[Names | None, Meta(description="memories that did not"), Arg("IDS")] = None,
    ) -> Feedback:
        """Say which memories of a brief helped, and which did not.

        `context figures` counts them. The last feedback on a brief replaces an earlier one.
        """
        from notebook_sync.context.records import record_feedback

        record_feedback(self.core, session, context_hash, used or (), useless or ())
        return Feedback(context_hash, used or [], useless or [])

    @operation(
        "context figures",
        route="GET /memories/figures",
        sessions=NOT_EXTERNAL,
        refusal="Figures of memories are not available in this conversation",
        result_in="notebook_sync.context.records",
        examples=("notebook-sync context figures --json",),
    )
    def figures(self, session: Session = OWNER) -> Figures:
        """Show figures about briefs and syntheses; for those about memories, see `memory audit`.

        The p50 and p95 of the last thousand briefs and syntheses; how many memories in briefs helped, by
        `context feedback`; how many questions were asked today.
        """
        from notebook_sync.context.records import figures_of

        return figures_of(self.core)

    @operation(
        "context seed",
        sessions=OWNER_ONLY,
        refusal="Sources are only written in owner conversations",
        effect="write",
        asks="caller",
        nothing_found="there are no memories",
        examples=("notebook-sync context seed ~/sources",),
    )
    def seed(
        self,
        directory: Annotated[str, Meta(max_length=4_096, description="a new folder"), Arg("DIR", positional=True)],
        session: Session = OWNER,
    ) -> Results[str]:
        """Write what the notebook knows as Markdown files, to upload into a reasoner's notebook.

        At most 50 files, by domain: decisions, lessons, problems, and pages with the domain as a tag. Private, archived
        and external notes, and comments, are left out. The folder must be new or empty, and outside the notebook.
        """
        from notebook_sync.context.compiler import write_seed

        return Results(write_seed(self.core, directory))

    @operation(
        "context synthesize",
        tool="synthesize",
        toolset="context",
        route="POST /synthesize",
        sessions=NOT_EXTERNAL,
        refusal="Syntheses are not available in this conversation",
        effect="write",
        asks="caller",
        unlisted=("refresh", "max_tokens", "top_k", "include_domains", "exclude_tags"),
        shows="synthesis_md",
        result_in="notebook_sync.context.synthesis",
        hint="Slow and limited per day; try compile_context first.",
        examples=(
            "notebook-sync context synthesize pages/plan.md",
            "notebook-sync context synthesize pages/plan.md --refresh --json",
        ),
    )
    def synthesize(
        self,
        task_spec: Spec,
        session: Session = OWNER,
        *,
        refresh: Annotated[bool, Meta(description="ask again, even if an answer is cached")] = False,
        max_tokens: MaxTokens = None,
        top_k: TopK = None,
        include_domains: Domains = None,
        exclude_tags: Excluded = None,
    ) -> Synthesis:
        """Send the brief of a task to your model, and cache its answer.

        The model is the MCP server with the tool ask_question that tier2.command starts, such as a NotebookLM bridge,
        otherwise the model of [llm]; tier2.enabled turns this on. Links that it suggests between memories of the brief
        are checked and saved. The answer is cached until the task or a memory that it rests on changes, at most
        tier2.cache_ttl_hours (24). At most tier2.daily_limit (50) questions are asked a day. Where nobody answers, the
        text is the brief: `source` is local, and `trouble` says why. `latency_ms` is in milliseconds.
        """
        return self.synthesizer.ask(
            task_spec,
            session,
            refresh=refresh,
            max_tokens=max_tokens,
            top_k=top_k,
            include_domains=include_domains,
            exclude_tags=exclude_tags,
        )

    @operation(
        "context prefetch",
        route="POST /prefetch",
        sessions=NOT_EXTERNAL,
        refusal="Syntheses are not available in this conversation",
        effect="write",
        asks="caller",
        columns=("spec", "source", "cached", "trouble"),
        result_in="notebook_sync.context.prefetch",
        examples=("notebook-sync context prefetch pages/plan.md draft.md",),
    )
    def prefetch(
        self,
        specs: Annotated[
            Names, Meta(min_length=1, description="notes that describe tasks"), Arg("SPEC", positional=True)
        ],
        session: Session = OWNER,
    ) -> Results[Prefetched]:
        """Make syntheses ahead of time, so that they are cached when they are needed.

        As `context synthesize` for each note, but the last quarter of the day's questions is never used, and after two
        failures in a row no more are asked. `watch` and `serve` do this for saved notes that match tier2.specs
        (patterns as in .gitignore), at most five at once, and for a new git branch.
        """
        from notebook_sync.context.prefetch import prefetch

        return Results(prefetch(self.core, self.synthesizer, specs, session))

    @operation(
        "context cached",
        route="POST /syntheses",
        sessions=OWNER_ONLY,
        effect="write",
        columns=("synthesis_id", "made_at", "source", "hits", "holds", "rests_on"),
        nothing_found="no syntheses are cached; make one with: notebook-sync context synthesize SPEC.md",
        result_in="notebook_sync.context.records",
        examples=("notebook-sync context cached", "notebook-sync context cached --clear 1a2b3c4d5e6f"),
    )
    def cached(
        self,
        id: Annotated[
            str, Meta(max_length=64, description="only the synthesis with this id"), Arg("ID", positional=True)
        ] = "",
        session: Session = OWNER,
        *,
        clear: Annotated[bool, Meta(description="drop what is listed, or all without ID")] = False,
        limit: Limit = 20,
    ) -> Results[CachedSynthesis]:
        """List the cached syntheses, the last used first, or drop them.

        One that no longer `holds` is not returned again: a memory that it rests on has changed, or it is too old. With
        --clear, those that are dropped are listed.
        """
        return Results(self.synthesizer.cache.clear(id) if clear else self.synthesizer.cache.latest(limit, id))

    def forget(self, ids: Collection[str]) -> int:
        """Drop the cached syntheses whose brief showed one of these notes, or whose task is one, and return how many.
        The index must still have the notes."""
        return self.synthesizer.cache.forget(ids)

    @cached_property
    def compiler(self) -> Compiler:
        """What compiles briefs; it remembers token counts."""
        from notebook_sync.context.compiler import Compiler  # the parts of the index, which help does without

        return Compiler(self.core)

    @cached_property
    def synthesizer(self) -> Synthesizer:
        """What asks about briefs, and caches the answers."""
        from notebook_sync.context.synthesis import Synthesizer  # what help does without

        return Synthesizer(self.core, self.compiler)

    @cached_property
    def _prefetcher(self) -> Prefetcher:
        from notebook_sync.context.prefetch import Prefetcher

        return Prefetcher(self.core, self.synthesizer)

    def look_for_specs(self) -> None:
        """Begin to make syntheses of specs that were saved, and of those of a new branch; it returns at once."""
        tier2 = self.settings.tier2
        if tier2.enabled and tier2.specs:
            self._prefetcher.look()

    def text_for_prompt(self, task: str, session: Session, max_tokens: int) -> str:
        """What a prompt shows of a task: its brief, or the task itself where the notebook knows nothing about it. No
        server is asked, and nothing counts as used."""
        limit = min(self.settings.context.max_tokens, max_tokens)
        made = self.compiler.compile(task, session, max_tokens=limit, counts_use=False, asks_servers=False)
        is_wanted = self.settings.tier2.enabled and session.kind != "external"
        if is_wanted and (synthesis := self.synthesizer.cached_text(task, session, made, limit)):
            return synthesis
        return made.brief.task_brief_md if made.brief.memories_used or made.brief.related else task
