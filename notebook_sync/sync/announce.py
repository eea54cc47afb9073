"""Mirror → hot memory. Idempotent: what the mirror calls pending is told until hot memory has it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from notebook_sync.files.note import Ref
from notebook_sync.mirror.base import Mirror
from notebook_sync.refs.base import Refs

_ROUNDS = 5
_BATCH = 500


def announce(mirror: Mirror, refs: Refs, ids: Collection[str] | None = None, *, quiet: bool = False) -> None:
    """Tell hot memory what it does not know yet: of `ids`, or everything. Raises BackendDown.

    A row that another writer changed between the two stores keeps its `pending`; a further round tells the newer state,
    so that the last to write a ref has always seen the row after it. quiet: without entries in the daily stream.
    """
    for _ in range(_ROUNDS):
        behind = mirror.pending(ids)
        if not behind:
            return
        for some in _batches(behind):
            refs.write(some, announce=not quiet)
            mirror.refs_written(some)


def adopt(mirror: Mirror, refs: Refs, *, anew: bool = False) -> None:
    """Write every ref when hot memory is new, was emptied or holds another mirror's refs (or `anew`)."""
    store_id = mirror.store_id()
    if refs.owner() == store_id and not anew:
        return
    kept = []
    for some in _batches(mirror.refs()):
        refs.write(some, announce=False)
        kept += [ref.id for ref in some]
    refs.adopt(store_id, kept)


def _batches(refs: Iterable[Ref]) -> Iterator[list[Ref]]:
    rest = iter(refs)
    while some := list(islice(rest, _BATCH)):
        yield some
