"""The operations that look after a notebook. The work is done in the modules next to this one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from notebook_sync import services
from notebook_sync.errors import NotPermitted, UsageError
from notebook_sync.registry import OWNER_ONLY, REFUSAL, Arg, Limit, Result, Results, operation
from notebook_sync.services.core import NotebookService
from notebook_sync.sessions import OWNER, Kind, Session
from notebook_sync.settings import describe_settings

if TYPE_CHECKING:
    from notebook_sync.sync.engine import Verified
    from notebook_sync.sync.watch import WatchEvent

Progress = Callable[[int, int], None]
# A login link counts once, and gives a browser its cookie; neither is a bearer token.
TokenKind = Kind | Literal["link", "cookie"]

# What exit codes say: a configured server does not answer; the run was done, with failures.
_DOWN, _FAILED = 4, 1

AgentName = Annotated[str, Meta(max_length=64, description="the agent's name"), Arg("NAME", positional=True)]


class SyncReport(Result, frozen=True, kw_only=True):
    """Counts of notes. `failed` are files that the index does not have as they are, each `{path, error}`. `embedded`
    counts rows that got vectors. `targets` are the servers; see `Status`. `hints` say what the owner may do next."""

    added: int
    updated: int
    moved: int
    deleted: int
    unchanged: int
    failed: list[dict[str, str]]
    warnings: list[str]
    seconds: float
    embedded: int
    targets: list[dict[str, Any]]
    hints: list[str]


class Status(Result, frozen=True, kw_only=True):
    """How a notebook is.

    `root` and `state` are its two folders. `notes` counts the notes of each collection. `follower` is the process that
    follows the files, null for none. `targets` are the servers: name, kind, cursor, behind, trouble, refused, owner.
    `search` are the models of search: name, setting, behind (rows that lack its vectors), trouble. `only_in_index`
    counts what no file holds; `dumped_at` is when it was last dumped. `prompt` is the room of each kind of session.
    `stale` are files that the index does not have as they are, each `{path, error}`. `proposals` are what the owner may
    do with facts, by path and line. `conflicts` are the paths of conflict copies. `agents` says of each agent how many
    events it caused on each of the last seven days (of 24 hours, the oldest first), and how many of the last 24 hours
    were refusals. `chores` are what the follower does, publishing and embedding too, each with its last and next run.
    `attention` is what somebody should look at.
    """

    name: str
    root: str
    state: str
    notebook_id: str
    read_only: bool
    notes: dict[str, int]
    facts: int
    follower: dict[str, Any] | None
    targets: list[dict[str, Any]]
    search: list[dict[str, Any]]
    only_in_index: dict[str, int]
    dumped_at: str | None
    prompt: dict[str, dict[str, int]]
    stale: list[dict[str, str]]
    proposals: list[str]
    conflicts: list[str]
    agents: list[dict[str, Any]]
    chores: list[dict[str, str]]
    attention: list[str]


class Check(Result, frozen=True):
    """One thing that `doctor` looked at. `next` is a command or a step that helps, "" where nothing is wrong."""

    check: str
    ok: bool
    message: str
    next: str = ""


class Token(Result, frozen=True):
    """What a client of `serve` is known by: an agent's token, or the owner's. `token` is "" in lists. Of the kind link
    or cookie it is a login of the owner's browser; `client` is what a remote client calls itself, with a mark that only
    it has."""

    name: str
    kind: TokenKind
    created_at: datetime | None = None
    token: str = ""
    expires_at: datetime | None = None
    client: str = ""


def _exit_of_sync(report: SyncReport) -> int:
    return _FAILED if report.failed else _DOWN if any(each["trouble"] for each in report.targets) else 0


def _exit_of_status(status: Status) -> int:
    return _DOWN if any(each["trouble"] for each in status.targets) else 0


def _exit_of_doctor(found: Results[Check]) -> int:
    wrong = [each for each in found.results if not each.ok]
    return 0 if not wrong else _DOWN if all(each.check == "servers" for each in wrong) else _FAILED


class AdminService(NotebookService):
    """Look after the notebook: sync, verify, status, settings, events, tokens."""

    name = "admin"

    @operation(
        "sync",
        route="POST /sync",
        sessions=OWNER_ONLY,
        effect="write",
        idempotent=True,
        adopts=True,
        exit_code=_exit_of_sync,
        examples=("notebook-sync sync", "notebook-sync -C ~/notebook sync --json"),
    )
    def sync(
        self,
        session: Session = OWNER,
        *,
        allow_empty: Annotated[bool, Meta(description="delete all notes from the index if no file is there")] = False,
        claim: Annotated[bool, Meta(description="take over servers that another copy of this notebook fed")] = False,
        progress: Progress | None = None,
    ) -> SyncReport:
        """Sync files to the index, and publish the changes.

        Files that fail to parse are reported, and the exit code is 1; their last good rows stay. If none of the known
        notes is found, nothing is deleted, because an unmounted disk looks the same; --allow-empty deletes them.
        Missing embeddings are built, and once a day what only the index knows is written to a dump. If a server that is
        set does not answer within 10 s, the exit code is 4; it gets the changes later.
        """
        return services.upkeep.sync_notebook(self.core, allow_empty=allow_empty, claim=claim, progress=progress)

    @operation(
        "rebuild",
        sessions=OWNER_ONLY,
        effect="write",
        idempotent=True,
        exit_code=_exit_of_sync,
        examples=("notebook-sync rebuild",),
    )
    def rebuild(self, session: Session = OWNER, *, progress: Progress | None = None) -> SyncReport:
        """Parse every file again and rewrite its rows in place.

        Versions, history and use are kept. Rows that change are published.
        """
        return services.upkeep.sync_notebook(self.core, force=True, progress=progress)

    @operation(
        "verify",
        sessions=OWNER_ONLY,
        result_in="notebook_sync.sync.engine",
        exit_code=lambda found: int(not found.consistent),
        examples=("notebook-sync verify", "notebook-sync verify --repair"),
    )
    def verify(
        self,
        session: Session = OWNER,
        *,
        repair: Annotated[bool, Meta(description="repair the differences, then compare")] = False,
    ) -> Verified:
        """Compare files, index and mirrors.

        Every file is read and parsed again; nothing is changed without --repair. The exit code is 1 if something
        differs.
        """
        core, servers = self.core, self.core.has_targets
        if repair:
            core.engine.look(None, rehash=True)
        if repair and servers:
            core.publisher.reconcile_all()
        return core.engine.verify(core.publisher.compare if servers else None)

    @operation(
        "status",
        route="GET /status",
        sessions=OWNER_ONLY,
        exit_code=_exit_of_status,
        examples=("notebook-sync status", "notebook-sync status --json"),
    )
    def status(self, session: Session = OWNER) -> Status:
        """Show counts, servers, backlog and the use of the prompt.

        It reads no file but those of the prompt. The exit code is 4 if a server that is set does not answer.
        """
        return services.status.status_of(self.core)

    @operation(
        "doctor",
        sessions=OWNER_ONLY,
        columns=("ok", "check", "message", "next"),
        exit_code=_exit_of_doctor,
        examples=("notebook-sync doctor",),
    )
    def doctor(self, session: Session = OWNER) -> Results[Check]:
        """Check the environment, each problem with the command that helps.

        Python and SQLite, git, the folders, what editors left behind, settings and servers. The exit code is 1 if
        something is wrong, 4 if only a server is.
        """
        return Results(services.status.examine(self.core))

    @operation(
        "config",
        sessions=OWNER_ONLY,
        columns=("key", "value", "source"),
        examples=("notebook-sync config", "notebook-sync config --json"),
    )
    def config(self, session: Session = OWNER) -> Results[dict[str, Any]]:
        """Show the settings and where each comes from.

        In the address of a server, user, password and options are masked.
        """
        return Results(describe_settings(self.core.root, self.settings))

    @operation(
        "events",
        sessions=OWNER_ONLY,
        columns=("at", "kind", "session", "agent", "path"),
        nothing_found="no events",
        examples=("notebook-sync events", "notebook-sync events --follow --json"),
    )
    def events(
        self,
        session: Session = OWNER,
        *,
        since: Annotated[
            str, Meta(max_length=64, description="only events after the one with this id"), Arg("ID")
        ] = "",
        limit: Limit = 50,
    ) -> Results[dict[str, Any]]:
        """Show what was done and refused, and by whom.

        Oldest first: edits, refusals, reminders that fell due; never what a note says. If there are more events than
        the limit, the latest are shown. With --follow, new events are printed as any process records them, until
        Ctrl-C; with --json, one object a line.
        """
        is_known = not since or self.core.index.events.one(since) is not None
        lost = None if is_known else f"no event has the id {since!r}; events after it may be missing"
        return Results(self.core.events.read(since, limit), degraded=lost)

    def follow_events(
        self, session: Session = OWNER, *, since: str = "", stop: threading.Event | None = None
    ) -> Iterator[dict[str, Any]]:
        """The events that any process records from now on, or after the one with the id `since`, without end or until
        `stop` is set. Raises NotPermitted."""
        if session.kind != "owner":
            raise NotPermitted(REFUSAL)
        return self.core.events.follow(stop or threading.Event(), since)

    def watch(self, *, stop: threading.Event | None = None) -> Iterator[WatchEvent]:
        """Follow the files until the iterator is closed or `stop` is set; does the upkeep. Raises FollowLocked."""
        return services.watching.watch_notebook(self.core, stop)

    def numbers(self) -> dict[str, tuple[str, float]]:
        """The numbers of `status` by name, each with a line of help: what a monitoring system records."""
        return services.status.numbers_of(self.core)

    # ---- tokens

    @operation(
        "token list",
        sessions=OWNER_ONLY,
        columns=("name", "kind", "created_at", "client"),
        nothing_found="no tokens; create the owner's with: notebook-sync token show",
        examples=("notebook-sync token list --json",),
    )
    def list_tokens(self, session: Session = OWNER) -> Results[Token]:
        """List whose tokens there are, never the tokens."""
        return Results(
            [Token(row.name, row.kind, row.created_at, "", row.expires_at, row.client) for row in self._tokens.rows()]
        )

    @operation(
        "token add",
        sessions=OWNER_ONLY,
        effect="write",
        shows="token",
        examples=("notebook-sync token add scribe --kind task",),
    )
    def add_token(
        self,
        name: AgentName,
        session: Session = OWNER,
        *,
        kind: Annotated[Literal["task", "external"], Meta(description="the agent's conversations"), Arg("KIND")],
    ) -> Token:
        """Create an agent's token and print it.

        --kind decides what the agent's conversations are, whatever the agent says: task (it works on its own) or
        external (it acts on somebody else's message).
        """
        return Token(name, kind, token=self._tokens.add(name, kind))

    @operation(
        "token revoke",
        sessions=OWNER_ONLY,
        effect="destructive",
        columns=("name", "kind", "created_at"),
        nothing_found="no tokens are left",
        examples=("notebook-sync token revoke scribe",),
    )
    def revoke_token(self, name: AgentName, session: Session = OWNER) -> Results[Token]:
        """Revoke a token at once, and list those that remain.

        The owner's is made again when `token show` asks for it; with it, browsers are logged out and the tokens of
        remote clients end.
        """
        if not self._tokens.revoke(name):
            raise UsageError(f"there is no token of {name!r}", next="see: notebook-sync token list")
        return self.list_tokens(session)

    @operation(
        "token show",
        sessions=OWNER_ONLY,
        effect="write",
        shows="token",
        examples=("notebook-sync token show",),
    )
    def show_token(self, session: Session = OWNER) -> Token:
        """Print the owner's token, which is created the first time."""
        return Token("owner", "owner", token=self._tokens.owner())

    @operation(
        "token link",
        sessions=OWNER_ONLY,
        effect="write",
        shows="token",
        examples=("notebook-sync token link",),
    )
    def link_token(
        self,
        session: Session = OWNER,
        *,
        port: Annotated[int | None, Meta(description="of `serve` (default server.port)")] = None,
    ) -> Token:
        """Print a link that logs a browser in to the dashboard.

        It counts once, for 10 minutes. The browser stays logged in for 30 days; revoking the owner's token ends that.
        """
        port = self.settings.server.port if port is None else port
        address = f"http://{self._tokens.host_name()}:{port}/login?code={self._tokens.add_link()}"
        return Token("owner", "link", token=address)

    def login_link(self, port: int) -> str:
        """The address that logs a browser in to the dashboard of `serve` at this port."""
        return self.link_token(port=port).token

    def session_of_token(self, token: str) -> Session | None:
        """Who asks with a bearer token of `serve`; None for one that is not valid."""
        return self._tokens.check(token) if token else None

    @property
    def _tokens(self) -> services.tokens.TokenFile:
        return services.tokens.TokenFile(self.core.place.state)
