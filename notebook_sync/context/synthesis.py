"""Asks a reasoner about a task brief, once: what it says is kept while it holds, and where nobody can be asked, the
brief stands in for it.

Each question is counted before it is asked. No answer is taken that is not whole, and none gets past the owner's limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from notebook_sync.context.compiler import Compiled, Compiler
from notebook_sync.context.fallback import fallback
from notebook_sync.context.kept import Asked, Kept, key_of
from notebook_sync.context.question import question
from notebook_sync.context.reasoner import Reasoner
from notebook_sync.context.truth import Truth, Weighed, read_truth, weigh
from notebook_sync.context.turns import MOST_WAITING, Turn, Turns
from notebook_sync.errors import BackendDown, LlmNotConfigured, NotebookError, SynthesisDown
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.syntheses import Outcome, Rested, Syntheses, Synthesis, Timing
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.memories.relations import KEPT
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

TOOL = "synthesize"
REFUSAL = "Syntheses are not available in this conversation"
LOCAL = "local"

Row = dict[str, Any]
Ingest = Callable[[object, Session], Row]


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a synthesis. `trouble` is why nobody reasoned, "" where somebody did; `warnings` are what else
    went wrong. `is_of_others`: somebody else was asking for it, and it was waited for."""

    synthesis_md: str
    synthesis_id: str
    source: str
    context_hash: str
    memories_used: Sequence[Mapping[str, Any]]
    links: Mapping[str, Any] = field(default_factory=lambda: {"ingested": [], "kept": [], "dropped": []})
    cached: bool = False
    trouble: str = ""
    warnings: Sequence[str] = ()
    is_of_others: bool = False

    @property
    def outcome(self) -> Outcome:
        if self.is_of_others:
            return "waited"
        return "hit" if self.cached else "failed" if self.source == LOCAL else "answered"

    def as_dict(self, calls_today: int, daily_limit: int) -> Row:
        """The shape that `--json` prints."""
        return {
            "synthesis_md": self.synthesis_md,
            "synthesis_id": self.synthesis_id,
            "source": self.source,
            "cached": self.cached,
            "context_hash": self.context_hash,
            "memories_used": [dict(one) for one in self.memories_used],
            "links": dict(self.links),
            "calls_today": calls_today,
            "daily_limit": daily_limit,
            "trouble": self.trouble,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class _Brief:
    """A brief, its key, and the state that the notes had before it was compiled."""

    compiled: Compiled
    key: str
    notes: str


class Synthesizing:
    """Of one notebook, for any number of threads and processes. `ingest` writes links down."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        compiler: Compiler,
        store: Callable[[], Syntheses],
        kept: Kept,
        turns: Turns,
        reasoner: Callable[[], Reasoner],
        ingest: Ingest,
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._compiler = compiler
        self._store = store
        self._kept = kept
        self._turns = turns
        self._reasoner = reasoner
        self._ingest = ingest

    def synthesize(
        self,
        task_spec: str,
        session: Session,
        options: Mapping[str, Any],
        *,
        refresh: bool = False,
        counts_use: bool = True,
    ) -> Row:
        """The synthesis for a task, that which is kept unless `refresh`; `options` are those of `Compiler.compile`.
        With `counts_use`, a use of what it rests on. Raises NotPermitted, UsageError, BackendDown, and NotebookError
        where nothing can be locked."""
        self.require(session)
        began = time.perf_counter()
        asked = Asked(task_spec, session, options, counts_use)
        at_once = None if refresh else self._kept.at_once(asked)
        told = self._answered(asked, refresh) if at_once is None else _told(at_once)
        with suppress(BackendDown):  # the answer is there all the same
            milliseconds = (time.perf_counter() - began) * 1000
            self._store().timed("synthesis", Timing(told.outcome, milliseconds))
        return told.as_dict(self.spent_today(), self._settings.tier2.daily_limit)

    def require(self, session: Session) -> None:
        """Raises NotPermitted for a session that may have none, LlmNotConfigured where there are none to have."""
        if session.kind == "external":
            self._guard.refuse(session, TOOL, REFUSAL)
        if not self._settings.tier2.enabled:
            raise LlmNotConfigured(
                "nobody is to reason about tasks here: below [tier2] in notebook.toml, set enabled = true, and command "
                "to what starts an MCP server with a tool ask_question; without a command, the model of [llm] is asked"
            )

    def spent_today(self) -> int:
        """How many questions were asked today. Raises BackendDown."""
        return self._store().spent(self._today())

    def _answered(self, asked: Asked, refresh: bool) -> Told:
        began, began_at = datetime.now(UTC), time.time()
        brief = self._compiled(asked, counts_use=asked.counts_use)
        if not refresh and (found := self._kept.find(asked, brief.compiled, brief.notes)):
            return _told(found)
        self._reasoner().require()
        with self._turns.place() as is_free:
            if not is_free:
                crowded = f"{MOST_WAITING} others are asking or waiting their turn in this process; ask again later"
                return _local(brief.compiled, crowded)
            return self._in_turn(asked, brief, began if refresh else None, began_at)

    def _in_turn(self, asked: Asked, brief: _Brief, since: datetime | None, began_at: float) -> Told:
        with self._turns.turn() as turn:
            if turn is None:
                waited = f"others were asking for {self._settings.tier2.timeout_seconds:g} seconds; ask again later"
                return _local(brief.compiled, waited)
            looked_for = brief.key
            if self._store().state() != brief.notes:  # what was written meanwhile are the links of who asked, at least
                brief = self._compiled(asked)
            if found := self._kept.find(asked, brief.compiled, brief.notes, since=since):
                # Of another brief it may have been there before; of the same it was not when it was looked for.
                is_of_others = brief.key == looked_for or found.made_at.timestamp() >= began_at
                return replace(_told(found), is_of_others=is_of_others)
            if trouble := turn.trouble_since(brief.key, began_at):
                return _local(brief.compiled, trouble)
            return self._asked_now(asked, brief, turn)

    def _asked_now(self, asked: Asked, brief: _Brief, turn: Turn) -> Told:
        reasoner, limit = self._reasoner(), self._settings.tier2.daily_limit
        what = question(brief.compiled.stable_brief, reasoner.question_characters)
        if not self._store().spend(self._today(), limit):
            return _local(
                brief.compiled,
                f"{limit:,} questions were asked today, and more may not be (daily_limit below [tier2] in "
                f"notebook.toml); ask again tomorrow, by the clock of {self._settings.notebook.timezone}",
            )
        answer, truth, trouble = "", Truth({}), f"{reasoner.name} failed at this in a way that nobody foresaw"
        try:
            answer = reasoner.ask(what)
            truth = read_truth(answer)
            trouble = f"{reasoner.name} did not answer what it was asked: {truth.trouble}" if truth.trouble else ""
        except SynthesisDown as down:
            trouble = str(down)
        finally:  # who waits is not to spend a call on the same, whatever it was
            turn.note(brief.key, trouble)
        if trouble:
            return _local(brief.compiled, trouble)
        synthesis_id = sha256(f"{brief.key} {answer}".encode(errors="replace")).hexdigest()[:12]
        return self._taken(asked, brief, truth, reasoner.kind, synthesis_id)

    def _taken(self, asked: Asked, brief: _Brief, truth: Truth, source: str, synthesis_id: str) -> Told:
        """What is told of an answer: its links are written down, and it is kept if nobody else changed what it rests
        on, before or since."""
        made_at, before = datetime.now(UTC), self._words_of(_rests_on(brief.compiled))
        weighed = weigh(truth, _names(brief.compiled), source, synthesis_id)
        links, warnings = self._ingested(weighed, asked.session)
        answer = Synthesis(
            brief.key,
            "",
            "",
            synthesis_id,
            truth.markdown(weighed.links),
            source,
            brief.compiled.context_hash,
            made_at,
            memories_used=tuple(one.as_dict() for one in brief.compiled.used),
            links=links,
        )
        try:
            # The links may be why others are chosen by now: the answer is theirs as well.
            now = self._compiled(asked) if links["ingested"] else brief
            said, others = self._as_now(brief.compiled, now.compiled)
            if before is None or self._words_of(said) != before:
                warnings.append("it is not kept: a memory that it rests on was changed meanwhile")
                return _told(answer, cached=False, warnings=warnings)
            self._kept.keep(answer, asked, now.compiled, now.notes, [*said, *others])
        except BackendDown as down:
            return _told(answer, cached=False, warnings=[*warnings, f"it is not kept: {down}"])
        return _told(answer, cached=False, warnings=warnings, context_hash=now.compiled.context_hash)

    def _as_now(self, brief: Compiled, now: Compiled) -> tuple[list[Rested], list[Rested]]:
        """The memories of a brief, as another says that they are now, or their files do; and those of that one
        alone."""
        found = {one.id: one for one in _rests_on(now)}
        said = []
        for one in _rests_on(brief):
            with suppress(NotebookError):
                now_is = found.pop(one.id) if one.id in found else None
                said.append(now_is or replace(one, digest=self._vault.digest(one.path) or ""))
        return said, list(found.values())

    def _ingested(self, weighed: Weighed, session: Session) -> tuple[Row, list[str]]:
        """What became of the links, and what went wrong: a reasoner's answer is not lost by that."""
        dropped = list(weighed.dropped)
        if not weighed.links:
            return {"ingested": [], "kept": [], "dropped": dropped}, []
        try:
            done = self._ingest(list(weighed.links), session)
        except NotebookError as error:
            dropped += [{"link": link, "reason": str(error)} for link in weighed.links]
            return {"ingested": [], "kept": [], "dropped": dropped}, [f"no link was written down: {error}"]
        dropped += done["dropped"]
        return {"ingested": done["ingested"], "kept": done["kept"], "dropped": dropped}, list(done.get("warnings", ()))

    def _words_of(self, memories: Sequence[Rested]) -> Mapping[str, object] | None:
        """By id, what each of these memories says in its file, but for its links; None where the file of one is no
        longer as it is said to be."""
        found = {}
        for used in memories:
            try:
                raw, _ = self._vault.read(used.path)
            except (FileNotFoundError, NotebookError):
                return None
            if sha256(raw).hexdigest() != used.digest:
                return None
            front = read_frontmatter(raw.decode(errors="replace"))
            found[used.id] = (front.content, {**front.metadata, "relations": None}, front.problem)
        return found

    def _compiled(self, asked: Asked, *, counts_use: bool = False) -> _Brief:
        notes = self._store().state()
        compiled = self._compiler.compile(asked.spec, asked.session, **asked.options, counts_use=counts_use)
        return _Brief(compiled, key_of(compiled, self._settings.tier2.notebook_id), notes)

    def _today(self) -> str:
        return datetime.now(self._settings.timezone).date().isoformat()


def _told(answer: Synthesis, *, cached: bool = True, warnings: Sequence[str] = (), context_hash: str = "") -> Told:
    return Told(
        answer.synthesis_md,
        answer.synthesis_id,
        answer.source,
        context_hash or answer.context_hash,
        answer.memories_used,
        _as_known(answer.links) if cached else answer.links,
        cached,
        "",
        warnings,
    )


def _as_known(links: Mapping[str, Any]) -> Row:
    """The links of an answer that was kept: they were written down when it came."""
    known = [{**link, "action": KEPT} for link in (*links["ingested"], *links["kept"])]
    return {"ingested": [], "kept": known, "dropped": links["dropped"]}


def _local(compiled: Compiled, trouble: str) -> Told:
    used = [one.as_dict() for one in compiled.used]
    return Told(fallback(compiled, trouble), "", LOCAL, compiled.context_hash, used, trouble=trouble)


def _rests_on(compiled: Compiled) -> list[Rested]:
    return [Rested(one.id, one.path, one.digest) for one in compiled.used]


def _names(compiled: Compiled) -> dict[str, str]:
    """The ids of the memories of a brief, by all that it names them by."""
    names = {path: one.id for one in compiled.used for path in (one.path, one.path.removesuffix(".md"))}
    return names | {one.id: one.id for one in compiled.used}
