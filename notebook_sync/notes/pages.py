"""Pages, code snippets and research notes that agents keep: making one, and changing one by its fields.

A note is a file, written through the one door; the mirror follows. Whoever wrote a note first, nobody's text is ever
written over that was not read before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from typing import Any

from notebook_sync.errors import EditFailed, NoSuchNote, UsageError
from notebook_sync.files.names import reason_against, twin_of
from notebook_sync.files.new_note import new_id, slug_of
from notebook_sync.files.note import SHARED_COLLECTIONS
from notebook_sync.files.parse import parse
from notebook_sync.files.provenance import is_external
from notebook_sync.files.vault import Vault
from notebook_sync.notes.editing.door import Text
from notebook_sync.notes.editing.editing import Editing
from notebook_sync.notes.editing.effects import Edited
from notebook_sync.notes.editing.written import Written
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.page_text import Wanted, new_page, updated_page
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session

CREATE, UPDATE = "notebook_create", "notebook_update"


class Pages:
    """The agent notebook of one notebook. `find` is `Lookup.find_path`; `version` gives what the mirror counts for the
    note at a path, None where it does not answer."""

    def __init__(
        self,
        vault: Vault,
        guard: Guard,
        editing: Editing,
        find: Callable[[str, Session, Verb, str], str],
        version: Callable[[str], int | None],
    ) -> None:
        self._vault = vault
        self._guard = guard
        self._editing = editing
        self._find = find
        self._version = version

    def create(self, collection: str, wanted: Wanted, session: Session) -> Written:
        """Make a note, in a file that is named after its title. Raises UsageError, NotPermitted, and as an edit."""
        if collection not in SHARED_COLLECTIONS:
            raise UsageError(f"notes are made in {', '.join(SHARED_COLLECTIONS)}, not in {collection!r}")
        raw = b""
        self._guard.require(session, "write", collection, CREATE)
        for path in self._free_paths(collection, wanted.title or ""):
            if not self._guard.may(session, "read", path):
                continue  # a withheld path counts as taken, whether a note is there or not
            self._guard.require(session, "write", path, CREATE)
            raw = raw or new_page(
                collection,
                wanted,
                note_id=new_id(),
                created_by=session.changed_by,
                created_at=datetime.now(UTC).replace(microsecond=0),
            )
            text = Text(path, None, raw, "create")
            with suppress(_Taken):
                edited = self._editing.put(path, _onto_nothing(text), session)
                return self._written(text, edited, _given(wanted))
        raise AssertionError("there is always a next number")

    def update(self, name: str, wanted: Wanted, session: Session, expected_digest: str | None = None) -> Written:
        """Change of a note what is asked for, and no other byte; nothing where it says that already.

        Raises UsageError, NotPermitted, NoSuchNote, and as an edit.
        """
        path = self._find(name, session, "write", UPDATE)
        drafts: list[tuple[Text, tuple[str, ...]]] = []

        def draft(before: bytes | None) -> Text:
            if before is None:
                raise NoSuchNote(f"{path} is gone")
            try:
                after, changed = updated_page(path, before, wanted)
            except EditFailed as failed:
                raise EditFailed(path, failed.reason, failed.candidates, external=is_external(before)) from None
            drafts.append((Text(path, before, after, "update", told=f"Update {', '.join(changed)}"), changed))
            return drafts[-1][0]

        edited = self._editing.put(path, draft, session, expected_digest=expected_digest)
        return self._written(drafts[-1][0], edited, drafts[-1][1])

    def _free_paths(self, collection: str, title: str) -> Iterator[str]:
        """Paths that nothing had when they were looked for, the one without a number first."""
        kind = collection.removesuffix("s").replace("_", "-")
        slug = slug_of(title, kind)
        if reason_against(f"{slug}.md"):  # the name of a device
            slug = f"{slug}-{kind}"
        names = self._names_in(collection)
        for number in count(1):
            name = f"{slug}.md" if number == 1 else f"{slug}-{number}.md"
            if name not in names and twin_of(name, names) is None:
                yield f"{collection}/{name}"

    def _names_in(self, collection: str) -> set[str]:
        try:
            with os.scandir(self._vault.root / collection) as listing:
                return {entry.name for entry in listing}
        except OSError:
            return set()

    def _written(self, text: Text, edited: Edited, changed: Sequence[str]) -> Written:
        note = parse(text.path, text.after or b"")
        return Written(
            notebook_id=note.wants,
            path=text.path,
            title=note.title,
            collection=note.collection,
            version=edited.version if text.changes else self._version(text.path),
            status=note.status,
            digest=edited.digest,
            changed=tuple(changed),
            commit=edited.commit,
            warnings=edited.warnings,
            external=edited.external,
        )


class _Taken(Exception):
    """Somebody else made a note at this path meanwhile."""


def _onto_nothing(text: Text) -> Callable[[bytes | None], Text]:
    def make(before: bytes | None) -> Text:
        if before is not None:
            raise _Taken
        return text

    return make


def _given(wanted: Wanted) -> list[str]:
    """The names of what was given."""
    given: Mapping[str, Any] = {
        "title": wanted.title,
        "content": wanted.content,
        "summary": wanted.summary,
        "tags": wanted.tags,
        "status": wanted.status,
        **(wanted.fields or {}),
    }
    return [name for name, value in given.items() if value not in (None, "", (), [])]
