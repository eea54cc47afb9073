"""Who is told when a resource changes: clients of both eras of MCP, by the way each era has for it.

File events and a timer only say that it is time to look; what is told is that a resource now says something else to
that very session. Runs while somebody is subscribed, and needs no other process.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.mcp import resources
from notebook_sync.sync.events import EventSource
from prompt.errors import PromptError

# File events may be lost, and an entry of the prompt may expire without any.
_LOOK_AGAIN_SECONDS = 2.0
_MOST_SUBSCRIPTIONS = 1000
_MOST_OF_ONE = 100
# Who does not take what they are told is not waited for any longer.
_PATIENCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Target:
    """A resource as one session sees it."""

    session: Session
    uri: str


@dataclass(frozen=True, slots=True)
class _Subscriber:
    """A client of the era before 2026-07-28, told on its connection's own channel."""

    target: _Target
    channel: ServerSession


class Subscriptions:
    """The subscriptions to one notebook, in the event loop of one server.

    `is_current` tells whether a session still has a token: one that has not is told nothing more.
    """

    def __init__(self, notebook: Notebook, is_current: Callable[[Session], bool] = lambda _: True) -> None:
        self._notebook = notebook
        self._is_current = is_current
        self._connections: set[Connection] = set()
        self._subscribers: dict[tuple[Connection, str], _Subscriber] = {}
        self._listened: Counter[_Target] = Counter()
        self._streams: dict[Session, tuple[InMemorySubscriptionBus, ListenHandler]] = {}
        self._known: dict[_Target, str] = {}
        self._wanted = anyio.Event()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tell of changes, from the first subscription on, until left."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def add(self, channel: ServerSession, uri: str, session: Session) -> None:
        """Tell this connection from now on, until it ends. Raises as `resources.require`, and MCPError where there are
        too many."""
        connection = _connection_of(channel)
        own = self._uris_of(connection)
        if uri not in own and (len(own) >= _MOST_OF_ONE or len(self._subscribers) >= _MOST_SUBSCRIPTIONS):
            raise MCPError(types.INTERNAL_ERROR, "there are too many subscriptions already")
        if connection not in self._connections:
            self._connections.add(connection)
            connection.exit_stack.callback(self._ended, connection)
        target = _Target(session, uri)
        await self._begin(target)
        if connection in self._connections:  # it has not ended meanwhile
            self._subscribers[connection, uri] = _Subscriber(target, channel)

    def remove(self, channel: ServerSession, uri: str) -> None:
        """Tell this connection no more of this resource."""
        self._remove(_connection_of(channel), uri)

    async def listen(
        self,
        ctx: ServerRequestContext[object, object],
        asked: types.SubscriptionsListenRequestParams,
        session: Session,
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of notifications as of 2026-07-28: of what it asks for, the resources that the session may
        read now, and not too many. The answer names them."""
        targets = []
        for uri in islice(dict.fromkeys(asked.notifications.resource_subscriptions or ()), _MOST_OF_ONE):
            with contextlib.suppress(NotebookError, PromptError):
                await self._begin(_Target(session, uri))
                targets.append(_Target(session, uri))
        granted = types.SubscriptionFilter(resource_subscriptions=[target.uri for target in targets])
        _, stream = self._stream_of(session)
        with self._listening(targets):
            return await stream(ctx, asked.model_copy(update={"notifications": granted}))

    async def _begin(self, target: _Target) -> None:
        """Know what the resource says now, so that every later change is one."""
        await anyio.to_thread.run_sync(resources.require, self._notebook, target.uri, target.session)
        state = await anyio.to_thread.run_sync(resources.state_of, self._notebook, target.uri, target.session)
        self._known.setdefault(target, state or "")
        self._wanted.set()

    @contextlib.contextmanager
    def _listening(self, targets: Iterable[_Target]) -> Iterator[None]:
        counted = Counter(targets)
        self._listened.update(counted)
        try:
            yield
        finally:
            self._listened -= counted
            self._forget(counted)

    def _uris_of(self, connection: Connection) -> list[str]:
        return [uri for one, uri in self._subscribers if one is connection]

    def _ended(self, connection: Connection) -> None:
        self._connections.discard(connection)
        for uri in self._uris_of(connection):
            self._remove(connection, uri)

    def _remove(self, connection: Connection, uri: str) -> None:
        removed = self._subscribers.pop((connection, uri), None)
        if removed is not None:
            self._forget([removed.target])

    def _forget(self, targets: Iterable[_Target]) -> None:
        """What a resource says is of no interest when nobody is told of it any more."""
        for target in set(targets) - self._targets():
            self._known.pop(target, None)

    def _targets(self) -> set[_Target]:
        return {subscriber.target for subscriber in self._subscribers.values()} | set(self._listened)

    def _stream_of(self, session: Session) -> tuple[InMemorySubscriptionBus, ListenHandler]:
        """Each session has its own: what one of them is told, another may not know."""
        if session not in self._streams:
            bus = InMemorySubscriptionBus()
            self._streams[session] = bus, ListenHandler(bus, max_subscriptions=_MOST_SUBSCRIPTIONS)
        return self._streams[session]

    async def _follow(self) -> None:
        await self._wanted.wait()
        source = EventSource(self._notebook.root)
        try:
            await anyio.to_thread.run_sync(source.start, abandon_on_cancel=True)
            while True:
                for target in await self._changed():
                    await self._tell(target)
                await anyio.to_thread.run_sync(source.wait, _LOOK_AGAIN_SECONDS, abandon_on_cancel=True)
        finally:
            source.close()

    async def _changed(self) -> list[_Target]:
        """The resources that say something else than at the last look."""
        states = await anyio.to_thread.run_sync(self._look_at, frozenset(self._targets()))
        states = {target: states[target] for target in states.keys() & self._targets()}
        changed = [target for target, state in states.items() if self._known.get(target, state) != state]
        self._known.update(states)
        return changed

    def _look_at(self, targets: frozenset[_Target]) -> dict[_Target, str]:
        """What each says, where that can be told. In a thread."""
        states = {target: resources.state_of(self._notebook, target.uri, target.session) for target in targets}
        # Asked last: of a change that came after its token was revoked, a session is not told.
        current = {session for session in {target.session for target in targets} if self._is_current(session)}
        return {target: state for target, state in states.items() if state is not None and target.session in current}

    async def _tell(self, target: _Target) -> None:
        for subscriber in list(self._subscribers.values()):
            if subscriber.target == target:
                with anyio.move_on_after(_PATIENCE_SECONDS):
                    await subscriber.channel.send_resource_updated(target.uri)
        if target in self._listened:
            await self._stream_of(target.session)[0].publish(ResourceUpdated(target.uri))


def _connection_of(channel: ServerSession) -> Connection:
    """Its `exit_stack` tells of its end, whatever the reason. The SDK means it for handlers, and shows it only here."""
    return channel._connection
