"""Which databases there are, and whether they answer. Asks, and makes nothing in them; shows no password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from notebook_sync.address import Address
from notebook_sync.embedded import NAME
from notebook_sync.settings import Settings
from notebook_sync.stores import EMBEDDED_FILE, open_mirror, open_refs

_NOT_MADE = f"{NAME}: not made yet; the first sync makes it"
# What is asked for in this name changes nothing: no note has it.
_NOBODY = "notebook-sync doctor"


def mirror_told(settings: Settings, folder: Path) -> str:
    """What the content store is. Raises BackendDown, ConfigError."""
    if settings.mirror.url:
        return _mongodb(settings)
    if not (folder / EMBEDDED_FILE).exists():
        return _NOT_MADE
    store = open_mirror(settings, lambda: folder)
    try:
        return f"{store.name}: {store.counts()['notes']:,} notes"
    finally:
        store.close()


def refs_told(settings: Settings, folder: Path) -> str:
    """What hot memory is. Raises BackendDown, ConfigError."""
    if settings.refs.url:
        return _redis(settings)
    if not (folder / EMBEDDED_FILE).exists():
        return _NOT_MADE
    store = open_refs(settings, lambda: folder)
    try:
        store.owner()
        return store.name
    finally:
        store.close()


def _mongodb(settings: Settings) -> str:
    from notebook_sync.mirror.mongo_connection import mirror_errors
    from notebook_sync.mirror.mongo_server import open_client

    address = Address.of(settings.mirror.url)
    name = f"MongoDB at {address.place}"
    client = open_client(settings.mirror.url, settings.mirror.timeout_seconds)
    with mirror_errors(name, address), client:
        hello = client.admin.command("hello")
        version = client.server_info()["version"]
        meta = client[settings.mirror.database]["meta"]
        meta.find_one({"_id": _NOBODY})
        meta.update_one({"_id": _NOBODY}, {"$set": {"value": ""}})  # allowed at all? It makes nothing that is not there
    kind = f"replica set {hello['setName']}" if "setName" in hello else "standalone"
    return f"{name}: version {version}, {'sharded' if hello.get('msg') == 'isdbgrid' else kind}"


def _redis(settings: Settings) -> str:
    from notebook_sync.refs.redis_connection import is_of_a_cluster, open_client

    store = open_refs(settings, Path)
    try:
        store.owner()
    finally:
        store.close()
    with open_client(settings.refs.url, settings.refs.timeout_seconds) as client:
        version = _version(client)
        if is_of_a_cluster(client):
            return f"{store.name}: {version}, a cluster, which is not searched"
        search = "with" if _has_search(client) else "without"
    return f"{store.name}: {version}, {search} the search module"


def _version(client: Any) -> str:
    import redis

    try:
        return f"version {client.info('server')['redis_version']}"
    except redis.ResponseError:  # a user who may use the keys need not be allowed to look at the server
        return "a version it does not tell"


def _has_search(client: Any) -> bool:
    """Asked by using it: a managed server may not tell its modules."""
    import redis

    try:
        client.execute_command("FT._LIST")
    except redis.ResponseError:
        return False
    return True
