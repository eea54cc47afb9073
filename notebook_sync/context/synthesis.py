"""A model's answer about a task brief: asked for once, cached while what it rests on stays the same, and replaced by
the brief where nobody can be asked.

Every question is counted before it is asked, and no lock that writers need is held meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from notebook_sync.context.answer import INSTRUCTIONS, Answer, check_links, question, read_answer
from notebook_sync.context.brief import one_line
from notebook_sync.context.compiler import UsedMemory
from notebook_sync.context.records import SYNTHESIS, SynthesisCache
from notebook_sync.errors import BackendDown, BadAnswer, MissingExtra, NotebookError, UsageError
from notebook_sync.files.beneath import digest_of
from notebook_sync.files.locks import FileLock
from notebook_sync.registry import Result
from notebook_sync.services.core import Core
from notebook_sync.services.memory_links import DroppedLink, IngestedLinks, ingest_links
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings
from prompt import count_tokens

if TYPE_CHECKING:
    from notebook_sync.context.compiler import Compiled, Compiler

LOCAL = "local"
MARK = "**Not a synthesis.**"
# Threads of one process that ask or wait: a server has four for all that write.
MOST_WAITING = 3
# Models take longer questions than bridges that enter them into a page.
_LLM_CHARACTERS = 100_000
_LONGEST_TROUBLE = 400

NO_LINKS = IngestedLinks(ingested=[], kept=[], dropped=[], warnings=[])


class Synthesis(Result, frozen=True, kw_only=True):
    """`source`: bridge or llm; local where the model could not be asked: then `trouble` says why, and the text is the
    brief."""

    synthesis_md: str
    source: str = LOCAL
    context_hash: str = ""
    memories_used: list[UsedMemory] = msgspec.field(default_factory=list)
    synthesis_id: str = ""
    cached: bool = False
    links: IngestedLinks = NO_LINKS
    trouble: str | None = None
    warnings: list[str] = msgspec.field(default_factory=list)
    calls_today: int = 0
    daily_limit: int = 0
    latency_ms: int = 0


class Reasoner(NamedTuple):
    """Who is asked. `ask(instructions, question)` raises BackendDown or BadAnswer."""

    source: str
    characters: int
    ask: Callable[[str, str], str]


class _Wanted(NamedTuple):
    """A task and who asks. Answers made before `since` do not count; `most` questions may be asked today."""

    spec: str
    session: Session
    options: Mapping[str, Any]
    since: datetime | None
    most: int


class Synthesizer:
    """Of one notebook, for any number of threads and processes."""

    # Of the process, whatever its notebooks: what runs out are its threads.
    _places = threading.BoundedSemaphore(MOST_WAITING)

    def __init__(self, core: Core, compiler: Compiler) -> None:
        self._core = core
        self._compiler = compiler
        self.cache = SynthesisCache(core)

    def ask(
        self,
        spec: str,
        session: Session,
        *,
        refresh: bool = False,
        most: int | None = None,
        counts_use: bool = True,
        **options: Any,
    ) -> Synthesis:
        """The synthesis for a task, the cached one unless `refresh`. `options` are those of `Compiler.compile`; nobody
        is asked where `most` questions were asked today. Raises UsageError where nobody is set to be asked."""
        require_tier2(self._core.settings)
        limit, clock = self._core.settings.tier2.daily_limit, time.perf_counter()
        since = self._core.now() if refresh else None
        wanted = _Wanted(spec, session, options, since, limit if most is None else min(most, limit))
        made = self._compiler.compile(spec, session, counts_use=counts_use, **options)
        found = self._cached(wanted, made) or self._in_turn(wanted, made)
        latency = round((time.perf_counter() - clock) * 1000)
        outcome = "cached" if found.cached else "failed" if found.source == LOCAL else "answered"
        name, used = made.brief.context_hash, made.brief.memories_used
        ids = [each.id for each in used]
        self._core.events.record(SYNTHESIS, session, outcome=outcome, latency_ms=latency, hash=name, memories=ids)
        spent = self.cache.spent_today()
        about = {"context_hash": name, "memories_used": used, "latency_ms": latency}
        return msgspec.structs.replace(found, **about, calls_today=spent, daily_limit=limit)

    def cached_text(self, spec: str, session: Session, made: Compiled, max_tokens: int) -> str:
        """The cached synthesis for a task whose brief is known; "" where none fits. Asks nobody and writes nothing, so
        that a prompt waits for nobody."""
        row = self.cache.find(self.cache.key_of(spec, made), made, session)
        text: str = row["value"]["synthesis_md"] if row else ""
        return text if count_tokens(text, self._core.settings.prompt.encoding) <= max_tokens else ""

    def _cached(self, wanted: _Wanted, made: Compiled) -> Synthesis | None:
        row = self.cache.find(self.cache.key_of(wanted.spec, made), made, wanted.session, wanted.since)
        if row is None:
            return None
        self.cache.count_use(row["id"])
        found = msgspec.convert(row["value"], Synthesis)
        kept = [msgspec.structs.replace(link, action="kept") for link in (*found.links.ingested, *found.links.kept)]
        return msgspec.structs.replace(
            found, cached=True, links=msgspec.structs.replace(found.links, ingested=[], kept=kept)
        )

    def _in_turn(self, wanted: _Wanted, made: Compiled) -> Synthesis:
        """One question at a time, whichever process asks it. Who waited may find the answer there, or its failure."""
        reasoner, seconds = reasoner_of(self._core.settings), self._core.settings.tier2.timeout_seconds
        if not self._places.acquire(blocking=False):
            return _local(made, f"{MOST_WAITING} others ask or wait in this process; ask again later")
        lock = FileLock(self._core.place.lock_folder / "synthesis.lock")
        try:
            if not lock.acquire(seconds):
                return _local(made, f"others were asking for {seconds:g} seconds; ask again later")
            made = self._compile(wanted)
            if found := self._cached(wanted, made):
                return found
            if trouble := self.cache.failure(self.cache.key_of(wanted.spec, made), wanted.since):
                return _local(made, f"the same question failed less than a minute ago: {trouble}")
            return self._asked_now(wanted, made, reasoner)
        finally:
            lock.release()
            self._places.release()

    def _asked_now(self, wanted: _Wanted, made: Compiled, reasoner: Reasoner) -> Synthesis:
        asked = question(made.stable, reasoner.characters)
        if not self.cache.spend(wanted.most):
            limit, zone = self._core.settings.tier2.daily_limit, self._core.settings.timezone
            rest = f", of which {wanted.most:,} may be asked ahead" if wanted.most < limit else ""
            return _local(made, f"the day's questions are asked (tier2.daily_limit is {limit:,}{rest}; {zone})")
        try:
            answer = read_answer(reasoner.ask(INSTRUCTIONS, asked), asked)
            trouble = "the answer is empty" if answer.is_empty else ""
        except (BackendDown, BadAnswer) as error:
            trouble = error.message
        if trouble:
            self.cache.put_failure(self.cache.key_of(wanted.spec, made), trouble)
            return _local(made, trouble)
        return self._taken(wanted, made, reasoner.source, answer)

    def _taken(self, wanted: _Wanted, made: Compiled, source: str, answer: Answer) -> Synthesis:
        """Save the links of an answer, and cache it unless somebody changed what it rests on meanwhile."""
        id = digest_of(f"{wanted.spec} {self._core.now()}".encode(errors="replace"))[:12]
        links = self._saved(answer, made, wanted.session, {"source": source, "synthesis_id": id})
        # The links may have changed the brief: what is cached answers the brief that the next call will compile.
        now = self._compile(wanted)
        found = Synthesis(
            synthesis_md=answer.markdown([*links.ingested, *links.kept]),
            source=source,
            synthesis_id=id,
            links=links,
            warnings=[*answer.problems, *links.warnings],
        )
        if self.cache.has_changed(made.words, wanted.session, now.words):
            found.warnings.append("it is not cached: a memory that it rests on was changed meanwhile")
        else:
            task = digest_of(wanted.spec.encode(errors="replace"))
            rests_on = {"words": {**made.words, **now.words}, "notes": [*made.notes, *now.notes, task]}
            self.cache.put(self.cache.key_of(wanted.spec, now), msgspec.to_builtins(found) | rests_on)
        return found

    def _saved(self, answer: Answer, made: Compiled, session: Session, shared: Mapping[str, str]) -> IngestedLinks:
        """What became of the links that an answer suggests. The answer is not lost where they cannot be saved."""
        used = made.brief.memories_used
        names = {name: each.id for each in used for name in (each.path.removesuffix(".md"), each.path)}
        names |= {each.id: each.id for each in used}
        links, dropped = check_links(answer, names)
        try:
            found = ingest_links(self._core, session, links, shared) if links else NO_LINKS
        except NotebookError as error:
            lost = [DroppedLink(link, error.message) for link in links]
            found = msgspec.structs.replace(NO_LINKS, dropped=lost, warnings=[f"no link was saved: {error}"])
        return msgspec.structs.replace(found, dropped=[*dropped, *found.dropped])

    def _compile(self, wanted: _Wanted) -> Compiled:
        return self._compiler.compile(wanted.spec, wanted.session, counts_use=False, **wanted.options)


def require_tier2(settings: Settings) -> None:
    """Raises UsageError where no syntheses are wanted."""
    if not settings.tier2.enabled:
        advice = (
            "in notebook.toml, set tier2.enabled = true, and tier2.command to an MCP server with the tool "
            "ask_question; without a command, the model of [llm] is asked"
        )
        raise UsageError("syntheses are off", next=advice)


def reasoner_of(settings: Settings) -> Reasoner:
    """Who is asked, by the settings. Raises UsageError for nobody, ConfigError for a program
    that is not there, MissingExtra."""
    module, extra = ("mcp", "mcp") if settings.tier2.command else ("httpx2", "llm")
    if find_spec(module) is None:
        raise MissingExtra("a synthesis", extra)
    if settings.tier2.command:
        from notebook_sync.context.bridge import Bridge  # loads asyncio, and most commands ask nobody

        bridge = Bridge(settings.tier2)
        bridge.program()
        return Reasoner("bridge", settings.tier2.question_characters, bridge.ask)
    from notebook_sync.llm import llm_of

    llm = llm_of(settings.llm)
    if llm is None:
        raise UsageError("no model is set", next="set tier2.command or llm.model in notebook.toml")
    return Reasoner("llm", _LLM_CHARACTERS, llm.text)


def _local(made: Compiled, trouble: str) -> Synthesis:
    """The brief, marked, in place of a synthesis."""
    marked = f"> {MARK} {one_line(trouble, _LONGEST_TROUBLE)}. This is the brief.\n\n{made.brief.task_brief_md}"
    return Synthesis(synthesis_md=marked, trouble=trouble)
