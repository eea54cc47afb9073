"""Files = mirror = refs? Reads every file, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.note import Note
from notebook_sync.files.parse import parse
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Breadcrumb, Document, Mirror, Put
from notebook_sync.mirror.document import canonical, document_of, moment
from notebook_sync.permissions import is_private
from notebook_sync.refs.base import Refs
from notebook_sync.sync.diff import refused_its_id
from notebook_sync.sync.report import Difference, Verdict


def verify(
    vault: Vault,
    mirror: Mirror,
    refs: Refs,
    *,
    encoding: str,
    facts_out_of_step: Callable[[], Iterable[str]] = tuple,
    progress: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Compare a fresh parse of every file with its document, every document with its ref, and files of facts with what
    is known of these."""
    scan = vault.scan()
    verdict = Verdict(files=len(scan.seen))
    waiting = dict.fromkeys(scan.seen, "") | scan.refused
    told = {note_id: (digest, version) for note_id, digest, version in refs.digests()}
    verdict.refs = len(told)
    for document in mirror.documents():
        verdict.mirror += 1
        path = document["path"]
        waiting.pop(path, None)
        if path in scan.seen:
            verdict.differences += _compare(vault, path, document, encoding)
        elif path in scan.refused or scan.is_blind_to(path):
            verdict.differences.append(Difference(path, "stale", scan.refused.get(path, "its folder cannot be read")))
        else:
            verdict.differences.append(Difference(path, "orphan", "the file is not there"))
        verdict.differences += _compare_ref(path, document, told.pop(document["id"], None))
        if progress is not None:
            progress(verdict.mirror, len(scan.seen))
    verdict.differences += [Difference(path, "unmirrored", why) for path, why in sorted(waiting.items())]
    verdict.differences += [
        Difference(note_id, "orphan ref", "there is no note of this id") for note_id in sorted(told)
    ]
    told_of = {difference.path for difference in verdict.differences}
    verdict.differences += [
        Difference(path, "old facts", "the rows of facts tell of another text")
        for path in facts_out_of_step()
        if path not in told_of
    ]
    verdict.consistent = not verdict.differences
    return verdict


def _compare(vault: Vault, path: str, document: Document, encoding: str) -> Iterator[Difference]:
    try:
        raw, stamp = vault.read(path)
    except (UnreadableFile, FileNotFoundError) as error:
        yield Difference(path, "stale", str(error))
        return
    note = _as_numbered(parse(path, raw, encoding=encoding), document)
    if document["stale"]:
        yield Difference(path, "stale", document["stale"])
        return
    now = Breadcrumb(moment(stamp.mtime_ns), "")
    fresh = canonical(document_of(Put(document["id"], note, stamp, None, "", now)))
    held = canonical(document)
    if fresh != held:
        keys = sorted(key for key in fresh.keys() | held.keys() if fresh.get(key) != held.get(key))
        yield Difference(path, "differs", f"in {', '.join(keys)}")


def _as_numbered(note: Note, document: Document) -> Note:
    """The note as it was stored: with the remark that another file has its id, where that is so."""
    return note if document["id"] == note.wants else refused_its_id(note)


def _compare_ref(path: str, document: Document, told: tuple[str, int] | None) -> Iterator[Difference]:
    if document["collection"] == "channels" or is_private(path):
        if told is not None:
            yield Difference(path, "orphan ref", "hot memory has a ref of it, and notes in channels have none")
    elif told is None:
        yield Difference(path, "no ref", "hot memory has no ref of this note")
    elif told != (document["source"]["digest"], document["metadata"]["version"]):
        yield Difference(path, "old ref", f"hot memory has version {told[1]}")
