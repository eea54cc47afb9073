"""The notebook as an MCP server, on the official SDK: over standard input and output, one client until it leaves, and
over streamable HTTP, behind the HTTP server's guard.

Only translates: what a session may do is decided below. Only the protocol reaches standard output; logs go to standard
error.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.types import Receive, Scope, Send

from notebook_sync import __version__
from notebook_sync.errors import NotebookError, TooManyRequests, UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces.background import Threads, following
from notebook_sync.surfaces.http.guard import MCP_SESSIONS
from notebook_sync.surfaces.mcp import resources
from notebook_sync.surfaces.mcp.resources import Asking, Context, Subscriptions
from notebook_sync.surfaces.tools import CORE, call_tool, is_writing_tool, tool_definitions

_Result = TypeVar("_Result")

PROMPT = "notebook"
_RULES_TOKENS = 500
_ARGUMENTS = [
    types.PromptArgument(
        name="include",
        description="what follows the rules, separated by commas: refs (recent notes), notes (your own), facts",
        required=False,
    ),
    types.PromptArgument(name="task", description="what this conversation is about; shown last", required=False),
]
_BEGIN = (
    "A notebook of Markdown files that an owner keeps, with rules for you. Follow them. The prompt `notebook` has all "
    "of them, and so has the resource notebook://prompt."
)
_KINDS = (
    "Folders: pages (documents), code_snippets, research_notes (findings with a source), runtime (the rules), facts, "
    "memories, channels (private notes). Any other folder holds pages."
)
_CHANGED = "The owner's rules have changed. They are now:"
_log = logging.getLogger(__name__)
_CHUNK = 1 << 16
# Who sent the request in hand, for what the SDK asks the server without saying who asks.
_sender: ContextVar[Session] = ContextVar("sender")


class NotebookServer(Server[Any]):
    """An MCP server over one notebook. `asking_of` says who sent a request, `sender` who is being answered now."""

    def __init__(
        self, notebook: Notebook, asking_of: Callable[[Context], Asking], sender: Callable[[], Session]
    ) -> None:
        self._notebook = notebook
        self._asking_of = asking_of
        self._sender = sender
        self._subscriptions = Subscriptions(notebook)
        self._threads = Threads()
        # By session, the revision of the rules that it was sent last.
        self._revisions: dict[Session, str] = {}
        super().__init__(
            "notebook-sync",
            version=__version__,
            title="Notebook",
            lifespan=lambda _: self._subscriptions.running(),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
        )

    @property
    def instructions(self) -> str:
        """What a client shows its model at once: the session's rules within a small cap, and the folders. Changes of
        the rules are sent with later results."""
        session = self._sender()
        self._revisions[session], rules = self._rules(session)
        return "\n\n".join(filter(None, (_BEGIN, rules, _KINDS)))

    @instructions.setter
    def instructions(self, _: str | None) -> None:
        """The SDK sets what its constructor was given."""

    def get_capabilities(self, *arguments: Any, **named: Any) -> types.ServerCapabilities:
        """As the SDK derives them, without what is never sent: that a list changed."""
        found = super().get_capabilities(*arguments, **named)
        for part in (found.tools, found.prompts, found.resources):
            if part is not None:
                part.list_changed = False
        return found

    async def _list_tools(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        asking = self._asking_of(ctx)
        found = await self._run(lambda: tool_definitions(self._notebook, asking.session, "mcp", asking.toolsets))
        return types.ListToolsResult(tools=[types.Tool.model_validate(each) for each in found])

    async def _call_tool(self, ctx: Context, asked: types.CallToolRequestParams) -> types.CallToolResult:
        session, connection = self._asking_of(ctx).session, _connection_of(ctx)

        def call() -> tuple[dict[str, Any], list[str]]:
            answer = call_tool(self._notebook, asked.name, asked.arguments, session)
            return answer, self._notices(session, connection)

        answer, notices = await self._run(call, writes=is_writing_tool(asked.name))
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        content: list[types.ContentBlock] = [types.TextContent(text=each) for each in (text, *notices)]
        return types.CallToolResult(content=content, structured_content=answer, is_error="error" in answer)

    def _notices(self, session: Session, connection: Connection) -> list[str]:
        """What rides on a result: that the index lacks changes, and, once for each connection, that rules changed."""
        behind = self._notebook.core.behind()
        notices = [f"Note: {behind}"] if behind else []
        before = connection.state.get(PROMPT) or self._revisions.get(session, "")
        revision, rules = self._rules(session, before)
        connection.state[PROMPT] = revision
        if not connection.session_id:  # over HTTP, the later protocol has no connections
            self._revisions[session] = revision
        return [*notices, f"{_CHANGED}\n\n{rules}"] if before and rules else notices

    def _rules(self, session: Session, known: str = "") -> tuple[str, str]:
        """The revision of the session's rules, and their text within the cap; "" for a revision that is known, and
        while there is no prompt."""
        try:
            revision = self._notebook.prompt(session).revision
            return revision, "" if revision == known else self._notebook.prompt(session, max_tokens=_RULES_TOKENS).text
        except NotebookError:
            return "", ""

    async def _list_prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        description = "The owner's rules, reminders and standing orders, as they are now; recent work, if asked"
        prompt = types.Prompt(name=PROMPT, title="Notebook", description=description, arguments=_ARGUMENTS)
        return types.ListPromptsResult(prompts=[prompt])

    async def _get_prompt(self, ctx: Context, asked: types.GetPromptRequestParams) -> types.GetPromptResult:
        if asked.name != PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {asked.name!r}; use {PROMPT!r}")
        arguments = asked.arguments or {}
        if unknown := arguments.keys() - {each.name for each in _ARGUMENTS}:
            raise MCPError(types.INVALID_PARAMS, f"the prompt has no argument {min(unknown)!r}; use include or task")
        include = [part.strip() for part in arguments.get("include", "").split(",") if part.strip()]
        session, task = self._asking_of(ctx).session, arguments.get("task", "")
        prompt = await self._run(lambda: self._notebook.prompt(session, include=include, task=task))
        message = types.PromptMessage(role="user", content=types.TextContent(text=prompt.text))
        return types.GetPromptResult(description=f"revision {prompt.revision}", messages=[message])

    async def _list_resources(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=await self._run(lambda: resources.listed(self._notebook)))

    async def _list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def _read_resource(self, ctx: Context, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        session = self._asking_of(ctx).session
        text = await self._run(lambda: resources.text_of(self._notebook, asked.uri, session))
        shown = types.TextResourceContents(uri=asked.uri, mime_type=resources.MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[shown])

    async def _subscribe(self, ctx: Context, asked: types.SubscribeRequestParams) -> types.EmptyResult:
        with _worded_errors():
            await self._subscriptions.add(_connection_of(ctx), asked.uri, self._asking_of(ctx))
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, asked: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._subscriptions.remove(_connection_of(ctx), asked.uri)
        return types.EmptyResult()

    async def _listen(
        self, ctx: Context, asked: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await self._subscriptions.listen(ctx, asked, self._asking_of(ctx))

    async def _run(self, work: Callable[[], _Result], *, writes: bool = False) -> _Result:
        with _worded_errors():
            return await self._threads.run(work, writes=writes)


def _connection_of(ctx: Context) -> Connection:
    """The SDK means it for handlers, and shows it only here."""
    return ctx.session._connection


@contextmanager
def _worded_errors() -> Iterator[None]:
    """Raises MCPError with the common error shape for what a caller or a server can do wrong."""
    try:
        yield
    except NotebookError as error:
        # From this status on, an error is the server's.
        code = types.INTERNAL_ERROR if error.status >= TooManyRequests.status else types.INVALID_PARAMS
        raise MCPError(code, str(error), error.as_json()["error"]) from None
    except MCPError:
        raise
    except Exception:  # the edge: logged whole; the client learns that it happened, not its text
        _log.exception("a request failed")
        raise MCPError(types.INTERNAL_ERROR, "notebook-sync failed; its log says why") from None


def serve_stdio(notebook: Notebook, session: Session, *, toolsets: str = "core") -> int:
    """Answer one client for this session. Raises UsageError where standard input or output is closed."""
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("mcp needs standard input and output, and one of them is closed")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="notebook-sync: %(message)s")
    asking = Asking(session, toolsets)
    try:
        with following(notebook):
            anyio.run(_serve, NotebookServer(notebook, lambda _: asking, lambda: session))
    except* (BrokenPipeError, ConnectionResetError):
        pass  # the client left without a word
    return 0


async def _serve(server: NotebookServer) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_at_signal, tasks.cancel_scope)
        lines: Any = _Lines(sys.stdin.fileno())  # of an AsyncFile, the SDK uses no more than this
        async with stdio_server(stdin=lines) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _cancel_at_signal(scope: anyio.CancelScope) -> None:
    """Cancel the scope at the first signal; a second one ends the process at once."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


class _Lines:
    """The lines of a descriptor. Waiting for one can be cancelled, which a reading thread cannot."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def __aiter__(self) -> AsyncIterator[str]:
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        parts: list[str] = []
        while chunk := await self._chunk():
            # Only at \n: JSON may hold other line ends.
            first, *others = decoder.decode(chunk).split("\n")
            parts.append(first)
            for other in others:
                yield "".join(parts)
                parts = [other]
        if any(parts):
            yield "".join(parts)

    async def _chunk(self) -> bytes:
        try:
            await anyio.wait_readable(self._fd)
        except PermissionError:  # a regular file is always readable
            await anyio.lowlevel.checkpoint()
        return os.read(self._fd, _CHUNK)


class McpApp:
    """The notebook over streamable HTTP, for agents that have a token; `?tools=all` in the URL lists all tools.

    It starts with its first request, since mounted lifespans do not run, and ends with the event loop.
    """

    def __init__(self, notebook: Notebook) -> None:
        self._sessions = _Sessions(NotebookServer(notebook, _asking_of, _sender.get))
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._running is None:
            self._is_ready = anyio.Event()
            self._running = asyncio.create_task(self._run())
        await self._is_ready.wait()
        session: Session = scope["state"]["session"]
        _sender.set(session)
        # The SDK lets only this principal use the MCP session that it opens.
        principal = f"{session.kind}:{session.agent}"
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[]))
        await self._sessions.handle_request(scope, receive, send)

    async def _run(self) -> None:
        async with self._sessions.run():
            self._is_ready.set()
            await anyio.sleep_forever()


class _Sessions(StreamableHTTPSessionManager):
    """The SDK's session manager, which only limits all sessions together, with a quota for each agent."""

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        held = Counter(_session_named(owner["client_id"]) for owner in self._session_owners.values())
        is_allowed = requestor is not None and MCP_SESSIONS.allows(_session_named(requestor["client_id"]), held)
        return super()._admit_session(requestor) if is_allowed else None


def _asking_of(ctx: Context) -> Asking:
    """The session whose token came with this request."""
    assert ctx.request is not None  # noqa: S101 - over HTTP, every message comes with one
    state = ctx.request.state
    return Asking(state.session, ctx.request.query_params.get("tools", CORE), state.is_current)


def _session_named(principal: str) -> Session:
    """The session of a principal; all of the owner count as one."""
    kind, _, agent = principal.partition(":")
    return OWNER if kind == OWNER.kind else Session.named(kind, agent)
