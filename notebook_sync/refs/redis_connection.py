"""How a Redis is opened, asked and blamed. No key is named here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as BrokenConnection
from redis.exceptions import RedisError
from redis.retry import Retry

from notebook_sync.address import Address
from notebook_sync.errors import BackendDown, ConfigError


class Connection:
    """What commands are sent over. Opening it asks nothing of the server. A `client` that is passed in stays open."""

    def __init__(self, url: str, timeout_seconds: float, client: redis.Redis | None = None) -> None:
        self._address = Address.of(url)
        self.name = f"Redis at {self._address.place}"
        self._is_own = client is None
        self._client: Any = open_client(url, timeout_seconds) if client is None else client

    @contextmanager
    def asking(self) -> Iterator[Any]:
        """The client, for one request: no error of the driver gets out."""
        try:
            yield self._client
        except RedisError as error:
            raise BackendDown(self.name, self._address.without_secrets(str(error))) from None

    @contextmanager
    def pipeline(self) -> Iterator[Any]:
        """Commands sent together, without a transaction: their keys may live on different servers."""
        with self.asking() as client, client.pipeline(transaction=False) as pipeline:
            yield pipeline

    def close(self) -> None:
        """Let the connections go. Twice is allowed."""
        if self._is_own:
            self._client.close()


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
