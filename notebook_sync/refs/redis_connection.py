"""How a Redis, or a Redis Cluster, is opened, asked and blamed. No key is named here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as BrokenConnection
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from notebook_sync.address import Address
from notebook_sync.errors import BackendDown, ConfigError
from notebook_sync.refs.redis_cluster import Cluster, ClusterClient


class Connection:
    """What commands are sent over: one server, or a cluster, as the server at the address says when it is first asked.

    Opening it asks nothing. A `client` that is passed in stays open, and is taken as it is.
    """

    def __init__(self, url: str, timeout_seconds: float, client: redis.Redis | None = None) -> None:
        self._url = url
        self._timeout_seconds = timeout_seconds
        self._address = Address.of(url)
        self.name = f"Redis at {self._address.place}"
        self._is_own = client is None
        self._first: Any = open_client(url, timeout_seconds) if client is None else client
        self._chosen: Any = client
        self._choosing = threading.Lock()

    @contextmanager
    def asking(self) -> Iterator[Any]:
        """The client, for one request: no error of the driver gets out."""
        try:
            yield self._client()
        except RedisError as error:
            raise BackendDown(self.name, self._address.without_secrets(str(error))) from None

    @contextmanager
    def pipeline(self) -> Iterator[Any]:
        """Commands sent together, without a transaction: their keys may live on different servers."""
        with self.asking() as client, client.pipeline(transaction=False) as pipeline:
            yield pipeline

    def is_cluster(self) -> bool:
        """Whether keys are spread over several nodes. Raises BackendDown."""
        with self.asking() as client:
            return isinstance(client, ClusterClient)

    def close(self) -> None:
        """Let the connections go. Twice is allowed."""
        if self._is_own:
            self._first.close()
        if isinstance(self._chosen, ClusterClient):
            self._chosen.close()

    def _client(self) -> Any:
        if self._chosen is None:
            chosen = self._choose()  # without the lock: where the server hangs, nobody waits for somebody else's wait
            with self._choosing:
                self._chosen = self._chosen or chosen
        return self._chosen

    def _choose(self) -> Any:
        kwargs = self._first.connection_pool.connection_kwargs
        if "path" in kwargs or not is_of_a_cluster(self._first):  # over a socket's file no other node is met
            return self._first
        return ClusterClient(Cluster(self._open_node, (kwargs.get("host", "localhost"), kwargs.get("port", 6379))))

    def _open_node(self, place: tuple[str, int]) -> redis.Redis:
        """A client for another node: the address's user, encryption and options, and the same timeouts."""
        node = open_client(self._url, self._timeout_seconds)
        node.connection_pool.connection_kwargs |= {"host": place[0], "port": place[1]}
        return node


def is_of_a_cluster(client: Any) -> bool:
    """Whether the server is a node of a cluster. Asked by HELLO, which needs no rights."""
    try:
        told = client.execute_command("HELLO")
    except ResponseError:  # a Redis before 6
        return False
    told = told if isinstance(told, dict) else dict(zip(told[::2], told[1::2], strict=True))
    return bool(told.get("mode") == "cluster")


def open_client(url: str, timeout_seconds: float) -> redis.Redis:
    """A client that has asked nothing yet and waits no longer than it is told. Raises ConfigError."""
    try:
        return redis.Redis.from_url(
            url,
            decode_responses=True,
            encoding_errors="surrogatepass",
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            # Once, for a connection that broke while it was idle. A server that hangs is not asked twice.
            retry=Retry(NoBackoff(), 1, supported_errors=(BrokenConnection,)),
        )
    except ValueError as error:
        reason = Address.of(url).without_secrets(str(error))
        raise ConfigError(f"[refs] url is not a Redis address: {reason}") from None
