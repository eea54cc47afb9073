"""The operations that look after the notebook, and the parts that carry them out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from notebook_sync import config
from notebook_sync.errors import BackendDown, UsageError
from notebook_sync.folder import FOLDER
from notebook_sync.mirror.base import LARGEST_LIMIT
from notebook_sync.notes.archive.exported import Exported
from notebook_sync.operations.registry import Cli, Limit, Model, Results, Service, operation
from notebook_sync.parts import part
from notebook_sync.search.embedded import Embedded
from notebook_sync.sessions import OWNER, Kind, Session
from notebook_sync.sync.report import Verdict

if TYPE_CHECKING:
    from notebook_sync.events import Event
    from notebook_sync.notes.archive.archive import Archive
    from notebook_sync.search.embedding import Following
    from notebook_sync.tokens import Tokens

Progress = Callable[[int, int], None]

_OWNER_ONLY: frozenset[Kind] = frozenset({"owner"})
_REFUSED = "Only the notebook's owner may ask for this"

AgentName = Annotated[str, Meta(max_length=64, description="the agent's name"), Cli("NAME", positional=True)]


class FailedFile(Model):
    path: str
    error: str


class SyncReport(Model):
    """`failed` are files that were refused and are not mirrored as they are. `refs_trouble` says why hot memory could
    not be written, `facts_trouble` why the rows of facts could not. `embedded` is there if embeddings were built."""

    added: int
    updated: int
    moved: int
    deleted: int
    unchanged: int
    failed: list[FailedFile]
    seconds: float
    refs_trouble: str | None = None
    facts_trouble: str | None = None
    embedded: Embedded | None = None


class SearchState(Model):
    """How many notes and facts have embeddings and how many are behind. The model refuses `facts_refused`: they are
    found by their words. `trouble` says why the last run failed."""

    model: str
    embedded: int | None
    behind: int | None
    facts_behind: int | None
    facts_refused: int | None
    trouble: str


class Status(Model):
    """`mirror` and `refs` have at least name, ok and error. What a database that is down would say is null."""

    root: str
    name: str
    mirror: dict[str, Any]
    refs: dict[str, Any]
    behind: int | None
    lag_seconds: float | None
    last_reconcile: str | None
    watcher: dict[str, Any] | None
    stale: list[FailedFile]
    search: SearchState | None
    prompt: dict[str, Any]
    sessions: dict[str, Any]
    waiting: list[dict[str, Any]]


class Setting(Model):
    key: str
    value: Any
    source: str


class Resolved(Model):
    """The settings in force, passwords masked. `source` is notebook.toml, the name of a variable, or default."""

    root: str
    file: str | None
    settings: list[Setting]


class Token(Model):
    """A list has `created_at`, and never the `token` itself."""

    name: str
    session: Kind
    created_at: str = ""
    token: str = ""


class Revoked(Model):
    name: str
    revoked: bool


class LoginLink(Model):
    """The link can be used once, for so many seconds."""

    link: str
    seconds: int


class AdminService(Service):
    """Looking after the notebook: sync, status, verify, archives, tokens"""

    name = "admin"
    words = ""
    groups: ClassVar[Mapping[str, str]] = {"token": "Manage the tokens of `serve`"}

    @operation(
        "sync",
        route="POST /sync",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        effect="write",
        idempotent=True,
        asks="owner",
        examples=("notebook-sync sync", "notebook-sync -C ~/notebook sync --json"),
    )
    def sync(
        self,
        session: Session = OWNER,
        *,
        allow_empty: Annotated[bool, Meta(description="let a folder without notes empty the mirror")] = False,
        embed: Annotated[bool, Meta(description="build missing embeddings"), Cli(is_on=True)] = False,
        progress: Progress | None = None,
    ) -> SyncReport:
        """Sync files to the database once.

        Files that fail to parse are reported, and the exit code is 1; their last good version stays. If no known note
        is found, nothing is deleted, because an unmounted disk looks the same; --allow-empty deletes them. If only the
        refs or the rows of facts could not be written, the exit code is 4, and the JSON has `refs_trouble` or
        `facts_trouble`.

        At the end, missing embeddings are built if search.embeddings is on, and the JSON has `embedded`; its `trouble`
        says why that failed. It does not change the exit code.
        """
        synced = self._reconcile(allow_empty=allow_empty, progress=progress)
        if embed and self.wiring.settings.search.embeddings != "off":
            try:
                synced.embedded = self.embed(progress=progress)
            except BackendDown as down:
                synced.embedded = Embedded(trouble=str(down))
        return synced

    @operation(
        "rebuild",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        effect="write",
        idempotent=True,
        asks="owner",
        examples=("notebook-sync rebuild",),
    )
    def rebuild(self, session: Session = OWNER, *, progress: Progress | None = None) -> SyncReport:
        """Rewrite the mirror and the refs from the files.

        Every row and ref is written again; version, history and usage are kept.
        """
        return self._reconcile(rehash=True, force=True, progress=progress)

    @operation(
        "verify",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        asks="owner",
        examples=("notebook-sync verify", "notebook-sync verify --repair"),
    )
    def verify(
        self,
        session: Session = OWNER,
        *,
        repair: Annotated[bool, Meta(description="repair the differences, then compare")] = False,
        progress: Progress | None = None,
    ) -> Verdict:
        """Compare files, mirror and refs by digest.

        Reads every file again and changes nothing; the exit code is 1 if something differs. With --repair, differences
        are repaired first, and what could not be repaired is listed.
        """
        from notebook_sync.sync.verify import verify

        wiring = self.wiring
        if repair:
            self._reconcile(rehash=True, progress=progress)
            wiring._new_engine().rewrite_refs()
        return verify(
            wiring.vault,
            wiring.mirror,
            wiring.refs,
            encoding=wiring.settings.prompt.encoding,
            facts_out_of_step=wiring._fact_sync.out_of_step,
            progress=progress,
        )

    @operation(
        "status",
        route="GET /status",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        asks="owner",
        examples=("notebook-sync status",),
    )
    def status(self, session: Session = OWNER) -> Status:
        """Show counts, databases, backlog, watcher and token use.

        Works if both databases are down; the exit code is 4 then. `behind` counts files that differ from the mirror,
        `lag_seconds` is the age of the oldest such change, `stale` are notes whose file was refused. `search` is null
        if embeddings are off; its `trouble` says why the last run failed. `facts_refused` counts facts that the model
        refuses: they are found by their words.

        `prompt` is the token use of each file in the owner's prompt, `left_out` the anchors that its cap omits,
        `problem` why a file is not shown as it is. `sessions` is the whole prompt of each kind of session;
        `since_commit` says what the edits since the last commit change in it: what falls out, and whether its stable
        part, and so a provider's cache, changes. It is null without a commit. `waiting` are lines that wait for
        `trust`.
        """
        from notebook_sync.notes.prompting.use import prompt_use
        from notebook_sync.status import search_state, status_of

        wiring = self.wiring
        status = status_of(
            wiring.vault,
            wiring.root / FOLDER,
            wiring.settings.notebook.name,
            lambda: wiring.mirror,
            lambda: wiring.refs,
            lambda: prompt_use(wiring.root, wiring.settings, wiring._prompt_with),
            lambda: search_state(
                wiring.root / FOLDER, wiring.embedder, lambda: wiring.vectors, lambda: wiring.fact_rows
            ),
        )
        waiting = [line for one in wiring._system_prompt.untrusted() for line in one.lines]
        return msgspec.convert({**status, "waiting": msgspec.to_builtins(waiting)}, Status)

    @operation(
        "config",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        asks="owner",
        examples=("notebook-sync config", "notebook-sync config --json"),
    )
    def config(self, session: Session = OWNER) -> Resolved:
        """Show the settings, and where each comes from.

        In the address of a server, the user, the password and the values of options are masked.
        """
        settings = self.wiring.settings
        return Resolved(
            str(self.wiring.root), settings.source or None, [Setting(**each) for each in config.origins(settings)]
        )

    @operation(
        "export",
        sessions=_OWNER_ONLY,
        effect="write",
        refusal="Only the owner may export the notebook, which holds all that is private",
        examples=("notebook-sync export ferry.tar.gz", "notebook-sync -C ~/notebook export ~/ferry.tar.gz"),
    )
    def export(
        self,
        file: Annotated[
            str | Path, Meta(max_length=4_096, description="the archive, a new file"), Cli("FILE", positional=True)
        ],
        session: Session = OWNER,
        *,
        progress: Progress | None = None,
    ) -> Exported:
        """Export the whole notebook into one file.

        A .tar.gz of every file, and of what only the databases and git hold: versions and histories, the stream,
        long-term memory, checkpoints, commits. It has no tokens but all private notes, so protect it like the notebook.
        FILE is outside the notebook. `left_out` are files that could not be exported, and why. Only an owner may; in a
        script, with --session owner.
        """
        if not str(file) or "\0" in str(file):
            raise UsageError("name a file, as in: ferry.tar.gz")
        return self._archive.export(Path(file), session, progress)

    @operation(
        "events",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        asks="owner",
        can_follow=True,
        nothing_found="no events",
        examples=("notebook-sync events", "notebook-sync events --follow --json"),
    )
    def events(
        self,
        session: Session = OWNER,
        *,
        since: Annotated[str, Meta(max_length=64, description="only events after the one with this id"), Cli("ID")]
        | None = None,
        limit: Limit = 50,
    ) -> Results[dict[str, Any]]:
        """Show what was done and refused, and by whom.

        The event log, oldest first: edits, refusals, reminders that fell due. It never contains what a note says. An
        event has `id`, `at`, `kind`, `session` and `agent`, then fields of its kind. Of more events than the limit,
        the latest are shown. With --follow, new events are printed as they are recorded, by whatever process, until
        Ctrl-C; --json then prints an object a line.
        """
        log = self.wiring.events
        lost = f"no event has the id {since!r}; some may be missing of those that came after it"
        return Results(results=log.read(since or "", limit), degraded=lost if since and not log.knows(since) else None)

    def follow(self) -> Iterator[Event]:
        """The events that are recorded from now on, without end."""
        return self.wiring.events.follow(threading.Event())

    # Tokens.

    @operation(
        "token list",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        asks="owner",
        nothing_found="no tokens; create one with: notebook-sync token show",
        examples=("notebook-sync token list --json",),
    )
    def tokens(self, session: Session = OWNER) -> Results[Token]:
        """List whose tokens there are, never the tokens."""
        return Results(results=[Token(one.name, one.kind, one.created_at) for one in self._tokens.list()])

    @operation(
        "token add",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        effect="write",
        asks="owner",
        examples=("notebook-sync token add scribe --session task",),
    )
    def add_token(
        self,
        name: AgentName,
        session: Session = OWNER,
        *,
        kind: Annotated[
            Literal["task", "external"], Meta(description="the agent's conversations"), Cli("KIND", flag="--session")
        ]
        | None = None,
    ) -> Token:
        """Create an agent's token and print it.

        --session decides what the agent's conversations are, whatever the agent says: task (it works on its own) or
        external (on somebody else's message).
        """
        if kind is None:
            raise UsageError("say what the agent's conversations are: --session task, or --session external")
        return Token(name, kind, token=self._tokens.add(name, kind))

    @operation(
        "token revoke",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        effect="destructive",
        asks="owner",
        examples=("notebook-sync token revoke scribe",),
    )
    def revoke_token(self, name: AgentName, session: Session = OWNER) -> Revoked:
        """Revoke an agent's token at once.

        `token revoke owner` also logs out all browsers.
        """
        if not self._tokens.revoke(name):
            raise UsageError(f"there is no token of {name!r}; see: notebook-sync token list")
        return Revoked(name, revoked=True)

    @operation(
        "token show",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        effect="write",
        asks="owner",
        examples=("notebook-sync token show",),
    )
    def owner_token(self, session: Session = OWNER) -> Token:
        """Print the owner's token, which is created the first time."""
        return Token("owner", "owner", token=self._tokens.owner())

    @operation(
        "token link",
        sessions=_OWNER_ONLY,
        refusal=_REFUSED,
        effect="write",
        asks="owner",
        examples=("notebook-sync token link --port 9000",),
    )
    def login_link(
        self,
        session: Session = OWNER,
        *,
        host: Annotated[
            str, Meta(max_length=256, description="what `serve` was given; else server.host"), Cli("HOST")
        ] = "",
        port: Annotated[int, Meta(description="what `serve` was given; else server.port"), Cli("PORT")] | None = None,
    ) -> LoginLink:
        """Print a link that logs a browser in to the dashboard, once, within ten minutes.

        `serve` must be running at that address.
        """
        from notebook_sync.logins import LARGEST_PORT, LINK_SECONDS, Logins

        server = self.wiring.settings.server
        port = server.port if port is None else port
        if not 0 < port <= LARGEST_PORT:
            raise UsageError(f"there is no address with port {port}; say with --port at which one `serve` listens")
        return LoginLink(Logins(self._tokens).link(host or server.host, port), LINK_SECONDS)

    # Embeddings. `sync` builds them on the command line; `watch`, `serve` and `mcp` in the background.

    def embed(self, *, progress: Progress | None = None, limit: int | None = None) -> Embedded:
        """Build missing embeddings: of at most `limit` notes and as many facts, and of hot memory.

        `progress(done, total)` counts notes. Raises UsageError if embeddings are off, BackendDown if the embedder or a
        store does not answer; what was done is kept.
        """
        wiring = self.wiring
        wiring._backlog.tidy()
        embedded = wiring._backlog.catch_up(progress, limit)
        wiring._backlog.tidy()
        return replace(embedded, facts=self._embed_rest(limit))

    def embed_meanwhile(self) -> Following | None:
        """Build them in the background until the result is closed, which must be before the notebook is; None if
        embeddings are off."""
        if self.wiring._hot_backlog is None:
            return None
        from notebook_sync.search.embedding import Following

        return Following(lambda: self.wiring._backlog, lambda: self._embed_rest(None))

    def _embed_rest(self, limit: int | None) -> int:
        """Build those of hot memory and of facts; how many facts got theirs."""
        from notebook_sync.sync.facts import embed_facts

        wiring = self.wiring
        if wiring.embedder is None or wiring._hot_backlog is None:
            return 0
        wiring._hot_backlog.catch_up()
        return embed_facts(wiring.fact_rows, wiring.embedder, LARGEST_LIMIT if limit is None else limit)

    def _reconcile(self, **asked: Any) -> SyncReport:
        from notebook_sync.sync.sweep import Task

        return msgspec.convert(self.wiring._new_engine().reconcile(Task(**asked)).as_dict(), SyncReport)

    # The parts.

    @part
    def _tokens(self) -> Tokens:
        from notebook_sync.tokens import Tokens

        return Tokens(self.wiring.root / FOLDER)

    @part
    def _archive(self) -> Archive:
        from notebook_sync.notes.archive.archive import Archive

        wiring = self.wiring
        return Archive(
            wiring.vault,
            wiring.guard,
            lambda: wiring.mirror,
            lambda: wiring.refs,
            lambda: wiring.fact_rows,
            lambda: wiring.memory_rows,
            self._reconcile,
        )
