"""What the notes say now, kept as a list for hot memory and as a snapshot by git, and what brings a snapshot back.

Nothing here writes a note: that is the door's to do.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from notebook_sync.errors import GitFailed, UnreadableFile, UnsafePath, UsageError
from notebook_sync.files import snapshots
from notebook_sync.files.note import collection_of
from notebook_sync.files.parse import wanted_id
from notebook_sync.files.snapshots import Snapshot
from notebook_sync.files.vault import Scan, Vault
from notebook_sync.mirror.base import Known
from notebook_sync.notes.editing.door import Text, digest_of
from notebook_sync.permissions import is_private

ACTION = "rollback"
_MOST_NAMED = 3


class KeptNotes:
    """The notes of one vault, now and then."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def listed(self, known: Iterable[Known]) -> list[dict[str, Any]]:
        """`{id, collection, path, version, digest}` of every note but private ones, as the files are now, by id.

        What is `known` of a file whose stamp is the same spares a look at it.
        """
        rows = {row.path: row for row in known}
        scan = self._vault.scan()
        paths = scan.seen.keys() | {path for path in rows if scan.is_blind_to(path)}
        found = (self._listed(path, rows.get(path), scan) for path in paths if not is_private(path))
        return sorted((one for one in found if one), key=lambda one: (one["id"], one["path"]))

    def keep(self, checkpoint_id: str, name: str) -> tuple[str, str]:
        """Keep what all notes say: the commit, "" without git; and why there is none where there should be."""
        scan = self._vault.scan()
        left_out = scan.blind | scan.excluded | scan.refused.keys()
        notes = self._read_all(sorted(scan.seen), left_out)
        try:
            subject = f"Checkpoint {name or checkpoint_id}"
            return snapshots.take(self._vault.root, checkpoint_id, notes, subject, left_out), ""
        except GitFailed as failure:
            return "", f"kept without the files: {failure}"

    def drop(self, checkpoint_ids: Iterable[str]) -> None:
        """Let what was kept under these ids go."""
        with contextlib.suppress(GitFailed):
            snapshots.drop(self._vault.root, checkpoint_ids)

    def snapshot_of(self, checkpoint_id: str, commit: str) -> Snapshot:
        """What was kept of the files. Raises UsageError where there is nothing, saying what to do; GitFailed."""
        if not commit:
            raise UsageError(
                f"the checkpoint {checkpoint_id} has no files, for there was no git; roll back without files. For "
                f"later ones make a repository: git init {shlex.quote(str(self._vault.root))}"
            )
        found = snapshots.read(self._vault.root, commit)
        if found is None:
            raise UsageError(
                f"the files of the checkpoint {checkpoint_id} are in the commit {commit[:12]}, which is not in this "
                f"repository; fetch {snapshots.REFS}/{checkpoint_id} from where it was made, or roll back without files"
            )
        return found

    def texts_of(self, snapshot: Snapshot, reason: str) -> tuple[list[Text], tuple[str, ...]]:
        """What is to be written so that the notes are those of the snapshot; and of which that cannot be, and why."""
        now: dict[str, bytes | None] = {}
        left: list[str] = []
        in_the_way: list[str] = []
        seen = self._vault.scan().seen.keys()
        new = seen - snapshot.blobs.keys()
        made_since = {path for path in new if not snapshot.is_silent_about(path)}
        if unknown := sorted(new - made_since):
            left.append(_told_unknown(unknown))
        for path in (*sorted(made_since), *snapshot.blobs):
            try:
                if path not in seen:
                    self._vault.must_be_for_notes(path)
                now[path] = self._read(path)
            except (UnsafePath, UnreadableFile) as error:
                left.append(f"left as it is: {error}")
                in_the_way.append(f"{path}/")
        # Where a note became a folder, what is in there stays as well.
        now = {path: raw for path, raw in now.items() if not path.startswith(tuple(in_the_way))}
        differing = [path for path, raw in now.items() if path in snapshot.blobs and not _is(snapshot, path, raw)]
        then: Mapping[str, bytes | None] = dict.fromkeys(made_since) | dict(
            snapshots.contents(self._vault.root, snapshot, differing)
        )
        texts = []
        for path, before in now.items():
            if path not in then:
                continue
            after = then[path]
            if after is not None and len(after) > self._vault.max_file_bytes:
                left.append(f"left as it is: {path}: then it had {len(after):,} bytes, more than max_file_bytes")
            else:
                texts.append(Text(path, before, after, ACTION, reason=reason))
        return [text for text in texts if text.changes], tuple(left)

    def _listed(self, path: str, row: Known | None, scan: Scan) -> dict[str, Any] | None:
        note_id, version, digest = (row.id, row.version, row.digest) if row else ("", 0, "")
        if path in scan.seen and (row is None or row.stamp != scan.seen[path]):
            try:
                raw = self._read(path)
            except UnreadableFile:  # the last good one counts, as it does for readers
                if row is None:
                    return None
            else:
                if raw is None:
                    return None
                note_id, digest = note_id or wanted_id(path, raw), digest_of(raw)
        return {
            "id": note_id,
            "collection": collection_of(path),
            "path": path,
            "version": version,
            "digest": digest,
        }

    def _read_all(self, paths: Iterable[str], left_out: set[str]) -> Iterator[tuple[str, bytes]]:
        for path in paths:
            try:
                raw = self._read(path)
            except UnreadableFile:
                left_out.add(path)
            else:
                if raw is not None:
                    yield path, raw

    def _read(self, path: str) -> bytes | None:
        try:
            return self._vault.read(path)[0]
        except FileNotFoundError:
            return None


def _told_unknown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
    named = ", ".join(paths[:_MOST_NAMED])
    return f"left as it is: {named}{more}: no note then, or unreadable, so the checkpoint cannot tell what it said"


def _is(snapshot: Snapshot, path: str, raw: bytes | None) -> bool:
    return raw is not None and snapshot.holds(path, raw)
