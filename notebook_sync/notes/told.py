"""What one session may be told of the notes that a filter admits, row by row and text by text; nothing of any other.

What it may not read leaves no trace: not in the number or order of rows, nor in a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import ALL, LARGEST_LIMIT, WEIGHTS, Filter, Name
from notebook_sync.notes.channels.channels import ANY
from notebook_sync.notes.channels.channels import FOLDER as CHANNELS
from notebook_sync.notes.channels.ranking import presence
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.showing import document_shown_to, note_shown, row_shown, sees_all
from notebook_sync.permissions import in_prompt
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

if TYPE_CHECKING:
    from notebook_sync.files.note import Note
    from notebook_sync.mirror.base import Document, Mirror

# A filter that admits no more is asked before an index of meaning is.
_FEW = 1_000


class Told:
    """`Readable` for one search or list. The mirror is opened when it is first asked."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        mirror: Callable[[], Mirror],
        wanted: Filter,
        session: Session,
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._mirror = mirror
        self._session = session
        self._is_owner = session.kind == "owner"
        self._seen: dict[str, bool] = {}
        self._is_narrow = wanted != ALL
        self._filter = wanted if self._is_owner else replace(wanted, of_channels=self._channels())
        self._in_prompt = () if self._is_owner else in_prompt(settings.prompt)
        self.is_everything = self._is_owner and not self._is_narrow
        self.folders: Collection[str] | None = self._filter.of_channels

    def latest(self, limit: int) -> list[Document]:
        """Light rows, the latest change first."""
        return self._first(self._mirror().light, limit)

    def by_words(self, query: str, count: int) -> list[Document]:
        """As `Readable`. A file of the prompt that the session may not change is found by words that it is shown: the
        store, which knows all that the file says, is not asked for it."""

        def ask(filter: Filter, limit: int) -> list[Document]:
            return self._mirror().search(query, limit, replace(filter, not_at=self._in_prompt))

        rows = self._first(ask, count)
        if self._is_owner or not count:
            return rows
        rows = [row for row in rows if self._sees_all(row["path"])] + self._of_prompt(query)
        return sorted(rows, key=lambda row: (-row["score"], row["id"]))[:count]

    def rows(self, ids: Collection[str]) -> Mapping[str, Document]:
        """As `Readable`: a file of the prompt that the session may not change has a meaning that it is not shown."""
        rows = self._mirror().light_many(list(ids), self._filter)
        if self._is_owner:
            return rows
        readable = self._readable(list(rows.values()))
        return {
            note_id: row for note_id, row in rows.items() if row["path"] in readable and self._sees_all(row["path"])
        }

    def meant(self, rows: Sequence[Document]) -> Collection[str]:
        """As `Readable`."""
        return [row["id"] for row in rows if self._is_owner or self._sees_all(row["path"])]

    def few(self) -> Collection[str] | None:
        """As `Readable`."""
        if not self._is_narrow:
            return None
        rows = self._mirror().light(self._filter, _FEW + 1)
        return [row["id"] for row in rows] if len(rows) <= _FEW else None

    def texts(self, rows: Sequence[Document]) -> Mapping[str, Document]:
        """As `Readable`. A note that is elsewhere by now may be one that the session may not read."""
        found = self._mirror().get_many([row["id"] for row in rows])
        same = ((row["id"], found[row["id"]]) for row in rows if row["id"] in found)
        placed = {row["id"]: row["path"] for row in rows}
        texts = ((note_id, self._text(document)) for note_id, document in same if document["path"] == placed[note_id])
        return {note_id: document for note_id, document in texts if document is not None}

    def names(self) -> Iterator[Name]:
        """What the notes answer to that the session may read; of a file of the prompt that it may not change, its path
        alone, for what it was called by its frontmatter is not shown."""
        if self._is_owner:
            yield from self._mirror().names()
            return
        names = {name.path: name for name in self._mirror().names()}
        for path in self._guard.permitted(self._session, "read", names):
            yield names[path] if self._sees_all(path) else Name(path, "", "")

    def lines_before(self, document: Document) -> int:
        """As `Readable`; 0 where the file says something else by now."""
        if document["sections"]:
            return 0
        try:
            text = self._vault.read(document["path"])[0].decode(errors="replace")
        except (FileNotFoundError, UnreadableFile):
            return 0
        content: str = document["content"]
        return text.count("\n", 0, len(text) - len(content)) if text.endswith(content) else 0

    def _of_prompt(self, query: str) -> list[Document]:
        """Rows of files of which the session is shown a part, with scores of that part alone."""
        paths = sorted({*self._in_prompt, *self._vault.scan(["runtime"]).seen})
        places = [path for path in self._guard.permitted(self._session, "read", paths) if not self._sees_all(path)]
        rarities = self._mirror().rarities(query) if places else {}
        found: dict[str, tuple[Note, float]] = {}
        for path in places:
            note = shown_note(self._vault, path, self._settings)
            if note is None:
                continue
            texts = zip((note.title, note.summary, f"{note.content}\n{note.code or ''}"), WEIGHTS, strict=False)
            if score := presence(rarities, list(texts)):
                found[path] = note, score
        ids = [known.id for known in self._mirror().known(found)] if found else []
        rows = self._mirror().light_many(ids, self._filter) if ids else {}
        scored = ((row, *found[row["path"]]) for row in rows.values() if row["path"] in found)
        return [{**row_shown(row, note), "score": score} for row, note, score in scored]

    def _first(self, ask: Callable[[Filter, int], list[Document]], limit: int) -> list[Document]:
        """The first rows that the session may read: where others stand among them, more are asked for."""
        if self._is_owner or not limit:
            return ask(self._filter, limit)
        count = limit
        while True:
            rows = ask(self._filter, count)
            readable = self._readable(rows)
            shown = (self._shown(row) for row in rows if row["path"] in readable)
            permitted = [row for row in shown if row is not None]
            if len(permitted) >= limit or len(rows) < count:
                return permitted[:limit]
            count = min(count * 4, LARGEST_LIMIT)

    def _readable(self, rows: Sequence[Document]) -> Set[str]:
        """The paths among those of these rows that the session may read."""
        paths = [row["path"] for row in rows if row["path"]]
        return set(self._guard.permitted(self._session, "read", paths))

    def _channels(self) -> tuple[str, ...]:
        """The folders of private notes in which the session may read: its own, and those that it is a member of."""
        if self._session.kind != "task" or not self._session.agent:
            return ()
        agent = self._session.agent
        others = (other for other in self._vault.folders(CHANNELS) if other != agent)
        shared = [
            f"{CHANNELS}/{other}/{scope}" for other in others for scope in self._vault.folders(f"{CHANNELS}/{other}")
        ]
        notes = self._guard.permitted(self._session, "read", [f"{folder}/{ANY}" for folder in shared])
        return (f"{CHANNELS}/{agent}", *(note.removesuffix(f"/{ANY}") for note in notes))

    def _shown(self, row: Document) -> Document | None:
        """The row as the session is shown it; None where that cannot be had."""
        if self._sees_all(row["path"]):
            return row
        note = shown_note(self._vault, row["path"], self._settings)
        return None if note is None else row_shown(row, note)

    def _text(self, document: Document) -> Document | None:
        """The document as the session is shown it; None where the file is another by now, which may show less."""
        if self._sees_all(document["path"]):
            return document
        if self._vault.digest(document["path"]) != document["source"]["digest"]:
            return None
        return document_shown_to(self._session, document, self._settings.prompt, self._settings.local_now())

    def _sees_all(self, path: str) -> bool:
        if path not in self._seen:
            self._seen[path] = sees_all(self._session, path, self._settings.prompt)
        return self._seen[path]


def shown_note(vault: Vault, path: str, settings: Settings) -> Note | None:
    """What a file of the prompt shows to who may not change it; None where that cannot be had."""
    try:
        text = vault.read(path)[0].decode(errors="replace")
    except (FileNotFoundError, UnreadableFile):
        return None
    return note_shown(path, text, settings.prompt, settings.local_now())
