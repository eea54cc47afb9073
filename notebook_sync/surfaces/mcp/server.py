"""The notebook as an MCP server, by the official SDK: its tools, its prompt, its resources, for whoever asks.

Only translates: what a session may do is decided below. The core is synchronous, so each request runs in a thread.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from notebook_sync import __version__
from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.errors import error_body, kind_of
from notebook_sync.surfaces.mcp import resources
from notebook_sync.surfaces.mcp.subscriptions import Subscriptions
from notebook_sync.surfaces.tools.calling import QUICK, call, tool_definitions
from prompt.errors import PromptError

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")

PROMPT = "notebook"
_INSTRUCTIONS = (
    "A notebook of Markdown files that an owner keeps. Its rules are in the prompt `notebook`, which is also the "
    "resource notebook://prompt: take them into your context first, and follow them."
)
# Too much at once; above it, what a server or a store does wrong.
_FIRST_TEMPORARY = 429
_ARGUMENTS = (
    types.PromptArgument(
        name="include",
        description="what follows the rules, with commas: refs (recent notes), notes (your own latest), facts",
        required=False,
    ),
    types.PromptArgument(name="task", description="what this conversation is about; shown last", required=False),
)

log = logging.getLogger(__name__)


class NotebookServer(Server[Any]):
    """An MCP server over one notebook. `session_of` tells who asks; `subscriptions` are the clients that hear of
    changes. Requests are worked on within `at_work`, which is told whether that is quick. `behind` says why results may
    be incomplete, "" where they are not."""

    def __init__(
        self,
        notebook: Notebook,
        session_of: Callable[[Context], Session],
        subscriptions: Subscriptions,
        at_work: Callable[[Context, bool], AbstractAsyncContextManager[None]] = lambda *_: nullcontext(),
        behind: Callable[[], str] = lambda: "",
    ) -> None:
        answers = _Answers(notebook, session_of, subscriptions, at_work, behind)
        super().__init__(
            "notebook-sync",
            version=__version__,
            title="Notebook",
            instructions=_INSTRUCTIONS,
            lifespan=lambda _: subscriptions.running(),
            on_list_tools=answers.list_tools,
            on_call_tool=answers.call_tool,
            on_list_prompts=answers.list_prompts,
            on_get_prompt=answers.get_prompt,
            on_list_resources=answers.list_resources,
            on_list_resource_templates=answers.list_resource_templates,
            on_read_resource=answers.read_resource,
            on_subscribe_resource=answers.subscribe,
            on_unsubscribe_resource=answers.unsubscribe,
            on_subscriptions_listen=answers.listen,
        )

    def get_capabilities(self, *arguments: Any, **named: Any) -> types.ServerCapabilities:
        """As the SDK derives them, less what is never sent: that a list of tools, prompts or resources changed."""
        told = super().get_capabilities(*arguments, **named)
        for part in (told.tools, told.prompts, told.resources):
            if part is not None:
                part.list_changed = False
        return told


class _Answers:
    """One method for each request."""

    def __init__(
        self,
        notebook: Notebook,
        session_of: Callable[[Context], Session],
        subscriptions: Subscriptions,
        at_work: Callable[[Context, bool], AbstractAsyncContextManager[None]],
        behind: Callable[[], str],
    ) -> None:
        self._at_work = at_work
        self._behind = behind
        self._notebook = notebook
        self._session_of = session_of
        self._subscriptions = subscriptions

    async def list_tools(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        session = self._session_of(ctx)
        definitions = await self._in_thread(ctx, lambda: tool_definitions(session, "mcp"))
        return types.ListToolsResult(tools=[_tool(definition) for definition in definitions])

    async def call_tool(self, ctx: Context, asked: types.CallToolRequestParams) -> types.CallToolResult:
        session = self._session_of(ctx)
        answer = await self._in_thread(
            ctx,
            lambda: call(self._notebook, asked.name, asked.arguments or {}, session),
            is_quick=asked.name in QUICK,
        )
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        content: list[types.ContentBlock] = [types.TextContent(text=text)]
        if behind := self._behind():
            content.append(types.TextContent(text=f"Note: {behind}"))
        return types.CallToolResult(content=content, structured_content=answer, is_error="error" in answer)

    async def list_prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        description = (
            "The owner's rules, reminders and standing orders, as they are now; and what was worked on, if asked"
        )
        prompt = types.Prompt(name=PROMPT, title="Notebook", description=description, arguments=list(_ARGUMENTS))
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(self, ctx: Context, asked: types.GetPromptRequestParams) -> types.GetPromptResult:
        if asked.name != PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {asked.name!r}; there is {PROMPT!r}")
        arguments = asked.arguments or {}
        for name in arguments.keys() - {argument.name for argument in _ARGUMENTS}:
            raise MCPError(types.INVALID_PARAMS, f"the prompt has no argument {name!r}; it has include and task")
        include = [part.strip() for part in arguments.get("include", "").split(",") if part.strip()]
        session, task = self._session_of(ctx), arguments.get("task", "")
        prompt = await self._in_thread(ctx, lambda: self._notebook.prompt(session, include=include, task=task))
        message = types.PromptMessage(role="user", content=types.TextContent(text=prompt.text))
        return types.GetPromptResult(description=f"revision {prompt.revision}", messages=[message])

    async def list_resources(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        session = self._session_of(ctx)
        listed = await self._in_thread(ctx, lambda: resources.listed(self._notebook, session))
        return types.ListResourcesResult(resources=listed)

    async def list_resource_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(resources.TEMPLATES))

    async def read_resource(self, ctx: Context, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        session = self._session_of(ctx)
        text = await self._in_thread(ctx, lambda: resources.text_of(self._notebook, asked.uri, session))
        shown = types.TextResourceContents(uri=asked.uri, mime_type=resources.MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[shown])

    async def subscribe(self, ctx: Context, asked: types.SubscribeRequestParams) -> types.EmptyResult:
        session = self._session_of(ctx)
        with _errors_told():
            async with self._at_work(ctx, True):
                await self._subscriptions.add(ctx.session, asked.uri, session)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, asked: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._subscriptions.remove(ctx.session, asked.uri)
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, asked: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await self._subscriptions.listen(ctx, asked, self._session_of(ctx))

    async def _in_thread(self, ctx: Context, run: Callable[[], T], *, is_quick: bool = True) -> T:
        with _errors_told():
            async with self._at_work(ctx, is_quick):
                # Not abandoned when the client goes away: an edit that has begun ends.
                return await anyio.to_thread.run_sync(run)


def _tool(definition: dict[str, Any]) -> types.Tool:
    """The tool as clients are sent it. Its output may also be an error, and some clients hold that against the schema
    as well."""
    result = definition["outputSchema"]
    either = {"type": "object", "anyOf": [{"required": result["required"]}, {"required": ["error"]}]}
    return types.Tool.model_validate({**definition, "outputSchema": either})


@contextmanager
def _errors_told() -> Iterator[None]:
    """Raises MCPError, with the structured error, for what a caller or a store can do wrong."""
    try:
        yield
    except (NotebookError, PromptError) as error:
        code = types.INTERNAL_ERROR if kind_of(error).status >= _FIRST_TEMPORARY else types.INVALID_PARAMS
        raise MCPError(code, str(error), error_body(error)["error"]) from None
    except MCPError:
        raise
    except Exception:  # the edge: logged whole; the client is told of a fault, never of its text
        log.exception("a request failed")
        raise MCPError(types.INTERNAL_ERROR, "a fault in notebook-sync; its log says more") from None
