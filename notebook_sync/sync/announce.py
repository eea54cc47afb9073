"""Mirror → hot memory. Idempotent: what the mirror calls pending is told until hot memory has it.

Nothing of a note in a channel is ever told: other programs read that memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from notebook_sync.errors import BackendDown
from notebook_sync.files.note import Ref
from notebook_sync.mirror.base import Mirror
from notebook_sync.permissions import is_private
from notebook_sync.refs.base import Refs

_ROUNDS = 5
_BATCH = 500


def announce(mirror: Mirror, refs: Refs, ids: Collection[str] | None = None, *, quiet: bool = False) -> None:
    """Tell hot memory what it does not know yet: of `ids`, or everything. Raises BackendDown.

    quiet: without entries in the daily stream.
    """
    for _ in range(_ROUNDS):
        behind = mirror.pending(ids)
        if not behind:
            return
        for some in _batches(behind):
            _tell(mirror, refs, some, announce=not quiet)


def adopt(mirror: Mirror, refs: Refs, *, anew: bool = False, quiet: bool = False, even_empty: bool = False) -> None:
    """Write every ref when hot memory is new, was emptied or holds another mirror's refs (or `anew`).

    What was told to one that was emptied is not told again; what it was not told yet is. That it was emptied is noted
    there. A mirror without a note takes no other's refs away, unless `even_empty`: a new store on an empty mount point
    looks like that.
    """
    store_id = mirror.store_id()
    owner = refs.owner()
    if not anew and (owner == store_id or (owner and not even_empty and next(mirror.refs(), None) is None)):
        return
    if not owner and _was_emptied(mirror, refs):
        refs.note_loss(datetime.now(UTC))
    for some in _batches(mirror.refs()):
        _tell(mirror, refs, some, announce=not quiet)
    refs.adopt(store_id, (ref.id for ref in mirror.refs() if not _is_private(ref)))


def is_emptied(mirror: Callable[[], Mirror], refs: Refs) -> bool:
    """Whether hot memory lacks all that it was told, and nobody has noted that yet. A mirror that is away tells of
    nothing. Raises BackendDown of hot memory."""
    if refs.owner():
        return False
    with suppress(BackendDown):
        return _was_emptied(mirror(), refs)
    return False


def _was_emptied(mirror: Mirror, refs: Refs) -> bool:
    """Whether a hot memory without an owner holds nothing of what it, or another before it, was told."""
    if next(refs.digests(), None) is not None:
        return False  # somebody is filling it, or was stopped while he did
    return any(ref.action != "created" for ref in mirror.refs() if not _is_private(ref))


def _tell(mirror: Mirror, refs: Refs, some: Sequence[Ref], *, announce: bool) -> None:
    """Write refs, and write again what another writer changed meanwhile, who may have told it before this one did:
    the last to write a ref always looks at the row after that."""
    for _ in range(_ROUNDS):
        refs.write(_tellable(refs, some), announce=announce)
        some = mirror.refs_written(some)
        if not some:
            return


def _tellable(refs: Refs, some: Sequence[Ref]) -> list[Ref]:
    """What may be told of these notes. Of one in a channel nothing but that it is gone from where it was before, in the
    words that hot memory has of it."""
    private = [ref.id for ref in some if _is_private(ref)]
    known = refs.get_many(private) if private else {}
    told = ((_gone(known[ref.id], ref) if ref.id in known else None) if _is_private(ref) else ref for ref in some)
    return [ref for ref in told if ref is not None]


def _is_private(ref: Ref) -> bool:
    return ref.collection == "channels" or is_private(ref.path)


def _gone(known: dict[str, Any], ref: Ref) -> Ref:
    """A ref as it was told before, to be removed as that of a deleted note is."""
    was_private = is_private(known["path"])  # an earlier version told of them
    return replace(
        ref,
        **{field: known[field] for field in ("title", "summary", "collection", "status", "digest", "agent", "path")},
        version=int(known["version"]),
        updated_at=datetime.fromisoformat(known["updated_at"]),
        provenance=known.get("provenance") or None,
        action="" if was_private else "deleted",
        deleted=True,
    )


def _batches(refs: Iterable[Ref]) -> Iterator[list[Ref]]:
    rest = iter(refs)
    while some := list(islice(rest, _BATCH)):
        yield some
