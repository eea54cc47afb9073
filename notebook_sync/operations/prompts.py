"""The operations on the prompt and on the rules that go into it. A prompt is made from files; no store is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from notebook_sync.notes.finding import Finding
from notebook_sync.notes.runtime.answers import Standing, TrustedFile, WaitingLine
from notebook_sync.operations.registry import OWNER_ONLY, Cli, Model, Results, Service, operation
from notebook_sync.sessions import OWNER, Session

if TYPE_CHECKING:
    from notebook_sync.files.facts import Bullet
    from notebook_sync.notes.prompting.changes import PromptChanges
    from notebook_sync.notes.prompting.omitted import Omitted
    from notebook_sync.notes.runtime.due import Due
    from prompt import Prompt

_RULES, _REMINDERS = "runtime/external-communications.md", "runtime/reminders.md"
_NOT_YOURS = "The view of another session is only available in owner conversations"

MaxTokens = Annotated[int, Meta(ge=1, le=1_000_000, description="at most this many tokens"), Cli("N")]
Extra = Annotated[str, Meta(max_length=64, extra_json_schema={"enum": ["refs", "facts", "notes"]})]
Include = Annotated[list[Extra], Meta(max_length=8, description="what to add: refs, facts, notes"), Cli("PARTS")]
Task = Annotated[str, Meta(max_length=100_000, description="the agent's task, shown last"), Cli("TEXT", from_file=True)]
As = Annotated[
    str,
    Meta(max_length=128, description="for the owner: show the view of this session, such as task or external:scribe"),
    Cli("KIND[:AGENT]"),
]


class AssembledPrompt(Model):
    """`revision` is the SHA-256 of the stable part. `problems` are for the caller's log, not for the model."""

    text: str
    tokens: int
    revision: str
    session: str
    parts: list[dict[str, Any]]
    problems: list[str]


class Place(Model):
    """`reason` is why the text is not in the prompt. `last_good`: the place is in the earlier version of the file that
    the prompt shows."""

    path: str
    line: int
    section: str
    in_prompt: bool
    reason: str
    anchor: str
    last_good: bool


class Explanation(Model):
    found: list[Place]


class Reminder(Model):
    """`occurrence` identifies the reminder at this time."""

    line: int
    section: str
    kind: Literal["task", "recurring", "waiting"]
    text: str
    state: Literal["overdue", "due", "upcoming", "open", "done"]
    when: str | None
    every: str | None
    occurrence: str


class Reminders(Results[Reminder], kw_only=True):
    """`unread` are the lines that cannot be read as reminders."""

    unread: list[int]


class PromptService(Service):
    """Assemble the prompt, and show what gets into it and why"""

    name = "prompts"
    words = ""

    @operation(
        "prompt",
        route="GET /prompt",
        keeps_working=True,
        logged="problems",
        examples=(
            "notebook-sync prompt",
            "notebook-sync prompt --session external --max-tokens 4000 --json",
            "notebook-sync prompt --agent scribe --include refs,facts,notes --task 'Write the winter timetable'",
            "notebook-sync prompt --as task:scribe",
        ),
    )
    def prompt(
        self,
        session: Session = OWNER,
        *,
        max_tokens: MaxTokens | None = None,
        include: Include | None = None,
        task: Task = "",
        as_: As = "",
    ) -> AssembledPrompt:
        """Print the assembled system prompt.

        It is assembled from the files at each call and needs no database. While notebook.toml has an error, the command
        line uses the last good settings. Problems go to standard error, and the exit code is 0. Anyone who can run
        commands as the owner's user can also read the files: --session protects nothing here.

        --include adds more after the files, in the space that they leave: refs (title, summary, id and status of recent
        notes, never of channels), facts (facts/notes.md) and notes (the latest private notes of --agent; none in an
        external session). Notes with `provenance: external` are fenced. Refs come from the mirror; they are left out if
        it does not answer in time.

        Each of `parts` is a file with its name, path, digest, tokens_raw (of the whole file), tokens (of what is
        shown), cap, omitted sections (anchor, heading, tokens) and expired entries (line, text, until).
        """
        found = self.assemble(session, max_tokens=max_tokens, include=include or (), task=task, as_=as_)
        return AssembledPrompt(**found.as_json(), problems=list(found.problems))

    def assemble(
        self,
        session: Session = OWNER,
        *,
        max_tokens: int | None = None,
        include: Sequence[str] = (),
        task: str = "",
        as_: str = "",
    ) -> Prompt:
        """The prompt as an object, with the text of each part."""
        from notebook_sync.notes.prompting.volatile import LIMIT_OF_REFS, Wish
        from notebook_sync.notes.showing import prompt_shown_to

        wiring, view = self.wiring, self._view(session, as_, "prompt")
        timeout = wiring.settings.mirror.timeout_seconds

        def recent() -> Sequence[str]:
            from notebook_sync.notes.prompting.recent import recent_paths

            return recent_paths(lambda: wiring.mirror, LIMIT_OF_REFS, timeout)

        def weigh(facts: Sequence[Bullet]) -> Mapping[str, float]:
            from notebook_sync.notes.prompting.fact_choice import weights

            return weights(lambda: wiring.fact_rows, facts, timeout)

        wish = Wish(tuple(include), task, recent, weigh)
        assembled = wiring._system_prompt.assemble(view, max_tokens=max_tokens, wish=wish)
        return prompt_shown_to(view, assembled, wiring.settings.prompt)

    @operation(
        "explain",
        route="POST /explain",
        examples=('notebook-sync explain "Always respond" --session task', "notebook-sync explain ferry --as external"),
    )
    def explain(
        self,
        text: Annotated[
            str, Meta(max_length=4_096, description="any text of the notebook"), Cli("TEXT", positional=True)
        ],
        session: Session = OWNER,
        *,
        as_: As = "",
    ) -> Explanation:
        """Show where a text is, and whether it reaches the prompt.

        For each place: the file, the line, the section, and whether the prompt shows it; if not, what removed it and
        how to get it in. Case and spacing do not matter, and a comment that the prompt leaves out does not divide the
        text. `reason` is cap, comment, expired, upcoming (a rule that has not begun), frontmatter, session filter, not
        yet parsed (the file is being written), quarantined (somebody else wrote it), waiting for trust, or not a prompt
        file. Only places that the session may read are listed. The exit code is 1 if there are none.
        """
        wiring, view = self.wiring, self._view(session, as_, "explain")
        found = wiring._system_prompt.explain(text, view, partial(wiring.guard.permitted, session, "read"))
        found = list(wiring._listing.places_told(found, text, session, is_own=view == session))
        return Explanation(msgspec.convert(found, list[Place], from_attributes=True))

    @operation(
        "check",
        route="GET /check",
        asks="owner",
        sessions=OWNER_ONLY,
        refusal="Only the notebook's owner may ask for this",
        examples=("notebook-sync check",),
    )
    def check(self, session: Session = OWNER) -> Results[Finding]:
        """Find problems in the files.

        Entries of the runtime files that do not follow the grammar, expired rules, entries in comments that look
        active, comments and code blocks that are never closed. Prompt files that are missing or over their cap, pinned
        sections over the cap on their own, a whole prompt over max_tokens. Broken links, duplicate ids, names that
        other systems confuse, merge conflict markers, NUL bytes, lines that wait for `trust`. It changes nothing and
        needs no database. `line` is 0 for a whole file. The exit code is 1 only if a finding is an error.
        """
        waiting = [
            Finding(one.path, one.line, "warning", f"{one.what} waits for trust: notebook-sync trust {one.path}")
            for one in self.waiting_for_trust()
        ]
        found = self.wiring._checks.findings(self.wiring.settings.local_now())
        return Results(results=sorted([*found, *waiting]))

    @operation(
        "rules",
        tool="notebook_rules",
        route="GET /rules",
        asks="reader",
        examples=(
            "notebook-sync rules odile@ferry.example",
            "notebook-sync rules '+00 555 0142' --channel deck-crew",
            "notebook-sync rules",
        ),
    )
    def rules(
        self,
        identity: Annotated[
            str,
            Meta(max_length=4_096, description="phone, e-mail, channel id or name"),
            Cli("WHO", positional=True),
        ] = "",
        session: Session = OWNER,
        *,
        channel: Annotated[str, Meta(max_length=4_096, description="where they write"), Cli("C")] = "",
    ) -> Standing:
        """Show which rule applies to somebody now, and why.

        The rules are those of runtime/external-communications.md. WHO is a phone number, an e-mail address or a
        channel's id in any common spelling, or a name; without it, all rules in force are listed. A rule for the
        identity comes before one for everyone, a temporary rule before a permanent one, a dated one before an undated
        one, one for --channel before one for all channels; then the last in the file applies. A rule that has only a
        name also applies to the identities that other rules give this name. `until` is the last day, or the time at
        which the rule ends. `unread` are lines that name the identity and cannot be read as rules, and merge conflict
        markers.
        """
        self.wiring.guard.require(session, "read", _RULES, "rules")
        standing = self.wiring._agenda.rules_for(identity, session, channel)
        lack = None if standing.rule or standing.unread else self._lack(_RULES)
        return msgspec.structs.replace(standing, reason=lack or standing.reason)

    @operation(
        "reminders",
        tool="notebook_reminders",
        route="GET /reminders",
        asks="reader",
        unlisted=("due",),
        examples=("notebook-sync reminders", "notebook-sync reminders --due --json"),
    )
    def reminders(
        self,
        session: Session = OWNER,
        *,
        due: Annotated[bool, Meta(description="only those that are due or overdue")] = False,
    ) -> Reminders:
        """List reminders, the most urgent first.

        `state` is overdue (its day or time has passed), due (its time has come, today), upcoming, open (no date) or
        done. Dates and times are in the notebook's timezone. Reminders whose [until DATE] has passed, or that have not
        begun, are left out. `watch` and `serve` report each one once when it falls due. `unread` are the lines that
        cannot be read as reminders; `check` says why.
        """
        unread = self.unread_reminders(session)
        found = [one.as_dict() for one in self.wiring._agenda.reminders(due=due)]
        lack = None if found or unread else self._lack(_REMINDERS)
        return Reminders(results=msgspec.convert(found, list[Reminder]), degraded=lack, unread=unread)

    def unread_reminders(self, session: Session = OWNER) -> list[int]:
        """The lines of reminders.md under the headings of reminders that cannot be read as reminders."""
        self.wiring.guard.require(session, "read", _REMINDERS, "reminders")
        return list(self.wiring._agenda.unread_reminders())

    def tell_due(self) -> Sequence[Due]:
        """Record an event for each reminder that has fallen due since the last call of any process."""
        return self.wiring._alarm.ring()[0]

    @operation(
        "trust",
        sessions=OWNER_ONLY,
        refusal="Notebook editing is only available in owner conversations",
        effect="write",
        examples=("notebook-sync trust --dry-run", "notebook-sync trust runtime/reminders.md --session owner --yes"),
    )
    def trust(
        self,
        file: Annotated[
            str, Meta(max_length=4_096, description="a file of the prompt, default all"), Cli("FILE", positional=True)
        ] = "",
        session: Session = OWNER,
        *,
        dry_run: Annotated[bool, Meta(description="only show what waits")] = False,
        seen: Results[TrustedFile] | None = None,
    ) -> Results[TrustedFile]:
        """Show lines that are not trusted yet, and accept them.

        With prompt.trust = "committed", a prompt shows its files as in the last git commit, with what `notebook_edit`
        wrote in an owner session and what this command accepted. For each file with waiting lines it prints the
        difference from the trusted version, asks, and accepts. Without a terminal, --yes is required. It commits
        nothing. A file that changes in the meantime is refused.
        """
        digests = None if seen is None else {one.path: one.digest for one in seen.results}
        return Results(results=self.wiring._trusting.accept(session, file, dry_run=dry_run, expected_digests=digests))

    def waiting_for_trust(self) -> list[WaitingLine]:
        """The lines of the prompt's files that wait for trust. Empty unless `prompt.trust` is "committed"."""
        return [line for one in self.wiring._system_prompt.untrusted() for line in one.lines]

    def omitted(
        self, name: str, session: Session = OWNER, *, section: str = "", max_tokens: int = 0, offset: int = 0
    ) -> Omitted:
        """What the session's prompt leaves out of one of its files, or of a section with everything below it. `name` is
        the file's path and may end in `#section`, as in an omission line. With `max_tokens`, one page from `offset`."""
        from notebook_sync.notes.prompting.omitted import omitted_of

        return omitted_of(self.assemble(session), name, section, max_tokens=max_tokens, offset=offset)

    def prompt_changes(self) -> PromptChanges:
        """Compares the owner's prompt before and after each save that it is given."""
        from notebook_sync.notes.prompting.changes import PromptChanges

        return PromptChanges(self.wiring._system_prompt)

    def _view(self, session: Session, as_: str, tool: str) -> Session:
        """The session whose view is shown. Raises UsageError, NotPermitted."""
        kind, _, agent = as_.partition(":")
        view = Session.named(kind, agent) if as_ else session
        if view != session and session.kind != "owner":
            self.wiring.guard.refuse(session, tool, _NOT_YOURS)
        return view

    def _lack(self, path: str) -> str | None:
        """What to do if a runtime file does not exist; None if it does."""
        from notebook_sync.lookup import not_there

        return None if os.path.lexists(self.wiring.root / path) else not_there(path)
