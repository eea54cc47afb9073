"""One import of memories while it goes on: records become files, batch by batch, and each is counted once: as added, as
here already, as deleted since it was imported, or as failed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from notebook_sync.errors import NotebookError, TooLarge, UsageError
from notebook_sync.files.names import folded
from notebook_sync.files.note import Stamp
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.memories import Link
from notebook_sync.notes.editing.door import digest_of
from notebook_sync.notes.memories.importing.left import LeftOver
from notebook_sync.notes.memories.importing.lines import Found
from notebook_sync.notes.memories.importing.record import Drafted, Drafting
from notebook_sync.notes.memories.importing.survey import ODD, Survey
from notebook_sync.notes.memories.suggestions import shown

# A name may be taken between the look at a folder and the writing, and by what is no note.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Ready:
    """A memory that is to be written."""

    found: Found
    drafted: Drafted
    note_id: str
    raw: bytes


class ImportRun:
    """What became of the records so far. `imported` are the records that memories were made
    of before: one of these whose memory is not here was deleted since. `stamps` and `digests` are of the files that
    were made, by path, `written` what those say that await a commit, `here` the records that are here now; `changed`
    counts those of the records that are here already that say other things than they did, `circles` the links from a
    memory to itself, which are left out, `brought_back` the priorities that are beyond their scale; `dropped` what
    is no link among links; `usage` is what is known of the use of what is here."""

    def __init__(
        self, vault: Vault, survey: Survey, drafting: Drafting, left: LeftOver, imported: Collection[str]
    ) -> None:
        self._vault = vault
        self._survey = survey
        self._drafting = drafting
        self._left = left
        self._imported = imported
        self._seen: set[str] = set()
        self._taken: dict[str, set[str]] = {}
        self._numbers: Counter[str] = Counter()
        self.read = self.added = self.already = self.needs_review = 0
        self.deleted = self.changed = self.circles = self.brought_back = 0
        self.backup, self.is_stopped = "", False
        self.failed: list[dict[str, Any]] = []
        self.dropped: list[dict[str, Any]] = []
        self.written: dict[str, bytes] = {}
        self.stamps: dict[str, Stamp] = {}
        self.digests: dict[str, str] = {}
        self.here: set[str] = set()
        self.usage: list[tuple[str, int, datetime | None]] = []

    def prepare(self, batch: Iterable[Found]) -> list[Ready]:
        """The memories that the records of a batch become."""
        ready = []
        for found in batch:
            self.read += 1
            try:
                one = self._prepared(found)
            except (UsageError, TooLarge) as error:
                self._fail(found, str(error))
            except ODD as error:
                self._fail(found, f"nothing can be made of it: {error}")
            else:
                ready += [one] if one is not None else []
        return ready

    def count(self, ready: Sequence[Ready]) -> None:
        """Count them as added, which only a dry run may."""
        self.added += len(ready)
        self.needs_review += sum(one.drafted.needs_review for one in ready)

    def write(self, ready: Sequence[Ready]) -> None:
        """Write them."""
        waiting = list(ready)
        for _ in range(_TRIES):
            placed: dict[str, dict[str, Ready]] = defaultdict(dict)
            for one in waiting:
                placed[one.drafted.folder][self._free_name(one.drafted)] = one
            waiting = []
            for folder, notes in placed.items():
                try:
                    made = self._vault.create_all(folder, {name: one.raw for name, one in notes.items()})
                except NotebookError as error:
                    for one in notes.values():
                        self._fail(one.found, str(error))
                    continue
                self.stamps |= made
                for name, one in notes.items():
                    if (path := f"{folder}/{name}") in made:
                        self.written[path] = one.raw
                        self.digests[path] = digest_of(one.raw)
                        self._remember(one)
                    else:
                        waiting.append(one)
            if not waiting:
                break
        for one in waiting:
            self._fail(one.found, f"no name was free for it in {one.drafted.folder}; import the file again")

    def _prepared(self, found: Found) -> Ready | None:
        """None for a record that is here already."""
        if found.fields is None:
            raise UsageError(found.error)
        drafted = self._drafting.draft(found.fields)
        there = self._survey.there
        note_id = there.made.get(drafted.identity) or self._survey.id_for(drafted.id, drafted.identity)
        if drafted.identity in there.made or drafted.identity in self._seen:
            self.already += 1
            self.here.add(drafted.identity)
            self._keep_usage(note_id, drafted)
            if drafted.identity in there.changed:
                self.changed += 1
                self._left.keep(found.raw)
            return None
        if drafted.identity in self._imported:
            self.deleted += 1
            return None
        links = self._links(drafted, note_id)
        raw = drafted.raw(note_id, links)
        if len(raw) > self._vault.max_file_bytes:
            raise TooLarge(f"line {found.line:,}", len(raw), self._vault.max_file_bytes)
        self._seen.add(drafted.identity)
        self.dropped += [_told(found.line, entry, reason) for entry, reason in drafted.dropped]
        self.brought_back += drafted.is_brought_back
        return Ready(found, drafted, note_id, raw)

    def _links(self, drafted: Drafted, note_id: str) -> list[Link]:
        led = [replace(link, to=self._survey.link_for(link.to)) for link in drafted.relations if link.to != drafted.id]
        links = [link for link in led if link.to != note_id]
        self.circles += len(drafted.relations) - len(links)
        return links

    def _free_name(self, drafted: Drafted) -> str:
        if drafted.folder not in self._taken:
            seen = self._vault.scan([drafted.folder]).seen
            self._taken[drafted.folder] = {folded(path.rpartition("/")[2]) for path in seen}
        taken, stem = self._taken[drafted.folder], f"{drafted.folder}/{drafted.name}"
        while True:
            self._numbers[stem] += 1
            number = self._numbers[stem]
            name = f"{drafted.name}.md" if number == 1 else f"{drafted.name}-{number}.md"
            if folded(name) not in taken:
                taken.add(folded(name))
                return name

    def _remember(self, one: Ready) -> None:
        self.count([one])
        self.here.add(one.drafted.identity)
        self._keep_usage(one.note_id, one.drafted)

    def _keep_usage(self, note_id: str, drafted: Drafted) -> None:
        if drafted.accesses or drafted.last_accessed:
            self.usage.append((note_id, drafted.accesses, drafted.last_accessed))

    def _fail(self, found: Found, reason: str) -> None:
        self.failed.append({"line": found.line, "reason": reason})
        self._left.keep(found.raw)


def _told(line: int, entry: Any, reason: str) -> dict[str, Any]:
    return {"line": line, "link": shown(entry), "reason": reason}
