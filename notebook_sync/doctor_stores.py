"""Which databases there are, and whether they answer. Asks, and makes nothing in them; shows no password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from notebook_sync.address import Address
from notebook_sync.config import Settings
from notebook_sync.errors import BackendDown, ConfigError
from notebook_sync.stores import open_mirror, open_refs


def mirror_told(settings: Settings, folder: Path) -> str:
    """What the content store is. Raises BackendDown, ConfigError."""
    if settings.mirror.url:
        return _mongodb(settings)
    store = open_mirror(settings, lambda: folder)
    try:
        return f"{store.name}: {store.counts()['notes']:,} notes"
    finally:
        store.close()


def refs_told(settings: Settings, folder: Path) -> str:
    """What hot memory is. Raises BackendDown, ConfigError."""
    if settings.refs.url:
        return _redis(settings)
    store = open_refs(settings, lambda: folder)
    try:
        store.owner()
        return store.name
    finally:
        store.close()


def _mongodb(settings: Settings) -> str:
    from pymongo import MongoClient
    from pymongo.errors import ConfigurationError

    from notebook_sync.mirror.mongo_connection import mirror_errors

    address = Address.of(settings.mirror.url)
    name = f"MongoDB at {address.place}"
    milliseconds = int(settings.mirror.timeout_seconds * 1000)
    try:
        client: MongoClient[Any] = MongoClient(
            settings.mirror.url,
            serverSelectionTimeoutMS=milliseconds,
            connectTimeoutMS=milliseconds,
            socketTimeoutMS=milliseconds,
        )
    except (ConfigurationError, ValueError) as error:
        raise ConfigError(f"[mirror] url is not a MongoDB address: {address.without_secrets(str(error))}") from None
    with mirror_errors(name, address), client:
        hello = client.admin.command("hello")
        version = client.server_info()["version"]
    kind = f"replica set {hello['setName']}" if "setName" in hello else "standalone"
    return f"{name}: version {version}, {'sharded' if hello.get('msg') == 'isdbgrid' else kind}"


def _redis(settings: Settings) -> str:
    import redis

    address = Address.of(settings.refs.url)
    name = f"Redis at {address.place}"
    timeout = settings.refs.timeout_seconds
    try:
        client: Any = redis.Redis.from_url(
            settings.refs.url, socket_timeout=timeout, socket_connect_timeout=timeout, decode_responses=True
        )
    except ValueError as error:
        raise ConfigError(f"[refs] url is not a Redis address: {address.without_secrets(str(error))}") from None
    try:
        with client:
            version = client.info("server")["redis_version"]
            search = "with" if _has_search(client) else "without"
    except redis.RedisError as error:
        raise BackendDown(name, address.without_secrets(str(error))) from None
    return f"{name}: version {version}, {search} the search module"


def _has_search(client: Any) -> bool:
    """Asked by using it: a managed server may not tell its modules."""
    import redis

    try:
        client.execute_command("FT._LIST")
    except redis.ResponseError:
        return False
    return True
