"""The notebook as an MCP server, on the official SDK. Only translates: what a session may do is decided below."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from notebook_sync import __version__
from notebook_sync.errors import NotebookError, TooManyRequests
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.background import Threads
from notebook_sync.surfaces.mcp import resources
from notebook_sync.surfaces.mcp.resources import Asking, Context, Subscriptions
from notebook_sync.surfaces.tools import call_tool, is_writing_tool, tool_definitions

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
