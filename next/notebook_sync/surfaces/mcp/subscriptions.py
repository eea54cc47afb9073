"""Telling MCP clients that a resource they subscribed to says something else to their session now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from notebook_sync.errors import NotebookError, NotFound
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.mcp.resources import Context, state_of
from prompt import PromptError

# The resources are read again so often: a rule may begin or expire without any change of a file.
_POLL_SECONDS = 1.0
_MOST_OF_ONE = 100
# A client that does not take its notifications is not waited for.
_SEND_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Subscriber:
    """One connection, or one stream of the protocol's later version. One whose token has ended is sent nothing."""

    session: Session
    is_current: Callable[[], bool]
    send: Callable[[str], Awaitable[None]]
    uris: set[str] = field(default_factory=set)


class Subscriptions:
    """The subscriptions to one notebook, in the event loop of one server."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self._subscribers: dict[object, _Subscriber] = {}
        self._states: dict[tuple[Session, str], str] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look for changes until left."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def add(self, connection: Connection, uri: str, session: Session, is_current: Callable[[], bool]) -> None:
        """Notify this connection of changes from now on, until it ends. Raises what reading the resource raises."""
        if connection not in self._subscribers:
            self._subscribers[connection] = _Subscriber(session, is_current, connection.send_resource_updated)
            connection.exit_stack.callback(self._subscribers.pop, connection, None)
        uris = self._subscribers[connection].uris
        if uri not in uris and len(uris) >= _MOST_OF_ONE:
            raise MCPError(types.INTERNAL_ERROR, f"at most {_MOST_OF_ONE} subscriptions are kept for a client")
        await self._begin(session, uri, uris)

    def remove(self, connection: Connection, uri: str) -> None:
        """Notify this connection no more of this resource."""
        if connection in self._subscribers:
            self._subscribers[connection].uris.discard(uri)

    async def listen(
        self,
        ctx: Context,
        asked: types.SubscriptionsListenRequestParams,
        session: Session,
        is_current: Callable[[], bool],
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of notifications: of what it asks for, the resources that the session may read now."""
        bus = InMemorySubscriptionBus()
        subscriber = _Subscriber(session, is_current, lambda uri: bus.publish(ResourceUpdated(uri)))
        self._subscribers[bus] = subscriber
        try:
            for uri in list(dict.fromkeys(asked.notifications.resource_subscriptions or ()))[:_MOST_OF_ONE]:
                with suppress(NotebookError, PromptError):
                    await self._begin(session, uri, subscriber.uris)
            granted = types.SubscriptionFilter(resource_subscriptions=sorted(subscriber.uris))
            return await ListenHandler(bus)(ctx, asked.model_copy(update={"notifications": granted}))
        finally:
            del self._subscribers[bus]

    async def _begin(self, session: Session, uri: str, uris: set[str]) -> None:
        """Know what a resource says now, so that every later change is one."""
        uris.add(uri)
        try:
            state = await anyio.to_thread.run_sync(state_of, self._notebook, uri, session)
        except BaseException:
            uris.discard(uri)
            raise
        self._states.setdefault((session, uri), state)

    async def _follow(self) -> None:
        while True:
            await anyio.sleep(_POLL_SECONDS)
            wanted = {(each.session, uri) for each in self._subscribers.values() for uri in each.uris}
            self._states = {target: state for target, state in self._states.items() if target in wanted}
            for session, uri in wanted:
                state = await anyio.to_thread.run_sync(self._state_now, session, uri)
                if state is not None and state != self._states.setdefault((session, uri), state):
                    self._states[session, uri] = state
                    await self._tell(session, uri)

    def _state_now(self, session: Session, uri: str) -> str | None:
        """ "" for a note that was deleted; None where the resource cannot be read now, which is no news."""
        try:
            return state_of(self._notebook, uri, session)
        except NotFound:
            return ""
        except (NotebookError, PromptError, OSError):
            return None

    async def _tell(self, session: Session, uri: str) -> None:
        for each in list(self._subscribers.values()):
            if each.session == session and uri in each.uris and await anyio.to_thread.run_sync(each.is_current):
                with anyio.move_on_after(_SEND_SECONDS):
                    await each.send(uri)
