"""The operations on facts: short statements that count for more with use, and for less without it.

`fact_rows` is what a session sees of them, `fact_changes` what changes their files.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from notebook_sync import services
from notebook_sync.registry import NOT_EXTERNAL, Arg, DryRun, Limit, Results, found_any, operation
from notebook_sync.services.core import NotebookService
from notebook_sync.sessions import OWNER, Session

_NO_CHANGES = "Facts are not changed in this conversation"
_LONGEST = 20_000

Scope = Annotated[Literal["notes", "core", "archive", "all"], Meta(description="where to look"), Arg("SCOPE")]
FactName = Annotated[str, Meta(max_length=_LONGEST, description="its id or its text"), Arg("FACT", positional=True)]
Heading = Annotated[str, Meta(max_length=256, description="heading of its section"), Arg("HEADING")]
# `list` is a method of the service, so these types are named outside it.
Messages = Annotated[
    list[dict[str, Any]],
    Meta(max_length=10_000, description='JSON, as [{"role": "user", "content": "…"}], the oldest first'),
    Arg("MESSAGES.json", positional=True, is_file=True),
]
TwoFacts = Annotated[
    Annotated[list[str], Meta(max_length=2, description="the ids of two facts that are not the same")] | None,
    Arg("ID,ID"),
]
OnlyTwo = Annotated[
    Annotated[list[str], Meta(max_length=2, description="the ids of two facts to merge")] | None, Arg("ID,ID")
]
_COLUMNS = ("id", "importance", "path", "content")


class FactService(NotebookService):
    """Short facts that count for more with use, and for less without it.

    A fact is one bullet of a file in facts/: core.md has those that last, archive.md those that were put away. Its
    importance, 0 to 1, is computed when it is asked for; a person may write it as <!-- importance: 0.9 -->.
    """

    name = "facts"

    @operation(
        "fact add",
        tool="fact_add",
        toolset="facts",
        route="POST /facts",
        creates=True,
        sessions=NOT_EXTERNAL,
        refusal=_NO_CHANGES,
        effect="write",
        asks="caller",
        hint="For one sentence that stays true: a name, a date, a preference.",
        examples=(
            "notebook-sync fact add 'The ferry leaves at eight' --importance high",
            "notebook-sync fact add 'Odile runs the ferry' --section 'People & Entities'",
        ),
    )
    def add(
        self,
        content: Annotated[
            str, Meta(max_length=_LONGEST, description="one sentence"), Arg("TEXT", positional=True, from_file=True)
        ],
        session: Session = OWNER,
        *,
        section: Heading = "Important Facts",
        importance: Annotated[
            str | float | None, Meta(description="core, high, medium, low, or a number from 0 to 1"), Arg("N")
        ] = None,
    ) -> services.fact_rows.ChangedFact:
        """Add a fact, or reinforce the one that says the same.

        The fact becomes a bullet at the end of its section in facts/notes.md; a missing section is added. If a fact
        says the same, in these or other words, that one is reinforced; an archived one is restored. Texts that differ
        in a number, a name, a date or a "not" are never the same.
        """
        return services.fact_keeping.add_fact(self.core, session, content, section=section, importance=importance)

    @operation(
        "fact list",
        route="GET /facts",
        columns=_COLUMNS,
        nothing_found="no facts; add one with: notebook-sync fact add TEXT",
        examples=("notebook-sync fact list", "notebook-sync fact list --scope all --section 'Key Topics' --json"),
    )
    def list(
        self,
        session: Session = OWNER,
        *,
        scope: Scope = "notes",
        section: Heading = "",
        stale: Annotated[bool, Meta(description="only facts that were not used for memory.stale_days (30)")] = False,
        fading: Annotated[
            int, Meta(ge=0, le=3_650, description="only facts that fade within so many days"), Arg("DAYS")
        ] = 0,
        proposed: Annotated[bool, Meta(description="only facts that are proposed to the owner for core.md")] = False,
        limit: Limit = 50,
        after: Annotated[str, Meta(max_length=64, description="`next` of the last page"), Arg("ID")] = "",
    ) -> Results[services.fact_rows.FactRow]:
        """List facts, the most important first.

        `scope`: core is core.md, archive is archive.md, notes are all other files. Nothing counts as used by this. A
        fact fades when its importance falls below memory.archive_below (0.05); it is archived then, unless somebody
        pinned it, or brought it back in the last memory.stale_days (30).
        """
        return services.fact_rows.list_facts(
            self.core,
            session,
            scope,
            limit=limit,
            section=section,
            stale=stale,
            fading=fading,
            proposed=proposed,
            after=after,
        )

    @operation(
        "fact search",
        tool="fact_search",
        toolset="facts",
        route="GET /facts/search",
        aliases={"q": "query"},
        unlisted=("scope",),
        columns=("score", *_COLUMNS),
        nothing_found="no fact matches; --scope all also searches core.md and archive.md",
        exit_code=found_any,
        examples=("notebook-sync fact search 'when does the ferry leave'",),
    )
    def search(
        self,
        query: Annotated[str, Meta(max_length=4_096), Arg("QUERY", positional=True)] = "",
        session: Session = OWNER,
        *,
        scope: Scope = "notes",
        limit: Limit = 10,
    ) -> Results[services.fact_rows.FoundFact]:
        """Search facts by words and meaning, best first.

        A fact that an agent finds counts as used: the best one, and each whose `similarity` is at least memory.related
        (0.6). Without a query, the most important facts come first. The exit code is 1 if nothing is found.
        """
        return services.fact_rows.search_facts(self.core, session, query, scope=scope, limit=limit)

    @operation(
        "fact verify",
        tool="fact_verify",
        toolset="facts",
        route="POST /facts/verify",
        hint="A related fact may contradict the claim.",
        examples=("notebook-sync fact verify 'The ferry leaves at eight'",),
    )
    def verify(
        self,
        content: Annotated[
            str, Meta(max_length=_LONGEST, description="the claim"), Arg("TEXT", positional=True, from_file=True)
        ],
        session: Session = OWNER,
    ) -> services.fact_rows.Verdict:
        """Check whether a claim is known: CONFIRMED, RELATED or NEW.

        CONFIRMED: a fact says so. RELATED: a similar fact is known, which may also contradict the claim. NEW: nothing
        similar is known. Archived facts do not count.
        """
        return services.fact_rows.verify_claim(self.core, session, content)

    @operation(
        "fact reinforce",
        tool="fact_reinforce",
        toolset="facts",
        route="POST /facts/reinforce",
        sessions=NOT_EXTERNAL,
        refusal=_NO_CHANGES,
        effect="write",
        asks="caller",
        examples=("notebook-sync fact reinforce 'The ferry leaves at eight'",),
    )
    def reinforce(self, fact: FactName, session: Session = OWNER) -> services.fact_rows.ChangedFact:
        """Reinforce a fact that proved right.

        Counts as a use, and adds 0.1 to its importance, unless it is pinned or in core.md. If no fact has exactly this
        text, the most similar one is meant, unless they differ in a number, a name, a date or a "not".
        """
        return services.fact_keeping.reinforce_fact(self.core, session, fact)

    @operation(
        "fact archive",
        route="POST /facts/archive",
        sessions=NOT_EXTERNAL,
        refusal=_NO_CHANGES,
        effect="write",
        asks="caller",
        examples=("notebook-sync fact archive 'The ferry leaves at eight' --reason 'the timetable changed'",),
    )
    def archive(
        self,
        fact: FactName,
        session: Session = OWNER,
        *,
        reason: Annotated[str, Meta(max_length=1_000, description="why, in a few words"), Arg("TEXT")] = "",
    ) -> services.fact_rows.ChangedFact:
        """Move a fact to facts/archive.md, with the date and the reason.

        It keeps its history, and `fact restore` brings it back.
        """
        return services.fact_keeping.archive_fact(self.core, session, fact, reason=reason)

    @operation(
        "fact restore",
        route="POST /facts/restore",
        sessions=NOT_EXTERNAL,
        refusal=_NO_CHANGES,
        effect="write",
        asks="caller",
        examples=("notebook-sync fact restore 'The toll is ten crowns'",),
    )
    def restore(self, fact: FactName, session: Session = OWNER) -> services.fact_rows.ChangedFact:
        """Move a fact from facts/archive.md back to the file and section that it came from.

        It gains 0.1 importance. A fact that came from a file that agents may not write goes to facts/notes.md.
        """
        return services.fact_keeping.restore_fact(self.core, session, fact)

    @operation(
        "fact promote",
        route="POST /facts/promote",
        sessions=NOT_EXTERNAL,
        refusal=_NO_CHANGES,
        effect="write",
        asks="caller",
        examples=("notebook-sync fact promote 'Odile runs the ferry' --section Relationships",),
    )
    def promote(
        self,
        fact: FactName,
        session: Session = OWNER,
        *,
        section: Annotated[str, Meta(max_length=256, description="heading of core.md"), Arg("HEADING")] = "",
        leave: Annotated[bool | None, Meta(description="leave it where it is, and propose it no more")] = None,
    ) -> services.fact_rows.ChangedFact:
        """Move a fact to facts/core.md, where its importance does not fade.

        core.md is in the prompt of the owner and of agents, and only the owner changes it. A task session proposes the
        fact instead: `action` is "proposed", and the event `fact_proposed` tells the owner. With --leave, a proposal is
        declined, and --no-leave takes that back; nothing moves then.
        """
        if leave is not None:
            return services.fact_keeping.leave_fact(self.core, session, fact, leave=leave)
        return services.fact_keeping.promote_fact(self.core, session, fact, section=section)

    @operation(
        "fact decay",
        route="POST /facts/decay",
        sessions=NOT_EXTERNAL,
        refusal=_NO_CHANGES,
        effect="write",
        asks="caller",
        examples=("notebook-sync fact decay --dry-run",),
    )
    def decay(self, session: Session = OWNER, *, dry_run: DryRun = False) -> services.fact_upkeep.Decayed:
        """Archive facts that faded, and propose proven ones for core.md.

        A fact whose importance is below memory.archive_below (0.05) moves to archive.md, at most ten of them at once,
        or a tenth of all facts. One above memory.promote_above (0.8) that was used memory.promote_accesses (3) times is
        proposed for core.md; with memory.promote = "auto" it moves there if the owner reinforced it, too.

        The process that follows the notebook does this every memory.recalculate_hours (6), and archives a fact when it
        finds it faded twice.
        """
        return services.fact_upkeep.decay_facts(self.core, session, dry_run=dry_run)

    @operation(
        "fact dedupe",
        route="POST /facts/dedupe",
        sessions=NOT_EXTERNAL,
        refusal=_NO_CHANGES,
        effect="write",
        asks="caller",
        examples=(
            "notebook-sync fact dedupe --dry-run",
            "notebook-sync fact dedupe --not-same 2bbbf0,bf3623",
        ),
    )
    def dedupe(
        self,
        session: Session = OWNER,
        *,
        dry_run: DryRun = False,
        not_same: TwoFacts = None,
        forget: Annotated[bool, Meta(description="take back that those of --not-same are not the same")] = False,
        merge: OnlyTwo = None,
    ) -> services.fact_upkeep.Deduped:
        """Merge facts that say the same, in these or other words.

        Each pair is shown with what differs: [-only in one-]{+only in the other+}. Texts that differ in a number, a
        name, a date, a choice or a "not" are never the same. The fact in core.md stays, or the pinned, the more
        important, the longer, the older one; it takes over the other's uses, and the other moves to archive.md. At most
        ten are merged at once, or a tenth.

        --not-same names two facts that are not the same: they are not shown again, and nothing is merged. --merge names
        two facts that are merged, and no others.
        """
        return services.fact_upkeep.dedupe_facts(
            self.core, session, dry_run=dry_run, not_same=not_same or (), forget=forget, merge=merge or ()
        )

    @operation(
        "fact extract",
        route="POST /facts/extract",
        sessions=NOT_EXTERNAL,
        refusal=_NO_CHANGES,
        effect="destructive",
        asks="caller",
        examples=("notebook-sync fact extract talk.json --dry-run",),
    )
    def extract(
        self, messages: Messages, session: Session = OWNER, *, dry_run: DryRun = False
    ) -> services.extract.Extracted:
        """Extract facts from a conversation with a language model.

        The last 20 messages count. New facts are added as by `fact add`, with an importance of 0.7 at most; facts that
        a person in the conversation says are no longer true are archived, at most five, and never those in core.md or
        pinned ones. All of it is one edit. The model is the one that [llm] of notebook.toml names; if its answer cannot
        be used, `error` says why and nothing is changed.
        """
        return services.extract.extract_facts(self.core, session, messages, dry_run=dry_run)

    @operation(
        "conversation end",
        tool="conversation_end",
        toolset="facts",
        route="POST /conversation",
        sessions=NOT_EXTERNAL,
        refusal=_NO_CHANGES,
        effect="destructive",
        asks="caller",
        hint="Call it once, when a conversation ends.",
        examples=("notebook-sync conversation end talk.json",),
    )
    def end_conversation(self, messages: Messages, session: Session = OWNER) -> services.extract.Extracted:
        """End a conversation: keep what it says that is worth knowing.

        The same as `fact extract` if [llm] of notebook.toml names a language model; else nothing is done, and `error`
        says so.
        """
        if not self.settings.llm.model.strip():
            return services.extract.Extracted(error="no language model is set, so nothing was extracted")
        return services.extract.extract_facts(self.core, session, messages)

    @property
    def store(self) -> services.fact_keeping.FactStore:
        """The calls of the flat-notes store, for the owner."""
        return services.fact_keeping.FactStore(self.core)
