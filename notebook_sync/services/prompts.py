"""The operations on the prompt and on the rules in it. They answer from the files and need no index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from notebook_sync import services
from notebook_sync.errors import NotebookError
from notebook_sync.registry import OWNER_ONLY, Arg, Results, found_any, operation
from notebook_sync.services.assembling import NO_CONTENTS, assemble, files_of
from notebook_sync.services.core import Core, NotebookService
from notebook_sync.services.trust import Trusted, accept_changes
from notebook_sync.sessions import OWNER, Session
from prompt import Found, Prompt

_LONGEST = 4_096

Extra = Annotated[str, Meta(max_length=64, extra_json_schema={"enum": ["refs", "facts", "notes"]})]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledPrompt:
    """A prompt. `revision` is the SHA-256, in hex, of the part that stays from call to call. `problems` are for people,
    never for a model. A part: name, path, digest, tokens_raw, tokens, cap, omitted, expired."""

    text: str
    tokens: int
    revision: str
    session: str
    parts: list[dict[str, Any]]
    problems: list[str]


class PromptService(NotebookService):
    """Assemble the prompt, and show what gets into it and why."""

    name = "prompts"

    def __init__(self, core: Core, brief_of: Callable[[str, Session, int], str] | None = None) -> None:
        """`brief_of` makes of a task what is shown of it, in at most so many tokens; None shows the task itself."""
        super().__init__(core)
        self._brief_of = brief_of

    @operation(
        "prompt",
        route="GET /prompt",
        asks="caller",
        shows="text",
        examples=(
            "notebook-sync prompt",
            "notebook-sync prompt --session external --max-tokens 4000 --json",
            "notebook-sync prompt --agent scribe --include refs,facts,notes --task 'Write the winter timetable'",
        ),
    )
    def prompt(
        self,
        session: Session = OWNER,
        *,
        max_tokens: Annotated[
            Annotated[int, Meta(ge=1, le=1_000_000)] | None, Meta(description="at most this many tokens"), Arg("N")
        ] = None,
        include: Annotated[
            Annotated[list[Extra], Meta(max_length=8)] | None,
            Meta(description="what to add: refs, facts, notes"),
            Arg("PARTS"),
        ] = None,
        task: Annotated[
            str, Meta(max_length=100_000, description="the agent's task, shown last"), Arg("TEXT", from_file=True)
        ] = "",
    ) -> AssembledPrompt:
        """Print the assembled system prompt.

        It is assembled from the files at each call and needs no database. Problems go to standard error, and the exit
        code is 0. While notebook.toml has an error, the last good settings are used. Anyone who can run commands as the
        owner can also read the files: --session protects nothing here.

        --include adds more in the space that the files leave: refs (recent notes, one line each, never of channels),
        facts (facts/notes.md) and notes (the latest private notes of --agent; none in an external session). Text of
        external provenance is fenced.

        Each of `parts` is a file: name, path, digest, tokens_raw (of the whole file), tokens (of what is shown), cap,
        omitted sections (anchor, heading, tokens) and expired entries (line, text, until).
        """
        found = self.assemble(session, max_tokens=max_tokens, include=include or (), task=task)
        cut = [
            f"{part.path}: {part.tokens_whole - part.tokens:,} of {part.tokens_whole:,} tokens are left out; "
            "shorten it, or raise its max_tokens"
            for part in found.parts
            if part.cut
        ]
        return AssembledPrompt(**{**found.as_json(), "problems": [*found.problems, *cut]})

    def assemble(
        self,
        session: Session = OWNER,
        *,
        max_tokens: int | None = None,
        include: Sequence[str] = (),
        task: str = "",
        contents: Mapping[str, bytes | None] = NO_CONTENTS,
    ) -> Prompt:
        """The prompt as an object, with the text of each part; `contents` are bytes that files are taken to have, None
        for no file. Raises ConfigError, UsageError, NoAgentNamed."""
        problem = ""
        if task.strip() and self._brief_of:
            limit = (max_tokens or files_of(self.core).settings.prompt.max_tokens) // 2
            try:
                task = self._brief_of(task, session, limit)
            except NotebookError as error:  # the task itself is shown
                problem = f"task: without what the notebook knows about it: {error}"
        found = assemble(self.core, session, max_tokens=max_tokens, include=include, task=task, contents=contents)
        return found._replace(problems=(*found.problems, problem)) if problem else found

    @operation(
        "explain",
        route="POST /explain",
        columns=("path", "line", "section", "in_prompt", "reason"),
        nothing_found="not found",
        exit_code=found_any,
        examples=('notebook-sync explain "Always respond"', "notebook-sync explain ferry --session external"),
    )
    def explain(
        self,
        text: Annotated[
            str, Meta(max_length=_LONGEST, description="some words of the notebook"), Arg("TEXT", positional=True)
        ],
        session: Session = OWNER,
    ) -> Results[Found]:
        """Show where a text is, and whether it reaches the prompt.

        For each place: file, line, section, whether the prompt has it, and if not, why: cap, comment, expired, upcoming
        (a rule that has not begun), payload, frontmatter, session filter, not yet parsed (the file is being written),
        quarantined (somebody else wrote it), waiting for trust, or not a prompt file. Case and spacing do not matter. A
        session finds only what it may see. The exit code is 1 if there is no such place.
        """
        return Results(services.check.explain_text(self.core, session, text))

    @operation(
        "check",
        route="GET /check",
        sessions=OWNER_ONLY,
        columns=("place", "severity", "message"),
        nothing_found="no problems",
        exit_code=lambda found: int(any(each.severity == "error" for each in found.results)),
        examples=("notebook-sync check",),
    )
    def check(self, session: Session = OWNER) -> Results[services.check.Finding]:
        """Find problems in the files.

        Entries of the runtime files that cannot be read, each with a correct example; expired rules; entries in
        comments that look active; comments and code blocks that are never closed. Prompt files that are missing or over
        their cap, and a prompt over max_tokens. Broken links, notes with the same id, conflict copies with the file to
        merge into, merge conflict marks, damaged files, lines that wait for `trust`. It changes nothing and needs no
        index.
        The exit code is 1 if a finding is an error.
        """
        return Results(services.check.find_problems(self.core))

    @operation(
        "rules",
        tool="notebook_rules",
        route="GET /rules",
        aliases={"who": "identity", "sender": "identity"},
        columns=("state", "name", "identity", "action", "until", "line"),
        nothing_found="no rule applies",
        hint="Ask before you reply to somebody.",
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
            Meta(max_length=_LONGEST, description="phone number, e-mail address, channel id or name"),
            Arg("WHO", positional=True),
        ] = "",
        session: Session = OWNER,
        *,
        channel: Annotated[str, Meta(max_length=_LONGEST, description="where they write"), Arg("CHANNEL")] = "",
    ) -> services.rules.Standing:
        """Show which rule applies to somebody now, and why.

        The rules are those of runtime/external-communications.md. Without an identity, all rules in force are listed.
        An identity may be written in any common form. A rule for the identity comes before one for everyone, a
        temporary rule before a permanent one, a dated one before an undated one, one for the channel before one for all
        channels; then the last in the file applies. A rule with a name alone also applies to the identities that other
        rules give this name. `unread` are lines that name the identity and cannot be read as rules: ask the owner then.
        """
        return services.rules.rule_for(self.core, session, identity, channel)

    @operation(
        "reminders",
        tool="notebook_reminders",
        route="GET /reminders",
        columns=("state", "when", "text", "every", "line"),
        nothing_found="no reminders",
        examples=("notebook-sync reminders", "notebook-sync reminders --due --json"),
    )
    def reminders(
        self,
        session: Session = OWNER,
        *,
        due: Annotated[bool, Meta(description="only those that are due or overdue")] = False,
    ) -> services.reminders.Reminders:
        """List reminders, the most urgent first.

        `state` is overdue (its day or time has passed), due (its time has come, today), upcoming, open (no date) or
        done. Dates are in the notebook's time zone. Reminders whose [until DATE] has passed, or that have not begun,
        are left out. `watch` and `serve` report each one once when it falls due. `unread` are lines that look like
        reminders and cannot be read; `problems` say why.
        """
        return services.reminders.list_reminders(self.core, session, due=due)

    @operation(
        "trust",
        sessions=OWNER_ONLY,
        effect="write",
        asks="caller",
        columns=("path", "lines", "accepted"),
        nothing_found="nothing waits for trust",
        examples=("notebook-sync trust --dry-run", "notebook-sync trust runtime/reminders.md --session owner --yes"),
    )
    def trust(
        self,
        file: Annotated[
            str,
            Meta(max_length=_LONGEST, description="a file of the prompt; default all"),
            Arg("FILE", positional=True),
        ] = "",
        session: Session = OWNER,
        *,
        dry_run: Annotated[bool, Meta(description="only show what waits")] = False,
        seen: Trusted | None = None,
    ) -> Trusted:
        """Show lines that are not trusted yet, and accept them.

        With prompt.trust = "committed", a prompt shows its files as in the last git commit, with what an owner session
        wrote and what this command accepted. The command prints the difference from the trusted versions, asks, and
        accepts. Without a terminal, --yes is required. A file that changes in the meantime is refused. Nothing is
        committed.
        """
        files_of(self.core)  # the last good settings, while notebook.toml has an error
        return accept_changes(self.core, session, file, dry_run=dry_run, seen=seen)
