"""What is compiled for a task, and what a reasoner makes of it: one method for each use case, and its parts.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import BackendDown, UsageError
from notebook_sync.folder import FOLDER
from notebook_sync.remembering import Remembering
from notebook_sync.sessions import Session
from notebook_sync.wiring import part

if TYPE_CHECKING:
    from notebook_sync.context.compiler import Compiler
    from notebook_sync.context.kept import Kept
    from notebook_sync.context.prefetch import Prefetch
    from notebook_sync.context.reasoner import Reasoner
    from notebook_sync.context.synthesis import Synthesizing
    from notebook_sync.mirror.syntheses import Syntheses

MOST_KEPT = 1_000


class Reasoning(Remembering):
    """The use cases of task briefs and their syntheses. A `Notebook` has them all."""

    def compile_context(
        self,
        task_spec: str,
        session: Session,
        *,
        max_tokens: int | None = None,
        top_k: int | None = None,
        include_domains: Sequence[str] = (),
        exclude_tags: Sequence[str] = (),
        explain: bool = False,
    ) -> dict[str, Any]:
        """What the notebook knows that matters for a task: `{task_brief_md, context_hash, memories_used: [{id, path,
        title, score, contribution}], token_count, related: [{id, path, title}], partial}`.

        `task_spec` is Markdown, whose frontmatter may name `domain`, `tags`, `components` and `related` notes.
        `contribution` is primary or supporting. `max_tokens` of the brief and `top_k` memories are the settings' where
        they are None; memories of any of `include_domains` alone, where any are named, and with none of
        `exclude_tags`. The brief holds no word of somebody else, of channels, or of what the session may not read.
        `context_hash` covers the spec, what selects, and the memories used with their digests: equal for equal input.
        `partial` says why fewer ways than all were searched, "" where none was left out. With `explain` also
        `explain: {intent, prefilter, search, combined, mmr, cut}`. The primary ones are counted used, but not for an
        external session. Raises UsageError, BackendDown.
        """
        from notebook_sync.mirror.syntheses import Timing

        began = time.perf_counter()
        compiled = self._compiler.compile(
            task_spec,
            session,
            max_tokens=max_tokens,
            top_k=top_k,
            include_domains=include_domains,
            exclude_tags=exclude_tags,
        )
        with suppress(BackendDown):  # the brief is there all the same
            self.syntheses.timed("compile", Timing("compiled", (time.perf_counter() - began) * 1000))
        return compiled.as_dict(explain=explain)

    def synthesize(
        self,
        task_spec: str,
        session: Session,
        *,
        refresh: bool = False,
        max_tokens: int | None = None,
        top_k: int | None = None,
        include_domains: Sequence[str] = (),
        exclude_tags: Sequence[str] = (),
    ) -> dict[str, Any]:
        """What a reasoner makes of the brief for a task: `{synthesis_md, synthesis_id, source, cached, context_hash,
        memories_used, links: {ingested, kept, dropped}, calls_today, daily_limit, trouble, warnings}`.

        The arguments are those of `compile_context`. An answer is kept while the brief would be the same, no memory
        that it rests on is changed, and `cache_ttl_hours`; with `refresh`, another is asked for all the same. `source`
        is bridge or llm, and local where nobody could be asked: then `trouble` says why, and the brief stands in.
        Links are as `memory_links` has them. Raises NotPermitted for an external session, UsageError where [tier2]
        is not switched on, and as `compile_context`.
        """
        options = _options(max_tokens, top_k, include_domains, exclude_tags)
        return self._synthesizing.synthesize(task_spec, session, options, refresh=refresh)

    def prefetch(self, specs: Sequence[str], session: Session) -> list[dict[str, Any]]:
        """Have the syntheses ready of notes, by their ids or paths, that say what is to be done: `[{spec, source,
        cached, trouble}]`, as `synthesize`. `source` is "" for what is no such note, or was not asked about since the
        reasoner is away. Raises NotPermitted, UsageError, BackendDown as `synthesize`."""
        return self._prefetch.prefetch(specs, session)

    def syntheses_kept(self, session: Session, *, limit: int = 20) -> list[dict[str, Any]]:
        """The answers that are kept, those first that were used last: `[{synthesis_id, synthesis_md, source, made_at,
        hits, holds, rests_on: [{id, path}]}]`. One that no longer `holds` is not given again: a memory that it rests on
        was changed, or its time is up. Raises NotPermitted for all but the owner, UsageError, BackendDown."""
        if session.kind != "owner":
            self.guard.refuse(session, "syntheses_kept", "Kept syntheses are only available in owner conversations")
        if not 1 <= limit <= MOST_KEPT:
            raise UsageError(f"1 to {MOST_KEPT:,} kept syntheses are told, not {limit:,}")
        return [
            {
                "synthesis_id": one.synthesis_id,
                "synthesis_md": one.synthesis_md,
                "source": one.source,
                "made_at": one.made_at,
                "hits": one.hits,
                "holds": holds,
                "rests_on": [{"id": each.id, "path": each.path} for each in one.rests_on],
            }
            for one, holds in self._kept.latest(session, limit)
        ]

    def memory_figures(self, session: Session) -> dict[str, Any]:
        """What can be measured: `{memories, structured_share, needs_review, causal_links, score: {mean, sigma},
        compile: {count, p50_ms, p95_ms}, synthesis: {asked, hits, hit_rate, waited, answered, failed, p50_ms,
        p95_ms, hit_p50_ms, hit_p95_ms, today, daily_limit}}`, of the memories that the session may read, and of the
        last thousand calls. `waited` are those of the hits that somebody else was asking for just then: how long that
        took is in no figure. A share or a mean of nothing is None. Raises NotPermitted for an external session,
        BackendDown."""
        from notebook_sync.context.figures import figures

        if session.kind == "external":
            self.guard.refuse(session, "memory_figures", "Figures of memories are not available in this conversation")
        compiled, syntheses = (self.syntheses.timings(what) for what in ("compile", "synthesis"))
        today, limit = self._synthesizing.spent_today(), self.settings.tier2.daily_limit
        return figures(self._memory_reach.all(session), compiled, syntheses, today, limit)

    # The parts.

    @part
    def syntheses(self) -> Syntheses:
        """What is kept of syntheses. Raises as `mirror`."""
        from notebook_sync.stores import open_syntheses

        store = open_syntheses(self.settings, lambda: self.folder)
        self._open.append(store)
        return store

    @part
    def _reasoner(self) -> Reasoner:
        """Who is asked about task briefs."""
        tier2 = self.settings.tier2
        if tier2.command:
            from notebook_sync.context.bridge import Bridge

            return Bridge(tier2)
        from notebook_sync.context.reasoner import LlmReasoner

        return LlmReasoner(self.llm, tier2.timeout_seconds)

    @part
    def _kept(self) -> Kept:
        """Knows which syntheses still hold."""
        from notebook_sync.context.kept import Kept

        return Kept(self.vault, self.settings, self.guard, lambda: self.syntheses, lambda: self.memory_rows)

    @part
    def _synthesizing(self) -> Synthesizing:
        """Has tasks reasoned about."""
        from notebook_sync.context.synthesis import Synthesizing
        from notebook_sync.context.turns import Turns

        turns = Turns(self.root / FOLDER, lambda: self.syntheses, self.settings.tier2.timeout_seconds)
        return Synthesizing(
            self.vault,
            self.settings,
            self.guard,
            self._compiler,
            lambda: self.syntheses,
            self._kept,
            turns,
            lambda: self._reasoner,
            self.memory_links,
        )

    @part
    def _prefetch(self) -> Prefetch:
        """Has tasks reasoned about ahead."""
        from notebook_sync.context.prefetch import Prefetch

        require, find, file = self._synthesizing.require, self._lookup.find_path, self._filing.file
        spent_today, daily_limit = self._synthesizing.spent_today, self.settings.tier2.daily_limit

        def synthesize(task_spec: str, session: Session) -> dict[str, Any]:
            return self._synthesizing.synthesize(task_spec, session, _options(), counts_use=False)

        return Prefetch(require, find, file, synthesize, spent_today, daily_limit)

    @part
    def _compiler(self) -> Compiler:
        """Compiles task briefs."""
        from notebook_sync.context.candidates import Candidates
        from notebook_sync.context.compiler import Compiler
        from notebook_sync.context.intent_reading import IntentReading
        from notebook_sync.context.kept_answers import KeptAnswers
        from notebook_sync.context.meaning import Meaning
        from notebook_sync.context.related import RelatedNotes

        settings, guard, lookup = self.settings, self.guard, self._lookup
        meaning = Meaning(lambda: self.embedder, lambda: self.vectors, lambda: self._backlog)
        candidates = Candidates(settings, guard, lambda: self.mirror, lambda: self.memory_rows, meaning, lookup.freshen)
        related = RelatedNotes(
            self.vault, settings, guard, lambda: self.mirror, lambda: self._searching, lookup.freshen
        )
        return Compiler(
            settings,
            IntentReading(settings, lambda: self.llm, KeptAnswers(self.root / FOLDER, "intents")),
            candidates,
            related,
            lambda: self.memory_rows,
        )


def _options(
    max_tokens: int | None = None,
    top_k: int | None = None,
    include_domains: Sequence[str] = (),
    exclude_tags: Sequence[str] = (),
) -> dict[str, Any]:
    """What selects, by the names that it has: the same where the same is asked for, ahead or not."""
    return {
        "max_tokens": max_tokens,
        "top_k": top_k,
        "include_domains": include_domains,
        "exclude_tags": exclude_tags,
    }
