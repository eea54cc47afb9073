"""What MCP clients read by URI: the session's prompt, a runtime file, any note. Shown as `read` shows it, whole.

Clients that subscribe to one are notified when it says something else to their session.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from notebook_sync.errors import NotebookError, NotFound
from notebook_sync.model import RUNTIME_FILES
from notebook_sync.notebook import Notebook
from notebook_sync.registry import for_model
from notebook_sync.sessions import Session
from notebook_sync.surfaces.tools import CORE

Context = ServerRequestContext[Any, Any]
MARKDOWN = "text/markdown"
PROMPT = "notebook://prompt"
RUNTIME = "notebook://runtime/"
NOTE = "notebook://note/"
_FOLDER = "runtime/"
# The resources are read again so often: a rule may begin or expire without any change of a file.
_POLL_SECONDS = 1.0
_MOST_OF_ONE = 100
# A client that does not take its notifications is not waited for.
_SEND_SECONDS = 1.0

TEMPLATES = [
    types.ResourceTemplate(
        name="note",
        title="Note",
        uri_template="notebook://note/{id}",
        description="A note by its id or path, like pages/plan or pages%2Fplan",
        mime_type=MARKDOWN,
    ),
    types.ResourceTemplate(
        name="runtime",
        title="Runtime file",
        uri_template="notebook://runtime/{file}",
        description="A file of the owner's rules, like reminders.md",
        mime_type=MARKDOWN,
    ),
]


def listed(notebook: Notebook) -> list[types.Resource]:
    """The prompt and the runtime files that exist. Other notes are found with the tools: there may be very many."""
    prompt = types.Resource(
        name="prompt",
        title="Prompt",
        uri=PROMPT,
        description="The owner's rules, reminders and standing orders, as they are now",
        mime_type=MARKDOWN,
    )
    paths = [path for path in RUNTIME_FILES if notebook.core.tree.stat(path) is not None]
    return [prompt, *(_runtime(path) for path in paths)]


def text_of(notebook: Notebook, uri: str, session: Session) -> str:
    """What a resource says to the session. Raises NotFound, NotPermitted, UnreadableFile."""
    if uri == PROMPT:
        return notebook.prompt(session).text
    return str(for_model(notebook.notes.read(_name_in(uri), session)).text)


@dataclass(frozen=True, slots=True)
class Asking:
    """Who sent a request, the sets of tools that are listed for it, and whether its token still counts."""

    session: Session
    toolsets: str = CORE
    is_current: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class _Subscriber:
    """One connection, or one stream of the protocol's later version. `states` holds, by URI, a digest of what the
    resource said last."""

    asking: Asking
    send: Callable[[str], Awaitable[None]]
    states: dict[str, str] = field(default_factory=dict)


class Subscriptions:
    """The subscriptions to one notebook, in the event loop of one server."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self._subscribers: dict[object, _Subscriber] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look for changes until left."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def add(self, connection: Connection, uri: str, asking: Asking) -> None:
        """Notify this connection of changes from now on, until it ends. Raises what reading the resource raises."""
        if connection not in self._subscribers:
            self._subscribers[connection] = _Subscriber(asking, connection.send_resource_updated)
            connection.exit_stack.callback(self._subscribers.pop, connection, None)
        states = self._subscribers[connection].states
        if uri not in states and len(states) >= _MOST_OF_ONE:
            raise MCPError(types.INTERNAL_ERROR, f"at most {_MOST_OF_ONE} subscriptions are kept for a client")
        states[uri] = await anyio.to_thread.run_sync(self._state_of, uri, asking.session)

    def remove(self, connection: Connection, uri: str) -> None:
        """Notify this connection no more of this resource."""
        if connection in self._subscribers:
            self._subscribers[connection].states.pop(uri, None)

    async def listen(
        self, ctx: Context, asked: types.SubscriptionsListenRequestParams, asking: Asking
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of notifications: of what it asks for, the resources that the session may read now."""
        bus = InMemorySubscriptionBus()
        subscriber = _Subscriber(asking, lambda uri: bus.publish(ResourceUpdated(uri)))
        self._subscribers[bus] = subscriber
        try:
            for uri in list(dict.fromkeys(asked.notifications.resource_subscriptions or ()))[:_MOST_OF_ONE]:
                with suppress(NotebookError):
                    subscriber.states[uri] = await anyio.to_thread.run_sync(self._state_of, uri, asking.session)
            granted = types.SubscriptionFilter(resource_subscriptions=sorted(subscriber.states))
            return await ListenHandler(bus)(ctx, asked.model_copy(update={"notifications": granted}))
        finally:
            del self._subscribers[bus]

    async def _follow(self) -> None:
        while True:
            await anyio.sleep(_POLL_SECONDS)
            now: dict[tuple[str, Session], str | None] = {}
            for each in list(self._subscribers.values()):
                for uri in list(each.states):
                    target = uri, each.asking.session
                    if target not in now:
                        now[target] = await anyio.to_thread.run_sync(self._state_now, *target)
                    await self._notify(each, uri, now[target])

    async def _notify(self, subscriber: _Subscriber, uri: str, state: str | None) -> None:
        """Send nothing where nothing changed, where it is not known, and to a session whose token has ended."""
        if state is None or subscriber.states.get(uri, state) == state:
            return
        subscriber.states[uri] = state
        if await anyio.to_thread.run_sync(subscriber.asking.is_current):
            with anyio.move_on_after(_SEND_SECONDS):
                await subscriber.send(uri)

    def _state_of(self, uri: str, session: Session) -> str:
        return sha256(text_of(self._notebook, uri, session).encode(errors="replace")).hexdigest()

    def _state_now(self, uri: str, session: Session) -> str | None:
        """ "" for a note that was deleted; None where the resource cannot be read now, which is no news."""
        try:
            return self._state_of(uri, session)
        except NotFound:
            return ""
        except (NotebookError, OSError):
            return None


def _runtime(path: str) -> types.Resource:
    name = path.removeprefix(_FOLDER)
    title = name.removesuffix(".md").replace("-", " ").capitalize()
    return types.Resource(name=name, title=title, uri=RUNTIME + quote(name, safe=""), mime_type=MARKDOWN)


def _name_in(uri: str) -> str:
    """The path or id that a URI names. Raises NotFound for a URI of no resource."""
    for start, folder in ((RUNTIME, _FOLDER), (NOTE, "")):
        name = unquote(uri.removeprefix(start))
        if uri.startswith(start) and name:
            return folder + name
    raise NotFound("resource", uri, next=f"use {PROMPT}, {RUNTIME}FILE or {NOTE}ID")
