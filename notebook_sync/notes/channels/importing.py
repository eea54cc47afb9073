"""Bringing an older program's notes into channels: each message once, however often its export is read.

Nothing is left out in silence: what is not taken is listed with its place and the reason.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from notebook_sync.errors import BackendDown, NotebookError, UnreadableFile, UsageError
from notebook_sync.files.parse import wanted_id
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Mirror
from notebook_sync.notes.channels.channels import folder_of, scope_of
from notebook_sync.notes.channels.older_export import Found, messages_in
from notebook_sync.notes.channels.private_note import Draft
from notebook_sync.notes.editing.door import Door, Text
from notebook_sync.notes.guard import Guard
from notebook_sync.sessions import Session

LARGEST_BYTES = 100 << 20
_TOOL = "import"
_BATCH = 200
_ASKED_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of an export's messages: `read` is all of them, the sum of `written`, `already` and `failed`. A
    failure is `{where, error}`."""

    read: int
    written: int
    already: int
    failed: tuple[dict[str, str], ...] = ()
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "read": self.read,
            "written": self.written,
            "already": self.already,
            "failed": list(self.failed),
            "warnings": list(self.warnings),
        }


@dataclass(slots=True)
class _Channel:
    """What a channel's folder holds already, and what is to come."""

    ids: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)


class NoteImport:
    """Imports into one notebook. `mirror` opens the content store, which may be away."""

    def __init__(self, vault: Vault, guard: Guard, door: Door, mirror: Callable[[], Mirror]) -> None:
        self._vault = vault
        self._guard = guard
        self._door = door
        self._mirror = mirror

    def bring_in(self, file: Path, session: Session) -> Imported:
        """Write a note for each message of the export that is not one yet. Raises NotPermitted for who is no owner,
        UsageError for a file that cannot be read or is no export."""
        if session.kind != "owner":
            self._guard.refuse(session, _TOOL, "Importing notes is only available in owner conversations")
        found = messages_in(_text_of(file))
        texts, errors, already = self._planned(found)
        warnings: dict[str, None] = {}
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            for where, text in self._entered(batch, session, warnings):
                errors[where] = text
        failed = tuple({"where": one.where, "error": errors[at]} for at, one in enumerate(found) if at in errors)
        written = len(found) - already - len(failed)
        return Imported(len(found), written, already, failed, tuple(warnings))

    def _planned(self, found: Sequence[Found]) -> tuple[list[tuple[int, Text]], dict[int, str], int]:
        """By the message's number, the files to write; why others cannot be; and how many there are already."""
        texts: list[tuple[int, Text]] = []
        errors = {at: one.error for at, one in enumerate(found) if one.draft is None}
        already = 0
        elsewhere = self._claimed([one.draft.id for one in found if one.draft is not None])
        channels: dict[str, _Channel] = {}
        for at, one in enumerate(found):
            if one.draft is None:
                continue
            try:
                folder = folder_of(one.agent, scope_of(one.project))
                if folder not in channels:
                    channels[folder] = self._channel(folder)
                channel = channels[folder]
                if one.draft.id in channel.ids or one.draft.id in elsewhere:
                    already += 1
                    continue
                raw = self._raw(one.draft)
            except UsageError as error:
                errors[at] = str(error)
                continue
            path = _free(f"{folder}/{one.draft.name()}", channel.paths)
            channel.ids.add(one.draft.id)
            channel.paths.add(path)
            texts.append((at, Text(path, None, raw, "import")))
        return texts, errors, already

    def _raw(self, draft: Draft) -> bytes:
        raw = draft.raw()
        if len(raw) > self._vault.max_file_bytes:
            raise UsageError(f"it has {len(raw):,} bytes and max_file_bytes is {self._vault.max_file_bytes:,}")
        return raw

    def _channel(self, folder: str) -> _Channel:
        paths = set(self._vault.scan([folder]).seen)
        ids = set()
        for path in paths:
            with suppress(FileNotFoundError, UnreadableFile):
                ids.add(wanted_id(path, self._vault.read(path)[0]))
        return _Channel(ids, paths)

    def _claimed(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that notes of any folder have, as far as the mirror can tell: a note may have been moved."""
        claimed: set[str] = set()
        with suppress(BackendDown):
            for start in range(0, len(ids), _ASKED_AT_ONCE):
                claimed |= {row.wants for row in self._mirror().claimants(ids[start : start + _ASKED_AT_ONCE])}
        return claimed

    def _entered(
        self, batch: Sequence[tuple[int, Text]], session: Session, warnings: dict[str, None]
    ) -> Iterable[tuple[int, str]]:
        """Write all of them; where not all can be, each by itself. Yields those that failed, and why."""
        try:
            entered = self._door.enter([text for _, text in batch], session, _TOOL)
        except NotebookError as error:
            if len(batch) == 1:
                yield batch[0][0], str(error)
                return
            for one in batch:
                yield from self._entered([one], session, warnings)
        else:
            warnings |= dict.fromkeys(entered.warnings)


def _text_of(file: Path) -> str:
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"{file} is no file; name the export, a file of JSON")
        size = found.st_size
        if size > LARGEST_BYTES:
            raise UsageError(
                f"{file} has {size:,} bytes and at most {LARGEST_BYTES:,} are read; part it by channels, into several"
            )
        return file.read_bytes().decode("utf-8-sig", errors="surrogateescape")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{file} cannot be read: {reason}; name the export, a file of JSON") from None


def _free(name: str, taken: set[str]) -> str:
    """A path for a note of this name: of several in one second, all but the first are numbered."""
    paths = (f"{name}.md" if number == 1 else f"{name}-{number}.md" for number in count(1))
    return next(path for path in paths if path not in taken)
