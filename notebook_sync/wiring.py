"""The parts of one open notebook: each is made when it is first asked for, once, whichever thread asks.

No part does anything until it is used; a prompt needs no store.
"""

from __future__ import annotations

import contextlib
import threading
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.events import Events
from notebook_sync.files.vault import Vault
from notebook_sync.folder import FOLDER, make_folder
from notebook_sync.parts import part
from notebook_sync.settings import Settings

if TYPE_CHECKING:
    from notebook_sync.listing import Listing
    from notebook_sync.llm import Llm
    from notebook_sync.lookup import Lookup
    from notebook_sync.mirror.base import Mirror
    from notebook_sync.mirror.facts import FactRows
    from notebook_sync.mirror.memories import MemoryRows
    from notebook_sync.mirror.syntheses import Syntheses
    from notebook_sync.notes.agenda import Agenda
    from notebook_sync.notes.alarm import Alarm
    from notebook_sync.notes.channels.channels import Channels
    from notebook_sync.notes.channels.importing import NoteImport
    from notebook_sync.notes.channels.search import NoteSearch
    from notebook_sync.notes.check import Checks
    from notebook_sync.notes.editing.authors import Authors
    from notebook_sync.notes.editing.door import Door
    from notebook_sync.notes.editing.editing import Editing
    from notebook_sync.notes.editing.filing import Filing
    from notebook_sync.notes.editing.trusting import Trusting
    from notebook_sync.notes.editing.undoing import Undoing
    from notebook_sync.notes.guard import Guard
    from notebook_sync.notes.opened import Opened
    from notebook_sync.notes.pages import Pages
    from notebook_sync.notes.prompting.system_prompt import SystemPrompt
    from notebook_sync.notes.prompting.trust import Trust
    from notebook_sync.notes.stream.checkpoints import Checkpoints
    from notebook_sync.notes.stream.stream import Stream
    from notebook_sync.refs.base import Refs
    from notebook_sync.search.base import Embedder, Vectors
    from notebook_sync.search.embedding import Backlog
    from notebook_sync.search.hot_backlog import HotBacklog
    from notebook_sync.search.query_meaning import QueryMeanings
    from notebook_sync.search.searching import Searching
    from notebook_sync.sync.engine import Engine
    from notebook_sync.sync.facts import FactSync


class Wiring:
    """What a notebook is made of. May be used from several threads."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self.root = root
        self.settings = settings
        self.vault = Vault(root, exclude=settings.notebook.exclude, max_file_bytes=settings.notebook.max_file_bytes)
        self._making: dict[str, threading.Lock] = {}
        self._open: list[Mirror | Refs | Vectors | Embedder | FactRows | MemoryRows | Syntheses | Llm] = []

    def close(self) -> None:
        """Release what was opened. Twice is allowed."""
        if "_opened" in vars(self):
            self._opened.settle()
        if "_lookup" in vars(self):
            self._lookup.settle()
        while self._open:
            self._open.pop().close()

    # The stores.

    @part
    def folder(self) -> Path:
        """`.notebook`, made and hidden from git when it is not there."""
        folder = self.root / FOLDER
        try:
            make_folder(folder)
        except OSError as error:
            raise NotebookError(f"{folder} cannot be made: {error.strerror}; see: notebook-sync doctor") from None
        return folder

    @part
    def mirror(self) -> Mirror:
        """The content store. Raises ConfigError; BackendDown where the embedded file cannot be opened."""
        from notebook_sync.stores import open_mirror

        mirror = open_mirror(self.settings, lambda: self.folder)
        self._open.append(mirror)
        return mirror

    @part
    def refs(self) -> Refs:
        """Hot memory. Raises as `mirror`."""
        from notebook_sync.stores import open_refs

        refs = open_refs(self.settings, lambda: self.folder)
        self._open.append(refs)
        return refs

    @part
    def fact_rows(self) -> FactRows:
        """What is known of facts beside their text. Raises as `mirror`."""
        from notebook_sync.stores import open_facts

        rows = open_facts(self.settings, lambda: self.folder, lambda: self.embedder)
        self._open.append(rows)
        return rows

    @part
    def memory_rows(self) -> MemoryRows:
        """What is known of memories beside their text. Raises as `mirror`."""
        from notebook_sync.stores import open_memories

        rows = open_memories(self.settings, lambda: self.folder)
        self._open.append(rows)
        return rows

    @part
    def syntheses(self) -> Syntheses:
        """What is kept of syntheses. Raises as `mirror`."""
        from notebook_sync.stores import open_syntheses

        store = open_syntheses(self.settings, lambda: self.folder)
        self._open.append(store)
        return store

    @part
    def _fact_sync(self) -> FactSync:
        """Keeps rows of facts in step with their files."""
        from notebook_sync.sync.facts import FactSync

        return FactSync(self.vault, lambda: self.mirror, lambda: self.fact_rows)

    def _new_engine(self) -> Engine:
        """One for each kind of work: an engine is for one thread, and a notebook may be used from several."""
        from notebook_sync.sync.engine import Engine

        return Engine(
            self.vault,
            self.mirror,
            self.refs,
            settle_seconds=self.settings.sync.settle_ms / 1000,
            batch=self.settings.sync.batch,
            encoding=self.settings.prompt.encoding,
            author=self._authors.of,
            follow_facts=lambda anew: self._fact_sync.follow(anew=anew).failed,
        )

    # Who may do what, and what asks. Use cases stand before the parts that begin with an underscore.

    @part
    def events(self) -> Events:
        """The log of what was done and refused."""
        return Events(self.root / FOLDER)

    @part
    def guard(self) -> Guard:
        """Whether a session may do something to a note; every use case asks it."""
        from notebook_sync.notes.guard import Guard

        return Guard(self.vault, self.settings.prompt, self.events)

    @part
    def _lookup(self) -> Lookup:
        """Finds and reads notes."""
        from notebook_sync.lookup import Lookup
        from notebook_sync.patience import soon

        engine, patience = cache(self._new_engine), soon(self.settings.mirror.timeout_seconds)
        return Lookup(self.vault, self.settings, self.guard, lambda: self.mirror, engine, patience)

    @part
    def _listing(self) -> Listing:
        """Lists and searches notes."""
        from notebook_sync.listing import Listing

        return Listing(self.vault, self.settings, self.guard, lambda: self.mirror, lambda: self._searching)

    @part
    def _searching(self) -> Searching:
        """Searches by words and meaning."""
        from notebook_sync.search.searching import Searching

        return Searching(self.settings.search, lambda: self.embedder, lambda: self.vectors, lambda: self._backlog)

    @part
    def _query_meanings(self) -> QueryMeanings:
        """Tells what queries mean."""
        from notebook_sync.search.query_meaning import QueryMeanings

        return QueryMeanings(self.settings.search, lambda: self.embedder)

    @part
    def embedder(self) -> Embedder | None:
        """Makes vectors of texts; None where embeddings are off."""
        from notebook_sync.search.embedder import open_embedder

        embedder = open_embedder(self.settings.search)
        if embedder is not None:
            self._open.append(embedder)
        return embedder

    @part
    def vectors(self) -> Vectors:
        """Where the vectors of notes are. Raises as `mirror`."""
        from notebook_sync.stores import open_vectors

        vectors = open_vectors(self.settings, lambda: self.folder)
        self._open.append(vectors)
        return vectors

    @part
    def llm(self) -> Llm:
        """The language model of the settings, whether there is one or not."""
        from notebook_sync.llm import Llm

        llm = Llm(self.settings.llm)
        self._open.append(llm)
        return llm

    @part
    def _backlog(self) -> Backlog:
        """Gives notes that are behind their vectors. Raises UsageError where embeddings are off."""
        from notebook_sync.search.noted import NotedBacklog
        from notebook_sync.search.searching import OFF

        if self.embedder is None:
            raise UsageError(f"nothing to embed with: {OFF}")
        return NotedBacklog(self.mirror, self.vectors, self.embedder, self.root / FOLDER)

    @part
    def _hot_backlog(self) -> HotBacklog | None:
        """Gives hot memory its vectors; None where embeddings are off."""
        from notebook_sync.search.hot_backlog import HotBacklog

        return HotBacklog(lambda: self.refs, self.embedder) if self.embedder else None

    @part
    def _authors(self) -> Authors:
        """Tells whoever mirrors a note first who wrote it."""
        from notebook_sync.notes.editing.authors import Authors

        return Authors(self.root / FOLDER)

    @part
    def _door(self) -> Door:
        """Writes what tools change."""
        from notebook_sync.notes.editing.door import Door
        from notebook_sync.patience import soon

        folder, mirror = self.root / FOLDER, self._lookup.bring_in_step
        patience = soon(self.settings.mirror.timeout_seconds)
        trust = self._trust
        return Door(self.vault, folder, self.events, self.settings.git, self._authors, mirror, patience, trust)

    @part
    def _editing(self) -> Editing:
        """Makes edits."""
        from notebook_sync.notes.editing.editing import Editing
        from notebook_sync.notes.editing.effects import Effects

        effects = Effects(self.settings, self._system_prompt)
        return Editing(self.vault, self.guard, self._door, effects, self._lookup.find_path, self._lookup.holder_of)

    @part
    def _pages(self) -> Pages:
        """Makes and changes what agents keep."""
        from notebook_sync.notes.pages import Pages

        lookup = self._lookup
        return Pages(self.vault, self.guard, self._editing, lookup.find_path, lookup.version_of)

    @part
    def _filing(self) -> Filing:
        """Treats notes as whole files."""
        from notebook_sync.notes.editing.filing import Filing

        return Filing(self.vault, self.settings, self.guard, self._door, self._lookup.find_path)

    @part
    def _channels(self) -> Channels:
        """Writes private notes, and knows whose channels there are."""
        from notebook_sync.notes.channels.channels import Channels

        return Channels(self.vault, self.guard, self._door, lambda: self.mirror)

    @part
    def _note_search(self) -> NoteSearch:
        """Finds private notes."""
        from notebook_sync.notes.channels.near import NoteNear
        from notebook_sync.notes.channels.search import NoteSearch

        near = NoteNear(self._query_meanings, lambda: self.vectors, lambda: self._backlog)
        return NoteSearch(self.guard, self._channels, lambda: self.mirror, self.settings, near)

    @part
    def _note_import(self) -> NoteImport:
        """Brings in an older program's notes."""
        from notebook_sync.notes.channels.importing import NoteImport

        return NoteImport(self.vault, self.guard, self._door, lambda: self.mirror)

    @part
    def _trusting(self) -> Trusting:
        """Accepts what waits for trust."""
        from notebook_sync.notes.editing.trusting import Trusting

        return Trusting(self._system_prompt, self.guard, self._door, self.events)

    @part
    def _undoing(self) -> Undoing:
        """Knows what notes said before."""
        from notebook_sync.notes.editing.undoing import Undoing

        folder, find = self.root / FOLDER, self._lookup.find_path
        return Undoing(self.vault, self.settings, self.guard, folder, self._editing, find)

    @part
    def _stream(self) -> Stream:
        """Logs and recalls."""
        from notebook_sync.notes.stream.stream import Stream
        from notebook_sync.sync.announce import is_emptied

        emptied = partial(is_emptied, lambda: self.mirror)
        return Stream(self.vault, self.settings, self.guard, lambda: self.refs, self._query_meanings, emptied)

    @part
    def _opened(self) -> Opened:
        """Tells what agents open."""
        from notebook_sync.notes.opened import Opened

        return Opened(self.settings.timezone, lambda: self.refs)

    @part
    def _checkpoints(self) -> Checkpoints:
        """Goes back in time."""
        from notebook_sync.notes.stream.checkpoints import Checkpoints
        from notebook_sync.notes.stream.kept_notes import KeptNotes

        return Checkpoints(
            KeptNotes(self.vault),
            self.settings,
            self.guard,
            self.events,
            self._stream,
            self._door,
            lambda: self.mirror,
            lambda: self.refs,
        )

    @part
    def _agenda(self) -> Agenda:
        """Reads rules and reminders."""
        from notebook_sync.notes.agenda import Agenda

        return Agenda(self._system_prompt, self.settings)

    @part
    def _checks(self) -> Checks:
        """Looks for what a person may want to mend."""
        from notebook_sync.notes.check import Checks

        return Checks(self.vault, self.settings.prompt)

    @part
    def _alarm(self) -> Alarm:
        """Tells of reminders that fall due."""
        from notebook_sync.notes.alarm import Alarm
        from notebook_sync.notes.runtime.telling import Telling

        return Alarm(self._agenda, Telling(self.root / FOLDER, self.events))

    @part
    def _system_prompt(self) -> SystemPrompt:
        """Assembles the prompt."""
        return self._prompt_with(self.settings)

    @property
    def _trust(self) -> Trust | None:
        """Knows what is trusted; None where all that the files say is."""
        return self._system_prompt.trust if self.settings.prompt.trust == "committed" else None

    def _prompt_with(self, settings: Settings) -> SystemPrompt:
        """A system prompt by other settings than the notebook's."""
        from notebook_sync.notes.prompting.system_prompt import SystemPrompt

        folder = self.root / FOLDER
        with contextlib.suppress(NotebookError):  # where nothing can be written, the prompt is assembled all the same
            folder = self.folder
        return SystemPrompt(self.vault, folder, settings)
