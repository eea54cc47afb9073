"""Mirror → hot memory. Idempotent: what the mirror calls pending is told until hot memory has it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from notebook_sync.files.note import Ref
from notebook_sync.mirror.base import Mirror
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

    What was told to one that was emptied is not told again; what it was not told yet is. A mirror without a note takes
    no other's refs away, unless `even_empty`: a new store on an empty mount point looks like that.
    """
    store_id = mirror.store_id()
    owner = refs.owner()
    if not anew and (owner == store_id or (owner and not even_empty and next(mirror.refs(), None) is None)):
        return
    for some in _batches(mirror.refs()):
        _tell(mirror, refs, some, announce=not quiet)
    refs.adopt(store_id, (ref.id for ref in mirror.refs()))


def _tell(mirror: Mirror, refs: Refs, some: Sequence[Ref], *, announce: bool) -> None:
    """Write refs, and write again what another writer changed meanwhile, who may have told it before this one did:
    the last to write a ref always looks at the row after that."""
    for _ in range(_ROUNDS):
        refs.write(some, announce=announce)
        some = mirror.refs_written(some)
        if not some:
            return


def _batches(refs: Iterable[Ref]) -> Iterator[list[Ref]]:
    rest = iter(refs)
    while some := list(islice(rest, _BATCH)):
        yield some
