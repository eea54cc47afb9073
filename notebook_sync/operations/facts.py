"""The operations on facts, and the parts of the notebook that carry them out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.operations.registry import NOT_EXTERNAL, SVG, Cli, Limit, Model, Results, Service, operation
from notebook_sync.parts import part
from notebook_sync.sessions import OWNER, Session

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

# Where a fact goes that names no section.
IMPORTANT = "Important Facts"
_NOT_CHANGED = "Facts are not changed in this conversation"
_LONGEST_SHOWN = 400

Scope = Annotated[Literal["notes", "core", "archive", "all"], Meta(description="where to look"), Cli("SCOPE")]
FactName = Annotated[str, Meta(max_length=4_096, description="its id or its text"), Cli("FACT", positional=True)]
Content = Annotated[str, Meta(description="one sentence"), Cli("TEXT", positional=True, from_file=True)]
Heading = Annotated[str, Meta(max_length=256)]
DryRun = Annotated[bool, Meta(description="only show the changes")]


class Fact(Model, kw_only=True):
    """A fact. `importance` is its weight now, `base` its weight without use and age; both are from 0 to 1.
    `similarity` is to what was searched for. `provenance` is "external" for somebody else's words.
    """

    note_id: str
    content: str
    section: str
    path: str
    line: int
    importance: float
    base: float
    access_count: int
    created_at: datetime
    last_accessed: datetime | None
    pinned: bool
    core: bool
    similarity: float | None = None
    provenance: str | None = None

    def for_model(self) -> Fact:
        """A long text is cut; somebody else's is fenced, and the heading above it withheld."""
        from prompt import fence_external  # it loads the assembler, which the command line does not need

        is_long = len(self.content) > _LONGEST_SHOWN
        text = f"{self.content[: _LONGEST_SHOWN - 1].rstrip()}…" if is_long else self.content
        if self.provenance != EXTERNAL:
            return msgspec.structs.replace(self, content=text)
        return msgspec.structs.replace(self, content=fence_external(text, EXTERNAL), section="")


class ChangedFact(Fact, kw_only=True):
    """A fact after a change. `action`: added, reinforced, archived, restored, promoted or proposed. `moved`: whether
    the fact was written to `path` by this change. `created`: whether this also created the file."""

    action: str
    moved: bool = False
    created: bool = False
    warnings: list[str] = msgspec.field(default_factory=list)


class Verdict(Model):
    """`matches` are the facts that the claim was compared with, the nearest first; `degraded` says why only words
    were compared."""

    verdict: Literal["CONFIRMED", "RELATED", "NEW"]
    similarity: float
    matches: list[Fact]
    degraded: str | None = None


class Decayed(Model):
    archived: list[Fact]
    promoted: list[Fact]
    proposed: list[Fact]


class Pair(Model):
    """`how` the two were found to say the same: words, contained or meaning."""

    keep: Fact
    drop: Fact
    similarity: float
    how: str


class Deduped(Model):
    pairs: list[Pair]
    merged: int
    warnings: list[str] = msgspec.field(default_factory=list)


class Message(Model, forbid_unknown_fields=True):
    role: Annotated[str, Meta(max_length=4_096)]
    content: str


class Skipped(Model):
    what: str
    text: str
    reason: str


class Extracted(Model):
    """`error` says why the model's answer could not be used; then nothing was changed."""

    additions: list[ChangedFact]
    removals: list[ChangedFact]
    skipped: list[Skipped]
    summary: str
    applied: bool
    error: str | None = None
    warnings: list[str] = msgspec.field(default_factory=list)


Messages = Annotated[list[Message], Meta(max_length=200, description="oldest first"), Cli("MESSAGES.json")]


class FactService(Service):
    """Short facts that gain weight with use and fade without it

    A fact is one bullet of a file in facts/: notes.md or any other, core.md for lasting ones, archive.md for old ones.
    Add, change, move or delete bullets by hand as you like. Changes made with these commands are ordinary edits, which
    `undo` reverts. See docs/facts.md.

    A fact's importance, from 0 to 1, is computed when it is needed: it rises with use and falls with time. Facts in
    core.md do not fade.
    """

    name = "facts"
    words = "fact"
    examples = (
        "notebook-sync fact add 'The ferry leaves at eight' --importance high",
        "notebook-sync fact list",
        "notebook-sync fact search 'when does the ferry leave'",
    )

    @operation(
        "fact add",
        tool="fact_add",
        route="POST /facts",
        sessions=NOT_EXTERNAL,
        refusal=_NOT_CHANGED,
        effect="write",
        creates=True,
        hint="For what stays true: names, dates, preferences.",
        examples=(
            "notebook-sync fact add 'The ferry leaves at eight' --importance high",
            "notebook-sync fact add 'Odile runs the ferry' --section 'People & Entities' --agent scribe",
            "notebook-sync fact add --content-file fact.txt",
        ),
    )
    def add(
        self,
        content: Content,
        session: Session = OWNER,
        *,
        section: Annotated[Heading, Meta(description="heading, created if missing")] = IMPORTANT,
        importance: Annotated[str | float, Meta(description="core, high, medium, low, or 0 to 1"), Cli("N")]
        | None = None,
    ) -> ChangedFact:
        """Add a fact, or reinforce one that says the same.

        The fact becomes a bullet at the end of its section in facts/notes.md. If a fact says the same, in these or
        other words, that one is reinforced instead; if it was archived, it is restored. Texts that differ in a number,
        a name, a date or a `not` are never the same.
        """
        return _changed(self._intake.add(content, session, section=section, importance=importance))

    @operation(
        "fact list",
        route="GET /facts",
        nothing_found="no facts match; add one with: notebook-sync fact add TEXT",
        examples=(
            "notebook-sync fact list",
            "notebook-sync fact list --scope all --section 'Key Topics' --stale --json",
        ),
    )
    def list(
        self,
        session: Session = OWNER,
        *,
        scope: Scope = "notes",
        section: Annotated[Heading, Meta(description="only facts under this heading")] = "",
        stale: Annotated[bool, Meta(description="only facts unused for memory.stale_days (30)")] = False,
        limit: Limit = 50,
    ) -> Results[Fact]:
        """List facts, the most important first."""
        return _rows(self._facts.list(session, scope=scope, section=section, stale=stale, limit=limit))

    @operation(
        "fact search",
        tool="fact_search",
        route="GET /facts/search",
        nothing_found="no fact matches; --scope all also searches core.md and archive.md",
        unlisted=("scope",),
        hint="Without a query, the most important.",
        examples=(
            "notebook-sync fact search 'when does the ferry leave'",
            "notebook-sync fact search Odile --scope all --limit 3 --json",
        ),
    )
    def search(
        self,
        query: Annotated[
            str, Meta(max_length=4_096, description="words or a question"), Cli("QUERY", positional=True)
        ] = "",
        session: Session = OWNER,
        *,
        scope: Scope = "notes",
        limit: Limit = 10,
    ) -> Results[Fact]:
        """Search facts by meaning and words, best first.

        A fact that an agent finds counts as used, unless the session is external. `similarity` is from 0 to 1. Without
        a query, the most important facts come first.
        """
        if not query.strip():
            return self.list(session, scope=scope, limit=limit)
        found = self._facts.search(query, session, scope=scope, limit=limit)
        return _rows(found, found.degraded)

    @operation(
        "fact verify",
        tool="fact_verify",
        route="POST /facts/verify",
        hint="RELATED facts may contradict it.",
        examples=("notebook-sync fact verify 'The ferry leaves at eight'", "notebook-sync fact verify - --json"),
    )
    def verify(
        self,
        content: Annotated[str, Meta(description="the claim"), Cli("TEXT", positional=True, from_file=True)],
        session: Session = OWNER,
    ) -> Verdict:
        """Check whether a claim is known: CONFIRMED, RELATED or NEW.

        CONFIRMED: a fact says so. RELATED: a similar fact is known, which may also contradict the claim. NEW: nothing
        similar is known.
        """
        found = self._facts.verify(content, session)
        return msgspec.convert({**found, "degraded": found["degraded"] or None}, Verdict)

    @operation(
        "fact reinforce",
        tool="fact_reinforce",
        route="POST /facts/reinforce",
        sessions=NOT_EXTERNAL,
        refusal=_NOT_CHANGED,
        effect="write",
        examples=(
            "notebook-sync fact reinforce 9f86d081884c7d65",
            "notebook-sync fact reinforce 'The ferry leaves at eight'",
        ),
    )
    def reinforce(self, fact: FactName, session: Session = OWNER) -> ChangedFact:
        """Reinforce a fact that proved right.

        Adds 0.1 to its importance and counts as a use. A text that no fact has exactly names the most similar one, if
        one is clearly the most similar.
        """
        return _changed(self._facts.reinforce(fact, session))

    @operation(
        "fact decay",
        route="POST /facts/decay",
        effect="write",
        examples=("notebook-sync fact decay --dry-run", "notebook-sync fact decay --session owner"),
    )
    def decay(self, session: Session = OWNER, *, dry_run: DryRun = False) -> Decayed:
        """Archive faded facts, and promote proven ones.

        Facts below memory.archive_below (0.05) move to archive.md. Facts above memory.promote_above (0.8) that were
        used memory.promote_accesses (3) times are proposed for core.md; with memory.promote = "auto" they move there if
        the owner reinforced them too. `watch` and `serve` do this every memory.recalculate_hours (6).
        """
        return msgspec.convert(self._decay.decay(session, dry_run=dry_run), Decayed)

    @operation(
        "fact archive",
        route="POST /facts/archive",
        effect="write",
        examples=("notebook-sync fact archive 9f86d081884c7d65 --reason 'the timetable changed'",),
    )
    def archive(
        self,
        fact: FactName,
        session: Session = OWNER,
        *,
        reason: Annotated[Heading, Meta(description="why, in a few words")] = "",
    ) -> ChangedFact:
        """Move a fact to archive.md.

        It keeps its history, the date and the reason. `fact restore` brings it back.
        """
        return _changed(self._changes.archive(fact, session, reason=reason))

    @operation(
        "fact restore",
        route="POST /facts/restore",
        effect="write",
        examples=("notebook-sync fact restore 'The ferry leaves at eight'",),
    )
    def restore(self, fact: FactName, session: Session = OWNER) -> ChangedFact:
        """Restore a fact from archive.md.

        It returns to the file and section it came from, and gains 0.1 importance.
        """
        return _changed(self._changes.restore(fact, session))

    @operation(
        "fact promote",
        route="POST /facts/promote",
        effect="write",
        examples=(
            "notebook-sync fact promote 9f86d081884c7d65 --session owner",
            "notebook-sync fact promote 'Odile runs the ferry' --section Relationships --session owner",
        ),
    )
    def promote(
        self,
        fact: FactName,
        session: Session = OWNER,
        *,
        section: Annotated[Heading, Meta(description="heading of core.md to put it under")] = "",
    ) -> ChangedFact:
        """Move a fact to core.md, where it does not fade.

        core.md is in every prompt of the owner and of agents, and only the owner changes it. A task session proposes
        the fact instead (`action` is "proposed"); `fact decay` lists proposals.
        """
        return _changed(self._changes.promote(fact, session, section=section))

    @operation(
        "fact dedupe",
        route="POST /facts/dedupe",
        effect="write",
        nothing_found="no two facts say the same",
        examples=("notebook-sync fact dedupe --dry-run", "notebook-sync fact dedupe --session owner"),
    )
    def dedupe(self, session: Session = OWNER, *, dry_run: DryRun = False) -> Deduped:
        """Merge facts that say the same.

        Of two facts the more important one stays. It takes over the other's uses, the earlier date and the history;
        the other moves to archive.md.
        """
        return msgspec.convert(self._dedupe.dedupe(session, apply=not dry_run), Deduped)

    @operation(
        "fact extract",
        route="POST /facts/extract",
        sessions=NOT_EXTERNAL,
        refusal=_NOT_CHANGED,
        effect="destructive",
        open_world=True,
        examples=(
            "notebook-sync fact extract messages.json --dry-run",
            "notebook-sync fact extract - --agent scribe",
        ),
    )
    def extract(
        self,
        messages: Messages,
        session: Session = OWNER,
        *,
        dry_run: DryRun = False,
    ) -> Extracted:
        """Extract facts from a conversation with a language model.

        The messages are JSON as chat APIs take them, [{"role": "user", "content": "…"}]; the last 20 count. Set up an
        OpenAI-compatible model in [llm] of notebook.toml (docs/facts.md). New facts are added as by `fact add`. Facts
        that somebody in the conversation says no longer hold are archived, but never facts in core.md.
        """
        found = self._extracting.extract(msgspec.to_builtins(messages), session, dry_run=dry_run).as_dict()
        return msgspec.convert({**found, "error": found["error"] or None}, Extracted)

    @operation(
        "fact plot",
        route="GET /facts/plot",
        media=SVG,
        examples=("notebook-sync fact plot facts.svg", "notebook-sync fact plot facts.svg --days 30 --limit 5"),
    )
    def plot(
        self,
        session: Session = OWNER,
        *,
        days: Annotated[int, Meta(ge=1, le=3_650, description="how far back"), Cli("N")] = 90,
        limit: Annotated[int, Meta(ge=1, le=24, description="how many facts"), Cli("N")] = 12,
    ) -> str:
        """Draw the importance of facts over time as an SVG.

        One line for each of the most important facts outside core.md, with its uses, as far back and ahead as `days`.
        The picture has no script and loads nothing.
        """
        from notebook_sync.notes.facts.plot import plot

        facts = self._reach.seen(session, "notes").facts
        return plot(facts, datetime.now(UTC), self.wiring.settings.memory, days=days, limit=limit)

    # The parts.

    @part
    def _reach(self) -> FactReach:
        from notebook_sync.notes.facts.reach import FactReach

        wiring = self.wiring
        return FactReach(
            wiring.vault, wiring.settings, wiring.guard, lambda: wiring.fact_rows, lambda: wiring._fact_sync.follow()
        )

    @part
    def _silence(self) -> Silence:
        from notebook_sync.patience import Silence

        return Silence()

    @part
    def _near(self) -> FactNear:
        from notebook_sync.notes.facts.near import FactNear
        from notebook_sync.patience import soon
        from notebook_sync.sync.facts import embed_facts

        wiring = self.wiring
        patience, hurry = soon(wiring.settings.mirror.timeout_seconds), soon(wiring.settings.search.timeout_seconds)
        return FactNear(lambda: wiring.fact_rows, lambda: wiring.embedder, embed_facts, self._silence, patience, hurry)

    @part
    def _facts(self) -> Facts:
        from notebook_sync.notes.facts.facts import Facts

        wiring = self.wiring
        return Facts(wiring.settings.memory, wiring.guard, self._reach, self._near, lambda: wiring.fact_rows)

    @part
    def _changes(self) -> FactChanges:
        from notebook_sync.notes.facts.changes import FactChanges

        wiring = self.wiring
        return FactChanges(
            wiring.vault,
            wiring.settings,
            wiring.guard,
            wiring.events,
            wiring._editing,
            self._reach,
            self._facts,
            self._silence,
        )

    @part
    def _intake(self) -> FactIntake:
        from notebook_sync.notes.facts.intake import FactIntake

        return FactIntake(self.wiring.vault, self.wiring.guard, self._near, self._changes)

    @part
    def _decay(self) -> FactDecay:
        from notebook_sync.notes.facts.decay import FactDecay

        return FactDecay(self.wiring.settings.memory, self.wiring.guard, self._reach, self._changes)

    @part
    def _dedupe(self) -> FactDedupe:
        from notebook_sync.notes.facts.dedupe import FactDedupe

        wiring = self.wiring
        return FactDedupe(
            wiring.settings.memory, wiring.guard, self._reach, self._near, self._changes, lambda: wiring.fact_rows
        )

    @part
    def _extracting(self) -> Extracting:
        from notebook_sync.notes.facts.batch import FactBatch
        from notebook_sync.notes.facts.extract import Extracting

        wiring = self.wiring
        batch = FactBatch(wiring.vault, self._reach, self._near, self._changes)
        return Extracting(wiring.guard, wiring.llm, batch, wiring.settings.prompt.encoding)


def _changed(row: dict[str, Any]) -> ChangedFact:
    return msgspec.convert(row, ChangedFact)


def _rows(rows: object, degraded: str = "") -> Results[Fact]:
    return Results(results=msgspec.convert(rows, list[Fact]), degraded=degraded or None)
